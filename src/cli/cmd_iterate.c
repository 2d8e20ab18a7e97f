/* cmd_iterate.c -- kofn pagerank, kofn power.
 *
 * Owns the matrix and the vector while the command runs. The library iterates
 * (learn/iterate.c). This file reads options, and judges and writes the
 * result. */
#include "busy.h"
#include "masterless.h"

#include "base/clock.h"

#include <stdlib.h>

/* An iteration with progress. */
typedef struct watched {
    session *session;
    const kofn_matrix *v;
    kofn_iterate_result res, resume;
} watched;

static int watch(void *ud, unsigned iteration, double change,
                 const kofn_report *rep)
{
    watched *w = ud;

    w->session->iterations = iteration;
    session_round(w->session, rep, change);
    if (rep)
        checkpoint_save(w->session->checkpoint, iteration, w->v,
                        json_pack("{s:f, s:f}", "change", change, "eigenvalue",
                                  w->res.eigenvalue));
    return cli_caught();
}

/* Resumes from the checkpoint, if there is one. */
static int resume(watched *w, kofn_matrix *v, kofn_iterate_options *o)
{
    const checkpoint *c = w->session->checkpoint;

    if (!checkpoint_done(c))
        return 0;
    w->resume =
        (kofn_iterate_result){.size = sizeof w->resume,
                              .iterations = checkpoint_done(c),
                              .change = checkpoint_number(c, "change"),
                              .eigenvalue = checkpoint_number(c, "eigenvalue")};
    o->resume = &w->resume;
    return checkpoint_state(c, v);
}

/* ---- inputs -------------------------------------------------------------- */

static int load_graph(cli_iteration *it, const cli_args *a,
                      const kofn_file *file)
{
    const char *path = a->operand[0];
    const kofn_sparse *g = file->matrix.sparse;

    if (!g)
        return cli_say(EXIT_USAGE,
                       "%s is dense; a graph is a Matrix Market "
                       "file in coordinate format or a list of edges "
                       "(.txt, .tsv, .dat or .edges)",
                       path);
    TRY_CODE(cli_fail(kofn_pagerank_matrix(&it->M, &it->dangling, g)));
    it->A = KOFN_SPARSE(it->M);
    TRY_CODE(cli_know_graph(&it->graph, file));
    if (!a->quiet)
        cli_tell_graph(&it->graph, file, path);
    it->n = it->M->rows;
    return 0;
}

static int load_matrix(cli_iteration *it, kofn_file *file, const char *path)
{
    const kofn_matrix *A = file->matrix.dense;
    const kofn_sparse *S = file->matrix.sparse;
    size_t rows = A ? A->rows : S->rows, cols = A ? A->cols : S->cols;
    bool wide = !A || A->dtype == KOFN_F64;

    if (rows != cols || !wide)
        return cli_say(EXIT_USAGE,
                       "%s is %zu x %zu float%s; power iteration "
                       "takes a square float64 matrix",
                       path, rows, cols, wide ? "64" : "32");
    it->A = file->matrix;
    it->n = rows;
    return 0;
}

/* Returns how a list of edges is to be read. */
static kofn_file_use graph_use(const cli_args *a)
{
    int use = KOFN_FILE_GRAPH | (a->weights ? KOFN_GRAPH_WEIGHTS : 0) |
              (a->undirected ? KOFN_GRAPH_UNDIRECTED : 0) |
              (a->directed ? KOFN_GRAPH_DIRECTED : 0) |
              (a->isolated ? KOFN_GRAPH_ISOLATED : 0);

    return (kofn_file_use)use;
}

static int load(cli_iteration *it, const cli_args *a)
{
    const char *path = a->operand[0];
    bool power = it->power;
    kofn_status st;

    if (a->undirected && a->directed)
        return cli_say(EXIT_USAGE, "--undirected and --directed exclude each "
                                   "other");
    cli_busy("reading", path);
    st = kofn_file_open(&it->file, path, power ? KOFN_FILE_READ : graph_use(a));
    cli_busy_end();
    TRY_CODE(cli_fail_input(st));
    TRY_CODE(power ? load_matrix(it, it->file, path)
                   : load_graph(it, a, it->file));
    if (!power)
        TRY_CODE(cli_read_nodes(a, it));
    if (!power && !it->file->edges) { /* only M is needed */
        kofn_file_free(it->file);
        it->file = NULL;
    }
    return cli_start(it, a->seed, "the vector", &it->v);
}

/* ---- the run ------------------------------------------------------------- */

/* Reports the end of the run. The iteration count is right even after a
 * failure. */
static int conclude(session *s, kofn_status st, const cli_iteration *it,
                    const kofn_iterate_result *res)
{
    const cli_args *a = s->args;
    bool power = a->command->bit == IN_POWER;

    s->status = st;
    s->iterations = res->iterations;
    s->figures = json_pack("{s:o, s:b}", "change", cli_number(res->change),
                           "converged", res->converged);
    if (power)
        json_object_set_new(s->figures, "eigenvalue",
                            cli_number(res->eigenvalue));
    else
        json_object_set_new(s->figures, "graph", cli_graph_json(&it->graph));
    if (cli_caught())
        return 128 + cli_caught();
    if (st)
        return cli_fail(st);
    if (!res->converged && !a->quiet)
        cli_advise_iterate(a, res);
    cli_erase();
    if (power && !a->quiet && !a->json)
        fprintf(stderr, "eigenvalue %.17g after %u iterations\n",
                res->eigenvalue, res->iterations);
    return 0;
}

static int run(session *s, cli_iteration *it)
{
    watched w = {.session = s, .v = &it->v, .res = KOFN_ITERATE_RESULT_INIT};
    kofn_iterate_options o = cli_iterate_options(s->args, it);
    kofn_status st = kofn_place_at(s->job, 0, it->A);
    double since;

    o.watch = watch;
    o.watch_ud = &w;
    TRY_CODE(st ? cli_fail(st) : resume(&w, &it->v, &o));
    cli_guard(true);
    st = it->power ? kofn_power(s->job, &it->v, &o, &w.res)
                   : kofn_pagerank(s->job, it->dangling, &it->v, &o, &w.res);
    cli_guard(false);
    TRY_CODE(conclude(s, st, it, &w.res));
    since = kf_clock_seconds();
    if (s->args->verify)
        TRY_CODE(cli_verify_iteration(s->args, it, &it->v, s->iterations,
                                      &s->found));
    cli_spent(CLI_VERIFYING, since);
    return it->power ? cli_write(s->args, KOFN_DENSE(&it->v), 1)
                     : cli_ranks(s->args, it->file, &it->v, s->figures);
}

int cmd_iterate(cli_args *a)
{
    session s = {0};
    cli_iteration it = {.power = a->command->bit == IN_POWER};
    int code = load(&it, a);
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, it.n, it.n, 1, KOFN_F64,
                                        it.A.sparse != NULL);

    if (!code && a->masterless) {
        code = masterless_run(a, &it, &pb);
    } else {
        if (!code)
            code = session_open(&s, a, &pb, a->max_iter, NULL);
        if (!code)
            code = run(&s, &it);
        code = session_close(&s, code);
    }
    if (code < 128) {
        kofn_file_free(it.file);
        kofn_free(it.M);
        kofn_free(it.dangling);
        free(it.v.data);
        free(it.personalize.data);
        free(it.sinks.data);
        free(it.start.data);
    }
    return code;
}
