/* sketch.c -- compares blocks of matrices that change, without moving them.
 *
 * A number of a block that no product uses is found wrong late: a weight of an
 * input that is always 0, or an optimizer state.  So each member multiplies its
 * blocks by a vector of random weights from time to time.  It does so every
 * `scrub` turns, after the last turn, before a checkpoint, and when an iterate
 * is repeated.  It sends the result, its *sketch*, to all others.  Each
 * compares the sketches of all by the parities of the code (verify/reading.c).
 * A node that finds its own wrong rebuilds its blocks from those of the others.
 *
 * The weights follow from the job and the iterate, so all nodes have the same
 * without a request.  Memory does not choose its faults by them.  A hostile
 * node could find a change of its block that they do not show.  But it could
 * also send the sketch of another block, and its partial products are compared
 * in any case.
 *
 * No step waits for sketches.  Blocks may have changed when sketches are
 * compared, but a wrong block is still wrong.  Steps continue, and more
 * sketches are made and sent.  A comparison gets its time nevertheless, unless
 * a later one has the sketches of all before it.  Otherwise short steps would
 * never complete one.
 *
 * Owns the sketches that have come: per matrix and connection those of the
 * present comparison, and at most the two newest others. */
#include "host.h"

#include "base/rng.h"
#include "data/kernel.h"

#include <assert.h>

#define HEDGES 4 /* wait for the sketches of all; then fewer suffice */

/* ---- our own ------------------------------------------------------------- */

/* Draws the weights of the columns of a matrix.  Returns their norm. */
static double weigh(const kf_host *h, const kf_sketched *of, uint32_t operand,
                    double *w, size_t n)
{
    assert(n > 0);
    return kf_reading_weigh(
        kf_rng_stream(kf_mix64(kf_state64(h->job ^ of->line, of->turn)),
                      KF_FOR_SKETCH, operand, 0),
        w, n);
}

static kofn_status make(kf_host *h, uint32_t operand)
{
    const kf_block *b = h->blocks.operand[operand].block;
    size_t rows = b->components * b->rows;
    double *w = kf_new(b->cols, sizeof *w);
    kf_sketch own = {.operand = operand,
                     .seat = h->blocks.seat,
                     .from = KF_LOCAL,
                     .turn = h->blocks.sketches.last.turn,
                     .line = h->blocks.sketches.last.line};
    kofn_status st = KOFN_NOMEM;

    assert(h->blocks.sketches.last.seat == h->blocks.seat);
    if (w)
        st = kf_buffer_new(&own.data, (1 + b->states) * rows, 1, KOFN_F64);
    if (!st) {
        double *at = own.data->m.data;

        (void)weigh(h, &h->blocks.sketches.last, operand, w, b->cols);
        for (size_t s = 0; s <= b->states; s++)
            kf_reading_sketch(b, s, w, at + s * rows);
        st = kf_sketch_put(&h->blocks, own);
    }
    kf_free(w);
    return st;
}

static kofn_status tell(kf_host *h, uint32_t operand)
{
    const kf_sketched *of = &h->blocks.sketches.last;
    const kf_note note = {
        .type = KF_NOTE_SKETCH,
        .from = h->opt.incarnation,
        .at = {kf_course_end(&h->work.course, of->turn), of->line},
        .group = operand,
        .seat = h->blocks.seat};

    return kf_mail_to_all(h, &note);
}

/* Drops the sketches of earlier turns, or of another way. */
static void drop_old(kf_sketches *s)
{
    for (size_t i = s->sketches; i > 0; i--)
        if (s->sketch[i - 1].turn < s->of.turn ||
            (s->sketch[i - 1].turn == s->of.turn &&
             s->sketch[i - 1].line != s->of.line))
            kf_sketch_drop(s, i - 1);
}

/* Sketches all our blocks as they are now. */
static kofn_status sketch_all(kf_host *h)
{
    const kf_changing *c = &h->blocks.changing;

    assert(h->blocks.seat != KOFN_NO_SEAT);
    h->blocks.sketches.last =
        (kf_sketched){.turn = c->turn,
                      .line = c->line[c->turn % h->blocks.changing.recalls],
                      .seat = h->blocks.seat,
                      .rebuilt = c->rebuilt};
    for (uint32_t i = 0; i < h->blocks.operands; i++) {
        if (kf_borrowed_whole(&h->blocks, i) == 0)
            continue;
        TRY(make(h, i));
        TRY(tell(h, i));
    }
    return KOFN_OK;
}

/* Starts the comparison of our newest sketches with those of the others. */
static void begin_comparing(kf_host *h)
{
    kf_sketches *s = &h->blocks.sketches;

    assert(kf_sketch_are_compared(h));
    s->of = s->last;
    s->began = kf_host_now(h);
    s->tried = 0;
    s->on = true;
    drop_old(s);
}

kofn_status kf_sketch_begin(kf_host *h)
{
    if (!kf_sketch_are_compared(h) || h->blocks.seat == KOFN_NO_SEAT)
        return KOFN_OK;
    TRY(sketch_all(h));
    begin_comparing(h);
    return KOFN_OK;
}

kofn_status kf_sketch_turn(kf_host *h)
{
    kf_sketches *s = &h->blocks.sketches;
    uint64_t turn = h->blocks.changing.turn;
    bool due = turn > 0 && ((h->opt.scrub > 0 && turn % h->opt.scrub == 0) ||
                            turn == h->program.turns);

    if (s->on && s->of.turn == turn) /* of the same blocks */
        return KOFN_OK;
    if (!due && !kf_keep_is_due(h))
        return KOFN_OK;
    if (!s->on || kf_host_now(h) - s->began > 2 * HEDGES * kf_host_hedge(h))
        return kf_sketch_begin(h);
    return h->blocks.seat == KOFN_NO_SEAT ? KOFN_OK : sketch_all(h);
}

kofn_status kf_sketch_take(kf_host *h, const kf_route *r, const kf_note *note,
                           kf_buffer *body)
{
    uint64_t turn = kf_course_turn(&h->work.course, note->at.step);

    assert(r->incarnation == note->from);
    /* A node may only send the sketch of the seat that it has. */
    if (!body || kf_course_end(&h->work.course, turn) != note->at.step ||
        note->seat == KOFN_NO_SEAT ||
        note->seat != kf_node_seat_of(h->node, r->incarnation)) {
        h->net.foreign++;
        return KOFN_OK;
    }
    if (turn < h->blocks.sketches.of.turn)
        return KOFN_OK;
    return kf_sketch_put(&h->blocks, (kf_sketch){.operand = note->group,
                                                 .seat = note->seat,
                                                 .from = r->peer,
                                                 .turn = turn,
                                                 .line = note->at.lineage,
                                                 .data = kf_buffer_keep(body)});
}

/* ---- comparing ----------------------------------------------------------- */

static size_t count(const kf_mesh_blocks *blocks, const kf_sketched *of,
                    uint32_t operand)
{
    const kf_sketches *s = &blocks->sketches;
    size_t n = 0;

    for (size_t i = 0; i < s->sketches; i++)
        n += s->sketch[i].operand == operand &&
             kf_sketch_is_of(&s->sketch[i], of);
    return n;
}

/* Returns the count for the matrix with the fewest sketches. */
static size_t count_least(const kf_mesh_blocks *blocks, const kf_sketched *of)
{
    size_t least = SIZE_MAX;

    for (uint32_t i = 0; i < blocks->operands; i++)
        if (kf_borrowed_whole(blocks, i))
            least = kf_min(least, count(blocks, of, i));
    return least;
}

/* Collects the last sketch of each seat: two nodes may have had it in one
 * turn. */
static void collect(const kf_mesh_blocks *blocks, uint32_t operand,
                    kf_reading *r)
{
    const kf_sketches *s = &blocks->sketches;
    size_t bytes = kf_sketch_bytes(blocks, operand);

    for (size_t i = s->sketches; i > 0; i--) {
        const kf_sketch *k = &s->sketch[i - 1];
        const char *at = k->data->m.data;
        kf_read of = {.from = k->from};

        if (k->operand != operand || !kf_sketch_is_of(k, &s->of))
            continue;
        for (size_t n = 0; n < kf_buffer_bytes(k->data) / bytes; n++)
            of.state[n] = at + n * bytes;
        kf_reading_add(r, k->seat, of);
    }
}

/* Compares blocks in all states.  Records senders that are certainly wrong. */
static kofn_status compare_states(kf_host *h, uint32_t operand, kf_reading *r)
{
    for (size_t state = 0; state <= r->states; state++) {
        kf_found found;

        TRY(kf_comparison_read(h, &h->blocks.operand[operand], r, state,
                               &found));
        kf_comparison_strike_all(h, r, &found);
        h->blocks.sketches.drift =
            kf_larger(h->blocks.sketches.drift, found.drift);
    }
    return KOFN_OK;
}

static kofn_status compare(kf_host *h, uint32_t operand)
{
    kf_reading r;
    kofn_status st = kf_reading_new(&r, h->blocks.operand[operand].plan,
                                    h->blocks.sketches.sketches);
    double *w = kf_new(r.cols, sizeof *w);

    if (!st && !w)
        st = KOFN_NOMEM;
    if (!st) {
        kf_reading_of_sketches(
            &r, weigh(h, &h->blocks.sketches.of, operand, w, r.cols));
        collect(&h->blocks, operand, &r);
        st = compare_states(h, operand, &r);
    }
    kf_reading_free(&r);
    kf_free(w);
    return st;
}

/* True if the sketched blocks are still ours.  They may have been rebuilt
 * since. */
static bool are_local(const kf_mesh_blocks *blocks, const kf_sketched *of)
{
    return of->seat == blocks->seat && of->rebuilt == blocks->changing.rebuilt;
}

static kofn_status conclude(kf_host *h)
{
    kf_sketches *s = &h->blocks.sketches;

    assert(s->on);
    s->done++;
    if (!are_local(&h->blocks, &s->of))
        return KOFN_OK;
    if (h->work.comparison.local) {
        kf_changing_wrong(h);
        return KOFN_OK;
    }
    h->blocks.changing.suspect = false;
    s->right = s->of.turn;
    return kf_keep_sound(h, s->of.turn);
}

/* Ends a comparison.  The sketches that were made meanwhile are next. */
static void end_comparing(kf_host *h)
{
    kf_sketches *s = &h->blocks.sketches;

    s->on = false;
    if (s->last.turn > s->of.turn && are_local(&h->blocks, &s->last))
        begin_comparing(h);
}

kofn_status kf_sketch_settle(kf_host *h)
{
    kf_sketches *s = &h->blocks.sketches;
    kofn_time wait = HEDGES * kf_host_hedge(h);
    kofn_node_view view;
    bool all, decisive;
    size_t n;
    kofn_status st = KOFN_OK;

    if (!s->on)
        return KOFN_OK;
    kf_node_look(h->node, &view);
    if (s->last.turn > s->of.turn &&
        count_least(&h->blocks, &s->last) >= view.members)
        begin_comparing(h); /* the node that is late does not delay it */
    n = count_least(&h->blocks, &s->of);
    all = n >= view.members;
    if (n <= s->tried || (!all && kf_host_now(h) - s->began < wait))
        return KOFN_OK;
    s->drift = 0;
    h->work.comparison.local = false;
    for (uint32_t i = 0; i < h->blocks.operands && !st; i++)
        if (kf_borrowed_whole(&h->blocks, i))
            st = compare(h, i);
    if (st == KOFN_NOMEM)
        return st;
    decisive = !st || h->work.comparison.local;
    if (decisive)
        TRY(conclude(h));
    if (decisive || all) /* else more of them may decide it */
        end_comparing(h);
    return KOFN_OK;
}
