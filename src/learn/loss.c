/* loss.c -- losses of generalised linear models, per point (math/elastic.md
 * 11).
 *
 * Owns nothing: pure functions of one point. No other file knows a loss. */
#include "decay.h"
#include "regress.h"

#include "base/vectors.h"

#include <math.h>

/* Points handled at a time. */
#define TILE ((size_t)256)

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

/* Computes kf_loss for n <= TILE points. */
KF_VECTORS(optimize("O3"))
static void logistic(const double *restrict t, const double *restrict y,
                     size_t n, double *restrict z, double *restrict loss)
{
    for (size_t i = 0; i < n; i++) {
        double e = kf_decay(-fabs(t[i]));

        z[i] = (t[i] > 0 ? 1 : e) / (1 + e) - y[i];
        loss[i] = kf_log_above(e) + (t[i] > 0 ? t[i] : 0) - y[i] * t[i];
    }
}

double kf_loss_sum(kofn_loss loss, const double *t, const double *y,
                   const double *weights, size_t n, double *z)
{
    double one[TILE], slope[TILE], sum = 0;

    for (size_t at = 0; at < n; at += TILE) {
        size_t some = kf_min(TILE, n - at);

        if (loss == KOFN_LOSS_LOGISTIC)
            logistic(t + at, y + at, some, slope, one);
        for (size_t i = 0; i < some && loss != KOFN_LOSS_LOGISTIC; i++)
            one[i] = kf_loss(loss, t[at + i], y[at + i], &slope[i]);
        for (size_t i = 0; i < some && weights; i++) {
            one[i] *= weights[at + i];
            slope[i] *= weights[at + i];
        }
        for (size_t i = 0; i < some; i++)
            sum += one[i];
        memcpy(z + at, slope, some * sizeof *z);
    }
    return sum;
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

/* Accepts labels -1 and 1 for 0 and 1: log(1 + e^(-y t)) is the same loss. */
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
