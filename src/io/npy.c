/* npy.c -- NumPy's .npy files.
 *
 * Format: NEP 1, "A Simple File Format for NumPy Arrays" (Kern 2007), and
 * numpy.lib.format for versions 2.0 and 3.0:
 *
 *     \x93NUMPY, and the version as two bytes
 *     length of the header, little endian, 2 bytes in version 1.0 and 4 later
 *     the header: a Python dict with the keys descr, fortran_order and shape
 * only the numbers
 *
 * Bytes behind the numbers are refused.  NumPy lets them pass because several
 * arrays may be saved one after the other into one file; here they would be
 * data silently lost.
 *
 * Fills the kofn_file with a view of the mapped bytes where they are of the
 * machine's own kind, else with a copy.  The header is data: nothing of it is
 * evaluated.
 */
#include "io.h"
#include "text.h"

typedef struct header {
    const char *at, *end, *begin; /* begin: of the file, for offsets */
    kf_kind is;
    size_t width; /* 2: numbers are complex, and `is` is one part; else 1 */
    bool fortran;
    size_t shape[2];
    unsigned dims;
    unsigned seen; /* one bit for each key */
} header;

/* ---- the dict ------------------------------------------------------------ */

static void skip_space(header *h)
{
    while (h->at < h->end && memchr(" \t\r\n", *h->at, 4))
        h->at++;
}

static bool take(header *h, char c)
{
    skip_space(h);
    if (h->at == h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

/* Fails with "byte N: SUBJECT 'text of the file'REASON". */
static kofn_status wrong(const header *h, const char *who, const char *why)
{
    char shown[KF_SHOWN];

    return kf_fail(KOFN_FORMAT, "byte %zu: %s '%s'%s",
                   (size_t)(h->at - h->begin), who,
                   kf_io_show_word(shown, h->at, h->end), why);
}

static kofn_status expect(header *h, char c)
{
    char why[] = " where 'c' should be";

    *strchr(why, 'c') = c;
    return take(h, c) ? KOFN_OK : wrong(h, "the header has", why);
}

/* A string in single or double quotes, without escapes. */
static kofn_status take_string(header *h, const char **from, const char **to)
{
    const char *close;
    char quote;

    skip_space(h);
    quote = h->at < h->end ? *h->at : 0;
    close = quote == '\'' || quote == '"'
                ? memchr(h->at + 1, quote, (size_t)(h->end - h->at - 1))
                : NULL;
    if (!close)
        return wrong(h, "the header has", " in place of a string");
    *from = h->at + 1;
    *to = close;
    h->at = close + 1;
    return KOFN_OK;
}

static const char *kind_name(char kind)
{
    static const struct {
        const char *letters, *name;
    } names[] = {
        {"biu", "integers of another size"},
        {"f", "floats of another size"},
        {"c", "complex numbers of another size"},
        {"O", "pickled Python objects"},
        {"SaU", "text"},
        {"Mm", "dates or times"},
        {"V", "records or raw bytes"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (kind && strchr(names[i].letters, kind))
            return names[i].name;
    return "something else";
}

/* Reads a kind of numbers from p .. to-1: its letter and its size.  '?' is a
 * boolean. */
static bool take_kind(kf_kind *is, const char *p, const char *to)
{
    static const char *const all[] = {"f8", "f4", "f2", "i8", "i4", "i2",
                                      "i1", "u8", "u4", "u2", "u1", "b1"};

    if (to - p == 1 && *p == '?')
        p = "b1", to = p + 2;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (to - p == 2 && memcmp(p, all[i], 2) == 0) {
            is->kind = p[0];
            is->size = (size_t)(p[1] - '0');
            return true;
        }
    return false;
}

/* Does the same for complex numbers.  Keeps the kind of one part. */
static bool take_complex(header *h, const char *p, const char *to)
{
    bool single = to - p == 2 && memcmp(p, "c8", 2) == 0;

    if (!single && !(to - p == 3 && memcmp(p, "c16", 3) == 0))
        return false;
    h->is.kind = 'f';
    h->is.size = single ? sizeof(float) : sizeof(double);
    h->width = 2;
    return true;
}

static kofn_status take_descr(header *h)
{
    char shown[KF_SHOWN];
    const char *from, *to, *p;

    skip_space(h);
    if (h->at < h->end && (*h->at == '[' || *h->at == '('))
        return kf_fail(KOFN_FORMAT,
                       "it holds records (dtype %s...); save one of their "
                       "fields as float64",
                       kf_io_show_word(shown, h->at, h->end));
    TRY(take_string(h, &from, &to));
    p = from + (from < to && memchr("<>=|", *from, 4));
    h->is.big = p > from && memchr("<>", *from, 2) ? *from == '>' : KF_BIG;
    h->width = 1;
    if (take_kind(&h->is, p, to) || take_complex(h, p, to))
        return KOFN_OK;
    return kf_fail(KOFN_FORMAT,
                   "it holds %s (dtype '%s'), and kofn reads float64, float32, "
                   "float16, complex128, complex64, integers and booleans; "
                   "convert with a.astype('<f8')",
                   kind_name(p < to ? *p : 0), kf_io_show(shown, from, to));
}

static kofn_status take_bool(header *h, bool *value)
{
    static const char *const words[] = {"False", "True"};

    skip_space(h);
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(h->end - h->at) >= n && !memcmp(h->at, words[i], n)) {
            *value = i;
            h->at += n;
            return KOFN_OK;
        }
    }
    return wrong(h, "fortran_order is", ", neither True nor False");
}

/* Reads the shape, a tuple of Python.  More than two sizes are counted and
 * refused later, where the message can say so. */
static kofn_status take_shape(header *h)
{
    bool comma = true;

    TRY(expect(h, '('));
    while (!take(h, ')')) {
        size_t n;

        if (!comma)
            TRY(expect(h, ','));
        if (!kf_scan_size(&h->at, h->end, &n))
            return wrong(h, "the shape has", " in place of a size");
        if (h->at < h->end && *h->at == 'L')
            h->at++; /* a long integer of Python 2 */
        if (h->dims < 2)
            h->shape[h->dims] = n;
        h->dims++;
        comma = take(h, ',');
    }
    if (h->dims == 1 && !comma)
        return kf_fail(KOFN_FORMAT,
                       "the shape (%zu) is a number, not a tuple: a vector's "
                       "is (%zu,)",
                       h->shape[0], h->shape[0]);
    return KOFN_OK;
}

static kofn_status take_item(header *h)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char shown[KF_SHOWN];
    const char *from, *to;
    unsigned key = 0;

    TRY(take_string(h, &from, &to));
    while (key < 3 && ((size_t)(to - from) != strlen(keys[key]) ||
                       memcmp(from, keys[key], (size_t)(to - from)) != 0))
        key++;
    if (key == 3)
        return kf_fail(KOFN_FORMAT, "byte %zu: unknown key '%s' in the header",
                       (size_t)(from - h->begin), kf_io_show(shown, from, to));
    if (h->seen & 1u << key)
        return kf_fail(KOFN_FORMAT,
                       "byte %zu: the header has the key '%s' twice",
                       (size_t)(from - h->begin), keys[key]);
    h->seen |= 1u << key;
    TRY(expect(h, ':'));
    return key == 0   ? take_descr(h)
           : key == 1 ? take_bool(h, &h->fortran)
                      : take_shape(h);
}

static kofn_status take_dict(header *h)
{
    bool comma = true;

    TRY(expect(h, '{'));
    while (!take(h, '}')) {
        if (!comma)
            TRY(expect(h, ','));
        TRY(take_item(h));
        comma = take(h, ',');
    }
    skip_space(h);
    if (h->at != h->end)
        return kf_fail(KOFN_FORMAT, "byte %zu: the header continues after '}'",
                       (size_t)(h->at - h->begin));
    if (h->seen != 7)
        return kf_fail(KOFN_FORMAT,
                       "the header does not have all of descr, fortran_order "
                       "and shape");
    return KOFN_OK;
}

/* ---- where the numbers begin and whether all are there ------------------- */

static kofn_status find_header(header *h, const kf_input *in, size_t *data)
{
    const unsigned char *p = in->data;
    size_t before, length;

    if (in->length < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return kf_fail(KOFN_FORMAT, in->length < 10
                                        ? "it is shorter than a .npy header"
                                        : "it does not begin as a .npy does");
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return kf_fail(KOFN_FORMAT,
                       "version %u.%u of the .npy format; kofn knows 1.0, 2.0 "
                       "and 3.0",
                       p[6], p[7]);
    before = p[6] == 1 ? 10 : 12;
    length = p[8] | (size_t)p[9] << 8;
    if (before == 12 && in->length >= 12)
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (in->length < before || in->length - before < length)
        return kf_fail(KOFN_FORMAT,
                       "the header should have %zu bytes, but the file ends "
                       "after %zu bytes",
                       length, in->length);
    h->begin = (const char *)p;
    h->at = h->begin + before;
    h->end = h->at + length;
    *data = before + length;
    return KOFN_OK;
}

/* ---- copies -------------------------------------------------------------- */

static inline void copy_one(unsigned char *to, const unsigned char *from,
                            size_t size, bool big)
{
    uint64_t bits;
    uint32_t few;

    if (size == 8) {
        bits = kf_io_bits(from, 8, big);
        memcpy(to, &bits, 8);
    } else {
        few = (uint32_t)kf_io_bits(from, 4, big);
        memcpy(to, &few, 4);
    }
}

/* Copies the parts of one number. */
static inline void copy_number(unsigned char *to, const unsigned char *from,
                               size_t size, size_t width, bool big)
{
    for (size_t k = 0; k < width; k++)
        copy_one(to + k * size, from + k * size, size, big);
}

/* to = the numbers of the file, or their transpose.  Number (i,j) lies at
 * from[i*down + j*right], counted in numbers.  Squares of 32 x 32 keep both
 * sides in cache. */
static void copy(kofn_matrix *to, const header *h, const unsigned char *from)
{
    const size_t side = 32, cols = h->shape[1];
    const size_t size = h->is.size, whole = size * h->width;
    const size_t down = h->fortran ? 1 : cols;
    const size_t right = h->fortran ? h->shape[0] : 1;

    for (size_t i0 = 0; i0 < to->rows; i0 += side)
        for (size_t j0 = 0; j0 < cols; j0 += side) {
            size_t i1 = kf_min(i0 + side, to->rows);
            size_t j1 = kf_min(j0 + side, cols);

            for (size_t i = i0; i < i1; i++)
                for (size_t j = j0; j < j1; j++)
                    copy_number((unsigned char *)to->data +
                                    (i * cols + j) * whole,
                                from + (i * down + j * right) * whole, size,
                                h->width, h->is.big);
        }
}

/* The numbers where they lie, or a copy. */
static kofn_status take_numbers(kf_file *f, const header *h,
                                const unsigned char *from)
{
    size_t rows = h->shape[0], cols = h->shape[1], size = h->is.size;
    bool transposed = h->fortran && rows > 1 && cols > 1;

    f->shown.half = h->is.kind == 'f' && size == 2;
    if (h->is.kind != 'f' || size == 2)
        return kf_io_cast(f, h->shape, h->is, from, transposed);
    f->shown.is_complex = h->width == 2;
    cols *= h->width;
    f->dense = (kofn_matrix){(void *)(uintptr_t)from, rows, cols, cols,
                             size == 4 ? KOFN_F32 : KOFN_F64};
    if (h->is.big == KF_BIG && !transposed && (uintptr_t)from % size == 0)
        return KOFN_OK;
    f->owned = f->dense.data = kf_new(rows * cols, size);
    if (!f->owned)
        return KOFN_NOMEM;
    copy(&f->dense, h, from);
    return KOFN_OK;
}

/* All that the header says; data gets the place of the first number. */
static kofn_status read_header(header *h, const kf_input *in, size_t *data)
{
    TRY(find_header(h, in, data));
    TRY(take_dict(h));
    if (h->dims < 1 || h->dims > 2)
        return kf_fail(KOFN_FORMAT,
                       "the array has %u dimensions; kofn reads vectors and "
                       "matrices: reshape it to two",
                       h->dims);
    if (h->dims == 1)
        h->shape[1] = 1;
    return h->width == 1 || in->pairs ? KOFN_OK : kf_io_refuse_complex();
}

kofn_status kf_npy_part(const kf_input *part, size_t *room)
{
    header h = {0};
    size_t data;

    TRY(read_header(&h, part, &data));
    return kf_io_part_exact(part, data, h.shape, h.is.size * h.width, room);
}

kofn_status kf_npy_read(kf_file *f, const kf_input *in)
{
    header h = {0};
    size_t data;

    TRY(read_header(&h, in, &data));
    TRY(kf_io_check_size(in->length - data, h.shape[0], h.shape[1],
                         h.is.size * h.width));
    f->shown.dims = h.dims;
    TRY(take_numbers(f, &h, in->data + data));
    return in->infinite || in->copy ? KOFN_OK : kf_file_finite(f);
}
