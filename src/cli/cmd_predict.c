/* cmd_predict.c -- kofn predict. */
#include "cli.h"

#include <stdlib.h>

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
    int code;

    if (!a->kernel != !a->points)
        return cli_say(EXIT_USAGE,
                       "--kernel and --points go together: the "
                       "kernel's values are between X and the points that were "
                       "fitted to");
    if (!a->kernel)
        return 0;
    code = input_matrix(&p->file[3], &p->points, a->points);
    if (code)
        return code;
    st = kofn_kernel(&p->K, &p->X, &p->points, a->kernel);
    if (st)
        return cli_fail(st);
    p->X = p->K;
    return 0;
}

static int load(prediction *p, const cli_args *a)
{
    int code = input_matrix(&p->file[0], &p->X, a->operand[0]);

    if (!code)
        code = load_weights(p, a->operand[1]);
    if (!code && a->labels)
        code = input_labels(&p->file[2], &p->labels, a->labels, &p->X,
                            a->operand[0]);
    if (!code)
        code = apply_kernel(p, a);
    if (code)
        return code;
    p->out = (kofn_matrix){malloc(p->X.rows * sizeof(double)), p->X.rows, 1, 1,
                           KOFN_F64};
    return p->out.data ? 0 : cli_say(EXIT_FAILED, "out of memory");
}

static int predict(prediction *p, const cli_args *a)
{
    kofn_loss loss = a->regress.loss;
    kofn_status st = kofn_predict(&p->out, &p->X, &p->w, loss);
    session s = {.args = a};

    if (!st && a->labels)
        st = kofn_fit_of(&p->fit, &p->X, &p->labels, &p->w, loss);
    return st ? cli_fail(st) : session_write(&s, &p->out, 1);
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

int cmd_predict(cli_args *a)
{
    prediction p = {0};
    int code = cli_check_names(a);

    if (!code)
        code = cli_check_output(a, false);
    if (!code && !a->output && !a->labels)
        code = cli_say(EXIT_USAGE, "say where the predictions go, --output, or "
                                   "what to compare them with, --labels");
    if (!code)
        code = load(&p, a);
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
