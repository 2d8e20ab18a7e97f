/* io_libsvm_test.c -- points with labels in the LIBSVM format: every variant
 * and every refusal. */
#include "io_rig.h"

#include <zlib.h>

static void labels_are(const kofn_file *f, size_t n, const double *want)
{
    const kofn_matrix *y = f->labels;

    assert_non_null(y);
    assert_int_equal(y->rows, n);
    assert_int_equal(y->cols, 1);
    assert_int_equal(y->ld, 1);
    assert_int_equal(y->dtype, KOFN_F64);
    for (size_t i = 0; i < n; i++)
        assert_true(at(y, i, 0) == want[i]);
}

static void check(const char *name, const void *bytes, size_t n, size_t rows,
                  size_t cols, const double *x, const double *y)
{
    kofn_file *f;

    reads_as(name, bytes, n, 2, rows, cols, x);
    assert_ok(kf_file_parse(&f, bytes, n, name));
    assert_non_null(f->matrix.sparse);
    labels_are(f, rows, y);
    kofn_file_free(f);
}

static void libsvm_variants(void **state)
{
    static const struct {
        const char *text;
        size_t rows, cols;
        double x[9], y[3];
        /* clang-format off */
    } all[] = {
        {"+1 1:0.5 3:-2\n-1 2:1e2\n", 2, 3, {0.5, 0, -2, 0, 100, 0}, {1, -1}},
        {"# made by hand\n\n3.25\t2:.5 \r\n  0 1:4 # a comment 9:9\n-7.5e1", 3, 2,
         {0, 0.5, 4, 0, 0, 0}, {3.25, 0, -75}},
        {"\xef\xbb\xbf" "2 1:1#close\n1 # 2:3 and no entry\n", 2, 1, {1, 0},
         {2, 1}},
        {"1 01:0 02:7", 1, 2, {0, 7}, {1}},
        {"1 1:1 2:1 3:1\n2 3:5\n3 1:6 2:-0.125", 3, 3,
         {1, 1, 1, 0, 0, 5, 6, -0.125, 0}, {1, 2, 3}},
    };
    /* clang-format on */

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        check(k % 2 ? "a.libsvm" : "a.SVM", all[k].text, strlen(all[k].text),
              all[k].rows, all[k].cols, all[k].x, all[k].y);
}

/* The entries are those of the file, including listed zeros. */
static void entries_stay_as_they_are(void **state)
{
    static const char text[] = "1 2:0 4294967295:3\n-1\n";
    const kofn_sparse *s;
    kofn_file *f;

    (void)state;
    assert_ok(kf_file_parse(&f, text, sizeof text - 1, "a.svm"));
    s = f->matrix.sparse;
    assert_true(s->rows == 2 && s->cols == 4294967295);
    assert_true(s->ptr[0] == 0 && s->ptr[1] == 2 && s->ptr[2] == 2);
    assert_true(s->col[0] == 1 && s->val[0] == 0);
    assert_true(s->col[1] == 4294967294 && s->val[1] == 3);
    kofn_file_free(f);
}

static void libsvm_refusals(void **state)
{
    static const char *const all[][2] = {
        {"1 1:1\n2 0:3\n", "line 2: index 0|from 1"},
        {"1 2:1 1:1\n", "line 1: index 1 comes after index 2|ascending"},
        {"# c\n1 2:1 2:1\n", "line 2: index 2 comes after index 2|once"},
        {"1 1:1\n\nx 1:2\n", "line 3: 'x' has no number for its label"},
        {"1:2 2:3\n", "line 1: '1:2' has no number for its label"},
        {"1,2 1:3\n", "line 1: '1,2' has no number for its label"},
        {"1 1:1\n1 2:x\n", "line 2: '2:x' has no number for its value"},
        {"1 2:\n", "line 1: '2:' has no number for its value"},
        {"1 2: 3\n", "line 1: '2:' has no number for its value"},
        {"1 1:2:3\n", "line 1: '1:2:3' has no number for its value"},
        {"1 2\n", "line 1: '2' is not index:value"},
        {"1 2 :3\n", "line 1: '2' is not index:value"},
        {"1 -2:1\n", "line 1: '-2:1' is not index:value"},
        {"1 1.5:1\n", "line 1: '1.5:1' is not index:value"},
        {"1 a:1\n", "line 1: 'a:1' is not index:value"},
        {"1 1:1\n1 4294967296:1\n",
         "line 2: '4294967296:1' is not|from 1 to 4294967295"},
        {"1 18446744073709551617:1\n", "'18446744073709551617:1' is not"},
        {"1 1:1\n2 qid:3 1:1\n", "line 2: 'qid:3'|not supported|remove every"},
        {"1\n2\n", "2 lines have labels and none has an index:value"},
        {"# nothing\n", "0 lines"},
        {"1 1:1\r2 1:1\n", "line 1"},
    };
    static const char *const odd[][2] = {
        {"1 1:1\nnan 1:1\n", "line 2: the label of 'nan' is no finite number"},
        {"-inf 1:1\n", "line 1: the label of '-inf' is no finite number"},
        {"1 1:NaN\n", "line 1: the value of '1:NaN' is no finite number"},
        {"1 1:2 2:Infinity\n", "line 1: the value of '2:Infinity' is no"},
        {"1 1:1\n1 1:1e999\n", "line 2: the value of '1:1e999' is too large"},
        {"-1e400 1:1\n", "line 1: the label of '-1e400' is too large"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(KOFN_FORMAT, "a.svm", all[k][0], strlen(all[k][0]), all[k][1]);
    for (size_t k = 0; k < COUNT(odd); k++)
        refused(KOFN_NONFINITE, "a.libsvm", odd[k][0], strlen(odd[k][0]),
                odd[k][1]);
}

static size_t pack(unsigned char *to, size_t room, const void *from, size_t n)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
                  .avail_in = (unsigned)n,
                  .next_out = to,
                  .avail_out = (unsigned)room};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

/* Repeats the line until there are more than n bytes. */
static char *repeat(const char *line, size_t n, size_t *length)
{
    size_t each = strlen(line), times = n / each + 1;
    char *text = malloc(each * times + 8);

    assert_non_null(text);
    for (size_t k = 0; k < times; k++)
        memcpy(text + k * each, line, each);
    *length = each * times;
    return text;
}

/* Inflation stops at the numbers of the format. 32 MiB of points are read, a
 * wrong line is refused before the end, and 20 MiB of comments are refused. */
static void libsvm_packed(void **state)
{
    enum { MUCH = 32 << 20, ROOM = 4 << 20 };
    static const char small[] = "5 1:2 2:3\n-5 2:4\n";
    const double x[] = {2, 3, 0, 4}, y[] = {5, -5};
    unsigned char *file = malloc(ROOM);
    size_t n, length;
    char *text;
    kofn_file *f;

    (void)state;
    assert_non_null(file);
    n = pack(file, ROOM, small, sizeof small - 1);
    check("a.svm.gz", file, n, 2, 2, x, y);
    check("a.libsvm", file, n, 2, 2, x, y);
    text = repeat("1 3:0.5 7:1\n", MUCH, &length);
    n = pack(file, ROOM, text, length);
    assert_ok(kf_file_parse(&f, file, n, "a.libsvm.gz"));
    assert_int_equal(f->matrix.sparse->rows, length / 12);
    assert_int_equal(f->matrix.sparse->cols, 7);
    kofn_file_free(f);
    memcpy(text + 12, "x", 1);
    n = pack(file, ROOM, text, length);
    refused(KOFN_FORMAT, "a.libsvm.gz", file, n, "line 2: 'x'");
    free(text);
    text = repeat("# nothing but this\n", 20 << 20, &length);
    n = pack(file, ROOM, text, length);
    refused(KOFN_FORMAT, "a.libsvm.gz", file, n, "more follow");
    free(text);
    free(file);
}

/* Most files of the LIBSVM site have no suffix, or a misleading one. */
static void first_line(void **state)
{
    const char *text = "# a comment\n+1 1:2 3:4\n-1 2:1\n";
    const double x[] = {2, 0, 4, 0, 1, 0}, y[] = {1, -1};
    static const char *const other[] = {"1 2 3\n", "+1\n", "1 a:2\n", "a 1:2\n",
                                        "1 0:2\n"};

    (void)state;
    check("a9a", text, strlen(text), 2, 3, x, y);
    check("a9a.t", text, strlen(text), 2, 3, x, y);
    for (size_t k = 0; k < COUNT(other); k++)
        refused(KOFN_FORMAT, "a9a", other[k], strlen(other[k]), "suffix");
}

TEST_FILE(io_libsvm_test)
{
    const struct CMUnitTest tests[] = {
        TEST(libsvm_variants, "libsvm: every variant is read"),
        TEST(entries_stay_as_they_are,
             "libsvm: entries stay as listed, zeros included"),
        TEST(libsvm_refusals,
             "libsvm: wrong files are refused with line and reason"),
        TEST(libsvm_packed,
             "libsvm: a packed file is inflated no further than its numbers"),
        TEST(first_line,
             "libsvm: the first line identifies the format, not the suffix"),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
