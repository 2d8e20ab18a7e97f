/* cifar.c -- the binary files of CIFAR-10 (Krizhevsky, "Learning multiple
 * layers of features from tiny images", 2009): records of a label, 0 to 9, and
 * the 32 x 32 pixels of an image, red, green and blue ones.  Images become
 * rows, bytes from 0 to 255; labels are kept separately.
 *
 * The format has no mark, and raw numbers of a program are also called .bin. So
 * a file is refused if all of its words are usual numbers.  Pixels of pictures
 * never are: in a float64 every eighth of them is most of the exponent, and in
 * an integer of four bytes the upper two are alike.
 *
 * Fills the kofn_file; the mapped bytes are only read.
 */
#include "io.h"

#include <math.h>

#define PIXELS ((size_t)3 * 32 * 32)
#define RECORD (1 + PIXELS)
#define CLASSES 10

static kofn_status check(const kf_input *in)
{
    if (in->length % RECORD)
        return kf_fail(KOFN_FORMAT,
                       "%zu bytes are not records of %zu bytes, a label and "
                       "3 x 32 x 32 pixels, as in CIFAR-10: the file is cut "
                       "off, or has another format",
                       in->length, RECORD);
    for (size_t at = 0; at < in->length; at += RECORD)
        if (in->data[at] >= CLASSES)
            return kf_fail(KOFN_FORMAT,
                           "byte %zu: record %zu has label %u; those of "
                           "CIFAR-10 are 0 to %u",
                           at, at / RECORD, in->data[at], CLASSES - 1);
    return KOFN_OK;
}

/* ---- or raw numbers ------------------------------------------------------ */

/* Kinds of raw numbers, and the range of usual ones; 0 is usual, too. */
static const struct raw {
    const char *name;
    kf_kind kind;
    double least, most;
} raws[] = {
    {"float64", {'f', 8, KF_BIG}, 1e-30, 1e30},
    {"float32", {'f', 4, KF_BIG}, 1e-6, 1e6},
    {"int64", {'i', 8, KF_BIG}, 0, 0x1p40},
    {"int32", {'i', 4, KF_BIG}, 0, 0x1p16},
    /* Labels of some kind: no pixel of the pictures is as bright as a tenth
     * class would be. */
    {"uint8", {'u', 1, KF_BIG}, 0, CLASSES},
};

static bool usual(const struct raw *r, const unsigned char *p)
{
    double v = fabs(kf_io_number(&r->kind, p));

    return v == 0 || (v > r->least && v < r->most);
}

static kofn_status check_raw(const kf_input *in)
{
    for (size_t i = 0; i < sizeof raws / sizeof *raws; i++) {
        const struct raw *r = &raws[i];
        size_t at = 0;

        if (in->length % r->kind.size)
            continue;
        while (at < in->length && usual(r, in->data + at))
            at += r->kind.size;
        if (at >= in->length)
            return kf_fail(KOFN_FORMAT,
                           "its %zu bytes could be a CIFAR-10 file or %zu raw "
                           "numbers (%s), and kofn does not guess; save the "
                           "numbers, or the pixels and the labels, with "
                           "numpy.save",
                           in->length, in->length / r->kind.size, r->name);
    }
    return KOFN_OK;
}

/* Every byte is a number, so that there is no more to bound. */
kofn_status kf_cifar_part(const kf_input *part, size_t *room)
{
    kf_input whole = *part;

    whole.length -= whole.length % (8 * RECORD);
    TRY(check(&whole));
    if (whole.length)
        TRY(check_raw(&whole));
    return kf_mul(part->length, 2, room) ? KOFN_OK : kf_nomem(SIZE_MAX);
}

kofn_status kf_cifar_read(kf_file *f, const kf_input *in)
{
    size_t n = in->length / RECORD;
    double *to, *label;

    TRY(check(in));
    TRY(check_raw(in));
    TRY(kf_file_dense(f, n, PIXELS));
    to = f->owned;
    TRY_NEW(label, n);
    f->labels = (kofn_matrix){label, n, 1, 1, KOFN_F64};
    for (size_t i = 0; i < n; i++) {
        const unsigned char *from = in->data + i * RECORD;

        label[i] = from[0];
        for (size_t j = 0; j < PIXELS; j++)
            to[i * PIXELS + j] = from[1 + j];
    }
    return KOFN_OK;
}
