load helpers

# killed DONE WORDS...: the command, killed once its checkpoint in C is of DONE
# rounds or iterations; how many rounds it had finished is then in $finished.
killed() {
    local want=$1 pid
    shift
    "$KOFN" "$@" -w straggle=1,delay=0.01 --checkpoint C --journal j -q &
    pid=$!
    for _ in $(seq 600); do
        [ "$(kept)" -ge "$want" ] && break
        sleep 0.02
    done
    kill -KILL $pid
    wait $pid 2>/dev/null && status=0 || status=$?
    [ "$status" -eq 137 ]
    finished=$(grep -c '"begin"' j)
}

kept() {
    $PYTHON -c 'import json; print(json.load(open("C/checkpoint.json"))["done"])' 2>/dev/null || echo 0
}

# resumed MOST ROUNDS WORDS...: goes on, with at most MOST rounds done twice,
# where an iteration takes ROUNDS.
resumed() {
    local most=$1 each=$2
    shift 2
    kofn "$@" --checkpoint C --resume --json >out.json
    finished=$finished most=$most each=$each json "(lambda e: \
o['resumed_after'] >= 3 and o['iterations'] == o['resumed_after'] + o['rounds'] // int(e['each']) \
and int(e['finished']) - o['resumed_after'] * int(e['each']) <= int(e['most']))\
(__import__('os').environ)" <out.json
}

@test "PageRank that was killed goes on, and makes the same iterates" {
    kofn gen graph 300 2000 -o G.mtx --seed 2 -q
    kofn pagerank G.mtx -o whole.npy --json >whole.json
    killed 4 pagerank G.mtx -o rank.npy
    [ ! -e rank.npy ]
    job=$(grep '"job"' C/checkpoint.json)
    resumed 1 1 pagerank G.mtx -o rank.npy --verify
    [ "$job" = "$(grep '"job"' C/checkpoint.json)" ]
    json "o['rel_error'] <= 1e-12 and o['converged']" <out.json
    py "
import json
a, b = np.load('whole.npy'), np.load('rank.npy')
assert abs(a - b).sum() <= 1e-12
a, b = json.load(open('whole.json')), json.load(open('out.json'))
assert a['iterations'] == b['iterations'] and b['job'] == '$job'.split('\"')[3]"
    # what is finished is not done again
    kofn pagerank G.mtx -o again.npy --checkpoint C --resume --json |
        json "o['rounds'] == 0 and o['converged'] and o['iterations'] == o['resumed_after']"
    cmp rank.npy again.npy
    # and goes on when more is asked for
    kofn pagerank G.mtx --tol 1e-13 --checkpoint C --resume --json |
        json "o['rounds'] > 0 and o['change'] < 1e-13"
}

@test "regressions that were killed go on, with every optimizer" {
    kofn gen matrix 300 9 -o X.npy --seed 3 -q
    kofn gen vector 300 -o y.npy --seed 4 -q
    while read -r rounds words; do
        words="regress X.npy y.npy --iterations 12 --tol 1e-300 $words"
        rm -rf C h.csv
        kofn $words -o whole.npy -q
        killed 3 $words --history h.csv
        if [ "$rounds" -gt 0 ]; then
            resumed "$rounds" "$rounds" $words -o w.npy --history h.csv
        else
            kofn $words -o w.npy --history h.csv --checkpoint C --resume -q
        fi
        py "
a, b = np.load('whole.npy'), np.load('w.npy')
assert abs(a - b).max() <= 1e-12 * abs(a).max(), abs(a - b).max()
h = [l.split(',')[0] for l in open('h.csv')]
assert h == ['iteration'] + [str(i + 1) for i in range(12)], h"
    done <<'WORDS'
1 -s gc:d=3 --step 0.1
1 -s pcr:r=4 --step 0.1 --optimizer nesterov
2 --step 0.1 --optimizer nesterov
2 --step 0.05 --optimizer sgd
0 --line-search exact
0
WORDS
}

@test "power iterations and repeated products go on" {
    kofn gen matrix 40 40 -o S.npy -q
    kofn gen matrix 40 3 -o B.npy -q
    killed 3 power S.npy -m 12
    kofn power S.npy -m 12 -o v.npy --checkpoint C --resume --verify --json |
        json "o['iterations'] == 12 and o['resumed_after'] + o['rounds'] == 12 and o['rel_error'] < 1e-12"
    rm -r C
    killed 3 matmul S.npy B.npy -r 12
    kofn matmul S.npy B.npy -r 12 -o C.npy --checkpoint C --resume --verify --json |
        json "o['resumed_after'] + o['rounds'] == 12 and o['rel_error'] < 1e-12"
    kofn matmul S.npy B.npy -r 12 -o D.npy --checkpoint C --resume --verify --json |
        json "o['rounds'] == 0 and o['rel_error'] < 1e-12"
    cmp C.npy D.npy
}

@test "who is another job does not go on, and is told why" {
    kofn gen graph 100 500 -o G.mtx --seed 1 -q
    kofn gen graph 100 500 -o H.mtx --seed 2 -q
    kofn pagerank G.mtx --checkpoint C -q
    run kofn pagerank G.mtx --checkpoint C
    refused C --resume
    run kofn pagerank G.mtx --resume
    refused --checkpoint
    while IFS='|' read -r words what was; do
        run kofn $words --checkpoint C --resume
        refused "$what" "$was"
    done <<'WORDS'
pagerank G.mtx -d 0.9|--damping|0.85
pagerank G.mtx -n 9|--scheme|elastic
pagerank G.mtx -s uncoded|--scheme|uncoded
pagerank G.mtx --seed 3|--seed|"3"
pagerank H.mtx|input 1|was
WORDS
    kofn pagerank G.mtx --checkpoint E --resume 2>err
    grep -q "holds no checkpoint yet" err
    kofn pagerank G.mtx --checkpoint C --resume -p sim -w straggle=0.1 --tol 1e-12 -q
    run kofn pagerank G.mtx --checkpoint nowhere/C
    [ "$status" -eq 1 ]
    [[ "$output" == *nowhere/C* ]]
}

@test "a damaged checkpoint is refused, and an old one is not mistaken for new" {
    kofn gen graph 100 500 -o G.mtx -q
    kofn pagerank G.mtx --checkpoint C -m 5 -q
    cp -r C good
    state=$($PYTHON -c 'import json; print(json.load(open("C/checkpoint.json"))["state"])')
    for harm in "truncate -s 100 C/checkpoint.json" "truncate -s 0 C/checkpoint.json" \
        "truncate -s 200 C/$state" "rm C/$state" \
        "printf x | dd of=C/$state bs=1 seek=300 conv=notrunc status=none" \
        "sed -i 's/\"done\": 5/\"done\": -5/' C/checkpoint.json" \
        "sed -i 's,$state,../$state,' C/checkpoint.json"; do
        rm -rf C
        cp -r good C
        eval "$harm"
        run kofn pagerank G.mtx --checkpoint C --resume
        refused damaged C/
    done
    # the state before it lies there still, and is not what is gone on with
    rm -rf C
    cp -r good C
    cp "C/state-$((1 - ${state//[^01]/})).npy" "C/$state"
    run kofn pagerank G.mtx --checkpoint C --resume
    refused damaged
}

@test "two do not work in one folder" {
    kofn gen graph 100 500 -o G.mtx -q
    "$KOFN" pagerank G.mtx -w straggle=1,delay=0.05 --checkpoint C -q &
    pid=$!
    for _ in $(seq 200); do [ "$(kept)" -ge 1 ] && break; sleep 0.02; done
    run kofn pagerank G.mtx --checkpoint C --resume
    kill -KILL $pid
    wait $pid || true
    [ "$status" -eq 1 ]
    [[ "$output" == *"another kofn"* ]]
}

@test "a full disk: told, the job goes on, what was kept is whole" {
    kofn gen matrix 40 40 -o S.npy -q
    kofn gen matrix 40 300 -o B.npy -q
    kofn matmul S.npy B.npy -o want.npy -q
    # before any work
    run bash -c "ulimit -f 0; trap '' XFSZ; exec '$KOFN' matmul S.npy B.npy --checkpoint F"
    [ "$status" -eq 1 ]
    [[ "$output" == *"--checkpoint F"*"File too large"* ]]
    # in the middle of it: the states, 96 kB, do not fit, what says so does
    run bash -c "ulimit -f 50; trap '' XFSZ; exec '$KOFN' matmul S.npy B.npy -r 3 \
        --checkpoint C --json -q"
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == *"--checkpoint C"*"File too large"* ]]
    [[ "$output" == *'"status": "failed"'* && "$output" == *'"rounds": 3'* ]]
    [ -z "$(find C -name '.kofn-*')" ] && [ "$(kept)" -eq 0 ]
    kofn matmul S.npy B.npy -r 3 --checkpoint C --resume -o got.npy -q
    cmp got.npy want.npy
}
