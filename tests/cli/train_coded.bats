load helpers

# Threads of BLAS look like races to ThreadSanitizer.
export OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1 OMP_NUM_THREADS=1

ports="threads sim processes"

net="--layers 64-17-10 --step 0.5 --batch 70 --activation sigmoid --momentum 0 --epochs 1"

@test "coded weights: training gives the plain weights" {
    images
    while read -r s port; do
        [[ "$ports" == *$port* ]] || continue
        kofn train X.npy y.npy -o model $net --epochs 2 -s $s -p $port \
            -w straggle=0.1 --momentum 0.9 --l2 1e-5 --verify --json >out.json
        # six batches an epoch, two products forward and one back; two are read at the end
        json "o['rel_error'] <= 1e-12 and o['iterations'] == 12 and o['rounds'] == 12*3 + 2" <out.json
    done <<'SCHEMES'
elastic threads
gpd sim
gpd:m=2,n=2,p=1,sub=vum processes
polynomial:m=3,p=1,basis=circle sim
grid:m=2,n=2,m2=3,n2=3 threads
SCHEMES
    kofn train X.npy y.npy -o model $net --epochs 2 -s gpd -p sim --dtype f4 --verify --json |
        json "1e-12 < o['rel_error'] <= 1e-5"
}

@test "coded weights: workers leave, join, slow down; --test is reported" {
    images
    printf '2 leave 3\n4 slow 1 20\n5 leave 6\n9 join\n20 leave 0\n' >events.txt
    words="train X.npy y.npy $net --epochs 6 --nesterov --momentum 0.5 --test Xt.npy yt.npy"
    kofn $words -o sums -p sim --json >sums.json
    while read -r s port; do
        [[ "$ports" == *$port* ]] || continue
        kofn $words -o model -s $s -p $port -e events.txt --history h.csv --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['left'] == 3 and o['joined'] == 1" <out.json
        py "import json
a, b = (json.load(open(f)) for f in ('sums.json', 'out.json'))
assert abs(a['test_loss'] - b['test_loss']) < 1e-9 and a['test_accuracy'] == b['test_accuracy']
h=np.genfromtxt('h.csv', delimiter=',', names=True)
assert len(h) == 36 and np.isfinite(h['test_loss']).sum() == 6 and h['live'][-1] == 6"
    done <<'SCHEMES'
elastic:k=4 sim
gpd:m=2,n=2,p=1 threads
gpd:m=2,n=2,p=1 processes
SCHEMES
}

steps_done() { # steps_done N: there are so many lines in h.csv
    [ "$(cat h.csv 2>/dev/null | wc -l)" -gt "$1" ]
}

# Four of eight are killed, and four others join.
kill_some() { # kill_some ADDRESS SCHEME OPTION...
    local at=$1 scheme=$2 liar=${liar:-} coordinator i
    shift 2
    rm -f h.csv err j
    timeout 120 "$KOFN" train X.npy y.npy -o model $net --epochs 8 -s "$scheme" -p "$at" -n 8 "$@" \
        --history h.csv --journal j --verify --json >out.json 2>err &
    coordinator=$!
    wait_for grep -q '^listening on ' err
    at=$(sed -n 's/^listening on \([^ ]*\) .*/\1/p' err)
    for i in $(seq 8); do
        timeout 120 "$KOFN" worker --once "$at" -w straggle=1,delay=0.01 -q &
        crew[i]=$!
    done
    [ -z "$liar" ] || timeout 120 "$KOFN" worker --once "$at" -w corrupt=1 -q & # stands by
    for i in 1 2 3 4; do
        wait_for steps_done $((4 * i))
        kill -9 "$(pgrep -P "${crew[i]}")" # timeout's child
        timeout 120 "$KOFN" worker --once "$at" -w straggle=1,delay=0.01 -q &
    done
    wait $coordinator
    json "o['rel_error'] <= 1e-12 and o['iterations'] == 48 and o['joined'] >= 1 and o['left'] >= 4" <out.json
    kofn replay j -q
}

@test "coded weights: kills and joins do not change the weights" {
    images
    kill_some "ipc://$PWD/socket" elastic:k=4 --momentum 0.9
}

# bats test_tags=night
@test "coded weights: kills and joins over TCP do not change weights" {
    images
    kill_some 'tcp://127.0.0.1:*' gpd:m=2,n=2,p=1 --nesterov --momentum 0.5
}

# bats test_tags=night
@test "coded weights: a wrong replacement does not change the weights" {
    images
    liar=1 kill_some "ipc://$PWD/socket" gpd:m=2,n=1,p=1 --momentum 0.9 \
        --errors adversarial --workers-per-principal 0 --scrub 2
    # of eight workers a constantly wrong one is excluded after 20 of the rounds that
    # show it (src/base/blame.h), and is rebuilt in vain at each before
    json "len(o['corrupted']) == 1 and o['rebuilt'] <= 20" <out.json
}

# bats test_tags=night
@test "coded weights: ranks of an MPI job hold them" {
    [ "$KOFN_SANITIZE" != thread ] || skip "it finds fault with MPI's own locks"
    # Leaks of MPI itself are not kofn's; its stacks are long.
    export LSAN_OPTIONS="suppressions=$BATS_TEST_DIRNAME/../mpi/leaks.supp:print_suppressions=0"
    export ASAN_OPTIONS="fast_unwind_on_malloc=0:symbolize=0"
    images
    for mpi in openmpi mpich; do
        command -v mpirun.$mpi >/dev/null || continue
        flags=
        [ $mpi = openmpi ] && flags="--oversubscribe --allow-run-as-root"
        timeout -k 2 100 mpirun.$mpi $flags -n 5 "$KOFN" train X.npy y.npy -o $mpi $net -p mpi \
            -s elastic:k=2 --epochs 1 --momentum 0.5 --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['workers'] == 4" <out.json
    done
}

@test "coded weights: a checkpoint resumes to the same weights" {
    images
    words="train X.npy y.npy $net -s gpd -p threads --checkpoint C --every 4"
    kofn $words -o model --epochs 1 -q
    json "o['done'] == 6" <C/checkpoint.json
    kofn $words -o model --epochs 3 --resume --verify --json >out.json
    json "o['rel_error'] <= 1e-12 and o['resumed_after'] == 6 and o['iterations'] == 18" <out.json
}

@test "coded weights: velocities are kept, so a resumed run is equal" {
    images
    for s in elastic gpd; do
        words="train X.npy y.npy $net -s $s -p threads --momentum 0.9 --nesterov --checkpoint C-$s --every 4"
        kofn $words -o model --epochs 1 -q
        kofn $words -o model --epochs 3 --resume --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['resumed_after'] == 6 and o['iterations'] == 18" <out.json
    done
}

@test "coded weights: wrong blocks are found and repaired in training" {
    images
    printf '2 flip 1\n4.5 flip 0\n6 corrupt 3\n9 leave 5\n9 join\n12 flip 7\n' >events.txt
    for port in $ports; do
        kofn train X.npy y.npy -o model $net --epochs 3 --momentum 0.5 -s gpd:m=2,n=1,p=1 -p $port \
            -e events.txt --errors probabilistic --quarantine 1 --late 0 --scrub 1 --history h.csv --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['rebuilt'] >= 2 and o['again'] >= o['rebuilt'] and \
3 in o['corrupted'] and 2 not in o['corrupted'] and 0 < o['drift'] < o['floor']" <out.json
        py "import json
o=json.load(open('out.json')); h=np.genfromtxt('h.csv', delimiter=',', names=True)
assert h['rebuilt'].sum() == o['rebuilt'] and h['again'].sum() == o['again'] and h['drift'].max() > 0
assert h['live'][-1] == 7"
    done
    # missed updates, and randomly flipped bits, on all machines
    kofn train X.npy y.npy -o model $net --epochs 6 -s gpd:m=2,n=1,p=1 -p sim -n 11 \
        -w flip=0.01,miss=0.01 --errors probabilistic --scrub 1 --verify --history h.csv --json |
        json "o['rel_error'] <= 1e-12 and o['rebuilt'] >= 5 and len(o['corrupted']) > 5"
    py "h = np.genfromtxt('h.csv', delimiter=',', names=True)
assert len(h) == 36 and h['live'][-12:].max() == 11 and h['left'].sum() == 0"
}

# bats test_tags=asan
@test "coded weights: unsuitable options are refused in one line" {
    images
    for bad in "-s mds" "-s polynomial" "-s gpd:m=4,n=4,p=1" \
        "-s elastic --errors probabilistic" "-s gpd:basis=complex" \
        "-s gpd --scrub 2" "--errors probabilistic --scrub 2" "-s grid:m=3,n=3"; do
        run kofn train X.npy y.npy -o model $net $bad
        [ "$status" -eq 2 ] && [ "${#lines[@]}" -eq 1 ] || { echo "$bad: $status $output"; return 1; }
        [ ! -e model/model.json ]
    done
    # too few workers remain to continue; their weights are not written
    printf '2 leave 0\n2 leave 1\n2 leave 2\n' >events.txt
    run kofn train X.npy y.npy -o model $net -s gpd:m=2,n=2,p=1 -p threads -e events.txt
    [ "$status" -eq 4 ]
    [ ! -e model/model.json ]
}
