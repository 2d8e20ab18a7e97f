/* aet_tell.c -- what gradient codes take on the average, and the table that was
 * published of it. */
#include "gradient/aet.h"
#include "show.h"

#include <string.h>

/* ---- aet ----------------------------------------------------------------- */

static aet_scheme at(aet_kind kind, size_t s)
{
    return (aet_scheme){kind, s};
}

/* Scheme i in the order they are told, after uncoded: the adaptive ones, then
 * CGC(s) and G-CGC(s) by turns. */
static aet_scheme nth(size_t i)
{
    if (i < 2)
        return at(i == 0 ? AET_AGC : AET_G_AGC, 0);
    return at(i % 2 == 0 ? AET_CGC : AET_G_CGC, i / 2 - 1);
}

static kofn_status line(const aet_params *q, aet_scheme scheme, json_t *o)
{
    aet_result r;
    kofn_status st = aet_of(q, scheme, &r);
    char name[32];

    if (st)
        return st;
    aet_name(scheme, name, sizeof name);
    if (o)
        json_object_set_new(o, name, json_real(r.time));
    else
        printf("%-10s %12.6g %12.6g %12.6g\n", name, r.time, r.epochs,
               r.length);
    return KOFN_OK;
}

/* An adaptive code needs a message that stops the workers; without one the
 * choice is among the others. */
static kofn_status least(const aet_params *q)
{
    const unsigned fixed = AET_UNCODED | AET_CGC | AET_G_CGC;
    aet_scheme all, plain;
    char name[32], other[32];
    kofn_status st = aet_best(q, 0, &all, NULL);

    if (!st)
        st = aet_best(q, fixed, &plain, NULL);
    if (!st)
        printf("least: %s; with messages of one length: %s\n",
               aet_name(all, name, sizeof name),
               aet_name(plain, other, sizeof other));
    return st;
}

int papers_aet(const papers_args *a)
{
    const aet_params *q = &a->aet;
    kofn_status st = KOFN_OK;
    json_t *o;

    if (q->d > q->n)
        return papers_say(PAPERS_USAGE,
                          "--d %zu: a worker computes 1 to --n %zu "
                          "subsets",
                          q->d, q->n);
    o = a->json ? json_object() : NULL;
    if (!o) {
        printf("%-10s %12s %12s %12s\n", "scheme", "AET", "epochs", "length");
        st = line(q, at(AET_UNCODED, 0), NULL);
    }
    for (size_t i = 0; !st && i < 2 + 2 * q->d; i++)
        st = line(q, nth(i), o);
    if (!st && !o)
        st = least(q);
    if (!st && o)
        papers_print_json(json_incref(o));
    json_decref(o);
    return st ? papers_ended(st) : 0;
}

/* ---- agc-table ----------------------------------------------------------- */

static json_t *row_json(const agc_row *r, const char *name)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "scheme", name, "p",
                     r->p, "printed", r->printed, "as_printed", r->as_printed,
                     "as_printed_diff", r->as_printed - r->printed, "straight",
                     r->straight, "straight_diff", r->straight - r->printed);
}

static void row_text(const agc_row *r, const char *name)
{
    printf("%-10s %5.2f %9.2f %12.2f %+8.3f %10.2f %+8.3f\n", name, r->p,
           r->printed, r->as_printed, r->as_printed - r->printed, r->straight,
           r->straight - r->printed);
}

int papers_agc_table(const papers_args *a)
{
    agc_row rows[AGC_ROWS];
    json_t *list = a->json ? json_array() : NULL;
    kofn_status st = agc_table(rows);
    char name[32];

    if (!st && !list)
        printf("%-10s %5s %9s %12s %8s %10s %8s\n", "scheme", "p", "printed",
               "as printed", "diff", "straight", "diff");
    for (size_t i = 0; !st && i < AGC_ROWS; i++) {
        aet_name(rows[i].scheme, name, sizeof name);
        if (list)
            json_array_append_new(list, row_json(&rows[i], name));
        else
            row_text(&rows[i], name);
    }
    if (!st && list)
        papers_print_json(json_pack("{s:O}", "rows", list));
    json_decref(list);
    return st ? papers_ended(st) : 0;
}
