# What `kofn plan` says before anything runs.
load helpers

@test "plan: the table begins with plain BLAS, and names a command to run" {
  run "$KOFN" plan matmul 4000x500 500x20 -n 6 --rounds 10 -w straggle=0.1 -p 'tcp://*:5555'
  [ "$status" -eq 0 ]
  [[ "${lines[2]}" == "plain BLAS, one machine "* ]]
  [[ "$output" == *"  kofn matmul ... -n 6 -s "*" -p 'tcp://*:5555'" ]]
}

@test "plan: --json has the codes in order, and each keeps what is demanded" {
  run "$KOFN" plan matvec 8000x400 -n 8 --rounds 20 --tolerate 3 \
    --memory 10M -p 'tcp://*:5555' --json
  [ "$status" -eq 0 ]
  python3 - "$output" <<'END'
import json, sys
o = json.loads(sys.argv[1])
plain, *codes = o["codes"]
assert plain["scheme"] is None and plain["survives"] == 0
assert codes and all(c["survives"] >= 3 and c["memory"] <= 10e6 for c in codes)
times = [c["seconds"] for c in codes]
assert times == sorted(times)
END
}

@test "plan: one code, sums, streams and networks" {
  run "$KOFN" plan matvec 800x40 -s mds:k=4
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 7 ]
  [[ "${lines[3]}" == mds:k=4* ]]
  # the command that is printed runs the same code
  for scheme in mds:k=4,basis=gauss mds-published:k=4,basis=monomial elastic:k=4,deal=speed; do
    run "$KOFN" plan matvec 800x40 -n 8 -s $scheme
    [[ "$output" == *"-n 8 -s $scheme" ]]
  done
  run "$KOFN" plan matvec 80x40 -n 1 --deadline 1
  [[ "$output" == *"No code that survives a loss fits; take more workers, or a longer --deadline."* ]]
  for scheme in pcr:r=3 gc:d=3 agc:d=3; do
    run "$KOFN" plan regress 4000x20 -n 12 -s $scheme
    [ "$status" -eq 0 ]
    [[ "${lines[3]}" == $scheme* ]]
  done
  for words in "regress 4000x20" "stream 200x200 200x20 -n 4" "train 600x64 64-32-10"; do
    run "$KOFN" plan $words
    [ "$status" -eq 0 ]
    [[ "${lines[2]}" == "plain BLAS"* ]]
  done
}

@test "plan: what is wrong is said, with what to give" {
  refused() { run "$KOFN" plan "${@:2}"; [ "$status" -eq 2 ] && [[ "$output" == *"$1"* ]]; }
  refused "there are matvec, matmul" sums 3x3
  refused "plan matmul takes MxN NxP, not 1 size" matmul 3x3
  refused "3x4 is not square" power 3x4
  refused "3x-3 is no size of a matrix" matvec 3x-3
  refused "columns are more than 2^31-1" matvec 999999999999x999999999999
  refused "the number of columns of the first" matmul 3x4 5x6
  refused "784-x is no list of widths" train 60x784 784-x
  refused "the first layer has 7 numbers" train 60x784 7-3
  refused "--port tcp:// is no address" matvec 3x3 -p tcp://
  refused "scheme elastic does not serve" regress 40x3 -s elastic
  refused "--port tcp://host is no address" matvec 3x3 -p tcp://host
}

@test "plan: --journal takes the workers of a run, and says what its code cost" {
  kofn gen matrix 600 200 -o A.npy -q
  kofn gen vector 200 -o w.npy -q
  printf '%s\n' '4 leave 5' '4 leave 6' '4 leave 7' '4 leave 8' > events.txt
  kofn matvec A.npy w.npy -n 9 -r 20 -p sim -s elastic:k=5 -e events.txt \
    --set journal=run.jsonl -q -o y.npy
  run kofn plan matvec 600x200 --journal run.jsonl --json
  [ "$status" -eq 0 ]
  json "((o['workers'], o['rounds']) == (9, 20)
    and o['run']['scheme'].startswith('elastic:k=5,') and o['run']['as_run']['status'] == 'ok'
    and o['run']['text'].endswith('; elastic:k=5 does not'))" <<<"$output"
  # four are lost: any six of nine are too many
  run kofn plan matvec 600x200 --journal run.jsonl -s mds:k=6
  [[ "$output" == *"mds:k=6 "*"fails: too few workers"* ]]
  [[ "$output" == *"With these workers, a run without a code fails: too few workers"* ]]
  run kofn plan matvec 600x200 -n 9 --rounds 20 -s mds:k=6
  [[ "$output" != *"fails:"* ]]
  kofn matvec A.npy w.npy -n 9 -r 20 -p sim -s mds:k=6 -w straggle=0.3 --set journal=run.jsonl \
    -q -o y.npy
  run kofn plan matvec 600x200 --journal run.jsonl
  # six of nine sixths are needed, and nine are begun; a cancelled one may end or not
  [[ "$output" =~ "With these workers, mds:k=6 of the run computes "(1(\.[0-5])?)" times as much as " ]]
  # a regression is a product A' A x or a sum of gradients
  kofn gen matrix 600 5 -o X.npy -q
  kofn gen vector 600 -o y.npy -q
  for ran in gc:d=3 pcr:r=2; do
    kofn regress X.npy y.npy -n 6 -p sim -s $ran --set journal=r.jsonl -q -o b.npy
    for scheme in gc:d=2 pcr:r=3; do
      run kofn plan regress 600x5 --journal r.jsonl -s $scheme
      [ "$status" -eq 0 ]
      [[ "${lines[3]}" == "$scheme "* ]]
      [[ "$output" =~ "With these workers, $ran of the run computes "[1-3] ]]
    done
  done
  run kofn plan matvec 600x200 --journal A.npy
  [ "$status" -eq 2 ]
  run kofn plan matvec 600x200 --journal run.jsonl --pattern iid:p=0.1
  refused "give one"
  [ -z "$(ls /tmp/kofn-record-* 2>/dev/null)" ]
}

@test "plan: --fleet takes the workers that are there" {
  kofn gen matrix 600 200 -o A.npy -q
  kofn gen vector 200 -o w.npy -q
  "$KOFN" matvec A.npy w.npy -n 3 -p ipc://"$PWD"/s -r 1000000 -q -o y.npy 2>/dev/null &
  pid=$!
  for i in 1 2 3; do
    "$KOFN" worker ipc://"$PWD"/s --once --memory 50M 2>/dev/null &
  done
  wait_for eval "kofn status ipc://$PWD/s --json 2>/dev/null | grep -q '\"at\": *[1-9]'"
  run kofn plan matvec 600x200 --fleet ipc://"$PWD"/s --json
  kill "$pid"
  [ "$status" -eq 0 ]
  json "o['workers'] == 3 and all(c['memory'] <= 50e6 for c in o['codes'][1:])" <<<"${lines[-1]}"
  run kofn plan matvec 600x200 --fleet nowhere
  refused "is no address"
}
