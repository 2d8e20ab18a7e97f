load helpers

# The README's section "From the command line", with a smaller X.
commands() {
    awk '/^## /{on = /^## From the command line/} on && /^    kofn(-papers)? /' \
        "$KOFN_SOURCE/README.md" | sed 's/40000 2000/400 60/; s/vector 2000/vector 60/'
}

@test "readme: the commands work as printed" {
    awk '/^An events file/{on = 1} on && /^    [0-9]/' "$KOFN_SOURCE/README.md" >events.txt
    [ "$(wc -l <events.txt)" -eq 4 ]
    kofn gen matrix 400 60 -o A.npy -q
    kofn gen matrix 60 7 -o B.npy -q
    kofn gen vector 400 -o y.npy -q
    kofn gen graph 300 2000 -o G.mtx -q
    echo "A.npy B.npy S.npy" >list.txt
    mkdir bin
    ln -s "$KOFN" bin/kofn
    ln -s "$KOFN_PAPERS" bin/kofn-papers
    [ "$(commands | wc -l)" -ge 9 ]
    while IFS= read -r line; do
        cp y.npy labels.npy # matvec writes y.npy, regress reads it
        PATH=$PWD/bin:$PATH run timeout 100 bash -c "$line"
        [ "$status" -eq 0 ] || { echo "$line: $status: $output"; return 1; }
        [[ "$line" == *" -o y.npy"* ]] && cp labels.npy y.npy
    done < <(commands)
    [ -s rank.npy ] && [ -s C.npy ] && [ -s w.npy ] && [ -s h.csv ]
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
