load helpers
# Certificates of another CA instead of kofn's own keys.

setup() {
    cd "$BATS_TEST_TMPDIR"
    "$KOFN" gen matrix 300 40 -o X.npy -q
    "$KOFN" gen vector 40 -o w.npy -q
    "$KOFN" gen uniform 30 30 -o A.npy -q
    authority ca
    for name in head anna bert carl dora; do issue ca $name; done
}

teardown() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

authority() { # authority NAME: its certificate and its key
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
        -subj "/CN=the CA $1" -keyout "$1".key -out "$1".crt 2>log
}

issue() { # issue CA NAME: a certificate and its key
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
        -keyout "$2".key -out "$2".csr 2>log
    openssl x509 -req -in "$2".csr -CA "$1".crt -CAkey "$1".key -CAcreateserial \
        -days 2 -out "$2".crt 2>log
}

# papers NAME [CA]: sets the array of that name to the options for a certificate.
papers() {
    papers=(--tls-ca "${2-ca}".crt --tls-cert "$1".crt --tls-key "$1".key)
}

# Starts the coordinator in the background; $at is its address.
coordinate() {
    papers head
    rm -f err # that of another
    timeout 600 "$KOFN" matvec X.npy w.npy -p 'tcp://127.0.0.1:*' "${papers[@]}" "$@" \
        >out.json 2>err &
    coordinator=$!
    wait_for grep -q 'listening on tcp:' err
    at=$(sed -n 's/.*listening on \(tcp:[^ ]*\).*/\1/p' err)
}

works() { # works NAME ADDRESS [OPTION...]
    papers "$1"
    shift
    timeout 600 "$KOFN" worker --once "$@" -q "${papers[@]}" &
}

# bats test_tags=asan
@test "certificates: workers of a CA compute and appear by their names" {
    # all have to answer, so that wrong ones are seen
    coordinate -n 4 -s elastic:k=2 --late 0 --errors adversarial -r 3 --verify --json
    for name in anna carl dora; do works $name "$at"; done
    works bert head@"$at" --faults corrupt=1
    wait "$coordinator"
    json 'o["corrupted_names"] == ["bert"] and o["rel_error"] < 1e-9' <out.json
}

@test "certificates: another CA's certificate is refused, on both sides" {
    authority strange
    issue strange emil
    cat ca.crt strange.crt >both.crt
    coordinate -n 2 -s uncoded
    papers emil both
    timeout 600 "$KOFN" worker --once "$at" "${papers[@]}" 2>emil.err &
    wait_for grep -q "of another CA" emil.err
    wait_for grep -q "refused 127.0.0.1.*: " err
    # no worker works for a coordinator of another CA or with another name
    papers emil strange
    timeout 600 "$KOFN" worker --once "$at" "${papers[@]}" 2>emil.err &
    wait_for grep -q "another key" emil.err
    papers anna
    timeout 600 "$KOFN" worker --once bert@"$at" "${papers[@]}" 2>anna.err &
    wait_for grep -q "is 'head', not 'bert' as asked for" anna.err
    works anna "$at"
    works bert "$at"
    wait "$coordinator"
}

@test "certificates: masterless nodes meet with certificates of a CA" {
    for name in anna bert; do
        papers $name
        timeout 600 "$KOFN" power A.npy --masterless -n 2 -s mds:k=2 --confirm 1 \
            -p "ipc://$PWD/$name" ${reach+--reach $reach} "${papers[@]}" -q &
        reach=anna@ipc://$PWD/anna
        nodes+=($!)
    done
    wait "${nodes[0]}"
    wait "${nodes[1]}"
}

refused_by_all() { # refused_by_all OPTION... -- WHAT...
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    run "$KOFN" matvec X.npy w.npy -n 1 -s uncoded -p "ipc://$PWD/socket" "${options[@]}"
    refused "$@"
    run "$KOFN" power A.npy --masterless -n 1 -s mds:k=1 -p "ipc://$PWD/node" "${options[@]}"
    refused "$@"
    run "$KOFN" worker --once "ipc://$PWD/nobody" --patience 0.1 "${options[@]}"
    refused "$@"
}

@test "certificates: unusable certificates are refused with advice" {
    refused_by_all --tls-ca ca.crt --tls-cert head.crt -- "--tls-key is not" "together"
    refused_by_all --tls-key head.key -- "--tls-ca is not" "together"
    for file in ca.crt head.crt head.key; do
        papers head
        mv $file away
        refused_by_all "${papers[@]}" -- "$file: No such file" "give a file"
        mv away $file
    done
    refused_by_all --tls-ca ca.crt --tls-cert head.crt --tls-key anna.key -- \
        anna.key "belongs to its certificate" "that the CA issued"
    refused_by_all --tls-ca ca.key --tls-cert head.crt --tls-key head.key -- \
        ca.key "no certificate" "that the CA issued"
    papers head
    refused_by_all "${papers[@]}" --insecure -- --insecure "--tls-ca ca.crt" "one of the two"
    refused_by_all "${papers[@]}" --keys keys -- "--keys keys" "--tls-ca ca.crt" "one of the two"
    chmod 644 head.key
    refused_by_all "${papers[@]}" -- head.key "mode 644" "chmod 600 head.key"
    run "$KOFN" matvec X.npy w.npy "${papers[@]}"
    refused --tls-ca "--port tcp://"
}
