/* commands.c -- the table of all commands: what they are for, and examples.
 *
 * It is constant. Their options are in table.c. */
#include "cli.h"

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
     "least squares only. Under gc, cgc, agc, bcc, "
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
     "to divide the work. (1) gc, cgc, agc, bcc, "
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
    {"compare", "COMMAND ... -s NAME -s NAME",
     "a command under several codes, with the same faults",
     "COMMAND is matvec, matmul, power, pagerank, regress or train, with its "
     "operands and options. It runs once with each code, one after another. "
     "Equal seeds give equal random faults. The table has "
     "half and nine tenths of the rounds, the time of all, and how many times "
     "that of the fastest it is. The exit code is that of the first run that "
     "fails.",
     "kofn compare matvec X.npy w.npy -n 8 -r 50 -w straggle=0.1 -s elastic:k=6 "
     "-s mds:k=6 -s uncoded  threads of this machine\n"
     "kofn compare matvec X.npy w.npy -p sim -n 100 -r 20 -w leave=0.01 -s "
     "elastic:k=50 -s elastic:k=90 --svg k.svg  simulated machines, and a drawing",
     IN_COMPARE, 0, 0, NULL},
    {"sweep", "COMMAND ... --over NAME=VALUES",
     "a command with all values of options or parameters",
     "COMMAND is as for compare. NAME is an option of the command, such as n, "
     "rounds or seed, s for the scheme, or a parameter of the scheme that --scheme "
     "names. The command runs with every combination of the values; the "
     "last NAME varies fastest. Each row is written when its run is over. The "
     "exit code is the largest of the runs.",
     "kofn sweep matvec X.npy w.npy -n 8 -r 50 -w straggle=0.2 -s elastic --over "
     "k=2..8 --svg k.svg  which k is best\n"
     "kofn sweep matvec X.npy w.npy -p sim -s mds:k=4 --over n=6..16:2 --over "
     "seed=1..5 --csv runs.csv  more workers, with five seeds each\n"
     "kofn sweep matvec X.npy w.npy -r 20 --over s=elastic,mds,uncoded --over "
     "straggle=0..0.5:0.1  codes and chances of slow workers",
     IN_SWEEP, 0, 0, NULL},
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
    {"report", "JOURNAL...", "make a page about runs from their journals",
     "Runs the coordinator again, as kofn replay does, and writes a page of "
     "HTML with every worker in every round, as --report does. Several runs are "
     "beside each other. Of a run that "
     "was killed it shows the part before that. Names of workers, bytes and "
     "errors are not in a journal. Writes nothing if a decision differs from "
     "the recorded one.",
     "kofn report run.jsonl -o run.html  for a browser\n"
     "kofn report elastic.jsonl mds.jsonl -o both.html  two runs beside each other",
     IN_REPORT, 1, 8, cmd_report},
    {.name = NULL},
};
