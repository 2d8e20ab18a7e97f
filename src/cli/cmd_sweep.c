/* cmd_sweep.c -- kofn sweep: a command with all values of some options and
 * parameters of the code.
 *
 * Each finished run is a row of the CSV file at once, so Ctrl-C keeps it. */
#include "trials.h"

#include "help.h"
#include "schemes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MOST 100000
#define VALUES_MOST 10000

/* One --over NAME=VALUES. */
typedef struct over {
    char name[40];
    char option[60]; /* "--NAME=", "--faults=KEY="; "": a parameter of the code
                      */
    char (*value)[TRIAL_VALUE];
    size_t count;
} over;

typedef struct sweep {
    const cli_command *own;
    trial_words w;
    over over[TRIAL_OVER];
    size_t overs;
    const char *scheme;   /* as given, or the usual one */
    char named[CLI_SPEC]; /* the same; of a shared object by its name */
    trial *done;
    size_t count, runs;
    FILE *csv;
} sweep;

/* ---- what is varied ------------------------------------------------------ */

static int add_value(over *o, const char *text, size_t length)
{
    if (o->count == VALUES_MOST)
        return cli_say(EXIT_USAGE, "--over %s has more than %d values", o->name,
                       VALUES_MOST);
    if (length == 0 || length >= sizeof *o->value)
        return cli_say(EXIT_USAGE,
                       "--over %s: a value is empty or too long; give as "
                       "--over %s=2..8 or --over %s=2,4,8",
                       o->name, o->name, o->name);
    snprintf(o->value[o->count++], sizeof *o->value, "%.*s", (int)length, text);
    return 0;
}

/* Adds first..last, first..last:step or first..last*factor. */
static int add_range(over *o, const char *text, size_t length)
{
    char word[2 * TRIAL_VALUE], value[TRIAL_VALUE], *dots, *end;
    double first, last, by = 1;
    bool times = false;

    snprintf(word, sizeof word, "%.*s", (int)length, text);
    dots = strstr(word, "..");
    if (!dots)
        return add_value(o, text, length);
    *dots = 0; /* else 2..8 begins with 2. */
    first = strtod(word, &end);
    if (end == word || *end)
        first = NAN;
    last = strtod(dots + 2, &end);
    if (end != dots + 2 && (*end == ':' || *end == '*')) {
        times = *end == '*';
        by = strtod(end + 1, &end);
    }
    if (end == dots + 2 || *end || !(last >= first) || !isfinite(last) ||
        (times ? !(by > 1 && first > 0) : !(by > 0)))
        return cli_say(EXIT_USAGE,
                       "--over %s=%.*s is no range; give 2..8, 0.1..0.5:0.1 or "
                       "1..1000*10",
                       o->name, (int)length, text);
    for (double v = first; v <= last * (1 + 1e-9);
         v = times ? v * by : v + by) {
        snprintf(value, sizeof value, "%.10g", v);
        TRY_CODE(add_value(o, value, strlen(value)));
    }
    return 0;
}

/* Returns the option of the command with this name or letter; NULL: none. */
static const cli_option *option_of(const cli_command *c, const char *name)
{
    for (const cli_option *o = cli_options(); o->name; o++)
        if (o->in & c->bit && (!strcmp(o->name, name) ||
                               (o->letter && o->letter == name[0] && !name[1])))
            return o;
    return NULL;
}

static bool is_parameter(const char *spec, const char *name)
{
    char scheme[CLI_SPEC];
    const kofn_scheme *s;

    snprintf(scheme, sizeof scheme, "%.*s", (int)strcspn(spec, ":"), spec);
    s = kofn_scheme_find(scheme);
    for (const kofn_param *p = s ? s->params : NULL; p && p->name; p++)
        if (!strcmp(p->name, name))
            return true;
    return false;
}

/* True if --faults takes this key with this value. */
static bool is_fault(const char *name, const char *value)
{
    kofn_faults f = KOFN_FAULTS_INIT();
    char text[100];

    snprintf(text, sizeof text, "%s=%.*s", name, (int)strcspn(value, ",.:*"),
             value);
    return !kofn_faults_parse(&f, text);
}

/* Writes how the command takes the name: "" for a parameter of the scheme. */
static int know_name(const sweep *s, const char *name, const char *values,
                     char how[60])
{
    const cli_option *option = option_of(s->w.command, name);

    how[0] = 0;
    if (is_parameter(s->named, name))
        return 0;
    if (option)
        snprintf(how, 60, "--%s=", option->name);
    else if (is_fault(name, values))
        snprintf(how, 60, "--faults=%s=", name);
    else
        return cli_say(
            EXIT_USAGE,
            "--over %s: kofn %s has no such option, --faults no such "
            "key, and the scheme %s no such parameter",
            name, s->w.command->name, s->scheme);
    return 0;
}

/* Returns the length of the next value, to a comma. In a list of schemes,
 * "key=value" belongs to the scheme before it. */
static size_t value_length(const char *text, bool schemes)
{
    size_t n = strcspn(text, ",");

    while (schemes && text[n]) {
        size_t more = strcspn(text + n + 1, ",");
        size_t key = strcspn(text + n + 1, "=:");

        if (key >= more || text[n + 1 + key] == ':')
            break;
        n += 1 + more;
    }
    return n;
}

static int read_over(sweep *s, const char *text)
{
    over *o = &s->over[s->overs];
    const char *values = strchr(text, '=');
    char how[sizeof o->option];
    size_t length = values ? (size_t)(values - text) : 0;

    if (s->overs == TRIAL_OVER)
        return cli_say(EXIT_USAGE, "--over is given more than %d times",
                       TRIAL_OVER);
    if (length == 0 || length >= sizeof o->name)
        return cli_say(EXIT_USAGE,
                       "--over %s has no NAME=VALUES, such as k=2..8", text);
    snprintf(o->name, sizeof o->name, "%.*s", (int)length, text);
    TRY_CODE(know_name(s, o->name, values + 1, how));
    memcpy(o->option, how, sizeof how);
    o->value = calloc(VALUES_MOST, sizeof *o->value);
    if (!o->value)
        return cli_say(EXIT_FAILED, "out of memory");
    s->overs++;
    for (values++;; values += length + 1) {
        length = value_length(values, !strcmp(o->option, "--scheme="));
        TRY_CODE(add_range(o, values, length));
        if (!values[length])
            return 0;
    }
}

/* ---- one run ------------------------------------------------------------- */

/* Puts "name=value" into the scheme in place of an older one. */
static void put_parameter(char spec[CLI_SPEC], const char *name,
                          const char *value)
{
    char old[CLI_SPEC], *args, *rest = NULL;
    size_t n = strlen(name);

    snprintf(old, sizeof old, "%s", spec);
    args = strchr(old, ':');
    snprintf(spec, CLI_SPEC, "%.*s:%s=%s", (int)strcspn(old, ":"), old, name,
             value);
    for (char *word = args ? strtok_r(args + 1, ",", &rest) : NULL; word;
         word = strtok_r(NULL, ",", &rest)) {
        size_t used = strlen(spec);

        if (strncmp(word, name, n) != 0 || word[n] != '=')
            snprintf(spec + used, CLI_SPEC - used, ",%s", word);
    }
}

/* Makes the words of run i: the first name varies slowest. */
static void words_of(const sweep *s, size_t i, trial *t, char *more[],
                     char room[][CLI_SPEC + 20])
{
    size_t n = 0;
    bool coded = false;

    snprintf(t->scheme, sizeof t->scheme, "%s", s->scheme);
    for (size_t k = s->overs; k-- > 0;) {
        const over *o = &s->over[k];

        snprintf(t->value[k], sizeof t->value[k], "%s", o->value[i % o->count]);
        i /= o->count;
    }
    for (size_t k = 0; k < s->overs; k++) {
        const over *o = &s->over[k];

        if (!strcmp(o->option, "--scheme="))
            snprintf(t->scheme, sizeof t->scheme, "%s", t->value[k]);
    }
    for (size_t k = 0; k < s->overs; k++) {
        const over *o = &s->over[k];

        if (!*o->option)
            put_parameter(t->scheme, o->name, t->value[k]);
        coded |= !*o->option || !strcmp(o->option, "--scheme=");
        if (!*o->option || !strcmp(o->option, "--scheme="))
            continue;
        snprintf(room[n], sizeof room[n], "%s%s", o->option, t->value[k]);
        more[n] = room[n];
        n++;
    }
    if (coded || s->w.given.scheme_given) {
        snprintf(room[n], sizeof room[n], "--scheme=%s", t->scheme);
        more[n] = room[n];
        n++;
    }
    more[n] = NULL;
}

static void print_head(const sweep *s)
{
    for (size_t k = 0; k < s->overs; k++)
        printf("%-*s ", strcmp(s->over[k].option, "--scheme=") ? 8 : 22,
               s->over[k].name);
    printf("%9s %9s %9s %10s %5s %6s\n", "round 50%", "90%", "in all",
           "MB sent", "lost", "wrong");
}

static void print(const sweep *s, const trial *t)
{
    char each[16], most[16], total[16];

    for (size_t k = 0; k < s->overs; k++)
        printf("%-*s ", strcmp(s->over[k].option, "--scheme=") ? 8 : 22,
               t->value[k]);
    if (t->error[0]) {
        printf("fails: %s\n", t->error);
        return;
    }
    cli_seconds_text(each, t->median);
    cli_seconds_text(most, t->most);
    cli_seconds_text(total, t->total);
    printf("%9s %9s %9s %10.4g %5zu %6zu\n", each, most, total, t->sent / 1e6,
           t->lost, t->corrupt);
}

static void head_csv(const sweep *s)
{
    for (size_t k = 0; k < s->overs; k++) {
        trial_csv(s->csv, s->over[k].name);
        fputc(',', s->csv);
    }
    fputs("scheme," TRIAL_CSV "\n", s->csv);
}

static int row_csv(const sweep *s, const trial *t)
{
    for (size_t k = 0; k < s->overs; k++) {
        trial_csv(s->csv, t->value[k]);
        fputc(',', s->csv);
    }
    trial_csv(s->csv, t->scheme);
    trial_csv_row(s->csv, t);
    return fflush(s->csv)
               ? cli_say(EXIT_FAILED, "cannot write %s", s->w.given.csv)
               : 0;
}

/* ---- all runs ------------------------------------------------------------ */

static void print_list(const sweep *s)
{
    json_t *o = json_object(), *list = json_array();

    for (size_t i = 0; i < s->count; i++) {
        json_t *row = json_object(), *at = json_object();

        for (size_t k = 0; k < s->overs; k++)
            json_object_set_new(at, s->over[k].name,
                                json_string(s->done[i].value[k]));
        json_object_set_new(row, "over", at);
        json_object_set_new(row, "scheme", json_string(s->done[i].scheme));
        trial_json(row, &s->done[i]);
        json_array_append_new(list, row);
    }
    PUT("command", json_string(s->w.command->name));
    PUT("runs", list);
    cli_print_json(o);
}

/* Names a curve by the values of all names but the last. */
static void name_curve(const sweep *s, const trial *t, char name[CLI_SPEC])
{
    name[0] = 0;
    for (size_t k = 0; k + 1 < s->overs; k++) {
        size_t n = strlen(name);

        snprintf(name + n, CLI_SPEC - n, "%s%s=%s", n ? ", " : "",
                 s->over[k].name, t->value[k]);
    }
}

/* Draws the median of rounds over the values of the last name: one curve for
 * all values of the others. */
static int draw(const sweep *s)
{
    const over *last = &s->over[s->overs - 1];
    size_t curves = s->runs / last->count;
    chart_curve *c = calloc(curves, sizeof *c);
    double *xy = calloc(2 * s->runs, sizeof *xy);
    int code = c && xy ? 0 : cli_say(EXIT_FAILED, "out of memory");
    char title[120], *end;

    for (size_t i = 0; !code && i < s->runs; i++) {
        const trial *t = &s->done[i];
        size_t k = i / last->count;
        const char *value = t->value[s->overs - 1];

        xy[i] = strtod(value, &end);
        if (*end) /* a word: its place */
            xy[i] = (double)(i % last->count);
        xy[s->runs + i] = t->error[0] ? NAN : t->median;
        name_curve(s, t, c[k].name);
        c[k].x = xy + k * last->count;
        c[k].y = xy + s->runs + k * last->count;
        c[k].count = last->count;
    }
    snprintf(title, sizeof title, "kofn %s%s%s: median of rounds",
             s->w.command->name, s->w.given.scheme_given ? " " : "",
             s->w.given.scheme_given ? s->scheme : "");
    if (!code)
        code = chart_write(&(chart){.title = title,
                                    .x = last->name,
                                    .y = "seconds",
                                    .curve = c,
                                    .curves = curves},
                           s->w.given.svg);
    free(c);
    free(xy);
    return code;
}

static int run_all(sweep *s)
{
    int code = 0, worst = 0;

    if (!s->w.given.json)
        print_head(s);
    for (size_t i = 0; i < s->runs && !code; i++) {
        trial *t = &s->done[i];
        char room[TRIAL_OVER + 1][CLI_SPEC + 20], *more[TRIAL_OVER + 2];

        words_of(s, i, t, more, room);
        trial_show(i + 1, s->runs, t->scheme);
        code = trial_run(&s->w, more, t);
        if (code)
            break;
        s->count++;
        worst = t->code > worst ? t->code : worst;
        if (!s->w.given.json)
            print(s, t);
        fflush(stdout);
        if (s->csv)
            code = row_csv(s, t);
    }
    if (s->w.given.json)
        print_list(s);
    if (code >= 128)
        cli_say(0, "%zu of %zu runs are done%s%s", s->count, s->runs,
                s->csv ? " and in " : "", s->csv ? s->w.given.csv : "");
    if (!code && s->w.given.svg)
        code = draw(s);
    return code ? code : worst;
}

/* Finds the scheme among the words of the command, and takes it out. */
static void take_scheme(sweep *s)
{
    trial_words *w = &s->w;
    size_t kept = 0;

    s->scheme = "elastic";
    for (size_t i = 0; i < w->words; i++) {
        const char *word = w->word[i];

        if (!strcmp(word, "-s") || !strcmp(word, "--scheme"))
            s->scheme = i + 1 < w->words ? w->word[++i] : "";
        else if (!strncmp(word, "--scheme=", 9))
            s->scheme = word + 9;
        else if (!strncmp(word, "-s", 2) && word[2] != '-')
            s->scheme = word + 2;
        else {
            w->word[kept++] = w->word[i];
            continue;
        }
        w->given.scheme_given = true;
    }
    w->words = kept;
}

/* Finds the parameters of a scheme of a shared object. */
static int know_scheme(sweep *s)
{
    char room[CLI_SPEC];
    const char *named = s->scheme;

    TRY_CODE(cli_own_scheme(&named, room));
    snprintf(s->named, sizeof s->named, "%s", named);
    return 0;
}

static int prepare(sweep *s)
{
    take_scheme(s);
    TRY_CODE(know_scheme(s));
    if (s->w.picks == 0)
        return cli_say(EXIT_USAGE,
                       "nothing is varied; give what is, as --over k=2..8");
    for (size_t i = 0; i < s->w.picks; i++)
        TRY_CODE(read_over(s, s->w.picked[i]));
    s->runs = 1;
    for (size_t k = 0; k < s->overs; k++) {
        s->runs *= s->over[k].count;
        if (s->runs > RUNS_MOST)
            return cli_say(EXIT_USAGE, "these are more than %d runs",
                           RUNS_MOST);
    }
    s->done = calloc(s->runs, sizeof *s->done);
    if (!s->done)
        return cli_say(EXIT_FAILED, "out of memory");
    if (!s->w.given.csv)
        return 0;
    s->csv = fopen(s->w.given.csv, "w");
    if (!s->csv)
        return cli_say(EXIT_FAILED, "cannot write %s", s->w.given.csv);
    head_csv(s);
    return 0;
}

int cmd_sweep(const cli_command *c, int argc, char **argv)
{
    sweep s = {.own = c};
    int code = trial_read(c, argc, argv, 0, "over", &s.w);

    if (!code && (s.w.given.help || s.w.given.help_all)) {
        cli_help_command(stdout, c, s.w.given.help_all);
    } else if (!code) {
        code = prepare(&s);
        if (!code)
            code = run_all(&s);
    }
    if (s.csv && fclose(s.csv) && !code)
        code = cli_say(EXIT_FAILED, "cannot write %s", s.w.given.csv);
    for (size_t k = 0; k < TRIAL_OVER; k++)
        free(s.over[k].value);
    free(s.done);
    trial_free(&s.w);
    return code;
}
