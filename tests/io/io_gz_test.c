/* io_gz_test.c -- gzip: members, data after them, and limits of inflation. */
#include "io_rig.h"

#include <zlib.h>

static int level = 9;

/* Compresses one member. Returns its size. */
static size_t pack(unsigned char *to, size_t room, const void *from, size_t n)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
                  .avail_in = (unsigned)n,
                  .next_out = to,
                  .avail_out = (unsigned)room};

    assert_int_equal(
        deflateInit2(&z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static void packed_files(void **state)
{
    const double want[] = {1, 2, 3, 4, 5, 6}, numbers[] = {1, 2, 3, 4, 5, 6};
    unsigned char file[600], inner[600];
    size_t n, m;
    kofn_file *f;

    (void)state;
    n = pack(file, sizeof file, "1,2,3\n4,5,6\n", 12);
    reads_as("a.csv.gz", (char *)file, n, 2, 2, 3, want);
    reads_as("a.csv.GZ", (char *)file, n, 2, 2, 3, want);
    reads_as("a.csv", (char *)file, n, 2, 2, 3, want);
    /* as one stream, and across the border of a word */
    n = pack(file, sizeof file, "1,2,3\n4,", 8);
    n += pack(file + n, sizeof file - n, "5,6\n", 4);
    reads_as("two.csv.gz", (char *)file, n, 2, 2, 3, want);
    m = npy(inner, 1, DICT("<f8", "False", "(2, 3)"), 0, numbers,
            sizeof numbers);
    n = pack(file, sizeof file, inner, m);
    reads_as("a.npy.gz", (char *)file, n, 2, 2, 3, want);
    write_file("a.npy.gz", file, n);
    assert_ok(kofn_file_open(&f, path_of("a.npy.gz"), KOFN_FILE_READ));
    assert_false(kf_file_mapped(f));
    assert_true(at(f->matrix.dense, 1, 2) == 6);
    kofn_file_free(f);
    n = pack(file, sizeof file,
             "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03\1\2\3\4\5\6", 22);
    reads_as("train-images-idx3-ubyte.gz", (char *)file, n, 2, 2, 3, want);
}

static void packed_refusals(void **state)
{
    unsigned char file[600], twice[600];
    size_t n = pack(file, sizeof file, "1,2,3\n4,5,6\n", 12), m;

    (void)state;
    for (size_t k = 2; k < n; k++)
        refused(KOFN_FORMAT, "a.csv.gz", file, k, "cut off|byte");
    for (size_t k = 80; k < 8 * n; k++) { /* after the head */
        kofn_file *f;

        file[k / 8] ^= (unsigned char)(1 << k % 8);
        if (kf_file_parse(&f, file, n, "a.csv.gz") == KOFN_OK) {
            /* padding bits of the last byte before the checksum */
            assert_int_equal(k / 8, n - 9);
            assert_true(at(f->matrix.dense, 1, 2) == 6);
            kofn_file_free(f);
        }
        file[k / 8] ^= (unsigned char)(1 << k % 8);
    }
    memcpy(twice, file, n);
    memcpy(twice + n, "\x1f\x8brubbish", 9);
    refused(KOFN_FORMAT, "a.csv.gz", twice, n + 9, "damaged|byte");
    refused(KOFN_FORMAT, "a.csv.gz", twice, n + 1, "cut off");
    memset(twice + n, 0, 100);
    memcpy(twice + n + 100, file, n);
    refused(KOFN_FORMAT, "a.csv.gz", twice, n + 100 + n,
            "byte 132|100 zeros|gunzip");
    m = pack(twice, sizeof twice, file, n);
    refused(KOFN_FORMAT, "a.csv.gz", twice, m, "twice|gunzip");
    m = pack(twice, sizeof twice, "1,x\n", 4);
    refused(KOFN_FORMAT, "a.csv.gz", twice, m, "line 1");
    m = pack(twice, sizeof twice, "", 0);
    refused(KOFN_FORMAT, "a.csv.gz", twice, m, "empty");
    m = pack(twice, sizeof twice, "1,2\n", 4);
    refused(KOFN_FORMAT, "a.xyz.gz", twice, m, "IDX");
}

/* The file is longer than the pieces in which it is read. */
static void packed_long_file(void **state)
{
    size_t n = (size_t)20 + 300000, room = n + 1000;
    unsigned char *plain = malloc(n), *file = malloc(room);
    kofn_file *f;

    (void)state;
    assert_true(plain && file);
    memcpy(plain, "\0\0\x08\x02\0\0\0\x64\0\0\x0b\xb8", 12); /* 100 x 3000 */
    n = 12 + 300000;
    for (size_t i = 12; i < n; i++)
        plain[i] = (unsigned char)(i * i >> 5);
    room = pack(file, room, plain, n);
    assert_ok(kf_file_parse(&f, file, room, "a.gz"));
    for (size_t i = 12; i < n; i++)
        assert_true(((double *)f->matrix.dense->data)[i - 12] == plain[i]);
    kofn_file_free(f);
    free(plain);
    free(file);
}

/* Zeros that fill a block, and data that gzip(1) ignores as well. */
static void behind_the_last_member(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } all[] = {{"\0", 1},
               {"\0\0\0\0\0\0\0\0\0\0\0\0", 12},
               {"garbage", 7},
               {"\n", 1},
               {"\0\0\0garbage", 10},
               {"\x8b\x1f\x8b", 3},
               {"\0\x1fgarbage", 9}};
    const double want[] = {1, 2, 3, 4, 5, 6};
    unsigned char file[1200];
    size_t n;

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        n = pack(file, sizeof file, "1,2,3\n4,", 8);
        n += pack(file + n, sizeof file - n, "5,6\n", 4);
        memcpy(file + n, all[k].bytes, all[k].n);
        reads_as("a.csv.gz", (char *)file, n + all[k].n, 2, 2, 3, want);
    }
    memset(file + n, 0, 512);
    reads_as("a.csv.gz", (char *)file, n + 512, 2, 2, 3, want);
}

/* ---- limits of inflation --------------------------------------------------
 */

enum { BOMB = 40 << 20 };

/* Reads `head`, and `fill` up to BOMB bytes. The file is refused with `words`,
 * and at most `most` bytes were allocated at any time. */
static void bomb(const char *name, const void *head, size_t n, int fill,
                 size_t most, const char *words)
{
    size_t room = BOMB / 100;
    unsigned char *plain = malloc(BOMB), *file = malloc(room);

    assert_true(plain && file);
    memset(plain, fill, BOMB);
    memcpy(plain, head, n);
    level = 1;
    room = pack(file, room, plain, BOMB);
    level = 9;
    free(plain);
    kofn_set_alloc(weigh, NULL);
    peak = now = 0;
    refused(KOFN_FORMAT, name, file, room, words);
    kofn_set_alloc(NULL, NULL);
    if (peak > most)
        fail_msg("%s: %zu bytes were held", name, peak);
    free(file);
}

static void more_than_the_format_says(void **state)
{
    const size_t little = 1 << 20, some = 34 << 20;
    unsigned char head[600];
    char text[100];
    size_t n;

    (void)state;
    n = npy(head, 1, DICT("<f8", "False", "(2, 3)"), 0, NULL, 0);
    bomb("a.npy.gz", head, n, 0, little, "and more follow|one array");
    n = npy(head, 1, DICT("<f9", "False", "(2, 3)"), 0, NULL, 0);
    bomb("a.npy.gz", head, n, 0, little, "'<f9'");
    bomb("a.gz", "\0\0\x08\x02\0\0\0\2\0\0\0\3", 12, 0, little,
         "18 bytes|and more follow");
    bomb("a.bin.gz", "", 0, 0, little, "raw numbers");
    bomb("a.bin.gz", "\12", 1, 0, little, "label 10");
    bomb("a.xyz.gz", "", 0, 0, little, "suffix");
    bomb("a.gz", "PK\3\4", 4, 0, little, "zip");
    bomb("a.csv.gz", "1,2\n", 4, '\n', some, "have at most 2 numbers");
    bomb("a.csv.gz", "1,2\n", 4, '7', some, "have at most 2 numbers");
    bomb("a.csv.gz", "1,2\n3,x\n", 8, '\n', some, "line 2, column 2");
    n = (size_t)sprintf(text, "%s array real general\n9 1\n1\n2\n", MM);
    bomb("a.gz", text, n, ' ', some, "have at most 2 numbers");
    n = (size_t)sprintf(text, "%s coordinate real general\n9 1 3\n1 1 1\n", MM);
    bomb("a.gz", text, n, '\n', some, "have at most 1 numbers");
    bomb("a.mtx.gz", "", 0, '\n', some, "line 1|MatrixMarket");
}

/* A false header does not cause allocations. */
static void less_than_the_header_says(void **state)
{
    unsigned char plain[300000] = {0}, file[2000];
    size_t n;

    (void)state;
    npy(plain, 1, DICT("<f8", "False", "(1000000, 1000)"), 0, NULL, 0);
    n = pack(file, sizeof file, plain, sizeof plain);
    kofn_set_alloc(weigh, NULL);
    peak = now = 0;
    refused(KOFN_FORMAT, "a.npy.gz", file, n, "8000000000 bytes|cut off");
    assert_true(peak < 3 << 20);
    npy(plain, 1, DICT("<f8", "False", "(4000000000, 4000000000)"), 0, NULL, 0);
    n = pack(file, sizeof file, plain, sizeof plain);
    refused(KOFN_FORMAT, "a.npy.gz", file, n, "memory anywhere");
    kofn_set_alloc(NULL, NULL);
}

/* Text with many numbers is read as before. */
static void packed_long_texts(void **state)
{
    const size_t rows = 100000, each = 200, length = rows * each + 100;
    static const char *const name[] = {"a.csv.gz", "a.mtx.gz"};
    char *plain = malloc(length);
    unsigned char *file = malloc(length / 10);
    kofn_file *f;

    (void)state;
    assert_true(plain && file);
    for (int k = 0; k < 2; k++) {
        size_t n = 0;

        if (k)
            n = (size_t)sprintf(plain, "%s array integer general\n%zu 1\n", MM,
                                rows);
        for (size_t i = 0; i < rows; i++, n += each) {
            memset(plain + n, ' ', each);
            plain[n + (size_t)sprintf(plain + n, "%zu", i)] = ' ';
            plain[n + each - 1] = '\n';
        }
        n = pack(file, length / 10, plain, n);
        assert_ok(kf_file_parse(&f, file, n, name[k]));
        assert_int_equal(f->matrix.dense->rows, rows);
        for (size_t i = 0; i < rows; i++)
            assert_true(at(f->matrix.dense, i, 0) == (double)i);
        kofn_file_free(f);
    }
    free(plain);
    free(file);
}

static void failing_allocations(void **state)
{
    unsigned char file[3073] = {3, 200}, packed[600];
    size_t n = pack(packed, sizeof packed, file, sizeof file);

    (void)state;
    count_allocations();
    for (long k = 1;; k++) {
        kofn_file *f;
        kofn_status st;

        fail_allocation(k);
        st = kf_file_parse(&f, packed, n, "a.bin.gz");
        fail_allocation(0);
        if (st == KOFN_OK) {
            kofn_file_free(f);
            assert_int_equal(allocated(), 0);
            assert_true(k > 5);
            return;
        }
        assert_int_equal(st, KOFN_NOMEM);
        assert_int_equal(allocated(), 0);
    }
}

TEST_FILE(io_gz_test)
{
    const struct CMUnitTest tests[] = {
        TEST(packed_files,
             "gzip: a packed file reads like its contents (one, two members)"),
        TEST(packed_refusals,
             "gzip: damaged files are refused (every flipped bit)"),
        TEST(packed_long_file,
             "gzip: a file longer than the read buffer is read"),
        TEST(behind_the_last_member,
             "gzip: data after the last member is treated as gzip(1) does"),
        TEST(more_than_the_format_says,
             "gzip: inflation stops at what the format allows (40 MiB bombs)"),
        TEST(less_than_the_header_says,
             "gzip: a header that claims too much allocates little"),
        TEST(packed_long_texts, "gzip: long texts are read"),
        TEST(failing_allocations, "gzip: each failing allocation is reported"),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
