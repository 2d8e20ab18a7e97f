# The wheel and the Debian packages are built, looked at and used, where the checkout
# cannot be seen. KOFN_SOURCE is the checkout.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# hidden COMMAND...: runs a command that sees no checkout.
hidden() {
    unshare -m sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$KOFN_SOURCE" "$@"
}

@test "package: the wheel works in an empty environment without the checkout" {
    [ "$(id -u)" = 0 ] && unshare -m true || skip "mounts need root"
    "$KOFN_SOURCE/scripts/need" wheel
    "$KOFN_SOURCE/scripts/wheel" "$PWD/wheel"
    ls wheel/kofn-*-cp39-abi3-linux_*.whl
    [ -z "$(unzip -l wheel/*.whl | grep -e '\.c$' -e '\.h$')" ]
    /usr/bin/python3 -m venv --system-site-packages empty # has NumPy and cffi
    empty/bin/pip install -q --no-index --no-deps wheel/*.whl
    export PATH=$PWD/empty/bin:/usr/bin:/bin
    cat >use.py <<'END'
import subprocess
import sys

import numpy as np

import kofn

X = np.random.default_rng(1).random((600, 50))
with kofn.Matrix(X, where="processes", scheme="elastic:k=4", workers=6) as A:
    assert np.allclose(A @ np.ones(50), X @ np.ones(50))
workers = [subprocess.Popen([sys.executable, "-m", "kofn", "worker", sys.argv[1]])
           for _ in range(3)]
with kofn.Matrix(X, where=sys.argv[1], scheme="elastic:k=2", workers=3) as A:
    assert np.allclose(A @ np.ones(50), X @ np.ones(50))
assert [w.wait(20) for w in workers] == [0, 0, 0]
maps = open("/proc/self/maps").read()
assert "kofn.libs/libopenblas" in maps and "site-packages/kofn/lib/libkofn.so" in maps
print(kofn.__version__)
END
    run -0 hidden python use.py "ipc://$PWD/socket"
    [ "$output" = "$(sed -n 's/^project(kofn VERSION \(\S*\).*/\1/p' "$KOFN_SOURCE/CMakeLists.txt")" ]
    hidden kofn gen matrix 100 10 -o X.npy
    hidden kofn gen vector 10 -o w.npy
    hidden kofn matvec X.npy w.npy -o y.npy --verify -p processes
    hidden kofn-papers aet
    [ -z "$(for f in $(find empty -name '*.so*' -path '*kofn*'); do ldd "$f"; done |
        grep -e 'not found' -e "$KOFN_SOURCE")" ]
    ls empty/share/man/man1/kofn-matvec.1
}

@test "package: pip installs the checkout without a link to its build folder" {
    /usr/bin/python3 -m venv --system-site-packages empty
    empty/bin/pip install -q --no-index --no-deps --no-build-isolation "$KOFN_SOURCE/python"
    rm -rf "$KOFN_SOURCE/python/build" "$KOFN_SOURCE/python/kofn.egg-info"
    for f in $(find empty -name '*.so*' -path '*kofn*') empty/lib/python3*/site-packages/kofn/bin/*; do
        [ -z "$(readelf -d "$f" | grep "PATH.*$KOFN_SOURCE")" ] || { echo "$f"; false; }
        [ -z "$(ldd "$f" | grep -e "$KOFN_SOURCE" -e 'not found')" ] || { ldd "$f"; false; }
    done
    (cd / && "$BATS_TEST_TMPDIR/empty/bin/kofn" --version)
}

@test "package: Debian's packages are the same bytes in two builds, and install and go" {
    [ "$(id -u)" = 0 ] || skip "a chroot needs root"
    "$KOFN_SOURCE/scripts/need" deb
    "$KOFN_SOURCE/scripts/deb" "$PWD/first"
    "$KOFN_SOURCE/scripts/deb" "$PWD/second"
    (cd first && sha256sum *.deb) >sums
    (cd second && sha256sum -c ../sums)
    command -v debootstrap autopkgtest >/dev/null || skip "no debootstrap, no autopkgtest"
    debootstrap --variant=minbase bookworm root >debootstrap.log 2>&1 ||
        skip "no Debian mirror can be reached"
    cp -r first "root/first"
    chroot root sh -c 'apt-get install -y --no-install-recommends /first/libkofn0_0*.deb /first/libkofn-dev_0*.deb \
        /first/python3-kofn_0*.deb /first/kofn_0*.deb' >install.log 2>&1 || { tail install.log; false; }
    cp -r "$KOFN_SOURCE/debian/tests" root/tests
    chroot root sh -c 'apt-get install -y --no-install-recommends gcc libc6-dev \
        pkg-config' >>install.log 2>&1
    mount --bind /proc root/proc
    for test in fleet program; do
        run chroot root sh -c "mkdir -p /at && AUTOPKGTEST_TMP=/at /tests/$test"
        [ "$status" = 0 ] || break
    done
    umount root/proc
    echo "$output"
    [ "$status" = 0 ]
    chroot root sh -c 'dpkg --purge $(dpkg-query -W -f "\${Package}\n" "*kofn*")'
    [ -z "$(find root/usr -name '*kofn*')" ]
}
