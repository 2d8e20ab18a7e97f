/* product.c -- product codes (Lee, Suh, Ramchandran, "High-dimensional coded
 * matrix multiplication", 2017).
 *
 * An (m2, m) code encodes the row blocks of A and a (p2, p) code the column
 * blocks of B.  Seat (i, k) multiplies coded block i with coded block k.  The
 * results form a grid.  Its columns are words of the first code and its rows
 * words of the second.  So any loss of fewer than (m2-m+1) (p2-p+1) results can
 * be repaired, and often larger ones.  Any set that determines the answer is
 * decoded by least squares from all results.  This covers all sets that
 * peeling, by columns and rows in turn, can decode.
 *
 * A's side uses quaternions, the default "any k of n" code.  B's side has to be
 * real, because coefficients on both sides of a product must commute.
 *
 * Its state, the code of B's side, belongs to the layout.  Shared code finds
 * which answers decode. */
#include "schemes.h"
#include "systematic.h"

static const kofn_param params[] = {
    {"m", KOFN_AUTO, 1, 10000,
     "row blocks of A; auto: of every 8 coded ones, or fewer, one is spare", 0},
    {"m2", KOFN_AUTO, 1, 1000000,
     "coded row blocks; auto: of m2 p2 = workers the nearest to a square", 0},
    {"p", KOFN_AUTO, 1, 10000, "column blocks of B; auto: as m", 0},
    {"p2", KOFN_AUTO, 1, 1000000, "coded column blocks; auto: as m2", 0},
    {0},
};

typedef struct sizes {
    size_t m, m2, p, p2;
} sizes;

static sizes sizes_of(const kofn_layout *L)
{
    return (sizes){(size_t)kofn_arg(L, "m"), (size_t)kofn_arg(L, "m2"),
                   (size_t)kofn_arg(L, "p"), (size_t)kofn_arg(L, "p2")};
}

static size_t without_spare(size_t n)
{
    return n > 1 ? n - (n + 7) / 8 : n;
}

static void choose_sizes(const kofn_layout *L)
{
    size_t n = L->workers;
    long m2 = kofn_arg(L, "m2");

    if (L->problem.p == 1)
        kf_code_default(L, "p2", 1);
    kf_code_default(L, "p2",
                    m2 == KOFN_AUTO ? kf_schemes_divisor(n) : n / (size_t)m2);
    kf_code_default(L, "m2", n / sizes_of(L).p2);
    kf_code_default(L, "m", without_spare(sizes_of(L).m2));
    kf_code_default(L, "p", without_spare(sizes_of(L).p2));
}

static kofn_status check(const kofn_layout *L, const sizes *s)
{
    size_t n = L->workers;

    if (s->m2 * s->p2 != n)
        return kofn_say(KOFN_INVAL,
                        "product: m2 = %zu times p2 = %zu is %zu and not "
                        "the %zu workers; %zu x %zu would fit, or %zu "
                        "workers",
                        s->m2, s->p2, s->m2 * s->p2, n,
                        n / kf_schemes_divisor(n), kf_schemes_divisor(n),
                        s->m2 * s->p2);
    if (s->m > s->m2)
        return kofn_say(KOFN_INVAL,
                        "product: m = %zu blocks in m2 = %zu coded ones; "
                        "ask for m <= %zu",
                        s->m, s->m2, s->m2);
    if (s->p > s->p2)
        return kofn_say(KOFN_INVAL,
                        "product: p = %zu blocks in p2 = %zu coded ones; "
                        "ask for p <= %zu",
                        s->p, s->p2, s->p2);
    if (L->problem.op == KOFN_MATVEC && s->p2 > 1)
        return kofn_say(KOFN_INVAL,
                        "product: p2 = %zu, but the input of a matvec is "
                        "one column; ask for p2 = 1 or use matmul",
                        s->p2);
    return KOFN_OK;
}

static kofn_status layout(kofn_layout *L)
{
    sizes s;

    choose_sizes(L);
    s = sizes_of(L);
    TRY(check(L, &s));
    L->seats = L->max_seats = s.m2 * s.p2;
    L->enough = s.m * s.p;
    L->threshold = L->seats - (s.m2 - s.m + 1) * (s.p2 - s.p + 1) + 1;
    L->components = 4;
    L->cut[0].rows = L->grid_rows = 4 * s.m;
    L->cut[1].cols = s.p;
    L->symbols = L->wants = 4 * s.m * s.p;
    L->free_state = kofn_free;
    return kf_schemes_systematic(s.p2, s.p, L->seed, &L->state);
}

/* Makes the rows of seat (i, k), which has the number i + m2 k. */
static kofn_status seat(const kofn_layout *L, size_t at, double *E0, double *E1,
                        double *G)
{
    sizes s = sizes_of(L);
    kf_family rows = {KF_BASIS_QUATERNION, s.m2, s.m, 0, L->seed, NULL};

    kf_basis_rows(&rows, at % s.m2, E0);
    if (E1)
        kf_schemes_systematic_row(s.p2, s.p, L->state, at / s.m2, E1);
    kf_code_outer(4, 4 * s.m, s.p, E0, E1, G);
    return KOFN_OK;
}

const kofn_scheme kf_product = {
    .size = sizeof(kofn_scheme),
    .name = "product",
    .summary = "A B, rows of A and columns of B each with a code of their own",
    .cite = "Lee et al. 2017",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = params,
    .layout = layout,
    .seat = seat,
};
