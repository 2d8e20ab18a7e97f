load ../cli/helpers

papers() {
    timeout 600 "$KOFN_PAPERS" "$@"
}

setup_points() {
    export OPENBLAS_NUM_THREADS=1
    py "
r = np.random.default_rng(1)
y = r.integers(0, 3, 400)
X = r.normal(size=(400, 6)) * .3 + np.eye(3)[y] @ r.normal(size=(3, 6))
y[3::4] = (y[3::4] + 1) % 3 # of those held out every label is wrong
np.save('X.npy', X); np.save('half.npy', X.astype('f4')); np.save('y.npy', y)
np.save('few.npy', y[:-1]); np.save('odd.npy', y + .5); np.save('minus.npy', y - 1)
np.save('one.npy', 0 * y); np.save('X7.npy', X[:7]); np.save('y7.npy', y[:7])"
}

@test "dnn: one's own points, every row measured, on the mesh that it names" {
    setup_points
    papers dnn --scenario 2 --scale 0.1 --points half.npy --labels y.npy --json >a.json
    papers dnn --scenario 2 --scale 0.1 --points half.npy --labels y.npy --mesh threads --json >b.json
    $PYTHON -c "
import json
a, b = (json.load(open(x + '.json'))['scenarios'][0] for x in 'ab')
assert (a['points'], a['held_out'], a['pixels'], a['classes']) == (300, 100, 6, 3), a
assert a['clean'][0] < .1
for r, s in zip(a['rates'], b['rates']):
    for name, runs in r['runs'].items():
        ours = name in ('uncoded', 'coded')
        other = s['runs'][name][0]
        assert runs[0]['measured'] and other['measured'] and other['mesh'] == 'threads'
        assert runs[0]['mesh'] == ('threads' if ours else 'simulated')
        # both meshes give the same
        assert ours or {**runs[0], 'mesh': ''} == {**other, 'mesh': ''}
        assert name == 'uncoded' or not runs[0]['finished'] or \
            (runs[0]['apart'] < 1e-12 and runs[0]['accuracy'] == a['clean'][0])
assert any(r['runs'][k][0]['corrected'] for r in a['rates'] for k in ('replication', 'two MDS'))"
    run papers dnn --scenario 3 --scale 0.1 --points X.npy --labels y.npy
    [ "$status" -eq 0 ]
    [[ "$output" == *"autoencoder 6-2-6"* && "$output" == *simulated* ]]
}

@test "dnn: unusable --points are refused before the work" {
    setup_points
    run papers dnn --help
    [[ "$output" == *--points* && "$output" == *--labels* && "$output" == *"every fourth"* ]]
    run papers dnn --points X.npy
    refused --points "goes with --labels"
    run papers dnn --labels y.npy
    refused --labels "goes with --points"
    run papers dnn --points nowhere.npy --labels y.npy
    refused --points nowhere.npy "give a file"
    run papers dnn --points X.npy --labels nowhere.npy
    refused --labels nowhere.npy "give a file"
    run papers dnn --points X.npy --labels few.npy
    refused few.npy "399 labels of 400 points" "each point a label"
    run papers dnn --points X.npy --labels odd.npy
    refused odd.npy .5 "whole numbers"
    run papers dnn --points X.npy --labels minus.npy
    refused minus.npy "is -1" "whole numbers"
    run papers dnn --points X.npy --labels one.npy
    refused one.npy "two classes"
    run papers dnn --points X.npy --labels X.npy
    refused X.npy "6 numbers a row" "one label"
    run papers dnn --points X7.npy --labels y7.npy
    refused X7.npy "7 points" "8 at least"
    run papers dnn --scenario 1 --points X.npy --labels y.npy
    refused --points "scenario 1"
    run papers dnn --points X.npy --labels y.npy --mnist .
    refused --mnist "one of them"
    run papers dnn --mesh cloud
    refused --mesh cloud "simulated|threads"
    run papers pcr --points X.npy
    refused pcr --points
}
