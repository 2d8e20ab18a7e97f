/* cifar.c -- the binary files of CIFAR-10 (Krizhevsky, "Learning multiple
 * layers of features from tiny images", 2009): records of a label, 0 to 9, and
 * the 32 x 32 pixels of an image, red, green and blue ones.  Images become
 * rows, bytes from 0 to 255; labels are kept beside them.
 */
#include "io.h"

#define PIXELS ((size_t)3 * 32 * 32)
#define RECORD (1 + PIXELS)
#define CLASSES 10

static kofn_status check(const kf_input *in)
{
    if (in->length % RECORD)
        return kf_fail(KOFN_FORMAT,
                       "%zu bytes are not records of %zu, a label and 3 x 32 "
                       "x 32 pixels, of which CIFAR-10 files are made: it is "
                       "cut off, or something else",
                       in->length, RECORD);
    for (size_t at = 0; at < in->length; at += RECORD)
        if (in->data[at] >= CLASSES)
            return kf_fail(KOFN_FORMAT,
                           "byte %zu: record %zu has label %u; those of "
                           "CIFAR-10 are 0 to %u",
                           at, at / RECORD, in->data[at], CLASSES - 1);
    return KOFN_OK;
}

kofn_status kf_cifar_read(kofn_file *f, const kf_input *in)
{
    size_t n = in->length / RECORD;
    double *to, *label;

    TRY(check(in));
    TRY(kf_file_dense(f, n, PIXELS));
    to = f->owned;
    label = kf_new(n, sizeof *label);
    if (!label)
        return KOFN_NOMEM;
    f->labels = (kofn_matrix){label, n, 1, 1, KOFN_F64};
    for (size_t i = 0; i < n; i++) {
        const unsigned char *from = in->data + i * RECORD;

        label[i] = from[0];
        for (size_t j = 0; j < PIXELS; j++)
            to[i * PIXELS + j] = from[1 + j];
    }
    return KOFN_OK;
}
