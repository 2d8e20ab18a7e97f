load helpers

inputs() {
    kofn gen matrix 211 37 -o X.npy --seed 3
    kofn gen vector 37 -o w.npy --seed 4
    kofn gen matrix 37 5 -o B.npy --seed 5
}

# close A B: within 1e-12 of NumPy's product
close_to_numpy() {
    py "
y = np.load('$3'); want = np.load('$1') @ np.load('$2')
assert y.shape == want.shape, (y.shape, want.shape)
assert np.linalg.norm(y - want) <= 1e-12 * np.linalg.norm(want)"
}

# bats test_tags=processes
@test "product: matvec and matmul agree with NumPy (every kind of scheme)" {
    inputs
    local port=threads
    for scheme in elastic elastic:k=3 mds mds:k=5,basis=harmonic \
        replication uncoded elastic:k=4,groups=2 mds:weight=5,k=6; do
        kofn matvec X.npy w.npy -o y-$scheme.npy -s $scheme -p $port -q
        [ $port = threads ] && port=sim || port=threads
        kofn matmul X.npy B.npy -o C-$scheme.npy -s $scheme -p $port -q
    done
    py "
import glob
for results, with_what in (('y-*.npy', 'w.npy'), ('C-*.npy', 'B.npy')):
    want = np.load('X.npy') @ np.load(with_what)
    found = glob.glob(results)
    assert len(found) == 8, found
    for f in found:
        y = np.load(f)
        assert y.shape == want.shape, (f, y.shape, want.shape)
        assert np.linalg.norm(y - want) <= 1e-12 * np.linalg.norm(want), f"
}

# bats test_tags=asan, processes
@test "json: a product has the documented keys" {
    inputs
    kofn matvec X.npy w.npy --json --verify -r 3 >out.json
    json "all(k in o for k in 'status command scheme workers threshold rounds \
iterations seconds encode_seconds wait_seconds decode_seconds joined left late \
corrupted noise rel_error per_round'.split())" <out.json
    json "o['status'] == 'ok' and o['rounds'] == 3 and o['rel_error'] <= 1e-12" <out.json
    json "abs(o['total_seconds'] - sum(o[k + '_seconds'] for k in 'read start encode \
place send wait receive decode check verify write other'.split())) < 1e-6 and \
0 < o['seconds'] < o['total_seconds'] and o['start_seconds'] > 0" <out.json
    json "all(abs(r['seconds'] - sum(r[k + '_seconds'] for k in 'encode place send wait \
receive decode check outside'.split())) < 1e-6 and len(r['computed_seconds']) == 8 \
for r in o['per_round'])" <out.json
    json "len(o['per_round']) == 3 and o['per_round'][0]['live'] == 8 and \
len(o['per_round'][0]['rows']) == 8 and o['blas_threads'] == 1" <out.json
}

# bats test_tags=asan, processes
@test "json: every field of a report is in --json and the manual" {
    inputs
    echo "X.npy B.npy C.npy" >list.txt
    kofn matvec X.npy w.npy -p sim --json >matvec.json
    kofn stream list.txt -p sim --json >stream.json
    kofn --manual >manual
    py "import json, re
table = re.findall(r'^    X\((\w+), \w+, (\w+),(?:\s|\\\\)*(?:\"(\w+)\")?', open('$KOFN_SOURCE/src/base/report.h').read(), re.M)
keys = {key for _, kind, key in table if kind != 'LIST'}
assert len(table) > 30 and '' not in keys, table
for f in 'matvec', 'stream':
    assert keys <= set(json.load(open(f + '.json'))), keys - set(json.load(open(f + '.json')))
assert keys <= set(re.findall(r'^\.B (\w+)\$', open('manual').read(), re.M))"
}

@test "formats: IDX and CIFAR-10 with labels, also gzipped" {
    py "import gzip, struct
r=np.random.default_rng(1); X=r.integers(0,256,(30,3072)); y=r.integers(0,10,30)
np.save('X.npy', X.astype(float)); np.save('y.npy', y.astype(float))
gzip.open('images-idx3-ubyte.gz','wb').write(b'\0\0\x08\x03'+struct.pack('>3I',30,48,64)+X.astype('u1').tobytes())
open('labels-idx1-ubyte','wb').write(b'\0\0\x08\x01'+struct.pack('>I',30)+y.astype('u1').tobytes())
open('batch.bin','wb').write(np.c_[y,X].astype('u1').tobytes())
gzip.open('y.csv.gz','wt').write('\n'.join(map(str,y)))
gzip.open('X.npy.gz','wb').write(open('X.npy','rb').read())"
    kofn regress X.npy y.npy -o w.npy --iterations 3 -s elastic:k=4 -q
    for files in "images-idx3-ubyte.gz labels-idx1-ubyte" "batch.bin batch.bin" "X.npy.gz y.csv.gz"; do
        kofn regress $files -o v.npy --iterations 3 -s elastic:k=4 -q
        py "assert np.allclose(np.load('v.npy'), np.load('w.npy'), rtol=1e-8, atol=0)"
    done
}

# bats test_tags=asan
@test "formats: npy of all kinds, Matrix Market, CSV" {
    py "
rng = np.random.default_rng(1)
X = rng.normal(size=(50, 7)); w = rng.normal(size=7)
np.save('X.npy', X); np.save('w.npy', w); np.save('F.npy', np.asfortranarray(X))
np.save('big.npy', X.astype('>f8')); np.save('y.npy', X @ w)
np.save('f4.npy', X.astype('<f4')); np.save('bigf4.npy', X.astype('>f4'))
np.lib.format.write_array(open('v2.npy', 'wb'), X, version=(2, 0))
np.lib.format.write_array(open('v3.npy', 'wb'), X, version=(3, 0))
np.savetxt('X.csv', X, delimiter=',', fmt='%.17g')
open('X.mtx', 'w').write('%%MatrixMarket matrix array real general\n50 7\n' +
    '\n'.join('%.17g' % v for v in X.T.ravel()) + '\n')
open('S.mtx', 'w').write('%%MatrixMarket matrix coordinate real general\n50 7 350\n' +
    '\n'.join('%d %d %.17g' % (i + 1, j + 1, X[i, j]) for j in range(7) for i in range(50)) + '\n')"
    for f in X.npy F.npy big.npy v2.npy v3.npy X.csv X.mtx S.mtx; do
        kofn matvec $f w.npy -o out.npy -q
        py "
y = np.load('out.npy'); want = np.load('y.npy')
assert y.shape == want.shape and y.dtype == np.float64
assert np.linalg.norm(y - want) <= 1e-13 * np.linalg.norm(want), '$f'"
    done
    py "np.save('w4.npy', np.load('w.npy').astype('f4'))"
    for f in f4.npy bigf4.npy; do
        kofn matvec $f w4.npy -o out.npy -q
        py "
y = np.load('out.npy'); want = np.load('y.npy')
assert y.dtype == np.float32
assert np.linalg.norm(y - want) <= 1e-5 * np.linalg.norm(want), '$f'"
    done
}

# 2^24 + 1 is no float32, and 0.1 is another number there.
# bats test_tags=processes
@test "product: float32 times float64 gives float64 (either order)" {
    py "
np.save('I4.npy', np.eye(2, dtype='f4')); np.save('w8.npy', np.array([16777217, 0.1]))
np.save('I8.npy', np.array([[1.0, 0], [0, 16777217], [0.1, 0]])); np.save('w4.npy', np.ones(2, 'f4'))"
    kofn matvec I4.npy w8.npy -n 2 -s uncoded -o y.npy -q
    py "y = np.load('y.npy'); assert y.dtype == np.float64 and np.allclose(y, [16777217, 0.1], 1e-14, 0), y"
    kofn matvec I8.npy w4.npy -n 2 -s uncoded -o y.npy -q
    py "y = np.load('y.npy'); assert y.dtype == np.float64 and np.allclose(y, [1, 16777217, 0.1], 1e-14, 0), y"
}

# bats test_tags=asan
@test "formats: npy integers and half floats, spreadsheet CSV" {
    py "
Z = np.random.default_rng(2).integers(0, 2, (6, 3)); w = np.array([1, 2, 4])
for t in 'i1 i8 u2 u4 f2 ?'.split(): np.save(t.replace('?', 'b1') + '.npy', Z.astype(t))
np.save('w.npy', w); np.save('y.npy', Z @ w)
rows = [';'.join('%d,0' % v for v in r) + ';' for r in Z]
open('Z.csv', 'w', encoding='utf-8-sig').write('\r\n'.join(
    ['sep=;', 'height (cm);a, b;n'] + rows))"
    for f in i1 i8 u2 u4 f2 b1; do
        kofn matvec $f.npy w.npy -o out.npy -s uncoded -n 3 -q
        py "assert (np.load('out.npy') == np.load('y.npy')).all(), '$f'"
    done
    kofn matvec Z.csv w.npy -o out.npy -s uncoded -n 3 -q
    py "assert (np.load('out.npy') == np.load('y.npy')).all()"
    printf 'NA,NA,NA\n1,2,3\n' >missing.csv
    run kofn matvec missing.csv w.npy
    refused missing.csv "line 1 has no numbers and could be data"
    head -c 24584 /dev/zero >raw.bin
    run kofn matvec raw.bin w.npy
    refused raw.bin "raw numbers" numpy.save
}

@test "product: the suffix of -o chooses the format" {
    inputs
    kofn matvec X.npy w.npy -o y.csv -q
    kofn matvec X.npy w.npy -o y.npy -q
    py "assert np.allclose(np.loadtxt('y.csv'), np.load('y.npy'), rtol=1e-15)"
}

@test "product: a sparse second factor agrees with NumPy" {
    py "
i, j = np.random.default_rng(1).integers((30, 40), size=(150, 2)).T
S = np.zeros((30, 40)); S[i, j] = i - 2.0 * j
np.save('S.npy', S); np.save('D.npy', np.random.default_rng(2).random((7, 30)).astype('f4'))
with open('S.mtx', 'w') as f:
    print('%%MatrixMarket matrix coordinate real general', file=f)
    print(30, 40, (S != 0).sum(), file=f)
    for a, b in zip(*S.nonzero()): print(a + 1, b + 1, S[a, b], file=f)"
    kofn matmul D.npy S.mtx -o C.npy -n 5 --verify --errors probabilistic --json >out.json
    py "
C, want = np.load('C.npy'), np.load('D.npy').astype('f8') @ np.load('S.npy')
assert C.shape == want.shape and abs(C - want).max() <= 1e-12 * abs(want).max()"
    run kofn matmul S.mtx S.mtx
    refused S.mtx "write it as an array"
    run kofn matmul S.npy S.mtx
    refused "30 x 40" "inner sizes"
    run kofn matvec D.npy S.mtx
    refused "kofn matmul"
}

@test "product: wrong shapes, missing and malformed files are refused" {
    inputs
    kofn gen vector 36 -o short.npy
    run kofn matvec X.npy short.npy
    refused X.npy short.npy 37 36
    run kofn matvec nowhere.npy w.npy
    refused nowhere.npy "No such file"
    run kofn matvec . w.npy
    refused "."
    head -c 300 X.npy >cut.npy
    run kofn matvec cut.npy w.npy
    refused cut.npy
    echo "1,2,x" >bad.csv
    run kofn matvec bad.csv w.npy
    [ "$status" -eq 2 ]
    py "
a = np.ones((4, 37)); a[2, 3] = np.nan; np.save('nan.npy', a)
a[2, 3] = np.inf; np.save('inf.npy', a)
z = np.ones((4, 37), dtype=complex); z[2, 3] = 1 + 1j * np.nan; np.save('complex_nan.npy', z)
np.save('cube.npy', np.ones((2, 2, 2)))"
    for f in nan.npy inf.npy complex_nan.npy cube.npy; do
        run kofn matvec $f w.npy
        refused $f
    done
    run kofn matvec X.npy B.npy
    refused B.npy matmul
}

# bats test_tags=asan
@test "product: impossible schemes are refused with possible ones" {
    inputs
    run kofn matvec X.npy w.npy -s mds:k=9
    refused "k = 9" 8
    run kofn matvec X.npy w.npy -s elastic:k=0
    refused "k=0"
    run kofn matvec X.npy w.npy -s elastic:q=3
    refused "q" "k, basis"
    run kofn matvec X.npy w.npy -s elastic:k=3,k=4
    refused twice
    run kofn matvec X.npy w.npy -s elastic:k=
    refused "k="
    run kofn matvec X.npy w.npy -s elastic:basis=pauli
    refused pauli quaternion
    run kofn matvec X.npy w.npy -s nonsense
    refused nonsense elastic mds
    run kofn matvec X.npy w.npy -s elastic:k=3,groups=2
    refused groups
    run kofn matvec X.npy w.npy -s mds:k=6,weight=1
    refused weight
}

# bats test_tags=processes
@test "product: an inaccurate answer is refused" {
    kofn gen matrix 400 9 -o X.npy
    kofn gen vector 9 -o w.npy
    run kofn matvec X.npy w.npy -n 20 -s mds-published:k=18,basis=vandermonde -o y.npy
    [ "$status" -eq 1 ]
    [[ "$output" == *"exceeds max_error"* ]]
    [ ! -e y.npy ]
}

@test "json: a failure prints an object with the message" {
    inputs
    failure() { # failure STATUS WORD ...
        want=$1 word=$2
        shift 2
        kofn "$@" --json >out.json 2>err.txt && return 1
        [ "$?" -eq "$want" ] || { echo "$*: not $want"; return 1; }
        json "o['status'] == 'failed' and '$word' in o['error']" <out.json
        [ "$(besides_blas <err.txt | wc -l)" -eq 1 ]
    }
    failure 2 nowhere.npy matvec nowhere.npy w.npy
    failure 2 nonsense matvec X.npy w.npy -s nonsense
    failure 1 nowhere/y.npy matvec X.npy w.npy -o nowhere/y.npy
    failure 2 nowhere pagerank nowhere
    failure 2 nowhere replay nowhere
    failure 2 nonsense schemes nonsense
    printf '1 leave 0\n1 leave 1\n1 leave 2\n' >events.txt
    failure 4 "3 workers" matvec X.npy w.npy -n 6 -s elastic:k=4 -e events.txt
}

@test "product: an impossible -o is refused before the work" {
    inputs
    mkdir there.npy
    run kofn matvec X.npy w.npy -o y.txt -r 100000000
    refused y.txt .npy
    for o in there.npy nowhere/y.npy; do
        run kofn matvec X.npy w.npy -o $o -r 100000000
        [ "$status" -eq 1 ]
        [[ "$output" == *$o* ]]
    done
    run kofn gen graph 10 20 -o G.npy
    refused G.npy .mtx
}

@test "product: closed descriptors do not become files" {
    inputs
    kofn matvec X.npy w.npy -o y.npy <&- >&- 2>&-
    close_to_numpy X.npy w.npy y.npy
    kofn matvec X.npy w.npy --journal j 2>&-
    kofn replay j
}

@test "product: progress appears on terminals only and before messages vanishes" {
    command -v script >/dev/null || skip "no script"
    inputs
    printf '400 leave 0\n400 leave 1\n400 leave 2\n400 leave 3\n400 leave 4\n' >events.txt
    run kofn matvec X.npy w.npy -r 500 -w delay=0.001,straggle=1 -e events.txt
    [ "$(besides_blas <<<"$output" | wc -l)" -eq 1 ]
    TERM=xterm run script -qec "'$KOFN' matvec X.npy w.npy -r 500 -e events.txt \
        -w delay=0.001,straggle=1" /dev/null
    [ "$status" -eq 4 ]
    [[ "$output" == *"of 500"*"workers live"*"B/s"*$'\r\e[Kkofn: 3 workers'* ]]
    # in long rounds the display is updated while answers are outstanding
    TERM=xterm run script -qec "'$KOFN' matvec X.npy w.npy -r 2 -s uncoded -n 4 \
        -w delay=0.5,straggle=1" /dev/null
    [ "$status" -eq 0 ]
    [[ "$output" == *"strips to come from "[1-4]" workers"* ]]
    # each line is shorter than a row of the terminal
    TERM=xterm run script -qec "stty cols 30; '$KOFN' matvec X.npy w.npy -r 2 -s uncoded \
        -n 4 -w delay=0.5,straggle=1" /dev/null
    [ "$status" -eq 0 ]
    drawn=$(tr '\r' '\n' <<<"$output" | sed -n 's/^\x1b\[K\(round\)/\1/p')
    [ -n "$drawn" ]
    [ "$(wc -L <<<"$drawn")" -le 29 ]
}

@test "product: no -o writes nothing; an unwritable -o fails" {
    inputs
    before=$(ls | wc -l)
    kofn matvec X.npy w.npy -q
    [ "$(ls | wc -l)" -eq "$before" ]
    run kofn matvec X.npy w.npy -o nowhere/y.npy -q
    [ "$status" -eq 1 ]
    [[ "$output" == *nowhere/y.npy* ]]
}

@test "product: an output that is a mount point is written in place" {
    unshare -rm true 2>/dev/null || skip "no mounts here"
    inputs
    echo old >src.npy
    touch y.npy
    unshare -rm sh -c 'mount --bind src.npy y.npy && "$1" matvec X.npy w.npy -o y.npy -q' \
        sh "$KOFN"
    close_to_numpy X.npy w.npy src.npy
    [ -z "$(ls -A | grep tmp)" ]
    # if that fails the result still exists
    echo old >src.npy
    run unshare -rm sh -c 'mount --bind src.npy y.npy && mount -o remount,bind,ro y.npy &&
        "$1" matvec X.npy w.npy -o y.npy -q' sh "$KOFN"
    [ "$status" -eq 1 ]
    [[ "$output" == *".tmp has all of it: cannot write "*"y.npy: Read-only file system"* ]]
    mv .kofn-*.tmp y.npy
    close_to_numpy X.npy w.npy y.npy
}

@test "product: a full disk leaves the old file and no other" {
    inputs
    kofn gen vector 3 -o y.npy
    cp y.npy old.npy
    kofn gen matrix 40000 2 -o L.npy
    kofn gen vector 2 -o two.npy
    run bash -c "ulimit -f 8; trap '' XFSZ; exec '$KOFN' matvec L.npy two.npy -o y.npy -q"
    [ "$status" -eq 1 ]
    [[ "$output" == *y.npy* ]]
    cmp y.npy old.npy
    [ "$(ls -A | grep -vcE '^(X|w|B|y|old|L|two)\.npy$')" -eq 0 ]
}

@test "product: Ctrl-C exits with 130 and leaves no output" {
    inputs
    "$KOFN" matvec X.npy w.npy -o y.npy -r 100000000 -q --metrics m.txt \
        --report p.html 2>err.txt &
    pid=$!
    wait_for under_way m.txt
    kill -INT $pid
    wait $pid || code=$?
    [ "$code" -eq 130 ]
    [ ! -e y.npy ]
    [ "$(ls -A | grep -vcE '^(X|w|B)\.npy$|^(m|err).txt$|^p.html$')" -eq 0 ]
    grep -q '^kofn: interrupted: nothing was kept to continue from; --checkpoint DIR' err.txt
    grep -q '^kofn: written until then: --metrics m.txt, --report p.html$' err.txt
    grep -q '"ended","then a signal ended it"' p.html
}

@test "product: workers ignore a terminal's Ctrl-C" {
    inputs
    "$KOFN" matvec X.npy w.npy -o y.npy -n 4 -p processes -r 10000 --json \
        --metrics m.txt >out.json &
    pid=$!
    wait_for under_way m.txt
    pkill -INT -P $pid || true # it may be over
    wait $pid
    json "o['rounds'] == 10000 and o['left'] == 0" <out.json
}

# rounds_are N: N rounds have ended.
rounds_are() {
    [ "$(sed -n 's/^kofn_round //p' m.txt 2>/dev/null)" -ge "$1" ] 2>/dev/null
}

@test "product: a stopped worker may answer thousands of rounds late" {
    inputs
    "$KOFN" matvec X.npy w.npy -o y.npy -n 4 -p processes -r 20000 --json \
        --metrics m.txt >out.json &
    pid=$!
    wait_for rounds_are 100
    worker=$(pgrep -P $pid | head -n 1)
    kill -STOP "$worker" || true # it may be over
    until=$((2000 + $(sed -n 's/^kofn_round //p' m.txt)))
    wait_for rounds_are $((until < 20000 ? until : 20000))
    kill -CONT "$worker" || true
    wait $pid
    json "o['rounds'] == 20000 and o['left'] == 0" <out.json
}

@test "product: SIGTERM ends a simulated run with 143" {
    inputs
    "$KOFN" matvec X.npy w.npy -p sim -r 100000000 -q --metrics m.txt &
    pid=$!
    wait_for under_way m.txt
    kill -TERM $pid
    wait $pid || code=$?
    [ "$code" -eq 143 ]
}

# bats test_tags=processes
@test "product: a row of 1e16 does not spoil other rows" {
    py "X = np.tile([1.0, 2, 3, 4], (16, 1)); X[0] *= 4e15; np.save('wide.npy', X)
np.save('ones.npy', np.ones(4))"
    # scaled rows differ by a factor below 2. So one of 16 elements is off by at most 4
    # times the relative error of all of them.
    for s in elastic mds:k=4 uncoded; do
        kofn matvec wide.npy ones.npy -s $s -o wide_y.npy --verify --json >out.json
        json "o['row_error'] <= 8 * o['predicted_error'] < 1e-10 and 0 <= o['worst_row'] < 16" <out.json
        py "import json; o = json.load(open('out.json'))
assert (abs(np.load('wide_y.npy')[1:] - 10) <= 8 * 10 * o['predicted_error']).all()"
    done
}

@test "product: repeated --faults reach worker processes" {
    inputs
    run kofn matvec X.npy w.npy -o y.npy -n 4 -s mds:k=2 -p processes --errors detect \
        -w corrupt=1 -w factor=2
    [ "$status" -eq 5 ]
    [ ! -e y.npy ]
    local many=() # as many as nobody needs
    for _ in {1..60}; do many+=(-w factor=2.0000); done
    run kofn matvec X.npy w.npy -o y.npy "${many[@]}"
    refused --faults "more than 510 characters"
}

@test "report: the last line says in a sentence how the run went" {
    inputs
    printf '2 leave 1\n1 slow 3 6\n3 corrupt 5\n' >events.txt
    kofn matvec X.npy w.npy -o y.npy -n 8 -s elastic:k=4 -r 12 -e events.txt -p sim \
        -w work=1000 --errors keyed 2>err.txt
    tail -1 err.txt >last.txt
    grep -q '^elastic:k=4: any 4 of 8 workers suffice; 1 was lost (worker 1), 1 was slow (worker 3, 6.0 times), [1-9][0-9]* wrong results of worker 5 were left out; 12 rounds in .* s (simulated)' last.txt
    grep -q ' more than without a loss$' last.txt
    kofn matvec X.npy w.npy -o y.npy -s uncoded 2>err.txt
    tail -1 err.txt | grep -q '^uncoded: all 8 workers are needed; none was lost.*; 1 round in '
}

@test "memory: blocks that this machine cannot hold are refused at once" {
    python3 - <<'END'
header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (20000, 2500), }"
with open("A.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00v\x00" + header.ljust(117) + b"\n")
    f.truncate(128 + 8 * 20000 * 2500)  # 400 MB that take no room on the disk
END
    kofn gen vector 2500 -o w.npy
    run "$KOFN" matvec A.npy w.npy -p processes -n 5000 -s mds:k=5
    [ "$status" -eq 2 ]
    [[ "$output" == *"5000 workers would store 80 MB each, 400 GB in all"* ]]
}
