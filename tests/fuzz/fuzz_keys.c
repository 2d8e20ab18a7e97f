/* fuzz_keys.c -- key files from a stranger.  fuzz-iterations: 1000000
 *
 * What is accepted is written again in the only form there is, which must be
 * the file without its comment.
 */
#include "watch.h"

#include "zmq/keys.h"

#include <zmq.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *line(const char *p, const char *word, const char *key)
{
    MUST(memcmp(p, word, 7) == 0 && memcmp(p + 7, key, 40) == 0);
    MUST(p[47] == '\n');
    return p + 48;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *p = text, *end = text + size;
    kf_keys k = {0};
    kofn_status st = kf_keys_parse(&k, text, size, "fuzz");

    if (st) {
        MUST(st == KOFN_FORMAT && strncmp(kofn_errmsg(), "fuzz", 4) == 0);
        kf_keys_free(&k);
        return 0;
    }
    MUST(k.count > 0);
    while (*p == '#')
        p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
    for (size_t i = 0; i < k.count; i++) {
        char again[41];

        MUST(zmq_z85_encode(again, k.key[i].bits, 32));
        MUST(strcmp(again, k.key[i].text) == 0);
        MUST(kf_keys_find(&k, k.key[i].bits));
        p = line(p, "public ", k.key[i].text);
        if (i == 0 && k.secret[0])
            p = line(p, "secret ", k.secret);
    }
    MUST(p == end);
    kf_keys_free(&k);
    return 0;
}
