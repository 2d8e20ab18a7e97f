/* entropy.c -- random numbers of the system.
 *
 * Secrets of checks, keys of nodes and numbers of incarnations are drawn here.
 * All other random numbers have a seed (rng.h). */
#include "entropy.h"

#include <sys/random.h>

kofn_status kf_entropy(void *into, size_t bytes)
{
    char *to = into;

    while (bytes > 0) {
        ssize_t got = getrandom(to, bytes, 0);

        if (got <= 0)
            return kf_fail(KOFN_IO, "the system has no random numbers to give");
        to += got;
        bytes -= (size_t)got;
    }
    return KOFN_OK;
}

kofn_status kf_entropy_number(uint64_t *number)
{
    while (*number == 0)
        TRY(kf_entropy(number, sizeof *number));
    return KOFN_OK;
}
