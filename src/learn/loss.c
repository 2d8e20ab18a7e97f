/* loss.c -- losses of generalised linear models, by point (math/elastic.md 11).
 *
 * Owns nothing: pure functions of one point.  No loss may be known anywhere
 * else.
 */
#include "regress.h"

#include <math.h>

double kf_loss(kofn_loss loss, double t, double y, double *z)
{
    double e;

    switch (loss) {
    case KOFN_LOSS_LOGISTIC: /* e never overflows */
        e = exp(-fabs(t));
        *z = (t > 0 ? 1 : e) / (1 + e) - y;
        return log1p(e) + (t > 0 ? t : 0) - y * t;
    case KOFN_LOSS_POISSON:
        e = exp(t);
        *z = e - y;
        return e - y * t;
    default:
        *z = t - y;
        return *z * *z / 2;
    }
}

double kf_loss_second(kofn_loss loss, double t)
{
    double e;

    if (loss == KOFN_LOSS_SQUARES)
        return 1;
    if (loss == KOFN_LOSS_POISSON)
        return exp(t);
    e = exp(-fabs(t));
    return e / ((1 + e) * (1 + e));
}

double kf_loss_curvature(kofn_loss loss)
{
    return loss == KOFN_LOSS_SQUARES    ? 1
           : loss == KOFN_LOSS_LOGISTIC ? 0.25
                                        : 0;
}

/* -1 and 1 are 0 and 1 by other names: log(1 + e^(-y t)) is the same loss. */
static kofn_status logistic_labels(double *y, size_t n, const char *name)
{
    bool zero = false, minus = false;

    for (size_t i = 0; i < n; i++) {
        if (y[i] != 0 && y[i] != 1 && y[i] != -1)
            return kf_fail(KOFN_INVAL,
                           "%s[%zu] = %g; labels of logistic "
                           "regression are 0 and 1, or -1 and 1",
                           name, i, y[i]);
        zero |= y[i] == 0;
        minus |= y[i] == -1;
    }
    if (zero && minus)
        return kf_fail(KOFN_INVAL,
                       "%s has labels 0 and -1; labels of logistic "
                       "regression are 0 and 1, or -1 and 1",
                       name);
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] == 1;
    return KOFN_OK;
}

kofn_status kf_loss_labels(kofn_loss loss, const kofn_matrix *y,
                           const char *name, double *out)
{
    const double *data = y->data;

    for (size_t i = 0; i < y->rows; i++) {
        out[i] = data[i * y->ld];
        if (!(out[i] - out[i] == 0))
            return kf_fail(KOFN_NONFINITE, "%s[%zu] is NaN or infinite", name,
                           i);
        if (loss == KOFN_LOSS_POISSON && out[i] < 0)
            return kf_fail(KOFN_INVAL,
                           "%s[%zu] = %g; counts of Poisson "
                           "regression are not negative",
                           name, i, out[i]);
    }
    return loss == KOFN_LOSS_LOGISTIC ? logistic_labels(out, y->rows, name)
                                      : KOFN_OK;
}
