/* tell.c -- describes the state of the open products in text.
 *
 * It changes nothing.  No decision may depend on this text. */
#include "state.h"

#include "base/number.h"

#include <stdio.h>

typedef struct teller {
    void (*line)(void *ud, const char *words);
    void *ud;
    char words[400];
    size_t n;
} teller;

KF_PRINTF(2, 3) static void say(teller *t, const char *format, ...)
{
    size_t room = sizeof t->words - t->n;
    va_list args;
    int n;

    va_start(args, format);
    n = kf_vformat(t->words + t->n, room, format, args);
    va_end(args);
    t->n += n < 0 ? 0 : kf_min((size_t)n, room - 1);
}

static void end_line(teller *t)
{
    t->line(t->ud, t->words);
    t->n = 0;
}

static void tell_cell(teller *t, const kf_product *p, size_t group,
                      const kf_cell *cell)
{
    say(t, "  ");
    if (p->groups > 1)
        say(t, "group %zu, ", group);
    say(t, "strips %zu-%zu: %zu of %zu results", cell->lo, cell->hi - 1,
        kf_product_has(p, cell), kf_product_wanted(p, group, cell));
    for (size_t h = 0; h < cell->count; h++)
        say(t, "%s %u", h ? "" : ", rows", p->task[cell->have[h]].row);
    if (cell->corrupt)
        say(t, "; %zu found wrong", cell->corrupt);
    say(t, "; %zu outstanding", cell->pending + cell->slow);
    if (cell->slow)
        say(t, ", %zu of them late", cell->slow);
    if (cell->checking)
        say(t, "; being checked");
    end_line(t);
}

static void tell_round(teller *t, const kf_round *r)
{
    const kf_product *p = &r->p;

    say(t, "product %u: %s%s; %zu of %zu strips open; %zu workers have tasks",
        p->number, r->state == KF_ROUND_STARVED ? "too few workers" : "running",
        p->degraded ? ", degraded" : "", p->unsettled,
        p->groups * (p->hi - p->lo), r->busy);
    end_line(t);
    for (size_t g = 0; g < p->groups; g++)
        for (size_t i = 0; i < p->ledger[g].count; i++)
            if (!p->ledger[g].cell[i].settled)
                tell_cell(t, p, g, &p->ledger[g].cell[i]);
}

void kofn_core_tell(const kofn_core *c,
                    void (*line)(void *ud, const char *words), void *ud)
{
    teller t = {.line = line, .ud = ud};

    for (size_t i = 0; i < c->rounds; i++)
        if (kf_is_open(c->round[i]))
            tell_round(&t, c->round[i]);
}
