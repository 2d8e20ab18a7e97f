load ../cli/helpers

papers() {
    timeout 600 "$KOFN_PAPERS" "$@"
}

@test "aet tells every scheme and the least" {
    run papers aet --n 20 --d 3 --p 0.05 --tcp 1 --tcm 1
    [ "$status" -eq 0 ]
    for s in uncoded AGC G-AGC "CGC(0)" "G-CGC(2)"; do
        grep -qF "$s " <<<"$output"
    done
    [[ "$output" == *"least: G-AGC; with messages of one length: G-CGC(1)"* ]]
    run papers aet # those are the defaults
    [[ "$output" == *"AGC             1.67527"* ]]
}

# bats test_tags=asan
@test "aet --json: exactly the schemes, with the facts' times" {
    papers aet --n 10 --d 3 --p 0.05 --tcp 2.45 --tcm 13 --json >out.json
    json "set(o) == {'uncoded', 'AGC', 'G-AGC'} | {g + 'CGC(%d)' % s for s in range(3) \
for g in ('', 'G-')} and all(type(v) is float for v in o.values())" <out.json
    # every epoch in which one of the ten fails, and the last, in which each computes a third
    json "abs(sum(1 - (1 - .05**i)**10 for i in range(1, 40)) * (2.45 + 13) + 2.45 / 3 + 13 \
- o['uncoded']) < 1e-9" <out.json
    json "all(abs(o[k] - v) < 1e-8 for k, v in {'AGC': 8.294928943, \
'G-AGC': 7.841671713, 'CGC(0)': 13.38509921, 'G-CGC(0)': 13.38509921, \
'CGC(1)': 10.28513624, 'G-CGC(1)': 9.387832163, 'CGC(2)': 15.62775856, \
'G-CGC(2)': 15.46129716}.items())" <out.json
    papers aet --n 300 --d 5 --p 0.9 --tcp 1 --tcm 1 --json >out.json
    json "len(o) == 13 and o['G-AGC'] < o['AGC'] < o['CGC(4)'] < o['CGC(0)'] \
and abs(o['CGC(0)'] - o['G-CGC(0)']) < 1e-9" <out.json
}

@test "agc-table: all 18 numbers to the printed digit" {
    run papers agc-table
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 19 ]
    awk 'NR > 1 && $3 != $4 { exit 1 }' <<<"$output"
    papers agc-table --json >out.json
    json "len(o['rows']) == 18 and all(abs(r['as_printed_diff']) <= 0.005 and \
abs(r['straight'] - r['printed'] - r['straight_diff']) < 1e-12 for r in o['rows'])" <out.json
    json "[r['scheme'] for r in o['rows'] if abs(r['straight_diff']) > 0.02] == \
['G-CGC(1)'] * 2 + ['AGC'] * 2 + ['G-AGC'] * 2" <out.json
    json "abs(o['rows'][-1]['straight'] - 12.77291519) < 1e-8" <out.json
}

@test "closed forms: wrong values and words end with 2 and one line" {
    run papers
    refused aet agc-table rhat tolerance codes
    run papers faults
    refused faults aet agc-table
    run papers aet twice
    refused aet twice
    run papers aet --d 21
    refused "--d 21" "--n 20"
    for bad in "--n 0" "--n 10001" "--d 0" "--d x" "--p 1" "--p -0.1" "--p nan" \
        "--tcp -1" "--tcm inf"; do
        run papers aet $bad
        refused "${bad%% *}"
    done
    run papers aet -n 20
    refused "no option -n"
    run papers agc-table --p 0.1
    refused agc-table "no option --p"
    run kofn matvec X w --tcp 1
    refused --tcp
    papers aet --d 21 --json >out.json 2>err.txt || true
    json "o['status'] == 'failed' and '--d 21' in o['error']" <out.json
    [ "$(wc -l <err.txt)" -eq 1 ]
}

@test "closed forms: help, and its examples" {
    run papers --help
    [ "$status" -eq 0 ]
    for name in aet agc-table rhat tolerance codes; do
        grep -q "^  $name " <<<"$output"
        papers $name --help | grep "^  kofn-papers" | while read -r _ line; do
            papers $line >/dev/null
        done
    done
    papers aet --help | grep -q -- "--tcm T"
}

# bats test_tags=asan
@test "kofn itself says where they are" {
    for name in bench model; do
        run kofn $name pcr
        refused $name kofn-papers
    done
}

# json_value KEY FILE
json_value() {
    "$PYTHON" -c "import json, sys; print(json.load(open(sys.argv[2]))[sys.argv[1]])" "$@"
}

@test "rhat: the figures of the paper, and those that are wrong in it" {
    s=(-n 4 --alpha 5 --delta 0.3)
    papers rhat "${s[@]}" -s idip:N=10,W=4 --json >out.json
    json "set(o) == {'scheme', 'rhat', 'slots', 'threshold', 'delay', 'load', \
'mean_load', 'bound_printed', 'bound_corrected', 'exact_fixed_load', \
'exact_early_finish'} and all(abs(o[k] - v) < t for k, v, t in \
[('bound_printed', .6708, 1e-4), ('bound_corrected', .6916, 1e-4), \
('exact_fixed_load', .6894, 1e-4), ('exact_early_finish', .42439, 1e-5), \
('rhat', .42439, 1e-5), ('slots', 4, 0.1), ('threshold', 6, 0.1), \
('delay', 3, 0.1), ('load', 2 / 3, 1e-12)])" <out.json
    papers rhat "${s[@]}" -s dip:beta=6,T=3,lambda=4 --json >out.json
    json "abs(o['rhat'] - .42439) < 1e-5 and \
abs(o['f_tie'] - 2.461714214798642) < 1e-10 and \
abs(o['f_binomial'] - 2.488437237493083) < 1e-10 and \
(o['slots'], o['threshold'], o['delay']) == (5, 6, 3)" <out.json
    papers rhat "${s[@]}" -s dip:m=2,p=3,T=3,lambda=4 --json >same.json
    json "o['rhat'] == $(json_value rhat out.json)" <same.json
    papers rhat "${s[@]}" -s dip:beta=6,T=inf --json >out.json
    json "o['delay'] is None and o['slots'] is None and o['load'] is None and \
abs(o['rhat'] - 2.461714214798642 / 6 * 1.0324) < 1e-12" <out.json
    run papers rhat "${s[@]}" -s idip:N=10,W=4
    [[ "$output" == *"as printed 0.670844, corrected 0.69161"* ]]
    papers rhat "${s[@]}" -s idip:N=10,W=4,early=no --json >out.json
    json "o['rhat'] == o['exact_fixed_load']" <out.json
}

# bats test_tags=asan
@test "rhat: the best of each, and of all" {
    papers rhat -n 6 --alpha 10 --delta 0.2 --delay 4 --json >out.json
    json "set(o['schemes']) == {'uncoded', 'polynomial', 'dip', 'idip', \
'dip_endless'} and o['best'] == 'dip' and \
o['schemes']['uncoded']['rhat'] > o['schemes']['polynomial']['rhat'] > \
o['schemes']['idip']['rhat'] > o['schemes']['dip']['rhat'] > \
o['schemes']['dip_endless']['rhat'] and \
all(s['delay'] in (None, 0, 4) for s in o['schemes'].values())" <out.json
    # each one it names is accepted
    for s in uncoded polynomial dip idip dip_endless; do
        spec=$("$PYTHON" -c "import json, sys
print(json.load(open('out.json'))['schemes']['$s']['scheme'])")
        papers rhat -n 6 --alpha 10 --delta 0.2 -s "$spec" --json >one.json
        "$PYTHON" -c "import json
assert json.load(open('out.json'))['schemes']['$s'] == json.load(open('one.json'))"
    done
    run papers rhat -n 6 --alpha 10 --delta 0.2 --delay 4
    [[ "$output" == *"fastest that keeps the delay: dip:"*"% less than polynomial:"* ]]
    papers rhat -n 4 -s polynomial:S=2 --json >a.json
    papers rhat -n 4 -s polynomial:m=2,p=1 --json >b.json
    json "o['rhat'] == $(json_value rhat a.json) and abs(o['rhat'] - .6674) < 1e-12" <b.json
}

@test "rhat: wrong values end with 2 and one line" {
    wrong() {
        local want=$1
        shift
        run papers "$@"
        refused "$want"
    }
    wrong "needs m and p, or beta" rhat -n 4 -s dip:T=3
    wrong "needs T" rhat -n 4 -s dip:beta=6
    wrong "T=x" rhat -n 4 -s dip:beta=6,T=x
    wrong "lambda = 9" rhat -n 4 -s dip:beta=6,T=3,lambda=9
    wrong "states" rhat -n 4 -s dip:beta=6,T=30
    wrong "N and W" rhat -n 4 -s idip:N=3
    wrong "N = 16" rhat -n 4 -s idip:N=16,W=4
    wrong "m p = 4" rhat -n 4 -s idip:m=2,p=2,N=10,W=4
    wrong "bursty" rhat -n 4 -s idip:model=bursty,B=2,W=3,eps=2
    wrong "no model of \"mds\"" rhat -n 4 -s mds:k=2
    wrong "S=4" rhat -n 4 -s polynomial:S=4
    wrong "too many" rhat -n 50
    wrong "--alpha 0.5" rhat --alpha 0.5
    wrong "--delta 2" rhat --delta 2
    wrong "no option --n" rhat --n 4
    wrong "no option --delta" aet --delta 0.2
    wrong "no option -n" aet -n 4
    wrong "no option -s" agc-table -s uncoded
    wrong "no option --scheme" agc-table --scheme uncoded
}

@test "tolerance: thresholds, and what four redundancies stand" {
    papers tolerance -n 12 --grid 2x2 --json >out.json
    json "o['gpd_uvn'] == {'Kf': 5, 'Kb': 6, 'adversarial': [3, 3], 'probabilistic': [6, 5]}" <out.json
    json "o['gpd_vum'] == {'Kf': 6, 'Kb': 5, 'adversarial': [3, 3], 'probabilistic': [5, 6]}" <out.json
    json "o['replication'] == o['two_mds'] == {'adversarial': [1, 1], 'probabilistic': [1, 1]}" <out.json
    papers tolerance -n 30 --grid 3x2 --batch-cut 2,3 --json |
        json "(o['gpd_uvn']['Kf'], o['gpd_uvn']['Kb']) == (13, 22) and o['batch_cut'] == [2, 3]"
    papers tolerance -n 5 --grid 2x2 --json | json "o['gpd_uvn'] is None and o['replication']"
    papers tolerance --grid 3x3 --json | json "[x['workers'] for x in o['per_workers']] == list(range(9, 101))"
    run papers tolerance --grid 3x3
    [ "${#lines[@]}" -eq 94 ]
    for bad in "" "--grid 3" "--grid 0x2" "--grid 2x2x2" "--grid 2x-1" "--grid 1001x1" \
        "--grid 2x2 --batch-cut 1" "--grid 2x2 -n 3" "--grid 2x2 --alpha 2" "--grid 2x2 -s gpd"; do
        run papers tolerance $bad
        [ "$status" -eq 2 ] && [ "${#lines[@]}" -eq 1 ] || { echo "$bad: $output"; return 1; }
    done
    run papers aet --grid 2x2
    refused "--grid"
}

@test "codes: kofn's codes beside Tables I to IV and Fig. 5, times of messages" {
    papers codes -n 12 --grid 2x2 --batch-cut 2,3 --json >out.json
    # every threshold and tolerance is the published one
    json "all(f['kofn'] == f['published'] for t in ('I', 'III') for w in o['tables'][t].values() if w for f in w.values())" <out.json
    json "o['tables']['I']['gpd_uvn'] == {k: {'kofn': v, 'published': v} for k, v in \
{'Kf': 5, 'Kb': 6, 'adversarial': [3, 3], 'probabilistic': [6, 5]}.items()}" <out.json
    json "o['tables']['I']['two_mds']['probabilistic']['kofn'] == [1, 1]" <out.json
    json "o['tables']['III']['gpd_uvn'] is None and o['tables']['III']['replication']" <out.json
    json "[f['point'] for f in o['fig_5']] == [{'kofn': p, 'published': p} for p in \
([7, 7 * 1024**2], [9, 9 * 512**2], [16, 16 * 256**2])]" <out.json
    papers codes -n 40 --grid 3x2 --batch-cut 2,3 --width 300 --batch 30 --json >out.json
    json "(o['tables']['III']['gpd_vum']['Kf']['kofn'], o['tables']['III']['gpd_vum']['Kb']['kofn']) == (15, 20)" <out.json
    json "all(f['kofn'] == f['published'] for t in ('I', 'III') for w in o['tables'][t].values() for f in w.values())" <out.json
    # sides that the grid divides: work is as published, and so are N B / (m B1) of 39 others
    json "all(o['tables']['IV'][k]['kofn'] == o['tables']['IV'][k]['published'] == v for k, v in \
(('forward', 300 * 300 * 15 / 6), ('back', 300 * 300 * 10 / 6), ('update', 300 * 300 * 30 / 6), ('encode', 4 * 9000)))" <out.json
    json "o['tables']['IV']['gather_forward']['kofn'] == [6, 39 * 100 * 15]" <out.json
    json "abs(o['tables']['IV']['gather_back']['published'][0] - 5.321928094887) < 1e-9 and \
o['tables']['IV']['gather_back']['published'][1] == 40 * 150 * 10" <out.json
    json "o['tables']['IV']['decode']['kofn'] == (13 + 22) * 9000 and o['tables']['II']['forward']['kofn'] == 15000" <out.json
    json "o['tables']['IV']['storage']['published'] == 15000 + 9000 + 40 * 1500 + 40 * 1500" <out.json
    # ten numbers among eight: 3 alpha + 30 beta, 3 alpha + 70 beta
    papers codes -n 8 --grid 2x2 --width 20 --batch 1 --json |
        json "o['alpha_beta'] == {'numbers': 10, 'broadcast': [3, 30], 'allgather': [3, 70]}"
    # other sides are padded
    papers codes --grid 3x2 --width 100 --batch 1 --json |
        json "o['workers'] == 18 and o['tables']['II']['forward'] == {'kofn': 34 * 50, 'published': 100 * 100 / 6}"
    papers codes -n 16384 --grid 64x64 --batch 1 --width 256 --json >out.json
    json "o['tables']['I']['gpd_uvn']['adversarial']['kofn'][0] == (16384 - 4096 - 63) // 2 and \
o['tables']['I']['two_mds']['adversarial']['kofn'] == [48, 48] and \
o['fig_5'][-1]['point']['kofn'] is None and o['fig_5'][-1]['point']['published'][0] == 4096**2" <out.json
    run papers codes
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -ge 25 ]
    for bad in "--grid 0x2" "--batch-cut 65,1" "-n 3" "--width 0" "--tcp 1" "--batch x" "-s gpd"; do
        run papers codes $bad
        [ "$status" -eq 2 ] && [ "${#lines[@]}" -eq 1 ] || { echo "$bad: $output"; return 1; }
    done
    run papers tolerance --grid 2x2 --width 9
    refused "--width"
}
