/* masterless.c -- kofn power and kofn pagerank on a mesh: what a node does, and what
 * came of it.
 *
 * Each node has its own copy of the vector; the matrix is shared by the nodes
 * of this process and may not be written. */
#include "cli.h"

#include <kofn/peer.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The data of one node. */
typedef struct share {
    kofn_matrix v;
    kofn_iterate_result res;
} share;

typedef struct run {
    const cli_args *a;
    const kofn_matrix *A;
    const kofn_sparse *M;
    const uint8_t *dangling;
    kofn_matrix *v; /* start, and result */
    kofn_plan *plan;
    cli_nodes nodes;
    share *share; /* of each node */
    cli_exactness found;
    double spread;
} run;

static const share *best_of(const run *r)
{
    return &r->share[r->nodes.best->number];
}

static kofn_iterate_options options(const cli_args *a)
{
    return (kofn_iterate_options){.size = sizeof(kofn_iterate_options),
                                  .tolerance = a->tol,
                                  .max_iterations = (unsigned)a->max_iter,
                                  .damping = a->damping};
}

/* ---- a node's life ------------------------------------------------------- */

static kofn_status live(cli_node *n, kofn_transport *t,
                        const kofn_peer_options *p)
{
    run *r = n->all->ud;
    share *own = &r->share[n->number];
    kofn_iterate_options o = options(r->a);
    kofn_peering at = KOFN_PEERING_INIT;
    size_t bytes = r->v->rows * sizeof(double);

    at.transport = t;
    at.plan = r->plan;
    at.options = p;
    at.end = &n->end;
    own->res = (kofn_iterate_result)KOFN_ITERATE_RESULT_INIT;
    own->v = *r->v;
    own->v.data = malloc(bytes);
    if (!own->v.data)
        return KOFN_NOMEM;
    memcpy(own->v.data, r->v->data, bytes);
    return r->A ? kofn_power_peers(&at, r->A, &own->v, &o, &own->res)
                : kofn_pagerank_peers(&at, r->M, r->dangling, &own->v, &o,
                                      &own->res);
}

/* ---- what came of it ----------------------------------------------------- */

/* By how much two results differ at most. */
static void compare(run *r)
{
    for (size_t i = 0; i < r->nodes.here; i++) {
        double d;

        if (!nodes_have(&r->nodes.node[i]))
            continue;
        d = cli_relative_error(&r->share[i].v, &best_of(r)->v);
        if (d > r->spread || isnan(d)) /* which stays */
            r->spread = d;
    }
}

static int verify(run *r)
{
    kofn_iterate_options o = options(r->a);
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_matrix *want = r->v; /* the start is not needed any more */
    kofn_status st =
        r->A ? kofn_power_plain(r->A, want, &o, &res)
             : kofn_pagerank_plain(r->M, r->dangling, want, &o, &res);

    if (st)
        return cli_fail(st);
    TRY_CODE(cli_verify(&r->found, &best_of(r)->v, want));
    if (res.iterations != best_of(r)->res.iterations)
        cli_say(0, "the plain iteration took %u iterations, this one %u",
                res.iterations, best_of(r)->res.iterations);
    return 0;
}

static void report_json(const run *r, const kofn_plan_info *info)
{
    const kofn_iterate_result *res = &best_of(r)->res;
    json_t *o = json_object();

#define PUT(key, value) json_object_set_new(o, key, value)
    nodes_put(&r->nodes, info, o);
    PUT("threshold", json_integer((json_int_t)info->threshold));
    PUT("iterations", json_integer(res->iterations));
    PUT("spread", json_real(r->spread));
    if (r->a->verify)
        PUT("rel_error", json_real(r->found.rel_error));
    if (r->A)
        PUT("eigenvalue", json_real(res->eigenvalue));
    PUT("change", json_real(res->change));
    PUT("converged", json_boolean(res->converged));
#undef PUT
    cli_print_json(o);
}

static void report_text(const run *r, const kofn_plan_info *info)
{
    const kofn_iterate_result *res = &best_of(r)->res;

    fprintf(stderr, "%s  any %zu of %zu  %u iterations in %.3g s, %s decoding",
            info->spec, info->threshold, r->nodes.count, res->iterations,
            r->nodes.seconds, nodes_decoding(&r->nodes));
    if (r->nodes.here > 1)
        fprintf(stderr,
                "\n%zu nodes have the result; no two of them differ by more "
                "than %.2g",
                r->nodes.have, r->spread);
    nodes_say(&r->nodes);
    if (r->found.rel_error >= 0)
        fprintf(stderr, "  relative error %.2g", r->found.rel_error);
    fprintf(stderr, "\n");
    if (r->A)
        fprintf(stderr, "eigenvalue %.17g after %u iterations\n",
                res->eigenvalue, res->iterations);
    cli_report_blas(r->a);
    if (!res->converged)
        cli_advise_iterate(r->a, res);
}

static int conclude(run *r)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    compare(r);
    if (r->a->verify)
        TRY_CODE(verify(r));
    TRY_CODE(cli_write(r->a, &best_of(r)->v, 1));
    if (kofn_plan_describe(r->plan, false, &info))
        return 0;
    if (r->a->json)
        report_json(r, &info);
    else if (!r->a->quiet)
        report_text(r, &info);
    return 0;
}

/* ---- the whole ----------------------------------------------------------- */

static int prepare(run *r)
{
    const cli_args *a = r->a;
    cli_nodes *m = &r->nodes;
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, r->v->rows, r->v->rows, 1,
                                        KOFN_F64, r->M != NULL);
    kofn_status st;

    TRY_CODE(nodes_open(m, a, a->max_iter ? a->max_iter : 200));
    TRY_CODE(cli_check_output(a, false));
    st = kofn_plan_new(&r->plan, &pb, a->scheme, a->workers, a->seed);
    if (st)
        return cli_fail(st);
    nodes_choose_decoding(m, r->plan);
    /* nodes that were started together are not hostile to each other */
    m->confirm = a->confirm ? a->confirm : !cli_transport_of(a->port)->address;
    m->each = 1;
    m->every = 1;
    m->bytes = r->v->rows * sizeof(double);
    m->live = live;
    m->ud = r;
    r->share = calloc(m->here, sizeof *r->share);
    return r->share ? 0 : cli_say(EXIT_FAILED, "out of memory");
}

int masterless_run(const cli_args *a, const kofn_matrix *A,
                   const kofn_sparse *M, const uint8_t *dangling,
                   kofn_matrix *v)
{
    run r = {.a = a,
             .A = A,
             .M = M,
             .dangling = dangling,
             .v = v,
             .found = {.rel_error = -1}};
    int code = prepare(&r);

    if (!code)
        code = nodes_run(&r.nodes);
    if (!code)
        code = conclude(&r);
    for (size_t i = 0; r.share && i < r.nodes.here; i++)
        free(r.share[i].v.data);
    free(r.share);
    kofn_plan_free(r.plan);
    return nodes_close(&r.nodes, code);
}
