/* published.c -- any k of n over the reals, by coefficients of publications,
 * for comparison.  Noise grows much faster with n than by the coefficients of
 * mds (docs/numerics.md).
 *
 *     chebyshev    T_0 .. T_{k-1} at Chebyshev points (Fahim, Cadambe,
 *                  "Numerically stable polynomially coded computing", 2019)
 *     monomial     powers of the same points
 *     cauchy       the parts, and then sums with 1 / (i - j)
 *     vandermonde  powers of 1 .. n
 *
 * A is cut into k row blocks, and the first k answers to a strip decode it.
 *
 * Owns nothing: rows go into the caller's memory. */
#include "code/author.h"
#include "schemes.h"

enum { CHEBYSHEV, MONOMIAL, CAUCHY, VANDERMONDE };

static const kofn_param params[] = {
    {"k", KOFN_AUTO, 1, 100000, "threshold: any k answers are enough", NULL},
    {"basis", CHEBYSHEV, 0, 0, "family of coefficients",
     "chebyshev|monomial|cauchy|vandermonde"},
    {0},
};

static kofn_status layout(kofn_layout *L)
{
    size_t n = L->workers;

    kf_code_default(L, "k", n - kf_code_spare(n));
    L->enough = (size_t)kofn_arg(L, "k");
    if (L->enough > n)
        return kofn_say(KOFN_INVAL,
                        "mds-published: k = %zu exceeds the %zu workers; ask "
                        "for k <= %zu or for more workers",
                        L->enough, n, n);
    L->seats = L->max_seats = n;
    L->cut[0].rows = L->enough;
    return KOFN_OK;
}

static void powers(double x, size_t k, double *row)
{
    row[0] = 1;
    for (size_t j = 1; j < k; j++)
        row[j] = row[j - 1] * x;
}

static void cauchy(size_t seat, size_t k, double *row)
{
    for (size_t j = 0; j < k; j++)
        row[j] = seat < k || k == 1 ? j == seat || k == 1
                                    : 1 / ((double)seat - (double)j);
}

static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    size_t k = L->enough;

    (void)E1;
    (void)G;
    switch (kofn_arg(L, "basis")) {
    case CHEBYSHEV:
        kf_code_chebyshev_row(kf_code_chebyshev_point(i, L->seats), k, E0);
        break;
    case MONOMIAL:
        powers(kf_code_chebyshev_point(i, L->seats), k, E0);
        break;
    case CAUCHY:
        cauchy(i, k, E0);
        break;
    default:
        powers((double)i + 1, k, E0);
    }
    return KOFN_OK;
}

const kofn_scheme kf_mds_published = {
    .size = sizeof(kofn_scheme),
    .name = "mds-published",
    .summary = "any k of n answers, by published coefficients",
    .cite = "Fahim, Cadambe 2019, arXiv:1903.08326",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = params,
    .layout = layout,
    .seat = seat,
};
