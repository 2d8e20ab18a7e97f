/* hidden.c -- bounds the errors of the output that parities do not show.
 *
 * If the results of the nodes U are wrong, their parities are H_U E_U.  If
 * these are below a level, the error of the output,
 *
 *     D_U E_U = (D_U H_U^+) (H_U E_U),
 *
 * is at most |D_U H_U^+| times that level.  U may be any set of few nodes.  All
 * sets are tried if that is affordable.  Else the search starts with the nodes
 * that hide most alone, and adds the nodes that increase this most.
 *
 * Owns its scratch within a call.  A promise rests on the bound: it should
 * never be too small, but may be too large. */
#include "syndrome.h"

#include <assert.h>

/* Number of starting nodes, those that hide most alone. */
#define STARTS 4
/* Multiply-adds for trying all sets: some milliseconds, once for each survivor
 * set. */
#define TRYING_ALL 2e7

typedef struct hidden {
    kf_rivals rivals;
    const double
        *D; /* wants x (nodes components); NULL: the results themselves */
    size_t wants, q;
    uint32_t *U;
    double *Q, *R, *z, *g, *alone;
} hidden;

static double entry(const hidden *h, size_t want, size_t result)
{
    size_t results = h->rivals.nodes * h->rivals.components;

    assert(result < results);
    return h->D ? h->D[want * results + result] : want == result;
}

/* Extends the factorization H_U = Q R by node U[n].  A row of D_U H_U^+ has the
 * length of z, with z R = D_U.  False if the columns are dependent: the
 * parities do not see all errors of U. */
static bool extend(hidden *h, size_t n)
{
    size_t components = h->rivals.components, q = h->q;

    for (size_t i = n * components; i < (n + 1) * components; i++) {
        const double *c = kf_rivals_column(&h->rivals, h->U[n], i % components);

        if (i == q || kf_rivals_add(h->Q, i, q, c) == i)
            return false;
        for (size_t k = 0; k <= i; k++) /* one column after the other */
            h->R[i * q + k] = kf_code_dot(h->Q + k * q, c, q);
        for (size_t w = 0; w < h->wants; w++) {
            double *z = h->z + w * q;

            z[i] = entry(h, w, h->U[n] * components + i % components) -
                   kf_code_dot(z, h->R + i * q, i);
            z[i] /= h->R[i * q + i];
        }
    }
    return true;
}

/* Returns the largest |row of D_U H_U^+| over the rows of D, which are the
 * wanted parts.  U: the first n nodes. */
static double gain(const hidden *h, size_t n)
{
    assert(n <= h->rivals.nodes);
    double worst = 0;

    for (size_t w = 0; w < h->wants; w++)
        worst = fmax(worst, kf_code_dot(h->z + w * h->q, h->z + w * h->q,
                                        n * h->rivals.components));
    return sqrt(worst);
}

/* Returns the worst gain of all sets of up to `few` nodes that start with these
 * n; the other nodes come from `from` on. */
static double worst_set(hidden *h, size_t n, size_t from, size_t few)
{
    double worst = 0;

    assert(n <= few);
    assert(few <= h->rivals.nodes);
    if (n == few)
        return gain(h, n);
    for (size_t i = from; i + few <= h->rivals.nodes + n; i++) {
        h->U[n] = (uint32_t)i;
        worst = fmax(worst,
                     extend(h, n) ? worst_set(h, n + 1, i + 1, few) : HUGE_VAL);
    }
    return worst;
}

/* Estimates the operations of worst_set. */
static double cost(const hidden *h, size_t few)
{
    double components = (double)h->rivals.components, sum = 0;

    for (size_t n = 1; n <= kf_min(few, h->rivals.nodes); n++)
        sum += kf_code_sets(h->rivals.nodes, n) * components * components *
               (double)n * (double)(5 * h->q + 2 * h->wants);
    return sum;
}

/* Starts with a node: g is its component that the parities see least.  Other
 * nodes are then chosen that come nearest to g. */
static void start(hidden *h, uint32_t node)
{
    const kf_rivals *r = &h->rivals;
    double least = HUGE_VAL;

    h->U[0] = node;
    for (size_t l = 0; l < r->components; l++) {
        const double *c = kf_rivals_column(r, node, l);

        if (kf_code_dot(c, c, h->q) >= least)
            continue;
        least = kf_code_dot(c, c, h->q);
        memcpy(h->g, c, h->q * sizeof *c);
    }
}

/* Starts with the node that hides most alone and returns the gain of the set.
 */
static double hide_behind(hidden *h, size_t few)
{
    kf_rivals *r = &h->rivals;
    uint32_t node = 0;
    size_t n = 1;

    assert(few > 0);
    assert(few <= r->nodes);
    for (uint32_t i = 1; i < r->nodes; i++)
        if (h->alone[i] > h->alone[node])
            node = i;
    h->alone[node] = -1;
    kf_rivals_begin(r);
    start(h, node);
    r->used[node] = 1;
    for (; n < few; n++) {
        size_t next = kf_rivals_next(r, h->g);

        if (next == r->nodes)
            break;
        h->U[n] = (uint32_t)next;
        kf_rivals_strike(r, next, h->g);
    }
    for (size_t i = 0; i < n; i++)
        if (!extend(h, i))
            return HUGE_VAL;
    return gain(h, n);
}

static double worst_few(hidden *h, size_t few)
{
    double worst = 0;

    assert(few <= h->rivals.nodes);
    if (cost(h, few) <= TRYING_ALL)
        return worst_set(h, 0, 0, few);
    for (uint32_t i = 0; i < h->rivals.nodes; i++) {
        h->U[0] = i;
        h->alone[i] = extend(h, 0) ? gain(h, 1) : HUGE_VAL;
        worst = fmax(worst, h->alone[i]);
    }
    for (size_t k = 0; k < kf_min(STARTS, h->rivals.nodes) && few > 1; k++)
        worst = fmax(worst, hide_behind(h, few));
    return worst;
}

static kofn_status set_up(hidden *h, kf_arrays *a, const kf_evidence *e)
{
    size_t q = h->q;

    kf_rivals_new(&h->rivals, a, e->nodes, e->components, q);
    h->U = kf_arrays_new(a, e->nodes, sizeof *h->U);
    h->alone = kf_arrays_new(a, e->nodes, sizeof *h->alone);
    h->Q = kf_arrays_new(a, (q + 1) * q, sizeof *h->Q);
    h->R = kf_arrays_new(a, q * q, sizeof *h->R);
    h->z = kf_arrays_table(a, h->wants, q);
    h->g = kf_arrays_new(a, q, sizeof *h->g);
    TRY(kf_arrays_status(a));
    kf_rivals_of(&h->rivals, q, e->H, e->nodes * e->components);
    return KOFN_OK;
}

kofn_status kf_hidden(const kf_evidence *e, const double *D, size_t wants,
                      size_t few, double *worst)
{
    kf_arrays a = {0};
    hidden h = {
        .D = D, .wants = D ? wants : e->nodes * e->components, .q = e->q};
    kofn_status st = set_up(&h, &a, e);

    *worst = st ? 0 : worst_few(&h, kf_min(few, e->nodes));
    kf_arrays_free(&a);
    return st;
}

/* ---- how many, and by how much ------------------------------------------- */

size_t kf_code_may_hide(size_t liars, size_t independent, size_t located,
                        size_t over)
{
    size_t rest = liars - kf_min(located, liars);

    return kf_max(independent > liars ? kf_min(rest, over) : rest, 1);
}

double kf_code_unseen(double alarm, size_t q)
{
    return alarm * (sqrt((double)q) + KF_TAIL);
}

/* Errors x times as large as the detectable level stay undetected in q
 * independent parities with the probability x^-q. */
double kf_code_floor(double unseen, double gains, size_t q, bool more)
{
    return unseen * gains * (more ? pow(KF_MISSED, -1 / (double)q) : 1);
}

/* ---- a decoder ----------------------------------------------------------- */

/* Writes D for results that are divided by the weights of their seats. */
static kofn_status spread(kf_code *c, const kofn_decoder *d, double *D)
{
    size_t components = d->results / d->seats;

    for (size_t w = 0, row = 0; w < d->wants; w++) {
        double *to = D + w * d->results;

        if (d->copy[w] >= 0)
            to[d->copy[w]] = 1;
        else if (d->copy[w] == KF_MIXED)
            memcpy(to, d->D + row++ * d->results, d->results * sizeof *to);
        for (size_t r = 0; r < d->results; r++) {
            const kf_seat *seat;

            TRY(kf_code_seat(c, d->seat[r / components], &seat));
            to[r] *= seat->weight > 0 ? seat->weight : 1;
        }
    }
    return KOFN_OK;
}

kofn_status kf_hidden_of(kf_code *c, const kofn_decoder *d, const double *H,
                         size_t q, size_t few, double *worst)
{
    size_t nodes = d->seats / kf_code_each(&c->plan->layout, d->seat, d->seats);
    kf_evidence e = {
        .nodes = nodes, .components = d->results / nodes, .q = q, .H = H};
    double *D = kofn_layout_table(d->wants, d->results);
    kofn_status st = D ? spread(c, d, D) : KOFN_NOMEM;

    if (!st)
        st = kf_hidden(&e, D, d->wants, few, worst);
    kf_free(D);
    return st;
}
