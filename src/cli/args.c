/* args.c -- from argv to cli_args, by the table. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTIONS 80

static int wrong(const cli_option *o, const char *text, const char *want)
{
    return cli_say(EXIT_USAGE, "--%s %s: %s", o->name, text, want);
}

/* A whole number with an optional k, M or G. */
static bool whole(const char *text, size_t max, size_t *out)
{
    unsigned long long x;
    unsigned long long scale = 1;
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    x = strtoull(text, &end, 10);
    if (*end == 'k')
        scale = 1000;
    else if (*end == 'M')
        scale = 1000000;
    else if (*end == 'G')
        scale = 1000000000;
    if (errno || end[scale > 1] || x > max / scale)
        return false;
    *out = (size_t)(x * scale);
    return true;
}

static bool real(const char *text, double low, double high, double *out)
{
    char *end;

    if (!*text || isspace((unsigned char)*text))
        return false;
    *out = strtod(text, &end);
    return !*end && *out >= low && *out <= high;
}

/* Index of the word in "a|b|c", or -1. */
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

static int set_size(const cli_option *o, const char *text, size_t min,
                    size_t max, size_t *out)
{
    if (whole(text, max, out) && *out >= min)
        return 0;
    return cli_say(EXIT_USAGE, "--%s %s: give a whole number from %zu to %zu",
                   o->name, text, min, max);
}

static int set_real(const cli_option *o, const char *text, double min,
                    double max, double *out)
{
    if (real(text, min, max, out))
        return 0;
    return cli_say(EXIT_USAGE, "--%s %s: give a number from %g to %g", o->name,
                   text, min, max);
}

static int set(cli_args *a, const cli_option *o, const char *text)
{
    double seconds = 0;
    size_t n;
    int i;

    switch (o->key) {
    case 'o':
        a->output = text;
        return *text ? 0 : wrong(o, "\"\"", "give a file name");
    case 'n':
        a->workers_given = true;
        return set_size(o, text, 1, 1000000, &a->workers);
    case 's':
        a->scheme = text;
        a->scheme_given = true;
        return 0;
    case 'p':
        a->port = text;
        return cli_is_address(text) ||
                       word("threads|sim|processes|mpi", text) >= 0
                   ? 0
                   : wrong(o, text, "give threads, sim, processes, mpi, "
                                    "tcp://*:PORT or ipc://PATH");
    case 'r':
        return set_size(o, text, 1, 1000000000, &a->rounds);
    case 'd':
        return set_real(o, text, 1e-6, 1 - 1e-6, &a->damping);
    case 't':
        return set_real(o, text, 1e-300, 1e300, &a->tol);
    case 'm':
        return set_size(o, text, 1, 1000000000, &a->max_iter);
    case 'e':
        a->events = text;
        return 0;
    case 'w':
        a->weather_text = text;
        return kofn_weather_parse(&a->weather, text)
                   ? cli_say(EXIT_USAGE, "--%s", kofn_errmsg())
                   : 0;
    case 1000:
        i = word(o->arg, text);
        a->job.in_flight = (kofn_in_flight)i;
        return i >= 0 ? 0 : wrong(o, text, "give ledger, keep or abort");
    case 1001:
        i = word(o->arg, text);
        a->job.below = (kofn_below)i;
        a->below_given = true;
        return i >= 0 ? 0 : wrong(o, text, "give refuse, pause or degrade");
    case 1002:
        if (set_real(o, text, 1e-6, 1e9, &seconds))
            return EXIT_USAGE;
        a->job.patience = (kofn_time)(seconds * 1e9);
        return 0;
    case 1003:
        if (set_real(o, text, 0, 1e9, &a->job.late))
            return EXIT_USAGE;
        if (a->job.late > 0 && a->job.late < 1)
            return wrong(o, text, "give 0 or a factor of at least 1");
        a->job.late = a->job.late > 0 ? a->job.late : -1;
        return 0;
    case 1014:
        if (set_real(o, text, 0, 1e9, &seconds))
            return EXIT_USAGE;
        a->job.lease = seconds > 0 ? 1 + (kofn_time)(seconds * 1e9) : -1;
        return 0;
    case 1004:
        if (set_size(o, text, 1, 10000, &n))
            return EXIT_USAGE;
        a->job.pieces = (unsigned)n;
        return 0;
    case 1005:
        return set_real(o, text, 1e-300, 1, &a->job.tolerance);
    case 1006:
        if (set_size(o, text, 0, INT64_MAX, &n))
            return EXIT_USAGE;
        a->seed = n;
        return 0;
    case 1007:
        a->job.journal = text;
        return 0;
    case 1060:
        a->job.metrics = text;
        return *text ? 0 : wrong(o, "\"\"", "give a file name");
    case 1061:
        a->job.trace = text;
        return *text ? 0 : wrong(o, "\"\"", "give a file name");
    case 1062:
        a->checkpoint = text;
        return *text ? 0 : wrong(o, "\"\"", "give a folder");
    case 1063:
        a->resume = true;
        return 0;
    case 1070:
        return set_size(o, text, 1, 1000000, &a->least);
    case 1071:
        a->keys = text;
        return *text ? 0 : wrong(o, "\"\"", "give a folder");
    case 1072:
        a->insecure = true;
        return 0;
    case 1077:
        a->worker = text;
        return 0;
    case 1078:
        a->seats_given = true;
        return set_size(o, text, 0, 1000000, &a->job.seats);
    case 1079:
        if (set_real(o, text, 1e-3, 1e9, &seconds))
            return EXIT_USAGE;
        a->job.start_within = (kofn_time)(seconds * 1e9);
        return 0;
    case 1073:
        return set_real(o, text, 0, 1e9, &a->grace);
    case 1074:
        a->data_path = text;
        return *text ? 0 : wrong(o, "\"\"", "give a folder");
    case 1075:
        return set_size(o, text, 1, SIZE_MAX / 2, &a->memory);
    case 1076:
        a->staged = true;
        return 0;
    case 1008:
        a->dtype = text;
        return word(o->arg, text) >= 0 ? 0 : wrong(o, text, "give f8 or f4");
    case 1009:
        return set_size(o, text, 1, 1000000000, &a->rows);
    case 1010:
        a->show = true;
        return 0;
    case 1011:
        i = word(o->arg, text);
        a->job.errors = (kofn_errors)i;
        return i >= 0 ? 0 : wrong(o, text, "give none, detect, adversarial or "
                                           "probabilistic");
    case 1012:
        if (set_size(o, text, 1, 1000000000, &n))
            return EXIT_USAGE;
        a->job.quarantine = (unsigned)n;
        return 0;
    case 1013:
        a->job.beyond = true;
        return 0;
    case 1040:
        a->model_option = o->name;
        return set_size(o, text, 1, KOFN_AET_MOST_N, &a->model.n);
    case 1041:
        a->model_option = o->name;
        return set_size(o, text, 1, KOFN_AET_MOST_N, &a->model.d);
    case 1042:
        a->model_option = o->name;
        return set_real(o, text, 0, KOFN_AET_MOST_P, &a->model.p);
    case 1043:
        a->model_option = o->name;
        return set_real(o, text, 0, 1e100, &a->model.t_cp);
    case 1044:
        a->model_option = o->name;
        return set_real(o, text, 0, 1e100, &a->model.t_cm);
    case 1020:
        i = word(o->arg, text);
        a->regress.loss = (kofn_loss)i;
        return i >= 0 ? 0 : wrong(o, text, "give ls, logistic or poisson");
    case 1021:
        return set_real(o, text, 0, 1e100, &a->regress.ridge);
    case 1022:
        a->kernel = text;
        return 0;
    case 1023:
        i = word(o->arg, text);
        a->regress.descent = (kofn_descent)i;
        return i >= 0 ? 0 : wrong(o, text, "give gd, nesterov or sgd");
    case 1024:
        i = word(o->arg, text);
        a->regress.rule = (kofn_step_rule)i;
        return i >= 0 ? 0 : wrong(o, text, "give none, exact, armijo or grid");
    case 1025:
        return set_real(o, text, 1e-300, 1e300, &a->regress.step);
    case 1026:
        if (set_size(o, text, 1, 1000000000, &n))
            return EXIT_USAGE;
        a->regress.max_iterations = (unsigned)n;
        return 0;
    case 1027:
        a->test_X = text;
        return 0;
    case 1028:
        a->history = text;
        return *text ? 0 : wrong(o, "\"\"", "give a file name");
    case 1029:
        if (set_size(o, text, 1, 1000000000, &n))
            return EXIT_USAGE;
        a->regress.batches = (unsigned)n;
        return 0;
    case 1030:
        a->regress.intercept = true;
        return 0;
    case 1031:
        a->standardise = true;
        return 0;
    case 1032:
        a->labels = text;
        return 0;
    case 1033:
        a->points = text;
        return 0;
    case 1050:
        return set_size(o, text, 1, 4, &a->scenario);
    case 1051:
        return set_real(o, text, 0.001, 1000, &a->scale);
    case 1052:
        a->stale = 1 + word(o->arg, text);
        return a->stale ? 0 : wrong(o, text, "give fifo, latest or reset");
    case 1090:
        a->masterless = true;
        return 0;
    case 1091:
        a->decode = word(o->arg, text);
        return a->decode >= 0
                   ? 0
                   : wrong(o, text, "give auto, replicated or distributed");
    case 1092:
        a->reach = text;
        return 0;
    case 1093:
        return set_size(o, text, 1, 4096, &a->confirm);
    case 'v':
        a->verify = true;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case 'q':
        a->quiet = true;
        return 0;
    default:
        a->help = true;
        return 0;
    }
}

/* The table as getopt_long wants it. */
static void getopt_tables(const cli_command *c, struct option *longs,
                          char *shorts)
{
    size_t n = 0;

    *shorts++ = ':';
    for (const cli_option *o = cli_options; o->key; o++) {
        if (!(o->in & c->bit))
            continue;
        longs[n++] = (struct option){
            o->name, o->arg ? required_argument : no_argument, NULL, o->key};
        if (o->key < 256) {
            *shorts++ = (char)o->key;
            if (o->arg)
                *shorts++ = ':';
        }
    }
    longs[n] = (struct option){0};
    *shorts = 0;
}

static int check_operands(const cli_command *c, const cli_args *a)
{
    if (a->operands >= c->least && a->operands <= c->most)
        return 0;
    return cli_say(EXIT_USAGE, "%s takes %s, not %d operand%s; see kofn %s "
                   "--help", c->name, c->operands, a->operands,
                   a->operands == 1 ? "" : "s", c->name);
}

/* getopt_long leaves the option's key in optopt; an unknown letter as it is;
 * 0 for an unknown word, which is then the last argument it read. */
static int bad_option(const cli_command *c, bool bare, const char *word)
{
    const cli_option *o = cli_options;

    while (o->key && (o->key != optopt || !(o->in & c->bit)))
        o++;
    if (o->key)
        return cli_say(EXIT_USAGE, "--%s %s; see kofn %s --help", o->name,
                       bare ? "needs a value" : "takes no value", c->name);
    if (optopt)
        return cli_say(EXIT_USAGE, "%s has no option -%c; see kofn %s --help",
                       c->name, optopt, c->name);
    return cli_say(EXIT_USAGE, "%s has no option %s; see kofn %s --help",
                   c->name, word, c->name);
}

/* An option that only means something where others come to an address. */
static const char *needs_address(const cli_args *a)
{
    return a->least         ? "min-workers"
           : a->keys        ? "keys"
           : a->insecure    ? "insecure"
           : a->seats_given ? "seats-per-key"
                            : NULL;
}

/* Options that need each other, and defaults that go with a port. */
static int check_port(cli_args *a)
{
    const char *lonely = needs_address(a);

    if (lonely && !cli_is_address(a->port))
        return cli_say(EXIT_USAGE, "--%s is for workers who come to an "
                       "address; give --port tcp://*:PORT or ipc://PATH as "
                       "well", lonely);
    if (a->least > a->workers)
        return cli_say(EXIT_USAGE, "--min-workers %zu is more than the %zu of "
                       "--workers, who are all; give a larger --workers",
                       a->least, a->workers);
    if (cli_is_address(a->port) && !a->below_given)
        a->job.below = KOFN_BELOW_PAUSE; /* more may come at any time */
    if (a->job.errors != KOFN_ERRORS_NONE && !a->seats_given)
        a->job.seats = 1;
    if (a->masterless && (!strcmp(a->port, "sim") ||
                          !strcmp(a->port, "processes")))
        return cli_say(EXIT_USAGE, "--masterless runs on threads, tcp://, "
                       "ipc:// and mpi, not on the simulator");
    if (!a->masterless && (a->reach || a->decode || a->confirm))
        return cli_say(EXIT_USAGE, "--%s is for --masterless",
                       a->reach    ? "reach"
                       : a->decode ? "decode"
                                   : "confirm");
    if (a->reach && strncmp(a->port, "tcp:", 4) && strncmp(a->port, "ipc:", 4))
        return cli_say(EXIT_USAGE, "--reach needs an address of its own to "
                       "listen at; give --port tcp://HOST:PORT");
    return 0;
}

int cli_parse(const cli_command *c, int argc, char **argv, cli_args *a)
{
    struct option longs[MAX_OPTIONS + 1];
    char shorts[2 * MAX_OPTIONS + 2];
    int key;

    getopt_tables(c, longs, shorts);
    opterr = 0;
    optind = 1;
    while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const cli_option *o = cli_options;
        int code;

        if (key == ':' || key == '?')
            return bad_option(c, key == ':', argv[optind - 1]);
        while (o->key != key)
            o++;
        code = set(a, o, optarg);
        if (!code && o->key == 1027) { /* the one option with two values */
            if (optind >= argc)
                return cli_say(EXIT_USAGE, "--test needs two files, points "
                               "and their labels");
            a->test_y = argv[optind++];
        }
        if (code)
            return code;
        if (a->help)
            return 0;
    }
    for (; optind < argc; optind++) {
        if (a->operands < 8)
            a->operand[a->operands] = argv[optind];
        a->operands++;
    }
    return c->bit & IN_RUN && check_port(a) ? EXIT_USAGE : check_operands(c, a);
}
