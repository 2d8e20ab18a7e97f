/* help.c -- the tables as help, and what version this is.
 *
 * Owns nothing: all text comes from commands.c and table.c, and no command or
 * option may be described here. */
#include "help.h"
#include "cli.h"

#include "base/report.h"

#include <string.h>

/* ---- text ---------------------------------------------------------------- */

#define WIDTH 79

/* Words from column `left` on, the first line being at `at` already. */
static void fill(FILE *f, const char *text, size_t left, size_t at)
{
    while (*text) {
        size_t n = strcspn(text, " ");

        if (at > left && at + 1 + n > WIDTH) {
            fprintf(f, "\n%*s", (int)left, "");
            at = left;
        } else if (at > left) {
            fputc(' ', f);
            at++;
        }
        fprintf(f, "%.*s", (int)n, text);
        at += n;
        text += n;
        text += strspn(text, " ");
    }
    fputc('\n', f);
}

void cli_option_names(const cli_option *o, char *out, size_t size)
{
    size_t n = 0;

    if (o->letter)
        n = (size_t)snprintf(out, size, "-%c, ", o->letter);
    else
        n = (size_t)snprintf(out, size, "    ");
    snprintf(out + n, size - n, "--%s%s%s", o->name, o->arg ? " " : "",
             o->arg ? o->arg : "");
}

#define LEFT 30

static void help_option(FILE *f, const char *names, const char *text)
{
    fprintf(f, "  %s", names);
    if (strlen(names) + 4 > LEFT)
        fprintf(f, "\n%*s", LEFT, "");
    else
        fprintf(f, "%*s", LEFT - 2 - (int)strlen(names), "");
    fill(f, text, LEFT, LEFT);
}

/* Lists the named options of a group: all of them, or those of --help. */
static void help_group(FILE *f, const cli_command *c, cli_group g, bool all)
{
    bool begun = false;
    char names[80];

    for (const cli_option *o = cli_options(); o->name; o++) {
        if (!(o->in & c->bit) || cli_group_of(o) != g || cli_is_rare(o, c) ||
            (!all && !cli_is_in_front(o, c)))
            continue;
        if (!begun)
            fprintf(f, "\n%s:\n", cli_group_title(g));
        begun = true;
        cli_option_names(o, names, sizeof names);
        help_option(f, names, o->help);
    }
}

void cli_option_setting(const cli_option *o, char *out, size_t size)
{
    snprintf(out, size, "%s%s%s", o->name, o->arg ? "=" : "",
             o->arg ? o->arg : "");
}

/* Lists the options under --set. */
static void help_rare(FILE *f, const cli_command *c)
{
    bool begun = false;
    char setting[80], names[90];

    for (const cli_option *o = cli_options(); o->name; o++) {
        if (!(o->in & c->bit) || !cli_is_rare(o, c))
            continue;
        if (!begun)
            fprintf(f, "\nWith --set, seldom needed:\n");
        begun = true;
        cli_option_setting(o, setting, sizeof setting);
        snprintf(names, sizeof names, "    %s", setting);
        help_option(f, names, o->help);
    }
}

/* True if the command has options that --help does not show. */
static bool has_more(const cli_command *c)
{
    for (const cli_option *o = cli_options(); o->name; o++)
        if (o->in & c->bit && !cli_is_in_front(o, c) &&
            strcmp(o->name, "help-all") != 0)
            return true;
    return false;
}

const char *cli_example(const char *e, cli_span *typed, cli_span *what)
{
    size_t line = strcspn(e, "\n");
    const char *gap = strstr(e, "  ");
    size_t n = gap && gap < e + line ? (size_t)(gap - e) : line;
    size_t skip = n + strspn(e + n, " ");

    if (!*e)
        return NULL;
    *typed = (cli_span){e, n};
    *what = (cli_span){e + skip, line - skip};
    return e + line + (e[line] == '\n');
}

#define FIRST 3 /* examples of --help */

static void examples(FILE *f, const cli_command *c, bool all)
{
    cli_span typed, what;
    int n = 0;

    for (const char *e = c->examples;
         (all || n < FIRST) && (e = cli_example(e, &typed, &what)) != NULL; n++)
        fprintf(f, "  %.*s\n      %.*s\n", (int)typed.n, typed.text,
                (int)what.n, what.text);
}

void cli_help_command(FILE *f, const cli_command *c, bool all)
{
    fprintf(f, "usage: kofn %s %s [options]\n\n", c->name, c->operands);
    fill(f, c->text, 0, 0);
    fprintf(f, "\nexamples:\n");
    examples(f, c, all);
    for (int g = 0; g < CLI_GROUPS; g++)
        help_group(f, c, (cli_group)g, all);
    if (all)
        help_rare(f, c);
    else if (has_more(c))
        fprintf(f, "\nkofn %s --help-all shows the other options.\n", c->name);
}

void cli_help(FILE *f)
{
    fprintf(f, "kofn -- any k of n workers are enough: exact products on "
               "workers that are slow,\nleave, or join late.\n\n"
               "usage: kofn COMMAND ...\n\n");
    for (const cli_command *c = cli_commands; c->name; c++)
        fprintf(f, "  %-10s %s\n", c->name, c->summary);
    fprintf(f,
            "\nexamples:\n"
            "  kofn gen matrix 4000 1000 -o X.npy && kofn gen vector 1000 "
            "-o w.npy\n"
            "  kofn matvec X.npy w.npy -o y.npy --verify\n\n"
            "kofn COMMAND --help has the usual options, and --help-all all of "
            "them; kofn --version prints "
            "the kernels and formats.\n\n"
            "exit: 0 exact result, 1 failed, 2 usage or bad input, "
            "4 too few workers,\n      5 wrong beyond correction, 128+n "
            "ended by signal n\n");
}

void cli_version(FILE *f)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    kofn_machine_info(&m);
    fprintf(f, "kofn %s\nkernels: %s\nblas: %s%s\n", KOFN_VERSION, m.simd,
            m.blas, m.blas_threads == 1 ? ", one thread a worker" : "");
    if (*m.advice)
        fprintf(f, "advice: %s\n", m.advice);
    fprintf(
        f,
        "ports: threads, sim, processes, mpi, tcp://, ipc://\nformats: npy, mtx, csv, idx, cifar-10, edges, libsvm, gz\n");
}
