/* show.c -- prints a line per round: each worker's share of the work, and what
 * happened.
 *
 * Owns nothing. It asks the job for names of workers only. */
#include "cli.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>

const char *show_title(const session *s, size_t worker, char out[SHOW_TITLE])
{
    const char *name = kofn_job_name(s->job, worker);

    snprintf(out, SHOW_TITLE, "worker %zu%s%.256s%s", worker, *name ? " (" : "",
             name, *name ? ")" : "");
    return out;
}

/* Prints eighths of a block as a bar, or as a digit if the terminal has no
 * bars. */
static void put_share(FILE *f, const session *s, size_t rows,
                      kofn_worker_state state, bool bars)
{
    static const char *const bar[] = {" ", "▁", "▂", "▃", "▄",
                                      "▅", "▆", "▇", "█"};
    double share = (double)rows / (double)s->block_rows;
    int eighths = (int)(share * 8 + 0.999);

    if (rows == 0)
        fputc(state == KOFN_WORKER_GONE ? (bars ? ' ' : '-')
              : state == KOFN_WORKER_QUARANTINED ||
                      state == KOFN_WORKER_UNRESPONSIVE
                  ? 'x'
                  : '.',
              f);
    else if (bars)
        fputs(bar[eighths > 8 ? 8 : eighths], f);
    else
        fputc('0' + (eighths > 8 ? 8 : eighths), f);
}

static void put_event(FILE *f, const session *s, const kofn_fault_event *h,
                      size_t joiner)
{
    char title[SHOW_TITLE];
    static const char *const does[] = {
        [KOFN_FAULT_EVENT_LEAVE] = " vanishes",
        [KOFN_FAULT_EVENT_JOIN] = " arrives",
        [KOFN_FAULT_EVENT_SLOW] = " slows down",
        [KOFN_FAULT_EVENT_NORMAL] = " is itself again",
        [KOFN_FAULT_EVENT_CORRUPT] = " begins to lie",
        [KOFN_FAULT_EVENT_FLIP] = "'s block flips"};

    /* only nodes of a mesh err, and they are not shown */
    if (h->kind != KOFN_FAULT_EVENT_ERR)
        fprintf(
            f, "  %s%s%s", h->kind == KOFN_FAULT_EVENT_FLIP ? "a bit of " : "",
            show_title(s, h->kind == KOFN_FAULT_EVENT_JOIN ? joiner : h->worker,
                       title),
            does[h->kind]);
    if (h->kind == KOFN_FAULT_EVENT_SLOW)
        fprintf(f, " %g times", h->factor);
    if (h->fraction > 0)
        fprintf(f, " in mid-round");
}

static void heading(FILE *f, const session *s, bool bars, size_t width)
{
    fprintf(f,
            "share of its block each worker is given (%s); nothing: gone\n"
            "round  %-*s      time%s\n",
            bars ? "full bar: all of it" : "eighths", (int)width, "workers",
            s->expected_rounds > 1 ? "     change" : "");
}

void show_round(session *s, const kofn_report *rep, double change)
{
    FILE *f = s->args->json ? stderr : stdout;
    size_t width = s->args->workers + s->events_left;
    bool bars;
    unsigned round = s->shown + 1;

    setlocale(LC_CTYPE, ""); /* selects the terminal's character set */
    bars = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (s->shown++ == 0) {
        s->width = width < 12 ? 12 : width > 64 ? 64 : width;
        heading(f, s, bars, s->width);
    }
    fprintf(f, "%5u  ", round);
    for (size_t i = 0; i < s->width; i++) {
        if (i < rep->workers)
            put_share(f, s, rep->rows[i], rep->states[i], bars);
        else
            fputc(' ', f);
    }
    fprintf(f, "  %6.1f ms", (double)rep->took * 1e-6);
    if (change >= 0)
        fprintf(f, "  %9.2e", change);
    while (s->events_left && s->next_event->round <= round) {
        if (s->next_event->kind == KOFN_FAULT_EVENT_JOIN)
            s->joiners++;
        put_event(f, s, s->next_event, s->args->workers + s->joiners - 1);
        s->next_event++;
        s->events_left--;
    }
    fputc('\n', f);
    fflush(f);
}
