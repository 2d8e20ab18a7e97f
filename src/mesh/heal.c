/* heal.c -- blocks of matrices that change, for a node that has none, made of those
 * of others, some rows at a time.
 *
 * It asks all whom it reaches for a window, rows of one matrix, and makes its own of
 * all that come within a hedge: of as few as determine it what blocks are rounded by
 * would grow from one to the next (math/training.md 8).  Where too few came it asks as
 * many as are missing, and others where these do not answer.  Then it asks for the next,
 * of twice as many rows if a turn was enough for this one, else of half as many.  Small
 * blocks are a window each.
 *
 * Nobody stops for that: a window comes as it is after some turn, those that come are
 * changed by turns as one's own blocks are, and so are the blocks that are being made;
 * rows that they do not have yet are written over.
 *
 * Owns the windows that others lent until its own rows are made of them, and its blocks
 * until they have all rows.  It asks and answers by notes, and never waits. */
#include "host.h"

#include "data/kernel.h"

/* The noise above which blocks determine a block too badly to make it of them. */
#define TOLERANCE 1e-9
#define TOLERANCE_F32 (1e-4 * 0x1p-29) /* that is predicted for float64 */
#define LONGEST 5 /* times that the time to wait is doubled */
#define IN_VAIN                                                                \
    4 /* silences without a gain, after which there are no more to be had */

static bool changes(const kf_host *h, uint32_t operand)
{
    return h->program.change && operand < h->program.operands &&
           h->operand[operand].plan;
}

static size_t padded(size_t bytes)
{
    return kf_ceil_div(bytes, 8) * 8;
}

static size_t bytes_of_row(const kf_host *h, uint32_t operand)
{
    kf_extent e = kf_extent_of(h->operand[operand].plan);

    return e.lanes * e.cols *
           kf_dtype_size(h->operand[operand].plan->layout.problem.dtype);
}

/* Of a half of it. */
static size_t bytes_of(const kf_block *b)
{
    return padded(b->lanes * b->rows * b->cols * kf_dtype_size(b->dtype));
}

size_t kf_lent_bytes(const kf_host *h, uint32_t operand, size_t lo, size_t hi)
{
    if (!changes(h, operand) || lo >= hi ||
        hi > kf_extent_of(h->operand[operand].plan).rows)
        return 0;
    return padded((hi - lo) * bytes_of_row(h, operand));
}

size_t kf_lent_whole(const kf_host *h, uint32_t operand)
{
    return changes(h, operand)
               ? kf_lent_bytes(h, operand, 0,
                               kf_extent_of(h->operand[operand].plan).rows)
               : 0;
}

void kf_lent_drop(kf_changing *c, size_t i)
{
    kf_block_drop(c->lent[i].block);
    c->lent[i] = c->lent[--c->lents];
}

bool kf_lent_lacks(const kf_host *h)
{
    const kf_changing *c = &h->changing;

    return c->asked &&
           kf_host_now(h) - c->gained >= IN_VAIN * kf_host_silence(h);
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

kofn_status kf_lent_give(kf_host *h, const kf_route *r, const kf_note *asked)
{
    const kf_changing *c = &h->changing;
    uint64_t each = h->course.stages - h->course.after;
    kf_note n = {.type = KF_NOTE_BLOCK,
                 .from = h->opt.incarnation,
                 .at = h->at,
                 .seat = h->seat};

    if (!kf_lent_bytes(h, asked->group, asked->coded, asked->decoded))
        return KOFN_OK;
    if (h->seat == KOFN_NO_SEAT) /* who asked need not wait for ours */
        return kf_mail_to(h, r->peer, &n);
    n.at = (kofn_mark){c->turn * each, c->line[c->turn % h->program.recalls]};
    n.group = asked->group;
    n.coded = asked->coded;
    n.decoded = asked->decoded;
    return kf_mail_to(h, r->peer, &n);
}

/* From that byte on. */
static kofn_status read_half(const kf_block *b, bool velocity, size_t lo,
                             size_t hi, kf_buffer *body, size_t at)
{
    size_t rows = b->lanes * (hi - lo);
    kofn_matrix part = {(char *)body->m.data + at, rows, b->cols, b->cols,
                        b->dtype};
    kf_msg m = {.lo = lo, .hi = hi, .how = KF_HOW_READ, .velocity = velocity};
    kofn_status st;

    TRY(kf_buffer_view(&m.result, body, &part));
    m.in = m.result; /* there is none, and it is not looked at */
    st = kf_work_do(b, &m, NULL, NULL);
    kf_buffer_drop(m.result);
    return st;
}

kofn_status kf_lent_read(const kf_block *b, bool velocity, kf_buffer *body)
{
    return read_half(b, velocity, 0, b->rows, body, 0);
}

/* Zeros. */
static kofn_status empty_body(size_t bytes, kf_buffer **body)
{
    TRY(kf_buffer_new(body, bytes / 8, 1, KOFN_F64));
    memset((*body)->m.data, 0, bytes);
    return KOFN_OK;
}

kofn_status kf_lent_body(const kf_host *h, uint32_t operand, size_t lo,
                         size_t hi, kf_buffer **body, size_t *bytes)
{
    const kf_block *b = h->operand[operand].block;
    size_t half = kf_lent_bytes(h, operand, lo, hi);
    kofn_status st;

    *bytes = (b->velocity ? 2 : 1) * half;
    TRY(empty_body(*bytes, body));
    st = read_half(b, false, lo, hi, *body, 0);
    if (!st && b->velocity)
        st = read_half(b, true, lo, hi, *body, half);
    if (st)
        kf_buffer_drop(*body);
    return st;
}

/* ---- a block of numbers -------------------------------------------------- */

/* Rows from `lo` on, which are these from that byte on. */
static kofn_status put_half(kf_block *b, bool velocity, size_t lo, size_t rows,
                            kf_buffer *all, size_t at)
{
    kofn_matrix part = {(char *)all->m.data + at, b->lanes * rows * b->cols, 1,
                        1, b->dtype};
    kf_msg m = {
        .type = KF_MSG_PIECE, .lo = lo, .hi = lo + rows, .velocity = velocity};
    kf_buffer *half;
    kofn_status st;

    TRY(kf_buffer_view(&half, all, &part));
    st = kf_block_around(&m.block, half, b->lanes, rows, b->cols);
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
    kf_block *b;
    kofn_status st;

    TRY(kf_data_empty_blocks(&o->resident, o->code, &which, 1, out));
    b = *out;
    st = put_half(b, false, 0, b->rows, all, 0);
    if (!st && velocity)
        st = put_half(b, true, 0, b->rows, all, bytes_of(b));
    if (!st) /* that was all */
        st = kf_block_change(b, &(kf_msg){.type = KF_MSG_PIECE});
    if (st) {
        kf_block_drop(b);
        *out = NULL;
    }
    return st;
}

/* A block of some rows alone, in the body that they came in, whose only owner it
 * is from now on. */
static kofn_status block_of_rows(const kf_mesh_operand *o, size_t rows,
                                 kf_buffer *body, bool velocity, kf_block **out)
{
    kf_extent e = kf_extent_of(o->plan);
    kofn_matrix half = {body->m.data, e.lanes * rows * e.cols, 1, 1,
                        o->plan->layout.problem.dtype};
    kf_buffer *numbers;
    kofn_status st;

    TRY(kf_buffer_view(&numbers, body, &half));
    st = kf_block_around(out, numbers, e.lanes, rows, e.cols);
    kf_buffer_drop(numbers);
    TRY(st);
    (*out)->changes = true;
    if (velocity)
        st = put_half(*out, true, 0, rows, body, bytes_of(*out));
    if (st)
        kf_block_drop(*out);
    return st;
}

/* ---- borrowing ----------------------------------------------------------- */

/* Is it another's, and of our iterate? */
bool kf_lent_serves(const kf_host *h, const kf_lent *l)
{
    return l->from != KF_OURS && l->ours && l->turn == h->changing.turn;
}

static size_t count_lent(const kf_host *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->changing.lents; i++)
        n += kf_lent_serves(h, &h->changing.lent[i]);
    return n;
}

/* Lenders that are missing; one more is there to compare them with. */
static size_t missing(const kf_host *h)
{
    const kofn_plan *p = h->operand[h->changing.window.operand].plan;
    size_t have = count_lent(h);
    size_t enough = kf_ceil_div(p->parts, p->layout.lanes) +
                    (h->opt.errors != KOFN_ERRORS_NONE);

    return enough > have ? enough - have : 0;
}

static kofn_status new_lent(kf_changing *c, const kf_lent *l)
{
    TRY(kf_grow(&c->lent, &c->lent_cap, c->lents, sizeof *c->lent));
    c->lent[c->lents++] = *l;
    return KOFN_OK;
}

/* Nobody has two blocks of a matrix, so that no more is kept than there are
 * connections. */
static void drop_former(kf_changing *c, uint32_t seat, kofn_peer from)
{
    for (size_t i = c->lents; i > 0; i--) {
        const kf_lent *l = &c->lent[i - 1];

        if (l->from != KF_OURS && (l->seat == seat || l->from == from))
            kf_lent_drop(c, i - 1);
    }
}

/* Is it what was asked for last? */
static bool is_awaited(const kf_host *h, const kf_note *note, uint64_t turn)
{
    const kf_changing *c = &h->changing;
    const kf_mesh_window *w = &c->window;
    uint64_t each = h->course.stages - h->course.after;

    return c->asked && note->group == w->operand && note->coded == w->lo &&
           note->decoded == w->hi && turn * each == note->at.t &&
           note->seat < h->operand[w->operand].plan->layout.max_seats;
}

kofn_status kf_lent_take(kf_host *h, kf_route *r, const kf_note *note,
                         kf_buffer *body)
{
    kf_changing *c = &h->changing;
    kf_lent l = {.operand = note->group,
                 .seat = note->seat,
                 .from = r->peer,
                 .turn = kf_course_turn(&h->course, note->at.t),
                 .line = note->at.line,
                 .lo = c->window.lo};
    size_t rows = c->window.hi - c->window.lo, was;
    kofn_status st;
    bool moves; /* has it a velocity? */

    if (note->seat == KOFN_NO_SEAT) {
        r->lends_none = true;
        return KOFN_OK;
    }
    if (!body || !is_awaited(h, note, l.turn)) {
        h->foreign++;
        return KOFN_OK;
    }
    was = missing(h);
    moves = kf_buffer_bytes(body) >
            kf_lent_bytes(h, l.operand, note->coded, note->decoded);
    TRY(block_of_rows(&h->operand[l.operand], rows, body, moves, &l.block));
    drop_former(c, l.seat, l.from);
    st = new_lent(c, &l);
    if (st) {
        kf_block_drop(l.block);
        return st;
    }
    TRY(kf_changing_settle(h));
    if (missing(h) < was) /* else it is of no use, and so may all of them be */
        c->since = kf_host_now(h);
    /* where as many came before, they were found to disagree */
    if (missing(h) < c->fewest) {
        c->fewest = missing(h);
        c->gained = c->since;
    }
    return KOFN_OK;
}

/* ---- asking -------------------------------------------------------------- */

static bool lends(const kf_host *h, kofn_peer peer)
{
    for (size_t i = 0; i < h->changing.lents; i++)
        if (h->changing.lent[i].from == peer &&
            kf_lent_serves(h, &h->changing.lent[i]))
            return true;
    return false;
}

/* May a window come yet of somebody who was asked with all others, and has not kept
 * us waiting before? */
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

/* Each time others, if there are others; not those whose answer is coming in. */
static kofn_status ask(kf_host *h, size_t blocks)
{
    kf_changing *c = &h->changing;
    bool again = c->asked != 0, any = false;
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
    c->asked = now;
    for (size_t i = 0; i < h->routes && blocks > 0; i++) {
        kf_route *r = &h->route[c->next++ % h->routes];

        if (r->incarnation == 0 || r->over || lends(h, r->peer) ||
            (again && kf_route_is_arriving(h, r)))
            continue;
        blocks--;
        any = true;
        TRY(kf_mail_to(h, r->peer,
                       &(kf_note){.type = KF_NOTE_READ,
                                  .from = h->opt.incarnation,
                                  .at = h->at,
                                  .group = c->window.operand,
                                  .coded = c->window.lo,
                                  .decoded = c->window.hi}));
    }
    c->asks += again && any;
    return KOFN_AGAIN;
}

/* ---- our own ------------------------------------------------------------- */

/* Rows of blocks of a matrix that ours are made of, by seat. */
typedef struct making {
    const kf_mesh_operand *of;
    const kf_lent **lent;
    uint32_t *seat;
    size_t n;
    double *x;     /* lanes x (n lanes)             */
    uint32_t *col; /* n lanes: 0, 1, ...           */
    kofn_matrix *lane;
} making;

static void collect(const kf_host *h, making *m)
{
    for (size_t i = 0; i < h->changing.lents; i++) {
        const kf_lent *l = &h->changing.lent[i];
        size_t at = m->n;

        if (!kf_lent_serves(h, l))
            continue;
        for (; at > 0 && m->lent[at - 1]->seat > l->seat; at--)
            m->lent[at] = m->lent[at - 1];
        m->lent[at] = l;
        m->n++;
    }
    for (size_t i = 0; i < m->n; i++)
        m->seat[i] = m->lent[i]->seat;
}

/* Mixes the lent rows, or their velocities, into the lanes of ours with the
 * coefficients that were solved for. */
static kofn_status mix_half(making *m, bool velocity, void *to)
{
    const kf_extent e = kf_extent_of(m->of->plan);
    size_t rows = m->lent[0]->block->rows;
    kf_mixed *mixed = kf_new(e.lanes, sizeof *mixed);
    kf_row *row = kf_new(e.lanes, sizeof *row);
    kofn_dtype dtype = m->of->plan->layout.problem.dtype;
    kofn_status st = mixed && row ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < m->n * e.lanes; i++) {
        const kf_block *b = m->lent[i / e.lanes]->block;

        m->col[i] = (uint32_t)i;
        m->lane[i] =
            velocity ? kf_block_velocity(b, i % e.lanes) : b->lane[i % e.lanes];
    }
    for (size_t l = 0; l < e.lanes && !st; l++) {
        kofn_matrix into = {(char *)to +
                                l * rows * e.cols * kf_dtype_size(dtype),
                            rows, e.cols, e.cols, dtype};

        row[l] = (kf_row){m->n * e.lanes, m->col, m->x + l * m->n * e.lanes};
        mixed[l] = (kf_mixed){&row[l], into, 1};
    }
    if (!st)
        st = kf_mix(mixed, e.lanes, m->lane, m->n * e.lanes, rows, e.cols);
    kf_free(mixed);
    kf_free(row);
    return st;
}

/* Have they velocities, or ours one? */
static bool move(const making *m, const kf_block *own)
{
    bool any = own->velocity;

    for (size_t i = 0; i < m->n; i++)
        any |= m->lent[i]->block->velocity != NULL;
    return any;
}

static kofn_status mix_rows(making *m, kf_block *own)
{
    const kf_lent *l = m->lent[0];
    kf_buffer *numbers;
    kofn_status st = KOFN_OK;

    TRY(empty_body(bytes_of(l->block), &numbers));
    for (int velocity = 0; velocity <= move(m, own) && !st; velocity++) {
        st = mix_half(m, velocity, numbers->m.data);
        if (!st)
            st = put_half(own, velocity, l->lo, l->block->rows, numbers, 0);
    }
    kf_buffer_drop(numbers);
    return st;
}

/* Writes the window into our block.  KOFN_TOOFEW: more are needed. */
static kofn_status make_rows(const kf_host *h, const kf_lent *own)
{
    size_t room = h->changing.lents + 1;
    const kofn_layout *L = &h->operand[own->operand].plan->layout;
    bool single = L->problem.dtype == KOFN_F32;
    size_t lanes = L->lanes;
    making m = {.of = &h->operand[own->operand],
                .lent = kf_new(room, sizeof *m.lent),
                .seat = kf_new(room, sizeof *m.seat),
                .x = kf_new(room * lanes, lanes * sizeof *m.x),
                .col = kf_new(room, lanes * sizeof *m.col),
                .lane = kf_new(room, lanes * sizeof *m.lane)};
    kofn_status st = KOFN_NOMEM;
    double predicted;

    if (m.lent && m.seat && m.x && m.col && m.lane) {
        collect(h, &m);
        st = kf_code_regenerator(m.of->code, m.seat, m.n, own->seat, m.x,
                                 &predicted);
        if (!st && predicted > (single ? TOLERANCE_F32 : TOLERANCE))
            st = KOFN_TOOFEW;
    }
    if (!st)
        st = mix_rows(&m, own->block);
    kf_free((void *)(uintptr_t)m.lent);
    kf_free(m.seat);
    kf_free(m.x);
    kf_free(m.col);
    kf_free(m.lane);
    return st;
}

/* Our block of that matrix that is being made, or NULL. */
static kf_lent *being_made(const kf_changing *c, uint32_t operand)
{
    for (size_t i = 0; i < c->lents; i++)
        if (c->lent[i].from == KF_OURS && c->lent[i].operand == operand)
            return &c->lent[i];
    return NULL;
}

/* ---- windows ------------------------------------------------------------- */

/* The first matrix from that one on that changes. */
static uint32_t next_operand(const kf_host *h, uint32_t operand)
{
    while (operand < h->program.operands && !changes(h, operand))
        operand++;
    return operand;
}

/* Those of all seats together are no larger than a block that is not small. */
static void open_window(kf_host *h, uint32_t operand, size_t lo)
{
    kf_changing *c = &h->changing;
    const kofn_plan *p = h->operand[operand].plan;
    size_t rows = kf_extent_of(p).rows - lo;
    size_t most = kf_lent_whole(h, operand) / p->layout.max_seats;

    c->bytes = kf_min(c->bytes, kf_max(most, c->small));
    rows = kf_min(rows, kf_max(c->bytes / bytes_of_row(h, operand), 1));
    c->window = (kf_mesh_window){operand, lo, lo + rows, c->turn};
    c->since = c->asked = 0;
    c->asks = 0;
    c->gained = kf_host_now(h);
    c->fewest = SIZE_MAX;
}

/* Does it have blocks of that seat under way? */
static bool is_begun(const kf_host *h, uint32_t seat)
{
    const kf_lent *own = being_made(&h->changing, next_operand(h, 0));

    return own && own->seat == seat && own->turn == h->changing.turn;
}

static kofn_status begin(kf_host *h, uint32_t seat)
{
    kf_changing *c = &h->changing;
    size_t which = seat;

    kf_lent_forget(h);
    for (size_t i = 0; i < h->routes; i++)
        h->route[i].lends_none = false;
    for (uint32_t i = next_operand(h, 0); i < h->program.operands;
         i = next_operand(h, i + 1)) {
        const kf_mesh_operand *o = &h->operand[i];
        kf_lent own = {.operand = i,
                       .seat = seat,
                       .from = KF_OURS,
                       .turn = c->turn,
                       .ours = true};

        TRY(new_lent(c, &own));
        TRY(kf_data_empty_blocks(&o->resident, o->code, &which, 1,
                                 &c->lent[c->lents - 1].block));
    }
    c->bytes = c->small;
    open_window(h, next_operand(h, 0), 0);
    return KOFN_OK;
}

/* Our rows are made of what was lent.  Who has not lent any by now is not waited for
 * in the next window. */
static void close_window(kf_host *h)
{
    kf_changing *c = &h->changing;

    for (size_t i = 0; i < h->routes; i++)
        h->route[i].lends_none = !lends(h, h->route[i].peer);
    for (size_t i = c->lents; i > 0; i--)
        if (c->lent[i - 1].from != KF_OURS)
            kf_lent_drop(c, i - 1);
    c->bytes = c->turn - c->window.turn <= 1 ? 2 * c->bytes
                                             : kf_max(c->bytes / 2, c->small);
}

/* false: there is none. */
static bool next_window(kf_host *h)
{
    kf_mesh_window *w = &h->changing.window;
    bool more = w->hi < kf_extent_of(h->operand[w->operand].plan).rows;
    uint32_t operand = more ? w->operand : next_operand(h, w->operand + 1);

    if (operand < h->program.operands)
        open_window(h, operand, more ? w->hi : 0);
    return operand < h->program.operands;
}

static kofn_status finish(kf_host *h, uint32_t seat)
{
    kf_changing *c = &h->changing;

    for (size_t i = 0; i < c->lents; i++) {
        kf_mesh_operand *o = &h->operand[c->lent[i].operand];

        TRY(kf_block_change(c->lent[i].block, &(kf_msg){.type = KF_MSG_PIECE}));
        kf_block_drop(o->block);
        o->block = c->lent[i].block;
        c->lent[i].block = NULL;
    }
    kf_lent_forget(h);
    c->healed++;
    c->changed = h->at.t; /* by what lent blocks were changed by */
    h->seat = seat;
    return KOFN_OK;
}

kofn_status kf_lent_make(kf_host *h, uint32_t seat)
{
    kf_changing *c = &h->changing;
    size_t more;
    kofn_status st;

    if (!is_begun(h, seat))
        TRY(begin(h, seat));
    if (c->asked == 0)
        return ask(h, SIZE_MAX);
    more = missing(h);
    if (more > 0)
        return ask(h, more);
    if (may_come(h, longer(h)))
        return KOFN_AGAIN;
    st = kf_lent_compare(h, c->window.operand);
    if (!st)
        st = make_rows(h, being_made(c, c->window.operand));
    if (st == KOFN_TOOFEW) /* as many as there must be, but not these */
        return ask(h, 1);
    TRY(st);
    close_window(h);
    return next_window(h) ? ask(h, SIZE_MAX) : finish(h, seat);
}
