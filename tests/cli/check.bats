load helpers

# Threads of BLAS look like races to ThreadSanitizer.
export OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1 OMP_NUM_THREADS=1

inputs() {
    kofn gen matrix 120 70 -o A.npy --seed 3 -q
    kofn gen matrix 70 90 -o B.npy --seed 4 -q
    py "A, B = np.load('A.npy'), np.load('B.npy')
C = A @ B
np.save('C.npy', C)
C[17, 3] += 1e-6
C[80, :] *= 2
C[5, 5] = np.nan
np.save('D.npy', C)
for n in 'ABC':
    np.save(n + '4.npy', np.load(n + '.npy').astype('f4'))
    np.save(n + '2.npy', np.load(n + '.npy').astype('f2'))
np.save('C4.npy', np.load('A4.npy') @ np.load('B4.npy'))
np.save('C2.npy', (np.load('A2.npy').astype('f8') @ np.load('B2.npy')).astype('f2'))
np.savetxt('C.csv', A @ B, delimiter=',', fmt='%.17g')"
}

@test "check: a right product passes (every type and format)" {
    inputs
    for c in "A.npy B.npy C.npy" "A4.npy B4.npy C4.npy" "A.npy B.npy C.csv" \
        "A2.npy B2.npy C2.npy"; do
        kofn check $c --json >out.json
        json "o['status'] == 'ok' and o['equal'] and o['wrong'] == []" <out.json
        json "0 < o['floor'] < (1 if '2' in '$c' else 1e-3 if '4' in '$c' else 1e-11)" \
            <out.json
    done
    run kofn check A.npy B.npy C.npy
    [ "$status" -eq 0 ]
    [[ "$output" == *"C is A B"* ]]
    run kofn check A.npy B.npy C.npy -q
    [ -z "$output" ]
}

# bats test_tags=asan
@test "check: wrong entries are listed and corrected" {
    inputs
    run kofn check A.npy B.npy D.npy
    [ "$status" -eq 5 ]
    [[ "$output" == *"[5, 5] is nan"* && "$output" == *"[17, 3] is"* ]]
    [[ "$output" == *"wrong rows: 5 17 80"* ]]
    code=0
    kofn check A.npy B.npy D.npy -o fixed.npy --json >out.json || code=$?
    [ "$code" -eq 5 ]
    json "not o['equal'] and o['complete'] and o['wrong_rows'] == [5, 17, 80]" <out.json
    json "len(o['wrong']) == 92 and o['wrong'][0]['was'] is None" <out.json
    json "{(w['row'], w['column']) for w in o['wrong'][:2]} == {(5, 5), (17, 3)}" <out.json
    kofn check A.npy B.npy fixed.npy -q
    py "A, B, F, D = (np.load(n + '.npy') for n in ('A', 'B', 'fixed', 'D'))
assert np.abs(F - A @ B).max() < 1e-12
assert np.isnan(D[5, 5])  # the input is as it was"
}

@test "check: an operand may be sparse" {
    kofn gen graph 300 2000 -o G.mtx -q
    kofn gen matrix 300 7 -o B.npy -q
    kofn matmul G.mtx B.npy -o C.npy -q -s uncoded
    kofn check G.mtx B.npy C.npy -q
    py "C = np.load('C.npy'); C[250, 6] += 0.5; np.save('C.npy', C)"
    run kofn check G.mtx B.npy C.npy
    [ "$status" -eq 5 ]
    [[ "$output" == *"[250, 6] is"* ]]
    run kofn check B.npy G.mtx C.npy
    refused G.mtx dense
}

@test "check: too many wrong entries are not corrected" {
    kofn gen matrix 700 600 -o A.npy -q
    kofn gen matrix 600 800 -o B.npy -q
    kofn gen matrix 700 800 -o C.npy --seed 9 -q
    run kofn check A.npy B.npy C.npy -o fixed.npy
    [ "$status" -eq 5 ]
    [ ! -e fixed.npy ]
    [[ "$output" == *"worth"* ]]
}

# bats test_tags=asan
@test "check: shapes that form no product are refused" {
    inputs
    run kofn check A.npy C.npy B.npy
    refused "120 x 70" "120 x 90"
    run kofn check A.npy B.npy A.npy
    refused "120 x 70" "120 x 90"
    run kofn check D.npy B.npy C.npy
    refused D.npy "NaN or infinite"
    run kofn check A.npy B.npy none.npy
    refused none.npy
    run kofn check A.npy B.npy C.npy -o C.npy
    refused C.npy "to be read"
    run kofn check A.npy B.npy C.npy -o C.txt
    refused C.txt .npy
    run kofn check A.npy B.npy
    refused "A B C"
    run kofn check A.npy B.npy C.npy --tolerance 2
    refused tolerance
    run kofn check A.npy B.npy C.npy -n 3
    refused "option -n"
}

@test "check: --tolerance accepts less precise products" {
    inputs
    py "np.save('C16.npy', np.load('A4.npy').astype('f8') @ np.load('B4.npy').astype('f8'))"
    run kofn check A.npy B.npy C16.npy
    [ "$status" -eq 5 ]
    kofn check A.npy B.npy C16.npy --tolerance 1e-6 -q
    # coded workers: entries that are 0 have no rounding of other rows; others have the
    # rounding of decoding, from any five answers
    py "A = np.load('A.npy'); A[7] = 0; A[3] *= 1e16; np.save('A.npy', A)"
    kofn matmul A.npy B.npy -o coded.npy -q -s mds:k=5,basis=gauss -n 8
    py "assert not np.load('coded.npy')[7].any()"
    kofn check A.npy B.npy coded.npy --tolerance 1e-9 -q
}

@test "check: values beyond the range are not corrected to infinity" {
    py "A = np.full((6, 6), 1e200); B = np.full((6, 5), 1e200); A[0] = 1; B[:, 0] = 1
with np.errstate(all='ignore'): C = A @ B
C[~np.isfinite(C)] = 1e300
np.save('A.npy', A); np.save('B.npy', B); np.save('C.npy', C)"
    run kofn check A.npy B.npy C.npy -o fixed.npy
    [ "$status" -eq 5 ]
    [[ "$output" == *"more than float64 holds"* ]]
    [ ! -e fixed.npy ]
}
