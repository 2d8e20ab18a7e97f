load helpers

inputs() {
    kofn gen matrix 400 12 -o X.npy --seed 3 -q
    kofn gen vector 400 -o y.npy --seed 4 -q
    py "y=np.load('y.npy'); np.save('labels.npy', (y > 0).astype(float)); np.save('counts.npy', np.floor(np.abs(2*y)))"
}

@test "every scheme that regresses finds the least squares" {
    inputs
    for s in elastic:k=4 elastic:k=4,cut=columns pcr:r=4 pcr:r=3,layout=paper gc:d=3 cgc:d=3 g-cgc:d=3 \
        agc g-agc bcc replication; do
        for port in threads sim; do
            kofn regress X.npy y.npy -o w.npy -s $s -p $port -w straggle=0.1 \
                --verify --json >out.json
            json "o['rel_error'] <= 1e-10 and o['converged']" <out.json
            json "o['messages'] > 0 and o['scalars_received'] > 0" <out.json
            json "len(o['per_iteration']) == o['iterations']" <out.json
            json "all(k in o for k in ('objective', 'test_objective', \
'gradient_norm', 'recovery_threshold'))" <out.json
            py "X=np.load('X.npy'); y=np.load('y.npy'); w=np.load('w.npy')
assert abs(w-np.linalg.lstsq(X,y,rcond=None)[0]).max() < 1e-7"
        done
    done
}

@test "losses, descents, searches, kernels, held-out points, history" {
    inputs
    kofn regress X.npy labels.npy --loss logistic --l2 0.1 -o w.npy -q
    kofn regress X.npy counts.npy --loss poisson -o w.npy --line-search armijo -q
    kofn regress X.npy y.npy --optimizer nesterov -s pcr:r=4 -q
    kofn regress X.npy y.npy --optimizer sgd --iterations 20 -q
    kofn regress X.npy y.npy --kernel rbf:s=3 --l2 0.1 --iterations 5 -o a.npy -q
    py "assert np.load('a.npy').shape == (400,)"
    kofn regress X.npy y.npy --test X.npy y.npy --history h.csv --json >out.json
    json "abs(o['test_objective'] - o['objective']) < 1e-3" <out.json
    [ "$(wc -l <h.csv)" -gt 3 ]
    head -1 h.csv | grep -q "^iteration,objective,gradient_norm"
}

@test "what does not go together is refused with 2 and one line" {
    inputs
    run kofn regress X.npy y.npy --loss logistic
    refused "labels"
    run kofn regress X.npy w.npy
    refused w.npy
    run kofn regress y.npy X.npy
    refused 400
    run kofn regress X.npy y.npy -s mds:k=4
    refused mds
    run kofn regress X.npy labels.npy -s pcr:r=4 --loss logistic
    refused squares
    run kofn regress X.npy y.npy --kernel cubic
    refused cubic
    run kofn regress X.npy y.npy --test X.npy
    refused "--test"
    run kofn regress X.npy y.npy -s pcr:r=1
    refused "r = 1"
    run kofn regress X.npy y.npy -s gc:d=9
    refused "d = 9"
    run kofn regress X.npy y.npy --optimizer sgd --line-search grid
    refused "line search"
    run kofn regress X.npy y.npy --loss huber
    refused huber ls logistic poisson
    run kofn regress X.npy y.npy --optimizer adam
    refused adam
    run kofn regress X.npy y.npy --l2 -1
    refused l2
    run kofn regress X.npy y.npy --iterations 0
    refused iterations
    run kofn regress X.npy y.npy --step nan
    refused step
    run kofn regress X.npy y.npy --kernel poly:degree=1.5
    refused degree
    run kofn regress X.npy
    refused regress
    run kofn regress X.npy y.npy --test X.npy nowhere.npy
    refused nowhere.npy
    run kofn regress X.npy y.npy --rounds 3
    refused rounds
    py "X=np.load('X.npy'); np.save('narrow.npy', X[:, :5]); X[7, 3]=np.nan; np.save('nan.npy', X)"
    run kofn regress X.npy y.npy --test narrow.npy y.npy
    refused narrow.npy 5 12
    run kofn regress nan.npy y.npy
    refused nan.npy
}

@test "--json tells what an iteration cost: messages, numbers, stragglers" {
    inputs
    # 12 features from each of 3 answers; from each of 6, with the loss and one
    # number more, for gc takes its numbers by twos
    kofn regress X.npy y.npy -s pcr:r=4 -p sim --json >out.json
    json "o['recovery_threshold'] == 3" <out.json
    json "all(i['scalars_received'] == 36 for i in o['per_iteration'][1:])" <out.json
    kofn regress X.npy y.npy -s gc:d=3 -p sim --json >out.json
    json "o['recovery_threshold'] == 6" <out.json
    json "all(i['scalars_received'] == 6 * 14 for i in o['per_iteration'][1:])" <out.json
    json "set(o['per_iteration'][0]) >= {'objective', 'seconds', 'stragglers', 'scalars_received'}" <out.json
    json "all(a['objective'] > b['objective'] - 1e-14 for a, b in zip(o['per_iteration'], o['per_iteration'][1:]))" <out.json
    json "o['objective'] == o['per_iteration'][-1]['objective']" <out.json
    json "sum(i['scalars_received'] for i in o['per_iteration']) == o['scalars_received']" <out.json
    json "o['test_objective'] is None and o['gradient_norm'] > 0" <out.json
}

@test "--history: a line an iteration, of numbers that --json has" {
    inputs
    kofn regress X.npy y.npy --test X.npy y.npy -p sim --history h.csv --json >out.json
    $PYTHON -c "
import csv, json
o = json.load(open('out.json')); h = list(csv.DictReader(open('h.csv')))
assert len(h) == o['iterations']
for row, i in zip(h, o['per_iteration']):
    assert float(row['objective']) == i['objective']
    assert float(row['test_objective']) == i['test_objective']
    assert int(row['scalars_received']) == i['scalars_received']
assert float(h[-1]['gradient_norm']) == o['gradient_norm']"
    run kofn regress X.npy y.npy --history nowhere/h.csv
    [ "$status" -eq 1 ]
    [[ "$output" == *nowhere/h.csv* ]]
}

@test "a full disk stops a regression, and says which file" {
    inputs
    run kofn regress X.npy y.npy --history /dev/full -o w.npy --iterations 1000000
    [ "$status" -eq 1 ]
    [ "$(besides_blas <<<"$output" | wc -l)" -eq 1 ]
    [[ "$output" == *"--history /dev/full"* ]]
    [ ! -e w.npy ]
    run bash -c "'$KOFN' regress X.npy y.npy --json >/dev/full"
    [ "$status" -eq 1 ]
}

@test "Ctrl-C ends a regression with 130, no result and whole lines of history" {
    inputs
    "$KOFN" regress X.npy y.npy -o w.npy --history h.csv --step 1e-9 --tol 1e-300 \
        --iterations 100000000 -q &
    pid=$!
    sleep 0.7
    kill -INT $pid
    wait $pid || code=$?
    [ "$code" -eq 130 ]
    [ "$(ls -A | grep -vcE '^(X|y|labels|counts)\.npy$|^h.csv$')" -eq 0 ]
    [ "$(tail -c 1 h.csv | od -An -tx1 | tr -d ' ')" = 0a ]
    [ "$(awk -F, 'NF != 9' h.csv | wc -l)" -eq 0 ]
}

@test "batches: a share of the work, the plain steps, and a journal that replays" {
    inputs
    for s in elastic:k=4 elastic:k=4,cut=columns gc:d=3; do
        kofn regress X.npy y.npy -s $s --optimizer sgd --iterations 40 -p sim \
            -w straggle=0.1 --verify --journal run.jsonl --json >out.json
        json "o['rel_error'] <= 1e-12 and o['iterations'] == 40" <out.json
        kofn replay run.jsonl -q
    done
    kofn regress X.npy y.npy --optimizer sgd --iterations 40 -p sim --journal j --json >out.json
    # 400 margins and 8 answers of 12 would be 496
    json "all(i['scalars_received'] < 496 / 2 for i in o['per_iteration'][1:])" <out.json
    grep -q '"lo":' j
    sed 's/"hi":[0-9]*/"hi":"x"/' j >bad
    run kofn replay bad
    [ "$status" -eq 2 ]
}

@test "workers leave in the middle of a fit" {
    inputs
    printf '3 leave 1\n5.5 leave 2\n8 join\n' >events.txt
    for s in elastic:k=4 pcr:r=4; do
        kofn regress X.npy y.npy -s $s -e events.txt --verify --json >out.json
        json "o['rel_error'] <= 1e-10 and o['left'] == 2" <out.json
    done
}

@test "events count iterations, however many rounds one takes" {
    inputs
    printf '5 leave 4\n7 join\n' >events.txt
    while read -r words; do
        kofn regress X.npy y.npy -n 6 -p sim -e events.txt --iterations 8 \
            --tol 1e-300 $words --json >out.json
        json "[r['live'] for r in o['per_round']] == [6] * 4 + [5] * 2 + [6] * 2" <out.json
    done <<'WORDS'
-s elastic:k=3
-s elastic:k=3 --optimizer nesterov
-s elastic:k=3 --line-search armijo
-s elastic:k=3 --optimizer sgd
-s pcr:r=3
-s pcr:r=3 --line-search exact
-s gc:d=3
-s gc:d=3 --line-search armijo
WORDS
    printf '9 leave 4\n' >events.txt
    run kofn regress X.npy y.npy -e events.txt --iterations 8
    refused "1..8" 9
}
