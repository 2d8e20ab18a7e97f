/* gradient_paper.c -- gradient codes as they were published.
 *
 *     cyclic      Tandon, Lei, Dimakis, Karampatziakis, "Gradient coding:
 *                 avoiding stragglers in distributed learning", 2017,
 *                 algorithm 2.  Rows of E are in the null space of a random H.
 *     polynomial  Ye, Abbe, "Communication-computation efficient gradient
 *                 coding", 2018, section III.  E has values of polynomials
 *                 that vanish at the seats that do not hold a part.
 *     random      The same paper, section IV, and Cao, Yan, Tang, Han,
 *                 "Adaptive gradient coding", 2021.  E = V S, and S makes E
 *                 vanish at these seats.  The dual M of V (gradient.h) gives
 *                 the same E.
 *
 * Scratch lives for one call.  These codes serve for comparison and have the
 * accuracy of the published constructions. */
#include "gradient.h"

/* ---- null space of a random matrix --------------------------------------- */

/* Copies columns i+1 .. i+s of H to P, and minus column i to b. */
static void window_of(const double *H, size_t s, size_t n, size_t i, double *P,
                      double *b)
{
    for (size_t r = 0; r < s; r++) {
        b[r] = -H[r * n + i];
        for (size_t c = 0; c < s; c++)
            P[r * s + c] = H[r * n + (i + 1 + c) % n];
    }
}

kofn_status kf_gradient_paper_null(size_t n, size_t d, const double *H,
                                   double *E)
{
    size_t s = d - 1;
    double *P = kofn_layout_table(s + 1, s), *b = P + s * s;
    kofn_status st = P ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < n && !st; i++) {
        window_of(H, s, n, i, P, b);
        st = kf_solve(s, P, s, 1, b, 1);
        E[i * n + i] = 1;
        for (size_t c = 0; c < s; c++)
            E[i * n + (i + 1 + c) % n] = b[c];
    }
    kofn_free(P);
    return st;
}

kofn_status kf_gradient_paper_cyclic(size_t n, size_t d, uint64_t seed,
                                     double *E)
{
    double *H = kofn_layout_table(d, n);
    kf_family gauss = {KF_BASIS_GAUSS, n, n - 1, 0, seed, NULL};
    kofn_status st = H ? KOFN_OK : KOFN_NOMEM;

    for (size_t r = 0; r + 1 < d && !st; r++) {
        double *row = H + r * n;

        kf_basis_rows(&gauss, r, row);
        for (size_t c = 0; c + 1 < n; c++)
            row[n - 1] -= row[c];
    }
    if (!st)
        st = kf_gradient_paper_null(n, d, H, E);
    kofn_free(H);
    return st;
}

/* ---- polynomials --------------------------------------------------------- */

/* Returns the value at `at` of p_j, which vanishes at the n-d seats after j.
 * Also computes its coefficients from the highest down: 1, a_1, .. a_m. */
static double vanishing(size_t n, size_t d, size_t j, const double *x,
                        double at)
{
    double p = 1;

    for (size_t q = 1; q + d <= n; q++)
        p *= at - x[(j + q) % n];
    return p;
}

static void leading(size_t n, size_t d, size_t j, const double *x, size_t m,
                    double *a)
{
    memset(a, 0, (m + 1) * sizeof *a);
    a[0] = 1;
    for (size_t q = 1; q + d <= n; q++)
        for (size_t k = m; k > 0; k--)
            a[k] -= x[(j + q) % n] * a[k - 1];
}

/* Computes the q_z of the polynomials p_j q_z of part j: q_z = x q_(z-1) - c.
 * Here c removes the coefficient of x^(n-d).  So of x^(n-d) .. x^(n-d+m-1) each
 * polynomial has exactly one, with coefficient 1. */
static void factors(size_t m, const double *a, double *q)
{
    q[0] = 1; /* q + z m: from the lowest coefficient up */
    for (size_t z = 1; z < m; z++) {
        double *now = q + z * m, *last = now - m;

        for (size_t k = 0; k < z; k++) {
            now[k + 1] = last[k];
            now[0] -= last[k] * a[k + 1];
        }
    }
}

kofn_status kf_gradient_paper_polynomial(size_t n, size_t d, size_t m,
                                         const double *x, double *E)
{
    double *a = kofn_layout_table(m + 2, m + 1), *q = a + m + 1;

    if (!a)
        return KOFN_NOMEM;
    for (size_t j = 0; j < n; j++) {
        leading(n, d, j, x, m, a);
        memset(q, 0, m * m * sizeof *q);
        factors(m, a, q);
        for (size_t b = 0; b < d; b++) {
            size_t i = (j + n - b) % n;
            double p = vanishing(n, d, j, x, x[i]);

            for (size_t z = 0; z < m; z++) {
                double value = 0;

                for (size_t k = z + 1; k-- > 0;)
                    value = value * x[i] + q[z * m + k];
                E[(i * n + j) * m + z] = p * value;
            }
        }
    }
    kofn_free(a);
    return KOFN_OK;
}
