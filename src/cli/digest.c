/* digest.c -- what is kept in files as JSON, and digests by which it is told later
 * whether they still hold what was written. */
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
    if (ok)
        snprintf(hex, 17, "%016" PRIx64, XXH3_64bits_digest(x));
    if (f)
        fclose(f);
    free(piece);
    XXH3_freeState(x);
    errno = error;
    return ok;
}
