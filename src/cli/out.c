/* out.c -- what the command prints besides results: messages, progress, JSON.
 *
 * A message is one line, whatever the quoted names contain. The last failure's
 * message is kept for --json.
 *
 * Owns the last message and the state of the progress line; one thread prints.
 * All other files of the room print by these functions. */
#include "cli.h"
#include "log.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static char said[1024];
static bool drawn, printed;

/* ---- messages ------------------------------------------------------------ */

/* Words a message, cleaned. */
static void word(char text[sizeof said], const char *fmt, va_list ap)
{
    vsnprintf(text, sizeof said, fmt, ap);
    cli_clean(text);
}

void cli_tell(const char *fmt, ...)
{
    char text[sizeof said];
    va_list ap;

    va_start(ap, fmt);
    word(text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", text);
}

int cli_say(int code, const char *fmt, ...)
{
    char text[sizeof said];
    va_list ap;

    va_start(ap, fmt);
    word(text, fmt, ap);
    va_end(ap);
    cli_erase();
    fprintf(stderr, "kofn: %s\n", text);
    if (code)
        memcpy(said, text, sizeof said);
    cli_log(&(cli_event){code ? CLI_LOG_ERROR : CLI_LOG_WARNING,
                         code ? "failed" : "remark", CLI_NO_WORKER, ""},
            "%s", text);
    return code;
}

int cli_exit_code(kofn_status st)
{
    switch (st) {
    case KOFN_PARTIAL:
    case KOFN_TOOFEW:
    case KOFN_LATE:
        return EXIT_TOOFEW;
    case KOFN_CORRUPT:
        return EXIT_CORRUPT;
    case KOFN_INVAL:
    case KOFN_SHAPE:
    case KOFN_NOSCHEME:
    case KOFN_UNSUITED:
    case KOFN_FORMAT:
    case KOFN_NONFINITE:
        return EXIT_USAGE;
    default:
        return EXIT_FAILED;
    }
}

int cli_fail(kofn_status st)
{
    return st ? cli_say(cli_exit_code(st), "%s", kofn_errmsg()) : 0;
}

int cli_fail_input(kofn_status st)
{
    return !st                ? 0
           : st == KOFN_NOMEM ? cli_fail(st)
                              : cli_say(EXIT_USAGE, "%s", kofn_errmsg());
}

/* ---- progress ------------------------------------------------------------ */

/* Returns the width of the terminal in characters. */
static int columns(void)
{
    struct winsize w = {0};

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col
                                                                     : 80;
}

/* Draws no more than one row: the rest of a wrapped line could not be erased.
 */
void cli_draw(const char *fmt, ...)
{
    char line[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\r\033[K%.*s", columns() - 1, line);
    drawn = true;
}

void cli_erase(void)
{
    if (drawn)
        fputs("\r\033[K", stderr);
    drawn = false;
}

/* ---- JSON ---------------------------------------------------------------- */

json_t *cli_error_json(void)
{
    json_t *text = json_string(said);

    if (text)
        return text;
    for (char *p = said; *p; p++) /* a file name may not be UTF-8 */
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    return json_string(said);
}

json_t *cli_number(double x)
{
    return x - x == 0 ? json_real(x) : json_null();
}

json_t *cli_list(const size_t *at, size_t n)
{
    json_t *list = json_array();

    for (size_t k = 0; k < n; k++)
        json_array_append_new(list, json_integer((json_int_t)at[k]));
    return list;
}

static size_t lost;

static void *json_room(size_t n)
{
    void *p = malloc(n);

    lost += !p;
    return p;
}

void cli_json_begin(void)
{
    json_set_alloc_funcs(json_room, free);
}

size_t cli_json_lost(void)
{
    return lost;
}

void cli_print_json(json_t *o)
{
    char *text = json_dumps(o, JSON_REAL_PRECISION(17));

    puts(text && !lost
             ? text
             : "{\"status\": \"failed\", \"error\": \"out of memory\"}");
    free(text);
    json_decref(o);
    printed = true;
}

void cli_print_failure(const cli_args *a)
{
    if (a->json && !printed)
        cli_print_json(json_pack("{s:s, s:s, s:o}", "status", "failed",
                                 "command", a->command->name, "error",
                                 cli_error_json()));
}

/* ---- the files that are written ------------------------------------------ */

static bool ends_in(const char *path, const char *suffix)
{
    const char *dot = strrchr(path, '.');

    return dot && !strcasecmp(dot, suffix);
}

/* Returns 0, or why no file can be created in the folder of this path. */
static int obstacle_beside(const char *path)
{
    char folder[4096];

    if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder)
        return ENAMETOOLONG;
    return access(dirname(folder), W_OK | X_OK) ? errno : 0;
}

/* True if both paths are one file. Devices do not count: they keep nothing
 * that could be lost. */
static bool same_file(const char *a, const char *b)
{
    struct stat s, t;

    if (stat(a, &s) != 0 || stat(b, &t) != 0)
        return !strcmp(a, b);
    return S_ISREG(s.st_mode) && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
}

int cli_check_path(const char *before, const char *path, bool mtx_too)
{
    struct stat st;
    int why;

    if (!ends_in(path, ".npy") && !ends_in(path, ".csv") &&
        !(mtx_too && ends_in(path, ".mtx")))
        return cli_say(EXIT_USAGE, "%s%s: name it %s", before, path,
                       mtx_too ? ".npy, .csv or .mtx" : ".npy or .csv");
    /* a new file is created next to the old one and replaces it */
    why = stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? EISDIR
                                                      : obstacle_beside(path);
    return why ? cli_say(EXIT_FAILED, "%s%s: %s", before, path, strerror(why))
               : 0;
}

int cli_check_names(const cli_args *a)
{
    const struct {
        const char *option, *path;
    } out[] = {{"output", a->output},
               {"history", a->history},
               {"log", a->log},
               {"journal", a->job.journal},
               {"metrics", a->job.metrics},
               {"trace", a->job.trace},
               {"record", a->job.record},
               {"report", a->job.report}};
    const char *in[] = {a->operand[0], a->operand[1], a->operand[2],
                        a->test_X,     a->test_y,     a->events,
                        a->labels,     a->points,     a->pattern_text};

    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        for (size_t k = 0; k < sizeof in / sizeof *in && out[i].path; k++)
            if (in[k] && same_file(out[i].path, in[k]))
                return cli_say(EXIT_USAGE,
                               "--%s %s: that is a file to be "
                               "read; name another",
                               out[i].option, out[i].path);
        for (size_t k = 0; k < i && out[i].path; k++)
            if (out[k].path && same_file(out[i].path, out[k].path))
                return cli_say(EXIT_USAGE,
                               "--%s %s: --%s is written there; name another",
                               out[i].option, out[i].path, out[k].option);
    }
    return a->job.record ? cli_check_path("--record ", a->job.record, false)
                         : 0;
}

int cli_no_folder(const char *path, int mode)
{
    struct stat st;

    return stat(path, &st)        ? errno
           : !S_ISDIR(st.st_mode) ? ENOTDIR
           : access(path, mode)   ? errno
                                  : 0;
}

/* Refuses a folder that neither exists nor can be created, if something is to
 * be written to it. */
static int check_folder(const char *path)
{
    int why = cli_no_folder(path, W_OK | X_OK);

    if (strlen(path) + 32 > 4096)
        return cli_say(EXIT_USAGE, "--output: the name of the folder is too "
                                   "long");
    if (why == ENOENT)
        why = obstacle_beside(path);
    return why ? cli_say(EXIT_FAILED, "--output %s: %s%s", path, strerror(why),
                         why == ENOTDIR ? "; name a folder" : "")
               : 0;
}

int cli_check_output(const cli_args *a, bool sparse)
{
    const char *path = a->output;

    if (!path)
        return 0;
    if (a->command->bit == IN_TRAIN)
        return check_folder(path);
    if (sparse && !ends_in(path, ".mtx"))
        return cli_say(EXIT_USAGE,
                       "--output %s: a graph is written as Matrix "
                       "Market; name it .mtx",
                       path);
    return cli_check_path("--output ", path, true);
}

int cli_check_complex(const cli_args *a)
{
    return a->output && ends_in(a->output, ".csv")
               ? cli_say(EXIT_USAGE,
                         "--output %s: the result is complex, and CSV has real "
                         "numbers only; name it .npy or .mtx",
                         a->output)
               : 0;
}
