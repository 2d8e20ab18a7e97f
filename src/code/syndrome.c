/* syndrome.c -- syndromes, striking nodes from them, and their spectrum.
 *
 * A copy of syndromes shares nothing.  This file makes no verdict. */
#include "syndrome.h"

#include "combine.h"

#include "base/vectors.h"

#include <assert.h>

#define VECTORS KF_VECTORS()

/* A shorter column of H depends on those that were struck. */
#define DEPENDENT 1e-12
/* A row with a smaller fraction of the total, far below rounding, is zero. */
#define NOTHING 0x1p-80

/* ---- tables -------------------------------------------------------------- */

void kf_syndromes_new(kf_syndromes *t, kf_arrays *a, const kf_evidence *e,
                      const double *allowance)
{
    size_t rows = e->nodes * e->components, ld = rows + e->columns;

    assert(e->components > 0);
    *t = (kf_syndromes){.q = e->q,
                        .components = e->components,
                        .rows = rows,
                        .columns = e->columns,
                        .ld = ld,
                        .allowance = allowance};
    t->first = t->memory = kf_arrays_new(a, e->q * ld, sizeof *t->memory);
    t->v = kf_arrays_new(a, e->q, sizeof *t->v);
    t->w = kf_arrays_new(a, ld, sizeof *t->w);
}

kofn_status kf_syndromes_fill(kf_syndromes *t, const double *H, const double *Y)
{
    const void **from;
    void **to;

    assert(t->first == t->memory);
    TRY_NEW(from, t->rows + t->q);
    to = (void **)(uintptr_t)(from + t->rows);
    for (size_t r = 0; r < t->rows; r++)
        from[r] = Y + r * t->columns;
    for (size_t i = 0; i < t->q; i++) {
        memcpy(t->first + i * t->ld, H + i * t->rows, t->rows * sizeof *H);
        to[i] = t->first + i * t->ld + t->rows;
    }
    kf_combine(&(kf_combination){t->q, t->rows, H, t->rows, from, to},
               t->columns, KOFN_F64);
    kf_free(from);
    return KOFN_OK;
}

void kf_syndromes_copy(kf_syndromes *to, const kf_syndromes *from)
{
    assert(to != from);
    assert(to->ld == from->ld);
    assert(to->components == from->components);
    to->q = from->q;
    to->first = to->memory;
    memcpy(to->first, from->first, from->q * from->ld * sizeof *from->first);
}

void kf_code_get_column(const kf_syndromes *t, size_t j, double *out)
{
    assert(j < t->ld);
    for (size_t i = 0; i < t->q; i++)
        out[i] = t->first[i * t->ld + j];
}

/* Removes column j from all parities but the first, by a Householder reflection
 * from the left; then drops the first. */
static void strike_column(kf_syndromes *t, size_t j)
{
    double norm = 0, alpha, head;

    assert(t->q > 0);
    assert(j < t->rows);
    kf_code_get_column(t, j, t->v);
    for (size_t i = 0; i < t->q; i++) {
        norm += t->v[i] * t->v[i];
        t->first[i * t->ld + j] = 0;
    }
    norm = sqrt(norm);
    if (!(norm > DEPENDENT))
        return;
    alpha = t->v[0] > 0 ? -norm : norm;
    head = t->v[0] - alpha;
    t->v[0] = 1;
    for (size_t i = 1; i < t->q; i++)
        t->v[i] /= head;
    memset(t->w, 0, t->ld * sizeof *t->w);
    kf_code_subtract_product(&(kf_difference){1, t->q, t->ld, t->v, t->q,
                                              t->first, t->ld, t->w, t->ld});
    for (size_t i = 1; i < t->q; i++)
        t->v[i] *= head / alpha;
    t->q--;
    t->first += t->ld;
    kf_code_subtract_product(&(kf_difference){t->q, 1, t->ld, t->v + 1, 1, t->w,
                                              t->ld, t->first, t->ld});
}

void kf_syndromes_strike(kf_syndromes *t, size_t node)
{
    assert(node * t->components < t->rows);
    for (size_t l = 0; l < t->components && t->q > 0; l++)
        strike_column(t, node * t->components + l);
}

/* ---- how much they disagree ---------------------------------------------- */

/* Squares the columns of S, in units of each entry's allowance. */
static void square_syndromes(const kf_syndromes *t)
{
    memset(t->w, 0, t->columns * sizeof *t->w);
    for (size_t i = 0; i < t->q; i++) {
        const double *row = t->first + i * t->ld + t->rows;

        for (size_t c = 0; c < t->columns; c++)
            t->w[c] += row[c] * row[c];
    }
    for (size_t c = 0; c < t->columns; c++)
        t->w[c] /= t->allowance[c] * t->allowance[c];
}

/* Returns the limit of a column in the same units. */
static double column_limit(const kf_syndromes *t)
{
    return sqrt((double)t->q) + KF_TAIL;
}

double kf_code_syndrome_norm(const kf_syndromes *t)
{
    double top = 0, all = 0;

    square_syndromes(t);
    for (size_t c = 0; c < t->columns; c++) {
        top = fmax(top, t->w[c]);
        all += t->w[c];
    }
    return fmax(sqrt(top) / column_limit(t),
                sqrt(all) / (sqrt((double)(t->q * t->columns)) + KF_TAIL));
}

double kf_code_column_syndrome_norm(const kf_syndromes *t, size_t c)
{
    assert(c < t->columns);
    return kf_code_view(t, t->rows + c) / t->allowance[c] / column_limit(t);
}

double kf_code_view(const kf_syndromes *t, size_t j)
{
    kf_code_get_column(t, j, t->v);
    return kf_code_length(t->v, t->q);
}

/* ---- spectrum ------------------------------------------------------------ */

void kf_spectrum_new(kf_spectrum *p, kf_arrays *a, const kf_evidence *e)
{
    *p = (kf_spectrum){.columns = e->columns * (e->closed ? 4 : 1)};
    p->U = kf_arrays_new(a, e->q * e->q, sizeof *p->U);
    p->value = kf_arrays_new(a, e->q, sizeof *p->value);
    p->C = kf_arrays_new(a, e->q * p->columns, sizeof *p->C);
    p->all = kf_arrays_new(a, e->closed ? 4 * e->nodes * p->columns : 0,
                           sizeof *p->all);
}

/* Multiplies a column by 1, i, j, k from the right.  All are codewords if the
 * column is.  An error in one component then spans the same dimensions as an
 * error in all four. */
static void close_columns(const kf_evidence *e, const double *Y, double *out)
{
    static const double sign[4][4] = {
        {1, 1, 1, 1}, {-1, 1, 1, -1}, {-1, -1, 1, 1}, {-1, 1, -1, 1}};
    size_t m = e->columns;

    for (size_t n = 0; n < e->nodes; n++)
        for (size_t l = 0; l < 4; l++)
            for (size_t c = 0; c < m; c++)
                for (size_t k = 0; k < 4; k++)
                    out[(4 * n + l) * 4 * m + 4 * c + k] =
                        sign[k][l] * Y[(4 * n + (k ^ l)) * m + c];
}

static void fill(kf_spectrum *p, const kf_syndromes *t, const kf_evidence *e,
                 const double *Y)
{
    assert(!e->closed || t->components == 4);
    if (e->closed) {
        close_columns(e, Y, p->all);
        memset(p->C, 0, t->q * p->columns * sizeof *p->C);
        kf_code_subtract_product(
            &(kf_difference){t->q, t->rows, p->columns, t->first, t->ld, p->all,
                             p->columns, p->C, p->columns});
        return;
    }
    for (size_t i = 0; i < t->q; i++)
        memcpy(p->C + i * p->columns, t->first + i * t->ld + t->rows,
               p->columns * sizeof *p->C);
}

/* Transforms C to lower triangular form with Householder reflections from the
 * right and moves its q rows together.  Returns their new length. */
static size_t compress(kf_spectrum *p)
{
    size_t m = p->columns, short_m = kf_min(p->q, m);

    for (size_t i = 0; i < p->q && i + 1 < m; i++) {
        double *x = p->C + i * m + i;
        double norm = kf_code_length(x, m - i), head;

        if (!(norm > 0))
            continue;
        head = x[0] > 0 ? x[0] + norm : x[0] - norm;
        for (size_t c = 1; c < m - i; c++)
            x[c] /= head;
        for (size_t k = i + 1; k < p->q; k++) {
            double *y = p->C + k * m + i;
            double f = y[0] + kf_code_dot(x + 1, y + 1, m - i - 1);

            f *= fabs(head) / norm;
            y[0] -= f;
            kf_axpy(m - i - 1, -f, x + 1, y + 1);
        }
        x[0] = head > 0 ? -norm : norm;
    }
    for (size_t i = 0; i < p->q; i++) {
        double *to = p->C + i * short_m;

        memmove(to, p->C + i * m, kf_min(i + 1, m) * sizeof *to);
        for (size_t c = i + 1; c < short_m; c++)
            to[c] = 0;
    }
    return short_m;
}

static inline void rotate_rows(double *a, double *b, size_t n, double cosine,
                               double sine)
{
    for (size_t k = 0; k < n; k++) {
        double x = a[k], y = b[k];

        a[k] = cosine * x - sine * y;
        b[k] = sine * x + cosine * y;
    }
}

/* Makes rows i and j of C orthogonal.  False if they are already, or if one is
 * zero. */
static inline bool rotate(kf_spectrum *p, size_t m, size_t i, size_t j,
                          double nothing)
{
    double *a = p->C + i * m, *b = p->C + j * m;
    double aa = kf_code_dot(a, a, m), bb = kf_code_dot(b, b, m),
           ab = kf_code_dot(a, b, m);
    double zeta, t, cosine;

    assert(i < j);
    assert(j < p->q);
    if (!(fabs(ab) > 1e-15 * sqrt(aa) * sqrt(bb)) || aa <= nothing ||
        bb <= nothing)
        return false;
    zeta = (bb - aa) / (2 * ab);
    t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    cosine = 1 / sqrt(1 + t * t);
    rotate_rows(a, b, m, cosine, cosine * t);
    rotate_rows(p->U + i * p->q, p->U + j * p->q, p->q, cosine, cosine * t);
    return true;
}

/* Makes the rows of C orthogonal by one-sided Jacobi rotations.  If there are
 * more rows than directions some become zero.  They are skipped, because their
 * rotation would never end. */
VECTORS static void make_orthogonal(kf_spectrum *p, size_t m)
{
    bool still = true;
    double all = kf_code_dot(p->C, p->C, p->q * m);

    for (int sweep = 0; sweep < 40 && still; sweep++) {
        still = false;
        for (size_t i = 0; i + 1 < p->q; i++)
            for (size_t j = i + 1; j < p->q; j++)
                still |= rotate(p, m, i, j, NOTHING * NOTHING * all);
    }
}

void kf_spectrum_of(kf_spectrum *p, const kf_syndromes *t, const kf_evidence *e,
                    const double *Y)
{
    size_t m;

    kf_spectrum_rotate(p, t, e, Y, &m);
    memset(p->U, 0, p->q * p->q * sizeof *p->U);
    for (size_t i = 0; i < p->q; i++)
        p->U[i * p->q + i] = 1;
    make_orthogonal(p, m);
    for (size_t i = 0; i < p->q; i++)
        p->value[i] = kf_code_length(p->C + i * m, m);
}

void kf_spectrum_rotate(kf_spectrum *p, const kf_syndromes *t,
                        const kf_evidence *e, const double *Y, size_t *columns)
{
    p->q = t->q;
    fill(p, t, e, Y);
    *columns = compress(p);
}

double kf_spectrum_level(const kf_spectrum *p, double size)
{
    return size * (sqrt((double)p->columns) + sqrt((double)p->q) + KF_TAIL);
}

size_t kf_spectrum_above(const kf_spectrum *p, double level)
{
    size_t n = 0;

    for (size_t i = 0; i < p->q; i++)
        n += p->value[i] > level;
    return n;
}
