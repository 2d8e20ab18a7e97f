load helpers

inputs() {
    kofn gen matrix 300 61 -o A.npy --seed 3 -q
    kofn gen matrix 61 40 -o B.npy --seed 4 -q
    printf '1 corrupt 2\n1 corrupt 5\n' >liars.txt
}

@test "errors: product codes give the plain product" {
    inputs
    for s in "elastic:k=5,cut=columns -p threads" "polynomial:m=2,p=3,basis=circle -p sim" \
        "matdot:n=4 -p threads" "polydot:m=2,n=2,p=1 -p sim" "gpd:m=2,n=2,p=2,sub=vum -p threads" \
        "gpd:m=2,n=2,p=2,basis=complex -p sim" "product:m=2,m2=3,p=2,p2=4 -p threads"; do
        kofn matmul A.npy B.npy -s $s -n 12 --verify --json >out.json
        json "o['status'] == 'ok' and o['rel_error'] <= 1e-11" <out.json
    done
}

@test "errors: faulty workers are named and excluded; the journal replays" {
    inputs
    for s in elastic:k=4 polynomial:m=2,p=2; do
        for port in threads sim; do
            kofn matmul A.npy B.npy -s $s -n 10 -r 3 -e liars.txt -p $port \
                --errors probabilistic --verify --journal run.jsonl --json >out.json
            json "o['rel_error'] <= 1e-11 and set(o['corrupted']) <= {2, 5}" <out.json
            json "0 < o['floor'] < 1e-6" <out.json
            kofn replay run.jsonl -q
        done
    done
    json "o['corrupted'] and o['corrupt_results'] > 0" <out.json
}

# Errors too small to matter are accepted before any worker is ranked.
@test "errors: two workers with barely visible errors do no harm" {
    kofn gen matrix 12 8 -o A8.npy -q
    kofn gen matrix 8 3 --seed 2 -o B8.npy -q
    printf '1 corrupt 0\n1 corrupt 3\n' >two.txt
    kofn matmul A8.npy B8.npy -s gpd:m=2,n=2,p=1 -n 10 -p sim -e two.txt \
        --errors probabilistic -r 200 --quarantine 1000000 --seed 115 \
        --verify --json >out.json
    json "o['status'] == 'ok' and set(o['corrupted']) <= {0, 3}" <out.json
    json "o['rel_error'] <= o['predicted_error'] < 1e-5" <out.json
}

# Once a correct worker was named.
@test "errors: six faulty workers of a vector are located, or the run fails" {
    kofn gen matrix 96 40 -o M8.npy -q
    kofn gen vector 40 -o x8.npy -q
    printf '1 corrupt %d\n' 1 2 3 13 15 17 >six.txt
    code=0
    kofn matvec M8.npy x8.npy -s mds:k=9 -n 18 -p sim -e six.txt \
        --errors probabilistic -r 20 --quarantine 1000000 --seed 3 \
        --verify --json >out.json || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 5 ]
    json "set(o['corrupted']) <= {1, 2, 3, 13, 15, 17}" <out.json
    [ "$code" -eq 5 ] || json "o['rel_error'] <= o['predicted_error']" <out.json
}

@test "errors: quarantine ends the work of a faulty worker" {
    inputs
    kofn matmul A.npy B.npy -s elastic:k=4 -n 10 -r 40 -e liars.txt -p sim \
        --errors probabilistic --quarantine 1 --json >out.json
    json "o['corrupted'] == [2, 5]" <out.json
    json "o['per_round'][-1]['live'] == 8" <out.json
}

# Each run tolerates slightly less than was predicted: less than rounding alone, and
# less than rounding and undetected errors together.
@test "errors: no result exceeds --max-error (rounding, undetected errors)" {
    inputs
    for words in "-s mds:k=4 --errors detect" "-s mds:k=4,basis=gauss --errors probabilistic" \
        "-s elastic:k=3 --errors adversarial" "-s gpd:m=2,n=1,p=1 --errors detect"; do
        most=1e-6
        for times in 1 2 3 4 5 6 7 8; do
            kofn matmul A.npy B.npy $words -n 8 -p sim --max-error $most --verify --json >out.json 2>err || break
            json "o['predicted_error'] <= $most and o['rel_error'] <= $most and o['floor'] <= $most" <out.json
            most=$($PYTHON -c "import json; print(json.load(open('out.json'))['predicted_error'] * .99999)")
        done
        [ $times -gt 2 ] # one more result is waited for, before anything is refused
    done
    code=0
    kofn matmul A.npy B.npy -s mds:k=4 --errors detect -n 8 -p sim --max-error 1e-15 --json >out.json || code=$?
    [ $code -gt 0 ]
    json "o['status'] == 'failed' and 'max_error' in o['error']" <out.json
}

@test "errors: exit code 5 if wrong results cannot be located" {
    inputs
    run kofn matmul A.npy B.npy -s elastic:k=4 -n 8 -p sim -e liars.txt \
        --errors detect -o C.npy
    [ "$status" -eq 5 ]
    [[ $output == *disagree* ]]
    [ ! -e C.npy ]
    code=0
    kofn matmul A.npy B.npy -s elastic:k=4 -n 6 -p sim -e liars.txt \
        --errors probabilistic --json >out.json || code=$?
    [ "$code" -eq 5 ]
    json "o['status'] == 'failed' and 'workers' in o['error']" <out.json
}

# bats test_tags=asan
@test "errors: --errors without spare answers is refused with numbers that fit" {
    inputs
    run kofn matmul A.npy B.npy -s matdot:n=4 -n 7 --errors detect
    refused "at least 8 workers"
    run kofn matmul A.npy B.npy -s gpd:m=3,n=3,p=3 -n 20
    refused 29
    run kofn matmul A.npy B.npy -s product:m=3,m2=2 -n 8
    refused m2
    run kofn matmul A.npy B.npy --errors maybe
    refused probabilistic
}

@test "errors: thresholds of schemes are the published ones" {
    for want in "polynomial:m=3,p=4 12" "matdot:n=5 9" "polydot:m=2,n=2,p=2 12" \
        "gpd:m=2,n=2,p=2 9" "gpd:m=2,n=2,p=2,sub=vum 10"; do
        set -- $want
        kofn schemes $1 --json >out.json
        json "o['threshold'] == $2" <out.json
        json "all(o[k] > 0 for k in ('storage', 'computation', 'upload', 'noise'))" <out.json
    done
}
