load helpers

@test "help: no command prints help on stderr and exits with 2" {
    run kofn
    [ "$status" -eq 2 ]
    [[ "$output" == *"usage: kofn COMMAND"* ]]
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
    for c in matvec matmul pagerank schemes check stream; do
        # those with an address wait for workers: worker.bats
        kofn $c --help | grep "^  kofn $c" | grep -v '://' | while read -r _ line; do
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
    [[ "$output" != *warning* ]]
    for c in matvec pagerank replay; do
        [[ "$output" == *"kofn $c"* ]]
    done
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
