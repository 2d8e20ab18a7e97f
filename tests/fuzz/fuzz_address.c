/* fuzz_address.c -- fuzzes addresses to listen at and to connect to, as on the
 * command line and in lists of nodes. fuzz-iterations: 1000000
 *
 * Nothing is opened. An address that is accepted without keys belongs to this
 * machine. */
#include "watch.h"

#include "net/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void check_taken(const char *text, bool listens, bool private)
{
    const char *colon = strrchr(text, ':');

    MUST(starts(text, "tcp://") || starts(text, "ipc://"));
    if (private)
        MUST(starts(text, "ipc://") || starts(text, "tcp://localhost:") ||
             starts(text, "tcp://[::1]:") || starts(text, "tcp://127."));
    if (*text == 'i') {
        MUST(text[6]);
        return;
    }
    MUST(colon > text + 5);
    if (listens && (!strcmp(colon, ":*") || !strcmp(colon, ":0")))
        return;
    MUST(atol(colon + 1) >= 1 && atol(colon + 1) <= 65535);
    MUST(strspn(colon + 1, "0123456789") == strlen(colon + 1));
    MUST(listens || text[6] != '*');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    for (int how = 0; how < 4; how++) {
        bool insecure = how & 1, listens = how & 2;
        kofn_status st = kf_place_check(text, listens, insecure);

        MUST(st == KOFN_OK || st == KOFN_INVAL);
        if (st)
            MUST(strlen(kofn_errmsg()) > 10);
        else
            check_taken(text, listens, !insecure);
        if (!starts(text, "ipc://")) /* for these the file is looked at */
            MUST(st || kf_place_vacant(text) == KOFN_OK);
    }
    free(text);
    return 0;
}
