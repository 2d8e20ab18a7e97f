/* steps.c -- kofn replay --step: prints each event and its actions as text.
 *
 * Owns nothing. The text depends on one event or action alone, so two replays
 * print the same. */
#include "steps.h"

#include <inttypes.h>
#include <string.h>

static void show_line(void *ud, const char *words)
{
    fprintf(ud, "  | %s\n", words);
}

void show_state(FILE *to, const kofn_core *c)
{
    kofn_core_tell(c, show_line, to);
}

/* ---- events -------------------------------------------------------------- */

static void show_begin(FILE *to, const kofn_event *ev)
{
    if (ev->product)
        fprintf(to, "begin product %u%s", ev->product,
                ev->use ? ", of the left product" : "");
    else
        fputs("begin a round without a product", to);
    if (ev->m)
        fprintf(to, ", %zu x %zu times %zu x %zu", ev->m, ev->n, ev->n, ev->p);
    if (ev->hi)
        fprintf(to, ", strips %zu-%zu", ev->lo, ev->hi - 1);
}

static void show_verdict(FILE *to, const kofn_event *ev)
{
    fprintf(to, "verdict on check %u of product %u: %s", ev->task, ev->product,
            ev->status == KOFN_OK      ? "they agree"
            : ev->status == KOFN_AGAIN ? "more answers are needed"
                                       : "they disagree");
    for (size_t i = 0; i < ev->bad_count; i++)
        fprintf(to, "%s %u", i ? "" : ", without", ev->bad[i]);
    if (ev->doubted)
        fprintf(to, ", the last %zu only in doubt", ev->doubted);
}

static void show_time(FILE *to, size_t line, kofn_time now)
{
    fprintf(to, "line %zu, %.9f s: ", line, (double)now * 1e-9);
}

void show_event(FILE *to, size_t line, const kofn_event *ev)
{
    static const char *const is[] = {[KOFN_EV_JOINED] = "joined",
                                     [KOFN_EV_STORED] = "has its block",
                                     [KOFN_EV_LEAVING] = "will go",
                                     [KOFN_EV_LEFT] = "left",
                                     [KOFN_EV_MOVED] = "has another principal",
                                     [KOFN_EV_UNRESPONSIVE] = "answers nothing",
                                     [KOFN_EV_VOID] = "stores another block",
                                     [KOFN_EV_JUDGED] = "was judged"};

    show_time(to, line, ev->now);
    if (ev->type == KOFN_EV_BEGIN)
        show_begin(to, ev);
    else if (ev->type == KOFN_EV_RESULT || ev->type == KOFN_EV_FAILED)
        fprintf(to, "%s of task %u of product %u, row %u, from worker %u",
                ev->type == KOFN_EV_RESULT ? "result" : "failure", ev->task,
                ev->product, ev->row, ev->worker);
    else if (ev->type == KOFN_EV_ALARM)
        fputs("alarm", to);
    else if (ev->type == KOFN_EV_VERDICT)
        show_verdict(to, ev);
    else if (ev->type == KOFN_EV_CANCEL)
        fprintf(to, "product %u is cancelled", ev->product);
    else
        fprintf(to, "worker %u %s", ev->worker, is[ev->type]);
    if (ev->principal)
        fprintf(to, ", of principal %u", ev->principal);
    fputc('\n', to);
}

/* Prints a note. Fields beyond its name depend on its kind. */
void show_note(FILE *to, size_t line, const kofn_note *x)
{
    double since = (double)x->since * 1e-9;

    show_time(to, line, x->now);
    if (strcmp(x->own, "storing") == 0)
        fprintf(to, "the block of worker %u is on its way\n", x->worker);
    else if (strcmp(x->own, "sent") == 0)
        fprintf(to, "task %u of product %u was sent\n", x->task, x->product);
    else if (strcmp(x->own, "over") == 0)
        fprintf(to, "product %u, of round %u from %.9f s on, is over: %s\n",
                x->product, x->round, since, kofn_strerror(x->status));
    else if (strcmp(x->own, "finished") == 0)
        fputs("no round can follow\n", to);
    else
        fprintf(to, "%s by the coordinator since %.9f s\n", x->own, since);
}

/* ---- actions ------------------------------------------------------------- */

static void show_strips(FILE *to, const kofn_action *a)
{
    fprintf(to, ", group %zu, strips %zu-%zu", a->group, a->lo, a->hi - 1);
}

static void show_tasks(FILE *to, const kofn_action *a)
{
    show_strips(to, a);
    for (size_t i = 0; i < a->count; i++)
        fprintf(to, "%s %u", i ? "" : ", of tasks", a->tasks[i]);
}

void show_action(FILE *to, const kofn_action *a)
{
    fputs("  ", to);
    switch (a->type) {
    case KOFN_DO_STORE:
        fprintf(to, "store the block of seat %zu at worker %u", a->seat,
                a->worker);
        break;
    case KOFN_DO_WORK:
        fprintf(to, "work for worker %u: task %u of product %u, row %zu",
                a->worker, a->task, a->product, a->row);
        show_strips(to, a);
        break;
    case KOFN_DO_CANCEL:
        fprintf(to, "cancel task %u of product %u at worker %u", a->task,
                a->product, a->worker);
        break;
    case KOFN_DO_DECODE:
        fprintf(to, "decode product %u", a->product);
        show_tasks(to, a);
        break;
    case KOFN_DO_MIX:
        fprintf(to, "mix the input of product %u", a->product);
        show_strips(to, a);
        break;
    case KOFN_DO_CHECK:
        fprintf(to, "check %u of product %u", a->task, a->product);
        show_tasks(to, a);
        break;
    case KOFN_DO_DELIVER:
        fprintf(to, "deliver product %u: %s, predicted relative error %.1e",
                a->product, kofn_strerror(a->status), a->predicted);
        break;
    case KOFN_DO_EVICT:
        fprintf(to, "give up worker %u", a->worker);
        break;
    case KOFN_DO_END:
        fprintf(to, "round %u is over: %zu workers marked, lists of up to %zu",
                a->product, a->hi, a->lo);
        break;
    }
    fputc('\n', to);
}
