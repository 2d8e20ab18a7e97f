load helpers

# killed DONE WORDS...: runs the command, which would never end, and kills it when its
# checkpoint in C has DONE rounds or iterations. Sets $at to the checkpoint's number and
# $finished to the number of rounds.
killed() {
    local want=$1 pid
    shift
    "$KOFN" "$@" -w straggle=1,delay=0.01 --checkpoint C --journal j -q &
    pid=$!
    wait_for has_kept "$want"
    kill -KILL $pid
    wait $pid 2>/dev/null && status=0 || status=$?
    [ "$status" -eq 137 ]
    at=$(kept)
    [ "$at" -ge "$want" ]
    finished=$(grep -c '"begin"' j)
}

has_kept() {
    [ "$(kept)" -ge "$1" ]
}

kept() {
    local done=$(sed -n 's/.*"done": \([0-9]*\).*/\1/p' C/checkpoint.json 2>/dev/null)
    echo "${done:-0}"
}

# resumed ROUNDS WORDS...: resumes for five iterations of ROUNDS rounds each. At most
# one iteration was done twice.
resumed() {
    local each=$1
    shift
    kofn "$@" --checkpoint C --resume --json >out.json
    json "o['resumed_after'] == $at and o['iterations'] == $at + 5 \
and o['rounds'] == 5 * $each and 0 <= $finished - $at * $each <= $each" <out.json
}

# bats test_tags=asan
@test "checkpoint: a killed PageRank resumes with the same iterates" {
    kofn gen graph 300 2000 -o G.mtx --seed 2 -q
    killed 4 pagerank G.mtx -o rank.npy -m 1000000 --tol 1e-300
    [ ! -e rank.npy ]
    job=$(grep '"job"' C/checkpoint.json)
    words="pagerank G.mtx -m $((at + 5)) --tol 1e-300"
    kofn $words -o whole.npy -q
    touch C/.kofn-4711-0.tmp # as if killed while writing
    resumed 1 $words -o rank.npy --verify
    [ -z "$(find C -name '.kofn-*')" ]
    json "o['rel_error'] <= 1e-12 and '\"%s\"' % o['job'] in '$job'" <out.json
    [ "$job" = "$(grep '"job"' C/checkpoint.json)" ]
    py "assert abs(np.load('whole.npy') - np.load('rank.npy')).sum() <= 1e-12"
    # finished iterations are not repeated
    kofn $words -o again.npy --checkpoint C --resume --json |
        json "o['rounds'] == 0 and o['iterations'] == o['resumed_after'] == $at + 5"
    cmp rank.npy again.npy
    # more iterations continue from there
    kofn pagerank G.mtx --checkpoint C --resume --json |
        json "o['converged'] and o['change'] < 1e-10 and o['iterations'] >= $at + 5"
}

@test "checkpoint: a killed regression resumes (every optimizer)" {
    kofn gen matrix 300 9 -o X.npy --seed 3 -q
    kofn gen vector 300 -o y.npy --seed 4 -q
    while read -r rounds words; do
        words="regress X.npy y.npy -s elastic --tol 1e-300 $words --iterations"
        rm -rf C h.csv
        killed 3 $words 1000000 --history h.csv
        kofn $words $((at + 5)) -o whole.npy -q
        if [ "$rounds" -gt 0 ]; then
            resumed "$rounds" $words $((at + 5)) -o w.npy --history h.csv
        else # rounds to measure L, or along lines, besides
            kofn $words $((at + 5)) -o w.npy --history h.csv --checkpoint C --resume -q
        fi
        py "
a, b = np.load('whole.npy'), np.load('w.npy')
assert abs(a - b).max() <= 1e-12 * abs(a).max(), abs(a - b).max()
h = [l.split(',')[0] for l in open('h.csv')]
measured = not any(w in '$words' for w in ('--step', 'exact'))
assert h == ['iteration'] + [str(i) for i in range(1 - measured, $at + 6)], h"
    done <<'WORDS'
1 -s pcr:r=4 --step 0.1 --optimizer nesterov
2 --step 0.1 --optimizer nesterov
2 --step 0.05 --optimizer sgd
0 --line-search exact
0 --optimizer gd
WORDS
}

@test "checkpoint: power iterations and repeated products resume" {
    kofn gen matrix 40 40 -o S.npy -q
    kofn gen matrix 40 3 -o B.npy -q
    killed 3 power S.npy -m 1000000 --tol 1e-300
    resumed 1 power S.npy -m $((at + 5)) --tol 1e-300 --verify
    json "o['rel_error'] < 1e-12" <out.json
    rm -r C
    killed 3 matmul S.npy B.npy -r 1000000
    kofn matmul S.npy B.npy -r $((at + 5)) -o C.npy --checkpoint C --resume --verify --json |
        json "o['resumed_after'] == $at and o['rounds'] == 5 and o['rel_error'] < 1e-12"
    kofn matmul S.npy B.npy -r $((at + 5)) -o D.npy --checkpoint C --resume --verify --json |
        json "o['rounds'] == 0 and o['rel_error'] < 1e-12"
    cmp C.npy D.npy
}

@test "checkpoint: another job's checkpoint is refused with the reason" {
    kofn gen graph 100 500 -o G.mtx --seed 1 -q
    kofn gen graph 100 500 -o H.mtx --seed 2 -q
    kofn gen matrix 30 4 -o X.npy -q
    kofn train X.npy --autoencoder --hidden 5 --epochs 1 --checkpoint T -o m -q
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
pagerank G.mtx --seed 3|--seed|"3"
pagerank H.mtx|input 1|was
WORDS
    for hidden in 5 2-5; do # both have 49 weights
        run kofn train X.npy --autoencoder --hidden $hidden --epochs 2 -o m --checkpoint T --resume
        [ "$hidden" = 5 ] || refused --layers 4-5-4 4-2-5-4
    done
    kofn pagerank G.mtx --checkpoint E --resume 2>err
    grep -q "holds no checkpoint; starting" err
    kofn pagerank G.mtx --checkpoint C --resume -p sim -w straggle=0.1 --tol 1e-12 -q
    # folders of something else, and states without a manifest
    run kofn pagerank G.mtx --checkpoint m --resume
    refused model.json "another folder"
    [ ! -e m/lock ]
    run kofn pagerank G.mtx --masterless -n 2 --checkpoint C --resume
    refused checkpoint.json "another folder"
    cp -r C D
    rm D/checkpoint.json D/before.json
    run kofn pagerank G.mtx --checkpoint D
    refused state- "another folder"
    run kofn pagerank G.mtx --checkpoint nowhere/C
    [ "$status" -eq 1 ]
    [[ "$output" == *nowhere/C* ]]
}

@test "checkpoint: a job resumes with another code or other workers" {
    kofn gen graph 100 500 -o G.mtx -q
    kofn pagerank G.mtx -t 1e-14 -m 1000 -o want.npy -q
    kofn pagerank G.mtx -n 8 -s elastic:k=4 -m 5 --checkpoint C -q
    for code in "-n 6 -s elastic:k=4" "-n 4 -s mds:k=3" "-n 2 -s uncoded"; do
        at=$($PYTHON -c 'import json; print(json.load(open("C/checkpoint.json"))["done"])')
        kofn pagerank G.mtx $code -m $((at + 5)) --checkpoint C --resume --json 2>err >out.json
        json "o['resumed_after'] == $at and o['iterations'] == $at + 5" <out.json
        grep -q "another code: --scheme was .* is .*going on" err
    done
    # the newest state is damaged, and the one before belongs to another code as well
    state=$($PYTHON -c 'import json; print(json.load(open("C/checkpoint.json"))["files"][0]["name"])')
    truncate -s 200 "C/$state"
    kofn pagerank G.mtx -n 5 -s elastic:k=2 -t 1e-14 -m 1000 --checkpoint C --resume -o r.npy -q 2>/dev/null
    py "assert abs(np.load('r.npy') - np.load('want.npy')).max() <= 1e-13"
    py "
r = np.random.default_rng(1)
X, Y = r.standard_normal((60, 5)), r.integers(0, 3, 60)
np.save('X.npy', X)
np.save('y.npy', X @ np.arange(1., 6))
np.save('Y.npy', Y.astype('i8'))"
    kofn regress X.npy y.npy --no-intercept -s pcr:r=4 -n 7 --iterations 5 --step 0.1 --checkpoint D -q
    kofn regress X.npy y.npy --no-intercept -s elastic:k=2,cut=columns -n 3 --iterations 2000 --step 0.1 --tol 1e-14 --checkpoint D --resume -o w.npy -q
    py "assert abs(np.load('w.npy').ravel() - np.arange(1., 6)).max() < 1e-10"
    kofn regress X.npy y.npy --no-intercept -s gc:d=2 -n 4 --iterations 501 --step 0.1 --tol 1e-14 --checkpoint D --resume --json |
        json "o['resumed_after'] > 5"
    kofn train X.npy Y.npy -o want --layers 5-4-3 --epochs 4 -s gpd:m=2,n=1,p=1 -n 6 -q
    kofn train X.npy Y.npy -o half --layers 5-4-3 --epochs 2 -s gpd:m=2,n=1,p=1 -n 6 --checkpoint E -q
    kofn train X.npy Y.npy -o model --layers 5-4-3 --epochs 4 -s gpd:m=1,n=2,p=1 -n 5 --checkpoint E --resume -q
    py "
import glob
for f in glob.glob('want/*.npy'):
    a, b = np.load(f), np.load(f.replace('want', 'model'))
    assert abs(a - b).max() <= 1e-10 * abs(a).max(), f"
}

# bats test_tags=asan
@test "checkpoint: a damaged state is replaced by the one before" {
    kofn gen graph 100 500 -o G.mtx -q
    kofn pagerank G.mtx -o want.npy -q
    kofn pagerank G.mtx --checkpoint C -m 5 -q
    cp -r C good
    state=$($PYTHON -c 'import json; print(json.load(open("C/checkpoint.json"))["files"][0]["name"])')
    other="state-$((1 - ${state//[^01]/})).npy"
    for harm in "truncate -s 200 C/$state" "rm C/$state" \
        "printf x | dd of=C/$state bs=1 seek=300 conv=notrunc status=none" \
        "cp C/$other C/$state" "sed -i 's/\"done\": 5/\"done\": -5/' C/checkpoint.json" \
        "sed -i '0,/$state/s,$state,../$state,' C/checkpoint.json" \
        "truncate -s 100 C/checkpoint.json" "rm C/checkpoint.json"; do
        rm -rf C
        cp -r good C
        eval "$harm"
        run kofn pagerank G.mtx --checkpoint C --resume -q -o r.npy
        [ "$status" -eq 0 ] || { echo "$harm: $output"; return 1; }
        [[ "$output" == *"C/"*"going on with the state before it"*"iteration 4"* ]]
        [[ "$output" == *"is damaged or was changed: "* || "$harm" == "rm C/checkpoint.json" ]]
        py "assert abs(np.load('r.npy') - np.load('want.npy')).max() <= 1e-15"
    done
}

@test "checkpoint: a wholly damaged checkpoint is refused" {
    kofn gen graph 100 500 -o G.mtx -q
    kofn pagerank G.mtx --checkpoint C -m 5 -q
    cp -r C good
    for harm in "truncate -s 100 C/checkpoint.json C/before.json" "truncate -s 0 C/*.json" \
        "rm C/state-0.npy C/state-1.npy" "truncate -s 200 C/state-0.npy C/state-1.npy"; do
        rm -rf C
        cp -r good C
        eval "$harm"
        run kofn pagerank G.mtx --checkpoint C --resume
        [ "$status" -eq 5 ]
        [ "${#lines[@]}" -eq 1 ]
        [[ "$output" == *"C/"*" is damaged or was changed: "*"; remove the folder to restart" ]]
    done
}

@test "checkpoint: two jobs cannot use one folder" {
    kofn gen graph 100 500 -o G.mtx -q
    "$KOFN" pagerank G.mtx -m 1000000 --tol 1e-300 --checkpoint C -q &
    pid=$!
    wait_for has_kept 1
    run kofn pagerank G.mtx --checkpoint C --resume
    kill -KILL $pid
    wait $pid || true
    [ "$status" -eq 1 ]
    [[ "$output" == *"another kofn"* ]]
}

@test "checkpoint: a full disk is reported; job and old state survive" {
    kofn gen matrix 40 40 -o S.npy -q
    kofn gen matrix 40 300 -o B.npy -q
    # before any work
    run bash -c "ulimit -f 0; trap '' XFSZ; exec '$KOFN' matmul S.npy B.npy --checkpoint F"
    [ "$status" -eq 1 ]
    [[ "$output" == *"--checkpoint F"*"File too large"* ]]
    # during the work: the states, 96 kB, do not fit, the message does
    run bash -c "ulimit -f 50; trap '' XFSZ; exec '$KOFN' matmul S.npy B.npy -r 3 \
        --checkpoint C --json -q"
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == *"--checkpoint C"*"File too large"*"after round or iteration 1 was not saved; that of 0 remains"* ]]
    [[ "$output" == *'"status": "failed"'* && "$output" == *'"rounds": 3'* ]]
    [ -z "$(find C -name '.kofn-*')" ]
    [ "$(kept)" -eq 0 ]
    kofn matmul S.npy B.npy -r 3 --checkpoint C --resume -o got.npy -q
    py "
want = np.load('S.npy') @ np.load('B.npy')
assert abs(np.load('got.npy') - want).max() <= 1e-12 * abs(want).max()"
}

@test "checkpoint: a file in place of the folder is refused" {
    kofn gen matrix 40 40 -o S.npy -q
    run kofn matmul S.npy S.npy --checkpoint S.npy
    [ "$status" -eq 1 ]
    [ "$output" = "kofn: --checkpoint S.npy: Not a directory; name a folder" ]
}

# Killed at every change of a file, in two successive runs, and then left alone: the
# history has each line once, and the result equals that of an undisturbed run.
@test "checkpoint: a job killed twice at any write loses nothing" {
    [ -n "$KOFN_SANITIZE" ] && skip "a sanitizer does not run under ptrace"
    kofn gen matrix 40 3 -o X.npy --seed 3 -q
    kofn gen vector 40 -o y.npy --seed 4 -q
    words="regress X.npy y.npy -s uncoded -p sim -n 2 --tol 1e-300 --step 0.1 --iterations 4"
    kofn $words -o whole.npy --history whole.csv -q
    for n in $(seq 3 2 200); do
        rm -rf C h.csv w.npy
        for again in 1 2 3; do
            limit=$n
            [ "$again" -eq 3 ] && limit=1000000
            code=0
            OPENBLAS_NUM_THREADS=1 "$KOFN_KILL_AT_WRITE" "$limit" "$KOFN" $words -o w.npy \
                --history h.csv --checkpoint C --resume -q 2>err || code=$?
            [ "$code" -ne 77 ] || skip "processes may not be traced here"
            [ "$code" -eq 0 ] || [ "$code" -eq 137 ] || { cat err; false; }
            [ "$again" -lt 3 ] || [ "$code" -eq 0 ]
            [ "$again" -gt 1 ] || first=$code
        done
        cmp w.npy whole.npy
        cmp <(cut -d, -f1-5 h.csv) <(cut -d, -f1-5 whole.csv)
        [ "$first" -eq 137 ] || break # there are no more changes than that
    done
    [ "$n" -gt 20 ]
    [ "$first" -eq 0 ]
}
