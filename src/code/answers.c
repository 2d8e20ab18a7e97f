/* answers.c -- what the answers so far come to: asked by the coordinator of
 * rounds and by every node of a mesh, and answered here for both.
 *
 * Owns nothing: decoders are the cache's.  The state machines of both kinds
 * decide with these functions alone, so none may depend on time or on who
 * answered. */
#include "code.h"

#include "operation.h"

#include <math.h>

size_t kf_code_enough(const kofn_plan *p, bool compared)
{
    const kofn_layout *L = &p->layout;

    if (compared && L->submessages > 1)
        return kf_code_seats(L, L->submessages);
    return compared && p->op->factors > 1 ? L->symbols : L->enough;
}

size_t kf_code_seats(const kofn_layout *L, size_t each)
{
    return kf_ceil_div(L->threshold, L->submessages) - 1 +
           kf_ceil_div(L->submessages, each);
}

size_t kf_code_each(const kofn_layout *L, const uint32_t *rows, size_t n)
{
    size_t each = 1;

    if (L->submessages == 1)
        return 1;
    while (each < n && rows[each] / L->submessages == rows[0] / L->submessages)
        each++;
    return each;
}

bool kf_answers_all(const kofn_plan *p, size_t n)
{
    return n / p->layout.submessages >= p->layout.max_seats;
}

kofn_status kf_answers_judge(kf_cache *cache, const kofn_plan *p,
                             const uint32_t *rows, size_t n, double tolerance,
                             kf_answers *out)
{
    const kofn_decoder *d = NULL;
    kofn_status st = KOFN_TOOFEW;
    double predicted = 0;

    *out = (kf_answers){.decoder = NULL};
    if (n >= p->layout.enough)
        st = kf_cache_get(cache, rows, n, false, &d);
    if (st == KOFN_OK)
        predicted = kf_code_predicted(d, kf_cache_plan(cache), p);
    if (st == KOFN_OK && predicted <= tolerance)
        out->decoder = d;
    else if (st == KOFN_OK)
        out->refused = predicted;
    else if (st == KOFN_UNSTABLE) /* not to be solved at all */
        out->refused = HUGE_VAL;
    else if (st == KOFN_NOMEM)
        return st;
    out->hopeless = !out->decoder && kf_answers_all(p, n);
    return KOFN_OK;
}
