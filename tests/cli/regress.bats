load helpers

inputs() {
    kofn gen matrix 400 12 -o X.npy --seed 3 -q
    kofn gen vector 400 -o y.npy --seed 4 -q
    py "y=np.load('y.npy'); np.save('labels.npy', (y > 0).astype(float)); np.save('counts.npy', np.floor(np.abs(2*y)))"
}

finds_least_squares() { # finds_least_squares "SCHEME -p PORT"...
    local s
    inputs
    for s in "$@"; do
        kofn regress --no-intercept X.npy y.npy -o w.npy -s $s -w straggle=0.1 --verify --json >out.json
        py "import json
o=json.load(open('out.json'))
assert o['rel_error'] <= 1e-10 and o['converged'], o
assert o['messages'] > 0 and o['scalars_received'] > 0, o
assert len(o['per_iteration']) == o['iterations'], o
assert all(k in o for k in ('objective', 'test_objective', 'gradient_norm', 'recovery_threshold')), o
X=np.load('X.npy'); y=np.load('y.npy'); w=np.load('w.npy')
assert abs(w-np.linalg.lstsq(X,y,rcond=None)[0]).max() < 1e-7"
    done
}

@test "regress: one scheme finds the least squares" {
    finds_least_squares "elastic:k=4 -p threads" "elastic:k=4,cut=columns -p sim" \
        "pcr:r=4 -p threads" "pcr:r=3,layout=paper -p sim" "gc:d=3 -p threads" "agc -p sim"
}

# bats test_tags=night
@test "regress: every scheme finds the least squares" {
    for s in elastic:k=4 elastic:k=4,cut=columns pcr:r=4 pcr:r=3,layout=paper gc:d=3 cgc:d=3 \
        g-cgc:d=3 agc g-agc bcc replication; do
        finds_least_squares "$s -p threads" "$s -p sim"
    done
}

# bats test_tags=asan
@test "regress: points and labels come from LIBSVM or two files" {
    py "import gzip, scipy.io, scipy.sparse as sp
r=np.random.default_rng(2); X=r.integers(-4,5,(60,6))*(r.random((60,6))<0.6); X[0,5]=1
y=X@[2,-3,0.5,1,0,4]; z=X@[-1,2,0,0,5,0.25]
text='# points\n'+''.join('%r %s # %d\n' % (float(t), ' '.join('%d:%d' % (j+1,v) for j,v in enumerate(row) if v), i)
    for i,(row,t) in enumerate(zip(X,y)))
open('points.libsvm','w').write(text); gzip.open('points.svm.gz','wt').write(text)
np.save('X.npy',X.astype(float)); np.save('y.npy',y); np.save('z.npy',z); np.save('v.npy',np.arange(1.,7))
scipy.io.mmwrite('S.mtx',sp.coo_matrix(X.astype(float)))"
    fits() { # WEIGHTS FILE...
        kofn regress --no-intercept "${@:2}" -o w.npy -q --iterations 2000 --tol 1e-12 -s elastic:k=4
        py "w=np.load('w.npy'); assert np.abs(w - $1).max() < 1e-8, w"
    }
    fits "[2,-3,0.5,1,0,4]" points.libsvm
    fits "[2,-3,0.5,1,0,4]" points.svm.gz
    fits "[-1,2,0,0,5,0.25]" points.libsvm z.npy
    fits "[2,-3,0.5,1,0,4]" X.npy points.libsvm
    fits "[2,-3,0.5,1,0,4]" points.libsvm points.libsvm
    fits "[2,-3,0.5,1,0,4]" points.libsvm --test X.npy points.svm.gz
    py "open('few.libsvm','w').write('1 1:1\n-2.5 2:1\n')"
    fits "[2,-3,0.5,1,0,4]" points.libsvm --test few.libsvm few.libsvm
    kofn regress --no-intercept points.libsvm --test few.libsvm few.libsvm --json \
        --iterations 2000 --tol 1e-12 -s elastic:k=4 |
        json "abs(o['test_objective'] - .3125) < 1e-6" # 1, .5 off; squares by 2 n
    run kofn regress --no-intercept points.libsvm -s elastic:k=4 --errors adversarial
    refused "for regression pcr, gc, cgc or agc"
    echo '1 7:1' >wide.libsvm
    run kofn regress --no-intercept points.libsvm --test wide.libsvm wide.libsvm
    refused "wide.libsvm has 7 columns and points.libsvm 6"
    kofn predict X.npy w.npy --labels points.libsvm --json | json "o['r2'] > 0.999999"
    kofn matvec points.libsvm v.npy -o p.npy -q
    py "assert np.abs(np.load('p.npy') - np.load('X.npy')@np.arange(1.,7)).max() < 1e-9"
    for file in X.npy S.mtx; do
        run kofn regress --no-intercept $file
        refused "$file has no labels with it" "name the file"
    done
    run kofn predict X.npy w.npy --labels S.mtx
    refused "S.mtx is sparse"
    echo "1 1:2 1:3" >bad.svm
    run kofn regress --no-intercept bad.svm
    refused "bad.svm: line 1: index 1 comes after index 1"
}

# Code for py: newton(X, y) returns the weights of a logistic regression with l2 0.1 by
# Newton's method, the intercept last.
newton='
def newton(X, y, l2=0.1):
    Z = np.c_[X, np.ones(len(X))]; n = Z.shape[1]; R = l2 * np.diag([1] * (n - 1) + [0]); v = np.zeros(n)
    for _ in range(50):
        m = 1 / (1 + np.exp(-Z @ v))
        v -= np.linalg.solve(Z.T @ (Z * (m * (1 - m))[:, None]) / len(y) + R,
                             Z.T @ (m - y) / len(y) + R @ v)
    return v
'

# bats test_tags=asan
@test "regress: two labels are classes, and one file is a test" {
    py "r=np.random.default_rng(5); X=np.round(r.normal(size=(80,4)),3); b=X[:,0]-X[:,3]+r.normal(size=80) > 0
def write(name, X, y, cols):
    open(name,'w').write(''.join('%g %s\n' % (t, ' '.join('%d:%.17g' % (j+1,v) for j,v in enumerate(row[:cols]))) for row,t in zip(X,y)))
np.save('X.npy',X); np.save('b.npy',b*1.); np.save('two.npy',np.where(b,4.,2.))
write('a.libsvm',X[:60],np.where(b,4,2)[:60],4)
write('t.libsvm',X[60:],np.where(b,4,2)[60:],3)"
    fit="--loss logistic --l2 0.1 --tol 1e-10 --iterations 500 -s elastic:k=4"
    run kofn regress a.libsvm $fit -o w.npy --test t.libsvm
    [ "$status" -eq 0 ]
    [[ "$output" == *"a.libsvm: labels 2 and 4 are two classes; probabilities are those of 4"* ]]
    kofn regress a.libsvm $fit -o w.npy --test t.libsvm --json >out.json
    kofn predict t.libsvm w.npy --columns 4 --loss logistic -o p.npy --labels t.libsvm --json >p.json
    kofn predict X.npy w.npy --loss logistic --labels two.npy --json >q.json
    py "$newton
import json
X,b=np.load('X.npy'),np.load('b.npy'); w=np.load('w.npy'); v=newton(X[:60],b[:60])
assert np.abs(w-v).max() < 1e-6*np.abs(v).max(), (w,v)
T=X[60:].copy(); T[:,3]=0; m=1/(1+np.exp(-(T@v[:4]+v[4]))); p=np.load('p.npy')
assert np.abs(p-m).max() < 1e-6, abs(p-m).max()
o,s,q=(json.load(open(n)) for n in ('out.json','p.json','q.json'))
share=((m>.5)==b[60:]).mean(); loss=-np.log(np.where(b[60:],m,1-m)).mean()
assert o['test_accuracy']==s['accuracy']==share and o['classes']==[2,4]
assert abs(o['test_objective']-loss) < 1e-6 and abs(s['loss']-loss) < 1e-6
assert q['accuracy']==((X@v[:4]+v[4]>0)==b).mean()"
    run kofn predict t.libsvm w.npy --loss logistic -o p.npy
    refused "t.libsvm has 3 columns and w.npy 5" "--columns 5, or 4"
    run kofn predict t.libsvm w.npy --columns 2 -o p.npy
    refused "--columns 2: t.libsvm has 3"
    echo "3 1:1" >third.libsvm
    run kofn regress a.libsvm $fit --test third.libsvm
    refused "third.libsvm: label [0] is 3, and the classes are 2 and 4"
    cat a.libsvm third.libsvm >three.libsvm
    run kofn regress --no-intercept three.libsvm $fit
    refused "labels of logistic regression are 0 and 1"
}

# bats test_tags=asan
@test "regress: a column of the points has the labels" {
    py "r=np.random.default_rng(6); X=np.round(r.normal(size=(50,3)),4); y=np.round(X@[1,-2,.5]+r.normal(size=50)/9,4)
A=np.c_[X[:,:1],y,X[:,1:]]; np.save('A.npy',A); np.save('X.npy',X); np.save('y.npy',y)
head='size,\"the label\",b,c\n'
for name,B in (('a.csv',A[:40]),('t.csv',A[40:])):
    open(name,'w').write(head+''.join(','.join('%.17g'%v for v in row)+'\n' for row in B))
np.save('A32.npy',np.float32(A[:40]))"
    while read -r file label; do
        kofn regress --no-intercept $file --label "$label" -o w.npy --test t.csv --json --iterations 300 \
            --tol 1e-12 -s elastic:k=4 >out.json
        py "import json; X,y,w=np.load('X.npy'),np.load('y.npy'),np.load('w.npy')
v=np.linalg.lstsq(X[:40],y[:40],rcond=None)[0]; o=json.load(open('out.json'))
assert np.abs(w-v).max() < (1e-6 if '$file'=='A32.npy' else 1e-9)
want=((X[40:]@v-y[40:])**2).mean()/2
assert abs(o['test_objective']-want) < 1e-5*want"
    done <<'COLUMNS'
A32.npy 2
a.csv 2
a.csv the label
COLUMNS
    kofn predict t.csv w.npy --label "the label" -o p.npy --json |
        json "o['rows'] == 10 and o['r2'] > 0.9"
    py "X,w=np.load('X.npy'),np.load('w.npy'); assert np.abs(np.load('p.npy')-X[40:]@w).max() < 1e-12"
    run kofn regress --no-intercept a.csv --label colour
    refused "a.csv: there is no column 'colour'" "from 1 to 4, or a name"
    run kofn regress --no-intercept A.npy --label 5
    refused "from 1 to 4"
    run kofn regress --no-intercept a.csv y.npy --label 2
    refused "leave y.npy out"
    printf 'size,colour\n1,red\n' >text.csv
    run kofn regress --no-intercept text.csv --label size
    refused "line 2, column 2 ('colour'): 'red' is not a number"
    printf '1 1:2\n' >a.libsvm
    run kofn regress --no-intercept a.libsvm --label 1
    refused "labels are not in a column"
}

@test "regress: fewer columns than segments work" {
    kofn gen matrix 100 3 -o X.npy --seed 3 -q
    kofn gen vector 100 -o y.npy --seed 4 -q
    for s in agc:d=4 agc:d=3,form=staircase g-agc:d=4 cgc:d=6,m=5; do
        kofn regress --no-intercept X.npy y.npy -o w.npy -s $s -n 8 -q
        py "X=np.load('X.npy'); y=np.load('y.npy'); w=np.load('w.npy')
assert abs(w-np.linalg.lstsq(X,y,rcond=None)[0]).max() < 1e-7"
    done
}

@test "regress: the model has an intercept, unless --no-intercept" {
    inputs
    for s in "" "-s elastic:k=4" "-s gc:d=2"; do
        kofn regress X.npy y.npy -o w.npy $s --tol 1e-10 -q
        py "X=np.load('X.npy'); y=np.load('y.npy'); w=np.load('w.npy')
v=np.linalg.lstsq(np.c_[X, np.ones(400)],y,rcond=None)[0]
assert w.shape == (13,) and abs(w-v).max() < 1e-7"
    done
    kofn regress X.npy y.npy -o w.npy --no-intercept --tol 1e-10 -q
    py "X=np.load('X.npy'); y=np.load('y.npy'); w=np.load('w.npy')
assert w.shape == (12,) and abs(w-np.linalg.lstsq(X,y,rcond=None)[0]).max() < 1e-7"
}

@test "regress: --start saves iterations, also of scaled columns" {
    inputs
    py "X=np.load('X.npy'); np.save('X.npy', 3 + X * 10.**(np.arange(12)/3 - 2))"
    kofn regress X.npy y.npy -o w.npy --scale --l2 0.1 --tol 1e-9 -q
    kofn regress X.npy y.npy -o v.npy --scale --l2 0.1 --start w.npy --tol 1e-6 --verify --json >out.json
    json "o['converged'] and o['iterations'] == 1 and o['rel_error'] <= 1e-10" <out.json
    py "w,v=np.load('w.npy'),np.load('v.npy'); assert abs(w-v).max() < 1e-5*abs(w).max()"
    run kofn regress X.npy y.npy --no-intercept --start w.npy
    refused "it needs 12 weights"
}

@test "regress: sparse points stay sparse, also with an intercept" {
    inputs
    py "r=np.random.default_rng(5); X=np.load('X.npy')*(r.random((400,12)) < 0.2); X[7]=0
np.save('D.npy', X); i, j = X.nonzero()
print('%%MatrixMarket matrix coordinate real general\n400 12', len(i))
for a, b in zip(i, j): print(a+1, b+1, repr(float(X[a, b])))" >S.mtx
    for s in pcr:r=3 elastic:k=4; do
        for extra in "" --no-intercept; do
            kofn regress S.mtx y.npy -o w.npy -s $s $extra --tol 1e-10 --iterations 2000 --verify --json >out.json
            json "o['rel_error'] <= 1e-10 and o['converged']" <out.json
            py "X=np.load('D.npy'); y=np.load('y.npy'); w=np.load('w.npy')
X=X if '$extra' else np.c_[X, np.ones(400)]
assert abs(w-np.linalg.lstsq(X,y,rcond=None)[0]).max() < 1e-7"
        done
    done
    kofn regress --no-intercept S.mtx y.npy -s pcr:r=3 --json --test S.mtx y.npy >sparse.json
    kofn regress --no-intercept D.npy y.npy -s pcr:r=3 --json --test D.npy y.npy >dense.json
    py "import json; a, b = json.load(open('sparse.json')), json.load(open('dense.json'))
assert all(abs(a[k]-b[k]) <= 1e-9*abs(b[k]) for k in ('objective', 'test_objective', 'r2'))"
    kofn regress --no-intercept S.mtx labels.npy --loss logistic -s elastic:k=4 --verify -q
    for bad in "-s gc:d=3" --scale "--kernel rbf:s=3"; do
        run "$KOFN" regress S.mtx y.npy $bad -q
        [ "$status" -eq 2 ]
        [[ "$output" == *sparse* ]]
    done
}

@test "regress: losses, descents, searches, kernels, --test, --history" {
    inputs
    kofn regress --no-intercept X.npy labels.npy --loss logistic --l2 0.1 -o w.npy -q
    kofn regress --no-intercept X.npy counts.npy --loss poisson -o w.npy --line-search armijo -q
    kofn regress --no-intercept X.npy y.npy --optimizer nesterov -s pcr:r=4 -q
    kofn regress --no-intercept X.npy y.npy --optimizer sgd --iterations 20 -q
    kofn regress X.npy y.npy --kernel rbf:s=3 --l2 0.1 --iterations 5 -o a.npy -q
    py "assert np.load('a.npy').shape == (400,)"
    kofn regress --no-intercept X.npy y.npy --test X.npy y.npy --history h.csv --json >out.json
    json "abs(o['test_objective'] - o['objective']) < 1e-3" <out.json
    [ "$(wc -l <h.csv)" -gt 3 ]
    head -1 h.csv | grep -q "^iteration,objective,gradient_norm"
}

# bats test_tags=asan
@test "regress: exclusive options exit with 2 and one line" {
    inputs
    run kofn regress --no-intercept X.npy y.npy --loss logistic
    refused "labels"
    run kofn regress --no-intercept X.npy w.npy
    refused w.npy
    run kofn regress --no-intercept y.npy X.npy
    refused 400
    run kofn regress --no-intercept X.npy y.npy -s mds:k=4
    refused mds
    run kofn regress --no-intercept X.npy labels.npy -s pcr:r=4 --loss logistic
    refused squares
    run kofn regress X.npy y.npy --kernel cubic
    refused cubic
    run kofn regress --no-intercept X.npy y.npy --test X.npy
    refused "X.npy has no labels with it"
    run kofn regress --no-intercept X.npy y.npy -s pcr:r=1
    refused "r = 1"
    run kofn regress --no-intercept X.npy y.npy -s gc:d=9
    refused "d = 9"
    run kofn regress --no-intercept X.npy y.npy --optimizer sgd --line-search grid
    refused "line search"
    run kofn regress --no-intercept X.npy y.npy --loss huber
    refused huber squares logistic poisson
    run kofn regress --no-intercept X.npy y.npy --optimizer adam
    refused adam
    run kofn regress --no-intercept X.npy y.npy --l2 -1
    refused l2
    run kofn regress --no-intercept X.npy y.npy --iterations 0
    refused iterations
    run kofn regress --no-intercept X.npy y.npy --step nan
    refused step
    run kofn regress X.npy y.npy --kernel poly:degree=1.5
    refused degree
    run kofn regress
    refused regress "X [y]"
    run kofn regress --no-intercept X.npy
    refused "X.npy has no labels with it"
    run kofn regress --no-intercept X.npy y.npy --test X.npy nowhere.npy
    refused nowhere.npy
    run kofn regress --no-intercept X.npy y.npy --rounds 3
    refused rounds
    py "X=np.load('X.npy'); np.save('narrow.npy', X[:, :5]); X[7, 3]=np.nan; np.save('nan.npy', X)"
    run kofn regress --no-intercept X.npy y.npy --test narrow.npy y.npy
    refused narrow.npy 5 12
    run kofn regress --no-intercept nan.npy y.npy
    refused nan.npy
}

@test "regress: --json has the cost of an iteration" {
    inputs
    # 12 features from each of 3 answers; from each of 6, with the loss and one number
    # more, since gc handles pairs of numbers
    kofn regress --no-intercept X.npy y.npy -s pcr:r=4 -p sim --optimizer gd --json >out.json
    json "o['recovery_threshold'] == 3" <out.json
    # the last one takes eight more products to check the distance of the minimum
    json "[i['scalars_received'] / 36 for i in o['per_iteration']] == [1] * (o['iterations'] - 1) + [9]" <out.json
    kofn regress --no-intercept X.npy y.npy -s gc:d=3 -p sim --optimizer gd --json >out.json
    json "o['recovery_threshold'] == 6" <out.json
    json "[i['scalars_received'] / 84 for i in o['per_iteration']] == [1] * (o['iterations'] - 1) + [9]" <out.json
    json "set(o['per_iteration'][0]) >= {'objective', 'seconds', 'late', 'scalars_received'}" <out.json
    json "all(a['objective'] > b['objective'] - 1e-14 for a, b in zip(o['per_iteration'], o['per_iteration'][1:]))" <out.json
    # it has converged, so no step followed the last gradient
    json "abs(o['objective'] - o['per_iteration'][-1]['objective']) < 1e-14" <out.json
    json "sum(i['scalars_received'] for i in [o['setup']] + o['per_iteration']) == o['scalars_received']" <out.json
    json "o['test_objective'] is None and o['gradient_norm'] > 0" <out.json
}

@test "regress: --history has a line per iteration with numbers of --json" {
    inputs
    kofn regress --no-intercept X.npy y.npy --test X.npy y.npy -p sim --optimizer gd --history h.csv \
        --json >out.json
    $PYTHON -c "
import csv, json
o = json.load(open('out.json')); h = list(csv.DictReader(open('h.csv')))
assert len(h) == 1 + o['iterations']
assert int(h[0]['scalars_received']) == o['setup']['scalars_received']
for row, i in zip(h[1:], o['per_iteration']):
    assert float(row['objective']) == i['objective']
    assert float(row['test_objective']) == i['test_objective']
    assert int(row['scalars_received']) == i['scalars_received']
for key in 'rounds late messages scalars_received sent_bytes received_bytes'.split():
    assert sum(int(row[key]) for row in h) == o[key] > 0, key
assert float(h[-1]['gradient_norm']) == o['gradient_norm']"
    run kofn regress --no-intercept X.npy y.npy --history nowhere/h.csv
    [ "$status" -eq 1 ]
    [[ "$output" == *nowhere/h.csv* ]]
}

@test "regress: a full disk ends it and names the file" {
    inputs
    run kofn regress --no-intercept X.npy y.npy --history /dev/full -o w.npy --iterations 1000000
    [ "$status" -eq 1 ]
    [ "$(besides_blas <<<"$output" | wc -l)" -eq 1 ]
    [[ "$output" == *"--history /dev/full"* ]]
    [ ! -e w.npy ]
    run bash -c "'$KOFN' regress X.npy y.npy --json >/dev/full"
    [ "$status" -eq 1 ]
}

@test "regress: Ctrl-C exits with 130, no result, whole history lines" {
    inputs
    "$KOFN" regress X.npy y.npy -o w.npy --history h.csv --step 1e-9 --tol 1e-300 \
        --iterations 100000000 -q &
    pid=$!
    wait_for eval '[ "$(wc -l <h.csv)" -gt 2 ]'
    kill -INT $pid
    wait $pid || code=$?
    [ "$code" -eq 130 ]
    [ "$(ls -A | grep -vcE '^(X|y|labels|counts)\.npy$|^h.csv$')" -eq 0 ]
    [ "$(tail -c 1 h.csv | od -An -tx1 | tr -d ' ')" = 0a ]
    [ "$(awk -F, 'NR == 1 { n = NF } NF != n' h.csv | wc -l)" -eq 0 ]
}

@test "regress: batches share the work, take plain steps, and replay" {
    inputs
    for s in elastic:k=4 elastic:k=4,cut=columns gc:d=3; do
        kofn regress --no-intercept X.npy y.npy -s $s --optimizer sgd --iterations 40 -p sim \
            -w straggle=0.1 --verify --journal run.jsonl --json >out.json
        json "o['rel_error'] <= 1e-12 and o['iterations'] == 40" <out.json
        kofn replay run.jsonl -q
    done
    kofn regress --no-intercept X.npy y.npy -s elastic --optimizer sgd --iterations 40 -p sim --journal j --json >out.json
    # 400 margins and 8 answers of 12 would be 496
    json "all(i['scalars_received'] < 496 / 2 for i in o['per_iteration'][1:])" <out.json
    grep -q '"lo":' j
    sed 's/"hi":[0-9]*/"hi":"x"/' j >bad
    run kofn replay bad
    [ "$status" -eq 2 ]
}

@test "regress: workers leave during a fit" {
    inputs
    printf '3 leave 1\n5.5 leave 2\n8 join\n' >events.txt
    for s in elastic:k=4 pcr:r=4; do
        kofn regress --no-intercept X.npy y.npy -s $s -e events.txt --verify --json >out.json
        json "o['rel_error'] <= 1e-10 and o['left'] == 2" <out.json
    done
}

@test "regress: events count iterations, not rounds" {
    inputs
    printf '5 leave 4\n7 join\n' >events.txt
    while read -r words; do
        kofn regress --no-intercept X.npy y.npy -n 6 -p sim -e events.txt --iterations 8 \
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
    run kofn regress --no-intercept X.npy y.npy -e events.txt --iterations 8
    refused "1..8" 9
}

# Columns with very different units, held-out points, and labels of three kinds.
units() {
    py "
r = np.random.default_rng(7)
scale = np.array([1e-3, 1, 40, 1, 500])
def some(m):
    X = r.normal(size=(m, 5)) * scale + np.array([0, 3, -100, 0, 1e3])
    X[:, 3] = 2.5 # constant
    t = ((X - X.mean(0)) / scale) @ np.array([1, -.5, .25, 0, .7]) + .4
    return X, t
for name, m in ('', 300), ('t', 120):
    X, t = some(m)
    np.save(f'U{name}.npy', X)
    np.save(f'squares{name}.npy', t + .3 * r.normal(size=m))
    np.save(f'logistic{name}.npy', (r.uniform(size=m) < 1 / (1 + np.exp(-t))).astype(float))
    np.save(f'poisson{name}.npy', r.poisson(np.exp(t / 2)).astype(float))"
}

@test "regress: intercept and --scale give the closed-form weights" {
    units
    for s in elastic:k=3 pcr:r=3 gc:d=3; do
        kofn regress U.npy squares.npy --scale --l2 0.1 -s $s -n 6 -o w.npy --json \
            --iterations 1000 --tol 1e-12 >out.json
        json "o['converged']" <out.json
        py "
X, y, w = np.load('U.npy'), np.load('squares.npy'), np.load('w.npy')
m, d = X.mean(0), X.std(0); d[3] = 1
Z = (X - m) / d
v = np.linalg.solve(Z.T @ Z / len(y) + .1 * np.eye(5), Z.T @ (y - y.mean()) / len(y))
want = np.append(v / d, y.mean() - (v / d) @ m)
assert w.shape == (6,) and np.abs(w - want).max() <= 1e-9 * np.abs(want).max(), (w, want)"
    done
    kofn regress U.npy squares.npy -s pcr:r=3 -n 6 -o w.npy --json --scale \
        --optimizer nesterov --iterations 2000 --tol 1e-12 --verify >out.json
    json "o['rel_error'] < 1e-9" <out.json
    py "
X, y, w = np.load('U.npy'), np.load('squares.npy'), np.load('w.npy')
p = np.c_[X, np.ones(len(y))] @ w
best = np.c_[X, np.ones(len(y))] @ np.linalg.lstsq(np.c_[X, np.ones(len(y))], y, rcond=None)[0]
assert np.abs(p - best).max() < 1e-8"
    # without an intercept columns keep their mean
    kofn regress --no-intercept U.npy squares.npy --scale -n 6 -o w.npy --json --iterations 3000 \
        --line-search exact --tol 1e-11 >out.json
    json "o['converged']" <out.json
    py "
X, y, w = np.load('U.npy'), np.load('squares.npy'), np.load('w.npy')
want = np.linalg.lstsq(X, y, rcond=None)[0]
assert w.shape == (5,) and np.abs(X @ w - X @ want).max() < 1e-7"
}

@test "regress: logistic and Poisson agree with Newton's method" {
    units
    while read -r loss s; do
        kofn regress U.npy $loss.npy --loss $loss --scale --l2 0.05 -s $s \
            -n 6 --line-search armijo --iterations 3000 --tol 1e-9 -o w.npy -q
        py "
loss = '$loss'
X, y, w = np.load('U.npy'), np.load(f'{loss}.npy'), np.load('w.npy')
m, d = X.mean(0), X.std(0); d[3] = 1
Z = np.c_[(X - m) / d, np.ones(len(y))]
R = .05 * np.diag([1] * 5 + [0])
v = np.zeros(6)
for _ in range(60):
    t = Z @ v
    mu = np.exp(t) if loss == 'poisson' else 1 / (1 + np.exp(-t))
    h = mu if loss == 'poisson' else mu * (1 - mu)
    v -= np.linalg.solve(Z.T @ (Z * h[:, None]) / len(y) + R, Z.T @ (mu - y) / len(y) + R @ v)
u = np.append(v[:5] / d, v[5] - (v[:5] / d) @ m)
assert np.abs(w - u).max() <= 1e-6 * np.abs(u).max(), (w, u)"
    done <<'LOSSES'
logistic elastic:k=3
poisson gc:d=3
LOSSES
}

# bats test_tags=asan
@test "predict: predictions and fit agree with NumPy" {
    units
    for loss in squares logistic poisson; do
        kofn regress U.npy $loss.npy --loss $loss --scale --l2 0.01 -n 6 \
            --line-search armijo --iterations 200 -o w.npy --test Ut.npy ${loss}t.npy --json >out.json
        kofn predict Ut.npy w.npy --loss $loss -o p.npy --labels ${loss}t.npy --json >p.json
        py "
import json
loss = '$loss'
X, y, w, p = (np.load(n) for n in ('Ut.npy', f'{loss}t.npy', 'w.npy', 'p.npy'))
t = X @ w[:-1] + w[-1]
mu = {'squares': t, 'logistic': 1 / (1 + np.exp(-t)), 'poisson': np.exp(t)}[loss]
assert p.shape == (120,) and np.abs(p - mu).max() <= 1e-10 * np.abs(mu).max()
def dev(y, m):
    return (y * np.log(np.where(y > 0, y, 1) / m) - (y - m)).sum()
name, want = {'squares': ('r2', 1 - ((y - mu)**2).sum() / ((y - y.mean())**2).sum()),
    'logistic': ('accuracy', ((t > 0) == (y > .5)).mean()),
    'poisson': ('explained_deviance', 1 - dev(y, mu) / dev(y, y.mean()))}[loss]
o, q = json.load(open('out.json')), json.load(open('p.json'))
assert abs(q[name] - want) < 1e-9 and abs(o['test_' + name] - want) < 1e-9, (q, want)
assert abs(q['loss'] - o['test_objective']) < 1e-9
assert q['rows'] == 120 and 0 < o[name] <= 1"
    done
    # with a kernel
    kofn regress U.npy squares.npy --kernel rbf:s=300 --l2 0.1 --iterations 20 -o a.npy -q
    kofn predict Ut.npy a.npy --kernel rbf:s=300 --points U.npy -o p.npy
    py "
X, T, a, p = (np.load(n) for n in ('U.npy', 'Ut.npy', 'a.npy', 'p.npy'))
K = np.exp(-((T[:, None] - X[None])**2).sum(2) / (2 * 300**2))
assert np.abs(p - K @ a).max() < 1e-9 * np.abs(p).max()"
    run kofn predict Ut.npy a.npy -o p.npy
    refused "300 x 1" "5 columns"
    run kofn predict Ut.npy w.npy
    refused --output
    run kofn predict Ut.npy w.npy --kernel rbf -o p.npy
    refused --points
    run kofn predict Ut.npy w.npy -o Ut.npy
    refused Ut.npy
}

@test "regress: a missing convergence is reported with advice" {
    units
    py "X=np.load('U.npy'); X[0]*=1e10; np.save('R.npy', X); np.save('r.npy', X @ [1., 2, 3, 4, 5])"
    run kofn regress --no-intercept R.npy r.npy -n 6 -s uncoded --optimizer gd --iterations 50
    [[ "$output" == *"not converged after 50"*"the gradient is small"*"scale such rows"*"--optimizer lbfgs"* ]]
    run kofn regress --no-intercept U.npy squares.npy -n 6 --optimizer gd --iterations 5
    [ "$status" -eq 0 ]
    [[ "$output" == *"not converged after 5 iterations"*"r2 "* ]]
    [[ "$output" == *"try --scale"*"--optimizer lbfgs, --iterations 50"* ]]
    run kofn regress U.npy squares.npy -n 6 --scale
    [[ "$output" == *"converged after"* && "$output" != *"not converged"* && "$output" != *try* ]]
    run kofn regress U.npy squares.npy -n 6 --scale --step 3 --iterations 9
    [[ "$output" == *"gradient has grown"*"shorter --step"* ]]
    run kofn regress --no-intercept U.npy squares.npy -n 6 --optimizer gd --iterations 5 -q
    [ -z "$output" ]
}

@test "regress: separable labels, one class, and counts are handled" {
    units
    py "
X = np.load('U.npy'); Z = (X - X.mean(0)) / np.array([1e-3, 1, 40, 1, 500])
t = Z @ [1, -.5, .25, 0, .7] - .3; gap = abs(t) > .4
np.save('A.npy', X[gap]); np.save('apart.npy', (t[gap] > 0).astype(float))
np.save('one.npy', np.ones(300))"
    run kofn regress A.npy apart.npy --loss logistic --scale -n 6 --iterations 3000
    [ "$status" -eq 0 ]
    [[ "$output" == *"predicted correctly"*"--l2"* && "$output" != *"--iterations"* ]]
    run kofn regress A.npy apart.npy --loss logistic --scale -n 6 --l2 0.05 --iterations 3000
    [[ "$output" == *"converged after"* && "$output" != *"not converged"* && "$output" != *told* ]]
    run kofn regress U.npy one.npy --loss logistic -n 6
    refused "all 300 labels of y are of one class"
    kofn regress U.npy poisson.npy --loss poisson --scale --l2 0.05 -n 6 -o w.npy --json \
        --tol 1e-9 --iterations 3000 >out.json
    json "o['converged']" <out.json
    py "
X, y, w = np.load('U.npy'), np.load('poisson.npy'), np.load('w.npy')
m, d = X.mean(0), X.std(0); d[3] = 1
Z = np.c_[(X - m) / d, np.ones(len(y))]
v = np.append(w[:5] * d, w[5] + w[:5] @ m)
g = Z.T @ (np.exp(Z @ v) - y) / len(y) + .05 * np.append(v[:5], 0)
assert np.abs(g).max() < 1e-7, g"
}

@test "regress: other losses use lbfgs, which resumes" {
    units
    while read -r loss s; do
        words="regress U.npy $loss.npy --loss $loss --scale --l2 0.05 -s $s -n 6 --tol 1e-10"
        kofn $words -o a.npy --json >a.json
        kofn $words -o b.npy --optimizer lbfgs --json >b.json
        rm -rf C
        kofn $words --iterations 4 --checkpoint C -q
        kofn $words --checkpoint C --resume -o c.npy --json >c.json
        py "
import json
a, b, c = (json.load(open(f'{n}.json')) for n in 'abc')
assert a['converged'] and a['iterations'] == b['iterations'] <= 30, (a['iterations'], b['iterations'])
assert c['converged'] and c['resumed_after'] == 4
loss = '$loss'
X, y = np.load('U.npy'), np.load(f'{loss}.npy')
m, d = X.mean(0), X.std(0); d[3] = 1
Z = np.c_[(X - m) / d, np.ones(len(y))]
for name in 'abc':
    w = np.load(f'{name}.npy'); v = np.append(w[:5] * d, w[5] + w[:5] @ m); t = Z @ v
    mu = np.exp(t) if loss == 'poisson' else 1 / (1 + np.exp(-t))
    g = Z.T @ (mu - y) / len(y) + .05 * np.append(v[:5], 0)
    assert np.abs(g).max() < 1e-9, (name, g)"
    done <<'LOSSES'
logistic elastic:k=3
poisson gc:d=3
LOSSES
    run kofn regress --no-intercept U.npy squares.npy --optimizer lbfgs --step 0.1 -n 6
    refused "step = 0.1" lbfgs
    run kofn regress --no-intercept U.npy logistic.npy --loss logistic --scale -s ignore -n 6 --iterations 5
    [ "$status" -ne 2 ]
}

@test "regress: figures of batches are marked; the end covers all points" {
    units
    kofn regress U.npy squares.npy --scale --l2 0.1 -s gc:d=3 -n 6 --optimizer sgd \
        --batches 6 --iterations 31 -o w.npy --history h.csv --json >out.json
    head -1 h.csv | grep -q '^iteration,batch_objective,batch_gradient_norm,'
    json "'batch_objective' in o['per_iteration'][0] and 'gradient_norm' not in o" <out.json
    py "
import json
o = json.load(open('out.json'))
X, y, w = np.load('U.npy'), np.load('squares.npy'), np.load('w.npy')
d = X.std(0); d[3] = 1
F = ((X @ w[:-1] + w[-1] - y)**2).mean() / 2 + .05 * ((w[:-1] * d)**2).sum()
assert abs(F - o['objective']) < 1e-9 * F, (F, o['objective'])"
    run kofn regress --no-intercept U.npy squares.npy --batches 5
    refused sgd
    run kofn regress --no-intercept U.npy squares.npy --optimizer sgd --batches 301
    refused 301
    run kofn regress U.npy squares.npy --kernel rbf:s=3 --scale
    refused "--scale is of the columns"
}

# bats test_tags=asan
@test "regress: line 0 of the history has the search for the step" {
    inputs
    kofn regress --no-intercept X.npy y.npy -s pcr:r=4 -p sim --optimizer gd --iterations 4 \
        --tol 1e-300 --history h.csv --json >out.json
    py "
import json
o = json.load(open('out.json'))
import csv
h = list(csv.DictReader(open('h.csv')))
assert [int(l['iteration']) for l in h] == [0, 1, 2, 3, 4]
assert h[0]['objective'] == 'nan' and int(h[0]['messages']) == 30 * int(h[1]['messages']), h
assert o['setup']['rounds'] == 30 and o['rounds'] == 34
assert abs(sum(float(l['seconds']) for l in h) - o['seconds']) < 1e-6
assert len(o['per_iteration']) == 4
assert abs(o['setup']['seconds'] + sum(i['seconds'] for i in o['per_iteration']) - o['seconds']) < 1e-6"
    kofn regress --no-intercept X.npy y.npy -s pcr:r=4 -p sim --iterations 4 --step 0.1 --history h.csv -q
    [ "$(sed -n 2p h.csv | cut -d, -f1)" = 1 ]
}

@test "regress: wrong sums are located, and the result is exact" {
    kofn gen matrix 400 6 -o Xe.npy -q
    kofn gen vector 400 -o ye.npy -q
    echo "2 corrupt 3" >liar.txt
    for s in gc:d=3 agc:d=3; do
        kofn regress --no-intercept Xe.npy ye.npy -s $s -n 9 -p sim --errors probabilistic \
            -e liar.txt --iterations 20 --verify --json >out.json
        json "o['corrupted'] == [3] and o['rel_error'] < 1e-9" <out.json
        json "0 < o['floor'] < 1e-6" <out.json
    done
    kofn regress --no-intercept Xe.npy ye.npy -s agc:d=3 -n 9 -p processes --late 0 --below pause \
        --errors probabilistic -e liar.txt --iterations 20 --verify --json >out.json
    json "o['corrupted'] == [3] and o['rel_error'] < 1e-9" <out.json
    run kofn regress --no-intercept Xe.npy ye.npy -s gc:d=3 -n 9 -p sim --errors detect \
        -e liar.txt --iterations 20
    [ "$status" -eq 5 ]
    kofn regress --no-intercept Xe.npy ye.npy -s gc:d=3 -n 9 -p sim --errors detect --audit 4 \
        --iterations 20 --step 0.001 --journal a.jsonl --json >out.json
    json "o['unchecked'] == o['rounds'] - 1 - -(-o['rounds'] // 4) > 9" <out.json
    json "0 < o['floor'] < 1e-6 and o['corrupted'] == []" <out.json
    kofn replay a.jsonl
    run kofn regress --no-intercept Xe.npy ye.npy -s gc:d=3 -n 9 -p sim --errors detect --audit 4 \
        -e liar.txt --iterations 20 --step 0.001
    [ "$status" -eq 5 ]
    run kofn regress --no-intercept Xe.npy ye.npy -s gc:d=3 -n 9 -p sim --audit 4
    refused "without errors"
    for s in "agc:d=1 redundancy" "ignore spare" "uncoded redundancy"; do
        set -- $s
        run kofn regress --no-intercept Xe.npy ye.npy -s $1 -n 9 -p sim --errors detect
        refused "$2"
    done
}

@test "regress: wrong coded answers are located; the result is exact" {
    kofn gen matrix 400 6 -o Xe.npy -q
    kofn gen vector 400 -o ye.npy -q
    printf '2 corrupt 3\n3 corrupt 7\n' >liar.txt
    for s in "pcr:r=3 --errors probabilistic" "pcr:r=3,systematic=1 --errors adversarial" \
        "pcr:r=3,layout=paper --errors adversarial" "pcr:r=3,basis=lagrange --errors probabilistic"; do
        kofn regress --no-intercept Xe.npy ye.npy -s $s -n 9 -p sim \
            -e liar.txt --iterations 20 --verify --json >out.json
        json "o['corrupted'] == [3, 7] and o['rel_error'] < 1e-9" <out.json
        json "0 < o['floor'] < 1e-6" <out.json
    done
    kofn regress --no-intercept Xe.npy ye.npy -s pcr:r=3 -n 9 --errors adversarial -e liar.txt \
        --iterations 20 --verify --json >out.json
    json "o['rel_error'] < 1e-9 and set(o['corrupted']) <= {3, 7}" <out.json
    run kofn regress --no-intercept Xe.npy ye.npy -s pcr:r=3 -n 9 -p sim --errors detect \
        -e liar.txt --iterations 20
    [ "$status" -eq 5 ]
    kofn regress --no-intercept Xe.npy ye.npy -s pcr:r=3 -n 9 -p sim --errors detect \
        --iterations 20 --journal a.jsonl --json >out.json
    json "0 < o['floor'] < 1e-6 and o['corrupted'] == []" <out.json
    kofn replay a.jsonl
    run kofn regress --no-intercept Xe.npy ye.npy -s pcr:r=2 -n 5 -p sim --errors detect
    refused "no redundancy"
    run kofn regress --no-intercept Xe.npy ye.npy -s pcr:r=3,systematic=1 -n 6 -p sim \
        --errors detect --audit 4
    refused "audit = 4"
}
