/* block_comparison.c -- blocks that others lend, where errors are looked for: do they agree?
 *
 * What is made of a wrong one is wrong, and makes wrong pieces.  So one more is awaited
 * than determines the matrix, all that come are compared by the parities of the code,
 * velocities as well, with weights that nobody else knows, and those that are wrong
 * are dropped (data/check.h).
 *
 * Owns what it read within a call; the lent blocks are the operand's.  It may
 * drop a block, but only the node's own counts may exclude a node. */
#include "host.h"

#include "data/check.h"
#include "data/kernel.h"

#define HIDDEN 1e-9 /* of the norms: more may not stay hidden */
#define CACHE_BYTES ((size_t)1 << 20)

/* A reading of blocks of a matrix, which are read as pieces are. */
typedef struct reading {
    kofn_plan *plan;
    kf_code *code;
    kf_cache *cache;
    uint32_t *seat;
    kf_lent *lent; /* by seat; views */
    kf_buffer **body;
    kf_source *source;
    uint32_t *bad;
    double *ones;
    size_t n, cols;
    bool moves; /* they have velocities */
} reading;

static void end(reading *r)
{
    for (size_t i = 0; r->body && i < r->n; i++)
        kf_buffer_drop(r->body[i]);
    kf_free(r->seat);
    kf_free(r->lent);
    kf_free(r->body);
    kf_free(r->source);
    kf_free(r->bad);
    kf_free(r->ones);
    kf_cache_free(r->cache);
    kf_code_free(r->code);
    kofn_plan_free(r->plan);
}

static void collect(const kf_host *h, uint32_t operand, reading *r)
{
    for (size_t i = 0; i < h->changing.lents; i++) {
        const kf_lent *l = &h->changing.lent[i];
        size_t at = r->n;

        if (!kf_lent_serves(h, l, operand))
            continue;
        for (; at > 0 && r->lent[at - 1].seat > l->seat; at--)
            r->lent[at] = r->lent[at - 1];
        r->lent[at] = *l;
        r->n++;
        r->moves |= l->block->velocity != NULL;
    }
    for (size_t i = 0; i < r->n; i++)
        r->seat[i] = r->lent[i].seat;
}

static kofn_status begin(const kf_host *h, uint32_t operand, reading *r)
{
    const kf_mesh_operand *o = &h->operand[operand];
    size_t room = h->changing.lents + 1;

    TRY(kf_code_reader(&r->plan, o->plan));
    TRY(kf_code_new(&r->code, r->plan));
    TRY(kf_cache_new(&r->cache, r->code, CACHE_BYTES));
    r->cols = kf_extent_of(o->plan).cols;
    r->seat = kf_new(room, sizeof *r->seat);
    r->lent = kf_new(room, sizeof *r->lent);
    r->body = kf_zero(room, sizeof(kf_buffer *));
    r->source = kf_new(room, sizeof *r->source);
    r->bad = kf_new(room, sizeof *r->bad);
    r->ones = kf_new(r->cols, sizeof *r->ones);
    if (!r->seat || !r->lent || !r->body || !r->source || !r->bad || !r->ones)
        return KOFN_NOMEM;
    for (size_t i = 0; i < r->cols; i++)
        r->ones[i] = 1;
    collect(h, operand, r);
    return KOFN_OK;
}

/* Reads the blocks or their velocities; a lender without a velocity says that
 * it is 0. */
static kofn_status read_blocks(reading *r, bool velocity)
{
    for (size_t i = 0; i < r->n; i++) {
        const kf_block *b = r->lent[i].block;

        kf_buffer_drop(r->body[i]);
        r->body[i] = NULL;
        TRY(kf_buffer_new(&r->body[i], b->lanes * b->rows, b->cols, KOFN_F64));
        if (velocity && !b->velocity)
            memset(r->body[i]->m.data, 0, kf_buffer_bytes(r->body[i]));
        else
            TRY(kf_lent_read(b, velocity, 0, r->body[i]));
        r->source[i] = (kf_source){&r->body[i]->m, 0, b->rows};
    }
    return KOFN_OK;
}

/* As many as half of what is beyond the threshold may lie together. */
static void promise(const kf_host *h, const reading *r, kf_check *c)
{
    size_t beyond = r->n - kf_min(r->n, r->plan->layout.threshold);

    c->liars = c->promised = kf_max(1, beyond / 2);
    c->most = h->opt.errors == KOFN_ERRORS_DETECT || beyond < 2
                  ? 0
                  : beyond - c->liars;
}

static kofn_status compare(kf_host *h, const kf_mesh_operand *o, reading *r,
                           const kofn_decoder *d, bool velocity,
                           kf_found *found)
{
    kf_check c = {.plan = r->plan,
                  .code = r->code,
                  .decoder = d,
                  .source = r->source,
                  .hi = r->plan->span,
                  .row = kf_mesh_norms_rows(o, velocity),
                  .col = r->ones,
                  .terms = 1,
                  .changes = h->changing.turn};
    kofn_status st;

    promise(h, r, &c);
    TRY(kf_comparison_weights(h, &c));
    TRY(read_blocks(r, velocity));
    TRY(kf_cache_parity(r->cache, d, &c.H, &c.q));
    TRY(kf_cache_hidden(r->cache, d, kf_check_few(&c, r->n, 0), &c.hidden));
    if (c.q == 0)
        return KOFN_TOOFEW;
    *found = (kf_found){.bad = r->bad};
    st = kf_check_results(&c, found);
    return st == KOFN_OK && !(found->floor <= HIDDEN) ? KOFN_TOOFEW : st;
}

static void drop_lent(kf_changing *c, uint32_t operand, uint32_t seat)
{
    for (size_t i = c->lents; i > 0; i--) {
        kf_lent *l = &c->lent[i - 1];

        if (l->operand != operand || l->seat != seat)
            continue;
        kf_block_drop(l->block);
        *l = c->lent[--c->lents];
    }
}

/* KOFN_AGAIN: some were wrong, and are gone. */
static kofn_status judge(kf_host *h, uint32_t operand, reading *r,
                         bool velocity)
{
    kf_answers a;
    kf_found found = {.count = 0};
    kofn_status st;

    TRY(kf_answers_judge(r->cache, r->plan, r->seat, r->n, HIDDEN, &a));
    if (!a.decoder)
        return KOFN_TOOFEW;
    st = compare(h, &h->operand[operand], r, a.decoder, velocity, &found);
    if (st == KOFN_NOMEM || st == KOFN_TOOFEW || st == KOFN_AGAIN)
        return st == KOFN_NOMEM ? st : KOFN_TOOFEW;
    for (size_t i = 0; i < found.count; i++) {
        const kf_lent *l = &r->lent[found.bad[i]];

        if (i + found.doubted < found.count)
            kf_comparison_strike(h, l->from, l->seat);
        drop_lent(&h->changing, operand, l->seat);
    }
    if (st == KOFN_CORRUPT) /* nothing is to be had of these */
        for (size_t i = 0; i < r->n; i++)
            drop_lent(&h->changing, operand, r->seat[i]);
    return st == KOFN_CORRUPT ? KOFN_TOOFEW : found.count ? KOFN_AGAIN : st;
}

static kofn_status look(kf_host *h, uint32_t operand)
{
    reading r = {.n = 0};
    kofn_status st = begin(h, operand, &r);

    if (!st)
        st = judge(h, operand, &r, false);
    if (!st && r.moves)
        st = judge(h, operand, &r, true);
    end(&r);
    return st;
}

kofn_status kf_lent_compare(kf_host *h, uint32_t operand)
{
    kofn_status st;

    if (h->opt.errors == KOFN_ERRORS_NONE)
        return KOFN_OK;
    do
        st = look(h, operand);
    while (st == KOFN_AGAIN);
    return st;
}
