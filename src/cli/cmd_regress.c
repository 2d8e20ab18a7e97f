/* cmd_regress.c -- kofn regress. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The dense matrix in a file; a copy in double precision if it is not that. */
typedef struct input {
    kofn_file *file;
    double *copy;
} input;

typedef struct fit {
    input file[4];  /* X, y and the held-out ones */
    kofn_matrix K[2]; /* the kernel's values, in the place of both X */
    kofn_matrix X, y, test_X, test_y, w;
    kofn_regression *regression;
    session *session;
    kofn_regress_step resume;
    double *both; /* w and where the next gradient is taken: a checkpoint */
    FILE *history;
    int spoiled;    /* why the history could not be written, or 0 */
    bool verifying; /* without workers */
} fit;

/* ---- inputs ---------------------------------------------------------------- */

static void copy_floats(double *to, const kofn_matrix *a)
{
    const float *from = a->data;

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            to[i * a->cols + j] = (double)from[i * a->ld + j];
}

static int read_matrix(input *in, kofn_matrix *out, const char *path)
{
    kofn_status st = kofn_file_open(&in->file, path);
    const kofn_matrix *a = st ? NULL : kofn_file_dense(in->file);

    if (st)
        return cli_fail_input(st);
    if (!a)
        return cli_say(EXIT_USAGE, "%s is sparse; regression takes dense "
                       "matrices", path);
    *out = *a;
    if (a->dtype == KOFN_F64)
        return 0;
    in->copy = malloc(a->rows * a->cols * sizeof *in->copy);
    if (!in->copy)
        return cli_say(EXIT_FAILED, "out of memory for %s", path);
    copy_floats(in->copy, a);
    *out = (kofn_matrix){in->copy, a->rows, a->cols, a->cols, KOFN_F64};
    return 0;
}

/* A row or a column of labels, one for each row of X. */
static int read_labels(input *in, kofn_matrix *y, const char *path,
                       const kofn_matrix *X, const char *X_path)
{
    int code = read_matrix(in, y, path);

    if (code)
        return code;
    if (y->rows == 1 && y->cols == X->rows) {
        y->rows = y->cols;
        y->cols = y->ld = 1;
    }
    if (y->rows == X->rows && y->cols == 1)
        return 0;
    return cli_say(EXIT_USAGE, "%s is %zu x %zu; %s, %zu x %zu, needs %zu "
                   "labels", path, y->rows, y->cols, X_path, X->rows, X->cols,
                   X->rows);
}

/* From points to the kernel's values between them and those fitted to. */
static int apply_kernel(fit *f, const char *kernel)
{
    kofn_status st = kofn_kernel(&f->K[0], &f->X, &f->X, kernel);

    if (!st && f->test_X.data)
        st = kofn_kernel(&f->K[1], &f->test_X, &f->X, kernel);
    if (st)
        return cli_fail(st);
    f->X = f->K[0];
    if (f->test_X.data)
        f->test_X = f->K[1];
    return 0;
}

static int load(fit *f, const cli_args *a)
{
    int code = read_matrix(&f->file[0], &f->X, a->operand[0]);

    if (!code)
        code = read_labels(&f->file[1], &f->y, a->operand[1], &f->X,
                           a->operand[0]);
    if (!code && a->test_X)
        code = read_matrix(&f->file[2], &f->test_X, a->test_X);
    if (!code && a->test_X)
        code = read_labels(&f->file[3], &f->test_y, a->test_y, &f->test_X,
                           a->test_X);
    if (!code && a->test_X && f->test_X.cols != f->X.cols)
        code = cli_say(EXIT_USAGE, "%s has %zu columns and %s %zu", a->test_X,
                       f->test_X.cols, a->operand[0], f->X.cols);
    if (!code && a->kernel)
        code = apply_kernel(f, a->kernel);
    if (code)
        return code;
    f->w = (kofn_matrix){calloc(f->X.cols, sizeof(double)), f->X.cols, 1, 1,
                         KOFN_F64};
    return f->w.data ? 0 : cli_say(EXIT_FAILED, "out of memory");
}

static void release(fit *f)
{
    kofn_regression_free(f->regression);
    for (size_t i = 0; i < 4; i++) {
        kofn_file_free(f->file[i].file);
        free(f->file[i].copy);
    }
    kofn_free(f->K[0].data);
    kofn_free(f->K[1].data);
    free(f->w.data);
    free(f->both);
    if (f->history)
        fclose(f->history);
}

/* ---- iterations -------------------------------------------------------------- */

static json_t *number(double x)
{
    return x - x == 0 ? json_real(x) : json_null();
}

static void keep(fit *f, const kofn_regress_step *now, const kofn_report *rep)
{
    session *s = f->session;
    double seconds = (double)rep->took * 1e-9;

    if (f->history &&
        fprintf(f->history, "%u,%.17g,%.17g,%.17g,%.17g,%.9g,%u,%u,%llu\n",
                now->iteration, now->objective, now->gradient, now->test,
                now->step, seconds, rep->late, rep->messages,
                (unsigned long long)rep->scalars) < 0)
        f->spoiled = errno;
    if (s->args->json)
        json_array_append_new(
            s->per_iteration,
            json_pack("{s:o, s:o, s:f, s:i, s:I}", "objective",
                      number(now->objective), "test_objective",
                      number(now->test), "seconds", seconds, "stragglers",
                      (int)rep->late, "scalars_received",
                      (json_int_t)rep->scalars));
}

static void save(fit *f, const kofn_regress_step *now)
{
    size_t n = f->w.rows;
    kofn_matrix both = {f->both, 2, n, n, KOFN_F64};

    if (!f->both)
        return;
    memcpy(f->both, now->w, n * sizeof(double));
    memcpy(f->both + n, now->v, n * sizeof(double));
    checkpoint_save(f->session->checkpoint, now->iteration, &both,
                    json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:f}",
                              "objective", number(now->objective), "gradient",
                              number(now->gradient), "test", number(now->test),
                              "step", now->step, "first", now->first,
                              "lipschitz", now->lipschitz, "partial",
                              (double)now->partial));
}

/* Go on after the step that the checkpoint is of. */
static int resume(fit *f, const cli_args *a)
{
    const checkpoint *c = f->session->checkpoint;
    size_t n = f->w.rows;
    kofn_matrix both = {NULL, 2, n, n, KOFN_F64};
    int code;

    if (!a->checkpoint)
        return 0;
    both.data = f->both = calloc(2 * n, sizeof(double));
    if (!f->both)
        return cli_say(EXIT_FAILED, "out of memory");
    if (!checkpoint_done(c))
        return 0;
    code = checkpoint_state(c, &both);
    memcpy(f->w.data, f->both, n * sizeof(double));
    f->resume = (kofn_regress_step){
        .iteration = checkpoint_done(c),
        .objective = checkpoint_number(c, "objective"),
        .gradient = checkpoint_number(c, "gradient"),
        .test = checkpoint_number(c, "test"),
        .step = checkpoint_number(c, "step"),
        .v = f->both + n,
        .first = checkpoint_number(c, "first"),
        .lipschitz = checkpoint_number(c, "lipschitz"),
        .partial = checkpoint_number(c, "partial") != 0};
    return code;
}

static int watch(void *ud, const kofn_regress_step *now,
                 const kofn_report *rep)
{
    fit *f = ud;

    if (f->verifying)
        return cli_caught();
    if (rep) {
        f->session->iterations = now->iteration;
        keep(f, now, rep);
        save(f, now);
    }
    session_round(f->session, rep, rep ? now->gradient : -1);
    return cli_caught() || f->spoiled;
}

/* After the line of this iteration: what comes behind it is done again. */
static int reopen_history(fit *f, const char *path, unsigned iteration)
{
    unsigned at = 0;
    char line[400];

    while (at != iteration && fgets(line, sizeof line, f->history))
        at = (unsigned)strtoul(line, NULL, 10);
    if (at != iteration)
        return cli_say(EXIT_USAGE, "--history %s: it has no line of iteration "
                       "%u, after which this goes on; give another file", path,
                       iteration);
    if (fflush(f->history) || ftruncate(fileno(f->history),
                                        (off_t)ftell(f->history)) != 0)
        return cli_say(EXIT_FAILED, "--history %s: %s", path, strerror(errno));
    fseek(f->history, 0, SEEK_END);
    return 0;
}

static int open_history(fit *f, const char *path)
{
    unsigned done = checkpoint_done(f->session->checkpoint);

    f->history = done ? fopen(path, "r+") : NULL;
    if (f->history)
        return reopen_history(f, path, done);
    f->history = fopen(path, "w");
    if (!f->history)
        return cli_say(EXIT_FAILED, "--history %s: %s", path, strerror(errno));
    setvbuf(f->history, NULL, _IOLBF, 0); /* whole lines, to be watched */
    fputs("iteration,objective,gradient_norm,test_objective,step,seconds,"
          "stragglers,messages,scalars_received\n", f->history);
    return 0;
}

/* `code`, or what has gone wrong with the history if that is 0. */
static int close_history(fit *f, const char *path, int code)
{
    if (f->history && fclose(f->history) != 0 && !f->spoiled)
        f->spoiled = errno;
    f->history = NULL;
    return code || !f->spoiled
               ? code
               : cli_say(EXIT_FAILED, "--history %s: %s", path,
                         strerror(f->spoiled));
}

/* ---- the run ------------------------------------------------------------------- */

static kofn_regress_options options(fit *f, const cli_args *a)
{
    kofn_regress_options o = a->regress;

    o.tolerance = a->tol;
    o.seed = a->seed;
    o.watch = watch;
    o.watch_ud = f;
    o.resume = &f->resume;
    if (f->test_X.data) {
        o.test_X = &f->test_X;
        o.test_y = &f->test_y;
    }
    return o;
}

/* The same steps without workers. */
static int verify(fit *f)
{
    kofn_matrix want = f->w;
    kofn_regress_result res;
    kofn_status st;
    int code;

    want.data = calloc(want.rows, sizeof(double));
    if (!want.data)
        return cli_say(EXIT_FAILED, "out of memory for --verify");
    f->verifying = true;
    st = kofn_regress_plain(f->regression, &want, &res);
    code = st == KOFN_AGAIN ? 128 + cli_caught()
           : st           ? cli_fail(st)
                          : session_verified(f->session, &f->w, &want);
    free(want.data);
    return code;
}

static int conclude(session *s, kofn_status st, const kofn_regress_result *res)
{
    s->status = st;
    s->iterations = res->iterations;
    s->objective = res->objective;
    s->test_objective = res->test;
    s->gradient = res->gradient;
    s->converged = res->converged;
    if (cli_caught())
        return 128 + cli_caught();
    if (st < 0)
        return cli_fail(st);
    cli_erase();
    if (!s->args->quiet && !s->args->json)
        fprintf(stderr, "%s after %u iterations: objective %.9g, gradient "
                "%.2e\n", res->converged ? "converged" : "not converged",
                res->iterations, res->objective, res->gradient);
    return st == KOFN_PARTIAL
               ? cli_say(EXIT_TOOFEW, "gradients were of the points of those "
                         "who answered; that is what the scheme is for")
               : 0;
}

static int descend(fit *f, const cli_args *a, kofn_op op)
{
    kofn_regress_result res = {0};
    kofn_status st = kofn_regression_place(f->regression, f->session->job, op);
    int code, wrote;

    if (st)
        return cli_fail(st);
    cli_guard(true);
    st = kofn_regress(f->regression, &f->w, &res);
    code = f->spoiled ? 0 : conclude(f->session, st, &res);
    if (!code && !f->spoiled && a->verify)
        code = verify(f);
    cli_guard(false);
    if (f->spoiled)
        return 0; /* for close_history to tell */
    if (!code || st == KOFN_PARTIAL) {
        wrote = session_write(f->session, &f->w, 1);
        code = wrote ? wrote : code;
    }
    return code;
}

int cmd_regress(cli_args *a)
{
    session s = {0};
    fit f = {.session = &s};
    kofn_regress_options o;
    kofn_problem pb = {0};
    int code = load(&f, a);
    kofn_status st = KOFN_OK;

    if (!code) {
        o = options(&f, a);
        st = kofn_regression_new(&f.regression, &f.X, &f.y, &o);
        if (!st)
            st = kofn_regression_problem(f.regression, a->scheme, a->workers,
                                         &pb);
        code = st ? cli_fail(st) : 0;
    }
    if (!code)
        code = session_open(&s, a, &pb,
                            o.max_iterations ? o.max_iterations : 100);
    if (!code && !(s.per_iteration = json_array()))
        code = cli_say(EXIT_FAILED, "out of memory");
    if (!code)
        code = resume(&f, a);
    if (!code && a->history)
        code = open_history(&f, a->history);
    if (!code)
        code = close_history(&f, a->history, descend(&f, a, pb.op));
    code = session_close(&s, code);
    if (code < 128)
        release(&f);
    return code;
}
