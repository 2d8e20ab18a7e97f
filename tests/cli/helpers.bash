# helpers.bash -- helpers for the command-line tests. KOFN is the command under test,
# KOFN_SOURCE the checkout.
#
# A test that waits long (patience, leases, back-offs) or computes long has the tag
# night and runs by night only. A few quick ones of each command have the tag asan, and
# also run under AddressSanitizer by day.
PYTHON=/usr/bin/python3

# One Python for all tests of a file: see calc.py.
setup_file() {
    calc_begins
}

teardown_file() {
    kill "$CALC_PID" 2>/dev/null || true
}

setup() {
    : "${KOFN:?the kofn command under test}"
    cd "$BATS_TEST_TMPDIR" || exit 1
}

calc_begins() {
    export CALC=$BATS_FILE_TMPDIR/calc CALC_PID
    mkfifo "$CALC"
    $PYTHON "${BASH_SOURCE[0]%/*}/calc.py" "$CALC" </dev/null >"$CALC.log" 2>&1 3>&- &
    CALC_PID=$!
    disown
}

# not COMMAND...: fails if the command succeeds. bats ignores the status of "! COMMAND"
# unless it is the last of a test.
not() {
    ! "$@" || { echo "it succeeds, and must not: $*"; return 1; }
}

# calc KIND CODE: prints calc.py's answer. An ended calc.py fails the test.
calc() {
    local ask fd said='' status='' more whole='' reply=$CALC.$BASHPID
    [ -p "$reply" ] || mkfifo "$reply"
    # open until the answer is there: data that no process has open is lost
    exec {fd}<>"$reply" {ask}<>"$CALC"
    printf '%s\0' "$1" "$BASHPID" "$PWD" "$2" >&"$ask"
    # a partial answer after a second is not read again
    for _ in {1..600}; do
        ! IFS= read -r -d '' -t 1 -u "$fd" more || whole=1
        status+=$more
        [ -z "$whole" ] && [ -e "/proc/$CALC_PID/exe" ] || break
    done
    if [ -n "$whole" ]; then
        IFS= read -r -d '' -t 60 -u "$fd" said || true
        printf '%s' "$said"
    else
        echo "calc.py does not answer: $(cat "$CALC.log")"
        status=1
    fi
    exec {fd}>&- {ask}>&-
    return "$status"
}

# With KOFN_PORT, commands run on that port instead of threads. A hanging command is
# ended; under ThreadSanitizer, on a loaded machine, a training takes minutes.
kofn() {
    local port=() words=("$@") i
    if [ -n "${KOFN_PORT-}" ]; then
        for i in "${!words[@]}"; do
            [ "${words[i]}" != threads ] || words[i]=$KOFN_PORT
        done
        case " $* " in
        " gen "* | *" -p "* | *" --port "* | *" --masterless"*) ;;
        " mat"* | " power"* | " pagerank"* | " regress"* | " train"*) port=(-p "$KOFN_PORT") ;;
        esac
    fi
    timeout 600 "$KOFN" "${words[@]:0:1}" "${port[@]}" "${words[@]:1}"
}

# refused WHAT...: the last run exited with 2 and one line that contains every WHAT.
refused() {
    [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
    [ "${#lines[@]}" -eq 1 ] || { echo "not one line: $output"; return 1; }
    for what in "$@"; do
        [[ "$output" == *"$what"* ]] || { echo "no \"$what\" in: $output"; return 1; }
    done
}

# Removes the warning of a slow BLAS at the start.
besides_blas() {
    grep -v 'many times slower than OpenBLAS'
}

# wait_for COMMAND...: waits until it succeeds, for the time that a loaded machine may
# need.
wait_for() {
    for _ in {1..12000}; do "$@" && return; sleep 0.05; done
    echo "in vain: $*"
    return 1
}

# under_way FILE: the run with these metrics is in a round.
under_way() {
    grep -q '^kofn_round [1-9]' "$1" 2>/dev/null
}

# has_computed PID [TENTHS]: it used 0.4 seconds (or TENTHS) of processor time, or has
# ended.
has_computed() {
    local ticks
    read -ra ticks 2>/dev/null <"/proc/$1/stat" || return 0
    [ "${ticks[2]}" = Z ] ||
        [ $((ticks[13] + ticks[14])) -ge $(($(getconf CLK_TCK) * ${2:-4} / 10)) ]
}

# with_time OPTION WHAT COMMAND...: runs it with more and more seconds until WHAT is printed.
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

# with_patience EXPRESSION COMMAND...: runs it with --json and more and more patience
# until EXPRESSION holds, since a round may wait that long for a faulty worker. With too
# little patience some workers are missing at the end; no answer is ever wrong.
with_patience() {
    local said=$1 seconds
    shift
    for seconds in 3 60; do
        status=0
        timeout 600 "$@" --patience $seconds --json >said.json 2>said || status=$?
        [ "$status" -ne 0 ] || ! json "$said" <said.json || return 0
        [ "$status" -eq 4 ] || json "o['rel_error'] <= 1e-12" <said.json || break
    done
    echo "status $status: $(cat said.json said)"
    return 1
}

# json EXPRESSION: evaluates it with `o` bound to the object on stdin.
json() {
    calc json "$1"
}

# py CODE: runs it with NumPy as np. It has neither stdin nor variables of this shell.
py() {
    calc py "$1"
}

# Makes X.npy and y.npy: images of 8 x 8 pixels of 0 to 16 with labels 0 to 9. Xt.npy
# and yt.npy are held out.
images() {
    py "r=np.random.default_rng(1); P=r.random((10,64)) < 0.5
def make(m, x, t):
    y=r.integers(0,10,m); np.save(t, y.astype(float))
    np.save(x, np.clip(np.round(16*P[y]*r.uniform(0.5,1,(m,1))+3*r.normal(size=(m,64))),0,16))
make(400,'X.npy','y.npy'); make(100,'Xt.npy','yt.npy')"
}

# Ends the processes that the test started in the background.
end_jobs() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

# until_it COMMAND...: waits until the command succeeds.
until_it() {
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.05
    done
    return 1
}
