/* cmd_regress.c -- kofn regress.
 *
 * Owns the points, the labels and the session while the command runs. The
 * library takes the steps (learn/regress.c). This file shows, saves and judges
 * them. */
#include "schemes.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fit {
    input file[5];        /* X, y, and the held-out X and y; the start */
    kofn_matrix K[2];     /* kernel values, used instead of both X */
    points points;        /* prepared points, used instead of both X */
    kofn_matrix owned[2]; /* memory of the prepared points */
    kofn_matrix X, y, test_X, test_y, w;
    kofn_matrix start; /* as w; without data: 0 */
    kofn_sparse
        S; /* used instead of X, which then has no data; no rows: X is dense */
    classes classes;
    kofn_regression *regression;
    session *session;
    kofn_regress_step resume;
    kofn_matrix
        both; /* w, then the point of the next gradient; for checkpoints */
    history history;
    json_t *setup;    /* rounds that found the step length, or NULL */
    double first;     /* norm of the first gradient */
    double objective; /* F over all points, at the end */
    kofn_fit reached,
        test;       /* fit at the end: all points; the held-out points */
    bool verifying; /* runs without workers, to verify */
} fit;

/* True if the descent takes batches, so that its figures describe batches. */
static bool is_batched(const fit *f)
{
    return f->session->args->regress.optimizer == KOFN_OPTIMIZER_SGD;
}

/* ---- inputs -------------------------------------------------------------- */

/* Replaces points by the kernel's values between them and the fitted points. */
static int apply_kernel(fit *f, const char *kernel)
{
    kofn_matrix *const X[] = {&f->X, &f->test_X}, fitted = f->X;

    for (size_t i = 0; i < 2 && X[i]->data; i++) {
        TRY_CODE(cli_fail(kofn_kernel(&f->K[i], X[i], &fitted, kernel)));
        *X[i] = f->K[i];
    }
    return 0;
}

/* Adds a column of ones, or scales the columns, also for held-out points. */
static int prepare(fit *f, const cli_args *a)
{
    kofn_matrix *const X[] = {&f->X, &f->test_X};
    bool ones = a->regress.intercept;

    TRY_CODE(points_know(&f->points, &f->X, ones, a->standardise));
    for (size_t i = 0; (ones || a->standardise) && i < 2 && X[i]->data; i++) {
        TRY_CODE(points_prepare(&f->points, X[i], &f->owned[i]));
        *X[i] = f->owned[i];
    }
    return 0;
}

/* Prepares sparse points. Refuses options that would make them dense. */
static int prepare_sparse(fit *f, const cli_args *a, const kofn_sparse *X)
{
    if (a->kernel || a->standardise)
        return cli_say(EXIT_USAGE,
                       "%s is sparse, and --%s would fill it; leave "
                       "that out, or give a dense matrix",
                       a->operand[0], a->kernel ? "kernel" : "scale");
    if (f->test_X.data && a->regress.intercept) {
        f->points = (points){.columns = X->cols, .intercept = true};
        TRY_CODE(points_prepare(&f->points, &f->test_X, &f->owned[1]));
        f->test_X = f->owned[1];
    }
    TRY_CODE(points_prepare_sparse(&f->points, X, a->regress.intercept, &f->S));
    f->X.cols = f->S.cols;
    return 0;
}

static int no_labels(const char *path)
{
    return cli_say(EXIT_USAGE,
                   "%s has no labels with it; name the file that has them as "
                   "well",
                   path);
}

/* Loads the labels from the second file, or from the file of the points. */
static int load_labels(fit *f, const cli_args *a)
{
    const kofn_matrix *beside = f->file[0].file->labels;

    if (a->operands > 1)
        return input_labels(&f->file[1], &f->y, a->operand[1], &f->X,
                            a->operand[0]);
    if (!beside)
        return no_labels(a->operand[0]);
    f->y = *beside;
    return 0;
}

/* Loads the held-out points and their labels, from one file or two. */
static int load_test(fit *f, const cli_args *a)
{
    if (!a->test_X)
        return 0;
    TRY_CODE(
        input_like(&f->file[2], &f->test_X, a->test_X, &f->X, a->operand[0]));
    if (a->test_y == a->test_X && !f->file[2].file->labels)
        return no_labels(a->test_X);
    if (a->test_y == a->test_X) {
        f->test_y = *f->file[2].file->labels;
        return 0;
    }
    return input_labels(&f->file[3], &f->test_y, a->test_y, &f->test_X,
                        a->test_X);
}

/* Names two classes 0 and 1, whatever their labels are. */
static int name_classes(fit *f, const cli_args *a)
{
    const char *path = a->operand[a->operands - 1];
    bool alone = a->operands == 1; /* then the first file has the labels */

    if (a->regress.loss != KOFN_LOSS_LOGISTIC)
        return 0;
    classes_find(&f->classes, &f->y);
    TRY_CODE(classes_apply(&f->classes, &f->file[!alone], &f->y, path));
    if (a->test_X)
        TRY_CODE(
            classes_apply(&f->classes, &f->file[3], &f->test_y, a->test_y));
    if (!a->quiet && !a->json)
        classes_tell(&f->classes, path);
    return 0;
}

/* Loads the weights of --start into w, for the prepared columns. */
static int load_start(fit *f, const cli_args *a)
{
    size_t n = f->w.rows;
    kofn_matrix given;

    if (!a->start)
        return 0;
    TRY_CODE(input_targets(&f->file[4], &given, a->start));
    if (given.cols != 1 && given.rows == 1)
        input_column(&given);
    if (given.rows != n || given.cols != 1)
        return cli_say(
            EXIT_USAGE, "--start %s is %zu x %zu; it needs %zu weights%s",
            a->start, given.rows, given.cols, n,
            a->regress.intercept ? ", the last is the intercept" : "");
    TRY_CODE(cli_room(&f->start, n, 1, "--start"));
    for (size_t j = 0; j < n; j++)
        ((double *)f->start.data)[j] = cli_element(&given, j, 0);
    if (!a->kernel)
        points_redo(&f->points, f->start.data, f->w.data);
    memcpy(a->kernel ? f->w.data : f->start.data,
           a->kernel ? f->start.data : f->w.data, n * sizeof(double));
    return 0;
}

static int load(fit *f, const cli_args *a)
{
    const kofn_sparse *sparse = NULL;

    f->file[0].label = f->file[2].label = a->label;
    TRY_CODE(input_points(&f->file[0], &f->X, &sparse, a->operand[0]));
    TRY_CODE(load_labels(f, a));
    TRY_CODE(load_test(f, a));
    TRY_CODE(name_classes(f, a));
    TRY_CODE(sparse      ? prepare_sparse(f, a, sparse)
             : a->kernel ? apply_kernel(f, a->kernel)
                         : prepare(f, a));
    TRY_CODE(cli_room(&f->w, f->X.cols, 1, "the weights"));
    return load_start(f, a);
}

static void release(fit *f)
{
    kofn_regression_free(f->regression);
    for (size_t i = 0; i < 5; i++)
        input_free(&f->file[i]);
    free(f->start.data);
    for (size_t i = 0; i < 2; i++) {
        free(f->owned[i].data);
        kofn_free(f->K[i].data);
    }
    json_decref(f->setup);
    points_free(&f->points);
    free(f->w.data);
    free(f->both.data);
}

/* ---- iterations ---------------------------------------------------------- */

/* Keeps the counts of the rounds before the first step, which find the step
 * length. */
static void keep_setup(fit *f, const kofn_report *rep)
{
    double seconds = (double)rep->took * 1e-9;

    history_line(&f->history, rep, "0,nan,nan,nan,0");
    if (f->session->args->json && !f->setup)
        f->setup = json_pack("{s:i, s:f, s:i, s:I}", "rounds", (int)rep->rounds,
                             "seconds", seconds, "late", (int)rep->late,
                             "scalars_received", (json_int_t)rep->scalars);
}

static void keep(fit *f, const kofn_regress_step *now, const kofn_report *rep)
{
    session *s = f->session;
    double seconds = (double)rep->took * 1e-9;

    history_line(&f->history, rep, "%u,%.17g,%.17g,%.17g,%.17g", now->iteration,
                 now->objective, now->gradient, now->test, now->step);
    if (s->args->json)
        json_array_append_new(
            s->per_iteration,
            json_pack("{s:o, s:o, s:f, s:i, s:I}",
                      is_batched(f) ? "batch_objective" : "objective",
                      cli_number(now->objective), "test_objective",
                      cli_number(now->test), "seconds", seconds, "late",
                      (int)rep->late, "scalars_received",
                      (json_int_t)rep->scalars));
}

/* Saves the state, unless it depends on unchecked sums (--audit). */
static void save(fit *f, const kofn_regress_step *now, const kofn_report *rep)
{
    size_t n = f->w.rows;
    double *both = f->both.data;

    if (!both || rep->unchecked)
        return;
    history_keep(&f->history);
    memcpy(both, now->w, n * sizeof(double));
    memcpy(both + n, now->v, n * sizeof(double));
    checkpoint_save(f->session->checkpoint, now->iteration, &f->both,
                    json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f}",
                              "objective", cli_number(now->objective),
                              "gradient", cli_number(now->gradient), "test",
                              cli_number(now->test), "step", now->step, "first",
                              now->first, "lipschitz", now->lipschitz,
                              "partial", (double)now->partial, "ask",
                              now->ask));
}

/* Resumes after the step of the checkpoint. */
static int resume(fit *f, const cli_args *a)
{
    const checkpoint *c = f->session->checkpoint;
    size_t n = f->w.rows;

    if (!a->checkpoint)
        return 0;
    TRY_CODE(cli_room(&f->both, 2, n, "the state of --checkpoint"));
    if (!checkpoint_done(c))
        return 0;
    TRY_CODE(checkpoint_state(c, &f->both));
    memcpy(f->w.data, f->both.data, n * sizeof(double));
    f->resume =
        (kofn_regress_step){.iteration = checkpoint_done(c),
                            .objective = checkpoint_number(c, "objective"),
                            .gradient = checkpoint_number(c, "gradient"),
                            .test = checkpoint_number(c, "test"),
                            .step = checkpoint_number(c, "step"),
                            .v = (double *)f->both.data + n,
                            .first = checkpoint_number(c, "first"),
                            .lipschitz = checkpoint_number(c, "lipschitz"),
                            .partial = checkpoint_number(c, "partial") != 0,
                            .ask = fmax(0, checkpoint_number(c, "ask"))};
    f->first = f->resume.first;
    return 0;
}

static int watch(void *ud, const kofn_regress_step *now, const kofn_report *rep)
{
    fit *f = ud;

    if (f->verifying)
        return cli_caught();
    if (rep) {
        f->session->iterations = now->iteration;
        f->first = now->first;
        if (now->setup)
            keep_setup(f, now->setup);
        keep(f, now, rep);
        save(f, now, rep);
    }
    session_round(f->session, rep, rep ? now->gradient : -1);
    return cli_caught() || f->history.spoiled;
}

static int open_history(fit *f, const char *path)
{
    const char *batch = is_batched(f) ? "batch_" : "";
    char heading[160];

    snprintf(heading, sizeof heading,
             "iteration,%sobjective,%sgradient_norm,test_objective,step", batch,
             batch);
    return history_open(&f->history, path,
                        checkpoint_done(f->session->checkpoint), heading, true);
}

/* ---- the run ------------------------------------------------------------- */

static kofn_regress_options options(fit *f, const cli_args *a)
{
    kofn_regress_options o = a->regress;

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

/* Takes the same steps without workers, and compares. */
static int verify(fit *f)
{
    kofn_matrix want;
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    double since = kf_clock_seconds();
    kofn_status st;
    int code;

    TRY_CODE(cli_room(&want, f->w.rows, 1, "--verify"));
    if (f->start.data)
        memcpy(want.data, f->start.data, f->w.rows * sizeof(double));
    f->verifying = true;
    st = kofn_regress_plain(f->regression, &want, &res);
    code = st == KOFN_AGAIN ? 128 + cli_caught()
           : st             ? cli_fail(st)
                            : cli_verify(&f->session->found, &f->w, &want);
    cli_spent(CLI_VERIFYING, since);
    free(want.data);
    return code;
}

/* Returns X as an operand, dense or sparse. */
static kofn_operand all_points(const fit *f)
{
    return f->S.rows ? KOFN_SPARSE(&f->S) : KOFN_DENSE(&f->X);
}

/* Computes F over all points at the end, and how well the model fits. */
static kofn_status judge(fit *f, const kofn_regress_options *o)
{
    const double *w = f->w.data;
    kofn_status st =
        kofn_fit_of(&f->reached, all_points(f), &f->y, &f->w, o->loss);

    f->objective = f->reached.loss;
    for (size_t j = 0; j < f->w.rows - o->intercept; j++)
        f->objective += o->l2 / 2 * w[j] * w[j];
    return st || !f->test_X.data ? st
                                 : kofn_fit_of(&f->test, KOFN_DENSE(&f->test_X),
                                               &f->test_y, &f->w, o->loss);
}

static void tell(const fit *f, const kofn_regress_result *res)
{
    const char *name = cli_share_name(f->session->args->regress.loss);

    fprintf(stderr, "%s after %u iterations: objective %.9g, %s %.2e, %s %.4g",
            is_batched(f)    ? "stopped"
            : res->converged ? "converged"
                             : "not converged",
            res->iterations, f->objective,
            is_batched(f) ? "gradient of the last batch" : "gradient",
            res->gradient, name, f->reached.share);
    if (f->test_X.data)
        fprintf(stderr, "; held-out points: loss %.9g, %s %.4g", f->test.loss,
                name, f->test.share);
    fputc('\n', stderr);
}

static bool quicker(const cli_args *a)
{
    return a->regress.optimizer == KOFN_OPTIMIZER_GD &&
           a->regress.line_search == KOFN_LINE_SEARCH_NONE;
}

/* Advises if the gradient is small but the minimum is not near. */
static void advise_far(const fit *f, const kofn_regress_result *res,
                       const char *scale)
{
    const double *w = f->w.data;
    double size = 0;
    char how[80] = "is hidden by rounding";

    for (size_t j = 0; j < f->w.rows; j++)
        size = hypot(size, w[j]);
    if (isfinite(res->distance))
        snprintf(how, sizeof how, "is %.2g of the length of w or more",
                 res->distance / size);
    cli_say(0,
            "not converged after %u iterations: the gradient is small, but the "
            "distance to the minimum %s. Some rows or columns of X dominate; "
            "scale such rows and their labels down, or try %s%s--iterations %u",
            res->iterations, how, scale,
            quicker(f->session->args) ? "--optimizer lbfgs, " : "",
            10 * res->iterations);
}

/* Prints advice, the most likely cause first. */
static void advise(const fit *f, const kofn_regress_result *res)
{
    const cli_args *a = f->session->args;
    double spread = f->points.columns ? points_spread(&f->points) : 1;
    char scale[120] = "";

    if (a->quiet)
        return;
    if (a->regress.loss == KOFN_LOSS_LOGISTIC && !(a->regress.l2 > 0) &&
        f->reached.share >= 1) {
        cli_say(
            0, "all labels are predicted correctly. F has no minimum, because "
               "longer weights always fit better; give --l2, for example 0.01");
        return;
    }
    if (res->converged || is_batched(f))
        return;
    if (!(res->gradient < f->first)) {
        cli_say(0,
                "not converged after %u iterations: the gradient has grown "
                "%.2g times; try a shorter --step, or --line-search armijo%s",
                res->iterations, res->gradient / f->first,
                a->job.errors ? "" : ", or --errors if a worker may be wrong");
        return;
    }
    if (spread > 10)
        snprintf(scale, sizeof scale,
                 "--scale (the columns' spreads differ by a factor of %.2g), ",
                 spread);
    if (res->distance > 0) {
        advise_far(f, res, scale);
        return;
    }
    cli_say(0,
            "not converged after %u iterations: the gradient is %.2g of the "
            "first; try %s%s--iterations %u, or a larger --tol",
            res->iterations, res->gradient / f->first, scale,
            quicker(a) ? "--optimizer lbfgs, " : "", 10 * res->iterations);
}

static void put_figures(fit *f, const kofn_regress_result *res)
{
    const char *name = cli_share_name(f->session->args->regress.loss);
    char key[40];
    json_t *o = f->session->figures = json_pack(
        "{s:o, s:o, s:o, s:o, s:b, s:O*, s:O}", "objective",
        cli_number(f->objective), "test_objective", cli_number(f->test.loss),
        name, cli_number(f->reached.share),
        is_batched(f) ? "batch_gradient_norm" : "gradient_norm",
        cli_number(res->gradient), "converged", res->converged, "setup",
        f->setup, "per_iteration", f->session->per_iteration);

    if (f->classes.label[0] < f->classes.label[1])
        PUT("classes",
            json_pack("[f, f]", f->classes.label[0], f->classes.label[1]));
    snprintf(key, sizeof key, "test_%s", name);
    if (f->test_X.data)
        PUT(key, cli_number(f->test.share));
}

static int conclude(fit *f, kofn_status st, const kofn_regress_result *res)
{
    session *s = f->session;
    kofn_status judged = KOFN_OK;

    s->status = st;
    s->iterations = res->iterations;
    f->objective = res->objective;
    f->test.loss = res->test;
    if (cli_caught())
        return 128 + cli_caught();
    if (st >= 0)
        judged = judge(f, &s->args->regress);
    put_figures(f, res);
    if (st < 0 || judged)
        return cli_fail(st < 0 ? st : judged);
    cli_erase();
    if (!s->args->quiet && !s->args->json)
        tell(f, res);
    advise(f, res);
    return st == KOFN_PARTIAL
               ? cli_say(
                     EXIT_TOOFEW,
                     "inexact: the scheme used only the gradients that arrived")
               : 0;
}

/* Writes the weights, converted to the original columns of X. */
static int write_weights(fit *f, const cli_args *a)
{
    kofn_matrix w;
    int code;

    if (a->kernel)
        return cli_write(a, KOFN_DENSE(&f->w), 1);
    TRY_CODE(cli_room(&w, f->w.rows, 1, "the weights"));
    points_undo(&f->points, f->w.data, w.data);
    code = cli_write(a, KOFN_DENSE(&w), 1);
    free(w.data);
    return code;
}

static int descend(fit *f, const cli_args *a, kofn_op op)
{
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    kofn_status st = kofn_regression_place(f->regression, f->session->job, op);
    int code, wrote;

    if (st)
        return cli_fail(st);
    cli_guard(true);
    st = kofn_regress(f->regression, &f->w, &res);
    code = f->history.spoiled ? 0 : conclude(f, st, &res);
    if (!code && !f->history.spoiled && a->verify)
        code = verify(f);
    cli_guard(false);
    if (f->history.spoiled)
        return 0; /* history_close reports it */
    if (!code || st == KOFN_PARTIAL) {
        wrote = write_weights(f, a);
        code = wrote ? wrote : code;
    }
    return code;
}

/* Refuses options that exclude each other. */
static int check(const cli_args *a)
{
    TRY_CODE(cli_check_label(a, a->operands > 1 ? a->operand[1] : NULL));
    if (a->kernel && a->standardise)
        return cli_say(EXIT_USAGE,
                       "--scale is of the columns of X, which "
                       "--kernel replaces; scale the points beforehand");
    if (a->regress.batches && a->regress.optimizer != KOFN_OPTIMIZER_SGD)
        return cli_say(EXIT_USAGE, "--batches is for --optimizer sgd");
    return 0;
}

static int make_regression(fit *f, cli_args *a, kofn_problem *pb)
{
    const kofn_regress_options o = options(f, a);

    TRY_CODE(cli_fail(
        kofn_regression_new(&f->regression, all_points(f), &f->y, &o)));
    if (!a->scheme_given)
        a->scheme = kofn_regression_scheme(f->regression, a->workers, a->suited,
                                           sizeof a->suited);
    TRY_CODE(cli_tolerate(a, &a->scheme, a->tolerated));
    return cli_fail(
        kofn_regression_problem(f->regression, a->scheme, a->workers, pb));
}

static int run(fit *f, cli_args *a)
{
    kofn_problem pb = {.size = sizeof pb};

    TRY_CODE(check(a));
    a->regress.intercept = !a->no_intercept && !a->kernel;
    TRY_CODE(load(f, a));
    TRY_CODE(make_regression(f, a, &pb));
    TRY_CODE(session_open(f->session, a, &pb, a->regress.max_iterations, NULL));
    TRY_CODE(resume(f, a));
    TRY_CODE(open_history(f, a->history));
    return descend(f, a, pb.op);
}

int cmd_regress(cli_args *a)
{
    session s = {.args = a};
    fit f = {.session = &s};
    int code = session_close(&s, history_close(&f.history, run(&f, a)));

    if (code < 128)
        release(&f);
    return code;
}
