load helpers

@test "help: no command prints help on stderr and exits with 2" {
    run kofn
    [ "$status" -eq 2 ]
    [[ "$output" == *"usage: kofn COMMAND"* ]]
}

# named COMMAND: the options that it lists by name. rare: those under --set.
named() {
    kofn "$1" --help-all | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p'
}
rare() {
    kofn "$1" --help-all | sed -n '/^With --set/,$ s/^      \([a-z][a-z0-9-]*\).*/\1/p'
}
shown() {
    kofn "$1" --help | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p'
}
every_command() {
    kofn --help | sed -n '/^examples/q; s/^  \([a-z]*\) .*/\1/p'
}

@test "help: no command lists more than 30 options, and --help has the usual ones" {
    [ "$(every_command | wc -l)" -ge 18 ]
    for c in $(every_command); do
        [ "$(named $c | wc -l)" -le 30 ] || { named $c; return 1; }
        [ "$(named $c | wc -l)" -ge 4 ]
        [ "$(shown $c | wc -l)" -le 15 ] || { shown $c; return 1; }
        [ "$(kofn $c --help | grep -c "^  kofn $c\|^  mpirun\|^  rm ")" -le 3 ]
        [ -z "$(named $c | sort | uniq -d)" ]
        [[ "$(named $c)" == *--set* || -z "$(rare $c)" ]]
        # no option is lost between the lists
        [ -z "$(comm -23 <(shown $c | sort) <(named $c | sort))" ]
    done
    [[ "$(kofn matvec --help | tail -1)" == *"--help-all shows"* ]]
    [[ "$(shown matvec | xargs)" == *--output*--rounds*--tolerate* ]]
    [[ "$(rare matvec | xargs)" == *lease* && "$(named matvec)" != *--lease* ]]
    [[ "$(kofn matvec --help)" == *Result:*Workers:*Code:*Faults*Records:* ]]
}

@test "help: --set takes seldom needed options, also under their former name" {
    kofn gen matrix 30 5 -o X.npy -q
    kofn gen vector 5 -o w.npy -q
    for words in "--set pieces=0" "--pieces 0"; do
        run kofn matvec X.npy w.npy $words
        refused "--pieces 0: give a whole number from 1"
    done
    kofn matvec X.npy w.npy --set pieces=2 --set show -r 2 -q | grep -q "^ *2  "
    kofn matvec X.npy w.npy --set pieces=2 -r 2 -q | not grep -q "^ *2  "
    run kofn matvec X.npy w.npy --set show=1
    refused "takes no value"
    run kofn matvec X.npy w.npy --set lease
    refused "needs a value"
    run kofn matvec X.npy w.npy --set leese=3
    refused leese "did you mean --lease?"
    run kofn matvec X.npy w.npy --set damping=0.5
    refused "no option damping"
}

@test "help: an unknown word names the nearest one" {
    run kofn matvce X w
    refused "did you mean matvec?"
    run kofn matvec X w --ruonds 2
    refused "did you mean --rounds?"
    run kofn matvec X w --wrokers=2
    refused "did you mean --workers?"
    run kofn matvec X w --errors detekt
    refused "did you mean detect?"
    run kofn schemes elastik
    refused "did you mean elastic?"
    run kofn schemes elastic:bassis=gauss
    refused "did you mean basis?"
    run kofn schemes elastic:basis=gaus
    refused "did you mean gauss?"
    run kofn frobnicate
    [[ "$output" != *"did you mean"* ]]
    run kofn matvec X w --colour
    [[ "$output" != *"did you mean"* ]]
}

@test "help: schemes has a table of ten, and all of them with --all" {
    kofn schemes >table
    all=$(kofn schemes --json | $PYTHON -c 'import json, sys
print(*[s["name"] for s in json.load(sys.stdin)])')
    [ "$(sed -n '2,/^$/p' table | grep -c .)" -eq 10 ]
    for name in $(sed -n '2,/^$/ s/[: ].*//p' table); do
        [[ " $all " == *" $name "* ]] || { echo "no scheme $name"; return 1; }
    done
    kofn schemes --all >listed
    for name in $all; do grep -q "^$name " listed; done
    [ "$(wc -w <<<"$all")" -ge 20 ]
}

@test "help: --tolerate chooses the parameter of a scheme" {
    kofn gen matrix 60 6 -o X.npy -q
    kofn gen vector 6 -o w.npy -q
    kofn gen vector 60 -o y.npy -q
    printf '1 leave 0\n1 leave 5\n1 leave 6\n' >events.txt
    # three of nine may be lost, and the threshold is no lower than that
    for scheme in elastic mds elastic:basis=gauss; do
        kofn matvec X.npy w.npy -n 9 -p sim -s $scheme --tolerate 3 -e events.txt --verify --json |
            json "o['threshold'] == 6 and o['left'] == 3 and o['rel_error'] < 1e-10"
    done
    kofn regress X.npy y.npy -n 9 -p sim -s gc --tolerate 3 -e events.txt --json |
        json "o['threshold'] == 6 and o['left'] == 3"
    # 2 ceil(8/r) - 1 is 5 for r = 3 and 7 for r = 2
    kofn regress X.npy y.npy -n 8 -p sim -s pcr --tolerate 3 -e events.txt --json |
        json "o['threshold'] == 5 and o['left'] == 3"
    run kofn matvec X.npy w.npy -s elastic:k=3 --tolerate 2
    refused "--tolerate 2" "k=6" "k=3"
    run kofn matvec X.npy w.npy -s gpd:m=2 --tolerate 2
    refused gpd "elastic, mds, pcr, gc or agc"
    run kofn matvec X.npy w.npy --tolerate 8
    refused "--tolerate 8: 8 of 8 workers" "at most 7"
    run kofn stream - --tolerate 2
    refused dip
}

@test "help: every command has help with examples" {
    for c in matvec matmul power pagerank regress check gen schemes replay trace stream; do
        run kofn $c --help
        [ "$status" -eq 0 ]
        [[ "$output" == *"examples:"* && "$output" == *"kofn $c "* ]]
        run kofn help $c
        [ "$status" -eq 0 ]
    done
}

# bats test_tags=night
@test "help: every example is a valid command line" {
    kofn gen matrix 60 30 -o X.npy -q
    cp X.npy A.npy
    kofn gen matrix 30 4 -o B.npy -q
    kofn gen vector 30 -o w.npy -q
    kofn matmul A.npy B.npy -o C.npy -q
    kofn gen graph 50 300 -o G.mtx -q
    echo "2 leave 1" >events.txt
    echo "A.npy B.npy D.npy" >list.txt
    printf "1 2\n2 1\n" >wiki-Vote.txt
    for c in matvec matmul pagerank schemes check stream; do
        # those with an address wait for workers: worker.bats
        kofn $c --help-all | grep "^  kofn $c" | grep -v '://' | while read -r _ line; do
            timeout 60 "$KOFN" $line >/dev/null 2>&1 || { echo "kofn $line"; exit 1; }
        done
    done
}

@test "help: no text uses a private phrase" {
    for command in matvec regress worker keygen; do kofn $command --help; done >texts
    for scheme in $(kofn schemes --json | $PYTHON -c 'import json, sys
print(*[s["name"] for s in json.load(sys.stdin)])'); do
        kofn schemes $scheme -n 12
    done >>texts
    [ "$(grep -c workers texts)" -ge 20 ]
    if grep -iE 'likewise|decode; of|told apart for certain|spoil' texts; then return 1; fi
}

@test "help: unknown commands, options and missing values are refused" {
    run kofn frobnicate
    refused frobnicate matvec
    run kofn matvec --colour X w
    refused --colour
    run kofn matvec X w --workers
    refused --workers value
    run kofn matvec X w --verify=1
    refused --verify "no value"
    run kofn matvec X w -xq
    refused "option -x"
    run kofn matvec X w -qn
    refused --workers value
    run kofn help frobnicate
    refused frobnicate
    run kofn matvec X
    refused matvec "X w"
    run kofn matvec X w z
    refused matvec
}

@test "help: a value out of range is refused with option and value" {
    for bad in "--workers 0" "--workers -3" "--workers 1e3" "--workers 99999999" \
        "--rounds 0" "--rounds x" "--port carrier-pigeon" "--in-flight drop" \
        "--below panic" "--patience -1" "--late 0.5" "--pieces 0" \
        "--max-error 2" "--seed -1" "--faults rain=1" "--faults straggle=2" \
        "--faults clock=sundial" "--faults straggle"; do
        run kofn matvec X w $bad
        [ "$status" -eq 2 ] || { echo "$bad: $status"; return 1; }
        [[ "$output" == *"${bad%% *}"* ]] || { echo "$bad: $output"; return 1; }
    done
    run kofn matvec X w --output ''
    refused --output
    run kofn pagerank G --damping 1.01
    refused --damping
    run kofn pagerank G --tol 0
    refused --tol
}

@test "help: --version prints kernels, BLAS, ports and formats" {
    run kofn --version
    [ "$status" -eq 0 ]
    [[ "$output" == *"kofn "* && "$output" == *kernels* && "$output" == *blas* ]]
    [[ "$output" == *threads*sim* && "$output" == *npy*mtx*csv* ]]
}

@test "help: the manual is valid roff and has every command" {
    command -v man >/dev/null || skip "no man"
    kofn --manual >kofn.1
    run man --warnings -l kofn.1
    [ "$status" -eq 0 ]
    [[ "$output" != *warning:* ]]
    for c in matvec pagerank replay; do
        [[ "$output" == *"kofn $c"* ]]
    done
}

@test "help: each command has a manual page of its own, with its options only" {
    command -v man >/dev/null || skip "no man"
    "$KOFN_SOURCE/cmake/manuals" "$KOFN" "$KOFN_PAPERS" pages
    commands=$(kofn --help | sed -n '/^examples/q; s/^  \([a-z]*\) .*/\1/p')
    [ "$(ls pages/*.1 | wc -l)" = $((2 + $(wc -w <<<"$commands"))) ]
    run man --warnings -l pages/*.1
    [[ "$output" != *warning:* ]]
    for c in $commands; do
        named "$c" >helped
        rare "$c" >>helped
        sed -n '/^.SH OPTIONS/,$ s/\\//g; s/^\.B .*\(--[a-z0-9-]*\).*/\1/p
            s/^\.B \([a-z0-9-]*\)\(=.*\)\?$/\1/p' "pages/kofn-$c.1" >paged
        diff helped <(tail -n "$(wc -l <helped)" paged)
    done
    grep -q 'B .*damping' pages/kofn-pagerank.1
    not grep -q 'B .*damping' pages/kofn-matvec.1
    run kofn --manual matvek
    refused "there are matvec"
}

# complete WORD...: prints what bash offers in place of the last word.
complete_words() {
    kofn --completion bash >completion
    bash -c '. ./completion; COMP_WORDS=(kofn "$@"); COMP_CWORD=$#; _kofn
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

@test "help: bash completes commands, options, schemes and files" {
    touch Xabc.npy
    [ "$(complete_words mat | sort | xargs)" = "matmul matvec" ]
    [ "$(complete_words pagerank G.mtx --damp)" = --damping ]
    [ -z "$(complete_words matvec --damp)" ]
    [ "$(complete_words matvec -s elas)" = elastic ]
    [ -z "$(complete_words matvec --lea)" ]
    [ "$(complete_words matvec --set lea)" = lease= ]
    [ "$(complete_words matvec X.npy -p proc)" = processes ]
    [ "$(complete_words matvec Xa)" = Xabc.npy ]
    [ "$(complete_words regress X.npy y.npy -o Xa)" = Xabc.npy ]
    run kofn --completion fish
    refused "there are bash and zsh"
}

@test "help: zsh takes its completion" {
    command -v zsh >/dev/null || skip "no zsh"
    kofn --completion zsh >_kofn
    zsh -n _kofn
    # compsys is replaced by functions that print what they are given
    cat >ask <<'END'
_describe() { print -l -- ${(P)2} }
_arguments() { print -l -- "$@" }
_values() { print -l -- "$@" }
words=(kofn "$@") CURRENT=$#words+1
. ./_kofn
END
    words=$(zsh -f ask regress X)
    [[ "$words" == *"--loss["* && "$words" != *"--damping["* ]]
}

@test "help: an unwritable stdout is a failure" {
    for words in schemes --version --help "gen --help" --manual; do
        run bash -c "'$KOFN' $words >/dev/full"
        [ "$status" -eq 1 ] || { echo "$words: $status"; return 1; }
        [[ "$output" == *"No space left"* ]]
        run bash -c "'$KOFN' $words >&-"
        [ "$status" -eq 1 ] || { echo "$words: $status"; return 1; }
    done
}

@test "help: a message is one line, whatever a file name contains" {
    run kofn matvec $'no\nsuch\e[2Jfile.npy' w.npy
    refused "no?such"
    run kofn $'frob\nnicate'
    refused "frob?nicate"
    # letters of UTF-8 stay; controls and invalid bytes do not
    run kofn $'fr\xc3\xa9\xe4\xb8\xad\xc2\x9bb\xe2\x80\xae\xf2\xff\xc0\x80\xed\xa0\x80'
    refused $'fr\xc3\xa9\xe4\xb8\xad??b?????????'
}

@test "help: the manual has every key of --faults" {
    run kofn matvec X.npy w.npy --faults none=1
    refused "it takes"
    kofn --manual >kofn.1
    for key in $(sed 's/.*it takes//; s/,//g' <<<"$output"); do
        grep -qx ".B $key" kofn.1 || { echo "the manual has no $key"; return 1; }
    done
    [[ "$output" == *where*bandwidth* ]]
}
