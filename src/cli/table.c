/* table.c -- every command and every option, once.
 *
 * Whatever is true of an option is said here, but what the library tells of a job's
 * options (kofn_option_at), which is filled in when the table is first asked for.
 * No other file may list options. */
#include "cli.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#define AT(field) offsetof(cli_args, field)
#define OF_JOBS 30 /* options at most */
#define TEXT 600

/* What stands behind the first fields of a row. */
#define OF(kind_, field_) .kind = kind_, .at = AT(field_)
#define FLAG(field_) OF(CLI_FLAG, field_)
#define NUMBER(kind_, least_, most_, field_)                                   \
    OF(kind_, field_), .least = least_, .most = most_

/* An option of a job.  What it may be, its place and its text are the library's;
 * what the command does beside stands behind that text. */
#define JOB(name_, field_, beside_)                                            \
    {                                                                          \
        .name = name_, .help = beside_, OF(CLI_JOB, job.field_)                \
    }

static cli_option options[] = {
    {'o', "output", "FILE",
     "write the result there (.npy, .csv or .mtx by its suffix; train: a folder; "
     "trace: the drawing)",
     IN_RUN | IN_GEN | IN_PREDICT | IN_CHECK | IN_TRACE, OF(CLI_FILE, output)},
    {'n', "workers", "N", "workers at the start (8)", IN_JOB | IN_SCHEMES,
     NUMBER(CLI_SIZE, 1, 1e6, workers), .given = AT(workers_given)},
    {'s', "scheme", "NAME[:key=value,...]",
     "the code; see kofn schemes (elastic; stream: dip; regress: pcr or gc where X is small; "
     "train: gc:d=3, --masterless: gpd)",
     IN_JOB, OF(CLI_TEXT, scheme), .given = AT(scheme_given)},
    {'p', "port", "threads|sim|processes|mpi|ADDRESS",
     "where the workers are: threads here, a deterministic simulator, processes "
     "of this machine, the other ranks under mpirun or srun, or whoever comes "
     "to tcp://*:PORT or ipc://PATH by kofn worker; --masterless: threads, mpi, "
     "or the ADDRESS to listen at (threads)",
     IN_JOB, OF(CLI_TEXT, port), .check = cli_check_port_name},
    {0, "min-workers", "K",
     "with an ADDRESS begin as soon as so many have come (all of --workers)",
     IN_JOB, NUMBER(CLI_SIZE, 1, 1e6, least)},
    {0, "keys", "DIR",
     "with an ADDRESS: keys made by kofn keygen; everything is encrypted, and "
     "only listed workers come in",
     IN_JOB | IN_WORKER, OF(CLI_DIR, keys)},
    {0, "tls-ca", "FILE",
     "with an ADDRESS, in the place of --keys: certificates of another CA (PEM); "
     "everything is encrypted, and whoever has a certificate of that CA comes in",
     IN_JOB | IN_WORKER, OF(CLI_FILE, tls_ca)},
    {0, "tls-cert", "FILE",
     "with --tls-ca: the certificate of this process, and those between it and "
     "the CA",
     IN_JOB | IN_WORKER, OF(CLI_FILE, tls_cert)},
    {0, "tls-key", "FILE", "with --tls-ca: the secret key of --tls-cert",
     IN_JOB | IN_WORKER, OF(CLI_FILE, tls_key)},
    {0, "seats-per-key", NULL,
     "with an ADDRESS; 1 with --errors, where 0 has every worker count for "
     "itself, which tells faults but no enemies apart",
     0, OF(CLI_JOB, job.seats), .given = AT(seats_given)},
    JOB("start-within", start_within, NULL),
    {0, "worker", "NAME",
     "a key for one worker, listed as NAME.crt until that file is taken "
     "away; without it one key for all of them",
     IN_KEYGEN, OF(CLI_TEXT, worker)},
    {0, "insecure", NULL,
     "let anybody come to an ADDRESS that others can reach, and do not encrypt",
     IN_JOB | IN_WORKER, FLAG(insecure)},
    {0, "grace", "SECONDS",
     "asked to end by a signal, finish work in hand for at most so long (0)",
     IN_WORKER, NUMBER(CLI_REAL, 0, 1e9, grace)},
    {0, "data-path", "DIR",
     "a folder with the coordinator's input files: blocks are made from them "
     "here and not sent, if every number of them is the coordinator's",
     IN_WORKER, OF(CLI_DIR, data_path)},
    {0, "memory", "BYTES",
     "that a block may take, or waiting tasks of a stream (no limit)",
     IN_WORKER, NUMBER(CLI_SIZE, 1, 0, memory)},
    {0, "staged", NULL,
     "let the coordinator's events file slow down or corrupt this worker, for "
     "tests; without it such events are ignored, and the coordinator says so",
     IN_WORKER, FLAG(staged)},
    {'r', "rounds", "R", "do the product this many times (1)", IN_PRODUCT,
     NUMBER(CLI_SIZE, 1, 1e9, rounds)},
    {'d', "damping", "D", "chance of following an arc (0.85)", IN_PAGERANK,
     NUMBER(CLI_REAL, 1e-6, 1 - 1e-6, damping)},
    {'t', "tol", "T",
     "stop when the change is below it (1e-10); regress: the gradient, as a "
     "share of the first (1e-8)",
     IN_ITERATE | IN_REGRESS, NUMBER(CLI_REAL, 1e-300, 1e300, tol)},
    {0, "loss", "ls|logistic|poisson",
     "what is minimised: least squares, for labels 0 and 1 or -1 and 1, for "
     "counts (ls)",
     IN_REGRESS | IN_PREDICT, OF(CLI_CHOICE, regress.loss)},
    {0, "l2", "LAMBDA", "weight of |w|^2/2 (0)", IN_REGRESS,
     NUMBER(CLI_REAL, 0, 1e100, regress.ridge)},
    {0, "kernel", "linear|rbf:s=S|poly:degree=D,c=C",
     "regress on the kernel matrix of X instead of X", IN_REGRESS | IN_PREDICT,
     OF(CLI_TEXT, kernel)},
    {0, "optimizer", "gd|nesterov|sgd|lbfgs",
     "how to descend (gd; of other losses than ls without --step and "
     "--line-search lbfgs)",
     IN_REGRESS, OF(CLI_CHOICE, regress.descent), .given = AT(optimizer_given)},
    {0, "line-search", "none|exact|armijo|grid",
     "of gd; none: fixed steps of 1/L, L measured on the workers (none)",
     IN_REGRESS, OF(CLI_CHOICE, regress.rule)},
    {0, "step", "S", "length of fixed steps", IN_REGRESS,
     NUMBER(CLI_REAL, 1e-300, 1e300, regress.step)},
    {0, "iterations", "N", "at most (100)", IN_REGRESS,
     NUMBER(CLI_UNSIGNED, 1, 1e9, regress.max_iterations)},
    {0, "batches", "B",
     "sgd: a step for each of so many batches of the points (10)", IN_REGRESS,
     NUMBER(CLI_UNSIGNED, 1, 1e9, regress.batches)},
    {0, "intercept", NULL,
     "fit a constant as well; it is the last weight, and --l2 is not of it",
     IN_REGRESS, FLAG(regress.intercept)},
    {0, "scale", NULL,
     "fit to columns divided by their standard deviation, with --intercept "
     "less their mean; the weights that are written are for X as it is",
     IN_REGRESS, FLAG(standardise)},
    {0, "layers", "N0-N1-...",
     "widths: of a point, and of each layer; the last one is as wide as there "
     "are classes or numbers to be met",
     IN_TRAIN, OF(CLI_TEXT, layers)},
    {0, "activation", "sigmoid|tanh|relu|linear",
     "of all layers but the last (sigmoid)", IN_TRAIN,
     OF(CLI_CHOICE, net.activation)},
    {0, "cost", "softmax|squares",
     "labels 0, 1, ...: softmax and cross-entropy; else squares, of labels or of "
     "numbers (softmax; --autoencoder: squares)",
     IN_TRAIN, OF(CLI_CHOICE, net.cost), .given = AT(cost_given)},
    {0, "output-activation", "sigmoid|tanh|relu|linear",
     "squares: of the last layer (linear; --autoencoder: as the others)",
     IN_TRAIN, OF(CLI_CHOICE, net.output), .given = AT(last_given)},
    {0, "step", "S", "length of steps (0.1)", IN_TRAIN,
     NUMBER(CLI_REAL, 1e-300, 1e300, train.step)},
    {0, "momentum", "M", "share of the last step that is gone again (0)",
     IN_TRAIN, NUMBER(CLI_REAL, 0, 0.999999, train.momentum)},
    {0, "nesterov", NULL, "with --momentum: after Nesterov", IN_TRAIN,
     FLAG(train.nesterov)},
    {0, "l2", "LAMBDA", "weight of |W|^2/2, biases included (0)", IN_TRAIN,
     NUMBER(CLI_REAL, 0, 1e100, train.l2)},
    {0, "batch", "B", "points of a step (64)", IN_TRAIN,
     NUMBER(CLI_SIZE, 1, 1e9, train.batch)},
    {0, "epochs", "E", "times through all points (1)", IN_TRAIN,
     NUMBER(CLI_UNSIGNED, 1, 1e6, train.epochs)},
    {0, "scrub", "N",
     "compare the blocks of all workers or nodes after every N steps and mend those "
     "that are wrong; for weights that live with them, with --errors (never)",
     IN_TRAIN, NUMBER(CLI_UNSIGNED, 1, 1e9, train.scrub)},
    {0, "autoencoder", NULL,
     "let points come out as they came in; there is no y", IN_TRAIN,
     FLAG(net.autoencoder)},
    {0, "sparsity", "R",
     "autoencoder of two layers: what hidden units should be on the average",
     IN_TRAIN, NUMBER(CLI_REAL, 1e-6, 1 - 1e-6, net.sparsity)},
    {0, "sparsity-weight", "B", "weight of the penalty on that (0)", IN_TRAIN,
     NUMBER(CLI_REAL, 0, 1e100, net.sparsity_weight)},
    {0, "unit", "U",
     "what points are divided by before all else (the largest magnitude in X, if "
     "that is above 1)",
     IN_TRAIN, NUMBER(CLI_REAL, 1e-300, 1e300, unit)},
    {0, "every", "N", "steps from one --checkpoint to the next (an epoch's)",
     IN_TRAIN, NUMBER(CLI_UNSIGNED, 1, 1e9, every)},
    {0, "shares", NULL,
     "of a network with a softmax: a row of shares of the classes, not the label",
     IN_PREDICT, FLAG(shares)},
    {0, "labels", "FILE", "what y was: say how well it is predicted",
     IN_PREDICT, OF(CLI_TEXT, labels)},
    {0, "points", "FILE", "with --kernel, the X that was fitted to", IN_PREDICT,
     OF(CLI_TEXT, points)},
    {0, "test", "Xt yt", "two files with points that were held out",
     IN_REGRESS | IN_TRAIN, OF(CLI_PAIR, test_X), .given = AT(test_y)},
    {0, "history", "FILE",
     "a line of CSV an iteration: objective, gradient, seconds, ...; line 0 is "
     "of what came before the first step; train: a line a step",
     IN_REGRESS | IN_TRAIN, OF(CLI_FILE, history)},
    {'m', "max-iter", "N", "iterations at most (200)", IN_ITERATE,
     NUMBER(CLI_SIZE, 1, 1e9, max_iter)},
    {0, "masterless", NULL,
     "nodes among equals: each decodes for itself and has the result, and none "
     "is in charge; docs/masterless.md",
     IN_ITERATE | IN_TRAIN, FLAG(masterless)},
    {0, "decode", "auto|replicated|distributed",
     "masterless: every node decodes everything, or its groups for all (auto: "
     "what is estimated to be faster)",
     IN_ITERATE | IN_TRAIN, OF(CLI_CHOICE, decode)},
    {0, "reach", "ADDRESS,...",
     "masterless, with a --port to listen at: nodes to begin with, all that are "
     "given; NAME@ADDRESS where each has a key of its own",
     IN_ITERATE | IN_TRAIN, OF(CLI_TEXT, reach), .check = cli_add_reach},
    {0, "confirm", "N",
     "masterless: other nodes that must have the same before an iterate is "
     "taken from them, one more than may be hostile, all of one key being one "
     "(more than half of the others; threads and mpi without --errors: 1)",
     IN_ITERATE, NUMBER(CLI_SIZE, 1, 4096, confirm)},
    {'e', "events", "FILE", "who leaves, joins, slows down or lies, and when",
     IN_JOB, OF(CLI_TEXT, events)},
    {'w', "faults", "key=value,...",
     "what goes wrong by chance: spread, straggle, burst, factor, delay, leave, join, "
     "corrupt, flip, miss; simulator: clock=modelled|measured, work, latency, bandwidth, whole",
     IN_JOB | IN_WORKER, OF(CLI_TEXT, faults_text), .check = cli_read_faults},
    {0, "pattern", "MODEL:key=value,...|FILE",
     "who is slow in which round: iid:p, fritchman:a,b,M, arbitrary:N,W,style or "
     "bursty:B,W,eps,style (factor of --faults times as long), or what --record "
     "or kofn gen pattern wrote; worker: such a file",
     IN_JOB | IN_WORKER, OF(CLI_FILE, pattern_text)},
    {0, "record", NULL, "for --pattern", IN_TRACE, OF(CLI_JOB, job.record)},
    {0, "factor", "F",
     "pattern: how many times as long the slow take, or inf (5)", IN_GEN,
     NUMBER(CLI_REAL, 1.001, HUGE_VAL, factor)},
    JOB("in-flight", in_flight, NULL),
    {0, "below", NULL, "with an ADDRESS pause", 0, OF(CLI_JOB, job.below),
     .given = AT(below_given)},
    {0, "patience", NULL, "with --below pause; a worker: for its coordinator",
     IN_WORKER, OF(CLI_JOB, job.patience)},
    JOB("late", late, NULL),
    JOB("lease", lease, NULL),
    JOB("pieces", pieces, NULL),
    JOB("max-error", tolerance, NULL),
    JOB("errors", errors, NULL),
    JOB("quarantine", quarantine, NULL),
    JOB("audit", audit, NULL),
    JOB("beyond", beyond, NULL),
    {0, "seed", "S", "of coefficients, faults and generated data (1)",
     IN_JOB | IN_GEN | IN_SCHEMES | IN_WORKER, NUMBER(CLI_SIZE, 0, 0, seed)},
    JOB("journal", journal, NULL),
    JOB("metrics", metrics, NULL),
    JOB("trace", trace, NULL),
    {0, "checkpoint", "DIR",
     "keep there what a new start needs to go on, after every round or "
     "iteration",
     IN_RUN, OF(CLI_DIR, checkpoint)},
    {0, "resume", NULL,
     "go on with what --checkpoint has kept; from the beginning where it has "
     "nothing yet",
     IN_RUN, FLAG(resume)},
    {0, "tolerance", "T",
     "let be what is off by no more than so many times the largest norm of a row "
     "of A times the largest of a column of B (what any order of summation may "
     "do)",
     IN_CHECK, NUMBER(CLI_REAL, 0, 1, tolerance)},
    {0, "dtype", "f8|f4", "type of the numbers (f8)", IN_GEN | IN_TRAIN,
     OF(CLI_WORD, dtype)},
    {0, "rows", "N", "rows of A that the figures are for (100000)", IN_SCHEMES,
     NUMBER(CLI_SIZE, 1, 1e9, rows)},
    {0, "show", NULL,
     "a line a round: what share of its block each worker was given", IN_RUN,
     FLAG(show)},
    JOB("mu", mu, NULL),
    {0, "step", NULL, "print every event and what the coordinator did about it",
     IN_REPLAY, FLAG(step)},
    {0, "state", NULL,
     "with --step: and where the products that are open stand then", IN_REPLAY,
     FLAG(state)},
    {'v', "verify", NULL,
     "compute the plain answer as well and report the relative error", IN_JOB,
     FLAG(verify)},
    {'j', "json", NULL,
     "one JSON object on stdout; schemes without a name: a list of them; stream: "
     "one for each product",
     IN_JOB | IN_SCHEMES | IN_REPLAY | IN_TRACE | IN_PREDICT | IN_CHECK,
     FLAG(json)},
    {'q', "quiet", NULL, "no report, no progress",
     IN_JOB | IN_GEN | IN_REPLAY | IN_TRACE | IN_WORKER | IN_KEYGEN |
         IN_PREDICT | IN_CHECK,
     FLAG(quiet)},
    {'h', "help", NULL, "this text", ~0u, FLAG(help)},
    {.name = NULL},
};

static unsigned commands_of(unsigned jobs)
{
    return (jobs & KOFN_OF_MATRICES ? IN_RUN : 0) |
           (jobs & KOFN_OF_SUMS ? IN_REGRESS | IN_TRAIN : 0) |
           (jobs & KOFN_OF_STREAMS ? IN_STREAM : 0);
}

/* `text` is room for one that is made of two. */
static void fill_in(cli_option *o, char text[TEXT])
{
    const kofn_option *its = kofn_option_at(0);

    for (size_t i = 1; AT(job) + its->at != o->at; i++)
        its = kofn_option_at(i);
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
     "Multiplies the matrix in file X with the vector in file w on coded "
     "workers. X is cut, coded and handed out once; each round costs every "
     "worker its share of one product.",
     "kofn matvec X.npy w.npy -o y.npy  eight threads, any four may vanish\n"
     "kofn matvec X.npy w.npy -s mds:k=6 -w straggle=0.1 --verify  "
     "stragglers are not waited for\n"
     "kofn matvec X.npy w.npy -p sim -n 1000 -r 100 --json  "
     "a simulated fleet of a thousand\n"
     "kofn matvec X.npy w.npy -r 9 -e events.txt -o y.npy  "
     "with leaves and joins from a file\n"
     "kofn matvec X.npy w.npy -o y.npy -p tcp://0.0.0.0:5555 --keys keys  "
     "eight machines that run kofn worker tcp://HERE:5555\n"
     "mpirun -n 9 kofn matvec X.npy w.npy -o y.npy -p mpi  the ranks of an "
     "MPI job",
     IN_MATVEC, 2, 2, cmd_product},
    {"matmul", "A B", "C = A B, the left operand coded and resident",
     "Multiplies two matrices. A is cut, coded and handed out; B goes to every "
     "worker, whole or cut and coded as the scheme says.",
     "kofn matmul A.npy B.npy -o C.npy -s elastic:k=6  any six of eight\n"
     "kofn matmul A.npy B.npy -o C.npy -s gpd:m=2,n=2,p=2 -n 12 --verify  "
     "both operands cut and coded; checked against plain BLAS\n"
     "kofn matmul A.npy B.npy -o C.npy -s polynomial:m=3,p=2 -n 9 "
     "--errors probabilistic  whose results are wrong is found out",
     IN_MATMUL, 2, 2, cmd_product},
    {"power", "X", "the dominant eigenvector of X",
     "Power iteration from a seeded random vector: one coded product an "
     "iteration.",
     "kofn power X.npy -o v.npy --tol 1e-12  with the eigenvalue in the report\n"
     "kofn power X.npy -o v.npy --masterless -n 3 --port tcp://127.0.0.1:5001 "
     "--reach tcp://127.0.0.1:5002,tcp://127.0.0.1:5003  one node of three",
     IN_POWER, 1, 1, cmd_iterate},
    {"pagerank", "G", "PageRank of a graph",
     "G is a Matrix Market file with an entry (i, j) for each arc from i to j; "
     "values are weights. Or it is a list of edges (.txt, .tsv, .dat or .edges, "
     "as SNAP has them): a line for each arc, with two numbers of nodes, from 0 "
     "on, comments from # on. Nodes without arcs out count as pointing everywhere.",
     "kofn pagerank G.mtx -o rank.npy  ranks in the order of the nodes\n"
     "kofn pagerank G.mtx -o rank.npy -n 12 -s elastic:k=9 -e events.txt "
     "--verify  under an elastic trace\n"
     "kofn pagerank G.mtx -o rank.npy --masterless  nodes among equals, each "
     "of which ends with the ranks",
     IN_PAGERANK, 1, 1, cmd_iterate},
    {"stream", "LIST", "products C = X Y that come one after another",
     "Each line of the file LIST, or of stdin where that is -, names three "
     "files: X, Y and the one that X Y is written to. One with a blank in it stands "
     "between double quotes. Lines are read as they "
     "come, a line (with --json an object) is printed as each product is over, "
     "and an operand may be the output of a line above: whatever writes lines "
     "and reads them has coded products. Each is over some rounds after its "
     "first at the latest; who was slow in one is made up for in the next "
     "(docs/stream.md).",
     "kofn stream list.txt  three files a line, under dip\n"
     "kofn stream list.txt -s idip:W=3,N=6 -w straggle=0.2 --json --verify  "
     "in time whatever up to six stragglers in three rounds do\n"
     "kofn stream - -s dip:m=2,p=3,T=3 --mu 0.5  lines from another program\n"
     "kofn stream list.txt -n 8 -p 'tcp://*:7000' --keys k  workers that are "
     "elsewhere: kofn worker",
     IN_STREAM, 1, 1, cmd_stream},
    {"regress", "X [y]", "fit a linear model of y by the rows of X",
     "Gradient descent, or limited-memory BFGS, which is what other losses than "
     "least squares get; coded workers compute the gradients. Under elastic "
     "each answers twice an iteration: for X w, and then for X' times what the "
     "loss makes of it. Under pcr it answers once, for X' X w, of least squares "
     "only; under gc, cgc, agc, g-cgc, g-agc, bcc, replication and uncoded "
     "once, with sums of the gradients of its parts of the points. ignore and "
     "distr-bgd make do with the parts that there are, which is not exact. "
     "A sparse X (.mtx, .libsvm, .svm) stays so under pcr and elastic. "
     "Labels may stand in a row or in a column; y may be left out where the file "
     "of X has labels, as LIBSVM's have, which otherwise are not looked at. "
     "The end is reported with R^2, accuracy or explained deviance. Descent that "
     "has not converged is no "
     "failure: a remark says what to try, converged in --json is false, and "
     "the weights are written. sgd stops after --iterations.",
     "kofn regress X.npy y.npy -o w.npy --loss logistic --l2 1e-3  "
     "any four of eight may vanish\n"
     "kofn regress points.libsvm -o w.npy --loss logistic  points and labels "
     "of one file, as LIBSVM has them\n"
     "kofn regress X.npy y.npy -o w.npy --intercept --scale --test Xt.npy "
     "yt.npy  columns of different units, and points held out\n"
     "kofn regress X.npy y.npy -o w.npy --optimizer sgd --batches 20 "
     "--iterations 200  ten times through the points\n"
     "kofn regress X.npy y.npy -o w.npy -s pcr:r=4 --optimizer nesterov  "
     "least squares, the fewest answers\n"
     "kofn regress X.npy y.npy -s gc:d=3 -w straggle=0.1 --verify "
     "--history h.csv  gradient coding, two stragglers in every eight\n"
     "kofn regress X.npy y.npy -s agc:d=3 -w straggle=0.1  messages as short "
     "as the stragglers of the round allow",
     IN_REGRESS, 1, 2, cmd_regress},
    {"train", "X [y]", "train a dense network to tell y from the rows of X",
     "Gradient descent by batches, as PyTorch's SGD. Workers have the points, a "
     "few parts of them each, are sent the weights with every step, and answer "
     "with coded sums of the gradients of their parts: any two of eight may "
     "straggle or be gone (gc:d=3), and with gc, cgc, agc, g-cgc, g-agc, bcc, "
     "replication and uncoded the steps are those of a training without workers. "
     "With elastic, gpd, polydot, matdot, polynomial and grid workers have the "
     "weights instead, coded, for the whole run: every product of a step is theirs. "
     "y holds labels 0, 1, ... or, with --cost squares, numbers; there is none "
     "with --autoencoder. With --masterless nodes among equals hold the points and "
     "coded weights, by gpd, polydot, matdot, polynomial or grid (gpd). --output is "
     "a folder with model.json and the weights.",
     "kofn train X.npy y.npy -o model --layers 64-32-10 --epochs 5  a layer of 32\n"
     "kofn train train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz -o model "
     "--layers 784-128-10 --activation relu --momentum 0.9 --epochs 5 --test "
     "t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz  MNIST as it comes\n"
     "kofn train X.npy y.npy -o model --layers 64-32-10 --epochs 50 -p processes "
     "--checkpoint C --resume --history h.csv  goes on where it was\n"
     "kofn train X.npy y.npy -o model --layers 64-256-10 -s gpd:m=2,n=2,p=1 --verify  "
     "weights live with the workers\n"
     "kofn train X.npy y.npy -o model --layers 64-256-10 --masterless  and nobody is "
     "in charge; with --errors adversarial nodes may be wrong\n"
     "kofn train X.npy --autoencoder --layers 64-16-64 --sparsity 0.05 "
     "--sparsity-weight 3 -o model  sparse codes",
     IN_TRAIN, 1, 2, cmd_train},
    {"predict", "X w | DIR X",
     "what a model that regress or train made says of the rows of X",
     "The mean of y for each row: x w for least squares, the chance of label 1 "
     "for logistic regression, the expected count for Poisson's. Weights that "
     "are longer than a row by one end with an intercept. Of a network, whose "
     "folder stands first, the label of each row or the numbers that come out. "
     "Computed here, without workers.",
     "kofn predict X.npy w.npy -o y.npy  a number a row\n"
     "kofn predict model Xt.npy -o y.npy --labels yt.npy  with the network in that "
     "folder\n"
     "kofn predict Xt.npy w.npy --loss logistic --labels yt.npy  how many of "
     "these are told right\n"
     "kofn predict Xt.npy a.npy --kernel rbf:s=3 --points X.npy -o y.npy  with "
     "the kernel and the points that were fitted to",
     IN_PREDICT, 2, 2, cmd_predict},
    {"check", "A B C", "is C = A B, from wherever it came?",
     "Compares random sums of the rows and the columns of C with those of A B, in "
     "a few passes over the three, and computes again where they disagree: rows, "
     "columns and entries that are wrong are named, and corrected in --output "
     "unless more is wrong than is worth it. An entry is right if it is no "
     "further from the exact one than any order of summation may leave it; what "
     "may have been missed is told, as a share of the norm of a row of A times "
     "that of a column of B. A may be sparse (.mtx). Ends with 5 when C is not "
     "A B, corrected or not.",
     "kofn check A.npy B.npy C.npy  of a GPU, of a vendor's BLAS, of another "
     "cluster\n"
     "kofn check A.npy B.npy C.npy -o fixed.npy  and the right product\n"
     "kofn check A.npy B.npy C.npy --tolerance 1e-3  computed in TF32; by coded "
     "workers rather 1e-12\n"
     "kofn check A.npy B.npy C.npy --json  every entry that is wrong",
     IN_CHECK, 3, 3, cmd_check},
    {"gen", "matrix|vector|graph|uniform|pattern SIZE...",
     "inputs to try things on",
     "matrix ROWS COLS and vector N hold normal numbers, uniform ROWS COLS "
     "numbers in [0, 1); graph NODES ARCS is an R-MAT graph. Sizes may end in "
     "k, M or G. pattern MODEL ROUNDS WORKERS says who is slow in which round, "
     "for --pattern: iid:p=P, each by chance; fritchman:a=A,b=B,M=M, each in "
     "bursts of M states or more; arbitrary:N=N,W=W, together at most N times "
     "in any W rounds; bursty:B=B,W=W,eps=E, in any W rounds at most E workers, "
     "each within B rounds. The last two take style=max, onoff, uniform or "
     "sticky.",
     "kofn gen matrix 4000 1000 -o X.npy --seed 1  32 MB of normal numbers\n"
     "kofn gen vector 1000 -o w.npy  a vector to go with it\n"
     "kofn gen graph 100k 1M -o G.mtx  skewed degrees, as on the web\n"
     "kofn gen pattern fritchman:a=0.2,b=0.5,M=2 1000 8 -o slow.csv  bursts of "
     "two rounds or more",
     IN_GEN, 2, 4, cmd_gen},
    {"schemes", "[NAME[:key=value,...]]", "what codes there are",
     "Every scheme with its parameters; for one scheme what it needs and costs "
     "with the workers given.",
     "kofn schemes  the list\n"
     "kofn schemes elastic:k=6 -n 12  threshold, storage, load and noise\n"
     "kofn schemes gpd:m=2,n=2,p=2  with as many workers as it needs\n"
     "kofn schemes --json  the same for machines",
     IN_SCHEMES, 0, 1, cmd_schemes},
    {"worker", "ADDRESS", "work for the coordinator at this address",
     "Comes to a computing command that was started with --port and its own "
     "address, stores a coded block and works until it is dismissed. May be "
     "started before the coordinator, and at any time while it runs; connects "
     "again by itself when the connection is lost, and keeps its block over a "
     "restart of the coordinator with --checkpoint and --resume. SIGTERM asks "
     "it to go. Its BLAS computes on threads of its own, OpenBLAS on one a "
     "core, unless OPENBLAS_NUM_THREADS (BLIS_NUM_THREADS, MKL_NUM_THREADS) "
     "says otherwise.",
     "kofn worker tcp://head:5555 --keys keys  until dismissed\n"
     "kofn worker tcp://head:5555 --keys keys --grace 20  on a machine that is "
     "taken away with a notice\n"
     "kofn worker head@tcp://head:5555 --tls-ca ca.crt --tls-cert w1.crt "
     "--tls-key w1.key  with certificates of another CA, for the one called "
     "head there\n"
     "kofn worker tcp://head:5555 --insecure --data-path /data  the input "
     "files are on a shared disk\n"
     "kofn worker ipc:///tmp/kofn.sock  on the coordinator's machine",
     IN_WORKER, 1, 1, cmd_worker},
    {"keygen", "DIR", "keys for a coordinator and its workers",
     "Makes coordinator.key, coordinator.crt, worker.key and "
     "worker.crt in the folder, the secret ones readable by their owner "
     "only. The coordinator needs the folder as it is; workers need "
     "worker.key, worker.crt and coordinator.crt. Who has the one key of all workers "
     "can be as many of them as it likes: with --errors give every worker its "
     "own by --worker. Keys that are there already are never replaced.",
     "kofn keygen keys  then --port tcp://0.0.0.0:5555 --keys keys\n"
     "kofn keygen keys --worker anna  folder keys/anna is for her machine\n"
     "rm keys/anna.crt  revokes that, also while a coordinator runs",
     IN_KEYGEN, 1, 1, cmd_keygen},
    {"replay", "JOURNAL", "run the coordinator again from a journal",
     "Feeds the recorded events to a fresh coordinator and compares what it "
     "decides with what was decided, down to the coefficients.",
     "kofn replay run.jsonl  says where the first difference is, if any\n"
     "kofn replay run.jsonl --step --state  every decision, and what it rests on",
     IN_REPLAY, 1, 1, cmd_replay},
    {"trace", "JOURNAL", "draw a run from its journal",
     "Runs the coordinator again, as kofn replay does, and writes what --trace "
     "and --record would have written while it ran. Of a run that was killed it "
     "shows all until then. Nothing is written when a decision is another.",
     "kofn trace run.jsonl -o run.json  for ui.perfetto.dev or chrome://tracing\n"
     "kofn trace run.jsonl --record was.csv  who was how slow, for --pattern",
     IN_TRACE, 1, 1, cmd_trace},
    {.name = NULL},
};
