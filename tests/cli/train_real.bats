load helpers

# Masterless trainings on processes with faults. No step waits for a time: the next one
# starts when the files that nodes save show their progress.
export OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1 OMP_NUM_THREADS=1

net="--layers 64-16-10 --step 0.1 --batch 20 --momentum 0.5 --seed 3"

teardown() {
    [ "${#pid[@]}${#space[@]}" = 00 ] || kill -9 "${pid[@]}" "${space[@]}" 2>/dev/null || true
}

# mesh WAY N STEPS OPTION...: how the nodes below are started; there may be one more than N.
mesh() {
    local way=$1
    count=$2 steps=$3
    shift 3
    rm -rf m? m?? k? k?? s? s?? want
    images
    words=(train X.npy y.npy $net --epochs $((steps / 20)) --test Xt.npy yt.npy
        -s gpd:m=2,n=1,p=1 --masterless -n $count --every 5 --patience 200
        --errors probabilistic --scrub 5 "$@")
    if [ $way = tcp ]; then
        read -ra at < <(py "import socket
s = [socket.create_server(('127.0.0.1', 0)) for _ in range($count + 2)]
print(*['tcp://127.0.0.1:%d' % x.getsockname()[1] for x in s])")
    else
        at=()
        for ((j = 0; j < count + 2; j++)); do at[j]=ipc://$BATS_TEST_TMPDIR/s$j; done
    fi
    pid=()
}

# node I [OPTION...]: starts one in the background; it saves its steps in kI.
node() {
    local i=$1 reach= j
    shift
    for ((j = 1; j < ${#at[@]}; j++)); do
        [ $j = $i ] || reach="$reach,${at[$j]}"
    done
    ${before[$i]} "${command[$i]:-$KOFN}" "${words[@]}" --port "${at[$i]}" \
        --reach "${reach#,}" --checkpoint "k$i" -o "m$i" --json "$@" \
        >"o$i.json" 2>"e$i" 3>&- &
    pid[$i]=$!
}

# step_of I: prints the last saved step, 0 before the first.
step_of() {
    ls "k$1" 2>/dev/null | sed -n 's/.*-step-0*\([1-9][0-9]*\)\.\(draft\|kept\)$/\1/p' |
        sort -n | tail -1 | grep . || echo 0
}

is_over() {
    local s
    read -ra s 2>/dev/null <"/proc/${pid[$1]}/stat" || return 0
    [ "${s[2]}" = Z ]
}

# reached I STEP: node I saved that step or a later one, or has ended.
reached() {
    is_over $1 || [ "$(step_of $1)" -ge "$2" ]
}

# further I: waits until node I has made progress.
further() {
    wait_for reached $1 $(($(step_of $1) + 10))
}

# all_run I...: none of them has ended, so the faults happened during the training.
all_run() {
    local i
    for i in "$@"; do
        ! is_over $i || return 1
    done
}

# has_met I J STEP: node I saved that step or a later one, or node J has ended.
has_met() {
    reached $1 $3 || is_over $2
}

# goes_on I J: a stopped node continues, and reaches the step that the other has now. It
# fails if the other ended meanwhile, and with it the mesh.
goes_on() {
    local step
    kill -CONT "${pid[$1]}"
    step=$(step_of $2)
    wait_for has_met $1 $2 $step
    all_run $2
}

# in_time TRY WAY N [STEPS]: trains long enough that TRY finishes first. TRY fails if it
# does not; it leaves its findings in variables.
in_time() {
    local first=${4:-300} times
    for times in 1 4 16 64; do
        steps=$((first * times))
        mesh $2 $3 $steps
        ! $1 || return 0
        kill -9 "${pid[@]}" "${space[@]}" 2>/dev/null || true
        wait
    done
    return 1
}

# ended I...: the nodes have the plain weights to rounding, equal to the bit, and the
# same number of correct held-out labels but for 0.2 %.
ended() {
    local i first=$1
    kofn train X.npy y.npy -o want $net --epochs $((steps / 20)) --test Xt.npy yt.npy \
        --json >want.json
    for i in "$@"; do
        wait "${pid[$i]}" || { echo "node $i: $?"; cat "e$i" "o$i.json"; return 1; }
        json "o['status'] == 'ok' and o['iterations'] == $steps and \
abs(o['test_accuracy'] - __import__('json').load(open('want.json'))['test_accuracy']) <= 0.002" \
            <"o$i.json"
        diff -r "m$first" "m$i"
    done
    py "
for l in 'W1.npy', 'W2.npy':
    w = np.load('want/' + l)
    assert np.linalg.norm(np.load('m$first/' + l) - w) <= 1e-12 * np.linalg.norm(w), l"
}

# Prints the errors that nodes I... found, all of one node.
one_was_wrong() {
    local i
    for i in "$@"; do
        json "len({w['seat'] for w in o['wrong']} - {-1, 0xffffffff}) <= 1" <"o$i.json"
    done
    grep -q '"seat"' $(printf 'o%s.json ' "$@")
}

# ---- kills, stops and joins --------------------------------------------------

kill_stop_join() {
    for i in 1 2 3 4 5; do node $i; done
    wait_for reached 3 20
    all_run 1 3 || return
    kill -9 "${pid[1]}"
    further 3
    node 6
    wait_for reached 6 1 # it is a member, and has blocks
    all_run 2 3 6 || return
    kill -STOP "${pid[2]}"
    further 3
    goes_on 2 3
}

@test "real train: of 5 processes 1 dies, 1 joins, 1 stops for a while" {
    in_time kill_stop_join ipc 5
    ended 2 3 4 5 6
    [ ! -e m1 ]
}

# bats test_tags=night
@test "real train, TCP: of 5 processes 1 dies, 1 joins, 1 stops a while" {
    in_time kill_stop_join tcp 5
    ended 2 3 4 5 6
}

kill_and_restart() {
    words+=(--resume)
    for i in 1 2 3 4 5 6 7 8; do node $i; done
    for i in 1 2 3 4 5; do # one after the other: the leader is among them
        further 8
        all_run $i 8 || return
        kill -9 "${pid[$i]}"
        wait "${pid[$i]}" || true
        further 8
        rm -f "s$i"
        node $i
        further $i
        all_run 8 || return
    done
}

# bats test_tags=night
@test "real train: 5 of 8 processes are killed and restarted in turn" {
    for way in ipc tcp; do
        in_time kill_and_restart $way 8
        ended 1 2 3 4 5 6 7 8
    done
}

stop_for_30_seconds() {
    for i in 1 2 3 4 5 6 7 8; do node $i; done
    wait_for reached 1 20
    all_run 1 3 || return
    kill -STOP "${pid[3]}"
    sleep 30
    goes_on 3 1
}

# bats test_tags=night
@test "real train: 1 of 8 processes stops for 30 s and catches up" {
    in_time stop_for_30_seconds tcp 8 $([ -n "$KOFN_SANITIZE" ] && echo 400 || echo 4000)
    ended 1 2 3 4 5 6 7 8
}

# ---- errors ------------------------------------------------------------------

@test "real train: a process with only wrong messages spoils nothing" {
    mesh ipc 5 100
    command[4]=$KOFN_FAULTY_NODE
    export KOFN_LIES=30 # which the others do not look at
    for i in 1 2 3 4 5; do node $i; done
    ended 1 2 3 5
    grep -q 'wrong notes from iterate' e4
    one_was_wrong 1 2 3 5
}

@test "real train: a process with flipped bits rebuilds its blocks" {
    mesh ipc 5 100
    for i in 1 2 3 5; do node $i; done
    node 4 --faults fault=0.05,where=memory
    ended 1 2 3 4 5
    json "o['rebuilt'] > 0 and not o['wrong']" <o4.json
    one_was_wrong 1 2 3 5
}

# bats test_tags=night
@test "real train: 12 processes with random errors end equal" {
    mesh ipc 12 400 --faults fault=0.005,where=product+update
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do node $i; done
    ended 1 2 3 4 5 6 7 8 9 10 11 12
    json "o['left_out'] > 0" <o1.json
}

# ---- links -------------------------------------------------------------------

# ours_is_made I: that process has entered its own namespace.
ours_is_made() {
    [ "$(readlink "/proc/${space[$1]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

in_space() { # in_space I COMMAND...
    local i=$1
    shift
    nsenter -t "${space[$i]}" -n "$@"
}

# Makes a network: each node has a machine and a link to switch 0.
spaces() {
    space=()
    for ((i = 0; i <= count; i++)); do
        unshare -n sleep 3600 3>&- &
        space[$i]=$!
        wait_for ours_is_made $i
    done
    in_space 0 ip link add name switch type bridge
    in_space 0 ip link set switch up
    for ((i = 1; i <= count; i++)); do
        in_space 0 ip link add name "port$i" type veth peer name cable netns "${space[$i]}"
        in_space 0 ip link set "port$i" master switch up
        in_space $i ip addr add "10.77.0.$i/24" dev cable
        in_space $i ip link set cable up
        in_space $i ip link set lo up
        at[$i]=tcp://10.77.0.$i:5001
        before[$i]="nsenter -t ${space[$i]} -n"
    done
    at=("${at[@]:0:count + 1}")
    words+=(--insecure)
}

cable() { # cable I up|down
    in_space 0 ip link set "port$1" $2
}

# are_alone I...: these receive nothing from the others: their connections are lost.
are_alone() {
    local i
    for i in "$@"; do
        [ -z "$(in_space $i ss -Htn state established)" ] || return 1
    done
}

cut_and_mend() {
    spaces
    for i in 1 2 3 4 5; do node $i; done
    wait_for reached 1 20
    all_run 1 || return
    cable 3 down
    wait_for are_alone 3
    further 1 # four of five go on
    was=$(step_of 3)
    all_run 1 3 || return
    cable 4 down # with three pieces nothing can be compared: nobody goes on
    wait_for are_alone 3 4
    is=$(step_of 3)
    cable 3 up
    further 1
    all_run 1 3 4 || return
    cable 4 up
    wait_for reached 4 $(step_of 1)
}

# bats test_tags=night
@test "real train: the links of 1 and 2 nodes break and return" {
    unshare -n true 2>/dev/null && command -v ip ss nsenter >/dev/null ||
        skip "network namespaces cannot be made here: unshare -n fails, or ip, ss or nsenter are missing"
    in_time cut_and_mend tcp 5
    [ "$is" = "$was" ] # who is alone goes nowhere
    ended 1 2 3 4 5
}
