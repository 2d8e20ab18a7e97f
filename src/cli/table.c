/* table.c -- the table of all options.
 *
 * Each fact about an option is in one row.  For options of a job, a regression
 * and a training, range, place and text come from the library (kofn_option_in),
 * and are filled in at the first use of the table.  groups.c
 * has their groups.  No other file may list options. */
#include "cli.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#define AT(field) offsetof(cli_args, field)
#define OF_JOBS 60 /* largest number of options of the library's tables */
#define TEXT 600

/* The last fields of a row. */
#define OF(kind_, field_) .kind = kind_, .at = AT(field_)
#define FLAG(field_) OF(CLI_FLAG, field_)
#define NUMBER(kind_, least_, most_, field_)                                   \
    OF(kind_, field_), .least = least_, .most = most_

/* An option of a job.  The library has its range, its place and its text;
 * `beside_` is added to the text. */
#define JOB(name_, field_, beside_)                                            \
    {                                                                          \
        .name = name_, .help = beside_, OF(CLI_JOB, job.field_)                \
    }

/* An option of a regression or a training, in the same way. */
#define LEARN(name_, in_, field_) .name = name_, .in = in_, OF(CLI_JOB, field_)

static cli_option options[] = {
    {'o', "output", "FILE",
     "file of the result; the suffix gives the format: .npy, .csv or "
     ".mtx (train: a folder; trace: the drawing; report: the page)",
     IN_RUN | IN_GEN | IN_PREDICT | IN_CHECK | IN_TRACE | IN_REPORT,
     OF(CLI_FILE, output)},
    {0, "over", "NAME=VALUES",
     "values of an option of the command, or of a parameter of the scheme; "
     "several: all pairs, and so on. VALUES: 2..8, 0.1..0.5:0.1, 1..1000*10, "
     "or words separated by commas",
     IN_SWEEP, OF(CLI_TEXT, over)},
    {0, "csv", "FILE", "write the table to this file", IN_TRIALS,
     OF(CLI_FILE, csv)},
    {0, "svg", "FILE",
     "draw: compare: the time of all rounds under each code; sweep: the median "
     "of the rounds over the last NAME, one curve for all values of the others",
     IN_TRIALS, OF(CLI_FILE, svg)},
    {'n', "workers", "N", "number of workers at the start (8)",
     IN_JOB | IN_SCHEMES | IN_PLAN, NUMBER(CLI_SIZE, 1, 1e6, workers),
     .given = AT(workers_given)},
    {'s', "scheme", "NAME[:key=value,...]",
     "the code; see kofn schemes (elastic; stream: dip; regress by squares "
     "with a small X of many rows and 3 to 16 workers: pcr; train: gc:d=2, or gpd with --masterless)",
     IN_JOB | IN_PLAN | IN_COMPARE, OF(CLI_TEXT, scheme),
     .given = AT(scheme_given)},
    {'p', "port", "threads|sim|processes|mpi|ADDRESS",
     "location of the workers: threads of this process, a deterministic "
     "simulator, processes of this machine, other ranks under mpirun or "
     "srun, or kofn worker processes that connect to tcp://*:PORT or "
     "ipc://PATH; --masterless: threads, mpi, or the ADDRESS to listen "
     "at (threads)",
     IN_JOB | IN_PLAN, OF(CLI_TEXT, port), .check = cli_check_port_name},
    {0, "min-workers", "K",
     "with an ADDRESS: begin when this number of workers has come (all "
     "of --workers)",
     IN_JOB, NUMBER(CLI_SIZE, 1, 1e6, least)},
    {0, "keys", "DIR",
     "with an ADDRESS: keys made by kofn keygen; everything is "
     "encrypted, and only listed workers are admitted",
     IN_JOB | IN_WORKER | IN_ASK | IN_PLAN, OF(CLI_DIR, keys)},
    {0, "tls-ca", "FILE",
     "with an ADDRESS, instead of --keys: certificates of another CA "
     "(PEM); everything is encrypted, and every holder of a certificate "
     "of that CA is admitted",
     IN_JOB | IN_WORKER | IN_ASK | IN_PLAN, OF(CLI_FILE, tls_ca)},
    {0, "tls-cert", "FILE",
     "with --tls-ca: certificate of this process, and the certificates "
     "between it and the CA",
     IN_JOB | IN_WORKER | IN_ASK | IN_PLAN, OF(CLI_FILE, tls_cert)},
    {0, "tls-key", "FILE", "with --tls-ca: the secret key of --tls-cert",
     IN_JOB | IN_WORKER | IN_ASK | IN_PLAN, OF(CLI_FILE, tls_key)},
    {0, "workers-per-principal", NULL,
     "with an ADDRESS; 1 with --errors; 0: every worker counts alone, "
     "which protects against faults but not against attackers",
     0, OF(CLI_JOB, job.workers_per_principal),
     .given = AT(per_principal_given)},
    JOB("start-within", start_within, NULL),
    {0, "worker", "NAME",
     "make a key for one worker, listed as NAME.crt until that file is "
     "removed; without it, one key for all workers",
     IN_KEYGEN, OF(CLI_TEXT, worker)},
    {0, "insecure", NULL,
     "admit every peer at an ADDRESS that other machines can reach, "
     "without encryption",
     IN_JOB | IN_WORKER | IN_ASK, FLAG(insecure)},
    {0, "grace", "SECONDS",
     "after a signal to end, seconds to finish outstanding work (0)", IN_WORKER,
     NUMBER(CLI_REAL, 0, 1e9, grace)},
    {0, "data-path", "DIR",
     "folder with the coordinator's input files: blocks are made from "
     "them and not sent, if their numbers are equal to the coordinator's",
     IN_WORKER, OF(CLI_DIR, data_path)},
    {0, "log", "FILE|-",
     "append a line for each event to FILE, or to stderr: workers that come, "
     "leave or are faulty, and messages; JSON if FILE ends in .json or .jsonl",
     IN_JOB | IN_WORKER, OF(CLI_FILE, log)},
    {0, "log-level", "error|warning|info|debug",
     "the least important lines of --log (info)", IN_JOB | IN_WORKER,
     OF(CLI_CHOICE, log_level)},
    {0, "metrics-listen", "HOST:PORT",
     "answer GET /metrics there over HTTP with figures for Prometheus; HOST is "
     "127.0.0.1 or [::1], or with --insecure another numeric address",
     IN_JOB | IN_WORKER, OF(CLI_TEXT, metrics_listen)},
    {0, "with-parent", NULL,
     "end, as at SIGTERM, when the process that started this one ends",
     IN_WORKER, FLAG(with_parent)},
    {0, "preempt-file", "FILE", "leave, as at SIGTERM, when FILE is there",
     IN_WORKER, OF(CLI_FILE, preempt_file)},
    {0, "preempt-command", "COMMAND",
     "a command for sh, run every 5 seconds: leave, as at SIGTERM, when it "
     "exits with 0",
     IN_WORKER, OF(CLI_FILE, preempt_command)},
    {0, "memory", "BYTES",
     "largest size of a block, or of the waiting tasks of a stream (no "
     "limit)",
     IN_WORKER | IN_PLAN, NUMBER(CLI_SIZE, 1, 0, memory)},
    {0, "journal", "FILE",
     "workers, rounds, losses and slowness as in the run of this journal; the "
     "advice also says what its code cost and gained. A worker that others "
     "overtook counts as the slowest that was in time, and may have been slower",
     IN_PLAN, OF(CLI_FILE, from_journal)},
    {0, "fleet", "ADDRESS",
     "workers, slowness and memory of the coordinator that runs there; keys as "
     "for kofn status",
     IN_PLAN, OF(CLI_TEXT, fleet)},
    {0, "deadline", "SECONDS", "leave out codes that take longer (no limit)",
     IN_PLAN, NUMBER(CLI_REAL, 1e-9, 1e9, deadline)},
    {0, "tolerate", "N",
     "choose the parameter of the scheme so that any N workers may be lost, "
     "for elastic, mds, pcr, gc and agc; plan: only codes that survive this",
     IN_JOB | IN_PLAN, NUMBER(CLI_SIZE, 0, 1e6, tolerate),
     .given = AT(tolerate_given)},
    {0, "faulty", "N",
     "only codes that can find N workers with wrong results (0)", IN_PLAN,
     NUMBER(CLI_SIZE, 0, 1e6, faulty)},
    {0, "once", NULL,
     "end when the job of the coordinator is over; without it the worker stays "
     "and serves the next one",
     IN_WORKER, FLAG(once)},
    {0, "name", "NAME",
     "name of this worker for people, at most 64 characters (HOST:PROCESS)",
     IN_WORKER, OF(CLI_TEXT, name)},
    {0, "staged", NULL,
     "for tests: let the coordinator's events file slow down or corrupt "
     "this worker; without it such events are ignored, and the "
     "coordinator says so",
     IN_WORKER, FLAG(staged)},
    {'r', "rounds", "R", "number of times the product is computed (1)",
     IN_PRODUCT | IN_PLAN, NUMBER(CLI_SIZE, 1, 1e9, rounds)},
    {'d', "damping", "D", "probability of following an arc (0.85)", IN_PAGERANK,
     NUMBER(CLI_REAL, 0, 1, damping), .given = AT(damping_given)},
    {0, "personalize", "FILE",
     "jump to these nodes: a vector of weights, or a text file with a node "
     "per line and possibly its weight (all nodes alike)",
     IN_PAGERANK, OF(CLI_FILE, personalize)},
    {0, "sinks", "FILE",
     "nodes without arcs point to these nodes, as for --personalize (as "
     "--personalize)",
     IN_PAGERANK, OF(CLI_FILE, sinks)},
    {0, "start", "FILE",
     "ranks to start from, as for --personalize (all nodes alike)", IN_PAGERANK,
     OF(CLI_FILE, start)},
    {0, "start", "FILE",
     "weights to start from, as --output has them, for example those of "
     "another --l2 (0)",
     IN_REGRESS, OF(CLI_FILE, start)},
    {0, "weights", NULL, "the third field of an edge is its weight",
     IN_PAGERANK, FLAG(weights)},
    {0, "undirected", NULL,
     "edges go in both directions (if a comment of the file calls the graph "
     "undirected)",
     IN_PAGERANK, FLAG(undirected)},
    {0, "directed", NULL,
     "edges go from the first node to the second, whatever comments say",
     IN_PAGERANK, FLAG(directed)},
    {0, "keep-isolated", NULL,
     "every number from 0 to the largest is a node, also without edges",
     IN_PAGERANK, FLAG(isolated)},
    {0, "top", "N", "print the N nodes with the largest ranks", IN_PAGERANK,
     NUMBER(CLI_SIZE, 1, 1e9, top)},
    {0, "ids", "FILE",
     "write the nodes in the order of the ranks: .npy (numbers), or text with "
     "a node per line",
     IN_PAGERANK, OF(CLI_FILE, ids)},
    {'t', "tol", "T", "stop when the change is below T (1e-10)", IN_ITERATE,
     NUMBER(CLI_REAL, 1e-300, 1e300, tol)},
    {'t', LEARN("tol", IN_REGRESS, regress.tol)},
    {LEARN("loss", IN_REGRESS | IN_PREDICT, regress.loss)},
    {LEARN("l2", IN_REGRESS, regress.l2)},
    {0, "kernel", "linear|rbf:s=S|poly:degree=D,c=C",
     "use the kernel matrix of X in place of X", IN_REGRESS | IN_PREDICT,
     OF(CLI_TEXT, kernel)},
    {LEARN("optimizer", IN_REGRESS, regress.optimizer)},
    {LEARN("line-search", IN_REGRESS, regress.line_search)},
    {LEARN("step", IN_REGRESS, regress.step)},
    {LEARN("iterations", IN_REGRESS, regress.max_iterations)},
    {LEARN("batches", IN_REGRESS, regress.batches)},
    {0, "no-intercept", NULL,
     "fit no constant; without this option, and without --kernel, the last "
     "weight is a constant, which --l2 does not penalise",
     IN_REGRESS, FLAG(no_intercept)},
    {0, "scale", NULL,
     "subtract the mean of each column (not with --no-intercept) and divide "
     "by its standard deviation; the written weights are for X as it is",
     IN_REGRESS, FLAG(standardise)},
    {0, "hidden", "N1-N2-...",
     "widths of the hidden layers; those of the first and last are those of "
     "the points and targets (32)",
     IN_TRAIN, OF(CLI_TEXT, hidden)},
    {0, "layers", "N0-N1-...",
     "instead of --hidden, all widths: of a point, and of each layer; the last "
     "one is the number of classes or of numbers to predict",
     IN_TRAIN, OF(CLI_TEXT, layers)},
    {LEARN("activation", IN_TRAIN, net.activation),
     .given = AT(activation_given)},
    {LEARN("loss", IN_TRAIN, net.loss), .given = AT(loss_given)},
    {LEARN("output-activation", IN_TRAIN, net.output), .given = AT(last_given)},
    {LEARN("step", IN_TRAIN, train.step)},
    {LEARN("momentum", IN_TRAIN, train.momentum)},
    {LEARN("nesterov", IN_TRAIN, train.nesterov)},
    {LEARN("l2", IN_TRAIN, train.l2)},
    {LEARN("batch", IN_TRAIN | IN_PLAN, train.batch)},
    {LEARN("epochs", IN_TRAIN, train.epochs)},
    {LEARN("scrub", IN_TRAIN, train.scrub)},
    {LEARN("autoencoder", IN_TRAIN, net.autoencoder)},
    {LEARN("sparsity", IN_TRAIN, net.sparsity)},
    {LEARN("sparsity-weight", IN_TRAIN, net.sparsity_weight)},
    {0, "unit", "U",
     "divide all points by U first (the largest magnitude in X, if "
     "above 1)",
     IN_TRAIN, NUMBER(CLI_REAL, 1e-300, 1e300, unit)},
    {0, "every", "N", "steps between two checkpoints (those of an epoch)",
     IN_TRAIN, NUMBER(CLI_UNSIGNED, 1, 1e9, every)},
    {0, "shares", NULL,
     "network with softmax: write a row of class probabilities, not the "
     "label",
     IN_PREDICT, FLAG(shares)},
    {0, "labels", "FILE", "true y; reports how well it is predicted",
     IN_PREDICT, OF(CLI_TEXT, labels)},
    {0, "columns", "N",
     "weights of regress: columns of the points of the fit, if X is a file of "
     "LIBSVM that has fewer",
     IN_PREDICT, NUMBER(CLI_SIZE, 1, UINT32_MAX, columns)},
    {0, "points", "FILE", "with --kernel: the X of the fit", IN_PREDICT,
     OF(CLI_TEXT, points)},
    {0, "label", "NAME|N",
     "column of X that has the labels, by its name in the first line of a CSV "
     "or by its number from 1; the file of --test has them there as well",
     IN_REGRESS | IN_TRAIN | IN_PREDICT, OF(CLI_TEXT, label)},
    {0, "test", "Xt [yt]",
     "held-out points and labels: two files, or one that has both",
     IN_REGRESS | IN_TRAIN, OF(CLI_PAIR, test_X), .given = AT(test_y)},
    {0, "history", "FILE",
     "CSV file, a line for each iteration: objective, gradient, "
     "seconds, ...; line 0 is before the first step; train: a line for "
     "each step",
     IN_REGRESS | IN_TRAIN, OF(CLI_FILE, history)},
    {'m', "max-iter", "N", "limit of iterations (200)", IN_ITERATE,
     NUMBER(CLI_SIZE, 1, 1e9, max_iter)},
    {0, "masterless", NULL,
     "run on equal nodes without a coordinator; each decodes and ends "
     "with the result; docs/masterless.md",
     IN_ITERATE | IN_TRAIN, FLAG(masterless)},
    {0, "decode", "auto|replicated|distributed",
     "masterless: each node decodes everything, or only its groups for "
     "all nodes (auto: the one that is estimated to be faster)",
     IN_ITERATE | IN_TRAIN, OF(CLI_CHOICE, decode)},
    {0, "reach", "ADDRESS,...",
     "masterless, with a --port to listen at: nodes to connect to "
     "first; NAME@ADDRESS if each node has its own key; may be repeated",
     IN_ITERATE | IN_TRAIN, OF(CLI_TEXT, reach), .check = cli_add_reach},
    {0, "confirm", "N",
     "masterless: number of other nodes that must have an iterate "
     "before it is taken from them, one more than may be hostile; nodes "
     "of one key count once (more than half of the others; threads and "
     "mpi without --errors: 1)",
     IN_ITERATE, NUMBER(CLI_SIZE, 1, 4096, confirm)},
    {'e', "events", "FILE",
     "file with faults and their times: workers that leave, join, slow "
     "down or err",
     IN_JOB, OF(CLI_TEXT, events)},
    {'w', "faults", "key=value,...",
     "random faults: spread, straggle, burst, factor, delay, leave, "
     "join, corrupt, flip, miss; simulator: clock=modelled|measured, "
     "work, latency, bandwidth, whole",
     IN_JOB | IN_WORKER | IN_PLAN, OF(CLI_TEXT, faults_text),
     .check = cli_read_faults},
    {0, "pattern", "MODEL:key=value,...|FILE",
     "the workers that are slow in each round: a model with its keys (iid, "
     "fritchman, arbitrary, bursty, lambda, spot; see kofn gen --help), or a "
     "file made by --record or kofn gen pattern; kofn worker takes a file only. "
     "factor= of --faults is the slowdown; lambda and spot draw it",
     IN_JOB | IN_WORKER | IN_PLAN, OF(CLI_FILE, pattern_text)},
    {0, "record", NULL, "for --pattern", IN_TRACE, OF(CLI_JOB, job.record)},
    {0, "factor", "F", "pattern: slowdown of slow workers, or inf (5)", IN_GEN,
     NUMBER(CLI_REAL, 1.001, HUGE_VAL, factor)},
    JOB("in-flight", in_flight, NULL),
    {0, "below", NULL, "with an ADDRESS pause", 0, OF(CLI_JOB, job.below),
     .given = AT(below_given)},
    {0, "patience", NULL,
     "worker: longest wait for a coordinator (3600; with --once no limit); "
     "status, drain: for an answer (10); node of a mesh: for other nodes",
     IN_WORKER | IN_ASK, OF(CLI_JOB, job.patience)},
    JOB("late", late, NULL),
    JOB("lease", lease, NULL),
    JOB("pieces", pieces, NULL),
    JOB("max-error", max_error, NULL),
    JOB("errors", errors, NULL),
    JOB("quarantine", quarantine, NULL),
    JOB("audit", audit, NULL),
    JOB("beyond", beyond, NULL),
    {0, "seed", "S", "seed of coefficients, faults and generated data (1)",
     IN_JOB | IN_PLAN | IN_GEN | IN_SCHEMES | IN_WORKER,
     NUMBER(CLI_SIZE, 0, 0, seed)},
    JOB("journal", journal, NULL),
    JOB("metrics", metrics, NULL),
    JOB("trace", trace, NULL),
    JOB("report", report, NULL),
    {0, "checkpoint", "DIR",
     "folder for checkpoints; written after every round or iteration", IN_RUN,
     OF(CLI_DIR, checkpoint)},
    {0, "resume", NULL, "resume from --checkpoint, or start if it is empty",
     IN_RUN, FLAG(resume)},
    {0, "tolerance", "T",
     "accept entries that are off by at most T times the largest norm "
     "of a row of A times the largest norm of a column of B (the "
     "rounding of any order of summation)",
     IN_CHECK, NUMBER(CLI_REAL, 0, 1, tolerance)},
    {0, "dtype", "f8|f4", "type of the numbers (f8)",
     IN_GEN | IN_TRAIN | IN_PLAN, OF(CLI_WORD, dtype)},
    {0, "rows", "N",
     "number of rows of the A whose needs and costs are printed (100000)",
     IN_SCHEMES, NUMBER(CLI_SIZE, 1, 1e9, rows)},
    {0, "all", NULL, "describe all schemes, also those for comparison",
     IN_SCHEMES, FLAG(all)},
    {0, "show", NULL,
     "print a line for each round: the share of its block that each "
     "worker computes",
     IN_RUN, FLAG(show)},
    JOB("mu", mu, NULL),
    {0, "step", NULL, "print every event and the coordinator's actions",
     IN_REPLAY, FLAG(step)},
    {0, "state", NULL, "with --step: also print the state of open products",
     IN_REPLAY, FLAG(state)},
    {'v', "verify", NULL,
     "also compute the plain result, and report the relative error", IN_JOB,
     FLAG(verify)},
    {'j', "json", NULL,
     "print one JSON object; schemes without a name: a list; stream: "
     "one for each product",
     IN_JOB | IN_PLAN | IN_SCHEMES | IN_REPLAY | IN_TRACE | IN_REPORT |
         IN_TRIALS | IN_PREDICT | IN_CHECK | IN_STATUS,
     FLAG(json)},
    {'q', "quiet", NULL, "print no report and no progress",
     IN_JOB | IN_GEN | IN_REPLAY | IN_TRACE | IN_REPORT | IN_WORKER |
         IN_KEYGEN | IN_PREDICT | IN_CHECK | IN_DRAIN,
     FLAG(quiet)},
    {0, "set", "NAME=VALUE",
     "set a seldom needed option; --help-all lists them; may be repeated",
     IN_JOB, OF(CLI_TEXT, setting)},
    {'h', "help", NULL, "print the usual options", ~0u, FLAG(help)},
    {0, "help-all", NULL, "print all options", ~0u, FLAG(help_all)},
    {.name = NULL},
};

static unsigned commands_of(unsigned jobs)
{
    return (jobs & KOFN_OF_MATRICES ? IN_RUN : 0) |
           (jobs & KOFN_OF_SUMS ? IN_REGRESS | IN_TRAIN : 0) |
           (jobs & KOFN_OF_STREAMS ? IN_STREAM : 0);
}

/* Returns the row of the library for the member at this place of cli_args. */
static const kofn_option *row_of(size_t at)
{
    static const size_t place[] = {[KOFN_TABLE_JOB] = AT(job),
                                   [KOFN_TABLE_REGRESS] = AT(regress),
                                   [KOFN_TABLE_NET] = AT(net),
                                   [KOFN_TABLE_TRAIN] = AT(train)};
    const kofn_option *w;

    for (unsigned t = 0; t < sizeof place / sizeof *place; t++)
        for (size_t i = 0; (w = kofn_option_in((kofn_option_table)t, i)); i++)
            if (place[t] + w->at == at)
                return w;
    return NULL;
}

/* Completes a row from the library.  `text` is room for the joined help
 * text. */
static void fill_in(cli_option *o, char text[TEXT])
{
    const kofn_option *its = row_of(o->at);

    assert(its);
    if (o->help)
        snprintf(text, TEXT, "%s; %s", its->text, o->help);
    o->help = o->help ? text : its->text;
    o->arg = its->kind == KOFN_OPTION_FLAG ? NULL : its->value;
    o->in |= commands_of(its->jobs);
    o->kind = (cli_kind)its->kind;
    o->least = its->least;
    o->most = its->most;
}

const cli_option *cli_options(void)
{
    static char text[OF_JOBS][TEXT];
    size_t n = 0;

    for (cli_option *o = options; o->name; o++)
        if (o->kind == CLI_JOB) {
            assert(n < OF_JOBS);
            fill_in(o, text[n++]);
        }
    return options;
}
