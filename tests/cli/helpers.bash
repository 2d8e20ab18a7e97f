# helpers.bash -- for the command-line tests.  KOFN is the command under test,
# KOFN_SOURCE the checkout.
setup() {
    : "${KOFN:?the kofn command under test}"
    cd "$BATS_TEST_TMPDIR" || exit 1
    PYTHON=/usr/bin/python3
}

# With KOFN_PORT what would run on threads runs there.
kofn() {
    local port=() words=("$@") i
    if [ -n "${KOFN_PORT-}" ]; then
        for i in "${!words[@]}"; do
            [ "${words[i]}" != threads ] || words[i]=$KOFN_PORT
        done
        case " $* " in
        " gen "* | *" -p "* | *" --port "*) ;;
        " mat"* | " power"* | " pagerank"* | " regress"*) port=(-p "$KOFN_PORT") ;;
        esac
    fi
    timeout 60 "$KOFN" "${words[@]:0:1}" "${port[@]}" "${words[@]:1}"
}

# refused WHAT...: the last run ended with 2 and one line that has every WHAT.
refused() {
    [ "$status" -eq 2 ] || { echo "status $status: $output"; return 1; }
    [ "${#lines[@]}" -eq 1 ] || { echo "not one line: $output"; return 1; }
    for what in "$@"; do
        [[ "$output" == *"$what"* ]] || { echo "no \"$what\" in: $output"; return 1; }
    done
}

# Without the line that a slow BLAS is told by at the start.
besides_blas() {
    grep -v 'many times slower than OpenBLAS'
}

# json EXPRESSION: evaluate with `o` bound to the object on stdin.
json() {
    $PYTHON -c "import json,sys; o=json.load(sys.stdin); sys.exit(0 if ($1) else (print(str(o)[:600]) or 1))"
}

py() {
    $PYTHON -c "import numpy as np
$1"
}
