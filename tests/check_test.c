/* check_test.c -- the whole way of a check: A is coded, workers multiply,
 * some of them spoil what they send, results are sketched, judged and decoded.
 *
 * And what must not happen: that honest results, of whatever numbers, are
 * taken for lies; or that a lie is made which the sketch does not see.
 */
#include "rig.h"

#include "code/suspect.h"
#include "data/check.h"

#include <float.h>
#include <stdio.h>

#define MOST_SEATS 24

/* ---- a fleet ------------------------------------------------------------- */

typedef struct kind {
    const char *spec;
    size_t seats;
    kofn_op op;
    size_t m, n, p;
    kofn_dtype dtype;
    bool sparse;
} kind;

/* All that is known of one round, of its first group. */
typedef struct fleet {
    const kind *k;
    kofn_plan *plan;
    kf_code *code;
    kofn_matrix A, in, out, result[MOST_SEATS], sent[MOST_SEATS];
    kofn_sparse sparse;
    double *want, *row, *col;
    size_t seats, enough, entries; /* of a result */
    kf_scratch scratch;
    uint32_t checks;
} fleet;

static bool is_left(const kind *k)
{
    return k->op == KOFN_LEFT;
}

static void scales(fleet *f, const kf_resident *r, const kf_messages *m)
{
    bool cut = f->plan->parts1 > 1;
    const kofn_matrix *part = cut ? m->parts.part : &m->plain->m;
    size_t parts = cut ? m->parts.count : 1;
    double *rows = numbers(2000, 8), *cols = numbers(2000, 8);

    if (is_left(f->k)) {
        assert_ok(kf_scales_of_part_rows(part, parts, rows, part->rows));
        assert_ok(kf_scales_of_columns(r->parts.part, r->parts.count, 1, cols,
                                       r->parts.cols));
    } else {
        assert_ok(kf_scales_of_rows(r, 0, rows));
        assert_ok(kf_scales_of_columns(part, parts, 1, cols, part->cols));
    }
    f->row = rows;
    f->col = cols;
}

static void compute(fleet *f, const kf_resident *r, kf_messages *m)
{
    size_t groups = f->plan->layout.groups, seat[MOST_SEATS];
    kofn_block *block[MOST_SEATS];

    for (size_t i = 0; i < f->seats; i++)
        seat[i] = i * groups;
    assert_ok(kf_encode(r, f->code, seat, f->seats, block));
    assert_ok(kf_messages_encode(m, f->code, seat, f->seats));
    for (size_t i = 0; i < f->seats; i++) {
        kofn_parcel *in = kf_messages_take(m, seat[i]);
        size_t rows = f->plan->layout.lanes * f->plan->span;
        size_t cols = is_left(f->k) ? block[i]->cols : in->m.cols;

        kofn_parcel *to;
        kofn_msg work = {.how = is_left(f->k) ? KOFN_LEFT_ROWS : KOFN_ROWS,
                         .in = in,
                         .lo = 0,
                         .hi = f->plan->span};

        f->entries = rows * cols;
        f->result[i] = (kofn_matrix){numbers(f->entries, 8), rows, cols, cols,
                                     f->k->dtype};
        f->sent[i] = f->result[i];
        f->sent[i].data = numbers(f->entries, 8);
        assert_ok(kf_parcel_new(&to, rows, cols, f->k->dtype));
        work.result = to;
        assert_ok(kofn_work(block[i], &work, NULL, NULL));
        memcpy(f->result[i].data, to->m.data,
               f->entries * kf_dtype_size(f->k->dtype));
        kofn_parcel_drop(to);
        kofn_parcel_drop(in);
        kofn_block_drop(block[i]);
    }
}

/* A and the input are filled in by then. */
static void fleet_work(fleet *f)
{
    kf_messages m = {0};
    kf_resident r;

    if (f->k->sparse)
        assert_ok(kf_resident_sparse(&r, f->plan, &f->sparse));
    else
        assert_ok(kf_resident_dense(&r, f->plan, &f->A));
    assert_ok(kf_messages_begin(&m, f->plan, &f->in, 1));
    compute(f, &r, &m);
    scales(f, &r, &m);
    kf_messages_free(&m);
    kf_resident_free(&r);
    f->want = is_left(f->k) ? plain_product(&f->in, &f->A)
                            : plain_product(&f->A, &f->in);
}

static void fleet_plan(fleet *f, const kind *k)
{
    kofn_problem pb = {k->op, k->m, k->n, k->p, k->dtype, k->sparse};

    *f = (fleet){.k = k};
    assert_ok(kofn_plan_new(&f->plan, &pb, k->spec, k->seats, 3));
    assert_ok(kf_code_new(&f->code, f->plan));
    f->seats = k->seats / f->plan->layout.groups;
    f->enough = f->plan->layout.threshold;
    if (k->sparse) {
        f->sparse = random_sparse(k->m, k->n, 5, 1);
        f->A = sparse_as_dense(&f->sparse);
    } else {
        f->A = random_matrix(k->m, k->n, k->dtype, 1);
    }
    f->in = is_left(k) ? random_matrix(k->p, k->m, k->dtype, 2)
                       : random_matrix(k->n, k->p, k->dtype, 2);
    f->out = is_left(k) ? random_matrix(k->p, k->n, k->dtype, 4)
                        : random_matrix(k->m, k->p, k->dtype, 4);
}

static void fleet_up(fleet *f, const kind *k)
{
    fleet_plan(f, k);
    fleet_work(f);
}

static void fleet_down(fleet *f)
{
    for (size_t i = 0; i < f->seats; i++) {
        kf_free(f->result[i].data);
        kf_free(f->sent[i].data);
    }
    kf_free(f->A.data);
    kf_free(f->in.data);
    kf_free(f->out.data);
    sparse_free(&f->sparse);
    kf_free(f->want);
    kf_free(f->row);
    kf_free(f->col);
    kf_scratch_free(&f->scratch);
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
}

/* ---- a check ------------------------------------------------------------- */

typedef struct verdict {
    kofn_status st;
    uint32_t bad[MOST_SEATS];
    size_t count, doubted;
    double floor;
} verdict;

static void send_honest(fleet *f)
{
    for (size_t i = 0; i < f->seats; i++)
        memcpy(f->sent[i].data, f->result[i].data,
               f->entries * kf_dtype_size(f->k->dtype));
}

/* Strips [lo, hi) of these seats. */
static verdict ask(fleet *f, const uint32_t *seat, size_t n, size_t lo,
                   size_t hi, size_t most, uint64_t secret)
{
    kf_source source[MOST_SEATS];
    kf_check c = {.plan = f->plan,
                  .code = f->code,
                  .source = source,
                  .lo = lo,
                  .hi = hi,
                  .most = most,
                  .row = f->row,
                  .col = f->col,
                  .secret = secret,
                  .number = f->checks++};
    kf_found found;
    kf_decoder *d;
    double *H;
    verdict v;

    c.liars = (n - f->enough) / 2;
    c.promised = n - kf_min(n, f->enough + 1);
    assert_ok(kf_decoder_new(&d, f->code, seat, n, false));
    assert_ok(kf_parity(f->code, seat, n, &H, &c.q));
    assert_ok(
        kf_hidden_of(f->code, d, H, c.q, kf_check_few(&c, n, 0), &c.hidden));
    for (size_t i = 0; i < n; i++)
        source[i] = (kf_source){&f->sent[seat[i]], 0, f->plan->span};
    c.decoder = d;
    c.H = H;
    found.bad = v.bad;
    v.st = kf_check_results(&c, &found);
    v.count = found.count;
    v.doubted = found.doubted;
    v.floor = found.floor;
    assert_int_not_equal(v.st, KOFN_NOMEM);
    kf_free(H);
    kf_decoder_free(d);
    return v;
}

static verdict ask_all(fleet *f, size_t most, uint64_t secret)
{
    uint32_t seat[MOST_SEATS];

    for (uint32_t i = 0; i < f->seats; i++)
        seat[i] = i;
    return ask(f, seat, f->seats, 0, f->plan->span, most, secret);
}

/* The most that entry e of any result can be, but for its seat's weight. */
static double scale(const fleet *f, size_t e)
{
    size_t cols = f->result[0].cols;

    return f->row[e / cols % f->plan->span] * f->col[e % cols];
}

/* How far the output is off in any entry, in the units of the floor. */
static double off(const fleet *f, const double *x)
{
    size_t cols = f->out.cols, each = f->result[0].cols;
    double top = 0;

    for (size_t i = 0; i < f->out.rows; i++)
        for (size_t j = 0; j < cols; j++) {
            double d = fabs(x[i * cols + j] - f->want[i * cols + j]);

            if (!(d <= 0))
                top = fmax(top,
                           d / scale(f, i % f->plan->span * each + j % each));
        }
    return top;
}

/* What is left after a verdict, decoded; its error by what was predicted. */
static double decode_rest(fleet *f, const verdict *v)
{
    kf_source source[MOST_SEATS];
    uint32_t seat[MOST_SEATS];
    size_t n = 0;
    double *x, error, predicted;
    kf_decoder *d;

    for (uint32_t i = 0; i < f->seats; i++) {
        bool out = false;

        for (size_t b = 0; b < v->count; b++)
            out |= v->bad[b] == i;
        if (out)
            continue;
        source[n] = (kf_source){&f->sent[i], 0, f->plan->span};
        seat[n++] = i;
    }
    assert_ok(kf_decoder_new(&d, f->code, seat, n, false));
    assert_ok(kf_decode(f->plan, d, source, 0, 0, f->plan->span, &f->out,
                        &f->scratch));
    x = as_doubles(&f->out);
    error = relative_error(x, f->want, f->out.rows * f->out.cols);
    predicted = d->predicted;
    if (off(f, x) > v->floor + predicted)
        fail_msg("%s: the output is off by %g, the floor is %g", f->plan->spec,
                 off(f, x), v->floor);
    kf_free(x);
    kf_decoder_free(d);
    return error / predicted;
}

/* ---- lies ---------------------------------------------------------------- */

static double get(const kofn_matrix *a, size_t e)
{
    return a->dtype == KOFN_F64 ? ((const double *)a->data)[e]
                                : (double)((const float *)a->data)[e];
}

static void put(kofn_matrix *a, size_t e, double x)
{
    if (a->dtype == KOFN_F64)
        ((double *)a->data)[e] = x;
    else
        ((float *)a->data)[e] = (float)x;
}

static double weight(const fleet *f, size_t seat)
{
    const kf_seat *s;

    assert_ok(kf_code_seat(f->code, seat, &s));
    return s->weight;
}

typedef enum way { DENSE, ENTRY, FLIP, ODD, ZERO, WAYS } way;

static const char *const way_names[] = {"all wrong", "one entry", "one bit",
                                        "not finite or huge", "zeros"};

/* Sizes are relative to what entries are in random data, and at least 1e-6 of
 * it (1e-4 in single precision); of single entries as much larger as they are
 * diluted. */
static void spoil(fleet *f, size_t seat, way w, kf_rng *r)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e30, -1e25};
    bool wide = f->k->dtype == KOFN_F64;
    size_t bytes = kf_dtype_size(f->k->dtype), e = kf_rng_below(r, f->entries);
    kofn_matrix *to = &f->sent[seat];
    double least = wide ? -6 : -4;
    double size = weight(f, seat) *
                  pow(10, -2 * least * kf_rng_uniform(r) + least) /
                  sqrt((double)(is_left(f->k) ? f->k->m : f->k->n));

    if (w == DENSE)
        for (size_t i = 0; i < f->entries; i++)
            put(to, i, get(to, i) + size * scale(f, i) * kf_rng_normal(r));
    else if (w == ENTRY)
        put(to, e,
            get(to, e) + (kf_rng_below(r, 2) ? size : -size) * scale(f, e) *
                             sqrt((double)f->entries) * (wide ? 1 : 10));
    else if (w == FLIP)
        ((unsigned char *)to->data)[e * bytes + kf_rng_below(r, bytes)] ^=
            (unsigned char)(1u << kf_rng_below(r, 8));
    else if (w == ODD)
        put(to, e, odd[kf_rng_below(r, 5)]);
    else
        memset(to->data, 0, f->entries * bytes);
}

/* t of the seats. */
static void choose_liars(const fleet *f, bool *liar, size_t t, kf_rng *r)
{
    for (size_t i = 0; i < f->seats; i++) {
        liar[i] = kf_rng_below(r, f->seats - i) < t;
        t -= liar[i];
    }
}

/* What must hold of any verdict; true when the cell was sorted out. */
static bool judge(fleet *f, const verdict *v, const bool *liar,
                  const char *what)
{
    for (size_t i = 0; i < v->count; i++) {
        if (!liar[v->bad[i]] && i + v->doubted < v->count)
            fail_msg("%s, %s: seat %u was named and is honest", f->plan->spec,
                     what, v->bad[i]);
    }
    if (v->st == KOFN_OK && f->plan->layout.groups == 1)
        decode_rest(f, v);
    return v->st == KOFN_OK;
}

/* ---- the whole way ------------------------------------------------------- */

static const kind kinds[] = {
    {"mds:k=4", 7, KOFN_MATVEC, 403, 61, 1, KOFN_F64, false},
    {"mds:k=5", 9, KOFN_MATMUL, 200, 61, 17, KOFN_F64, false},
    {"mds:k=4", 7, KOFN_MATMUL, 1024, 16, 64, KOFN_F64, false},
    {"mds:k=9,basis=harmonic", 16, KOFN_MATMUL, 207, 61, 64, KOFN_F64, false},
    {"mds:k=9,basis=gauss_sys", 18, KOFN_MATVEC, 90, 300, 1, KOFN_F64, false},
    {"elastic:k=9", 24, KOFN_MATMUL, 288, 48, 40, KOFN_F64, false},
    {"mds:k=5", 9, KOFN_MATMUL, 500, 400, 3, KOFN_F64, true},
    {"mds:k=5,basis=harmonic", 14, KOFN_MATVEC, 3000, 900, 1, KOFN_F64, true},
    {"matdot:n=5", 12, KOFN_MATMUL, 50, 60, 41, KOFN_F64, false},
    {"matdot:n=5,angles=24", 24, KOFN_MATMUL, 30, 60, 41, KOFN_F64, false},
    {"polynomial:m=2,p=2", 7, KOFN_MATMUL, 90, 60, 41, KOFN_F64, false},
    {"polynomial:m=3,p=3,basis=circle,angles=18", 18, KOFN_MATMUL, 90, 60, 51,
     KOFN_F64, false},
    {"gpd:m=2,n=2,p=2", 16, KOFN_MATMUL, 90, 60, 41, KOFN_F64, false},
    {"gpd:m=2,n=2,p=1,sub=vum", 10, KOFN_LEFT, 90, 60, 41, KOFN_F64, false},
    {"replication:k=2", 12, KOFN_MATMUL, 90, 60, 41, KOFN_F64, false},
};

static void whole_way(void **state)
{
    size_t trials = 0, edge = 0, sorted = 0;
    double worst = 0, floor = 0;

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        fleet f;
        size_t most;

        fleet_up(&f, &kinds[i]);
        most = f.seats - f.enough - 1;
        for (size_t t = 0; t <= most; t++)
            for (size_t n = 0; n < often(2 * WAYS); n++) {
                kf_rng r =
                    kf_rng_stream(i, KF_FOR_SAMPLE, (uint32_t)t, (uint32_t)n);
                way w = (way)(n % WAYS);
                bool liar[MOST_SEATS];
                verdict v;

                /* Many zeros are a word of the code. */
                if (w == ZERO && 2 * t > f.seats - f.enough)
                    w = DENSE;
                send_honest(&f);
                choose_liars(&f, liar, t, &r);
                for (size_t s = 0; s < f.seats; s++)
                    if (liar[s])
                        spoil(&f, s, w, &r);
                v = ask_all(&f, most, 77 + n);
                trials += t < most;
                edge += t == most;
                sorted += t == most && v.st == KOFN_OK;
                if (judge(&f, &v, liar, way_names[w])) {
                    /* Lies below the floor add to the error. */
                    if (f.plan->layout.groups == 1 && w != FLIP)
                        worst = fmax(worst, decode_rest(&f, &v));
                    if (2 * t <= most)
                        floor = fmax(floor, v.floor);
                } else if (t < most) {
                    fail_msg("%s: %zu liars, %s: %s", f.plan->spec, t,
                             way_names[w], kofn_errmsg());
                }
            }
        fleet_down(&f);
    }
    print_message("    %zu trials below the limit, %zu of %zu at it; error at "
                  "most %.2f of predicted, floor %.1e up to half of it\n",
                  trials, sorted, edge, worst, floor);
    assert_at_most(worst, 1);
    assert_at_most(floor, 1e-7);
    assert_true((double)sorted >= 0.9 * (double)edge);
}

/* Single precision: all found up to half of the results over, but for flips of
 * bits that hardly show; beyond it what can be, and nothing wrong. */
static void single_precision(void **state)
{
    static const kind singles[] = {
        {"mds:k=4", 8, KOFN_MATVEC, 400, 64, 1, KOFN_F32, false},
        {"mds:k=10", 20, KOFN_MATMUL, 400, 64, 30, KOFN_F32, false},
        {"mds:k=9,basis=harmonic", 14, KOFN_MATMUL, 200, 150, 30, KOFN_F32,
         false},
        {"mds:k=9,basis=gauss_sys", 18, KOFN_MATVEC, 900, 64, 1, KOFN_F32,
         false},
        {"matdot:n=3", 9, KOFN_MATMUL, 50, 60, 41, KOFN_F32, false},
        {"polynomial:m=2,p=2", 8, KOFN_MATMUL, 90, 60, 41, KOFN_F32, false},
    };
    double worst = 0, floor = 0;
    size_t flips = 0, found = 0, beyond = 0, sorted = 0;

    (void)state;
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        fleet f;
        size_t most;

        fleet_up(&f, &singles[i]);
        most = f.seats - f.enough - 1;
        for (size_t t = 0; t <= most; t++)
            for (size_t n = 0; n < often(2 * WAYS); n++) {
                kf_rng r = kf_rng_stream(50 + i, KF_FOR_SAMPLE, (uint32_t)t,
                                         (uint32_t)n);
                way w = (way)(n % WAYS);
                bool liar[MOST_SEATS], half = 2 * t <= f.seats - f.enough, ok;
                verdict v;

                if (w == ZERO && !half)
                    w = DENSE;
                send_honest(&f);
                choose_liars(&f, liar, t, &r);
                for (size_t s = 0; s < f.seats; s++)
                    if (liar[s])
                        spoil(&f, s, w, &r);
                v = ask_all(&f, most, n);
                ok = judge(&f, &v, liar, way_names[w]);
                if (half && !ok && w != FLIP)
                    fail_msg("%s: %zu liars, %s: %s", f.plan->spec, t,
                             way_names[w], kofn_errmsg());
                if (ok && v.count == t)
                    worst = fmax(worst, decode_rest(&f, &v));
                if (half && ok)
                    floor = fmax(floor, v.floor);
                flips += half && w == FLIP;
                found += half && w == FLIP && ok;
                beyond += !half;
                sorted += !half && ok;
            }
        fleet_down(&f);
    }
    print_message("    error at most %.2f of predicted, floor %.1e; of flipped "
                  "bits %zu of %zu, beyond half %zu of %zu\n",
                  worst, floor, found, flips, sorted, beyond);
    assert_at_most(worst, 1);
    assert_true((double)found >= 0.9 * (double)flips);
}

/* ---- parts of results ---------------------------------------------------- */

/* Any run of strips of any seats can be asked about. */
static void any_strips(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < often(200); n++) {
        kf_rng r = kf_rng_stream(3, KF_FOR_SAMPLE, n, 0);
        kind k = {"mds:k=4",   9,
                  KOFN_MATMUL, 16 * (1 + kf_rng_below(&r, 60)),
                  20,          1 + kf_rng_below(&r, 70),
                  KOFN_F64,    false};
        size_t seats = 0, lo, hi, strip, col;
        uint32_t seat[MOST_SEATS], who;
        kofn_matrix *to;
        verdict v;
        fleet f;

        fleet_up(&f, &k);
        send_honest(&f);
        for (uint32_t i = 0; i < 9; i++)
            if (9 - i + seats <= 7 || kf_rng_below(&r, 4))
                seat[seats++] = i;
        lo = kf_rng_below(&r, f.plan->span);
        hi = lo + 1 + kf_rng_below(&r, f.plan->span - lo);
        v = ask(&f, seat, seats, lo, hi, seats - 5, n);
        assert_int_equal(v.st, KOFN_OK);
        assert_int_equal(v.count, 0);
        /* one entry of one lane, in these strips */
        who = (uint32_t)kf_rng_below(&r, seats);
        to = &f.sent[seat[who]];
        strip = lo + kf_rng_below(&r, hi - lo);
        col = kf_rng_below(&r, to->cols);
        put(to, (kf_rng_below(&r, 4) * f.plan->span + strip) * to->cols + col,
            1e-3);
        v = ask(&f, seat, seats, lo, hi, seats - 5, n);
        assert_int_equal(v.st, KOFN_OK);
        assert_int_equal(v.count, 1);
        assert_int_equal(v.bad[0], who);
        /* and none of the others' business */
        send_honest(&f);
        if (lo > 0) {
            put(to, (lo - 1) * to->cols + col, NAN);
            v = ask(&f, seat, seats, lo, hi, seats - 5, n);
            assert_int_equal(v.count, 0);
        }
        fleet_down(&f);
    }
}

/* Lies that cancel in a sum that is not weighted, or weighted with signs. */
static void nothing_cancels(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATMUL, 1600, 20, 64, KOFN_F64, false};
    uint64_t passed = 0;
    fleet f;

    (void)state;
    fleet_up(&f, &k);
    for (uint32_t n = 0; n < often(400); n++) {
        kf_rng r = kf_rng_stream(4, KF_FOR_SAMPLE, n, 0);
        size_t e = kf_rng_below(&r, 256),
               step = kf_rng_below(&r, 2) ? 256 : 2048;
        double x = 1e-3;
        verdict v;

        send_honest(&f);
        put(&f.sent[2], e, get(&f.sent[2], e) + x * scale(&f, e));
        put(&f.sent[2], e + step,
            get(&f.sent[2], e + step) +
                (kf_rng_below(&r, 2) ? x : -x) * scale(&f, e + step));
        v = ask_all(&f, 4, n);
        passed += v.count == 0;
        assert_int_equal(v.st, KOFN_OK);
    }
    assert_int_equal(passed, 0);
    fleet_down(&f);
}

/* Fewer results than can say anything. */
static void nothing_to_compare(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATVEC, 160, 20, 1, KOFN_F64, false};
    const uint32_t seat[] = {0, 3, 5, 8};
    verdict v;
    fleet f;

    (void)state;
    fleet_up(&f, &k);
    send_honest(&f);
    v = ask(&f, seat, 4, 0, f.plan->span, 3, 1);
    assert_int_equal(v.st, KOFN_OK);
    assert_int_equal(v.count, 0);
    assert_true(v.floor == HUGE_VAL);
    put(&f.sent[5], 3, NAN);
    v = ask(&f, seat, 4, 0, f.plan->span, 3, 1);
    assert_int_equal(v.st, KOFN_CORRUPT);
    assert_int_equal(v.count, 1);
    assert_int_equal(v.bad[0], 2);
    /* detection only */
    send_honest(&f);
    put(&f.sent[5], 3, 1);
    v = ask_all(&f, 0, 1);
    assert_int_equal(v.st, KOFN_CORRUPT);
    assert_int_equal(v.count, 0);
    fleet_down(&f);
}

/* Whichever allocation fails, it is said and nothing is lost. */
static void memory_runs_out(void **state)
{
    const kind k = {"mds:k=4", 9, KOFN_MATMUL, 160, 20, 60, KOFN_F64, false};
    const uint32_t seat[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    kf_source source[9];
    kofn_status st = KOFN_NOMEM;
    kf_decoder *d;
    uint32_t bad[9];
    kf_found found = {.bad = bad};
    kf_check c;
    fleet f;

    (void)state;
    fleet_up(&f, &k);
    send_honest(&f);
    put(&f.sent[2], 7, 1);
    put(&f.sent[3], 7, NAN);
    put(&f.sent[5], 7, 1);
    assert_ok(kf_decoder_new(&d, f.code, seat, 9, false));
    for (size_t i = 0; i < 9; i++)
        source[i] = (kf_source){&f.sent[i], 0, f.plan->span};
    for (long n = 1; st == KOFN_NOMEM; n++) {
        long before = allocated();
        double *H;

        c = (kf_check){.plan = f.plan,
                       .code = f.code,
                       .decoder = d,
                       .source = source,
                       .hi = f.plan->span,
                       .most = 4,
                       .liars = 2,
                       .promised = 4,
                       .row = f.row,
                       .col = f.col};
        fail_allocation(n);
        st = kf_parity(f.code, seat, 9, &H, &c.q);
        c.H = H;
        if (!st)
            st = kf_check_results(&c, &found);
        fail_allocation(0);
        kf_free(H);
        assert_int_equal(allocated(), before);
        assert_true(n < 200);
    }
    assert_int_equal(st, KOFN_OK);
    kf_decoder_free(d);
    fleet_down(&f);
}

/* ---- honest results are believed ----------------------------------------- */

typedef enum texture {
    NORMAL,
    POSITIVE,
    TENTHS,
    NEARLY_EQUAL,
    CANCELLING,
    ZERO_ROWS,
    LADDER,
    TINY,
    HUGE_NUMBERS,
    SPIKES,
    ALTERNATING,
    TEXTURES
} texture;

static const char *const texture_names[] = {"normal",
                                            "positive",
                                            "all equal",
                                            "nearly equal",
                                            "cancelling",
                                            "zero rows and columns",
                                            "rows of all sizes",
                                            "tiny",
                                            "huge",
                                            "spikes",
                                            "alternating"};

static double entry_of(texture x, size_t i, size_t j, bool wide, kf_rng *r)
{
    double decades = wide ? 100 : 12;

    switch (x) {
    case POSITIVE:
        return kf_rng_uniform(r);
    case TENTHS:
        return wide ? 0.1 : 0.7;
    case NEARLY_EQUAL:
        return 1 + 1e-3 * kf_rng_uniform(r);
    case CANCELLING:
        return (j % 2 ? -1 : 1) * (1 + 1e-6 * kf_rng_normal(r));
    case ZERO_ROWS:
        return i % 3 && j % 5 ? kf_rng_normal(r) : 0;
    case LADDER:
        return kf_rng_normal(r) * pow(10, decades * ((double)(i % 7) / 3 - 1));
    case TINY:
        return kf_rng_normal(r) * (wide ? 1e-155 : 1e-21);
    case HUGE_NUMBERS:
        return kf_rng_normal(r) * (wide ? 1e150 : 1e17);
    case SPIKES:
        return kf_rng_below(r, 50) ? 1e-6 : kf_rng_normal(r);
    case ALTERNATING:
        return (i + j) % 2 ? 0.3 : -0.3;
    default:
        return kf_rng_normal(r);
    }
}

/* Of the input rows and columns change places, so that rows of all sizes do
 * not become products that overflow. */
static void weave(kofn_matrix *a, texture x, bool across, kf_rng *r)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            put(a, i * a->cols + j,
                entry_of(x, across ? j : i, across ? i : j,
                         a->dtype == KOFN_F64, r));
}

static void the_honest_are_believed(void **state)
{
    static const size_t lengths[] = {1, 7, 64, 300, 384, 1000, 5000};
    size_t cells = 0;
    double floor64 = 0, floor32 = 0;

    (void)state;
    for (uint32_t n = 0; n < often(330); n++) {
        kf_rng r = kf_rng_stream(6, KF_FOR_SAMPLE, n, 0);
        kind k = kinds[kf_rng_below(&r, sizeof kinds / sizeof *kinds)];
        texture of_A = (texture)(n % TEXTURES), of_in;
        verdict v;
        fleet f;

        if (k.sparse)
            continue;
        k.dtype = n / TEXTURES % 2 ? KOFN_F32 : KOFN_F64;
        *(is_left(&k) ? &k.m : &k.n) = lengths[kf_rng_below(&r, 7)];
        of_in = of_A == TENTHS || of_A == CANCELLING
                    ? TENTHS
                    : (texture)kf_rng_below(&r, TEXTURES);
        if (of_A == HUGE_NUMBERS || of_A == TINY || of_A == LADDER)
            of_in = NORMAL;
        fleet_plan(&f, &k);
        weave(&f.A, of_A, is_left(&k), &r);
        weave(&f.in, of_in, !is_left(&k), &r);
        fleet_work(&f);
        send_honest(&f);
        for (uint64_t again = 0; again < 3; again++) {
            v = ask_all(&f, f.seats - f.enough - 1, again);
            if (v.st != KOFN_OK || v.count > 0)
                fail_msg("%s %s: %s times %s numbers (%zu): honest results "
                         "raised the alarm",
                         k.spec, k.dtype == KOFN_F64 ? "f64" : "f32",
                         texture_names[of_A], texture_names[of_in], k.n);
            cells++;
        }
        if (v.floor < HUGE_VAL) {
            if (k.dtype == KOFN_F64)
                floor64 = fmax(floor64, v.floor);
            else
                floor32 = fmax(floor32, v.floor);
        }
        fleet_down(&f);
    }
    print_message("    %zu honest cells; the floor is at most %.1e, in single "
                  "precision %.1e\n",
                  cells, floor64, floor32);
    assert_at_most(floor64, 1e-8);
    assert_at_most(floor32, 1);
}

/* ---- scales -------------------------------------------------------------- */

static void norms_are_norms(void **state)
{
    static const double units[] = {1, 1e-200, 1e200, 0};

    (void)state;
    for (size_t u = 0; u < 4; u++) {
        kofn_matrix part[3] = {random_matrix(5, 37, KOFN_F64, 1),
                               {NULL, 0, 37, 37, KOFN_F64},
                               random_matrix(5, 37, KOFN_F64, 2)};
        double row[5], col[37];

        for (size_t i = 0; i < 5; i++)
            for (size_t j = 0; j < 37; j++)
                for (size_t p = 0; p < 3; p += 2)
                    put(&part[p], i * 37 + j,
                        get(&part[p], i * 37 + j) * units[u]);
        assert_ok(kf_scales_of_part_rows(part, 3, row, 5));
        assert_ok(kf_scales_of_columns(part, 3, 1, col, 37));
        for (size_t i = 0; i < 5; i++) {
            long double sum = 0;

            for (size_t j = 0; j < 37; j++)
                for (size_t p = 0; p < 3; p += 2)
                    sum += (long double)get(&part[p], i * 37 + j) *
                           get(&part[p], i * 37 + j);
            assert_at_most(fabs(row[i] - (double)sqrtl(sum)), 1e-14 * row[i]);
        }
        for (size_t j = 0; j < 37; j++) {
            long double sum = 0;

            for (size_t i = 0; i < 5; i++)
                for (size_t p = 0; p < 3; p += 2)
                    sum += (long double)get(&part[p], i * 37 + j) *
                           get(&part[p], i * 37 + j);
            assert_at_most(fabs(col[j] - (double)sqrtl(sum)), 1e-14 * col[j]);
        }
        kf_free(part[0].data);
        kf_free(part[2].data);
    }
}

/* No honest entry is larger than its scale, for every kind of code. */
static void scales_are_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double most = 0;
        fleet f;

        fleet_up(&f, &kinds[i]);
        for (size_t s = 0; s < f.seats; s++)
            for (size_t e = 0; e < f.entries; e++) {
                double x = fabs(get(&f.result[s], e));

                if (x > 0)
                    most = fmax(most, x / scale(&f, e) / weight(&f, s));
            }
        assert_at_most(most, 1 + 1e-12);
        assert_true(most > 0.01); /* or they would say nothing */
        fleet_down(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_way),
        cmocka_unit_test(single_precision),
        cmocka_unit_test(any_strips),
        cmocka_unit_test(nothing_cancels),
        cmocka_unit_test(nothing_to_compare),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(the_honest_are_believed),
        cmocka_unit_test(norms_are_norms),
        cmocka_unit_test(scales_are_bounds),
    };

    count_allocations();
    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
