load helpers
# Waiting is always reported, and never for workers that cannot come.

setup() {
    cd "$BATS_TEST_TMPDIR"
    "$KOFN" gen matrix 300 40 -o X.npy -q
    "$KOFN" gen vector 40 -o w.npy -q
    at=ipc://$PWD/socket
}

teardown() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

@test "waits: missing workers are reported, up to --start-within" {
    for seconds in 4 40; do
        timeout 600 "$KOFN" worker --once "$at" -q &
        run timeout 600 "$KOFN" matvec X.npy w.npy -p "$at" -n 3 --start-within $seconds
        [[ "$output" != *"1 of 3 workers are here"* ]] || break
    done
    [ "$status" -eq 4 ]
    [[ "$output" == *"1 of 3 workers are here, waiting for the others"* ]]
    [[ "$output" == *"1 of 3 workers came within"* ]]
}

# bats test_tags=night
@test "waits: workers without memory say so, and the round reports it" {
    for seconds in 6 40; do
        for _ in 1 2; do
            timeout 600 "$KOFN" worker --once "$at" -q --memory 10 2>/dev/null &
        done
        run timeout 600 "$KOFN" matvec X.npy w.npy -p "$at" -n 2 -s mds:k=2 \
            --start-within $seconds
        [[ "$output" != *"0 workers are live after"* ]] || break
    done
    [ "$status" -eq 4 ]
    [ "$(grep -c 'worker [01] (user [0-9]*) went: .*memory' <<<"$output")" -eq 2 ]
    [[ "$output" == *"0 workers are live and 2 are needed, waiting for more"* ]]
    [[ "$output" == *"0 workers are live after"* ]]
}

# Under agc a worker answers several times a round.
# bats test_tags=night
@test "waits: the message counts workers, not answers" {
    "$KOFN" gen vector 300 -o y.npy -q
    for seconds in 4 40; do
        timeout 600 "$KOFN" worker --once "$at" -q &
        run timeout 600 "$KOFN" regress X.npy y.npy -s agc:d=3 -p "$at" -n 8 \
            --min-workers 1 --start-within $seconds
        [[ "$output" != *"1 worker is live after"* ]] || break
    done
    [ "$status" -eq 4 ]
    [[ "$output" == *"1 worker is live and 6 are needed, waiting for more"* ]]
    [[ "$output" == *"1 worker is live after"*" and 6 are needed; start more workers"* ]]
}

@test "waits: workers of a full key are not waited for, with a message" {
    "$KOFN" keygen keys --worker anna -q
    "$KOFN" keygen keys --worker bert -q
    timeout 600 "$KOFN" matvec X.npy w.npy -p "$at" --keys keys -n 2 -s mds:k=1 \
        --errors detect --start-within 500 --json >out.json 2>err &
    coordinator=$!
    for _ in 1 2; do
        timeout 600 "$KOFN" worker --once "$at" -q --keys keys/anna &
    done
    wait_for grep -q "1 of 2 workers are here, waiting for the others; 1 worker waits" err
    timeout 600 "$KOFN" worker --once "$at" -q --keys keys/bert &
    wait "$coordinator"
    json 'o["status"] == "ok"' <out.json
}

@test "waits: more workers than MPI ranks are refused at once" {
    [ "$KOFN_SANITIZE" != thread ] || skip "it finds fault with MPI's own locks"
    # Leaks of MPI itself are not kofn's; its stacks are long.
    export LSAN_OPTIONS="suppressions=$BATS_TEST_DIRNAME/../mpi/leaks.supp:print_suppressions=0"
    export ASAN_OPTIONS="fast_unwind_on_malloc=0:symbolize=0"
    for mpi in openmpi mpich; do
        command -v mpirun.$mpi >/dev/null || continue
        flags=
        [ $mpi = openmpi ] && flags="--oversubscribe --allow-run-as-root"
        run timeout -k 2 600 mpirun.$mpi $flags -n 3 "$KOFN" matvec X.npy w.npy -p mpi -n 3
        [ "$status" -eq 2 ]
        [[ "$output" == *"the job has 2 ranks besides this one"* ]]
    done
}
