# The reference of the C interface, as the build made it.  KOFN_BUILD is the build, and
# KOFN_SOURCE the checkout.

setup() {
    command -v doxygen >/dev/null || skip "no reference: there is no doxygen"
    check=$KOFN_SOURCE/tests/reference/check.py
}

@test "reference: every exported symbol has a man page and a page in HTML" {
    python3 "$check" symbols "$KOFN_BUILD" "$KOFN_SOURCE"
}

@test "reference: every page has all sections, and the prototype of the header" {
    python3 "$check" sections "$KOFN_BUILD" "$KOFN_SOURCE"
}

@test "reference: a page lists statuses of kofn_status only" {
    python3 "$check" statuses "$KOFN_BUILD" "$KOFN_SOURCE"
}

@test "reference: links lead to pages, and HTML is well-formed" {
    python3 "$check" links "$KOFN_BUILD" "$KOFN_SOURCE"
}

@test "reference: man reads every page without a warning" {
    cd "$KOFN_BUILD/reference/man3"
    if command -v mandoc >/dev/null; then
        run mandoc -Tlint -W warning ./*.3
        [ -z "$output" ] || { echo "$output" | head -20; return 1; }
    fi
    command -v groff >/dev/null || skip "there is no groff"
    run groff -man -ww -z -Tutf8 ./*.3
    [ "$status" -eq 0 ] && [ -z "$output" ] || { echo "$output" | head -20; return 1; }
    command -v lexgrog >/dev/null || skip "there is no lexgrog"
    run lexgrog ./*.3 # finds the line in NAME, for whatis
    [ "$status" -eq 0 ] || { echo "$output" | grep -v '": "\|: "' | head; return 1; }
}

@test "reference: the tool reports what a comment lacks" {
    cd "$BATS_TEST_TMPDIR"
    mkdir scripts
    cp "$KOFN_SOURCE/scripts/reference" scripts
    cp -r "$KOFN_SOURCE/include" "$KOFN_SOURCE/examples" .
    sed -i '/^\/\* Returns the plan of operand 0. \*\//d' include/kofn.h
    sed -i 's/kofn_job_name(job, 0)/""/' examples/reference/job.c
    run scripts/reference out
    [ "$status" -eq 1 ] || { echo "$output"; return 1; }
    [[ "$output" == *"kofn_job_plan: there is no comment"* ]]
    [[ "$output" == *"kofn_job_name: no program in examples/reference has it"* ]]
}
