load helpers
# Keys of workers: one each, listed and revoked one by one.

setup() {
    cd "$BATS_TEST_TMPDIR"
    "$KOFN" gen matrix 300 40 -o X.npy -q
    "$KOFN" gen vector 40 -o w.npy -q
    for name in anna bert carl dora; do
        "$KOFN" keygen keys --worker $name -q
    done
}

teardown() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

# Starts the coordinator in the background; $at is its address.
coordinate() {
    rm -f err # that of another
    timeout 600 "$KOFN" matvec X.npy w.npy -p 'tcp://127.0.0.1:*' "$@" >out.json 2>err &
    coordinator=$!
    wait_for grep -q 'listening on tcp:' err
    at=$(sed -n 's/.*listening on \(tcp:[^ ]*\).*/\1/p' err)
}

works() { # works NAME [OPTION...]
    local name=$1
    shift
    timeout 600 "$KOFN" worker --once "$at" -q --keys keys/"$name" "$@" &
}

# bats test_tags=asan
@test "keys: a faulty worker is named by its key, whatever name it claims" {
    # all have to answer, so that wrong ones are seen
    coordinate --keys keys -n 4 -s elastic:k=2 --late 0 --errors adversarial -r 5 --verify \
        --json --journal run.jsonl
    for name in anna carl dora; do works $name; done
    works bert --name anna --faults corrupt=1
    wait "$coordinator"
    json 'o["corrupted_names"] == ["bert/anna"] and o["may_lie"] == 1 and o["rel_error"] < 1e-9' <out.json
    kofn replay run.jsonl
    grep -q '"p":4' run.jsonl
    grep -q '"workers_per_principal":1' run.jsonl
}

@test "keys: a revoked key is refused, an added key is accepted" {
    coordinate --keys keys -n 4 -s mds:k=2 -r 100000000 --json
    for name in anna bert carl; do works $name -w straggle=1,delay=0.02; done
    timeout 600 "$KOFN" worker --once "$at" --keys keys/dora 2>dora &
    dora=$!
    wait_for grep -q "block stored" dora
    rm keys/dora.crt
    wait_for grep -q "^disconnected by .*: key revoked; retrying$" dora
    wait_for grep -q "refused dora (127.0.0.1.*): key revoked" err
    "$KOFN" keygen keys --worker emil -q
    timeout 600 "$KOFN" worker --once "$at" --keys keys/emil 2>emil &
    wait_for grep -q "connected as worker" emil
    kill $coordinator
}

@test "keys: with --errors one key counts as one worker" {
    run kofn matvec X.npy w.npy -p 'tcp://127.0.0.1:*' --keys keys -n 5 --errors probabilistic
    refused "4 keys listed" "keygen keys --worker"
    run kofn matvec X.npy w.npy -p 'tcp://127.0.0.1:*' -n 5 --errors probabilistic
    refused "count as one" "--port processes"
    run kofn matvec X.npy w.npy --workers-per-principal 2
    refused workers-per-principal "--port"
    # the same worker twice: one works, the other waits
    coordinate --keys keys -n 4 -s mds:k=2 --errors detect --json
    for name in anna anna anna anna bert carl; do works $name; done
    wait_for grep -q "3 of 4 workers are here, waiting for the others; 3 workers wait, because their keys have no seat" err
    [ ! -s out.json ]
    works dora
    wait "$coordinator"
    json 'o["status"] == "ok"' <out.json
}

@test "keys: one shared key suffices for trusted workers or mere faults" {
    "$KOFN" keygen shared -q
    coordinate --keys shared -n 4 -s mds:k=2 --errors probabilistic --workers-per-principal 0 --json
    for _ in 1 2 3 4; do
        timeout 600 "$KOFN" worker --once "$at" -q --keys shared &
    done
    wait "$coordinator"
    json 'o["status"] == "ok"' <out.json
}

# bats test_tags=asan
@test "keys: keygen needs a name and does not overwrite keys" {
    run kofn keygen keys --worker anna
    [ "$status" -ne 0 ]
    [[ "$output" == *"never overwritten"* ]]
    run kofn keygen keys --worker ../anna
    [ "$status" -eq 2 ]
    run kofn keygen new --worker anna
    [ "$status" -eq 0 ]
    [[ "$output" == *"new/anna.crt"* ]]
    [ ! -e new/worker.key ]
}
