load helpers
# Workers that send signs of life but no answers: over TCP, and among the processes that
# kofn started.

setup() {
    cd "$BATS_TEST_TMPDIR"
    "$KOFN" gen matrix 300 40 -o X.npy -q
    "$KOFN" gen vector 40 -o w.npy -q
    py 'np.save("y.npy", np.load("X.npy") @ np.load("w.npy"))'
}

teardown() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

right() {
    py 'a, b = np.load("got.npy"), np.load("y.npy")
assert np.abs(a - b).max() <= 1e-9 * np.abs(b).max()'
}

# Leases for correct workers are long. Rounds that end without them cost nothing, and
# the time of a store depends on the machine.

# Port 0 is any free port; the coordinator prints it.
listening() {
    for _ in $(seq 6000); do
        at=$(sed -n 's/^listening on \([^ ]*\) .*/\1/p' err 2>/dev/null) || true
        [ -z "$at" ] || return 0
        sleep 0.1
    done
    cat err
    return 1
}

# refusals N: N refusals reach silent workers, perhaps after the coordinator has ended.
refusals() {
    for _ in $(seq 6000); do
        [ "$(grep -c refused unresponsive)" -ne "$1" ] || return 0
        sleep 0.1
    done
    cat unresponsive err
    return 1
}

# tcp FLAGS...: runs a product with workers over TCP in the background.
tcp() {
    rm -f err # that of another coordinator
    timeout 600 "$KOFN" matvec X.npy w.npy -o got.npy -p 'tcp://127.0.0.1:*' \
        "$@" 2>err &
    coordinator=$!
    listening
}

honest() {
    for _ in $(seq "$1"); do
        timeout 600 "$KOFN" worker --once "$at" -q &
    done
}

# bats test_tags=asan
@test "unresponsive, TCP: a silent worker is evicted, or named" {
    tcp -n 3 -s mds:k=2 --below refuse --lease 60
    honest 2
    timeout 600 "$KOFN_UNRESPONSIVE" "$at" 100 work >unresponsive &
    wait "$coordinator"
    right

    tcp -n 3 -s uncoded --below refuse --lease 1
    honest 2
    timeout 600 "$KOFN_UNRESPONSIVE" "$at" 100 work >unresponsive &
    status=0
    wait "$coordinator" || status=$?
    [ "$status" -eq 4 ]
    grep -q "is evicted: it is connected and answers nothing" err
    grep -Eq "are needed; worker [0-2] (|and [12] more )did not answer and (was|were) evicted" err
    refusals 1
}

# bats test_tags=night
@test "unresponsive, TCP: a worker without a block is evicted, or named" {
    tcp -n 3 -s mds:k=2 --below refuse --lease 15
    honest 2
    timeout 600 "$KOFN_UNRESPONSIVE" "$at" 100 store >unresponsive &
    wait "$coordinator"
    right

    tcp -n 3 -s mds:k=2 --below refuse --lease 0.5
    honest 1
    timeout 600 "$KOFN_UNRESPONSIVE" "$at" 100 store 2 >unresponsive &
    status=0
    wait "$coordinator" || status=$?
    [ "$status" -eq 4 ]
    [ "$(grep -c "is evicted: it is connected and answers nothing" err)" -ge 2 ]
    grep -q "worker [0-2] and [12] more did not answer and were evicted" err
    refusals 2
}

# bats test_tags=night
@test "unresponsive: a paused round continues with a replacement" {
    tcp -n 3 -s mds:k=2 --lease 1
    honest 1
    timeout 600 "$KOFN_UNRESPONSIVE" "$at" 100 store 2 >unresponsive &
    for _ in $(seq 600); do
        [ "$(grep -c "is evicted" err)" -lt 2 ] || break
        sleep 0.1
    done
    honest 1
    wait "$coordinator"
    right
}

# bats test_tags=night
@test "unresponsive: a silent local process is evicted" {
    export TMPDIR=$PWD
    for how in work store; do
        # A process that connects to its socket joins like any other.
        timeout 600 "$KOFN" matvec X.npy w.npy -o got.npy -p processes -n 3 \
            -s mds:k=3 --rounds 30 --lease 3 -w straggle=1,delay=0.1 \
            --json >out.json 2>err &
        coordinator=$!
        for _ in $(seq 6000); do
            at=$(ls -d kofn.*/socket 2>/dev/null) && break
            sleep 0.1
        done
        timeout 600 "$KOFN_UNRESPONSIVE" "ipc://$PWD/$at" 100 "$how" >unresponsive
        wait "$coordinator"
        right
        json 'o["status"] == "ok" and o["joined"] >= 1' <out.json
        grep -Eq "refused|dismissed" unresponsive
    done
}
