/* model.c -- the folder that kofn train writes and kofn predict reads:
 *
 *     DIR/model.json    the network's shape, and what points are divided by
 *     DIR/W1.npy, ...   weights of each layer, the biases in the last column
 *
 * model.json has a digest of each file of weights, and one of its own
 * contents. So a damaged model is never computed with.
 *
 * All files are written under other names first. So an older model survives if
 * the disk is full. Then model.json is renamed, and from that moment the new
 * model counts. If the process is killed before it has renamed the weights,
 * they are found by their digests. The other names are unique to this process:
 * all ranks of an MPI job write the model, perhaps from several machines. */
#include "cli.h"
#include "digest.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4096 };

/* Longest ending of the temporary names. */
enum { ENDING = 40 };

static const char *const activations[] = {"sigmoid", "tanh", "relu", "linear",
                                          NULL};
static const char *const losses[] = {"softmax", "squares", NULL};
static const char *const dtypes[] = {"f8", "f4", NULL};

/* A digest is written as the name of the algorithm and 16 digits. */
#define ALGORITHM "xxh3-64:"
enum { DIGEST = sizeof ALGORITHM + 16 };

/* Returns the path of a layer's file; layer 0: of model.json. */
static char *file_in(char out[PATH], const char *folder, size_t l,
                     const char *end)
{
    if (l)
        snprintf(out, PATH, "%s/W%zu.npy%s", folder, l, end);
    else
        snprintf(out, PATH, "%s/model.json%s", folder, end);
    return out;
}

static int too_long(const char *folder)
{
    return strlen(folder) + 64 > PATH
               ? cli_say(EXIT_USAGE, "the name of the folder is too long")
               : 0;
}

/* ---- digests ------------------------------------------------------------- */

/* Computes the digest of all that model.json says except this digest, whatever
 * its layout. Returns 0, or the exit code after a message. */
static int digest_index(json_t *o, char out[DIGEST])
{
    uint64_t hash;

    json_object_del(o, "digest");
    if (!cli_digest_json(o, &hash) || cli_json_lost())
        return cli_say(EXIT_FAILED, "out of memory");
    snprintf(out, DIGEST, ALGORITHM "%016" PRIx64, hash);
    return 0;
}

/* Computes the digest of a file. Returns false if the file cannot be read. */
static bool has_digest(const char *path, char out[DIGEST])
{
    uint64_t bytes;

    memcpy(out, ALGORITHM, sizeof ALGORITHM);
    return cli_digest_file(path, &bytes, out + strlen(ALGORITHM));
}

/* Computes the digest of a file that must exist. */
static int digest_file(const char *path, char out[DIGEST])
{
    return has_digest(path, out)
               ? 0
               : cli_say(errno == ENOMEM ? EXIT_FAILED : EXIT_USAGE,
                         "%s cannot be read: %s", path, strerror(errno));
}

/* ---- writing ------------------------------------------------------------- */

static json_t *describe(const model *m)
{
    kofn_net_shape s = KOFN_NET_SHAPE_INIT;
    json_t *widths = json_array();

    kofn_net_describe(m->net, &s);
    for (size_t l = 0; l <= s.layers; l++)
        json_array_append_new(widths, json_integer((json_int_t)s.widths[l]));
    return json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:b, s:f}", "kofn",
                     KOFN_VERSION, "layers", widths, "activation",
                     activations[s.activation], "output", activations[s.output],
                     "loss", losses[s.loss], "dtype", dtypes[s.dtype],
                     "autoencoder", s.autoencoder, "unit", m->unit);
}

/* Puts the name and the digest of each file of weights into `list`. */
static int list_files(json_t *list, const char *folder, const char *end,
                      const model *m)
{
    char path[PATH], digest[DIGEST];

    for (size_t l = 1; kofn_net_weights(m->net, l); l++) {
        if (digest_file(file_in(path, folder, l, end), digest))
            return EXIT_FAILED;
        json_array_append_new(list, json_pack("{s:o, s:s}", "name",
                                              json_sprintf("W%zu.npy", l),
                                              "digest", digest));
    }
    return 0;
}

/* Writes model.json, after the weights. */
static int write_index(const char *folder, const char *end, const model *m)
{
    json_t *o = describe(m), *list = json_array();
    char path[PATH], digest[DIGEST];
    const char *why;
    int code = list_files(list, folder, end, m);

    json_object_set_new(o, "files", list);
    if (!code)
        code = digest_index(o, digest);
    if (code) {
        json_decref(o);
        return code;
    }
    json_object_set_new(o, "digest", json_string(digest));
    why = cli_write_json(file_in(path, folder, 0, end), o, 0);
    return why ? cli_say(EXIT_FAILED, "%s", why) : 0;
}

static int write_all(const char *folder, const char *end, const model *m)
{
    char path[PATH];
    const kofn_matrix *W;

    for (size_t l = 1; (W = kofn_net_weights(m->net, l)); l++)
        if (kofn_write_npy(file_in(path, folder, l, end), W, 2))
            return cli_say(EXIT_FAILED, "%s", kofn_errmsg());
    return write_index(folder, end, m);
}

/* Synchronises the folder, so that a crash does not undo the renaming. Some
 * file systems cannot. */
static void sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

static int name_one(const char *folder, const char *end, size_t l)
{
    char from[PATH], to[PATH];

    file_in(from, folder, l, end);
    file_in(to, folder, l, "");
    return rename(from, to)
               ? cli_say(EXIT_FAILED, "%s: %s", to, strerror(errno))
               : 0;
}

/* Renames the weights, after model.json has its name. */
static int name_weights(const char *folder, const char *end, const model *m)
{
    int code = 0;

    sync_folder(folder);
    for (size_t l = 1; !code && kofn_net_weights(m->net, l); l++)
        code = name_one(folder, end, l);
    sync_folder(folder);
    return code;
}

static void remove_new(const char *folder, const char *end, const model *m)
{
    char path[PATH];

    for (size_t l = 1; kofn_net_weights(m->net, l); l++)
        unlink(file_in(path, folder, l, end));
    unlink(file_in(path, folder, 0, end));
}

int model_write(const char *folder, const model *m)
{
    char end[ENDING];
    bool made;
    int code;

    if (!folder)
        return 0;
    if (too_long(folder))
        return EXIT_USAGE;
    /* processes on several machines may have the same number */
    snprintf(end, sizeof end, ".new%lx-%llx", (unsigned long)getpid(),
             (unsigned long long)kf_clock() % 0x100000000);
    cli_guard(true);
    made = mkdir(folder, 0777) == 0;
    code = made || errno == EEXIST ? write_all(folder, end, m)
                                   : cli_say(EXIT_FAILED, "--output %s: %s",
                                             folder, strerror(errno));
    if (!code)
        code = name_one(folder, end, 0);
    if (code)
        remove_new(folder, end, m);
    if (code && made)
        rmdir(folder);
    if (!code)
        code = name_weights(folder, end, m);
    cli_guard(false);
    return code;
}

/* ---- reading ------------------------------------------------------------- */

static int odd(const char *folder, const char *what)
{
    return cli_say(EXIT_USAGE,
                   "%s/model.json: %s is missing or not what kofn train "
                   "writes; train again",
                   folder, what);
}

/* Returns the place of the word, or -1. */
static int place_of(const json_t *o, const char *key, const char *const *words)
{
    const char *word = json_string_value(json_object_get(o, key));

    for (int i = 0; word && words[i]; i++)
        if (!strcmp(word, words[i]))
            return i;
    return -1;
}

static int take_widths(const json_t *o, const char *folder, kofn_net_shape *s,
                       size_t widths[KOFN_NET_MOST + 1])
{
    const json_t *list = json_object_get(o, "layers");
    size_t n = json_array_size(list);

    if (n < 2 || n > KOFN_NET_MOST + 1)
        return odd(folder, "layers");
    for (size_t l = 0; l < n; l++) {
        json_int_t x = json_integer_value(json_array_get(list, l));

        if (x < 1 || x >= INT_MAX)
            return odd(folder, "layers");
        widths[l] = (size_t)x;
    }
    s->layers = n - 1;
    s->widths = widths;
    return 0;
}

static int take_shape(const json_t *o, const char *folder, kofn_net_shape *s,
                      size_t widths[KOFN_NET_MOST + 1], double *unit)
{
    int f = place_of(o, "activation", activations),
        last = place_of(o, "output", activations),
        loss = place_of(o, "loss", losses),
        dtype = place_of(o, "dtype", dtypes);
    const json_t *coder = json_object_get(o, "autoencoder");

    TRY_CODE(take_widths(o, folder, s, widths));
    if (f < 0 || last < 0)
        return odd(folder, f < 0 ? "activation" : "output");
    if (loss < 0 || dtype < 0)
        return odd(folder, loss < 0 ? "loss" : "dtype");
    if (!json_is_boolean(coder))
        return odd(folder, "autoencoder");
    s->size = sizeof *s;
    s->activation = (kofn_activation)f;
    s->output = (kofn_activation)last;
    s->loss = (kofn_net_loss)loss;
    s->dtype = (kofn_dtype)dtype;
    s->autoencoder = json_is_true(coder);
    *unit = json_number_value(json_object_get(o, "unit"));
    return *unit > 0 && *unit < (double)INFINITY ? 0 : odd(folder, "unit");
}

/* A model while it is read, before its weights are allocated. */
typedef struct found {
    json_t *index; /* model.json without its own digest */
    kofn_net_shape shape;
    size_t widths[KOFN_NET_MOST + 1];
    kofn_file *layer[KOFN_NET_MOST];
    char path[PATH]; /* file of the current layer */
} found;

/* Compares the digest `is` of the file with the one in model.json. */
static int compare(const char *path, const char *want, const char *is)
{
    size_t n = strlen(ALGORITHM);

    if (strncmp(want, ALGORITHM, n))
        return cli_say(EXIT_USAGE,
                       "%s has a digest \"%.40s\", and this kofn knows those "
                       "that begin with " ALGORITHM " only; read it with the "
                       "kofn that wrote it, or train again",
                       path, want);
    if (!strcmp(want, is))
        return 0;
    return cli_say(
        EXIT_CORRUPT,
        "%s is damaged or was changed: its digest is %s, but kofn train wrote "
        "a file with %.40s; copy it from a backup, or train again",
        path, is + n, want + n);
}

/* Checks the digest of model.json. Older models have none. */
static int check_index(found *f, model *m, const char *path)
{
    json_t *want = json_incref(json_object_get(f->index, "digest"));
    char is[DIGEST];
    int code = 0;

    m->sealed = want || json_object_get(f->index, "files");
    if (m->sealed)
        code = digest_index(f->index, is);
    if (!code && m->sealed)
        code = json_is_string(want)
                   ? compare(path, json_string_value(want), is)
                   : cli_say(EXIT_CORRUPT,
                             "%s is damaged or was changed: its own digest is "
                             "missing; take it from a copy of the model, or "
                             "train again",
                             path);
    json_decref(want);
    return code;
}

static int find_index(found *f, model *m, const char *folder)
{
    char path[PATH];
    json_error_t e;

    f->index = json_load_file(file_in(path, folder, 0, ""), 0, &e);
    if (!f->index)
        return access(path, F_OK)
                   ? cli_say(EXIT_USAGE, "%s holds no model: %s", folder,
                             strerror(errno))
                   : cli_say(EXIT_USAGE, "%s: %s; train again", path, e.text);
    TRY_CODE(check_index(f, m, path));
    return take_shape(f->index, folder, &f->shape, f->widths, &m->unit);
}

/* Finds the file of weights with this digest that has not been renamed.
 * Returns false if there is none. */
static bool find_draft(char path[PATH], const char *folder, const char *name,
                       const char *want)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    size_t n = strlen(name);
    char is[DIGEST];
    bool is_there = false;

    while (d && !is_there && (e = readdir(d)))
        if (!strncmp(e->d_name, name, n) &&
            !strncmp(e->d_name + n, ".new", 4) && strlen(e->d_name) < 64) {
            snprintf(path, PATH, "%s/%s", folder, e->d_name);
            is_there = has_digest(path, is) && !strcmp(is, want);
        }
    if (d)
        closedir(d);
    return is_there;
}

/* Checks a layer's digest before the file is opened as a matrix. */
static int check_layer(found *f, const char *folder, size_t l)
{
    const json_t *entry =
        json_array_get(json_object_get(f->index, "files"), l - 1);
    const char *name = json_string_value(json_object_get(entry, "name"));
    const char *want = json_string_value(json_object_get(entry, "digest"));
    char *path = file_in(f->path, folder, l, ""), is[DIGEST];

    if (!name || !want || strcmp(name, strrchr(path, '/') + 1))
        return odd(folder, "files");
    if ((!has_digest(path, is) || strcmp(is, want)) &&
        find_draft(f->path, folder, name, want))
        return 0;
    file_in(path, folder, l, "");
    TRY_CODE(digest_file(path, is));
    return compare(path, want, is);
}

static int find_layer(found *f, size_t l)
{
    size_t rows = f->widths[l], cols = f->widths[l - 1] + 1;
    const char *path = f->path;
    kofn_status st = kofn_file_open(&f->layer[l - 1], path, KOFN_FILE_READ);
    const kofn_matrix *a = st ? NULL : f->layer[l - 1]->matrix.dense;

    if (st)
        return cli_fail_input(st);
    return a && a->rows == rows && a->cols == cols && a->dtype == f->shape.dtype
               ? 0
               : cli_say(EXIT_USAGE,
                         "%s is not the %zu x %zu numbers (%s) that model.json "
                         "describes; train again",
                         path, rows, cols, dtypes[f->shape.dtype]);
}

int model_read(const char *folder, model *m)
{
    found f = {0};
    kofn_status st;
    int code;

    *m = (model){0};
    if (too_long(folder))
        return EXIT_USAGE;
    code = find_index(&f, m, folder);
    for (size_t l = 1; !code && l <= f.shape.layers; l++) {
        file_in(f.path, folder, l, "");
        code = m->sealed ? check_layer(&f, folder, l) : 0;
        if (!code)
            code = find_layer(&f, l);
    }
    if (!code) {
        st = kofn_net_new(&m->net, &f.shape, 0);
        code = st ? cli_fail_input(st) : 0;
    }
    for (size_t l = 1; !code && l <= f.shape.layers; l++)
        cli_copy(f.layer[l - 1]->matrix.dense, kofn_net_weights(m->net, l));
    for (size_t l = 0; l < KOFN_NET_MOST; l++)
        kofn_file_free(f.layer[l]);
    json_decref(f.index);
    return code;
}

void model_free(model *m)
{
    kofn_net_free(m->net);
    *m = (model){0};
}
