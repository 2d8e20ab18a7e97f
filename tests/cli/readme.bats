load helpers

# The README's first commands, and its section "From the command line", with smaller
# inputs, in the order of the page.
commands() {
    awk '/^## /{on = /^## From the command line/} (on || !seen++ || NR < 25) &&
        /^    (echo .*|kofn(-papers)? )/' "$KOFN_SOURCE/README.md" |
        sed 's/40000 2000/400 60/; s/vector 2000/vector 60/; s/vector 40000/vector 400/
             s/graph 3000 20000/graph 300 2000/'
}

@test "readme: the commands work as typed, one after another" {
    mkdir bin
    ln -s "$KOFN" bin/kofn
    ln -s "$KOFN_PAPERS" bin/kofn-papers
    [ "$(commands | wc -l)" -ge 15 ]
    while IFS= read -r line; do
        PATH=$PWD/bin:$PATH run timeout 100 bash -c "$line"
        [ "$status" -eq 0 ] || { echo "$line: $status: $output"; return 1; }
    done < <(commands)
    [ -s rank.npy ]
    [ -s C.npy ]
    [ -s w.npy ]
    [ -s h.csv ]
    [ -s AB.npy ]
    awk '/^An events file/{on = 1} on && /^    [0-9]/' "$KOFN_SOURCE/README.md" >events.txt
    [ "$(wc -l <events.txt)" -eq 4 ]
    kofn matmul A.npy B.npy -o D.npy -s elastic:k=6 -r 9 -e events.txt
}

@test "readme: the pictures are those of the tables" {
    "$KOFN_SOURCE/scripts/pictures" --check
}

@test "readme: the C example compiles as printed and runs" {
    awk '/^```c$/{on=1; next} /^```$/{on=0} on' "$KOFN_SOURCE/README.md" >example.c
    [ "$(wc -l <example.c)" -lt 30 ]
    [ -n "$KOFN_CC" ] || skip "no compiler given"
    $KOFN_CC -I"$KOFN_SOURCE/include" example.c -L"$(dirname "$KOFN")" -lkofn \
        -Wl,-rpath,"$(dirname "$KOFN")" -o example
    run ./example
    [ "$status" -eq 0 ]
    # sum over j < 50 of ((999*50 + j) mod 7) j
    [ "$output" = "y[999] = $($PYTHON -c 'print(sum((49950 + j) % 7 * j for j in range(50)))')" ]
}
