/* help.c -- the tables as help, and what version this is.
 *
 * Owns nothing: all text comes from table.c, and no command or option may be
 * described here. */
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

static void help_options(FILE *f, const cli_command *c)
{
    char names[80];

    for (const cli_option *o = cli_options(); o->name; o++) {
        if (!(o->in & c->bit))
            continue;
        cli_option_names(o, names, sizeof names);
        fprintf(f, "  %s", names);
        if (strlen(names) + 4 > LEFT)
            fprintf(f, "\n%*s", LEFT, "");
        else
            fprintf(f, "%*s", LEFT - 2 - (int)strlen(names), "");
        fill(f, o->help, LEFT, LEFT);
    }
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

static void examples(FILE *f, const cli_command *c)
{
    cli_span typed, what;

    for (const char *e = c->examples;
         (e = cli_example(e, &typed, &what)) != NULL;)
        fprintf(f, "  %.*s\n      %.*s\n", (int)typed.n, typed.text,
                (int)what.n, what.text);
}

void cli_help_command(FILE *f, const cli_command *c)
{
    fprintf(f, "usage: kofn %s %s [options]\n\n", c->name, c->operands);
    fill(f, c->text, 0, 0);
    fprintf(f, "\nexamples:\n");
    examples(f, c);
    fprintf(f, "\noptions:\n");
    help_options(f, c);
}

void cli_help(FILE *f)
{
    fprintf(f, "kofn -- any k of n workers are enough: exact products on "
               "workers that are slow,\nleave, or join late.\n\n"
               "usage: kofn COMMAND ...\n\n");
    for (const cli_command *c = cli_commands; c->name; c++)
        fprintf(f, "  %-10s %s\n", c->name, c->summary);
    fprintf(f, "\nexamples:\n"
               "  kofn gen matrix 4000 1000 -o X.npy && kofn gen vector 1000 "
               "-o w.npy\n"
               "  kofn matvec X.npy w.npy -o y.npy --verify\n\n"
               "kofn COMMAND --help has the options; kofn --version prints "
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
