#!/usr/bin/env bats
# Addresses: wrong ones are refused, and files or sockets of others are left alone.

load helpers

setup() {
    cd "$BATS_TEST_TMPDIR"
    "$KOFN" gen matrix 30 4 -o X.npy -q
    "$KOFN" gen vector 4 -o w.npy -q
}

teardown() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

serve() { # serve ADDRESS [OPTION...]
    local at=$1
    shift
    run timeout 600 "$KOFN" matvec X.npy w.npy -n 2 -p "$at" "$@"
}

# bats test_tags=asan
@test "address: a wrong address is refused with the reason (both sides)" {
    while read -r at what; do
        run timeout 600 "$KOFN" worker --once "$at"
        refused "$at" "$what"
    done <<'END'
tcp://127.0.0.1 no port
tcp:// no port
tcp://[::1] no port
tcp://127.0.0.1: no port
tcp://127.0.0.1:0 "0" is no port
tcp://127.0.0.1:65536 "65536" is no port
tcp://127.0.0.1:7x "7x" is no port
tcp://:5555 no host
tcp://*:5555 tcp://HOST:5555
ipc:// no path
END
    while read -r at what; do
        serve "$at"
        refused "$at" "$what"
    done <<'END'
tcp://127.0.0.1 no port
tcp://* no port
tcp://127.0.0.1:65536 "65536" is no port
tcp://127.0.0.1:-1 "-1" is no port
tcp://:5555 tcp://*:5555
ipc:// no path
END
}

@test "address: an address that cannot be listened at is refused with advice" {
    serve ipc://"$PWD"/nowhere/socket
    [ "$status" -eq 1 ]
    [[ "$output" == *"make its folder first"* ]]
    serve tcp://no.such.host.invalid:5555 --insecure
    [ "$status" -eq 1 ]
    [[ "$output" == *"no such address"* ]]
    /usr/bin/python3 -c '
import socket, subprocess, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
r = subprocess.run(sys.argv[1:] + ["tcp://127.0.0.1:%d" % s.getsockname()[1]],
                   capture_output=True, text=True, timeout=600)
assert r.returncode == 1 and "take another port" in r.stderr, r' \
        "$KOFN" matvec X.npy w.npy -p
}

@test "address: localhost works to listen, to connect and for nodes" {
    "$KOFN" matvec X.npy w.npy -n 1 -s uncoded -p 'tcp://localhost:*' -o y.npy >out 2>err &
    first=$!
    wait_for grep -q "listening on tcp://127.0.0.1:" err
    port=$(sed -n 's/^listening on tcp:.*:\([0-9]*\) for.*/\1/p' err)
    timeout 600 "$KOFN" worker --once "tcp://localhost:$port" -q
    wait "$first"
    [ -s y.npy ]
    "$KOFN" gen matrix 20 20 -o A.npy -q
    # below the ports that the system assigns
    one=tcp://localhost:$((30500 + RANDOM % 700)) two=tcp://localhost:$((31200 + RANDOM % 700))
    timeout 600 "$KOFN" power A.npy --masterless -n 2 -p "$one" --reach "$two" -o 1.npy -q \
        --max-iter 50 &
    first=$!
    timeout 600 "$KOFN" power A.npy --masterless -n 2 -p "$two" --reach "$one" -o 2.npy -q \
        --max-iter 50
    wait "$first"
    cmp 1.npy 2.npy
    # every --reach counts
    run kofn power A.npy --masterless -n 2 -p 'tcp://127.0.0.1:*' --reach one --reach "$two"
    refused "address 'one'" "tcp://HOST:PORT"
}

# bats test_tags=asan
@test "address: files and live sockets stay, a stale socket is replaced" {
    cp X.npy before.npy
    serve ipc://"$PWD"/X.npy
    refused X.npy "something else"
    cmp X.npy before.npy
    at=ipc://$PWD/socket
    "$KOFN" matvec X.npy w.npy -n 2 -p "$at" -o y.npy -q &
    first=$!
    wait_for test -S socket
    serve "$at"
    [ "$status" -eq 1 ]
    [[ "$output" == *"another process does already"* ]]
    kill -KILL "$first"
    wait "$first" || true
    [ -S socket ]
    "$KOFN" matvec X.npy w.npy -n 1 -s uncoded -p "$at" -o y.npy -q &
    second=$!
    timeout 600 "$KOFN" worker --once "$at" -q
    wait "$second"
    [ -s y.npy ]
}

@test "address: options for an address are refused without one" {
    for words in "--keys keys" --insecure "--min-workers 1"; do
        run "$KOFN" matvec X.npy w.npy $words
        refused "${words%% *}" "--port tcp://"
    done
    serve 'tcp://127.0.0.1:*' --min-workers 3
    refused "--min-workers 3" "exceeds --workers 2"
}

@test "worker: the reason of a failed connection is printed" {
    with_time --patience "no answer" "$KOFN" worker --once ipc://"$PWD"/nobody
    [ "$status" -eq 4 ]
    mapfile -t lines < <(besides_blas <<<"$output")
    [[ "${lines[0]}" == "no answer at ipc://$PWD/nobody"* ]]
    [[ "${lines[1]}" == *"no coordinator for "*" s"*"no answer"* ]]
    run timeout 600 "$KOFN" worker --once tcp://no..host:5555 --insecure \
        --patience 0.1
    mapfile -t lines < <(besides_blas <<<"$output")
    [[ "${lines[0]}" == "no..host: "* ]]
    for folder in keys others; do "$KOFN" keygen $folder -q; done
    cp keys/coordinator.crt others
    at=ipc://$PWD/socket
    "$KOFN" matvec X.npy w.npy -p "$at" --keys keys -q &
    wait_for test -S socket
    with_time --patience "not on its list" "$KOFN" worker --once "$at" --keys others -q
    [ "$status" -eq 4 ]
    with_time --patience "may want --keys" "$KOFN" worker --once "$at" -q
    [ "$status" -eq 4 ]
}

@test "worker: --inputs must be a folder" {
    for folder in nowhere X.npy; do
        run timeout 600 "$KOFN" worker --once ipc://"$PWD"/nobody --data-path $folder
        refused "--data-path $folder"
    done
}

@test "address: unreadable keys are bad input (coordinator, worker)" {
    "$KOFN" keygen keys -q
    run timeout 600 "$KOFN" worker --once ipc://"$PWD"/nobody --keys nowhere
    refused nowhere/worker.crt "make keys with kofn keygen"
    serve ipc://"$PWD"/socket --keys nowhere
    refused nowhere/coordinator.crt "make keys with kofn keygen"
    run timeout 600 "$KOFN" worker --once ipc://"$PWD"/nobody --keys keys/worker.key
    refused "give the folder"
    chmod 644 keys/coordinator.key
    serve ipc://"$PWD"/socket --keys keys
    refused keys/coordinator.key "mode 644" "chmod 600 keys/coordinator.key"
    run "$KOFN" keygen ''
    refused "give a folder"
}
