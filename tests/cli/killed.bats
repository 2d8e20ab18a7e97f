load helpers

# A command killed at any write leaves each file whole under its name, either the old
# one or the new one. The journal replays as far as it goes.
export OPENBLAS_NUM_THREADS=1
two="-p sim -n 2 -s uncoded"

# The inputs of the commands below, and files that they find: outputs of others.
inputs() {
    [ -z "$KOFN_SANITIZE" ] || skip "a sanitizer does not run under ptrace"
    kofn gen matrix 60 4 -o X.npy --seed 3 -q
    kofn gen vector 60 -o y.npy --seed 4 -q
    kofn gen vector 4 -o w.npy --seed 5 -q
    kofn gen vector 4 -o u.npy --seed 6 -q
    py "r=np.random.default_rng(1); np.save('l.npy', r.integers(0,3,60).astype(float))
S=r.random((30,30)); np.save('S.npy', S+S.T)"
}

# until_dead LIMIT WORDS...: runs in the folder `now` and is killed at that change; its
# status is in $code.
until_dead() {
    local limit=$1
    shift
    code=0
    (cd now && "$KOFN_KILL_AT_WRITE" "$limit" "$KOFN" "$@" --journal j -q) 2>err || code=$?
    [ "$code" -ne 77 ] || skip "processes may not be traced here"
    [ "$code" -eq 0 ] || [ "$code" -eq 137 ] || { cat err; false; }
}

# one_of FILE: the file in `now` equals that in `was` or in `new`.
one_of() {
    cmp -s "now/$1" "was/$1" || cmp -s "now/$1" "new/$1" || { echo "half: $1"; false; }
}

# A model is read by the command that knows how.
model_is_one_of() {
    for f in was new; do
        [ -e $f.labels.npy ] || kofn predict $f/model X.npy -o $f.labels.npy --shares -q
    done
    kofn predict now/model X.npy -o now.labels.npy --shares -q || return 1
    cmp -s now.labels.npy was.labels.npy || cmp -s now.labels.npy new.labels.npy
}

# Replays as far as the journal goes, or says that it has no complete line.
replayed() {
    [ ! -e now/j ] || "$KOFN" replay now/j -q 2>err || grep -q "before it had begun" err ||
        { cat err; false; }
}

trace_is_whole() {
    [ "$(tail -n 1 "$1")" = "]}" ] || { echo "half: $1"; false; }
}

# killed_everywhere STEP FILES WORDS...: kills at every STEP-th change of a file; `was`
# has the files from before. FILES are equal to those of an undisturbed run.
killed_everywhere() {
    local step=$1 files=$2 n f
    shift 2
    rm -rf new && cp -r was new
    (cd new && kofn "$@" --journal j -q)
    [ -n "$(diff -rq "was/${files%% *}" "new/${files%% *}")" ] # else there is nothing to tell
    for ((n = 1; n < 1000; n += step)); do
        rm -rf now && cp -r was now
        until_dead "$n" "$@"
        [ "$code" -eq 137 ] || break # there are no more changes than that
        for f in $files; do
            if [ "$f" = model ]; then model_is_one_of; else one_of "$f"; fi
        done
        [ ! -e now/t.json ] || trace_is_whole now/t.json
        replayed
        until_dead 1000000 "$@"
        [ "$code" -eq 0 ]
        for f in $files; do diff -r -x "*.new*" -x ".kofn-*" "now/$f" "new/$f"; done
        trace_is_whole now/t.json
        replayed
    done
    [ "$n" -ge "${least:-10}" ]
    [ "$code" -eq 0 ]
}

products() {
    inputs
    mkdir was
    for end in ${2:-npy csv mtx}; do
        (cd was && kofn matvec ../X.npy ../w.npy $two -o y.$end --trace t.json -q)
        killed_everywhere "$1" "y.$end t.json" matvec ../X.npy ../u.npy $two -r 2 \
            -o y.$end --trace t.json
    done
}

models() {
    local net="$two --layers 4-3-3 --batch 30 --epochs 1 -o model --trace t.json"
    inputs
    mkdir was
    (cd was && kofn train ../X.npy ../l.npy $net --epochs 1 --seed 8 -q)
    killed_everywhere "$1" "model t.json" train ../X.npy ../l.npy $net --epochs 2
    least=20 killed_everywhere "$2" model train ../X.npy ../l.npy $net --epochs 2 \
        --checkpoint C --resume
}

iterations() {
    local some="$two -o y.npy --trace t.json" on="--tol 1e-300 --checkpoint C --resume"
    inputs
    mkdir was
    (cd was && kofn power ../S.npy $some --max-iter 2 -q)
    least=20 killed_everywhere "$1" y.npy power ../S.npy $some --max-iter 4 $on
    (cd was && kofn regress ../X.npy ../y.npy $some --iterations 2 -q)
    least=20 killed_everywhere "$1" y.npy regress ../X.npy ../y.npy $some --iterations 4 \
        --step 0.1 $on
}

@test "killed: a product leaves whole files" {
    products 3 npy
}

@test "killed: a training leaves the old model or the new one" {
    models 1 29
}

@test "killed: an iteration leaves whole files and resumes" {
    iterations 19
}

# bats test_tags=night
@test "killed at any write: a product leaves whole files" {
    products 1
}

# bats test_tags=night
@test "killed at any write: a training leaves the old or the new model" {
    models 1 1
}

# bats test_tags=night
@test "killed at any write: an iteration leaves whole files and resumes" {
    iterations 1
}
