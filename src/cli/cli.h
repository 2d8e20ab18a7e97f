/* cli.h -- the command kofn: tables, options, reports.
 *
 * One table of commands and one of options feed the parser, --help, the
 * manual and the check that every option is documented.
 *
 * What a command opens it also frees, by the function declared beside the one
 * that opened it.  No file of this room may use the library except by its
 * public headers.
 */
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
    EXIT_USAGE = 2, /* or bad input */
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

typedef struct cli_args {
    const struct cli_command *command;
    const char *output, *scheme, *port, *events;
    char suited[40]; /* the scheme, where it was left to us */
    size_t workers, rounds, max_iter, rows;
    bool scheme_given, workers_given, optimizer_given;
    kofn_faults faults;
    kofn_options job;
    uint64_t seed;
    double damping, tol;
    double tolerance; /* check */
    const char *dtype;
    bool verify, json, quiet, help, show, resume, step, state;
    const char *checkpoint; /* folder */
    bool masterless;
    int decode;        /* kofn_decoding */
    size_t confirm;    /* as in kofn_peer_options; 0: not told */
    const char *reach; /* addresses, with commas between; and its memory */
    char *reached;
    kofn_regress_options regress;
    const char *kernel, *history, *test_X, *test_y;
    bool standardise;            /* --scale of regress */
    const char *labels, *points; /* predict */
    bool shares;
    kofn_net_shape net; /* train */
    kofn_train_options train;
    const char *layers;
    bool cost_given, last_given;
    double unit;    /* 0: the largest magnitude of X, if that is above 1 */
    unsigned every; /* steps between checkpoints; 0: an epoch's          */
    const char *faults_text;  /* as it was given last ... */
    char faults_given[512];   /* ... and all of that, with commas between */
    const char *pattern_text; /* as it was given */
    kofn_matrix pattern;      /* made of it */
    double factor;            /* gen pattern */
    size_t least;             /* workers that are enough to begin; 0: all */
    const char *keys, *data_path;
    const char *tls_ca, *tls_cert, *tls_key;
    const char *worker; /* keygen: whose key; NULL: everybody's */
    size_t memory;
    double grace; /* seconds */
    bool insecure, staged, below_given, seats_given;
    struct kofn_transport *mpi; /* that was started already */
    const char *operand[8];
    int operands;
} cli_args;

/* Commands an option belongs to. */
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
    IN_PRODUCT = IN_MATVEC | IN_MATMUL,
    IN_ITERATE = IN_POWER | IN_PAGERANK,
    IN_RUN = IN_PRODUCT | IN_ITERATE | IN_REGRESS | IN_TRAIN,
    IN_JOB = IN_RUN | IN_STREAM
};

/* The kind of value that an option's text becomes: those of a job's options,
 * and more. */
typedef enum cli_kind {
    CLI_FLAG = KOFN_OPTION_FLAG,         /* it was given                     */
    CLI_CHOICE = KOFN_OPTION_CHOICE,     /* `least` and the word's place     */
    CLI_UNSIGNED = KOFN_OPTION_UNSIGNED, /* unsigned                         */
    CLI_SIZE = KOFN_OPTION_SIZE,         /* or uint64_t; most 0: 2^63 - 1    */
    CLI_REAL = KOFN_OPTION_REAL,
    CLI_SECONDS = KOFN_OPTION_SECONDS,
    CLI_FACTOR = KOFN_OPTION_FACTOR,
    CLI_TERM = KOFN_OPTION_TERM,
    CLI_FILE = KOFN_OPTION_FILE, /* not empty                              */
    CLI_DIR,
    CLI_TEXT, /* const char *                                              */
    CLI_WORD, /* ... one of the words of `arg`                             */
    CLI_PAIR, /* ... and the argument after it, to `given`                 */
    CLI_JOB   /* as the library's table of a job's options says            */
} cli_kind;

typedef struct cli_option {
    char letter; /* of a short form, or 0 */
    const char *name, *arg, *help;
    unsigned in;
    cli_kind kind;
    double least, most; /* of numbers                                   */
    size_t at;          /* where it goes in cli_args                    */
    size_t given;       /* a bool there that says it was; 0: there is none */
    /* The function that does more than storing the value; NULL: none. */
    int (*check)(cli_args *a, const struct cli_option *o, const char *text);
} cli_option;

typedef struct cli_command {
    const char *name, *operands, *summary, *text;
    const char *examples; /* one a line: command, two blanks or more, what */
    unsigned bit;
    int least, most; /* operands */
    int (*run)(cli_args *a);
} cli_command;

const cli_option *cli_options(void);     /* ends with a NULL name */
extern const cli_command cli_commands[]; /* ends with a NULL name */

/* Checks of options in the table: 0, or the exit code after a message. */
int cli_check_port_name(cli_args *a, const cli_option *o, const char *text);
int cli_add_reach(cli_args *a, const cli_option *o, const char *text);
int cli_read_faults(cli_args *a, const cli_option *o, const char *text);
/* Of all options, when they are read; fills in defaults that go with a port. */
int cli_check_together(const cli_command *c, cli_args *a);
/* The arguments when no option is given. */
cli_args cli_defaults(void);
/* A whole number with an optional k, M or G. */
bool cli_whole(const char *text, size_t most, size_t *out);
/* 0, or the exit code after a message. */
int cli_parse(const cli_command *c, int argc, char **argv, cli_args *a);

/* ---- help ---------------------------------------------------------------- */

void cli_help(FILE *f);
void cli_help_command(FILE *f, const cli_command *c);
void cli_manual(FILE *f); /* man page source of all commands */
void cli_version(FILE *f);

/* ---- failing ------------------------------------------------------------- */

/* "kofn: text" on stderr, one line; returns `code`, 0 for a mere remark. */
int cli_say(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The exit code that goes with a status that is not KOFN_OK. */
int cli_exit_code(kofn_status st);
/* The library's message; returns that exit code.  0 and no message for KOFN_OK;
 * so do the next. */
int cli_fail(kofn_status st);
/* The same for a file that was to be read: it is bad input. */
int cli_fail_input(kofn_status st);

/* ---- going out ----------------------------------------------------------- */

/* The line of progress on stderr: drawn anew, and gone. */
void cli_draw(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_erase(void);
/* Into the object o. */
#define PUT(key, value) json_object_set_new(o, key, value)
#define PUT_WHOLE(key, n) PUT(key, json_integer((json_int_t)(n)))
/* null where it is not finite. */
json_t *cli_number(double x);
json_t *cli_list(const size_t *at, size_t n);
/* On stdout, and freed. */
void cli_print_json(json_t *o);
/* At the start.  Jansson 2.14 may leave out a key for want of memory and say
 * nothing: so many of its allocations have failed. */
void cli_json_begin(void);
size_t cli_json_lost(void);
/* Prints a line of news to stderr; other processes may have worded parts of
 * it. */
void cli_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The reason of a failure that cli_say gave last. */
json_t *cli_error_json(void);
/* With --json, an object for a failure before there was anything to report. */
void cli_print_failure(const cli_args *a);
/* 0 if no file that is to be written is one that is read, or written for
 * something else; else the exit code after a message.  Inputs are mapped: one
 * that became shorter would end the process. */
int cli_check_names(const cli_args *a);
/* Before any work is done: 0 if --output can be written to, as far as one can
 * tell, else the exit code after a message. */
int cli_check_output(const cli_args *a, bool sparse);
/* The same of one path, which has to be named .npy, .csv or, mtx_too, .mtx;
 * what is wrong is told with `before` in front of it. */
int cli_check_path(const char *before, const char *path, bool mtx_too);
/* 0, or why it is no folder that may be used so (R_OK, ...). */
int cli_no_folder(const char *path, int mode);
/* Writes the result unless --output was not given.  0, or the exit code after a
 * message. */
int cli_write(const cli_args *a, kofn_operand out, unsigned dims);
/* The exit code of a file that was to be written, after the library's
 * message. */
int cli_wrote(kofn_status st);

/* ---- the process (process.c) --------------------------------------------- */

/* First of all: descriptors and memory. */
void cli_begin(void);
double cli_begun(void); /* by kf_clock_seconds() */
/* SIGINT, SIGTERM and SIGHUP end the process at once until cli_guard(true);
 * from then on they are remembered. */
void cli_signals(void);
void cli_guard(bool on);
/* Likewise, but where nobody asks for what is remembered within two seconds it
 * ends the process after all. */
void cli_guard_promptly(void);
int cli_caught(void); /* 0 or the signal */
/* Starts this program again, as another command; returns if it cannot. */
void cli_again(char **argv);

/* ---- the BLAS ------------------------------------------------------------ */

/* Starts the command again where OpenBLAS chose kernels that are too slow. */
void cli_fast_blas(char **argv);
/* At the start of what computes: is it many times too slow, and what mends
 * that? */
void cli_tell_blas(const cli_args *a);
/* At the end: what it is, whether another would be faster. */
void cli_report_blas(const cli_args *a);
void cli_put_blas(const cli_args *a, json_t *o);

/* ---- commands (the run part of the table) -------------------------------- */

/* All commands, for whoever needs each of them; cmd_product is matvec and
 * matmul, cmd_iterate power and pagerank. */
#define CLI_COMMANDS(X)                                                        \
    X(cmd_product)                                                             \
    X(cmd_iterate)                                                             \
    X(cmd_gen)                                                                 \
    X(cmd_schemes)                                                             \
    X(cmd_replay)                                                              \
    X(cmd_trace)                                                               \
    X(cmd_regress)                                                             \
    X(cmd_predict)                                                             \
    X(cmd_check)                                                               \
    X(cmd_train)                                                               \
    X(cmd_stream)                                                              \
    X(cmd_worker)                                                              \
    X(cmd_keygen)
#define CLI_DECLARE(name) int name(cli_args *a);
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

/* The scheme that is named before the colon, or NULL (cmd_schemes.c). */
const kofn_scheme *cli_scheme_of(const char *spec);

/* ---- patterns (pattern.c) ------------------------------------------------ */

/* Of --pattern, into the fault model; 0, or the exit code after a message. */
int cli_make_pattern(cli_args *a);
int cli_gen_pattern(const cli_args *a, size_t rounds, size_t workers);

/* ---- ports (ports.c, cmd_worker.c) --------------------------------------- */

/* The transports that --port may name: a row each, at the end of ports.c.
 * Nothing else in the command asks which it is. */
typedef struct cli_transport {
    const char *name; /* of an address what stands before :// */
    const char *form; /* how it is given; NULL: by its name                 */
    bool address;     /* others come to it, or are reached by it            */
    bool here;        /* workers, or all nodes of a mesh, are this process  */
    bool ours;        /* workers are made here: one BLAS thread each        */
    bool simulated;
    kofn_time silence; /* who was not heard for so long is gone; 0: default */
    /* Opens it, where no more is needed than this; NULL: that is open's to
     * do. */
    kofn_status (*port)(kofn_port **out, size_t workers, const kofn_faults *w);
    /* 0, or the exit code after a message. */
    int (*open)(const cli_args *a, const kofn_problem *pb, uint64_t job,
                kofn_port **out);
    /* Makes this process one node of a mesh, and gives the seat it is to have;
     * NULL: none, or that of `here`. */
    kofn_status (*mesh)(const cli_args *a, size_t body_max,
                        struct kofn_transport **t, uint32_t *seat);
    /* Before anything is read, and with the exit code when all is over; NULL:
     * nothing is to be done. */
    int (*start)(cli_args *a, bool *is_worker);
    int (*end)(int code);
} cli_transport;
/* NULL: there is none of this name, or for this address. */
const cli_transport *cli_transport_of(const char *port);
/* Of those that fit, or all, how they are given: "a, b or c".  Until the next
 * call. */
const char *cli_transport_forms(bool (*fits)(const cli_transport *t));
/* The port of --port; 0, or the exit code after a message. */
int cli_port_open(const cli_args *a, const kofn_problem *pb, uint64_t job,
                  kofn_port **out);
/* A folder for a socket, and what removes it (folder.c). */
typedef struct cli_folder {
    char path[64];
    int lock;
} cli_folder;
int cli_folder_make(cli_folder *f); /* 0, or an exit code after a message */
void cli_folder_remove(cli_folder *f);
/* With which keys are used, and whether it may go without any. */
kofn_net_options cli_net_options(const cli_args *a, size_t body_max);
void cli_ports_end(void); /* processes that were started, at the very end */

/* ---- workers (serve.c) --------------------------------------------------- */

/* Works for the coordinator at t until it is dismissed; `net`: t is a
 * connection of <kofn/net.h>.  The exit code. */
int cli_serve(const cli_args *a, struct kofn_transport *t, bool net);

/* ---- digests (digest.c) -------------------------------------------------- */

/* XXH3 in 64 bits of all that it says, whatever its layout; false: memory ran
 * out. */
bool cli_digest_json(const json_t *o, uint64_t *hash);
/* The digest of a file's bytes, and how many they are; false, with errno, when
 * it cannot be read. */
bool cli_digest_file(const char *path, uint64_t *bytes, char hex[17]);
/* Writes and frees it; NULL, or why it could not be written.  Of what went into
 * it nothing was lost if cli_json_lost() still is what it was. */
const char *cli_write_json(const char *path, json_t *o, size_t lost);

/* ---- checkpoints (checkpoint.c) ------------------------------------------ */

/* A folder with what a new start of the same job needs to go on; NULL: none is
 * kept.  The file format is told in docs/operate.md. */
typedef struct checkpoint checkpoint;

/* With --checkpoint claim the folder, with --resume read what is there.  0, or
 * the exit code after a message.  `spec`: of the scheme, with its defaults. */
int checkpoint_open(checkpoint **out, const cli_args *a, const char *spec);
/* A number that the same job has whenever it is started again, and no other:
 * what workers that still hold its blocks know it by.  0: no checkpoints. */
uint64_t checkpoint_job(const checkpoint *c);
/* Rounds or iterations that need not be done again; what they made, 0 or the
 * exit code after a message when it is not of this shape; numbers besides, NaN
 * when there is none of this name. */
unsigned checkpoint_done(const checkpoint *c);
int checkpoint_state(const checkpoint *c, kofn_matrix *out);
double checkpoint_number(const checkpoint *c, const char *name);
/* Keep this instead; `numbers` is freed.  What fails is said, and the job goes
 * on: the last one that could be kept is still there. */
void checkpoint_save(checkpoint *c, unsigned done, const kofn_matrix *state,
                     json_t *numbers);
/* For --json: what there is to tell. */
void checkpoint_report(const checkpoint *c, json_t *o);
/* `code`, or 1 after a message when that is 0 and the last was not kept.  Of a
 * job that failed before there was any nothing is left. */
int checkpoint_end(const checkpoint *c, int code);
void checkpoint_free(checkpoint *c);

/* ---- what running commands share (session.c) ----------------------------- */

/* What --verify has found. */
typedef struct cli_exactness {
    double rel_error; /* < 0: not verified */
    double row_error; /* of a product: the most that an element is off, of
                         that of |A| |B| ...                            */
    size_t worst_row; /* ... and in which row                           */
} cli_exactness;

/* A job, its plan, and what is to be told of it in the end. */
typedef struct session {
    const cli_args *args;
    kofn_plan *plan[KOFN_NET_MOST]; /* of each operand */
    size_t operands;
    kofn_job *job;
    kofn_fault_event *events;
    checkpoint *checkpoint;
    json_t *per_round, *per_iteration;
    unsigned iterations;
    cli_exactness found;
    json_t *figures; /* what steps have come to, for --json, or NULL */
    char remark[80]; /* in the line of progress                      */
    kofn_status status;
    double started, drawn;      /* wall clock; when progress was last drawn */
    double opened, first, last; /* the job; the first round, as it began, and
                                   the last, as it ended                  */
    double tell;                /* ... and when to tell what is waited for  */
    uint64_t moved;             /* bytes, until then                        */
    size_t expected_rounds, block_rows;
    size_t events_left; /* of the file, to be shown yet */
    const kofn_fault_event *next_event;
    unsigned shown; /* rounds */
    size_t width, joiners;
} session;

struct cli_training;

/* show.c: one line a round; change < 0 when there is none. */
void show_round(session *s, const kofn_report *rep, double change);

/* `coded`: of a training on coded weights, an operand a layer, where `pb` is
 * what it is known by; else NULL. */
int session_open(session *s, const cli_args *a, const kofn_problem *pb,
                 size_t rounds, const struct cli_training *coded);
/* Tells which workers are waited for, after two seconds and then every ten. */
void session_tell_waiting(session *s, bool quiet);
/* A round is over, or goes on (rep == NULL); draws progress. */
void session_round(session *s, const kofn_report *rep, double change);
/* Every field of a report, and which workers were wrong or answered nothing. */
void session_put_report(const session *s, const kofn_report *r, json_t *o);
/* Report, free everything, and give the exit code. */
int session_close(session *s, int code);

/* ---- matrices (matrix.c) ------------------------------------------------- */

/* Zeros in double precision, to be freed; `what` is for the message.  0, or the
 * exit code after a message; so does the next. */
int cli_room(kofn_matrix *out, size_t rows, size_t cols, const char *what);
/* A copy in double precision, each number divided by `unit`. */
int cli_divided(const kofn_matrix *a, double unit, kofn_matrix *out);
/* The numbers of one into another of its shape and type. */
void cli_copy(const kofn_matrix *from, const kofn_matrix *to);
/* Of either type. */
double cli_element(const kofn_matrix *a, size_t i, size_t j);
/* The largest magnitude; NaN if there is one. */
double cli_largest(const kofn_matrix *a);
/* ||a - b||_F / ||b||_F */
double cli_relative_error(const kofn_matrix *a, const kofn_matrix *b);

/* ---- regression: files and points (cmd_predict.c, points.c) -------------- */

/* The dense matrix in a file; a copy in double precision if it is not that. */
typedef struct input {
    kofn_file *file;
    double *copy;
} input;
int input_matrix(input *in, kofn_matrix *out, const char *path);
/* Points with the columns of X.  Sparse ones, which may have fewer, are filled
 * up. */
int input_like(input *in, kofn_matrix *out, const char *path,
               const kofn_matrix *X, const char *X_path);
/* The same, or *sparse points to what is in the file, which has no data then.
 */
int input_points(input *in, kofn_matrix *out, const kofn_sparse **sparse,
                 const char *path);
/* The labels that a file has beside its points, or else its dense matrix. */
int input_targets(input *in, kofn_matrix *out, const char *path);
/* A row or a column of labels, one for each row of X. */
int input_labels(input *in, kofn_matrix *y, const char *path,
                 const kofn_matrix *X, const char *X_path);
/* A row of numbers is a column, too. */
void input_column(kofn_matrix *m);
/* The exit code after a message. */
int input_refuse_sparse(const char *path);
void input_free(input *in);
/* The name of kofn_fit.share for this loss. */
const char *cli_share_name(kofn_loss loss);

/* Columns as they were in the points that a model is fitted to. */
typedef struct points {
    size_t columns;
    bool intercept, scale;
    double *mean, *deviation; /* NULL: not known */
    size_t *ptr;              /* sparse ones with a column of ones */
    uint32_t *col;
    double *val;
} points;
int points_know(points *p, const kofn_matrix *X, bool intercept, bool scale);
/* Points as they are fitted to, in memory of their own. */
int points_prepare(const points *p, const kofn_matrix *X, kofn_matrix *out);
/* The same of sparse points, which cannot be scaled; *out lives as long as p.
 */
int points_prepare_sparse(points *p, const kofn_sparse *X, bool intercept,
                          kofn_sparse *out);
/* Weights for points as they were before; the intercept is the last. */
void points_undo(const points *p, const double *w, double *out);
/* How many times as widely one column is spread as another; 1 when they were
 * scaled. */
double points_spread(const points *p);
void points_free(points *p);

/* ---- --history (history.c) ----------------------------------------------- */

typedef struct history {
    FILE *f;
    const char *path; /* NULL: none is kept                              */
    int spoiled;      /* why a line could not be written, or 0 */
} history;
/* From the beginning, or behind the line of what is done, or, HISTORY_GOES_ON,
 * behind all lines.  The heading names the caller's columns; with `reports`
 * those of the fields of a report (base/report.h) follow.  0, or the exit code
 * after a message. */
#define HISTORY_GOES_ON UINT_MAX
int history_open(history *h, const char *path, unsigned done,
                 const char *heading, bool reports);
/* The caller's columns, then those of `rep`, NULL: none. */
void history_line(history *h, const kofn_report *rep, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Has the lines so far on the disk before a checkpoint says that they were
 * done. */
void history_keep(history *h);
/* `code`, or what has gone wrong with it if that is 0. */
int history_close(history *h, int code);

/* ---- networks in folders (model.c) --------------------------------------- */

typedef struct model {
    kofn_net *net;
    double unit; /* points are divided by it first           */
    bool sealed; /* it was read, and has digests of all of it */
} model;
/* Into a folder that is made if there is none; NULL: nothing is to be written.
 * 0, or the exit code after a message; so do those below. */
int model_write(const char *folder, const model *m);
int model_read(const char *folder, model *m);
void model_free(model *m);

/* ---- without a master ---------------------------------------------------- */

/* A node of a mesh that is in this process, and what became of it. */
typedef struct cli_node {
    struct cli_nodes *all; /* NULL: it never was */
    uint32_t seat;
    size_t number;
    kofn_status status;
    char *reason;  /* why it failed */
    size_t failed; /* as the how many-th; 0: it did not */
    kofn_node_view end;
    bool resumes; /* goes on with what was kept */
    /* What it has made: by iterating, or in training. */
    kofn_matrix v;
    kofn_iterate_result iterated;
    kofn_net *net;
    kofn_train_result trained;
    struct cli_wrong *wrong; /* whose pieces it found wrong */
    size_t wrongs;
    uint64_t erred,
        draws;       /* the last step in which an event made it err; chances */
    uint32_t faults; /* that it had so far */
} cli_node;

typedef struct cli_nodes {
    const cli_args *a;
    size_t count; /* that found the mesh */
    size_t here;  /* that ever were in this process */
    cli_node *node;
    kofn_mesh *mesh; /* of threads */
    kofn_fault_event *events;
    size_t event_count;
    atomic_size_t due; /* joins before this one have been made */
    atomic_size_t failures;
    /* For whoever opened it to say: */
    kofn_decoding decoding;
    size_t confirm, each; /* each: iterates of what events count */
    size_t bytes;         /* of the largest that is sent         */
    uint64_t every;       /* turns between what --checkpoint keeps */
    kofn_status (*live)(cli_node *n, kofn_transport *t,
                        const kofn_peer_options *p); /* its whole life */
    /* NULL, or called on each node's thread after an iterate. */
    void (*watch)(const cli_node *n, const kofn_node_view *view,
                  const double *scalar);
    /* What is told beside what nodes_report tells of all: into o, or in front
     * of it. */
    void (*put)(const struct cli_nodes *m, const kofn_plan_info *info,
                json_t *o);
    void (*say)(const struct cli_nodes *m, const kofn_plan_info *info);
    void *ud;
    const kofn_plan *plan; /* that nodes_take_plan was given */
    /* What nodes_run found: */
    double seconds;
    size_t have;          /* the result; ...  */
    const cli_node *best; /* the first of them */
} cli_nodes;

/* Refuses what cannot be had of a mesh; events are of this number of rounds.
 * Returns 0, or the exit code after a message; so do the functions below. */
int nodes_open(cli_nodes *m, const cli_args *a, size_t rounds);
/* Refuses a plan that there are too few nodes for, and chooses who decodes, as
 * was asked for or what suits it; and that in words. */
int nodes_take_plan(cli_nodes *m, const kofn_plan *plan);
const char *nodes_decoding(const cli_nodes *m);
/* Where nobody has the result it tells why the first who failed did. */
int nodes_run(cli_nodes *m);
/* Tells, as --json or for people, how the best node stood in the end, whose
 * pieces it found wrong, and why others of this process have failed. */
void nodes_report(const cli_nodes *m, double rel_error);
/* Has it the result? */
bool nodes_have(const cli_node *n);
/* The exit code, after all else. */
int nodes_close(cli_nodes *m, int code);

/* How many nodes a graph has, and how its edges were read. */
typedef struct cli_graph {
    size_t nodes, alone; /* alone: without an edge */
    bool one_way; /* comments say that it is undirected, but arcs have none back
                   */
} cli_graph;
/* 0, or the exit code after a message. */
int cli_know_graph(cli_graph *out, const kofn_file *file);
/* Remarks on that. */
void cli_tell_graph(const cli_graph *g, const kofn_file *file,
                    const char *path);
json_t *cli_graph_json(const cli_graph *g);

/* An iteration of A, or, where that is NULL, of the ranks of M. */
typedef struct cli_iteration {
    kofn_file *file;
    const kofn_matrix *A;
    kofn_sparse *M;
    uint8_t *dangling;
    cli_graph graph;
    size_t n;
    kofn_matrix v; /* start, and result */
} cli_iteration;
kofn_iterate_options cli_iterate_options(const cli_args *a);
/* Makes room and a start: of power iteration with a part in every direction,
 * the same for the same seed; that of PageRank is the library's.  0, or the
 * exit code after a message. */
int cli_start(const cli_iteration *it, uint64_t seed, const char *what,
              kofn_matrix *v);
/* Why it has not converged, and what may help. */
void cli_advise_iterate(const cli_args *a, const kofn_iterate_result *res);
/* Compares v, of so many iterations, with the same without workers.  0, or the
 * exit code after a message. */
int cli_verify_iteration(const cli_args *a, const cli_iteration *it,
                         const kofn_matrix *v, unsigned iterations,
                         cli_exactness *found);
/* Iterates on a mesh, and does all that is asked for.  The exit code. */
int masterless_run(const cli_args *a, const cli_iteration *it,
                   const kofn_problem *pb);

/* A training, of which a node of a mesh makes its own. */
typedef struct cli_training {
    input file[4];      /* X, y and the held-out ones                 */
    kofn_matrix own[2]; /* both X, divided by the model's unit        */
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
    size_t steps;   /* in all ...                              */
    unsigned every; /* ... and from one that is kept to the next */
    bool due;       /* a state is to be kept ...                 */
    bool unchecked; /* ... once the sums of a step are checked   */
    bool verifying; /* without workers */
    bool coded;     /* weights live with the workers, and not points */
    /* On a mesh, called when the weights are there: judges, checks and writes
     * them. Returns the exit code. */
    int (*conclude)(struct cli_training *t, unsigned steps);
} cli_training;
/* The exit code. */
int masterless_train(const cli_args *a, cli_training *l);

/* --verify: keep the relative error of a, which should be b.  0, or the exit
 * code after a message when there is no such number. */
int cli_verify(cli_exactness *to, const kofn_matrix *a, const kofn_matrix *b);
/* The same of an error that is kept already. */
int cli_check_error(const cli_exactness *found);
/* The factors of a product. */
typedef struct cli_factors {
    kofn_operand A;
    const kofn_matrix *B;
} cli_factors;
/* Compares with the product made here.  0, or the exit code after a message. */
int cli_verify_product(const cli_factors *f, const kofn_matrix *out,
                       cli_exactness *to);

#endif
