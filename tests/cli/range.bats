load helpers

# Numbers near the end of their range: A x is finite, 1000 A x is not.
inputs() {
    py "
r = np.random.default_rng(1)
np.save('A.npy', r.uniform(-1, 1, (64, 40)) * 1.79e308)
np.save('x.npy', r.uniform(-1, 1, 40) / 4000)
np.save('far.npy', r.uniform(-1, 1, 40))
np.save('A32.npy', (r.uniform(-1, 1, (64, 40)) * 3.4e38).astype('f4'))
np.save('x32.npy', (r.uniform(-1, 1, 40) / 4000).astype('f4'))
S = r.normal(size=(600, 600))
np.save('S.npy', S + S.T)
np.save('wild.npy', r.choice([-1.7e308, 1.7e308], (64, 64)))"
}

@test "range: NaN answers end power iteration and name the worker" {
    inputs
    run kofn power S.npy -p sim -n 5 -s mds:k=3 -w corrupt=0.02 --seed 2 -o v.npy
    [ "$status" -eq 5 ]
    [[ "$output" == *"worker "*"NaN or infinity"* ]]
    [ ! -e v.npy ]
    run kofn power wild.npy -p sim -n 5 -s mds:k=3 -o v.npy
    refused "float64 cannot hold"
    [ ! -e v.npy ]
}

# bats test_tags=night
@test "range: a masterless iteration out of range does not hang" {
    inputs
    run kofn power wild.npy -n 5 -s mds:k=3 -o v.npy --masterless
    [ "$status" -ne 0 ]
    [ ! -e v.npy ]
}

# bats test_tags=asan
@test "range: a coded product is finite if the plain one is" {
    inputs
    for s in mds:k=3 elastic:k=3 elastic:k=3,cut=columns; do
        kofn matvec A.npy x.npy -n 6 -s $s -o y.npy --verify --json >out.json
        json "o['status'] == 'ok' and o['rel_error'] < 1e-14" <out.json
        kofn matvec A32.npy x32.npy -n 6 -s $s --verify --json >out.json
        json "o['status'] == 'ok' and o['rel_error'] < 1e-5" <out.json
        run kofn matvec A.npy far.npy -n 6 -s $s -o none.npy
        refused "float64 cannot hold"
        [ ! -e none.npy ]
    done
    py "
y = np.load('y.npy')
want = (np.load('A.npy').astype('g') @ np.load('x.npy').astype('g'))
assert np.abs(y - want).max() <= 1e-14 * np.abs(want).max()"
    # blocks made at the worker, from pieces or from the file
    kofn matvec A.npy x.npy -n 6 -s mds:k=3 -p processes --verify --json >out.json
    json "o['rel_error'] < 1e-14" <out.json
}

@test "range: an overflowing product blames no worker" {
    py "
np.save('A.npy', np.full((64, 40), 1e200))
np.save('B.npy', np.full((40, 3), 1e200))"
    echo "A.npy B.npy C.npy" >list.txt
    for port in threads processes sim; do
        for s in uncoded mds:k=3 elastic "mds:k=3 --errors detect" \
            "elastic:k=3 --errors adversarial"; do
            run kofn matmul A.npy B.npy -s $s -p $port -o none.npy -q
            [ "$status" -eq 2 ]
            [[ "$output" == *"divide an operand by a power of two"* ]]
            [ ! -e none.npy ]
        done
    done
    for s in dip "dip --errors probabilistic"; do
        run kofn stream list.txt -n 4 -s $s
        [ "$status" -eq 2 ]
        [[ "$output" == *"divide an operand by a power of two"* ]]
    done
}

@test "range: at the limits, honest workers agree and wrong ones are found" {
    inputs
    for e in probabilistic adversarial detect; do
        kofn matvec A.npy x.npy -n 8 -s mds:k=3 --errors $e --verify --json >out.json
        json "o['corrupted'] == [] and o['rel_error'] < 1e-14" <out.json
    done
    printf '1 corrupt 3\n' >events.txt
    kofn matvec A.npy x.npy -p sim -n 8 -s elastic:k=3 --errors probabilistic -r 3 \
        -e events.txt --verify --json >out.json
    json "o['corrupted'] == [3] and o['rel_error'] < 1e-14" <out.json
}

@test "range: a mesh computes at the end of the range" {
    py "
n = 64
np.save('A.npy', (np.eye(n) + np.ones((n, n)) / n) * 2.0 ** 1022)"
    kofn power A.npy -n 4 -s elastic:k=3 --masterless -o v.npy --json >out.json
    json "o['converged'] and abs(o['eigenvalue'] / 2.0**1023 - 1) < 1e-12" <out.json
    py "v = np.load('v.npy'); assert np.abs(np.abs(v) - 1 / 8).max() < 1e-9"
}

@test "range: NaN and infinite inputs are refused with their place" {
    py "
A = np.ones((5, 4)); A[3, 2] = np.inf; np.save('A.npy', A)
np.save('B.npy', np.ones((5, 4)))
x = np.ones(4); x[1] = np.nan; np.save('x.npy', x)"
    kofn gen vector 4 -o w.npy -q
    run kofn matvec A.npy w.npy
    refused A.npy "[3, 2]"
    run kofn matvec B.npy x.npy
    refused x.npy "[1]"
}

@test "range: blocks from a worker's own file stay in range" {
    inputs
    timeout 600 "$KOFN" matvec A.npy x.npy -p "ipc://$PWD/socket" -n 3 -s mds:k=2 -q \
        --verify --json >out.json &
    for i in 1 2 3; do
        timeout 600 "$KOFN" worker --once "ipc://$PWD/socket" --data-path . --patience 20 \
            2>"news.$i" 3>&- &
    done
    wait %1
    wait || true
    json "o['status'] == 'ok' and o['rel_error'] < 1e-14" <out.json
    grep -q 'made from a file here' news.1
}

@test "range: --verify fails if there is nothing to compare with" {
    # the sum is 0, and no order of summation gets there
    py "
A = np.full((6, 256), 1.7e308); A[:, 128:] *= -1; A[1:] /= 1e10
np.save('A.npy', A); np.save('x.npy', np.ones(256))"
    run kofn matvec A.npy x.npy -n 6 -s mds:k=3 --verify -o y.npy
    [ "$status" -eq 1 ]
    [[ "$output" == *"--verify"*"not finite"* ]]
    [ ! -e y.npy ]
    kofn matvec A.npy x.npy -n 6 -s mds:k=3 -o y.npy -q
    py "assert np.abs(np.load('y.npy')).max() < 1e308 * 1e-12"
}
