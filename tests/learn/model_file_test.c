/* model_file_test.c -- models in folders, as kofn train writes them. Digests
 * are the XXH3 of the bytes. A model with a flipped bit is refused. */
#include "cli/matrix.c" /* parts of the command, not of the library */
#include "cli/model.c"
#include "cli/sets.c"

#include "io_rig.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

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

static int read_again(double out[6])
{
    model m;
    int code;

    said[0] = 0;
    code = model_read(folder, &m);
    if (!code)
        predict(&m, out);
    model_free(&m);
    return code;
}

static void refused_as(int want, const char *words)
{
    double out[6];

    assert_int_equal(read_again(out), want);
    if (!strstr(said, words))
        fail_msg("no '%s' in: %s", words, said);
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

/* Bytes of the lines that end model.json, with its own digest. */
enum { END = sizeof "  \"digest\": \"xxh3-64:0123456789abcdef\"\n}\n" - 1 };

static void digests_are_of_the_bytes(void **state)
{
    char bytes[2048];
    double out[6];
    json_t *o;
    size_t n;

    (void)state;
    make(out);
    o = json_load_file(path_of("model.json"), 0, NULL);
    for (size_t l = 0; l < 2; l++) {
        const json_t *e = json_array_get(json_object_get(o, "files"), l);

        n = read_file(names[1 + l], bytes, sizeof bytes);
        assert_string_equal(word_of(e, "name"), names[1 + l]);
        assert_int_equal(json_integer_value(json_object_get(e, "bytes")), n);
        is_digest(word_of(e, "digest"), bytes, n);
    }
    n = read_file("model.json", bytes, sizeof bytes);
    is_digest(word_of(o, "digest"), bytes, n - END);
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

static void every_bit_counts(void **state)
{
    char bytes[2048];
    double want[6], out[6];

    (void)state;
    make(want);
    for (size_t k = 0; k < COUNT(names); k++) {
        size_t n = read_file(names[k], bytes, sizeof bytes);

        assert_in_range(n, 100, sizeof bytes - 2);
        for (size_t at = 0; at < n; at++) {
            flip(names[k], at, at % 8);
            refused_as(EXIT_CORRUPT, names[k]);
            assert_non_null(strstr(said, "train again"));
            flip(names[k], at, at % 8);
        }
    }
    assert_int_equal(read_again(out), 0);
    assert_memory_equal(out, want, sizeof out);
}

/* ---- contents of model.json ---------------------------------------------- */

/* Replaces words of model.json, with the digest that this text has. */
static void reword(const char *from, const char *to)
{
    char was[2048], now_is[2048];
    size_t n = read_file("model.json", was, sizeof was), length;
    const char *at = strstr(was, from);

    assert_non_null(at);
    was[n - END] = 0;
    length = (size_t)snprintf(now_is, sizeof now_is, "%.*s%s%s",
                              (int)(at - was), was, to, at + strlen(from));
    snprintf(now_is + length, sizeof now_is - length,
             "  \"digest\": \"xxh3-64:%016llx\"\n}\n",
             (unsigned long long)XXH3_64bits(now_is, length));
    write_file("model.json", now_is, strlen(now_is));
}

static void contents(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } changes[] = {
        {"[\n    2,", "[\n    3,", "W1.npy is not the 2 x 4"},
        {"[\n    2,", "[\n    -2,", "layers is missing or not"},
        {"[\n    2,", "[\n    1099511627776,", "layers is missing or not"},
        {"\"layers\"", "\"lairs\"", "layers is missing or not"},
        {"\"tanh\"", "\"cubic\"", "activation is missing or not"},
        {"\"linear\"", "3", "output is missing or not"},
        {"\"squares\"", "null", "loss is missing or not"},
        {"\"f8\"", "\"f4\"", "W1.npy is not the 2 x 3 numbers (f4)"},
        {"false", "0", "autoencoder is missing or not"},
        {"2.5", "0", "unit is missing or not"},
        {"2.5", "-1e999", "is no JSON"},
        {"\"W2.npy\"", "\"W1.npy\"", "W1.npy is damaged or was changed"},
    };
    double out[6];

    (void)state;
    for (size_t k = 0; k < COUNT(changes); k++) {
        make(out);
        reword("\"unit\"", "\"unit\"");
        assert_int_equal(read_again(out), 0);
        reword(changes[k].from, changes[k].to);
        refused_as(strstr(changes[k].words, "damaged") ? EXIT_CORRUPT
                                                       : EXIT_USAGE,
                   changes[k].words);
    }
}

TEST_FILE(model_file_test)
{
    const struct CMUnitTest tests[] = {
        TEST(digests_are_of_the_bytes,
             "model: digests are the XXH3 of the bytes"),
        TEST(every_bit_counts, "model: a flipped bit is found"),
        TEST(contents, "model: model.json with other values is refused"),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
