load helpers

# complex_inputs: A, 61 x 17, a vector x and a matrix X, and the real parts of all
complex_inputs() {
    py "
rng = np.random.default_rng(5)
for name, shape in (('A', (61, 17)), ('x', 17), ('X', (17, 3))):
    a = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    np.save(name + '.npy', a); np.save(name + 'r.npy', a.real)
np.save('A8.npy', np.asfortranarray(np.load('A.npy'), '>c8'))
np.save('x8.npy', np.load('x.npy').astype('<c8'))"
}

# close A B: out.npy is their product and has its type and shape
close() {
    py "
y, want = np.load('out.npy'), np.load('$1') @ np.load('$2')
assert y.dtype == want.dtype.newbyteorder('=') and y.shape == want.shape, (y.dtype, y.shape)
assert np.abs(y - want).max() <= (1e-4 if y.dtype == np.complex64 else 1e-12) * \
    np.abs(want).max()"
}

# bats test_tags=asan, processes
@test "complex: matvec and matmul of .npy agree with NumPy on either side" {
    complex_inputs
    local port=threads
    for pair in "A x" "A xr" "Ar x" "A X" "A Xr" "Ar X" "A8 x8" "A8 x"; do
        read -r a x <<<"$pair"
        local command=matvec
        [ "${x:0:1}" = X ] && command=matmul
        kofn $command $a.npy $x.npy -o out.npy -s elastic:k=3 -n 5 -p $port -q \
            --verify --json >out.json
        json "o['complex'] is True and o['rel_error'] < 1e-6" <out.json
        close $a.npy $x.npy
        port=sim
    done
    kofn matvec Ar.npy xr.npy -p sim -q --json >out.json
    json "o['complex'] is False" <out.json
    kofn matmul A.npy X.npy -o out.npy -s gpd:m=2,n=2,p=1 -n 7 -p sim -q
    close A.npy X.npy
    kofn matmul A.npy X.npy -o out.npy -s mds:k=4 -n 8 -p sim -q \
        --errors probabilistic -w corrupt=0.1
    close A.npy X.npy
}

# bats test_tags=processes
@test "complex: Matrix Market files agree with scipy.io.mmread" {
    py "
import scipy.io, scipy.sparse
rng = np.random.default_rng(6)
a = rng.standard_normal((23, 23)) + 1j * rng.standard_normal((23, 23))
a[rng.random((23, 23)) < 0.6] = 0
low = np.tril(a, -1)
np.save('x.npy', a[3] + 1)
for kind, m in (('general', a), ('symmetric', low + low.T + np.diag(a[0])),
                ('skew-symmetric', low - low.T),
                ('hermitian', low + low.conj().T + np.diag(a[0].real))):
    for form, turn in (('array', np.asarray), ('coordinate', scipy.sparse.coo_matrix)):
        scipy.io.mmwrite(f'{kind}-{form}.mtx', turn(m), symmetry=kind)
# SciPy 1.10 lists the diagonal of skew-symmetric arrays, against the format
with open('skew-symmetric-array.mtx', 'w') as f:
    f.write('%%MatrixMarket matrix array complex skew-symmetric\\n23 23\\n')
    for j in range(23):
        for i in range(j + 1, 23):
            f.write(f'{low[i, j].real:.17g} {low[i, j].imag:.17g}\\n')"
    for f in *.mtx; do
        grep -q "complex ${f%-*}" "$f"
        kofn matvec $f x.npy -o out.npy -s elastic:k=2 -n 4 -p sim -q
        kofn matvec $f x.npy -o $f.out.mtx -s elastic:k=2 -n 4 -p sim -q
        py "
import scipy.io
want = scipy.io.mmread('$f') @ np.load('x.npy')
y, text = np.load('out.npy'), scipy.io.mmread('$f.out.mtx')
assert y.dtype == want.dtype and np.abs(y - want).max() <= 1e-12 * np.abs(want).max()
assert (text[:, 0] == y).all()"
    done
    gzip hermitian-array.mtx
    kofn matvec hermitian-array.mtx.gz x.npy -p sim -q --verify
}

@test "complex: what does not take complex numbers says what does" {
    complex_inputs
    for command in "power A.npy" "regress A.npy xr.npy" "regress Ar.npy x.npy" \
        "check A.npy xr.npy xr.npy" "predict A.npy xr.npy -o out.npy" "pagerank A.npy" \
        "train A.npy xr.npy --layers 17-2-1 -o net"; do
        run kofn $command
        refused "it holds complex numbers" "kofn matvec and kofn matmul take them"
    done
    run kofn matvec A.npy x.npy -o y.csv
    refused "y.csv" "CSV has real numbers only" ".npy or .mtx"
    [ ! -e y.csv ]
    run kofn matvec A.npy X.npy
    refused "X.npy is 17 x 3, not a vector"
    run kofn matmul A.npy A.npy
    refused "A.npy is 61 x 17 and A.npy 61 x 17" "inner sizes"
}

# bats test_tags=processes
@test "complex: a worker makes its block from its own complex file" {
    complex_inputs
    mkdir same
    cp A.npy same
    local at=ipc://$PWD/socket
    timeout 600 "$KOFN" matvec A.npy x.npy -s mds:k=1 -q -p "$at" -n 1 -o out.npy &
    timeout 600 "$KOFN" worker --once "$at" --data-path same --patience 20 2>news 3>&- || true
    wait
    grep -q 'made from a file here' news
    close A.npy x.npy
}
