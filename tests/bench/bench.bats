# bench.bats -- scripts/bench and scripts/bench-compare, with benches of a line
# each, and that a bench leaves its figures.
setup() {
    cd "$BATS_TEST_TMPDIR" || exit 1
    mkdir -p bin scripts build/plain
    cp "$KOFN_SOURCE/scripts/bench" "$KOFN_SOURCE/scripts/bench-compare" scripts
    program scripts/stragglers 'echo stragglers'
    program bin/cmake ':'
    program build/plain/kofn 'printf "kofn 9.9\nkernels: AVX-7\nblas: Open\"BLAS\n"'
    PATH=$PWD/bin:$PATH
}

program() { # program PATH WHAT
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

# bench NAME VALUE BETTER: one that has one figure
bench() {
    program "build/plain/$1_bench" "echo '{\"bench\": \"$1\", \"case\": \"a, b\", \
\"value\": $2, \"unit\": \"\", \"better\": \"$3\"}' >>\"\$KOFN_FIGURES\""
}

compare() {
    run scripts/bench-compare "$@"
}

# refuses FILE: whichever place it has, in a line that names it.
refuses() {
    echo '{"figures": []}' >good.json
    places=("$1 good.json" "good.json $1")
    [ "$1" = missing.json ] || unset 'places[1]' # both are read alike
    for pair in "${places[@]}"; do
        compare $pair
        [ "$status" -eq 1 ] || { echo "$pair: $status $output"; return 1; }
        [ "${#lines[@]}" -eq 1 ] || { echo "$output"; return 1; }
        [[ "$output" == "bench-compare: $1"* ]] || { echo "$output"; return 1; }
    done
}

@test "bench: runs record their figures and their machine" {
    bench one 2 less
    bench two 0.5 more
    run scripts/bench
    [ "$status" -eq 0 ]
    [[ "$output" == *"2 figures are in build/bench.json" ]]
    /usr/bin/python3 - <<'END'
import json, os
run = json.load(open("build/bench.json"))
assert run["kofn"] == "9.9" and run["kernels"] == "AVX-7", run
assert run["blas"] == 'Open"BLAS' and run["cores"] >= 1, run
assert [x["bench"] for x in run["figures"]] == ["one", "two"], run
assert [x["value"] for x in run["figures"]] == [2, 0.5], run
END
}

@test "bench: a failing bench is named, and the others run" {
    bench one 2 less
    program build/plain/bad_bench 'exit 3'
    run scripts/bench
    [ "$status" -eq 1 ]
    [[ "$output" == *"1 figures"*"failed: bad_bench" ]]
    grep -q '"one"' build/bench.json
}

@test "bench: a comparison lists the worst changes first (less, more)" {
    bench less 2 less
    bench more 2 more
    bench same 1 less
    scripts/bench >/dev/null
    cp build/bench.json before.json
    bench less 3 less
    bench more 0.5 more
    scripts/bench >/dev/null
    compare before.json build/bench.json
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "  4.00  more: a, b  (2 -> 0.5)" ]
    [ "${lines[1]}" = "  1.50  less: a, b  (2 -> 3)" ]
    [ "${lines[2]}" = "  1.00  same: a, b  (1 -> 1)" ]
    compare build/bench.json before.json 1.6
    [ "${#lines[@]}" -eq 1 ]
    [ "${lines[0]}" = "  0.25  more: a, b  (0.5 -> 2)" ]
}

@test "bench: a comparison names other machines and other figures" {
    bench one 2 less
    scripts/bench >/dev/null
    sed 's/AVX-7/AVX-8/; s/a, b/c/' build/bench.json >other.json
    compare build/bench.json other.json
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "not the same kernels: AVX-7; AVX-8" ]
    [ "${lines[1]}" = "only in build/bench.json: one: a, b" ]
    [ "${lines[2]}" = "only in other.json: one: c" ]
}

@test "bench: a file that is no run is refused" {
    bench one 0 less
    scripts/bench >/dev/null
    echo '{"figures": 3}' >bad.json
    echo '{' >worse.json
    printf '%0100000d' 0 | tr 0 '[' >deep.json
    for what in '"value": Infinity' '"value": 1e999' '"value": [2]' "\"value\": 1$(printf '%0400d' 0)" \
        '"unit": ""}, {"bench": 2' '"unit": ""}, 5, {"unit": ""'; do
        echo "{\"figures\": [{\"bench\": \"a\", \"case\": \"b\", \"value\": 1, \"unit\": \"\", \
\"better\": \"less\", $what}]}" >odd.json
        refuses odd.json
    done
    for file in build/bench.json bad.json worse.json deep.json missing.json; do
        refuses $file
    done
    compare bad.json
    [ "$status" -eq 1 ]
}

# bats test_tags=night
@test "bench: incomparable runs are reported in one line" {
    bench one 2 less
    scripts/bench >/dev/null
    cp build/bench.json before.json
    for changed in s/less/more/ 's/"unit": ""/"unit": "s"/'; do
        sed "$changed" before.json >after.json
        compare before.json after.json
        [ "$status" -eq 1 ]
        [ "${#lines[@]}" -eq 1 ]
        [[ "$output" == "bench-compare: before.json: a, b is in "*"after.json"* ]]
    done
    for least in nan inf 0.5 -1 x ""; do
        compare before.json before.json "$least"
        [ "$status" -eq 1 ]
        [ "$output" = "bench-compare: LEAST is a factor of 1 or more, not $least" ]
    done
    run bash -c "scripts/bench-compare before.json before.json 2>&1 >/dev/full"
    [ "$status" -eq 1 ]
    [ "$output" = "bench-compare: stdout: No space left on device" ]
    compare --help
    [ "$status" -eq 0 ]
    [[ "$output" == *"BEFORE AFTER [LEAST]"* ]]
}

@test "bench: a real bench writes a line of JSON per figure" {
    KOFN_FIGURES=$PWD/lines run timeout 120 "$KOFN_COST_BENCH" 1 60
    [ "$status" -eq 0 ]
    /usr/bin/python3 - <<'END'
import json
lines = [json.loads(line) for line in open("lines")]
assert len(lines) >= 20 and len({x["case"] for x in lines}) == len(lines), lines
assert all(x["bench"] == "cost_bench" and x["value"] > 0 and
           x["better"] == "less" and x["unit"] == "" for x in lines), lines
END
}
