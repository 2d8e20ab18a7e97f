/* masterless.c -- kofn power and kofn pagerank on a mesh: all nodes as threads
 * of this process, or this process as one node of many. */
#include "cli.h"

#include "base/clock.h"

#include <kofn/peer.h>

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NODES 1024

/* One node of this process, and what became of it. */
typedef struct node {
    struct run *run;
    uint32_t seat;
    size_t number;
    kofn_matrix v;
    kofn_status status;
    char *reason; /* why it failed */
    kofn_iterate_result res;
    kofn_node_view end;
} node;

typedef struct run {
    const cli_args *a;
    const kofn_matrix *A;
    const kofn_sparse *M;
    const uint8_t *dangling;
    kofn_matrix *v; /* start, and result */
    kofn_plan *plan;
    kofn_decoding decoding;
    size_t nodes; /* that found the mesh */
    size_t here;  /* nodes that ever were in this process */
    node *node;
    kofn_mesh *mesh; /* of threads */
    kofn_happening *events;
    size_t event_count;
    atomic_size_t due; /* joins before this one have been made */
    double seconds, rel_error, spread;
    const node *best;
} run;

/* ---- what cannot be had of a mesh ---------------------------------------- */

static int check_options(const cli_args *a)
{
    const kofn_weather *w = &a->weather;
    const char *what = a->job.journal      ? "journal"
                       : a->job.metrics    ? "metrics"
                       : a->job.trace      ? "trace"
                       : a->job.record     ? "record"
                       : a->pattern_text   ? "pattern"
                       : a->checkpoint     ? "checkpoint"
                       : a->resume         ? "resume"
                       : a->show           ? "show"
                       : a->job.errors     ? "errors"
                       : a->job.in_flight  ? "in-flight"
                       : a->job.late != 0  ? "late"
                       : a->job.lease != 0 ? "lease"
                       : w->spread > 0 || w->straggle > 0 || w->leave > 0 ||
                               w->join > 0 || w->corrupt > 0
                           ? "weather"
                       : a->job.below == KOFN_BELOW_DEGRADE ? "below degrade"
                                                            : NULL;

    if (what)
        return cli_say(EXIT_USAGE, "--%s does not go with --masterless", what);
    if (a->events && !cli_transport_of(a->port)->here)
        return cli_say(EXIT_USAGE, "--events with --masterless needs --port "
                                   "threads");
    return 0;
}

static int check_events(const run *r)
{
    for (size_t i = 0; i < r->event_count; i++)
        if (r->events[i].kind != KOFN_HAPPENING_LEAVE &&
            r->events[i].kind != KOFN_HAPPENING_JOIN)
            return cli_say(EXIT_USAGE,
                           "%s: on a mesh of threads nodes can "
                           "leave and join, nothing else",
                           r->a->events);
    return 0;
}

/* ---- a node's life ------------------------------------------------------- */

static void live(void *ud, kofn_transport *t);

static kofn_status start(run *r, size_t number, uint32_t seat)
{
    node *n = &r->node[number];
    size_t bytes = r->v->rows * sizeof(double);

    *n = (node){.run = r, .seat = seat, .number = number, .v = *r->v};
    n->v.data = malloc(bytes);
    if (!n->v.data)
        return KOFN_NOMEM;
    memcpy(n->v.data, r->v->data, bytes);
    return kofn_mesh_start(r->mesh, live, n);
}

/* Events before the iteration that begins now.  Whoever gets there first lets
 * a joiner in; who is to leave goes by itself. */
static bool happen(const node *n, uint64_t t)
{
    run *r = n->run;
    size_t number = r->nodes;
    bool go = false;

    for (size_t i = 0; i < r->event_count; i++) {
        const kofn_happening *e = &r->events[i];
        size_t expected = i;

        if (e->round > t + 1)
            break;
        if (e->kind == KOFN_HAPPENING_LEAVE) {
            go |= e->worker == n->number;
            atomic_compare_exchange_strong(&r->due, &expected, i + 1);
        } else if (atomic_compare_exchange_strong(&r->due, &expected, i + 1)) {
            (void)start(r, number, KOFN_NO_SEAT); /* it may as well not come */
        }
        number += e->kind == KOFN_HAPPENING_JOIN;
    }
    return go;
}

/* Who was behind, and took the last iterate from others, was to leave before. */
static int watch(void *ud, const kofn_node_view *view, const double *scalar)
{
    (void)scalar;
    return cli_caught() || happen(ud, view->at.t - view->final);
}

/* Nodes that were started together are not hostile to each other. */
static size_t confirm(const cli_args *a)
{
    return a->confirm ? a->confirm : !cli_transport_of(a->port)->address;
}

static kofn_peer_options peer_options(const run *r, node *n)
{
    kofn_time patience = r->a->job.patience;

    return (kofn_peer_options){.size = sizeof(kofn_peer_options),
                               .nodes = r->nodes,
                               .seat = n->seat,
                               .confirm = confirm(r->a),
                               .decoding = r->decoding,
                               .give_up = patience  ? patience
                                          : r->mesh ? 5 * KOFN_SECOND
                                                    : 60 * KOFN_SECOND,
                               .watch = watch,
                               .watch_ud = n};
}

static void live(void *ud, kofn_transport *t)
{
    node *n = ud;
    run *r = n->run;
    kofn_peer_options p = peer_options(r, n);
    kofn_iterate_options o = {.size = sizeof o,
                              .tolerance = r->a->tol,
                              .max_iterations = (unsigned)r->a->max_iter,
                              .damping = r->a->damping};

    n->status = r->A ? kofn_power_peers(t, r->plan, r->A, &n->v, &o, &p,
                                        &n->res, &n->end)
                     : kofn_pagerank_peers(t, r->plan, r->M, r->dangling, &n->v,
                                           &o, &p, &n->res, &n->end);
    if (n->status < 0)
        n->reason = strdup(kofn_errmsg());
}

/* ---- threads ------------------------------------------------------------- */

static int run_threads(run *r)
{
    kofn_status st = kofn_mesh_new(&r->mesh);

    for (size_t i = 0; i < r->nodes && !st; i++)
        st = start(r, i, (uint32_t)i);
    if (r->mesh)
        kofn_mesh_wait(r->mesh);
    kofn_mesh_free(r->mesh);
    return st ? cli_fail(st) : 0;
}

/* ---- one node of many ---------------------------------------------------- */

static kofn_status reach_all(kofn_transport *t, const char *list)
{
    char *copy = strdup(list), *rest = copy, *one;
    kofn_status st = copy ? KOFN_OK : KOFN_NOMEM;

    while (!st && (one = strtok_r(rest, ",", &rest)))
        st = t->reach(t, one);
    free(copy);
    return st;
}

static kofn_status open_transport(const run *r, kofn_transport **t,
                                  uint32_t *seat)
{
    kofn_status st = cli_transport_of(r->a->port)
                         ->mesh(r->a, (r->v->rows + 8192) * 8, t, seat);

    return st || !r->a->reach ? st : reach_all(*t, r->a->reach);
}

static int run_one(run *r)
{
    kofn_transport *t = NULL;
    node *n = &r->node[0];
    kofn_status st;

    *n = (node){.run = r, .v = *r->v};
    n->v.data = malloc(r->v->rows * sizeof(double));
    if (!n->v.data)
        return cli_say(EXIT_FAILED, "out of memory");
    memcpy(n->v.data, r->v->data, r->v->rows * sizeof(double));
    st = open_transport(r, &t, &n->seat);
    if (!st)
        live(n, t);
    if (t)
        t->close(t, KOFN_SECOND);
    return st ? cli_fail(st) : 0;
}

/* ---- what came of it ----------------------------------------------------- */

/* Nodes that have the result, the first of them, and by how much two of them
 * differ at most. */
static size_t gather(run *r)
{
    size_t have = 0;

    for (size_t i = 0; i < r->here; i++) {
        const node *n = &r->node[i];
        double d;

        if (!n->run || n->status || !n->end.final)
            continue;
        have++;
        if (!r->best)
            r->best = n;
        d = cli_relative_error(&n->v, &r->best->v);
        if (d > r->spread || isnan(d)) /* which stays */
            r->spread = d;
    }
    return have;
}

static int verify(run *r)
{
    kofn_iterate_options o = {.size = sizeof o,
                              .tolerance = r->a->tol,
                              .max_iterations = (unsigned)r->a->max_iter,
                              .damping = r->a->damping};
    kofn_iterate_result res;
    kofn_matrix *want = r->v; /* the start is not needed any more */
    kofn_status st =
        r->A ? kofn_power_plain(r->A, want, &o, &res)
             : kofn_pagerank_plain(r->M, r->dangling, want, &o, &res);

    if (st)
        return cli_fail(st);
    r->rel_error = cli_relative_error(&r->best->v, want);
    if (!(r->rel_error < (double)INFINITY))
        return cli_say(EXIT_FAILED,
                       "--verify: the result or the plain one is "
                       "not finite, so that there is no relative error");
    if (res.iterations != r->best->res.iterations)
        cli_say(0, "the plain iteration took %u iterations, this one %u",
                res.iterations, r->best->res.iterations);
    return 0;
}

static void report_json(const run *r, const kofn_plan_info *info, size_t have)
{
    const node *n = r->best;
    json_t *o = json_object();

#define PUT(key, value) json_object_set_new(o, key, value)
    PUT("status", json_string("ok"));
    PUT("command", json_string(r->a->command->name));
    PUT("scheme", json_string(info->spec));
    PUT("nodes", json_integer((json_int_t)r->nodes));
    PUT("threshold", json_integer((json_int_t)info->threshold));
    PUT("decode",
        json_string(r->decoding == KOFN_DECODE_REPLICATED ? "replicated"
                                                          : "distributed"));
    PUT("iterations", json_integer(n->res.iterations));
    PUT("seconds", json_real(r->seconds));
    PUT("members", json_integer((json_int_t)n->end.members));
    PUT("epochs", json_integer((json_int_t)n->end.epoch.number));
    PUT("adopted", json_integer((json_int_t)n->end.adopted));
    PUT("dropped", json_integer((json_int_t)n->end.dropped));
    PUT("liars", json_integer((json_int_t)n->end.liars));
    PUT("alone", json_integer((json_int_t)n->end.alone));
    PUT("finished", json_integer((json_int_t)have));
    PUT("spread", json_real(r->spread));
    if (r->a->verify)
        PUT("rel_error", json_real(r->rel_error));
    if (r->A)
        PUT("eigenvalue", json_real(n->res.eigenvalue));
    PUT("change", json_real(n->res.change));
    PUT("converged", json_boolean(n->res.converged));
    PUT("port", json_string(r->a->port));
    PUT("seed", json_integer((json_int_t)r->a->seed));
    cli_put_blas(r->a, o);
#undef PUT
    cli_print_json(o);
}

static void report_text(const run *r, const kofn_plan_info *info, size_t have)
{
    const node *n = r->best;

    fprintf(
        stderr, "%s  any %zu of %zu  %u iterations in %.3g s, %s decoding",
        info->spec, info->threshold, r->nodes, n->res.iterations, r->seconds,
        r->decoding == KOFN_DECODE_REPLICATED ? "replicated" : "distributed");
    if (r->here > 1)
        fprintf(stderr,
                "\n%zu nodes have the result; no two of them differ by more "
                "than %.2g",
                have, r->spread);
    fprintf(stderr, "\n%zu members in epoch %llu", n->end.members,
            (unsigned long long)n->end.epoch.number);
    if (r->rel_error >= 0)
        fprintf(stderr, "  relative error %.2g", r->rel_error);
    fprintf(stderr, "\n");
    if (r->A)
        fprintf(stderr, "eigenvalue %.17g after %u iterations\n",
                n->res.eigenvalue, n->res.iterations);
    cli_report_blas(r->a);
    if (!n->res.converged)
        cli_say(0,
                "not converged after %u iterations: the change is %.3g; "
                "raise --max-iter or --tol",
                n->res.iterations, n->res.change);
}

/* Nobody has it: why the first who failed did. */
static int complain(const run *r)
{
    for (size_t i = 0; i < r->here; i++)
        if (r->node[i].run && r->node[i].status < 0)
            return cli_say(
                r->node[i].status == KOFN_TOOFEW ? EXIT_TOOFEW
                : r->node[i].status == KOFN_UNSUITED ||
                        r->node[i].status == KOFN_INVAL
                    ? EXIT_USAGE
                    : EXIT_FAILED,
                "%s", r->node[i].reason ? r->node[i].reason : "out of memory");
    return cli_say(EXIT_TOOFEW, "no node is left that has the result");
}

static int conclude(run *r)
{
    size_t have = gather(r);
    session s = {.args = r->a};
    kofn_plan_info info;
    int code;

    if (cli_caught())
        return 128 + cli_caught();
    if (have == 0)
        return complain(r);
    code = r->a->verify ? verify(r) : 0;
    if (!code)
        code = session_write(&s, &r->best->v, 1);
    if (code || kofn_plan_describe(r->plan, false, &info))
        return code;
    if (r->a->json)
        report_json(r, &info, have);
    else if (!r->a->quiet)
        report_text(r, &info, have);
    return 0;
}

/* ---- the whole ----------------------------------------------------------- */

static int prepare(run *r)
{
    const cli_args *a = r->a;
    kofn_problem pb = {KOFN_MATVEC, r->v->rows, r->v->rows,
                       1,           KOFN_F64,   r->M != NULL};
    kofn_status st;
    int code = check_options(a);

    if (!code)
        code = cli_check_output(a, false);
    if (code)
        return code;
    if (a->workers > MOST_NODES)
        return cli_say(EXIT_USAGE,
                       "--workers %zu: a mesh has at most %d "
                       "nodes",
                       a->workers, MOST_NODES);
    st = kofn_plan_new(&r->plan, &pb, a->scheme, a->workers, a->seed);
    if (st)
        return cli_fail(st);
    if (a->events) {
        st = kofn_events_read(&r->events, &r->event_count, a->events,
                              a->workers, a->max_iter ? a->max_iter : 200);
        if (st)
            return cli_fail_input(st);
        code = check_events(r);
    }
    r->decoding = a->decode ? (kofn_decoding)a->decode
                            : kofn_decoding_for(r->plan, a->workers, 0, 0, 0);
    r->here = cli_transport_of(a->port)->here ? r->nodes + r->event_count : 1;
    r->node = calloc(r->here, sizeof *r->node);
    return code ? code : r->node ? 0 : cli_say(EXIT_FAILED, "out of memory");
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
             .nodes = a->workers,
             .rel_error = -1};
    const cli_transport *port = cli_transport_of(a->port);
    int code = prepare(&r);

    if (!code) {
        cli_tell_blas(a);
        r.seconds = -kf_clock_seconds();
        cli_guard(true);
        code = port->here ? run_threads(&r) : run_one(&r);
        cli_guard(false);
        r.seconds += kf_clock_seconds();
    }
    if (!code)
        code = conclude(&r);
    for (size_t i = 0; r.node && i < r.here; i++) {
        free(r.node[i].v.data);
        free(r.node[i].reason);
    }
    free(r.node);
    kofn_events_free(r.events);
    kofn_plan_free(r.plan);
    return port->end ? port->end(code) : code;
}
