/* quaternion.c -- matrices that consist of blocks L(q).
 *
 * L(q) is the matrix of the left multiplication by the quaternion q on four
 * numbers.  Its first column is q and determines the other three.  Sums,
 * products and inverses of such matrices again consist of such blocks.  So only
 * the first of every four columns of a product is computed, a fourth of the
 * work.
 *
 * Owns nothing and allocates nothing.  Call it only for a matrix that consists
 * of such blocks. */
#include "code.h"

#include <assert.h>

#define LANES 4

bool kf_code_quaternions(const kf_row *g)
{
    size_t at[LANES] = {0};

    for (;;) {
        double block[LANES][LANES] = {{0}}, q[LANES];
        uint32_t first = UINT32_MAX;

        for (size_t l = 0; l < LANES; l++)
            if (at[l] < g[l].n && g[l].col[at[l]] / LANES < first)
                first = g[l].col[at[l]] / LANES;
        if (first == UINT32_MAX)
            return true;
        for (size_t l = 0; l < LANES; l++)
            while (at[l] < g[l].n && g[l].col[at[l]] / LANES == first) {
                block[l][g[l].col[at[l]] % LANES] = g[l].val[at[l]];
                at[l]++;
            }
        for (size_t l = 0; l < LANES; l++)
            q[l] = block[l][0];
        for (size_t l = 0; l < LANES; l++)
            for (size_t t = 0; t < LANES; t++)
                if (block[l][t] != kf_code_left_entry(q, l, t))
                    return false;
    }
}

bool kf_code_in_fours(const uint32_t *x, size_t n, uint32_t none)
{
    bool fours = n % LANES == 0;

    for (size_t i = 0; i < n && fours; i++) {
        uint32_t first = x[i / LANES * LANES];

        fours = first == none ? x[i] == none
                              : first % LANES == 0 && x[i] == first + i % LANES;
    }
    return fours;
}

/* Copies the first of every four columns. */
static void first_components(size_t m, size_t n, const double *A, double *first)
{
    assert(n % LANES == 0);
    for (size_t i = 0; i < m * n; i += LANES)
        *first++ = A[i];
}

void kf_code_all_components(size_t m, size_t n, const double *first, double *A)
{
    size_t blocks = n / LANES;

    assert(m % LANES == 0);
    assert(n % LANES == 0);
    for (size_t i = 0; i < m; i += LANES)
        for (size_t b = 0; b < blocks; b++) {
            double q[LANES];

            for (size_t l = 0; l < LANES; l++)
                q[l] = first[(i + l) * blocks + b];
            for (size_t l = 0; l < LANES; l++)
                for (size_t t = 0; t < LANES; t++)
                    A[(i + l) * n + b * LANES + t] =
                        kf_code_left_entry(q, l, t);
        }
}

kofn_status kf_code_subtract_quaternions(size_t m, size_t k, size_t n,
                                         const double *A, const double *B,
                                         double *C)
{
    size_t blocks = n / LANES;
    double *from = kofn_layout_table(k + m, blocks), *to = from + k * blocks;

    assert(m % LANES == 0);
    assert(k % LANES == 0);
    if (!from)
        return KOFN_NOMEM;
    first_components(k, n, B, from);
    first_components(m, n, C, to);
    kf_code_subtract_product(
        &(kf_difference){m, k, blocks, A, k, from, blocks, to, blocks});
    kf_code_all_components(m, n, to, C);
    kf_free(from);
    return KOFN_OK;
}
