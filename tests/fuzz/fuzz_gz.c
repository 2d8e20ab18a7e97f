/* fuzz_gz.c -- fuzzes compressed files. A mutation rarely leaves a checksum
 * right, so the input is also taken as plain and compressed here.
 *
 * fuzz-iterations: 50000 */
#include "parse.h"

#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parses the input as a compressed file. */
static void unpack(const uint8_t *data, size_t size)
{
    kofn_file *f = parse(data, size, "fuzz.csv.gz");

    if (f)
        done(f, data, size, "fuzz.csv.gz");
}

/* Compresses the input. The parsed file must be that of the plain input. */
static void pack(const uint8_t *data, size_t size)
{
    static unsigned char packed[1 << 21];
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)data,
                  .avail_in = (unsigned)size,
                  .next_out = packed,
                  .avail_out = sizeof packed};
    kofn_file *plain, *other;
    size_t n;

    MUST(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    MUST(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    n = sizeof packed - z.avail_out;
    MUST(kf_file_parse(&plain, data, size, "fuzz.csv") ==
         kf_file_parse(&other, packed, n, "fuzz.csv.gz"));
    MUST(!plain == !other);
    if (plain && plain->matrix.dense) {
        const kofn_matrix *a = plain->matrix.dense;
        const kofn_matrix *b = other->matrix.dense;

        MUST(b && a->rows == b->rows && a->cols == b->cols);
        MUST(memcmp(a->data, b->data, a->rows * a->cols * sizeof(float)) == 0);
    }
    kofn_file_free(plain);
    kofn_file_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    swell = 1100;
    unpack(data, size);
    if (size >= 2 && data[0] == 0x1f && data[1] == 0x8b)
        return 0;
    pack(data, size);
    return 0;
}
