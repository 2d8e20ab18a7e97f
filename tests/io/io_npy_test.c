/* io_npy_test.c -- .npy: every variant, every refusal, and exchange with
 * NumPy. */
#include "io_rig.h"

#include <math.h>

#define PYTHON "/usr/bin/python3"

/* Writes 1.5, -2, 1e10, 4, 5, 6 in the given form: 'd' float64, 'f' float32,
 * capital for big endian. The bytes are spelled out by shifts. */
static size_t numbers_as(unsigned char *to, char form)
{
    const double v[] = {1.5, -2, 1e10, 4, 5, 6};
    size_t size = (form | 0x20) == 'd' ? 8 : 4;

    for (size_t k = 0; k < 6; k++) {
        uint64_t bits = 0;
        float x = (float)v[k];

        if (size == 8)
            memcpy(&bits, &v[k], 8);
        else
            memcpy(&bits, &x, 4); /* little-endian hosts */
        for (size_t b = 0; b < size; b++)
            to[k * size + (form < 'a' ? size - 1 - b : b)] =
                (unsigned char)(bits >> 8 * b);
    }
    return 6 * size;
}

static void npy_variants(void **state)
{
    static const struct {
        const char *dict;
        char form;
        size_t rows, cols;
        unsigned dims;
    } all[] = {
        {DICT("<f8", "False", "(2, 3)"), 'd', 2, 3, 2},
        {DICT("<f8", "True", "(3, 2)"), 'd', 3, 2, 2},
        {DICT(">f8", "False", "(2, 3)"), 'D', 2, 3, 2},
        {DICT(">f8", "True", "(3, 2)"), 'D', 3, 2, 2},
        {DICT("=f8", "False", "(6, 1)"), 'd', 6, 1, 2},
        {DICT("|f8", "True", "(1, 6)"), 'd', 1, 6, 2},
        {DICT("f8", "False", "(6,)"), 'd', 6, 1, 1},
        {DICT("<f8", "True", "(6,)"), 'd', 6, 1, 1},
        {DICT("<f4", "False", "(2, 3)"), 'f', 2, 3, 2},
        {DICT("<f4", "True", "(3, 2)"), 'f', 3, 2, 2},
        {DICT(">f4", "False", "(6,)"), 'F', 6, 1, 1},
        {DICT(">f4", "True", "(3, 2)"), 'F', 3, 2, 2},
        {"{\"shape\" :(2L , 3L,),\t'fortran_order':False\n,'descr': \"<f8\"}",
         'd', 2, 3, 2},
    };
    const double c[] = {1.5, -2, 1e10, 4, 5, 6}; /* as stored */

    (void)state;
    for (size_t k = 0; k < COUNT(all) * 3; k++) {
        unsigned char file[512], data[48];
        size_t n = numbers_as(data, all[k / 3].form), rows = all[k / 3].rows;
        size_t cols = all[k / 3].cols;
        bool turned = strstr(all[k / 3].dict, "True") != NULL;
        double want[6];

        n = npy(file, (int)(k % 3) + 1, all[k / 3].dict, k % 11, data, n);
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j++)
                want[i * cols + j] = c[turned ? j * rows + i : i * cols + j];
        reads_as("a.npy", (char *)file, n, all[k / 3].dims, rows, cols, want);
    }
}

static void npy_refusals(void **state)
{
    static const struct {
        const char *dict, *words;
    } all[] = {
        {DICT("<i8", "False", "(5,)"), "40 bytes, but 48 follow"},
        {DICT("<i16", "False", "(3,)"), "integers of another size|'<i16'"},
        {DICT("<u3", "False", "(16,)"), "integers of another size|astype"},
        {DICT("|b8", "False", "(6,)"), "integers of another size"},
        {DICT("|b1", "False", "(48,)"), "element [6] is the byte 248|0 or 1"},
        {DICT("|b1", "True", "(12, 4)"), "element [2, 3] is the byte 20, "},
        {DICT("?1", "False", "(48,)"), "dtype '?1'"},
        {DICT("<c32", "False", "(3,)"), "complex|'<c32'"},
        {DICT("<f1", "False", "(48,)"), "floats of another size|'<f1'"},
        {DICT("<f16", "False", "(3,)"), "another size|'<f16'"},
        {DICT("|O", "False", "(6,)"), "pickled Python objects"},
        {DICT("<U3", "False", "(4,)"), "text"},
        {DICT("<M8[s]", "False", "(6,)"), "dates"},
        {DICT("\x1b[2J\x80", "False", "(6,)"), "\\x1b[2J\\x80"},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (6,)}",
         "records|field"},
        {DICT("<f8", "False", "()"), "0 dimensions"},
        {DICT("<f8", "False", "(6)"), "(6)|not a tuple|(6,)"},
        {DICT("<f8", "False", "(1, 2, 3)"), "3 dimensions"},
        {DICT("<f8", "False", "(-6,)"), "byte 61|'-6,),'|size"},
        {DICT("<f8", "False", "(6.0,)"), "'.0,),'"},
        {DICT("<f8", "False", "(18446744073709551616,)"), "size"},
        {DICT("<f8", "False", "(0, 6)"), "0 x 6|empty"},
        {DICT("<f8", "False", "(6, 0)"), "6 x 0|empty"},
        {DICT("<f8", "False", "(7,)"), "7 x 1|56 bytes|only 48|cut off"},
        {DICT("<f8", "False", "(5,)"), "40 bytes, but 48 follow|one array"},
        {DICT("<f8", "False", "(4294967296, 4294967296)"), "memory anywhere"},
        {DICT("<f8", "False", "(2305843009213693953, 1)"), "memory anywhere"},
        {DICT("<f8", "false", "(6,)"), "fortran_order is 'false,'"},
        {DICT("<f8", "1", "(6,)"), "neither True nor False"},
        {"{'descr': '<f8', 'shape': (6,)}", "fortran_order"},
        {"{'descr': '<f8', 'descr': '<f8'}", "twice|byte 28|'descr'"},
        {"{'descr': '<f8', 'color': 3}", "unknown key 'color'"},
        {"{'descr': '<f8' 'shape': (6,)}", "',' should be"},
        {"{'descr': '<f8, 'shape': (6,)}", "dtype '<f8, '"},
        {"{'descr': '<f8", "byte 20|in place of a string"},
        {"['descr']", "'{' should be"},
        {DICT("<f8", "False", "(6,)") "x", "continues"},
        {"", "'{' should be"},
    };
    unsigned char file[512], data[48];
    size_t n = numbers_as(data, 'd');

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        size_t size = npy(file, 1, all[k].dict, 0, data, n);
        refused(KOFN_FORMAT, "a.npy", file, size, all[k].words);
    }
    n = npy(file, 1, DICT("<f8", "False", "(6,)"), 3, data, n);
    for (size_t k = 10; k < n; k++)
        refused(KOFN_FORMAT, "a.npy", file, k, "bytes");
    refused(KOFN_FORMAT, "a.npy", file, 9, "shorter than");
    refused(KOFN_FORMAT, "a.npy", file, 40, "after 40 bytes");
    refused(KOFN_FORMAT, "a.npy", "1,2,3,4,5,6,7,8", 15, "does not begin");
    file[6] = 4;
    refused(KOFN_FORMAT, "a.npy", file, n, "version 4.0");
    file[6] =
        2; /* the header's length now includes the first bytes of the dict */
    refused(KOFN_FORMAT, "a.npy", file, n, "the header should have");
    refused(KOFN_FORMAT, "a.npy", file, 11, "the header should have");
}

/* ---- types converted to float64 ------------------------------------------ */

static void npy_integers(void **state)
{
    static const struct {
        const char *dict;
        const char *bytes;
        size_t n;
        double want[6];
    } all[] = {
#define A(dict, bytes, ...)                                                    \
    {                                                                          \
        dict, bytes, sizeof bytes - 1,                                         \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
        /* clang-format off */
        A(DICT("|i1", "False", "(2, 2)"), "\x80\xff\0\x7f", -128, -1, 0, 127),
        A(DICT("|u1", "True", "(2, 2)"), "\x80\xff\0\x7f", 128, 0, 255, 127),
        A(DICT("|b1", "False", "(2, 2)"), "\1\0\1\1", 1, 0, 1, 1),
        A(DICT("?", "False", "(2, 2)"), "\1\0\1\1", 1, 0, 1, 1),
        A(DICT("<i2", "False", "(2, 2)"), "\0\x80\xff\xff\1\0\xff\x7f",
          -32768, -1, 1, 32767),
        A(DICT(">i2", "False", "(2, 2)"), "\x80\0\xff\xff\0\1\x7f\xff",
          -32768, -1, 1, 32767),
        A(DICT("<u2", "False", "(2, 2)"), "\0\x80\xff\xff\1\0\xff\x7f",
          32768, 65535, 1, 32767),
        A(DICT("<i4", "False", "(2, 1)"), "\0\0\0\x80\xfe\xff\xff\xff",
          -2147483648.0, -2),
        A(DICT(">u4", "False", "(2, 1)"), "\x80\0\0\0\xff\xff\xff\xff",
          2147483648.0, 4294967295.0),
        A(DICT("<i8", "False", "(3, 1)"),
          "\0\0\0\0\0\0\0\x80\1\0\0\0\0\0\xe0\xff\0\0\0\0\0\0\x20\0",
          -9223372036854775808.0, -9007199254740991.0, 9007199254740992.0),
        A(DICT(">u8", "False", "(2, 1)"),
          "\xff\xff\xff\xff\xff\xff\xf8\0\0\0\0\0\0\0\0\0",
          18446744073709549568.0, 0),
        A(DICT("<f2", "False", "(3, 2)"),
          "\0\x3c\0\xc2\xff\x7b\1\0\xff\x83\0\4",
          1, -3, 65504, 0x1p-24, -0x3ffp-24, 0x1p-14),
        A(DICT(">f2", "True", "(2, 2)"), "\x3c\0\xc2\0\x2e\x66\x80\0",
          1, 0x1.998p-4, -3, 0),
    /* clang-format on */
#undef A
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        const char *shape = strstr(all[k].dict, "(") + 1;
        unsigned char file[512];
        size_t n = npy(file, 1, all[k].dict, k % 5, all[k].bytes, all[k].n);

        reads_as("a.npy", (char *)file, n, 2, (size_t)(shape[0] - '0'),
                 (size_t)(shape[3] - '0'), all[k].want);
    }
}

/* Converted exactly, or refused with the element and its value. */
static void npy_integers_too_long(void **state)
{
    static const struct {
        const char *dict, *bytes, *words;
    } all[] = {
        {DICT("<i8", "False", "(2,)"), "\0\0\0\0\0\0\0\0\1\0\0\0\0\0\x20\0",
         "element [1] is 9007199254740993|exactly|astype"},
        {DICT(">i8", "False", "(1, 2)"),
         "\0\0\0\0\0\0\0\0\xff\xdf\xff\xff\xff\xff\xff\xff",
         "element [0, 1] is -9007199254740993"},
        {DICT("<i8", "False", "(2,)"),
         "\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\0\0\0\0\0\0",
         "element [0] is 9223372036854775807"},
        {DICT("<u8", "True", "(2, 1)"),
         "\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
         "element [1, 0] is 18446744073709551615"},
    };
    unsigned char file[512];
    size_t n;

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        n = npy(file, 1, all[k].dict, 0, all[k].bytes, 16);
        refused(KOFN_FORMAT, "a.npy", file, n, all[k].words);
    }
    n = npy(file, 1, DICT("<f2", "False", "(2,)"), 0, "\0\0\1\x7c", 4);
    refused(KOFN_NONFINITE, "a.npy", file, n, "element [1] is NaN");
    n = npy(file, 1, DICT("<f2", "False", "(2,)"), 0, "\0\xfc\0\0", 4);
    refused(KOFN_NONFINITE, "a.npy", file, n, "element [0] is NaN or infinite");
}

/* One NaN or infinity, at any place in an array of any size. */
static void npy_not_finite(void **state)
{
    static unsigned char file[40000];
    const double odd[] = {NAN, -NAN, INFINITY, -INFINITY};
    double a[2600];
    float b[2600];
    char word[64];

    (void)state;
    for (size_t k = 0; k < 2600; k += k < 1030 && k > 3 ? 511 : 1) {
        size_t n;

        for (size_t i = 0; i < 2600; i++) {
            a[i] = i % 3 ? -1.7976931348623157e308 : 4.9e-324;
            b[i] = i % 3 ? -3.4028234e38f : 1e-45f;
        }
        a[k] = odd[k % 4];
        b[k] = (float)odd[k % 4];
        snprintf(word, sizeof word, "element [%zu, %zu]", k / 26, k % 26);
        n = npy(file, 1, DICT("<f8", "False", "(100, 26)"), 60, a, sizeof a);
        refused(KOFN_NONFINITE, "a.npy", file, n, word);
        n = npy(file, 1, DICT("<f4", "False", "(100, 26)"), 61, b, sizeof b);
        refused(KOFN_NONFINITE, "a.npy", file, n, word);
        snprintf(word, sizeof word, "element [%zu] ", k);
        n = npy(file, 1, DICT("<f4", "True", "(2600,)"), 62, b, sizeof b);
        refused(KOFN_NONFINITE, "a.npy", file, n, word);
    }
}

/* ---- NumPy itself -------------------------------------------------------- */

static bool have_numpy(void)
{
    if (system(PYTHON " -c 'import numpy' 2>/dev/null") == 0)
        return true;
    print_message("no numpy for " PYTHON ": its part is left out\n");
    return false;
}

static void python(const char *script)
{
    char command[256];

    write_file("script.py", script, strlen(script));
    snprintf(command, sizeof command, "cd %s && " PYTHON " script.py", folder);
    if (system(command) != 0)
        fail_msg("this failed:\n%s", script);
}

static void numpy_writes(void **state)
{
    (void)state;
    if (!have_numpy())
        skip();
    python("import numpy as np\n"
           "from numpy.lib import format as f\n"
           "k = 0\n"
           "for t in ('<f8', '>f8', '<f4', '>f4'):\n"
           "  for shape in ((70, 45), (1, 5), (5, 1), (50,)):\n"
           "    for order in 'CF':\n"
           "      for version in ((1, 0), (2, 0), (3, 0)):\n"
           "        a = (np.arange(np.prod(shape)) - 7.25).reshape(shape)\n"
           "        a = np.array(a, dtype=t, order=order)\n"
           "        with open('n%d.npy' % k, 'wb') as o:\n"
           "          f.write_array(o, a, version=version)\n"
           "        k += 1\n");
    for (int k = 0; k < 4 * 4 * 2 * 3; k++) {
        char name[32];
        kofn_file *f;
        const kofn_matrix *a;
        bool native = k / 24 % 2 == 0, plain = k / 3 % 2 == 0 || k / 6 % 4;

        snprintf(name, sizeof name, "n%d.npy", k);
        assert_ok(kofn_file_open(&f, path_of(name), KOFN_FILE_READ));
        a = f->matrix.dense;
        assert_int_equal(a->dtype, k / 48 ? KOFN_F32 : KOFN_F64);
        assert_int_equal(f->dims, k / 6 % 4 == 3 ? 1 : 2);
        assert_int_equal(a->rows * a->cols,
                         ((int[]){3150, 5, 5, 50})[k / 6 % 4]);
        for (size_t i = 0; i < a->rows; i++)
            for (size_t j = 0; j < a->cols; j++)
                assert_true(at(a, i, j) == (double)(i * a->cols + j) - 7.25);
        assert_int_equal(kf_file_mapped(f), native && plain);
        kofn_file_free(f);
    }
}

/* NumPy's conversion of the same numbers is in a second file. */
static void numpy_writes_other_types(void **state)
{
    (void)state;
    if (!have_numpy())
        skip();
    python("import numpy as np\n"
           "r = np.random.default_rng(1)\n"
           "k = 0\n"
           "for t in 'i1 i2 i4 i8 u1 u2 u4 u8 f2 b1'.split():\n"
           "  for b in '<>':\n"
           "    for order in 'CF':\n"
           "      a = r.integers(0, 256, (40, 24 * int(t[1])), dtype='u1')\n"
           "      a = a.view(b + t) if t != 'b1' else a > 99\n"
           "      if t[1] == '8': a = a >> 11\n"
           "      if t == 'f2': a = np.where(abs(a) < 9e4, a, 7)\n"
           "      a = np.array(a, dtype=b + t, order=order)\n"
           "      np.save('o%d.npy' % k, a)\n"
           "      np.save('w%d.npy' % k, a.astype('<f8'))\n"
           "      k += 1\n");
    for (int k = 0; k < 40; k++) {
        char name[32];
        kofn_file *f, *w;
        const kofn_matrix *a;

        snprintf(name, sizeof name, "o%d.npy", k);
        assert_ok(kofn_file_open(&f, path_of(name), KOFN_FILE_READ));
        assert_true(f->half == (k / 4 == 8));
        name[0] = 'w';
        assert_ok(kofn_file_open(&w, path_of(name), KOFN_FILE_READ));
        a = f->matrix.dense;
        assert_int_equal(a->dtype, KOFN_F64);
        assert_int_equal(a->rows, 40);
        assert_int_equal(a->cols, 24);
        for (size_t i = 0; i < 40; i++)
            for (size_t j = 0; j < 24; j++)
                assert_true(at(a, i, j) == at(w->matrix.dense, i, j));
        kofn_file_free(f);
        kofn_file_free(w);
    }
}

static void numpy_reads(void **state)
{
    double a[12];
    float b[12];
    kofn_matrix m;

    (void)state;
    if (!have_numpy())
        skip();
    for (int k = 0; k < 12; k++) {
        a[k] = k / 7.0;
        b[k] = (float)a[k];
    }
    m = (kofn_matrix){a, 3, 4, 4, KOFN_F64};
    assert_ok(kofn_write_npy(path_of("d2.npy"), &m, 2));
    assert_ok(kofn_write(path_of("d2.csv"), KOFN_DENSE(&m), 2));
    m = (kofn_matrix){a, 3, 2, 4, KOFN_F64};
    assert_ok(kofn_write_npy(path_of("d2ld.npy"), &m, 2));
    m = (kofn_matrix){a, 3, 1, 4, KOFN_F64};
    assert_ok(kofn_write_npy(path_of("d1ld.npy"), &m, 1));
    m = (kofn_matrix){b, 3, 4, 4, KOFN_F32};
    assert_ok(kofn_write(path_of("f2.NPY"), KOFN_DENSE(&m), 2));
    m = (kofn_matrix){b, 12, 1, 1, KOFN_F32};
    assert_ok(kofn_write_npy(path_of("f1.npy"), &m, 1));
    python("import numpy as np\n"
           "a = np.arange(12.).reshape(3, 4) / 7\n"
           "def same(name, b):\n"
           "    c = np.load(name)\n"
           "    assert c.dtype == b.dtype and c.shape == b.shape, name\n"
           "    assert (c == b).all() and c.flags.c_contiguous, name\n"
           "same('d2.npy', a)\n"
           "same('d2ld.npy', a[:, :2])\n"
           "same('d1ld.npy', a[:, 0])\n"
           "same('f2.NPY', a.astype('f4'))\n"
           "same('f1.npy', a.ravel().astype('f4'))\n"
           "assert (np.loadtxt('d2.csv', delimiter=',') == a).all()\n");
}

TEST_FILE(io_npy_test)
{
    const struct CMUnitTest tests[] = {
        TEST(npy_variants, "npy: every variant is read"),
        TEST(npy_refusals, "npy: wrong files are refused with the reason"),
        TEST(npy_integers,
             "npy: integers, bools and half floats become float64"),
        TEST(npy_integers_too_long,
             "npy: integers beyond 2^53 are exact or refused with the place"),
        TEST(npy_not_finite, "npy: one NaN or infinity is found at any place"),
        TEST(numpy_writes,
             "npy: files of NumPy are read (orders, shapes, types)"),
        TEST(numpy_writes_other_types,
             "npy: NumPy's other types agree with its own conversion"),
        TEST(numpy_reads, "npy: NumPy reads the written files"),
    };

    return cmocka_run_group_tests_name("io_npy", tests, set_up, tear_down);
}
