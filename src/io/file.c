/* file.c -- opens or borrows a file's bytes, finds the format, gives the
 * result.
 *
 * Files are mapped.  So text is read without a copy of it, and a .npy with
 * numbers of the machine's own kind is not copied at all.  If another process
 * shortens a mapped file, this one ends by a bus error, as any program does
 * that maps its input.
 *
 * A kofn_file owns the matrices until kofn_file_free, and the mapping too if
 * its matrix is in it.  A reader of a format neither opens nor closes anything.
 */
#define _DEFAULT_SOURCE /* MAP_NORESERVE */
#include "io.h"
#include "text.h"

#include "base/raise.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names and messages -------------------------------------------------- */

void kf_io_show_path(char name[KF_NAME], const char *path)
{
    size_t n = strlen(path), k = 0;

    if (n >= KF_NAME) {
        path += n - (KF_NAME - 4);
        memcpy(name, "...", 3);
        k = 3;
    }
    for (; *path; path++)
        name[k++] = (unsigned char)*path < ' ' || *path == 0x7f ? '?' : *path;
    name[k] = 0;
}

bool kf_io_has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);

    return n >= m && kf_io_alike(path + n - m, suffix, m);
}

kofn_status kf_io_errno_fail(const char *verb, const char *path, int error)
{
    char name[KF_NAME], why[100];

    kf_io_show_path(name, path);
    if (strerror_r(error, why, sizeof why) != 0)
        snprintf(why, sizeof why, "error %d", error);
    return kf_fail(KOFN_IO, "cannot %s %s: %s", verb, name, why);
}

/* ---- the result ---------------------------------------------------------- */

/* True if the numbers are in the file's bytes, without a copy. */
static bool is_view(const kf_file *f)
{
    return f->dense.data && !f->owned;
}

bool kf_file_mapped(const kofn_file *file)
{
    const kf_file *f = (const kf_file *)file;

    return f && is_view(f) && !f->unpacked;
}

static void unmap(kf_file *f)
{
    if (f->map)
        munmap(f->map, f->mapped);
    f->map = NULL;
}

void kofn_file_free(kofn_file *file)
{
    kf_file *f = (kf_file *)file;

    if (!f)
        return;
    unmap(f);
    kf_free(f->owned);
    kf_free(f->names);
    kf_free(f->spellings);
    kf_free(f->unpacked);
    kf_free(f->labels.data);
    kofn_free(f->sparse);
    kf_free(f);
}

/* ---- which format -------------------------------------------------------- */

typedef struct format {
    kf_read_fn *read;
    kf_part_fn *part;
    bool text;
} format;

/* Files that people pass by mistake, and what to do then. */
static const char *const foreign[][2] = {
    {"\x1f\x8b",
     "it is compressed with gzip twice; unpack it once with gunzip"},
    {"BZh", "it is compressed with bzip2; unpack it with bunzip2 first"},
    {"\xfd"
     "7zXZ",
     "it is compressed with xz; unpack it with unxz first"},
    {"\x28\xb5\x2f\xfd", "it is compressed with zstd; unpack it first"},
    {"PK\x03\x04",
     "it is a zip or .npz archive; save one array with numpy.save instead"},
    {"\x89HDF", "it is HDF5; save the array with numpy.save instead"},
    {"MATLAB 5.0",
     "it is a MATLAB file; save the array with numpy.save or mmwrite instead"},
    {"\xff\xfe", "it is UTF-16 text; save it as UTF-8"},
    {"\xfe\xff", "it is UTF-16 text; save it as UTF-8"},
};

static kofn_status check_foreign(const kf_input *in)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        size_t n = strlen(foreign[i][0]);

        if (in->length >= n && memcmp(in->data, foreign[i][0], n) == 0)
            return kf_fail(KOFN_FORMAT, "%s", foreign[i][1]);
    }
    if (in->length == 0)
        return kf_fail(KOFN_FORMAT, "the file is empty");
    return KOFN_OK;
}

/* In any case of letters. */
static bool begins(const kf_input *in, const char *magic)
{
    size_t n = strlen(magic);

    return in->length >= n && kf_io_alike((const char *)in->data, magic, n);
}

static bool is_text(const kf_input *in)
{
    static const char *const text[] = {".csv", ".tsv", ".txt", ".dat"};

    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (kf_io_has_suffix(in->path, text[i]))
            return true;
    return false;
}

static const format *find_format(const kf_input *in)
{
    static const format npy = {kf_npy_read, kf_npy_part, false};
    static const format mtx = {kf_mtx_read, kf_mtx_part, true};
    static const format edges = {kf_edges_read, kf_edges_part, true};
    static const format libsvm = {kf_libsvm_read, kf_libsvm_part, true};
    static const format csv = {kf_csv_read, kf_csv_part, true};
    static const format idx = {kf_idx_read, kf_idx_part, false};
    static const format cifar = {kf_cifar_read, kf_cifar_part, false};

    if (begins(in, "\x93NUMPY") || kf_io_has_suffix(in->path, ".npy"))
        return &npy;
    if (kf_io_has_suffix(in->path,
                         ".bin")) /* has no first bytes to know it by */
        return &cifar;
    if (kf_idx_begins(in) || kf_io_has_suffix(in->path, ".idx") ||
        kf_io_has_suffix(in->path, "-ubyte"))
        return &idx;
    if (begins(in, "%%MatrixMarket") || begins(in, KF_BOM "%%MatrixMarket") ||
        kf_io_has_suffix(in->path, ".mtx"))
        return &mtx;
    if (kf_io_has_suffix(in->path, ".edges") || (in->graph && is_text(in)))
        return &edges;
    if (kf_io_has_suffix(in->path, ".libsvm") ||
        kf_io_has_suffix(in->path, ".svm"))
        return &libsvm;
    if (is_text(in))
        return &csv;
    return kf_libsvm_begins(in) ? &libsvm
                                : NULL; /* files of LIBSVM's site: a9a, a9a.t */
}

static kofn_status tell(const kf_input *in, const format **found)
{
    TRY(check_foreign(in));
    *found = find_format(in);
    return *found ? KOFN_OK
                  : kf_fail(KOFN_FORMAT,
                            "neither the first bytes nor the suffix show the "
                            "format; kofn reads .npy, .mtx, .csv, IDX, the "
                            ".bin of CIFAR-10, .edges, .libsvm and .svm");
}

static kofn_status parse_plain(kf_file *f, const kf_input *in)
{
    const format *found;

    TRY(tell(in, &found));
    f->shown.dims = 2;
    return found->read(f, in);
}

static kofn_status part_of_any(const kf_input *part, size_t *room)
{
    const format *found;

    TRY(tell(part, &found));
    return found->text ? kf_io_part_text(part, found->part, room)
                       : found->part(part, room);
}

/* Parses a compressed file.  The name without .gz shows the format. */
static kofn_status parse_packed(kf_file *f, const kf_input *in)
{
    kf_input inner = *in;
    char *path = kf_strdup(in->path);
    kofn_status st = KOFN_NOMEM;

    assert(!f->unpacked);
    if (path) {
        if (kf_io_has_suffix(path, ".gz"))
            path[strlen(path) - 3] = 0;
        inner.path = path;
        st = kf_io_unpack(in, path, part_of_any, &f->unpacked, &inner.length);
    }
    inner.data = f->unpacked;
    if (!st)
        st = parse_plain(f, &inner);
    kf_free(path);
    return st;
}

static kofn_status parse(kf_file *f, const kf_input *in)
{
    return in->length >= 2 && in->data[0] == 0x1f && in->data[1] == 0x8b
               ? parse_packed(f, in)
               : parse_plain(f, in);
}

/* ---- open ---------------------------------------------------------------- */

static kofn_status map_opened(int fd, kf_file *f, kf_input *in)
{
    struct stat st;
    void *p;

    assert(!f->map);
    if (fstat(fd, &st) != 0)
        return kf_io_errno_fail("read", in->path, errno);
    if (S_ISDIR(st.st_mode))
        return kf_fail(KOFN_IO, "cannot read %s: it is a directory", in->name);
    if (!S_ISREG(st.st_mode))
        return kf_fail(KOFN_IO,
                       "cannot read %s: it is a pipe or device; copy what "
                       "comes from it to a file first",
                       in->name);
    if ((uintmax_t)st.st_size > PTRDIFF_MAX)
        return kf_fail(KOFN_IO, "cannot read %s: it is too large to map",
                       in->name);
    in->length = (size_t)st.st_size;
    if (in->length == 0)
        return KOFN_OK; /* parse will have its say */
    p = mmap(NULL, in->length, in->copy ? PROT_READ | PROT_WRITE : PROT_READ,
             in->copy ? MAP_PRIVATE | MAP_NORESERVE : MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return kf_io_errno_fail("map", in->path, errno);
    posix_madvise(p, in->length, POSIX_MADV_SEQUENTIAL);
    in->data = f->map = p;
    f->mapped = in->length;
    return KOFN_OK;
}

static kofn_status map_file(kf_file *f, kf_input *in)
{
    /* Without O_NONBLOCK a pipe without a writer would hang here. */
    int fd = kf_raise(open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    kofn_status st;

    if (fd < 0)
        return kf_io_errno_fail("open", in->path, errno);
    st = map_opened(fd, f, in);
    close(fd);
    return st;
}

/* Keeps no more of the bytes than what the numbers are read from. */
static void let_go(kf_file *f)
{
    bool view = is_view(f);

    if (!view) {
        kf_free(f->unpacked);
        f->unpacked = NULL;
    }
    if (!view || f->unpacked)
        unmap(f);
    else if (f->map) /* callers may read in any order */
        posix_madvise(f->map, f->mapped, POSIX_MADV_NORMAL);
}

/* Has the caller see what was read. */
static void show(kf_file *f)
{
    f->shown.matrix.dense = f->dense.data ? &f->dense : NULL;
    f->shown.matrix.sparse = f->sparse;
    f->shown.labels = f->labels.data ? &f->labels : NULL;
    assert(!f->shown.matrix.dense != !f->shown.matrix.sparse);
}

/* The file of that path, or of the bytes that `in` has. */
static kofn_status take(kofn_file **out, kf_input in)
{
    kofn_status st = KOFN_OK;
    kf_file *f;

    if (!out)
        return kf_fail(KOFN_INVAL, "out is NULL");
    *out = NULL;
    if (!in.path)
        return kf_fail(KOFN_INVAL, "the file's name is NULL");
    kf_io_show_path(in.name, in.path);
    TRY_ZERO(f, 1);
    if (!in.data)
        st = map_file(f, &in);
    if (!st) {
        st = parse(f, &in);
        if (!st && in.label)
            st = kf_io_take_labels(f, in.label);
        if (st)
            kf_fail_in(st, "%s", in.name);
    }
    if (st) {
        kofn_file_free(&f->shown);
        return st;
    }
    let_go(f);
    show(f);
    *out = &f->shown;
    return KOFN_OK;
}

kofn_status kofn_file_open(kofn_file **out, const char *path, kofn_file_use use)
{
    unsigned what = (unsigned)use & ~(unsigned)KOFN_FILE_COMPLEX;

    return take(out, (kf_input){.path = path,
                                .graph = what >= KOFN_FILE_GRAPH ? what : 0,
                                .copy = what == KOFN_FILE_COPY,
                                .pairs = (unsigned)use & KOFN_FILE_COMPLEX});
}

kofn_status kofn_file_open_labelled(kofn_file **out, const char *path,
                                    const char *label)
{
    if (!label)
        return kf_fail(KOFN_INVAL, "the column of labels is NULL");
    return take(out, (kf_input){.path = path, .label = label});
}

kofn_status kf_file_open_infinite(kofn_file **out, const char *path)
{
    return take(out, (kf_input){.path = path, .infinite = true});
}

kofn_status kf_file_parse(kofn_file **out, const void *bytes, size_t length,
                          const char *name)
{
    return take(out, (kf_input){.data = bytes ? bytes : "",
                                .length = bytes ? length : 0,
                                .path = name,
                                .pairs = true});
}
