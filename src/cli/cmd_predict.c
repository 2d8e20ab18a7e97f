/* cmd_predict.c -- kofn predict: with weights of kofn regress, or with the
 * network in a folder of kofn train.
 *
 * Owns the model and the points while the command runs.  It needs no workers
 * and may not change the files of a model. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

/* ---- weights ------------------------------------------------------------- */

typedef struct prediction {
    input file[4]; /* X, w, labels, points */
    kofn_matrix X, w, labels, points, K, out;
    kofn_fit fit;
} prediction;

/* A row of weights is a vector, too. */
static int load_weights(prediction *p, const char *path)
{
    int code = input_matrix(&p->file[1], &p->w, path);

    if (!code && p->w.rows == 1 && p->w.cols > 1) {
        p->w.rows = p->w.cols;
        p->w.cols = p->w.ld = 1;
    }
    return code;
}

static int apply_kernel(prediction *p, const cli_args *a)
{
    kofn_status st;

    if (!a->kernel != !a->points)
        return cli_say(EXIT_USAGE,
                       "--kernel and --points go together: the kernel's values "
                       "are between X and the points that were fitted to");
    if (!a->kernel)
        return 0;
    TRY_CODE(input_matrix(&p->file[3], &p->points, a->points));
    st = kofn_kernel(&p->K, &p->X, &p->points, a->kernel);
    if (st)
        return cli_fail(st);
    p->X = p->K;
    return 0;
}

static int load(prediction *p, const cli_args *a)
{
    TRY_CODE(input_matrix(&p->file[0], &p->X, a->operand[0]));
    TRY_CODE(load_weights(p, a->operand[1]));
    if (a->labels)
        TRY_CODE(input_labels(&p->file[2], &p->labels, a->labels, &p->X,
                              a->operand[0]));
    TRY_CODE(apply_kernel(p, a));
    return cli_room(&p->out, p->X.rows, 1, "the predictions");
}

static int predict(prediction *p, const cli_args *a)
{
    kofn_loss loss = a->regress.loss;
    kofn_status st = kofn_predict(&p->out, &p->X, &p->w, loss);

    if (!st && a->labels)
        st = kofn_fit_of(&p->fit, &p->X, &p->labels, &p->w, loss);
    return st ? cli_fail(st) : cli_write(a, &p->out, 1);
}

static void report(const prediction *p, const cli_args *a)
{
    const char *name = cli_share_name(a->regress.loss);
    json_t *o;

    if (!a->json) {
        if (!a->quiet && a->labels)
            fprintf(stderr, "%zu rows, mean loss %.9g, %s %.4g\n", p->X.rows,
                    p->fit.loss, name, p->fit.share);
        return;
    }
    o = json_pack("{s:s, s:s, s:I}", "status", "ok", "command", "predict",
                  "rows", (json_int_t)p->X.rows);
    if (a->labels) {
        json_object_set_new(o, "loss", cli_number(p->fit.loss));
        json_object_set_new(o, name, cli_number(p->fit.share));
    }
    cli_print_json(o);
}

/* ---- networks ------------------------------------------------------------ */

typedef struct telling {
    model model;
    input file[2]; /* X, labels */
    kofn_matrix X, labels, own, out;
    kofn_score score;
} telling;

static int load_net(telling *t, const cli_args *a)
{
    kofn_net_shape s = KOFN_NET_SHAPE_INIT;
    size_t last;
    int code = model_read(a->operand[0], &t->model);

    if (!code && !t->model.sealed && !a->quiet)
        cli_say(0,
                "%s/model.json has no digests, as it is older than they are: "
                "damage to the model would not be noticed; train again to have "
                "them",
                a->operand[0]);
    if (!code)
        code = input_matrix(&t->file[0], &t->X, a->operand[1]);
    if (!code)
        code = cli_divided(&t->X, t->model.unit, &t->own);
    if (!code && a->labels)
        code = input_matrix(&t->file[1], &t->labels, a->labels);
    if (code)
        return code;
    kofn_net_describe(t->model.net, &s);
    last = s.widths[s.layers];
    if (a->shares && s.cost != KOFN_COST_SOFTMAX)
        return cli_say(EXIT_USAGE,
                       "--shares is of networks with a softmax, and that in "
                       "%s has none",
                       a->operand[0]);
    if (a->labels && s.autoencoder)
        return cli_say(EXIT_USAGE, "an autoencoder has no labels; leave "
                                   "--labels out");
    return cli_room(&t->out, t->X.rows, last, "the predictions");
}

/* The label with the largest share, the first of equals, in the place of them. */
static void choose(kofn_matrix *out)
{
    double *x = out->data;

    for (size_t i = 0; i < out->rows; i++) {
        const double *row = x + i * out->cols;
        size_t best = 0;

        for (size_t j = 1; j < out->cols; j++)
            if (row[j] > row[best])
                best = j;
        x[i] = (double)best; /* rows from here on are as they were */
    }
    out->cols = out->ld = 1;
}

static int tell(telling *t, const cli_args *a)
{
    kofn_status st = kofn_net_predict(t->model.net, &t->own, &t->out);
    kofn_net_shape shape = KOFN_NET_SHAPE_INIT;
    double *x = t->out.data;

    if (!st && a->labels)
        st = kofn_net_score(t->model.net, &t->own, &t->labels, &t->score);
    if (st)
        return cli_fail(st);
    kofn_net_describe(t->model.net, &shape);
    for (size_t i = 0; i < t->out.rows * t->out.cols && shape.autoencoder; i++)
        x[i] *= t->model.unit; /* as points came in */
    if (shape.cost == KOFN_COST_SOFTMAX && !a->shares)
        choose(&t->out);
    return cli_write(a, &t->out, t->out.cols == 1 ? 1 : 2);
}

static void report_net(const telling *t, const cli_args *a)
{
    bool labels = !isnan(t->score.accuracy);
    json_t *o;

    if (!a->json) {
        if (a->quiet || !a->labels)
            return;
        fprintf(stderr, "%zu rows, mean loss %.9g", t->X.rows, t->score.loss);
        if (labels)
            fprintf(stderr, ", accuracy %.4g", t->score.accuracy);
        fputc('\n', stderr);
        return;
    }
    o = json_pack("{s:s, s:s, s:I}", "status", "ok", "command", "predict",
                  "rows", (json_int_t)t->X.rows);
    if (a->labels)
        json_object_set_new(o, "loss", cli_number(t->score.loss));
    if (a->labels && labels)
        json_object_set_new(o, "accuracy", cli_number(t->score.accuracy));
    cli_print_json(o);
}

static int predict_net(const cli_args *a)
{
    telling t = {0};
    int code = a->kernel || a->points
                   ? cli_say(EXIT_USAGE,
                             "%s is a folder with a network, and --%s is for "
                             "weights of regress",
                             a->operand[0], a->kernel ? "kernel" : "points")
                   : load_net(&t, a);

    if (!code)
        code = tell(&t, a);
    if (!code)
        report_net(&t, a);
    for (size_t i = 0; i < 2; i++)
        input_free(&t.file[i]);
    model_free(&t.model);
    free(t.own.data);
    free(t.out.data);
    return code;
}

/* ---- either -------------------------------------------------------------- */

static int predict_weights(const cli_args *a)
{
    prediction p = {0};
    int code = a->shares
                   ? cli_say(EXIT_USAGE, "--shares is for networks of kofn "
                                         "train, whose folder stands first")
                   : load(&p, a);

    if (!code)
        code = predict(&p, a);
    if (!code)
        report(&p, a);
    for (size_t i = 0; i < 4; i++)
        input_free(&p.file[i]);
    kofn_free(p.K.data);
    free(p.out.data);
    return code;
}

int cmd_predict(cli_args *a)
{
    TRY_CODE(cli_check_names(a));
    TRY_CODE(cli_check_output(a, false));
    if (!a->output && !a->labels)
        return cli_say(EXIT_USAGE, "say where the predictions go, --output, or "
                                   "what to compare them with, --labels");
    return model_is(a->operand[0]) ? predict_net(a) : predict_weights(a);
}
