/* gradient_dual.c -- encoding and decoding a gradient code by its dual.
 *
 * The published constructions invert matrices with one row per worker and
 * become inaccurate at about twenty seats.  A matrix M with d
 * columns gives the same codes (gradient.h).  The mixture of a seat comes from
 * a d x d system for each part.  The decoder comes from the combinations of M's
 * columns that are zero at the missing seats.  The accuracy depends on the
 * conditioning of d rows of M, not on the number of seats.
 *
 * With the answers y_i of a submessage, a combination c, and v the wanted sum,
 *
 *     sum over i of (M c)_i y_i = c' P_t v.
 *
 * The combinations are made orthonormal over the answers.  So all these
 * equations have the same rounding error, and v is their least-squares
 * solution.
 *
 * A dual owns its matrices; scratch lives for one call.  No system is larger
 * than d or the number of missing seats. */
#include "gradient.h"

/* Largest allowed difference of D' K x from x, for PROBES random vectors x with
 * entries up to 1.  If it is larger, the equations have no solution. */
#define OFF 1e-6
#define PROBES 4
/* Numbers below this fraction of the largest are rounding. */
#define ROUNDING 4e-15

/* Returns the number of submessages with their own rows and columns in M. */
static size_t deep(const kf_dual *u)
{
    return u->linked ? u->submessages : 1;
}

static size_t wide_of(const kf_dual *u)
{
    return deep(u) * u->d * u->field;
}

static size_t encoded_cols(const kf_dual *u)
{
    return (u->linked ? u->units : u->d) * u->field;
}

kofn_status kf_dual_new(kf_dual *u, bool slots)
{
    size_t f = u->field, rows = u->submessages * u->d;

    u->M = kf_arrays_table(&u->owned, deep(u) * u->n * f, wide_of(u));
    u->X = kf_arrays_table(&u->owned, u->n * wide_of(u), encoded_cols(u));
    u->norm = kf_arrays_table(&u->owned, u->submessages, u->n);
    if (slots)
        u->slot = kf_arrays_new(&u->owned, rows, sizeof *u->slot);
    else
        u->P = kf_arrays_table(&u->owned, rows * f, u->units * f);
    TRY(kf_arrays_status(&u->owned));
    for (size_t i = 0; i < u->submessages * u->n; i++)
        u->norm[i] = 1;
    for (size_t i = 0; slots && i < rows; i++)
        u->slot[i] = KF_NONE;
    return KOFN_OK;
}

/* out += x times the real row r of P_t. */
static void add_P(const kf_dual *u, size_t t, size_t r, double x, double *out)
{
    size_t f = u->field, wide = u->units * f, unit;

    if (u->slot) {
        unit = u->slot[t * u->d + r / f];
        if (unit != KF_NONE)
            out[unit * f + r % f] += x;
        return;
    }
    for (size_t c = 0; c < wide; c++)
        out[c] += x * u->P[(t * u->d * f + r) * wide + c];
}

/* ---- encoding ------------------------------------------------------------ */

/* Returns row (t, q, component) of M for the holders of part j, q seats before
 * j. */
static const double *holder(const kf_dual *u, size_t j, size_t t, size_t q,
                            size_t component)
{
    size_t i = t * u->n + (j + u->n - q) % u->n;

    return u->M + (i * u->field + component) * wide_of(u);
}

/* Computes X_j = (M of the holders)^-T, times P if submessages are linked. */
static kofn_status encode_part(const kf_dual *u, size_t j, double *N, double *X)
{
    size_t f = u->field, w = wide_of(u), cols = encoded_cols(u), r = 0;

    for (size_t t = 0; t < deep(u); t++)
        for (size_t q = 0; q < u->d; q++)
            for (size_t l = 0; l < f; l++, r++) {
                const double *row = holder(u, j, t, q, l);

                for (size_t c = 0; c < w; c++)
                    N[c * w + r] = row[c];
                if (u->linked)
                    add_P(u, 0, r, 1, X + r * cols);
                else
                    X[r * cols + r] = 1;
            }
    return kf_solve(w, N, w, cols, X, cols);
}

/* Returns row (t, q, component) of X_j. */
static const double *encoded(const kf_dual *u, size_t j, size_t t, size_t q,
                             size_t component)
{
    size_t cols = encoded_cols(u), r = q * u->field + component;

    if (u->linked)
        r += t * u->d * u->field;
    return u->X + (j * wide_of(u) + r) * cols;
}

/* out += x times the row of the mixture of a part in submessage t. */
static void add_part(const kf_dual *u, size_t t, const double *row, double x,
                     double *out)
{
    for (size_t r = 0; r < encoded_cols(u); r++)
        if (u->linked)
            out[r] += x * row[r];
        else
            add_P(u, t, r, x * row[r], out);
}

void kf_dual_row(const kf_dual *u, size_t i, size_t t, size_t first,
                 size_t wide, double *G)
{
    double scale = 1 / u->norm[t * u->n + i];

    for (size_t q = 0; q < u->d; q++)
        for (size_t l = 0; l < u->field; l++) {
            size_t part = first + (i + q) % u->n;

            add_part(u, t, encoded(u, (i + q) % u->n, t, q, l), scale,
                     G + l * wide + part * u->units * u->field);
        }
}

kofn_status kf_dual_level(kf_dual *u)
{
    size_t size = u->units * u->field;
    double *row = kofn_layout_table(u->d, size);

    if (!row)
        return KOFN_NOMEM;
    for (size_t t = 0; t < u->submessages; t++)
        for (size_t i = 0; i < u->n; i++) {
            double sum;

            memset(row, 0, u->d * size * sizeof *row);
            for (size_t q = 0; q < u->d; q++)
                add_part(u, t, encoded(u, (i + q) % u->n, t, q, 0), 1,
                         row + q * size);
            sum = kf_code_sum(row, row, u->d * size);
            u->norm[t * u->n + i] = sum > 0 ? sqrt(sum) : 1;
        }
    kofn_free(row);
    return KOFN_OK;
}

/* Copies the first part's X.  If every seat holds every part, all parts must be
 * mixed the same to the last bit, so that parts that cancel also cancel in the
 * messages. */
static void encode_alike(const kf_dual *u, size_t j, const double *first,
                         double *X)
{
    size_t each = u->field * encoded_cols(u);

    for (size_t t = 0; t < deep(u); t++)
        for (size_t q = 0; q < u->d; q++)
            for (size_t e = 0; e < each; e++)
                X[(t * u->d + q) * each + e] =
                    first[(t * u->d + (q + u->d - j) % u->d) * each + e];
}

kofn_status kf_dual_encode(kf_dual *u)
{
    size_t w = wide_of(u), cols = encoded_cols(u);
    double *N = kofn_layout_table(w, w);
    kofn_status st = N ? KOFN_OK : KOFN_NOMEM;

    memset(u->X, 0, u->n * w * cols * sizeof *u->X);
    for (size_t j = 0; j < u->n && !st; j++) {
        if (j && u->n == u->d)
            encode_alike(u, j, u->X, u->X + j * w * cols);
        else
            st = encode_part(u, j, N, u->X + j * w * cols);
    }
    kofn_free(N);
    return st;
}

double kf_dual_spread(const kf_dual *u)
{
    size_t size = wide_of(u) * encoded_cols(u);
    double most = 0;

    for (size_t j = 0; j < u->n; j++) {
        const double *X = u->X + j * size;

        most = fmax(most, sqrt(kf_code_sum(X, X, size)));
    }
    return most;
}

/* ---- who answered -------------------------------------------------------- */

/* The answers to decode, and scratch memory. */
typedef struct heard {
    const kf_dual *u;
    size_t count;       /* answers, from all seats and submessages */
    size_t *at;         /* t n + i: number of the answer plus 1; 0: none */
    size_t *have;       /* answers per submessage */
    size_t submessages; /* only the first of these are used */
    kf_arrays scratch;
} heard;

/* Records the answers.  If submessages depend on earlier ones, an answer counts
 * only if all earlier submessages of its seat have arrived. */
static kofn_status hear(heard *h, const uint32_t *answers, uint32_t base)
{
    const kf_dual *u = h->u;
    size_t room = u->submessages * u->n;

    h->at = kf_arrays_new(&h->scratch, room, sizeof *h->at);
    h->have = kf_arrays_new(&h->scratch, u->submessages, sizeof *h->have);
    h->submessages = u->submessages;
    TRY(kf_arrays_status(&h->scratch));
    memset(h->at, 0, room * sizeof *h->at);
    memset(h->have, 0, u->submessages * sizeof *h->have);
    for (size_t a = 0; a < h->count; a++) {
        size_t i = (answers[a] - base) / u->submessages;
        size_t t = (answers[a] - base) % u->submessages;

        h->at[t * u->n + i] = a + 1;
    }
    for (size_t t = 0; t < u->submessages; t++) {
        for (size_t i = 0; i < u->n; i++) {
            if (u->linked && t && !h->at[(t - 1) * u->n + i])
                h->at[t * u->n + i] = 0;
            h->have[t] += h->at[t * u->n + i] > 0;
        }
    }
    return KOFN_OK;
}

/* Returns the number of equations on the wanted units, in the field, in the
 * first `submessages`. */
static size_t gain_of(const heard *h, size_t submessages)
{
    const kf_dual *u = h->u;
    size_t gain = 0;

    for (size_t t = 0; t < submessages; t++)
        gain += kf_max(h->have[t] + u->d, u->n) - u->n;
    return gain;
}

/* Returns the number of submessages that suffice; later ones are not read.  In
 * groups, workers of a complete group may send more of them while another group
 * still waits for the replacement of a straggler. */
static size_t enough_submessages(const heard *h)
{
    const kf_dual *u = h->u;
    size_t submessages = u->linked ? u->submessages : 0;

    while (submessages < u->submessages && gain_of(h, submessages) < u->units)
        submessages++;
    return submessages;
}

/* ---- equations ----------------------------------------------------------- */

/* Equations Z y = K v as rows [Z | K].  Z is over the seats, of all submessages
 * if they are linked; K is over the units. */
typedef struct pool {
    size_t seats, wide, rows;
    double *row;
    size_t *submessage; /* of each row */
} pool;

static kofn_status pool_new(pool *p, heard *h, size_t gain)
{
    const kf_dual *u = h->u;
    size_t f = u->field;

    p->seats = deep(u) * u->n * f;
    p->wide = p->seats + u->units * f;
    p->rows = 0;
    p->row = kf_arrays_table(&h->scratch, gain * f, p->wide);
    p->submessage = kf_arrays_new(&h->scratch, gain * f, sizeof *p->submessage);
    return kf_arrays_status(&h->scratch);
}

/* Runs along rows, because these are contiguous. */
void kf_gradient_eliminate(double *T, size_t w, size_t wide, size_t c,
                           double *dot)
{
    double norm = 0, *head = T + c * wide;
    double alpha, pivot;

    for (size_t r = c; r < w; r++)
        norm += T[r * wide + c] * T[r * wide + c];
    if (!(norm > 0))
        return;
    alpha = head[c] > 0 ? -sqrt(norm) : sqrt(norm);
    pivot =
        head[c] - alpha; /* v = (pivot, T[c+1..][c]), v'v = -2 alpha pivot */
    for (size_t k = c + 1; k < wide; k++)
        dot[k] = pivot * head[k];
    for (size_t r = c + 1; r < w; r++) {
        const double *row = T + r * wide;

        for (size_t k = c + 1; k < wide; k++)
            dot[k] += row[c] * row[k];
    }
    for (size_t k = c + 1; k < wide; k++) {
        dot[k] /= alpha * pivot;
        head[k] += dot[k] * pivot;
    }
    for (size_t r = c + 1; r < w; r++) {
        double *row = T + r * wide, v = row[c];

        for (size_t k = c + 1; k < wide; k++)
            row[k] += dot[k] * v;
        row[c] = 0;
    }
    head[c] = alpha;
}

/* Makes the row orthogonal to rows `first` and later of the pool, and its Z of
 * norm 1.  Applies Gram-Schmidt twice for accuracy. */
static void orthonormalise(pool *p, size_t first, double *row)
{
    double norm;

    for (int pass = 0; pass < 2; pass++)
        for (size_t r = first; r < p->rows; r++) {
            const double *other = p->row + r * p->wide;
            double dot = kf_code_sum(row, other, p->seats);

            for (size_t c = 0; c < p->wide; c++)
                row[c] -= dot * other[c];
        }
    norm = kf_code_sum(row, row, p->seats);
    for (size_t c = 0; norm > 0 && c < p->wide; c++)
        row[c] /= sqrt(norm);
}

/* The tableau of a Householder elimination.  Its rows are the columns of M.
 * Its columns are the seats that are missing in submessages [from, to), the
 * other seats, and the units. */
typedef struct tableau {
    size_t from, to, rows, missing, wide;
    double *T;
} tableau;

static kofn_status tableau_new(tableau *b, const heard *h)
{
    const kf_dual *u = h->u;
    size_t f = u->field;

    b->rows = (b->to - b->from) * u->d * f;
    b->missing = 0;
    for (size_t t = b->from; t < b->to; t++)
        b->missing += (u->n - h->have[t]) * f;
    b->wide = (b->to - b->from) * u->n * f + u->units * f;
    b->T = kofn_layout_table(b->rows + 1, b->wide); /* +1: scratch */
    return b->T ? KOFN_OK : KOFN_NOMEM;
}

static void fill_tableau(const tableau *b, const heard *h)
{
    const kf_dual *u = h->u;
    size_t f = u->field, w = wide_of(u), gone = 0, here = b->missing;

    for (size_t t = b->from; t < b->to; t++)
        for (size_t i = 0; i < u->n; i++) {
            bool came = h->at[t * u->n + i] > 0;
            double scale = came ? u->norm[t * u->n + i] : 1;
            size_t seat = u->linked ? t * u->n + i : i;

            for (size_t l = 0; l < f; l++) {
                const double *row = u->M + (seat * f + l) * w;
                size_t col = came ? here++ : gone++;

                for (size_t c = 0; c < b->rows; c++)
                    b->T[c * b->wide + col] = scale * row[c];
            }
        }
    for (size_t c = 0; c < b->rows; c++)
        add_P(u, b->from, c, 1, b->T + c * b->wide + b->wide - u->units * f);
}

/* Moves a row of the tableau to the pool, with its seats in order. */
static void keep_row(const tableau *b, const heard *h, const double *from,
                     size_t first, pool *p)
{
    const kf_dual *u = h->u;
    double *row = p->row + p->rows * p->wide;
    size_t f = u->field, at = b->missing;

    for (size_t t = b->from; t < b->to; t++)
        for (size_t i = 0; i < u->n; i++)
            for (size_t l = 0; l < f && h->at[t * u->n + i]; l++)
                row[((u->linked ? t * u->n : 0) + i) * f + l] = from[at++];
    for (size_t c = 0; c < u->units * f; c++)
        row[p->seats + c] = from[at++];
    orthonormalise(p, first, row);
    p->submessage[p->rows++] = b->from;
}

/* Adds the equations of submessages [from, to). */
static kofn_status add_equations(const heard *h, size_t from, size_t to,
                                 pool *p)
{
    tableau b = {.from = from, .to = to};
    size_t first = p->rows;

    TRY(tableau_new(&b, h));
    fill_tableau(&b, h);
    for (size_t c = 0; c < b.missing; c++)
        kf_gradient_eliminate(b.T, b.rows, b.wide, c, b.T + b.rows * b.wide);
    for (size_t r = b.missing; r < b.rows; r++)
        keep_row(&b, h, b.T + r * b.wide, first, p);
    kofn_free(b.T);
    return KOFN_OK;
}

static kofn_status all_equations(const heard *h, pool *p)
{
    const kf_dual *u = h->u;
    size_t full = 0;

    while (full < h->submessages && h->have[full] + u->d > u->n)
        full++;
    if (u->linked)
        return add_equations(h, 0, full, p);
    for (size_t t = 0; t < h->submessages; t++)
        if (h->have[t] + u->d > u->n)
            TRY(add_equations(h, t, t + 1, p));
    return KOFN_OK;
}

/* ---- decoding ------------------------------------------------------------ */

static kofn_status too_few(const heard *h)
{
    return kf_fail(KOFN_TOOFEW,
                   "%zu answers do not determine the sum; those of any %zu "
                   "workers would",
                   h->count, h->u->n - h->u->d + 1);
}

/* True if V K x = x for some random x.  A system without a solution fails in a
 * whole direction, so random x show it.  z has room for n + rows numbers. */
static bool inverts(const double *V, const double *K, size_t n, size_t rows,
                    double *z)
{
    double *x = z + rows;
    bool near = true;

    for (uint64_t k = 0; k < PROBES; k++) {
        for (size_t i = 0; i < n; i++)
            x[i] = (double)(kf_mix64(k * n + i) >> 11) * 0x1p-52 - 1;
        for (size_t r = 0; r < rows; r++)
            z[r] = kf_code_sum(K + r * n, x, n);
        for (size_t a = 0; a < n; a++) {
            double off = -x[a];

            for (size_t r = 0; r < rows; r++)
                off += V[a * rows + r] * z[r];
            near &= fabs(off) <= OFF;
        }
    }
    return near;
}

/* Sets numbers that are only rounding to 0.  So a unit that does not depend on
 * a submessage does not read its answers. */
static void tidy(double *V, size_t n, size_t rows)
{
    for (size_t a = 0; a < n; a++) {
        double *row = V + a * rows, most = 0;

        for (size_t r = 0; r < rows; r++)
            most = fmax(most, fabs(row[r]));
        for (size_t r = 0; r < rows; r++)
            if (fabs(row[r]) < ROUNDING * most)
                row[r] = 0;
    }
}

/* Computes V = K^+, units x rows. */
static kofn_status solve_units(heard *h, const pool *p, double *V)
{
    size_t n = h->u->units * h->u->field;
    double *K = kf_arrays_new(&h->scratch, p->rows * n, sizeof *K);
    double *I = kf_arrays_table(&h->scratch, n, n), condition;
    double *z = kf_arrays_new(&h->scratch, n + p->rows, sizeof *z);

    TRY(kf_arrays_status(&h->scratch));
    for (size_t c = 0; c < n; c++)
        I[c * n + c] = 1;
    for (size_t r = 0; r < p->rows; r++)
        memcpy(K + r * n, p->row + r * p->wide + p->seats, n * sizeof *K);
    TRY(kf_pseudo(&(kf_equation){p->rows, n, K, n, I}, V, &condition));
    if (!inverts(V, K, n, p->rows, z))
        return too_few(h);
    tidy(V, n, p->rows);
    return KOFN_OK;
}

/* D += V Z, with the seats mapped to their answers. */
static void apply(const heard *h, const pool *p, const double *V, double *D,
                  size_t wide)
{
    size_t f = h->u->field, n = h->u->units * f;

    for (size_t r = 0; r < p->rows; r++) {
        const double *Z = p->row + r * p->wide;
        const size_t *at = h->at + p->submessage[r] * h->u->n;

        for (size_t c = 0; c < p->seats; c++) {
            size_t answer = at[c / f];

            for (size_t z = 0; z < n && answer && Z[c] != 0; z++)
                D[z * wide + (answer - 1) * f + c % f] +=
                    V[z * p->rows + r] * Z[c];
        }
    }
}

kofn_status kf_dual_enough(const kf_dual *u, const uint32_t *answers,
                           size_t count, uint32_t base)
{
    heard h = {.u = u, .count = count};
    kofn_status st = hear(&h, answers, base);

    if (!st && gain_of(&h, u->submessages) < u->units)
        st = too_few(&h);
    kf_arrays_free(&h.scratch);
    return st;
}

/* Decodes from the submessages in use. */
static kofn_status decode_heard(heard *h, double *D, size_t wide)
{
    size_t gain = gain_of(h, h->submessages);
    double *V;
    pool p;

    if (gain < h->u->units)
        return too_few(h);
    TRY(pool_new(&p, h, gain));
    TRY(all_equations(h, &p));
    V = kf_arrays_table(&h->scratch, h->u->units * h->u->field, p.rows);
    TRY(kf_arrays_status(&h->scratch));
    TRY(solve_units(h, &p, V));
    apply(h, &p, V, D, wide);
    return KOFN_OK;
}

kofn_status kf_dual_decode(const kf_dual *u, const uint32_t *answers,
                           size_t count, uint32_t base, double *D, size_t wide)
{
    heard h = {.u = u, .count = count};
    kofn_status st = hear(&h, answers, base);

    if (!st) {
        h.submessages = enough_submessages(&h);
        st = decode_heard(&h, D, wide);
    }
    if (st == KOFN_TOOFEW && h.submessages < u->submessages) {
        h.submessages = u->submessages;
        st = decode_heard(&h, D, wide);
    }
    kf_arrays_free(&h.scratch);
    return st;
}
