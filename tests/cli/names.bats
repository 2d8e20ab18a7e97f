#!/usr/bin/env bats
# Files to write are different from files to read and from each other.

load helpers

# bats test_tags=asan
@test "names: no output replaces an input or another output" {
    "$KOFN" gen matrix 300 4 -o X.npy -q
    "$KOFN" gen vector 300 -o y.npy -q
    cp X.npy X-before.npy
    cp y.npy y-before.npy
    ln X.npy link.npy
    for option in --output --history --journal --metrics --trace --record; do
        for file in X.npy link.npy ./y.npy; do
            run timeout 60 "$KOFN" regress X.npy y.npy $option $file
            refused "$option $file" "to be read"
        done
    done
    run timeout 60 "$KOFN" regress X.npy y.npy --test link.npy y.npy --trace X.npy
    refused "--trace X.npy"
    run timeout 60 "$KOFN" regress X.npy y.npy -o w.npy --trace w.npy --json
    [ "$status" -eq 2 ]
    [[ "$output" == *"--output is written there"* ]]
    cmp X.npy X-before.npy
    cmp y.npy y-before.npy
    [ ! -e w.npy ]
}
