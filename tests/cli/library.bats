load helpers
bats_require_minimum_version 1.5.0

# Skips where there is no shared library without a sanitizer's names.
setup_file() { :; }
teardown_file() { :; }
setup() {
    cd "$BATS_TEST_TMPDIR"
    [ -z "$KOFN_SANITIZE" ] || skip "sanitizers add names of their own"
    [ -e "$(dirname "$KOFN")/libkofn.so" ] || skip "it was built without shared libraries"
}

@test "library: exports are the public interface of one version, and what its plugin needs" {
    nm -D --defined-only --with-symbol-versions "$(dirname "$KOFN")/libkofn.so" |
        awk '$2 != "A" { print $3 }' >names
    grep -qx kofn_open@@KOFN_0.1 names
    grep -qx kofn_net_listen@@KOFN_0.1 names
    grep -qx kf_new@@KOFN_PRIVATE_0.1.0 names
    # debian/libkofn0.symbols has them all; scripts/abi --keep writes it
    diff <(sed -n 's/^ \(k[a-z0-9_]*@K[A-Z0-9_.]*\) .*/\1/p' \
        "$KOFN_SOURCE/debian/libkofn0.symbols" | sort) <(sed 's/@@/@/' names | sort)
    [ -z "$(grep -v -e '^kofn_[a-z0-9_]*@@KOFN_0.1$' -e '@@KOFN_PRIVATE_0.1.0$' names)" ]
}

@test "library: sockets and TLS are loaded by the plugin only, at the first address" {
    beside=$(dirname "$KOFN")
    [ -e "$beside/libkofn-net.so" ] || skip "it was built without workers at addresses"
    readelf -d "$beside/libkofn-net.so" | grep -q 'NEEDED.*libssl'
    readelf -d "$beside/libkofn.so" | not grep -q 'NEEDED.*lib\(uv\|ssl\|crypto\)'
    mkdir alone
    cp -L "$beside"/libkofn.so.0 "$beside"/kofn alone/
    LD_LIBRARY_PATH=alone run -0 alone/kofn schemes
    LD_LIBRARY_PATH=alone run -2 alone/kofn keygen keys
    [[ $output == *"libkofn-net.so is not in the folder of libkofn"* ]]
    cp "$beside/libkofn-net.so" alone/
    LD_LIBRARY_PATH=alone run -0 alone/kofn keygen keys
}

@test "library: nodes without a master are loaded by their plugin only" {
    beside=$(dirname "$KOFN")
    [ -e "$beside/libkofn-mesh.so" ] || skip "it was built without nodes"
    nm -D --defined-only "$beside/libkofn-mesh.so" | grep -q ' kofn_mesh_plugin$'
    mkdir alone
    cp -L "$beside"/libkofn.so.0 "$beside"/kofn alone/
    "$KOFN" gen matrix 40 40 -o a.npy
    LD_LIBRARY_PATH=alone run -0 alone/kofn power a.npy -n 3
    LD_LIBRARY_PATH=alone run -2 alone/kofn power a.npy --masterless -n 3
    [[ $output == *"libkofn-mesh.so is not in the folder of libkofn"* ]]
    cp "$beside/libkofn-mesh.so" alone/
    LD_LIBRARY_PATH=alone run -0 alone/kofn power a.npy --masterless -n 3
}

@test "library: a command built without nodes refuses --masterless, and goes on without" {
    [ -z "$(nm "$KOFN_WITHOUT_NODES" | grep -e " U kofn_mesh_" -e " nodes_run$")" ]
    "$KOFN" gen matrix 40 40 -o a.npy
    for words in "power a.npy" "pagerank none.mtx" "train a.npy --autoencoder --layers 40-4-40"; do
        run -2 "$KOFN_WITHOUT_NODES" $words -n 3 --masterless
        [[ $output == "kofn: --masterless: this kofn was built without nodes (-DKOFN_MESH=OFF)"* ]]
    done
    run -0 "$KOFN_WITHOUT_NODES" power a.npy -n 3
}

@test "library: schemes for comparison are loaded by their plugin only, at their name" {
    beside=$(dirname "$KOFN")
    [ -e "$beside/libkofn-schemes.so" ] || skip "it was built without these schemes"
    mkdir alone elsewhere
    cp -L "$beside"/libkofn.so.0 "$beside"/kofn alone/
    cp "$beside/libkofn-schemes.so" elsewhere/
    LD_LIBRARY_PATH=alone run -0 alone/kofn schemes --all
    [[ $output != *"product  "*"a code of their own"* ]]
    outside=$(sed -n 's/^#define KF_CODE_OUTSIDE "\(.*\)"/\1/p' "$KOFN_SOURCE/src/code/outside.h")
    for name in ${outside//|/ }; do
        LD_LIBRARY_PATH=alone run -2 alone/kofn schemes "$name"
        [[ $output == *"no schemes"*"$name"*"libkofn-schemes.so is not in the folder of libkofn"* ]]
    done
    LD_LIBRARY_PATH=alone run -2 alone/kofn schemes gridd
    [[ $output == *'no scheme "gridd"'* && $output != *libkofn-schemes* ]]
    LD_LIBRARY_PATH=alone run -0 alone/kofn schemes elsewhere/libkofn-schemes.so:r=2
    [[ $output == bcc* ]]
    cp elsewhere/libkofn-schemes.so alone/
    LD_LIBRARY_PATH=alone run -0 alone/kofn schemes grid:m=2,n=2 -n 8
    [[ $output == grid* ]]
    LD_LIBRARY_PATH=alone run -0 alone/kofn schemes --all
    for name in elastic idip ${outside//|/ }; do
        grep -q "^$name  *" <<<"$output"
    done
}
