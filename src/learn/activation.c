/* activation.c -- activation functions and their slopes, a row at a time, many
 * units at once.
 *
 * The exponential of a sigmoid is a polynomial. So the bits of a result do not
 * depend on the processor, its vector units or its mathematical library.
 *
 * Owns and allocates nothing. */
#include "decay.h"
#include "net.h"

#include "base/vectors.h"

#include <math.h>

KF_VECTORS(optimize("O3"))
static void sigmoid(double *x, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        double e = kf_decay(-fabs(x[j])); /* never overflows */

        x[j] = (x[j] > 0 ? 1 : e) / (1 + e);
    }
}

void kf_activation_apply(kofn_activation f, double *x, size_t n)
{
    switch (f) {
    case KOFN_SIGMOID:
        sigmoid(x, n);
        return;
    case KOFN_TANH:
        for (size_t j = 0; j < n; j++)
            x[j] = tanh(x[j]);
        return;
    case KOFN_RELU:
        for (size_t j = 0; j < n; j++)
            x[j] = x[j] < 0 ? 0 : x[j];
        return;
    case KOFN_LINEAR:
        return;
    }
}

KF_VECTORS(optimize("O3"))
void kf_activation_slope(kofn_activation f, const double *x, double *d,
                         size_t n)
{
    switch (f) {
    case KOFN_SIGMOID:
        for (size_t j = 0; j < n; j++)
            d[j] *= x[j] * (1 - x[j]);
        return;
    case KOFN_TANH:
        for (size_t j = 0; j < n; j++)
            d[j] *= 1 - x[j] * x[j];
        return;
    case KOFN_RELU:
        for (size_t j = 0; j < n; j++)
            d[j] *= x[j] > 0;
        return;
    case KOFN_LINEAR:
        return;
    }
}
