#!/usr/bin/env bats
# Patterns of slow workers: generated, recorded, and replayed.

load helpers

inputs() {
    "$KOFN" gen matrix 240 20 -o X.npy -q
    "$KOFN" gen vector 20 -o w.npy -q
}

# pattern FILE EXPRESSION: the expression holds for p, the lines of a CSV file.
pattern() {
    py "p = [[float(x) for x in line.split(',')] for line in open('$1')]
assert $2, p"
}

@test "pattern: gen makes every model, and a seed repeats it" {
    for model in iid:p=0.3 fritchman:a=0.2,b=0.5,M=2 arbitrary:N=4,W=3 \
        bursty:B=2,W=4,eps=3,style=sticky; do
        kofn gen pattern $model 40 6 -o p.csv --factor 3
        pattern p.csv "len(p) == 40 and all(len(r) == 6 for r in p) and \
{x for r in p for x in r} == {1, 3}"
        kofn gen pattern $model 40 6 -o again.csv --factor 3 -q
        cmp p.csv again.csv
        kofn gen pattern $model 40 6 -o other.csv --factor 3 --seed 2
        not cmp -s p.csv other.csv
    done
    kofn gen pattern iid:p=0.5 9 9 -o p.csv --factor inf
    pattern p.csv "{x for r in p for x in r} == {1, float('inf')}"
}

@test "pattern: lambda and spot have defaults, and a run makes them itself" {
    inputs
    for model in lambda lambda:tail=4 spot:hour=1 spot:group=2; do
        kofn gen pattern $model 9 6 -o p.csv --seed 3
        kofn gen pattern $model 9 6 -o other.csv --seed 4 -q
        not cmp -s p.csv other.csv
        kofn gen pattern $model 9 6 -o again.csv --seed 3 --factor 7 -q
        cmp p.csv again.csv # these models have no factor
    done
    kofn matvec X.npy w.npy -p sim -n 6 -r 9 -s uncoded --late 0 -q --seed 3 \
        -w work=1000 \
        --pattern lambda:tail=4 --record r.csv
    kofn gen pattern lambda:tail=4 9 6 -o p.csv --seed 3 -q
    py "p, r = ([[float(x) for x in line.split(',')] for line in open(f)]
        for f in ('p.csv', 'r.csv'))
assert all(abs(x / y - 1) < 1e-5 for a, b in zip(p, r) for x, y in zip(a, b))
assert len(p) == len(r) == 9 and max(map(max, p)) > 1.2, (p, r)"
    kofn matvec X.npy w.npy -n 6 -r 9 -s elastic:k=2 --verify -q --seed 3 \
        --pattern spot:present=0.9,group=2
}

@test "pattern: the simulator records the pattern it was given" {
    inputs
    kofn gen pattern bursty:B=2,W=3,eps=3 15 6 -o p.csv
    kofn matvec X.npy w.npy -p sim -n 6 -r 15 -s uncoded --late 0 -q \
        --pattern p.csv --record r.csv
    cmp p.csv r.csv
    kofn matvec X.npy w.npy -p sim -n 6 -r 15 -s uncoded --late 0 -q \
        --pattern bursty:B=2,W=3,eps=3 --record r.csv
    cmp p.csv r.csv # made for the run as gen pattern makes it
}

@test "pattern: real workers obey patterns and leave no file" {
    inputs
    kofn gen pattern arbitrary:N=1,W=1,style=max 6 4 -o p.csv --factor inf
    mkdir tmp
    for port in threads processes; do
        TMPDIR=$PWD/tmp kofn matvec X.npy w.npy -p $port -n 4 -r 6 -s mds:k=3 \
            --late 0 --verify -q --pattern p.csv --record r.csv
        pattern r.csv "len(p) == 6 and all(min(r) == 1 and \
r.count(float('inf')) == 1 for r in p)"
        cut -d, -f1 p.csv >a
        cut -d, -f1 r.csv >b
        [ "$(grep -n inf a)" = "$(grep -n inf b)" ]
        [ -z "$(ls tmp)" ]
    done
    kofn gen matrix 60 60 -o S.npy -q
    kofn power S.npy -n 4 --pattern iid:p=0.3 -w factor=2 --max-iter 3 -p sim -q \
        --record r.csv
    pattern r.csv "len(p) == 3 and all(len(r) == 4 for r in p)"
}

@test "pattern: the oracle of scripts/stragglers takes the least time" {
    "$KOFN_SOURCE/scripts/stragglers" "$KOFN" 9 1 \
        "factor=10 delay=3 delay=1 lambda:tail=2 spot:hour=1" threads oracle >said
    kofn gen matrix 64 4 -o X.npy -q
    kofn gen vector 4 -o w.npy -q
    kofn matvec X.npy w.npy -p sim -n 8 -r 9 -s uncoded --late 0 -q \
        -w straggle=0.2,factor=10 --record straggle.csv
    kofn gen pattern lambda:tail=2 9 8 -o lambda.csv -q
    kofn gen pattern spot:hour=1 9 16 -o spot.csv -q
    # bisects for the time in which the workers can do the work of a round
    py "rows = {f: [[float(x) for x in line.split(',')] for line in open(f + '.csv')]
        for f in ('straggle', 'lambda', 'spot')}
def least(row, done):
    low, high = 0, 99
    for i in range(60):
        time = (low + high) / 2
        if sum(done(x, time) for x in row) < len(row): low = time
        else: high = time
    return high
def mean(file, done):
    found = [least(r, done) for r in rows[file] if sum(x < 99 for x in r) >= 4]
    return sum(found) / len(found)
slower = lambda x, time: time / x
later = lambda d: lambda x, time: max(0, time - d * (x > 1))
want = [mean('straggle', slower), mean('straggle', later(3)),
    mean('straggle', later(1)), mean('lambda', slower), mean('spot', slower)]
said = [float(line.split()[-1]) for line in open('said').readlines()[1:]]
assert len(said) == 5 and min(want) > 1.001, (said, want)
assert all(abs(a - b) < 0.0051 for a, b in zip(said, want)), (said, want)"
}

@test "pattern: a wrong pattern exits with 2 and one line" {
    inputs
    kofn gen pattern iid:p=0.5 4 4 -o p.csv
    run kofn matvec X.npy w.npy -n 5 --pattern p.csv
    refused "p.csv" "4 rounds and 4 workers" "are 5"
    run kofn matvec X.npy w.npy --pattern iid:p=3
    refused "p=3"
    run kofn matvec X.npy w.npy --pattern nothing
    refused "iid, fritchman, arbitrary, bursty, lambda, spot" "nothing"
    run kofn matvec X.npy w.npy --pattern p.csv -w straggle=0.1 -n 4
    refused "--pattern" "straggle"
    run kofn matvec X.npy w.npy --pattern p.csv -n 4 -p ipc://socket
    refused "--pattern" "workers"
    kofn gen matrix 20 20 -o S.npy -q
    run kofn power S.npy --masterless --pattern p.csv -n 4
    refused "--pattern"
    run kofn matvec X.npy w.npy --record r.txt
    refused "--record r.txt" ".csv"
    run kofn matvec X.npy w.npy -w whole=2
    refused "whole=2"
    run kofn worker --once ipc://socket --pattern iid:p=0.2
    refused "gen pattern"
    for model in lambda spot: lambda:tail=9; do
        run kofn worker --once ipc://socket --pattern $model
        refused "--pattern $model" "gen pattern"
    done
    run kofn gen pattern spot:changes=999 4 16 -o p.csv --seed 1
    refused "changes=999" "at most"
    run kofn gen pattern lambda:p=0.3 4 16 -o p.csv
    refused "p=0.3" "q=0.07"
    run kofn gen pattern iid:p=0.2 4 -o p.csv
    refused "MODEL ROUNDS WORKERS"
    run kofn gen pattern arbitrary:N=40,W=2 4 4 -o p.csv
    refused "N=40"
    run kofn gen pattern iid:p=0.2 4 4 -o p.csv --factor 1
    refused "--factor 1"
}
