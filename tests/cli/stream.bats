load helpers

inputs() {
    for i in 1 2 3; do
        kofn gen matrix 41 23 -o X$i.npy --seed $i
        kofn gen matrix 23 19 -o Y$i.npy --seed 1$i
    done
    kofn gen matrix 19 5 -o Z.npy --seed 20
    printf '# X Y OUT\nX1.npy Y1.npy C1.npy\nX2.npy Y2.npy C2.npy\n\n' >list.txt
    printf '"X3.npy"\tY3.npy  C3.npy\r\nC1.npy Z.npy D.npy' >>list.txt
}

# close_to_numpy X Y C...: every C is within 1e-12 of NumPy's product
close_to_numpy() {
    py "
words = '$*'.split()
assert words and len(words) % 3 == 0
for x, y, c in zip(*[iter(words)] * 3):
    got, want = np.load(c), np.load(x) @ np.load(y)
    assert got.shape == want.shape, (c, got.shape, want.shape)
    assert np.linalg.norm(got - want) <= 1e-12 * np.linalg.norm(want), c"
}

@test "stream: products agree with NumPy (every scheme)" {
    inputs
    for scheme in dip dip:m=2,n=2,p=1,T=1 idip:W=2,N=4 polynomial:m=2,p=2 \
        uncoded; do
        port=$([ $scheme = uncoded ] && echo threads || echo sim)
        rm -f C?.npy D.npy
        kofn stream list.txt -s $scheme -n 4 -p $port -q
        close_to_numpy X1.npy Y1.npy C1.npy X2.npy Y2.npy C2.npy X3.npy Y3.npy C3.npy \
            C1.npy Z.npy D.npy
    done
    kofn stream list.txt -q
    close_to_numpy C1.npy Z.npy D.npy
    mv Z.npy "a z.npy"
    printf 'X1.npy "Y1.npy" C1.npy\r\nC1.npy "a z.npy" "a d.npy"\r\n' >list.txt
    kofn stream list.txt -q
    mv "a z.npy" Z.npy
    mv "a d.npy" D.npy
    close_to_numpy C1.npy Z.npy D.npy
}

@test "stream: --json has an object per product; stragglers are counted" {
    inputs
    kofn stream - -s idip:W=3,N=4 -n 4 -p sim --pattern iid:p=0.5 \
        --json --verify <list.txt >out.json
    py "
import json
o = [json.loads(l) for l in open('out.json')]
o.sort(key=lambda x: x['product'])
assert [x['product'] for x in o] == [1, 2, 3, 4]
assert [x['output'] for x in o] == ['C1.npy', 'C2.npy', 'C3.npy', 'D.npy']
for x in o:
    assert x['status'] == 'ok' and x['ended'] - x['began'] <= 2
    assert x['plain'] + x['coded'] >= 8 and x['rel_error'] <= x['predicted']"
    run kofn stream list.txt -p sim --verify
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "C1.npy = X1.npy Y1.npy: rounds 1 to "*", found "* ]]
}

@test "stream: a row of 1e16 does not spoil others; the worst is named" {
    py "X = np.tile([1.0, 2, 3, 4], (16, 1)); X[3] *= 4e15; np.save('X.npy', X)
np.save('Y.npy', np.ones((4, 8)))"
    # scaled rows differ by a factor below 2. So one of 128 elements is off by at most
    # 12 times the relative error of all of them.
    echo "X.npy Y.npy C.npy" |
        kofn stream - -s idip:W=3,N=4 -n 4 -p sim --pattern iid:p=0.5 --json \
            --verify >out.json
    json "o['coded'] > 0 and o['row_error'] <= 24 * o['predicted'] < 1e-10 \
        and 0 <= o['worst_row'] < 16" <out.json
    py "import json; o = json.load(open('out.json'))
assert (abs(np.load('C.npy')[[0, 1, 2, 4, 15]] - 10) <= 240 * o['predicted']).all()"
}

@test "stream: a line is done before the next one comes" {
    inputs
    $PYTHON - "$KOFN" <<'END'
import json, subprocess, sys
p = subprocess.Popen([sys.argv[1], "stream", "-", "--json", "-n", "4"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for i in (1, 2, 3):
    print(f"X{i}.npy Y{i}.npy C{i}.npy", file=p.stdin, flush=True)
    assert json.loads(p.stdout.readline())["product"] == i
p.stdin.close()
assert p.wait() == 0
END
    close_to_numpy X3.npy Y3.npy C3.npy
}

# bats test_tags=asan
@test "stream: a product waits for its input, whatever the path's name" {
    inputs
    mkdir d
    ln -s . here
    printf 'X1.npy Y1.npy C1.npy\n./C1.npy Z.npy d/D.npy\nX2.npy Y2.npy here/C2.npy\n' >list.txt
    printf "C2.npy Z.npy d/../E.npy\nX3.npy Y3.npy $PWD/C1.npy\n" >>list.txt
    kofn stream list.txt -n 4 -p sim -q -s dip:T=3
    close_to_numpy C2.npy Z.npy E.npy X3.npy Y3.npy C1.npy
    kofn stream list.txt -n 1 -p sim -q -s uncoded
    cp C1.npy C3.npy
    close_to_numpy X3.npy Y3.npy C3.npy
}

@test "stream: workers leave and join; journal and record replay" {
    inputs
    printf '2 leave 0\n2 join\n3.5 leave 1\n' >events.txt
    kofn stream list.txt -n 3 -s dip:m=2,p=2,T=1 -p sim -e events.txt -q \
        --journal j --trace t.json --metrics m
    close_to_numpy C1.npy Z.npy D.npy
    kofn replay j --step | grep -q "round 2 is over"
    kofn stream list.txt -n 4 -s dip:m=2,p=2,T=1,lambda=2 -p sim -q \
        --pattern iid:p=0.4 --seed 5 --record r.csv
    py "
r = np.loadtxt('r.csv', delimiter=',')
assert r.shape[1] == 4 and (r.min(axis=1) == 1).all() and np.isinf(r).any()"
    kofn stream list.txt -n 4 -p sim -q --pattern r.csv
}

@test "stream: the trace has a track for rounds and a colour per product" {
    inputs
    for port in sim threads; do
        kofn stream list.txt -n 4 -s idip:W=3,N=4 -p $port -q --trace t.json \
            --metrics m -w straggle=0.5,factor=3 --seed 3
        grep -q '^kofn_round_seconds_count 4$' m
        py "
import json, collections
e = json.load(open('t.json'))['traceEvents']
track = {x['tid']: x['args']['name'] for x in e if x['name'] == 'thread_name'}
x = [i for i in e if i['ph'] == 'X']
rounds = [i['name'] for i in x if i['tid'] == 0]
assert rounds == [f'round {k + 1}' for k in range(len(rounds))], rounds
assert len(rounds) >= 4
assert sorted(i['name'] for i in x if track[i['tid']] == 'products') == \
    [f'product {k}' for k in (1, 2, 3, 4)]
used = collections.defaultdict(set)
for i in x:
    if i.get('cat') == 'work': used[i['name']].add(i['cname'])
assert set(used) == {f'product {k}' for k in (1, 2, 3, 4)}, used
assert len({min(c) for c in used.values()}) == 4 == sum(len(c) for c in used.values())
for t in track:
    at = 0
    for i in sorted((i for i in x if i['tid'] == t), key=lambda i: i['ts']):
        assert i['ts'] >= at - 1e-3, (track[t], i)
        at = max(at, i['ts'] + i['dur'])"
    done
}

@test "stream: a product is decoded while the next one is computed" {
    for i in 1 2 3 4 5 6; do
        kofn gen matrix 256 256 -o A$i.npy --seed $i
        printf 'A%s.npy A%s.npy B%s.npy\n' $i $i $i >>six.txt
    done
    kofn stream six.txt -s dip:m=2,p=2,T=2 -n 6 -p sim -w clock=measured -q \
        --trace t.json
    py "
import json
e = [x for x in json.load(open('t.json'))['traceEvents'] if x['ph'] == 'X']
def spans(which):
    return [(x['ts'], x['ts'] + x['dur']) for x in e if which(x)]
decoded = sorted(spans(lambda x: x['name'] == 'decode'))
assert len(decoded) == 6, decoded
for i, (begin, end) in enumerate(decoded[:-1]):
    work = spans(lambda x: x.get('cat') == 'work' and x['name'] == f'product {i + 2}')
    assert any(a < end and begin < b for a, b in work), (i, begin, end, work)"
}

@test "stream: a wrong worker is named and products are right, or it fails" {
    inputs
    echo "1 corrupt 1" >lie.txt
    kofn stream list.txt -s dip:m=2,p=2,T=1 -n 4 -p sim -e lie.txt \
        --errors probabilistic --json --verify --journal j >out.json
    py "
import json
o = [json.loads(l) for l in open('out.json')]
assert len(o) == 4
for x in o:
    assert x['corrupted'] == [1] and x['rel_error'] <= x['predicted']
    assert 0 < x['floor'] <= 1e-6
assert any(x['corrupt_results'] for x in o)"
    kofn replay j
    run kofn stream list.txt -s dip:m=2,p=2,T=1 -n 4 -p sim -e lie.txt \
        --errors probabilistic
    [ "$status" -eq 0 ]
    [[ "$output" == *"wrong answers, worker 1"* ]]
    run kofn stream list.txt -s dip:m=2,p=2,T=1 -n 4 -p sim -e lie.txt \
        --errors detect
    [ "$status" -eq 5 ]
    run kofn stream list.txt -s uncoded --errors detect
    refused "uncoded needs every answer"
}

@test "stream: rounds do not wait for a silent worker" {
    inputs
    printf '1,1,inf,1\n1,inf,inf,1\n' >slow.csv
    for scheme in dip:m=2,n=2,p=1,T=1 idip:W=2,N=1 uncoded; do
        rm -f C?.npy D.npy
        kofn stream list.txt -s $scheme -n 4 -p sim --lease 0 --pattern slow.csv \
            --json --verify --journal j >out.json
        py "
import json
o = [json.loads(l) for l in open('out.json')]
assert len(o) == 4 and all(x['rel_error'] <= x['predicted'] for x in o), o"
        close_to_numpy C1.npy Z.npy D.npy
        kofn replay j
    done
    kofn stream list.txt -s uncoded -n 4 -p threads --lease 0 --pattern slow.csv -q
    close_to_numpy C1.npy Z.npy D.npy
    run kofn stream list.txt --late 0.5
    refused --late
}

@test "stream: one signal ends a long run" {
    kofn gen matrix 3000 200 -o X.npy
    kofn gen matrix 200 3000 -o Y.npy
    echo "X.npy Y.npy C.npy" >big.txt
    "$KOFN" stream big.txt -n 4 -s dip:m=300,p=300 --metrics m &
    pid=$!
    wait_for test -s m
    kill -INT $pid
    wait_for eval "! kill -0 $pid 2>/dev/null"
    wait $pid && status=0 || status=$?
    [ "$status" -eq 130 ]
    [ ! -e C.npy ]
}

# bats test_tags=asan
@test "stream: impossible requests are refused in one line" {
    inputs
    run kofn stream nothing.txt
    refused nothing.txt
    for line in "X1.npy" "X1.npy Y1.npy C.npy D.npy" "X1.npy X2.npy C.npy" \
        "X1.npy missing.npy C.npy"; do
        echo "$line" >bad.txt
        run kofn stream bad.txt
        [ "$status" -eq 2 ]
        [ "${#lines[@]}" -eq 1 ]
    done
    run kofn stream list.txt -s mds
    [ "$status" -ne 0 ]
    [[ "$output" == *"mds does not serve a stream"* ]]
    run kofn stream list.txt -s dip:lambda=9
    [[ "$output" == *"lambda = 9"* ]]
    run kofn stream list.txt --mu -1
    refused --mu
    kofn stream /dev/null
}
