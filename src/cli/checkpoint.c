/* checkpoint.c -- keeps what a job needs to resume after its coordinator was
 * killed.
 *
 *     DIR/checkpoint.json    fingerprint and progress
 *     DIR/before.json        the same for the state before
 *     DIR/state-0.npy, -1    states, written in turn
 *     DIR/lock               held by the process in use of the folder
 *
 * A state is a set of files (store/store.h) with the manifest checkpoint.json.
 * So the folder always holds the last complete state. Mostly it also holds the
 * state before, which is used if the disk has damaged the last. The fingerprint
 * names everything that the numbers depend on. If any of it changed, the job
 * does not resume.
 *
 * This file owns the folder's lock and the state it read. It borrows a job's
 * vectors while it saves them. It touches no file of the folder without the
 * lock. */
#include "fingerprint.h"
#include "sets.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/try.h"

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
    kf_store set;
    json_t *kept; /* the manifest as found, or NULL */
    kofn_file *state;
    unsigned resumed, done, failures;
    unsigned parity;  /* number of the next state file, 0 or 1 */
    bool behind;      /* the last state could not be kept */
    bool made, begun; /* this process created the folder; and the set */
    size_t lost;      /* last count of cli_json_lost */
    double seconds;
};

enum { PATH = KF_STORE_PATH };

static char *lock_of(char out[PATH], const checkpoint *c)
{
    snprintf(out, PATH, "%s/lock", c->folder);
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

static int say_inputs(json_t *o, const cli_args *a)
{
    for (int i = 0; i < a->operands; i++) {
        uint64_t bytes, digest;
        struct stat st;
        char key[32];

        if (stat(a->operand[i], &st) != 0 || !S_ISREG(st.st_mode) ||
            kf_store_digest(a->operand[i], &bytes, &digest))
            return cli_say(EXIT_USAGE,
                           "--checkpoint: %s cannot be read a "
                           "second time; put it into an ordinary file",
                           a->operand[i]);
        snprintf(key, sizeof key, "input %d, bytes", i + 1);
        fingerprint_size(o, key, bytes);
        snprintf(key, sizeof key, "input %d, digest", i + 1);
        PUT(key, json_sprintf("%016" PRIx64, digest));
    }
    return 0;
}

/* Computes a number from all values of o. Returns false if memory ran out. */
static bool number_of(const json_t *o, uint64_t *out)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    bool ok = text != NULL;

    *out = ok ? kf_hash(0, text, strlen(text)) : 0;
    free(text);
    return ok;
}

/* Stores all that the numbers depend on, key to string. */
static int take_fingerprint(checkpoint *c, const cli_args *a, const char *spec)
{
    json_t *o = c->fingerprint = json_object();

    if (!o)
        return cli_say(EXIT_FAILED, "out of memory");
    fingerprint_options(o, a);
    fingerprint_text(o, "--scheme", spec);
    fingerprint_size(o, "--workers", a->workers);
    TRY_CODE(say_inputs(o, a));
    if (!number_of(o, &c->job) || loses(c))
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

/* Reads the state of the set that was opened, if it has one. */
static int read_state(checkpoint *c)
{
    json_int_t done = json_integer_value(json_object_get(c->kept, "done"));
    char path[PATH];
    kofn_status st;

    if (done == 0 && c->set.files == 0)
        return 0;
    if (done < 1 || done > UINT32_MAX || c->set.files != 1)
        return cli_say(EXIT_USAGE,
                       "%s/checkpoint.json says not how far it is; remove the "
                       "folder to restart",
                       c->folder);
    st = kf_store_find(&c->set, 0, NULL, path);
    if (st)
        return cli_set_fail(st);
    st = kofn_file_open(&c->state, path, KOFN_FILE_READ);
    if (st)
        return cli_fail_input(st);
    if (!c->state->matrix.dense)
        return cli_say(EXIT_USAGE, "%s is sparse, and no state is", path);
    c->parity = strcmp(c->set.file[0].name, "state-0.npy") == 0;
    c->resumed = c->done = (unsigned)done;
    return 0;
}

static int read_kept(checkpoint *c, bool quiet)
{
    char why[1000];

    snprintf(why, sizeof why, "%s", c->set.is_old ? kofn_errmsg() : "");
    TRY_CODE(cli_set_json(&c->set, &c->kept));
    TRY_CODE(compare(c, json_object_get(c->kept, "fingerprint"), quiet));
    if (c->set.is_old)
        cli_say(0,
                "%s; going on with the state before it, after round or "
                "iteration %" JSON_INTEGER_FORMAT,
                why, json_integer_value(json_object_get(c->kept, "done")));
    kf_store_settle(&c->set);
    return read_state(c);
}

/* Finds the checkpoint in the folder and checks that it belongs to this job. */
static int find_kept(checkpoint *c, const cli_args *a)
{
    kofn_status st = kf_store_open(&c->set);

    if (st == KOFN_AGAIN) {
        kf_store_settle(&c->set);
        return !a->resume || a->quiet
                   ? 0
                   : cli_say(
                         0,
                         "%s holds no checkpoint; starting from the beginning",
                         c->folder);
    }
    if (!a->resume)
        return cli_say(
            EXIT_USAGE,
            "%s already holds a checkpoint; give --resume to continue it, or "
            "another folder",
            c->folder);
    return st ? cli_set_fail(st) : read_kept(c, a->quiet);
}

/* ---- opening ------------------------------------------------------------- */

/* Refuses the folder of a model or a mesh, and states without a manifest. */
static int refuse_others(const checkpoint *c)
{
    static const char *const others[] = {"model.json", "seat-", "state-", NULL};
    char path[PATH];

    if (strlen(c->folder) + 32 > PATH) /* claim() says so */
        return 0;
    snprintf(path, sizeof path, "%s/checkpoint.json", c->folder);
    if (access(path, F_OK) == 0)
        return 0;
    snprintf(path, sizeof path, "%s/before.json", c->folder);
    return access(path, F_OK) == 0 ? 0 : cli_set_refuse(c->folder, others);
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
    c->lock = open(lock_of(path, c), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (c->lock < 0)
        return cli_say(EXIT_FAILED, "--checkpoint %s: %s%s",
                       errno == ENOTDIR ? c->folder : path, strerror(errno),
                       errno == ENOTDIR ? "; name a folder" : "");
    errno = EAGAIN; /* the lock's owner has just removed it */
    if (fcntl(c->lock, F_SETLK, &whole) == 0 && fstat(c->lock, &st) == 0 &&
        st.st_nlink > 0)
        return 0;
    c->made = false;
    return errno == EACCES || errno == EAGAIN
               ? cli_say(EXIT_FAILED,
                         "--checkpoint %s: another kofn is at work there",
                         c->folder)
               : cli_say(EXIT_FAILED, "--checkpoint %s: %s", path,
                         strerror(errno));
}

/* Writes a set, with the state if there is one. */
static kofn_status write_state(checkpoint *c, const kofn_matrix *state)
{
    char name[] = "state-0.npy", path[PATH];

    name[6] = (char)('0' + c->parity);
    TRY(kf_store_begin(&c->set));
    if (!state)
        return KOFN_OK;
    TRY(kf_store_add(&c->set, name, path));
    return kofn_write_npy(path, state, 2);
}

static kofn_status save(checkpoint *c, const kofn_matrix *state,
                        json_t *numbers)
{
    json_t *o = json_object();
    kofn_status st;

    PUT("kofn", json_string(KOFN_VERSION));
    PUT("job", json_sprintf("%016" PRIx64, c->job));
    PUT_WHOLE("done", c->done);
    if (numbers)
        json_object_set(o, "numbers", numbers);
    json_object_set(o, "fingerprint", c->fingerprint);
    st = cli_set_commit(&c->set, o, c->lost, write_state(c, state));
    loses(c); /* resets the count; the next set may be complete */
    return st;
}

int checkpoint_open(checkpoint **out, const cli_args *a, const char *spec)
{
    checkpoint *c;

    if (!a->checkpoint)
        return a->resume ? cli_say(EXIT_USAGE, "--resume needs --checkpoint "
                                               "and the folder")
                         : 0;
    *out = c = calloc(1, sizeof *c);
    if (!c)
        return cli_say(EXIT_FAILED, "out of memory");
    c->folder = a->checkpoint;
    c->set = (kf_store){.folder = c->folder,
                        .name = "checkpoint.json",
                        .before = "before.json",
                        .remedy = "remove the folder to restart"};
    c->lost = cli_json_lost();
    c->lock = -1;
    TRY_CODE(refuse_others(c));
    TRY_CODE(claim(c));
    TRY_CODE(take_fingerprint(c, a, spec));
    TRY_CODE(find_kept(c, a));
    c->begun = !c->kept;
    return c->begun && save(c, NULL, NULL)
               ? cli_say(EXIT_FAILED, "--checkpoint %s: %s", c->folder,
                         kofn_errmsg())
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

void checkpoint_save(checkpoint *c, unsigned done, const kofn_matrix *state,
                     json_t *numbers)
{
    double start = kf_clock_seconds();
    unsigned was;

    if (!c) {
        json_decref(numbers);
        return;
    }
    was = c->done;
    c->done = done;
    if (!save(c, state, numbers)) {
        c->parity = !c->parity;
        c->behind = false;
    } else {
        if (!c->behind)
            cli_say(
                0,
                "--checkpoint %s: %s; the state after round or iteration %u "
                "was not saved; that of %u remains on disk, and the job "
                "continues",
                c->folder, kofn_errmsg(), done, was);
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

    if (c->begun && kf_store_remove(&c->set))
        return;
    if (!c->made)
        return;
    unlink(lock_of(path, c));
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
    kf_store_close(&c->set);
    if (c->lock >= 0)
        close(c->lock);
    free(c);
}
