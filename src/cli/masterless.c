/* masterless.c -- kofn power and kofn pagerank on a mesh: the work of a node,
 * and the result.
 *
 * Each node has its own copy of the vector. The nodes of this process share
 * the matrix, which may not be written. */
#include "nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const cli_args *a;
    const cli_iteration *it;
    kofn_plan *plan;
    cli_nodes nodes;
    cli_exactness found;
    double spread;
    json_t *figures; /* the largest ranks */
} run;

/* ---- a node's life ------------------------------------------------------- */

static kofn_status live(cli_node *n, kofn_transport *t,
                        const kofn_peer_options *p)
{
    run *r = n->all->ud;
    kofn_iterate_options o = cli_iterate_options(r->a, r->it);
    kofn_peering at = KOFN_PEERING_INIT;
    const cli_iteration *it = r->it;

    at.transport = t;
    at.plan = r->plan;
    at.options = p;
    at.end = &n->end;
    n->iterated = (kofn_iterate_result)KOFN_ITERATE_RESULT_INIT;
    n->v = it->v;
    n->v.data = malloc(it->n * sizeof(double));
    if (!n->v.data)
        return KOFN_NOMEM;
    memcpy(n->v.data, it->v.data, it->n * sizeof(double));
    return it->power ? kofn_power_peers(&at, it->A, &n->v, &o, &n->iterated)
                     : kofn_pagerank_peers(&at, it->M, it->dangling, &n->v, &o,
                                           &n->iterated);
}

/* ---- what came of it ----------------------------------------------------- */

/* Returns the largest difference of two nodes' results. */
static void compare(run *r)
{
    for (size_t i = 0; i < r->nodes.here; i++) {
        double d;

        if (!nodes_have(&r->nodes.node[i]))
            continue;
        d = cli_relative_error(&r->nodes.node[i].v, &r->nodes.best->v);
        if (d > r->spread || isnan(d)) /* NaN stays */
            r->spread = d;
    }
}

static void put(const cli_nodes *m, const kofn_plan_info *info, json_t *o)
{
    const run *r = m->ud;
    const kofn_iterate_result *res = &m->best->iterated;

    PUT_WHOLE("threshold", info->threshold);
    PUT_WHOLE("iterations", res->iterations);
    PUT("spread", json_real(r->spread));
    if (r->it->power)
        PUT("eigenvalue", json_real(res->eigenvalue));
    else
        PUT("graph", cli_graph_json(&r->it->graph));
    PUT("change", json_real(res->change));
    PUT("converged", json_boolean(res->converged));
    json_object_update(o, r->figures);
}

static void say(const cli_nodes *m, const kofn_plan_info *info)
{
    const run *r = m->ud;
    const kofn_iterate_result *res = &m->best->iterated;

    if (r->it->power)
        fprintf(stderr, "eigenvalue %.17g after %u iterations\n",
                res->eigenvalue, res->iterations);
    fprintf(stderr, "%s  any %zu of %zu  %u iterations in %.3g s, %s decoding",
            info->spec, info->threshold, m->count, res->iterations, m->seconds,
            nodes_decoding(m));
    if (m->here > 1)
        fprintf(stderr,
                "\n%zu nodes have the result; no two of them differ by more "
                "than %.2g",
                m->have, r->spread);
}

static int conclude(run *r)
{
    const cli_args *a = r->a;
    const cli_node *best = r->nodes.best;

    compare(r);
    if (a->verify)
        TRY_CODE(cli_verify_iteration(a, r->it, &best->v,
                                      best->iterated.iterations, &r->found));
    TRY_CODE(r->it->power ? cli_write(a, KOFN_DENSE(&best->v), 1)
                          : cli_ranks(a, r->it->file, &best->v, r->figures));
    nodes_report(&r->nodes, r->found.rel_error);
    if (!best->iterated.converged && !a->json && !a->quiet)
        cli_advise_iterate(a, &best->iterated);
    return 0;
}

/* ---- the whole ----------------------------------------------------------- */

/* True if an iterate is taken from one other node. Nodes started together are
 * not hostile to each other, and without error detection none of them counts
 * as faulty. */
static bool trusted(const cli_args *a)
{
    return !cli_transport_of(a->port)->address &&
           a->job.errors == KOFN_ERRORS_NONE;
}

static int prepare(run *r, const kofn_problem *pb)
{
    const cli_args *a = r->a;
    cli_nodes *m = &r->nodes;

    TRY_CODE(nodes_open(m, a, a->max_iter));
    TRY_CODE(cli_check_output(a, false));
    TRY_CODE(
        cli_fail(kofn_plan_new(&r->plan, pb, a->scheme, a->workers, a->seed)));
    TRY_CODE(nodes_take_plan(m, r->plan));
    m->confirm = a->confirm ? a->confirm : trusted(a);
    m->each = 1;
    m->every = 1;
    m->bytes = r->it->n * sizeof(double);
    m->live = live;
    m->put = put;
    m->say = say;
    m->ud = r;
    return 0;
}

int masterless_run(const cli_args *a, const cli_iteration *it,
                   const kofn_problem *pb)
{
    run r = {
        .a = a, .it = it, .found = {.rel_error = -1}, .figures = json_object()};
    int code = prepare(&r, pb);

    if (!code)
        code = nodes_run(&r.nodes);
    if (!code)
        code = conclude(&r);
    kofn_plan_free(r.plan);
    code = nodes_close(&r.nodes, code);
    json_decref(r.figures);
    return code;
}
