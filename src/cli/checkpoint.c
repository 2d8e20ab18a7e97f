/* checkpoint.c -- keeps what a job needs to resume after its coordinator was
 * killed.
 *
 *     DIR/checkpoint.json    fingerprint, progress, name of the state file
 *     DIR/before.json        the same for the state before, copied
 *     DIR/state-0.npy, -1    states, written in turn
 *     DIR/lock               held by the process in use of the folder
 *
 * The state is written first and checkpoint.json last. Each is written under
 * another name, forced to disk and renamed. So the folder always holds the
 * last complete state. Mostly it also holds the state before, which is used if
 * the disk has damaged the last. The fingerprint names everything that the
 * numbers depend on. If any of it changed, the job does not resume.
 *
 * This file owns the folder's lock and the state it read. It borrows a job's
 * vectors while it saves them. It touches no file of the folder without the
 * lock. */
#include "cli.h"
#include "digest.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct checkpoint {
    const char *folder;
    int lock;
    json_t *fingerprint; /* key to string */
    uint64_t job;
    json_t *kept; /* checkpoint.json as found, or NULL */
    kofn_file *state;
    unsigned resumed, done, failures;
    unsigned parity;  /* number of the next state file, 0 or 1 */
    bool behind;      /* the last state could not be kept */
    bool made, begun; /* this process created the folder; and checkpoint.json */
    size_t lost;      /* last count of cli_json_lost */
    double seconds;
};

enum { PATH = 4096 };

static char *path_in(char out[PATH], const checkpoint *c, const char *name)
{
    snprintf(out, PATH, "%s/%s", c->folder, name);
    return out;
}

/* True if JSON lost a part since the last call because memory was short. Such
 * JSON must not be used. */
static bool loses(checkpoint *c)
{
    size_t before = c->lost;

    c->lost = cli_json_lost();
    return c->lost != before;
}

/* ---- the fingerprint ----------------------------------------------------- */

static void say_text(json_t *o, const char *key, const char *value)
{
    PUT(key, json_string(value ? value : ""));
}

static void say_size(json_t *o, const char *key, uint64_t value)
{
    PUT(key, json_sprintf("%" PRIu64, value));
}

/* Stores the shortest text that gives exactly this number. */
static void say_real(json_t *o, const char *key, double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    PUT(key, json_string(text));
}

static int say_inputs(json_t *o, const cli_args *a)
{
    for (int i = 0; i < a->operands; i++) {
        uint64_t bytes;
        struct stat st;
        char key[32], hash[17];

        if (stat(a->operand[i], &st) != 0 || !S_ISREG(st.st_mode) ||
            !cli_digest_file(a->operand[i], &bytes, hash))
            return cli_say(EXIT_USAGE,
                           "--checkpoint: %s cannot be read a "
                           "second time; put it into an ordinary file",
                           a->operand[i]);
        snprintf(key, sizeof key, "input %d, bytes", i + 1);
        say_size(o, key, bytes);
        snprintf(key, sizeof key, "input %d, digest", i + 1);
        say_text(o, key, hash);
    }
    return 0;
}

static void say_regress(json_t *o, const cli_args *a)
{
    const kofn_regress_options *r = &a->regress;
    static const char *const loss[] = {"squares", "logistic", "poisson"};
    static const char *const optimizer[] = {"auto", "gd", "nesterov", "sgd",
                                            "lbfgs"};
    static const char *const search[] = {"none", "exact", "armijo", "grid"};

    say_text(o, "--loss", loss[r->loss]);
    say_text(o, "--optimizer", optimizer[r->optimizer]);
    say_text(o, "--line-search", search[r->line_search]);
    say_text(o, "--kernel", a->kernel);
    say_real(o, "--l2", r->l2);
    say_real(o, "--step", r->step);
    say_real(o, "--batches", r->batches);
    say_real(o, "--intercept", r->intercept);
    say_text(o, "--start", a->start);
    say_real(o, "--scale", a->standardise);
}

static void say_train(json_t *o, const cli_args *a)
{
    const kofn_net_shape *s = &a->net;
    const kofn_train_options *t = &a->train;

    say_text(o, "--layers", a->layers);
    say_size(o, "--activation", s->activation);
    say_size(o, "--output-activation", s->output);
    say_size(o, "--loss", s->loss);
    say_text(o, "--dtype", a->dtype);
    say_real(o, "--autoencoder", s->autoencoder);
    say_real(o, "--sparsity", s->sparsity);
    say_real(o, "--sparsity-weight", s->sparsity_weight);
    say_real(o, "--step", t->step);
    say_real(o, "--momentum", t->momentum);
    say_real(o, "--nesterov", t->nesterov);
    say_real(o, "--l2", t->l2);
    say_size(o, "--batch", t->batch);
    say_real(o, "--unit", a->unit);
}

/* Stores all that the numbers depend on, key to string. */
static int take_fingerprint(checkpoint *c, const cli_args *a, const char *spec)
{
    json_t *o = c->fingerprint = json_object();

    if (!o)
        return cli_say(EXIT_FAILED, "out of memory");
    say_text(o, "command", a->command->name);
    say_text(o, "--scheme", spec);
    say_size(o, "--workers", a->workers);
    say_size(o, "--seed", a->seed);
    if (a->command->bit == IN_PAGERANK)
        say_real(o, "--damping", a->damping_given ? a->damping : 0.85);
    if (a->command->bit == IN_REGRESS)
        say_regress(o, a);
    if (a->command->bit == IN_TRAIN)
        say_train(o, a);
    TRY_CODE(say_inputs(o, a));
    if (!cli_digest_json(o, &c->job) || loses(c))
        return cli_say(EXIT_FAILED, "out of memory");
    c->job += c->job == 0;
    return 0;
}

/* True if the key describes the code. A state is a vector or weights and does
 * not depend on the code. So a job may resume with another code or another
 * number of workers. */
static bool is_of_code(const char *key)
{
    return strcmp(key, "--scheme") == 0 || strcmp(key, "--workers") == 0;
}

/* Returns the first key with another value, among those of the code or among
 * the others; NULL: all agree. */
static const char *difference(const checkpoint *c, const json_t *there,
                              bool code)
{
    const char *key;
    json_t *here;

    json_object_foreach(c->fingerprint, key, here)
    {
        if (is_of_code(key) == code &&
            !json_equal(here, json_object_get(there, key)))
            return key;
    }
    return NULL;
}

static const char *value(const json_t *fingerprint, const char *key)
{
    const char *text = json_string_value(json_object_get(fingerprint, key));

    return text ? text : "";
}

/* Returns 0 if it is the same job. */
static int compare(const checkpoint *c, const json_t *there, bool quiet)
{
    const char *key = difference(c, there, false);

    if (key)
        return cli_say(EXIT_USAGE,
                       "%s holds the checkpoint of another job: %s was \"%s\" "
                       "and is \"%s\"; give the same job or another folder",
                       c->folder, key, value(there, key),
                       value(c->fingerprint, key));
    key = difference(c, there, true);
    if (key && !quiet)
        cli_say(0,
                "%s was written with another code: %s was %s and is %s; going "
                "on, with other rounding from here on",
                c->folder, key, value(there, key), value(c->fingerprint, key));
    return 0;
}

/* ---- reading ------------------------------------------------------------- */

static int damaged(const checkpoint *c, const char *name, const char *why)
{
    return cli_say(
        EXIT_USAGE,
        "%s/%s is damaged: %s; the job cannot resume without it; remove the "
        "folder to restart",
        c->folder, name, why);
}

/* Reads the state named by an entry. Returns NULL, or why that failed. */
static const char *read_state(checkpoint *c, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "state"));
    const char *want = json_string_value(json_object_get(entry, "digest"));
    json_int_t done = json_integer_value(json_object_get(entry, "done"));
    uint64_t bytes;
    char path[PATH], found[17];

    if (!name || !want || strchr(name, '/'))
        return "checkpoint.json names no state";
    if (done < 1 || done > UINT32_MAX)
        return "checkpoint.json says not how far it is";
    if (!cli_digest_file(path_in(path, c, name), &bytes, found))
        return "it cannot be read";
    if (strcmp(found, want) != 0)
        return "it is not what was written";
    if (kofn_file_open(&c->state, path, KOFN_FILE_READ))
        return kofn_errmsg();
    if (!c->state->matrix.dense)
        return "it is sparse";
    c->parity = strcmp(name, "state-0.npy") == 0;
    c->resumed = c->done = (unsigned)done;
    return NULL;
}

/* Reads the state before the newest, which is damaged. Returns its index, or
 * NULL. */
static json_t *read_before(checkpoint *c)
{
    char path[PATH];
    json_t *before = json_load_file(path_in(path, c, "before.json"), 0, NULL);

    if (before &&
        !difference(c, json_object_get(before, "fingerprint"), false) &&
        !read_state(c, before))
        return before;
    json_decref(before);
    kofn_file_free(c->state);
    c->state = NULL;
    return NULL;
}

static int read_kept(checkpoint *c, bool quiet)
{
    const char *name = json_string_value(json_object_get(c->kept, "state"));
    json_t *before;
    char why[600];
    const char *is;

    TRY_CODE(compare(c, json_object_get(c->kept, "fingerprint"), quiet));
    if (json_integer_value(json_object_get(c->kept, "done")) == 0)
        return 0;
    if (!(is = read_state(c, c->kept)))
        return 0;
    snprintf(why, sizeof why, "%s", is);
    kofn_file_free(c->state);
    c->state = NULL;
    if (!(before = read_before(c)))
        return damaged(c, name ? name : "checkpoint.json", why);
    cli_say(0,
            "%s/%s is damaged: %s; going on with the state before it, after "
            "round or iteration %u",
            c->folder, name ? name : "checkpoint.json", why, c->done);
    json_decref(c->kept);
    c->kept = before;
    return 0;
}

/* Finds the checkpoint in the folder and checks that it belongs to this job. */
static int find_kept(checkpoint *c, const cli_args *a)
{
    json_error_t e;
    char path[PATH];

    path_in(path, c, "checkpoint.json");
    if (access(path, F_OK) != 0)
        return !a->resume || a->quiet
                   ? 0
                   : cli_say(
                         0,
                         "%s holds no checkpoint; starting from the beginning",
                         c->folder);
    if (!a->resume)
        return cli_say(
            EXIT_USAGE,
            "%s already holds a checkpoint; give --resume to continue it, or "
            "another folder",
            c->folder);
    c->kept = json_load_file(path, 0, &e);
    if (!c->kept)
        return damaged(c, "checkpoint.json", e.text);
    return read_kept(c, a->quiet);
}

/* ---- opening ------------------------------------------------------------- */

/* Removes files of killed writers. This process holds the lock, so no other
 * one is writing. */
static void sweep(const checkpoint *c)
{
    DIR *folder = opendir(c->folder);
    const struct dirent *e;
    char path[PATH];

    while (folder && (e = readdir(folder))) {
        size_t n = strlen(e->d_name);

        if (n > 4 && n < 32 && !strncmp(e->d_name, ".kofn-", 6) &&
            !strcmp(e->d_name + n - 4, ".tmp"))
            unlink(path_in(path, c, e->d_name));
    }
    if (folder)
        closedir(folder);
}

/* Locks the folder: two coordinators must not write in turns. */
static int claim(checkpoint *c)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat st;
    char path[PATH];

    if (strlen(c->folder) + 32 > PATH)
        return cli_say(EXIT_USAGE, "--checkpoint: the name of the folder is "
                                   "too long");
    c->made = mkdir(c->folder, 0777) == 0;
    if (!c->made && errno != EEXIST)
        return cli_say(EXIT_FAILED, "--checkpoint %s: %s", c->folder,
                       strerror(errno));
    c->lock =
        open(path_in(path, c, "lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (c->lock < 0)
        return cli_say(EXIT_FAILED, "--checkpoint %s: %s%s",
                       errno == ENOTDIR ? c->folder : path, strerror(errno),
                       errno == ENOTDIR ? "; name a folder" : "");
    errno = EAGAIN; /* the lock's owner has just removed it */
    if (fcntl(c->lock, F_SETLK, &whole) == 0 && fstat(c->lock, &st) == 0 &&
        st.st_nlink > 0) {
        sweep(c);
        return 0;
    }
    c->made = false;
    return errno == EACCES || errno == EAGAIN
               ? cli_say(EXIT_FAILED,
                         "--checkpoint %s: another kofn is at work there",
                         c->folder)
               : cli_say(EXIT_FAILED, "--checkpoint %s: %s", path,
                         strerror(errno));
}

/* Keeps checkpoint.json as before.json before it names a newer state. */
static void keep_before(const checkpoint *c)
{
    char now[PATH], before[PATH];

    unlink(path_in(before, c, "before.json"));
    if (link(path_in(now, c, "checkpoint.json"), before))
        return; /* there is none, or links are not possible */
}

/* Writes the index. Returns NULL, or why it could not be written; so does
 * save. */
static const char *write_index(checkpoint *c, const char *state,
                               const char *hash, json_t *numbers)
{
    json_t *o = json_object();
    size_t lost = c->lost;
    const char *why;
    char path[PATH];

    PUT("kofn", json_string(KOFN_VERSION));
    PUT("job", json_sprintf("%016" PRIx64, c->job));
    PUT_WHOLE("done", c->done);
    if (state) {
        PUT("state", json_string(state));
        PUT("digest", json_string(hash));
    }
    if (numbers)
        json_object_set(o, "numbers", numbers);
    json_object_set(o, "fingerprint", c->fingerprint);
    keep_before(c);
    why = cli_write_json(path_in(path, c, "checkpoint.json"), o, lost);
    loses(c); /* resets the count; the next index may be complete */
    return why;
}

int checkpoint_open(checkpoint **out, const cli_args *a, const char *spec)
{
    const char *why;
    checkpoint *c;

    if (!a->checkpoint)
        return a->resume ? cli_say(EXIT_USAGE, "--resume needs --checkpoint "
                                               "and the folder")
                         : 0;
    *out = c = calloc(1, sizeof *c);
    if (!c)
        return cli_say(EXIT_FAILED, "out of memory");
    c->folder = a->checkpoint;
    c->lost = cli_json_lost();
    c->lock = -1;
    TRY_CODE(claim(c));
    TRY_CODE(take_fingerprint(c, a, spec));
    TRY_CODE(find_kept(c, a));
    c->begun = !c->kept;
    why = c->begun ? write_index(c, NULL, NULL, NULL) : NULL;
    return why ? cli_say(EXIT_FAILED, "--checkpoint %s: %s", c->folder, why)
               : 0;
}

/* ---- looking ------------------------------------------------------------- */

uint64_t checkpoint_job(const checkpoint *c)
{
    return c ? c->job : 0;
}

unsigned checkpoint_done(const checkpoint *c)
{
    return c ? c->resumed : 0;
}

int checkpoint_state(const checkpoint *c, kofn_matrix *out)
{
    const kofn_matrix *s = c->state->matrix.dense;

    if (s->rows != out->rows || s->cols != out->cols || s->dtype != out->dtype)
        return cli_say(EXIT_USAGE,
                       "%s: the state is %zu x %zu float%s and should be %zu x "
                       "%zu float%s",
                       c->folder, s->rows, s->cols,
                       s->dtype == KOFN_F64 ? "64" : "32", out->rows, out->cols,
                       out->dtype == KOFN_F64 ? "64" : "32");
    cli_copy(s, out);
    return 0;
}

double checkpoint_number(const checkpoint *c, const char *name)
{
    const json_t *x =
        json_object_get(json_object_get(c->kept, "numbers"), name);

    return json_is_number(x) ? json_number_value(x) : NAN;
}

unsigned checkpoint_kept(const checkpoint *c)
{
    return c ? c->done : 0;
}

/* ---- keeping ------------------------------------------------------------- */

static const char *save(checkpoint *c, const kofn_matrix *state,
                        json_t *numbers)
{
    char name[] = "state-0.npy", path[PATH], found[17];
    uint64_t bytes;

    name[6] = (char)('0' + c->parity);
    path_in(path, c, name);
    if (kofn_write_npy(path, state, 2))
        return kofn_errmsg();
    if (!cli_digest_file(path, &bytes, found))
        return "the state that was written cannot be read";
    return write_index(c, name, found, numbers);
}

void checkpoint_save(checkpoint *c, unsigned done, const kofn_matrix *state,
                     json_t *numbers)
{
    double start = kf_clock_seconds();
    const char *why;
    unsigned was;

    if (!c) {
        json_decref(numbers);
        return;
    }
    was = c->done;
    c->done = done;
    why = save(c, state, numbers);
    if (!why) {
        c->parity = !c->parity;
        c->behind = false;
    } else {
        if (!c->behind)
            cli_say(
                0,
                "--checkpoint %s: %s; the state after round or iteration %u "
                "was not saved; that of %u remains on disk, and the job "
                "continues",
                c->folder, why, done, was);
        c->done = was;
        c->behind = true;
        c->failures++;
    }
    json_decref(numbers);
    c->seconds += kf_clock_seconds() - start;
}

void checkpoint_report(const checkpoint *c, json_t *o)
{
    if (!c)
        return;
    PUT("job", json_sprintf("%016" PRIx64, c->job));
    PUT_WHOLE("resumed_after", c->resumed);
    PUT("checkpoint_seconds", json_real(c->seconds));
    PUT_WHOLE("checkpoint_failures", c->failures);
}

/* Removes the files if no state was kept: they would only hinder a new start.
 */
static void undo(const checkpoint *c)
{
    char path[PATH];

    if (c->begun)
        unlink(path_in(path, c, "checkpoint.json"));
    if (c->begun)
        unlink(path_in(path, c, "before.json"));
    if (!c->made)
        return;
    unlink(path_in(path, c, "lock"));
    rmdir(c->folder);
}

int checkpoint_end(const checkpoint *c, int code)
{
    if (c && c->behind && !code)
        code = cli_say(EXIT_FAILED,
                       "--checkpoint %s: the job is done, but its last state "
                       "could not be kept",
                       c->folder);
    if (c && code && c->done == 0 && !c->failures && !cli_caught())
        undo(c);
    return code;
}

void checkpoint_free(checkpoint *c)
{
    if (!c)
        return;
    kofn_file_free(c->state);
    json_decref(c->kept);
    json_decref(c->fingerprint);
    if (c->lock >= 0)
        close(c->lock);
    free(c);
}
