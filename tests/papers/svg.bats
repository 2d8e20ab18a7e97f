load ../cli/helpers

papers() {
    timeout 600 "$KOFN_PAPERS" "$@"
}

# curves FILE PYTHON: the statement holds for the picture's curves (a list of points per
# name) and the output of --json, o.
curves() {
    $PYTHON - "$@" <<'END'
import json, sys
import xml.etree.ElementTree as tree

o, c, SVG = json.load(open("out.json")), {}, "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == SVG + "svg"
for g in root.iter(SVG + "g"):
    assert g.get("class") == "curve" and g.get("data-name") not in c
    c[g.get("data-name")] = [(x, y) for e in g for x, y in
                             zip(map(float, e.get("data-x").split()),
                                 map(float, e.get("data-y").split()))]
texts = [t.text for t in root.iter(SVG + "text")]
assert all(name in texts for name in c), "a legend"
assert eval(sys.argv[2]), (sys.argv[2], c)
END
}

# bats test_tags=asan
@test "pcr --svg: four schemes in two parts, and what was published" {
    papers pcr --scale 0.2 --svg a.svg --json >out.json
    curves a.svg "len(c) == 10 and all(len(p) == 4 for p in c.values())"
    curves a.svg "all(c['%s, %s' % (n, part)][i][1] == s['schemes'][n][part] \
for i, s in enumerate(o['scenarios']) for n in s['schemes'] for part in ('computation', 'communication'))"
    curves a.svg "all(c['gc, published, by pcr'][i][1] == s['ratios']['gc/pcr']['published'] * s['schemes']['pcr']['total'] \
for i, s in enumerate(o['scenarios']))"
    papers pcr --scale 0.2 --scenario 2 --svg b.svg --json >out.json
    curves b.svg "all(len(p) == 1 for p in c.values())"
}

# bats test_tags=asan
@test "gradient --svg: simulated, by the formula, and as printed" {
    papers gradient --scale 0.05 --scenario 2 --svg a.svg --json >out.json
    curves a.svg "len(c) == 3 and all([p[1] for p in c[name]] == [s[key] for s in o['scenarios'][0]['schemes']] \
for name, key in (('simulated', 'mean'), ('formula', 'formula'), ('printed in the paper', 'printed')))"
    papers gradient --scale 0.05 --svg b.svg --json >out.json
    curves b.svg "[p[1] for p in c['simulated']] == [s['mean'] for s in o['scenarios'][0]['schemes']]"
}

@test "elastic --svg: a curve of test errors for each way" {
    papers elastic --scenario 3 --scale 0.02 --svg a.svg --json >out.json
    curves a.svg "set(c) == set(o['scenarios'][0]['test_mse']) and all(c[n] == \
list(enumerate(v['mean'], 1)) for n, v in o['scenarios'][0]['test_mse'].items())"
}

@test "stream --svg: Fig. 1 and Table 1" {
    papers stream --scenario 2 --scale 0.02 --svg a.svg --json >out.json
    curves a.svg "len(c) == 10 and all(c[k['scheme'] + ', played'][i] == (p['delta'], k['simulated']) \
for i, p in enumerate(o['scenarios'][0]['points']) for k in p['curves'])"
    curves a.svg "[p[1] for p in c['idip, printed bound']] == [p['curves'][2]['rhat'] for p in o['scenarios'][0]['points']]"
    papers stream --scenario 3 --scale 0.1 --svg b.svg --json >out.json
    curves b.svg "len(c) == 6 and all(c[n + ', ' + w][i][1] == r[n][k] for i, r in enumerate(o['scenarios'][0]['rows']) \
for n in ('uncoded', 'dip', 'idip') for w, k in (('played', 'ratio'), ('printed', 'printed')))"
}

# bats test_tags=night
@test "dnn --svg: what is stood, and what is told right" {
    papers dnn --scenario 1 --scale 0.2 --svg a.svg --json >out.json
    curves a.svg "len(c) == 6 and all(c[n + ', lie'][i] == (P, lie) and c[n + ', fail'][i] == (P, fail) \
for n, v in o['scenarios'][0]['fig_8'].items() for i, (P, lie, fail) in enumerate(v))"
    papers dnn --scenario 2 --scale 0.1 --svg b.svg --json >out.json
    curves b.svg "len(c) == 4 and all([y for x, y in c[n] if x == i] == [100 * k['accuracy'] for k in v if k['accuracy'] is not None] \
for i, r in enumerate(o['scenarios'][0]['rates']) for n, v in r['runs'].items())"
}

@test "tolerance --svg: faults that are stood, by nodes" {
    papers tolerance --grid 3x3 --svg c.svg --json >out.json
    curves c.svg "len(c) == 8 and c['gpd_uvn, lie'] == [(w['workers'], w['gpd_uvn']['adversarial'][0]) \
for w in o['per_workers'] if w['gpd_uvn']]"
    papers tolerance -n 12 --grid 2x2 --svg d.svg --json >out.json # one point
    curves d.svg "c['gpd_uvn, lie'] == [(12, 3)]"
    not grep -q "nan\|inf" d.svg
}

# bats test_tags=asan
@test "--svg: what has no picture, and a file that cannot be written" {
    run papers aet --svg a.svg
    refused --svg aet pcr elastic gradient stream dnn tolerance
    run papers stream --scenario 5 --svg a.svg
    refused --svg "scenario 5" "1 to 3"
    run papers elastic --scenario 1 --svg a.svg
    refused --svg "scenario 1" "of 3"
    [ ! -e a.svg ]
    for file in none/a.svg /dev/full; do
        papers gradient --scale 0.01 --svg $file >out.txt 2>err.txt && return 1
        [ "$(wc -l <err.txt)" -eq 1 ]
        grep -q "$file" err.txt
        grep -q "in the order" out.txt
    done
    run papers gradient --scale 0.01 --svg none/a.svg
    [ "$status" -eq 1 ]
}
