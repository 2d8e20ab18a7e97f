/* heal.c -- blocks of matrices that change, for a node that has none, made of those
 * of others.
 *
 * It asks all whom it reaches at first, and makes its own of all that come within a
 * hedge: of as few as determine it what blocks are rounded by would grow from one to
 * the next (math/training.md 8).  Where too few came it asks as many as are missing,
 * and others where these do not answer.  Nobody stops for that: a block comes as it
 * is after some turn, those that come are changed by turns as one's own are, and so
 * is what is made of them.
 *
 * Owns the blocks that others lent until its own is made of them.  It asks and
 * answers by notes, and never waits. */
#include "host.h"

#include "data/kernel.h"

/* The noise above which blocks determine a block too badly to make it of them. */
#define TOLERANCE 1e-9
#define TOLERANCE_F32 (1e-4 * 0x1p-29) /* that is predicted for float64 */
#define LONGEST 5 /* times that the time to wait is doubled */

static bool changes(const kf_host *h, uint32_t operand)
{
    return h->program.change && operand < h->program.operands &&
           h->operand[operand].plan;
}

static size_t padded(size_t bytes)
{
    return kf_ceil_div(bytes, 8) * 8;
}

/* Of a half of it. */
static size_t bytes_of(const kf_block *b)
{
    return padded(b->lanes * b->rows * b->cols * kf_dtype_size(b->dtype));
}

size_t kf_lent_bytes(const kf_host *h, uint32_t operand)
{
    kf_extent e;

    if (!changes(h, operand))
        return 0;
    e = kf_extent_of(h->operand[operand].plan);
    return padded(
        e.lanes * e.rows * e.cols *
        kf_dtype_size(h->operand[operand].plan->layout.problem.dtype));
}

void kf_lent_drop(kf_changing *c, size_t i)
{
    kf_block_drop(c->lent[i].block);
    c->lent[i] = c->lent[--c->lents];
}

void kf_lent_forget(kf_host *h)
{
    kf_changing *c = &h->changing;

    while (c->lents > 0)
        kf_lent_drop(c, c->lents - 1);
    c->since = c->asked = 0;
    c->asks = 0;
}

/* ---- lending ------------------------------------------------------------- */

kofn_status kf_lent_give(kf_host *h, const kf_route *r)
{
    const kf_changing *c = &h->changing;
    uint64_t each = h->course.stages - h->course.after;

    if (!h->program.change)
        return KOFN_OK;
    if (h->seat == KOFN_NO_SEAT) /* who asked need not wait for ours */
        return kf_mail_to(h, r->peer,
                          &(kf_note){.type = KF_NOTE_BLOCK,
                                     .from = h->opt.incarnation,
                                     .at = h->at,
                                     .seat = KOFN_NO_SEAT});
    for (uint32_t i = 0; i < h->program.operands; i++)
        if (changes(h, i))
            TRY(kf_mail_to(
                h, r->peer,
                &(kf_note){.type = KF_NOTE_BLOCK,
                           .from = h->opt.incarnation,
                           .at = {c->turn * each,
                                  c->line[c->turn % h->program.recalls]},
                           .group = i,
                           .seat = h->seat}));
    return KOFN_OK;
}

kofn_status kf_lent_read(const kf_block *b, bool velocity, size_t at,
                         kf_buffer *body)
{
    size_t rows = b->lanes * b->rows;
    kofn_matrix part = {(char *)body->m.data + at, rows, b->cols, b->cols,
                        b->dtype};
    kf_msg m = {.hi = b->rows, .how = KF_HOW_READ, .velocity = velocity};
    kofn_status st;

    TRY(kf_buffer_view(&m.result, body, &part));
    m.in = m.result; /* there is none, and it is not looked at */
    st = kf_work_do(b, &m, NULL, NULL);
    kf_buffer_drop(m.result);
    return st;
}

/* Zeros. */
static kofn_status empty_body(size_t bytes, kf_buffer **body)
{
    TRY(kf_buffer_new(body, bytes / 8, 1, KOFN_F64));
    memset((*body)->m.data, 0, bytes);
    return KOFN_OK;
}

kofn_status kf_lent_body(const kf_host *h, const kf_note *note,
                         kf_buffer **body, size_t *bytes)
{
    const kf_block *b = h->operand[note->group].block;
    size_t half = bytes_of(b);
    kofn_status st;

    *bytes = (b->velocity ? 2 : 1) * half;
    TRY(empty_body(*bytes, body));
    st = kf_lent_read(b, false, 0, *body);
    if (!st && b->velocity)
        st = kf_lent_read(b, true, half, *body);
    if (st)
        kf_buffer_drop(*body);
    return st;
}

/* ---- a block of numbers -------------------------------------------------- */

static kofn_status put_half(kf_block *b, bool velocity, kf_buffer *all)
{
    kofn_matrix part = {(char *)all->m.data + (velocity ? bytes_of(b) : 0),
                        b->lanes * b->rows * b->cols, 1, 1, b->dtype};
    kf_msg m = {.type = KF_MSG_PIECE, .hi = b->rows, .velocity = velocity};
    kf_buffer *half;
    kofn_status st;

    TRY(kf_buffer_view(&half, all, &part));
    st = kf_block_around(&m.block, half, b->lanes, b->rows, b->cols);
    kf_buffer_drop(half);
    TRY(st);
    st = kf_block_change(b, &m);
    kf_block_drop(m.block);
    return st;
}

kofn_status kf_lent_block(const kf_mesh_operand *o, uint32_t seat,
                          kf_buffer *all, bool velocity, kf_block **out)
{
    size_t which = seat;
    kofn_status st;

    TRY(kf_data_empty_blocks(&o->resident, o->code, &which, 1, out));
    st = put_half(*out, false, all);
    if (!st && velocity)
        st = put_half(*out, true, all);
    if (!st) /* that was all */
        st = kf_block_change(*out, &(kf_msg){.type = KF_MSG_PIECE});
    if (st) {
        kf_block_drop(*out);
        *out = NULL;
    }
    return st;
}

/* ---- borrowing ----------------------------------------------------------- */

/* Is it of our iterate? */
bool kf_lent_serves(const kf_host *h, const kf_lent *l, uint32_t operand)
{
    return l->operand == operand && l->ours && l->turn == h->changing.turn;
}

static size_t count_lent(const kf_host *h, uint32_t operand)
{
    size_t n = 0;

    for (size_t i = 0; i < h->changing.lents; i++)
        n += kf_lent_serves(h, &h->changing.lent[i], operand);
    return n;
}

/* Blocks that are missing of the matrix that lacks most; one more is there to
 * compare them with. */
static size_t missing(const kf_host *h)
{
    size_t most = 0;

    for (uint32_t i = 0; i < h->program.operands; i++) {
        const kf_mesh_operand *o = &h->operand[i];
        size_t enough, have = count_lent(h, i);

        if (!o->plan)
            continue;
        enough = kf_ceil_div(o->plan->parts, o->plan->layout.lanes) +
                 (h->opt.errors != KOFN_ERRORS_NONE);
        most = kf_max(most, enough > have ? enough - have : 0);
    }
    return most;
}

/* In the place of what was lent of that seat, or by that peer: nobody has two
 * blocks of a matrix, so that no more is kept than there are connections. */
static kofn_status place_for(kf_changing *c, uint32_t operand, uint32_t seat,
                             kofn_peer from, kf_lent **out)
{
    for (size_t i = c->lents; i > 0; i--) {
        const kf_lent *l = &c->lent[i - 1];

        if (l->operand == operand && (l->seat == seat || l->from == from))
            kf_lent_drop(c, i - 1);
    }
    TRY(kf_grow(&c->lent, &c->lent_cap, c->lents, sizeof *c->lent));
    *out = &c->lent[c->lents++];
    return KOFN_OK;
}

kofn_status kf_lent_take(kf_host *h, kf_route *r, const kf_note *note,
                         kf_buffer *body)
{
    kf_changing *c = &h->changing;
    uint64_t each = h->course.stages - h->course.after;
    uint64_t turn = kf_course_turn(&h->course, note->at.t);
    const kf_mesh_operand *o;
    size_t was = missing(h);
    kf_block *b;
    kf_lent *l;
    kofn_status st;

    if (note->seat == KOFN_NO_SEAT) {
        r->lends_none = true;
        return KOFN_OK;
    }
    o = body ? &h->operand[note->group] : NULL; /* else there is no such */
    if (!o || c->since == 0 || turn * each != note->at.t ||
        note->seat >= o->plan->layout.max_seats) {
        h->foreign++;
        return KOFN_OK;
    }
    TRY(kf_lent_block(o, note->seat, body,
                      kf_buffer_bytes(body) > kf_lent_bytes(h, note->group),
                      &b));
    st = place_for(c, note->group, note->seat, r->peer, &l);
    if (st) {
        kf_block_drop(b);
        return st;
    }
    *l = (kf_lent){.operand = note->group,
                   .seat = note->seat,
                   .from = r->peer,
                   .turn = turn,
                   .line = note->at.line,
                   .block = b};
    TRY(kf_changing_settle(h));
    if (missing(h) < was) /* else it is of no use, and so may all of them be */
        c->since = kf_host_now(h);
    return KOFN_OK;
}

/* ---- asking -------------------------------------------------------------- */

/* Of each matrix one that serves. */
static bool lends(const kf_host *h, kofn_peer peer)
{
    for (uint32_t i = 0; i < h->program.operands; i++) {
        bool one = !changes(h, i);

        for (size_t j = 0; j < h->changing.lents && !one; j++)
            one = h->changing.lent[j].from == peer &&
                  kf_lent_serves(h, &h->changing.lent[j], i);
        if (!one)
            return false;
    }
    return true;
}

/* May a block come yet of somebody who was asked with all others? */
static bool may_come(const kf_host *h, kofn_time wait)
{
    const kf_changing *c = &h->changing;

    if (c->asks > 0 || kf_host_now(h) - c->asked >= wait)
        return false;
    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].incarnation && !h->route[i].over &&
            !h->route[i].lends_none && !lends(h, h->route[i].peer))
            return true;
    return false;
}

static kofn_time longer(const kf_host *h)
{
    return kf_host_hedge(h) << kf_min(h->changing.asks, LONGEST);
}

/* Each time others, if there are others. */
static kofn_status ask(kf_host *h, size_t blocks)
{
    kf_changing *c = &h->changing;
    kofn_time now = kf_host_now(h);

    if (c->asked && now - c->asked < longer(h))
        return KOFN_AGAIN;
    if (c->since == 0)
        c->since = now;
    if (h->opt.give_up > 0 && now - c->since >= h->opt.give_up)
        return kf_fail(KOFN_TOOFEW,
                       "nobody has had blocks to give in %.3g s, and %zu more "
                       "are needed: too few nodes are left that have what was "
                       "made so far; begin again",
                       (double)h->opt.give_up * 1e-9, blocks);
    c->asks += c->asked != 0;
    c->asked = now;
    for (size_t i = 0; i < h->routes && blocks > 0; i++) {
        kf_route *r = &h->route[c->next++ % h->routes];

        if (r->incarnation == 0 || r->over || lends(h, r->peer))
            continue;
        blocks--;
        r->lends_none = false;
        TRY(kf_mail_to(h, r->peer,
                       &(kf_note){.type = KF_NOTE_READ,
                                  .from = h->opt.incarnation,
                                  .at = h->at}));
    }
    return KOFN_AGAIN;
}

/* ---- our own ------------------------------------------------------------- */

/* Blocks of a matrix that ours is made of, by seat. */
typedef struct making {
    const kf_mesh_operand *of;
    const kf_lent **lent;
    uint32_t *seat;
    size_t n;
    double *x;     /* lanes x (n lanes)             */
    uint32_t *col; /* n lanes: 0, 1, ...           */
    kofn_matrix *lane;
    const kofn_matrix **part; /* to those          */
} making;

static void collect(const kf_host *h, uint32_t operand, making *m)
{
    for (size_t i = 0; i < h->changing.lents; i++) {
        const kf_lent *l = &h->changing.lent[i];
        size_t at = m->n;

        if (!kf_lent_serves(h, l, operand))
            continue;
        for (; at > 0 && m->lent[at - 1]->seat > l->seat; at--)
            m->lent[at] = m->lent[at - 1];
        m->lent[at] = l;
        m->n++;
    }
    for (size_t i = 0; i < m->n; i++)
        m->seat[i] = m->lent[i]->seat;
}

/* Mixes the lent blocks, or their velocities, into the lanes of ours with the
 * coefficients that were solved for. */
static kofn_status mix_half(making *m, bool velocity, char *at)
{
    const kf_extent e = kf_extent_of(m->of->plan);
    kf_mixed *mixed = kf_new(e.lanes, sizeof *mixed);
    kf_row *row = kf_new(e.lanes, sizeof *row);
    kofn_dtype dtype = m->of->plan->layout.problem.dtype;
    kofn_status st = mixed && row ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < m->n * e.lanes; i++) {
        const kf_block *b = m->lent[i / e.lanes]->block;

        m->col[i] = (uint32_t)i;
        m->lane[i] =
            velocity ? kf_block_velocity(b, i % e.lanes) : b->lane[i % e.lanes];
        m->part[i] = &m->lane[i];
    }
    for (size_t l = 0; l < e.lanes && !st; l++) {
        kofn_matrix into = {at + l * e.rows * e.cols * kf_dtype_size(dtype),
                            e.rows, e.cols, e.cols, dtype};

        row[l] = (kf_row){m->n * e.lanes, m->col, m->x + l * m->n * e.lanes};
        mixed[l] = (kf_mixed){&row[l], into, 1};
    }
    if (!st)
        st = kf_mix(mixed, e.lanes, m->part, m->n * e.lanes, e.rows, e.cols);
    kf_free(mixed);
    kf_free(row);
    return st;
}

/* Have they velocities? */
static bool move(const making *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->lent[i]->block->velocity)
            return true;
    return false;
}

static kofn_status mix_block(making *m, uint32_t seat, kf_block **out)
{
    size_t half = bytes_of(m->lent[0]->block);
    bool velocity = move(m);
    kf_buffer *all;
    kofn_status st;

    TRY(empty_body((velocity ? 2 : 1) * half, &all));
    st = mix_half(m, false, all->m.data);
    if (!st && velocity)
        st = mix_half(m, true, (char *)all->m.data + half);
    if (!st)
        st = kf_lent_block(m->of, seat, all, velocity, out);
    kf_buffer_drop(all);
    return st;
}

/* KOFN_TOOFEW: more are needed. */
static kofn_status make_own(const kf_host *h, uint32_t operand, uint32_t seat,
                            kf_block **out)
{
    size_t room = h->changing.lents + 1;
    const kofn_layout *L = &h->operand[operand].plan->layout;
    bool single = L->problem.dtype == KOFN_F32;
    size_t lanes = L->lanes;
    making m = {.of = &h->operand[operand],
                .lent = kf_new(room, sizeof *m.lent),
                .seat = kf_new(room, sizeof *m.seat),
                .x = kf_new(room * lanes, lanes * sizeof *m.x),
                .col = kf_new(room, lanes * sizeof *m.col),
                .lane = kf_new(room, lanes * sizeof *m.lane),
                .part = kf_new(room, lanes * sizeof *m.part)};
    kofn_status st = KOFN_NOMEM;
    double predicted;

    if (m.lent && m.seat && m.x && m.col && m.lane && m.part) {
        collect(h, operand, &m);
        st =
            kf_code_regenerator(m.of->code, m.seat, m.n, seat, m.x, &predicted);
        if (!st && predicted > (single ? TOLERANCE_F32 : TOLERANCE))
            st = KOFN_TOOFEW;
    }
    if (!st)
        st = mix_block(&m, seat, out);
    kf_free((void *)(uintptr_t)m.lent);
    kf_free(m.seat);
    kf_free(m.x);
    kf_free(m.col);
    kf_free(m.lane);
    kf_free((void *)(uintptr_t)m.part);
    return st;
}

static kofn_status make_all(kf_host *h, uint32_t seat, kf_block **own)
{
    for (uint32_t i = 0; i < h->program.operands; i++) {
        if (!changes(h, i))
            continue;
        TRY(kf_lent_compare(h, i));
        TRY(make_own(h, i, seat, &own[i]));
    }
    return KOFN_OK;
}

kofn_status kf_lent_make(kf_host *h, uint32_t seat)
{
    size_t more = missing(h);
    kf_block **own, *was;
    kofn_status st;

    if (h->changing.asked == 0)
        return ask(h, SIZE_MAX);
    if (more > 0)
        return ask(h, more);
    if (may_come(h, longer(h)))
        return KOFN_AGAIN;
    own = kf_zero(h->program.operands, sizeof *own);
    st = own ? make_all(h, seat, own) : KOFN_NOMEM;
    for (size_t i = 0; own && i < h->program.operands; i++) {
        was = h->operand[i].block;
        h->operand[i].block = st ? was : own[i];
        kf_block_drop(st ? own[i] : was);
    }
    kf_free(own);
    if (st == KOFN_TOOFEW) /* as many as there must be, but not these */
        return ask(h, 1);
    TRY(st);
    kf_lent_forget(h);
    h->changing.healed++;
    h->changing.changed = h->at.t; /* by what lent blocks were changed by */
    h->seat = seat;
    return KOFN_OK;
}
