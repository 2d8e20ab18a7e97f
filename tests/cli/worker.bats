#!/usr/bin/env bats
# Workers that are processes: of this machine, or at an address.

load helpers

setup() {
    cd "$BATS_TEST_TMPDIR"
    "$KOFN" gen matrix 300 40 -o X.npy
    "$KOFN" gen vector 40 -o w.npy
}

# Workers started here end with the test.
teardown() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

workers() { # workers N ADDRESS [OPTION...]
    local n=$1 at=$2
    shift 2
    for _ in $(seq "$n"); do
        timeout 600 "$KOFN" worker --once "$at" -q "$@" &
    done
}

@test "worker: processes and threads give the same numbers" {
    timeout 600 "$KOFN" matvec X.npy w.npy -o y.npy -q -p processes
    timeout 600 "$KOFN" matvec X.npy w.npy -o z.npy --verify --json >z.json
    # row by row, up to the rounding of any order of summation: a sum with much
    # cancellation has no digits to compare
    py "
X, w = np.load('X.npy'), np.load('w.npy')
for name in 'y.npy', 'z.npy':
    off = abs(np.load(name) - X @ w) / (abs(X) @ abs(w))
    assert off.max() <= 1e-12, (name, off.max())"
    [ -z "$(ls -d "${TMPDIR:-/tmp}"/kofn.*/socket 2>/dev/null)" ] || true
}

# bats test_tags=night
@test "worker: processes run under Valgrind without leaks" {
    command -v valgrind >/dev/null || skip "Valgrind is not installed"
    ! grep -qE '__(asan|tsan)_init' "$KOFN" || skip "a sanitizer is in it"
    unset OPENBLAS_CORETYPE # Valgrind's processor may be of another kind
    timeout 300 valgrind -q --leak-check=full --error-exitcode=9 \
        "$KOFN" matvec X.npy w.npy -o y.npy -p processes -n 3
}

# begins NAME: starts a long run on processes, and waits for its folder.
begins() {
    local before
    before=$(ls "$TMPDIR" | wc -l)
    timeout 600 "$KOFN" matvec X.npy w.npy -q -p processes -n 2 -r 1000000 &
    eval "$1=$!"
    wait_for more_than "$before"
}

more_than() {
    [ "$(ls "$TMPDIR"/kofn.*/socket 2>/dev/null | wc -l)" -gt "$1" ]
}

@test "worker: folders of killed runs are removed, others stay" {
    export TMPDIR=$PWD/tmp
    mkdir tmp
    begins killed
    mine=$(ls tmp)
    begins alive
    # timeout's child is the coordinator
    kill -9 "$(pgrep -P "$killed")"
    wait "$killed" || true
    [ -S "tmp/$mine/socket" ]
    mkdir tmp/kofn.nolock elsewhere
    touch tmp/kofn.nolock/file elsewhere/lock elsewhere/socket
    ln -s "$PWD/elsewhere" tmp/kofn.ablink
    timeout 600 "$KOFN" matvec X.npy w.npy -q -p processes -n 2
    [ ! -e "tmp/$mine" ]
    [ "$(ls -d tmp/kofn.*/socket | wc -l)" -eq 2 ] # of who is alive, and the link's
    [ -e tmp/kofn.nolock/file ]
    [ -e elsewhere/lock ]
    [ -e elsewhere/socket ]
    kill "$(pgrep -P "$alive")"
    wait "$alive" || true
}

@test "worker: the descriptor limit is raised, and too few are reported" {
    # eight workers have sixteen connections
    (ulimit -S -n 30
     timeout 600 "$KOFN" matvec X.npy w.npy -q -p processes -n 8)
    run bash -c "ulimit -n 20; '$KOFN' matvec X.npy w.npy -q -p processes"
    [ "$status" -eq 1 ]
    [[ "$output" == *"of 20 file descriptors are left"*"raise ulimit -n"* ]]
}

@test "worker: connection bursts with few descriptors end nothing" {
    [ -z "$KOFN_SANITIZE" ] || skip "what stands in for accept4 there is its own"
    for at in "ipc://$PWD/socket" 'tcp://127.0.0.1:*'; do
        rm -f err
        (ulimit -n 64
         exec timeout 600 "$KOFN" matvec X.npy w.npy -o y.npy -p "$at" -n 2 2>err) &
        coordinator=$!
        for _ in $(seq 6000); do
            bound=$(sed -n 's/^listening on \([^ ]*\) .*/\1/p' err 2>/dev/null) || true
            [ -z "$bound" ] || break
            sleep 0.1
        done
        /usr/bin/python3 - "$bound" <<'END'
import socket, sys, time
at, end = sys.argv[1], time.monotonic() + 20
kind, where = (socket.AF_UNIX, at[6:])
if at[0] == "t":
    host, port = at[6:].rsplit(":", 1)
    kind, where = socket.AF_INET, (host, int(port))
for turn in range(6):
    all = []
    for i in range(500 if time.monotonic() < end else 0):
        s = socket.socket(kind)
        s.settimeout(0.1)
        try:
            s.connect(where)
        except OSError:
            pass
        all.append(s)
    for s in all:
        s.close()
END
        workers 2 "$bound"
        wait "$coordinator"
    done
    grep -q "file descriptors run out; raise ulimit -n" err
}

@test "worker: processes obey an events file" {
    printf '1.5 leave 2\n2 join\n3 slow 1 3\n4 corrupt 0\n' >events
    # all have to answer, so that wrong ones are seen
    run timeout 600 "$KOFN" matvec X.npy w.npy -p processes -r 6 -e events --late 0 \
        --errors probabilistic --verify --json -q
    [ "$status" -eq 0 ]
    json 'o["joined"] == 1 and o["left"] == 1' <<<"$output"
    json 'o["corrupted"] == [0] and o["rel_error"] < 1e-10' <<<"$output"
}

@test "worker: workers start before or after the coordinator" {
    at=ipc://$PWD/socket
    workers 1 "$at"
    timeout 600 "$KOFN" worker --once "$at" 2>news &
    timeout 600 "$KOFN" matvec X.npy w.npy -q -p "$at" -n 4 -s mds:k=3 -r 20 \
        --verify --json >out.json &
    coordinator=$!
    wait_for grep -q "connected as worker" news
    workers 2 "$at"
    wait "$coordinator"
    grep -q '"status": "ok"' out.json
}

# bats test_tags=asan
@test "worker: exit code 0 after dismissal, 143 after SIGTERM" {
    at=ipc://$PWD/socket
    timeout 600 "$KOFN" worker --once "$at" -q &
    first=$!
    timeout 600 "$KOFN" matvec X.npy w.npy -q -p "$at" -n 1 -s uncoded
    wait "$first"
    "$KOFN" worker --once "$at" 2>news &
    second=$!
    wait_for grep -q "no answer" news
    kill -TERM "$second"
    status=0
    wait "$second" || status=$?
    [ "$status" -eq 143 ]
}

@test "worker: a worker without a coordinator ends after its patience" {
    run timeout 600 "$KOFN" worker --once ipc://"$PWD"/nobody --patience 0.5
    [ "$status" -eq 4 ]
    [[ "$output" == *"no coordinator for 0.5 s"* ]]
}

@test "worker: a killed worker costs nothing; --min-workers starts rounds" {
    at=ipc://$PWD/socket
    timeout 600 "$KOFN" matvec X.npy w.npy -q -p "$at" -n 4 --min-workers 3 \
        -s mds:k=2 -r 2000 --verify --json >out.json &
    coordinator=$!
    "$KOFN" worker --once "$at" 2>news &
    victim=$!
    workers 2 "$at"
    wait_for grep -q "block stored" news
    kill -9 "$victim" 2>/dev/null || true
    wait "$coordinator"
    grep -q '"status": "ok"' out.json
}

@test "worker: public addresses need keys or --insecure" {
    run "$KOFN" matvec X.npy w.npy -p 'tcp://*:5555'
    [ "$status" -eq 2 ]
    [[ "$output" == *"--insecure"* ]]
    run "$KOFN" matvec X.npy w.npy -p 'udp://*:5555'
    [ "$status" -eq 2 ]
    run "$KOFN" worker --once localhost:5555
    [ "$status" -eq 2 ]
    [[ "$output" == *"is no address"* ]]
}

@test "worker: only workers with keys are accepted" {
    "$KOFN" keygen keys -q
    "$KOFN" keygen others -q
    run "$KOFN" keygen keys
    [ "$status" -ne 0 ]
    timeout 600 "$KOFN" matvec X.npy w.npy -p 'tcp://127.0.0.1:*' -n 2 \
        -s replication --keys keys --verify --json >out.json 2>err &
    coordinator=$!
    wait_for grep -q 'listening on tcp:' err
    at=$(sed -n 's/.*listening on \(tcp:[^ ]*\).*/\1/p' err)
    "$KOFN" worker --once "$at" --keys others 2>stranger &
    stranger=$!
    wait_for grep -q "has another key" stranger
    workers 2 "$at" --keys keys
    wait "$coordinator"
    grep -q '"status": "ok"' out.json
    not grep -q "connected as worker" stranger
    kill "$stranger"
}

@test "worker: an elastic fleet waits if too few workers are left" {
    at=ipc://$PWD/socket
    timeout 600 "$KOFN" matvec X.npy w.npy -q -p "$at" -n 2 -s mds:k=2 \
        -r 3000 --verify --json >out.json &
    coordinator=$!
    workers 1 "$at"
    "$KOFN" worker --once "$at" 2>news &
    victim=$!
    wait_for grep -q "block stored" news
    kill -9 "$victim" 2>/dev/null || true
    wait "$victim" || true
    workers 1 "$at"
    wait "$coordinator"
    grep -q '"status": "ok"' out.json
}

# bats test_tags=asan
@test "worker: a block beyond --memory ends the worker with a message" {
    at=ipc://$PWD/socket
    timeout 600 "$KOFN" matvec X.npy w.npy -q -p "$at" -n 1 -s uncoded &
    run timeout 600 "$KOFN" worker --once "$at" --memory 1k
    [ "$status" -eq 2 ]
    [[ "$output" == *"more than the memory limit of"* ]]
    workers 1 "$at"
    wait %1
}

from_file() { # from_file DIR COMMAND...: by three workers with that --data-path
    local dir=$1 at=ipc://$PWD/socket
    shift
    rm -f news.*
    timeout 600 "$KOFN" "$@" -q -p "$at" -n 3 --verify --json >out.json &
    local coordinator=$!
    for i in 1 2 3; do
        timeout 600 "$KOFN" worker --once "$at" --data-path "$dir" --patience 20 2>"news.$i" 3>&- &
    done
    wait "$coordinator"
    wait || true
    json "o['status'] == 'ok' and o['rel_error'] < 1e-9" <out.json
}

@test "worker: a local file is used only if it equals the coordinator's" {
    mkdir same other none
    cp X.npy same
    printf '%%%%MatrixMarket matrix coordinate real general\n40 40 80\n' >S.mtx
    for i in $(seq 40); do echo "$i $i $i.5"; echo "$i $((i % 40 + 1)) 1"; done >>S.mtx
    cp S.mtx same
    sed 's/^7 7 7.5/7 7 7.25/' S.mtx >other/S.mtx
    py "X = np.load('X.npy'); X[123, 4] = np.nextafter(X[123, 4], 9)
np.save('other/X.npy', X)
W = np.load('X.npy'); W[5] *= 1e9; np.save('W.npy', W); np.save('same/W.npy', W)
W[123, 4] = np.nextafter(W[123, 4], 9e9); np.save('other/W.npy', W)"
    for f in X.npy S.mtx W.npy; do
        from_file same matvec $f w.npy -s mds:k=2
        [ "$(cat news.* | grep -c 'made from a file here')" -eq 3 ]
        from_file other matvec $f w.npy -s mds:k=2
        cat news.* | grep -q 'not what the coordinator has: other numbers'
        from_file none matvec $f w.npy -s mds:k=2
        [ "$(cat news.* | grep -c 'made from a file here')" -eq 0 ]
        [ "$(cat news.* | grep -c 'block stored')" -ge 2 ]
    done
}

@test "worker: processes sum gradients of points from files" {
    "$KOFN" gen vector 300 -o y.npy
    mkdir same
    cp X.npy same
    for s in gc:d=2 distr-bgd:wait=4; do
        timeout 600 "$KOFN" regress X.npy y.npy -s $s -n 4 -p processes -q \
            --iterations 10 --tol 1e-14 -o w1.npy --verify --json >out.json
        timeout 600 "$KOFN" regress X.npy y.npy -s $s -n 4 -q \
            --iterations 10 --tol 1e-14 -o w2.npy
        py "a, b = np.load('w1.npy'), np.load('w2.npy')
assert np.abs(a - b).max() <= 1e-12 * np.abs(b).max(), '$s'"
    done
    timeout 600 "$KOFN" regress X.npy y.npy -s gc:d=2 -n 4 -p processes -q \
        --kernel rbf:s=9 --l2 0.1 --iterations 5 --verify --json >out.json
    grep -q '"status": "ok"' out.json
    from_file same regress X.npy y.npy --no-intercept -s gc:d=2 --iterations 10
    [ "$(cat news.* | grep -c 'made from a file here')" -eq 3 ]
}
