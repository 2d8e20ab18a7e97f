load helpers

# KOFN_BLAS_DIRS: folders of Debian's reference BLAS (blas) and BLIS (blis-*), for
# preloading. It is empty under sanitizers, which must be loaded first.
with() { # with FOLDER FILE COMMAND...: with that BLAS instead of the linked one
    local dir folder=$1 file=$2
    shift 2
    for dir in $KOFN_BLAS_DIRS; do
        # shellcheck disable=SC2053
        [[ ${dir##*/} == $folder && -e $dir/$file ]] || continue
        LD_PRELOAD=$dir/$file run "$@"
        return
    done
    skip "no $folder/$file"
}

reference() {
    with blas libblas.so.3 "$@"
}

mends="many times slower than OpenBLAS; as root: apt-get install -y libopenblas-dev"

@test "blas: the reference BLAS is named with advice (--version, start, report)" {
    reference "$KOFN" --version
    [[ "$output" == *"blas: the reference BLAS, one thread a worker"*"advice: $mends"* ]]
    kofn gen matrix 40 30 -o X.npy -q
    kofn gen vector 30 -o w.npy -q
    reference "$KOFN" matvec X.npy w.npy -o y.npy --verify
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "the reference BLAS: $mends"* ]]
    [[ "${lines[-2]}" == "the reference BLAS: $mends"* ]]
    reference "$KOFN" matvec X.npy w.npy -o y.npy -q
    [ -z "$output" ]
    reference bash -c "'$KOFN' matvec X.npy w.npy -o y.npy --json 2>/dev/null"
    json "o['blas'] == 'the reference BLAS' and 'libopenblas-dev' in o['blas_advice'] \
and o['blas_threads'] == 1" <<<"$output"
    kofn gen graph 50 300 -o G.mtx -q
    reference "$KOFN" pagerank G.mtx -o r.npy --masterless -n 4
    [[ "${lines[0]}" == "the reference BLAS: $mends"* ]]
    [[ "$output" == *"kernels "*", the reference BLAS"* ]]
    reference timeout 20 "$KOFN" worker --once "ipc://$PWD/nobody" --patience 0.2
    [[ "${lines[0]}" == "the reference BLAS: $mends"* ]]
}

@test "blas: BLIS is named with its kernel and its single thread" {
    BLIS_NUM_THREADS=3 with 'blis-*' libblis.so.4 "$KOFN" --version
    [[ "$output" == *"blas: BLIS "*", one thread a worker"* ]]
}

@test "blas: nothing is printed of threads that a BLAS does not report" {
    # Debian's BLIS under this name exports only the BLAS
    kofn gen matrix 40 30 -o X.npy -q
    kofn gen vector 30 -o w.npy -q
    with 'blis-*' libblas.so.3 "$KOFN" matvec X.npy w.npy -o y.npy
    [ "$status" -eq 0 ]
    [[ "$output" == *"a BLAS that kofn does not know, /"*"/libblas.so.3"* ]]
    [[ "$output" != *"thread a worker"* ]]
    with 'blis-*' libblas.so.3 "$KOFN" matvec X.npy w.npy -o y.npy --json
    json "o['blas_threads'] is None and o['blas_advice'] is None" <<<"$output"
}

@test "blas: remote workers keep their own number of threads" {
    kofn gen matrix 40 30 -o X.npy -q
    kofn gen vector 30 -o w.npy -q
    run kofn matvec X.npy w.npy -o y.npy -p processes
    if [[ "$(kofn --version)" == *"blas: OpenBLAS"* ]]; then
        [[ "$output" == *"one BLAS thread a worker"* ]]
    fi
    "$KOFN" worker --once "ipc://$PWD/s" -q --patience 20 &
    kofn matvec X.npy w.npy -o y.npy -n 1 -s uncoded -p "ipc://$PWD/s" --json >out.json
    json "o['blas_threads'] is None" <out.json
    wait
}

has() { # has FLAG...: does the processor?
    for flag in "$@"; do
        grep -qw "$flag" /proc/cpuinfo || return 1
    done
}

@test "blas: slow OpenBLAS kernels are replaced, or reported if forced" {
    run kofn --version
    [[ "$output" == *"blas: OpenBLAS"* ]] || skip "not OpenBLAS"
    best=
    has avx2 fma && best=Haswell
    has avx512f avx512dq avx512bw avx512vl && best=SkylakeX
    [ -n "$best" ] || skip "an old processor"
    for forced in Prescott Haswell Zen; do
        [ $best = Haswell ] && [ $forced != Prescott ] && continue
        OPENBLAS_CORETYPE=$forced run kofn --version
        [[ "$output" == *"OpenBLAS $forced"*"advice: "*"OPENBLAS_CORETYPE=$best"* ]] ||
            { echo "$output"; return 1; }
    done
    OPENBLAS_CORETYPE=$best run kofn --version
    [[ "$output" != *advice* ]]
    unset OPENBLAS_CORETYPE
    run kofn --version
    [[ "$output" != *advice* ]]
}
