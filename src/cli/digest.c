/* digest.c -- writes JSON files, and computes digests that later show whether
 * a file is unchanged. */
#include "digest.h"
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

bool cli_digest_json(const json_t *o, uint64_t *hash)
{
    char *text =
        json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    bool ok = text != NULL;

    *hash = ok ? XXH3_64bits(text, strlen(text)) : 0;
    free(text);
    return ok;
}

const char *cli_write_json(const char *path, json_t *o, size_t lost)
{
    char *text =
        o ? json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    bool whole = text && cli_json_lost() == lost;
    kofn_status st =
        whole ? kofn_write_bytes(path, text, strlen(text)) : KOFN_OK;

    json_decref(o);
    free(text);
    return !whole ? "out of memory" : st ? kofn_errmsg() : NULL;
}

bool cli_digest_file(const char *path, uint64_t *bytes, char hex[17])
{
    char piece[1 << 16];
    FILE *f = fopen(path, "rb");
    XXH3_state_t x;
    size_t n;
    bool ok;
    int error;

    *bytes = 0;
    if (!f)
        return false;
    XXH3_64bits_reset(&x);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) {
        XXH3_64bits_update(&x, piece, n);
        *bytes += n;
    }
    ok = !ferror(f);
    error = errno;
    fclose(f);
    snprintf(hex, 17, "%016" PRIx64, XXH3_64bits_digest(&x));
    errno = error;
    return ok;
}
