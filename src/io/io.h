/* io.h -- what the readers and writers of files share.
 *
 * A reader gets all bytes of a file and fills a kofn_file.  Its messages give
 * the place (line, byte or element) and the reason; file.c puts the file's name
 * in front.
 *
 * A reader owns nothing.  It puts its memory into the kofn_file, which is freed
 * also if the reader fails.  It does not print.  It keeps no pointer into the
 * bytes, except a view that the kofn_file then owns.
 */
#ifndef KF_IO_H
#define KF_IO_H

#include "base/base.h"
#include "mat/mat.h"
#include "out.h"

#include <kofn/io.h>

/* ---- sparse matrices ----------------------------------------------------- */

/* Allocates a sparse matrix with room for `nnz` entries.  Its arrays are in the
 * same allocation, so ptr, col and val must not be changed.  ptr is all zero;
 * col and val are not set.  If there are fewer entries than nnz, ptr[rows] is
 * their number.  NULL, with a message, on failure.  cols must be below 2^32. */
kofn_sparse *kf_io_sparse_new(size_t rows, size_t cols, size_t nnz);

/* Return the arrays of a new matrix for writing: they are const in
 * kofn_sparse. */
static inline size_t *kf_sparse_ptr(const kofn_sparse *s)
{
    return (size_t *)(uintptr_t)s->ptr;
}

static inline uint32_t *kf_sparse_col(const kofn_sparse *s)
{
    return (uint32_t *)(uintptr_t)s->col;
}

static inline double *kf_sparse_val(const kofn_sparse *s)
{
    return (double *)(uintptr_t)s->val;
}

/* Fill a matrix in three steps.  When ptr[i + 1] has the number of entries of
 * row i, lay returns the number of all.  put adds an entry.  laid checks and
 * ends it.  put is false if there is no room.  The entries were counted in the
 * same bytes, but another process may have written to the file since then. */
size_t kf_io_sparse_lay(kofn_sparse *s);
bool kf_io_sparse_put(kofn_sparse *s, size_t room, size_t i, size_t j,
                      double v);
kofn_status kf_io_sparse_laid(kofn_sparse *s, size_t room, bool fits);
kofn_status kf_io_changed(void);

/* Sorts every row by column and sums entries of the same place, in ascending
 * order of value. So the result does not depend on the order of entries.  Works
 * in place.  Fails with KOFN_NONFINITE if a sum overflows. */
kofn_status kf_io_sparse_tidy(kofn_sparse *s);
/* Does the same.  A message counts `width` columns of *s as one. */
kofn_status kf_io_sparse_tidy_wide(kofn_sparse *s, size_t width);

/* Does kofn_file_open with KOFN_FILE_COMPLEX from memory, which is borrowed.
 * Messages call it `name`.  Its suffix shows the format if the first bytes do
 * not. */
kofn_status kf_file_parse(kofn_file **out, const void *bytes, size_t length,
                          const char *name);

/* ---- a file being read --------------------------------------------------- */

#define KF_NAME 160 /* bytes of a path that are shown in messages */

typedef struct kf_input {
    const unsigned char *data;
    size_t length;
    const char *path;
    char name[KF_NAME]; /* the path in messages */
    bool infinite;      /* numbers may be infinite */
    const char *label;  /* the column of labels; NULL: none */
    unsigned graph; /* KOFN_FILE_GRAPH and what was added to it; 0: no graph */
    bool
        copy; /* the numbers will be written to; NaN and infinity are allowed */
    bool pairs; /* the numbers may be complex */
} kf_input;

/* A kofn_file with its memory.  Readers set `shown.dims`, and file.c the rest
 * of `shown`. */
typedef struct kf_file {
    kofn_file shown;   /* the first member, so that either leads to the other */
    kofn_matrix dense; /* data == NULL: the file is sparse */
    kofn_sparse *sparse;
    kofn_matrix labels; /* data == NULL: the file has no labels */
    size_t label;       /* column of the labels, from 1, by its name; 0: none */
    bool named;         /* the columns of a table have names */
    void *owned;        /* dense's numbers; NULL: those in the bytes */
    unsigned char *unpacked;  /* the file's bytes, when gzip had them */
    char **names, *spellings; /* of the nodes of a list of edges, or NULL */
    void *map;     /* the file's bytes, when kofn_file_open mapped them */
    size_t mapped; /* their number */
} kf_file;

/* True if the numbers are those in the mapped file, without a copy. */
bool kf_file_mapped(const kofn_file *f);

/* Fill *f.  After a failure, kofn_file_free frees what they have allocated in
 * it. */
typedef kofn_status kf_read_fn(kf_file *f, const kf_input *in);
kf_read_fn kf_npy_read, kf_mtx_read, kf_csv_read, kf_edges_read, kf_libsvm_read,
    kf_idx_read, kf_cifar_read;

/* A kind of numbers in bytes, as NumPy names it. */
typedef struct kf_kind {
    char kind; /* 'f', 'i', 'u', or 'b' */
    size_t size;
    bool big; /* endian */
} kf_kind;

/* 1 if this machine is big-endian. */
#define KF_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* Returns the 1, 2, 4 or 8 bytes of a number as an unsigned one. */
static inline uint64_t kf_io_bits(const unsigned char *p, size_t size, bool big)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (size) {
    case 1:
        return *p;
    case 2:
        memcpy(&two, p, sizeof two);
        return big == KF_BIG ? two : __builtin_bswap16(two);
    case 4:
        memcpy(&four, p, sizeof four);
        return big == KF_BIG ? four : __builtin_bswap32(four);
    }
    memcpy(&eight, p, sizeof eight);
    return big == KF_BIG ? eight : __builtin_bswap64(eight);
}

/* Returns the number, rounded to float64. */
double kf_io_number(const kf_kind *kind, const unsigned char *p);

/* Converts all numbers.  Fails if float64 does not have one of them exactly. */
kofn_status kf_io_cast(kf_file *f, const size_t shape[2], kf_kind kind,
                       const unsigned char *from, bool transposed);

/* True if the bytes begin an IDX file. */
bool kf_idx_begins(const kf_input *in);
/* True if the first line is `label index:value ...`. */
bool kf_libsvm_begins(const kf_input *in);

/* ---- the first bytes of a longer file ------------------------------------ */

/* Looks at the inflated first part of a compressed file.  Fails if the part is
 * wrong. Otherwise sets *room to the number of bytes to have next, more than
 * the part has.  Readers of text get whole lines, and add the number of their
 * numbers to *room, which is 0. */
typedef kofn_status kf_part_fn(const kf_input *part, size_t *room);

/* Inflates a file of gzip to *n bytes, freed with kf_free also after a failure.
 * The suffix of `path` shows the format if the bytes do not.  `look` is called
 * before every step. */
kofn_status kf_io_unpack(const kf_input *in, const char *path, kf_part_fn *look,
                         unsigned char **bytes, size_t *n);

/* The functions of the formats. */
kf_part_fn kf_npy_part, kf_mtx_part, kf_csv_part, kf_edges_part, kf_libsvm_part,
    kf_idx_part, kf_cifar_part;

/* Set *room for a file with `data` bytes and then shape[0] x shape[1] numbers
 * of `size` bytes, and for text, in which `count` counts the numbers. */
kofn_status kf_io_part_exact(const kf_input *part, size_t data,
                             const size_t shape[2], size_t size, size_t *room);
kofn_status kf_io_part_text(const kf_input *part, kf_part_fn *count,
                            size_t *room);

/* True if this number of numbers of `size` bytes is what follows the header. */
kofn_status kf_io_check_size(size_t have, size_t rows, size_t cols,
                             size_t size);

/* Allocates a rows x cols matrix of doubles in f->owned and f->dense; its
 * numbers are not set. */
kofn_status kf_file_dense(kf_file *f, size_t rows, size_t cols);

/* Makes the column with that name or number the labels of a dense matrix. */
kofn_status kf_io_take_labels(kf_file *f, const char *label);

/* Fails: numbers are complex where they may only be real. */
kofn_status kf_io_refuse_complex(void);

/* Fails with "element [I, J] is WHAT", counted from 0 as in NumPy; [I] with
 * dims 1.  Columns 2j and 2j + 1 are one if the numbers are complex. */
kofn_status kf_file_odd(const kf_file *f, kofn_status st, size_t i, size_t j,
                        const char *what);
/* Fails with KOFN_NONFINITE and the place of the first NaN or infinity, if
 * there is one. */
kofn_status kf_file_finite(const kf_file *f);

/* Does kofn_file_open, and allows infinite numbers. */
kofn_status kf_file_open_infinite(kofn_file **out, const char *path);

/* Writes the path without control characters; of a long path only the end. */
void kf_io_show_path(char name[KF_NAME], const char *path);
bool kf_io_has_suffix(const char *path, const char *suffix);

/* Fails with KOFN_IO and "cannot VERB NAME: reason". */
kofn_status kf_io_errno_fail(const char *verb, const char *path, int error);

#endif
