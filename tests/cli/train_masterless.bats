load helpers

# Threads of BLAS look like races to ThreadSanitizer.
export OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1 OMP_NUM_THREADS=1

net="--layers 64-17-10 --step 0.5 --batch 70"

@test "nodes among equals end with the weights of the plain training, all with the same" {
    images
    for s in gpd polydot matdot:n=3 polynomial:m=3,p=1,basis=circle grid:m=2,n=2,copies=2; do
        kofn train X.npy y.npy -o model $net --epochs 2 -s $s --masterless --momentum 0.9 \
            --l2 1e-5 --test Xt.npy yt.npy --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['iterations'] == 12 and o['nodes'] == 8 \
and o['same'] == o['finished'] > 0 and o['loss'] > 0 and o['test_accuracy'] >= 0" <out.json
    done
    kofn predict model Xt.npy -o p.npy -q
    py "assert np.load('p.npy').shape == (100,)"
    kofn train X.npy --autoencoder --layers 64-9-64 --sparsity 0.1 --sparsity-weight 0.1 \
        -o auto --masterless --decode distributed --verify --json |
        json "o['rel_error'] <= 1e-12 and o['decode'] == 'distributed'"
}

@test "nodes leave and come in a training; too few of them is an error" {
    images
    printf '2 leave 3\n5 join\n9 leave 0\n' >events.txt
    kofn train X.npy y.npy -o model $net --epochs 8 --masterless -e events.txt \
        --patience 60 --verify --json >out.json
    json "o['rel_error'] <= 1e-12 and o['same'] == o['finished'] >= 6" <out.json
    printf '3 leave 0\n3 leave 1\n3 leave 2\n' >many.txt
    run kofn train X.npy y.npy -o model $net --epochs 100 -s gpd:m=2,n=2,p=1 --masterless \
        -e many.txt --patience 1
    [ "$status" -eq 4 ]
    [[ "$output" == *"of the 6 nodes"* ]]
}

@test "what a training without a master does not have is refused" {
    images
    for o in "--history h.csv" "--scrub 3 --errors probabilistic" \
        "--checkpoint C" "--journal j" "-w flip=0.1"; do
        run kofn train X.npy y.npy -o model $net --masterless $o
        refused "" "does not go with --masterless"
    done
    run kofn train X.npy y.npy -o model $net --masterless -s elastic:k=4
    refused elastic "use gpd"
    run kofn train X.npy y.npy -o model $net --masterless -s gc:d=3
    refused gc
    run kofn train X.npy y.npy -o model $net --masterless --dtype f4
    refused float32
    run kofn train X.npy y.npy -o model $net --decode replicated
    refused "--decode is for --masterless"
    [ ! -e model ]
}
