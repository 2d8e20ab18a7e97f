/* systematic.c -- real any-k-of-n codes that keep the parts as they are.
 *
 * Owns nothing; rows go into the caller's memory. */
#include "systematic.h"

#include <math.h>

kofn_status kf_schemes_systematic(size_t n, size_t k, uint64_t seed,
                                  void **state)
{
    return kf_basis_prepare(KF_BASIS_HAAR, n, k, seed, state);
}

/* Writes row i.  One parity row is the sum of the parts.  With two, the
 * two coefficients of a part are the cosine and sine of an angle.  The angles
 * of the parts, with 0 and 90 degrees, are evenly spread over the half circle,
 * which is optimal; one angle stays unused if k is odd.  With more, the rows
 * are a random slice of an orthogonal matrix. */
void kf_schemes_systematic_row(size_t n, size_t k, const void *state, size_t i,
                               double *row)
{
    size_t q = k % 2 ? k + 3 : k + 2;

    if (i < k || n - k > 2) {
        kf_basis_rows(&(kf_family){KF_BASIS_HAAR, n, k, 0, 0, state}, i, row);
        return;
    }
    for (size_t j = 0; j < k; j++) {
        size_t t = j + 1 < q / 2 ? j + 1 : j + 2;
        double c, d;

        kf_code_cossin(t, 2 * q, &c, &d);
        row[j] = n - k == 1 ? sqrt(1 / (double)k)
                            : sqrt(2 / (double)k) * (i == k ? c : d);
    }
}

size_t kf_schemes_divisor(size_t n)
{
    size_t best = 1;

    for (size_t d = 1; d * d <= n; d++)
        if (n % d == 0)
            best = d;
    return best;
}
