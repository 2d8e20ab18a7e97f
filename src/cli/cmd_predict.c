/* cmd_predict.c -- kofn predict: with weights of kofn regress, or with the
 * network in a folder of kofn train.
 *
 * Owns the model and the points while the command runs. It needs no workers
 * and may not change the files of a model. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct prediction {
    input file[4]; /* X, w, labels, points */
    kofn_matrix X, w, labels, points, K, owned, out;
    model model;      /* used instead of w */
    double loss;      /* with --labels: the mean loss */
    const char *name; /* name of the score; NULL: no score */
    double share;
} prediction;

/* ---- weights ------------------------------------------------------------- */

static int apply_kernel(prediction *p, const cli_args *a)
{
    if (!a->kernel != !a->points)
        return cli_say(EXIT_USAGE,
                       "--kernel and --points go together: the kernel's values "
                       "are between X and the points that were fitted to");
    if (!a->kernel)
        return 0;
    TRY_CODE(input_matrix(&p->file[3], &p->points, a->points));
    TRY_CODE(cli_fail(kofn_kernel(&p->K, &p->X, &p->points, a->kernel)));
    p->X = p->K;
    return 0;
}

/* Loads the points, and fills sparse ones up. A file of LIBSVM does not say how
 * many columns there are, so one that has fewer than w needs --columns. */
static int load_points(prediction *p, const cli_args *a)
{
    const char *path = a->operand[0];
    const kofn_sparse *sparse = NULL;
    size_t cols = a->columns;

    TRY_CODE(input_points(&p->file[0], &p->X, &sparse, path));
    if (sparse && p->file[0].file->labels && !cols && !a->points &&
        p->X.cols < p->w.rows)
        return cli_say(EXIT_USAGE,
                       "%s has %zu columns and %s %zu numbers; say how many "
                       "columns the points of the fit had: --columns %zu, or "
                       "%zu if the last number is the intercept",
                       path, p->X.cols, a->operand[1], p->w.rows, p->w.rows,
                       p->w.rows - 1);
    if (cols && (sparse ? p->X.cols > cols : p->X.cols != cols))
        return cli_say(EXIT_USAGE, "--columns %zu: %s has %zu columns", cols,
                       path, p->X.cols);
    return sparse
               ? input_fill(&p->file[0], &p->X, sparse, cols ? cols : p->X.cols)
               : 0;
}

/* Loads the labels of --labels or --label, if one is given. */
static int load_truth(prediction *p, const cli_args *a)
{
    classes c;

    if (a->labels)
        TRY_CODE(input_labels(&p->file[2], &p->labels, a->labels, &p->X,
                              a->operand[0]));
    else if (a->label)
        p->labels = *p->file[0].file->labels;
    else
        return 0;
    if (a->regress.loss != KOFN_LOSS_LOGISTIC)
        return 0;
    classes_find(&c, &p->labels);
    return classes_apply(&c, &p->file[2], &p->labels,
                         a->labels ? a->labels : a->operand[0]);
}

static int predict(prediction *p, const cli_args *a)
{
    kofn_loss loss = a->regress.loss;
    kofn_fit fit;

    if (a->shares)
        return cli_say(
            EXIT_USAGE,
            "--shares is for networks; give the folder of kofn train first");
    TRY_CODE(input_matrix(&p->file[1], &p->w, a->operand[1]));
    input_column(&p->w);
    TRY_CODE(load_points(p, a));
    TRY_CODE(load_truth(p, a));
    TRY_CODE(apply_kernel(p, a));
    TRY_CODE(cli_room(&p->out, p->X.rows, 1, "the predictions"));
    TRY_CODE(cli_fail(kofn_predict(&p->out, &p->X, &p->w, loss)));
    if (p->labels.data) {
        TRY_CODE(cli_fail(
            kofn_fit_of(&fit, KOFN_DENSE(&p->X), &p->labels, &p->w, loss)));
        p->loss = fit.loss;
        p->name = cli_share_name(loss);
        p->share = fit.share;
    }
    return cli_write(a, KOFN_DENSE(&p->out), 1);
}

/* ---- networks ------------------------------------------------------------ */

static int load_net(prediction *p, const cli_args *a)
{
    if (a->kernel || a->points)
        return cli_say(EXIT_USAGE,
                       "%s is a folder with a network, and --%s is for "
                       "weights of regress",
                       a->operand[0], a->kernel ? "kernel" : "points");
    TRY_CODE(model_read(a->operand[0], &p->model));
    TRY_CODE(input_matrix(&p->file[0], &p->X, a->operand[1]));
    TRY_CODE(cli_divided(&p->X, p->model.unit, &p->owned));
    if (a->label)
        p->labels = *p->file[0].file->labels;
    return a->labels ? input_matrix(&p->file[2], &p->labels, a->labels) : 0;
}

static int check_net(const cli_args *a, const kofn_net_shape *s)
{
    if (a->shares && s->loss != KOFN_NET_LOSS_SOFTMAX)
        return cli_say(EXIT_USAGE,
                       "--shares is of networks with a softmax, and that in "
                       "%s has none",
                       a->operand[0]);
    if ((a->labels || a->label) && s->autoencoder)
        return cli_say(EXIT_USAGE,
                       "an autoencoder has no labels; leave --label%s out",
                       a->labels ? "s" : "");
    return 0;
}

/* Replaces each row of shares by the label with the largest share, the first
 * one if shares are equal. */
static void choose(kofn_matrix *out)
{
    double *x = out->data;

    for (size_t i = 0; i < out->rows; i++) {
        const double *row = x + i * out->cols;
        size_t best = 0;

        for (size_t j = 1; j < out->cols; j++)
            if (row[j] > row[best])
                best = j;
        x[i] = (double)best; /* rows after this one are still unchanged */
    }
    out->cols = out->ld = 1;
}

static int predict_net(prediction *p, const cli_args *a)
{
    kofn_net_shape s = KOFN_NET_SHAPE_INIT;
    kofn_score score = {0};
    double *x;

    TRY_CODE(load_net(p, a));
    kofn_net_describe(p->model.net, &s);
    TRY_CODE(check_net(a, &s));
    TRY_CODE(
        cli_room(&p->out, p->X.rows, s.widths[s.layers], "the predictions"));
    TRY_CODE(cli_fail(kofn_net_predict(p->model.net, &p->owned, &p->out)));
    if (p->labels.data)
        TRY_CODE(cli_fail(
            kofn_net_score(p->model.net, &p->owned, &p->labels, &score)));
    p->loss = score.loss;
    p->name = isnan(score.accuracy) ? NULL : "accuracy";
    p->share = score.accuracy;
    x = p->out.data;
    for (size_t i = 0; i < p->out.rows * p->out.cols && s.autoencoder; i++)
        x[i] *= p->model.unit; /* back to the unit of the points */
    if (s.loss == KOFN_NET_LOSS_SOFTMAX && !a->shares)
        choose(&p->out);
    return cli_write(a, KOFN_DENSE(&p->out), p->out.cols == 1 ? 1 : 2);
}

/* ---- either -------------------------------------------------------------- */

static void report(const prediction *p, const cli_args *a)
{
    json_t *o;

    if (!a->json) {
        if (a->quiet || !p->labels.data)
            return;
        fprintf(stderr, "%zu rows, mean loss %.9g", p->X.rows, p->loss);
        if (p->name)
            fprintf(stderr, ", %s %.4g", p->name, p->share);
        fputc('\n', stderr);
        return;
    }
    o = json_pack("{s:s, s:s, s:I}", "status", "ok", "command", "predict",
                  "rows", (json_int_t)p->X.rows);
    if (p->labels.data)
        PUT("loss", cli_number(p->loss));
    if (p->labels.data && p->name)
        PUT(p->name, cli_number(p->share));
    cli_print_json(o);
}

int cmd_predict(cli_args *a)
{
    prediction p = {.loss = 0};
    int code;

    TRY_CODE(cli_check_names(a));
    TRY_CODE(cli_check_output(a, false));
    TRY_CODE(cli_check_label(a, a->labels));
    p.file[0].label = a->label;
    if (!a->output && !a->labels && !a->label)
        return cli_say(EXIT_USAGE, "say where the predictions go, --output, or "
                                   "what to compare them with, --labels");
    code = cli_no_folder(a->operand[0], F_OK) ? predict(&p, a)
                                              : predict_net(&p, a);
    if (!code)
        report(&p, a);
    for (size_t i = 0; i < 4; i++)
        input_free(&p.file[i]);
    model_free(&p.model);
    kofn_free(p.K.data);
    free(p.owned.data);
    free(p.out.data);
    return code;
}
