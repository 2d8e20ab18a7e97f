/* predict.c -- predictions of a fitted model, and how well they fit.
 *
 * The score is the explained share: of the squares of y around their mean
 * (R^2), or of the deviance of counts around their mean. For classes it is the
 * share of labels predicted correctly.
 *
 * Writes into the caller's matrix and only reads the model. */
#include "regress.h"
#include "vector.h"

#include "mat/mat.h"

#include <math.h>

/* ---- predictions --------------------------------------------------------- */

/* Checks that w can be the weights of rows with `cols` numbers. */
static kofn_status check_weights(const kofn_matrix *w, size_t cols)
{
    TRY(kf_regress_shape(w, "w"));
    if (w->cols != 1 || (w->rows != cols && w->rows != cols + 1))
        return kf_fail(KOFN_SHAPE,
                       "w is %zu x %zu, and X has %zu columns: w must be %zu x "
                       "1, or %zu x 1 with an intercept at its end",
                       w->rows, w->cols, cols, cols, cols + 1);
    return kf_mat_check_finite(w, "w");
}

/* Computes x . w, plus the intercept if there is one, for every row. */
static kofn_status margins(kofn_operand X, const kofn_matrix *w, double *t)
{
    size_t rows = X.sparse ? X.sparse->rows : X.dense->rows;
    size_t n = X.sparse ? X.sparse->cols : X.dense->cols;
    kofn_matrix in = *w, out = kf_learn_column(t, rows);
    double last = w->rows > n ? kf_mat_entry(w, n, 0) : 0;

    in.rows = n;
    TRY(kofn_product_plain(X, &in, &out));
    for (size_t i = 0; i < rows; i++)
        t[i] += last;
    return KOFN_OK;
}

static double mean_of(kofn_loss loss, double t)
{
    double z;

    kf_loss(loss, t, 0, &z); /* the slope at y = 0 is the mean itself */
    return z;
}

kofn_status kofn_predict(kofn_matrix *out, const kofn_matrix *X,
                         const kofn_matrix *w, kofn_loss loss)
{
    double *t;

    TRY(kf_regress_shape(X, "X"));
    TRY(check_weights(w, X->cols));
    TRY(kf_mat_check_finite(X, "X"));
    TRY(kf_vector_check(out, X->rows, 1, "the predictions"));
    t = out->data;
    TRY(margins(KOFN_DENSE(X), w, t));
    for (size_t i = 0; i < X->rows; i++)
        t[i] = mean_of(loss, t[i]);
    return kf_mat_check_finite(out, "the predictions");
}

/* ---- how well they fit --------------------------------------------------- */

/* A deviance below this share of the point's deviance from a prediction of 0
 * is rounding. */
#define ROUNDING 0x1p-50

/* Returns half of a point's deviance if m is predicted. */
static double deviance(kofn_loss loss, double y, double m)
{
    if (loss == KOFN_LOSS_POISSON)
        return (y > 0 ? y * log(y / m) : 0) - (y - m);
    return (y - m) * (y - m) / 2;
}

/* Returns 1 if only rounding is left of a constant y, else 0, as
 * scikit-learn's r2_score does. */
static double share_of_constant(kofn_loss loss, double left, double y, size_t n)
{
    double size = loss == KOFN_LOSS_POISSON ? y : y * y;

    return left <= ROUNDING * (double)n * size ? 1 : 0;
}

static double share(kofn_loss loss, const double *t, const double *y, size_t n)
{
    double left = 0, all = 0, middle = 0, right = 0;
    bool varies = false;

    for (size_t i = 0; i < n; i++) {
        middle += y[i] / (double)n;
        varies |= y[i] != y[0];
    }
    for (size_t i = 0; i < n; i++) {
        right += (t[i] > 0) == (y[i] > 0.5);
        left += deviance(loss, y[i], mean_of(loss, t[i]));
        all += deviance(loss, y[i], middle);
    }
    if (loss == KOFN_LOSS_LOGISTIC)
        return right / (double)n;
    return varies && all > 0 ? 1 - left / all
                             : share_of_constant(loss, left, y[0], n);
}

static void fit(kofn_fit *f, const double *t, const double *y, size_t n,
                kofn_loss loss)
{
    double z;

    *f = (kofn_fit){0};
    for (size_t i = 0; i < n; i++)
        f->loss += kf_loss(loss, t[i], y[i], &z) / (double)n;
    f->share = share(loss, t, y, n);
}

/* Converts the labels y, one per row of X, to the form that kf_loss uses, and
 * counts them. */
static kofn_status take_points(kofn_operand X, const kofn_matrix *y,
                               const kofn_matrix *w, kofn_loss loss,
                               double **labels, size_t *rows)
{
    if (X.sparse) {
        TRY(kf_mat_check_sparse(X.sparse, "X"));
        TRY(check_weights(w, X.sparse->cols));
        *rows = X.sparse->rows;
        return kf_regress_labels(y, *rows, "X", loss, labels);
    }
    TRY(kf_regress_shape(X.dense, "X"));
    TRY(check_weights(w, X.dense->cols));
    *rows = X.dense->rows;
    return kf_regress_points(X.dense, y, "X", loss, labels);
}

kofn_status kofn_fit_of(kofn_fit *f, kofn_operand X, const kofn_matrix *y,
                        const kofn_matrix *w, kofn_loss loss)
{
    double *labels, *t;
    size_t rows;
    kofn_status st = KOFN_NOMEM;

    *f = (kofn_fit){0};
    TRY(take_points(X, y, w, loss, &labels, &rows));
    t = kf_new(rows, sizeof *t);
    if (t)
        st = margins(X, w, t);
    if (!st)
        fit(f, t, labels, rows, loss);
    kf_free(t);
    kf_free(labels);
    return st;
}
