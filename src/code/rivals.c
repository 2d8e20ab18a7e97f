/* rivals.c -- the nodes that together come nearest to a vector of parities.
 *
 * The search is greedy, not exhaustive: each step takes the node that removes
 * most of the remaining vector.
 *
 * The result is an estimate; no verdict may rest on it alone. */
#include "syndrome.h"

#include "base/vectors.h"

#include <assert.h>

/* A direction with less length than this left depends on the others. */
#define DEPENDENT 1e-10

/* ---- orthonormal sets ---------------------------------------------------- */

/* Repeats if little is left, to remove rounding. */
KF_VECTORS()
double kf_rivals_take_out(const double *Q, size_t n, size_t len, double *v)
{
    double was = kf_code_dot(v, v, len), is = was;

    assert(n <= len);
    for (int pass = 0; pass < 2 && n > 0; pass++) {
        for (size_t i = 0; i < n; i++)
            kf_axpy(len, -kf_code_dot(Q + i * len, v, len), Q + i * len, v);
        is = kf_code_dot(v, v, len);
        if (is > 0.25 * was)
            break;
    }
    return sqrt(is);
}

size_t kf_rivals_add(double *Q, size_t n, size_t len, const double *v)
{
    double *to = Q + n * len, was = kf_code_length(v, len), is;

    assert(n <= len);
    memcpy(to, v, len * sizeof *v);
    is = kf_rivals_take_out(Q, n, len, to);
    if (!(is > DEPENDENT * was))
        return n;
    for (size_t k = 0; k < len; k++)
        to[k] /= is;
    return n + 1;
}

/* ---- nodes --------------------------------------------------------------- */

void kf_rivals_new(kf_rivals *r, kf_arrays *a, size_t nodes, size_t components,
                   size_t q)
{
    assert(components > 0);
    *r = (kf_rivals){.nodes = nodes, .components = components, .q = q};
    r->H = kf_arrays_new(a, nodes * components * q, sizeof *r->H);
    r->W = kf_arrays_new(a, nodes * components * q, sizeof *r->W);
    r->owned = kf_arrays_new(a, (components + 1) * q, sizeof *r->owned);
    r->used = kf_arrays_new(a, nodes, 1);
}

void kf_rivals_of(kf_rivals *r, size_t q, const double *H, size_t ld)
{
    assert(r->nodes * r->components <= ld);
    r->q = q;
    for (size_t j = 0; j < r->nodes * r->components; j++)
        for (size_t i = 0; i < q; i++)
            r->H[j * q + i] = H[i * ld + j];
}

void kf_rivals_begin(kf_rivals *r)
{
    memcpy(r->W, r->H, r->nodes * r->components * r->q * sizeof *r->W);
    memset(r->used, 0, r->nodes);
}

const double *kf_rivals_column(const kf_rivals *r, size_t node,
                               size_t component)
{
    assert(node < r->nodes);
    assert(component < r->components);
    return r->H + (node * r->components + component) * r->q;
}

size_t kf_rivals_directions(double *Q, size_t n, size_t len, const double *W,
                            size_t columns)
{
    assert(n <= len);
    for (const double *w = W; w < W + columns * len; w += len)
        if (n < len && kf_code_dot(w, w, len) > DEPENDENT * DEPENDENT)
            n = kf_rivals_add(Q, n, len, w);
    return n;
}

/* Makes an orthonormal basis of the remaining columns of a node. */
static size_t own_directions(kf_rivals *r, size_t node)
{
    assert(node < r->nodes);
    return kf_rivals_directions(
        r->owned, 0, r->q, r->W + node * r->components * r->q, r->components);
}

size_t kf_rivals_next(kf_rivals *r, const double *g)
{
    size_t best = r->nodes;
    double most = 0;

    for (size_t i = 0; i < r->nodes; i++) {
        size_t n = r->used[i] ? 0 : own_directions(r, i);
        double all = 0;

        for (size_t k = 0; k < n; k++) {
            double d = kf_code_dot(r->owned + k * r->q, g, r->q);

            all += d * d;
        }
        if (all > most) {
            most = all;
            best = i;
        }
    }
    return best;
}

size_t kf_rivals_strike(kf_rivals *r, size_t node, double *g)
{
    size_t n = own_directions(r, node);

    r->used[node] = 1;
    kf_rivals_take_out(r->owned, n, r->q, g);
    for (size_t j = 0; j < r->nodes; j++)
        for (size_t l = 0; l < r->components && !r->used[j]; l++)
            kf_rivals_take_out(r->owned, n, r->q,
                               r->W + (j * r->components + l) * r->q);
    return n;
}
