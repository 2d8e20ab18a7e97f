#!/usr/bin/env bats
# The log of --log: a line for each event.

load helpers

teardown() {
    for pid in $(cat pids 2>/dev/null); do
        kill -9 "$pid" 2>/dev/null || true
    done
}

inputs() {
    kofn gen matrix 300 40 -o X.npy -q
    kofn gen vector 40 -o w.npy -q
    printf '2 leave 1\n3 corrupt 2\n' >events
}

# run_one LOG [OPTION...]: six rounds of five workers: worker 1 goes, worker 2 is wrong.
run_one() {
    local log=$1
    shift
    kofn matvec X.npy w.npy -p sim -n 5 -s mds:k=2 -r 6 -e events -q \
        --errors adversarial --log "$log" "$@"
}

@test "log: a line has time, level, event, worker and reason, as text and as JSON" {
    inputs
    run_one log.txt
    grep -qE '^20[0-9-]{8}T[0-9:]{8}\.[0-9]{3}Z info    came worker 0: ' log.txt
    [ "$(grep -c ' came worker ' log.txt)" -eq 5 ]
    [ "$(grep -c ' warning lost worker 1: ' log.txt)" -eq 1 ]
    [ "$(grep -c ' warning faulty worker 2: it has sent a wrong result' log.txt)" -eq 1 ]
    [ -z "$(grep -E ' debug | (lost|faulty) worker [034]' log.txt)" ]
    run_one log.jsonl --log-level debug
    py "
import json
lines = [json.loads(line) for line in open('log.jsonl')]
assert all({'time', 'level', 'event', 'text'} <= set(x) for x in lines)
of = lambda event: sorted(x['worker'] for x in lines if x['event'] == event)
assert of('came') == of('live') == [0, 1, 2, 3, 4], lines
assert of('lost') == [1] and 2 in of('faulty'), lines"
}

@test "log: levels leave lines out, and a log is continued" {
    inputs
    run_one log.txt --log-level warning
    [ -z "$(grep -E ' (info|debug) ' log.txt)" ]
    n=$(wc -l <log.txt)
    [ "$n" -gt 0 ]
    run_one log.txt --log-level warning
    [ "$(wc -l <log.txt)" -eq $((2 * n)) ]
    run_one - --log-level error 2>err
    [ ! -s err ]
    run kofn matvec X.npy none.npy -q --log log.txt --log-level error
    [ "$status" -eq 2 ]
    grep -qF " error   failed: cannot open none.npy" log.txt
}

@test "log: a full disk is reported once and harms no round; a bad name is refused" {
    inputs
    run_one /dev/full -o y.npy 2>err
    [ "$(grep -c 'lines are missing from here on' err)" -eq 1 ]
    [ -s y.npy ]
    run kofn matvec X.npy w.npy -q --log nowhere/log
    [ "$status" -eq 1 ]
    [[ "$output" == *"--log nowhere/log: No such file"* ]]
    cp X.npy Y.npy
    run kofn matvec Y.npy w.npy -q --log Y.npy
    refused "that is a file to be read"
}

@test "log: both ends of a connection write it, and nodes of a mesh do" {
    inputs
    at=ipc://$PWD/s
    for i in 0 1; do
        "$KOFN" worker --once "$at" -q --log worker$i.jsonl --preempt-file notice$i 3>&- &
        pids[i]=$!
        echo $! >>pids
    done
    "$KOFN" matvec X.npy w.npy -p "$at" -n 2 -s elastic:k=1 -r 100000000 -q \
        --log head.txt 3>&- &
    head=$!
    echo $head >>pids
    wait_for grep -q '"event":"connected"' worker0.jsonl
    wait_for grep -q '"event":"connected"' worker1.jsonl
    wait_for eval '[ "$(grep -c " came worker " head.txt)" -eq 2 ]'
    touch notice0
    wait_for grep -qE ' (drained|lost) worker [01]' head.txt
    wait_for grep -q '"event":"drained"' worker0.jsonl
    kill -9 "${pids[1]}"
    wait_for eval '[ "$(grep -cE " (drained|lost) worker " head.txt)" -eq 2 ]'
    kill -9 $head
    kofn gen matrix 40 40 -o S.npy -q
    kofn power S.npy -o v.npy --masterless -n 3 -m 3 -q --log mesh.txt || true
    grep -q ' came worker 0: 3 nodes are live' mesh.txt
}

# bats test_tags=asan
@test "log: workers have the names that they were started with, and late ones a line" {
    inputs
    at=ipc://$PWD/socket
    for name in anna bert carl; do
        slow=()
        [ $name != carl ] || slow=(--faults straggle=1,factor=3000,delay=0.2)
        timeout 100 "$KOFN" worker "$at" -q --once --name $name "${slow[@]}" 3>&- &
        echo $! >>pids
    done
    kofn matvec X.npy w.npy -p "$at" -n 3 -s mds:k=2 -r 5 -o y.npy -q --log log.txt
    for name in anna bert carl; do
        grep -qE " info    came worker [0-2] \\($name\\): it is here" log.txt
    done
    grep -qE ' info    late worker [0-2] \(carl\): [1-5] rounds? ended without a result' log.txt
    # at most a line a second
    [ "$(grep -c 'late worker . (carl)' log.txt)" -le 1 ]
}

@test "log: one line says that many workers are late" {
    inputs
    kofn matvec X.npy w.npy -p sim -n 30 -s mds:k=2 -r 1 -q --log log.txt
    [ "$(grep -c ' info    late' log.txt)" -eq 1 ]
    grep -qE ' info    late: rounds ended without results of 28 workers: ([0-9]+, )+[0-9]+$' log.txt
}
