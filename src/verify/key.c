/* key.c -- tests a whole product by random sums of its rows.
 *
 * Rows are summed up in runs, because a single wrong entry shows less by the
 * root of the number of rows in a run.  All sums are in double precision.
 *
 * Owns the sums of a key; operands and outputs are borrowed and only read. */
#include "key.h"
#include "rounding.h"

#include "base/vectors.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>

#define VECTORS KF_VECTORS(optimize("O3"))

/* ---- sums ---------------------------------------------------------------- */

/* Computes to += f x for n numbers. */
#define ADD(name, type)                                                        \
    VECTORS static void name(double *restrict to, double f,                    \
                             const type *restrict x, size_t n)                 \
    {                                                                          \
        for (size_t i = 0; i < n; i++)                                         \
            to[i] += f * (double)x[i];                                         \
    }
ADD(add_f64, double)
ADD(add_f32, float)

void kf_key_add(double *to, double f, const void *x, size_t n, kofn_dtype type)
{
    if (type == KOFN_F64)
        add_f64(to, f, x, n);
    else
        add_f32(to, f, x, n);
}

/* Does this for all sums, which are `apart` numbers apart; x is read once. */
#define ADD_ALL(name, type)                                                    \
    VECTORS static void name(double *restrict to, size_t apart,                \
                             const double f[KF_KEY_SUMS],                      \
                             const type *restrict x, size_t n)                 \
    {                                                                          \
        double *restrict u = to + apart, *restrict v = u + apart;              \
                                                                               \
        for (size_t i = 0; i < n; i++) {                                       \
            double y = (double)x[i];                                           \
                                                                               \
            to[i] += f[0] * y;                                                 \
            u[i] += f[1] * y;                                                  \
            v[i] += f[2] * y;                                                  \
        }                                                                      \
    }
ADD_ALL(add_all_f64, double)
ADD_ALL(add_all_f32, float)
_Static_assert(KF_KEY_SUMS == 3, "three sums are written out");

/* Adds row i of a matrix. */
static void add_all(double *to, size_t apart, const double f[KF_KEY_SUMS],
                    const kofn_matrix *x, size_t i)
{
    if (x->dtype == KOFN_F64)
        add_all_f64(to, apart, f, kf_at(x, i, 0), x->cols);
    else
        add_all_f32(to, apart, f, kf_at(x, i, 0), x->cols);
}

/* Components of a sum, for vector instructions. */
#define LANES 16

/* Computes the sum of f x for n numbers. */
#define DOT(name, type)                                                        \
    VECTORS static double name(const double *restrict f,                       \
                               const type *restrict x, size_t n)               \
    {                                                                          \
        double sum[LANES] = {0}, all = 0;                                      \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + LANES <= n; i += LANES)                                     \
            for (size_t k = 0; k < LANES; k++)                                 \
                sum[k] += f[i + k] * (double)x[i + k];                         \
        for (; i < n; i++)                                                     \
            all += f[i] * (double)x[i];                                        \
        for (size_t k = 0; k < LANES; k++)                                     \
            all += sum[k];                                                     \
        return all;                                                            \
    }
DOT(dot_f64, double)
DOT(dot_f32, float)

/* Returns the dot product of f and the rows of a one-column matrix from `first`
 * on. */
static double dot(const double *f, const kofn_matrix *x, size_t first, size_t n)
{
    const void *at = kf_at(x, first, 0);

    assert(x->cols == 1);
    assert(first + n <= x->rows);
    return x->dtype == KOFN_F64 ? dot_f64(f, at, n) : dot_f32(f, at, n);
}

static bool is_vector(const kofn_matrix *x)
{
    return x->cols == 1 && x->ld == 1;
}

/* Returns the norm of the rows that are coded together with this one. */
static double norm_of(const kofn_plan *p, double *const *norm, size_t row)
{
    size_t band = row / p->span;

    assert(band / p->layout.cut[0].rows < p->layout.groups);
    return norm[band / p->layout.cut[0].rows][row % p->span];
}

static double *sum_of(const kf_key *k, size_t q, size_t row)
{
    assert(q < KF_KEY_SUMS);
    assert(row < k->rows);
    return k->sum + (q * k->runs + row / k->run) * k->cols;
}

static double scale_of(const kf_key *k, size_t q, size_t row)
{
    assert(row < k->rows);
    return k->scale[q * k->rows + row];
}

/* Adds a part of A; its row i is row `first` + i of A. */
static void add_part(kf_key *k, const kofn_matrix *part, size_t first,
                     size_t col, double by)
{
    for (size_t i = 0; i < part->rows && first + i < k->rows; i++)
        for (size_t q = 0; q < KF_KEY_SUMS; q++)
            kf_key_add(sum_of(k, q, first + i) + col,
                       by * scale_of(k, q, first + i), kf_at(part, i, 0),
                       part->cols, part->dtype);
}

static void add_dense(kf_key *k, const kf_resident *r)
{
    const kofn_plan *p = r->plan;
    kofn_cut cut = p->layout.cut[0];

    for (size_t g = 0; g < p->layout.groups; g++)
        for (size_t j = 0; j < p->parts; j++)
            add_part(k, kf_resident_part(r, g, j),
                     (g * cut.rows + j % cut.rows) * p->span,
                     j / cut.rows * r->parts.cols, r->by);
}

static void add_sparse(kf_key *k, const kf_resident *r)
{
    const kofn_sparse *A = r->A;

    for (size_t i = 0; i < A->rows; i++)
        for (size_t e = A->ptr[i]; e < A->ptr[i + 1]; e++)
            for (size_t q = 0; q < KF_KEY_SUMS; q++)
                sum_of(k, q, i)[A->col[e]] +=
                    r->by * scale_of(k, q, i) * A->val[e];
}

/* ---- a key --------------------------------------------------------------- */

void kf_key_measure(kf_key *k, const kofn_plan *plan, double *const *norm)
{
    memset(k->limit, 0, 2 * KF_KEY_SUMS * k->runs * sizeof *k->limit);
    for (size_t i = 0; i < k->rows; i++)
        for (size_t q = 0; q < KF_KEY_SUMS; q++) {
            double f = scale_of(k, q, i), w = f * norm_of(plan, norm, i);
            double *limit = k->limit + 2 * (q * k->runs + i / k->run);

            limit[0] += w * w;
            limit[1] += fabs(f);
        }
}

static kofn_status make(kf_key *k, const kf_resident *r, double *const *norm,
                        const int *scaled)
{
    TRY_MADE(k->scale, kofn_layout_table(KF_KEY_SUMS, k->rows));
    TRY_MADE(k->sum, kofn_layout_table(KF_KEY_SUMS * k->runs, k->cols));
    TRY_MADE(k->limit, kofn_layout_table(KF_KEY_SUMS * k->runs, 2));
    for (size_t i = 0; i < k->rows; i++) {
        double n = norm_of(r->plan, norm, i);

        if (scaled && scaled[i] >= KF_SCALING_ZERO)
            continue;
        for (size_t q = 0; q < KF_KEY_SUMS; q++)
            k->scale[q * k->rows + i] =
                kf_weight64(
                    kf_mix64(kf_state64(k->secret, i * KF_KEY_SUMS + q))) /
                (n > 0 ? n : 1);
    }
    if (r->A)
        add_sparse(k, r);
    else
        add_dense(k, r);
    kf_key_measure(k, r->plan, norm);
    return KOFN_OK;
}

/* Returns the length of a run.  Longer runs detect less, but the key must stay
 * small compared with a sparse A. */
static size_t run_of(const kf_key *k, const kf_resident *r)
{
    double numbers =
        r->A ? (double)r->A->ptr[k->rows] : (double)k->rows * (double)k->cols;
    double runs = numbers / KF_KEY_SHARE / KF_KEY_SUMS / (double)k->cols;

    return kf_max(KF_KEY_RUN, (size_t)ceil((double)k->rows / fmax(1, runs)));
}

kofn_status kf_key_new(kf_key **out, const kf_resident *r, double *const *norm,
                       const int *scaled, uint64_t secret)
{
    const kofn_problem *pb = &r->plan->layout.problem;
    kf_key *k;
    kofn_status st;

    *out = NULL;
    TRY_ZERO(k, 1);
    k->secret = secret;
    k->rows = pb->m;
    k->cols = r->A ? r->A->cols : r->parts.cols * r->plan->layout.cut[0].cols;
    k->run = run_of(k, r);
    k->runs = kf_ceil_div(k->rows, k->run);
    st = make(k, r, norm, scaled);
    if (st)
        kf_key_free(k);
    else
        *out = k;
    return st;
}

void kf_key_free(kf_key *k)
{
    if (!k)
        return;
    kf_free(k->scale);
    kf_free(k->sum);
    kf_free(k->limit);
    for (size_t i = 0; i < k->states; i++)
        kf_free(k->state[i]);
    kf_free(k);
}

/* ---- changes ------------------------------------------------------------- */

/* Computes to += r U' V for the sums at this place. */
static void add_change(const kf_key *k, size_t at, double by,
                       const kofn_matrix *U, const kofn_matrix *V, double *to)
{
    size_t q = at / k->runs, run = at % k->runs;
    size_t end = kf_min(k->rows, (run + 1) * k->run);

    assert(at < KF_KEY_SUMS * k->runs);
    for (size_t t = 0; t < U->rows; t++) {
        double f = 0;

        for (size_t i = run * k->run; i < end; i++)
            f += scale_of(k, q, i) * kf_mat_entry(U, t, i);
        kf_key_add(to, by * f, kf_at(V, t, 0), V->cols, V->dtype);
    }
}

/* Changes the sums of all states as blocks are changed (src/data/states.c),
 * from number `at` on.  `added` has those of U' V. */
static void step(kf_key *k, const kofn_change *c, const double *added,
                 size_t at)
{
    double *of[KOFN_CHANGE_STATES + 1] = {k->sum + at};

    for (size_t s = 1; s <= k->states; s++)
        of[s] = k->state[s - 1] + at;
    for (size_t i = 0; i < k->cols; i++) {
        double now[KOFN_CHANGE_STATES + 1] = {0};

        for (size_t s = 0; s <= c->states; s++) {
            now[s] = c->add[s] * added[i];
            for (size_t t = 0; t <= k->states; t++)
                now[s] += c->keep[s][t] * of[t][i];
        }
        for (size_t s = 0; s <= k->states; s++)
            of[s][i] = now[s];
    }
}

/* Makes room for the sums of these states, or discards others. */
static kofn_status set_states(kf_key *k, size_t states)
{
    for (; k->states < states; k->states++)
        TRY_MADE(k->state[k->states],
                 kofn_layout_table(KF_KEY_SUMS * k->runs, k->cols));
    while (k->states > states)
        kf_free(k->state[--k->states]);
    return KOFN_OK;
}

kofn_status kf_key_change(kf_key *k, const kf_resident *r,
                          const kofn_change *change, const kofn_matrix *U,
                          const kofn_matrix *V)
{
    double *by;

    assert(U->rows == V->rows);
    assert(U->cols == k->rows);
    assert(V->cols <= k->cols);
    TRY(set_states(k, kf_max(k->states, change->states)));
    TRY_NEW(by, k->cols);
    for (size_t at = 0; at < KF_KEY_SUMS * k->runs; at++) {
        memset(by, 0, k->cols * sizeof *by);
        add_change(k, at, r->by, U, V, by);
        step(k, change, by, at * k->cols);
    }
    kf_free(by);
    return set_states(k, change->states);
}

/* ---- a product ----------------------------------------------------------- */

/* The sums of a run of rows of C, and their largest honest distance from 0. */
typedef struct sums {
    double *of;     /* one per column of C                                    */
    double squares; /* square of the effect of an error of 1 in every row */
    double lost;    /* times 2^up: weight of the smallest number */
    int up;         /* largest scaling of a row, in digits */
} sums;

static int raised_by(const int *line, size_t i)
{
    return line ? line[i] : 0;
}

/* Returns 2^e. This runs for every row, and ldexp is ten times slower. */
static double two_to(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double x;

    if (e < DBL_MIN_EXP - 1 || e >= DBL_MAX_EXP)
        return ldexp(1, e);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Adds f 2^up times row i of C, as it was before it was restored.  With
 * `careful` no intermediate number overflows. */
static void add_row(const kf_keyed *of, double f, size_t i, int up,
                    bool careful, double *to)
{
    const kofn_matrix *C = of->out;
    const int *col = of->back->col;

    if (!careful && !col) {
        kf_key_add(to, f * two_to(up), kf_at(C, i, 0), C->cols, C->dtype);
        return;
    }
    for (size_t j = 0; j < C->cols; j++)
        to[j] += f * ldexp(kf_mat_entry(C, i, j), up + raised_by(col, j));
}

/* Adds rows [lo, hi) of a C without scaled rows or columns. */
static void add_plain(const kf_key *k, const kf_keyed *of, size_t lo, size_t hi,
                      sums *s)
{
    double over = 1 / of->back->by;

    for (size_t q = 0; q < KF_KEY_SUMS; q++) {
        s[q].lost = k->limit[2 * (q * k->runs + lo / k->run) + 1];
        if (is_vector(of->out))
            s[q].of[0] =
                over * dot(k->scale + q * k->rows + lo, of->out, lo, hi - lo);
    }
    for (size_t i = lo; i < hi && !is_vector(of->out); i++) {
        double f[KF_KEY_SUMS];

        for (size_t q = 0; q < KF_KEY_SUMS; q++)
            f[q] = over * scale_of(k, q, i);
        add_all(s->of, of->out->cols, f, of->out, i);
    }
}

/* Rows of one column that are handled together. */
#define TILE ((size_t)256)

/* Adds rows [lo, hi) of a one-column C. */
static void add_scaled_vector(const kf_key *k, const kf_keyed *of, size_t lo,
                              size_t hi, int by, sums *s)
{
    const int *row = of->back->row;
    double y[TILE], more[TILE];

    assert(of->out->cols == 1);
    for (size_t at = lo; at < hi; at += TILE) {
        size_t n = kf_min(TILE, hi - at);

        for (size_t i = 0; i < n; i++) {
            bool counts = k->scale[at + i] != 0;
            int own = raised_by(row, at + i);

            more[i] = counts ? two_to(own - s->up) : 0;
            y[i] = counts ? kf_mat_entry(of->out, at + i, 0) *
                                two_to(own - by + raised_by(of->back->col, 0))
                          : 0;
        }
        for (size_t q = 0; q < KF_KEY_SUMS; q++) {
            const double *f = k->scale + q * k->rows + at;

            s[q].of[0] += dot_f64(f, y, n);
            for (size_t i = 0; i < n; i++)
                s[q].lost += fabs(f[i]) * more[i];
        }
    }
}

static void add_scaled(const kf_key *k, const kf_keyed *of, size_t lo,
                       size_t hi, bool careful, sums *s)
{
    const int *row = of->back->row;
    int up = INT_MIN, by = ilogb(of->back->by);

    for (size_t i = lo; i < hi; i++)
        if (k->scale[i] != 0 && raised_by(row, i) > up)
            up = raised_by(row, i);
    for (size_t q = 0; q < KF_KEY_SUMS; q++)
        s[q].up = up;
    if (of->out->cols == 1 && !careful) {
        add_scaled_vector(k, of, lo, hi, by, s);
        return;
    }
    for (size_t i = lo; i < hi; i++) {
        int own = raised_by(row, i);

        for (size_t q = 0; q < KF_KEY_SUMS && k->scale[i] != 0; q++) {
            double f = scale_of(k, q, i);

            add_row(of, f, i, own - by, careful, s[q].of);
            s[q].lost += fabs(f) * two_to(own - up);
        }
    }
}

/* Computes all sums of a run of rows; each row is read once. */
static void add_rows(const kf_key *k, const kf_keyed *of, size_t run,
                     bool careful, double *room, sums *s)
{
    size_t lo = run * k->run, hi = kf_min(k->rows, lo + k->run);
    size_t cols = of->out->cols;

    assert(run < k->runs);
    memset(room, 0, KF_KEY_SUMS * cols * sizeof *room);
    for (size_t q = 0; q < KF_KEY_SUMS; q++)
        s[q] = (sums){.of = room + q * cols,
                      .squares = k->limit[2 * (q * k->runs + run)]};
    if (of->back->row || of->back->col || careful)
        add_scaled(k, of, lo, hi, careful, s);
    else
        add_plain(k, of, lo, hi, s);
}

static void subtract_input(const kf_key *k, const kf_keyed *of, size_t run,
                           const sums *s)
{
    const kofn_matrix *B = of->in;

    for (size_t q = 0; q < KF_KEY_SUMS && is_vector(B); q++)
        s[q].of[0] -= dot(sum_of(k, q, run * k->run), B, 0, B->rows);
    for (size_t i = 0; i < B->rows && !is_vector(B); i++) {
        double f[KF_KEY_SUMS];

        for (size_t q = 0; q < KF_KEY_SUMS; q++)
            f[q] = -sum_of(k, q, run * k->run)[i];
        add_all(s->of, B->cols, f, B, i);
    }
}

/* Returns the largest change of the sums of column j by digits that results
 * lost below the smallest number of their type. */
static double least(const kf_keyed *of, const sums *s, size_t j)
{
    int digits = of->out->dtype == KOFN_F64 ? 1074 : 149;

    return s->lost > 0 ? ldexp(s->lost, s->up + raised_by(of->back->col, j) -
                                            digits - ilogb(of->back->by))
                       : 0;
}

/* True if all sums are within rounding.  The limit includes the digits that
 * numbers lost if they were small before the scaling was undone. */
static bool are_small(const kf_keyed *of, const sums *s, double scales)
{
    double tiny = scales * (of->out->dtype == KOFN_F64 ? DBL_MIN : FLT_MIN);
    double error = KF_ROUNDING_FAR * sqrt(s->squares) * of->error;

    assert(of->cols > 0);
    for (size_t j = 0; j < of->out->cols; j++)
        if (!(fabs(s->of[j]) <=
              error * of->col[j % of->cols] + tiny + least(of, s, j)))
            return false;
    return true;
}

static bool agree(const kf_key *k, const kf_keyed *of, bool careful,
                  double *room)
{
    sums s[KF_KEY_SUMS];

    for (size_t run = 0; run < k->runs; run++) {
        add_rows(k, of, run, careful, room, s);
        subtract_input(k, of, run, s);
        for (size_t q = 0; q < KF_KEY_SUMS; q++)
            if (!are_small(of, &s[q], k->limit[2 * (q * k->runs + run) + 1]))
                return false;
    }
    return true;
}

double kf_key_error(const kf_key *k, const kofn_plan *plan, uint64_t changes,
                    double noise)
{
    const kofn_layout *L = &plan->layout;
    double n = (double)L->problem.n;
    double alarm = kf_compare_alarm(plan, n + (double)plan->parts, changes);
    /* the sums of the test are also rounded, in double precision */
    double own = 0x1p-52 * (n + (double)kf_min(k->rows, k->run));

    return alarm * kf_larger(1, noise * sqrt((double)L->cut[0].cols)) + own;
}

double kf_key_floor(const kf_key *k, double error)
{
    return KF_KEY_BLUR * sqrt((double)kf_min(k->rows, k->run)) * error;
}

kofn_status kf_key_test(const kf_key *k, const kf_keyed *of, bool *agrees)
{
    double *room;

    assert(of->out->rows == k->rows && of->in->rows <= k->cols);
    TRY_MADE(room, kofn_layout_table(KF_KEY_SUMS, of->out->cols));
    *agrees = agree(k, of, false, room) || agree(k, of, true, room);
    kf_free(room);
    return KOFN_OK;
}
