load helpers

@test "masterless: every node of a mesh of threads has the ranks" {
    kofn gen graph 500 4000 -o G.mtx --seed 2
    for d in auto replicated distributed; do
        kofn pagerank G.mtx --masterless --decode $d -o r.npy --verify --json >out.json
        json "o['status'] == 'ok' and o['rel_error'] <= 1e-12 and o['finished'] == 8 \
and o['spread'] == 0 and o['converged'] and ('$d' == 'auto' or o['decode'] == '$d')" <out.json
        kofn pagerank G.mtx -o want.npy -q
        py "assert abs(np.load('r.npy') - np.load('want.npy')).max() <= 1e-12"
    done
}

@test "masterless: nodes leave and join; too few are an error" {
    kofn gen graph 500 4000 -o G.mtx --seed 2
    printf '3 leave 0\n5 leave 7\n6 join\n9 leave 3\n' >events.txt
    # a joining node is there before the others have finished
    kofn pagerank G.mtx --masterless -e events.txt -t 1e-300 -m 500 --verify --json \
        >out.json
    json "o['rel_error'] <= 1e-12 and o['finished'] == 6 and o['spread'] == 0" <out.json
    printf '3 leave 0\n4 leave 1\n' >many.txt
    run kofn pagerank G.mtx --masterless -e many.txt -n 3 -s mds:k=2 --patience 0.5
    [ "$status" -eq 4 ]
    [[ "$output" == *"1 of the 2 nodes"* ]]
    words="pagerank G.mtx --masterless -s mds:k=3 --errors adversarial"
    for join in '' '2 join'; do # by then three would have made a step
        echo "$join" >late.txt
        run kofn $words -n 3 -e late.txt # not waited for
        [ "$status" -eq 4 ]
        [[ "$output" == *"4 nodes are needed"*"only 3 are available"*"use 4 nodes"* ]]
    done
    echo '1 join' >one.txt
    kofn $words -n 3 -e one.txt -t 1e-300 -m 50 -q # who joins is the fourth
    run kofn $words -n 3 -e one.txt -s mds-published:k=3,basis=chebyshev # that has no fourth seat
    [[ "$status" -eq 4 && "$output" == *"only 3 are available"* ]]
    printf '3 slow 0 5\n9 normal 0\n' >slow.txt
    kofn pagerank G.mtx --masterless -e slow.txt --verify --json >out.json
    json "o['rel_error'] <= 1e-12 and o['finished'] == 8" <out.json
}

# bats test_tags=asan
@test "masterless: power iteration agrees with NumPy" {
    py "
rng = np.random.default_rng(3); Q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
X = Q @ np.diag([-5] + list(np.linspace(1, 3, 59))) @ Q.T; np.save('X.npy', X)
np.save('q.npy', Q[:, 0])"
    kofn power X.npy --masterless -n 5 -s mds:k=3 -o v.npy --tol 1e-12 --verify --json >out.json
    json "abs(o['eigenvalue'] + 5) < 1e-10 and o['rel_error'] <= 1e-11" <out.json
    py "assert abs(abs(np.load('v.npy') @ np.load('q.npy')) - 1) < 1e-10"
    # numbers beyond float64 are bad input, with a coordinator and without
    for i in 1 2 3 4 5 6; do echo 1e308,1e308,1e308,1e308,1e308,1e308; done >large.csv
    for how in --masterless --verify; do
        run kofn power large.csv $how -n 5 -s mds:k=3 -o v.npy
        [ "$status" -eq 2 ]
    done
}

# node I OPTION...: starts one process of the mesh below in the background.
node() {
    local i=$1 reach=
    shift
    for j in 1 2 3 4 5; do
        [ "$j" = "$i" ] || reach="$reach,ipc://$BATS_TEST_TMPDIR/s$j"
    done
    "$KOFN" pagerank G.mtx --masterless -n 4 -s mds:k=2 -t 1e-300 -m 2000 \
        --patience 30 --port "ipc://$BATS_TEST_TMPDIR/s$i" --reach "${reach#,}" \
        -o "r$i.npy" --json "$@" >"o$i.json" 2>"e$i" 3>&- &
    pid[$i]=$!
}

# bats test_tags=night
@test "masterless: one process is killed, one stopped, one joins late" {
    kofn gen graph 20000 100000 -o G.mtx --seed 3
    for i in 1 2 3 4; do node $i; done
    wait_for has_computed "${pid[1]}"
    kill -9 "${pid[1]}"
    kill -STOP "${pid[2]}"
    node 5
    wait_for has_computed "${pid[3]}" 8 # those who go on are far from the end
    kill -CONT "${pid[2]}"
    for i in 2 3 4 5; do
        wait "${pid[$i]}" || { cat "e$i" "o$i.json"; return 1; }
        json "o['status'] == 'ok' and o['iterations'] == 2000" <"o$i.json"
    done
    kofn pagerank G.mtx -t 1e-300 -m 2000 -q -o want.npy
    # a node that repeats an iterate has its own rounding
    py "
w = np.load('want.npy')
for i in 2, 3, 4, 5:
    assert np.linalg.norm(np.load(f'r{i}.npy') - w) <= 1e-12 * np.linalg.norm(w), i"
}

@test "masterless: nodes with different problems do not mix" {
    kofn gen graph 200 1000 -o G.mtx --seed 3
    kofn gen graph 200 1000 -o H.mtx --seed 4
    a="ipc://$BATS_TEST_TMPDIR/a" b="ipc://$BATS_TEST_TMPDIR/b"
    "$KOFN" pagerank H.mtx --masterless -n 2 -s mds:k=2 --patience 2 \
        --port "$b" --reach "$a" 2>e 3>&- &
    run kofn pagerank G.mtx --masterless -n 2 -s mds:k=2 --patience 2 \
        --port "$a" --reach "$b"
    [ "$status" -eq 4 ]
    [[ "$output" == *"1 of the 2 nodes"* ]]
    wait $! && return 1
    true
}

# locked: a process holds the lock of the folder.
locked() {
    grep -q ":$(stat -c %i kept/lock 2>/dev/null) " /proc/locks
}

@test "masterless: a folder that a process uses is refused to others, until it is killed" {
    "$KOFN" gen matrix 40 40 -o A.npy
    "$KOFN" power A.npy --masterless -n 2 -s mds:k=2 --port "ipc://$PWD/s" --checkpoint kept \
        -q 2>/dev/null 3>&- &
    wait_for locked
    for how in "" --resume "--port ipc://$PWD/t"; do
        run kofn power A.npy --masterless -n 3 -m 5 --checkpoint kept $how
        [ "$status" -eq 1 ]
        [ "$output" = "kofn: --checkpoint kept: another kofn is at work there; give another folder" ]
    done
    kill -9 $!
    wait $! || true
    kofn power A.npy --masterless -n 3 -m 5 --checkpoint kept -q
}

@test "masterless: ranks of MPI compute" {
    [ -n "$KOFN_CC" ] || skip "only the plain build is run under MPI"
    ls "$(dirname "$KOFN")"/libkofn-mpi-openmpi.so || skip "built without Open MPI"
    kofn gen graph 500 4000 -o G.mtx --seed 2
    run timeout 60 mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 \
        "$KOFN" pagerank G.mtx --masterless -n 3 -s mds:k=2 --port mpi -o r.npy -q \
        --checkpoint kept
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    for i in 0 1 2; do ls kept/seat-$i-*.kept; done # they share the folder
    kofn pagerank G.mtx -o want.npy -q
    py "assert abs(np.load('r.npy') - np.load('want.npy')).max() <= 1e-12"
}

# bats test_tags=asan
@test "masterless: unsupported options are refused" {
    kofn gen graph 20 100 -o G.mtx
    run kofn pagerank G.mtx --masterless --port sim
    refused sim
    run kofn pagerank G.mtx --masterless --journal j
    refused journal
    run kofn pagerank G.mtx --masterless -w straggle=0.1
    refused faults
    run kofn pagerank G.mtx --decode replicated
    refused decode
    run kofn pagerank G.mtx --masterless --reach tcp://127.0.0.1:1
    refused reach
    run kofn pagerank G.mtx --masterless -s elastic:groups=2
    refused elastic
    run kofn pagerank G.mtx --masterless --decode best
    refused best
    run kofn pagerank G.mtx --confirm 2
    refused confirm
    run kofn pagerank G.mtx --masterless --confirm 0
    refused confirm
}

located="o['rel_error'] <= 1e-12 and o['finished'] >= 6 and o['left_out'] > 0 \
and o['decode'] == 'replicated' and o['alone'] == 0 and {w['seat'] for w in o['wrong']} <= set([3, 5]) and \
all(w['iterates'] > 0 for w in o['wrong']) and len(o['wrong']) > 0"

# bats test_tags=night
@test "masterless: nodes with random errors are located" {
    export OPENBLAS_NUM_THREADS=1
    kofn gen graph 500 4000 -o G.mtx --seed 2
    printf '1 corrupt 3\n4 corrupt 5\n' >two.txt
    with_patience "$located" "$KOFN" pagerank G.mtx --masterless -n 8 -s mds:k=4 \
        --errors probabilistic -e two.txt -o r.npy --verify
}

@test "masterless: nodes with wrong partial products are located, or the run fails" {
    export OPENBLAS_NUM_THREADS=1
    kofn gen graph 500 4000 -o G.mtx --seed 2
    printf '1 corrupt 3\n4 corrupt 5\n' >two.txt
    with_patience "$located" "$KOFN" pagerank G.mtx --masterless -n 8 -s mds:k=4 \
        --errors adversarial -e two.txt -o r.npy --verify
    kofn pagerank G.mtx --masterless -n 8 -s mds:k=4 --errors adversarial \
        --verify --json >out.json
    json "o['finished'] == 8 and o['left_out'] == 0 and o['liars'] == 0" <out.json
    run kofn pagerank G.mtx --masterless -n 8 -s mds:k=4 --errors detect -e two.txt -o no.npy
    [ "$status" -eq 5 ]
    [[ "$output" == *disagree* ]]
    [ ! -e no.npy ]
    run kofn pagerank G.mtx --masterless --errors detect --decode distributed
    refused distributed
    run kofn pagerank G.mtx --masterless -e two.txt
    refused two.txt "only with --errors"
}

# Nodes that need more than one other compute such iterates from the matrix, unless the
# nodes end before.
# bats test_tags=night
@test "masterless: four wrong nodes of eight are outvoted, or the run fails" {
    export OPENBLAS_NUM_THREADS=1
    kofn gen graph 500 4000 -o G.mtx --seed 2
    printf '2 corrupt 1\n2 corrupt 3\n2 corrupt 5\n2 corrupt 6\n' >four.txt
    local words="pagerank G.mtx --masterless -n 8 -s mds:k=4 --errors adversarial -e four.txt"
    run kofn $words --confirm 1
    [ "$status" -eq 5 ]
    for try in 1 2 3 4; do
        run kofn $words --max-iter 2 --verify --json -q
        [ "$status" -eq 5 ] || break
    done
    [ "$status" -eq 0 ]
    json "o['rel_error'] <= 1e-12" <<<"$output"
}

# Cuts the newest file of a seat that has an older one.
cut_newest() {
    local files=(kept/seat-$1-*.kept)
    [ "${#files[@]}" -lt 2 ] || truncate -s 100 "${files[-1]}"
}

# newest N: the first and the last step of the newest files that N seats have kept.
newest() {
    local i files
    for ((i = 0; i < $1; i++)); do
        files=(kept/seat-$i-*.kept)
        [[ ${files[-1]} =~ step-0*([0-9]+)[.]kept$ ]] && echo "${BASH_REMATCH[1]}"
    done | sort -n | sed -n '1p;$p' | xargs
}

# says_from FIRST LAST FILE: the file has one line that says so.
says_from() {
    local words=" $1"
    [ "$1" = "$2" ] || words="s $1 to $2"
    [ "$(grep 'going on' "$3")" = "going on from kept, after iteration$words" ]
}

# All nodes leave, and others resume, with the same scheme or another.
kept_iterates() {
    local words="$1 --masterless --tol 1e-300 --max-iter 40 --checkpoint kept -o v.npy"
    printf '20 leave %d\n' 0 1 2 3 >leave.txt
    run kofn $words -n 4 -s elastic:k=2 -e leave.txt --patience 1 -q
    [ "$status" -eq 4 ]
    run kofn $words -n 4 -s elastic:k=2 -q
    refused "--resume"
    run kofn $words -n 4 -s elastic:k=2 --resume --max-iter 41 -q
    refused "is of another run or release; give the same data" \
        'or another folder; --max-iter was "40" and is "41"'
    cp -r kept was
    says=$(newest 4)
    kofn $words -n 4 -s elastic:k=2 --resume 2>err
    says_from $says err
    for code in "-n 4 -s elastic:k=2" "-n 3 -s elastic:k=3" "-n 6 -s mds:k=4"; do
        rm -rf kept && cp -r was kept
        for i in 0 1 2 3; do cut_newest $i; done
        kofn $words $code --resume --verify --json >out.json 2>err
        grep '^kofn: kept/seat-.*damaged.* going on with the states* before .*, after iteration' err
        json "o['rel_error'] <= 1e-12 and o['iterations'] == 40" <out.json
        [ "$(ls kept | grep -c damaged)" -ge 1 ]
    done
}

@test "masterless: other nodes resume a power iteration from kept iterates" {
    py "S=np.random.default_rng(1).random((40,40)); S+=S.T; np.save('S.npy', S+20*np.eye(40))"
    kept_iterates "power S.npy"
}

# bats test_tags=night
@test "masterless: other nodes resume PageRank from kept iterates" {
    py "r=np.random.default_rng(2)
open('g.txt','w').writelines('%d %d\n' % tuple(e) for e in r.integers(0,50,(300,2)))"
    kept_iterates "pagerank g.txt"
}
