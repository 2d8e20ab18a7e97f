/* fuzz_args.c -- fuzzes command lines. fuzz-iterations: 300000
 *
 * Line feeds end words, and the first word is the command. Accepted values are
 * within the limits that messages state. A refused command line gets one
 * message. */
#include "cli_messages.h"

#include "cli/args.c" /* part of the command, not of the library */
#include "cli/commands.c"
#include "cli/nodes_options.c"
#include "cli/rules.c"
#include "cli/table.c"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the rest of the command, for these two parts ------------------------ */

const cli_transport *cli_transport_of(const char *port)
{
    static const cli_transport named[] = {
        {.name = "threads", .here = true},
        {.name = "sim", .here = true, .simulated = true},
        {.name = "processes"},
        {.name = "mpi", .nodes = true}};
    static const cli_transport address = {.address = true, .nodes = true};

    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!strcmp(port, named[i].name))
            return &named[i];
    return !strncmp(port, "tcp://", 6) || !strncmp(port, "ipc://", 6) ? &address
                                                                      : NULL;
}

#define NEVER_RUN(name)                                                        \
    int name(cli_args *a)                                                      \
    {                                                                          \
        (void)a;                                                               \
        abort();                                                               \
    }
CLI_COMMANDS(NEVER_RUN)

const char *cli_transport_forms(bool (*fits)(const cli_transport *))
{
    (void)fits;
    return "--port tcp://HOST:PORT";
}

/* ---- rules --------------------------------------------------------------- */

static void check_numbers(const cli_args *a)
{
    MUST(a->workers >= 1 && a->workers <= 1000000);
    MUST(a->rounds >= 1 && a->rounds <= 1000000000);
    MUST(a->rows >= 1 && a->least <= 1000000);
    MUST(a->damping >= 0 && a->damping <= 1 && a->tol >= 0 && a->tol <= 1e300);
    MUST(a->job.patience >= 0 && a->job.start_within >= 0);
    MUST(a->job.late < 0 || a->job.late == 0 || a->job.late >= 1);
    MUST(a->job.lease >= -1 && a->job.pieces <= 10000);
    MUST(a->job.max_error >= 0 && a->job.max_error <= 1);
    MUST((int)a->job.errors >= 0 && (int)a->job.errors <= 3);
    MUST((int)a->job.below >= 0 && (int)a->job.below <= 2);
    MUST((int)a->job.in_flight >= 0 && (int)a->job.in_flight <= 2);
    MUST((int)a->regress.loss >= 0 && (int)a->regress.loss <= 2);
    MUST((int)a->regress.optimizer >= 0 && (int)a->regress.optimizer <= 4);
    MUST((int)a->regress.line_search >= 0 && (int)a->regress.line_search <= 3);
    MUST(a->regress.l2 >= 0 && isfinite(a->regress.l2));
    MUST(a->grace >= 0 && a->grace <= 1e9);
    MUST(a->decode >= 0 && a->decode <= 2 && a->confirm <= 4096);
}

static void check(const cli_command *c, const cli_args *a)
{
    check_numbers(a);
    if (a->help)
        return;
    MUST(a->operands >= c->least && a->operands <= c->most);
    for (int i = 0; i < a->operands; i++)
        MUST(a->operand[i]);
    if (c->bit & IN_RUN)
        MUST(a->least <= a->workers);
}

/* ---- the target ---------------------------------------------------------- */

enum { WORDS = 40 };

/* Resets getopt. A program reads its words once, but this one often. */
static void reset_getopt(void)
{
    char name[] = "kofn", *argv[] = {name, NULL};

    optind = 0;
    getopt_long(1, argv, "", (struct option[]){{0}}, NULL);
}

static int split(char *text, char *argv[WORDS + 1])
{
    int argc = 0;

    for (char *at = text; at && argc < WORDS; argc++) {
        char *end = strchr(at, '\n');

        argv[argc] = at;
        if (end)
            *end++ = 0;
        at = end;
    }
    argv[argc] = NULL;
    return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cli_args a = cli_defaults();
    char *text = malloc(size + 1), *argv[WORDS + 1];
    const cli_command *c = cli_commands;
    int argc, code;

    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    argc = split(text, argv);
    while (c->name && strcmp(c->name, argv[0]) != 0)
        c++;
    if (c->name) {
        a.command = c;
        messages = 0;
        reset_getopt();
        code = cli_parse(c, argc, argv, &a);
        MUST(code == 0 || code == EXIT_USAGE);
        MUST(messages == (code != 0));
        if (!code)
            check(c, &a);
    }
    free(a.reached);
    free(text);
    return 0;
}
