# Needs Slurm and munge; without them every test is skipped.
load ../cli/helpers

slurm() {
    "$KOFN_SOURCE/scripts/slurm-one-machine" "$@"
}

slurm_or_skip() {
    PATH=$PATH:/usr/sbin:/sbin
    for tool in munged mungekey slurmctld slurmd sbatch; do
        command -v $tool >/dev/null || skip "no Slurm: there is no $tool"
    done
}

# In the cluster: wait_for SECONDS COMMAND...
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || { echo "in vain: $*"; squeue; return 1; }
        sleep 0.1
    done
}

# lines WORD NUMBER: the logs of the array's tasks have that many such lines
lines() {
    [ "$(cat task-*.log 2>/dev/null | grep -c "^$1")" -eq "$2" ]
}

preempt_sleeps() {
    cat >task.sh <<'TASK'
#!/bin/bash
#SBATCH --requeue --open-mode=append --output=task-%a.log
trap 'echo term; exit 0' TERM
echo "start ${SLURM_RESTART_COUNT:-0}"
while [ ! -e done ]; do sleep 0.1; done
echo end
TASK
    sbatch -Q -p spot --array=0-3 task.sh
    wait_for 20 lines "start 0" 4
    sbatch -Q -p prod -N2 --output=/dev/null --wrap 'sleep 2'
    wait_for 20 lines term 2
    lines "start 0" 4 && lines "start 1" 0
    wait_for 30 lines "start 1" 2
    touch done
    wait_for 20 lines end 4
    lines term 2
}

@test "the set-up preempts two of four tasks with SIGTERM, and they come back" {
    slurm_or_skip
    export -f preempt_sleeps wait_for lines
    slurm bash -ec preempt_sleeps
}

# figure NAME LEAST: the coordinator's metrics have it, and it is that large.
figure() {
    /usr/bin/python3 - "$@" <<'PY' 2>/dev/null
import sys
lines = [l.split() for l in open('room/metrics') if l[0] != '#']
sys.exit(not any(l[0] == sys.argv[1] and float(l[1]) >= float(sys.argv[2]) for l in lines))
PY
}

coordinate() {
    sbatch --parsable -p normal --output=head.log \
        "$KOFN_SOURCE/share/slurm/kofn.sbatch" matmul A.npy B.npy -o C.npy \
        -s elastic:k=3 "$@"
}

over() {
    [ -z "$(squeue -h -j "$1")" ]
}

# Any three of four are enough: while two are away nothing can be finished.  Then
# the coordinator is ended and started again, to do two rounds more.
preempt_workers() {
    local id=$(coordinate -r 1000000) done
    wait_for 30 figure kofn_round_seconds_count 3
    sbatch -Q -p prod -N2 --output=/dev/null --wrap 'sleep 2'
    wait_for 20 figure kofn_workers_lost_total 2
    wait_for 40 figure kofn_workers_joined_total 2
    scancel -Q --full --signal=TERM "$id"
    wait_for 20 over "$id"
    [ ! -e C.npy ]
    done=$(/usr/bin/python3 -c 'import json; print(json.load(open("room/checkpoint/checkpoint.json"))["done"])')
    id=$(coordinate -r $((done + 2)))
    wait_for 40 over "$id"
    wait_for 20 over "$(cat room/array)"
    cat head.log
}

@test "two of four workers are preempted, come back, and the answer is exact" {
    slurm_or_skip
    "$KOFN" worker --help >/dev/null 2>&1 || skip "this kofn has no workers on other machines"
    kofn gen matrix 300 200 -o A.npy --seed 1 -q
    kofn gen matrix 200 50 -o B.npy --seed 2 -q
    export -f preempt_workers coordinate figure over wait_for
    export KOFN KOFN_SOURCE KOFN_ROOM=$PWD/room KOFN_WORKERS=4 KOFN_SPOT=spot
    export KOFN_SHARE=$KOFN_SOURCE/share/slurm KOFN_PORT=$((32000 + RANDOM % 700))
    slurm bash -ec preempt_workers
    py "
want = np.load('A.npy') @ np.load('B.npy')
assert abs(np.load('C.npy') - want).max() <= 1e-12 * abs(want).max()"
    grep -l . room/worker-*.log || true
}

@test "kofn.slurm.fleet: a lost task, a cancelled step and a killed program" {
    slurm_or_skip
    /usr/bin/python3 -c 'import pytest' || skip "there is no pytest"
    [ -e "$KOFN_BUILD/python/kofn/_kofn.c" ] || skip "this build has no Python package"
    KOFN_SLURM=1 PYTHONPATH=$KOFN_BUILD/python slurm salloc -Q -n 3 /usr/bin/python3 -m pytest \
        -q -p no:cacheprovider "$KOFN_SOURCE/python/tests/test_slurm.py"
}

@test "it gives the command's status, ends in time, and leaves nothing" {
    slurm_or_skip
    run slurm bash -c 'echo $SLURM_ROOM >room; sbatch -Q -p spot --wrap "sleep 1000"; exit 3'
    [ "$status" -eq 3 ]
    [ ! -e "$(cat room)" ]
    # no process is left with a file of it open, or with its name
    ls -l /proc/[0-9]*/fd 2>/dev/null | not grep -F "$(cat room)/"
    not grep -lz "$(cat room)" /proc/[0-9]*/cmdline 2>/dev/null
    SLURM_LIMIT=1 run slurm sleep 100
    [ "$status" -eq 124 ]
}
