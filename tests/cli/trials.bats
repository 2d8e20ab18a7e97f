# `kofn compare`, `kofn sweep`, and schemes of shared objects.
load helpers

setup() {
  cd "$BATS_TEST_TMPDIR" || exit 1
  "$KOFN" gen matrix 90 30 -o A.npy
  "$KOFN" gen vector 30 -o w.npy
}

@test "trials: compare has the times of runs alone, with the same faults" {
  run "$KOFN" compare matvec A.npy w.npy -n 6 -r 12 -p sim -w straggle=0.3 \
    -s elastic:k=4 --scheme=mds:k=4 -suncoded --csv t.csv --svg t.svg --json
  [ "$status" -eq 0 ]
  echo "$output" > t.json
  for s in elastic:k=4 mds:k=4 uncoded; do
    "$KOFN" matvec A.npy w.npy -n 6 -r 12 -p sim -w straggle=0.3 -s "$s" --json
  done > alone.json
  python3 - <<'END'
import csv, json, re
alone = [json.loads(l) for l in open("alone.json")]
runs = json.load(open("t.json"))["runs"]
rows = list(csv.DictReader(open("t.csv")))
assert [r["scheme"] for r in runs] == ["elastic:k=4", "mds:k=4", "uncoded"]
for a, r, row in zip(alone, runs, rows):
    times = sorted(x["seconds"] for x in a["per_round"])
    assert r["seconds"] == a["seconds"] and r["round_seconds_50"] == times[5], (r, times)
    assert r["round_seconds_90"] == times[10]
    assert abs(float(row["seconds"]) - a["seconds"]) < 1e-11
    assert r["sent_bytes"] == a["sent_bytes"] and r["rounds"] == 12
svg = open("t.svg").read()
wide = [float(x) for x in re.findall(r"class='bar'.*? width='([\d.]+)'", svg)]
longest = max(a["seconds"] for a in alone)
assert len(wide) == 3
for w, a in zip(wide, alone):
    assert abs(w - 480 * a["seconds"] / longest) < 0.1
END
}

@test "trials: a code that fails is a row, and its exit code is passed on" {
  run "$KOFN" compare matvec A.npy w.npy -n 4 -p sim -s elastic:k=2 -s mds:k=9 -s nosuch
  [ "$status" -eq 2 ]
  [[ "$output" == *"mds:k=9 "*"fails: "* && "$output" == *"nosuch "*"fails: no scheme"* ]]
  [[ "$output" == *"elastic:k=2 is the fastest of 1 with these faults; 2 could not run"* ]]
  run "$KOFN" sweep matvec A.npy w.npy -p sim --over n=0..2
  [ "$status" -eq 2 ]
  [[ "${lines[1]}" == "0 "*"fails: --workers 0: "* && "${lines[2]}" == "1 "*" us "* ]]
}

@test "trials: sweep runs all combinations of options, faults and parameters" {
  run "$KOFN" sweep matvec A.npy w.npy -r 6 -p sim -s elastic:k=9,basis=gauss \
    --over n=5..9:2 --over straggle=0,0.4 --over k=2..4 --csv t.csv --svg t.svg
  [ "$status" -eq 0 ]
  "$KOFN" matvec A.npy w.npy -r 6 -p sim -n 7 -w straggle=0.4 -s elastic:k=3,basis=gauss --json \
    > one.json
  python3 - <<'END'
import csv, itertools, json
rows = list(csv.DictReader(open("t.csv")))
want = list(itertools.product(["5", "7", "9"], ["0", "0.4"], ["2", "3", "4"]))
assert [(r["n"], r["straggle"], r["k"]) for r in rows] == want
assert rows[0]["scheme"] == "elastic:k=2,basis=gauss"
row, one = rows[want.index(("7", "0.4", "3"))], json.load(open("one.json"))
assert abs(float(row["seconds"]) - one["seconds"]) < 1e-11
assert len({r["seconds"] for r in rows}) > 6
svg = open("t.svg").read()
assert svg.count("class='curve'") == 6 and svg.count("<circle") == 18
END
  run "$KOFN" sweep matvec A.npy w.npy -p sim --over s=elastic:k=2,gpd:m=2,n=1,uncoded \
    --over rounds=1..4*2 --json
  [ "$status" -eq 0 ]
  python3 - "$output" <<'END'
import json, sys
runs = json.loads(sys.argv[1])["runs"]
assert [r["rounds"] for r in runs] == 3 * [1, 2, 4]
assert [r["scheme"] for r in runs[::3]] == ["elastic:k=2", "gpd:m=2,n=1", "uncoded"]
END
}

@test "trials: what is wrong is said before anything runs" {
  refused() {
    run "$KOFN" "${@:2}"
    [ "$status" -eq 2 ] && [[ "$output" == *"$1"* ]] || { echo "$output"; return 1; }
  }
  refused "takes one of matvec, matmul" compare -s elastic -s mds
  refused "takes one of matvec, matmul" sweep gen matrix 3 3 --over n=1
  refused "1 code is given" compare matvec A.npy w.npy -s elastic
  refused "nothing is varied" sweep matvec A.npy w.npy
  refused "no such option" sweep matvec A.npy w.npy --over nosuch=3
  refused "is no range" sweep matvec A.npy w.npy --over k=8..2
  refused "has no NAME=VALUES" sweep matvec A.npy w.npy --over k
  refused "every run would write it anew" compare matvec A.npy w.npy -o y.npy -s mds -s elastic
  run "$KOFN" sweep matvec A.npy w.npy --over k=2 --csv /nosuch/t.csv
  [ "$status" -eq 1 ]
  [[ "$output" == *"cannot write /nosuch/t.csv"* ]]
}

@test "trials: Ctrl-C keeps the rows of runs that are over" {
  "$KOFN" sweep matvec A.npy w.npy -n 3 -w delay=0.2,straggle=1 --over seed=1..60 --csv t.csv \
    > out.txt 2>&1 &
  pid=$!
  for _ in $(seq 200); do
    [ "$(grep -c . t.csv)" -ge 3 ] && break
    sleep 0.05
  done
  kill -INT "$pid"
  code=0
  wait "$pid" || code=$?
  [ "$code" -eq 130 ]
  rows=$(($(grep -c . t.csv) - 1))
  [ "$rows" -ge 2 ]
  [ "$rows" -lt 60 ]
  grep "^kofn: $rows of 60 runs are done and in t.csv" out.txt
}

@test "trials: a scheme of a shared object runs in every command that takes one" {
  "$KOFN_CC" -shared -fPIC -I"$KOFN_SOURCE/include" "$KOFN_SOURCE/examples/scheme.c" -o p.so -lm
  echo "1 leave 2" > gone
  run "$KOFN" matvec A.npy w.npy -n 5 -s ./p.so --events gone -o y.npy
  [ "$status" -eq 0 ]
  [[ "$output" == *"parity: any 4 of 5 workers suffice; 1 was lost"* ]]
  calc py 'assert np.allclose(np.load("y.npy"), np.load("A.npy") @ np.load("w.npy"))'
  run "$KOFN" compare matvec A.npy w.npy -n 5 -p sim -s ./p.so -s elastic:k=4
  [ "$status" -eq 0 ]
  [[ "$output" == *"./p.so "* ]]
  run "$KOFN" schemes ./p.so -n 5
  [[ "$output" == *"any 4 answers suffice"* ]]
  run "$KOFN" matvec A.npy w.npy -s ./nosuch.so
  [ "$status" -eq 2 ]
  [[ "$output" == *"cannot open shared object"* ]]
  echo "int x;" > x.c
  "$KOFN_CC" -shared -fPIC x.c -o x.so
  run "$KOFN" matvec A.npy w.npy -s ./x.so
  [ "$status" -eq 2 ]
  [[ "$output" == *"has no list of schemes"* ]]
}
