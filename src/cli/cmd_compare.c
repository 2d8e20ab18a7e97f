/* cmd_compare.c -- kofn compare: a command under several codes, with the same
 * faults.
 *
 * Owns the trials until they are printed. */
#include "trials.h"

#include "help.h"

#include "base/spec.h"

#include <math.h>
#include <stdlib.h>

static void print(const trial *t, double best)
{
    char spec[KF_SPEC_SHORT], each[16], most[16], total[16], times[16] = "";

    kf_spec_short(spec, t->scheme);
    if (t->error[0]) {
        printf("%-28s fails: %s\n", spec, t->error);
        return;
    }
    cli_seconds_text(each, t->median);
    cli_seconds_text(most, t->most);
    cli_seconds_text(total, t->total);
    if (best > 0)
        snprintf(times, sizeof times, "%.2f", t->total / best);
    printf("%-28s %9s %9s %9s %6s %10.4g %5zu %6zu\n", spec, each, most, total,
           times, t->sent / 1e6, t->lost, t->corrupt);
}

/* Returns the least time of a run that was done; 0 if none was. */
static double best_of(const trial *t, size_t n)
{
    double best = HUGE_VAL;

    for (size_t i = 0; i < n; i++)
        if (!t[i].error[0])
            best = fmin(best, t[i].total);
    return isfinite(best) ? best : 0;
}

static void print_all(const trial_words *w, const trial *t, size_t n)
{
    double best = best_of(t, n);
    const trial *first = NULL;
    size_t done = 0;
    char spec[KF_SPEC_SHORT];

    printf("%-28s %9s %9s %9s %6s %10s %5s %6s\n", w->command->name,
           "round 50%", "90%", "in all", "times", "MB sent", "lost", "wrong");
    for (size_t i = 0; i < n; i++) {
        print(&t[i], best);
        done += !t[i].error[0];
        if (!first && !t[i].error[0] && t[i].total <= best)
            first = &t[i];
    }
    if (!first)
        return;
    kf_spec_short(spec, first->scheme);
    printf("%s is the fastest of %zu with these faults", spec, done);
    if (done < n)
        printf("; %zu could not run", n - done);
    putchar('\n');
}

static void print_list(const trial_words *w, const trial *t, size_t n)
{
    json_t *o = json_object(), *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *row = json_object();

        json_object_set_new(row, "scheme", json_string(t[i].scheme));
        trial_json(row, &t[i]);
        json_array_append_new(list, row);
    }
    PUT("command", json_string(w->command->name));
    PUT("runs", list);
    cli_print_json(o);
}

static int write_csv(const trial_words *w, const trial *t, size_t n)
{
    FILE *f = fopen(w->given.csv, "w");

    if (!f)
        return cli_say(EXIT_FAILED, "cannot write %s", w->given.csv);
    fputs("scheme," TRIAL_CSV "\n", f);
    for (size_t i = 0; i < n; i++) {
        trial_csv(f, t[i].scheme);
        trial_csv_row(f, &t[i]);
    }
    return fclose(f) ? cli_say(EXIT_FAILED, "cannot write %s", w->given.csv)
                     : 0;
}

static int draw(const trial_words *w, const trial *t, size_t n)
{
    chart_curve *bar = calloc(n, sizeof *bar);
    double *y = calloc(n, sizeof *y);
    int code = bar && y ? 0 : cli_say(EXIT_FAILED, "out of memory");
    char title[80];

    for (size_t i = 0; !code && i < n; i++) {
        y[i] = t[i].error[0] ? NAN : t[i].total;
        snprintf(bar[i].name, sizeof bar[i].name, "%s", t[i].scheme);
        bar[i].y = &y[i];
        bar[i].count = 1;
    }
    snprintf(title, sizeof title, "kofn %s: time of all rounds",
             w->command->name);
    if (!code)
        code = chart_write(&(chart){.title = title,
                                    .y = "seconds",
                                    .curve = bar,
                                    .curves = n,
                                    .bars = true},
                           w->given.svg);
    free(bar);
    free(y);
    return code;
}

static int compare(const trial_words *w, trial *t)
{
    size_t n = 0;
    int code = 0;

    for (; n < w->picks && !code; n++) {
        char spec[] = "--scheme";
        char *more[] = {spec, w->picked[n], NULL};

        snprintf(t[n].scheme, sizeof t[n].scheme, "%s", w->picked[n]);
        trial_show(n + 1, w->picks, w->picked[n]);
        code = trial_run(w, more, &t[n]);
    }
    if (code >= 128)
        n--; /* Ctrl-C: without the last */
    if (w->given.json)
        print_list(w, t, n);
    else
        print_all(w, t, n);
    if (code >= 128)
        cli_say(0, "interrupted: %zu of %zu runs are done", n, w->picks);
    if (w->given.csv && !code)
        code = write_csv(w, t, n);
    if (w->given.svg && !code)
        code = draw(w, t, n);
    for (size_t i = 0; i < n && !code; i++)
        code = t[i].code;
    return code;
}

int cmd_compare(const cli_command *c, int argc, char **argv)
{
    trial_words w;
    trial *t = NULL;
    int code = trial_read(c, argc, argv, 's', "scheme", &w);

    if (!code && (w.given.help || w.given.help_all)) {
        cli_help_command(stdout, c, w.given.help_all);
    } else if (!code && w.picks < 2) {
        code = cli_say(EXIT_USAGE,
                       "%zu code%s given; kofn compare takes at least two, as "
                       "-s elastic:k=6 -s uncoded",
                       w.picks, w.picks == 1 ? " is" : "s are");
    } else if (!code) {
        t = calloc(w.picks, sizeof *t);
        code = t ? compare(&w, t) : cli_say(EXIT_FAILED, "out of memory");
    }
    free(t);
    trial_free(&w);
    return code;
}
