load helpers

# Workers and coordinators started here end with the test.
teardown() {
    end_jobs
}

# A product without end on $1 workers at $at, with further options.
product() {
    local n=$1
    shift
    at=ipc://$PWD/socket
    kofn gen matrix 600 300 -o A.npy
    kofn gen vector 300 -o x.npy
    timeout 600 "$KOFN" matvec A.npy x.npy -o y.npy -p "$at" -n "$n" -s mds:k=2 -r 1000000 -q "$@" \
        >/dev/null 2>&1 3>&- &
}

# worker NAME [OPTION...]
worker() {
    local name=$1
    shift
    timeout 600 "$KOFN" worker "$at" -q --once --name "$name" "$@" 2>"$name" 3>&- &
}

# says EXPRESSION: it holds of the workers, by name, in w.
says() {
    kofn status "$at" --json >status.json 2>/dev/null &&
        json "(lambda w: $1)({x['name']: x for x in o['workers']})" <status.json
}

# bats test_tags=asan
@test "status: workers have names, results and times, and leave when drained" {
    product 4
    for name in anna bert carl dora; do worker $name; done
    until_it says "sorted(w) == ['anna', 'bert', 'carl', 'dora'] and
        all(x['results'] > 20 and x['seconds'] > 0 and x['process'] > 0 for x in w.values())"
    kofn status "$at" | grep -qE '^anna +(busy|free) +[0-9]+ '
    kofn drain "$at" bert 2>said
    grep -q 'bert finishes its tasks and leaves' said
    until_it says "'bert' not in w and len(w) == 3"
    run kofn drain "$at" bert
    refused "no connected worker"
}

# bats test_tags=asan
@test "status: says which job runs, and where it is" {
    product 3 -s mds:k=2
    for name in anna bert carl; do worker $name; done
    until_it says "len(w) == 3 and o['jobs'][0]['at'] > 3"
    cp status.json before.json
    json "(lambda j: (len(o['jobs']), j['name'], j['unit'], j['of'], j['live'], j['workers']) ==
        (1, 'matvec', 'round', 1000000, 3, 3) and j['scheme'].startswith('mds:k=2') and j['seconds'] > 0 and
        j['sent_bytes'] > 3 * 8 * 300 * 300)(o['jobs'][0])" <before.json
    # each round receives two halves of y at least, and sends x to each worker
    until_it says "o['jobs'][0]['at'] > $(grep -oE '"at": *[0-9]+' before.json | grep -oE '[0-9]+')"
    json "(lambda j: j['received_bytes'] >= (j['at'] - 2) * 8 * 600 and
        j['sent_bytes'] >= (j['at'] - 2) * 3 * 8 * 300)(o['jobs'][0])" <status.json
    kofn status "$at" | grep -qE '^matvec  mds:k=2.*  round [0-9]+ of 1000000  3 of 3 workers live  [0-9]+ s  [0-9.]+ MB sent'
}

@test "status: with a key for each worker only the operator drains others" {
    kofn keygen keys -q
    for name in anna bert operator; do kofn keygen keys --worker $name -q; done
    product 2 --keys keys
    worker anna --keys keys/anna
    worker bert --keys keys/bert
    until_it eval '[ "$(kofn status "$at" --keys keys/anna 2>/dev/null | grep -cE "anna|bert")" -eq 2 ]'
    run kofn drain "$at" bert --keys keys/anna
    refused operator
    until_it kofn drain "$at" bert --keys keys/operator
    until_it eval 'kofn status "$at" --keys keys/anna >seen 2>/dev/null && ! grep -q bert seen'
    grep -q anna seen
}

# bats test_tags=asan
@test "status: without a coordinator, and with no address" {
    run kofn status "ipc://$PWD/nobody" --patience 0.2
    [ "$status" -eq 4 ]
    [[ "$output" == *"no answer"* ]]
    run kofn status nowhere
    refused nowhere
    run kofn drain "ipc://$PWD/nobody" ""
    refused "name of a worker"
}
