# helpers.bash -- for the command-line tests.  KOFN is the command under test,
# KOFN_SOURCE the checkout.
setup() {
    : "${KOFN:?the kofn command under test}"
    cd "$BATS_TEST_TMPDIR" || exit 1
    PYTHON=/usr/bin/python3
}

# With KOFN_PORT what would run on threads runs there.  What hangs is ended; under
# ThreadSanitizer, on a machine with much else to do, a training takes minutes.
kofn() {
    local port=() words=("$@") i
    if [ -n "${KOFN_PORT-}" ]; then
        for i in "${!words[@]}"; do
            [ "${words[i]}" != threads ] || words[i]=$KOFN_PORT
        done
        case " $* " in
        " gen "* | *" -p "* | *" --port "*) ;;
        " mat"* | " power"* | " pagerank"* | " regress"* | " train"*) port=(-p "$KOFN_PORT") ;;
        esac
    fi
    timeout 600 "$KOFN" "${words[@]:0:1}" "${port[@]}" "${words[@]:1}"
}

# refused WHAT...: the last run ended with 2 and one line that has every WHAT.
refused() {
    [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
    [ "${#lines[@]}" -eq 1 ] || { echo "not one line: $output"; return 1; }
    for what in "$@"; do
        [[ "$output" == *"$what"* ]] || { echo "no \"$what\" in: $output"; return 1; }
    done
}

# Without the line that a slow BLAS is told by at the start.
besides_blas() {
    grep -v 'many times slower than OpenBLAS'
}

# wait_for COMMAND...: until it succeeds, as long as a machine with much else to
# do may need.
wait_for() {
    for _ in $(seq 6000); do "$@" && return; sleep 0.1; done
    echo "in vain: $*"
    return 1
}

# under_way FILE: the run that keeps these metrics is in a round.
under_way() {
    grep -q '^kofn_round [1-9]' "$1" 2>/dev/null
}

# with_time OPTION WHAT COMMAND...: run with so many seconds that WHAT is said.
with_time() {
    local option=$1 what=$2 seconds
    shift 2
    for seconds in 0.5 4 30; do
        run timeout 600 "$@" "$option" $seconds
        [[ "$output" != *"$what"* ]] || return 0
    done
    echo "no \"$what\" in: $output"
    return 1
}

# json EXPRESSION: evaluate with `o` bound to the object on stdin.
json() {
    $PYTHON -c "import json,sys; o=json.load(sys.stdin); sys.exit(0 if ($1) else (print(str(o)[:600]) or 1))"
}

py() {
    $PYTHON -c "import numpy as np
$1"
}

# X.npy and y.npy, as images of 8 x 8 pixels of 0 to 16 with labels 0 to 9, and
# Xt.npy, yt.npy held out.
images() {
    py "r=np.random.default_rng(1); P=r.random((10,64)) < 0.5
def make(m, x, t):
    y=r.integers(0,10,m); np.save(t, y.astype(float))
    np.save(x, np.clip(np.round(16*P[y]*r.uniform(0.5,1,(m,1))+3*r.normal(size=(m,64))),0,16))
make(400,'X.npy','y.npy'); make(100,'Xt.npy','yt.npy')"
}
