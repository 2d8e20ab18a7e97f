load helpers

@test "library: exports are the public interface and nothing else" {
    [ -z "$KOFN_SANITIZE" ] || skip "sanitizers add names of their own"
    library=$(dirname "$KOFN")/libkofn.so
    [ -e "$library" ] || skip "it was built without shared libraries"
    nm -D --defined-only "$library" | awk '{ print $3 }' >names
    grep -qx kofn_open names
    grep -qx kofn_net_listen names
    [ -z "$(grep -v '^kofn_' names)" ]
}
