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
#include <math.h>

#define CACHE_BYTES ((size_t)1 << 20)

void kf_reading_free(kf_reading *r)
{
    kf_free(r->seat);
    kf_free(r->block);
    kf_free(r->rows);
    kf_free(r->source);
    kf_free(r->col);
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
                      .check = {.terms = 1, .drifts = true}};
    TRY(kf_code_reader(&r->plan, of));
    r->check.hi = r->plan->span;
    TRY(kf_code_new(&r->code, r->plan));
    TRY(kf_cache_new(&r->cache, r->code, CACHE_BYTES));
    TRY_NEW(r->seat, room);
    TRY_NEW(r->block, room);
    TRY_NEW(r->rows, room);
    TRY_NEW(r->source, room);
    TRY_NEW(r->bad, room);
    TRY_NEW(r->col, r->cols);
    for (size_t i = 0; i < r->cols; i++)
        r->col[i] = 1;
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
    for (size_t s = 1; s <= KOFN_CHANGE_STATES; s++)
        r->states = block.state[s] ? kf_max(r->states, s) : r->states;
}

/* ---- sketches ------------------------------------------------------------ */

double kf_reading_weigh(kf_rng r, double *w, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        w[i] = kf_weight64(kf_rng_u64(&r));
        sum += w[i] * w[i];
    }
    return sqrt(sum);
}

/* Multiplies in float64, so that only the blocks' own rounding remains. */
static void multiply_narrow(const kofn_matrix *component, const double *w,
                            double *y)
{
    for (size_t i = 0; i < component->rows; i++) {
        const float *x = kf_at(component, i, 0);
        double sum[4] = {0};
        size_t j = 0;

        for (; j + 4 <= component->cols; j += 4)
            for (size_t k = 0; k < 4; k++)
                sum[k] += w[j + k] * (double)x[j + k];
        for (; j < component->cols; j++)
            sum[0] += w[j] * (double)x[j];
        y[i] = sum[0] + sum[1] + (sum[2] + sum[3]);
    }
}

void kf_reading_sketch(const kf_block *b, size_t state, const double *w,
                       double *to)
{
    const kofn_matrix by = {(double *)(uintptr_t)w, b->cols, 1, 1, KOFN_F64};

    for (size_t l = 0; l < b->components; l++, to += b->rows) {
        kofn_matrix component = kf_block_state(b, state, l);

        if (component.rows == 0)
            memset(to, 0, b->rows * sizeof *to);
        else if (component.dtype == KOFN_F64)
            kf_mat_multiply(&component, &by, false, to);
        else
            multiply_narrow(&component, w, to);
    }
}

void kf_reading_of_sketches(kf_reading *r, double norm)
{
    assert(r->cols > 0);
    r->check.terms = r->cols;
    r->cols = 1;
    r->dtype = KOFN_F64;
    r->col[0] = norm;
}

/* ---- comparing ----------------------------------------------------------- */

/* Sets a state of the blocks as results; it is 0 in a block without it. */
static kofn_status choose(kf_reading *r, size_t state)
{
    size_t lo = r->check.lo, hi = r->check.hi;
    size_t rows = r->plan->layout.components * (hi - lo);

    assert(lo < hi);
    assert(hi <= r->plan->span);
    if (state > 0 && !r->zeros)
        r->zeros = kf_zero(rows * r->cols, kf_dtype_size(r->dtype));
    if (state > 0 && !r->zeros)
        return KOFN_NOMEM;
    for (size_t i = 0; i < r->n; i++) {
        const kf_read *b = &r->block[i];
        const void *from = b->state[state] ? b->state[state] : r->zeros;

        r->rows[i] = (kofn_matrix){(void *)(uintptr_t)from, rows, r->cols,
                                   r->cols, r->dtype};
        r->source[i] = (kf_source){&r->rows[i], lo, hi};
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
    kf_compare c = r->check;

    c.plan = r->plan;
    c.code = r->code;
    c.decoder = d;
    c.source = r->source;
    c.col = r->col;
    bounds(r, &c);
    TRY(kf_compare_know(&c, r->cache));
    if (c.q == 0)
        return KOFN_TOOFEW;
    return kf_compare_decide(&c, r->hidden, true, found);
}

kofn_status kf_reading_judge(kf_reading *r, size_t state, kf_found *found)
{
    kf_answers a;
    kofn_status st;

    assert(r->check.row);
    *found = (kf_found){.bad = r->bad};
    TRY(choose(r, state));
    TRY(kf_answers_judge(r->cache, r->plan, r->seat, r->n, r->hidden, &a));
    if (!a.decoder)
        return KOFN_TOOFEW;
    st = compare(r, a.decoder, found);
    return st == KOFN_OK || st == KOFN_CORRUPT || st == KOFN_NOMEM
               ? st
               : KOFN_TOOFEW;
}
