/* io.h -- what the readers and writers of files share.
 *
 * A reader is given all bytes of a file and fills a kofn_file.  Its messages
 * say the place (line, byte or element) and the reason; file.c puts the
 * file's name before them.
 *
 * A reader owns nothing but what it puts into the kofn_file, which is freed
 * also when the reader fails; it may not print, and may not keep pointers into
 * the bytes but for a view that the file then owns.
 */
#ifndef KF_IO_H
#define KF_IO_H

#include "base/base.h"
#include "mat/mat.h"
#include "out.h"

#include <kofn/io.h>

/* ---- sparse matrices ----------------------------------------------------- */

/* Room for `nnz` entries.  The arrays lie in one block behind the object and
 * go with it in kofn_free, so nobody may point ptr, col or val
 * elsewhere.  ptr is all zero; col and val are not set.  When fewer entries
 * than nnz come, ptr[rows] says so and the rest is slack.  NULL on failure,
 * after keeping the message.  cols must be below 2^32. */
kofn_sparse *kf_io_sparse_new(size_t rows, size_t cols, size_t nnz);

/* To fill a new matrix: kofn_sparse itself shows its arrays as const. */
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

/* To fill one: when ptr[i + 1] has how many entries row i will have, lay gives
 * the number of all; each is put; laid ends it.  put is false where there is no
 * room: it was counted in the same bytes, but another process may have written
 * to the file since, which must not choose places in memory. */
size_t kf_io_sparse_lay(kofn_sparse *s);
bool kf_io_sparse_put(kofn_sparse *s, size_t room, size_t i, size_t j,
                      double v);
kofn_status kf_io_sparse_laid(kofn_sparse *s, size_t room, bool fits);
kofn_status kf_io_changed(void);

/* Sort every row by column and sum entries that name the same place, in
 * ascending order of value: the result does not depend on the order in which
 * entries came.  In place.  KOFN_NONFINITE when a sum overflows. */
kofn_status kf_io_sparse_tidy(kofn_sparse *s);

/* kofn_file_open from memory, which is borrowed; `name` stands in messages and its
 * suffix tells the format where the first bytes do not. */
kofn_status kf_file_parse(kofn_file **out, const void *bytes, size_t length,
                          const char *name);

/* ---- a file being read --------------------------------------------------- */

#define KF_NAME 160 /* bytes of a path that are shown in messages */

typedef struct kf_input {
    const unsigned char *data;
    size_t length;
    const char *path;
    char name[KF_NAME]; /* the path as it stands in messages */
    bool infinite;      /* may infinities be among the numbers? */
    bool graph;         /* text is a list of edges */
    bool copy;          /* to be written to; NaN and infinity are let in */
} kf_input;

/* A kofn_file with what it owns.  Readers set dims of what is shown, and file.c
 * the rest of it. */
typedef struct kf_file {
    kofn_file shown;   /* the first member, so that either leads to the other */
    kofn_matrix dense; /* data == NULL: the file is sparse */
    kofn_sparse *sparse;
    kofn_matrix labels;      /* data == NULL: the file has none of its own */
    void *owned;             /* dense's numbers; NULL: those in the bytes */
    unsigned char *unpacked; /* the file's bytes, when gzip had them */
    void *map;     /* the file's bytes, when kofn_file_open mapped them */
    size_t mapped; /* their number */
} kf_file;

/* Does it show the numbers where they lie in the file? */
bool kf_file_mapped(const kofn_file *f);

/* Each fills *f or leaves what it had allocated in it for kofn_file_free. */
typedef kofn_status kf_read_fn(kf_file *f, const kf_input *in);
kf_read_fn kf_npy_read, kf_mtx_read, kf_csv_read, kf_edges_read, kf_libsvm_read,
    kf_idx_read, kf_cifar_read;

/* A kind of numbers in bytes, as NumPy names it. */
typedef struct kf_kind {
    char kind; /* 'f', 'i', 'u', or 'b' */
    size_t size;
    bool big; /* endian */
} kf_kind;

/* Is this machine? */
#define KF_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* The number's 1, 2, 4 or 8 bytes as one without a sign. */
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

/* The number, or its neighbour among float64. */
double kf_io_number(const kf_kind *kind, const unsigned char *p);

/* All numbers, which float64 must have. */
kofn_status kf_io_cast(kf_file *f, const size_t shape[2], kf_kind kind,
                       const unsigned char *from, bool transposed);

/* Does it begin as an IDX file? */
bool kf_idx_begins(const kf_input *in);
/* Is its first line `label index:value ...`? */
bool kf_libsvm_begins(const kf_input *in);

/* ---- the first bytes of a file that goes on ------------------------------ */

/* Looks at the part of a compressed file that is inflated, before there is more
 * of it: refuses what is wrong in the part already, or says how many bytes of the
 * file to have next, more than the part has.  Readers of text are given whole
 * lines, and say how many numbers these have, adding to 0. */
typedef kofn_status kf_part_fn(const kf_input *part, size_t *room);

/* Inflates what gzip compressed: *n bytes, freed with kf_free also after a
 * failure.  `path` tells the format where the bytes do not, and `look` is asked
 * before every step. */
kofn_status kf_io_unpack(const kf_input *in, const char *path, kf_part_fn *look,
                         unsigned char **bytes, size_t *n);

/* Each is that of a format. */
kf_part_fn kf_npy_part, kf_mtx_part, kf_csv_part, kf_edges_part, kf_libsvm_part,
    kf_idx_part, kf_cifar_part;

/* Of a file that has so many numbers of `size` bytes behind `data` bytes; and of
 * text, whose numbers are counted. */
kofn_status kf_io_part_exact(const kf_input *part, size_t data,
                             const size_t shape[2], size_t size, size_t *room);
kofn_status kf_io_part_text(const kf_input *part, kf_part_fn *count,
                            size_t *room);

/* True if this number of numbers of `size` bytes is what follows the header. */
kofn_status kf_io_check_size(size_t have, size_t rows, size_t cols,
                             size_t size);

/* A rows x cols matrix of doubles, not set, in f->owned and f->dense. */
kofn_status kf_file_dense(kf_file *f, size_t rows, size_t cols);

/* "element [I, J] is WHAT", counted from 0 as NumPy does: [I] with dims 1. */
kofn_status kf_file_odd(const kf_file *f, kofn_status st, size_t i, size_t j,
                        const char *what);
/* KOFN_NONFINITE naming the first element that is NaN or infinite. */
kofn_status kf_file_finite(const kf_file *f);

/* kofn_file_open, but that infinities are numbers as others are. */
kofn_status kf_file_open_infinite(kofn_file **out, const char *path);

/* The path without control characters and, when long, only its end. */
void kf_io_show_path(char name[KF_NAME], const char *path);
bool kf_io_has_suffix(const char *path, const char *suffix);

/* "cannot VERB NAME: reason", KOFN_IO. */
kofn_status kf_io_errno_fail(const char *verb, const char *path, int error);

#endif
