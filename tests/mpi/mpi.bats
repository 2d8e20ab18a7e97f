# mpi.bats -- the MPI transport between real ranks.  MPI is openmpi or mpich,
# EXCHANGE, CONFORM and ATTACH one rank of a job.  Every job is bounded in time from outside, since
# it is the nature of MPI to hang.
setup() {
    : "${MPI:?openmpi or mpich}" "${EXCHANGE:?the program of a rank}" \
        "${CONFORM:?the program of a rank}" "${ATTACH:?the program of a rank}" \
        "${KOFN:?the command}"
    cd "$BATS_TEST_TMPDIR" || exit 1
    flags=
    [ "$MPI" = openmpi ] && flags="--oversubscribe"
    [ "$MPI" = openmpi ] && [ "$(id -u)" = 0 ] && flags="$flags --allow-run-as-root"
    # Leaks of MPI itself are not ours; its stacks are long.
    export LSAN_OPTIONS="suppressions=$BATS_TEST_DIRNAME/leaks.supp:print_suppressions=0"
    export ASAN_OPTIONS="fast_unwind_on_malloc=0:symbolize=0"
}

job() { # job RANKS MODE SEED
    run timeout -k 2 50 "mpirun.$MPI" $flags -n "$1" "$EXCHANGE" "$2" "$3"
    [ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
}

# ended COUNT: checks that COUNT ranks have reported success.
ended() {
    [ "$(grep -c 'rank [0-9]*: ok' <<<"$output")" -eq "$1" ] ||
        { echo "$output"; return 1; }
}

@test "mpi: packets of rank 0 and others arrive whole and in order" {
    job 4 star 1
    ended 4
    [[ "$output" == *"if any rank is lost"* ]]
}

@test "mpi: packets of all ranks to all arrive whole and in order" {
    job 4 mesh 2
    ended 4
}

@test "mpi: the laws of transports hold" {
    run timeout -k 2 100 "mpirun.$MPI" $flags -n 4 "$CONFORM" 6
    [ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
    ended 4
}

@test "mpi: halves of a program that uses MPI itself multiply side by side" {
    # The MPI in the process counts, not the launcher that the environment names.
    run env OMPI_COMM_WORLD_SIZE=6 timeout -k 2 50 "mpirun.$MPI" $flags -n 6 "$ATTACH"
    [ "$status" -eq 0 ] || { echo "status $status: $output"; return 1; }
    ended 6
}

@test "mpi: a command that ignores its ranks warns, once" {
    "$KOFN" gen matrix 20 5 -o X.npy
    "$KOFN" gen vector 5 -o w.npy
    run timeout -k 2 50 "mpirun.$MPI" $flags -n 2 "$KOFN" matvec X.npy w.npy -p sim
    [ "$status" -eq 0 ]
    [ "$(grep -c 'warning: each of the 2 ranks.*--port mpi' <<<"$output")" -eq 1 ] ||
        { echo "$output"; return 1; }
    run timeout -k 2 50 "mpirun.$MPI" $flags -n 2 "$KOFN" matvec X.npy w.npy -p mpi \
        -s mds:k=1
    [ "$status" -eq 0 ]
    [[ "$output" != *warning* ]]
}

# bats test_tags=night
@test "mpi: too long bodies are dropped and counted" {
    job 3 long 3
    ended 3
}

# bats test_tags=night
@test "mpi: a rank that does not receive gets little" {
    job 3 full 4
    ended 3
}

# Rank 0 kills one of the others: the rest learn of it, get what they are owed
# by each other and end well.  The job itself may not: one was killed.
# bats test_tags=night
@test "mpi: a killed rank is noticed, and no other hangs" {
    [ "$MPI" = openmpi ] || skip "mpirun of MPICH ends a job that loses a rank"
    flags="$flags --enable-recovery"
    for seed in $(seq $((2 * ${KOFN_TEST_SCALE:-1}))); do
        run timeout -k 2 50 mpirun.openmpi $flags -n 4 "$EXCHANGE" kill "$seed"
        ended 3
        [[ "$output" == *"under --enable-recovery ranks may be lost"* ]]
    done
}

# A stopped rank continues after all others have excluded it. It then learns
# that it is excluded, and ends.
# bats test_tags=night
@test "mpi: a rank stopped for too long is excluded and ends" {
    [ "$MPI" = openmpi ] || skip "mpirun of MPICH ends a job that loses a rank"
    flags="$flags --enable-recovery"
    run timeout -k 2 50 mpirun.openmpi $flags -n 4 "$EXCHANGE" stop 2
    ended 4
}

@test "mpi: a missing launcher or a single rank gives advice" {
    run env -i "$EXCHANGE" star 1
    [ "$status" -eq 1 ]
    [[ "$output" == *"not a rank of an MPI job; start it by mpirun"* ]]
    run env -i SLURM_PROCID=0 "$EXCHANGE" star 1
    [ "$status" -eq 1 ]
    [[ "$output" == *"srun --mpi=pmi2"* ]]
    run timeout -k 2 50 "mpirun.$MPI" $flags -n 1 "$EXCHANGE" star 1
    [ "$status" -ne 0 ]
    [[ "$output" == *"one rank; start at least two"* ]]
}
