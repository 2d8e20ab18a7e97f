/* table.c -- the table of all commands and options.
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
    {'n', "workers", "N", "number of workers at the start (8)",
     IN_JOB | IN_SCHEMES | IN_PLAN, NUMBER(CLI_SIZE, 1, 1e6, workers),
     .given = AT(workers_given)},
    {'s', "scheme", "NAME[:key=value,...]",
     "the code; see kofn schemes (elastic; stream: dip; regress by squares "
     "with a small X of many rows and 3 to 16 workers: pcr; train: gc:d=2, or gpd with --masterless)",
     IN_JOB | IN_PLAN, OF(CLI_TEXT, scheme), .given = AT(scheme_given)},
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
     IN_JOB | IN_WORKER | IN_ASK, OF(CLI_DIR, keys)},
    {0, "tls-ca", "FILE",
     "with an ADDRESS, instead of --keys: certificates of another CA "
     "(PEM); everything is encrypted, and every holder of a certificate "
     "of that CA is admitted",
     IN_JOB | IN_WORKER | IN_ASK, OF(CLI_FILE, tls_ca)},
    {0, "tls-cert", "FILE",
     "with --tls-ca: certificate of this process, and the certificates "
     "between it and the CA",
     IN_JOB | IN_WORKER | IN_ASK, OF(CLI_FILE, tls_cert)},
    {0, "tls-key", "FILE", "with --tls-ca: the secret key of --tls-cert",
     IN_JOB | IN_WORKER | IN_ASK, OF(CLI_FILE, tls_key)},
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
         IN_PREDICT | IN_CHECK | IN_STATUS,
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

const cli_command cli_commands[] = {
    {"matvec", "X w", "y = X w",
     "Multiplies the matrix in file X by the vector in file w on coded "
     "workers. X is cut, coded and given to the workers once. In each "
     "round a worker computes its share of one product.",
     "kofn matvec X.npy w.npy -o y.npy  eight threads; any four may be "
     "lost\n"
     "kofn matvec X.npy w.npy -s mds:k=6 -w straggle=0.1 --verify  does "
     "not wait for slow workers\n"
     "kofn matvec X.npy w.npy -p sim -n 1000 -r 100 --json  a thousand "
     "simulated workers\n"
     "kofn matvec X.npy w.npy -r 9 -e events.txt -o y.npy  workers "
     "leave and join as a file says\n"
     "kofn matvec X.npy w.npy -o y.npy -p tcp://0.0.0.0:5555 --keys "
     "keys  eight machines that run kofn worker tcp://HERE:5555\n"
     "mpirun -n 9 kofn matvec X.npy w.npy -o y.npy -p mpi  the ranks of "
     "an MPI job",
     IN_MATVEC, 2, 2, cmd_product},
    {"matmul", "A B", "C = A B; A is coded and stays with the workers",
     "Multiplies two matrices. A is cut, coded and given to the workers "
     "once. B goes to every worker, whole or cut and coded, as the "
     "scheme needs it.",
     "kofn matmul A.npy B.npy -o C.npy -s elastic:k=6  any six of eight "
     "workers are enough\n"
     "kofn matmul A.npy B.npy -o C.npy -s gpd:m=2,n=2,p=2 -n 12 "
     "--verify  both operands cut and coded; compared with plain BLAS\n"
     "kofn matmul A.npy B.npy -o C.npy -s polynomial:m=3,p=2 -n 9 "
     "--errors probabilistic  names workers with wrong results",
     IN_MATMUL, 2, 2, cmd_product},
    {"power", "X", "the dominant eigenvector of X",
     "Power iteration from a random vector; one coded product for each "
     "iteration.",
     "kofn power X.npy -o v.npy --tol 1e-12  the report has the "
     "eigenvalue\n"
     "kofn power X.npy -o v.npy --masterless -n 3 --port "
     "tcp://127.0.0.1:5001 --reach "
     "tcp://127.0.0.1:5002,tcp://127.0.0.1:5003  one of three nodes",
     IN_POWER, 1, 1, cmd_iterate},
    {"pagerank", "G", "PageRank of a graph",
     "G is a Matrix Market file with an entry (i, j) for each arc from "
     "i to j; values are weights. Or it is a list of edges (.txt, .tsv, "
     ".csv, .dat or .edges, as from SNAP): two nodes in a line, as numbers "
     "or names; # or % begins a comment. Ranks are in the order of the "
     "numbers or names; -o rank.csv has both. A node without outgoing "
     "arcs counts as pointing to all nodes.",
     "kofn pagerank G.mtx -o rank.npy  ranks in the order of the nodes\n"
     "kofn pagerank wiki-Vote.txt --top 20 -o rank.csv  nodes and ranks\n"
     "kofn pagerank G.mtx -o rank.npy -n 12 -s elastic:k=9 -e "
     "events.txt --verify  while workers leave and join\n"
     "kofn pagerank G.mtx -o rank.npy --masterless  equal nodes; each "
     "ends with the ranks",
     IN_PAGERANK, 1, 1, cmd_iterate},
    {"stream", "LIST", "products C = X Y that come one after another",
     "Each line of the file LIST (- is stdin) names three files: X, Y, "
     "and the file for X Y. A name with a blank needs double quotes. "
     "Lines are read as they come. When a product is done a line is "
     "printed, with --json an object. An operand may be the output of a "
     "former line. So any program that writes and reads lines can use "
     "coded products. Each product is done within some rounds after its "
     "first one; a worker that was slow in one round computes more in "
     "the next (docs/stream.md).",
     "kofn stream list.txt  three files in a line; scheme dip\n"
     "kofn stream list.txt -s idip:W=3,N=6 -w straggle=0.2 --json "
     "--verify  in time if workers are slow at most six times in any three rounds\n"
     "kofn stream - -s dip:m=2,p=3,T=3 --mu 0.5  lines from another "
     "program\n"
     "kofn stream list.txt -n 8 -p 'tcp://*:7000' --keys k  workers on "
     "other machines: kofn worker",
     IN_STREAM, 1, 1, cmd_stream},
    {"regress", "X [y]", "fit a linear model of y by the rows of X",
     "Gradient descent; limited-memory BFGS for losses other than least "
     "squares. Coded workers compute the gradients. Under elastic a "
     "worker answers twice for an iteration: X w, and then X' times the "
     "derivative of the loss. Under pcr it answers once, X' X w, for "
     "least squares only. Under gc, cgc, agc, g-cgc, g-agc, bcc, "
     "replication and uncoded it answers once, with sums of the "
     "gradients of its parts of the points. ignore and distr-bgd use "
     "the available parts, which is not exact. A sparse X (.mtx, "
     ".libsvm, .svm) stays sparse under pcr and elastic. y may be a row "
     "or a column. It may be left out if the file of X has labels, as "
     "LIBSVM's files have; otherwise such labels are ignored. The "
     "report has R^2, accuracy or explained deviance. A descent that "
     "has not converged is no failure: a remark says what to try, "
     "converged in --json is false, and the weights are written. sgd "
     "stops after --iterations.",
     "kofn regress X.npy y.npy -o w.npy --loss logistic --l2 1e-3  any "
     "four of eight workers may be lost\n"
     "kofn regress points.libsvm -o w.npy --loss logistic  points and "
     "labels in one file\n"
     "kofn regress X.npy y.npy -o w.npy --scale --test "
     "Xt.npy yt.npy  columns of different units, and held-out points\n"
     "kofn regress X.npy y.npy -o w.npy --optimizer sgd --batches 20 "
     "--iterations 200  ten passes through the points\n"
     "kofn regress X.npy y.npy -o w.npy -s pcr:r=4 --optimizer nesterov "
     " least squares with the fewest answers\n"
     "kofn regress X.npy y.npy -s gc:d=3 -w straggle=0.1 --verify "
     "--history h.csv  gradient coding; two of eight workers may be "
     "slow\n"
     "kofn regress X.npy y.npy -s agc:d=3 -w straggle=0.1  messages get "
     "shorter if fewer workers are slow",
     IN_REGRESS, 1, 2, cmd_regress},
    {"train", "X [y]", "train a dense network to predict y from the rows of X",
     "Gradient descent by batches, as PyTorch's SGD. There are two ways "
     "to divide the work. (1) gc, cgc, agc, g-cgc, g-agc, bcc, "
     "replication, uncoded: each worker has some parts of the points, "
     "gets the weights with every step, and answers with coded sums of "
     "gradients. Under gc:d=3 any two workers may be slow or lost, under "
     "gc:d=2, the default, any one. The "
     "steps are those of a training without workers. (2) elastic, gpd, "
     "polydot, matdot, polynomial, grid: the workers keep the coded "
     "weights for the whole run and compute every product of a step. y "
     "has labels 0, 1, ... or, with --loss squares, numbers; with "
     "--autoencoder there is no y. With --masterless equal nodes have "
     "the points and coded weights (gpd, polydot, matdot, polynomial, "
     "grid). --output is a folder with model.json and the weights.",
     "kofn train X.npy y.npy -o model --layers 64-32-10 --epochs 5  one "
     "hidden layer of 32\n"
     "kofn train train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz "
     "-o model --layers 784-128-10 --activation relu --momentum 0.9 "
     "--epochs 5 --test t10k-images-idx3-ubyte.gz "
     "t10k-labels-idx1-ubyte.gz  the files of MNIST\n"
     "kofn train X.npy y.npy -o model --layers 64-32-10 --epochs 50 -p "
     "processes --checkpoint C --resume --history h.csv  resumes from "
     "the checkpoint\n"
     "kofn train X.npy y.npy -o model --layers 64-256-10 -s "
     "gpd:m=2,n=2,p=1 --verify  the workers keep the weights\n"
     "kofn train X.npy y.npy -o model --layers 64-256-10 --masterless  "
     "no coordinator; with --errors adversarial nodes may be faulty\n"
     "kofn train X.npy --autoencoder --layers 64-16-64 --sparsity 0.05 "
     "--sparsity-weight 3 -o model  sparse codes",
     IN_TRAIN, 1, 2, cmd_train},
    {"predict", "X w | DIR X", "predictions of a model of regress or train",
     "The mean of y for each row of X: x w for least squares, the "
     "probability of label 1 for logistic regression, the expected "
     "count for Poisson regression. If w has one number more than a "
     "row, the last one is the intercept. For a network, given by its "
     "folder: the label of each row, or the output numbers. Computed in "
     "this process, without workers.",
     "kofn predict X.npy w.npy -o y.npy  one number for each row\n"
     "kofn predict model Xt.npy -o y.npy --labels yt.npy  by the "
     "network in that folder\n"
     "kofn predict Xt.npy w.npy --loss logistic --labels yt.npy  share "
     "of correct labels\n"
     "kofn predict Xt.npy a.npy --kernel rbf:s=3 --points X.npy -o "
     "y.npy  with the kernel and the points of the fit",
     IN_PREDICT, 2, 2, cmd_predict},
    {"check", "A B C", "test whether C is A B",
     "Compares random sums of the rows, or of the columns, of C and A "
     "B, in a few passes over the operands. If sums differ, entries are "
     "computed again. Wrong rows, columns and entries are named. "
     "--output gets the corrected product, unless too many entries are "
     "wrong. An entry is right if it is as near to the exact one as any "
     "order of summation leaves it. Smaller errors may be missed; their "
     "bound is printed relative to the norm of a row of A times the "
     "norm of a column of B. A may be sparse (.mtx). Exits with 5 if C "
     "is not A B, corrected or not.",
     "kofn check A.npy B.npy C.npy  C may come from a GPU, another BLAS "
     "or another cluster\n"
     "kofn check A.npy B.npy C.npy -o fixed.npy  also writes the right "
     "product\n"
     "kofn check A.npy B.npy C.npy --tolerance 1e-3  C was computed in "
     "TF32; 1e-12 suits coded workers\n"
     "kofn check A.npy B.npy C.npy --json  every wrong entry",
     IN_CHECK, 3, 3, cmd_check},
    {"gen", "matrix|vector|graph|uniform|pattern SIZE...", "inputs for trials",
     "matrix ROWS COLS and vector N have normal numbers, uniform ROWS "
     "COLS numbers in [0, 1). graph NODES ARCS is an R-MAT graph. Sizes "
     "may end in k, M or G. pattern MODEL ROUNDS WORKERS is a pattern "
     "of slow workers for --pattern. Its models: iid:p=P, each worker "
     "by chance. fritchman:a=A,b=B,M=M, a worker becomes slow with "
     "probability A a round, passes M slow states, and leaves each with "
     "probability B a round. arbitrary:N=N,W=W, all workers together at most N times "
     "in any W rounds. bursty:B=B,W=W,eps=E, at most E workers in any W "
     "rounds, each within B rounds. These two take style=max, onoff, uniform "
     "or sticky. lambda:p=,q=,tail=,rare=,worst=, slowdowns as of 256 cloud "
     "functions (probably those of Krishnan and others, ICLR 2023). "
     "spot:changes=,present=,hour=,group=, a fleet of 16 machines that leave and "
     "come back (Wu and others, NSDI 2024). docs/stragglers.md has their keys.",
     "kofn gen matrix 4000 1000 -o X.npy --seed 1  32 MB of normal "
     "numbers\n"
     "kofn gen vector 1000 -o w.npy  a vector of matching size\n"
     "kofn gen graph 100k 1M -o G.mtx  skewed degrees, as on the web\n"
     "kofn gen pattern fritchman:a=0.2,b=0.5,M=2 1000 8 -o slow.csv  "
     "bursts of two rounds or more",
     IN_GEN, 2, 4, cmd_gen},
    {"plan", "OPERATION SIZE...", "which code to take, from shapes alone",
     "OPERATION is matvec MxN, matmul MxN NxP, power NxN, stream MxN NxP, "
     "regress POINTSxCOLUMNS, or train POINTSxCOLUMNS N0-N1-... Sizes may end "
     "in k, M or G. It measures this machine for a second, and simulates the "
     "coordinator under all codes that fit, without numbers. The table has "
     "plain BLAS on one machine, and then the codes, fastest first. A code is "
     "left out if another one is as good in time, memory and losses. Workers "
     "are as --port says: threads and processes share this machine's cores; "
     "with an ADDRESS each has a machine like this one, and a link of "
     "10 Gbit/s and 0.1 ms, or of bandwidth= and latency= in --faults.",
     "kofn plan matmul 20kx20k 20kx100 -n 20 -p tcp://*:5555 -w "
     "straggle=0.1,factor=5 --rounds 50  twenty machines, some of them slow\n"
     "kofn plan matvec 8000x2000 --rounds 100 --tolerate 2  threads of this "
     "machine; two may be lost\n"
     "kofn plan matmul 8kx8k 8kx64 -s elastic:k=6  one code only",
     IN_PLAN, 2, 3, cmd_plan},
    {"schemes", "[NAME[:key=value,...]]", "list of codes",
     "Lists the schemes to choose from, with --all every scheme and its "
     "parameters; for one scheme, its needs and costs with this number of "
     "workers.",
     "kofn schemes  the ones to choose from\n"
     "kofn schemes elastic:k=6 -n 12  threshold, storage, load and "
     "noise\n"
     "kofn schemes gpd:m=2,n=2,p=2  with the number of workers that it "
     "needs\n"
     "kofn schemes --json  all of them as JSON",
     IN_SCHEMES, 0, 1, cmd_schemes},
    {"worker", "ADDRESS", "work for the coordinator at this address",
     "Connects to a kofn command with --port ADDRESS, stores a coded "
     "block, and works until it is dismissed. It may be started before "
     "the coordinator, or at any time while that runs. It reconnects "
     "when the connection is lost. It keeps its block when a "
     "coordinator with --checkpoint restarts with --resume. SIGTERM "
     "asks it to leave. Its BLAS computes on several threads, OpenBLAS "
     "on one for each core, unless OPENBLAS_NUM_THREADS "
     "(BLIS_NUM_THREADS, MKL_NUM_THREADS) limits them.",
     "kofn worker tcp://head:5555 --keys keys  for one job after another\n"
     "kofn worker tcp://head:5555 --keys keys --grace 20  on a "
     "preemptible machine with a notice\n"
     "kofn worker tcp://head:5555 --keys keys --grace 20 --preempt-command "
     "'curl -sf http://169.254.169.254/latest/meta-data/spot/instance-action' "
     " asks the machine for that notice\n"
     "kofn worker head@tcp://head:5555 --tls-ca ca.crt --tls-cert "
     "w1.crt --tls-key w1.key  with certificates of another CA, for the "
     "coordinator named head\n"
     "kofn worker tcp://head:5555 --insecure --data-path /data  the "
     "input files are on a shared disk\n"
     "kofn worker ipc:///tmp/kofn.sock  on the coordinator's machine",
     IN_WORKER, 1, 1, cmd_worker},
    {"keygen", "DIR", "keys for a coordinator and its workers",
     "Makes coordinator.key, coordinator.crt, worker.key and worker.crt "
     "in the folder. Only their owner can read the secret ones. The "
     "coordinator needs the whole folder; workers need worker.key, "
     "worker.crt and coordinator.crt. One holder of the common worker "
     "key can run any number of workers: with --errors give every "
     "worker a different key by --worker. Existing keys are never "
     "replaced.",
     "kofn keygen keys  then use --port tcp://0.0.0.0:5555 --keys keys\n"
     "kofn keygen keys --worker anna  makes the folder keys/anna for "
     "one machine\n"
     "rm keys/anna.crt  revokes that key, also while a coordinator runs",
     IN_KEYGEN, 1, 1, cmd_keygen},
    {"status", "ADDRESS", "the workers of the coordinator at this address",
     "Prints the name, machine and state of each worker of a running command "
     "or fleet, its results, the seconds that it computed for them, and "
     "how many times as long as others it takes for the same work. "
     "Keys are those of a worker.",
     "kofn status tcp://head:5555 --keys keys  a table\n"
     "kofn status ipc:///tmp/kofn.sock --json  for programs",
     IN_STATUS, 1, 1, cmd_status},
    {"drain", "ADDRESS NAME", "let a worker finish its tasks and leave",
     "NAME is that of kofn status: --name of kofn worker, or HOST:PROCESS. Where "
     "each worker has its own key, only the key of operator may do this "
     "(kofn keygen DIR --worker operator).",
     "kofn drain tcp://head:5555 node7:4711 --keys keys/operator  node7 may "
     "be switched off when its worker has left",
     IN_DRAIN, 2, 2, cmd_drain},
    {"replay", "JOURNAL", "run the coordinator again from a journal",
     "Feeds the recorded events to a new coordinator and compares its "
     "decisions with the recorded ones, including the coefficients.",
     "kofn replay run.jsonl  prints the first difference, if there is "
     "one\n"
     "kofn replay run.jsonl --step --state  prints every decision and "
     "the state behind it",
     IN_REPLAY, 1, 1, cmd_replay},
    {"trace", "JOURNAL", "draw a run from its journal",
     "Runs the coordinator again, as kofn replay does, and writes the "
     "files that --trace and --record would have written. Of a run that "
     "was killed it shows the part before that. Writes nothing if a "
     "decision differs from the recorded one.",
     "kofn trace run.jsonl -o run.json  for ui.perfetto.dev or "
     "chrome://tracing\n"
     "kofn trace run.jsonl --record was.csv  slowness of workers, for "
     "--pattern",
     IN_TRACE, 1, 1, cmd_trace},
    {"report", "JOURNAL", "make a page about a run from its journal",
     "Runs the coordinator again, as kofn replay does, and writes a page of "
     "HTML with every worker in every round, as --report does. Of a run that "
     "was killed it shows the part before that. Names of workers, bytes and "
     "errors are not in a journal. Writes nothing if a decision differs from "
     "the recorded one.",
     "kofn report run.jsonl -o run.html  for a browser", IN_REPORT, 1, 1,
     cmd_report},
    {.name = NULL},
};
