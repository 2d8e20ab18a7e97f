/* io_test.c -- file formats: every variant, every refusal, whole or not at
 * all; and the graphs of kofn_rmat. */
#include "support.h"

#include "base/rng.h"
#include "io/io.h"
#include "io/text.h"

#include <dirent.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- files of the test -------------------------------------------------- */

static char folder[64];
static bool have_numpy;

static const char *path_of(const char *name)
{
    static char path[4][512];
    static int turn;
    char *p = path[turn = (turn + 1) % 4];

    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static size_t read_file(const char *name, char *bytes, size_t room)
{
    FILE *f = fopen(path_of(name), "rb");
    size_t n;

    assert_non_null(f);
    n = fread(bytes, 1, room - 1, f);
    bytes[n] = 0;
    fclose(f);
    return n;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kofn-io-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    have_numpy = system(PYTHON " -c 'import numpy' 2>/dev/null") == 0;
    if (!have_numpy)
        print_message("no numpy for " PYTHON ": its part is left out\n");
    return 0;
}

/* Names in the folder that begin so. */
static int listed(const char *prefix)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)))
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return n;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void python(const char *script)
{
    char command[256];

    write_file("script.py", script, strlen(script));
    snprintf(command, sizeof command, "cd %s && " PYTHON " script.py", folder);
    if (system(command) != 0)
        fail_msg("this failed:\n%s", script);
}

/* ---- expectations ------------------------------------------------------- */

/* Refused with `want` and a message that has all of the words between '|'. */
static void refused(kofn_status want, const char *name, const void *bytes,
                    size_t n, const char *words)
{
    kofn_file *f = (kofn_file *)(uintptr_t)8;
    char all[256], *save, *word, *copy = malloc(n + !n);

    /* In a block of that size a sanitizer sees a read behind it. */
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    if (kofn_file_parse(&f, copy, n, name) != want)
        fail_msg("%.*s: not %s (%s)", (int)n, (const char *)bytes,
                 kofn_strerror(want), kofn_errmsg());
    free(copy);
    assert_null(f);
    snprintf(all, sizeof all, "%s|%s: ", words, name);
    for (word = strtok_r(all, "|", &save); word;
         word = strtok_r(NULL, "|", &save))
        if (!strstr(kofn_errmsg(), word))
            fail_msg("%.*s: no '%s' in: %s", (int)n, (const char *)bytes, word,
                     kofn_errmsg());
}

static double at(const kofn_matrix *a, size_t i, size_t j)
{
    return a->dtype == KOFN_F32 ? (double)((float *)a->data)[i * a->ld + j]
                                : ((double *)a->data)[i * a->ld + j];
}

static double sparse_at(const kofn_sparse *s, size_t i, size_t j)
{
    for (size_t k = s->ptr[i]; k < s->ptr[i + 1]; k++)
        if (s->col[k] == j)
            return s->val[k];
    return 0;
}

static void check_sorted(const kofn_sparse *s)
{
    assert_ok(kf_check_sparse(s, "s"));
    for (size_t i = 0; i < s->rows; i++)
        for (size_t k = s->ptr[i] + 1; k < s->ptr[i + 1]; k++)
            assert_true(s->col[k - 1] < s->col[k]);
}

/* The text holds rows x cols numbers, listed row by row in `want`. */
static void reads_as(const char *name, const char *text, size_t n,
                     unsigned dims, size_t rows, size_t cols,
                     const double *want)
{
    kofn_file *f;
    const kofn_sparse *s;
    const kofn_matrix *a;

    assert_ok(kofn_file_parse(&f, text, n, name));
    a = kofn_file_dense(f);
    s = kofn_file_sparse(f);
    assert_true(!a != !s);
    assert_int_equal(a ? a->rows : s->rows, rows);
    assert_int_equal(a ? a->cols : s->cols, cols);
    assert_int_equal(kofn_file_dims(f), dims);
    if (s)
        check_sorted(s);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            double got = a ? at(a, i, j) : sparse_at(s, i, j);
            if (got != want[i * cols + j])
                fail_msg("%.*s: [%zu, %zu] is %g", (int)n, text, i, j, got);
        }
    kofn_file_free(f);
}

/* ---- .npy --------------------------------------------------------------- */

/* A .npy of version `major` with this dict and these bytes; gives its size.
 * `pad` spaces follow the dict. */
static size_t npy(unsigned char *to, int major, const char *dict, size_t pad,
                  const void *data, size_t n)
{
    size_t before = major == 1 ? 10 : 12, length = strlen(dict) + pad + 1;

    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)major;
    to[7] = 0;
    memset(to + 8, 0, 4);
    to[8] = (unsigned char)length;
    to[9] = (unsigned char)(length >> 8);
    memcpy(to + before, dict, length - pad - 1);
    memset(to + before + length - pad - 1, ' ', pad);
    to[before + length - 1] = '\n';
    if (n)
        memcpy(to + before + length, data, n);
    return before + length + n;
}

#define DICT(descr, order, shape)                                              \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

/* 1.5, -2, 1e10, 4, 5, 6 in the given form: 'd' float64, 'f' float32, capital
 * for big endian; the bytes are spelled out by shifts. */
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
            memcpy(&bits, &x, 4); /* little endian hosts */
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
        {DICT("<i8", "False", "(6,)"), "signed integers|'<i8'|astype"},
        {DICT("|b1", "False", "(48,)"), "booleans"},
        {DICT("<c16", "False", "(3,)"), "complex|'<c16'"},
        {DICT("<f2", "False", "(24,)"), "another size|'<f2'"},
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
        {DICT("<f8", "False", "(5,)"), "8 bytes follow|40 bytes"},
        {DICT("<f8", "False", "(4294967296, 4294967296)"), "memory anywhere"},
        {DICT("<f8", "False", "(2305843009213693953, 1)"), "memory anywhere"},
        {DICT("<f8", "false", "(6,)"), "fortran_order is 'false,'"},
        {DICT("<f8", "1", "(6,)"), "neither True nor False"},
        {"{'descr': '<f8', 'shape': (6,)}", "fortran_order"},
        {"{'descr': '<f8', 'descr': '<f8'}", "twice|byte 28|'descr'"},
        {"{'descr': '<f8', 'color': 3}", "unknown key 'color'"},
        {"{'descr': '<f8' 'shape': (6,)}", "',' should be"},
        {"{'descr': '<f8, 'shape': (6,)}", "dtype '<f8, '"},
        {"{'descr': '<f8", "byte 20|a string should be"},
        {"['descr']", "'{' should be"},
        {DICT("<f8", "False", "(6,)") "x", "goes on"},
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
    file[6] = 2; /* the header's length now has the first dict bytes in it */
    refused(KOFN_FORMAT, "a.npy", file, n, "the header should have");
    refused(KOFN_FORMAT, "a.npy", file, 11, "the header should have");
}

/* One NaN or infinity, wherever it stands and however large the array is. */
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

static void numpy_writes(void **state)
{
    (void)state;
    if (!have_numpy)
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
        assert_ok(kofn_file_open(&f, path_of(name)));
        a = kofn_file_dense(f);
        assert_int_equal(a->dtype, k / 48 ? KOFN_F32 : KOFN_F64);
        assert_int_equal(kofn_file_dims(f), k / 6 % 4 == 3 ? 1 : 2);
        assert_int_equal(a->rows * a->cols,
                         ((int[]){3150, 5, 5, 50})[k / 6 % 4]);
        for (size_t i = 0; i < a->rows; i++)
            for (size_t j = 0; j < a->cols; j++)
                assert_true(at(a, i, j) == (double)(i * a->cols + j) - 7.25);
        assert_int_equal(kofn_file_mapped(f), native && plain);
        kofn_file_free(f);
    }
}

static void numpy_reads(void **state)
{
    double a[12];
    float b[12];
    kofn_matrix m;

    (void)state;
    if (!have_numpy)
        skip();
    for (int k = 0; k < 12; k++) {
        a[k] = k / 7.0;
        b[k] = (float)a[k];
    }
    m = (kofn_matrix){a, 3, 4, 4, KOFN_F64};
    assert_ok(kofn_write_npy(path_of("d2.npy"), &m, 2));
    assert_ok(kofn_write_csv(path_of("d2.csv"), &m));
    m = (kofn_matrix){a, 3, 2, 4, KOFN_F64};
    assert_ok(kofn_write_npy(path_of("d2ld.npy"), &m, 2));
    m = (kofn_matrix){a, 3, 1, 4, KOFN_F64};
    assert_ok(kofn_write_npy(path_of("d1ld.npy"), &m, 1));
    m = (kofn_matrix){b, 3, 4, 4, KOFN_F32};
    assert_ok(kofn_write(path_of("f2.NPY"), &m, 2));
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

/* ---- Matrix Market ------------------------------------------------------ */

#define MM "%%MatrixMarket matrix "

static void mtx_variants(void **state)
{
    static const struct {
        const char *text;
        size_t rows, cols;
        double want[9];
        /* clang-format off */
    } all[] = {
        {MM "coordinate real general\n% c\n2 3 3\n2 3 1.5\n1 1 -2\n2 1 .5\n",
         2, 3, {-2, 0, 0, .5, 0, 1.5}},
        {MM "coordinate real general\n2 2 4\n1 1 1\n2 2 8\n1 1 2\n1 1 .25\n",
         2, 2, {3.25, 0, 0, 8}},
        {MM "coordinate integer general\n2 2 2\n1 2 -5\n2 1 +7\n",
         2, 2, {0, -5, 7, 0}},
        {MM "coordinate pattern general\n2 2 3\n1 2\n2 1\n1 2",
         2, 2, {0, 2, 1, 0}},
        {MM "coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n",
         2, 2, {1, 1, 1, 0}},
        {MM "coordinate real symmetric\n3 3 3\n3 1 2\n2 2 4\n3 1 1\n",
         3, 3, {0, 0, 3, 0, 4, 0, 3, 0, 0}},
        {MM "coordinate real skew-symmetric\n3 3 2\n3 1 2\n2 1 4\n",
         3, 3, {0, -4, -2, 4, 0, 0, 2, 0, 0}},
        {MM "array real general\n2 3\n1\n2\n3\n4\n5\n6",
         2, 3, {1, 3, 5, 2, 4, 6}},
        {MM "array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
         3, 3, {1, 2, 3, 2, 4, 5, 3, 5, 6}},
        {MM "array real skew-symmetric\n3 3\n1\n2\n3e0\n",
         3, 3, {0, -1, -2, 1, 0, -3, 2, 3, 0}},
        {MM "array real skew-symmetric\n1 1\n", 1, 1, {0}},
        {MM "coordinate real general\n2 1 0\n", 2, 1, {0, 0}},
        {"%%matrixMARKET  Matrix\tCOORDINATE Real GENERAL\r\n%x\r\n\r\n 2 1\t2 "
         "\r\n\r\n  1 1 7 \r\n% between\r\n2 1 8\r\n \r\n% end",
         2, 1, {7, 8}},
    };
    /* clang-format on */

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        reads_as("a", all[k].text, strlen(all[k].text), 2, all[k].rows,
                 all[k].cols, all[k].want);
}

static void mtx_refusals(void **state)
{
    static const char *const all[][2] = {
        {"%%MatrixMarke matrix", "line 1|%%MatrixMarket"},
        {MM "coordinate complex general\n", "line 1|'complex'|real, integer"},
        {MM "coordinate real hermitian\n", "line 1|'hermitian'"},
        {MM "elemental real general\n", "line 1|'elemental'"},
        {"%%MatrixMarket vector", "'vector'"},
        {MM "array pattern general\n", "array file cannot be a pattern"},
        {MM "coordinate pattern skew-symmetric\n", "skew"},
        {MM "coordinate real general \x1b\n", "'\\x1b' follows the banner"},
        {MM "coordinate real\n", "symmetry is ''"},
        {MM "coordinate real general\n% only\n", "line 3|ends before"},
        {MM "coordinate real general\n1 1\n", "line 2|''|entries"},
        {MM "coordinate real general\n1 x 1\n", "line 2|'x'|columns"},
        {MM "coordinate real general\n-1 1 1\n", "line 2|'-1'|rows"},
        {MM "coordinate real general\n1 1 1 1\n", "line 2|'1' follows"},
        {MM "coordinate real general\n0 1 0\n", "line 2|0 x 1|empty"},
        {MM "coordinate real symmetric\n2 3 0\n", "line 2|2 x 3"},
        {MM "coordinate real general\n4294967296 1 0\n", "2^32"},
        {MM "coordinate real general\n1 4294967296 0\n", "2^32"},
        {MM "coordinate real general\n9 9 1000000000000\n1 1 1\n",
         "line 2|1000000000000 entries|6 bytes"},
        {MM "coordinate real general\n4294967295 9 1\n1 1 1\n",
         "4294967295 rows with only 1"},
        {MM "array real general\n4000000000 4000000000\n1\n", "bytes follow"},
        {MM "array real general\n3 1\n1\n2\n", "line 2|3 entries"},
        {MM "array real general\n3 1\n1.0000\n2\n",
         "line 5|after 2 entries|line 2|3"},
        {MM "array real general\n2 1\n1\n2\n3\n", "line 5|more entries|2"},
        {MM "array real general\n2 2\n1 2\n3 4\n", "line 3|'2' follows"},
        {MM "coordinate real general\n2 2 2\n1 1 1.0000\n",
         "line 4|after 1 entries|line 2|2"},
        {MM "coordinate real general\n2 2 1\n1 1 1\n\n2 2 2\n",
         "line 5|more entries than the 1"},
        {MM "coordinate real general\n2 2 2\n1 1 1\n0 1 1\n",
         "line 4|row '0'|1 .. 2"},
        {MM "coordinate real general\n2 2 1\n3 1 1\n", "line 3|row '3'|1 .. 2"},
        {MM "coordinate real general\n2 2 1\n1 3 1\n", "column '3'|1 .. 2"},
        {MM "coordinate real general\n2 2 1\n1 1.0 1\n", "column '1.0'"},
        {MM "coordinate real general\n2 2 1\n1 -1 1\n", "column '-1'"},
        {MM "coordinate real general\n2 2 1\n18446744073709551617 1 1\n",
         "row '18446744073709551617'"},
        {MM "coordinate real general\n2 2 1\n1     \n", "line 3|column"},
        {MM "coordinate real general\n2 2 1\n1 1   \n", "line 3|value"},
        {MM "coordinate real general\n2 2 1\n1 1 1,5\n", "line 3|'1,5'"},
        {MM "coordinate real general\n2 2 1\n1 1 0x1\r\n", "line 3|'0x1'"},
        {MM "coordinate real general\n2 2 1\n1\r1 7  \n", "'1\\x0d1'"},
        {MM "coordinate real general\r\n2 2 1\r\n1 1\r\n    \r\n",
         "line 3 ends where a value"},
        {MM "coordinate real general\n2 2 1\n1 1 1 2\n", "line 3|'2' follows"},
        {MM "coordinate integer general\n2 2 1\n1 1 1.5\n",
         "'1.5' is not an integer"},
        {MM "coordinate pattern general\n2 2 1\n1 1 1\n", "'1' follows"},
        {MM "coordinate real symmetric\n2 2 2\n1 1 1\n1 2 1\n",
         "line 4|(1, 2)|symmetric"},
        {MM "coordinate real skew-symmetric\n2 2 1\n2 2 0\n",
         "line 3|(2, 2)|skew"},
    };
    static const char *const odd[][2] = {
        {MM "coordinate real general\n2 2 1\n1 1 NaN\n", "line 3|NaN"},
        {MM "coordinate real general\n2 2 1\n1 1 -inf\n", "line 3|-inf"},
        {MM "array real general\n1 1\n1e309\n", "line 3|1e309|too large"},
        {MM "coordinate real general\n1 2 2\n1 2 1e308\n1 2 1e308\n",
         "row 1, column 2"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(KOFN_FORMAT, "a.mtx", all[k][0], strlen(all[k][0]), all[k][1]);
    for (size_t k = 0; k < COUNT(odd); k++)
        refused(KOFN_NONFINITE, "a.mtx", odd[k][0], strlen(odd[k][0]),
                odd[k][1]);
}

/* Random files, also with long and shuffled rows, against a dense matrix kept
 * beside.  Values are multiples of 1/8, so that no sum is rounded. */
static void mtx_against_dense(void **state)
{
    enum { N = 60, ROOM = 200000 };
    static const char *const kind[] = {"general", "symmetric",
                                       "skew-symmetric"};
    static char text[ROOM];
    static double want[N * N];

    (void)state;
    for (uint32_t trial = 0; trial < 120 * test_scale(); trial++) {
        kf_rng r = kf_rng_stream(11, KF_FOR_DATA, trial, 0);
        size_t sym = trial % 3, n = 1 + kf_rng_below(&r, N), at_byte;
        size_t m = sym ? n : 1 + kf_rng_below(&r, N);
        size_t entries = kf_rng_below(&r, trial % 5 ? 40 : 3000);

        entries = m == 1 && sym == 2 ? 0 : entries;
        memset(want, 0, sizeof want);
        at_byte = (size_t)sprintf(text, "%s coordinate real %s\n%zu %zu %zu\n",
                                  MM, kind[sym], m, n, entries);
        for (size_t k = 0; k < entries; k++) {
            size_t i = kf_rng_below(&r, m), j = kf_rng_below(&r, n);
            double v = ((double)kf_rng_below(&r, 2001) - 1000) / 8;

            if (sym == 2 && i == j)
                i = i ? i : 1, j = 0;
            if (sym && i < j) {
                size_t swap = i;
                i = j;
                j = swap;
            }
            want[i * n + j] += v;
            if (sym && i != j)
                want[j * n + i] += sym == 2 ? -v : v;
            at_byte += (size_t)sprintf(
                text + at_byte, "%s%zu%s%zu %.3f%s\n", k % 7 ? "" : "% x\n\n",
                i + 1, k % 3 ? " " : "\t ", j + 1, v, k % 2 ? "" : "\t\r");
        }
        reads_as("a.mtx", text, at_byte, 2, m, n, want);
    }
}

/* ---- CSV ---------------------------------------------------------------- */

static void csv_variants(void **state)
{
    static const struct {
        const char *text;
        size_t rows, cols;
        double want[6];
        /* clang-format off */
    } all[] = {
        {"1,2,3\n4,5,6\n", 2, 3, {1, 2, 3, 4, 5, 6}},
        {"1;2;3\r\n4;5;6\r\n", 2, 3, {1, 2, 3, 4, 5, 6}},
        {"1\t2\t3\n4\t5\t6", 2, 3, {1, 2, 3, 4, 5, 6}},
        {"  1   2 3\n4\t5 6  \n", 2, 3, {1, 2, 3, 4, 5, 6}},
        {" 1 ,\t2\n3,4 \n", 2, 2, {1, 2, 3, 4}},
        {"\xef\xbb\xbf"
         "1,2\n",
         1, 2, {1, 2}},
        {"x,y z,\"a,b\"\n1,2,3\n", 1, 3, {1, 2, 3}},
        {"\"he said \"\"x\"\"\";y\n1;2\n", 1, 2, {1, 2}},
        {"\ta\tb\n0\t1\t2\n", 1, 3, {0, 1, 2}},
        {"# by hand\n\n\"1\",\" 2 \"\n  # more\n-3e2,+.5\n\n",
         2, 2, {1, 2, -300, .5}},
        {"1\n2\n3\n", 3, 1, {1, 2, 3}},
        {"x\r\n1\r\n2.\r\n", 2, 1, {1, 2}},
        {"7", 1, 1, {7}},
        {"5e-1 \n", 1, 1, {.5}},
    };
    /* clang-format on */

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        reads_as("a.csv", all[k].text, strlen(all[k].text),
                 all[k].cols == 1 ? 1 : 2, all[k].rows, all[k].cols,
                 all[k].want);
}

static void csv_refusals(void **state)
{
    static const char *const all[][2] = {
        {"1,2\n3\n", "line 2|1 columns|line 1 has 2"},
        {"# c\n1,2\n\n3,4,5\n", "line 4|more than the 2|line 2"},
        {"1,,3\n", "line 1, column 2|empty"},
        {"1,2,\n", "line 1, column 3|empty"},
        {"\t1\t2\n\t3\t4\n\t5\t6\n", "line 1, column 1|empty"},
        {"1,2\n3,four\n", "line 2, column 2|'four'"},
        {"x,1\n2,3\n", "line 1, column 1|'x'"},
        {"a,b\nc,d\n1,2\n", "line 2, column 1|'c'"},
        {"1;2\n1,5;2\n", "line 2, column 1|'1,5'"},
        {"1,2\n3;4\n", "line 2, column 1|'3;4'"},
        {"1\n2,3\n", "line 2, column 1|'2,3'"},
        {"1\n1 000\n", "'1 000'"},
        {"1\r2\r3\r", "no line of numbers|\\n or \\r\\n, not \\r"},
        {"1,2\r3,4\r", "line 1, column 2|'2\\x0d3'"},
        {"\r\r", "no line of numbers"},
        {"1\n0x10\n", "'0x10'"},
        {"1\n1e\n", "'1e'"},
        {"1\n-\n", "'-'"},
        {"1\n\x1b]0;\n", "'\\x1b]0;'"},
        {"\"1,2\n", "line 1, column 1|never closed"},
        {"1,\"2\"3\n", "line 1, column 2|'3' follows the closing quote"},
        {"\"1\"\"2\"\n3\n4 5\n", "line 3"},
        {"a,b\n", "no line of numbers"},
        {"# nothing\n\n", "no number"},
        {"\xef\xbb\xbf", "no number"},
    };
    static const char *const odd[][2] = {
        {"1,2\n3,nan\n", "line 2, column 2|nan"},
        {"NaN\n", "line 1, column 1"},
        {"1,-Infinity\n", "line 1, column 2|-Infinity"},
        {"1\n-1e999\n", "line 2, column 1|-1e999|too large"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(KOFN_FORMAT, "a.csv", all[k][0], strlen(all[k][0]), all[k][1]);
    for (size_t k = 0; k < COUNT(odd); k++)
        refused(KOFN_NONFINITE, "a.csv", odd[k][0], strlen(odd[k][0]),
                odd[k][1]);
}

/* ---- numbers ------------------------------------------------------------ */

static void same_as_strtod(const char *text)
{
    const char *end;
    double got = -1, want = strtod(text, NULL);
    kf_scan found = kf_scan_number(text, text + strlen(text), &end, &got);

    if (found != (isinf(want) ? KF_TOO_LARGE : KF_NUMBER) || *end ||
        memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%s: %a, not %a", text, got, want);
}

static size_t random_digits(kf_rng *r, char *to, size_t n)
{
    for (size_t k = 0; k < n; k++)
        to[k] = (char)('0' + kf_rng_below(r, 10));
    return n;
}

static void numbers_as_strtod(void **state)
{
    static const char *const odd[] = {
        "0",
        "-0",
        "0.0e5",
        "000",
        "1",
        "9007199254740993",
        "9007199254740992.99999999999999999999999999999999999999999999999999",
        "9007199254740993.0000000000000000000000000000000000000000000000001",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "10000000000000000000",
        "4.9406564584124654e-324",
        "2.4703282292062e-324",
        "2.4703282292062327208e-324",
        "1e-400",
        "1e400",
        "-1e309",
        "1e308",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "1e99999999999999999",
        "1e-99999999999999999999",
        "0e99999999999",
        "00000000000000000000001e0",
        ".00000000000000000000000000000000000000000000001",
        "123e-2",
        "5.",
        "8.5070591730234616e37",
        "1e27",
        "1e28",
        "1e-27",
        "1e-28",
        "1.e+3",
    };
    kf_rng r = kf_rng_stream(3, KF_FOR_DATA, 0, 0);
    char text[3000];

    (void)state;
    for (size_t k = 0; k < COUNT(odd); k++)
        same_as_strtod(odd[k]);
    for (long k = 0; k < 100000 * test_scale(); k++) {
        size_t n = 0, most = k % 1000 ? 25 : 1400;

        text[n++] = "+-"[k & 1];
        n -= kf_rng_below(&r, 2);
        n += random_digits(&r, text + n, 1 + kf_rng_below(&r, most));
        if (kf_rng_below(&r, 3)) {
            text[n++] = '.';
            n += random_digits(&r, text + n, kf_rng_below(&r, most));
        }
        text[n] = 0;
        if (kf_rng_below(&r, 2))
            sprintf(text + n, "%c%+d", "eE"[k >> 1 & 1],
                    (int)kf_rng_below(&r, k % 3 ? 60 : 700) -
                        (k % 3 ? 30 : 350));
        same_as_strtod(text);
    }
    /* Halfway between two neighbours, and a little beside it: (2 w + 1) / 2
     * times a power of two, printed exactly. */
    for (long k = 0; k < 20000; k++) {
        double w = (double)(kf_rng_u64(&r) >> 11 | (uint64_t)1 << 52);
        int e = (int)kf_rng_below(&r, 90) - 45;
        size_t n;

        n = (size_t)sprintf(text, "%.70Lf", ldexpl((long double)w + 0.5L, e));
        same_as_strtod(text);
        text[n++] = '1';
        text[n] = 0;
        same_as_strtod(text);
    }
}

static void numbers_print_and_read_back(void **state)
{
    kf_rng r = kf_rng_stream(4, KF_FOR_DATA, 0, 0);
    char text[KF_DIGITS];
    const char *end;
    double back;

    (void)state;
    for (long k = 0; k < 50000; k++) {
        uint64_t bits = kf_rng_u64(&r);
        double v;
        float x;
        size_t n;

        memcpy(&v, &bits, sizeof v);
        memcpy(&x, &bits, sizeof x);
        if (isfinite(v)) {
            n = kf_print_number(text, v, false);
            assert_int_equal(kf_scan_number(text, text + n, &end, &back),
                             KF_NUMBER);
            assert_true(back == v && end == text + n);
        }
        if (isfinite(x)) {
            n = kf_print_number(text, (double)x, true);
            kf_scan_number(text, text + n, &end, &back);
            assert_true((float)back == x && n < 16);
        }
    }
    assert_int_equal(kf_print_number(text, 0.1, false), 3);
    assert_string_equal(text, "0.1");
    kf_print_number(text, 1.7976931348623157e308, false);
    assert_string_equal(text, "1.7976931348623157e+308");
    kf_print_number(text, -NAN, false);
    assert_string_equal(text, "nan");
    kf_print_number(text, -INFINITY, true);
    assert_string_equal(text, "-inf");
}

/* A locale with a decimal comma, or Arabic's sign of two bytes; made here,
 * because few machines have them ready. */
static bool in_locale(const char *name)
{
    char command[512], full[64];

    snprintf(full, sizeof full, "%s.UTF-8", name);
    snprintf(command, sizeof command,
             "localedef -c -i %s -f UTF-8 %s/%s >/dev/null 2>&1", name, folder,
             full);
    if (system(command) >= 0)
        setenv("LOCPATH", folder, 1);
    if (setlocale(LC_NUMERIC, full))
        return true;
    unsetenv("LOCPATH");
    return setlocale(LC_NUMERIC, full);
}

static void numbers_in_any_locale(void **state)
{
    static const char *const name[] = {"de_DE", "ps_AF"};
    const char *text = "0.1234567890123456789012345e-100", *end;
    char out[KF_DIGITS];
    double v;

    (void)state;
    for (size_t k = 0; k < COUNT(name); k++) {
        if (!in_locale(name[k]))
            print_message("no locale %s here\n", name[k]);
        else
            assert_true(strtod("1.5", NULL) == 1);
        kf_print_number(out, -1.25e-7, false);
        assert_string_equal(out, "-1.25e-07");
        assert_int_equal(kf_scan_number(text, text + strlen(text), &end, &v),
                         KF_NUMBER);
        refused(KOFN_FORMAT, "a.csv", "1;2\n1,5;2\n", 10, "'1,5'");
        setlocale(LC_NUMERIC, "C");
        assert_true(*end == 0 && v == strtod(text, NULL));
    }
}

/* ---- writing ------------------------------------------------------------ */

static void round_trips(void **state)
{
    enum { N = 700 };
    static double a[N * 40];
    static float b[N * 40];
    static const char *const name[] = {"r.npy", "r.csv", "r.mtx"};
    kf_rng r = kf_rng_stream(6, KF_FOR_DATA, 0, 0);

    (void)state;
    for (size_t k = 0; k < COUNT(a); k++) {
        a[k] = kf_rng_normal(&r) * pow(10, (double)kf_rng_below(&r, 60) - 30);
        b[k] = (float)a[k];
    }
    for (int k = 0; k < 18; k++) {
        size_t cols = k / 3 % 3 == 0 ? 1 : k / 3 % 3 == 1 ? 37 : 40;
        bool single = k >= 9;
        kofn_matrix m = {single ? (void *)b : (void *)a, N, cols, 40,
                         single ? KOFN_F32 : KOFN_F64};
        unsigned dims = cols == 1 && k % 3 == 0 ? 1 : 2;
        kofn_file *f;
        const kofn_matrix *back;

        assert_ok(kofn_write(path_of(name[k % 3]), &m, dims));
        assert_ok(kofn_file_open(&f, path_of(name[k % 3])));
        back = kofn_file_dense(f);
        assert_int_equal(back->rows, N);
        assert_int_equal(back->cols, cols);
        assert_int_equal(kofn_file_mapped(f), k % 3 == 0);
        assert_int_equal(kofn_file_dims(f), cols == 1 && k % 3 < 2 ? 1 : 2);
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < cols; j++)
                assert_true(single ? (float)at(back, i, j) == b[i * 40 + j]
                                   : at(back, i, j) == a[i * 40 + j]);
        kofn_file_free(f);
    }
}

static void sparse_round_trips(void **state)
{
    size_t ptr[] = {0, 2, 2, 5};
    uint32_t col[] = {1, 2, 0, 1, 3};
    double val[] = {1, 1, 1, 1, 1};
    kofn_sparse s = {3, 4, ptr, col, val};
    char text[200];

    (void)state;
    for (int k = 0; k < 2; k++) {
        kofn_file *f;
        const kofn_sparse *b;

        assert_ok(kofn_write_mtx(path_of("s.mtx"), &s));
        assert_ok(kofn_file_open(&f, path_of("s.mtx")));
        b = kofn_file_sparse(f);
        assert_false(kofn_file_mapped(f));
        assert_int_equal(b->rows, 3);
        assert_int_equal(b->cols, 4);
        assert_memory_equal(b->ptr, ptr, sizeof ptr);
        assert_memory_equal(b->col, col, sizeof col);
        assert_memory_equal(b->val, val, sizeof val);
        kofn_file_free(f);
        read_file("s.mtx", text, sizeof text);
        assert_int_equal(strstr(text, "pattern") != NULL, k == 0);
        val[3] = -1 / 3.0;
    }
    assert_string_equal(text, MM "coordinate real general\n3 4 5\n1 2 1\n1 3 1"
                                 "\n3 1 1\n3 2 -0.3333333333333333\n3 4 1\n");
    col[1] = 4;
    assert_status(KOFN_INVAL, kofn_write_mtx(path_of("s.mtx"), &s));
    col[1] = 2, ptr[1] = 3;
    assert_status(KOFN_INVAL, kofn_write_mtx(path_of("s.mtx"), &s));
    ptr[1] = 2, ptr[0] = 1;
    assert_status(KOFN_INVAL, kofn_write_mtx(path_of("s.mtx"), &s));
    assert_status(KOFN_INVAL, kofn_write_mtx(path_of("s.mtx"), NULL));
}

static void partial_answers_can_be_kept(void **state)
{
    double a[] = {1, NAN, -INFINITY};
    kofn_matrix m = {a, 3, 1, 1, KOFN_F64};
    char text[100];
    kofn_file *f;

    (void)state;
    assert_ok(kofn_write_csv(path_of("p.csv"), &m));
    read_file("p.csv", text, sizeof text);
    assert_string_equal(text, "1\nnan\n-inf\n");
    assert_ok(kofn_write_npy(path_of("p.npy"), &m, 1));
    assert_status(KOFN_NONFINITE, kofn_file_open(&f, path_of("p.npy")));
    assert_non_null(strstr(kofn_errmsg(), "p.npy: element [1]"));
}

static void writers_refuse(void **state)
{
    double a[4] = {1, 2, 3, 4};
    kofn_matrix m = {a, 2, 2, 2, KOFN_F64}, thin = {a, 2, 2, 1, KOFN_F64};
    kofn_matrix none = {a, 0, 2, 2, KOFN_F64};
    char name[400];

    (void)state;
    assert_status(KOFN_SHAPE, kofn_write_npy(path_of("w.npy"), &m, 1));
    assert_status(KOFN_INVAL, kofn_write_npy(path_of("w.npy"), &m, 3));
    assert_status(KOFN_SHAPE, kofn_write_npy(path_of("w.npy"), &thin, 2));
    assert_status(KOFN_SHAPE, kofn_write_npy(path_of("w.npy"), &none, 2));
    assert_status(KOFN_INVAL, kofn_write_npy(path_of("w.npy"), NULL, 2));
    assert_status(KOFN_INVAL, kofn_write_npy(NULL, &m, 2));
    assert_status(KOFN_INVAL, kofn_write(path_of("w.txt"), &m, 2));
    assert_non_null(strstr(kofn_errmsg(), ".npy, .csv or .mtx"));
    assert_status(KOFN_IO, kofn_write_npy(path_of("no/w.npy"), &m, 2));
    assert_non_null(strstr(kofn_errmsg(), "no/w.npy: No such file"));
    assert_status(KOFN_IO, kofn_write_npy(folder, &m, 2));
    assert_non_null(strstr(kofn_errmsg(), "directory"));
    /* Stands for /dev/null and its like, which a test must not risk. */
    assert_int_equal(mkfifo(path_of("pipe.npy"), 0600), 0);
    assert_status(KOFN_IO, kofn_write_npy(path_of("pipe.npy"), &m, 2));
    assert_non_null(strstr(kofn_errmsg(), "not an ordinary file"));
    assert_status(KOFN_IO, kofn_write_npy("", &m, 2));
    assert_int_equal(symlink("nowhere", path_of("dangling.npy")), 0);
    assert_status(KOFN_IO, kofn_write_npy(path_of("dangling.npy"), &m, 2));
    memset(name, 'x', 399);
    name[399] = 0;
    assert_status(KOFN_IO, kofn_write_npy(name, &m, 2));
    assert_non_null(strstr(kofn_errmsg(), "xxx: File name too long"));
    assert_int_equal(listed("w."), 0);
    assert_int_equal(listed(".kofn"), 0);
}

static void links_and_permissions_stay(void **state)
{
    double a = 1;
    kofn_matrix m = {&a, 1, 1, 1, KOFN_F64};
    struct stat st;

    (void)state;
    write_file("real.npy", "old", 3);
    assert_int_equal(chmod(path_of("real.npy"), 0640), 0);
    assert_int_equal(symlink("real.npy", path_of("link.npy")), 0);
    assert_ok(kofn_write_npy(path_of("link.npy"), &m, 2));
    assert_int_equal(lstat(path_of("link.npy"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat(path_of("real.npy"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_size, 136);
    assert_ok(kofn_write_npy(path_of("new.npy"), &m, 2));
    assert_int_equal(lstat(path_of("new.npy"), &st), 0);
    umask(umask(077) | 077); /* no change: only to know it */
    assert_true((st.st_mode & 0600) == 0600 && !(st.st_mode & 0111));
}

/* A disk that is full after so many bytes: every failing write leaves the old
 * file and nothing else. */
static void full_disk(void **state)
{
    enum { N = 20000 };
    static double a[N];
    static const char *const name[] = {"full.npy", "full.csv", "full.mtx"};
    kofn_matrix m = {a, N / 4, 4, 4, KOFN_F64};
    struct rlimit before, small;
    char text[64];

    (void)state;
    for (size_t k = 0; k < N; k++)
        a[k] = (double)k / 3;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int k = 0; k < 12; k++) {
        kofn_status st;

        write_file(name[k % 3], "the old file", 12);
        small = before;
        small.rlim_cur = ((rlim_t[]){0, 100, 70000, 159000})[k / 3];
        setrlimit(RLIMIT_FSIZE, &small);
        st = kofn_write(path_of(name[k % 3]), &m, 2);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(st, KOFN_IO);
        assert_non_null(strstr(kofn_errmsg(), name[k % 3]));
        assert_non_null(strstr(kofn_errmsg(), "File too large"));
        assert_int_equal(read_file(name[k % 3], text, sizeof text), 12);
        assert_string_equal(text, "the old file");
        assert_int_equal(listed(".kofn"), 0);
    }
    signal(SIGXFSZ, SIG_DFL);
}

/* ---- opening ------------------------------------------------------------ */

static void open_fails(const char *name, kofn_status want, const char *word)
{
    kofn_file *f = (kofn_file *)(uintptr_t)8;

    assert_status(want, kofn_file_open(&f, path_of(name)));
    assert_null(f);
    if (!strstr(kofn_errmsg(), word) || !strstr(kofn_errmsg(), name))
        fail_msg("no '%s' in: %s", word, kofn_errmsg());
}

static void opening(void **state)
{
    const char *array = MM "array real general\n1 1\n5\n";
    kofn_file *f;
    char name[600];

    (void)state;
    open_fails("absent.npy", KOFN_IO, "No such file");
    open_fails("", KOFN_IO, "directory");
    assert_int_equal(mkfifo(path_of("fifo.csv"), 0600), 0);
    open_fails("fifo.csv", KOFN_IO, "pipe");
    write_file("none.csv", "", 0);
    open_fails("none.csv", KOFN_FORMAT, "empty");
    write_file("what.xyz", "1,2\n", 4);
    open_fails("what.xyz", KOFN_FORMAT, ".npy, .mtx and .csv");
    write_file("packed.csv", "\x1f\x8b\x08", 3);
    open_fails("packed.csv", KOFN_FORMAT, "gunzip");
    write_file("zip.npy", "PK\x03\x04", 4);
    open_fails("zip.npy", KOFN_FORMAT, ".npz");
    write_file("wide.csv",
               "\xff\xfe"
               "1\0",
               4);
    open_fails("wide.csv", KOFN_FORMAT, "UTF-8");
    if (geteuid() != 0) {
        write_file("secret.csv", "1\n", 2);
        chmod(path_of("secret.csv"), 0);
        open_fails("secret.csv", KOFN_IO, "Permission denied");
    }
    memset(name, 'y', sizeof name);
    memcpy(name + 595, "\n.npy", 5);
    name[599] = 0;
    assert_status(KOFN_IO, kofn_file_open(&f, name));
    assert_non_null(strstr(kofn_errmsg(), "cannot open ...yyy"));
    assert_non_null(strstr(kofn_errmsg(), "yy?.np: File name too long"));
    assert_status(KOFN_INVAL, kofn_file_open(NULL, "a.npy"));
    assert_status(KOFN_INVAL, kofn_file_open(&f, NULL));
    assert_status(KOFN_FORMAT, kofn_file_parse(&f, NULL, 5, "a.csv"));
    /* What the first bytes say counts for more than the suffix. */
    write_file("market.csv", array, strlen(array));
    assert_ok(kofn_file_open(&f, path_of("market.csv")));
    assert_true(at(kofn_file_dense(f), 0, 0) == 5);
    kofn_file_free(f);
    kofn_file_free(NULL);
    assert_null(kofn_file_dense(NULL));
}

/* ---- memory ------------------------------------------------------------- */

static kofn_status read_one(const char *name)
{
    kofn_file *f;
    kofn_status st = kofn_file_open(&f, path_of(name));

    if (st < 0)
        assert_null(f);
    else
        kofn_file_free(f);
    return st;
}

static kofn_status write_one(const char *name)
{
    double a[] = {1, 2, 3, 4};
    kofn_matrix m = {a, 2, 2, 2, KOFN_F64};

    return kofn_write(path_of(name), &m, 2);
}

static kofn_status draw_one(const char *name)
{
    kofn_sparse *s;
    kofn_status st = kofn_rmat(&s, 100, 1000, 1);

    (void)name;
    if (st == KOFN_OK)
        kofn_sparse_free(s);
    return st;
}

/* Every allocation fails in its turn. */
static void without_memory(kofn_status (*work)(const char *), const char *name)
{
    long before, n;

    count_allocations();
    fail_allocation(0);
    before = allocated();
    assert_ok(work(name));
    n = allocations();
    assert_true(n > 0);
    for (long k = 1; k <= n; k++) {
        fail_allocation(k);
        assert_status(KOFN_NOMEM, work(name));
        assert_int_equal(allocated(), before);
    }
    fail_allocation(0);
    kofn_set_alloc(NULL);
}

static void no_memory(void **state)
{
    const char *array = MM "array real general\n1 1\n5\n";
    const char *turned = MM "coordinate real symmetric\n2 2 1\n2 1 5\n";
    unsigned char file[512], data[48];
    size_t n = numbers_as(data, 'D');

    (void)state;
    n = npy(file, 1, DICT(">f8", "True", "(3, 2)"), 0, data, n);
    write_file("m.npy", file, n);
    write_file("m.csv", "1,2\n3,4\n", 8);
    write_file("m.mtx", turned, strlen(turned));
    write_file("array.mtx", array, strlen(array));
    without_memory(read_one, "m.npy");
    without_memory(read_one, "m.csv");
    without_memory(read_one, "m.mtx");
    without_memory(read_one, "array.mtx");
    without_memory(write_one, "mw.npy");
    without_memory(write_one, "mw.csv");
    without_memory(write_one, "mw.mtx");
    without_memory(draw_one, NULL);
    assert_int_equal(listed(".kofn"), 0);
}

static size_t peak, now;

static void *weigh(void *ud, void *p, size_t want)
{
    size_t *block = p, size = 64 + (want + 63) / 64 * 64;

    (void)ud;
    if (want == 0) {
        if (block)
            now -= block[-8];
        free(block ? block - 8 : NULL);
        return NULL;
    }
    block = aligned_alloc(64, size);
    assert_non_null(block);
    block[0] = want;
    now += want;
    peak = now > peak ? now : peak;
    return block + 8;
}

/* Reading holds the result and next to nothing else. */
static void memory_is_bounded(void **state)
{
    enum { N = 20000 };
    const kofn_alloc a = {weigh, NULL};
    kf_rng r = kf_rng_stream(9, KF_FOR_DATA, 0, 0);
    static char text[N * 16];
    size_t n;
    kofn_file *f;

    (void)state;
    kofn_set_alloc(&a);
    n = (size_t)sprintf(text, "%s coordinate pattern general\n3 900 %d\n", MM,
                        N);
    for (int k = 0; k < N; k++)
        n += (size_t)sprintf(text + n, "%d %d\n", 1 + k % 3,
                             1 + (int)kf_rng_below(&r, 900));
    peak = now = 0;
    assert_ok(kofn_file_parse(&f, text, n, "a"));
    assert_true(peak < 12 * N + 1024);
    kofn_file_free(f);
    n = 0;
    for (int k = 0; k < N; k++)
        n += (size_t)sprintf(text + n, "%d%c", k, k % 10 == 9 ? '\n' : ' ');
    peak = now = 0;
    assert_ok(kofn_file_parse(&f, text, n, "a.txt"));
    assert_true(peak < 8 * N + 1024);
    kofn_file_free(f);
    assert_int_equal(now, 0);
    kofn_set_alloc(NULL);
    assert_null(kf_sparse_new(SIZE_MAX, 1, 1));
    assert_null(kf_sparse_new(SIZE_MAX / 8, 1, 1));
    assert_null(kf_sparse_new(1, 1, SIZE_MAX / 8 - 2));
    assert_null(kf_sparse_new(1, 1, SIZE_MAX / 12 + 1));
}

/* ---- graphs ------------------------------------------------------------- */

static void rmat(void **state)
{
    enum { NODES = 3000, ARCS = 60000 };
    kofn_sparse *a, *b, *c;
    size_t most = 0, arcs, low = 0, same = 0;

    (void)state;
    assert_ok(kofn_rmat(&a, NODES, ARCS, 5));
    assert_ok(kofn_rmat(&b, NODES, ARCS, 5));
    assert_ok(kofn_rmat(&c, NODES, ARCS, 6));
    check_sorted(a); /* so there are no duplicates */
    arcs = a->ptr[NODES];
    assert_true(arcs < ARCS && arcs > ARCS / 2);
    assert_int_equal(a->rows, NODES);
    assert_int_equal(a->cols, NODES);
    for (size_t i = 0; i < NODES; i++) {
        size_t degree = a->ptr[i + 1] - a->ptr[i];

        most = degree > most ? degree : most;
        low += i < NODES / 2 ? degree : 0;
        for (size_t k = a->ptr[i]; k < a->ptr[i + 1]; k++)
            assert_true(a->col[k] != i && a->val[k] == 1);
        same += degree == c->ptr[i + 1] - c->ptr[i];
    }
    assert_true(most > 10 * arcs / NODES);
    /* Unshuffled, three quarters of the arcs would leave the lower half. */
    assert_true(low > arcs * 2 / 5 && low < arcs * 3 / 5);
    assert_true(same < NODES / 2);
    assert_memory_equal(a->ptr, b->ptr, (NODES + 1) * sizeof *a->ptr);
    assert_memory_equal(a->col, b->col, arcs * sizeof *a->col);
    kofn_sparse_free(a);
    kofn_sparse_free(b);
    kofn_sparse_free(c);
    assert_ok(kofn_rmat(&a, 2, 0, 1));
    assert_int_equal(a->ptr[2], 0);
    kofn_sparse_free(a);
    assert_ok(kofn_rmat(&a, 2, 1000, 1));
    assert_int_equal(a->ptr[2], 2);
    kofn_sparse_free(a);
    assert_status(KOFN_INVAL, kofn_rmat(&a, 1, 10, 1));
    assert_status(KOFN_INVAL, kofn_rmat(&a, (size_t)1 << 32, 10, 1));
    assert_status(KOFN_NOMEM, kofn_rmat(&a, 10, SIZE_MAX / 8, 1));
    assert_null(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_variants),
        cmocka_unit_test(npy_refusals),
        cmocka_unit_test(npy_not_finite),
        cmocka_unit_test(numpy_writes),
        cmocka_unit_test(numpy_reads),
        cmocka_unit_test(mtx_variants),
        cmocka_unit_test(mtx_refusals),
        cmocka_unit_test(mtx_against_dense),
        cmocka_unit_test(csv_variants),
        cmocka_unit_test(csv_refusals),
        cmocka_unit_test(numbers_as_strtod),
        cmocka_unit_test(numbers_print_and_read_back),
        cmocka_unit_test(numbers_in_any_locale),
        cmocka_unit_test(round_trips),
        cmocka_unit_test(sparse_round_trips),
        cmocka_unit_test(partial_answers_can_be_kept),
        cmocka_unit_test(writers_refuse),
        cmocka_unit_test(links_and_permissions_stay),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(opening),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(rmat),
    };

    return cmocka_run_group_tests_name("io", tests, set_up, tear_down);
}
