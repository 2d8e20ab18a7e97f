/* first.c -- decodes sums of which several workers answer the same: the first
 * answer counts.
 *
 * Owns nothing. */
#include "author.h"

kofn_status kf_code_first_of_each(const kofn_layout *L, size_t classes,
                                  size_t (*class_of)(const kofn_layout *,
                                                     size_t),
                                  const uint32_t *seats, size_t n, double *D)
{
    bool *seen;
    size_t missing = classes;

    TRY_ZERO(seen, classes);
    for (size_t i = 0; i < n; i++) {
        size_t c = class_of(L, seats[i]);

        D[i] = !seen[c];
        missing -= !seen[c];
        seen[c] = true;
    }
    kofn_free(seen);
    if (missing == 0)
        return KOFN_OK;
    return kf_fail(KOFN_TOOFEW, "no worker answered for %zu of %zu batches",
                   missing, classes);
}
