/* cmd_iterate.c -- kofn pagerank, kofn power.
 *
 * Owns the matrix and the vector while the command runs.  The iteration is the
 * library's (learn/iterate.c); here its options are read and its result is
 * judged and written. */
#include "cli.h"

#include "base/mix.h"

#include <stdlib.h>

/* An iteration that is watched. */
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

static kofn_iterate_options options(const cli_args *a, watched *w)
{
    return (kofn_iterate_options){.size = sizeof(kofn_iterate_options),
                                  .tolerance = a->tol,
                                  .max_iterations = (unsigned)a->max_iter,
                                  .damping = a->damping,
                                  .watch = w ? watch : NULL,
                                  .watch_ud = w};
}

/* Go on where the checkpoint is, if it is anywhere. */
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

static size_t most(const cli_args *a)
{
    return a->max_iter ? a->max_iter : 200;
}

/* Reports the end of the run; the iteration count is right whether it failed or
 * not. */
static int conclude(session *s, kofn_status st, const kofn_iterate_result *res)
{
    s->status = st;
    s->iterations = res->iterations;
    s->eigenvalue = res->eigenvalue;
    s->change = res->change;
    s->converged = res->converged;
    if (cli_caught())
        return 128 + cli_caught();
    if (st)
        return cli_fail(st);
    if (!res->converged && !s->args->quiet)
        cli_advise_iterate(s->args, res);
    return 0;
}

/* ---- PageRank ------------------------------------------------------------ */

typedef struct rank {
    kofn_file *file;
    kofn_sparse *M;
    uint8_t *dangling;
    kofn_matrix v;
} rank;

static int load_graph(rank *r, const char *path)
{
    kofn_status st = kofn_file_open(&r->file, path, KOFN_FILE_GRAPH);
    const kofn_sparse *g = st ? NULL : kofn_file_sparse(r->file);

    if (st)
        return cli_fail_input(st);
    if (!g)
        return cli_say(EXIT_USAGE,
                       "%s is dense; a graph is a Matrix Market "
                       "file in coordinate format or a list of edges "
                       "(.txt, .tsv, .dat or .edges)",
                       path);
    st = kofn_pagerank_matrix(&r->M, &r->dangling, g);
    if (st)
        return cli_fail(st);
    kofn_file_free(r->file);
    r->file = NULL;
    r->v = (kofn_matrix){malloc(r->M->rows * sizeof(double)), r->M->rows, 1, 1,
                         KOFN_F64};
    return r->v.data ? 0 : cli_say(EXIT_FAILED, "out of memory");
}

static int verify_rank(session *s, const rank *r)
{
    kofn_iterate_options o = options(s->args, NULL);
    kofn_matrix want = r->v;
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_status st;
    int code;

    want.data = malloc(want.rows * sizeof(double));
    if (!want.data)
        return cli_say(EXIT_FAILED, "out of memory for --verify");
    st = kofn_pagerank_plain(r->M, r->dangling, &want, &o, &res);
    code = st ? cli_fail(st) : cli_verify(&s->found, &r->v, &want);
    if (!st && res.iterations != s->iterations)
        cli_say(0, "the plain iteration took %u iterations, this one %u",
                res.iterations, s->iterations);
    free(want.data);
    return code;
}

static int run_pagerank(session *s, rank *r)
{
    watched w = {.session = s, .v = &r->v, .res = KOFN_ITERATE_RESULT_INIT};
    kofn_iterate_options o = options(s->args, &w);
    kofn_status st = kofn_place_sparse(s->job, r->M);

    TRY_CODE(st ? cli_fail(st) : resume(&w, &r->v, &o));
    cli_guard(true);
    st = kofn_pagerank(s->job, r->dangling, &r->v, &o, &w.res);
    cli_guard(false);
    TRY_CODE(conclude(s, st, &w.res));
    if (s->args->verify)
        TRY_CODE(verify_rank(s, r));
    return cli_write(s->args, &r->v, 1);
}

int cmd_pagerank(cli_args *a)
{
    session s = {0};
    rank r = {0};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 0, 0, 1, KOFN_F64, true);
    int code = load_graph(&r, a->operand[0]);

    if (!code && a->masterless) {
        code = masterless_run(a, NULL, r.M, r.dangling, &r.v);
    } else {
        if (!code) {
            pb.m = pb.n = r.M->rows;
            code = session_open(&s, a, &pb, most(a));
        }
        if (!code)
            code = run_pagerank(&s, &r);
        code = session_close(&s, code);
    }
    if (code < 128) {
        kofn_file_free(r.file);
        kofn_sparse_free(r.M);
        kofn_free(r.dangling);
        free(r.v.data);
    }
    return code;
}

/* ---- power iteration ----------------------------------------------------- */

/* A start with a part in every direction, the same for the same seed. */
static void seed_vector(kofn_matrix *v, uint64_t seed)
{
    uint64_t x = seed;

    for (size_t i = 0; i < v->rows; i++)
        ((double *)v->data)[i] = (double)(kf_next64(&x) >> 11) * 0x1p-53 + 0.5;
}

static int run_power(session *s, const kofn_matrix *A, kofn_matrix *v)
{
    watched w = {.session = s, .v = v, .res = KOFN_ITERATE_RESULT_INIT};
    kofn_iterate_options o = options(s->args, &w);
    kofn_iterate_result plain = KOFN_ITERATE_RESULT_INIT;
    kofn_matrix want = *v;
    kofn_status st = kofn_place(s->job, A);
    int code = st ? cli_fail(st) : resume(&w, v, &o);

    if (code)
        return code;
    cli_guard(true);
    st = kofn_power(s->job, v, &o, &w.res);
    cli_guard(false);
    code = conclude(s, st, &w.res);
    cli_erase();
    if (!code && !s->args->quiet && !s->args->json)
        fprintf(stderr, "eigenvalue %.17g after %u iterations\n",
                w.res.eigenvalue, w.res.iterations);
    if (!code && s->args->verify) {
        o = options(s->args, NULL);
        want.data = malloc(v->rows * sizeof(double));
        if (!want.data)
            return cli_say(EXIT_FAILED, "out of memory for --verify");
        seed_vector(&want, s->args->seed);
        st = kofn_power_plain(A, &want, &o, &plain);
        code = st ? cli_fail(st) : cli_verify(&s->found, v, &want);
        free(want.data);
    }
    return code ? code : cli_write(s->args, v, 1);
}

int cmd_power(cli_args *a)
{
    session s = {0};
    kofn_file *file = NULL;
    kofn_matrix v = {0};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 0, 0, 1, KOFN_F64, false);
    kofn_status st = kofn_file_open(&file, a->operand[0], KOFN_FILE_READ);
    const kofn_matrix *A = st ? NULL : kofn_file_dense(file);
    int code = st ? cli_fail_input(st) : 0;

    if (!code && !A)
        code = cli_say(EXIT_USAGE,
                       "%s is sparse; power iteration takes a dense matrix",
                       a->operand[0]);
    if (!code && (A->rows != A->cols || A->dtype != KOFN_F64))
        code = cli_say(EXIT_USAGE,
                       "%s is %zu x %zu float%s; power iteration "
                       "takes a square float64 matrix",
                       a->operand[0], A->rows, A->cols,
                       A->dtype == KOFN_F64 ? "64" : "32");
    if (!code) {
        pb.m = pb.n = A->rows;
        v = (kofn_matrix){malloc(A->rows * sizeof(double)), A->rows, 1, 1,
                          KOFN_F64};
        code = v.data ? 0 : cli_say(EXIT_FAILED, "out of memory");
    }
    if (!code)
        seed_vector(&v, a->seed);
    if (!code && a->masterless) {
        code = masterless_run(a, A, NULL, NULL, &v);
    } else {
        if (!code)
            code = session_open(&s, a, &pb, most(a));
        if (!code)
            code = run_power(&s, A, &v);
        code = session_close(&s, code);
    }
    if (code < 128) {
        kofn_file_free(file);
        free(v.data);
    }
    return code;
}
