load helpers

# docs/security.md names tests as `FILE_test: SENTENCE` and `FILE.bats: TITLE`.
@test "docs: every test named in docs/security.md exists" {
    doc=$KOFN_SOURCE/docs/security.md
    named=0
    while IFS= read -r name; do
        file=${name%%: *} test=${name#*: }
        named=$((named + 1))
        case $file in
        *.bats) grep -rqF "@test \"$test\"" "$KOFN_SOURCE"/tests --include="$file" ;;
        *) # a sentence may be split into two literals
            tr -d '\n' <"$(echo "$KOFN_SOURCE"/tests/*/"$file.c")" |
                sed 's/" *"//g' | grep -qF -e "\"$test\"" -e "($test)" ;;
        esac || { echo "no such test: $name"; return 1; }
    done < <(grep -o '`[a-z_]*\(_test\|\.bats\): [^`]*`' "$doc" | tr -d '`')
    [ "$named" -ge 15 ]
}

@test "docs: every row of docs/security.md names a test" {
    # tables of sentences have the heading "held by"
    awk '/^\| what \| held by \|/ { t = 1; next } !/^\|/ { t = 0 }
         t && !/^\|---/ && !/`[a-z_]*(_test|\.bats): / { print; bad = 1 }
         END { exit bad }' "$KOFN_SOURCE/docs/security.md"
}
