/* cli.h -- the command kofn: tables, options, reports.
 *
 * One table of commands and one of options feed the parser, --help, the manual
 * and the check that every option is documented.
 *
 * A command frees what it opens, by the function declared next to the one that
 * opened it. Files of this room use the library through its public headers
 * only. */
#ifndef KOFN_CLI_H
#define KOFN_CLI_H

#include <kofn.h>
#include <kofn/io.h>
#include <kofn/net.h>
#include <kofn/peer.h>
#include <kofn/scheme.h>
#include <kofn/train.h>

#include <jansson.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>

/* The exit codes of the process. */
enum {
    EXIT_EXACT = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2, /* usage error, or bad input */
    EXIT_TOOFEW = 4,
    EXIT_CORRUPT = 5
    /* 128 + n: ended by signal n */
};

/* Ends a function with the exit code of a call that has failed. */
#define TRY_CODE(call)                                                         \
    do {                                                                       \
        int try_code_ = (call);                                                \
        if (try_code_)                                                         \
            return try_code_;                                                  \
    } while (0)

/* ---- options ------------------------------------------------------------- */

struct cli_command;

#define CLI_SPEC 300 /* bytes of the text of a scheme */

typedef struct cli_args {
    const struct cli_command *command;
    const char *output, *scheme, *port, *events;
    char suited[40], widths[200]; /* scheme that kofn chose; layers of train */
    size_t workers, rounds, max_iter, rows;
    bool scheme_given, workers_given;
    kofn_faults faults;
    kofn_options job;
    uint64_t seed;
    double damping, tol;
    double tolerance; /* check */
    /* pagerank: how a list of edges is read; largest ranks to print; file for
     * the names of nodes, or NULL */
    bool weights, undirected, directed, isolated;
    size_t top;
    const char *ids;
    const char *personalize, *sinks, *start; /* files, or NULL */
    bool damping_given;
    const char *dtype;
    bool verify, json, quiet, help, help_all, all, show, resume, step, state;
    const char *checkpoint; /* a folder; NULL: no checkpoints */
    bool masterless;
    int decode;        /* kofn_decoding */
    size_t confirm;    /* as in kofn_peer_options; 0: not given */
    const char *reach; /* addresses separated by commas; allocated */
    char *reached;
    kofn_regress_options regress;
    const char *kernel, *history, *test_X, *test_y;
    bool standardise, no_intercept; /* regress; the first is --scale */
    const char *label;              /* column of the labels */
    const char *labels, *points;    /* predict */
    size_t columns; /* predict: of the fitted points; 0: those of X */
    bool shares;
    kofn_net_shape net; /* train */
    kofn_train_options train;
    const char *layers, *hidden; /* of train; NULL: not given */
    bool activation_given, loss_given, last_given;
    double unit; /* points are divided by it; 0: by the largest magnitude of X,
                    if that is above 1 */
    unsigned every; /* steps between checkpoints; 0: those of an epoch */
    const char *faults_text;  /* the last --faults as given ... */
    char faults_given[512];   /* ... and all of them, separated by commas */
    const char *pattern_text; /* --pattern as given */
    kofn_matrix pattern;      /* the pattern of pattern_text */
    double factor;            /* gen pattern */
    size_t least;             /* workers that suffice to begin; 0: all */
    const char *keys, *data_path;
    const char *tls_ca, *tls_cert, *tls_key;
    const char *name;   /* worker: for people; NULL: none */
    const char *worker; /* keygen: the worker that gets a key; NULL: keys for
                           all workers */
    size_t memory;
    const char *from_journal, *fleet; /* plan: a file, an address or NULL */
    double deadline;                  /* plan: seconds; 0: none */
    size_t faulty;                    /* plan: workers that must be found */
    size_t tolerate;                  /* workers that may be lost */
    bool tolerate_given;
    char loaded[CLI_SPEC];    /* the scheme of a shared object */
    char tolerated[CLI_SPEC]; /* the scheme with its parameter for that */
    double grace;             /* seconds */
    bool insecure, staged, once, below_given, per_principal_given;
    bool with_parent;
    const char *log;                            /* a file, - or NULL */
    const char *metrics_listen;                 /* HOST:PORT or NULL */
    int log_level;                              /* cli_level */
    const char *preempt_file, *preempt_command; /* NULL: none */
    struct kofn_transport *mpi;   /* already started; NULL: none */
    const char *csv, *svg, *over; /* compare, sweep: files or NULL */
    const char *setting;          /* the last --set as given */
    const char *operand[8];
    int operands;
    char *const *words; /* all words of the command line, to NULL */
} cli_args;

/* Bits for the commands that an option belongs to. */
enum {
    IN_MATVEC = 1 << 0,
    IN_MATMUL = 1 << 1,
    IN_POWER = 1 << 2,
    IN_PAGERANK = 1 << 3,
    IN_GEN = 1 << 4,
    IN_SCHEMES = 1 << 5,
    IN_REPLAY = 1 << 6,
    IN_TRACE = 1 << 7,
    IN_REGRESS = 1 << 9,
    IN_WORKER = 1 << 10,
    IN_KEYGEN = 1 << 11,
    IN_PREDICT = 1 << 12,
    IN_CHECK = 1 << 13,
    IN_TRAIN = 1 << 14,
    IN_STREAM = 1 << 15,
    IN_STATUS = 1 << 16,
    IN_DRAIN = 1 << 17,
    IN_PLAN = 1 << 18,
    IN_REPORT = 1 << 19,
    IN_COMPARE = 1 << 20,
    IN_SWEEP = 1 << 21,
    IN_TRIALS = IN_COMPARE | IN_SWEEP,
    IN_ASK = IN_STATUS | IN_DRAIN,
    IN_PRODUCT = IN_MATVEC | IN_MATMUL,
    IN_ITERATE = IN_POWER | IN_PAGERANK,
    IN_RUN = IN_PRODUCT | IN_ITERATE | IN_REGRESS | IN_TRAIN,
    IN_JOB = IN_RUN | IN_STREAM
};

/* How an option's text is stored: the kinds of a job's options, and more. */
typedef enum cli_kind {
    CLI_FLAG = KOFN_OPTION_FLAG,     /* a bool, set if the option is given */
    CLI_CHOICE = KOFN_OPTION_CHOICE, /* an int: `least` plus the word's place */
    CLI_UNSIGNED = KOFN_OPTION_UNSIGNED, /* an unsigned */
    CLI_SIZE = KOFN_OPTION_SIZE, /* a size_t or uint64_t; most 0: 2^63 - 1 */
    CLI_REAL = KOFN_OPTION_REAL,
    CLI_SECONDS = KOFN_OPTION_SECONDS,
    CLI_FACTOR = KOFN_OPTION_FACTOR,
    CLI_TERM = KOFN_OPTION_TERM,
    CLI_FILE = KOFN_OPTION_FILE, /* const char *, not empty */
    CLI_DIR,
    CLI_TEXT, /* const char *                                              */
    CLI_WORD, /* const char *, one of the words of `arg` */
    CLI_PAIR, /* const char *, and the argument after it, stored at `given` */
    CLI_JOB   /* as the library's table of a job's options says */
} cli_kind;

typedef struct cli_option {
    char letter; /* letter of the short form; 0: none */
    const char *name, *arg, *help;
    unsigned in;
    cli_kind kind;
    double least, most; /* range of a number */
    size_t at;          /* offset in cli_args */
    size_t given; /* offset of a bool that is set if the option is given; 0:
                     none */
    /* Does more than storing the value; NULL: storing is all. */
    int (*check)(cli_args *a, const struct cli_option *o, const char *text);
} cli_option;

typedef struct cli_command {
    const char *name, *operands, *summary, *text;
    const char *examples; /* one per line: the command, two blanks or more, a
                             description */
    unsigned bit;
    int least, most;         /* number of operands */
    int (*run)(cli_args *a); /* NULL: compare and sweep */
} cli_command;

const cli_option *cli_options(void);     /* ends with a NULL name */
extern const cli_command cli_commands[]; /* ends with a NULL name */

/* Checks of single options for the table. They return 0, or the exit code
 * after a message. */
int cli_check_port_name(cli_args *a, const cli_option *o, const char *text);
int cli_add_reach(cli_args *a, const cli_option *o, const char *text);
int cli_read_faults(cli_args *a, const cli_option *o, const char *text);
/* Checks all options together, after they are read, and fills in defaults that
 * depend on the port. */
int cli_check_together(const cli_command *c, cli_args *a);
/* Returns the arguments if no option is given. */
cli_args cli_defaults(void);
/* Reads a whole number with an optional k, M or G. */
bool cli_whole(const char *text, size_t most, size_t *out);
/* Returns 0, or the exit code after a message. */
int cli_parse(const cli_command *c, int argc, char **argv, cli_args *a);

/* ---- failing ------------------------------------------------------------- */

/* Prints "kofn: text" on stderr, as one line. Returns `code`; 0 is for a
 * remark. */
int cli_say(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns the exit code for a status other than KOFN_OK. */
int cli_exit_code(kofn_status st);
/* Prints the library's message and returns the exit code. Prints nothing and
 * returns 0 for KOFN_OK; so do the functions below. */
int cli_fail(kofn_status st);
/* Does the same for a file that could not be read, which is bad input. */
int cli_fail_input(kofn_status st);

/* ---- output -------------------------------------------------------------- */

/* Draws the line of progress on stderr in place of the last one; erases it. */
void cli_draw(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_erase(void);
/* Reads a whole file, which the caller frees. Returns 0, or the exit code after
 * a message. */
int cli_read_text(const char *path, char **text, size_t *n);
/* Put a value into the object o. */
#define PUT(key, value) json_object_set_new(o, key, value)
#define PUT_WHOLE(key, n) PUT(key, json_integer((json_int_t)(n)))
/* Returns null if x is not finite. */
json_t *cli_number(double x);
json_t *cli_list(const size_t *at, size_t n);
/* Prints o on stdout and frees it. */
void cli_print_json(json_t *o);
/* Counts failed allocations of Jansson, from the start of the process. Jansson
 * 2.14 may omit a key silently if memory is short; the count reveals it. */
void cli_json_begin(void);
size_t cli_json_lost(void);
/* Prints a line of news to stderr, without control characters: other processes
 * may have worded parts of it. */
void cli_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Returns the reason of the last failure that cli_say printed. */
json_t *cli_error_json(void);
/* With --json, prints an object for a failure before there was anything to
 * report. */
void cli_print_failure(const cli_args *a);
/* Checks that no file to be written is also read, or written twice. Inputs are
 * mapped: shortening one would end the process. Returns 0, or the exit code
 * after a message. */
int cli_check_names(const cli_args *a);
/* Checks, before any work is done, that --output can be written. Later
 * failures remain possible. Returns 0, or the exit code after a message. */
int cli_check_output(const cli_args *a, bool sparse);
/* Checks one path in the same way. Its name must end in .npy, .csv or, if
 * mtx_too, .mtx. `before` begins the message. */
int cli_check_path(const char *before, const char *path, bool mtx_too);
/* Checks that the format of --output has complex numbers. */
int cli_check_complex(const cli_args *a);
/* Returns 0 if path is a folder with this access (R_OK, ...), else an errno. */
int cli_no_folder(const char *path, int mode);
/* Writes the result unless --output is missing. Returns 0, or the exit code
 * after a message. */
int cli_write(const cli_args *a, kofn_operand out, unsigned dims);
/* Does the same with a complex matrix, as kofn_write_complex takes it. */
int cli_write_complex(const cli_args *a, const kofn_matrix *out, unsigned dims);
/* Prints the library's message about a file that could not be written. Returns
 * the exit code. */
int cli_wrote(kofn_status st);

/* ---- the process (process.c) --------------------------------------------- */

/* Prepares descriptors and memory; call it first. */
void cli_begin(void);
double cli_begun(void); /* time of kf_clock_seconds() */
/* What the command does besides its job. cli_spent adds the time since `since`,
 * a time of kf_clock_seconds(), unless that is NAN; it returns the sum. */
typedef enum cli_phase { CLI_VERIFYING, CLI_WRITING, CLI_PHASES } cli_phase;
double cli_spent(cli_phase p, double since);
/* cli_signals lets SIGINT, SIGTERM and SIGHUP end the process at once. After
 * cli_guard(true) they are only remembered. */
void cli_signals(void);
void cli_guard(bool on);
/* Remembers signals as well, but ends the process if cli_caught is not called
 * within two seconds. */
void cli_guard_promptly(void);
int cli_caught(void); /* 0, or the remembered signal */
/* Makes the end of the process that started this one like a SIGTERM. After
 * `grace` seconds and some more this process ends at the latest. Returns 0, or
 * the exit code after a message if that process has ended already. */
int cli_end_with_parent(double grace);
/* Replaces this process by the same program with other arguments. Returns only
 * if that fails. */
void cli_again(char **argv);

/* ---- the BLAS ------------------------------------------------------------ */

/* Restarts the command if OpenBLAS chose kernels that are too slow. */
void cli_fast_blas(char **argv);
/* Warns, before computing, if the BLAS is many times too slow, and says what
 * to install or set. */
void cli_tell_blas(const cli_args *a);
/* Report, at the end, which BLAS computed and whether another would be faster.
 */
void cli_report_blas(const cli_args *a);
void cli_put_blas(const cli_args *a, json_t *o);

/* ---- commands (the run part of the table) -------------------------------- */

/* Lists all commands, for macros. cmd_product is matvec and matmul;
 * cmd_iterate is power and pagerank. */
#define CLI_COMMANDS(X)                                                        \
    X(cmd_product)                                                             \
    X(cmd_iterate)                                                             \
    X(cmd_gen)                                                                 \
    X(cmd_schemes)                                                             \
    X(cmd_replay)                                                              \
    X(cmd_trace)                                                               \
    X(cmd_report)                                                              \
    X(cmd_regress)                                                             \
    X(cmd_predict)                                                             \
    X(cmd_check)                                                               \
    X(cmd_train)                                                               \
    X(cmd_stream)                                                              \
    X(cmd_worker)                                                              \
    X(cmd_keygen)                                                              \
    X(cmd_status)                                                              \
    X(cmd_drain)                                                               \
    X(cmd_plan)
#define CLI_DECLARE(name) int name(cli_args *a);
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

/* Returns the scheme named before the colon, or NULL (cmd_schemes.c). */
const kofn_scheme *cli_scheme_of(const char *spec);

/* ---- reports (caption.c) ------------------------------------------------- */

/* Adds the command line to the report of --report, and the measured error
 * unless it is negative. */
kofn_status cli_caption(kofn_job *job, const cli_args *a, double error);
/* Returns the command line as a shell reads it, for free(). */
char *cli_command_line(const cli_args *a);

/* ---- patterns (pattern.c) ------------------------------------------------ */

/* Puts the pattern of --pattern into the fault model. Returns 0, or the exit
 * code after a message. */
int cli_make_pattern(cli_args *a);
int cli_gen_pattern(const cli_args *a, size_t rounds, size_t workers);

/* ---- ports (ports.c, cmd_worker.c) --------------------------------------- */

/* The transports that --port may name, one row each, at the end of ports.c.
 * Other files of the command never ask which one it is. */
typedef struct cli_transport {
    const char *name; /* the part of an address in front of :// */
    const char *form; /* how it is given; NULL: by its name */
    bool address;     /* remote processes connect to it, or are reached by it */
    bool here;        /* workers, or all nodes of a mesh, run in this process */
    bool ours; /* this command starts the workers: one BLAS thread each */
    bool simulated;
    bool nodes;        /* nodes of a mesh can reach each other over it */
    kofn_time silence; /* a peer silent for this long counts as lost; 0: the
                          default */
    /* Opens the port if nothing else is needed; NULL: use `open`. */
    kofn_status (*port)(kofn_port **out, size_t workers, const kofn_faults *w);
    /* Returns 0, or the exit code after a message. */
    int (*open)(const cli_args *a, const kofn_problem *pb, uint64_t job,
                kofn_port **out);
    /* `start` runs before anything is read; `end` gets the exit code when all
     * is done. NULL: nothing to do. */
    int (*start)(cli_args *a, bool *is_worker);
    int (*end)(int code);
} cli_transport;
/* Returns NULL if no transport has this name or address. */
const cli_transport *cli_transport_of(const char *port);
/* Returns the forms of the transports that fit, or of all: "a, b or c". Valid
 * until the next call. */
const char *cli_transport_forms(bool (*fits)(const cli_transport *t));
/* Opens the port of --port. Returns 0, or the exit code after a message. */
int cli_port_open(const cli_args *a, const kofn_problem *pb, uint64_t job,
                  kofn_port **out);
/* A folder for a socket, and the lock that protects it (folder.c). */
typedef struct cli_folder {
    char path[64];
    int lock;
} cli_folder;
int cli_folder_make(cli_folder *f); /* 0, or an exit code after a message */
void cli_folder_remove(cli_folder *f);
/* Returns the options of the network: keys, or the permission to run without.
 */
kofn_net_options cli_net_options(const cli_args *a, size_t body_max);
/* Warns, on the first rank of several, if mpirun started the command without
 * --port mpi: each rank then does all of the work alone. */
void cli_ports_look_for_mpi(const cli_args *a);
void cli_ports_end(
    void); /* waits for the processes that were started; the last call */

/* ---- workers (serve.c) --------------------------------------------------- */

/* Works for the coordinator at t until it is dismissed. `net`: t is a
 * connection of <kofn/net.h>. Returns the exit code. */
int cli_serve(const cli_args *a, struct kofn_transport *t, bool net);

/* ---- checkpoints (checkpoint.c) ------------------------------------------ */

/* A folder with everything that a restarted job needs to resume; NULL: no
 * checkpoints. docs/operate.md describes the files. */
typedef struct checkpoint checkpoint;

/* Claims the folder of --checkpoint and, with --resume, reads it. `spec`: the
 * scheme with its defaults. Returns 0, or the exit code after a message. */
int checkpoint_open(checkpoint **out, const cli_args *a, const char *spec);
/* Returns a number that identifies the job across restarts. Workers use it to
 * recognise a job whose blocks they still hold. 0: no checkpoints. */
uint64_t checkpoint_job(const checkpoint *c);
/* Read the checkpoint: the number of completed rounds or iterations; the state
 * after them, if it has this shape, else the exit code after a message; and a
 * named number, NaN if it is missing. */
unsigned checkpoint_done(const checkpoint *c);
int checkpoint_state(const checkpoint *c, kofn_matrix *out);
double checkpoint_number(const checkpoint *c, const char *name);
/* Returns the number of rounds or iterations after which the state on disk is;
 * 0: none. */
unsigned checkpoint_kept(const checkpoint *c);
/* Says after a signal what was kept, and the command that continues
 * (interrupted.c). `c`: NULL if there is none. */
void cli_interrupted(const cli_args *a, const checkpoint *c);
/* Replaces the kept state by this one and frees `numbers`. If that fails, it
 * prints a message, and the job continues with the older state on disk. */
void checkpoint_save(checkpoint *c, unsigned done, const kofn_matrix *state,
                     json_t *numbers);
/* Returns the checkpoint's part of --json. */
void checkpoint_report(const checkpoint *c, json_t *o);
/* Closes the folder. Returns `code`, or 1 after a message if code is 0 and the
 * last state was not kept. Removes the files of a job that failed before its
 * first state. */
int checkpoint_end(const checkpoint *c, int code);
void checkpoint_free(checkpoint *c);

/* ---- what running commands share (session.c) ----------------------------- */

/* The result of --verify. */
typedef struct cli_exactness {
    double rel_error; /* below 0: not verified */
    double row_error; /* the largest of an entry, relative to |A| |B| there */
    size_t worst_row; /* the row of that entry */
} cli_exactness;

/* Times of a session, by the wall clock. */
typedef struct session_times {
    double started, drawn, logged; /* drawn, logged: when that was last done */
    double opened, first, last;    /* the job; its first round, its last one */
    double tell; /* when to report next which workers are missing */
} session_times;

/* A job, its plan, and what its report will say. */
typedef struct session {
    const cli_args *args;
    kofn_plan *plan[KOFN_NET_MOST]; /* one per operand */
    size_t operands;
    kofn_job *job;
    kofn_fault_event *events;
    checkpoint *checkpoint;
    json_t *per_round, *per_iteration;
    unsigned iterations;
    cli_exactness found;
    json_t *figures; /* figures of each step, for --json; NULL: not wanted */
    kofn_status status;
    uint64_t moved; /* bytes transferred until time.tell */
    size_t expected_rounds, block_rows;
    session_times time;
    char remark[80];    /* shown in the line of progress */
    size_t events_left; /* events of the file that are still to be shown */
    const kofn_fault_event *next_event;
    size_t width, joiners;
    unsigned shown; /* rounds */
} session;

struct cli_training;

/* Says what each worker will store, and refuses a job that does not fit into
 * this machine's memory (memory.c). Returns 0, or the exit code after a
 * message. */
int cli_check_memory(const cli_args *a, const kofn_problem *pb,
                     const kofn_plan_info *info);
/* Writes three figures and a unit. */
void cli_bytes_text(char out[20], double bytes);
/* Writes a number of seconds in a few characters. */
void cli_seconds_text(char out[16], double s);
/* Prints one line for a round (show.c). A negative change is not printed. */
void show_round(session *s, const kofn_report *rep, double change);

/* Opens the job. `coded`: a training on coded weights has one operand per
 * layer, and `pb` only identifies the job; else NULL. */
int session_open(session *s, const cli_args *a, const kofn_problem *pb,
                 size_t rounds, const struct cli_training *coded);
/* Reports which workers are missing, after two seconds and then every ten. */
void session_tell_waiting(session *s, bool quiet);
/* Call it when a round is over, or during a round with rep == NULL. Draws
 * progress. */
void session_round(session *s, const kofn_report *rep, double change);
/* Adds every field of a report, and the workers that were wrong or did not
 * answer. */
/* Writes "worker 5 (node7)", or "worker 5" without a name. Returns `out`. */
#define SHOW_TITLE 300
const char *show_title(const session *s, size_t worker, char out[SHOW_TITLE]);
void session_put_report(const session *s, const kofn_report *r, json_t *o);
/* Reports, frees everything, and returns the exit code. */
int session_close(session *s, int code);

/* ---- matrices (matrix.c) ------------------------------------------------- */

/* Allocates zeros in double precision, freed by the caller. `what` is named in
 * the message. Returns 0, or the exit code after a message; so does the next
 * function. */
int cli_room(kofn_matrix *out, size_t rows, size_t cols, const char *what);
/* Copies a into double precision, each number divided by `unit`. */
int cli_divided(const kofn_matrix *a, double unit, kofn_matrix *out);
/* Writes the transpose in double precision to memory that the caller frees, by
 * free and cli_sparse_free. Returns 0, or the exit code after a message. */
int cli_transposed(const kofn_matrix *a, kofn_matrix *out);
int cli_sparse_transposed(const kofn_sparse *s, kofn_sparse *out);
void cli_sparse_free(kofn_sparse *s);
/* Copies numbers into a matrix of the same shape and type. */
void cli_copy(const kofn_matrix *from, const kofn_matrix *to);
/* Returns an element of a matrix of either type. */
double cli_element(const kofn_matrix *a, size_t i, size_t j);
/* Returns the largest magnitude; NaN if an element is NaN. */
double cli_largest(const kofn_matrix *a);
/* Returns ||a - b||_F / ||b||_F. */
double cli_relative_error(const kofn_matrix *a, const kofn_matrix *b);

/* ---- regression: files and points (cmd_predict.c, points.c) -------------- */

/* A dense matrix from a file, copied if it is not in double precision, or if
 * its labels are named 0 and 1 here. */
typedef struct input {
    const char *label; /* the column of labels; NULL: none */
    kofn_file *file;
    double *copy;
    double *classes;
} input;
int input_matrix(input *in, kofn_matrix *out, const char *path);
/* Reads points with the columns of X. Sparse points may have fewer columns and
 * are filled up. */
int input_like(input *in, kofn_matrix *out, const char *path,
               const kofn_matrix *X, const char *X_path);
/* Copies sparse rows into dense ones with `cols` columns, in memory of the
 * input. */
int input_fill(input *in, kofn_matrix *out, const kofn_sparse *s, size_t cols);
/* Reads points of any width. Sets *sparse if the file is sparse; then *out has
 * no data. */
int input_points(input *in, kofn_matrix *out, const kofn_sparse **sparse,
                 const char *path);
/* Reads the labels of a file with points and labels, or else its dense matrix.
 */
int input_targets(input *in, kofn_matrix *out, const char *path);
/* Reads a row or a column of labels, one per row of X. */
int input_labels(input *in, kofn_matrix *y, const char *path,
                 const kofn_matrix *X, const char *X_path);
/* The two labels that stand for 0 and 1; equal: labels are as the library takes
 * them. */
typedef struct classes {
    double label[2];
} classes;
/* Finds the classes of labels with two different values. */
void classes_find(classes *c, const kofn_matrix *y);
/* Replaces labels by 0 and 1, in memory of the input. Refuses a third value. */
int classes_apply(const classes *c, input *in, kofn_matrix *y,
                  const char *path);
/* Says which labels are the classes. */
void classes_tell(const classes *c, const char *path);
/* Refuses --label together with another file of labels, NULL if there is none.
 */
int cli_check_label(const cli_args *a, const char *labels);
/* Turns a row of numbers into a column. */
void input_column(kofn_matrix *m);
/* Returns the exit code after a message. */
int input_refuse_sparse(const char *path);
void input_free(input *in);
/* Returns the name of kofn_fit.share for this loss. */
const char *cli_share_name(kofn_loss loss);

/* The columns of the original points of a model, to prepare others in the same
 * way. */
typedef struct points {
    size_t columns;
    bool intercept, scale;
    double *mean, *deviation; /* NULL: unknown */
    size_t
        *ptr; /* row pointers of sparse points with an added column of ones */
    uint32_t *col;
    double *val;
} points;
int points_know(points *p, const kofn_matrix *X, bool intercept, bool scale);
/* Prepares points as for the fit, in new memory. */
int points_prepare(const points *p, const kofn_matrix *X, kofn_matrix *out);
/* Prepares sparse points, which cannot be scaled. *out is valid until p is
 * freed. */
int points_prepare_sparse(points *p, const kofn_sparse *X, bool intercept,
                          kofn_sparse *out);
/* Convert weights to those of the columns of X as it was, and back. */
void points_undo(const points *p, const double *w, double *out);
void points_redo(const points *p, const double *w, double *out);
/* Returns the ratio of the largest to the smallest spread of a column; 1 if
 * columns were scaled. */
double points_spread(const points *p);
void points_free(points *p);

/* ---- --history (history.c) ----------------------------------------------- */

typedef struct history {
    FILE *f;
    const char *path; /* NULL: no history */
    int spoiled;      /* errno of the first failed write, or 0 */
} history;
/* Opens the file: from the beginning, after the line of step `done`, or, with
 * HISTORY_GOES_ON, after all lines. The heading has the caller's columns and,
 * with `reports`, the fields of a report (base/report.h). Returns 0, or the
 * exit code after a message. */
#define HISTORY_GOES_ON UINT_MAX
int history_open(history *h, const char *path, unsigned done,
                 const char *heading, bool reports);
/* Writes the caller's columns, then those of `rep`; NULL: none. */
void history_line(history *h, const kofn_report *rep, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Flushes all lines to disk. Call it before a checkpoint says that their steps
 * are done. */
void history_keep(history *h);
/* Closes the file. Returns `code`, or, if that is 0, the exit code after a
 * failed write. */
int history_close(history *h, int code);

/* ---- networks in folders (model.c) --------------------------------------- */

typedef struct model {
    kofn_net *net;
    double unit; /* points are divided by it first */
} model;
const char *model_activation(kofn_activation f); /* returns its name */
const char *model_loss(kofn_net_loss loss);
/* Write the model into a folder, created if missing, or do nothing if folder
 * is NULL; read it. Return 0, or the exit code after a message. */
int model_write(const char *folder, const model *m);
int model_read(const char *folder, model *m);
void model_free(model *m);

/* A training. Each node of a mesh makes its own copy. */
typedef struct cli_training {
    input file[4];        /* X, y, and the held-out X and y */
    kofn_matrix owned[2]; /* both X, divided by the model's unit */
    const char *label; /* column of the labels; NULL: they are in other files */
    kofn_matrix X, y, test_X, test_y;
    size_t widths[KOFN_NET_MOST + 1];
    kofn_net_shape shape;
    model model;
    kofn_train_options options;
    kofn_training *training;
    session *session;
    kofn_train_step resume;
    kofn_matrix state; /* of a checkpoint */
    history history;
    size_t steps;   /* steps in all */
    unsigned every; /* steps between two checkpoints */
    bool due;       /* a checkpoint is due */
    bool unchecked; /* the due checkpoint waits for a step with checked sums */
    bool verifying; /* runs without workers, to verify */
    bool coded;     /* workers hold coded weights instead of points */
    /* Called on a mesh when the weights are final. Judges, verifies and writes
     * them, and returns the exit code. */
    int (*conclude)(struct cli_training *t, unsigned steps);
} cli_training;

/* Stores the relative error of a against b for --verify. Returns 0, or the
 * exit code after a message if the error is not a number. */
int cli_verify(cli_exactness *to, const kofn_matrix *a, const kofn_matrix *b);
/* Does the same for a stored error. */
int cli_check_error(const cli_exactness *found);
/* The factors of a product. */
typedef struct cli_factors {
    kofn_operand A;
    const kofn_matrix *B;
} cli_factors;
/* Compares with the product computed here. Returns 0, or the exit code after a
 * message. */
int cli_verify_product(const cli_factors *f, const kofn_matrix *out,
                       cli_exactness *to);

#endif
