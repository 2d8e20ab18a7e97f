load helpers
# Streams on worker processes: of this machine, at an address, or ranks of an MPI job.
# Workers are killed, stopped and added during the run.

setup() {
    cd "$BATS_TEST_TMPDIR"
    export TMPDIR=$PWD
    for i in 1 2 3 4; do
        "$KOFN" gen matrix 61 23 -o X$i.npy --seed $i
        "$KOFN" gen matrix 23 39 -o Y$i.npy --seed 1$i
    done
    "$KOFN" gen matrix 39 5 -o Z.npy --seed 20
    for i in 1 2 3 4; do echo "X$i.npy Y$i.npy C$i.npy"; done >list.txt
    echo "C1.npy Z.npy D.npy" >>list.txt
}

# Workers started here end with the test.
teardown() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

# are_right: all five products agree with NumPy.
are_right() {
    py "
def right(x, y, c):
    y, want = np.load(c), np.load(x) @ np.load(y)
    assert y.shape == want.shape, (y.shape, want.shape)
    assert np.linalg.norm(y - want) <= 1e-12 * np.linalg.norm(want), c
for i in '1234':
    right(f'X{i}.npy', f'Y{i}.npy', f'C{i}.npy')
right('C1.npy', 'Z.npy', 'D.npy')"
    rm C?.npy D.npy
}

# in_time DELAY: every object of out.json ends by its due round, with an error below the
# prediction.
in_time() {
    py "
import json
o = [json.loads(l) for l in open('out.json')]
assert sorted(x['product'] for x in o) == list(range(1, len(o) + 1)) and o
for x in o:
    assert x['status'] == 'ok' and x['ended'] - x['began'] <= $1, x
    assert x['rel_error'] <= x['predicted'], x"
}

# workers N ADDRESS [OPTION...]
workers() {
    local n=$1 at=$2
    shift 2
    for _ in $(seq "$n"); do
        timeout 600 "$KOFN" worker --once "$at" -q "$@" 4>&- &
    done
}

# Port 0 is any free port; the coordinator prints it.
listening() {
    at=$(sed -n 's/^listening on \([^ ]*\) .*/\1/p' err)
    [ -n "$at" ]
}

# bats test_tags=asan
@test "stream: processes of this machine compute" {
    for scheme in dip:m=2,n=2,p=1,T=1 idip:W=2,N=4 uncoded; do
        kofn stream list.txt -s $scheme -n 4 -p processes -q
        are_right
    done
    [ "$(ls -d "$TMPDIR"/kofn.* 2>/dev/null | wc -l)" -eq 0 ]
}

@test "stream: kills, joins and stragglers: all in time, journal replays" {
    printf '1 slow 3 4\n2 leave 0\n2 join\n3.5 leave 1\n' >events.txt
    for scheme in dip:m=2,p=2,T=1 idip:m=1,p=2,W=2; do
        kofn stream list.txt -n 4 -s $scheme -p processes -e events.txt \
            --journal j --trace t.json --metrics m --record r.csv --json --verify >out.json
        in_time 1
        kofn replay j --step | grep -q "round 2 is over"
        are_right
    done
    kofn stream list.txt -n 4 -p processes --pattern iid:p=0.5 --json --verify >out.json
    in_time 2
}

# The stream is a coprocess: a product is requested when the one before is reported.
# bats test_tags=night
@test "stream: workers die or stop between products, others join" {
    $PYTHON - "$KOFN" <<'END'
import glob, json, os, select, signal, subprocess, sys
kofn = sys.argv[1]
p = subprocess.Popen([kofn, "stream", "-", "--json", "--verify", "-n", "4", "-p", "processes",
                      "-s", "dip:m=2,p=2,T=1,lambda=1"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
workers, stopped = [], []

def product(i):
    print(f"X{i % 4 + 1}.npy Y{i % 4 + 1}.npy C{i % 4 + 1}.npy", file=p.stdin, flush=True)
    o = json.loads(p.stdout.readline())
    assert o["product"] == i + 1 and o["ended"] - o["began"] <= 1, o
    assert o["rel_error"] <= o["predicted"], o

def children():
    found = open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()
    return [int(c) for c in found]

try:
    product(0)
    there = children()
    assert len(there) == 4
    for i, signum in enumerate([signal.SIGSTOP, signal.SIGKILL, signal.SIGKILL]):
        os.kill(there[i], signum)
        if signum == signal.SIGSTOP:
            stopped.append(there[i])
        product(2 * i + 1)
        product(2 * i + 2)
    socket = glob.glob("kofn.*/socket")
    assert len(socket) == 1
    workers = [subprocess.Popen([kofn, "worker", "--once", "ipc://" + os.path.abspath(socket[0])],
                                stderr=subprocess.PIPE, text=True) for _ in range(2)]
    i, missing = 7, [w.stderr for w in workers]
    while missing: # nobody is welcomed while there is no product
        product(i)
        i += 1
        for e in select.select(missing, [], [], 0.1)[0]:
            assert "connected as worker" in e.readline()
            missing.remove(e)
    os.kill(there[3], signal.SIGKILL)
    for k in range(i, i + 4):
        product(k)
    p.stdin.close()
    assert p.wait(60) == 0
finally:
    for pid in stopped:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for w in workers:
        w.terminate()
        w.wait()
    if p.poll() is None:
        p.kill()
END
}

# Without a lease they are never evicted.
stopped() { # stopped SCHEME
    $PYTHON - "$KOFN" $1 <<'END'
import json, os, signal, subprocess, sys
p = subprocess.Popen([sys.argv[1], "stream", "-", "--json", "--verify", "-n", "3", "-p",
                      "processes", "-s", sys.argv[2], "--lease", "0", "--journal", "j"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

def product(i):
    print(f"X{i % 4 + 1}.npy Y{i % 4 + 1}.npy C{i % 4 + 1}.npy", file=p.stdin, flush=True)
    o = json.loads(p.stdout.readline())
    assert o["product"] == i + 1 and o["ended"] - o["began"] <= 1, o
    assert o["rel_error"] <= o["predicted"], o

there = []
try:
    product(0)
    there = [int(c) for c in open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()]
    os.kill(there[1], signal.SIGSTOP)
    for i in range(1, 8):
        product(i)
    os.kill(there[1], signal.SIGCONT)
    os.kill(there[0], signal.SIGSTOP)
    for i in range(8, 12):
        product(i)
    os.kill(there[0], signal.SIGCONT)
    p.stdin.close()
    assert p.wait(60) == 0
finally:
    if p.poll() is None: # they end with it
        p.kill()
END
    kofn replay j
}

@test "stream: rounds skip a stopped worker, which works after SIGCONT" {
    stopped dip:m=2,p=2,T=1
}

# bats test_tags=night
@test "stream: rounds skip a stopped worker (other schemes)" {
    stopped idip:W=2,N=1
    stopped uncoded
}

# The first round waits for all answers, so the wrong ones are among them.
@test "stream: a wrong worker process is named and products are right" {
    echo "1 corrupt 1" >lie.txt
    for how in "dip:m=2,p=2,T=1 --errors probabilistic" "idip:W=2,N=4 --errors adversarial"; do
        kofn stream list.txt -s $how -n 5 -p processes -e lie.txt \
            --late 0 --mu 1000000 --json --verify --journal j >out.json
        in_time 1
        py "
import json
o = [json.loads(l) for l in open('out.json')]
assert len(o) == 5 and any(x['corrupt_results'] and x['corrupted'] for x in o), o
assert all(x['corrupted'] in ([], [1]) and 0 < x['floor'] <= 1e-6 for x in o), o"
        kofn replay j
        are_right
    done
    run kofn stream list.txt -s polynomial:m=2,p=2 -n 5 -p processes -e lie.txt \
        --late 0 --errors detect
    [ "$status" -eq 5 ]
}

@test "stream: a run without workers ends with a message" {
    $PYTHON - "$KOFN" <<'END'
import json, os, signal, subprocess, sys
p = subprocess.Popen([sys.argv[1], "stream", "-", "--json", "-n", "2", "-p", "processes",
                      "--below", "refuse"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE, text=True)
print("X1.npy Y1.npy C1.npy", file=p.stdin, flush=True)
assert json.loads(p.stdout.readline())["product"] == 1
for c in open(f"/proc/{p.pid}/task/{p.pid}/children").read().split():
    os.kill(int(c), signal.SIGKILL)
print("X2.npy Y2.npy C2.npy", file=p.stdin, flush=True)
out, err = p.communicate(timeout=600)
assert p.returncode == 4, (p.returncode, err)
assert "no worker is left" in err, err
END
}

@test "stream: a signal exits with 128 + n and leaves no process" {
    mkfifo lines
    "$KOFN" stream lines -n 3 -p processes --json >out.json 2>err &
    pid=$!
    exec 4>lines
    echo "X1.npy Y1.npy C1.npy" >&4
    wait_for test -s out.json
    children=$(cat /proc/$pid/task/$pid/children)
    [ -n "$children" ]
    kill -INT $pid || kill -TERM $pid
    wait $pid && status=0 || status=$?
    exec 4>&-
    [ "$status" -eq 130 ] || [ "$status" -eq 143 ]
    for c in $children; do
        wait_for eval "! kill -0 $c 2>/dev/null"
    done
    [ "$(ls -d "$TMPDIR"/kofn.* 2>/dev/null | wc -l)" -eq 0 ]
}

@test "stream: with keys, one worker is killed and another joins" {
    kofn keygen keys
    timeout 600 "$KOFN" stream list.txt -p 'tcp://127.0.0.1:*' --keys keys -n 3 \
        -s dip:m=2,p=2,T=1 --json --verify >out.json 2>err &
    coordinator=$!
    wait_for listening
    workers 3 "$at" --keys keys
    wait $coordinator
    in_time 1
    are_right

    mkfifo lines
    timeout 600 "$KOFN" stream - -p 'tcp://127.0.0.1:*' --keys keys -n 2 \
        --json --verify <lines >out.json 2>err &
    coordinator=$!
    exec 4>lines
    head -2 list.txt >&4 # nobody is looked for before
    wait_for listening
    "$KOFN" worker --once "$at" --keys keys -q 4>&- &
    victim=$!
    workers 1 "$at" --keys keys
    wait_for eval "[ \"\$(wc -l <out.json)\" -eq 2 ]"
    kill -9 $victim
    workers 1 "$at" --keys keys
    tail -3 list.txt >&4
    exec 4>&-
    wait $coordinator
    in_time 2
    are_right
}

@test "stream: missing workers are reported with the reason" {
    timeout 600 "$KOFN" stream list.txt -p 'tcp://127.0.0.1:*' -n 2 >out 2>err &
    coordinator=$!
    wait_for grep -q "^0 of 2 workers are here, waiting for the others$" err
    wait_for listening
    workers 2 "$at"
    wait $coordinator
    are_right
    # there is no message for what was not asked for
    timeout 600 "$KOFN" stream list.txt -p 'tcp://127.0.0.1:*' -n 2 -q \
        --start-within 2.5 >out 2>err || true
    [ "$(grep -c "waiting" err)" -eq 0 ]
    # one host counts as one worker if answers are compared
    timeout 600 "$KOFN" stream list.txt -p 'tcp://*:*' --insecure -n 3 \
        --errors detect >out 2>err &
    coordinator=$!
    wait_for listening
    workers 3 "tcp://127.0.0.1:${at##*:}" --insecure
    wait_for grep -q "^1 of 3 workers are here, waiting for the others; 2 workers wait, because their hosts" err
    grep -q "give each worker its own key, or see --workers-per-principal" err
    kill $coordinator
}

@test "stream: a stream that could never begin is refused" {
    for words in "" --insecure; do
        run kofn stream list.txt -p 'tcp://127.0.0.1:*' $words -n 3 --errors probabilistic
        refused "count as one" "--workers-per-principal"
    done
    kofn keygen keys --worker anna
    run kofn stream list.txt -p 'tcp://127.0.0.1:*' --keys keys -n 3 --errors probabilistic
    refused "the 1 key listed" "keygen keys --worker"
}

@test "stream: a worker without memory is skipped, or the run fails" {
    timeout 600 "$KOFN" stream list.txt -p 'tcp://127.0.0.1:*' -n 2 -s dip:m=1,p=1,T=0 \
        --json --verify >out.json 2>err &
    coordinator=$!
    wait_for listening
    workers 1 "$at"
    workers 1 "$at" --memory 1000
    wait $coordinator
    in_time 0
    are_right

    timeout 600 "$KOFN" stream list.txt -p 'tcp://127.0.0.1:*' -n 1 --below refuse 2>err &
    coordinator=$!
    wait_for listening
    timeout 600 "$KOFN" worker --once "$at" --memory 1000 2>worker &
    wait $coordinator && status=0 || status=$?
    [ "$status" -eq 4 ]
    grep -q "no worker is left to give more" err
    wait_for grep -q "of the memory limit of this worker are free" worker
}

@test "stream: a worker of another job serves a stream afterwards" {
    "$KOFN" gen vector 23 -o w.npy
    at=ipc://$PWD/door
    workers 2 "$at" --patience 60
    "$KOFN" matvec X1.npy w.npy -p "$at" -n 2 -r 1000000 -q --metrics m &
    coordinator=$!
    wait_for under_way m
    kill -9 $coordinator
    wait $coordinator || true
    kofn stream list.txt -p "$at" -n 2 -q
    are_right
}

@test "stream: ranks of an MPI job compute" {
    ranks_of openmpi
}

# bats test_tags=night
@test "stream: ranks of MPICH compute" {
    ranks_of mpich
}

ranks_of() { # ranks_of MPI
    local mpi=$1 flags=
    [ "$KOFN_SANITIZE" != thread ] || skip "it finds fault with MPI's own locks"
    # Leaks of MPI itself are not kofn's; its stacks are long.
    export LSAN_OPTIONS="suppressions=$BATS_TEST_DIRNAME/../mpi/leaks.supp:print_suppressions=0"
    export ASAN_OPTIONS="fast_unwind_on_malloc=0:symbolize=0"
    command -v mpirun.$mpi >/dev/null && ls "$(dirname "$KOFN")"/libkofn-mpi-$mpi.so ||
        skip "no $mpi"
    [ $mpi = openmpi ] && flags="--oversubscribe --allow-run-as-root"
    timeout -k 2 600 mpirun.$mpi $flags -n 4 "$KOFN" stream list.txt -p mpi \
        -s dip:m=2,p=2,T=1 --json --verify --journal j >out.json
    in_time 1
    are_right
    kofn replay j
    : >empty.txt
    run timeout -k 2 600 mpirun.$mpi $flags -n 3 "$KOFN" stream empty.txt -p mpi -q
    [ "$status" -ne 0 ]
    [ "$status" -ne 124 ]
    [[ "$output" == *"empty.txt names no product"* ]]
    echo "X1.npy" >bad.txt
    run timeout -k 2 600 mpirun.$mpi $flags -n 3 "$KOFN" stream bad.txt -p mpi -q
    [ "$status" -ne 0 ]
    [ "$status" -ne 124 ]
    [[ "$output" == *"bad.txt, line 1: give X, Y and OUT"* ]]
}

@test "stream: wrong arguments are refused in one line" {
    printf 'X1.npy Y1.npy C1.npy\nX1.npy\n' >bad.txt
    run kofn stream bad.txt -p processes -n 2
    [ "$status" -eq 2 ]
    [[ "$output" == *"bad.txt, line 2: give X, Y and OUT"* ]]
    printf 'X1.npy Y1.npy C\0.npy\n' >bad.txt
    run kofn stream bad.txt
    refused "bad.txt, line 1" "zero byte"
    for names in '"X1.npy Y1.npy C.npy' '"X1.npy"Y1.npy C.npy' '"" Y1.npy C.npy' \
        'X1.npy Y1.npy C.npy ""' 'my x.npy Y1.npy C.npy'; do
        echo "$names" >bad.txt
        run kofn stream bad.txt
        refused "bad.txt, line 1: give X, Y and OUT" "double quotes"
    done
    printf '\0\n' >bad.txt
    run kofn stream bad.txt
    refused "bad.txt, line 1" "zero byte"
    for out in /dev/full C.txt; do
        echo "X1.npy Y1.npy $out" >bad.txt
        run kofn stream bad.txt
        refused "$out: name it .npy, .csv or .mtx"
    done
    echo "X1.npy Y1.npy nowhere/C.npy" >bad.txt
    run kofn stream bad.txt
    [ "$status" -eq 1 ]
    [[ "$output" == "kofn: nowhere/C.npy: No such file or directory" ]]
    run kofn stream list.txt -n 0
    refused --workers
    run kofn stream list.txt -p processes -s dip:m=60,p=30
    [ "$status" -ne 0 ]
    [[ "$output" == *"a worker may be asked for 5400 answers"* ]]
    if [ -c /dev/full ]; then
        for json in "" --json; do
            run bash -c "timeout 600 '$KOFN' stream list.txt -n 2 -p processes $json 2>&1 >/dev/full"
            [ "$status" -eq 1 ]
            [ "$output" = "kofn: stdout: No space left on device" ]
        done
    fi
}
