/* reading.c -- do blocks of a matrix that changes agree with each other?
 *
 * Blocks of different seats are compared as pieces are, by the parities of the code,
 * whole or multiplied by the same vector, with weights that nobody else knows
 * (data/check.h).  Any code of m x n parts is read from m n blocks, fewer than most
 * products take, so that more of them may be wrong.
 *
 * Owns the code by which the blocks are read; their numbers are the caller's.  What is
 * made of a finding is the caller's, too. */
#include "host.h"

#include "code/promise.h"
#include "data/check.h"

#define CACHE_BYTES ((size_t)1 << 20)

void kf_reading_free(kf_reading *r)
{
    kf_free(r->seat);
    kf_free(r->item);
    kf_free(r->source);
    kf_free(r->bad);
    kf_cache_free(r->cache);
    kf_code_free(r->code);
    kofn_plan_free(r->plan);
}

kofn_status kf_reading_new(kf_reading *r, const kf_mesh_operand *of,
                           size_t room)
{
    *r = (kf_reading){.of = of};
    TRY(kf_code_reader(&r->plan, of->plan));
    r->hi = r->plan->span;
    TRY(kf_code_new(&r->code, r->plan));
    TRY(kf_cache_new(&r->cache, r->code, CACHE_BYTES));
    TRY_NEW(r->seat, room);
    TRY_NEW(r->item, room);
    TRY_NEW(r->source, room);
    TRY_NEW(r->bad, room);
    return KOFN_OK;
}

void kf_reading_add(kf_reading *r, uint32_t seat, size_t item)
{
    size_t at = r->n++;

    for (; at > 0 && r->seat[at - 1] > seat; at--) {
        r->seat[at] = r->seat[at - 1];
        r->item[at] = r->item[at - 1];
    }
    r->seat[at] = seat;
    r->item[at] = item;
}

/* As many as half of what is beyond the threshold may lie together, in any mode.
 * Where wrong blocks are accidents, all of what is beyond what decodes but one are
 * located, as pieces are; nothing is promised of that. */
static void promise(const kf_host *h, const kf_reading *r, kf_check *c)
{
    bool chance = h->opt.errors == KOFN_ERRORS_PROBABILISTIC;
    kf_promise p = kf_promise_of(
        r->plan, 0, chance ? h->opt.errors : KOFN_ERRORS_ADVERSARIAL);
    kf_voices v = {.all = r->n, .here = r->n};
    kf_verdicts to = kf_promise_verdicts(&p, &v);

    c->liars = c->promised = to.liars;
    if (h->opt.errors != KOFN_ERRORS_DETECT)
        c->most = to.most;
}

static kofn_status compare(const kf_host *h, kf_reading *r,
                           const kofn_decoder *d, kf_found *found)
{
    kf_check c = {.plan = r->plan,
                  .code = r->code,
                  .decoder = d,
                  .source = r->source,
                  .lo = r->lo,
                  .hi = r->hi,
                  .row = r->row,
                  .col = r->col,
                  .terms = r->terms,
                  .changes = h->changing.turn,
                  .drifts = true,
                  .secret = r->secret,
                  .number = r->number};
    kofn_status st;

    promise(h, r, &c);
    TRY(kf_cache_parity(r->cache, d, &c.H, &c.q));
    TRY(kf_cache_hidden(r->cache, d, kf_check_few(&c, r->n, 0), &c.hidden));
    if (c.q == 0)
        return KOFN_TOOFEW;
    st = kf_check_results(&c, found);
    return st == KOFN_OK && !(found->floor <= kf_mesh_hidden(r->plan))
               ? KOFN_TOOFEW
               : st;
}

kofn_status kf_reading_judge(const kf_host *h, kf_reading *r, kf_found *found)
{
    kf_answers a;
    kofn_status st;

    *found = (kf_found){.bad = r->bad};
    TRY(kf_answers_judge(r->cache, r->plan, r->seat, r->n,
                         kf_mesh_hidden(r->plan), &a));
    if (!a.decoder)
        return KOFN_TOOFEW;
    st = compare(h, r, a.decoder, found);
    return st == KOFN_OK || st == KOFN_CORRUPT || st == KOFN_NOMEM
               ? st
               : KOFN_TOOFEW;
}
