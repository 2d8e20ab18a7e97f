load helpers

# Threads of BLAS look like races to ThreadSanitizer.
export OPENBLAS_NUM_THREADS=1 BLIS_NUM_THREADS=1 OMP_NUM_THREADS=1

# Workers and coordinators started here end with the test.
teardown() {
    for pid in $(jobs -p); do
        kill "$pid" 2>/dev/null || true
    done
    wait || true
}

net="--layers 64-16-10 --step 0.5 --batch 50 --activation sigmoid --momentum 0 --epochs 1"

# bats test_tags=processes
@test "train: a scheme of sums gives the plain weights" {
    images
    for s in "gc:d=3 -p threads" "agc:d=3 -p sim" "uncoded -p threads"; do
        kofn train X.npy y.npy -o model $net --epochs 2 -s $s \
            -w straggle=0.1 --momentum 0.9 --l2 1e-5 --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['iterations'] == 16" <out.json
    done
    kofn train X.npy y.npy -o model $net --epochs 2 --dtype f4 --verify --json |
        json "1e-12 < o['rel_error'] <= 1e-5"
}

@test "train: the folder holds the model, and predict agrees with NumPy" {
    images
    kofn train X.npy y.npy -o model $net --epochs 20 --test Xt.npy yt.npy --json >out.json
    json "o['test_accuracy'] > 0.9 and o['accuracy'] > 0.9 and o['test_loss'] > o['loss']" <out.json
    json "len(o['per_iteration']) == 160 and o['status'] == 'ok'" <out.json
    kofn predict model Xt.npy -o labels.npy --labels yt.npy --json >said.json
    kofn predict model Xt.npy -o shares.npy --shares -q
    py "import json
m, o, s = (json.load(open(f)) for f in ('model/model.json', 'out.json', 'said.json'))
assert m['layers'] == [64,16,10] and m['activation'] == 'sigmoid' and m['unit'] == 16
x = np.load('Xt.npy')/m['unit']; y = np.load('yt.npy').astype(int)
for l in (1, 2):
    W = np.load('model/W%d.npy' % l); x = np.c_[x, np.ones(100)] @ W.T
    x = 1/(1+np.exp(-x)) if l == 1 else np.exp(x)/np.exp(x).sum(1, keepdims=True)
assert abs(np.load('shares.npy') - x).max() < 1e-12
assert (np.load('labels.npy') == x.argmax(1)).all() and np.load('labels.npy').shape == (100,)
loss = -np.log(x[np.arange(100), y]).mean()
assert abs(loss - s['loss']) < 1e-12 and abs(loss - o['test_loss']) < 1e-12
assert (x.argmax(1) == y).mean() == s['accuracy'] == o['test_accuracy']"
    # one label each, in sequence
    kofn predict model Xt.npy -o labels.csv
    [ "$(wc -l <labels.csv)" -ge 100 ]
    # the labels in the last of 65 columns give the same weights
    py "for a,b in ('X.npy','y.npy'),('Xt.npy','yt.npy'): np.save('b'+a, np.c_[np.load(a),np.load(b)])"
    kofn train bX.npy --label 65 -o beside $net --epochs 20 --test bXt.npy --json |
        json "o['test_accuracy'] > 0.9"
    py "for n in ('W1', 'W2'): # which workers answer determines the rounding
    W = np.load('model/%s.npy' % n); assert abs(np.load('beside/%s.npy' % n) - W).max() < 1e-9*abs(W).max()"
    kofn predict beside bXt.npy --label 65 --json | json "o['accuracy'] > 0.9"
    run kofn train bX.npy y.npy --label 65 -o beside $net
    refused "leave y.npy out"
}

# bats test_tags=processes
@test "train: targets, autoencoders, --unit and --output work" {
    images
    py "X=np.load('X.npy'); np.save('T.npy', (X[:,:3]-X[:,3:6])/16)"
    kofn train X.npy T.npy -o model --layers 64-10-3 --loss squares --activation tanh \
        --step 0.1 --epochs 40 --momentum 0.5 --verify --json >out.json
    json "o['rel_error'] <= 1e-8 and o['accuracy'] is None" <out.json
    kofn predict model X.npy -o t.npy -q
    py "T=np.load('T.npy'); t=np.load('t.npy'); assert t.shape == T.shape
assert ((t-T)**2).sum() < 0.1*((T-T.mean(0))**2).sum()"
    kofn train X.npy -o coder --layers 64-20-64 --autoencoder --step 1 --momentum 0.9 \
        --epochs 20 --sparsity 0.2 --sparsity-weight 0.001 --json --verify >out.json
    json "o['rel_error'] <= 1e-8 and o['rounds'] == 2*o['iterations']" <out.json
    kofn predict coder X.npy -o x.npy -q
    py "X=np.load('X.npy'); x=np.load('x.npy')
assert ((x-X)**2).sum() < 0.5*((X-X.mean(0))**2).sum()"
    kofn train X.npy y.npy -o model $net --unit 32 -q
    json "o['unit'] == 32" <model/model.json
    kofn train X.npy y.npy --layers 64-10 --loss squares --output-activation sigmoid \
        --nesterov --momentum 0.5 -o model --verify --json |
        json "o['rel_error'] <= 1e-12"
}

@test "train: leaving, joining and slow workers do not change weights" {
    images
    printf '%s\n' '2 leave 1' '3.5 leave 4' '4 join' '5 join' '6 slow 2 10' '7.3 leave 0' \
        '8 leave 8' '8 join' '9 join' '11 leave 6' >events.txt
    for port in threads sim processes; do
        kofn train X.npy y.npy -o model $net -s gc:d=3 --epochs 4 -e events.txt -p $port \
            --history h.csv --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['left'] == 5 and o['joined'] == 4" <out.json
        py "import json
o = json.load(open('out.json')); h = np.genfromtxt('h.csv', delimiter=',', names=True)
assert h['step'].tolist() == list(range(1, 33)) and h['live'][-1] == o['live']
for key in ('rounds', 'joined', 'left', 'messages', 'sent_bytes', 'received_bytes'):
    assert h[key].sum() == o[key] > 0, key"
        cp model/W1.npy "$port.npy"
    done
    py "a=np.load('threads.npy')
for p in ('sim', 'processes'): assert abs(np.load(p+'.npy')-a).max() < 1e-12"
    echo '3 leave 1
3 leave 2
3 leave 3' >events.txt
    run kofn train X.npy y.npy -o none $net -e events.txt -p sim
    [ "$status" -eq 4 ]
    [ ! -e none/model.json ]
}

steps_done() { # steps_done N: there are so many lines in h.csv
    [ "$(cat h.csv 2>/dev/null | wc -l)" -gt "$1" ]
}

@test "train: kills and joins do not change the weights" {
    images
    address=ipc://$PWD/socket
    for i in $(seq 8); do
        timeout 600 "$KOFN" worker --once "$address" -w straggle=1,delay=0.02 -q &
        crew[i]=$!
    done
    # through a pipe: the command is at most 64 KB ahead of the reader, of some 200
    mkfifo journal
    timeout 600 "$KOFN" train X.npy y.npy -o model $net --epochs 24 -p "$address" -n 8 \
        --below pause --patience 600 --journal journal --verify --json >out.json &
    coordinator=$!
    begun=0
    while read -r line; do
        [[ $line == *'"ev":"begin"'* ]] || continue
        begun=$((begun + 1))
        case $begun in 4 | 8 | 12 | 16)
            kill -9 "$(pgrep -P "${crew[begun / 4]}")" # timeout's child
            timeout 600 "$KOFN" worker --once "$address" -w straggle=1,delay=0.02 -q &
            ;;
        esac
    done <journal
    wait $coordinator
    # six are needed
    json "o['rel_error'] <= 1e-10 and o['iterations'] == 192 and o['joined'] >= 2 and o['left'] >= 4" <out.json
}

has_kept() {
    [ "$(sed -n 's/.*"done": \([0-9]*\).*/\1/p' C/checkpoint.json 2>/dev/null || echo 0)" -ge "$1" ]
}

# bats test_tags=processes
@test "train: a killed training resumes to the same weights" {
    images
    words="train X.npy y.npy $net --momentum 0.9 --test Xt.npy yt.npy"
    kofn $words --epochs 4 -o whole -q --history whole.csv
    "$KOFN" $words --epochs 4 -o model -w straggle=1,delay=0.02 --checkpoint C \
        --every 3 --history h.csv -q &
    pid=$!
    wait_for has_kept 6
    kill -KILL $pid
    wait $pid || true
    [ ! -e model/model.json ]
    kofn $words --epochs 4 -o model --checkpoint C --resume --history h.csv --verify --json >out.json
    json "o['resumed_after'] >= 6 and o['resumed_after'] % 3 == 0 and o['iterations'] == 32" <out.json
    json "o['rel_error'] <= 1e-12" <out.json
    py "assert abs(np.load('whole/W1.npy')-np.load('model/W1.npy')).max() < 1e-12
a, b = (np.genfromtxt(f, delimiter=',', skip_header=1)[:,:6] for f in ('whole.csv', 'h.csv'))
assert np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)"
    # finished steps are not repeated, and more steps continue from there
    kofn $words --epochs 4 -o model --checkpoint C --resume --json |
        json "o['rounds'] == 0 and o['iterations'] == 32"
    kofn $words --epochs 5 -o model --checkpoint C --resume --json |
        json "o['rounds'] == 8 and o['iterations'] == 40"
    run kofn $words --step 1 --epochs 4 -o model --checkpoint C --resume
    refused "--step was \"0.5\" and is \"1\""
}

# bats test_tags=asan, processes
@test "train: a worker that turns faulty is named; weights are right" {
    images
    echo '3 corrupt 2' >events.txt
    for port in threads sim; do
        kofn train X.npy y.npy -o model $net -s gc:d=3 --epochs 4 --errors probabilistic \
            -e events.txt -p $port --late 0 --verify --json >out.json
        json "o['rel_error'] <= 1e-9 and o['corrupted'] == [2] and o['corrupt_results'] > 0" <out.json
    done
}

@test "train: ranks of an MPI job give the same weights" {
    [ "$KOFN_SANITIZE" != thread ] || skip "it finds fault with MPI's own locks"
    # Leaks of MPI itself are not kofn's; its stacks are long.
    export LSAN_OPTIONS="suppressions=$BATS_TEST_DIRNAME/../mpi/leaks.supp:print_suppressions=0"
    export ASAN_OPTIONS="fast_unwind_on_malloc=0:symbolize=0"
    images
    for mpi in openmpi mpich; do
        command -v mpirun.$mpi >/dev/null || continue
        flags=
        [ $mpi = openmpi ] && flags="--oversubscribe --allow-run-as-root"
        timeout -k 2 100 mpirun.$mpi $flags -n 5 "$KOFN" train X.npy y.npy -o $mpi $net -p mpi \
            --epochs 2 --verify --json >out.json
        json "o['rel_error'] <= 1e-12 and o['workers'] == 4" <out.json
    done
}

@test "train: a signal exits with 128 + n and keeps the last step" {
    images
    "$KOFN" train X.npy y.npy $net --epochs 1000 -o model -w straggle=1,delay=0.02 \
        --checkpoint C --history h.csv -q -p processes -n 3 2>err.txt &
    pid=$!
    wait_for steps_done 3
    kill -TERM $pid
    wait $pid && status=0 || status=$?
    [ "$status" -eq 143 ]
    [ ! -e model/model.json ]
    has_kept 3
    step=$(grep -o '"done": *[0-9]*' C/checkpoint.json | grep -o '[0-9]*')
    grep -qx "kofn: interrupted: the state after step $step is in C" err.txt
    grep -q '^kofn: written until then: --history h.csv$' err.txt
    grep -q '^to continue: kofn train .*--checkpoint C .* --resume$' err.txt
}

@test "train: a signal during a step keeps the step before" {
    images
    words="train X.npy y.npy $net --epochs 2 --momentum 0.9"
    echo '4 slow 1 1000000' >slow.txt # for ever, and with uncoded nobody else will do
    "$KOFN" $words -o model -s uncoded -n 3 -p threads -e slow.txt --late 0 \
        --checkpoint C --history h.csv -q &
    pid=$!
    wait_for steps_done 3
    kill -INT $pid
    wait $pid && status=0 || status=$?
    [ "$status" -eq 130 ]
    json "o['done'] == 3" <C/checkpoint.json
    kofn $words -o model -s uncoded -n 3 -p threads --late 0 --checkpoint C \
        --resume --verify --json >out.json
    json "o['rel_error'] <= 1e-12 and o['resumed_after'] == 3 and o['iterations'] == 16" <out.json
}

@test "train: points and targets say the first and the last width" {
    images
    kofn train X.npy y.npy -o model --epochs 1 -q
    py "import json; assert json.load(open('model/model.json'))['layers'] == [64, 32, 10]"
    kofn train X.npy y.npy -o model --hidden 20-12 --epochs 1 -q
    py "import json; assert json.load(open('model/model.json'))['layers'] == [64, 20, 12, 10]"
    kofn train X.npy -o coder --hidden 20 --autoencoder --epochs 1 -q
    py "import json; assert json.load(open('coder/model.json'))['layers'] == [64, 20, 64]"
    kofn train X.npy y.npy -o model --hidden 9 --loss squares --epochs 1 -q
    py "import json; assert json.load(open('model/model.json'))['layers'] == [64, 9, 1]"
}

# bats test_tags=asan
@test "train: exclusive options exit with 2 and one line" {
    images
    run kofn train X.npy y.npy -o m --layers 64-10 --hidden 32
    refused "--layers" "--hidden"
    for bad in 0 32- x ""; do
        run kofn train X.npy y.npy -o m "--hidden=$bad"
        refused "--hidden"
    done
    for bad in 64 64- -64-10 64-x 64-0-10 64--10 "64-10 " 99999999999999999999-1 \
        1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1; do
        run kofn train X.npy y.npy -o m "--layers=$bad"
        refused "--layers"
    done
    run kofn train X.npy y.npy -o m --layers 65-10
    refused "64 columns" 65
    run kofn train X.npy y.npy -o m --layers 64-9
    refused "9 classes" "0 to 8"
    run kofn train X.npy -o m --layers 64-10
    refused "--autoencoder"
    run kofn train X.npy y.npy -o m --layers 64-3-64 --autoencoder
    refused "leave y.npy out"
    run kofn train X.npy yt.npy -o m $net
    refused "yt.npy"
    run kofn train X.npy y.npy -o m $net --output-activation tanh
    refused "--loss squares"
    run kofn train X.npy y.npy -o m $net --nesterov
    refused "momentum"
    run kofn train X.npy y.npy -o m $net --sparsity-weight 1
    refused "autoencoder"
    run kofn train X.npy y.npy -o m $net --every 3
    refused "--checkpoint"
    run kofn train X.npy y.npy -o m $net -s mds
    refused "mds"
    run kofn train X.npy y.npy -o m $net --test Xt.npy y.npy
    refused "y.npy"
    touch file
    run kofn train X.npy y.npy -o file $net
    [ "$status" -eq 1 ]
    [[ "$output" == *"file: Not a directory"* ]]
    run kofn train X.npy y.npy -o m $net --activation relu --step 1e9 --epochs 30
    refused "shorter step"
}

# nothing_new COMMAND...: the run fails with one line and leaves nothing.
nothing_new() {
    before=$(ls -A)
    run kofn "$@"
    [ "$status" -ne 0 ] && [ "$(besides_blas <<<"$output" | wc -l)" -eq 1 ] ||
        { echo "$*: $status $output"; return 1; }
    [ "$(ls -A)" = "$before" ] || { echo "$*: left $(ls -A)"; return 1; }
}

@test "train: a refused or failed run leaves nothing" {
    images
    words="train X.npy y.npy -o model $net --history h.csv --checkpoint C"
    echo '1 leave 99' >events.txt
    for bad in "-s gpd:m=9,n=9,p=1" "-s nonsense" \
        "-s elastic --errors adversarial" "-p tcp://nowhere.invalid:1" "-p mpi" \
        "-e events.txt" "-e nowhere.txt" "--journal nowhere/j" "--trace nowhere/t"; do
        nothing_new $words $bad
    done
    nothing_new train X.npy y.npy -o model $net --activation relu --step 1e9 --epochs 30
    nothing_new train X.npy y.npy -o nowhere/model $net
    nothing_new train X.npy y.npy -o X.npy/model $net
    nothing_new train X.npy y.npy -o h.npy/../model $net
    # an existing folder stays, with the model in it
    kofn train X.npy y.npy -o model/ $net --epochs 1 -q
    mkdir C
    cp -r model kept
    nothing_new $words -p mpi
    diff -r model kept
    # as if the disk were full: the second layer does not fit
    before=$(ls -A)
    run bash -c "ulimit -f 9; trap '' XFSZ; exec '$KOFN' train X.npy y.npy -o new --layers 64-16-100-10"
    [ "$status" -eq 1 ]
    [[ "$output" == *"new/.kofn-"*"-W2.npy: File too large"* ]] || { echo "$output"; return 1; }
    [ "$(ls -A)" = "$before" ]
    # an existing model is unchanged
    run bash -c "ulimit -f 9; trap '' XFSZ; exec '$KOFN' train X.npy y.npy -o model --layers 64-16-100-10"
    [ "$status" -eq 1 ]
    [[ "$output" == *"model/.kofn-"*"-W2.npy: File too large"* ]] || { echo "$output"; return 1; }
    diff -r model kept
}

# bats test_tags=asan
@test "train: a flipped bit is refused" {
    local flip="import sys; b=bytearray(open(f,'rb').read()); b[at]^=1; open(f,'wb').write(b)"
    images
    kofn train X.npy y.npy -o model $net -q
    kofn predict model Xt.npy -o want.npy 2>said
    [ ! -s said ]
    for file in W1.npy W2.npy; do
        rm -rf bad; cp -r model bad
        py "f='bad/$file'; at=-9; $flip"
        run kofn predict bad Xt.npy -o y2.npy --json
        [ "$status" -eq 5 ] && [ ! -e y2.npy ] || { echo "$status $output"; return 1; }
        [[ "$output" == *"bad/$file is damaged"*"train again"* ]] || { echo "$output"; return 1; }
    done
    rm -rf bad; cp -r model bad
    py "f='bad/model.json'; at=open(f,'rb').read().index(b'16.0')+1; $flip"
    run kofn predict bad Xt.npy -o y2.npy
    [ "$status" -eq 5 ] && [ ! -e y2.npy ] || { echo "$status $output"; return 1; }
    [[ "$output" == *"bad/model.json is damaged"* ]]
}

# bats test_tags=asan
@test "train: incomplete models are refused" {
    images
    kofn train X.npy y.npy -o model $net -q
    mkdir empty
    run kofn predict empty X.npy -o y2.npy
    refused "empty holds no model"
    rm -rf bad; cp -r model bad; rm bad/W2.npy
    run kofn predict bad X.npy -o y2.npy
    [ "$status" -eq 5 ]
    [[ "$output" == *"bad/W2.npy is damaged"*"it is missing"*"train again"* ]]
    rm -rf bad; cp -r model bad
    py "import json; o=json.load(open('bad/model.json')); del o['set']; json.dump(o, open('bad/model.json','w'))"
    run kofn predict bad X.npy -o y2.npy
    [ "$status" -eq 5 ]
    [[ "$output" == *"bad/model.json is damaged"*"this version of kofn"*"train again"* ]]
    py "np.save('narrow.npy', np.load('X.npy')[:,:9])"
    run kofn predict model narrow.npy -o y2.npy
    refused "9 columns"
    run kofn predict model X.npy -o y2.npy --kernel linear
    refused "--kernel"
    run kofn predict y.npy X.npy -o y2.npy --shares
    refused "--shares"
    [ ! -e y2.npy ]
}
