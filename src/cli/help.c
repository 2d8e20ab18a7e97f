/* help.c -- the tables as help, as a manual page, and what version this is.
 *
 * Owns nothing: all text comes from table.c, and no command or option may be
 * described here. */
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

static void option_names(const cli_option *o, char *out, size_t size)
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
        option_names(o, names, sizeof names);
        fprintf(f, "  %s", names);
        if (strlen(names) + 4 > LEFT)
            fprintf(f, "\n%*s", LEFT, "");
        else
            fprintf(f, "%*s", LEFT - 2 - (int)strlen(names), "");
        fill(f, o->help, LEFT, LEFT);
    }
}

/* Prints text with the characters escaped that roff would take for something
 * else. */
static void roff(FILE *f, const char *text, size_t n)
{
    for (size_t i = 0; i < n && text[i]; i++) {
        if (text[i] == '-')
            fputs("\\-", f);
        else if (text[i] == '\\')
            fputs("\\e", f);
        else if (i == 0 && (text[i] == '.' || text[i] == '\''))
            fprintf(f, "\\&%c", text[i]);
        else
            fputc(text[i], f);
    }
}

static void roff_line(FILE *f, const char *text, size_t n)
{
    roff(f, text, n);
    fputc('\n', f);
}

/* "command  what\n...", for people or for roff. */
static void examples(FILE *f, const cli_command *c, bool manual)
{
    for (const char *e = c->examples; *e;) {
        size_t line = strcspn(e, "\n");
        const char *gap = strstr(e, "  ");
        size_t n = gap && gap < e + line ? (size_t)(gap - e) : line;
        size_t skip = n + strspn(e + n, " ");

        if (manual) {
            fputs(".TP\n.B ", f);
            roff_line(f, e, n);
            roff_line(f, e + skip, line - skip);
        } else {
            fprintf(f, "  %.*s\n      %.*s\n", (int)n, e, (int)(line - skip),
                    e + skip);
        }
        e += line + (e[line] == '\n');
    }
}

void cli_help_command(FILE *f, const cli_command *c)
{
    fprintf(f, "usage: kofn %s %s [options]\n\n", c->name, c->operands);
    fill(f, c->text, 0, 0);
    fprintf(f, "\nexamples:\n");
    examples(f, c, false);
    fprintf(f, "\noptions:\n");
    help_options(f, c);
}

void cli_help(FILE *f)
{
    fprintf(f, "kofn -- any k of n workers are enough: exact products on "
               "workers that are slow,\nvanish, or come late.\n\n"
               "usage: kofn COMMAND ...\n\n");
    for (const cli_command *c = cli_commands; c->name; c++)
        fprintf(f, "  %-10s %s\n", c->name, c->summary);
    fprintf(f, "\nexamples:\n"
               "  kofn gen matrix 4000 1000 -o X.npy && kofn gen vector 1000 "
               "-o w.npy\n"
               "  kofn matvec X.npy w.npy -o y.npy --verify\n\n"
               "kofn COMMAND --help tells the rest; kofn --version what it "
               "runs on.\n\n"
               "exit: 0 answered exactly, 1 failed, 2 usage or bad input, "
               "4 too few workers,\n      5 corrupt beyond correction, 128+n "
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

/* ---- the manual page ----------------------------------------------------- */

static void man_options(FILE *f)
{
    fputs(".SH OPTIONS\nEach command takes those that apply to it; "
          "its \\-\\-help lists them.\n",
          f);
    for (const cli_option *o = cli_options(); o->name; o++) {
        char names[80];

        option_names(o, names, sizeof names);
        fputs(".TP\n.B ", f);
        roff_line(f, names + strspn(names, " "), SIZE_MAX);
        roff_line(f, o->help, SIZE_MAX);
    }
}

typedef struct entry {
    const char *key, *text;
} entry;

static void man_list(FILE *f, const entry *e)
{
    for (; e->key; e++)
        fprintf(f, ".TP\n.B %s\n%s\n", e->key, e->text);
}

static const entry faults_keys[] = {
    {"spread", "worker speeds are drawn from 1\\-spread to 1+spread"},
    {"straggle", "chance that a worker straggles in a round"},
    {"burst", "it is drawn anew in one of so many rounds, else as before (1)"},
    {"factor", "a straggler takes this many times as long (5)"},
    {"delay", "or, instead, this many seconds longer"},
    {"leave", "departures per worker and second"},
    {"join", "arrivals per second"},
    {"corrupt", "chance that a result is silently wrong"},
    {"flip",
     "chance that with an update of coded weights a bit of a worker's block flips"},
    {"miss", "chance that a worker misses such an update"},
    {"clock", "simulator: modelled, or measured: what the work really took"},
    {"work", "modelled clock: seconds for 1e9 multiply\\-adds (1)"},
    {"latency", "simulator: seconds that a message takes"},
    {"bandwidth", "simulator: bytes a second (no limit)"},
    {"whole",
     "simulator: 1: what a slow worker computed in a round comes together, at "
     "its end (0)"},
    {"fault",
     "without a master: chance that a node errs in a place of where, at any step"},
    {"where",
     "without a master: some of encode, product, decode, vector, update and "
     "memory, with + between them"},
    {NULL, NULL},
};

#define COUNT(key, text) {key, text},
#define SECONDS(key, text) {key, text},
#define NUMBER(key, text) {key, text},
#define LIST(key, text)
#define X(field, adds, kind, key, metric, text) kind(key, text)
static const entry json_keys[] = {
    KF_REPORT_MAP(X)
#undef X
        {"status", "ok, partial or failed; error says why in the last two"},
    {"command, scheme, workers, seed, port", "what was run, with all defaults"},
    {"threshold", "any this many answers decode"},
    {"iterations", "of power, pagerank and regress; of train: steps; else 0"},
    {"total_seconds",
     "from the beginning of the command until this report, the sum of the next four; "
     "not of simulated runs, which repeat to the byte"},
    {"read_seconds, prepare_seconds, round_seconds, finish_seconds",
     "until the inputs are read; until the first round begins, when workers are here "
     "and have their blocks; until the last one ends; until this report"},
    {"given_up", "workers that were there and answered nothing"},
    {"corrupted", "workers whose results were found wrong"},
    {"rel_error",
     "the relative error of the whole result, found by \\-\\-verify"},
    {"row_error, worst_row",
     "of matvec, matmul and stream with \\-\\-verify: the most that an element is "
     "off, relative to that of |A| |B|, and the row it is in, counted from 0"},
    {"eigenvalue, change, converged", "of an iteration"},
    {"graph",
     "of pagerank: its nodes, those of them without_edges, and whether it was "
     "undirected_taken_as_arcs, as its comments and arcs that have none back show"},
    {"objective", "of regress: what is minimised, over all points, at the end"},
    {"loss, accuracy, test_loss, test_accuracy",
     "of train: mean cost and the share of labels told right, over all points "
     "and those of \\-\\-test, at the end; per_iteration has them of each step's "
     "batch, and of \\-\\-test at the end of an epoch"},
    {"r2, accuracy, explained_deviance",
     "how well the model fits, by \\-\\-loss: "
     "1 less the squares that are left by those around the mean; the share "
     "of labels told right; as r2, with the deviance of counts. Where y is "
     "constant r2 is 1 if nothing but rounding is left, else 0"},
    {"test_objective, test_r2, ...", "the same of the points of \\-\\-test"},
    {"gradient_norm, batch_gradient_norm",
     "of the last gradient, with sgd of its batch; converged says whether it "
     "is below \\-\\-tol times the first one"},
    {"setup", "of regress: rounds, seconds and numbers received for the length "
              "of steps, before the first; absent where nothing was measured"},
    {"per_iteration", "of regress: objective (sgd: batch_objective) where the "
                      "gradient was taken, test_objective after the step, "
                      "seconds, late, scalars_received"},
    {"recovery_threshold", "of regress: how many answers decode"},
    {"per_round",
     "for each round live workers, the rows of its block that each "
     "worker was given, and seconds"},
    {"job, resumed_after, checkpoint_seconds, checkpoint_failures",
     "of \\-\\-checkpoint: the job's number, rounds or iterations that were "
     "done before, and what keeping took"},
    {"equal, wrong, wrong_rows, wrong_columns, complete",
     "of check: whether C is A B, and if not where; wrong has row, column, was and "
     "is of entries, of all that are wrong if complete"},
    {"blas, simd", "the kernels in force here"},
    {"blas_threads", "of each worker, null where they are on other machines or "
                     "the BLAS does not let itself be told"},
    {"blas_advice", "why this BLAS is slow and what mends that, or null"},
    {NULL, NULL},
};

void cli_manual(FILE *f)
{
    fprintf(f,
            ".TH KOFN 1 \"\" \"kofn %s\"\n.SH NAME\n"
            "kofn \\- coded computing: any k of n workers are enough\n"
            ".SH SYNOPSIS\n",
            KOFN_VERSION);
    for (const cli_command *c = cli_commands; c->name; c++) {
        fprintf(f, ".B kofn %s\n", c->name);
        roff(f, c->operands, SIZE_MAX);
        fputs(" [options]\n.br\n", f);
    }
    fputs(".SH DESCRIPTION\nA matrix is cut into k blocks and coded into n, so "
          "that the answers of any k workers give the exact product: no "
          "restart, no checkpoint, and no data moved when machines come and "
          "go.\n",
          f);
    for (const cli_command *c = cli_commands; c->name; c++) {
        fprintf(f, ".SH KOFN %s\n.B kofn %s\n", c->name, c->name);
        roff(f, c->operands, SIZE_MAX);
        fputs(" [options]\n.PP\n", f);
        roff_line(f, c->text, SIZE_MAX);
        examples(f, c, true);
    }
    man_options(f);
    fputs(
        ".SH EVENTS FILES\nOne event a line; # begins a comment.\n.PP\n.nf\n"
        "ROUND[.FRACTION] leave W\nROUND[.FRACTION] join\n"
        "ROUND[.FRACTION] slow W FACTOR\nROUND[.FRACTION] normal W\n"
        "ROUND[.FRACTION] corrupt W\nROUND[.FRACTION] flip W\n"
        "ROUND err W PLACE\n.fi\n.PP\n"
        "Rounds count from 1. A fraction places the event inside the round: "
        "3.5 is when half of round 3's strips have arrived. flip has a bit of "
        "what a worker stores be another. Of power, "
        "pagerank and regress iterations are counted, of train steps, however "
        "many rounds one takes: 3.5 is in the first of them that gets so far. Workers "
        "count "
        "from 0; joiners are numbered on.\n"
        ".SH FAULTS\nThe keys of \\-\\-faults; all are 0 unless it says "
        "otherwise.\n",
        f);
    man_list(f, faults_keys);
    fputs(".SH JSON\nThe keys of the object that \\-\\-json prints; of a "
          "failure before there were workers there are status, command "
          "and error only.\n",
          f);
    man_list(f, json_keys);
    fputs(
        ".SH EXIT STATUS\n.TP\n0\nanswered exactly; of "
        "an iteration that stopped at its limit, too: a remark and converged "
        "in \\-\\-json tell\n.TP\n1\nfailed\n.TP\n2\n"
        "usage or bad input\n.TP\n4\ntoo few workers\n.TP\n5\nwrong "
        "answers that could not be left out, or a model that is damaged\n.TP\n128+n\nended by signal n\n",
        f);
}
