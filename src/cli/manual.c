/* manual.c -- the tables as manual pages: kofn(1), and one for each command.
 *
 * Owns nothing: all text comes from commands.c and table.c. */
#include "cli.h"
#include "help.h"

#include "base/report.h"

#include <string.h>

/* ---- roff ---------------------------------------------------------------- */

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

/* ---- parts of a page -------------------------------------------------------
 */

static void examples(FILE *f, const cli_command *c)
{
    cli_span typed, what;

    for (const char *e = c->examples;
         (e = cli_example(e, &typed, &what)) != NULL;) {
        fputs(".TP\n.B ", f);
        roff_line(f, typed.text, typed.n);
        roff_line(f, what.text, what.n);
    }
}

static void man_option(FILE *f, const cli_option *o, bool rare)
{
    char names[80];

    if (rare)
        cli_option_setting(o, names, sizeof names);
    else
        cli_option_names(o, names, sizeof names);
    fputs(".TP\n.B ", f);
    roff_line(f, names + strspn(names, " "), SIZE_MAX);
    roff_line(f, o->help, SIZE_MAX);
}

/* Lists the options of a command, by groups, or all for NULL. */
static void man_options(FILE *f, const cli_command *c)
{
    bool rare = false;

    for (int g = 0; g < CLI_GROUPS; g++) {
        fprintf(f, ".SS %s\n", cli_group_title((cli_group)g));
        for (const cli_option *o = cli_options(); o->name; o++)
            if (cli_group_of(o) == (cli_group)g &&
                (!c || (o->in & c->bit && !cli_is_rare(o, c))))
                man_option(f, o, false);
    }
    for (const cli_option *o = cli_options(); c && o->name; o++) {
        if (!(o->in & c->bit) || !cli_is_rare(o, c))
            continue;
        if (!rare)
            fputs(".SS With \\-\\-set, seldom needed\n", f);
        rare = true;
        man_option(f, o, true);
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
    {"burst", "mean number of rounds for which a draw holds (1)"},
    {"factor", "slowdown of a straggler (5)"},
    {"delay", "instead: seconds that are added"},
    {"leave", "departures per worker and second"},
    {"join", "arrivals per second"},
    {"corrupt", "chance that a result is silently wrong"},
    {"flip",
     "chance that an update of coded weights flips a bit of a worker's block"},
    {"miss", "chance that a worker misses such an update"},
    {"clock", "simulator: modelled; or measured, the real time of the work"},
    {"work", "modelled clock: seconds for 1e9 multiply\\-adds (1)"},
    {"latency", "simulator: seconds that a message takes"},
    {"bandwidth", "simulator: bytes a second (no limit)"},
    {"whole",
     "simulator: 1: all results of a slow worker arrive at the end of its "
     "round (0)"},
    {"fault",
     "--masterless: chance that a node errs in a step, in each place of where"},
    {"where",
     "--masterless: some of encode, product, decode, vector, update and "
     "memory, joined by +"},
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
        {"status",
         "ok, partial or failed; error has the reason for the last two"},
    {"command, scheme, workers, seed, port", "the command, with all defaults"},
    {"verdict", "how the run went, in a sentence"},
    {"threshold", "number of answers that always decode"},
    {"iterations", "of power, pagerank and regress; of train: steps; else 0"},
    {"total_seconds",
     "from the start of the command to this report: the sum of the next five "
     "and of encode_seconds, place_seconds, send_seconds, wait_seconds, "
     "receive_seconds, decode_seconds and check_seconds; absent in simulated "
     "runs, which repeat to the byte"},
    {"read_seconds, start_seconds, verify_seconds, write_seconds, "
     "other_seconds",
     "reading the inputs, opening the port, \\-\\-verify, writing the result, "
     "and all the rest"},
    {"given_up", "evicted workers: connected, without an answer"},
    {"corrupted", "workers with results that were found wrong"},
    {"rel_error", "relative error of the whole result, found by \\-\\-verify"},
    {"row_error, worst_row",
     "of matvec, matmul and stream with \\-\\-verify: the largest error of an "
     "element, relative to that of |A| |B|, and its row, counted from 0"},
    {"complex", "of matvec and matmul: true if the result is complex"},
    {"eigenvalue, change, converged", "of an iteration"},
    {"graph", "of pagerank: nodes, nodes without_edges, and undirected: "
              "true if every edge counts in both directions"},
    {"objective",
     "of regress: the minimised function over all points, at the end"},
    {"loss, accuracy, test_loss, test_accuracy",
     "of train: mean loss and share of correct labels at the end, over all points "
     "and over those of \\-\\-test. per_iteration has them for the batch of each "
     "step, and for \\-\\-test at the end of an epoch"},
    {"r2, accuracy, explained_deviance",
     "fit of the model, by \\-\\-loss: "
     "1 minus the squares of residuals over the squares around the mean; the "
     "share of correct labels; as r2, with the deviance of counts. If y is "
     "constant, r2 is 1 for residuals of rounding only, else 0"},
    {"test_objective, test_r2, ...", "the same for the points of \\-\\-test"},
    {"gradient_norm, batch_gradient_norm",
     "norm of the last gradient, with sgd of its batch. converged is true if it "
     "is below \\-\\-tol times the first one and w is near the minimum"},
    {"setup", "of regress: rounds, seconds and numbers received to measure the "
              "length of steps; absent if nothing was measured"},
    {"per_iteration", "of regress: objective (sgd: batch_objective) where the "
                      "gradient was taken, test_objective after the step, "
                      "seconds, late, scalars_received"},
    {"recovery_threshold", "of regress: number of answers that decode"},
    {"per_round", "for each round: live workers, rows of its block that each "
                  "worker was given, and seconds"},
    {"job, resumed_after, checkpoint_seconds, checkpoint_failures",
     "of \\-\\-checkpoint: the job's number, rounds or iterations done "
     "before, and the seconds of writing"},
    {"equal, wrong, wrong_rows, wrong_columns, complete",
     "of check: whether C is A B, and the wrong places. wrong has row, column, was "
     "and is of wrong entries, and all of them if complete is true"},
    {"blas, simd", "the kernels of this process"},
    {"blas_threads",
     "of each worker; null if workers are on other machines, or the "
     "number of the BLAS's threads cannot be set"},
    {"blas_advice", "why this BLAS is slow, and the remedy, or null"},
    {NULL, NULL},
};

static void man_exit_status(FILE *f)
{
    fputs(
        ".SH EXIT STATUS\n.TP\n0\nexact result. An iteration that stopped at its "
        "limit ends so too, with a remark, and converged false in "
        "\\-\\-json\n.TP\n1\nfailed\n.TP\n2\n"
        "usage or bad input\n.TP\n4\ntoo few workers\n.TP\n5\nwrong "
        "answers that could not be left out, or a damaged model or checkpoint\n.TP\n128+n\nended by signal n\n",
        f);
}

static void whole_manual(FILE *f)
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
    fputs(".SH DESCRIPTION\nA matrix is cut into k blocks and coded into n. "
          "The answers of any k workers give the exact product. There is no "
          "restart and no checkpoint, and no data moves when workers come and "
          "go.\n",
          f);
    for (const cli_command *c = cli_commands; c->name; c++) {
        fprintf(f, ".SH KOFN %s\n.B kofn %s\n", c->name, c->name);
        roff(f, c->operands, SIZE_MAX);
        fputs(" [options]\n.PP\n", f);
        roff_line(f, c->text, SIZE_MAX);
        examples(f, c);
    }
    fputs(".SH OPTIONS\nEach command takes those that apply to it; "
          "its \\-\\-help and its page list them.\n",
          f);
    man_options(f, NULL);
    fputs(
        ".SH EVENTS FILES\nOne event a line; # begins a comment.\n.PP\n.nf\n"
        "ROUND[.FRACTION] leave W\nROUND[.FRACTION] join\n"
        "ROUND[.FRACTION] slow W FACTOR\nROUND[.FRACTION] normal W\n"
        "ROUND[.FRACTION] corrupt W\nROUND[.FRACTION] flip W\n"
        "ROUND err W PLACE\n.fi\n.PP\n"
        "Rounds count from 1. A fraction places the event inside the round: "
        "3.5 is when half of round 3's strips have arrived. flip changes a bit of "
        "the data that a worker stores. For power, "
        "pagerank and regress iterations are counted, for train steps. One may take "
        "several rounds; 3.5 is in the first one that gets half of its strips. Workers are numbered "
        "from 0, and joiners get the next numbers.\n"
        ".SH FAULTS\nThe keys of \\-\\-faults. The default is 0 unless it is in "
        "brackets.\n",
        f);
    man_list(f, faults_keys);
    fputs(".SH JSON\nThe keys of the object that \\-\\-json prints; after a "
          "failure before there were workers it has only status, command "
          "and error.\n",
          f);
    man_list(f, json_keys);
    man_exit_status(f);
    fputs(".SH SEE ALSO\n", f);
    for (const cli_command *c = cli_commands; c->name; c++)
        fprintf(f, ".BR kofn\\-%s (1)%s\n", c->name, c[1].name ? "," : "");
}

/* Prints the page of one command. */
static void manual_of(FILE *f, const cli_command *c)
{
    fprintf(f, ".TH KOFN\\-%s 1 \"\" \"kofn %s\"\n.SH NAME\nkofn\\-%s \\- ",
            c->name, KOFN_VERSION, c->name);
    roff_line(f, c->summary, SIZE_MAX);
    fprintf(f, ".SH SYNOPSIS\n.B kofn %s\n", c->name);
    roff(f, c->operands, SIZE_MAX);
    fputs(" [options]\n.SH DESCRIPTION\n", f);
    roff_line(f, c->text, SIZE_MAX);
    fputs(".SH EXAMPLES\n", f);
    examples(f, c);
    fputs(".SH OPTIONS\n", f);
    man_options(f, c);
    man_exit_status(f);
    fputs(".SH SEE ALSO\n.BR kofn (1)\nhas the format of events files, and the "
          "keys of \\-\\-faults and \\-\\-json.\n",
          f);
}

void cli_manual(FILE *f, const cli_command *c)
{
    if (c)
        manual_of(f, c);
    else
        whole_manual(f);
}
