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

static const kf_kind *kind_of(unsigned char code)
{
    static const struct {
        unsigned char code;
        kf_kind is;
    } kinds[] = {
        {0x08, {'u', 1, true}}, {0x09, {'i', 1, true}}, {0x0b, {'i', 2, true}},
        {0x0c, {'i', 4, true}}, {0x0d, {'f', 4, true}}, {0x0e, {'f', 8, true}},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].code == code)
            return &kinds[i].is;
    return NULL;
}

bool kf_idx_begins(const kf_input *in)
{
    return in->length >= 4 && !in->data[0] && !in->data[1] &&
           kind_of(in->data[2]) && in->data[3];
}

/* Rows and columns, and where the numbers begin. */
static kofn_status read_head(const kf_input *in, size_t shape[2], size_t *data)
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
    shape[0] = (size_t)kf_io_bits(p + 4, 4, true);
    shape[1] = 1;
    for (size_t i = 1; i < p[3]; i++)
        if (!kf_mul(shape[1], (size_t)kf_io_bits(p + 4 + 4 * i, 4, true),
                    &shape[1]))
            return kf_fail(KOFN_FORMAT,
                           "byte %zu: the product of the dimensions is more "
                           "than there is memory anywhere",
                           4 + 4 * i);
    return KOFN_OK;
}

kofn_status kf_idx_part(const kf_input *part, size_t *room)
{
    size_t shape[2], data;

    TRY(read_head(part, shape, &data));
    return kf_io_part_exact(part, data, shape, kind_of(part->data[2])->size,
                            room);
}

kofn_status kf_idx_read(kf_file *f, const kf_input *in)
{
    const kf_kind *kind;
    size_t shape[2], data;

    TRY(read_head(in, shape, &data));
    kind = kind_of(in->data[2]);
    TRY(kf_io_check_size(in->length - data, shape[0], shape[1], kind->size));
    f->shown.dims = in->data[3] == 1 ? 1 : 2;
    TRY(kf_io_cast(f, shape, *kind, in->data + data, false));
    return kf_file_finite(f);
}
