# need.bats -- what scripts/need does about a BLAS, on machines that lack one.
# The compiler's wrapper finds a library only where it is named in `libraries`,
# and apt-get installs what the test says.
setup() {
    cd "$BATS_TEST_TMPDIR" || exit 1
    mkdir bin
    echo "blas" >libraries
    true_cc=$(command -v cc)
    cat >bin/cc <<END
#!/bin/sh
for word in "\$@"; do
    case \$word in
    -lopenblas | -lblis | -lmkl_rt | -lblas | -lcblas)
        grep -qx "\${word#-l}" "$PWD/libraries"; exit ;;
    esac
done
exec $true_cc "\$@"
END
    somebody 1000
    installs false
    chmod +x bin/cc
    PATH=$PWD/bin:$PATH
    unset CC
}

somebody() { # somebody UID: who runs it
    printf '#!/bin/sh\necho %s\n' "$1" >bin/id
    chmod +x bin/id
}

installs() { # installs COMMAND: what apt-get does besides being noted
    printf '#!/bin/sh\necho "$@" >>%s/apt\n%s\n' "$PWD" "$1" >bin/apt-get
    chmod +x bin/apt-get
}

need() {
    run timeout 120 "$KOFN_SOURCE/scripts/need" build
}

slow() { # the last run went on with a slow BLAS, and said so
    [ "$status" -eq 0 ] || { echo "$status: $output"; return 1; }
    [[ "$output" == *"many times slower"*"apt-get install -y libopenblas-dev"* ]] ||
        { echo "$output"; return 1; }
}

@test "need: any fast BLAS is accepted silently" {
    for fast in openblas blis mkl_rt; do
        echo $fast >libraries
        need
        [ "$status" -eq 0 ] && [ -z "$output" ] || { echo "$fast: $output"; return 1; }
    done
    [ ! -e apt ]
}

@test "need: root installs OpenBLAS next to the reference BLAS" {
    somebody 0
    installs "echo openblas >>$PWD/libraries"
    need
    [ "$status" -eq 0 ]
    [ "$output" = "installing: libopenblas-dev" ]
    grep -q -- "install.* libopenblas-dev" apt
}

@test "need: other users get the reference BLAS and a warning" {
    need
    slow
    [ ! -e apt ]
}

@test "need: root without a network gets the same" {
    somebody 0
    need
    slow
    grep -q update apt
}

@test "need: without a BLAS, the install command is printed" {
    : >libraries
    need
    [ "$status" -eq 1 ]
    [[ "$output" == *"apt-get install"*" libopenblas-dev" ]]
    somebody 0
    need
    [ "$status" -eq 1 ]
    [[ "$output" == *"apt-get install"*" libopenblas-dev" ]]
    # installed, and still not to be linked with
    installs true
    need
    [ "$status" -eq 1 ]
    [[ "$output" == *"cannot be used: libopenblas-dev"* ]]
}
