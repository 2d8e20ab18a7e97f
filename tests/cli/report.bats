#!/usr/bin/env bats
# The page of a report has every cell of the run: what report.py finds in the page equals
# what it computes from the journal and the steps of kofn replay.

load helpers

inputs() {
    kofn gen matrix 60 8 -o X.npy --seed 3 -q
    kofn gen vector 8 -o w.npy --seed 4 -q
}

# same PAGE JOURNAL: prints the number of cells of each fate.
same() {
    "$KOFN" replay "$2" --step |
        $PYTHON "$KOFN_SOURCE/tests/cli/report.py" "$1" "$2"
}

# both WORDS...: the page of a run, and the page made from its journal, have every cell.
both() {
    kofn "$@" --journal j --report was.html -q
    kofn report j -o is.html -q
    same was.html j >was
    same is.html j >is
    cmp was is
    cat was
    # the sentence, the names and the figures are those of the run
    for f in was is; do
        $PYTHON "$KOFN_SOURCE/tests/cli/report.py" $f.html >$f.json
    done
    $PYTHON -c "
import json
was, now = (json.load(open(f + '.json')) for f in ('was', 'is'))
figures = lambda o: [f for f in o['figures'] if f and f[0] != 'outside_seconds'] # until now
assert was['verdict'] == now['verdict'] and was['names'] == now['names'], (was, now)
assert was['whole'] and now['whole'] and figures(was) == figures(now), (was, now)"
}

# bats test_tags=asan
@test "report: every cell of the page equals the journal's" {
    inputs
    printf '2.3 leave 0\n3.5 join\n4.3 leave 2\n6 corrupt 3\n9 corrupt 3\n' >events.txt
    run both matvec X.npy w.npy -p sim -s elastic:k=4 -n 8 -r 12 -e events.txt \
        -w straggle=0.3 --errors probabilistic
    [ "$status" -eq 0 ]
    for fate in absent idle used partly cancelled lost wrong; do
        [[ "$output" == *"\"$fate\""* ]]
    done
    for r in {6..9}; do echo "$r corrupt 3"; done >wrong.txt
    run both matvec X.npy w.npy -p sim -s elastic:k=4 -n 8 -r 16 -e wrong.txt --errors keyed --quarantine 1
    [ "$status" -eq 0 ]
    [[ "$output" == *'"excluded"'* ]]
    run both matvec X.npy w.npy -p threads -s mds:k=4 -n 8 -r 5 -e events.txt --late 0 \
        --errors probabilistic
    [ "$status" -eq 0 ]
    [[ "$output" == *'"used"'* ]]
}

@test "report: streams and trainings are whole, too" {
    for i in 1 2 3; do
        kofn gen matrix 41 23 -o X$i.npy --seed $i -q
        kofn gen matrix 23 19 -o Y$i.npy --seed 1$i -q
        echo "X$i.npy Y$i.npy C$i.npy" >>list.txt
    done
    both stream list.txt -n 4 -s idip:W=3,N=4 -p sim -w straggle=0.5,factor=3 --seed 3
    kofn gen matrix 60 6 -o T.npy --seed 6 -q
    py "np.save('l.npy', np.arange(60.) % 3)"
    both train T.npy l.npy --layers 6-5-3 -s gc:d=3 -p sim --batch 20 --epochs 2
}

@test "report: a killed run is shown up to its end" {
    inputs
    kofn matvec X.npy w.npy -p sim -s mds:k=4 -r 6 --journal j -q
    last=$(grep -n '"ev":"begin"' j | tail -1 | cut -d: -f1)
    head -n $((last + 2)) j >cut
    head -n $((last + 3)) j | tail -n 1 | head -c 20 >>cut
    kofn report cut -o is.html -q
    run same is.html cut
    [ "$status" -eq 0 ]
    [[ "$output" == *'"unfinished"'* ]]
    $PYTHON "$KOFN_SOURCE/tests/cli/report.py" is.html |
        json "not o['whole'] and 'the run ended during round 6; 6 rounds' in o['verdict']"
}

@test "report: names of files and workers cannot change the page" {
    inputs
    mkdir bad
    name="bad/<\\script>'\"&x.npy"
    cp X.npy "$name"
    kofn matvec "$name" w.npy -p sim -r 2 --report r.html -q
    [ "$(grep -c '<script type="application/json" class="run">' r.html)" -eq 1 ]
    not grep -F "$name" r.html
    $PYTHON "$KOFN_SOURCE/tests/cli/report.py" r.html >facts
    NAME=$name $PYTHON -c "
import json, os, shlex
words = shlex.split(dict(json.load(open('facts'))['captions'])['command'])
assert os.environ['NAME'] in words and words[0] == 'kofn', words"
    # the data of a page ends no script, whatever a journal says of itself
    kofn matvec X.npy w.npy -p sim -r 2 --journal j -q
    sed '1s/"port":"sim"/"port":"<\/script><b>"/
         s/"ev":"joined","w":2/&,"name":"u<\/script>"/' j >forged
    kofn report forged -o r.html -q
    not grep -F '</script><b>' r.html
    not grep -F 'u</script>' r.html
    $PYTHON "$KOFN_SOURCE/tests/cli/report.py" r.html |
        json "o['names'][:4] == ['', '', 'u</script>', '']"
    sed 's/"noise":[0-9.]*/"noise":"1"/' j >forged
    run kofn report forged -o r.html
    refused forged totals
}

@test "report: the page loads nothing" {
    inputs
    kofn matvec X.npy w.npy -p sim -r 2 --report r.html -q
    not grep -E '(src|href) *= *"[^"]|url\(|@import|fetch\(|XMLHttpRequest' r.html
    grep -F "default-src 'none'" r.html
    grep -F "Permission is hereby granted" r.html
    [ "$(wc -c <r.html)" -lt 150000 ]
}

@test "report: bad outputs are refused before the run, and leave nothing" {
    inputs
    run kofn matvec X.npy w.npy -p sim --report no/where.html -o y.npy
    [ "$status" -eq 1 ]
    [[ "$output" == *"no/where.html"*"No such file"* ]]
    [ ! -e y.npy ]
    run kofn matvec X.npy w.npy -p sim --report X.npy
    refused "--report X.npy"
    run kofn matvec X.npy w.npy -p sim --report r.html --trace r.html
    refused "--report r.html"
    kofn gen graph 20 40 -o G.mtx -q
    run kofn pagerank G.mtx --masterless --report r.html
    refused "--report"
    kofn matvec X.npy w.npy -p sim --journal j -q
    run kofn report j
    refused "--output"
    run kofn report X.npy -o r.html
    refused X.npy "line 1"
    cp j before
    run kofn report j -o ./j
    refused "--output ./j"
    cmp j before
    sed '$d' j | sed 's/"h":"[0-9a-f]*"/"h":"0123456789abcdef"/' >forged
    run kofn report forged -o r.html
    [ "$status" -eq 1 ]
    [[ "$output" == *"decides otherwise"* ]]
    [ ! -e r.html ]
    [ -z "$(ls .kofn-* 2>/dev/null)" ]
    # a file that cannot grow: an answer all the same, a message, and exit code 1
    run bash -c "ulimit -f 40; trap '' XFSZ; '$KOFN' matvec X.npy w.npy -p sim -o y.npy --report r.html -q"
    [ "$status" -eq 1 ]
    [[ "$output" == *"report: "*"r.html"* ]]
    [ -e y.npy ]
    [ ! -e r.html ]
    [ -z "$(ls .kofn-* 2>/dev/null)" ]
}

# shown FILE: what a browser makes of the page.
shown() {
    timeout 100 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir=profile \
        --virtual-time-budget=8000 --dump-dom "file://$PWD/$1" 2>/dev/null
}

# bats test_tags=night
@test "report: a browser shows the verdict, the workers and the curves" {
    command -v chromium >/dev/null || skip "chromium is missing"
    inputs
    printf '2.3 leave 0\n3.5 join\n6 corrupt 3\n' >events.txt
    kofn matvec X.npy w.npy -p sim -s elastic:k=4 -n 8 -r 12 -e events.txt \
        --errors probabilistic --report r.html --verify -q
    shown r.html >dom
    grep -F 'data-ready="1"' dom
    grep -F "elastic:k=4: any 4 of 8 workers suffice; 1 was lost (worker 0), 1 joined" dom
    grep -E "wrong results? of worker 3 w(as|ere) left out; 12 rounds in" dom
    [ "$(grep -o 'class="u-over"' dom | wc -l)" -eq 2 ]
    [ "$(grep -o '<tr><td>u[0-9]*</td>' dom | wc -l)" -eq 9 ]
    not grep -F '<p class="warn">This page cannot be shown' dom
    # data that is damaged is reported
    sed 's/class="cells">..../class="cells">AAAA/' r.html >bad.html
    shown bad.html | grep -F '<p class="warn">This page cannot be shown'
}

@test "report: a page of two journals has the data of both" {
    inputs
    for s in elastic:k=3 mds:k=4; do
        kofn matvec X.npy w.npy -p sim -n 6 -r 9 -s "$s" -w straggle=0.3 --set journal="$s.j" -q \
            -o y.npy
        kofn report "$s.j" -o "$s.html" -q
    done
    run kofn report elastic:k=3.j mds:k=4.j -o both.html --json
    [ "$status" -eq 0 ]
    json "o['runs'] == 2 and o['rounds'] == 9" <<<"$output"
    py '
import re
runs = lambda f: re.findall("<!--runs-->\n(.*?)\n?<!--end-->", open(f).read(), re.S)[0].strip()
assert runs("both.html").replace("\n", "") == (runs("elastic:k=3.html") + runs("mds:k=4.html")).replace("\n", "")
assert runs("both.html").count("class=\"cells\"") == 2'
    [ -z "$(ls /tmp/kofn-page-* 2>/dev/null)" ]
    run kofn report elastic:k=3.j X.npy -o none.html
    [ "$status" -eq 2 ]
    [ ! -e none.html ]
}
