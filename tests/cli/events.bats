load helpers

inputs() {
    kofn gen matrix 500 37 -o X.npy --seed 3
    kofn gen vector 37 -o w.npy --seed 4
}

@test "events: workers leave and join, between and in rounds (every mode)" {
    inputs
    cat >events.txt <<'EVENTS'
# a comment, then a blank line

2     leave 7
3.5   leave 0   # in the middle
4     join
4.25  leave 1
5     slow 2 3
6     join
6.9   leave 8
7     normal 2
EVENTS
    local port=threads
    for mode in ledger keep abort; do
        kofn matvec X.npy w.npy -r 9 -e events.txt -p $port \
            --in-flight $mode --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['left'] == 4 and o['joined'] == 2" <out.json
        port=sim
    done
}

@test "events: the work per worker follows the number of live workers" {
    inputs
    printf '3 leave 0\n4 leave 1\n5 join\n' >events.txt
    kofn matvec X.npy w.npy -n 6 -s elastic:k=3,basis=gauss_sys -r 5 -p sim \
        -e events.txt --json >out.json
    # R = ceil(500/3) = 167 rows per block; L R / n each, rounded either way
    json "[r['live'] for r in o['per_round']] == [6, 6, 5, 4, 5]" <out.json
    json "all(x in (501 // r['live'], -(-501 // r['live'])) \
for r in o['per_round'] for x in r['rows'] if x)" <out.json
    json "all(sum(r['rows']) == 501 for r in o['per_round'])" <out.json
}

# bats test_tags=asan
@test "events: too few workers refuse, pause or degrade (--below)" {
    inputs
    printf '2 leave 0\n2 leave 1\n' >two.txt
    run kofn matvec X.npy w.npy -n 4 -s elastic:k=3 -r 3 -e two.txt -o y.npy
    [ "$status" -eq 4 ]
    [[ "$output" == *"2 workers are left"* && "$output" == *"the answers of 3 are needed"* ]]
    [ ! -e y.npy ]
    printf '2.2 leave 0\n2.3 leave 1\n' >mid.txt
    run kofn matvec X.npy w.npy -n 4 -s elastic:k=3 -r 3 -e mid.txt
    [ "$status" -eq 4 ]
    run kofn matvec X.npy w.npy -n 4 -s elastic:k=3 -r 3 -e two.txt \
        --below pause --patience 0.2
    [ "$status" -eq 4 ]
    [[ "$output" == *patience* ]]
    run kofn matvec X.npy w.npy -n 4 -s elastic:k=3 -r 3 -e two.txt \
        --below degrade -o y.npy
    [ "$status" -eq 4 ]
    py "
y = np.load('y.npy'); want = np.load('X.npy') @ np.load('w.npy')
lost = np.isnan(y)
assert 0 < lost.sum() < 500 and np.allclose(y[~lost], want[~lost], rtol=1e-12)"
    run kofn matvec X.npy w.npy -n 4 -s uncoded -e two.txt -r 3
    [ "$status" -eq 4 ]
}

@test "events: a paused run continues when a worker joins" {
    inputs
    printf '2.5 leave 0\n2.5 leave 1\n2.5 join\n' >events.txt
    for port in threads sim; do
        kofn matvec X.npy w.npy -n 4 -s elastic:k=3 -r 3 -e events.txt -p $port \
            --below pause --verify --json | json "o['rel_error'] <= 1e-12"
    done
}

@test "events: a wrong line of the file is refused with its number" {
    inputs
    while IFS='|' read -r text words; do
        printf '1 leave 0\n%s\n' "$text" >events.txt
        run kofn matvec X.npy w.npy -r 5 -e events.txt
        refused "events.txt, line 2" $words
    done <<'CASES'
2 vanish 3|vanish
2 leave 8|8
2 leave 0|left
2 leave|missing
2 leave x|x
9 leave 1|round 9
0 leave 1|round 0
x leave 1|ROUND
2.x leave 1|ROUND
2 slow 1|factor
2 slow 1 0|factor
2 join 3|3
-1 join|ROUND
99999999999 join|ROUND
CASES
    run kofn matvec X.npy w.npy -e nowhere.txt
    refused nowhere.txt
}

@test "events: answers stay exact under --faults (both ports)" {
    inputs
    kofn matvec X.npy w.npy -s mds:k=5 -r 20 -w straggle=0.3,delay=0.002 \
        --verify --json | json "o['rel_error'] <= 1e-12 and o['late'] > 0"
    kofn matvec X.npy w.npy -s mds:k=5 -r 50 -p sim -n 12 \
        -w straggle=0.3,spread=0.5,leave=2000,join=50000 --below pause --verify \
        --json | json "o['rel_error'] <= 1e-12 and o['joined'] > 0"
}

@test "events: a seed repeats a simulated run to the byte" {
    inputs
    for i in 1 2; do
        kofn matvec X.npy w.npy -p sim -r 30 -s elastic:k=4,deal=speed \
            -w straggle=0.2,spread=0.3,leave=0.5,join=50 --below pause \
            --seed 5 --journal j$i --json >out$i
    done
    cmp j1 j2
    cmp out1 out2
    kofn matvec X.npy w.npy -p sim -r 30 -s elastic:k=4,deal=speed \
        -w straggle=0.2,spread=0.3,leave=0.5,join=50 --below pause \
        --seed 6 --journal j3 -q
    not cmp -s j1 j3
}

@test "replay: decisions repeat (both ports), and tampering is found" {
    inputs
    printf '2.5 leave 0\n3 join\n' >events.txt
    for port in threads sim; do
        kofn matvec X.npy w.npy -r 5 -e events.txt -p $port --journal j -q
        run kofn replay j
        [ "$status" -eq 0 ]
        kofn replay j --json | json "o['status'] == 'ok' and o['rounds'] == 5"
    done
    sed 's/"w":2,/"w":3,/' j >forged
    run kofn replay forged
    [ "$status" -ne 0 ]
    sed '$d' j | sed 's/"h":"[0-9a-f]*"/"h":"0123456789abcdef"/' >forged
    run kofn replay forged
    [ "$status" -eq 1 ]
    [[ "$output" == *"line "* ]]
    head -c -5 j >cut # in the middle of the last line
    run kofn replay cut
    [ "$status" -eq 0 ]
    [[ "$output" == *"cut off"* ]]
    kofn replay cut --json | json "o['cut'] and o['status'] == 'ok'"
    sed '1s/"kofn":"[^"]*"/"kofn":"9.9.9"/' j >foreign
    run kofn replay foreign
    [ "$status" -eq 0 ]
    sed '1s/"kofn":"[^"]*"/"kofn":"9.9.9"/' forged >foreign
    run kofn replay foreign
    [ "$status" -eq 1 ]
    [[ "$output" == *"9.9.9 wrote"* ]]
    sed '1s/"journal":4/"journal":5/; 1s/"kofn":"[^"]*"/"kofn":"9.9.9"/' j >other
    run kofn replay other
    refused other "9.9.9 wrote" "version 5" "reads version 4"
    sed '1s/"journal":4,//' j >other # as those of version 1
    run kofn replay other
    refused other "version 1"
    for junk in '' 'x' '{}' '{"kofn":"1"}' '[1]'; do
        printf '%s\n' "$junk" >junk
        run kofn replay junk
        refused junk "line 1"
    done
}

@test "events: --late replaces a late worker" {
    inputs
    printf '1 slow 3 1000000\n' >events.txt
    kofn matvec X.npy w.npy -p sim -s elastic:k=4 -e events.txt --late 3 \
        --verify --json >out.json
    json "o['rel_error'] <= 1e-12 and o['seconds'] < 0.001" <out.json
}

@test "events: staged workers at an address obey slow and corrupt" {
    [ -z "${KOFN_PORT-}" ] || skip "workers of an address are started here"
    "$KOFN" gen matrix 300 40 -o A.npy -q
    "$KOFN" gen vector 40 -o v.npy -q
    at=ipc://$BATS_TEST_TMPDIR/staged
    printf '1 corrupt 0\n1 slow 1 2\n2 normal 1\n' >events
    for n in 1 2 3 4; do
        "$KOFN" keygen keys --worker w$n -q
        timeout 600 "$KOFN" worker --once "$at" -q --staged --keys keys/w$n &
    done
    # all have to answer, so that wrong ones are seen
    run timeout 600 "$KOFN" matvec A.npy v.npy -p "$at" --keys keys -n 4 -s elastic:k=2 --late 0 \
        -r 2 -e events --errors probabilistic --verify --json -q --metrics m.txt
    wait
    [ "$status" -eq 0 ]
    json 'o["corrupted"] == [0] and o["rel_error"] < 1e-9' <<<"$output"
    grep -q 'kofn_job_info.*port="ipc"' m.txt
    # an unstaged worker is left alone, with a message
    timeout 600 "$KOFN" worker --once "$at" -q &
    run timeout 600 "$KOFN" matvec A.npy v.npy -p "$at" -n 1 -s uncoded -r 2 -e <(echo 1 slow 0 2)
    wait
    [ "$status" -eq 0 ]
    [[ "$output" == *"worker 0 "*"ignores the fault events"*"--staged"* ]]
    # no worker can be made to join or leave
    for event in "2 join" "2 leave 0"; do
        run kofn matvec A.npy v.npy -p "$at" -r 2 -e <(echo $event) --quiet
        refused "port ipc" "${event:2:4}"
    done
    run timeout 600 "$KOFN" matvec A.npy v.npy -p processes -n 2 -r 2 -q --metrics m.txt
    grep -q 'kofn_job_info.*port="processes"' m.txt
}

# bats test_tags=asan
@test "replay: --step and --state print events and open products" {
    inputs
    printf '1.5 leave 0\n2 join\n' >events.txt
    kofn matvec X.npy w.npy -n 4 -s elastic:k=2 -r 2 -e events.txt -p sim --journal j -q
    kofn replay j --step -q >steps
    # every event and note, in order, with its line of the journal
    [ "$(sed -n 's/^line \([0-9]*\), .*/\1/p' steps)" = "$(seq 2 "$(wc -l <j)")" ]
    line=$(grep -n '"own":"storing","w":2' j | head -1 | cut -d: -f1)
    grep -q "^line $line, .* s: the block of worker 2 is on its way$" steps
    grep -q '^line .* s: encode by the coordinator since 0.000000000 s$' steps
    grep -q '^line .* s: product 2, of round 2 from .* s on, is over: ok$' steps
    grep -q '^line .* s: no round can follow$' steps
    line=$(grep -n '"ev":"begin"' j | head -1 | cut -d: -f1)
    grep -q "^line $line, .* s: begin product 1$" steps
    grep -q '^line .* s: worker 0 left$' steps
    grep -q '^line .* s: result of task 0 of product 1, row 0, from worker 0$' steps
    # the decisions follow it
    [ "$(sed -n '/begin product 2/,/^line/p' steps | grep -c '^  work for worker .* of product 2, row ')" -ge 4 ]
    [ "$(grep -c '^  deliver product [12]: ' steps)" -eq 2 ]
    not grep -q '^  |' steps
    kofn replay j --step --state -q >states
    grep -v '^  |' states | cmp - steps
    grep -q '^  | product 1: running; .* strips open; 4 workers have tasks$' states
    grep -q '^  |   strips 0-.*: 1 of 2 results, rows 0; 1 outstanding$' states
    # the difference is shown before the message
    sed 's/"h":"[0-9a-f]*"}$/"h":"0123456789abcdef"}/' j >forged
    run kofn replay forged --step
    [ "$status" -eq 1 ]
    [[ "$output" == *"line 2, "*"line 2: the coordinator decides otherwise"* ]]
    run kofn replay j --state
    refused --step
    run kofn replay j --step --json
    [ "$status" -eq 2 ]
    [[ "$output" == *"leave out --json"* ]]
}

# Four of six are needed. Two are late and skipped; one of the others leaves. Then five
# are live, and the late ones are asked again.
@test "events: a late worker is asked again after others left (sums)" {
    kofn gen matrix 64 64 -o S.npy --seed 1
    kofn gen vector 64 -o v.npy --seed 2
    printf '1 slow 0 30\n1 slow 1 30\n1.7 leave 5\n' >events.txt
    for below in refuse pause; do
        kofn matvec S.npy v.npy -n 6 -s elastic:k=4,cut=columns -p sim -e events.txt \
            --below $below --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['left'] == 1" <out.json
    done
}

@test "replay: the fuzzer's first journals hold current decisions" {
    for j in "$KOFN_SOURCE"/tests/fuzz/corpus/journal/*; do
        run kofn replay "$j"
        [ "$status" -ne 1 ] || { echo "$output: record it anew by scripts/journals"; return 1; }
    done
    # the digest of the forged decision is computed again
    sed 's/"h":"[0-9a-f]*"}$/"h":"0123456789abcdef"}/' \
        "$KOFN_SOURCE/tests/fuzz/corpus/journal/liars" >forged
    "$PYTHON" "$KOFN_SOURCE/scripts/journals" "$KOFN" forged
    cmp forged "$KOFN_SOURCE/tests/fuzz/corpus/journal/liars"
}
