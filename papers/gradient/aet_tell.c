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
    char name[32];

    PAPERS_TRY(aet_of(q, scheme, &r));
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

    PAPERS_TRY(aet_best(q, 0, &all, NULL));
    PAPERS_TRY(aet_best(q, fixed, &plain, NULL));
    printf("least: %s; with messages of one length: %s\n",
           aet_name(all, name, sizeof name),
           aet_name(plain, other, sizeof other));
    return KOFN_OK;
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
    if (!st)
        return papers_ending(a, o);
    json_decref(o);
    return papers_ended(st);
}

/* ---- agc-table ----------------------------------------------------------- */

int papers_agc_table(const papers_args *a)
{
    agc_row rows[AGC_ROWS];
    json_t *list;
    kofn_status st = agc_table(rows);

    if (st)
        return papers_ended(st);
    list = json_array();
    for (size_t i = 0; i < AGC_ROWS; i++) {
        const agc_row *r = &rows[i];
        char name[32];

        papers_add(list,
                   "scheme:s p:f printed:f as_printed:f as_printed_diff:f "
                   "straight:f straight_diff:f",
                   aet_name(r->scheme, name, sizeof name), r->p, r->printed,
                   r->as_printed, r->as_printed - r->printed, r->straight,
                   r->straight - r->printed);
    }
    if (!a->json) {
        printf("scheme         p   printed   as printed     diff   straight   "
               "  diff\n");
        papers_each(list, "{scheme:-10} {p:5.2f} {printed:9.2f} "
                          "{as_printed:12.2f} {as_printed_diff:+8.3f} "
                          "{straight:10.2f} {straight_diff:+8.3f}\n");
    }
    return papers_ending(a, papers_pack("rows:o", list));
}
