/* iterate.c -- power iteration and PageRank, one coded product per step.
 *
 * Only the product is coded. Everything else is a pass over the vector on this
 * side. Whatever workers are lost or join, the iterates equal those of the
 * plain iteration up to rounding. So the number of iterations is the same
 * (math/elastic.md 15).
 *
 * PageRank follows Brin and Page, 1998. Dangling nodes count as if they linked
 * to every page.
 *
 * Owns the vectors of the iteration; the caller owns the result's. Changes the
 * job by rounds alone. */
#include "vector.h"

#include "base/hash.h"
#include "watch.h"

#include "io/io.h"

#include <kofn/peer.h>

#include <assert.h>
#include <math.h>

static kofn_status with_defaults(kofn_iterate_options *o,
                                 const kofn_iterate_options *opt)
{
    *o = (kofn_iterate_options)KOFN_ITERATE_OPTIONS_INIT;
    TRY(kf_given(o, sizeof *o, opt, "KOFN_ITERATE_OPTIONS_INIT"));
    if (!(o->tol >= 0 && o->tol < HUGE_VAL))
        return kf_fail(KOFN_INVAL, "tol = %g is not a number >= 0", o->tol);
    if (!(o->damping >= 0 && o->damping <= 1) && o->damping != KOFN_NO_DAMPING)
        return kf_fail(KOFN_INVAL, "damping = %g is not in [0, 1]", o->damping);
    if (o->tol == 0)
        o->tol = 1e-10;
    if (o->max_iterations == 0)
        o->max_iterations = 200;
    if (o->damping == 0)
        o->damping = 0.85;
    else if (o->damping == KOFN_NO_DAMPING)
        o->damping = 0;
    if (o->resume && !(o->resume->change >= 0))
        return kf_fail(KOFN_INVAL,
                       "the result to resume from has the change %g",
                       o->resume->change);
    return KOFN_OK;
}

typedef struct iteration {
    kofn_job *job; /* multiplies; NULL: the plain matrix below does */
    kofn_operand A;
    kofn_iterate_options opt;
    kofn_iterate_result res;
    kofn_iterate_result *result; /* the caller's result, or NULL */
    kofn_matrix *v;
    const uint8_t *dangling;
    double *jumps, *sinks;    /* PageRank: where both go; their sums are 1 */
    const kofn_peering *mesh; /* multiplies instead of a job */
    /* Computes the new v from the product in `next`. Returns how far v moved.
     */
    double (*update)(struct iteration *it, double *next);
} iteration;

static int look(void *ud)
{
    const iteration *it = ud;

    return it->opt.watch(it->opt.watch_ud, it->res.iterations, it->res.change,
                         NULL);
}

static kofn_status coded_product(iteration *it, kofn_matrix *out,
                                 kofn_report *rep)
{
    assert(it->job);
    kofn_status st =
        kf_learn_round(it->job, false, it->v, out,
                       (kf_look){it->opt.watch ? look : NULL, it}, rep);

    if (st == KOFN_PARTIAL)
        return kf_fail(KOFN_TOOFEW, "an iteration needs the whole product; "
                                    "degraded answers do not serve it");
    return st;
}

static kofn_status product(iteration *it, kofn_matrix *out, kofn_report *rep)
{
    if (it->job)
        return coded_product(it, out, rep);
    return kofn_product_plain(it->A, it->v, out);
}

/* Multiplies and updates until the change is below the tolerance or the
 * iterations are used up. Fails if the vector is not finite. */
static kofn_status iterate(iteration *it, double *next)
{
    kofn_matrix out = {next, it->v->rows, 1, 1, KOFN_F64};
    kofn_iterate_result *res = &it->res;
    kofn_report rep = KOFN_REPORT_INIT;

    assert(!it->mesh);
    assert(it->update);
    res->converged = res->change < it->opt.tol;
    while (!res->converged && res->iterations < it->opt.max_iterations) {
        TRY(product(it, &out, &rep));
        res->change = it->update(it, next);
        res->iterations++;
        if (!(res->change - res->change == 0))
            return kf_fail(KOFN_NONFINITE,
                           "iteration %u: the vector is not finite",
                           res->iterations);
        res->converged = res->change < it->opt.tol;
        kf_give(it->result, res, sizeof *res);
        if (it->opt.watch &&
            it->opt.watch(it->opt.watch_ud, res->iterations, res->change, &rep))
            return KOFN_AGAIN;
    }
    return KOFN_OK;
}

/* ---- without a master ---------------------------------------------------- */

enum { CHANGE, EIGENVALUE }; /* scalars that travel with the vector */

static kofn_status mesh_output(void *ud, uint64_t t, kofn_matrix *product,
                               kofn_matrix *v, double scalar[KOFN_SCALARS],
                               bool *final)
{
    iteration *it = ud;
    kofn_matrix *result = it->v;

    assert(v->dtype == KOFN_F64);
    it->v = v;
    scalar[CHANGE] = it->update(it, product->data);
    it->v = result;
    scalar[EIGENVALUE] = it->res.eigenvalue;
    if (!(scalar[CHANGE] - scalar[CHANGE] == 0))
        return kf_fail(KOFN_NONFINITE,
                       "iteration %llu: the vector is not finite",
                       (unsigned long long)t);
    *final = scalar[CHANGE] < it->opt.tol || t >= it->opt.max_iterations;
    return KOFN_OK;
}

static uint64_t option_bits(const iteration *it)
{
    double x[2] = {it->opt.tol, it->opt.damping};
    uint64_t bits[2];

    memcpy(bits, x, sizeof bits);
    bits[0] = (bits[0] * 31 + bits[1]) * 31 + it->opt.max_iterations;
    if (it->jumps) /* sinks follow in the same memory */
        bits[0] =
            kf_hash(bits[0], it->jumps, 2 * it->v->rows * sizeof *it->jumps);
    return it->opt.warm
               ? kf_hash(bits[0], it->v->data, it->v->rows * sizeof *it->jumps)
               : bits[0];
}

/* Runs the iteration as a program of one product on a mesh. The vector that its
 * nodes agree on becomes the result. */
static kofn_status run_mesh(iteration *it)
{
    const kofn_mesh_product product = {.plan = it->mesh->plan};
    const kofn_program program = {.size = sizeof program,
                                  .product = &product,
                                  .products = 1,
                                  .operand = &it->A,
                                  .operands = 1,
                                  .output = mesh_output,
                                  .ud = it,
                                  .digest = option_bits(it)};
    double scalar[KOFN_SCALARS];
    kofn_node_view view = KOFN_NODE_VIEW_INIT;
    kofn_status st;

    if (it->opt.resume)
        return kf_fail(KOFN_UNSUITED,
                       "a mesh cannot resume from a step of a job (resume); "
                       "its nodes resume from their own checkpoints "
                       "(kofn_peer_options.resume)");
    st = kofn_peer_run(it->mesh->transport, &program, it->mesh->options, it->v,
                       scalar, &view);
    if (st < 0 && view.at.step == 0)
        return st;
    it->res.iterations = (unsigned)view.at.step;
    it->res.change = scalar[CHANGE];
    it->res.eigenvalue = scalar[EIGENVALUE];
    it->res.converged = !st && scalar[CHANGE] < it->opt.tol;
    kf_give(it->mesh->end, &view, sizeof view);
    return st;
}

/* Runs the iteration from a checked vector. */
static kofn_status run(iteration *it, kofn_iterate_result *res)
{
    double *next = NULL;
    kofn_status st;

    assert(it->update);
    TRY(kf_begun(res, "KOFN_ITERATE_RESULT_INIT"));
    it->result = res;
    it->res = (kofn_iterate_result){.size = sizeof it->res, .change = HUGE_VAL};
    TRY(kf_given(&it->res, sizeof it->res, it->opt.resume,
                 "KOFN_ITERATE_RESULT_INIT"));
    kf_give(res, &it->res, sizeof it->res);
    TRY_NEW(next, it->v->rows);
    st = it->mesh ? run_mesh(it) : iterate(it, next);
    kf_give(res, &it->res, sizeof it->res);
    kf_free(next);
    return st;
}

/* ---- power iteration ----------------------------------------------------- */

static double power_update(iteration *it, double *next)
{
    double *v = it->v->data, value = 0, length, change = 0;
    size_t n = it->v->rows;

    length = kf_norm(next, n);
    if (!(length < HUGE_VAL)) /* dividing by it would turn every entry into 0 */
        return HUGE_VAL;
    if (length == 0) { /* v is an eigenvector with eigenvalue 0 */
        it->res.eigenvalue = 0;
        return 0;
    }
    for (size_t i = 0; i < n; i++) /* no entry exceeds the length */
        value += v[i] * (next[i] / length);
    value *= length;
    /* The vector may change sign in every step; its direction converges. */
    for (size_t i = 0; i < n; i++) {
        double now = next[i] / length;
        double moved = now - (value < 0 ? -v[i] : v[i]);

        change += moved * moved;
        v[i] = now;
    }
    it->res.eigenvalue = value;
    return sqrt(change);
}

static kofn_status power(iteration it, const kofn_iterate_options *opt,
                         kofn_iterate_result *res)
{
    kofn_matrix *v = it.v;
    double length;

    TRY(kf_vector_check(v, v ? v->rows : 0, 1, "the vector"));
    length = kf_norm(v->data, v->rows);
    if (!(length > 0 && length < HUGE_VAL))
        return kf_fail(KOFN_INVAL, "power iteration needs a finite vector that "
                                   "is not zero to start from");
    TRY(with_defaults(&it.opt, opt));
    it.update = power_update;
    for (size_t i = 0; !it.opt.resume && i < v->rows; i++)
        ((double *)v->data)[i] /= length;
    return run(&it, res);
}

kofn_status kofn_power(kofn_job *job, kofn_matrix *v,
                       const kofn_iterate_options *opt,
                       kofn_iterate_result *res)
{
    return power((iteration){.job = job, .v = v}, opt, res);
}

kofn_status kofn_power_peers(const kofn_peering *at, kofn_operand A,
                             kofn_matrix *v, const kofn_iterate_options *opt,
                             kofn_iterate_result *res)
{
    kofn_peering m = KOFN_PEERING_INIT;

    TRY(kf_given(&m, sizeof m, at, "KOFN_PEERING_INIT"));
    return power((iteration){.A = A, .v = v, .mesh = at ? &m : NULL}, opt, res);
}

/* ---- PageRank ------------------------------------------------------------ */

static double pagerank_update(iteration *it, double *next)
{
    double *v = it->v->data, lost = 0, change = 0, d = it->opt.damping;
    size_t n = it->v->rows;

    for (size_t i = 0; i < n; i++)
        lost += it->dangling && it->dangling[i] ? v[i] : 0;
    for (size_t i = 0; i < n; i++) {
        double now =
            d * (next[i] + lost * it->sinks[i]) + (1 - d) * it->jumps[i];

        change += fabs(now - v[i]);
        v[i] = now;
    }
    return change;
}

/* Writes x divided by its sum; without x, 1 / n.  `start`: entries may be
 * negative, as rounding leaves them in ranks that are 0. */
static kofn_status spread(const kofn_matrix *x, size_t n, bool start,
                          const char *name, double *to)
{
    double sum = 0;

    for (size_t i = 0; !x && i < n; i++)
        to[i] = 1 / (double)n;
    if (!x)
        return KOFN_OK;
    TRY(kf_vector_check(x, n, 1, name));
    for (size_t i = 0; i < n; i++) {
        to[i] = ((const double *)x->data)[i];
        if (!(to[i] >= 0 || (start && to[i] < 0)))
            return kf_fail(KOFN_INVAL,
                           "%s: node %zu has the weight %g; weights are not "
                           "negative",
                           name, i, to[i]);
        sum += to[i];
    }
    if (!(sum > 0 && sum < HUGE_VAL))
        return kf_fail(KOFN_INVAL, "%s: the sum of the weights is %g", name,
                       sum);
    for (size_t i = 0; i < n; i++)
        to[i] /= sum;
    return KOFN_OK;
}

/* Fills the distributions and the start. */
static kofn_status set_up(iteration *it)
{
    const kofn_iterate_options *o = &it->opt;
    kofn_matrix *v = it->v;
    size_t n = v->rows;

    TRY(spread(o->personalize, n, false, "personalize", it->jumps));
    TRY(spread(o->sinks ? o->sinks : o->personalize, n, false, "sinks",
               it->sinks));
    return o->resume
               ? KOFN_OK
               : spread(o->warm ? v : NULL, n, true, "the start", v->data);
}

static kofn_status pagerank(iteration it, const kofn_iterate_options *opt,
                            kofn_iterate_result *res)
{
    kofn_matrix *v = it.v;
    size_t both;
    kofn_status st;

    TRY(kf_vector_check(v, v ? v->rows : 0, 1, "the vector"));
    TRY(with_defaults(&it.opt, opt));
    if (!kf_mul(2, v->rows, &both))
        return KOFN_NOMEM;
    TRY_NEW(it.jumps, both);
    it.sinks = it.jumps + v->rows;
    it.update = pagerank_update;
    st = set_up(&it);
    if (!st)
        st = run(&it, res);
    kf_free(it.jumps);
    return st;
}

kofn_status kofn_pagerank(kofn_job *job, const uint8_t *dangling,
                          kofn_matrix *v, const kofn_iterate_options *opt,
                          kofn_iterate_result *res)
{
    return pagerank((iteration){.job = job, .v = v, .dangling = dangling}, opt,
                    res);
}

kofn_status kofn_pagerank_peers(const kofn_peering *at, const kofn_sparse *M,
                                const uint8_t *dangling, kofn_matrix *v,
                                const kofn_iterate_options *opt,
                                kofn_iterate_result *res)
{
    kofn_peering m = KOFN_PEERING_INIT;

    TRY(kf_given(&m, sizeof m, at, "KOFN_PEERING_INIT"));
    return pagerank((iteration){.A = KOFN_SPARSE(M),
                                .v = v,
                                .dangling = dangling,
                                .mesh = at ? &m : NULL},
                    opt, res);
}

/* Checks that row j of M holds, for every arc i -> j, its weight divided by
 * the sum of the weights of i's arcs. */
static kofn_status check_graph(const kofn_sparse *g)
{
    TRY(kf_mat_check_sparse(g, "the graph"));
    if (g->rows != g->cols)
        return kf_fail(KOFN_SHAPE,
                       "the graph's matrix is %zu x %zu, not square", g->rows,
                       g->cols);
    for (size_t i = 0; i < g->rows; i++) {
        double sum = 0;

        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
            if (!(g->val[e] >= 0 && g->val[e] - g->val[e] == 0))
                return kf_fail(KOFN_INVAL,
                               "arc %zu -> %u has weight %g; "
                               "PageRank needs weights >= 0",
                               i + 1, g->col[e] + 1, g->val[e]);
            sum += g->val[e];
        }
        if (!(sum < HUGE_VAL))
            return kf_fail(KOFN_NONFINITE,
                           "the weights of the arcs from %zu "
                           "add up to more than float64 can hold; divide them",
                           i + 1);
    }
    return KOFN_OK;
}

static void fill_matrix(const kofn_sparse *g, size_t *ptr, uint32_t *col,
                        double *val, size_t *next, uint8_t *dangling)
{
    size_t n = g->rows;

    memset(ptr, 0, (n + 1) * sizeof *ptr);
    for (size_t e = 0; e < g->ptr[n]; e++)
        ptr[g->col[e] + 1]++;
    for (size_t j = 0; j < n; j++)
        ptr[j + 1] += ptr[j];
    memcpy(next, ptr, n * sizeof *next);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++)
            sum += g->val[e];
        dangling[i] = !(sum > 0);
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
            size_t at = next[g->col[e]]++;

            col[at] = (uint32_t)i;
            val[at] = sum > 0 ? g->val[e] / sum : 0;
        }
    }
}

kofn_status kofn_pagerank_matrix(kofn_sparse **out, uint8_t **dangling,
                                 const kofn_sparse *g)
{
    size_t n, *next;

    *out = NULL;
    *dangling = NULL;
    TRY(check_graph(g));
    n = g->rows;
    next = kf_new(n, sizeof *next);
    *dangling = kf_new(n, 1);
    if (next && *dangling)
        *out = kf_io_sparse_new(n, n, g->ptr[n]);
    if (!*out) {
        kf_free(next);
        kf_free(*dangling);
        *dangling = NULL;
        return KOFN_NOMEM;
    }
    fill_matrix(g, kf_sparse_ptr(*out), kf_sparse_col(*out),
                kf_sparse_val(*out), next, *dangling);
    kf_free(next);
    return KOFN_OK;
}
