/* args.c -- converts argv to cli_args, by the table.
 *
 * Owns the cli_args that it fills; they point into argv. It opens no file and
 * starts nothing. A wrong argument gives a message and an exit code. */
#include "cli.h"
#include "log.h"

#include "base/near.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTIONS 90

static int wrong(const cli_option *o, const char *text, const char *want)
{
    return cli_say(EXIT_USAGE, "--%s %s: %s", o->name, text, want);
}

static bool real(const char *text, double low, double high, double *out)
{
    char *end;

    if (!*text || isspace((unsigned char)*text))
        return false;
    *out = strtod(text, &end);
    return !*end && *out >= low && *out <= high;
}

/* Returns the index of the word in "a|b|c", or -1. */
static int word(const char *choices, const char *text)
{
    size_t n = strlen(text);

    for (int i = 0; *choices; i++) {
        size_t m = strcspn(choices, "|");

        if (m == n && !memcmp(choices, text, n))
            return i;
        choices += m + (choices[m] == '|');
    }
    return -1;
}

/* Reads a number within the option's range. */
static int set_number(const cli_option *o, const char *text, size_t *out)
{
    size_t least = (size_t)o->least;
    size_t limit = o->most > 0 ? (size_t)o->most : INT64_MAX;

    if (cli_whole(text, limit, out) && *out >= least)
        return 0;
    return cli_say(EXIT_USAGE, "--%s %s: give a whole number from %zu to %zu",
                   o->name, text, least, limit);
}

/* Reads a real number within the option's range. A factor or time of 0 means
 * never and is stored as -1. */
static int set_real(const cli_option *o, const char *text, double *out)
{
    bool or_never = o->kind == CLI_FACTOR || o->kind == CLI_TERM;

    if (or_never && real(text, 0, 0, out)) {
        *out = -1;
        return 0;
    }
    if (real(text, o->least, o->most, out))
        return 0;
    return cli_say(EXIT_USAGE, "--%s %s: give %sa number from %g to %g",
                   o->name, text, or_never ? "0 or " : "", o->least, o->most);
}

/* Reads one of the option's words. The message lists them, "give a, b or c",
 * and repeats the one that is nearest. */
static int set_word(const cli_option *o, const char *text, int *place)
{
    kf_near near = {.word = text, .length = strlen(text)};
    char want[160] = "give ";

    *place = word(o->arg, text);
    if (*place >= 0)
        return 0;
    for (const char *p = o->arg; *p; p += *p == '|') {
        size_t n = strcspn(p, "|"), had = strlen(want);

        snprintf(want + had, sizeof want - had, "%s%.*s",
                 p == o->arg      ? ""
                 : strchr(p, '|') ? ", "
                                  : " or ",
                 (int)n, p);
        kf_near_try(&near, p, n);
        p += n;
    }
    if (near.best)
        snprintf(want + strlen(want), sizeof want - strlen(want),
                 " (did you mean %.*s?)", (int)near.best_length, near.best);
    return wrong(o, text, want);
}

static int set_value(cli_args *a, const cli_option *o, const char *text)
{
    void *at = (char *)a + o->at;
    size_t n = 0;
    double x = 0;
    int place, code;

    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)at = true;
        return 0;
    case CLI_WORD:
        if (set_word(o, text, &place))
            return EXIT_USAGE;
        break;
    case CLI_FILE:
        if (!*text)
            return wrong(o, "\"\"", "give a file name");
        break;
    case CLI_DIR:
        if (!*text)
            return wrong(o, "\"\"", "give a folder");
        break;
    case CLI_CHOICE:
        code = set_word(o, text, &place);
        *(int *)at = (int)o->least + place;
        return code;
    case CLI_SIZE:
        return set_number(o, text, at);
    case CLI_UNSIGNED:
        code = set_number(o, text, &n);
        *(unsigned *)at = (unsigned)n;
        return code;
    case CLI_FACTOR:
    case CLI_REAL:
        return set_real(o, text, at);
    case CLI_TERM:
    case CLI_SECONDS:
        TRY_CODE(set_real(o, text, &x));
        *(kofn_time *)at = x < 0 ? -1 : (kofn_time)(x * 1e9);
        return 0;
    case CLI_TEXT:
    case CLI_PAIR:
    case CLI_JOB: /* was replaced by the kind in the library's table */
        break;
    }
    *(const char **)at = text;
    return 0;
}

/* ---- the parser ---------------------------------------------------------- */

/* Returns the key that getopt_long reports: the letter, or a number above all
 * letters. */
static int key_of(const cli_option *o)
{
    return o->letter ? o->letter : UCHAR_MAX + 1 + (int)(o - cli_options());
}

/* Converts the table for getopt_long. */
static void getopt_tables(const cli_command *c, struct option *longs,
                          char *shorts)
{
    size_t n = 0;

    *shorts++ = ':';
    for (const cli_option *o = cli_options(); o->name; o++) {
        if (!(o->in & c->bit))
            continue;
        longs[n++] = (struct option){
            o->name, o->arg ? required_argument : no_argument, NULL, key_of(o)};
        if (o->letter) {
            *shorts++ = o->letter;
            if (o->arg)
                *shorts++ = ':';
        }
    }
    longs[n] = (struct option){0};
    *shorts = 0;
}

/* Returns " (did you mean --rounds?)", or "" if no option is near the word. */
static const char *meant(const cli_command *c, const char *word, size_t n)
{
    static char said[80];
    kf_near near = {.word = word, .length = n};

    for (const cli_option *o = cli_options(); o->name; o++)
        if (o->in & c->bit)
            kf_near_try(&near, o->name, strlen(o->name));
    snprintf(said, sizeof said, near.best ? " (did you mean --%.*s?)" : "%.*s",
             (int)near.best_length, near.best ? near.best : "");
    return said;
}

/* Returns the exit code after a message about an unknown option. getopt_long
 * puts the option's key into optopt, an unknown letter unchanged. For an
 * unknown word optopt is 0, and the word is the last argument read. */
static int bad_option(const cli_command *c, bool bare, const char *word)
{
    const cli_option *o = cli_options();

    while (o->name && (key_of(o) != optopt || !(o->in & c->bit)))
        o++;
    if (o->name)
        return cli_say(EXIT_USAGE, "--%s %s; see kofn %s --help-all", o->name,
                       bare ? "needs a value" : "takes no value", c->name);
    if (optopt)
        return cli_say(EXIT_USAGE,
                       "%s has no option -%c; see kofn %s --help-all", c->name,
                       optopt, c->name);
    return cli_say(EXIT_USAGE, "%s has no option %s%s; see kofn %s --help-all",
                   c->name, word,
                   strncmp(word, "--", 2)
                       ? ""
                       : meant(c, word + 2, strcspn(word + 2, "=")),
                   c->name);
}

cli_args cli_defaults(void)
{
    cli_args a = {.scheme = "elastic",
                  .port = "threads",
                  .workers = 8,
                  .rounds = 1,
                  .rows = 100000,
                  .max_iter = 200,
                  .seed = 1,
                  .log_level = CLI_LOG_INFO,
                  .dtype = "f8",
                  .factor = 5,
                  .faults = KOFN_FAULTS_INIT(),
                  .regress = {.size = sizeof(kofn_regress_options),
                              .max_iterations = 100},
                  .net = {.activation = KOFN_RELU},
                  .train = {.momentum = 0.9, .batch = 32, .epochs = 100},
                  .job = KOFN_OPTIONS_INIT};

    return a;
}

/* Stores an option's value, and does what else it asks for. */
static int apply(cli_args *a, const cli_option *o, const char *text)
{
    int code = set_value(a, o, text);

    if (!code && o->given && o->kind != CLI_PAIR)
        *(bool *)((char *)a + o->given) = true;
    return !code && o->check ? o->check(a, o, text) : code;
}

static bool is_set(const cli_option *o)
{
    return o->at == offsetof(cli_args, setting);
}

/* Sets an option by --set NAME=VALUE, or --set NAME for a flag. */
static int set(cli_args *a, const char *text)
{
    size_t n = strcspn(text, "=");
    const char *value = text[n] ? text + n + 1 : NULL;
    const cli_option *o = cli_options();

    while (o->name &&
           (!(o->in & a->command->bit) || strlen(o->name) != n ||
            memcmp(o->name, text, n) != 0 || o->kind == CLI_PAIR || is_set(o)))
        o++;
    if (!o->name)
        return cli_say(EXIT_USAGE,
                       "--set %s: kofn %s has no option %.*s%s; see kofn %s "
                       "--help-all",
                       text, a->command->name, (int)n, text,
                       meant(a->command, text, n), a->command->name);
    if (!o->arg != !value)
        return cli_say(EXIT_USAGE, "--set %s: %s %s", text, o->name,
                       o->arg ? "needs a value, as in --set name=value"
                              : "takes no value");
    return apply(a, o, value);
}

int cli_parse(const cli_command *c, int argc, char **argv, cli_args *a)
{
    struct option longs[MAX_OPTIONS + 1];
    char shorts[2 * MAX_OPTIONS + 2];
    int key;

    getopt_tables(c, longs, shorts);
    a->words = argv;
    opterr = 0;
    optind = 1;
    while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const cli_option *o = cli_options();
        int code;

        if (key == ':' || key == '?')
            return bad_option(c, key == ':', argv[optind - 1]);
        while (key_of(o) != key || !(o->in & c->bit))
            o++;
        code = is_set(o) ? set(a, optarg) : apply(a, o, optarg);
        if (!code && o->kind == CLI_PAIR) /* one file may have both */
            *(const char **)((char *)a + o->given) =
                optind < argc && *argv[optind] != '-' ? argv[optind++] : optarg;
        if (code)
            return code;
        if (a->help || a->help_all)
            return 0;
    }
    for (; optind < argc; optind++) {
        if (a->operands < 8)
            a->operand[a->operands] = argv[optind];
        a->operands++;
    }
    if (cli_check_together(c, a))
        return EXIT_USAGE;
    if (a->operands >= c->least && a->operands <= c->most)
        return 0;
    return cli_say(EXIT_USAGE,
                   "%s takes %s, not %d operand%s; see kofn %s --help", c->name,
                   c->operands, a->operands, a->operands == 1 ? "" : "s",
                   c->name);
}
