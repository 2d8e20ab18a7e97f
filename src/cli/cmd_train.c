/* cmd_train.c -- kofn train.
 *
 * Owns the points, the network and the session while the command runs. The
 * library takes the steps (learn/train.c). This file shows, saves and judges
 * them. */
#include "masterless.h"
#include "schemes.h"

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs -------------------------------------------------------------- */

/* Reads widths like "64-32-10", at most `most`. Returns their number, or 0 if
 * the text is something else. */
static size_t read_widths(const char *text, size_t *widths, size_t most)
{
    const char *at = text;

    for (size_t n = 0; n < most; at++) {
        char *end;

        errno = 0;
        widths[n] =
            isdigit((unsigned char)*at) ? (size_t)strtoull(at, &end, 10) : 0;
        if (!widths[n++] || errno)
            return 0;
        at = end;
        if (*at != '-')
            return *at ? 0 : n;
    }
    return 0;
}

static int read_layers(cli_training *t, const cli_args *a)
{
    const char *text = a->layers ? a->layers : a->hidden ? a->hidden : "32";
    size_t n = a->layers ? read_widths(text, t->widths, KOFN_NET_MOST + 1)
                         : read_widths(text, t->widths + 1, KOFN_NET_MOST - 1);

    if (a->layers && a->hidden)
        return cli_say(EXIT_USAGE, "give --hidden or --layers, not both");
    if (a->layers && n < 2)
        return cli_say(EXIT_USAGE,
                       "--layers %s: give 2 to %d widths with - between them, "
                       "as 64-32-10",
                       text, KOFN_NET_MOST + 1);
    if (n < 1)
        return cli_say(EXIT_USAGE,
                       "--hidden %s: give up to %d widths with - between them, "
                       "as 64-32",
                       text, KOFN_NET_MOST - 1);
    t->shape.layers = a->layers ? n - 1 : n + 1;
    t->shape.widths = t->widths;
    return 0;
}

/* Stores the network's shape as it is, not as it was asked for; a checkpoint is
 * of that network. */
static void say_shape(const cli_training *t, cli_args *a)
{
    size_t n = 0;

    a->net.output = t->shape.output;
    for (size_t l = 0; l <= t->shape.layers; l++)
        n += (size_t)snprintf(a->widths + n, sizeof a->widths - n, "%s%zu",
                              l ? "-" : "", t->widths[l]);
}

/* With --hidden the points and targets say the first and the last width. */
static void fit_layers(cli_training *t, const cli_args *a)
{
    if (a->layers)
        return;
    t->widths[0] = t->X.cols;
    t->widths[t->shape.layers] = t->shape.autoencoder ? t->X.cols
                                 : t->shape.loss == KOFN_NET_LOSS_SQUARES
                                     ? t->y.cols
                                     : (size_t)cli_largest(&t->y) + 1;
}

/* Reads the network's shape from the options and their defaults. */
static int read_shape(cli_training *t, const cli_args *a)
{
    t->shape = a->net;
    t->shape.size = sizeof t->shape;
    t->shape.dtype = strcmp(a->dtype, "f4") ? KOFN_F64 : KOFN_F32;
    if (t->shape.autoencoder && !a->loss_given)
        t->shape.loss = KOFN_NET_LOSS_SQUARES;
    if (t->shape.sparsity && !a->activation_given)
        t->shape.activation = KOFN_SIGMOID;
    if (!a->last_given)
        t->shape.output =
            t->shape.autoencoder ? t->shape.activation : KOFN_LINEAR;
    if (a->last_given && t->shape.loss == KOFN_NET_LOSS_SOFTMAX)
        return cli_say(EXIT_USAGE, "--output-activation is for --loss squares: "
                                   "a softmax is what comes last otherwise");
    if (t->shape.autoencoder == (a->operands == 2 || a->label))
        return cli_say(EXIT_USAGE,
                       t->shape.autoencoder
                           ? "an autoencoder has no labels: its points are "
                             "what should come out; leave %s out"
                           : "%s has no labels with it; name them as well, or "
                             "give --autoencoder",
                       a->label ? "--label" : a->operand[a->operands - 1]);
    return read_layers(t, a);
}

/* Loads labels or target numbers, one row per point. */
static int load_targets(cli_training *t, input *in, kofn_matrix *y,
                        const char *path, const kofn_matrix *X,
                        const char *X_path)
{
    if (t->shape.loss != KOFN_NET_LOSS_SQUARES)
        return input_labels(in, y, path, X, X_path);
    TRY_CODE(input_targets(in, y, path));
    if (y->cols == X->rows)
        input_column(y);
    return 0;
}

/* Loads points and targets from two files. k: 0, or 1 for the held-out ones. */
static int load_points(cli_training *t, const char *const path[2], size_t k,
                       kofn_matrix *X, kofn_matrix *y)
{
    double *unit = &t->model.unit;
    input *in = &t->file[2 * k];

    in->label = t->label;
    TRY_CODE(input_matrix(in, X, path[0]));
    if (!(*unit > 0))
        *unit = fmax(1, cli_largest(X));
    if (t->label)
        *y = *in->file->labels;
    else if (!t->shape.autoencoder)
        TRY_CODE(load_targets(t, &t->file[2 * k + 1], y, path[1], X, path[0]));
    TRY_CODE(cli_divided(X, *unit, &t->owned[k]));
    *X = t->owned[k];
    return 0;
}

static void release(cli_training *t)
{
    kofn_training_free(t->training);
    model_free(&t->model);
    for (size_t i = 0; i < 4; i++)
        input_free(&t->file[i]);
    for (size_t i = 0; i < 2; i++)
        free(t->owned[i].data);
    free(t->state.data);
}

/* ---- steps --------------------------------------------------------------- */

static json_t *figures(const kofn_train_step *now, const char *key,
                       double value)
{
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:f}", "epoch", (int)now->epoch,
                     "loss", cli_number(now->loss), "accuracy",
                     cli_number(now->accuracy), "test_loss",
                     cli_number(now->test_loss), "test_accuracy",
                     cli_number(now->test_accuracy), key, value);
}

static void keep(cli_training *t, const kofn_train_step *now,
                 const kofn_report *rep)
{
    session *s = t->session;

    history_line(&t->history, rep, "%u,%u,%.17g,%.17g,%.17g,%.17g", now->step,
                 now->epoch, now->loss, now->accuracy, now->test_loss,
                 now->test_accuracy);
    snprintf(s->remark, sizeof s->remark, "  loss %.3g", now->loss);
    if (!isnan(now->accuracy))
        snprintf(s->remark + strlen(s->remark), 30, ", accuracy %.3g",
                 now->accuracy);
    if (s->args->json)
        json_array_append_new(
            s->per_iteration,
            figures(now, "seconds", (double)rep->took * 1e-9));
}

static void save(cli_training *t, unsigned step, const kofn_train_step *now,
                 const double *state)
{
    size_t n = kofn_training_size(t->training);
    const kofn_matrix a = {(void *)(uintptr_t)state, 2, n, n, KOFN_F64};

    history_keep(&t->history);
    checkpoint_save(t->session->checkpoint, step, &a,
                    figures(now, "partial", (double)now->partial));
}

/* Saves a due or final step. A step with unchecked sums (--audit) is not
 * saved; the next checked one is. */
static void save_step(cli_training *t, const kofn_train_step *now,
                      const kofn_report *rep)
{
    const double *state;

    t->unchecked = rep->unchecked > 0;
    t->due |= now->step % t->every == 0 || now->step == now->steps;
    if (!t->session->checkpoint || t->unchecked || !(t->due || cli_caught()))
        return;
    t->due = false;
    if (kofn_training_state(t->training, &state))
        cli_say(0, "--checkpoint: the weights after step %u are not had: %s",
                now->step, kofn_errmsg());
    else
        save(t, now->step, now, state);
}

/* Saves the step before a signal. Its weights may be at the workers, which are
 * busy; then nothing is saved. */
static void save_before(cli_training *t, const kofn_train_step *now)
{
    const checkpoint *c = t->session->checkpoint;

    if (c && now->state && !t->unchecked && now->step - 1 > checkpoint_done(c))
        save(t, now->step - 1, now, now->state);
}

static int watch(void *ud, const kofn_train_step *now, const kofn_report *rep)
{
    cli_training *t = ud;

    if (t->verifying)
        return cli_caught();
    if (rep) {
        t->session->iterations = now->step;
        keep(t, now, rep);
        save_step(t, now, rep);
    } else if (cli_caught()) {
        save_before(t, now);
    }
    session_round(t->session, rep, rep ? now->loss : -1);
    return cli_caught() || t->history.spoiled;
}

/* Resumes after the step of the checkpoint. */
static int resume(cli_training *t)
{
    const checkpoint *c = t->session->checkpoint;
    size_t n = kofn_training_size(t->training);

    if (!checkpoint_done(c))
        return 0;
    TRY_CODE(cli_room(&t->state, 2, n, "the state of --checkpoint"));
    t->resume = (kofn_train_step){
        .step = checkpoint_done(c),
        .epoch = (unsigned)checkpoint_number(c, "epoch"),
        .loss = checkpoint_number(c, "loss"),
        .accuracy = checkpoint_number(c, "accuracy"),
        .test_loss = checkpoint_number(c, "test_loss"),
        .test_accuracy = checkpoint_number(c, "test_accuracy"),
        .partial = checkpoint_number(c, "partial") > 0,
        .state = t->state.data};
    return checkpoint_state(c, &t->state);
}

/* ---- the end ------------------------------------------------------------- */

/* Copies all weights, in double precision, into a row. */
static int flatten(const kofn_net *net, size_t n, kofn_matrix *out)
{
    const kofn_matrix *W;
    double *to;

    TRY_CODE(cli_room(out, 1, n, "--verify"));
    to = out->data;
    for (size_t l = 1; (W = kofn_net_weights(net, l)); l++)
        for (size_t i = 0; i < W->rows; i++)
            for (size_t j = 0; j < W->cols; j++)
                *to++ = cli_element(W, i, j);
    return 0;
}

static const kofn_matrix *targets(const cli_training *t)
{
    return t->shape.autoencoder ? NULL : &t->y;
}

/* Takes the same steps from the same weights without workers, and compares. */
static int verify(cli_training *t, const cli_args *a)
{
    size_t n = kofn_training_size(t->training);
    kofn_matrix found = {0}, want = {0};
    kofn_training *plain = NULL;
    kofn_net *net = NULL;
    double since = kf_clock_seconds();
    kofn_status st = kofn_net_new(&net, &t->shape, a->seed);
    int code;

    t->verifying = true;
    if (!st)
        st = kofn_training_new(&plain, net, &t->X, targets(t), &t->options);
    if (!st)
        st = kofn_train_plain(plain, NULL);
    code = st == KOFN_AGAIN ? 128 + cli_caught() : cli_fail(st);
    if (!code)
        code = flatten(t->model.net, n, &found);
    if (!code)
        code = flatten(net, n, &want);
    if (!code)
        code = cli_verify(&t->session->found, &found, &want);
    cli_spent(CLI_VERIFYING, since);
    free(found.data);
    free(want.data);
    kofn_training_free(plain);
    kofn_net_free(net);
    return code;
}

/* Computes loss and accuracy of the final weights, over all points and over
 * the held-out ones. */
static int judge(cli_training *t)
{
    session *s = t->session;
    kofn_score all = {0}, test = {NAN, NAN};

    TRY_CODE(cli_fail(kofn_net_score(t->model.net, &t->X, targets(t), &all)));
    if (t->test_X.data)
        TRY_CODE(cli_fail(
            kofn_net_score(t->model.net, &t->test_X,
                           t->shape.autoencoder ? NULL : &t->test_y, &test)));
    s->figures =
        json_pack("{s:o, s:o, s:o, s:o, s:O*}", "loss", cli_number(all.loss),
                  "accuracy", cli_number(all.accuracy), "test_loss",
                  cli_number(test.loss), "test_accuracy",
                  cli_number(test.accuracy), "per_iteration", s->per_iteration);
    cli_erase();
    if (s->args->quiet || s->args->json)
        return 0;
    fprintf(stderr, "%u steps: loss %.9g", s->iterations, all.loss);
    if (!isnan(all.accuracy))
        fprintf(stderr, ", accuracy %.4g", all.accuracy);
    if (t->test_X.data)
        fprintf(stderr, "; held-out points: loss %.9g", test.loss);
    if (!isnan(test.accuracy))
        fprintf(stderr, ", accuracy %.4g", test.accuracy);
    fputc('\n', stderr);
    return 0;
}

static int conclude(cli_training *t, const cli_args *a, kofn_status st)
{
    t->session->status = st;
    if (cli_caught())
        return 128 + cli_caught();
    if (st < 0)
        return cli_fail(st);
    TRY_CODE(judge(t));
    if (a->verify)
        TRY_CODE(verify(t, a));
    if (st == KOFN_PARTIAL)
        return cli_say(
            EXIT_TOOFEW,
            "inexact: the scheme used only the gradients that arrived");
    return 0;
}

static int train(cli_training *t, const cli_args *a)
{
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;
    kofn_status st = kofn_training_place(t->training, t->session->job);
    int code, wrote;

    if (st)
        return cli_fail(st);
    cli_guard(true);
    st = kofn_train(t->training, &res);
    t->session->iterations = res.steps;
    code = t->history.spoiled ? 0 : conclude(t, a, st);
    cli_guard(false);
    if (t->history.spoiled)
        return 0; /* history_close reports it */
    if (!code || st == KOFN_PARTIAL) {
        wrote = model_write(a->output, &t->model);
        code = wrote ? wrote : code;
    }
    return code;
}

/* ---- the run ------------------------------------------------------------- */

/* Sets the library's options, and counts the steps. */
static void set_options(cli_training *t, const cli_args *a)
{
    kofn_train_options *o = &t->options;
    size_t batch = a->train.batch;
    size_t each = (t->X.rows + batch - 1) / batch; /* steps of an epoch */

    *o = a->train;
    o->size = sizeof *o;
    o->seed = a->seed;
    o->watch = watch;
    o->watch_ud = t;
    o->resume = &t->resume;
    if (t->test_X.data) {
        o->test_X = &t->test_X;
        o->test_y = t->shape.autoencoder ? NULL : &t->test_y;
    }
    t->steps = each * o->epochs;
    t->every = a->every ? a->every : (unsigned)each;
}

static int prepare(cli_training *t, const cli_args *a)
{
    const char *const test[] = {a->test_X, a->test_y};

    TRY_CODE(cli_check_label(a, a->operands > 1 ? a->operand[1] : NULL));
    TRY_CODE(read_shape(t, a));
    t->label = a->label;
    if (a->every && !a->checkpoint)
        return cli_say(EXIT_USAGE, "--every is for --checkpoint");
    t->model.unit = a->unit;
    TRY_CODE(load_points(t, a->operand, 0, &t->X, &t->y));
    fit_layers(t, a);
    if (a->test_X)
        TRY_CODE(load_points(t, test, 1, &t->test_X, &t->test_y));
    set_options(t, a);
    TRY_CODE(cli_fail_input(kofn_net_new(&t->model.net, &t->shape, a->seed)));
    return cli_fail_input(kofn_training_new(&t->training, t->model.net, &t->X,
                                            targets(t), &t->options));
}

static int open_session(cli_training *t, cli_args *a)
{
    kofn_problem pb = {.size = sizeof pb};
    const kofn_scheme *scheme;

    if (kofn_training_problem(t->training, &pb))
        return cli_say(EXIT_FAILED, "%s", kofn_errmsg());
    if (!a->scheme_given)
        a->scheme = kofn_training_scheme(t->training, a->workers, false,
                                         a->suited, sizeof a->suited);
    TRY_CODE(cli_tolerate(a, &a->scheme, a->tolerated));
    say_shape(t, a);
    /* a scheme either sums gradients or serves products with coded weights */
    scheme = cli_scheme_of(a->scheme);
    t->coded = scheme && !(scheme->ops & (unsigned)pb.op);
    if (a->train.scrub && (!t->coded || !a->job.errors))
        return cli_say(
            EXIT_USAGE,
            "--scrub compares weights that live with the workers, as with -s "
            "gpd, where errors are looked for; give --errors");
    return session_open(t->session, a, &pb, t->steps, t->coded ? t : NULL);
}

/* ---- without a master ---------------------------------------------------- */

static int conclude_mesh(cli_training *t, unsigned steps)
{
    const cli_args *a = t->session->args;

    t->session->iterations = steps;
    TRY_CODE(judge(t));
    if (a->verify)
        TRY_CODE(verify(t, a));
    return model_write(a->output, &t->model);
}

/* ---- the whole ----------------------------------------------------------- */

static int run(cli_training *t, cli_args *a)
{
    TRY_CODE(open_session(t, a));
    TRY_CODE(resume(t));
    TRY_CODE(history_open(
        &t->history, a->history, checkpoint_done(t->session->checkpoint),
        "step,epoch,loss,accuracy,test_loss,test_accuracy", true));
    return train(t, a);
}

int cmd_train(cli_args *a)
{
    session s = {.args = a};
    cli_training t = {.session = &s, .conclude = conclude_mesh};
    int code = prepare(&t, a);

    if (!code && a->masterless) {
        code = masterless_train(a, &t);
        json_decref(s.figures);
    } else {
        code = code ? code : run(&t, a);
        code = session_close(&s, history_close(&t.history, code));
    }
    if (code < 128)
        release(&t);
    return code;
}
