/* trials.c -- runs a command of kofn again and again, each time in another
 * process, and reads its JSON.
 *
 * The failure of a run is a row of the table. Equal seeds give equal faults. */
#define _GNU_SOURCE
#include "trials.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- words --------------------------------------------------------------- */

/* Returns the value of an option if the word is it: after "=", after the
 * letter, or the next word, which is then skipped. */
static const char *value_of(char **argv, int argc, int *i, char letter,
                            const char *name)
{
    const char *word = argv[*i];
    size_t n = strlen(name);

    if (letter && word[0] == '-' && word[1] == letter && word[2])
        return word + 2;
    if (!strncmp(word, "--", 2) && !strncmp(word + 2, name, n) &&
        word[2 + n] == '=')
        return word + 3 + n;
    if (!(letter && word[0] == '-' && word[1] == letter) &&
        !(!strncmp(word, "--", 2) && !strcmp(word + 2, name)))
        return NULL;
    return *i + 1 < argc ? argv[++*i] : "";
}

static const cli_command *command_of(const char *word)
{
    for (const cli_command *c = cli_commands; c->name; c++)
        if (!strcmp(c->name, word) && c->bit & IN_RUN)
            return c;
    return NULL;
}

static bool is_flag(const char *word)
{
    static const char *const flags[] = {"-j", "--json", "-h", "--help",
                                        "--help-all"};

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!strcmp(word, flags[i]))
            return true;
    return false;
}

/* Takes the words for this command and leaves the others. */
static void sort(int argc, char **argv, char letter, const char *name,
                 trial_words *w)
{
    w->own[w->owns++] = argv[0];
    for (int i = 1; i < argc; i++) {
        int from = i;
        const char *pick = value_of(argv, argc, &i, letter, name);

        if (pick) {
            w->picked[w->picks++] = (char *)(uintptr_t)pick;
        } else if (is_flag(argv[i]) || value_of(argv, argc, &i, 0, "csv") ||
                   value_of(argv, argc, &i, 0, "svg")) {
            for (; from <= i; from++)
                w->own[w->owns++] = argv[from];
        } else {
            w->word[w->words++] = argv[i];
        }
    }
}

/* Refuses files that every run would write anew. */
static int check_outputs(const trial_words *w)
{
    static const char *const files[] = {"output",  "journal",   "metrics",
                                        "trace",   "record",    "report",
                                        "history", "checkpoint"};

    for (size_t i = 0; i < w->words; i++)
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            int at = (int)i;

            if (value_of(w->word, (int)w->words, &at, k ? 0 : 'o', files[k]))
                return cli_say(EXIT_USAGE,
                               "%s: every run would write it anew; run kofn %s "
                               "alone for its files",
                               w->word[i], w->command->name);
        }
    return 0;
}

int trial_read(const cli_command *c, int argc, char **argv, char letter,
               const char *name, trial_words *out)
{
    size_t room = (size_t)argc + 1;

    *out = (trial_words){.word = calloc(room, sizeof *out->word),
                         .own = calloc(room, sizeof *out->own),
                         .picked = calloc(room, sizeof *out->picked),
                         .given = cli_defaults()};
    if (!out->word || !out->own || !out->picked)
        return cli_say(EXIT_FAILED, "out of memory");
    sort(argc, argv, letter, name, out);
    out->given.command = c;
    TRY_CODE(cli_parse(c, (int)out->owns, out->own, &out->given));
    if (out->given.help || out->given.help_all)
        return 0;
    out->command = out->words ? command_of(out->word[0]) : NULL;
    if (!out->command)
        return cli_say(EXIT_USAGE,
                       "%s%skofn %s takes one of matvec, matmul, power, "
                       "pagerank, regress, train, and its words",
                       out->words ? out->word[0] : "", out->words ? ": " : "",
                       c->name);
    return check_outputs(out);
}

void trial_free(trial_words *w)
{
    free(w->word);
    free(w->own);
    free(w->picked);
    free(w->given.reached);
}

/* ---- a run --------------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    stopped = number;
}

/* Starts the command with its output in a pipe, and what it says in `said`, if
 * that is a file. */
static int start(const trial_words *w, char *const *more, int out[2], int said,
                 pid_t *pid)
{
    char **word = calloc(w->words + 8, sizeof *word);
    size_t n = 0;

    for (; word && more[n]; n++)
        ;
    if (!word || n > 4 || pipe2(out, O_CLOEXEC))
        return free(word), cli_say(EXIT_FAILED, "no pipe: %s", strerror(errno));
    word[0] = (char *)(uintptr_t) "kofn";
    memcpy(word + 1, w->word, w->words * sizeof *word);
    memcpy(word + 1 + w->words, more, n * sizeof *word);
    word[1 + w->words + n] = (char *)(uintptr_t) "--json";
    fflush(NULL);
    *pid = fork();
    if (*pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        if (said >= 0)
            dup2(said, STDERR_FILENO);
        execv("/proc/self/exe", word);
        _exit(127);
    }
    free(word);
    close(out[1]);
    return *pid < 0 ? cli_say(EXIT_FAILED, "no process: %s", strerror(errno))
                    : 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double number(const json_t *o, const char *key)
{
    const json_t *x = json_object_get(o, key);

    return json_is_number(x) ? json_number_value(x) : NAN;
}

static size_t whole(const json_t *o, const char *key)
{
    const json_t *x = json_object_get(o, key);

    return json_is_integer(x) && json_integer_value(x) > 0
               ? (size_t)json_integer_value(x)
               : 0;
}

/* Fills in the times of rounds; without a list of them, their mean. */
static void know_rounds(const json_t *o, trial *t)
{
    const json_t *list = json_object_get(o, "per_round");
    size_t n = json_array_size(list);
    double *x = n ? calloc(n, sizeof *x) : NULL;

    t->median = t->most = t->rounds ? t->total / (double)t->rounds : NAN;
    if (!x)
        return;
    for (size_t i = 0; i < n; i++)
        x[i] = number(json_array_get(list, i), "seconds");
    qsort(x, n, sizeof *x, ascending);
    t->median = x[(n - 1) / 2];
    t->most = x[(9 * n + 9) / 10 - 1];
    free(x);
}

static void know(const json_t *o, trial *t)
{
    const char *why = json_string_value(json_object_get(o, "error"));
    const char *status = json_string_value(json_object_get(o, "status"));

    if (why || !status || strcmp(status, "ok") != 0)
        snprintf(t->error, sizeof t->error, "%s", why ? why : "no report");
    t->total = number(o, "seconds");
    t->placing = number(o, "place_seconds");
    t->sent = number(o, "sent_bytes");
    t->received = number(o, "received_bytes");
    t->predicted = number(o, "predicted_error");
    t->rounds = whole(o, "rounds");
    t->lost = whole(o, "left");
    t->corrupt = whole(o, "corrupt_results");
    know_rounds(o, t);
}

/* Waits for the process, also if a signal interrupts. */
static int end_of(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Reads the first line that the process said: some failures come before there
 * can be a report. */
static void read_said(int said, char *to, size_t room)
{
    static const char name[] = "kofn: ";
    char text[400];
    ssize_t n = pread(said, text, sizeof text - 1, 0);
    const char *from = text;

    text[n > 0 ? n : 0] = 0;
    if (!strncmp(from, name, strlen(name)))
        from += strlen(name);
    snprintf(to, room, "%.*s", (int)strcspn(from, "\n"), from);
}

int trial_run(const trial_words *w, char *const *more, trial *out)
{
    struct sigaction quiet = {.sa_handler = stop}, before;
    /* on a terminal the user sees it, and progress */
    int said = isatty(STDERR_FILENO) ? -1 : memfd_create("said", MFD_CLOEXEC);
    int pipe[2];
    pid_t pid = -1;
    json_t *o = NULL;
    FILE *f;

    out->error[0] = 0;
    sigaction(SIGINT, &quiet, &before);
    TRY_CODE(start(w, more, pipe, said, &pid));
    f = fdopen(pipe[0], "r");
    if (f) {
        o = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
        fclose(f);
    } else {
        close(pipe[0]);
    }
    out->code = end_of(pid);
    sigaction(SIGINT, &before, NULL);
    know(o, out);
    if (!o && said >= 0)
        read_said(said, out->error, sizeof out->error);
    if (said >= 0)
        close(said);
    json_decref(o);
    if (out->code && !out->error[0])
        snprintf(out->error, sizeof out->error, "exit code %d", out->code);
    return stopped ? 128 + stopped : 0;
}

void trial_show(size_t at, size_t of, const char *what)
{
    if (isatty(STDERR_FILENO))
        cli_tell("%zu of %zu: %s", at, of, what);
}

/* ---- what is written ----------------------------------------------------- */

void trial_csv(FILE *f, const char *text)
{
    bool plain = !strpbrk(text, ",\"\n\r");

    if (plain) {
        fputs(text, f);
        return;
    }
    fputc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', f);
}

void trial_csv_row(FILE *f, const trial *t)
{
    const double x[] = {t->median, t->most,     t->total,    t->placing,
                        t->sent,   t->received, t->predicted};

    fprintf(f, ",%zu", t->rounds);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        fprintf(f, isfinite(x[i]) ? ",%.12g" : ",", x[i]);
    fprintf(f, ",%zu,%zu,", t->lost, t->corrupt);
    trial_csv(f, t->error);
    fputc('\n', f);
}

void trial_json(json_t *o, const trial *t)
{
    PUT("status", json_string(t->error[0] ? "failed" : "ok"));
    PUT("error", t->error[0] ? json_string(t->error) : json_null());
    PUT("exit", json_integer(t->code));
    PUT_WHOLE("rounds", t->rounds);
    PUT("round_seconds_50", cli_number(t->median));
    PUT("round_seconds_90", cli_number(t->most));
    PUT("seconds", cli_number(t->total));
    PUT("place_seconds", cli_number(t->placing));
    PUT("sent_bytes", cli_number(t->sent));
    PUT("received_bytes", cli_number(t->received));
    PUT("predicted_error", cli_number(t->predicted));
    PUT_WHOLE("left", t->lost);
    PUT_WHOLE("corrupt_results", t->corrupt);
}
