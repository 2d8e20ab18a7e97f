/* cmd_model.c -- kofn model: what gradient codes take on the average, and the
 * table that was published of it; streams are in model_stream.c. */
#include "cli.h"

#include <string.h>

/* ---- aet ----------------------------------------------------------------- */

static kofn_aet_scheme at(kofn_aet_kind kind, size_t s)
{
    return (kofn_aet_scheme){kind, s};
}

/* Scheme i in the order they are told, after uncoded: the adaptive ones, then
 * CGC(s) and G-CGC(s) by turns. */
static kofn_aet_scheme nth(size_t i)
{
    if (i < 2)
        return at(i == 0 ? KOFN_AET_AGC : KOFN_AET_G_AGC, 0);
    return at(i % 2 == 0 ? KOFN_AET_CGC : KOFN_AET_G_CGC, i / 2 - 1);
}

static kofn_status line(const kofn_aet_params *q, kofn_aet_scheme scheme,
                        json_t *o)
{
    kofn_aet_result r;
    kofn_status st = kofn_aet(q, scheme, &r);
    char name[32];

    if (st)
        return st;
    kofn_aet_name(scheme, name, sizeof name);
    if (o)
        json_object_set_new(o, name, json_real(r.time));
    else
        printf("%-10s %12.6g %12.6g %12.6g\n", name, r.time, r.epochs,
               r.length);
    return KOFN_OK;
}

/* An adaptive code needs a message that stops the workers; without one the
 * choice is among the others. */
static kofn_status least(const kofn_aet_params *q)
{
    const unsigned fixed = KOFN_AET_UNCODED | KOFN_AET_CGC | KOFN_AET_G_CGC;
    kofn_aet_scheme all, plain;
    char name[32], other[32];
    kofn_status st = kofn_aet_best(q, 0, &all, NULL);

    if (!st)
        st = kofn_aet_best(q, fixed, &plain, NULL);
    if (!st)
        printf("least: %s; with messages of one length: %s\n",
               kofn_aet_name(all, name, sizeof name),
               kofn_aet_name(plain, other, sizeof other));
    return st;
}

static int aet(const cli_args *a)
{
    const kofn_aet_params *q = &a->model;
    kofn_status st = KOFN_OK;
    json_t *o;

    if (q->d > q->n)
        return cli_say(EXIT_USAGE,
                       "--d %zu: a worker computes 1 to --n %zu "
                       "subsets",
                       q->d, q->n);
    o = a->json ? json_object() : NULL;
    if (!o) {
        printf("%-10s %12s %12s %12s\n", "scheme", "AET", "epochs", "length");
        st = line(q, at(KOFN_AET_UNCODED, 0), NULL);
    }
    for (size_t i = 0; !st && i < 2 + 2 * q->d; i++)
        st = line(q, nth(i), o);
    if (!st && !o)
        st = least(q);
    if (!st && o)
        cli_print_json(json_incref(o));
    json_decref(o);
    return st ? cli_fail(st) : EXIT_EXACT;
}

/* ---- agc-table ----------------------------------------------------------- */

static json_t *row_json(const kofn_agc_row *r, const char *name)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "scheme", name, "p",
                     r->p, "printed", r->printed, "as_printed", r->as_printed,
                     "as_printed_diff", r->as_printed - r->printed, "straight",
                     r->straight, "straight_diff", r->straight - r->printed);
}

static void row_text(const kofn_agc_row *r, const char *name)
{
    printf("%-10s %5.2f %9.2f %12.2f %+8.3f %10.2f %+8.3f\n", name, r->p,
           r->printed, r->as_printed, r->as_printed - r->printed, r->straight,
           r->straight - r->printed);
}

static int agc_table(const cli_args *a)
{
    kofn_agc_row rows[KOFN_AGC_ROWS];
    json_t *list = a->json ? json_array() : NULL;
    kofn_status st = kofn_agc_table(rows);
    char name[32];

    if (!st && !list)
        printf("%-10s %5s %9s %12s %8s %10s %8s\n", "scheme", "p", "printed",
               "as printed", "diff", "straight", "diff");
    for (size_t i = 0; !st && i < KOFN_AGC_ROWS; i++) {
        kofn_aet_name(rows[i].scheme, name, sizeof name);
        if (list)
            json_array_append_new(list, row_json(&rows[i], name));
        else
            row_text(&rows[i], name);
    }
    if (!st && list)
        cli_print_json(json_pack("{s:O}", "rows", list));
    json_decref(list);
    return st ? cli_fail(st) : EXIT_EXACT;
}

/* ---- the command --------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const cli_args *a);
    unsigned of; /* its options */
    bool workers, scheme;
} models[] = {
    {"aet", aet, OF_AET, false, false},
    {"agc-table", agc_table, 0, false, false},
    {"stream", cli_model_stream, OF_STREAM, true, true},
    {"tolerance", cli_model_tolerance, OF_TOLERANCE, true, false},
    {"dnn", cli_model_dnn, OF_TOLERANCE | OF_DNN, true, false},
};

#define MODELS (sizeof models / sizeof *models)

/* An option of another model, or NULL. */
static const char *foreign(const cli_args *a, size_t i)
{
    unsigned of = models[i].of;

    return !(of & OF_AET) && a->aet_option               ? a->aet_option
           : !(of & OF_STREAM) && a->stream_option       ? a->stream_option
           : !(of & OF_TOLERANCE) && a->tolerance_option ? a->tolerance_option
           : !(of & OF_DNN) && a->dnn_option             ? a->dnn_option
           : !models[i].workers && a->workers_given      ? "workers"
           : !models[i].scheme && a->scheme_given        ? "scheme"
                                                         : NULL;
}

int cmd_model(cli_args *a)
{
    const char *what = a->operand[0], *option;
    size_t i = 0;

    while (i < MODELS && strcmp(what, models[i].name) != 0)
        i++;
    if (i == MODELS)
        return cli_say(EXIT_USAGE,
                       "no model \"%s\"; there are aet, agc-table, stream, "
                       "tolerance, dnn",
                       what);
    option = foreign(a, i);
    if (option && models[i].run == agc_table)
        return cli_say(EXIT_USAGE,
                       "--%s: agc-table has the numbers of the "
                       "paper; leave it out",
                       option);
    if (option)
        return cli_say(EXIT_USAGE, "--%s is of another model than %s", option,
                       what);
    return models[i].run(a);
}
