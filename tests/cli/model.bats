load helpers

@test "model aet tells every scheme and the least" {
    run kofn model aet --n 20 --d 3 --p 0.05 --tcp 1 --tcm 1
    [ "$status" -eq 0 ]
    for s in uncoded AGC G-AGC "CGC(0)" "G-CGC(2)"; do
        grep -qF "$s " <<<"$output"
    done
    [[ "$output" == *"least: G-AGC; with messages of one length: G-CGC(1)"* ]]
    run kofn model aet # those are the defaults
    [[ "$output" == *"AGC             1.67527"* ]]
}

@test "model aet --json: exactly the schemes, with the facts' times" {
    kofn model aet --n 10 --d 3 --p 0.05 --tcp 2.45 --tcm 13 --json >out.json
    json "set(o) == {'AGC', 'G-AGC'} | {g + 'CGC(%d)' % s for s in range(3) \
for g in ('', 'G-')} and all(type(v) is float for v in o.values())" <out.json
    json "all(abs(o[k] - v) < 1e-8 for k, v in {'AGC': 8.294928943, \
'G-AGC': 7.841671713, 'CGC(0)': 13.38509921, 'G-CGC(0)': 13.38509921, \
'CGC(1)': 10.28513624, 'G-CGC(1)': 9.387832163, 'CGC(2)': 15.62775856, \
'G-CGC(2)': 15.46129716}.items())" <out.json
    kofn model aet --n 300 --d 5 --p 0.9 --tcp 1 --tcm 1 --json >out.json
    json "len(o) == 12 and o['G-AGC'] < o['AGC'] < o['CGC(4)'] < o['CGC(0)'] \
and abs(o['CGC(0)'] - o['G-CGC(0)']) < 1e-9" <out.json
}

@test "model agc-table: all 18 numbers to the printed digit" {
    run kofn model agc-table
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 19 ]
    awk 'NR > 1 && $3 != $4 { exit 1 }' <<<"$output"
    kofn model agc-table --json >out.json
    json "len(o['rows']) == 18 and all(abs(r['as_printed_diff']) <= 0.005 and \
abs(r['straight'] - r['printed'] - r['straight_diff']) < 1e-12 for r in o['rows'])" <out.json
    json "[r['scheme'] for r in o['rows'] if abs(r['straight_diff']) > 0.02] == \
['G-CGC(1)'] * 2 + ['AGC'] * 2 + ['G-AGC'] * 2" <out.json
    json "abs(o['rows'][-1]['straight'] - 12.77291519) < 1e-8" <out.json
}

@test "model: wrong values and words end with 2 and one line" {
    run kofn model
    refused "aet|agc-table"
    run kofn model weather
    refused weather aet agc-table
    run kofn model aet twice
    refused model
    run kofn model aet --d 21
    refused "--d 21" "--n 20"
    for bad in "--n 0" "--n 10001" "--d 0" "--d x" "--p 1" "--p -0.1" "--p nan" \
        "--tcp -1" "--tcm inf"; do
        run kofn model aet $bad
        refused "${bad%% *}"
    done
    run kofn model aet -n 20
    refused "option -n"
    run kofn model agc-table --p 0.1
    refused "--p" "leave it out"
    run kofn matvec X w --tcp 1
    refused --tcp
    kofn model aet --d 21 --json >out.json 2>err.txt || true
    json "o['status'] == 'failed' and '--d 21' in o['error']" <out.json
    [ "$(wc -l <err.txt)" -eq 1 ]
}

@test "model: help, its examples, the manual" {
    run kofn model --help
    [ "$status" -eq 0 ]
    [[ "$output" == *"examples:"* && "$output" == *"--tcm T"* ]]
    kofn model --help | grep "^  kofn model" | while read -r _ line; do
        kofn $line >/dev/null
    done
    kofn --manual | grep -q 'kofn model'
}
