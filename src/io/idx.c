/* idx.c -- the IDX files of MNIST (LeCun, Cortes, Burges, "The MNIST database
 * of handwritten digits").
 *
 * Two zero bytes, the type of the numbers, how many dimensions there are, each
 * of them in four bytes, big endian, and the numbers, big endian as well.
 * What the first dimension counts becomes a row: an image, its pixels line by
 * line.  Numbers are as they stand, bytes from 0 to 255.
 *
 * Fills the kofn_file; the mapped bytes are only read, and sizes in the header
 * are checked before memory is asked for.
 */
#include "io.h"

static const struct kind {
    unsigned char code;
    unsigned char size;
} kinds[] = {
    {0x08, 1}, /* unsigned */
    {0x09, 1}, /* signed   */
    {0x0b, 2}, /* signed   */
    {0x0c, 4}, /* signed   */
    {0x0d, 4}, /* float32  */
    {0x0e, 8}  /* float64  */
};

static const struct kind *kind_of(unsigned char code)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].code == code)
            return &kinds[i];
    return NULL;
}

static uint64_t big_endian(const unsigned char *p, size_t n)
{
    uint64_t x = 0;

    for (size_t i = 0; i < n; i++)
        x = x << 8 | p[i];
    return x;
}

static double number(const struct kind *kind, const unsigned char *p)
{
    uint64_t bits = big_endian(p, kind->size);
    uint32_t half = (uint32_t)bits;
    double d;
    float f;

    switch (kind->code) {
    case 0x09:
        return (double)(int8_t)bits;
    case 0x0b:
        return (double)(int16_t)bits;
    case 0x0c:
        return (double)(int32_t)bits;
    case 0x0d:
        memcpy(&f, &half, sizeof f);
        return (double)f;
    case 0x0e:
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    return (double)bits;
}

bool kf_idx_begins(const kf_input *in)
{
    return in->length >= 4 && !in->data[0] && !in->data[1] &&
           kind_of(in->data[2]) && in->data[3];
}

/* Rows, columns and where the numbers begin. */
static kofn_status read_head(const kf_input *in, size_t *rows, size_t *cols,
                             size_t *data)
{
    const unsigned char *p = in->data;

    if (!kf_idx_begins(in))
        return kf_fail(KOFN_FORMAT,
                       "it does not begin as an IDX file does: two zeros, a "
                       "type, and how many dimensions there are");
    *data = 4 + 4 * (size_t)p[3];
    if (in->length < *data)
        return kf_fail(KOFN_FORMAT,
                       "the header of %u dimensions has %zu bytes, but the "
                       "file ends after %zu: it is cut off",
                       p[3], *data, in->length);
    *rows = (size_t)big_endian(p + 4, 4);
    *cols = 1;
    for (size_t i = 1; i < p[3]; i++)
        if (!kf_mul(*cols, (size_t)big_endian(p + 4 + 4 * i, 4), cols))
            return kf_fail(KOFN_FORMAT,
                           "byte %zu: the product of the dimensions is more "
                           "than there is memory anywhere",
                           4 + 4 * i);
    return KOFN_OK;
}

kofn_status kf_idx_part(const kf_input *part, size_t *room)
{
    size_t rows = 0, cols = 0, data = 0, total;

    TRY(read_head(part, &rows, &cols, &data));
    if (!kf_mul(rows, cols, &total) ||
        !kf_mul(total, kind_of(part->data[2])->size, &total) ||
        !kf_add(total, data, &total))
        total = SIZE_MAX;
    return kf_io_part_exact(part, total, room);
}

kofn_status kf_idx_read(kofn_file *f, const kf_input *in)
{
    const struct kind *kind;
    size_t rows = 0, cols = 0, data = 0;
    double *to;

    TRY(read_head(in, &rows, &cols, &data));
    kind = kind_of(in->data[2]);
    TRY(kf_io_check_size(in->length - data, rows, cols, kind->size));
    TRY(kf_file_dense(f, rows, cols));
    f->dims = in->data[3] == 1 ? 1 : 2;
    to = f->owned;
    for (size_t i = 0; i < rows * cols; i++)
        to[i] = number(kind, in->data + data + i * kind->size);
    return kf_file_finite(f);
}
