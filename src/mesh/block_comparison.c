/* block_comparison.c -- blocks that others lend, where errors are looked for: do they
 * agree?
 *
 * What is made of a wrong one is wrong, and makes wrong pieces.  So one more is awaited
 * than determines the matrix, all that come are compared (reading.c), velocities as
 * well, and those that are wrong are dropped.
 *
 * Owns what it read within a call; the lent blocks are the operand's.  It may
 * drop a block, but only the node's own counts may exclude a node. */
#include "host.h"

#include "data/check.h"
#include "data/kernel.h"

/* The lent blocks of a matrix as they lie. */
typedef struct lent_rows {
    kf_reading reading;
    kf_buffer **body;
    double *ones;
    bool moves; /* they have velocities */
} lent_rows;

static void end(lent_rows *r)
{
    for (size_t i = 0; r->body && i < r->reading.n; i++)
        kf_buffer_drop(r->body[i]);
    kf_free(r->body);
    kf_free(r->ones);
    kf_reading_free(&r->reading);
}

static kofn_status begin(const kf_host *h, uint32_t operand, lent_rows *r)
{
    const kf_changing *c = &h->changing;
    const kf_mesh_operand *o = &h->operand[operand];
    size_t cols = kf_extent_of(o->plan).cols;

    TRY(kf_reading_new(&r->reading, o, c->lents + 1));
    r->body = kf_zero(c->lents + 1, sizeof(kf_buffer *));
    r->ones = kf_new(cols, sizeof *r->ones);
    if (!r->body || !r->ones)
        return KOFN_NOMEM;
    for (size_t i = 0; i < cols; i++)
        r->ones[i] = 1;
    r->reading.col = r->ones;
    r->reading.terms = 1;
    r->reading.lo = c->window.lo;
    r->reading.hi = c->window.hi;
    for (size_t i = 0; i < c->lents; i++) {
        const kf_lent *l = &c->lent[i];

        if (!kf_lent_serves(h, l))
            continue;
        kf_reading_add(&r->reading, l->seat, i);
        r->moves |= l->block->velocity != NULL;
    }
    return KOFN_OK;
}

/* Reads the blocks or their velocities; a lender without a velocity says that
 * it is 0. */
static kofn_status read_blocks(const kf_host *h, lent_rows *r, bool velocity)
{
    r->reading.row = kf_mesh_norms_rows(r->reading.of, velocity);
    for (size_t i = 0; i < r->reading.n; i++) {
        const kf_block *b = h->changing.lent[r->reading.item[i]].block;

        kf_buffer_drop(r->body[i]);
        r->body[i] = NULL;
        TRY(kf_buffer_new(&r->body[i], b->lanes * b->rows, b->cols, b->dtype));
        if (velocity && !b->velocity)
            memset(r->body[i]->m.data, 0, kf_buffer_bytes(r->body[i]));
        else
            TRY(kf_lent_read(b, velocity, r->body[i]));
        r->reading.source[i] =
            (kf_source){&r->body[i]->m, r->reading.lo, r->reading.hi};
    }
    return KOFN_OK;
}

static void drop_lent(kf_changing *c, uint32_t seat)
{
    for (size_t i = c->lents; i > 0; i--) {
        const kf_lent *l = &c->lent[i - 1];

        if (l->from != KF_OURS && l->seat == seat)
            kf_lent_drop(c, i - 1);
    }
}

/* Nobody is struck for what is only doubted. */
static void drop_bad(kf_host *h, const kf_reading *r, const kf_found *found)
{
    for (size_t i = 0; i + found->doubted < found->count; i++) {
        const kf_lent *l = &h->changing.lent[r->item[found->bad[i]]];

        kf_comparison_strike(h, l->from, l->seat);
    }
    for (size_t i = 0; i < found->count; i++)
        drop_lent(&h->changing, r->seat[found->bad[i]]);
}

/* KOFN_AGAIN: some were wrong, and are gone. */
static kofn_status judge(kf_host *h, lent_rows *r, bool velocity)
{
    kf_found found;
    kofn_status st;

    TRY(read_blocks(h, r, velocity));
    TRY(kf_comparison_weights(h, &r->reading.secret, &r->reading.number));
    st = kf_reading_judge(h, &r->reading, &found);
    if (st == KOFN_NOMEM || st == KOFN_TOOFEW)
        return st;
    drop_bad(h, &r->reading, &found);
    if (st == KOFN_OK)
        return found.count ? KOFN_AGAIN : KOFN_OK;
    for (size_t i = 0; i < r->reading.n;
         i++) /* nothing is to be had of these */
        drop_lent(&h->changing, r->reading.seat[i]);
    return KOFN_TOOFEW;
}

static kofn_status look(kf_host *h, uint32_t operand)
{
    lent_rows r = {.moves = false};
    kofn_status st = begin(h, operand, &r);

    if (!st)
        st = judge(h, &r, false);
    if (!st && r.moves)
        st = judge(h, &r, true);
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
