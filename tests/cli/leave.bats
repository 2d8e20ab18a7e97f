#!/usr/bin/env bats
# Workers that leave without a signal: with their parent, or before their machine is
# taken away.

load helpers

setup() {
    cd "$BATS_TEST_TMPDIR"
    at=ipc://$PWD/s
}

teardown() {
    for pid in $(cat pids 2>/dev/null); do
        kill -9 "$pid" 2>/dev/null || true
    done
}

# serving OPTION...: starts a worker without a coordinator and sets `worker`.
serving() {
    "$KOFN" worker --once "$at" "$@" >log 2>&1 3>&- &
    worker=$!
    echo $worker >>pids
}

# ended PID: the process is gone, or its parent has not asked for its exit code yet.
ended() {
    local state
    read -r _ _ state _ 2>/dev/null <"/proc/$1/stat" || return 0
    [ "$state" = Z ]
}

lives() {
    ! ended "$1" || { echo "$1 has ended"; return 1; }
}

# catches PID DIGITS: the mask of the signals that the process handles ends so.
catches() {
    grep -q "^SigCgt:.*$2\$" "/proc/$1/status" 2>/dev/null
}
USR2='[89a-f]..' SIGTERM='[4-7c-f]...'

@test "leave: a worker with its parent ends when that is killed, another does not" {
    for option in --with-parent --insecure; do
        rm -f child
        [ $option = --with-parent ] && ready=$USR2 || ready=$SIGTERM
        sh -c '"$KOFN" worker --once "$0" -q '$option' 3>&- & echo $! >child; wait' "$at" 3>&- &
        parent=$!
        wait_for test -s child
        child=$(cat child)
        echo "$child" >>pids
        wait_for catches "$child" "$ready"
        kill -9 $parent
        wait $parent || true
        if [ $option = --with-parent ]; then
            wait_for ended "$child"
        else # and its life goes on without the option
            for _ in 1 2 3 4; do sleep 0.05; lives "$child"; done
        fi
    done
}

@test "leave: a worker with its parent survives the thread that started it" {
    cat >start.py <<'END'
import subprocess, sys, threading
def start():
    print(subprocess.Popen(sys.argv[1:]).pid, flush=True)
    sys.stdin.readline() # the worker has begun
thread = threading.Thread(target=start)
thread.start()
thread.join()
print("joined", flush=True)
sys.stdin.read()
END
    mkfifo hold
    $PYTHON start.py "$KOFN" worker --once "$at" -q --with-parent <hold >child 2>&1 3>&- &
    parent=$!
    exec 7>hold
    wait_for test -s child
    child=$(head -1 child)
    echo "$child" $parent >>pids
    wait_for catches "$child" "$USR2"
    echo >&7
    wait_for grep -q joined child
    for _ in 1 2 3 4; do sleep 0.05; lives "$child"; done
    exec 7>&-
    wait_for ended "$child"
}

@test "leave: a worker leaves when a file is there, as after SIGTERM" {
    serving --preempt-file notice
    for _ in 1 2 3 4; do sleep 0.1; lives $worker; done
    touch notice
    wait $worker && status=0 || status=$?
    [ $status -eq 143 ]
    grep -q '^leaving: the file of --preempt-file is there$' log
}

@test "leave: a worker leaves when a command exits with 0, not otherwise" {
    serving --preempt-command 'echo x >>asked; test -e notice'
    wait_for test -s asked
    lives $worker
    touch notice
    wait $worker && status=0 || status=$?
    [ $status -eq 143 ]
    grep -q '^leaving: the command of --preempt-command has ended with 0$' log
}

@test "leave: a command that hangs or is missing harms nothing" {
    serving --preempt-command 'echo $$ >asked; exec sleep 600' --preempt-file notice
    wait_for test -s asked
    cat asked >>pids
    touch notice
    wait $worker && status=0 || status=$?
    [ $status -eq 143 ]
    ended "$(cat asked)"
    rm notice
    serving --preempt-command ./nowhere
    wait_for grep -q 'it was not found; retrying' log
    kill $worker
    wait $worker && status=0 || status=$?
    [ $status -eq 143 ]
}

@test "leave: a preempted worker leaves a running job, which goes on" {
    "$KOFN" gen matrix 300 40 -o X.npy -q
    "$KOFN" gen vector 40 -o w.npy -q
    serving -q --preempt-file notice --grace 100
    first=$worker
    serving -q
    "$KOFN" matvec X.npy w.npy -p "$at" -n 2 -s elastic:k=1 -r 100000000 -q \
        --metrics m 3>&- &
    head=$!
    echo $head >>pids
    wait_for under_way m
    touch notice
    wait $first && status=0 || status=$?
    [ $status -eq 143 ]
    wait_for grep -q '^kofn_workers_lost_total 1$' m
    lives $head
}
