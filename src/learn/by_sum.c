/* by_sum.c -- the gradient of a part of the points, summed over parts (Tandon,
 * Lei, Dimakis, Karampatziakis, "Gradient coding", 2017; math/regression.md
 * 11).
 *
 * The loss is summed with the gradient. A number after w in the input says
 * what is wanted. Workers hold the rows of their parts and nothing else of the
 * regression.
 *
 * The points are borrowed; scratch lives for one call. The function runs at
 * workers and may call neither the job nor the regression. */
#include "net.h"
#include "regress.h"
#include "watch.h"

#include <assert.h>
#include <math.h>

/* ---- what a worker computes ---------------------------------------------- */

/* Bytes of rows handled at a time, so that they are in the cache for their
 * second use. */
#define CACHED ((size_t)256 << 10)

/* Selects points first, first + step, ... below `end`. `gram`: compute X' X w
 * instead of a loss. */
typedef struct every {
    size_t first, step, end;
    bool gram;
} every;

/* Returns a view of the rows of X that p selects. A view of fewer than two
 * rows has the stride of X, since `step` may exceed its rows. */
static kofn_matrix rows_of(const kofn_matrix *X, every p)
{
    assert(p.step > 0);
    size_t n = p.first < p.end ? kf_ceil_div(p.end - p.first, p.step) : 0;

    return (kofn_matrix){(double *)X->data + (n ? p.first : 0) * X->ld, n,
                         X->cols, (n > 1 ? p.step : 1) * X->ld, KOFN_F64};
}

/* Selects, in the part that begins at point `first`, all points or those of
 * one batch. A batch has the same points on every worker. */
static every points_of(size_t first, size_t count, double batches, double what)
{
    size_t step = what > 0 ? (size_t)batches : 1;
    size_t batch = what > 0 ? (size_t)what - 1 : 0;

    return (every){(batch + step - first % step) % step, step, count,
                   what == KF_GRAM};
}

/* Adds the gradient of these points to out, and their loss behind it. `space`
 * has room for one number per point and n more. */
static kofn_status add_points(const kofn_rows *part, kofn_loss loss,
                              every which, const double *w, double *out,
                              double *space)
{
    kofn_matrix rows = rows_of(&part->X, which);
    size_t n = rows.cols;
    double *z = space, *g = space + rows.rows;
    kofn_matrix in = kf_learn_column(w, n),
                margins = kf_learn_column(z, rows.rows);
    kofn_matrix derivatives = kf_learn_row_of(z, rows.rows),
                to = kf_learn_row_of(g, n);

    TRY(kofn_product_plain(KOFN_DENSE(&rows), &in, &margins));
    if (!which.gram && which.step == 1)
        out[n] +=
            kf_loss_sum(loss, z, part->y + which.first, NULL, rows.rows, z);
    for (size_t k = 0; k < rows.rows && !which.gram && which.step > 1; k++)
        out[n] +=
            kf_loss(loss, z[k], part->y[which.first + k * which.step], &z[k]);
    TRY(kofn_product_plain(KOFN_DENSE(&derivatives), &rows, &to));
    for (size_t j = 0; j < n; j++)
        out[j] += g[j];
    return KOFN_OK;
}

/* Checks the arguments of a gradient, which may come from the wire. */
static kofn_status check_gradient(const double *arg, const kofn_matrix *X,
                                  const kofn_matrix *in, const kofn_matrix *out)
{
    size_t n = X->cols;
    double what;

    if (in->rows != n + 1 || in->cols != 1 || out->rows != n + 1)
        return kf_fail(KOFN_SHAPE,
                       "the gradient over rows of %zu numbers turns %zu "
                       "numbers into %zu, not %zu into %zu",
                       n, n + 1, n + 1, out->rows, in->rows * in->cols);
    if (!(arg[0] == KOFN_LOSS_SQUARES || arg[0] == KOFN_LOSS_LOGISTIC ||
          arg[0] == KOFN_LOSS_POISSON) ||
        !(arg[1] >= 1 && arg[1] <= UINT32_MAX && arg[1] == floor(arg[1])))
        return kf_fail(KOFN_INVAL, "there is no loss %g, or not in %g batches",
                       arg[0], arg[1]);
    what = ((const double *)in->data)[n];
    if (what != KF_GRAM && what != KF_OFFSET &&
        !(what >= 0 && what <= arg[1] && what == floor(what)))
        return kf_fail(KOFN_INVAL, "there is no batch %g of %g", what, arg[1]);
    return KOFN_OK;
}

/* Computes the gradient and the loss into out. arg: the loss, the number of
 * batches. */
static kofn_status loss_gradient(const double *arg, const kofn_rows *part,
                                 const kofn_matrix *in, kofn_matrix *out)
{
    const double *w = in->data;
    size_t n = part->X.cols, most = kf_max(1, CACHED / (n * sizeof *w));
    double what, *sum = out->data, *space;
    kofn_status st = KOFN_OK;
    every all;

    TRY(check_gradient(arg, &part->X, in, out));
    what = w[n];
    all = points_of(part->first, part->X.rows, arg[1], what);
    memset(sum, 0, (n + 1) * sizeof *sum);
    most = kf_min(most, rows_of(&part->X, all).rows);
    if (most == 0)
        return KOFN_OK;
    TRY_NEW(space, most + n);
    while (all.first < all.end && !st) {
        every some = all;

        some.end = kf_min(all.end, all.first + most * all.step);
        st = add_points(part, (kofn_loss)arg[0], some, w, sum, space);
        all.first += most * all.step;
    }
    if (what == KF_OFFSET)
        sum[n] -= kf_learn_dot(sum, w, n);
    kf_free(space);
    return st;
}

const kofn_formula kofn_formulas[] = {
    {"loss-gradient", loss_gradient}, {"net", kf_train_formula}, {NULL, NULL}};

static size_t begin_of(const kofn_regression *r, size_t part, size_t parts)
{
    assert(parts > 0);
    assert(part <= parts);
    return part * r->X.rows / parts;
}

/* ---- rounds -------------------------------------------------------------- */

static kofn_status sum_round(kf_descent *d, const double *v, double what)
{
    size_t n = kf_learn_features(d);
    kofn_matrix in = kf_learn_column(d->at.in, n + 1),
                out = kf_learn_column(d->at.out, n + 1);

    assert(d->at.in);
    assert(d->at.out);
    memcpy(d->at.in, v, n * sizeof *v);
    d->at.in[n] = what;
    return kf_learn_round_of(d, false, &in, &out);
}

/* Returns the number of wanted points, divided by the number of points that
 * the round's sum included. */
static double outnumbered(const kf_descent *d, double what)
{
    double all = 0, there = 0;

    for (size_t j = 0; d->job && !d->remembers && j < d->parts; j++) {
        size_t from = begin_of(d->r, j, d->parts);
        every p = points_of(from, begin_of(d->r, j + 1, d->parts) - from,
                            d->r->opt.batches, what);
        double n = (double)rows_of(&d->r->X, p).rows;

        all += n;
        there += d->weights[j] * n;
    }
    return there > 0 ? all / there : 1;
}

/* Sums the gradients, and F with them. If the round shows that the scheme
 * remembers gradients, repeats it with KF_OFFSET. */
static kofn_status gradient(kf_descent *d, const double *w, kf_some which,
                            double *F)
{
    size_t n = kf_learn_features(d);
    double what = which.of > 1   ? (double)which.lo + 1
                  : d->remembers ? KF_OFFSET
                                 : 0;
    double more;

    TRY(sum_round(d, w, what));
    if (d->remembers && what > 0)
        return kf_fail(KOFN_UNSUITED,
                       "a scheme that remembers gradients goes "
                       "with descents over all points, not with batches");
    if (d->remembers && what == 0) { /* the round has just shown it */
        what = KF_OFFSET;
        TRY(sum_round(d, w, what));
    }
    memcpy(d->at.g, d->at.out, n * sizeof *d->at.g);
    more = outnumbered(d, what);
    *F = d->at.out[n] + (what == KF_OFFSET ? kf_learn_dot(d->at.g, w, n) : 0);
    *F *= more;
    for (size_t j = 0; j < n && more != 1; j++)
        d->at.g[j] *= more;
    return KOFN_OK;
}

static kofn_status gram(kf_descent *d, const double *v, double *out)
{
    if (d->remembers) /* it remembers gradients only */
        return kf_learn_gram_here(d->r, v, NULL, out, NULL);
    TRY(sum_round(d, v, KF_GRAM));
    memcpy(out, d->at.out, kf_learn_features(d) * sizeof *out);
    return KOFN_OK;
}

/* ---- the way ------------------------------------------------------------- */

/* The input is w and one number that says what to compute. */
static kofn_problem problem(const kofn_regression *r)
{
    size_t n = r->X.cols + 1;

    return (kofn_problem)KOFN_PROBLEM_INIT(KOFN_SUM, n, n, 1, KOFN_F64, false);
}

static kofn_status check(const kofn_regression *r)
{
    if (r->S.rows)
        return kf_fail(
            KOFN_UNSUITED,
            "sums of gradients are over rows of a "
            "dense X, and this is sparse; use scheme pcr or elastic");
    if (r->weights)
        return kf_fail(KOFN_UNSUITED,
                       "sums of gradients are over points of equal weights; "
                       "use scheme elastic");
    if (r->opt.line_search == KOFN_LINE_SEARCH_EXACT &&
        r->opt.loss != KOFN_LOSS_SQUARES)
        return kf_fail(KOFN_UNSUITED,
                       "an exact step of this loss needs the margins, "
                       "and a sum of gradients does not give them; use "
                       "scheme elastic or another rule");
    return KOFN_OK;
}

static kofn_status place(kofn_regression *r, kofn_job *job)
{
    const double arg[KOFN_FORMULA_ARGS] = {r->opt.loss, r->opt.batches};
    double points = (double)r->X.rows;

    if (r->opt.optimizer == KOFN_OPTIMIZER_SGD)
        points = fmax(1, points / r->opt.batches);
    TRY(kofn_place_rows(job, kofn_formulas, arg, &r->X, r->y));
    return kofn_parts_work(job, 2 * points * (double)r->X.cols);
}

const kf_gradient_mode kf_by_sum = {
    .op = KOFN_SUM,
    .problem = problem,
    .check = check,
    .place = place,
    .gradient = gradient,
    .gram = gram,
};
