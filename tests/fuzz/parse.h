/* parse.h -- has the rules that every answer of kf_file_parse must keep. */
#ifndef KF_FUZZ_PARSE_H
#define KF_FUZZ_PARSE_H

#include "watch.h"

#include "io/io.h"

#include <math.h>

/* The largest ratio of parsed bytes to file bytes; larger than 1 for gzip
 * only. */
static size_t swell = 1;

/* ---- rules --------------------------------------------------------------- */

static void check_dense(const kofn_file *f, const uint8_t *data, size_t size)
{
    const kofn_matrix *a = f->matrix.dense;
    size_t width = a->dtype == KOFN_F32 ? 4 : 8;

    MUST(a->rows > 0 && a->cols > 0 && a->ld == a->cols);
    MUST(a->rows <= swell * size && a->cols <= swell * size &&
         a->rows * a->cols <= 2 * swell * size);
    MUST((uintptr_t)a->data % width == 0);
    MUST(!f->is_complex || a->cols % 2 == 0);
    MUST(f->dims == 2 || (f->dims == 1 && a->cols == (f->is_complex ? 2 : 1)));
    if (kf_file_mapped(f)) {
        const uint8_t *p = a->data;
        MUST(p > data && p + a->rows * a->cols * width == data + size);
    }
    for (size_t k = 0; k < a->rows * a->cols; k++)
        MUST(isfinite(width == 4 ? (double)((const float *)a->data)[k]
                                 : ((const double *)a->data)[k]));
}

static void check_sparse(const kofn_sparse *s)
{
    MUST(kf_mat_check_sparse(s, "s") == KOFN_OK);
    for (size_t i = 0; i < s->rows; i++)
        for (size_t k = s->ptr[i]; k < s->ptr[i + 1]; k++) {
            MUST(k == s->ptr[i] || s->col[k - 1] < s->col[k]);
            MUST(isfinite(s->val[k]));
        }
}

static void check_message(const char *name)
{
    const char *m = kofn_errmsg();
    size_t n = strlen(name);

    MUST(strncmp(m, name, n) == 0 && strncmp(m + n, ": ", 2) == 0 && m[n + 2]);
    for (; *m; m++) /* a file must not control the user's terminal */
        MUST(*m >= ' ' && *m < 0x7f);
}

/* Parses again with an allocation that fails: the answer is KOFN_NOMEM, and
 * nothing leaks. */
static void parse_without_memory(const uint8_t *data, size_t size,
                                 const char *name)
{
    kofn_file *f = (kofn_file *)(uintptr_t)1;

    failing = 1 + (long)(size % (size_t)allocated);
    allocated = 0;
    MUST(kf_file_parse(&f, data, size, name) == KOFN_NOMEM);
    MUST(!f && blocks == 0 && held == 0);
    failing = 0;
}

/* Parses and checks every rule. Returns the file, or NULL if it was refused. */
static kofn_file *parse(const uint8_t *data, size_t size, const char *name)
{
    kofn_file *f = (kofn_file *)(uintptr_t)1;
    kofn_status st;

    watch_memory();
    /* Rows may be empty, up to 64 for each entry; see mtx.c. */
    most = ((size_t)1 << 25) + 65536 + 160 * swell * size;
    allocated = 0;
    st = kf_file_parse(&f, data, size, name);
    if (st != KOFN_OK) {
        MUST(st == KOFN_FORMAT || st == KOFN_NONFINITE);
        MUST(!f && blocks == 0 && held == 0);
        check_message(name);
        return NULL;
    }
    MUST(f && !f->matrix.dense != !f->matrix.sparse);
    if (f->matrix.dense)
        check_dense(f, data, size);
    else
        check_sparse(f->matrix.sparse);
    return f;
}

static void done(kofn_file *f, const uint8_t *data, size_t size,
                 const char *name)
{
    kofn_file_free(f);
    MUST(blocks == 0 && held == 0);
    if (size % 8 == 0)
        parse_without_memory(data, size, name);
}

#endif
