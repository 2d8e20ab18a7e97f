load ../cli/helpers

papers() {
    timeout 600 "$KOFN_PAPERS" "$@"
}

# bats test_tags=night
@test "explains itself, with examples the parser takes" {
    run papers pcr --help
    [ "$status" -eq 0 ]
    [[ "$output" == *"examples:"* && "$output" == *--scenario* ]]
    [[ "$output" == *--scale* && "$output" == *--stale* ]]
    py "
y = np.arange(80) % 3
np.save('X.npy', np.eye(3)[y]); np.save('y.npy', y)"
    for name in pcr elastic gradient stream dnn; do
        papers $name --help | grep "^  kofn-papers" | while read -r _ line; do
            timeout 60 "$KOFN_PAPERS" $line >/dev/null || { echo "$line"; exit 1; }
        done
    done
}

@test "pcr: published ratios, in every scenario and by itself" {
    papers pcr --json >out.json
    json "o['status'] == 'ok' and o['command'] == o['experiment'] == 'pcr' and o['stale'] == 'fifo'" <out.json
    json "[s['workers'] for s in o['scenarios']] == [40, 40, 30, 30]" <out.json
    json "all(s['ordered'] and s['pcr_steeper'] for s in o['scenarios'])" <out.json
    json "all(s['ratios'][r]['ok'] for s in o['scenarios'] for r in ('uncoded/pcr', 'gc/pcr', 'comput. gc/pcr'))" <out.json
    json "all(abs(t['communication'] + t['computation'] - t['total']) < 1e-9 and len(t['iteration']['percentiles']) == 101 for s in o['scenarios'] for t in s['schemes'].values())" <out.json
    json "all(l['gc_slower']['ok'] and l['pcr_slower']['ok'] and abs(l['gc_slower_reset'] - 1) < 0.02 for l in o['laws'])" <out.json
    json "o['clogged']['gc/pcr'] < 1.1 and set(o['scenarios'][1]['total_by_batches']['pcr']) == {'2', '4', '5', '8', '10', '20'}" <out.json
    papers pcr --scenario 3 --json >one.json
    $PYTHON -c "
import json; a = json.load(open('out.json')); b = json.load(open('one.json'))
assert b['scenarios'] == [a['scenarios'][2]] and 'laws' not in b"
}

@test "pcr: a seed repeats it to the byte, another does not" {
    papers pcr --scale 0.2 >a.txt
    papers pcr --scale 0.2 >b.txt
    papers pcr --scale 0.2 --seed 2 >c.txt
    cmp a.txt b.txt
    not cmp -s a.txt c.txt
    grep -q "here/published" a.txt
    [ "$(wc -L <a.txt)" -le 80 ]
}

@test "pcr --stale: what is carried over is what slows gradient coding" {
    for s in fifo latest reset; do
        papers pcr --scenario 2 --stale $s --json >$s.json
    done
    $PYTHON -c "
import json
t = [json.load(open(s + '.json'))['scenarios'][0]['schemes']['gc']['total'] for s in ('fifo', 'latest', 'reset')]
assert t[0] > 1.1 * t[1] > 1.2 * t[2], t"
}

@test "elastic: shares by count, answers exact, the three orderings" {
    papers elastic --scale 0.06 --json >out.json
    json "[s['scenario'] for s in o['scenarios']] == [1, 2, 3]" <out.json
    json "abs(o['scenarios'][0]['count_ratio'] - 2) < 1e-12" <out.json
    json "[b['count_ratio'] for b in o['scenarios'][1]['bars']] == [1, 1, 2] and all(b['count_ok'] for b in o['scenarios'][1]['bars'])" <out.json
    json "max(s['rel_error'] for s in o['scenarios'][:2]) < 1e-12" <out.json
    json "all(o['scenarios'][2]['orderings'].values()) and o['scenarios'][2]['size'] == [600, 201]" <out.json
    json "all(len(c['mean']) == 60 and len(c['realisations']) == 5 for c in o['scenarios'][2]['test_mse'].values()) and len(o['scenarios'][2]['test_mse']) == 6" <out.json
}

# bats test_tags=night
@test "elastic: one scenario as a table" {
    run papers elastic --scenario 3
    [ "$status" -eq 0 ]
    for k in noiseless coded replication distr-bgd ignore forget; do
        grep -q "^$k " <<<"$output"
    done
    [[ "$output" == *"coded overlaps noiseless ok"* ]]
    LC_ALL=C papers elastic --scenario 3 >plain.txt
    not grep -q '[^ -~]' plain.txt
    [ "$(wc -L <plain.txt)" -le 80 ]
}

@test "stream: the order of Fig. 1, Table 1 and the largest load" {
    papers stream --json >out.json
    json "[s['scenario'] for s in o['scenarios']] == [1, 2, 3, 4] and \
all(p['ordered'] and all(c['ok'] for c in p['curves']) for s in o['scenarios'][:2] \
for p in s['points']) and [len(s['points']) for s in o['scenarios'][:2]] == [8, 8]" <out.json
    json "all(r[k]['ok'] for r in o['scenarios'][2]['rows'] for k in ('uncoded', \
'dip', 'idip')) and o['scenarios'][2]['products'] == 10000 and \
o['scenarios'][2]['multiply_adds_an_iteration'] == 32557056000" <out.json
    json "o['scenarios'][3]['dip']['ok'] and o['scenarios'][3]['idip']['ok'] and \
o['scenarios'][3]['missed'] == 0" <out.json
    run papers stream --scenario 3 --scale 0.1
    [ "$status" -eq 0 ]
    [[ "$output" == *"Table 1"* && "$output" != *"Fig. 1"* && "$output" == *1.97* ]]
}

@test "stream: products of matrices on threads and processes" {
    papers stream --scenario 5 --scale 0.02 --json >out.json
    json "[s['port'] for s in o['scenarios']] == ['threads', 'processes']" <out.json
    json "all(s['size'] == 40 and s['rel_error'] <= s['predicted'] <= 1e-9 and s['factor'] == 3 and \
len(s['schemes']) == 4 and s['schemes'][0]['ratio'] == 1 == s['schemes'][0]['model'] and \
all(r['products_a_second'] > 0 for r in s['schemes']) for s in o['scenarios'])" <out.json
    json "all(s['schemes'][k]['model'] < 0.9 for s in o['scenarios'] for k in (2, 3)) \
and all(1 <= s['schemes'][1]['model'] < 1.1 and s['products'] == 12 * s['turns'] \
for s in o['scenarios'])" <out.json
}

@test "stream: five networks train to the plain weights and Table 1" {
    $PYTHON - <<'END'
import gzip, struct
for name, n in (("train", 64), ("t10k", 32)):
    for kind, head, body in (("images-idx3", struct.pack(">4B3I", 0, 0, 8, 3, n, 28, 28),
                              bytes((i * 7919 + i // 784) % 256 for i in range(n * 784))),
                             ("labels-idx1", struct.pack(">4BI", 0, 0, 8, 1, n),
                              bytes(i % 10 for i in range(n)))):
        gzip.open(f"{name}-{kind}-ubyte.gz", "wb").write(head + body)
END
    papers stream --scenario 6 --scale 0.008 --mnist . --json >out.json
    json "(s := o['scenarios'][0])['apart'] <= 1e-8 and s['ok'] and s['points'] == 64 and \
s['products'] == 80 and s['iterations'] == 2 and len(s['rows']) == 6" <out.json
    json "all(abs(r['seconds'] / r['rules'] - 1) < 0.03 for w in o['scenarios'][0]['rows'] \
if w['name'] == 'i.i.d.' for r in w['schemes'])" <out.json
    json "all(0 < a <= b for w in o['scenarios'][0]['rows'] for r in w['schemes'] \
for a, b in zip(r['seconds_to'], r['seconds_to'][1:]))" <out.json
    run papers stream --scenario 6 --scale 0.004 --mnist .
    [ "$status" -eq 0 ]
    [[ "$output" == *"Table 1"* && "$output" == *"Fig. 2"* && "$output" == *"64 points"* ]]
}

@test "gradient: means within 3 errors of the closed form" {
    papers gradient --json >out.json
    json "[s['p'] for s in o['scenarios']] == [0.05, 0.1] and all(s['ordered'] for s in o['scenarios'])" <out.json
    json "all(len(s['schemes']) == 9 and all(r['ok'] and abs(r['mean'] - r['formula']) <= 3 * r['standard_error'] for r in s['schemes']) for s in o['scenarios'])" <out.json
    papers agc-table --json >table.json
    $PYTHON -c "
import json
t = {(r['scheme'], r['p']): r['straight'] for r in json.load(open('table.json'))['rows']}
for s in json.load(open('out.json'))['scenarios']:
    for r in s['schemes']:
        assert r['formula'] == t[r['scheme'], s['p']]"
    run papers gradient --scenario 2 --scale 0.1
    [ "$status" -eq 0 ]
    [[ "$output" == *"p = 0.10"* && "$output" != *"p = 0.05"* ]]
}

# bats test_tags=night
@test "dnn: published limits are reached, and Corollary 1" {
    export OPENBLAS_NUM_THREADS=1
    papers dnn --scenario 1 --scale 0.1 --json >out.json
    json "all(c['ok'] and c['tried']['declared'] for t in o['scenarios'][0]['tables'] for c in t['codes'].values())" <out.json
    json "[t['table'] for t in o['scenarios'][0]['tables']] == ['I', 'I', 'I', 'III', 'III']" <out.json
    # Tables I and III, written out
    $PYTHON -c "
import json
o = json.load(open('out.json'))['scenarios'][0]
for t in o['tables']:
    P, (m, n), (b1, b2) = t['nodes'], t['grid'], t['batch_cut']
    K = {'gpd u=v^n': (m*n*b1 + n - 1, m*n*b2 + m*n - n), 'gpd v=u^m': (m*n*b1 + m*n - m, m*n*b2 + m - 1)}
    for name, k in K.items():
        got = t['codes'][name]['tried']
        assert got['adversarial'] == [(P - x)//2 for x in k] and got['probabilistic'] == [P - x - 1 for x in k], (t, name)
    r, d = P//(m*n), (P - m*n)//(m + n)
    assert t['codes']['replication']['tried']['probabilistic'] == [r - 2]*2
    assert t['codes']['two MDS']['tried']['probabilistic'] == [d - 1]*2
last = o['corollary_1'][-1]
assert last['nodes'] == 16384 and abs(last['by_replication'] - .25) < .01 and abs(last['by_two_mds'] - 1) < .05
assert o['corollary_1_ok'] and o['fig_8']['gpd'][-1][2] > 4*o['fig_8']['two MDS'][-1][2] > 4*o['fig_8']['replication'][-1][2]"
}

# bats test_tags=night
@test "dnn: coded training ends as without errors" {
    export OPENBLAS_NUM_THREADS=1
    papers dnn --scenario 2 --scale 0.1 --json >out.json
    json "[r['q'] for r in o['scenarios'][0]['rates']] == [0.001, 0.005, 0.02] and o['scenarios'][0]['steps'] == 60" <out.json
    # at the largest q too many nodes may be wrong at once
    json "all(r['coded_as_clean'] for r in o['scenarios'][0]['rates'][:2])" <out.json
    json "all(not c['finished'] or c['apart'] < 1e-8 for r in o['scenarios'][0]['rates'] for c in r['runs']['coded'])" <out.json
    json "all(r['fewest_rollbacks'] == (r['runs']['coded'][0]['rollbacks'] <= min(r['runs'][k][0]['rollbacks'] for k in ('replication', 'two MDS'))) for r in o['scenarios'][0]['rates'])" <out.json
    json "o['scenarios'][0]['rates'][2]['runs']['uncoded'][0]['apart'] > 1" <out.json
}

@test "dnn: a coded autoencoder ends as without errors, an uncoded one does not" {
    export OPENBLAS_NUM_THREADS=1
    papers dnn --scenario 3 --scale 0.1 --json >out.json
    json "o['scenarios'][0]['ok'] and o['scenarios'][0]['runs']['coded']['corrected'] > 0" <out.json
    json "(r := o['scenarios'][0]['runs'])['coded']['finished'] and r['coded']['apart'] < 1e-8 and r['uncoded']['apart'] > 1" <out.json
}

# bats test_tags=night
@test "dnn: no line is longer than 80 characters" {
    run papers dnn --scale 0.1
    [ "$status" -eq 0 ]
    [ "$(wc -L <<<"$output")" -le 80 ]
}

# bats test_tags=asan
@test "experiments: wrong arguments end with 2 and one line" {
    run papers
    refused pcr elastic gradient stream dnn
    run papers pagerank
    refused pagerank pcr elastic gradient stream dnn
    run papers dnn --scenario 4
    refused --scenario dnn "1 to 3"
    run papers dnn --scale 2
    refused --scale "at most 1"
    run papers dnn --scenario 1 --mnist .
    refused --mnist dnn
    run papers pcr elastic
    refused pcr elastic
    run papers pcr --scenario 5
    refused --scenario 5 "1 to 4"
    run papers pcr --scenario 9
    refused "--scenario 9: pcr has 1 to 4"
    run papers pcr --scenario 0
    refused --scenario "1 at least"
    run papers elastic --scenario 4
    refused --scenario elastic "1 to 3"
    run papers gradient --scenario 3
    refused --scenario gradient "1 to 2"
    run papers stream --scenario 7
    refused --scenario 7
    run papers stream --scenario 3 --mnist .
    refused --mnist "scenario 6"
    mkdir empty
    run papers stream --scenario 6 --mnist empty
    refused empty train-images
    for f in 0 -1 nan 1e9 x; do
        run papers pcr --scale $f
        refused --scale $f
    done
    run papers elastic --scale 2
    refused --scale 2 published
    run papers pcr --stale never
    refused --stale never fifo
    run papers gradient --stale fifo
    refused gradient --stale
    run papers pcr --workers 5
    refused --workers
    papers elastic --scenario 4 --json >out.json 2>/dev/null && return 1
    json "o['status'] == 'failed' and '--scenario' in o['error']" <out.json
}

@test "experiments: a full disk is a failure" {
    run bash -c "'$KOFN_PAPERS' gradient --scale 0.01 >/dev/full"
    [ "$status" -eq 1 ]
}
