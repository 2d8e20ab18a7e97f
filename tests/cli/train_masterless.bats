load helpers

# Threads of BLAS look like races to ThreadSanitizer.
export OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1 OMP_NUM_THREADS=1

net="--layers 64-17-10 --step 0.5 --batch 70 --activation sigmoid --momentum 0 --epochs 1"

agree() { # agree SCHEME...: by each, all nodes have the weights of the plain training
    local s
    images
    for s in "$@"; do
        kofn train X.npy y.npy -o model $net --epochs 2 -s $s --masterless --momentum 0.9 \
            --l2 1e-5 --test Xt.npy yt.npy --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['iterations'] == 12 and o['nodes'] == 8 \
and o['same'] == o['finished'] > 0 and o['loss'] > 0 and o['test_accuracy'] >= 0" <out.json
    done
}

# bats test_tags=night
@test "masterless train: every scheme gives all nodes the same weights" {
    agree polydot matdot:n=3 polynomial:m=3,p=1,basis=circle
}

@test "masterless train: all nodes end with the plain weights" {
    agree gpd grid:m=2,n=2,copies=2
    kofn predict model Xt.npy -o p.npy -q
    py "assert np.load('p.npy').shape == (100,)"
    kofn train X.npy --autoencoder --layers 64-9-64 --sparsity 0.1 --sparsity-weight 0.1 \
        -o auto --masterless --decode distributed --verify --json |
        json "o['rel_error'] <= 1e-12 and o['decode'] == 'distributed'"
}

@test "masterless train: float32 nodes locate a wrong node" {
    images
    printf '%s\n' '2 err 2 decode' '3 flip 1' '4 corrupt 5' '5 normal 5' >places.txt
    kofn train X.npy y.npy -o model $net --epochs 3 -n 9 -s gpd:m=2,n=2,p=1 --masterless \
        --momentum 0.5 --errors adversarial --scrub 2 -e places.txt --checkpoint C --every 4 \
        --dtype f4 --verify --json >out.json
    json "1e-12 < o['rel_error'] <= 1e-5 and o['finished'] == 9 and o['same'] == 9 \
and o['liars'] == 0 and len(o['wrong']) > 0" <out.json
    py "assert np.load('model/W1.npy').dtype == np.float32"
    kofn train X.npy y.npy -o model $net --epochs 4 -n 9 -s gpd:m=2,n=2,p=1 --masterless \
        --momentum 0.5 --errors adversarial --scrub 2 --checkpoint C --every 4 --resume \
        --dtype f4 --verify --json >out.json
    json "1e-12 < o['rel_error'] <= 1e-5 and o['same'] == 9" <out.json
}

# The losses equal those of a training on a job, where everything else differs.
@test "masterless train: the history has a line per step" {
    images
    kofn train X.npy y.npy -o model $net --epochs 2 --history job.csv -q
    words="train X.npy y.npy -o model $net --masterless -s gpd:m=2,n=1,p=1 --errors probabilistic --checkpoint C -q"
    kofn $words --scrub 2 --history h.csv # of one epoch
    mv h.csv half.csv
    rm -r C
    kofn $words --epochs 2 --scrub 2 --history h.csv
    py "
import csv
h, half, job = (list(csv.DictReader(open(f))) for f in ('h.csv', 'half.csv', 'job.csv'))
assert [r['step'] for r in h] == [r['step'] for r in job] == [str(i + 1) for i in range(12)]
assert [r['epoch'] for r in h] == [r['epoch'] for r in job]
for a, b in zip(h, job):
    assert abs(float(a['loss']) / float(b['loss']) - 1) < 1e-11 and a['accuracy'] == b['accuracy']
assert len(half) == 6 and float(h[-1]['seconds']) > 0 and h[-1]['members'] == '8'
assert all(0 <= float(r['drift']) < 1e-13 and (r['drift'] == '0' or int(r['scrubs'])) for r in h), h
"
    kofn $words --epochs 3 --scrub 2 --resume --history h.csv
    py "
import csv
h = [int(r['step']) for r in csv.DictReader(open('h.csv'))]
assert h[:12] == list(range(1, 13)) and 1 <= h[12] <= 13 and h[12:] == list(range(h[12], 19)), h"
}

# bats test_tags=asan
@test "masterless train: nodes leave and join; too few are an error" {
    images
    printf '2 leave 3\n5 join\n9 leave 0\n' >events.txt
    kofn train X.npy y.npy -o model $net --epochs 8 --masterless -e events.txt \
        --patience 60 --verify --json >out.json
    json "o['rel_error'] <= 1e-12 and o['same'] == o['finished'] >= 6" <out.json
    printf '3 leave 0\n3 leave 1\n3 leave 2\n' >many.txt
    run kofn train X.npy y.npy -o model $net --epochs 100 -s gpd:m=2,n=2,p=1 --masterless \
        -e many.txt --patience 1
    [ "$status" -eq 4 ]
    [[ "$output" == *"of the 6 nodes"* ]]
}

epochs=150

# nodes WAY: how the nodes below are started; at[] has their addresses.
nodes() {
    images
    words=(train X.npy y.npy $net --epochs $epochs --momentum 0.5 -s gpd:m=2,n=1,p=1
        --masterless -n 4 --patience 100)
    at=()
    if [ "$1" = tcp ]; then
        read -ra at < <(py "import socket
s = [socket.create_server(('127.0.0.1', 0)) for _ in range(6)]
print(*['tcp://127.0.0.1:%d' % x.getsockname()[1] for x in s])")
    else
        for j in 0 1 2 3 4 5; do at[$j]=ipc://$BATS_TEST_TMPDIR/s$j; done
    fi
}

# node I: starts one of them in the background.
node() {
    local reach= j
    for j in 1 2 3 4 5; do
        [ "$j" = "$1" ] || reach="$reach,${at[$j]}"
    done
    "$KOFN" "${words[@]}" --port "${at[$1]}" --reach "${reach#,}" -o "m$1" --json \
        ${keep:+--checkpoint "$keep$1"} \
        >"o$1.json" 2>"e$1" 3>&- &
    pid[$1]=$!
}

# has_kept I...: these nodes have saved a state.
has_kept() {
    local i
    for i in "$@"; do
        ls kept$i/*.kept >/dev/null 2>&1 || return 1
    done
}

# ended I...: these have the weights of the plain training, equal to the bit.
ended() {
    local i first=$1
    for i in "$@"; do
        wait "${pid[$i]}" || { cat "e$i" "o$i.json"; return 1; }
        json "o['status'] == 'ok' and o['iterations'] == 6 * $epochs" <"o$i.json"
        diff -r "m$first" "m$i"
    done
    kofn train X.npy y.npy -o want $net --epochs $epochs --momentum 0.5 -q
    py "
for l in 'W1.npy', 'W2.npy':
    w = np.load('want/' + l)
    assert np.linalg.norm(np.load('m$first/' + l) - w) <= 1e-12 * np.linalg.norm(w), l"
}

# has_come I J: node I has saved a state, or node J has ended.
has_come() {
    local state
    has_kept "$1" || ! read -ra state 2>/dev/null <"/proc/${pid[$2]}/stat" ||
        [ "${state[2]}" = Z ]
}

# meet_signals: node 1 is killed in the training, and node 5 joins. When it has blocks,
# node 2 is asked to end; status is that of 2. Of four nodes, one may be behind at any
# time, and two others have to remain.
meet_signals() {
    for i in 1 2 3 4; do node $i; done
    wait_for has_computed "${pid[1]}" 2
    kill -9 "${pid[1]}" || true
    node 5 # without which there are too few to go on
    wait_for has_come 5 2
    kill -INT "${pid[2]}" || true
    status=0
    wait "${pid[2]}" || status=$?
}

lost_and_late() { # lost_and_late WAY
    for epochs in 150 600 2400 9600; do # the training may be over before it is met
        nodes $1
        words+=(--every 20)
        keep=kept # each its own
        meet_signals
        [ "$status" -eq 0 ] || break
        for i in 3 4; do wait "${pid[$i]}"; done
        kill -INT "${pid[5]}" || true # others may have been gone before it came
        wait "${pid[5]}" || true
        rm -rf m? s? kept?
    done
    [ "$status" -eq 130 ] || { echo "$status"; cat e2 o2.json; return 1; }
    ended 3 4 5
    [ ! -e m1 ]
    [ ! -e m2 ]
}

@test "masterless train: of 4 processes 1 dies, 1 leaves, 1 joins" {
    lost_and_late ipc
}

# bats test_tags=night
@test "masterless train, TCP: of 4 processes 1 dies, 1 leaves, 1 joins" {
    lost_and_late tcp
}

# bats test_tags=night
@test "masterless train: other nodes resume after the loss of all" {
    nodes ipc
    words+=(--every 20 --resume)
    keep=kept # each its own
    for i in 1 2 3 4; do node $i; done
    wait_for has_kept 1 2 3 4
    for i in 1 2 3 4; do kill -9 "${pid[$i]}"; done
    for i in 1 2 3 4; do
        wait "${pid[$i]}" || true
        rm -f "s$i"
        node $i
    done
    ended 1 2 3 4
}

@test "masterless train: threads resume their own files only" {
    images
    words="train X.npy y.npy -o model $net --epochs 20 --masterless --checkpoint kept --every 7"
    printf '60 leave 0\n60 leave 1\n60 leave 2\n60 leave 3\n' >events.txt
    run kofn $words -e events.txt --patience 1 -q
    [ "$status" -eq 4 ]
    run kofn $words -q
    [ "$status" -eq 2 ]
    [[ "$output" == *"--resume"* ]]
    run kofn $words --resume --momentum 0.5 --every 9 --seed 1 -q
    [ "$status" -eq 2 ]
    [[ "$output" == *"is of another training"*'; --momentum was "0" and is "0.5", --every was "7" and is "9"' ]]
    kofn $words --resume --verify --json >out.json 2>err
    json "o['rel_error'] <= 1e-12 and o['iterations'] == 120" <out.json
    grep -E '^going on from kept, after steps? [1-9][0-9]*( to [1-9][0-9]*)?$' err
    kofn $words --epochs 25 --resume --verify --json >more.json
    json "o['rel_error'] <= 1e-12 and o['iterations'] == 150" <more.json
    run kofn $words --resume -q
    [ "$status" -eq 2 ]
    [[ "$output" == *"is of step 1"*", and only 120 are wanted now"* ]] # 147 or 150
    words="$words --epochs 25"
    for f in kept/seat-0-*; do truncate -s 100 "$f"; done
    run kofn $words --resume -q
    [ "$status" -eq 0 ] || [[ "$output" == *"kept/seat-0-step-"*"damaged"* ]]
    run kofn train X.npy y.npy -o model $net --masterless --resume -q
    [ "$status" -eq 2 ]
    [[ "$output" == *"--checkpoint"* ]]
    run kofn train X.npy y.npy -o model $net --masterless --checkpoint X.npy -q
    [ "$status" -eq 2 ]
    [[ "$output" == *"X.npy: it is not a folder"* ]]
}

# bats test_tags=night
@test "masterless train: too many errors roll back to kept weights" {
    images
    words="train X.npy y.npy -o model $net --epochs 20 --masterless --checkpoint kept \
        --every 6 --errors probabilistic -q"
    printf '30 corrupt 1\n30 corrupt 2\n30 corrupt 3\n' >events.txt
    # it rolls back three times, or too few nodes without errors remain
    run kofn $words -e events.txt
    [ "$status" -eq 5 ] || [ "$status" -eq 4 ] || { echo "$status: $output"; return 1; }
    [ ! -e model ]
    kofn $words --resume --verify --json >out.json
    json "o['rel_error'] <= 1e-12 and o['iterations'] == 120" <out.json
}

# bats test_tags=night
@test "masterless train: ranks of every MPI train" {
    [ -z "$KOFN_SANITIZE" ] || skip "only the plain build is run under MPI"
    local flags rank
    images
    kofn train X.npy y.npy -o want $net --epochs 3 -q
    for mpi in openmpi mpich; do
        [ -e "$(dirname "$KOFN")/libkofn-mpi-$mpi.so" ] || continue
        flags= rank=PMI_RANK
        [ $mpi = mpich ] || flags="--oversubscribe" rank=OMPI_COMM_WORLD_RANK
        [ $mpi = mpich ] || [ "$(id -u)" != 0 ] || flags="$flags --allow-run-as-root"
        words="train X.npy y.npy $net --epochs 3 --masterless -n 4 -s gpd:m=2,n=1,p=1 --port mpi"
        run timeout 200 "mpirun.$mpi" $flags -n 4 \
            sh -c "exec '$KOFN' $words -q -o $mpi\$$rank"
        [ "$status" -eq 0 ] || { echo "$output"; return 1; }
        # the same arguments for all, and the same folder
        run timeout 200 "mpirun.$mpi" $flags -n 4 "$KOFN" $words -q -o $mpi
        [ "$status" -eq 0 ] || { echo "$output"; return 1; }
        [ "$(cd $mpi && echo *)" = "W1.npy W2.npy model.json" ]
        for i in 1 2 3; do diff -r ${mpi}0 $mpi$i; done
        py "
for m in '$mpi', '${mpi}0':
    for l in 'W1.npy', 'W2.npy':
        w = np.load('want/' + l)
        assert np.linalg.norm(np.load(m + '/' + l) - w) <= 1e-12 * np.linalg.norm(w), m"
    done
}

located="o['rel_error'] <= 1e-12 and o['finished'] >= 7 and o['left_out'] > 0 \
and o['decode'] == 'replicated' and {w['seat'] for w in o['wrong']} <= set([3]) and \
all(w['iterates'] > 0 for w in o['wrong']) and len(o['wrong']) > 0"

# bats test_tags=night
@test "masterless train: nodes with random errors are located" {
    images
    printf '2 corrupt 3\n' >one.txt
    with_patience "$located" "$KOFN" train X.npy y.npy -o model $net --epochs 3 \
        -s gpd:m=2,n=1,p=1 --masterless --momentum 0.5 --errors probabilistic -e one.txt --verify
}

@test "masterless train: wrong nodes are located, or it fails" {
    images
    printf '2 corrupt 3\n' >one.txt
    with_patience "$located" "$KOFN" train X.npy y.npy -o model $net --epochs 3 \
        -s gpd:m=2,n=1,p=1 --masterless --momentum 0.5 --errors adversarial -e one.txt --verify
    kofn train X.npy y.npy -o model $net --epochs 3 --masterless --errors adversarial \
        --verify --json >out.json
    json "o['rel_error'] <= 1e-12 and o['finished'] == 8 and o['left_out'] == 0 \
and o['liars'] == 0" <out.json
    run kofn train X.npy y.npy -o no $net --epochs 3 -s gpd:m=2,n=1,p=1 --masterless \
        --errors detect -e one.txt
    [ "$status" -eq 5 ]
    [[ "$output" == *disagree* ]]
    [ ! -e no ]
    run kofn train X.npy y.npy -o no $net --masterless --errors detect --decode distributed
    refused distributed
}

@test "masterless train: a node wrong at the end takes the others' weights" {
    epochs=3
    nodes unix
    printf '19 err 3 decode\n' >last.txt # after 18 steps
    words+=(-n 5 --errors adversarial -e last.txt)
    # a node that is behind neither decodes nor errs. A node that has confirmed its
    # result by three others ends, perhaps before it learns of another one
    for tries in 1 2 3 4 5 6 7 8 9 10; do
        for i in 1 2 3 4 5; do node $i; done
        ended 1 2 3 4 5
        ! grep -q '"wrong": \[{' o[1-5].json || break
        rm -r m[1-5]
    done
    py "
import json
o = [json.load(open(f'o{i}.json')) for i in range(1, 6)]
assert sum(x['outvoted'] for x in o) >= 1, o
assert any(x['wrong'] for x in o), o
assert all(w['seat'] == 3 for x in o for w in x['wrong']), o"
}

@test "masterless train: errors in every operation leave equal weights" {
    images
    printf '%s\n' '2 err 2 decode' '3 flip 1' '3 err 6 vector' '4 slow 3 3' \
        '4 err 0 update' '5 err 4 product' '5 err 5 encode' '6 err 7 memory' '6 normal 3' \
        >places.txt
    # no step waits for the comparison of blocks, so a short training may end before
    for epochs in 3 48; do
        kofn train X.npy y.npy -o model $net --epochs $epochs -n 9 -s gpd:m=2,n=2,p=1 \
            --masterless --errors adversarial --scrub 2 -e places.txt --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['finished'] == 9 and o['same'] == 9 \
and o['liars'] == 0 and len(o['wrong']) > 0 and o['back'] == 0" <out.json
        ! json "o['scrubs'] > 0" <out.json || return 0
    done
    false
}

# bats test_tags=asan
@test "masterless train: unsupported options are refused" {
    images
    run kofn train X.npy y.npy -o model $net --masterless --journal j
    refused "" "does not go with --masterless"
    run kofn train X.npy y.npy -o model $net --masterless --history nowhere/h.csv
    [ "$status" -eq 1 ]
    [[ "$output" == *"nowhere/h.csv: No such file"* ]]
    run kofn train X.npy y.npy -o model $net --masterless --scrub 3
    refused "--scrub compares" "give --errors"
    run kofn train X.npy y.npy -o model $net --masterless -w flip=0.1
    refused flip= "only fault= and where="
    for o in spread factor latency bandwidth; do
        run kofn train X.npy y.npy -o model $net --masterless -w $o=0.1 -w fault=0.1
        refused "--faults $o=:" "only fault= and where="
    done
    run kofn train X.npy y.npy -o model $net --masterless -w fault=0.1
    refused fault=0.1 "say where"
    run kofn train X.npy y.npy -o model $net --masterless -w fault=0.1,where=decode
    refused fault=0.1 "needs --errors"
    run kofn train X.npy y.npy -o model $net --masterless -w fault=0.1,where=decode+nowhere
    refused nowhere "none of encode"
    run kofn train X.npy y.npy -o model $net -w fault=0.1,where=decode
    refused fault=0.1 "is for nodes of --masterless"
    run kofn train X.npy y.npy -o model $net --masterless -s elastic:k=4
    refused elastic "use gpd"
    run kofn train X.npy y.npy -o model $net --masterless -s gc:d=3
    refused gc
    run kofn train X.npy y.npy -o model $net --decode replicated
    refused "--decode is for --masterless"
    [ ! -e model ]
}
