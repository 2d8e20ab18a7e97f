/* check_rig.h -- runs a whole check: A is encoded, workers multiply, some
 * results are made wrong, and all are sketched, judged and decoded. */
#ifndef KF_TEST_CHECK_RIG_H
#define KF_TEST_CHECK_RIG_H

#include "floor_rig.h"
#include "rig.h"

#include "code/suspect.h"
#include "verify/compare.h"
#include "verify/norms.h"

#include <float.h>
#include <stdio.h>

#define MOST_SEATS 24

/* ---- one round ----------------------------------------------------------- */

typedef struct kind {
    const char *spec;
    size_t seats;
    kofn_op op;
    size_t m, n, p;
    kofn_dtype dtype;
    bool sparse;
} kind;

/* One round, of its first group. */
typedef struct check_case {
    const kind *k;
    kofn_plan *plan;
    kf_code *code;
    kofn_matrix A, in, out, result[MOST_SEATS], sent[MOST_SEATS];
    kofn_sparse sparse;
    double *want, *row, *col;
    size_t seats, enough, entries; /* of a result */
    kf_scratch scratch;
    uint32_t checks;
} check_case;

static inline bool is_left(const kind *k)
{
    return k->op == KOFN_LEFT;
}

static inline void scales(check_case *f, const kf_resident *r,
                          const kf_messages *m)
{
    bool cut = f->plan->parts1 > 1;
    const kofn_matrix *part = cut ? m->parts.part : &m->plain->m;
    size_t parts = cut ? m->parts.count : 1;
    double *rows = numbers(2000, 8), *cols = numbers(2000, 8);

    if (is_left(f->k)) {
        assert_ok(kf_norms_of_part_rows(part, parts, rows, part->rows));
        assert_ok(kf_norms_of_columns(r->parts.part, r->parts.count, 1, cols,
                                      r->parts.cols));
    } else {
        assert_ok(kf_norms_of_rows(r, 0, rows));
        assert_ok(kf_norms_of_columns(part, parts, 1, cols, part->cols));
    }
    f->row = rows;
    f->col = cols;
}

static inline void compute(check_case *f, const kf_resident *r, kf_messages *m)
{
    size_t groups = f->plan->layout.groups, seat[MOST_SEATS];
    kf_block *block[MOST_SEATS];

    for (size_t i = 0; i < f->seats; i++)
        seat[i] = i * groups;
    assert_ok(kf_data_encode(r, f->code, seat, f->seats, block));
    assert_ok(kf_messages_encode(m, f->code, seat, f->seats));
    for (size_t i = 0; i < f->seats; i++) {
        kf_buffer *in = kf_messages_take(m, seat[i]);
        size_t rows = f->plan->layout.components * f->plan->span;
        size_t cols = is_left(f->k) ? block[i]->cols : in->m.cols;

        kf_buffer *to;
        kf_msg work = {.how = is_left(f->k) ? KF_HOW_LEFT_ROWS : KF_HOW_ROWS,
                       .in = in,
                       .lo = 0,
                       .hi = f->plan->span};

        f->entries = rows * cols;
        f->result[i] = (kofn_matrix){numbers(f->entries, 8), rows, cols, cols,
                                     f->k->dtype};
        f->sent[i] = f->result[i];
        f->sent[i].data = numbers(f->entries, 8);
        assert_ok(kf_buffer_new(&to, rows, cols, f->k->dtype));
        work.result = to;
        assert_ok(kf_work_do(block[i], &work, NULL, NULL));
        memcpy(f->result[i].data, to->m.data,
               f->entries * kf_dtype_size(f->k->dtype));
        kf_buffer_drop(to);
        kf_buffer_drop(in);
        kf_block_drop(block[i]);
    }
}

/* Computes all results. A and the input must have been filled in. */
static inline void check_case_work(check_case *f)
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

static inline void check_case_plan(check_case *f, const kind *k)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(k->op, k->m, k->n, k->p, k->dtype, k->sparse);

    *f = (check_case){.k = k};
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

static inline void check_case_up(check_case *f, const kind *k)
{
    check_case_plan(f, k);
    check_case_work(f);
}

static inline void check_case_down(check_case *f)
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
    size_t count, doubted, eased; /* times_eased */
    double floor,
        least; /* floor before the check, from kf_compare_least_floor */
    double drift;
} verdict;

static inline void send_honest(check_case *f)
{
    for (size_t i = 0; i < f->seats; i++)
        memcpy(f->sent[i].data, f->result[i].data,
               f->entries * kf_dtype_size(f->k->dtype));
}

/* Checks strips [lo, hi) of these seats. */
static inline verdict ask(check_case *f, const uint32_t *seat, size_t n,
                          size_t lo, size_t hi, size_t most, uint64_t secret)
{
    kf_source source[MOST_SEATS];
    kf_compare c = {.plan = f->plan,
                    .code = f->code,
                    .source = source,
                    .lo = lo,
                    .hi = hi,
                    .most = most,
                    .row = f->row,
                    .col = f->col,
                    .drifts = true,
                    .secret = secret,
                    .number = f->checks++};
    kf_found found;
    kofn_decoder *d;
    double *H;
    verdict v;

    c.liars = (n - f->enough) / 2;
    c.independent = n - kf_min(n, f->enough + 1);
    assert_ok(kf_decoder_new(&d, f->code, seat, n, false));
    assert_ok(kf_parity(f->code, seat, n, &H, &c.q));
    assert_ok(
        kf_hidden_of(f->code, d, H, c.q, kf_compare_few(&c, n, 0), &c.hidden));
    for (size_t i = 0; i < n; i++)
        source[i] = (kf_source){&f->sent[seat[i]], 0, f->plan->span};
    c.decoder = d;
    c.H = H;
    found.bad = v.bad;
    v.least = kf_compare_least_floor(&c);
    v.st = kf_compare_results(&c, &found);
    if (v.st == KOFN_CORRUPT) {
        char want[80];

        snprintf(want, sizeof want,
                 "strips %zu to %zu: the %zu results disagree", lo, hi, n);
        assert_non_null(strstr(kofn_errmsg(), want));
    }
    v.count = found.count;
    v.doubted = found.doubted;
    v.floor = found.floor;
    v.drift = v.st || v.count ? 0 : found.drift;
    assert_int_not_equal(v.st, KOFN_NOMEM);
    kf_free(H);
    kf_decoder_free(d);
    return v;
}

static inline verdict ask_all(check_case *f, size_t most, uint64_t secret)
{
    uint32_t seat[MOST_SEATS];

    for (uint32_t i = 0; i < f->seats; i++)
        seat[i] = i;
    return ask(f, seat, f->seats, 0, f->plan->span, most, secret);
}

/* ---- the expected floor -------------------------------------------------- */

/* Returns the bound of honest rounding, as compare.c has it. */
static inline double alarm_of(const check_case *f)
{
    bool wide = f->k->dtype == KOFN_F64;
    size_t length = is_left(f->k) ? f->k->m : f->k->n;
    double terms = (double)(length + f->plan->parts);
    double results = (double)(f->seats * f->plan->layout.components);
    double rounding = 0.5 + 0.1 * sqrt(terms) + terms / 300;

    rounding *= wide ? 0x1p-52 : 0x1p-23;
    return (wide ? 64 : 6) * (rounding + 0.3 * 0x1p-52 * sqrt(results));
}

/* Returns the factor by which a single wrong entry shows less. It is the root
 * of the number of entries in its bucket. Their weights are at least 1/4, and
 * have a mean square of 49/144. */
static inline double diluted(const check_case *f)
{
    size_t length = f->entries / f->plan->layout.components;

    return length > 256 ? sqrt((double)kf_ceil_div(length, 256)) * 7 / 12 * 4
                        : 1;
}

/* Returns the floor of math/errors.md 5 after all workers were asked, `named`
 * were located and these seats are left. It is the output of parities with
 * the length of the alarm, in the largest possible number of faulty results. If
 * more are promised to be found, it holds with a chance of 1e-5. Returns 0 if
 * there are too many sets to try them all. */
static inline double stated_floor(const check_case *f, const uint32_t *seat,
                                  size_t n, size_t named)
{
    size_t expected = (f->seats - f->enough) / 2, over = n - f->enough, few, q;
    size_t components = f->plan->layout.components;
    bool more = f->seats - f->enough - 1 > expected;
    uint32_t U[MOST_SEATS];
    double *H, *D, gain = 0;
    kofn_decoder *d;

    few = expected - kf_min(named, expected);
    few = kf_max(more ? kf_min(few, over) : few, 1);
    if (sets_of(n, few) > 600)
        return 0;
    assert_ok(kf_decoder_new(&d, f->code, seat, n, false));
    assert_ok(kf_parity(f->code, seat, n, &H, &q));
    D = decoder_rows(f->code, d);
    gain = worst_gain(&(unseen){H, D, q, d->wants, n, components}, U, 0, few);
    if (more && named + few < f->seats - f->enough - 1)
        gain *= pow(1e-5, -1 / (double)q);
    kf_free(H);
    kf_free(D);
    kf_decoder_free(d);
    return alarm_of(f) * (sqrt((double)q) + 6) * gain * diluted(f);
}

/* Returns how often the alarm was raised by a factor of eight, so that small
 * errors are ignored. The rest of a column of parities is below it. The floor
 * also counts the rounding of the other columns. It does not count the
 * rounding of syndromes as large as no honest result. */
static inline size_t times_eased(const check_case *f, double floor,
                                 double stated)
{
    double results = (double)(f->seats * f->plan->layout.components);
    double syndrome = 1.01 * sqrt(results) * diluted(f);
    double top = 1 + 8 * 0x1p-52 * syndrome / alarm_of(f), by = floor / stated;
    size_t n = 0;

    for (; by > top * (pow(8, (double)n) + 1) && n < 4; n++)
        ;
    if (!(by > 1 - 1e-9) || n == 4)
        fail_msg("%s: the floor is %g, not %g", f->plan->spec, floor, stated);
    return n;
}

/* Returns the largest possible entry e of a result, without its seat's weight.
 */
static inline double scale(const check_case *f, size_t e)
{
    size_t cols = f->result[0].cols;

    return f->row[e / cols % f->plan->span] * f->col[e % cols];
}

/* Returns the largest error of the output in units of the floor. */
static inline double off(const check_case *f, const double *x)
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

/* Lists the seats that are left after a verdict. Returns their number. */
static inline size_t left_over(const check_case *f, const verdict *v,
                               uint32_t *seat)
{
    size_t n = 0;

    for (uint32_t i = 0; i < f->seats; i++) {
        bool out = false;

        for (size_t b = 0; b < v->count; b++)
            out |= v->bad[b] == i;
        if (!out)
            seat[n++] = i;
    }
    return n;
}

/* Decodes the rest and returns its error divided by the predicted one. */
static inline double decode_rest(check_case *f, const verdict *v)
{
    kf_source source[MOST_SEATS];
    uint32_t seat[MOST_SEATS];
    size_t n = left_over(f, v, seat);
    double *x, error, predicted;
    kofn_decoder *d;

    for (size_t i = 0; i < n; i++)
        source[i] = (kf_source){&f->sent[seat[i]], 0, f->plan->span};
    assert_ok(kf_decoder_new(&d, f->code, seat, n, false));
    assert_ok(kf_decode(f->plan, d, source, (kf_band){0, 0, f->plan->span},
                        &f->out, &f->scratch));
    x = as_doubles(&f->out);
    error = relative_error(x, f->want, f->out.rows * f->out.cols);
    predicted = d->predicted;
    if (off(f, x) > v->floor + predicted)
        fail_msg("%s: the output has error %g, the floor is %g", f->plan->spec,
                 off(f, x), v->floor);
    kf_free(x);
    kf_decoder_free(d);
    return error / predicted;
}

/* ---- wrong results ------------------------------------------------------- */

static inline double get(const kofn_matrix *a, size_t e)
{
    return a->dtype == KOFN_F64 ? ((const double *)a->data)[e]
                                : (double)((const float *)a->data)[e];
}

static inline void put(kofn_matrix *a, size_t e, double x)
{
    if (a->dtype == KOFN_F64)
        ((double *)a->data)[e] = x;
    else
        ((float *)a->data)[e] = (float)x;
}

static inline double weight(const check_case *f, size_t seat)
{
    const kf_seat *s;

    assert_ok(kf_code_seat(f->code, seat, &s));
    return s->weight;
}

typedef enum way { DENSE, ENTRY, FLIP, ODD, ZERO, WAYS } way;

static const char *const way_names[] = {"all wrong", "one entry", "one bit",
                                        "not finite or huge", "zeros"};

/* Makes a result wrong. Errors are relative to the entries of random data, and
 * at least 1e-6 (1e-4 in single precision). Errors of single entries are
 * larger by their dilution. */
static inline void spoil(check_case *f, size_t seat, way w, kf_rng *r)
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

/* Makes t random seats faulty. */
static inline void choose_faulty(const check_case *f, bool *faulty, size_t t,
                                 kf_rng *r)
{
    for (size_t i = 0; i < f->seats; i++) {
        faulty[i] = kf_rng_below(r, f->seats - i) < t;
        t -= faulty[i];
    }
}

/* Returns the only column of the sketch in which a seat is wrong, or SIZE_MAX
 * if there are more. */
static inline size_t only_column(const check_case *f, size_t seat)
{
    size_t length = f->entries / f->plan->layout.components, only = SIZE_MAX;

    for (size_t e = 0; e < f->entries; e++) {
        size_t column = e % length % 256;

        if (get(&f->sent[seat], e) == get(&f->result[seat], e))
            continue;
        if (only != SIZE_MAX && only != column)
            return SIZE_MAX;
        only = column;
    }
    return only;
}

/* True if t faulty results can be located. Half of the spare results always
 * can. Above that, the faulty results in the same column and those of another
 * explanation must fit into the spare ones (math/errors.md 2.3). */
static inline bool decidable(const check_case *f, const bool *faulty, size_t t)
{
    size_t over = f->seats - f->enough, only[MOST_SEATS];

    for (size_t i = 0; i < f->seats; i++)
        only[i] = faulty[i] ? only_column(f, i) : SIZE_MAX;
    for (size_t i = 0; i < f->seats && 2 * t > over; i++) {
        size_t met = 0;

        for (size_t j = 0; j < f->seats; j++)
            met += only[i] != SIZE_MAX && only[i] == only[j];
        if (met + t > over)
            return false;
    }
    return true;
}

/* Checks a verdict. True if the cell was decided. */
static inline bool check_verdict(check_case *f, verdict *v, const bool *faulty,
                                 const char *what)
{
    uint32_t seat[MOST_SEATS];
    double stated;
    size_t t = 0;

    for (size_t i = 0; i < f->seats; i++)
        t += faulty[i];
    for (size_t i = 0; i < v->count; i++) {
        if (!faulty[v->bad[i]] && i + v->doubted < v->count)
            fail_msg("%s, %s: seat %u was named, but is honest", f->plan->spec,
                     what, v->bad[i]);
    }
    if (v->st != KOFN_OK)
        return false;
    if (f->plan->layout.groups == 1)
        decode_rest(f, v);
    stated =
        stated_floor(f, seat, left_over(f, v, seat), v->count - v->doubted);
    v->eased = stated > 0 ? times_eased(f, v->floor, stated) : 0;
    if (v->count == 0 && (v->floor < v->least * (1 - 1e-9) ||
                          (t == 0 && v->floor > v->least * 1.5)))
        fail_msg("%s, %s: the floor is %g, expected %g", f->plan->spec, what,
                 v->floor, v->least);
    return true;
}

/* ---- codes --------------------------------------------------------------- */

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

#endif
