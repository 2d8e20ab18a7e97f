/* ways.c -- three ways to have workers compute the gradient of a model.
 *
 *   KOFN_MATVEC  margins X w come first, then z' X, where z_i is how the loss
 *                of point i changes with its margin: two rounds on one
 *                encoding, and 2 m numbers more than a sum would take, but
 *                the master knows every margin (Yang et al., "Coded elastic
 *                computing", 2018; math/elastic.md 11)
 *   KOFN_GRAM    X' X w is the gradient of least squares but for X' y, which
 *                is known once for all (Li et al., "Polynomially coded
 *                regression", 2018; math/regression.md 1)
 *   KOFN_SUM     the gradient of a part of the points, summed over parts
 *                (Tandon, Lei, Dimakis, Karampatziakis, "Gradient coding",
 *                2017; math/regression.md 11).  The loss is summed along with
 * it, and what is asked for is told in a number after w.  Workers get the rows
 * of their parts and nothing else of the regression.
 *
 * Without a job the first way is gone on this thread: what the coded ones are
 * compared with.
 */
#include "regress.h"

#include <math.h>

#define TENTH (KOFN_SECOND / 10)

size_t kf_features(const kf_descent *d)
{
    return d->r->X.cols;
}

size_t kf_penalised(const kf_descent *d)
{
    return d->r->X.cols - d->r->opt.intercept;
}

double kf_dot(const double *x, const double *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* ---- rounds -------------------------------------------------------------- */

void kf_add_report(kofn_report *sum, const kofn_report *r)
{
    kofn_report was = *sum;

    *sum = *r;
    sum->rounds += was.rounds;
    sum->took += was.took;
    sum->encoding += was.encoding;
    sum->waiting += was.waiting;
    sum->decoding += was.decoding;
    sum->noise = was.noise > r->noise ? was.noise : r->noise;
    sum->predicted =
        was.predicted > r->predicted ? was.predicted : r->predicted;
    sum->joined += was.joined;
    sum->left += was.left;
    sum->late += was.late;
    sum->dropped += was.dropped;
    sum->messages += was.messages;
    sum->scalars += was.scalars;
    sum->corrupt += was.corrupt;
    sum->sent += was.sent;
    sum->received += was.received;
    sum->floor = was.floor > r->floor ? was.floor : r->floor;
}

/* An answer in part has NaN where there was nobody to answer, unless the
 * scheme makes the best of what there is: then there are numbers throughout. */
static bool has_holes(const kofn_matrix *a)
{
    const double *x = a->data;
    bool holes = false;

    for (size_t i = 0; i < a->rows * a->cols; i++)
        holes |= isnan(x[i]);
    return holes;
}

/* With a look at the watch now and then. */
static kofn_status round_of(kf_descent *d, bool left, const kofn_matrix *in,
                            kofn_matrix *out)
{
    const kofn_regress_options *o = &d->r->opt;
    kofn_report rep = {0};
    kofn_status st;

    TRY(left ? kofn_begin_left(d->job, in, out)
             : kofn_begin(d->job, in, out));
    do {
        st = kofn_pump(d->job, o->watch ? TENTH : KOFN_NEVER, &rep);
        if (st == KOFN_AGAIN && o->watch && o->watch(o->watch_ud, &d->now, NULL))
            return KOFN_AGAIN;
    } while (st == KOFN_AGAIN);
    if (st == KOFN_PARTIAL && has_holes(out))
        return kf_fail(KOFN_TOOFEW, "a descent needs the whole gradient; "
                       "degraded answers do not serve it");
    if (st < 0)
        return st;
    d->partial |= st == KOFN_PARTIAL;
    d->weights = rep.weights;
    d->parts = rep.parts;
    d->remembers = rep.ages != NULL;
    kf_add_report(&d->sum, &rep);
    return KOFN_OK;
}

static kofn_matrix column(const double *x, size_t n)
{
    return (kofn_matrix){(void *)(uintptr_t)x, n, 1, 1, KOFN_F64};
}

static kofn_matrix row(const double *x, size_t n)
{
    return (kofn_matrix){(void *)(uintptr_t)x, 1, n, n, KOFN_F64};
}

/* ---- two products -------------------------------------------------------- */

kofn_status kf_margins(kf_descent *d, const double *v, double *out)
{
    const kofn_matrix *X = &d->r->X;
    kofn_matrix in = column(v, X->cols), to = column(out, X->rows);

    return d->job ? round_of(d, false, &in, &to)
                  : kofn_product_plain(X, &in, &to);
}

/* out = X' z */
static kofn_status back(kf_descent *d, const double *z, double *out)
{
    const kofn_matrix *X = &d->r->X;
    kofn_matrix in = row(z, X->rows), to = row(out, X->cols);

    return d->job ? round_of(d, true, &in, &to)
                  : kofn_product_plain(&in, X, &to);
}

kofn_status kf_limit(kf_descent *d, kf_some which)
{
    size_t strips = d->job ? d->r->strips : 0;
    bool some = which.of == strips;

    return strips ? kofn_limit(d->job, some ? which.lo : 0,
                               some ? which.hi : strips)
                  : KOFN_OK;
}

static kofn_status by_products(kf_descent *d, const double *w, kf_some which,
                               double *F)
{
    const kofn_regression *r = d->r;
    size_t m = r->X.rows;

    TRY(kf_limit(d, which));
    TRY(kf_margins(d, w, d->margin));
    memset(d->z, 0, m * sizeof *d->z);
    for (size_t k = 0; k < m; k += which.of)
        for (size_t i = k + which.lo; i < kf_min(k + which.hi, m); i++)
            *F += kf_loss(r->opt.loss, d->margin[i], r->y[i], &d->z[i]);
    return back(d, d->z, d->g);
}

/* ---- X' X w -------------------------------------------------------------- */

static kofn_status by_gram(kf_descent *d, const double *w, double *F)
{
    const kofn_regression *r = d->r;
    size_t n = r->X.cols;
    kofn_matrix in = column(w, n), out = column(d->g, n);
    kofn_status st = round_of(d, false, &in, &out);

    if (st)
        return st;
    *F = (kf_dot(w, d->g, n) - 2 * kf_dot(w, r->Xy, n) + r->yy) / 2;
    for (size_t i = 0; i < n; i++)
        d->g[i] -= r->Xy[i];
    return KOFN_OK;
}

/* ---- sums over parts ----------------------------------------------------- */

/* Some rows at a time, which are still in the cache for their second use. */
#define CACHED ((size_t)256 << 10)

/* Points first, first + step, ... below `end`. */
typedef struct every {
    size_t first, step, end;
} every;

/* They are rows of X, and a view of it.  Where there are no two of them the
 * step may reach far beyond it. */
static kofn_matrix rows_of(const kofn_matrix *X, every p)
{
    size_t n = p.first < p.end ? kf_ceil_div(p.end - p.first, p.step) : 0;

    return (kofn_matrix){(double *)X->data + (n ? p.first : 0) * X->ld, n,
                         X->cols, (n > 1 ? p.step : 1) * X->ld, KOFN_F64};
}

/* Of a part's points those asked for: all, or those of a batch, which is the
 * same on every worker. */
static every points_of(size_t first, size_t count, double batches, double what)
{
    size_t step = what > 0 ? (size_t)batches : 1;
    size_t batch = what > 0 ? (size_t)what - 1 : 0;

    return (every){(batch + step - first % step) % step, step, count};
}

/* out += the gradient of these points, and their loss behind it; room: as
 * many as there are of them, and n. */
static kofn_status add_points(const kofn_rows *part, kofn_loss loss, bool gram,
                              every which, const double *w, double *out,
                              double *space)
{
    kofn_matrix rows = rows_of(&part->X, which);
    size_t n = rows.cols;
    double *z = space, *g = space + rows.rows;
    kofn_matrix in = column(w, n), margins = column(z, rows.rows);
    kofn_matrix derivatives = row(z, rows.rows), to = row(g, n);

    TRY(kofn_product_plain(&rows, &in, &margins));
    for (size_t k = 0; k < rows.rows && !gram; k++)
        out[n] += kf_loss(loss, z[k], part->y[which.first + k * which.step],
                          &z[k]);
    TRY(kofn_product_plain(&derivatives, &rows, &to));
    for (size_t j = 0; j < n; j++)
        out[j] += g[j];
    return KOFN_OK;
}

/* What is asked for by whoever it is. */
static kofn_status check_gradient(const double *arg, const kofn_matrix *X,
                                  const kofn_matrix *in, const kofn_matrix *out)
{
    size_t n = X->cols;
    double what;

    if (in->rows != n + 1 || in->cols != 1 || out->rows != n + 1)
        return kf_fail(KOFN_SHAPE, "the gradient over rows of %zu numbers "
                       "makes %zu numbers of %zu, not %zu of %zu", n, n + 1,
                       n + 1, out->rows, in->rows * in->cols);
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

/* arg: the loss, the batches; out: the gradient and the loss. */
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
    space = kf_new(most + n, sizeof *space);
    if (!space)
        return KOFN_NOMEM;
    while (all.first < all.end && !st) {
        every some = all;

        some.end = kf_min(all.end, all.first + most * all.step);
        st = add_points(part, (kofn_loss)arg[0], what == KF_GRAM, some, w, sum,
                        space);
        all.first += most * all.step;
    }
    if (what == KF_OFFSET)
        sum[n] -= kf_dot(sum, w, n);
    kf_free(space);
    return st;
}

const kofn_formula kofn_formulas[] = {{"loss-gradient", loss_gradient},
                                      {NULL, NULL}};

void kf_gradient_args(const kofn_regression *r, double arg[KOFN_FORMULA_ARGS])
{
    memset(arg, 0, KOFN_FORMULA_ARGS * sizeof *arg);
    arg[0] = r->opt.loss;
    arg[1] = r->opt.batches;
}

static size_t begin_of(const kofn_regression *r, size_t part, size_t parts)
{
    return part * r->X.rows / parts;
}

kofn_status kf_gradient_of_part(const kofn_regression *r, size_t part,
                                size_t parts, const kofn_matrix *in,
                                kofn_matrix *out)
{
    size_t from = begin_of(r, part, parts);
    kofn_rows rows = {r->X, r->y + from, from};
    double arg[KOFN_FORMULA_ARGS];

    rows.X.data = (double *)r->X.data + from * r->X.ld;
    rows.X.rows = begin_of(r, part + 1, parts) - from;
    kf_gradient_args(r, arg);
    return loss_gradient(arg, &rows, in, out);
}

static kofn_status sum_round(kf_descent *d, const double *v, double what)
{
    size_t n = kf_features(d);
    kofn_matrix in = column(d->in, n + 1), out = column(d->out, n + 1);

    memcpy(d->in, v, n * sizeof *v);
    d->in[n] = what;
    return d->failing ? kf_failing_sum(d->failing, &in, &out)
                      : round_of(d, false, &in, &out);
}

/* By how much the points of the sum are outnumbered by all of them. */
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

static kofn_status by_sum(kf_descent *d, const double *w, kf_some which,
                          double *F)
{
    size_t n = kf_features(d);
    double what = which.of > 1 ? (double)which.lo + 1
                  : d->remembers ? KF_OFFSET
                                 : 0;
    double more;

    TRY(sum_round(d, w, what));
    if (d->remembers && what > 0)
        return kf_fail(KOFN_UNSUITED, "a scheme that remembers gradients goes "
                       "with descents over all points, not with batches");
    if (d->remembers && what == 0) { /* as is known now */
        what = KF_OFFSET;
        TRY(sum_round(d, w, what));
    }
    memcpy(d->g, d->out, n * sizeof *d->g);
    more = outnumbered(d, what);
    *F = d->out[n] + (what == KF_OFFSET ? kf_dot(d->g, w, n) : 0);
    *F *= more;
    for (size_t j = 0; j < n && more != 1; j++)
        d->g[j] *= more;
    return KOFN_OK;
}

/* ---- any way ------------------------------------------------------------- */

kofn_status kf_gradient_at(kf_descent *d, const double *w, kf_some which,
                           double *F)
{
    size_t n = kf_features(d), ridged = kf_penalised(d);
    double count = (double)kf_count(which, d->r->X.rows);
    double ridge = d->r->opt.ridge;
    kofn_status st;

    *F = 0;
    st = d->op == KOFN_GRAM  ? by_gram(d, w, F)
         : d->op == KOFN_SUM ? by_sum(d, w, which, F)
                             : by_products(d, w, which, F);
    if (st == KOFN_NONFINITE)
        return kf_fail_in(st, "iteration %u: the loss is not finite; the step "
                          "was too long", d->now.iteration);
    if (st)
        return st;
    *F = *F / count + ridge / 2 * kf_dot(w, w, ridged);
    for (size_t j = 0; j < n; j++)
        d->g[j] = d->g[j] / count + (j < ridged ? ridge * w[j] : 0);
    if (!(*F - *F == 0))
        return kf_fail(KOFN_NONFINITE, "iteration %u: the loss is not finite; "
                       "the step was too long", d->now.iteration);
    return KOFN_OK;
}

/* On this thread. */
static kofn_status gram_plain(const kf_descent *d, const double *v,
                              double *out)
{
    const kofn_matrix *X = &d->r->X;
    double *z = kf_new(X->rows, sizeof *z);
    kofn_matrix in = column(v, X->cols), to = row(out, X->cols);
    kofn_matrix margins = column(z, X->rows), back = row(z, X->rows);
    kofn_status st = KOFN_NOMEM;

    if (z)
        st = kofn_product_plain(X, &in, &margins);
    if (!st)
        st = kofn_product_plain(&back, X, &to);
    kf_free(z);
    return st;
}

kofn_status kf_gram(kf_descent *d, const double *v, double *out)
{
    size_t n = kf_features(d);
    kofn_matrix in = column(v, n), to = column(out, n);
    kofn_status st;

    if (d->op == KOFN_GRAM)
        return round_of(d, false, &in, &to);
    if (d->op == KOFN_SUM && d->remembers) /* of gradients only */
        return gram_plain(d, v, out);
    if (d->op == KOFN_SUM) {
        st = sum_round(d, v, KF_GRAM);
        if (!st)
            memcpy(out, d->out, n * sizeof *out);
        return st;
    }
    st = kf_limit(d, KF_ALL);
    if (!st)
        st = kf_margins(d, v, d->z);
    return st ? st : back(d, d->z, out);
}
