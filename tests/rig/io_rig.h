/* io_rig.h -- what the tests of file formats share: a folder that goes away and
 * what is expected of a reader. */
#ifndef KF_TEST_IO_RIG_H
#define KF_TEST_IO_RIG_H

#include "support.h"

#include "io/io.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- files of the test --------------------------------------------------- */

static char folder[64];

static inline const char *path_of(const char *name)
{
    static char path[4][512];
    static int turn;
    char *p = path[turn = (turn + 1) % 4];

    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static inline void write_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(path_of(name), "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline size_t read_file(const char *name, char *bytes, size_t room)
{
    FILE *f = fopen(path_of(name), "rb");
    size_t n;

    assert_non_null(f);
    n = fread(bytes, 1, room - 1, f);
    bytes[n] = 0;
    fclose(f);
    return n;
}

static inline int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kofn-io-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* Names in the folder that begin so. */
static inline int listed(const char *prefix)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)))
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return n;
}

static inline int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- expectations -------------------------------------------------------- */

/* Refused with `want` and a message that has all of the words between '|'. */
static inline void refused(kofn_status want, const char *name,
                           const void *bytes, size_t n, const char *words)
{
    kofn_file *f = (kofn_file *)(uintptr_t)8;
    char all[256], *save, *word, *copy = malloc(n + !n);

    /* In a block of that size a sanitizer sees a read behind it. */
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    if (kf_file_parse(&f, copy, n, name) != want)
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

static inline double at(const kofn_matrix *a, size_t i, size_t j)
{
    return a->dtype == KOFN_F32 ? (double)((float *)a->data)[i * a->ld + j]
                                : ((double *)a->data)[i * a->ld + j];
}

static inline double sparse_at(const kofn_sparse *s, size_t i, size_t j)
{
    for (size_t k = s->ptr[i]; k < s->ptr[i + 1]; k++)
        if (s->col[k] == j)
            return s->val[k];
    return 0;
}

static inline void check_sorted(const kofn_sparse *s)
{
    assert_ok(kf_mat_check_sparse(s, "s"));
    for (size_t i = 0; i < s->rows; i++)
        for (size_t k = s->ptr[i] + 1; k < s->ptr[i + 1]; k++)
            assert_true(s->col[k - 1] < s->col[k]);
}

/* The text holds rows x cols numbers, listed row by row in `want`. */
static inline void reads_as(const char *name, const char *text, size_t n,
                            unsigned dims, size_t rows, size_t cols,
                            const double *want)
{
    kofn_file *f;
    const kofn_sparse *s;
    const kofn_matrix *a;

    assert_ok(kf_file_parse(&f, text, n, name));
    a = f->matrix.dense;
    s = f->matrix.sparse;
    assert_true(!a != !s);
    assert_int_equal(a ? a->rows : s->rows, rows);
    assert_int_equal(a ? a->cols : s->cols, cols);
    assert_int_equal(f->dims, dims);
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

/* ---- memory -------------------------------------------------------------- */

/* The most bytes that were held at once, and those held now. */
static size_t peak, now;

static inline void *weigh(void *ud, void *p, size_t want)
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

/* ---- files made here ----------------------------------------------------- */

#define DICT(descr, order, shape)                                              \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

#define MM "%%MatrixMarket matrix "

/* A .npy of version `major` with this dict and these bytes; gives its size.
 * `pad` spaces follow the dict. */
static inline size_t npy(unsigned char *to, int major, const char *dict,
                         size_t pad, const void *data, size_t n)
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

#endif
