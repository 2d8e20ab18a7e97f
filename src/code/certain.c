/* certain.c -- proves that a suspended node must be corrupt.
 *
 * The suspended nodes T explain the syndromes up to noise: S = H_T X + R.  So
 * do the truly corrupt nodes T*, at most e: S = H_T* E + N.  For any direction
 * v of the columns, of length one,
 *
 *     sum over i in T of H_i X_i v  -  sum over i in T* of H_i E_i v
 *         = N v - R v.
 *
 * The right side is at most as large as honest rounding and R together.  Choose
 * v such that X_i v vanishes for some nodes F of T.  If node j is in T and
 * honest, H_j X_j v is within that distance of a certain span.  This is the
 * span of the nodes T - F - j and of e other nodes.  Node j is located only if
 * it is farther from every such span.  All sets of e nodes are tried, many at
 * once as larger sets.  If that takes too long, no node is located.  An
 * exception holds if faults are assumed not to conspire.  Then only the e nodes
 * that come nearest, chosen one after the other, are tried.
 * docs/math/errors.md says what this proves.
 *
 * Evidence is borrowed.  A proof must never accuse a node that could be honest:
 * if time runs out, it proves nothing. */
#include "syndrome.h"

#include <assert.h>

/* Allowance for the rounding of the remaining lengths. */
#define SAFETY 1.01
/* If not all sets are tried, no set found may be within this multiple of the
 * limit. */
#define MARGIN 4
/* The fraction of X_j that the choice of v must keep.  A larger fraction lets
 * fewer nodes of T vanish. */
static const double kept[] = {0.3, 1e-2, 1e-4};

void kf_proof_new(kf_proof *p, kf_arrays *a, const kf_evidence *e)
{
    size_t q = e->q, numbers = sizeof(double);

    *p =
        (kf_proof){.nodes = e->nodes, .components = e->components, .arrays = a};
    kf_rivals_new(&p->rivals, a, e->nodes, e->components, q);
    p->Q = kf_arrays_new(a, (q + 1) * q, numbers);
    p->R = kf_arrays_new(a, q * q, numbers);
    p->X = kf_arrays_new(a, q * q, numbers);
    p->B = kf_arrays_new(a, (q + 1) * q, numbers);
    p->x = kf_arrays_new(a, 2 * e->components * q, numbers);
    p->g = kf_arrays_new(a, q, numbers);
    p->try = kf_arrays_new(a, q, numbers);
    p->scratch.tries = kf_arrays_new(a, (e->nodes + 1) * q, numbers);
    p->scratch.S = kf_arrays_new(a, (q + 1) * q, numbers);
    p->others.W = kf_arrays_new(a, e->nodes * e->components * q, numbers);
    p->y = kf_arrays_new(a, e->components, numbers);
    p->scratch.overlap = kf_arrays_new(a, e->nodes, numbers);
    p->others.candidate =
        kf_arrays_new(a, e->nodes, sizeof *p->others.candidate);
    p->scratch.order = kf_arrays_new(a, e->nodes, sizeof *p->scratch.order);
    p->scratch.used = kf_arrays_new(a, e->nodes, 1);
}

/* ---- what everybody held has to answer for ------------------------------- */

/* Factors H_T = Q R and solves R X = Q' S. */
bool kf_proof_of(kf_proof *p, const kf_syndromes *t, const double *S, size_t m,
                 const uint32_t *held, size_t count)
{
    size_t n = count * p->components, q = t->q;

    assert(count <= p->nodes);
    p->q = q;
    p->m = m;
    p->held = held;
    p->count = count;
    kf_rivals_of(&p->rivals, q, t->first, t->ld);
    if (n > q)
        return false;
    for (size_t i = 0; i < n; i++) {
        const double *h = kf_rivals_column(&p->rivals, held[i / p->components],
                                           i % p->components);

        if (kf_rivals_add(p->Q, i, q, h) == i)
            return false;
        for (size_t k = 0; k <= i; k++)
            p->R[k * q + i] = kf_code_dot(p->Q + k * q, h, q);
        memset(p->X + i * m, 0, m * sizeof *p->X);
        for (size_t k = 0; k < q; k++)
            kf_axpy(m, p->Q[i * q + k], S + k * m, p->X + i * m);
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            kf_axpy(m, -p->R[i * q + k], p->X + k * m, p->X + i * m);
        for (size_t c = 0; c < m; c++)
            p->X[i * m + c] /= p->R[i * q + i];
    }
    return true;
}

/* ---- the direction ------------------------------------------------------- */

/* Measures how much the errors of nodes i and j have in common: the squared
 * products of their rows, divided by |X_i|^2.  Only values for the same j may
 * be compared. */
static double overlap(const kf_proof *p, size_t i, size_t j)
{
    double in_common = 0, all = 0;

    assert(i < p->count);
    assert(j < p->count);
    for (size_t k = 0; k < p->components; k++) {
        const double *x = p->X + (i * p->components + k) * p->m;

        all += kf_code_dot(x, x, p->m);
        for (size_t l = 0; l < p->components; l++) {
            double d =
                kf_code_dot(x, p->X + (j * p->components + l) * p->m, p->m);

            in_common += d * d;
        }
    }
    return all > 0 ? in_common / all : 0;
}

/* Sorts the other suspended nodes: the errors that have least in common with
 * those of j come first. */
static void sort_others(kf_proof *p, size_t j)
{
    size_t n = 0;

    assert(j < p->count);
    for (uint32_t i = 0; i < p->count; i++) {
        size_t at = n;

        if (i == j)
            continue;
        p->scratch.overlap[i] = overlap(p, i, j);
        for (; at > 0 && p->scratch.overlap[p->scratch.order[at - 1]] >
                             p->scratch.overlap[i];
             at--)
            p->scratch.order[at] = p->scratch.order[at - 1];
        p->scratch.order[at] = i;
        n++;
    }
}

/* Chooses v such that many of the other nodes vanish and the fraction `keep` of
 * X_j remains.  Marks the suspended nodes that do not vanish in used[] and
 * returns their number.  X_j v goes to y. */
static size_t choose_direction(kf_proof *p, size_t j, double keep, double *y)
{
    size_t components = p->components, m = p->m, n = 0, others = 0, top = 0;
    double *x = p->x, *next = p->x + components * m;
    double least =
        keep * kf_code_length(p->X + j * components * m, components * m);

    assert(j < p->count);
    assert(keep > 0);
    memcpy(x, p->X + j * components * m, components * m * sizeof *x);
    memset(p->scratch.used, 0, p->nodes);
    for (size_t i = 0; i + 1 < p->count; i++) {
        size_t node = p->scratch.order[i], more = n;

        for (size_t l = 0; l < components && more < m; l++)
            more = kf_rivals_add(p->B, more, m,
                                 p->X + (node * components + l) * m);
        memcpy(next, x, components * m * sizeof *x);
        for (size_t l = 0; l < components; l++)
            kf_rivals_take_out(p->B, more, m, next + l * m);
        p->scratch.used[node] = !(kf_code_length(next, components * m) > least);
        others += p->scratch.used[node];
        if (p->scratch.used[node])
            continue;
        memcpy(x, next, components * m * sizeof *x);
        n = more;
    }
    for (size_t l = 1; l < components; l++)
        if (kf_code_length(x + l * m, m) > kf_code_length(x + top * m, m))
            top = l;
    for (size_t l = 0; l < components; l++)
        y[l] = kf_code_dot(x + l * m, x + top * m, m) /
               kf_code_length(x + top * m, m);
    return others;
}

/* ---- whoever else -------------------------------------------------------- */

/* Estimates how near any e nodes come to g; this is no proof.  It strikes one
 * node after the other, each the one that removes most of g. */
static double nearest(kf_proof *p, size_t e)
{
    kf_rivals *r = &p->rivals;

    memcpy(p->try, p->g, p->q * sizeof *p->try);
    while (e-- > 0 && kf_code_length(p->try, p->q) > p->enough) {
        size_t node = kf_rivals_next(r, p->try);

        if (node == r->nodes)
            break;
        kf_rivals_strike(r, node, p->try);
    }
    return kf_code_length(p->try, p->q);
}

/* Returns the part of a candidate's columns that remains after `depth` chosen
 * groups. */
static double *columns_left(const kf_proof *p, size_t i, size_t depth)
{
    size_t each = p->components * p->q, all = p->nodes * each;

    assert(i < p->others.candidates);
    return (depth ? p->others.deeper + (depth - 1) * all : p->others.W) +
           p->others.candidate[i] * each;
}

/* Puts the directions of the group that starts at this candidate into
 * p->scratch.S. */
static size_t directions(kf_proof *p, size_t first, size_t end, size_t depth)
{
    size_t n = 0;

    for (size_t i = first; i < end; i++)
        n = kf_rivals_directions(p->scratch.S, n, p->q,
                                 columns_left(p, i, depth), p->components);
    return n;
}

/* Removes the n directions in p->scratch.S from the candidates from `from` on.
 */
static void go_deeper(kf_proof *p, size_t from, size_t depth, size_t n)
{
    size_t each = p->components * p->q;

    for (size_t i = from; i < p->others.candidates; i++) {
        double *to = columns_left(p, i, depth + 1);

        memcpy(to, columns_left(p, i, depth), each * sizeof *to);
        for (size_t l = 0; l < p->components; l++)
            kf_rivals_take_out(p->scratch.S, n, p->q, to + l * p->q);
    }
}

/* True if some choice of further groups, from candidate `from` on, comes near
 * to g.  Level `depth` of p->scratch.tries is the part of g that the chosen
 * groups leave. */
static bool any_near(kf_proof *p, size_t from, size_t depth, size_t e)
{
    const double *left = p->scratch.tries + depth * p->q;
    double *next = p->scratch.tries + (depth + 1) * p->q;

    if (!(kf_code_length(left, p->q) > p->enough))
        return true;
    for (size_t i = from; i < p->others.candidates && depth < e;
         i += p->others.each) {
        size_t end = kf_min(i + p->others.each, p->others.candidates);
        size_t n = directions(p, i, end, depth);

        memcpy(next, left, p->q * sizeof *next);
        kf_rivals_take_out(p->scratch.S, n, p->q, next);
        if (depth + 1 < e)
            go_deeper(p, end, depth, n);
        if (any_near(p, end, depth + 1, e))
            return true;
    }
    return false;
}

/* True if there is memory to choose e groups. */
static bool make_room(kf_proof *p, size_t e)
{
    size_t room = (kf_max(e, 1) - 1) * p->nodes * p->components * p->q;

    if (room > p->others.room) {
        p->others.deeper =
            kf_arrays_new(p->arrays, room, sizeof *p->others.deeper);
        p->others.room = p->others.deeper ? room : 0;
    }
    return room <= p->others.room;
}

/* Returns the number of sets of at most k of n; the search visits all of them.
 */
static double sets(size_t n, size_t k)
{
    double of_size = 1, all = 1;

    for (size_t i = 0; i < k; i++) {
        of_size *= (double)(n - i) / (double)(i + 1);
        all += of_size;
    }
    return all;
}

/* True if e of the other nodes could come near to g.  At most `most` nodes have
 * independent columns together.  Groups of nodes are tried first, because a
 * larger set comes nearer.  If a group does, single nodes are tried. */
static bool may_come_near(kf_proof *p, size_t e, size_t most)
{
    double wide = (double)(kf_max(most, e) * p->components + p->others.fixed);
    double near = nearest(p, e);

    if (!(near > p->enough) || (!p->strict && e > p->conspire))
        return !(near > MARGIN * p->enough);
    for (p->others.each = kf_max(most / kf_max(e, 1), 1);; p->others.each = 1) {
        size_t groups = kf_ceil_div(p->others.candidates, p->others.each);
        double cost = 8 * sets(groups, kf_min(e, groups)) * wide *
                      (double)(p->others.each * p->components * p->q);

        if (cost > p->budget)
            return p->strict || !(near > MARGIN * p->enough);
        p->budget -= cost;
        if (!make_room(p, kf_min(e, groups)))
            return true;
        memcpy(p->scratch.tries, p->g, p->q * sizeof *p->scratch.tries);
        if (!any_near(p, 0, 0, kf_min(e, groups)))
            return false;
        if (p->others.each == 1)
            return true;
    }
}

/* True if the columns of `many` other nodes could come near to g by accident.
 * `left` is the length of g, `level` the limit for near. */
static bool by_accident(const kf_proof *p, size_t many, double level,
                        double left)
{
    double chance = pow(level / left, (double)(p->q - many * p->components));

    return kf_code_sets(p->nodes, many) * chance > KF_ACCIDENT;
}

/* Sets g to the combination of j's columns, without the directions of the
 * suspended nodes that do not vanish.  All remaining nodes become candidates.
 */
static void vector(kf_proof *p, size_t j)
{
    kf_rivals *r = &p->rivals;
    size_t q = p->q;

    memset(p->g, 0, q * sizeof *p->g);
    for (size_t l = 0; l < p->components; l++)
        kf_axpy(q, p->y[l], kf_rivals_column(r, p->held[j], l), p->g);
    kf_rivals_begin(r);
    p->others.fixed = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->scratch.used[i])
            p->others.fixed += kf_rivals_strike(r, p->held[i], p->g);
    r->used[p->held[j]] = 1;
    memcpy(p->others.W, r->W,
           p->nodes * p->components * q * sizeof *p->others.W);
    p->others.candidates = 0;
    for (uint32_t i = 0; i < p->nodes; i++)
        if (!r->used[i])
            p->others.candidate[p->others.candidates++] = i;
}

bool kf_proof_certain(kf_proof *p, size_t j, size_t liars, size_t independent,
                      size_t over, double apart)
{
    p->enough = SAFETY * apart;
    sort_others(p, j);
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
        size_t many = 1 + choose_direction(p, j, kept[k], p->y);

        if (many + liars > over)
            continue;
        vector(p, j);
        if (may_come_near(p, liars, over - many))
            continue;
        if (independent <= liars ||
            !by_accident(p, many, apart, kf_code_length(p->g, p->q)))
            return true;
        vector(p, j);
        if (many + independent <= over &&
            !may_come_near(p, independent, over - many))
            return true;
    }
    return false;
}
