#!/usr/bin/env bats
# A coordinator that is killed and restarted finds its workers, which have kept their
# blocks.

load helpers

teardown() {
    for pid in $(jobs -p); do
        kill -9 "$pid" 2>/dev/null || true
    done
    wait || true
}

done_rounds() {
    local n
    n=$(sed -n 's/.*"done": \([0-9]*\).*/\1/p' C/checkpoint.json 2>/dev/null)
    echo "${n:-0}"
}

three_done() {
    [ "$(done_rounds)" -ge 3 ]
}

# Prints the bytes that went over the loopback of this network.
bytes() {
    sed -n 's/^ *lo: *\([0-9]*\).*/\1/p' /proc/net/dev
}

restart() { # in a network of its own
    local at=tcp://127.0.0.1:5555 common first again status=0
    common="matvec X.npy w.npy -s mds:k=2 -n 3 -p $at --checkpoint C"
    ip link set lo up
    for i in 1 2 3; do
        timeout 600 "$KOFN" worker --once $at --patience 20 2>worker.$i &
    done
    "$KOFN" $common -r 1000000 -q &
    first=$!
    wait_for three_done
    kill -KILL $first
    wait $first 2>/dev/null || true
    [ "$(done_rounds)" -ge 3 ]
    before=$(bytes)
    timeout 600 "$KOFN" $common -r $(($(done_rounds) + 3)) --resume --verify \
        --json >out.json 2>err
    after=$(bytes)
    json "o['rel_error'] <= 1e-12 and o['rounds'] == 3" <out.json
    for i in 1 2 3; do # each has told of its block twice
        [ "$(grep -c 'block stored' worker.$i)" -ge 2 ]
    done
    echo "$before bytes before the coordinator died, $((after - before)) after"
    # the blocks are 12 MB, everything else is less than a tenth
    [ "$before" -gt 12000000 ]
    [ $((after - before)) -lt 1200000 ]
}

@test "restart: surviving workers do not receive their blocks again" {
    unshare -n true 2>/dev/null && command -v ip >/dev/null ||
        skip "no network of its own can be made: that takes root and ip"
    kofn gen matrix 4000 250 -o X.npy -q
    kofn gen vector 250 -o w.npy -q
    export KOFN
    export -f restart done_rounds three_done wait_for bytes json calc
    run timeout 600 unshare -n bash -eEuo pipefail -c restart
    echo "$output"
    [ "$status" -eq 0 ]
}
