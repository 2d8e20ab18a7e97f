/* answers.c -- judges whether the available answers give a result.  The
 * coordinator of rounds and every node of a mesh use these functions.
 *
 * Owns nothing: decoders belong to the cache.  Both state machines decide with
 * these functions alone.  So no function may depend on time or on the worker
 * that answered. */
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

bool kf_answers_all(const kofn_plan *p, size_t n)
{
    return n / p->layout.submessages >= p->layout.max_seats;
}

kofn_status kf_answers_judge(kf_cache *cache, const kofn_plan *p,
                             const uint32_t *rows, size_t n, double max_error,
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
    if (st == KOFN_OK && predicted <= max_error)
        out->decoder = d;
    else if (st == KOFN_OK)
        out->refused = predicted;
    else if (st == KOFN_UNSTABLE) /* more answers cannot help */
        out->refused = HUGE_VAL;
    else if (st == KOFN_NOMEM)
        return st;
    out->hopeless = !out->decoder && kf_answers_all(p, n);
    return KOFN_OK;
}
