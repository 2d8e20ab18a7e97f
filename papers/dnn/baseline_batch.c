/* baseline_batch.c -- takes a batch through the layers of a baseline:
 * everything but the products, which nodes compute (math/training.md 1 to 5).
 */
#include "dnn/baseline.h"

#include <stdlib.h>
#include <string.h>

/* ---- the order of points ------------------------------------------------- */

#define ROUNDS 8

/* Returns the point, of m, at place i of an epoch (math/training.md 5): a
 * Feistel network, applied again while the result lies beyond the points. */
static size_t point_at(uint64_t seed, uint64_t epoch, size_t i, size_t m)
{
    uint64_t key = kf_mix64(kf_state64(kf_mix64(seed), epoch + 1)), x = i, mask;
    unsigned bits = 1;

    while (bits < 31 && (uint64_t)1 << 2 * bits < m)
        bits++;
    mask = ((uint64_t)1 << bits) - 1;
    do {
        uint64_t left = x >> bits, right = x & mask;

        for (uint64_t k = 1; k <= ROUNDS; k++) {
            uint64_t mixed = kf_mix64(kf_state64(key, k) ^ kf_mix64(right));
            uint64_t next = left ^ (mixed & mask);

            left = right;
            right = next;
        }
        x = left << bits | right;
    } while (x >= m);
    return (size_t)x;
}

/* ---- memory -------------------------------------------------------------- */

static size_t width(const baseline_batch *b, size_t l)
{
    return b->l->shape.widths[l];
}

kofn_status baseline_batch_new(baseline_batch *b, const dnn_lesson *l,
                               const dnn_nodes *nodes)
{
    size_t L = l->shape.layers, deltas[KOFN_NET_MOST + 1] = {0}, all, most = 0;
    double *at;

    *b = (baseline_batch){.l = l, .B = l->opt.batch};
    all = 1;
    for (size_t i = 0; i <= L; i++) {
        b->rows[i] = nodes->n * ceil_div(width(b, i) + 1, nodes->n);
        deltas[i] = nodes->m * ceil_div(width(b, i), nodes->m);
        most = larger(most, larger(b->rows[i], deltas[i]));
        all += b->rows[i] + deltas[i];
    }
    at = b->memory = calloc(all + most, b->B * sizeof *at);
    if (!at)
        return KOFN_NOMEM;
    for (size_t i = 0; i <= L; i++) {
        b->X[i] = at;
        b->D[i] = b->X[i] + b->rows[i] * b->B;
        at = b->D[i] + deltas[i] * b->B;
    }
    b->product = at;
    b->label = at + most * b->B;
    return KOFN_OK;
}

void baseline_batch_free(baseline_batch *b)
{
    free(b->memory);
}

/* ---- steps --------------------------------------------------------------- */

/* Writes the ones for the biases. */
static void put_ones(baseline_batch *b, size_t l)
{
    double *x = b->X[l] + width(b, l) * b->B;

    for (size_t p = 0; p < b->B; p++)
        x[p] = p < b->count;
}

void baseline_batch_load(baseline_batch *b, unsigned step)
{
    const kofn_matrix *X = b->l->X, *y = b->l->y;
    size_t steps = ceil_div(X->rows, b->B), from = step % steps * b->B;

    b->count = smaller(b->B, X->rows - from);
    memset(b->X[0], 0, b->rows[0] * b->B * sizeof *b->X[0]);
    for (size_t p = 0; p < b->count; p++) {
        size_t k = point_at(b->l->opt.seed, step / steps, from + p, X->rows);

        for (size_t j = 0; j < X->cols; j++)
            b->X[0][j * b->B + p] = ((const double *)X->data)[k * X->ld + j];
        if (y)
            b->label[p] = ((const double *)y->data)[k * y->ld];
    }
    put_ones(b, 0);
}

static double sigmoid(double s)
{
    double e = exp(-fabs(s)); /* never overflows */

    return (s > 0 ? 1 : e) / (1 + e);
}

/* Computes the deltas of softmax and cross-entropy at point p from the
 * product. */
static void soften(baseline_batch *b, size_t p)
{
    size_t L = b->l->shape.layers, n = width(b, L);
    double *s = b->product + p, *d = b->D[L] + p, most = s[0], sum = 0;

    for (size_t j = 1; j < n; j++)
        most = fmax(most, s[j * b->B]);
    for (size_t j = 0; j < n; j++)
        sum += d[j * b->B] = exp(s[j * b->B] - most);
    for (size_t j = 0; j < n; j++)
        d[j * b->B] =
            (d[j * b->B] / sum - (j == (size_t)b->label[p])) / (double)b->count;
}

void baseline_batch_forward(baseline_batch *b, size_t l)
{
    size_t L = b->l->shape.layers;
    bool softmax = l == L && b->l->shape.loss == KOFN_NET_LOSS_SOFTMAX;

    for (size_t j = 0; j < width(b, l) && !softmax; j++)
        for (size_t p = 0; p < b->B; p++) {
            size_t i = j * b->B + p;
            double x = p < b->count ? sigmoid(b->product[i]) : 0;

            b->X[l][i] = x;
            if (l == L) /* an autoencoder's targets are the points */
                b->D[L][i] = (x - b->X[0][i]) * x * (1 - x) / (double)b->count;
        }
    for (size_t p = 0; p < b->B && softmax; p++)
        if (p < b->count)
            soften(b, p);
        else
            for (size_t j = 0; j < width(b, L); j++)
                b->D[L][j * b->B + p] = 0;
    put_ones(b, l);
}

/* Returns the derivative of the sparsity penalty by unit j at one point. */
static double pull(const baseline_batch *b, size_t j)
{
    double rho = b->l->shape.sparsity, r = 0;

    if (b->l->shape.sparsity_weight == 0)
        return 0;
    for (size_t p = 0; p < b->count; p++)
        r += b->X[1][j * b->B + p] / (double)b->count;
    r = fmin(fmax(r, 1e-6), 1 - 1e-6);
    return b->l->shape.sparsity_weight * ((1 - rho) / (1 - r) - rho / r) /
           (double)b->count;
}

void baseline_batch_back(baseline_batch *b, size_t l)
{
    for (size_t j = 0; j < width(b, l - 1); j++) {
        double more = pull(b, j);

        for (size_t p = 0; p < b->B; p++) {
            size_t i = j * b->B + p;
            double x = b->X[l - 1][i];

            b->D[l - 1][i] =
                p < b->count ? (b->product[i] + more) * x * (1 - x) : 0;
        }
    }
}
