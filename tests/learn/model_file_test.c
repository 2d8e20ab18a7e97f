/* model_file_test.c -- models in folders, as kofn train writes them. Digests
 * are the XXH3 of the bytes. A model with a flipped bit is refused, or
 * predicts the same to the last bit. */
#include "cli/digest.c" /* parts of the command, not of the library */
#include "cli/matrix.c"
#include "cli/model.c"

#include "io_rig.h"

/* ---- instead of the rest of the command ---------------------------------- */

static char said[2048];

int cli_say(int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(said, sizeof said, fmt, ap);
    va_end(ap);
    return code;
}

int cli_fail_input(kofn_status st)
{
    return cli_say(st == KOFN_NOMEM ? EXIT_FAILED : EXIT_USAGE, "%s",
                   kofn_errmsg());
}

size_t cli_json_lost(void)
{
    return 0;
}

double cli_spent(cli_phase p, double since)
{
    (void)p;
    (void)since;
    return 0;
}

void cli_busy(const char *doing, const char *name)
{
    (void)doing, (void)name;
}

void cli_busy_end(void)
{
}

void cli_guard(bool on)
{
    (void)on;
}

/* ---- a small model ------------------------------------------------------- */

static const char *const names[] = {"model.json", "W1.npy", "W2.npy"};

static double some[6] = {0.25, -1, 3, 0.5, 0, 7};

/* A 2-2-2 network drawn from a seed. Computes its output for three points. */
static void predict(const model *m, double out[6])
{
    const kofn_matrix X = {some, 3, 2, 2, KOFN_F64};
    kofn_matrix own, to = {out, 3, 2, 2, KOFN_F64};

    assert_int_equal(cli_divided(&X, m->unit, &own), 0);
    assert_ok(kofn_net_predict(m->net, &own, &to));
    free(own.data);
}

static void make(double out[6])
{
    const size_t widths[] = {2, 2, 2};
    const kofn_net_shape s = {.size = sizeof s,
                              .layers = 2,
                              .widths = widths,
                              .activation = KOFN_TANH,
                              .output = KOFN_LINEAR,
                              .loss = KOFN_NET_LOSS_SQUARES,
                              .dtype = KOFN_F64};
    model m = {.unit = 2.5};

    assert_ok(kofn_net_new(&m.net, &s, 7));
    assert_int_equal(model_write(folder, &m), 0);
    predict(&m, out);
    model_free(&m);
}

static int read_again(bool *sealed, double out[6])
{
    model m;
    int code;

    said[0] = 0;
    code = model_read(folder, &m);
    *sealed = m.sealed;
    if (!code)
        predict(&m, out);
    model_free(&m);
    return code;
}

static void refused_as(int want, const char *words)
{
    double out[6];
    bool sealed;

    assert_int_equal(read_again(&sealed, out), want);
    if (!strstr(said, words))
        fail_msg("no '%s' in: %s", words, said);
}

static void accepted(bool sealed, const double want[6])
{
    double out[6];
    bool is;

    if (read_again(&is, out))
        fail_msg("refused: %s", said);
    assert_int_equal(is, sealed);
    assert_memory_equal(out, want, sizeof out);
}

/* ---- digests ------------------------------------------------------------- */

static const char *word_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* Fails unless the text is "xxh3-64:" and the XXH3 of the bytes in
 * hexadecimal. */
static void is_digest(const char *is, const void *bytes, size_t n)
{
    char want[40];

    snprintf(want, sizeof want, "xxh3-64:%016llx",
             (unsigned long long)XXH3_64bits(bytes, n));
    assert_string_equal(is, want);
}

static void digests_are_of_the_bytes(void **state)
{
    char bytes[2048], d[2][40];
    double out[6];
    json_t *o;

    (void)state;
    make(out);
    o = json_load_file(path_of("model.json"), 0, NULL);
    for (size_t l = 0; l < 2; l++) {
        const json_t *e = json_array_get(json_object_get(o, "files"), l);
        size_t n = read_file(names[1 + l], bytes, sizeof bytes);

        assert_string_equal(word_of(e, "name"), names[1 + l]);
        is_digest(word_of(e, "digest"), bytes, n);
        snprintf(d[l], sizeof d[l], "%s", word_of(e, "digest"));
    }
    snprintf(bytes, sizeof bytes,
             "{\"activation\":\"tanh\",\"autoencoder\":false,"
             "\"dtype\":\"f8\",\"files\":["
             "{\"digest\":\"%s\",\"name\":\"W1.npy\"},"
             "{\"digest\":\"%s\",\"name\":\"W2.npy\"}],"
             "\"kofn\":\"%s\",\"layers\":[2,2,2],\"loss\":\"squares\","
             "\"output\":\"linear\",\"unit\":2.5}",
             d[0], d[1], KOFN_VERSION);
    is_digest(word_of(o, "digest"), bytes, strlen(bytes));
    json_decref(o);
}

/* ---- bits ---------------------------------------------------------------- */

static void flip(const char *name, size_t at, unsigned bit)
{
    FILE *f = fopen(path_of(name), "r+b");
    int c;

    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    c = fgetc(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    fputc(c ^ (1 << bit), f);
    assert_int_equal(fclose(f), 0);
}

static void try_bit(const char *name, size_t at, unsigned bit,
                    const double want[6])
{
    bool weights = name[0] == 'W', sealed;
    double out[6];
    int code;

    flip(name, at, bit);
    code = read_again(&sealed, out);
    flip(name, at, bit);
    if (!code && (weights || memcmp(out, want, sizeof out) != 0))
        fail_msg("bit %u of byte %zu of %s is flipped, and the model is read",
                 bit, at, name);
    if (code && code != EXIT_CORRUPT && (weights || code != EXIT_USAGE))
        fail_msg("bit %u of byte %zu of %s: %d", bit, at, name, code);
    if (code && !strstr(said, name))
        fail_msg("%s is damaged, and the message is: %s", name, said);
}

static void every_bit_counts(void **state)
{
    char bytes[2048];
    double want[6];

    (void)state;
    make(want);
    for (size_t k = 0; k < COUNT(names); k++) {
        size_t n = read_file(names[k], bytes, sizeof bytes);

        assert_in_range(n, 100, sizeof bytes - 2);
        for (size_t at = 0; at < n; at++)
            for (unsigned bit = 0; bit < 8; bit++)
                try_bit(names[k], at, bit, want);
    }
    accepted(true, want);
}

static void wrong_lengths(void **state)
{
    char bytes[2048];
    double out[6];
    size_t n;

    (void)state;
    make(out);
    n = read_file("W2.npy", bytes, sizeof bytes);
    write_file("W2.npy", bytes, n - 8);
    refused_as(EXIT_CORRUPT, "W2.npy is damaged");
    write_file("W2.npy", bytes, n + 1); /* and the 0 that read_file added */
    refused_as(EXIT_CORRUPT, "W2.npy is damaged");
    write_file("W2.npy", bytes, n);
    n = read_file("W1.npy", bytes, sizeof bytes);
    write_file("W2.npy", bytes, n); /* whole, but of another file */
    refused_as(EXIT_CORRUPT, "W2.npy is damaged");
    unlink(path_of("W2.npy"));
    refused_as(EXIT_USAGE, "W2.npy cannot be read: No such file");
}

/* ---- contents of model.json ---------------------------------------------- */

static void write_json(const json_t *o, size_t flags)
{
    assert_int_equal(json_dump_file(o, path_of("model.json"), flags), 0);
}

/* Computes the digest of model.json again, by XXH3 itself. */
static void seal(json_t *o)
{
    char digest[40], *text;

    json_object_del(o, "digest");
    text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    snprintf(digest, sizeof digest, "xxh3-64:%016llx",
             (unsigned long long)XXH3_64bits(text, strlen(text)));
    json_object_set_new(o, "digest", json_string(digest));
    free(text);
    write_json(o, 0);
}

static json_t *made(double out[6])
{
    json_t *o;

    make(out);
    o = json_load_file(path_of("model.json"), 0, NULL);
    assert_non_null(o);
    return o;
}

static void layout_of_json(void **state)
{
    double want[6];
    json_t *o = made(want);

    (void)state;
    write_json(o, JSON_COMPACT | JSON_SORT_KEYS);
    accepted(true, want);
    json_object_set_new(o, "unit", json_real(2.25));
    write_json(o, 0);
    refused_as(EXIT_CORRUPT, "model.json is damaged or was changed");
    json_decref(o);
}

static void older_models(void **state)
{
    double want[6];
    json_t *o = made(want);

    (void)state;
    json_object_del(o, "digest");
    write_json(o, 0);
    refused_as(EXIT_CORRUPT, "model.json is damaged or was changed: its own");
    json_object_set_new(o, "digest", json_integer(3));
    write_json(o, 0);
    refused_as(EXIT_CORRUPT, "model.json is damaged or was changed: its own");
    json_object_del(o, "digest");
    json_object_del(o, "files");
    write_json(o, 0);
    accepted(false, want);
    seal(o);
    refused_as(EXIT_USAGE, "model.json: files is missing");
    json_decref(o);
}

static void unknown_digests(void **state)
{
    double want[6];
    json_t *o = made(want), *first;

    (void)state;
    json_object_set_new(o, "digest", json_string("sha256:0123"));
    write_json(o, 0);
    refused_as(EXIT_USAGE, "model.json has a digest \"sha256:0123\"");
    first = json_array_get(json_object_get(o, "files"), 0);
    json_object_set_new(first, "digest", json_string("blake3:4567"));
    seal(o);
    refused_as(EXIT_USAGE, "W1.npy has a digest \"blake3:4567\"");
    json_object_set_new(first, "name", json_string("../W1.npy"));
    seal(o);
    refused_as(EXIT_USAGE, "model.json: files is missing");
    json_decref(o);
}

TEST_FILE(model_file_test)
{
    const struct CMUnitTest tests[] = {
        TEST(digests_are_of_the_bytes,
             "model: digests are the XXH3 of the bytes"),
        TEST(every_bit_counts,
             "model: a flipped bit is found or changes no prediction"),
        TEST(wrong_lengths, "model: missing and added bytes are damage"),
        TEST(layout_of_json,
             "model: the layout of model.json may change, its values may not"),
        TEST(older_models,
             "model: a model of an older release without digests is read"),
        TEST(unknown_digests, "model: unknown digests are refused by name"),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
