/* main.c -- finds the command and runs it, from arguments to exit code.
 *
 * Owns the parsed arguments for the life of the process. It computes nothing:
 * each command has its own file. */
#include "busy.h"
#include "cli.h"
#include "help.h"

#include "base/near.h"
#include "log.h"
#include "metrics.h"
#include "schemes.h"
#include "trials.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const cli_command *find(const char *name)
{
    const cli_command *c = cli_commands;

    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

static bool is(const char *word, const char *a, const char *b)
{
    return !strcmp(word, a) || (b && !strcmp(word, b));
}

static int no_command(const char *name)
{
    kf_near near = {.word = name, .length = strlen(name)};
    char known[200] = "";

    if (is(name, "bench", "model"))
        return cli_say(EXIT_USAGE,
                       "%s: published experiments and closed forms are in "
                       "another program: kofn-papers --help",
                       name);
    for (const cli_command *c = cli_commands; c->name; c++) {
        strcat(known, c == cli_commands ? "" : ", ");
        strcat(known, c->name);
        kf_near_try(&near, c->name, strlen(c->name));
    }
    return cli_say(EXIT_USAGE, "no command \"%s\"%s%.*s%s; there are %s", name,
                   near.best ? " (did you mean " : "", (int)near.best_length,
                   near.best ? near.best : "", near.best ? "?)" : "", known);
}

static int help(const char *topic)
{
    const cli_command *c;

    if (!topic) {
        cli_help(stdout);
        return EXIT_EXACT;
    }
    c = find(topic);
    if (!c)
        return no_command(topic);
    cli_help_command(stdout, c, false);
    return EXIT_EXACT;
}

/* Prints man pages: that of all commands, or of one. */
static int manual(const char *topic)
{
    const cli_command *c = topic ? find(topic) : NULL;

    if (topic && !c)
        return no_command(topic);
    cli_manual(stdout, c);
    return EXIT_EXACT;
}

/* Runs the command. The number of workers is known. */
static int begin(cli_args *a)
{
    int code;

    TRY_CODE(cli_metrics_open(a));
    if (a->scheme)
        TRY_CODE(cli_own_scheme(&a->scheme, a->loaded));
    if (a->command->bit & (IN_PRODUCT | IN_ITERATE))
        TRY_CODE(cli_tolerate(a, &a->scheme, a->tolerated));
    if (a->command->bit == IN_GEN)
        cli_busy("making", a->output ? a->output : "");
    code = a->command->run(a);
    cli_busy_end();
    return code;
}

static int carry_out(cli_args *a)
{
    const cli_command *c = a->command;
    int code;

    if (c->bit & IN_JOB)
        cli_ports_look_for_mpi(a);
    if (c->bit & IN_JOB && !a->masterless) {
        const cli_transport *port = cli_transport_of(a->port);
        bool is_worker;

        if (port->start) {
            code = port->start(a, &is_worker);
            if (!code && !is_worker)
                code = begin(a);
            return port->end(code);
        }
    }
    code = begin(a);
    cli_ports_end();
    return code;
}

static int run(const cli_command *c, int argc, char **argv)
{
    cli_args a = cli_defaults();
    int code;

    if (!c->run)
        return c->bit == IN_COMPARE ? cmd_compare(c, argc, argv)
                                    : cmd_sweep(c, argc, argv);
    a.command = c;
    code = cli_parse(c, argc, argv, &a);
    if (!code && !a.help && !a.help_all && c->bit & IN_JOB)
        code = cli_check_names(&a);
    if (code || a.help || a.help_all) {
        if (code)
            cli_print_failure(&a);
        else
            cli_help_command(stdout, c, a.help_all);
        free(a.reached);
        return code;
    }
    a.faults.seed = a.seed;
    cli_busy_allow(!a.quiet);
    code = cli_log_open(&a);
    if (code)
        code = cli_say(EXIT_FAILED, "--log %s: %s", a.log, strerror(code));
    if (!code)
        code = cli_make_pattern(&a);
    if (!code)
        code = carry_out(&a);
    /* Workers may be busy, but their results are not needed. */
    if (code >= 128)
        _exit(code);
    if (code)
        cli_print_failure(&a);
    cli_metrics_close();
    cli_log_close();
    kofn_free(a.pattern.data);
    free(a.reached);
    return code;
}

static int dispatch(int argc, char **argv)
{
    const cli_command *c;

    if (argc < 2) {
        cli_help(stderr);
        return EXIT_USAGE;
    }
    if (is(argv[1], "--help", "-h"))
        return help(NULL);
    if (is(argv[1], "help", NULL))
        return help(argv[2]);
    if (is(argv[1], "--version", "-V")) {
        cli_version(stdout);
        return EXIT_EXACT;
    }
    if (is(argv[1], "--manual", NULL))
        return manual(argv[2]);
    if (is(argv[1], "--completion", NULL))
        return cli_completion(stdout, argv[2] ? argv[2] : "");
    c = find(argv[1]);
    return c ? run(c, argc - 1, argv + 1) : no_command(argv[1]);
}

int main(int argc, char **argv)
{
    int code;

    cli_begin();
    cli_fast_blas(argv);
    cli_signals();
    cli_json_begin();
    code = dispatch(argc, argv);
    if (!code && cli_json_lost())
        code = cli_say(EXIT_FAILED, "out of memory for the report");
    if (fflush(stdout) || ferror(stdout))
        code =
            cli_say(code ? code : EXIT_FAILED, "stdout: %s", strerror(errno));
    return code;
}
