/* digest.c -- digests of what is kept in files, by which it is told later whether
 * that is still what was written. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t cli_digest(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

bool cli_digest_file(const char *path, uint64_t *bytes, uint64_t *hash)
{
    enum { PIECE = 1 << 20 };
    XXH3_state_t *x = XXH3_createState();
    char *piece = malloc(PIECE);
    FILE *f = fopen(path, "rb");
    bool ok = x && f && piece;
    int error = x && piece ? errno : ENOMEM;
    size_t n;

    *bytes = 0;
    if (ok)
        XXH3_64bits_reset(x);
    while (ok && (n = fread(piece, 1, PIECE, f)) > 0) {
        XXH3_64bits_update(x, piece, n);
        *bytes += n;
    }
    if (ok && ferror(f)) {
        error = errno;
        ok = false;
    }
    *hash = ok ? XXH3_64bits_digest(x) : 0;
    if (f)
        fclose(f);
    free(piece);
    XXH3_freeState(x);
    errno = error;
    return ok;
}
