load helpers

# bats test_tags=asan
@test "pagerank: ranks and iterations agree with NumPy" {
    kofn gen graph 300 2000 -o G.mtx --seed 2
    printf '3.5 leave 0\n5 leave 7\n6 join\n9.2 leave 3\n' >events.txt
    kofn pagerank G.mtx -o rank.npy -e events.txt --verify --json >out.json
    json "o['status'] == 'ok' and o['rel_error'] <= 1e-12 and o['left'] == 3" <out.json
    py "
import json
rows = [l.split() for l in open('G.mtx') if l[0] != '%']
n = int(rows[0][0]); A = np.zeros((n, n))
for r in rows[1:]: A[int(r[0]) - 1, int(r[1]) - 1] = 1
out = A.sum(1); M = np.where(out > 0, 1 / np.maximum(out, 1), 0)[:, None] * A
v = np.full(n, 1 / n); it = 0
while True:
    new = .85 * (M.T @ v + v[out == 0].sum() / n) + .15 / n
    change = abs(new - v).sum(); v = new; it += 1
    if change < 1e-10: break
r = np.load('rank.npy')
assert abs(r - v).max() <= 1e-12 and abs(r.sum() - 1) < 1e-12
assert json.load(open('out.json'))['iterations'] == it"
}

@test "power: a sparse matrix has the eigenvalue that NumPy finds" {
    py "
i, j = np.random.default_rng(1).integers(40, size=(2, 300))
lines = sorted(set(zip(i, j)))
with open('S.mtx', 'w') as f:
    print('%%MatrixMarket matrix coordinate real general', file=f)
    print(40, 40, len(lines), file=f)
    for a, b in lines: print(a + 1, b + 1, 1 + (a + 2 * b) % 5, file=f)"
    kofn power S.mtx -o v.npy --verify --json -n 4 --tol 1e-13 >out.json
    kofn power S.mtx -o w.npy --masterless --json -n 3 --tol 1e-13 >mesh.json
    py "
import json
S = np.zeros((40, 40))
for line in open('S.mtx').readlines()[2:]:
    a, b, x = line.split(); S[int(a) - 1, int(b) - 1] = float(x)
most = max(abs(np.linalg.eigvals(S)))
for f, vector in ('out.json', 'v.npy'), ('mesh.json', 'w.npy'):
    o, v = json.load(open(f)), np.load(vector).ravel()
    assert abs(o['eigenvalue'] - most) <= 1e-9 * most, o['eigenvalue']
    assert abs(S @ v - most * v).max() <= 1e-9 * most
assert o['converged']"
    run kofn power v.npy -o w.npy
    refused "square"
}

@test "pagerank: an edge list equals the Matrix Market graph" {
    printf '# FromNodeId\tToNodeId\n0\t1\n1\t2\n2\t0\n4\t0\n4\t2\n3\t0\n' >g.txt
    printf '%%%%MatrixMarket matrix coordinate pattern general\n5 5 6\n1 2\n2 3\n3 1\n5 1\n5 3\n4 1\n' >G.mtx
    gzip -k g.txt
    kofn pagerank G.mtx -o want.npy -s uncoded -q
    for f in g.txt g.txt.gz; do
        kofn pagerank $f -o rank.npy -s uncoded -q
        cmp rank.npy want.npy
    done
    printf '0 1 0.5\n' >weighted.txt
    run kofn pagerank weighted.txt
    refused weighted.txt "line 1" "0.5" --weights
}

# bats test_tags=asan
@test "pagerank: names, weights and directions of edges are as asked for" {
    printf '# Nodes: 4 Edges: 4\nsource,target,w\n' >g.csv
    printf '7,1000000000000,2\n7,03,6\n3,7,1\n3,7,1\n' >>g.csv
    run kofn pagerank g.csv -s uncoded -o r.csv
    refused g.csv "line 3" "2" --weights
    run kofn pagerank g.csv --weights -s uncoded -o r.csv --ids ids.npy --top 1
    [ "$status" -eq 0 ]
    [[ "$output" == *"states 4 nodes and 4 edges, and it has 3 and 4"* && "$output" == *"7 "* ]]
    kofn pagerank g.csv --weights -s uncoded -o r.npy --ids ids.txt --top 2 --json -q >j
    # M by hand: 3 -> 7; 7 -> 3 with 6/8, and to the third node, which points to all, with 2/8
    py "
M = np.array([[0, .75, 1/3], [1, 0, 1/3], [0, .25, 1/3]])
v = np.linalg.solve(np.eye(3) - .85 * M, np.full(3, .15 / 3))
assert abs(np.load('r.npy') - v).max() < 1e-9
rows = [l.strip().split(',') for l in open('r.csv')]
assert rows[0] == ['node', 'rank'] and [r[0] for r in rows[1:]] == ['3', '7', '1000000000000']
assert abs(np.array([float(r[1]) for r in rows[1:]]) - v).max() < 1e-9
ids = np.load('ids.npy')
assert ids.dtype == np.int64 and list(ids) == [3, 7, 10**12]
assert open('ids.txt').read().split() == ['3', '7', '1000000000000']"
    json "o['top'] == [[n, o['top'][k][1]] for k, n in enumerate(['7', '3'])]" <j
    printf 'a b\nb c\nc a\nc b\n' >names.tsv
    kofn pagerank names.tsv -s uncoded -o r.csv -q
    [ "$(cut -d, -f1 r.csv | tr '\n' ' ')" = "node a b c " ]
    kofn pagerank names.tsv --undirected -s uncoded -o r.npy -q
    py "assert abs(np.load('r.npy') - 1 / 3).max() < 1e-9"
    run kofn pagerank names.tsv --ids x.npy -o kept.csv
    refused "node 'a'" "x.txt"
    [ "$(wc -l <kept.csv)" -eq 4 ] # the ranks are not lost
    run kofn pagerank names.tsv --undirected --directed
    refused --directed
}

@test "pagerank: ranks of a list of edges are those of NetworkX" {
    $PYTHON -c 'import networkx' || skip "no networkx"
    py "
import networkx as nx
rng = np.random.default_rng(5)
E = rng.integers(0, 400, (1500, 2)) * 7919 % 100003
np.savetxt('g.txt', E, '%d')
for un in (0, 1):
    g = nx.read_edgelist('g.txt', nodetype=int, create_using=nx.Graph if un else nx.DiGraph)
    r = nx.pagerank(g, tol=1e-14, max_iter=1000)
    np.save(f'want{un}.npy', [r[k] for k in sorted(r)])"
    kofn pagerank g.txt -o r0.npy --tol 1e-13 -q
    kofn pagerank g.txt -o r1.npy --tol 1e-13 --undirected --masterless -q
    py "
for un in (0, 1):
    assert abs(np.load(f'r{un}.npy') - np.load(f'want{un}.npy')).max() < 1e-10"
}

# bats test_tags=asan
@test "pagerank: jumps, sinks, start and damping are as NetworkX has them" {
    $PYTHON -c 'import networkx' || skip "no networkx"
    printf '5 7\n7 9\n9 5\n9 11\n5 9\n7 3\n' >g.txt # 3 and 11 have no arcs
    printf '# jumps\n7 3\n11\n' >jumps.txt
    printf '9\n9 1\n' >sinks.txt
    py "
import networkx as nx
g = nx.read_edgelist('g.txt', nodetype=int, create_using=nx.DiGraph)
p, s, n0 = {7: 3, 11: 1}, {9: 1}, {5: 1}
def save(name, **k):
    r = nx.pagerank(g, tol=1e-15, max_iter=5000, **k)
    np.save(name, [r[i] for i in sorted(r)])
save('a', personalization=p); save('b', personalization=p, dangling=s)
save('c', dangling=s, alpha=1); save('d', personalization=p, alpha=0)
np.save('start', [0, 1.0, 0, 0, 0])"
    kofn pagerank g.txt -o ra.npy --personalize jumps.txt --tol 1e-14 -s uncoded -q
    kofn pagerank g.txt -o rb.npy --personalize jumps.txt --sinks sinks.txt --tol 1e-14 --masterless -q
    kofn pagerank g.txt -o rc.npy --sinks sinks.txt -d 1 --tol 1e-14 --max-iter 5000 -q
    kofn pagerank g.txt -o rd.npy --personalize jumps.txt -d 0 -s uncoded --start start.npy --verify -q
    py "
for k in 'abcd':
    assert abs(np.load(f'r{k}.npy') - np.load(f'{k}.npy')).max() < 1e-10, k"
    # from its own ranks one step suffices
    kofn pagerank g.txt --personalize jumps.txt --start ra.npy -s uncoded --json | json "o['iterations'] <= 2"
    run kofn pagerank g.txt --personalize start.npy --start nothing.npy
    refused nothing.npy
    printf '5\n4\n' >wrong.txt
    run kofn pagerank g.txt --sinks wrong.txt
    refused "line 2" "'4' is no node"
    printf '5 -1\n' >wrong.txt
    run kofn pagerank g.txt --sinks wrong.txt
    refused "line 1" "'-1' is no weight"
    py "np.save('long.npy', np.ones(7)); np.save('zero.npy', np.zeros(5)); np.save('neg.npy', -np.ones(5))"
    run kofn pagerank g.txt --start long.npy
    refused "7 x 1" "5 nodes"
    run kofn pagerank g.txt --personalize zero.npy
    refused personalize "sum of the weights is 0"
    run kofn pagerank g.txt --sinks neg.npy
    refused sinks "weight -1"
}

@test "pagerank: wiki-Vote with its own numbers, if available, is as NetworkX ranks it" {
    G="$KOFN_SOURCE/../shared/data/wiki-Vote/wiki-Vote.mtx"
    [ -f "$G" ] || skip "no wiki-Vote beside the checkout"
    $PYTHON -c 'import networkx' || skip "no networkx"
    py "
import networkx as nx
rows = [l.split()[:2] for l in open('$G') if l[0] != '%'][1:]
with open('w.txt', 'w') as f:
    f.writelines(f'{3 * int(i)}\t{3 * int(j)}\n' for i, j in rows)
r = nx.pagerank(nx.read_edgelist('w.txt', nodetype=int, create_using=nx.DiGraph), tol=1e-14, max_iter=1000)
np.save('want.npy', [r[k] for k in sorted(r)])"
    kofn pagerank w.txt -o r.npy --tol 1e-12 -q
    py "
r = np.load('r.npy')
assert r.shape == (7115,) and abs(r - np.load('want.npy')).max() < 1e-10"
}

@test "pagerank: remarks say how an edge list was read" {
    printf '# Undirected graph\n0 1\n0 2\n0 3\n' >star.txt
    printf '10 20\n20 30\n30 10\n' >gaps.txt
    printf '%% sym\n0 1\n1 0\n' >both.txt
    run kofn pagerank star.txt -o r.npy
    [ "$status" -eq 0 ]
    [[ "$output" == *"star.txt: undirected, so every edge counts in both directions"* ]]
    [[ "$output" != *"no edge"* ]]
    run kofn pagerank gaps.txt -o r.npy --keep-isolated
    [[ "$output" == *"gaps.txt: 28 of 31 nodes have no edge"* ]]
    [[ "$output" != *"undirected"* ]]
    for port in sim "threads --masterless"; do
        kofn pagerank star.txt -o r.npy -q --json -p $port >j
        json "o['graph'] == dict(nodes=4, without_edges=0, undirected=True)" <j
    done
    kofn pagerank gaps.txt -o r.npy --keep-isolated --json 2>said >j
    grep -q '28 of 31' said
    json "o['graph'] == dict(nodes=31, without_edges=28, undirected=False)" <j
    kofn pagerank gaps.txt -o r.npy --json 2>said >j
    [ ! -s said ]
    json "o['graph'] == dict(nodes=3, without_edges=0, undirected=False)" <j
    kofn pagerank both.txt --directed -o r.npy --json 2>said >j
    [ ! -s said ]
}

@test "pagerank: wiki-Vote, if available, agrees with NumPy" {
    G="$KOFN_SOURCE/../shared/data/wiki-Vote/wiki-Vote.mtx"
    [ -f "$G" ] || skip "no wiki-Vote beside the checkout"
    printf '3.5 leave 0\n5 leave 7\n6 join\n9.2 leave 3\n12 slow 2 3\n' >events.txt
    run kofn pagerank "$G" -o rank.npy -e events.txt --verify
    [ "$status" -eq 0 ]
    [[ "$output" != *"the plain iteration took"* ]]
    kofn pagerank "$G" --verify --json | json "o['rel_error'] <= 1e-12"
}

@test "pagerank: damping, tolerance and iterations work" {
    kofn gen graph 100 500 -o G.mtx
    few=$(kofn pagerank G.mtx -d 0.5 --json | $PYTHON -c 'import json,sys; print(json.load(sys.stdin)["iterations"])')
    many=$(kofn pagerank G.mtx -d 0.95 --json | $PYTHON -c 'import json,sys; print(json.load(sys.stdin)["iterations"])')
    [ "$few" -lt "$many" ]
    run kofn pagerank G.mtx -m 3
    [ "$status" -eq 0 ]
    [[ "$output" == *"not converged after 3"* ]]
}

@test "pagerank: dense, rectangular and negative matrices are refused" {
    kofn gen matrix 5 5 -o X.npy
    run kofn pagerank X.npy
    refused X.npy
    printf '%%%%MatrixMarket matrix coordinate real general\n3 4 1\n1 2 1\n' >G.mtx
    run kofn pagerank G.mtx
    refused "3 x 4"
    printf '%%%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 -1\n' >G.mtx
    run kofn pagerank G.mtx
    refused "1 -> 2"
}

# bats test_tags=asan
@test "power: the dominant eigenvalue is found" {
    py "
rng = np.random.default_rng(3); Q = np.linalg.qr(rng.normal(size=(60, 60)))[0]
X = Q @ np.diag([-5] + list(np.linspace(1, 3, 59))) @ Q.T; np.save('X.npy', X)
np.save('q.npy', Q[:, 0])"
    kofn power X.npy -o v.npy --tol 1e-12 --json >out.json
    json "abs(o['eigenvalue'] + 5) < 1e-10" <out.json
    py "assert abs(abs(np.load('v.npy') @ np.load('q.npy')) - 1) < 1e-10"
}

@test "power: the advised shift helps with eigenvalues c and -c" {
    py "
Q = np.linalg.qr(np.random.default_rng(3).normal(size=(30, 30)))[0]
X = Q @ np.diag([-5, 5] + list(np.linspace(1, 3, 28))) @ Q.T
np.save('X.npy', X); np.save('S.npy', X + 5*np.eye(30)); np.save('q.npy', Q[:, 1])"
    for how in "" --masterless; do
        run kofn power X.npy -o v.npy -n 6 $how
        [ "$status" -eq 0 ]
        [[ "$output" == *"two dominant eigenvalues of the same size"*"A + c I"* && "$output" != *raise* ]]
    done
    kofn power S.npy -o v.npy --json >out.json
    json "o['converged']" <out.json
    py "assert abs(abs(np.load('v.npy') @ np.load('q.npy')) - 1) < 1e-8"
    run kofn power S.npy -o v.npy --max-iter 3
    [[ "$output" == *"raise --max-iter"* ]]
}

@test "gen: sizes, seeds and kinds work" {
    kofn gen matrix 10 3 -o a.npy --seed 1
    kofn gen matrix 10 3 -o b.npy --seed 1
    kofn gen matrix 10 3 -o c.npy --seed 2 --dtype f4
    cmp a.npy b.npy
    py "
a = np.load('a.npy'); c = np.load('c.npy')
assert a.shape == (10, 3) and a.dtype == np.float64 and c.dtype == np.float32
assert not np.allclose(a, c)"
    kofn gen matrix 1k 100 -o big.npy
    py "
x = np.load('big.npy'); assert abs(x.mean()) < .02 and abs(x.std() - 1) < .02"
    kofn gen uniform 1k 100 -o u.npy
    py "
x = np.load('u.npy'); assert 0 <= x.min() and x.max() < 1 and abs(x.mean() - .5) < .01"
    for bad in "matrix 10" "matrix 10 0" "matrix 10 x" "cube 3 3" "vector 1e3" \
        "matrix 999999G 999999G"; do
        run kofn gen $bad -o x.npy
        [ "$status" -eq 2 ] || { echo "$bad: $status $output"; return 1; }
    done
    run kofn gen matrix 3 3
    refused "-o"
}

@test "schemes: prints the list, one scheme, and JSON" {
    run kofn schemes --all
    [ "$status" -eq 0 ]
    for s in $(kofn schemes --json | $PYTHON -c "import json, sys
print(*[s['name'] for s in json.load(sys.stdin)])"); do
        [[ "$output" == *"$s"* ]]
        grep -q "\`$s[\`:]" "$KOFN_SOURCE/docs/schemes.md" || { echo "$s"; return 1; }
    done
    kofn schemes --json | json "len(o) >= 4 and all('threshold' in s for s in o)"
    kofn schemes elastic:k=6 -n 12 --json | json "o['threshold'] == 6 and \
abs(o['storage'] - 1/6) < 1e-12 and abs(o['load'] - 1/12) < 1e-12 and o['noise'] < 100"
    kofn schemes uncoded -n 5 --json | json "o['threshold'] == 5"
    kofn schemes replication:k=4 -n 12 --json | json "o['threshold'] == 10"
    run kofn schemes mds:k=99 -n 8
    refused 99
}
