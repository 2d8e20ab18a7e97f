/* io_complex_test.c -- complex numbers in .npy and Matrix Market files: every
 * variant, every refusal, and what is written. */
#include "io_rig.h"

#include <math.h>

/* The bytes hold a complex matrix of these parts, listed row by row. */
static void reads_pairs(const char *name, const void *bytes, size_t n,
                        size_t rows, size_t cols, const double *want)
{
    kofn_file *f;

    assert_ok(kf_file_parse(&f, bytes, n, name));
    assert_true(f->is_complex);
    kofn_file_free(f);
    reads_as(name, bytes, n, 2, rows, 2 * cols, want);
}

static void mtx_variants(void **state)
{
    static const struct {
        const char *text;
        size_t rows, cols;
        double want[18];
        /* clang-format off */
    } all[] = {
        {MM "coordinate complex general\n2 3 3\n2 3 1.5 -1\n1 1 -2 0\n"
            "2 1 .5 7D0\n", 2, 3, {-2, 0, 0, 0, 0, 0, .5, 7, 0, 0, 1.5, -1}},
        {MM "coordinate complex general\n1 2 3\n1 2 1 2\n1 2 4 -8\n1 1 0 3\n",
         1, 2, {0, 3, 5, -6}},
        {MM "coordinate complex symmetric\n2 2 2\n2 1 1 2\n1 1 3 4\n",
         2, 2, {3, 4, 1, 2, 1, 2, 0, 0}},
        {MM "coordinate complex skew-symmetric\n2 2 2\n2 1 1 2\n2 2 0 0\n",
         2, 2, {0, 0, -1, -2, 1, 2, 0, 0}},
        {MM "coordinate complex hermitian\n2 2 2\n2 1 1 2\n1 1 3 0\n",
         2, 2, {3, 0, 1, -2, 1, 2, 0, 0}},
        {MM "coordinate complex hermitian\n2 2 1\n1 2 1 2\n",
         2, 2, {0, 0, 1, 2, 1, -2, 0, 0}},
        {MM "array complex general\n2 2\n1 2\n3 4\n5 6\n7 8",
         2, 2, {1, 2, 5, 6, 3, 4, 7, 8}},
        {MM "array complex symmetric\n2 2\n1 2\n3 4\n5 6\n",
         2, 2, {1, 2, 3, 4, 3, 4, 5, 6}},
        {MM "array complex skew-symmetric\n3 3\n1 2\n3 4\n5 6\n",
         3, 3, {0, 0, -1, -2, -3, -4, 1, 2, 0, 0, -5, -6, 3, 4, 5, 6, 0, 0}},
        {MM "array complex hermitian\n2 2\n1 0\n3 4\n5 0\n",
         2, 2, {1, 0, 3, -4, 3, 4, 5, 0}},
    };
    /* clang-format on */

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        reads_pairs("a.mtx", all[k].text, strlen(all[k].text), all[k].rows,
                    all[k].cols, all[k].want);
}

static void mtx_refusals(void **state)
{
    static const struct {
        kofn_status st;
        const char *text, *words;
    } all[] = {
        {KOFN_FORMAT, MM "coordinate complex general\n1 1 1\n1 1 2\n",
         "line 3 ends where a value"},
        {KOFN_FORMAT, MM "coordinate complex general\n1 1 1\n1 1 2 3 4\n",
         "line 3|'4' follows"},
        {KOFN_FORMAT, MM "array complex general\n1 1\n2\n", "line 3 ends"},
        {KOFN_FORMAT, MM "coordinate complex hermitian\n1 1 1\n1 1 2 3\n",
         "line 3|(1, 1)|hermitian matrix is not real"},
        {KOFN_FORMAT, MM "array complex hermitian\n2 2\n1 0\n2 3\n4 5\n",
         "line 5|(2, 2)|not real"},
        {KOFN_FORMAT, MM "coordinate complex skew-symmetric\n1 1 1\n1 1 0 3\n",
         "(1, 1)|skew-symmetric matrix is not 0"},
        {KOFN_FORMAT,
         MM "coordinate complex hermitian\n2 2 2\n1 2 1 1\n2 1 1 1\n",
         "of a hermitian matrix list one side only"},
        {KOFN_FORMAT, MM "coordinate complex general\n1 2147483648 0\n",
         "2^31 columns"},
        {KOFN_NONFINITE, MM "coordinate complex general\n1 1 1\n1 1 1 inf\n",
         "line 3|inf"},
        {KOFN_NONFINITE,
         MM "coordinate complex general\n1 3 2\n1 3 0 1e308\n1 3 0 1e308\n",
         "row 1, column 3 add up"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(all[k].st, "a.mtx", all[k].text, strlen(all[k].text),
                all[k].words);
}

/* Stores numbers with parts 1, -2; 3, -4; ... of `size` bytes. */
static size_t parts_as(unsigned char *to, size_t count, size_t size, bool big)
{
    for (size_t k = 0; k < 2 * count; k++) {
        double v = k % 2 ? -1.0 - (double)k : 1.0 + (double)k;
        float x = (float)v;
        unsigned char bytes[8];

        memcpy(bytes, size == 8 ? (void *)&v : (void *)&x, size);
        for (size_t b = 0; b < size; b++)
            to[k * size + b] = bytes[big == KF_BIG ? b : size - 1 - b];
    }
    return 2 * count * size;
}

static void npy_variants(void **state)
{
    static const struct {
        const char *dict;
        size_t size;
        bool big;
    } all[] = {
        {DICT("<c16", "False", "(2, 3)"), 8, false},
        {DICT("<c16", "True", "(2, 3)"), 8, false},
        {DICT(">c16", "False", "(2, 3)"), 8, true},
        {DICT(">c16", "True", "(2, 3)"), 8, true},
        {DICT("<c8", "False", "(2, 3)"), 4, false},
        {DICT(">c8", "True", "(2, 3)"), 4, true},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        unsigned char file[512], data[96];
        size_t n = parts_as(data, 6, all[k].size, all[k].big);
        bool turned = strstr(all[k].dict, "True") != NULL;
        double want[12];

        n = npy(file, 1, all[k].dict, k, data, n);
        for (size_t i = 0; i < 2; i++)
            for (size_t j = 0; j < 3; j++) {
                size_t at = turned ? j * 2 + i : i * 3 + j;

                want[2 * (i * 3 + j)] = 1.0 + (double)(2 * at);
                want[2 * (i * 3 + j) + 1] = -2.0 - (double)(2 * at);
            }
        reads_pairs("a.npy", file, n, 2, 3, want);
    }
}

/* A NaN has the place of its complex number. */
static void npy_refusals(void **state)
{
    double data[12] = {0};
    unsigned char file[512];
    size_t n;

    (void)state;
    data[11] = (double)NAN;
    n = npy(file, 1, DICT("<c16", "False", "(2, 3)"), 0, data, sizeof data);
    refused(KOFN_NONFINITE, "a.npy", file, n, "element [1, 2] is NaN");
    n = npy(file, 1, DICT("<c16", "False", "(7,)"), 0, data, sizeof data);
    refused(KOFN_FORMAT, "a.npy", file, n, "112 bytes|only 96|cut off");
    n = npy(file, 1, DICT("<c32", "False", "(3,)"), 0, data, sizeof data);
    refused(KOFN_FORMAT, "a.npy", file, n, "complex numbers of another size");
}

/* Programs that do not ask for complex numbers get none. */
static void asked_for(void **state)
{
    static const char text[] = MM "array complex general\n1 1\n1 2\n";
    unsigned char file[512];
    double data[2] = {1, 2};
    size_t n = npy(file, 1, DICT("<c16", "False", "(1,)"), 0, data, 16);
    const char *name[] = {"a.mtx", "a.npy"};
    kofn_file *f;

    (void)state;
    write_file(name[0], text, strlen(text));
    write_file(name[1], file, n);
    for (int k = 0; k < 2; k++) {
        assert_status(KOFN_FORMAT,
                      kofn_file_open(&f, path_of(name[k]), KOFN_FILE_READ));
        assert_non_null(strstr(kofn_errmsg(), "complex"));
        assert_non_null(strstr(kofn_errmsg(), "kofn matmul"));
        assert_ok(kofn_file_open(&f, path_of(name[k]),
                                 KOFN_FILE_COPY | KOFN_FILE_COMPLEX));
        assert_true(f->is_complex);
        assert_int_equal(f->dims, 2 - k);
        ((double *)f->matrix.dense->data)[1] = 3; /* a copy, not the file */
        kofn_file_free(f);
    }
}

static void written(void **state)
{
    double v[] = {1, 2, 0.1, -4, 5, 6, 7, 8};
    kofn_matrix a = {v, 2, 4, 4, KOFN_F64}, column = {v, 4, 2, 2, KOFN_F64};
    char text[512];
    kofn_file *f;

    (void)state;
    assert_ok(kofn_write_complex(path_of("w.mtx"), &a, 2));
    read_file("w.mtx", text, sizeof text);
    assert_string_equal(text, MM "array complex general\n2 2\n1 2\n5 6\n"
                                 "0.1 -4\n7 8\n");
    assert_ok(kofn_write_complex(path_of("w.npy"), &column, 1));
    read_file("w.npy", text, sizeof text);
    assert_non_null(strstr(text + 10, "'<c16'"));
    assert_non_null(strstr(text + 10, "(4,)"));
    assert_memory_equal(text + 128, v, sizeof v);
    assert_ok(kofn_file_open(&f, path_of("w.mtx"),
                             KOFN_FILE_READ | KOFN_FILE_COMPLEX));
    assert_memory_equal(f->matrix.dense->data, v, sizeof v);
    kofn_file_free(f);
}

static void not_written(void **state)
{
    double v[6] = {0};
    kofn_matrix a = {v, 1, 4, 4, KOFN_F64}, odd = {v, 2, 3, 3, KOFN_F64};

    (void)state;
    assert_status(KOFN_INVAL, kofn_write_complex(path_of("n.csv"), &a, 2));
    assert_non_null(strstr(kofn_errmsg(), "CSV has real numbers only"));
    assert_status(KOFN_INVAL, kofn_write_complex(path_of("n.bin"), &a, 2));
    assert_status(KOFN_INVAL, kofn_write_complex(NULL, &a, 2));
    assert_status(KOFN_INVAL, kofn_write_complex(path_of("n.npy"), NULL, 2));
    assert_status(KOFN_SHAPE, kofn_write_complex(path_of("n.npy"), &odd, 2));
    assert_status(KOFN_SHAPE, kofn_write_complex(path_of("n.npy"), &a, 1));
    assert_int_equal(listed("n."), 0);
}

TEST_FILE(io_complex_test)
{
    const struct CMUnitTest tests[] = {
        TEST(mtx_variants, "io: complex Matrix Market files of every symmetry"),
        TEST(mtx_refusals, "io: wrong complex Matrix Market files are refused"),
        TEST(npy_variants, "io: complex .npy of both sizes, byte and memory "
                           "orders"),
        TEST(npy_refusals, "io: wrong complex .npy files are refused"),
        TEST(asked_for, "io: complex numbers are read only when asked for"),
        TEST(written, "io: complex matrices are written as .npy and .mtx"),
        TEST(not_written, "io: complex matrices that cannot be written are "
                          "refused"),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
