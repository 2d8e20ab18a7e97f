load helpers

# Workers of a failed command wait forever.
teardown() {
    for pid in $(cat pids 2>/dev/null); do
        kill "$pid" 2>/dev/null || true
    done
}

# A fake worker: it records its arguments, and ends as its machine's file says, or runs
# until it is stopped.
pretend() {
    cat >kofn-there <<'SH'
#!/bin/sh
trap 'echo $HOST >>ended; exit 143' TERM HUP
echo "$HOST $*" >>began
[ ! -e $HOST.ends ] || { code=$(cat $HOST.ends); rm $HOST.ends; exit $code; }
while [ ! -e $HOST.dismissed ]; do sleep 0.02; done
echo "$HOST is dismissed"
SH
    cat >ssh-there <<'SH'
#!/bin/sh
HOST=$1 exec sh -c "exec $2"
SH
    sed -i '2i export HOST' ssh-there
    chmod +x kofn-there ssh-there
    export KOFN_SSH=./ssh-there KOFN=./kofn-there
}

began() {
    [ "$(wc -l <began 2>/dev/null)" = "$1" ]
}

@test "ssh: failed workers restart, dismissed ones do not" {
    pretend
    printf 'one # the first\n\n# none\ntwo\ntwo\nthree\n' >hosts
    echo 7 >three.ends
    "$KOFN_SOURCE/share/ssh/kofn-workers" hosts tcp://head:5555 --keys "my keys" >log 2>&1 &
    pid=$!
    wait_for began 5 # three twice
    [ "$(grep -c 'worker tcp://head:5555 --keys my keys' began)" -eq 5 ]
    [ "$(grep -c '^three' began)" -eq 2 ]
    [ "$(grep -c '^two' began)" -eq 2 ]
    grep -q "three: worker ended with 7" log
    touch one.dismissed two.dismissed three.dismissed
    wait $pid
    began 5
    grep -q "^one: one is dismissed" log
}

@test "ssh: a signal ends all workers" {
    pretend
    printf 'one\ntwo\n' >hosts
    "$KOFN_SOURCE/share/ssh/kofn-workers" hosts tcp://head:5555 >log 2>&1 &
    pid=$!
    wait_for began 2
    kill -TERM $pid
    wait $pid && status=0 || status=$?
    [ "$status" -eq 143 ]
    wait_for test -e ended
    wait_for eval '[ "$(wc -l <ended)" -eq 2 ]'
    run "$KOFN_SOURCE/share/ssh/kofn-workers" nowhere
    [ "$status" -eq 2 ]
}

# Slurm as kofn.sbatch sees it: an array starts several workers of an existing script at
# once, and a submitted script runs as a copy in another folder.
pretend_slurm() {
    mkdir -p bin spool room prefix/bin prefix/share/kofn submitted
    cat >bin/sbatch <<'SH'
#!/bin/bash
[ -r "${@: -1}" ] || exit 1
echo "$*" >>"$ROOM/arrays"
n=$(sed -n 's/.*--array=0-\([0-9]*\).*/\1/p' <<<"$*")
for _ in $(seq 0 "$n"); do
    "${@: -1}" >>"$ROOM/workers.log" 2>&1 3>&- &
    echo $! >>"$ROOM/pids"
done
echo 17
SH
    cat >bin/scontrol <<'SH'
#!/bin/sh
echo "   JobId=16 JobName=kofn"
echo "   Command=$ORIGIN/kofn.sbatch matvec X.npy w.npy"
SH
    printf '#!/bin/sh\necho 127.0.0.1\n' >bin/hostname
    printf '#!/bin/sh\n' >bin/squeue
    printf '#!/bin/sh\n' >bin/scancel
    printf '#!/bin/sh\nexec %s "$@"\n' "$KOFN" >prefix/bin/kofn
    chmod +x bin/* prefix/bin/kofn
    cp "$KOFN_SOURCE/share/slurm/kofn.sbatch" spool/slurm_script
    export ROOM=$PWD ORIGIN=$PWD/nowhere PATH=$PWD/bin:$PATH
    export SLURM_SUBMIT_DIR=$PWD/submitted SLURM_JOB_ID=16 KOFN_WORKERS=4
    export KOFN_PORT=$((29000 + RANDOM % 1500)) KOFN_ROOM=$PWD/room
}

@test "slurm: only commands with checkpoints get --checkpoint" {
    pretend_slurm
    export KOFN_SHARE=$KOFN_SOURCE/share/slurm
    "$KOFN" gen matrix 60 12 -o X.npy -q
    "$KOFN" gen matrix 12 30 -o Y.npy -q
    echo X.npy Y.npy C.npy >list
    timeout 600 spool/slurm_script stream list
    [ -s C.npy ]
    [ ! -e room/checkpoint ]
    timeout 600 spool/slurm_script matmul X.npy Y.npy -o D.npy -r 2 -s elastic:k=3 2>log
    grep -q "^elastic:k=3: any 3 of 4 workers suffice; .*; 2 rounds in " log # the report is in the job's log
    [ -e room/checkpoint/checkpoint.json ]
    py "
want = np.load('X.npy') @ np.load('Y.npy')
for name in ('C.npy', 'D.npy'):
    assert abs(np.load(name) - want).max() <= 1e-12 * abs(want).max(), name"
    run timeout 600 spool/slurm_script gen vector 3 -o v.npy
    [ "$status" -eq 2 ]
    [[ "$output" == *"kofn gen does not compute with workers"* ]]
    [ "$(wc -l <arrays)" -eq 2 ]
}

@test "slurm: the script finds its workers' script (source, installed)" {
    pretend_slurm
    "$KOFN" gen matrix 30 4 -o X.npy -q
    "$KOFN" gen vector 4 -o w.npy -q
    run timeout 600 spool/slurm_script matvec X.npy w.npy
    [ "$status" -eq 2 ]
    [[ "$output" == *"name its folder by KOFN_SHARE"* ]]
    cp -r "$KOFN_SOURCE/share/slurm" prefix/share/kofn
    KOFN=$PWD/prefix/bin/kofn timeout 600 spool/slurm_script matvec X.npy w.npy -o y.npy
    grep -q " $PWD/prefix/bin/../share/kofn/slurm/kofn-worker.sbatch$" arrays
    # and nothing of the former run disturbs it
    cp -r "$KOFN_SOURCE/share/slurm" "my share"
    rm -r room arrays
    ORIGIN=$PWD/"my share" timeout 600 spool/slurm_script matvec X.npy w.npy -o y.npy
    grep -q " $PWD/my share/kofn-worker.sbatch$" arrays
    [ -s y.npy ]
}

@test "scripts: bash parses all of them" {
    for f in "$KOFN_SOURCE"/share/slurm/*.sbatch "$KOFN_SOURCE"/share/ssh/* \
        "$KOFN_SOURCE/scripts/slurm-one-machine"; do
        bash -n "$f"
        [ -x "$f" ]
    done
}

@test "kubernetes: no worker gets the coordinator's secret" {
    /usr/bin/python3 - "$KOFN_SOURCE/share/k8s/kofn.yaml" <<'END'
import re, sys
text = open(sys.argv[1]).read()
made = {}
for name, files in re.findall(r"create secret generic (\S+)((?: \\\n#\s+| *--from-file=\S+)+)", text):
    made[name] = re.findall(r"--from-file=keys/?(\S*)", files)
parts = text.split("\n---\n")
used = {}
for part in parts:
    kind = re.search(r"^metadata:\n  name: (\S+)", part, re.M).group(1)
    used[kind] = re.findall(r"secretName: (\S+)", part)
print(made, used)
assert used["kofn-head"] == ["kofn-coordinator"], used
assert used["kofn-workers"] == ["kofn-worker"], used
assert sorted(made["kofn-worker"]) == ["coordinator.crt", "worker.crt", "worker.key"], made
assert "coordinator.key" in made["kofn-coordinator"], made
assert "worker.crt" in made["kofn-coordinator"], made
assert "worker.key" not in made["kofn-coordinator"], made
END
    # no container runs as root, and the keys belong to the pods' group
    /usr/bin/python3 - "$KOFN_SOURCE/share/k8s/kofn.yaml" <<'END'
import re, sys
jobs = [p for p in open(sys.argv[1]).read().split("\n---\n") if "kind: Job" in p]
assert len(jobs) == 2, len(jobs)
for job in jobs:
    assert "runAsNonRoot: true" in job and "runAsUser: 0" not in job, job
    assert re.findall(r"^ +fsGroup: (\d+)", job, re.M) == ["1000"], job
    assert re.findall(r"defaultMode: (\d+)", job) == ["0440"], job
END
    # and their contents suffice for both
    cd "$BATS_TEST_TMPDIR"
    "$KOFN" keygen keys -q
    mkdir -m 700 head worker
    cp keys/worker.crt worker
    cp keys/coordinator.crt head
    mv keys/coordinator.key keys/worker.crt head
    mv keys/worker.key keys/coordinator.crt worker
    chmod 440 head/*.key worker/*.key
    "$KOFN" gen matrix 30 4 -o X.npy -q
    "$KOFN" gen vector 4 -o w.npy -q
    timeout 600 "$KOFN" worker --once ipc://"$PWD"/s --keys worker -q &
    timeout 600 "$KOFN" matvec X.npy w.npy -p ipc://"$PWD"/s --keys head -n 1 -s uncoded -q
    wait
}

@test "kubernetes: the objects have the fields of the API, and a wrong one is found" {
    $PYTHON -c 'import yaml' 2>/dev/null || skip "PyYAML is not installed"
    $PYTHON "$KOFN_SOURCE/tests/cli/k8s.py" "$KOFN_SOURCE/share/k8s/kofn.yaml"
}

@test "systemd: the unit of a worker is valid, and its command has the options" {
    unit=$KOFN_SOURCE/share/systemd/kofn-worker@.service
    help=$("$KOFN" worker --help)
    for option in $(grep '^ExecStart=' "$unit" | grep -o -e '--[a-z-]*'); do
        grep -q -e "$option" <<<"$help"
    done
    stop=$(sed -n 's/^TimeoutStopSec=//p' "$unit")
    [ "$stop" -gt "$(sed -n 's/^Environment=KOFN_GRACE=\([0-9]*\).*/\1/p' "$unit")" ]
    command -v systemd-analyze >/dev/null || skip "systemd is not installed"
    # neither the command nor its manual is installed
    sed 's#/usr/bin/kofn#/bin/true#; /^Documentation=/d' "$unit" >kofn-worker@.service
    run systemd-analyze verify ./kofn-worker@.service
    echo "$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    sed -i 's/^ProtectHome/ProtectHouse/' kofn-worker@.service
    run systemd-analyze verify ./kofn-worker@.service
    [[ $output == *ProtectHouse* ]]
}
