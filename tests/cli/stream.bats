load helpers

inputs() {
    for i in 1 2 3; do
        kofn gen matrix 41 23 -o X$i.npy --seed $i
        kofn gen matrix 23 19 -o Y$i.npy --seed 1$i
    done
    kofn gen matrix 19 5 -o Z.npy --seed 20
    printf '# X Y OUT\nX1.npy Y1.npy C1.npy\nX2.npy Y2.npy C2.npy\n\n' >list.txt
    printf 'X3.npy\tY3.npy  C3.npy\r\nC1.npy Z.npy D.npy' >>list.txt
}

# close A B: within 1e-12 of NumPy's own product
close_to_numpy() {
    py "
y = np.load('$3'); want = np.load('$1') @ np.load('$2')
assert y.shape == want.shape, (y.shape, want.shape)
assert np.linalg.norm(y - want) <= 1e-12 * np.linalg.norm(want)"
}

@test "products by line agree with NumPy, for every scheme" {
    inputs
    for scheme in dip dip:m=2,n=2,p=1,T=1 idip:W=2,N=4 polynomial:m=2,p=2 \
        uncoded; do
        port=$([ $scheme = uncoded ] && echo threads || echo sim)
        rm -f C?.npy D.npy
        kofn stream list.txt -s $scheme -n 4 -p $port -q
        for i in 1 2 3; do close_to_numpy X$i.npy Y$i.npy C$i.npy; done
        close_to_numpy C1.npy Z.npy D.npy
    done
    kofn stream list.txt -q
    close_to_numpy C1.npy Z.npy D.npy
}

@test "an object a product, and stragglers in every second list" {
    inputs
    kofn stream - -s idip:W=3,N=4 -n 4 -p sim --pattern iid:p=0.5 \
        --json --verify <list.txt >out.json
    py "
import json
o = [json.loads(l) for l in open('out.json')]
o.sort(key=lambda x: x['product'])
assert [x['product'] for x in o] == [1, 2, 3, 4]
assert [x['output'] for x in o] == ['C1.npy', 'C2.npy', 'C3.npy', 'D.npy']
for x in o:
    assert x['status'] == 'ok' and x['ended'] - x['began'] <= 2
    assert x['plain'] + x['coded'] >= 8 and x['rel_error'] <= x['predicted']"
    run kofn stream list.txt -p sim --verify
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "C1.npy = X1.npy Y1.npy: rounds 1 to "*", found "* ]]
}

@test "lines are done as they come: whoever waits for one before the next is served" {
    inputs
    $PYTHON - "$KOFN" <<'END'
import json, subprocess, sys
p = subprocess.Popen([sys.argv[1], "stream", "-", "--json", "-n", "4"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for i in (1, 2, 3):
    print(f"X{i}.npy Y{i}.npy C{i}.npy", file=p.stdin, flush=True)
    assert json.loads(p.stdout.readline())["product"] == i
p.stdin.close()
assert p.wait() == 0
END
    close_to_numpy X3.npy Y3.npy C3.npy
}

@test "who leaves and joins; the journal replays; what was recorded can be had again" {
    inputs
    printf '2 leave 0\n2 join\n3.5 leave 1\n' >events.txt
    kofn stream list.txt -n 3 -s dip:m=2,p=2,T=1 -p sim -e events.txt -q \
        --journal j --trace t.json --metrics m
    close_to_numpy C1.npy Z.npy D.npy
    kofn replay j --step | grep -q "round 2 is over"
    kofn stream list.txt -n 4 -s dip:m=2,p=2,T=1,lambda=2 -p sim -q \
        --pattern iid:p=0.4 --seed 5 --record r.csv
    py "
r = np.loadtxt('r.csv', delimiter=',')
assert r.shape[1] == 4 and (r.min(axis=1) == 1).all() and np.isinf(r).any()"
    kofn stream list.txt -n 4 -p sim -q --pattern r.csv
}

@test "what cannot be is said, in a line" {
    inputs
    run kofn stream nothing.txt
    refused nothing.txt
    for line in "X1.npy" "X1.npy Y1.npy C.npy D.npy" "X1.npy X2.npy C.npy" \
        "X1.npy missing.npy C.npy"; do
        echo "$line" >bad.txt
        run kofn stream bad.txt
        [ "$status" -eq 2 ]
        [ "${#lines[@]}" -eq 1 ]
    done
    run kofn stream list.txt -p processes
    refused threads
    run kofn stream list.txt -s mds
    [ "$status" -ne 0 ]
    [[ "$output" == *"mds does not serve a stream"* ]]
    run kofn stream list.txt -s dip:lambda=9
    [[ "$output" == *"lambda = 9"* ]]
    run kofn stream list.txt --mu -1
    refused --mu
    kofn stream /dev/null
}
