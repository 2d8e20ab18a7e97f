/* secret.c -- tests a product by rows that only this process knows.
 *
 * For a row x, x (A v) must be (x A) v, and x A is made once.  A wrong entry
 * with an error e changes the left side by x_i e.  The entries of +- x are
 * drawn from [1/2, 1].  So whatever others send together, it comes within t of
 * passing with a chance of at most 2 t / e (Freivalds' check, over the reals).
 * With KF_SECRET_ROWS rows the chance is (2 t / e)^KF_SECRET_ROWS, so errors
 * not far above t are found, too.
 *
 * A key (key.h) does the same where A is cut and scaled; it divides rows by
 * their norms.
 *
 * Owns the secret rows and their products with A, which must never be sent. */
#include "secret.h"

#include "base/entropy.h"
#include "code/operation.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#define UNIT (DBL_EPSILON / 2)
/* The relative error that a product may have which others decoded: the
 * tolerance of kf_node_options.  No sender is accused for less. */
#define MAY_DIFFER 1e-9

/* ---- the rows ------------------------------------------------------------ */

/* Adds x = A(i, j) to (secret row) A; for a left product, to A (secret
 * column). */
static void add_entry(kf_secret *s, bool left, size_t i, size_t j, double x)
{
    size_t at = left ? j : i, into = left ? i : j;

    for (size_t r = 0; r < KF_SECRET_ROWS; r++)
        s->times[into * KF_SECRET_ROWS + r] +=
            s->row[at * KF_SECRET_ROWS + r] * x;
    s->most[into] += fabs(s->row[at * KF_SECRET_ROWS] * x);
}

static void multiply(kf_secret *s, bool left, kofn_operand A)
{
    const kofn_sparse *sparse = A.sparse;
    const kofn_matrix *dense = A.dense;

    assert(sparse || dense->dtype == KOFN_F64);
    for (size_t i = 0; !sparse && i < dense->rows; i++) {
        const double *from = kf_at(dense, i, 0);

        for (size_t j = 0; j < dense->cols; j++)
            add_entry(s, left, i, j, from[j]);
    }
    for (size_t i = 0; sparse && i < sparse->rows; i++)
        for (size_t e = sparse->ptr[i]; e < sparse->ptr[i + 1]; e++)
            add_entry(s, left, i, sparse->col[e], sparse->val[e]);
}

/* Scales the weights of rows that were scaled, in left products of columns.  So
 * these count like the others, and their scale is that of the scaled ones. */
static void scale_weights(kf_secret *s, const int *digits, size_t rows)
{
    for (size_t i = 0; digits && i < rows; i++)
        for (size_t r = 0; digits[i] != KF_SCALING_ZERO && r < KF_SECRET_ROWS;
             r++)
            s->row[i * KF_SECRET_ROWS + r] =
                ldexp(s->row[i * KF_SECRET_ROWS + r], digits[i]);
}

kofn_status kf_secret_new(kf_secret *s, const kofn_plan *plan, kofn_operand A,
                          const int *scaled)
{
    const kofn_problem *pb = &plan->layout.problem;
    bool left = plan->op->left;
    size_t rows = left ? pb->n : pb->m, cols = left ? pb->m : pb->n;

    s->row = kf_new(rows, KF_SECRET_ROWS * sizeof *s->row);
    s->times = kf_zero(cols, KF_SECRET_ROWS * sizeof *s->times);
    s->most = kf_zero(cols, sizeof *s->most);
    if (!s->row || !s->times || !s->most)
        return KOFN_NOMEM;
    TRY(kf_entropy(s->row, rows * KF_SECRET_ROWS * sizeof *s->row));
    for (size_t i = 0; i < rows * KF_SECRET_ROWS; i++) {
        uint64_t bits;

        memcpy(&bits, &s->row[i], sizeof bits);
        s->row[i] = kf_weight64(bits);
    }
    scale_weights(s, scaled, rows);
    multiply(s, left, A);
    return KOFN_OK;
}

void kf_secret_free(kf_secret *s)
{
    kf_free(s->row);
    kf_free(s->times);
    kf_free(s->most);
}

/* ---- a product ----------------------------------------------------------- */

/* A vector of the input or of the product; all are multiplied in the same way.
 * It is a column, or in left products a row. */
typedef struct line {
    const double *at;
    size_t n, step;
} line;

static line line_of(const kofn_plan *plan, const kofn_matrix *m, size_t which)
{
    assert(which < (plan->op->left ? m->rows : m->cols));
    if (plan->op->left)
        return (line){kf_at(m, which, 0), m->cols, 1};
    return (line){kf_at(m, 0, which), m->rows, m->ld};
}

static size_t lines(const kf_secret_product *p)
{
    return p->plan->op->left ? p->in->rows : p->in->cols;
}

/* Returns |row| |A| |v|.  It is at least half of any entry of |A| |v|, and of
 * their sum. */
static double weight(const kf_secret_product *p, size_t which)
{
    line v = line_of(p->plan, p->in, which);
    double sum = 0;

    assert(p->secret->most);
    for (size_t j = 0; j < v.n; j++)
        sum += p->secret->most[j] * fabs(v.at[j * v.step]);
    return sum;
}

/* Returns the number of terms in each entry of the product. */
static double terms(const kf_secret_product *p)
{
    return (double)line_of(p->plan, p->in, 0).n +
           (double)p->plan->layout.enough;
}

static bool line_agrees(const kf_secret_product *p, size_t which)
{
    const kf_secret *s = p->secret;
    line v = line_of(p->plan, p->in, which);
    line out = line_of(p->plan, p->out, which);
    double sum[KF_SECRET_ROWS] = {0}, noise = p->noise + terms(p) * UNIT;
    double room = 2 * (double)p->plan->layout.wants * noise * weight(p, which);

    for (size_t i = 0; i < out.n; i++)
        for (size_t r = 0; r < KF_SECRET_ROWS; r++)
            sum[r] += s->row[i * KF_SECRET_ROWS + r] * out.at[i * out.step];
    for (size_t j = 0; j < v.n; j++)
        for (size_t r = 0; r < KF_SECRET_ROWS; r++)
            sum[r] -= s->times[j * KF_SECRET_ROWS + r] * v.at[j * v.step];
    for (size_t r = 0; r < KF_SECRET_ROWS; r++)
        /* the entries of a row are up to twice those of another */
        if (!(fabs(sum[r]) <= 2 * room))
            return false;
    return true;
}

bool kf_secret_agrees(const kf_secret_product *p)
{
    for (size_t i = 0; i < lines(p); i++)
        if (!line_agrees(p, i))
            return false;
    return true;
}

/* ---- single results ------------------------------------------------------ */

static double sum_of(const kf_row *row, size_t rows)
{
    double sum = 0;

    for (size_t l = 0; l < rows; l++)
        for (size_t e = 0; e < row[l].n; e++)
            sum += fabs(row[l].val[e]);
    return sum;
}

/* Returns a bound of the entries of all products of parts.  If the input is
 * cut, a result also contains products that are not part of A v. */
static double largest(const kf_secret_product *p, const kf_sides *s)
{
    double most = 0;

    if (p->plan->parts1 > 1)
        return s->resident->most * terms(p) * kf_mat_most(s->whole);
    for (size_t i = 0; i < lines(p); i++)
        most = fmax(most, weight(p, i));
    return most;
}

kofn_status kf_secret_room(const kf_secret_product *p, const kf_sides *s,
                           kf_code *blocks, kf_code *inputs, size_t seat,
                           double *room)
{
    const kofn_layout *L = &p->plan->layout;
    const kf_seat *rows;

    TRY(kf_code_seat(blocks, seat, &rows));
    *room = 4 * MAY_DIFFER * sum_of(rows->E0, L->components * L->inner) *
            s->resident->by * largest(p, s);
    if (p->plan->parts1 == 1)
        return KOFN_OK;
    TRY(kf_code_seat(inputs, seat, &rows));
    *room *= sum_of(rows->E1, L->inner);
    return KOFN_OK;
}
