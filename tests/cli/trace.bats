#!/usr/bin/env bats
# A trace and a record made from the journal equal those that the run wrote.

load helpers

inputs() {
    kofn gen matrix 300 37 -o X.npy --seed 3 -q
    kofn gen vector 37 -o w.npy --seed 4 -q
    kofn gen vector 300 -o y.npy --seed 5 -q
}

# same WORDS...: kofn trace makes from the journal what kofn WORDS writes as it runs.
same() {
    rm -f ./*.json ./*.csv
    kofn "$@" --journal j --trace was.json --record was.csv -q
    kofn trace j -o is.json --record is.csv -q
    cmp was.json is.json
    cmp was.csv is.csv
    once
}

# No round, and no product of a stream, is drawn twice.
once() {
    [ -z "$(grep -o '"name":"\(round\|product\) [0-9]*","ts.*"cat":"round"' is.json |
        grep -o '"name":"[a-z]* [0-9]*"' | sort | uniq -d)" ]
}

# drawn NAME...: there are slices with these names.
drawn() {
    for name in "$@"; do
        grep -q "\"name\":\"$name\"" is.json || { echo "no $name"; return 1; }
    done
}

# bats test_tags=asan
@test "trace: losses and late workers are drawn (every mode)" {
    inputs
    printf '2.3 leave 0\n3.5 join\n4.3 leave 2\n' >events.txt
    for port in sim threads; do
        same matvec X.npy w.npy -p $port -s mds:k=4 -r 6 -e events.txt -w straggle=0.3
        drawn "round 6" joined left store encode decode work
    done
    for mode in ledger keep abort; do
        same matvec X.npy w.npy -p sim -s elastic:k=4 -r 5 -e events.txt -w spread=0.5 \
            --late 0 --in-flight $mode
        drawn lost
    done
    printf '2 slow 3 1000000\n' >events.txt
    same matvec X.npy w.npy -p sim -s elastic:k=4 -r 3 -e events.txt --late 3
    drawn cancelled
}

@test "trace: located errors and restarted sums are drawn" {
    inputs
    printf '2 corrupt 3\n' >events.txt
    for port in sim threads; do
        # all have to answer, so that wrong ones are seen
        same matvec X.npy w.npy -p $port -s elastic:k=4 -r 4 -e events.txt --late 0 \
            --errors probabilistic
        drawn check wrong
        same regress X.npy y.npy -p $port -s gc:d=4 --iterations 5 -e events.txt \
            --errors probabilistic --audit 3
        printf '2.5 leave 1\n' >leaves.txt
        same regress X.npy y.npy -p $port -s gc:d=4 --iterations 5 -e leaves.txt \
            --errors probabilistic --audit 3
    done
    # submessages are sent later than they are assigned
    same regress X.npy y.npy -p sim -s agc --iterations 3
    same regress X.npy y.npy -p threads -s agc --iterations 3
    # and blocks that are read and changed
    kofn gen matrix 60 6 -o T.npy --seed 6 -q
    py "np.save('l.npy', np.arange(60.) % 3)"
    same train T.npy l.npy --layers 6-5-3 -s gc:d=3 -p sim --batch 20
    drawn encode
}

@test "trace: a stream is drawn" {
    for i in 1 2 3 4; do
        kofn gen matrix 41 23 -o X$i.npy --seed $i -q
        kofn gen matrix 23 19 -o Y$i.npy --seed 1$i -q
        echo "X$i.npy Y$i.npy C$i.npy" >>list.txt
    done
    printf '2 leave 0\n2 join\n3.5 leave 1\n' >events.txt
    for port in sim threads; do
        same stream list.txt -n 4 -s idip:W=3,N=4 -p $port -w straggle=0.5,factor=3 --seed 3
        drawn "product 4" "round 4"
    done
    same stream list.txt -n 3 -s dip:m=2,p=2,T=1 -p sim -e events.txt
}

@test "trace: a killed or failed run is drawn up to its end" {
    inputs
    kofn matvec X.npy w.npy -p sim -s mds:k=4 -r 6 --journal j --trace was.json -q
    # the last round had begun, and some of its answers had come
    last=$(grep -n '"ev":"begin"' j | tail -1 | cut -d: -f1)
    head -n $((last + 2)) j >cut
    head -n $((last + 3)) j | tail -n 1 | head -c 20 >>cut
    run kofn trace cut -o is.json
    [ "$status" -eq 0 ]
    [[ "$output" == *"5 rounds"*"cut off"* ]]
    drawn "round 5" "round 6" unfinished
    once
    # everything but the unfinished round is as it was drawn
    py "
import json
was, now = (json.load(open(f))['traceEvents'] for f in ('was.json', 'is.json'))
over = lambda e: [i for i in e if i.get('cat') == 'round'][:5]
assert over(was) == over(now)
task = lambda e: [i for i in e if 'task' in i.get('args', {}) and i['args']['round'] < 6]
assert task(was) == task(now) and task(now)"
    printf '2 leave 0\n2 leave 1\n' >events.txt
    run kofn matvec X.npy w.npy -p sim -n 4 -s elastic:k=3 -r 3 -e events.txt \
        --trace was.json --journal j
    [ "$status" -eq 4 ]
    kofn trace j -o is.json -q
    cmp was.json is.json
}

@test "trace: either output works, as text and as JSON" {
    inputs
    kofn matvec X.npy w.npy -p sim -r 3 --journal j -q
    run kofn trace j --record r.npy
    [ "$status" -eq 0 ]
    [[ "$output" == *"3 rounds: every decision is the same"* ]]
    py "assert np.load('r.npy').shape == (3, 8)"
    kofn trace j -o t.json --json | json "o['command'] == 'trace' and o['rounds'] == 3"
}

@test "trace: bad input and output are reported and leave no file" {
    inputs
    kofn matvec X.npy w.npy -p sim -r 3 --journal j -q
    run kofn trace j
    refused "--output" "--record"
    run kofn trace
    refused JOURNAL
    run kofn trace nowhere -o t.json
    refused nowhere "No such file"
    for junk in '' 'x' '{}' '{"kofn":"1"}'; do
        printf '%s\n' "$junk" >junk
        run kofn trace junk -o t.json
        refused junk "line 1"
    done
    : >empty
    run kofn trace empty -o t.json
    refused empty "the file is empty"
    cp j before
    run kofn trace j -o ./j
    refused "--output ./j" "to be read"
    cmp j before
    run kofn trace j -o t.json --record t.txt
    refused "--record t.txt" ".npy or .csv"
    run kofn trace j -o no/where.json
    [ "$status" -eq 1 ]
    [[ "$output" == *"no/where.json"*"No such file"* ]]
    run kofn trace j --record no/where.csv
    [ "$status" -eq 1 ]
    [[ "$output" == *"no/where.csv"*"No such file"* ]]
    # another decision, and invalid lines of the coordinator itself
    sed '$d' j | sed 's/"h":"[0-9a-f]*"/"h":"0123456789abcdef"/' >forged
    run kofn trace forged -o t.json --record r.csv
    [ "$status" -eq 1 ]
    [[ "$output" == *"decides otherwise"* ]]
    for edit in 's/"own":"over"/"own":"under"/' 's/"round":3/"round":-3/' 's/,"s":0//' \
        's/"own":"storing","w":0/"own":"storing"/' 's/"since":/"from":/' '1s/"port":"sim",//'; do
        sed "$edit" j >forged
        not cmp -s j forged
        run kofn trace forged -o t.json --record r.csv
        refused forged "line "
        run kofn replay forged
        refused forged "line "
    done
    [ ! -e t.json ]
    [ ! -e r.csv ]
    [ ! -e t.txt ]
}

# The locale is made here, because few machines have one.
@test "trace: a locale with a decimal comma changes nothing" {
    command -v localedef >/dev/null || skip "localedef is missing"
    inputs
    printf 'LC_NUMERIC\ndecimal_point ","\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n' >comma
    localedef -c -i comma -f ANSI_X3.4-1968 "$PWD/xx_XX" 2>/dev/null || true
    unset LC_ALL
    [ "$(LC_NUMERIC=xx_XX LOCPATH=$PWD env printf %.1f 1)" = 1,0 ]
    printf '2.5 leave 0\n' >events.txt
    LC_NUMERIC=xx_XX LOCPATH=$PWD \
        kofn matvec X.npy w.npy -p sim -s mds:k=4 -n 6 -r 3 -e events.txt -w straggle=0.5 \
        --journal j --metrics m --json -q >report.json
    kofn replay j
    json 'o["rounds"] == 3' <report.json
    not grep '[0-9],[0-9]' m report.json
}
