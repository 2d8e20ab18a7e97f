/* io_idx_test.c -- IDX and CIFAR-10: every variant and every refusal. */
#include "io_rig.h"

#include <math.h>

/* ---- IDX ----------------------------------------------------------------- */

static void idx_variants(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        unsigned dims;
        size_t rows, cols;
        double want[6];
    } all[] = {
        {"\0\0\x08\x01\0\0\0\x03\x00\x7f\xff", 11, 1, 3, 1, {0, 127, 255}},
        {"\0\0\x09\x02\0\0\0\x01\0\0\0\x02\x80\xff", 14, 2, 1, 2, {-128, -1}},
        {"\0\0\x0b\x02\0\0\0\x01\0\0\0\x02\x80\0\x01\x02",
         16,
         2,
         1,
         2,
         {-32768, 258}},
        {"\0\0\x0c\x01\0\0\0\x02\xff\xff\xff\xfe\0\x01\0\0",
         16,
         1,
         2,
         1,
         {-2, 65536}},
        {"\0\0\x0d\x01\0\0\0\x01\xbf\xc0\0\0", 12, 1, 1, 1, {-1.5}},
        {"\0\0\x0e\x01\0\0\0\x01\x40\x04\0\0\0\0\0\0", 16, 1, 1, 1, {2.5}},
        /* two images of 1 x 3 */
        {"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03\1\2\3\4\5\6",
         22,
         2,
         2,
         3,
         {1, 2, 3, 4, 5, 6}},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        reads_as(k % 2 ? "any-name" : "t10k-images-idx3-ubyte", all[k].bytes,
                 all[k].n, all[k].dims, all[k].rows, all[k].cols, all[k].want);
}

static void idx_refusals(void **state)
{
#define R(bytes, words)                                                        \
    {                                                                          \
        bytes, sizeof bytes - 1, words                                         \
    }
    static const struct {
        const char *bytes;
        size_t n;
        const char *words;
    } all[] = {
        R("\0\0\x07\x01", "does not begin"),
        R("\0\0\x08\0", "does not begin"),
        R("\0\0\x08", "does not begin"),
        R("\0\0\x08\x02\0\0\0\1", "2 dimensions|12 bytes|after 8"),
        R("\0\0\x08\x01\0\0\0\0", "0 x 1|empty"),
        R("\0\0\x08\x01\0\0\0\2\1", "2 x 1|2 bytes|cut off"),
        R("\0\0\x08\x01\0\0\0\1\1\1", "1 x 1|but 2 follow"),
        R("\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x01",
          "memory anywhere"),
        R("\0\0\x08\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
          "\xff\xff",
          "byte 16|memory anywhere"),
        R("\0\0\x08\x02\0\1\0\0\0\1\0\0\1\1", "65536 x 65536|cut off"),
    };
#undef R

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(KOFN_FORMAT, "a.idx", all[k].bytes, all[k].n, all[k].words);
    refused(KOFN_NONFINITE, "labels-ubyte", "\0\0\x0d\x01\0\0\0\1\x7f\x80\0\0",
            12, "[0]|NaN or infinite");
}

/* ---- CIFAR-10 ------------------------------------------------------------ */

#define RECORD 3073

static void cifar(void **state)
{
    unsigned char file[2 * RECORD];
    const kofn_matrix *X, *y;
    kofn_file *f;

    (void)state;
    for (size_t i = 0; i < sizeof file; i++)
        file[i] = (unsigned char)(i * 7);
    file[0] = 0; /* with the next bytes it looks like IDX */
    file[1] = 0;
    file[2] = 8;
    file[3] = 1;
    file[RECORD] = 9;
    assert_ok(kf_file_parse(&f, file, sizeof file, "data_batch_1.bin"));
    X = f->matrix.dense;
    y = f->labels;
    assert_non_null(y);
    assert_int_equal(X->rows, 2);
    assert_int_equal(X->cols, RECORD - 1);
    assert_int_equal(y->rows, 2);
    assert_true(at(y, 0, 0) == 0 && at(y, 1, 0) == 9);
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < X->cols; j++)
            assert_true(at(X, i, j) == file[i * RECORD + 1 + j]);
    kofn_file_free(f);

    refused(KOFN_FORMAT, "a.bin", file, RECORD + 1, "3074 bytes|3073|cut off");
    file[RECORD] = 10;
    refused(KOFN_FORMAT, "a.bin", file, sizeof file,
            "byte 3073|record 1|label 10|0 to 9");
    assert_ok(kf_file_parse(&f, "1,2\n", 4, "a.csv"));
    assert_null(f->labels);
    kofn_file_free(f);
}

/* numpy.tofile writes no mark; read as CIFAR-10 the file would have labels. */
static void cifar_or_raw_numbers(void **state)
{
    static unsigned char file[8 * RECORD];
    const size_t n = sizeof file;
    kofn_file *f;

    (void)state;
    refused(KOFN_FORMAT, "x.bin", file, n, "24584 bytes|3073 raw|float64|save");
    refused(KOFN_FORMAT, "x.bin", file, RECORD, "3073 raw numbers (uint8)");
    for (size_t i = 0; i < n / 8;
         i += 11) { /* few bytes, none at the place of a label */
        double v = i % 2 ? 3.25 : -1e-9;

        if (i * 8 / RECORD == (i * 8 + 7) / RECORD && i * 8 % RECORD)
            memcpy(file + 8 * i, &v, 8);
    }
    refused(KOFN_FORMAT, "x.bin", file, n, "could be|raw numbers (float64)");
    for (size_t i = 0; i < n / 4; i++) {
        float v = (float)(i % 4);

        memcpy(file + 4 * i, &v, 4);
    }
    for (size_t i = 0; i < n; i += RECORD)
        memset(file + i - i % 4, 0, 4);
    refused(KOFN_FORMAT, "x.bin", file, n / 2, "raw numbers (float32)");
    for (size_t i = 0; i < n / 8; i++) {
        int64_t v = (int64_t)(i % 10) - 2 * (i % 3 == 2 && i % 10 > 1);

        memcpy(file + 8 * i, &v, 8);
    }
    for (size_t i = 0; i < n; i += RECORD)
        memset(file + i - i % 8, 0, 8);
    refused(KOFN_FORMAT, "x.bin", file, n, "raw numbers (int64)");
    for (size_t i = 0; i < n / 4; i++) {
        int32_t v = (int32_t)(i % 2000) - 1000;

        memcpy(file + 4 * i, &v, 4);
    }
    for (size_t i = 0; i < n; i += RECORD)
        memset(file + i - i % 4, 0, 4);
    refused(KOFN_FORMAT, "x.bin", file, n / 2, "raw numbers (int32)");
    for (size_t i = 0; i < n; i++)
        file[i] = (unsigned char)(i % 10);
    refused(KOFN_FORMAT, "x.bin", file, n, "raw numbers (uint8)");
    /* One pixel distinguishes pictures from numbers: here in the exponent. */
    memset(file, 0, n);
    memset(file + 8, 77, 8);
    assert_ok(kf_file_parse(&f, file, n, "x.bin"));
    assert_true(at(f->matrix.dense, 0, 8) == 77);
    kofn_file_free(f);
}

TEST_FILE(io_idx_test)
{
    const struct CMUnitTest tests[] = {
        TEST(idx_variants, "idx: every variant is read"),
        TEST(idx_refusals, "idx: wrong files are refused with the reason"),
        TEST(cifar,
             "cifar-10: images and labels are read, wrong files refused"),
        TEST(cifar_or_raw_numbers,
             "cifar-10: raw numbers of the same length are not images"),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
