load helpers

inputs() {
    kofn gen matrix 500 37 -o X.npy --seed 3 -q
    kofn gen vector 37 -o w.npy --seed 4 -q
}

# metrics FILE EXPRESSION
metrics() {
    $PYTHON "$KOFN_SOURCE/tests/cli/prometheus.py" "$@"
}

# Checks that t.json and the report out.json of one run agree, and EXTRA.
drawing() {
    py "import collections, json
t = json.load(open('t.json'))
o = json.load(open('out.json'))
e = t['traceEvents']
track = {x['tid']: x['args']['name'] for x in e if x['name'] == 'thread_name'}
assert track[0] == 'rounds' and track[1] == 'coordinator'
x = [i for i in e if i['ph'] == 'X']
assert all(i['dur'] >= 0 and i['ts'] >= 0 and i['tid'] in track for i in x)
c = collections.Counter(i['name'] for i in x if 'task' in i.get('args', {}))
tasks = sum(c.values())
instant = collections.Counter(i['name'] for i in e if i['ph'] == 'i')
rounds = [i for i in x if i['tid'] == 0]
assert len(rounds) == o['rounds'], (len(rounds), o['rounds'])
assert abs(sum(i['dur'] for i in rounds) * 1e-6 - o['seconds']) < 1e-6
assert instant['joined'] == o['workers'] + o['joined']
assert instant['left'] == o['left']
assert c['wasted'] + c['cancelled'] == o['late'], (c, o['late'])
assert c['wrong'] <= o['corrupt_results'], (c, o['corrupt_results'])
assert {track[i['tid']] for i in x if i['name'] == 'wrong'} == \
    {f'worker {w}' for w in o['corrupted']}
workers = [n for n in track.values() if n.startswith('worker ')]
assert len(workers) == o['workers'] + o['joined']
own = collections.defaultdict(float)
for i in x:
    if i['tid'] == 1: own[i['name']] += i['dur'] * 1e-6
assert own['encode'] + own['mix'] < o['encode_seconds'] + 1e-6  # and inputs
assert abs(own['decode'] - o['decode_seconds']) < 1e-6
assert abs(own['check'] - o['check_seconds']) < 1e-6
for tid in track:  # slices of a track follow each other
    at = 0
    for i in sorted((i for i in x if i['tid'] == tid), key=lambda i: i['ts']):
        assert i['ts'] >= at - 1e-3, (track[tid], i)
        at = max(at, i['ts'] + i['dur'])
colours = {i['name']: i['cname'] for i in x if 'cname' in i}
assert len(set(colours.values())) == len(colours)
assert ${1:-True}, (c, instant)"
}

@test "watch: metrics are valid Prometheus text and agree with --json" {
    inputs
    printf '2 leave 0\n3.5 join\n4.3 leave 2\n' >events.txt
    for port in sim threads; do
        kofn matvec X.npy w.npy -p $port -s mds:k=4 -r 6 -e events.txt \
            -w straggle=0.3 --metrics m.txt --json >out.json
        metrics m.txt "m['kofn_workers_joined_total', ''] == 1 \
and m['kofn_workers_lost_total', ''] == 2 and m['kofn_workers', 'state=\"live\"'] == 7 \
and m['kofn_round_seconds_count', ''] == 6 and m['kofn_strips_outstanding', ''] == 0"
        OUT=$(cat out.json) metrics m.txt "(lambda o: \
m['kofn_sent_bytes_total', ''] == o['sent_bytes'] and \
m['kofn_received_bytes_total', ''] == o['received_bytes'] and \
m['kofn_results_late_total', ''] == o['late'] and \
abs(m['kofn_round_seconds_sum', ''] - o['seconds']) < 1e-6 and \
m['kofn_tasks_total', 'outcome=\"wasted\"'] + m['kofn_tasks_total', 'outcome=\"cancelled\"'] \
== o['late'])(__import__('json').loads(__import__('os').environ['OUT']))"
    done
}

@test "watch: promtool accepts the metrics" {
    command -v promtool >/dev/null || skip "promtool is not installed"
    inputs
    kofn matvec X.npy w.npy -s mds:k=4 -r 3 -w straggle=0.3 --metrics m.txt -q
    run promtool check metrics <m.txt
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

@test "watch: bytes count blocks, inputs once per worker, and results" {
    inputs # 6 workers store blocks of 167 rows; 5 rounds
    kofn matvec X.npy w.npy -n 6 -s elastic:k=3,basis=gauss_sys -r 5 -p sim --pieces 3 \
        --trace t.json --json >out.json
    drawing "o['sent_bytes'] == 8 * 37 * (6 * 167 + 6 * 5) and \
o['received_bytes'] == 8 * 501 * 5 and tasks > 6 * 5"
}

# bats test_tags=asan
@test "watch: every computing command has metrics and a trace" {
    inputs
    kofn gen graph 60 300 -o G.mtx -q
    kofn gen matrix 30 30 -o S.npy -q
    kofn gen vector 500 -o y.npy -q
    while read -r words; do
        kofn $words --metrics m.txt --trace t.json --json >out.json
        metrics m.txt "m['kofn_round_seconds_count', ''] > 0"
        drawing "c['work'] > 0"
        rm m.txt t.json
    done <<'WORDS'
matvec X.npy w.npy
matmul S.npy S.npy -s elastic:cut=columns -n 4
power S.npy -m 20
pagerank G.mtx
regress X.npy y.npy --iterations 3
regress X.npy y.npy -s gc:d=3 --iterations 3
WORDS
}

@test "watch: trace and report agree under faults (both ports)" {
    inputs
    printf '2 leave 0\n3.5 join\n4.3 leave 2\n' >events.txt
    for port in sim threads; do
        kofn matvec X.npy w.npy -p $port -s mds:k=4 -r 6 -e events.txt \
            -w straggle=0.3 --trace t.json --json >out.json
        drawing "c['work'] > 0"
        kofn matvec X.npy w.npy -p $port -s elastic:k=4 -r 6 -e events.txt \
            -w straggle=0.2 --late 3 --trace t.json --json >out.json
        drawing "c['work'] > 0"
    done
    kofn matvec X.npy w.npy -p sim -s mds:k=4 -r 9 -w straggle=0.3 \
        --trace t.json --json >out.json
    drawing "c['wasted'] > 0 and c['cancelled'] > 0"
    # work discarded because a worker left in mid-round, or came too late for a sum that
    # needs all
    printf '2.8 leave 0\n' >events.txt
    for mode in ledger keep abort; do
        kofn matvec X.npy w.npy -p sim -s elastic:k=4 -r 3 -e events.txt -w spread=0.5 --late 0 \
            --in-flight $mode --trace t.json --json >out.json
        drawing
        mv t.json t-$mode.json
    done
    kofn matvec X.npy w.npy -p sim -s elastic:k=4,cut=columns -r 9 -w straggle=0.3,factor=30 \
        --trace t.json --json >out.json
    drawing "c['wasted'] > 0 and c['cancelled'] > 0"
    $PYTHON -c "
import json, collections
n = [collections.Counter(e['name'] for e in json.load(open(f't-{m}.json'))['traceEvents']
     if 'task' in e.get('args', {})) for m in ('ledger', 'keep', 'abort')]
assert n[0]['wasted'] + n[0]['cancelled'] == 0, n
assert n[2]['wasted'] > n[1]['wasted'] > 0, n"
    printf '2 corrupt 3\n' >events.txt
    kofn matvec X.npy w.npy -p sim -s elastic:k=4 -r 5 -e events.txt \
        --errors probabilistic --trace t.json --json >out.json
    drawing "c['wrong'] > 0 and own['check'] >= 0"
}

@test "watch: a failed or interrupted run leaves whole files" {
    inputs
    printf '2 leave 0\n2 leave 1\n' >events.txt
    run kofn matvec X.npy w.npy -n 4 -s elastic:k=3 -r 3 -e events.txt \
        --trace t.json --metrics m.txt
    [ "$status" -eq 4 ]
    metrics m.txt "m['kofn_workers_lost_total', ''] == 2"
    $PYTHON -c "import json; json.load(open('t.json'))"
    rm t.json m.txt
    "$KOFN" matvec X.npy w.npy -r 1000000 -w straggle=1,delay=0.01 -q \
        --trace t.json --metrics m.txt &
    pid=$!
    wait_for under_way m.txt
    kill -TERM $pid
    wait $pid && status=0 || status=$?
    [ "$status" -eq 143 ]
    metrics m.txt "m['kofn_round', ''] > 0"
    $PYTHON -c "import json; json.load(open('t.json'))"
}

@test "watch: a killed run leaves whole metrics and no trace" {
    inputs
    "$KOFN" matvec X.npy w.npy -r 1000000 -w straggle=1,delay=0.01 -q \
        --trace t.json --metrics m.txt &
    pid=$!
    wait_for under_way m.txt
    metrics m.txt "True"
    kill -KILL $pid
    wait $pid || true
    [ ! -e t.json ]
    metrics m.txt "True"
}

@test "watch: unwritable files are reported and cost no answer" {
    inputs
    run kofn matvec X.npy w.npy --trace nowhere/t.json
    [ "$status" -eq 1 ]
    [[ "$output" == *nowhere/t.json* ]]
    run kofn matvec X.npy w.npy --metrics nowhere/m.txt
    [ "$status" -eq 1 ]
    [[ "$output" == *nowhere/m.txt* ]]
    run kofn matvec X.npy w.npy --metrics ''
    refused --metrics
    # As if the disk were full: a limit that the answer stays below.
    run bash -c "ulimit -f 16; trap '' XFSZ; exec '$KOFN' matvec X.npy w.npy \
        -p sim -r 40 -o y.npy -q --trace t.json"
    [ "$status" -eq 1 ]
    [[ "$output" == *"trace: cannot write t.json: File too large"* ]]
    [ ! -e t.json ]
    [ -e y.npy ]
    [ -z "$(find . -name '.kofn-*')" ]
}

# bats test_tags=night
@test "watch: reading and writing of more than two seconds are named on a terminal" {
    script -qc "$KOFN gen matrix 9000 4000 -o X.csv; $KOFN gen vector 4000 -o w.npy" out.txt </dev/null
    tr '\r' '\n' <out.txt | grep -E 'writing X.csv, [2-9] s'
    script -qc "$KOFN matvec X.csv w.npy -n 4" out.txt </dev/null
    tr '\r' '\n' <out.txt | grep -E 'reading X.csv, [2-9] s'
    kofn gen vector 5 -o y.npy 2>err.txt # nothing without a terminal
    [ ! -s err.txt ]
}
