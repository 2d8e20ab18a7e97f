/* model.c -- the folder that kofn train writes and kofn predict reads:
 *
 *     DIR/model.json    the network's shape, and what points are divided by
 *     DIR/W1.npy, ...   weights of each layer, the biases in the last column
 *
 * It is a set of files (store/store.h) with the manifest model.json. So an
 * older model survives if the disk is full, and a damaged model is never
 * computed with. */
#include "cli.h"
#include "sets.h"

#include "base/try.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const activations[] = {"sigmoid", "tanh", "relu", "linear",
                                          NULL};
static const char *const losses[] = {"softmax", "squares", NULL};
static const char *const dtypes[] = {"f8", "f4", NULL};

const char *model_activation(kofn_activation f)
{
    assert(f <= KOFN_LINEAR);
    return activations[f];
}

const char *model_loss(kofn_net_loss loss)
{
    assert(loss <= KOFN_NET_LOSS_SQUARES);
    return losses[loss];
}

static kf_store set_in(const char *folder)
{
    return (kf_store){.folder = folder,
                      .name = "model.json",
                      .remedy = "copy the folder from a backup, or train "
                                "again"};
}

static void name_of(char out[KF_STORE_NAME], size_t l)
{
    snprintf(out, KF_STORE_NAME, "W%zu.npy", l);
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

static kofn_status write_weights(kf_store *s, const model *m)
{
    char path[KF_STORE_PATH], name[KF_STORE_NAME];
    const kofn_matrix *W;

    TRY(kf_store_begin(s));
    for (size_t l = 1; (W = kofn_net_weights(m->net, l)); l++) {
        name_of(name, l);
        TRY(kf_store_add(s, name, path));
        TRY(kofn_write_npy(path, W, 2));
    }
    return KOFN_OK;
}

static int write_all(const char *folder, const model *m)
{
    kf_store s = set_in(folder);
    kofn_status st = cli_set_commit(&s, describe(m), 0, write_weights(&s, m));

    kf_store_close(&s);
    return st ? cli_say(EXIT_FAILED, "%s", kofn_errmsg()) : 0;
}

int model_write(const char *folder, const model *m)
{
    bool made;
    int code;

    if (!folder)
        return 0;
    cli_guard(true);
    made = mkdir(folder, 0777) == 0;
    code = made || errno == EEXIST ? write_all(folder, m)
                                   : cli_say(EXIT_FAILED, "--output %s: %s",
                                             folder, strerror(errno));
    if (code && made)
        rmdir(folder);
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
    kf_store set;
    kofn_net_shape shape;
    size_t widths[KOFN_NET_MOST + 1];
    kofn_file *layer[KOFN_NET_MOST];
} found;

static int find_shape(found *f, model *m)
{
    const char *folder = f->set.folder;
    kofn_status st = kf_store_open(&f->set);
    json_t *o;
    int code;

    if (st == KOFN_AGAIN)
        return cli_say(EXIT_USAGE, "%s holds no model: %s", folder,
                       kofn_errmsg());
    if (st)
        return cli_set_fail(st);
    TRY_CODE(cli_set_json(&f->set, &o));
    code = take_shape(o, folder, &f->shape, f->widths, &m->unit);
    json_decref(o);
    return code;
}

static int find_layer(found *f, size_t l)
{
    size_t rows = f->widths[l], cols = f->widths[l - 1] + 1;
    char path[KF_STORE_PATH], name[KF_STORE_NAME];
    const kofn_matrix *a;
    kofn_status st;

    name_of(name, l);
    if (l > f->set.files || strcmp(f->set.file[l - 1].name, name) != 0)
        return odd(f->set.folder, "files");
    st = kf_store_find(&f->set, l - 1, NULL, path);
    if (st)
        return cli_set_fail(st);
    st = kofn_file_open(&f->layer[l - 1], path, KOFN_FILE_READ);
    if (st)
        return cli_fail_input(st);
    a = f->layer[l - 1]->matrix.dense;
    return a && a->rows == rows && a->cols == cols && a->dtype == f->shape.dtype
               ? 0
               : cli_say(EXIT_USAGE,
                         "%s is not the %zu x %zu numbers (%s) that model.json "
                         "describes; train again",
                         path, rows, cols, dtypes[f->shape.dtype]);
}

int model_read(const char *folder, model *m)
{
    found f = {.set = set_in(folder)};
    kofn_status st;
    int code;

    *m = (model){0};
    code = find_shape(&f, m);
    for (size_t l = 1; !code && l <= f.shape.layers; l++)
        code = find_layer(&f, l);
    if (!code) {
        st = kofn_net_new(&m->net, &f.shape, 0);
        code = st ? cli_fail_input(st) : 0;
    }
    for (size_t l = 1; !code && l <= f.shape.layers; l++)
        cli_copy(f.layer[l - 1]->matrix.dense, kofn_net_weights(m->net, l));
    for (size_t l = 0; l < KOFN_NET_MOST; l++)
        kofn_file_free(f.layer[l]);
    kf_store_close(&f.set);
    return code;
}

void model_free(model *m)
{
    kofn_net_free(m->net);
    *m = (model){0};
}
