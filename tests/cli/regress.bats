load helpers

inputs() {
    kofn gen matrix 400 12 -o X.npy --seed 3 -q
    kofn gen vector 400 -o y.npy --seed 4 -q
    py "y=np.load('y.npy'); np.save('labels.npy', (y > 0).astype(float)); np.save('counts.npy', np.floor(np.abs(2*y)))"
}

@test "every scheme that regresses finds the least squares" {
    inputs
    for s in elastic:k=4 elastic:k=4,cut=columns pcr:r=4 gc:d=3 cgc:d=3 g-cgc:d=3; do
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
}

@test "workers leave in the middle of a fit" {
    inputs
    printf '3 leave 1\n5.5 leave 2\n8 join\n' >events.txt
    for s in elastic:k=4 pcr:r=4; do
        kofn regress X.npy y.npy -s $s -e events.txt --verify --json >out.json
        json "o['rel_error'] <= 1e-10 and o['left'] == 2" <out.json
    done
}
