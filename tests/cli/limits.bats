# limits.bats -- a full disk, no descriptors, no memory: a message, a telling exit code,
# and no half-written file.
load helpers

setup_file() {
    calc_begins
    cd "$BATS_FILE_TMPDIR" || exit 1
    "$KOFN" gen matrix 400 20 -o A.npy
    "$KOFN" gen vector 20 -o x.npy
    "$KOFN" gen vector 400 -o y.npy
    py "a = np.random.default_rng(1).normal(size=(30, 30)); np.save('S.npy', a + a.T)"
}

# Makes a full disk of 16 KiB at ./disk.
fill_disk() {
    mkdir disk
    mount -t tmpfs -o size=16k tmpfs disk 2>/dev/null ||
        skip "a small file system cannot be mounted here"
    dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null || true
}

teardown() {
    umount disk 2>/dev/null || true
}

# full WHAT ARGUMENT...: it exits with 1, reports missing space, and leaves no byte.
full() {
    local what=$1
    shift
    run kofn "$@"
    [ "$status" -eq 1 ] || { echo "$what: status $status: $output"; return 1; }
    [[ "$output" == *"No space left on device"* ]] || { echo "$what: $output"; return 1; }
    [ "${#lines[@]}" -eq 1 ] || { echo "$what: not one line: $output"; return 1; }
    [ -z "$(find disk -type f -size +0 ! -name fill)" ]
    [ -z "$(find disk -name '.kofn-*')" ]
}

# bats test_tags=asan
@test "limits: a full disk is reported (every output)" {
    fill_disk
    d=$BATS_FILE_TMPDIR
    full output matvec "$d/A.npy" "$d/x.npy" -p sim -n 5 -q -o disk/y.npy
    [ ! -e disk/y.npy ]
    full journal matvec "$d/A.npy" "$d/x.npy" -p sim -n 5 -q --journal disk/j
    full metrics matvec "$d/A.npy" "$d/x.npy" -p sim -n 5 -q --metrics disk/m
    [ ! -e disk/m ]
    full trace matvec "$d/A.npy" "$d/x.npy" -p sim -n 5 -q --trace disk/t
    full checkpoint power "$d/S.npy" -p sim -n 5 -q --checkpoint disk/c
    full history regress "$d/A.npy" "$d/y.npy" -p sim -n 5 -q --history disk/h
    full gen gen matrix 100 100 -o disk/g.npy
    [ ! -e disk/g.npy ]
}

@test "limits: an output that does not fit leaves the old file" {
    fill_disk
    d=$BATS_FILE_TMPDIR
    rm disk/fill
    echo old >disk/y.csv
    dd if=/dev/zero of=disk/fill bs=4k 2>/dev/null || true
    run kofn matvec "$d/A.npy" "$d/x.npy" -p sim -n 5 -q -o disk/y.csv
    [ "$status" -eq 1 ]
    [[ "$output" == *"No space left on device"* ]]
    [ "$(cat disk/y.csv)" = old ]
    [ -z "$(find disk -name '.kofn-*')" ]
}

@test "limits: a file beyond its size limit is reported and removed" {
    d=$BATS_FILE_TMPDIR
    run bash -c "ulimit -f 8; timeout 60 '$KOFN' gen matrix 100 100 -o g.npy"
    [ "$status" -eq 1 ]
    [[ "$output" == *"File too large"* ]]
    [ -z "$(ls -A)" ]
}

@test "limits: a foreign SIGALRM does not end a run" {
    d=$BATS_FILE_TMPDIR
    "$KOFN" matvec "$d/A.npy" "$d/x.npy" -p threads -n 3 -r 1000000 -q --metrics m \
        3>&- &
    wait_for under_way m
    for _ in 1 2 3 4 5; do kill -ALRM $!; sleep 0.02; done
    kill -INT $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 130 ]
}

@test "limits: a full standard output is reported" {
    run bash -c "'$KOFN' schemes >/dev/full"
    [ "$status" -eq 1 ]
    [[ "$output" == *"No space left on device"* ]]
}

@test "limits: missing descriptors give a message and no signal" {
    d=$BATS_FILE_TMPDIR
    for n in 5 6 7 8 10 12 16 20; do # fewer, and the loader finds no library
        for port in sim threads processes; do
            run bash -c "ulimit -n $n; exec 3>&- 4>&-; timeout 60 '$KOFN' matvec '$d/A.npy' '$d/x.npy' -p $port -n 3 -q -o y.npy"
            [ "$status" -le 2 ] || { echo "$n, $port: $status: $output"; return 1; }
            [ "$status" -eq 0 ] || [ -n "$output" ] || { echo "$n, $port: no word"; return 1; }
        done
    done
}

@test "limits: too little memory for BLAS is an error and no hang" {
    [ -n "${KOFN_CC-}" ] || skip "sanitizers need address space"
    d=$BATS_FILE_TMPDIR
    for room in 100000 170000; do
        run bash -c "ulimit -v $room; OPENBLAS_NUM_THREADS=2 timeout 30 '$KOFN' matvec '$d/A.npy' '$d/x.npy' -p sim -n 3 -q -o y.npy"
        [ "$status" -eq 1 ]
        [ "${#lines[@]}" -eq 1 ]
        [[ "$output" == *"address space"* ]]
    done
    run bash -c "ulimit -v 4000000; OPENBLAS_NUM_THREADS=2 timeout 30 '$KOFN' matvec '$d/A.npy' '$d/x.npy' -p sim -n 3 -q -o y.npy"
    [ "$status" -eq 0 ]
}
