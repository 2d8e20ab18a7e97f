/* reading.c -- tests whether the blocks of a changing matrix agree.
 *
 * Blocks of different seats are compared like results, by the parities of the
 * code.  They are compared whole or multiplied by the same vector, with secret
 * weights (compare.h).  Any code of m x n parts is read from m n blocks, fewer
 * than most products need.  So more blocks may be wrong.
 *
 * Owns the code for reading the blocks; their numbers belong to the caller,
 * which also decides about a finding. */
#include "reading.h"

#include "code/bounds.h"
#include "data/kernel.h"

#include <assert.h>

#define CACHE_BYTES ((size_t)1 << 20)

void kf_reading_free(kf_reading *r)
{
    kf_free(r->seat);
    kf_free(r->block);
    kf_free(r->rows);
    kf_free(r->source);
    kf_free(r->ones);
    kf_free(r->zeros);
    kf_free(r->bad);
    kf_cache_free(r->cache);
    kf_code_free(r->code);
    kofn_plan_free(r->plan);
}

kofn_status kf_reading_new(kf_reading *r, const kofn_plan *of, size_t room)
{
    *r = (kf_reading){.cols = kf_extent_of(of).cols,
                      .dtype = of->layout.problem.dtype,
                      .terms = 1};
    TRY(kf_code_reader(&r->plan, of));
    r->hi = r->plan->span;
    TRY(kf_code_new(&r->code, r->plan));
    TRY(kf_cache_new(&r->cache, r->code, CACHE_BYTES));
    TRY_NEW(r->seat, room);
    TRY_NEW(r->block, room);
    TRY_NEW(r->rows, room);
    TRY_NEW(r->source, room);
    TRY_NEW(r->bad, room);
    TRY_NEW(r->ones, r->cols);
    for (size_t i = 0; i < r->cols; i++)
        r->ones[i] = 1;
    r->col = r->ones;
    return KOFN_OK;
}

void kf_reading_add(kf_reading *r, uint32_t seat, kf_read block)
{
    size_t at = 0;

    while (at < r->n && r->seat[at] < seat)
        at++;
    if (at < r->n && r->seat[at] == seat)
        return;
    for (size_t i = r->n++; i > at; i--) {
        r->seat[i] = r->seat[i - 1];
        r->block[i] = r->block[i - 1];
    }
    r->seat[at] = seat;
    r->block[at] = block;
    r->moves |= block.velocity != NULL;
}

/* Sets the blocks as results; a block without a velocity counts as a velocity
 * of 0. */
static kofn_status choose(kf_reading *r, bool velocity)
{
    size_t rows = r->plan->layout.components * (r->hi - r->lo);

    assert(r->lo < r->hi);
    assert(r->hi <= r->plan->span);
    if (velocity && !r->zeros)
        r->zeros = kf_zero(rows * r->cols, kf_dtype_size(r->dtype));
    if (velocity && !r->zeros)
        return KOFN_NOMEM;
    for (size_t i = 0; i < r->n; i++) {
        const kf_read *b = &r->block[i];
        const void *from = !velocity     ? b->numbers
                           : b->velocity ? b->velocity
                                         : r->zeros;

        r->rows[i] = (kofn_matrix){(void *)(uintptr_t)from, rows, r->cols,
                                   r->cols, r->dtype};
        r->source[i] = (kf_source){&r->rows[i], r->lo, r->hi};
    }
    return KOFN_OK;
}

/* Sets the limits of the comparison.  In every mode, half of the blocks beyond
 * the threshold may be wrong together.  If wrong blocks are accidents, all but
 * one of the blocks beyond those that decode may be located, as with results;
 * this is not guaranteed. */
static void bounds(const kf_reading *r, kf_compare *c)
{
    bool chance = r->errors == KOFN_ERRORS_PROBABILISTIC;
    kf_bounds p =
        kf_bounds_of(r->plan, 0, chance ? r->errors : KOFN_ERRORS_ADVERSARIAL);
    kf_voices v = {.all = r->n, .here = r->n};
    kf_verdicts to = kf_bounds_verdicts(&p, &v);

    c->liars = c->independent = to.liars;
    if (r->errors != KOFN_ERRORS_DETECT)
        c->most = to.most;
}

static kofn_status compare(kf_reading *r, const kofn_decoder *d,
                           kf_found *found)
{
    kf_compare c = {.plan = r->plan,
                    .code = r->code,
                    .decoder = d,
                    .source = r->source,
                    .lo = r->lo,
                    .hi = r->hi,
                    .row = r->row,
                    .col = r->col,
                    .terms = r->terms,
                    .changes = r->changes,
                    .drifts = true,
                    .secret = r->secret,
                    .number = r->number};

    bounds(r, &c);
    TRY(kf_compare_know(&c, r->cache));
    if (c.q == 0)
        return KOFN_TOOFEW;
    return kf_compare_decide(&c, r->hidden, true, found);
}

kofn_status kf_reading_judge(kf_reading *r, bool velocity, kf_found *found)
{
    kf_answers a;
    kofn_status st;

    assert(r->row);
    assert(r->col);
    *found = (kf_found){.bad = r->bad};
    TRY(choose(r, velocity));
    TRY(kf_answers_judge(r->cache, r->plan, r->seat, r->n, r->hidden, &a));
    if (!a.decoder)
        return KOFN_TOOFEW;
    st = compare(r, a.decoder, found);
    return st == KOFN_OK || st == KOFN_CORRUPT || st == KOFN_NOMEM
               ? st
               : KOFN_TOOFEW;
}
