/* sketch.c -- blocks of matrices that change are compared where they lie.
 *
 * A number of a block that no product shows is found late: a weight of an input that is
 * always 0, or a velocity.  So every `scrub` turns, before blocks are kept on disk and
 * when an iterate is made again, each member multiplies its blocks by a vector of random
 * weights and sends what comes out, its *sketch*, to all others; each compares the
 * sketches of all by the parities of the code (reading.c).  Who finds its own to be
 * wrong makes its blocks anew of those of others.
 *
 * The weights follow from the job and the iterate, so all have the same without asking.
 * Memory does not choose its faults by them.  A node that lies could find a change of
 * its block that they do not show; but it could send the sketch of another block as
 * well, and what it makes of its block is compared in any case.
 *
 * Owns the sketches that have come, at most two a matrix and connection.  Nothing waits
 * for them: blocks may have changed when they are compared, and who was wrong still is. */
#include "host.h"

#include "base/rng.h"
#include "data/check.h"
#include "data/kernel.h"
#include "mat/mat.h"

#include <math.h>

#define HEDGES 4 /* to wait for the sketches of all; then fewer will do */

static void drop(kf_sketches *s, size_t i)
{
    kf_buffer_drop(s->sketch[i].data);
    s->sketch[i] = s->sketch[--s->sketches];
}

void kf_sketch_free(kf_host *h)
{
    while (h->sketches.sketches > 0)
        drop(&h->sketches, 0);
    kf_free(h->sketches.sketch);
    h->sketches.sketch = NULL;
}

/* Is it of the blocks that are compared? */
static bool is_current(const kf_sketches *s, const kf_sketch *k)
{
    return k->turn == s->turn && k->line == s->line;
}

/* ---- our own ------------------------------------------------------------- */

/* The weights of the columns of a matrix, between 1/2 and 1 of either sign. */
static double weigh(const kf_host *h, uint32_t operand, double *w, size_t n)
{
    const kf_sketches *s = &h->sketches;
    kf_rng r = kf_rng_stream(kf_mix64(kf_state64(h->job ^ s->line, s->turn)),
                             KF_FOR_SKETCH, operand, 0);
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        w[i] = kf_weight64(kf_rng_u64(&r));
        sum += w[i] * w[i];
    }
    return sqrt(sum);
}

/* A block, or its velocity, times the weights, into the rows from `at` on. */
static void multiply(const kf_block *b, bool velocity, const kofn_matrix *w,
                     double *at)
{
    for (size_t l = 0; l < b->lanes; l++, at += b->rows) {
        kofn_matrix lane = velocity ? kf_block_velocity(b, l) : b->lane[l];

        if (lane.rows > 0)
            kf_mat_multiply(&lane, w, false, at);
        else
            memset(at, 0, b->rows * sizeof *at);
    }
}

/* Nobody has two of a matrix that are to be compared, but one may come early. */
static kofn_status put(kf_host *h, kf_sketch k)
{
    kf_sketches *s = &h->sketches;
    size_t others = 0, oldest = 0;
    kofn_status st;

    for (size_t i = s->sketches; i > 0; i--) {
        const kf_sketch *x = &s->sketch[i - 1];

        if (x->operand != k.operand || x->from != k.from)
            continue;
        if (x->turn == k.turn) {
            drop(s, i - 1);
            continue;
        }
        if (others++ == 0 || x->turn < s->sketch[oldest].turn)
            oldest = i - 1;
    }
    if (others > 1)
        drop(s, oldest);
    st = kf_grow(&s->sketch, &s->cap, s->sketches, sizeof *s->sketch);
    if (st)
        kf_buffer_drop(k.data);
    else
        s->sketch[s->sketches++] = k;
    return st;
}

static kofn_status make(kf_host *h, uint32_t operand)
{
    const kf_block *b = h->operand[operand].block;
    size_t rows = b->lanes * b->rows, halves = b->velocity ? 2 : 1;
    kofn_matrix w = {NULL, b->cols, 1, 1, KOFN_F64};
    kf_sketch own = {.operand = operand,
                     .seat = h->seat,
                     .from = KF_OURS,
                     .turn = h->sketches.turn,
                     .line = h->sketches.line};
    kofn_status st = KOFN_NOMEM;

    w.data = kf_new(b->cols, sizeof(double));
    if (w.data)
        st = kf_buffer_new(&own.data, halves * rows, 1, KOFN_F64);
    if (!st) {
        double *at = own.data->m.data;

        (void)weigh(h, operand, w.data, b->cols);
        multiply(b, false, &w, at);
        if (halves == 2)
            multiply(b, true, &w, at + rows);
        st = put(h, own);
    }
    kf_free(w.data);
    return st;
}

static kofn_status tell(kf_host *h, uint32_t operand)
{
    uint64_t each = h->course.stages - h->course.after;
    const kf_note note = {.type = KF_NOTE_SKETCH,
                          .from = h->opt.incarnation,
                          .at = {h->sketches.turn * each, h->sketches.line},
                          .group = operand,
                          .seat = h->seat};

    for (size_t i = 0; i < h->routes; i++)
        if (h->route[i].incarnation && !h->route[i].over)
            TRY(kf_mail_to(h, h->route[i].peer, &note));
    return KOFN_OK;
}

/* Those of blocks before these, or of another way. */
static void drop_old(kf_sketches *s)
{
    for (size_t i = s->sketches; i > 0; i--)
        if (s->sketch[i - 1].turn < s->turn ||
            (s->sketch[i - 1].turn == s->turn &&
             s->sketch[i - 1].line != s->line))
            drop(s, i - 1);
}

kofn_status kf_sketch_begin(kf_host *h)
{
    const kf_changing *c = &h->changing;
    kf_sketches *s = &h->sketches;

    if (!h->program.change || h->opt.errors == KOFN_ERRORS_NONE ||
        h->seat == KOFN_NO_SEAT)
        return KOFN_OK;
    s->turn = c->turn;
    s->line = c->line[c->turn % h->program.recalls];
    s->seat = h->seat;
    s->healed = c->healed;
    s->began = kf_host_now(h);
    s->tried = 0;
    s->on = true;
    drop_old(s);
    for (uint32_t i = 0; i < h->program.operands; i++) {
        if (kf_lent_bytes(h, i) == 0)
            continue;
        TRY(make(h, i));
        TRY(tell(h, i));
    }
    return KOFN_OK;
}

kofn_status kf_sketch_turn(kf_host *h)
{
    const kf_sketches *s = &h->sketches;
    uint64_t turn = h->changing.turn;
    bool due = turn > 0 && h->opt.scrub > 0 && turn % h->opt.scrub == 0;

    if (s->on && s->turn == turn) /* of the same blocks */
        return KOFN_OK;
    return due || kf_keep_is_due(h) ? kf_sketch_begin(h) : KOFN_OK;
}

bool kf_sketch_is_open(const kf_host *h)
{
    return h->sketches.on && h->sketches.turn == h->changing.turn;
}

/* ---- as they travel ------------------------------------------------------ */

size_t kf_sketch_bytes(const kf_host *h, uint32_t operand)
{
    size_t bytes = kf_lent_bytes(h, operand);

    return bytes ? bytes / kf_extent_of(h->operand[operand].plan).cols : 0;
}

kf_buffer *kf_sketch_body(const kf_host *h, uint32_t operand)
{
    const kf_sketches *s = &h->sketches;

    for (size_t i = 0; i < s->sketches; i++)
        if (s->sketch[i].operand == operand && s->sketch[i].from == KF_OURS)
            return kf_buffer_keep(s->sketch[i].data);
    return NULL;
}

kofn_status kf_sketch_take(kf_host *h, const kf_route *r, const kf_note *note,
                           kf_buffer *body)
{
    uint64_t each = h->course.stages - h->course.after;
    uint64_t turn = kf_course_turn(&h->course, note->at.t);

    /* a node sends what its own seat has, or it could stand in for others */
    if (!body || turn * each != note->at.t || note->seat == KOFN_NO_SEAT ||
        note->seat != kf_node_seat_of(h->node, r->incarnation)) {
        h->foreign++;
        return KOFN_OK;
    }
    if (turn < h->sketches.turn)
        return KOFN_OK;
    return put(h, (kf_sketch){.operand = note->group,
                              .seat = note->seat,
                              .from = r->peer,
                              .turn = turn,
                              .line = note->at.line,
                              .data = kf_buffer_keep(body)});
}

/* ---- comparing ----------------------------------------------------------- */

static size_t count(const kf_host *h, uint32_t operand)
{
    const kf_sketches *s = &h->sketches;
    size_t n = 0;

    for (size_t i = 0; i < s->sketches; i++)
        n += s->sketch[i].operand == operand && is_current(s, &s->sketch[i]);
    return n;
}

/* Of the matrix of which fewest have come. */
static size_t count_least(const kf_host *h)
{
    size_t least = SIZE_MAX;

    for (uint32_t i = 0; i < h->program.operands; i++)
        if (kf_lent_bytes(h, i))
            least = kf_min(least, count(h, i));
    return least;
}

/* The last that came of each seat: two nodes may have had it in the same turn. */
static void collect(const kf_host *h, uint32_t operand, kf_reading *r)
{
    const kf_sketches *s = &h->sketches;

    for (size_t i = s->sketches; i > 0; i--) {
        const kf_sketch *k = &s->sketch[i - 1];
        bool have = false;

        if (k->operand != operand || !is_current(s, k))
            continue;
        for (size_t j = 0; j < r->n; j++)
            have |= r->seat[j] == k->seat;
        if (!have)
            kf_reading_add(r, k->seat, i - 1);
    }
}

/* A half of each sketch, as a source; one without a velocity says that it is 0. */
static void choose_half(const kf_host *h, kf_reading *r, bool velocity,
                        kofn_matrix *half, double *zeros)
{
    size_t rows = kf_sketch_bytes(h, (uint32_t)(r->of - h->operand)) / 8;

    r->row = kf_mesh_norms_rows(r->of, velocity);
    for (size_t i = 0; i < r->n; i++) {
        const kf_buffer *data = h->sketches.sketch[r->item[i]].data;
        double *at = data->m.data;

        if (velocity)
            at = kf_buffer_bytes(data) / 8 > rows ? at + rows : zeros;
        half[i] = (kofn_matrix){at, rows, 1, 1, KOFN_F64};
        r->source[i] =
            (kf_source){&half[i], 0, rows / r->of->plan->layout.lanes};
    }
}

/* Who is wrong for certain is struck; *ours: we are. */
static void find_bad(kf_host *h, const kf_reading *r, const kf_found *found,
                     bool *ours)
{
    for (size_t i = 0; i + found->doubted < found->count; i++) {
        const kf_sketch *k = &h->sketches.sketch[r->item[found->bad[i]]];

        if (k->from == KF_OURS)
            *ours = true;
        else
            kf_comparison_strike(h, k->from, k->seat);
    }
}

/* Blocks, and their velocities. */
static kofn_status compare_both(kf_host *h, kf_reading *r, kofn_matrix *half,
                                double *zeros, bool *ours)
{
    bool moves = false;

    for (size_t i = 0; i < r->n; i++)
        moves |= kf_buffer_bytes(h->sketches.sketch[r->item[i]].data) >
                 kf_sketch_bytes(h, (uint32_t)(r->of - h->operand));
    for (int velocity = 0; velocity <= moves; velocity++) {
        kf_found found;

        choose_half(h, r, velocity, half, zeros);
        TRY(kf_comparison_weights(h, &r->secret, &r->number));
        TRY(kf_reading_judge(h, r, &found));
        find_bad(h, r, &found, ours);
    }
    return KOFN_OK;
}

static kofn_status compare(kf_host *h, uint32_t operand, bool *ours)
{
    const kf_mesh_operand *o = &h->operand[operand];
    size_t cols = kf_extent_of(o->plan).cols, n = h->sketches.sketches;
    double *w = kf_new(cols, sizeof *w);
    double *zeros = kf_zero(kf_sketch_bytes(h, operand) / 8, sizeof *zeros);
    kofn_matrix *half = kf_new(n, sizeof *half);
    kf_reading r = {.n = 0};
    kofn_status st = w && zeros && half ? KOFN_OK : KOFN_NOMEM;
    double norm;

    if (!st)
        st = kf_reading_new(&r, o, n);
    if (!st) {
        norm = weigh(h, operand, w, cols);
        r.col = &norm;
        r.terms = cols;
        collect(h, operand, &r);
        st = compare_both(h, &r, half, zeros, ours);
    }
    kf_reading_free(&r);
    kf_free(w);
    kf_free(zeros);
    kf_free(half);
    return st;
}

/* What is found of our blocks is of those that were sketched; they may have been made
 * anew since. */
static kofn_status conclude(kf_host *h, bool ours)
{
    kf_sketches *s = &h->sketches;
    bool same = s->seat == h->seat && s->healed == h->changing.healed;

    s->on = false;
    s->done++;
    if (!ours)
        return kf_keep_sound(h, s->turn);
    if (!same)
        return KOFN_OK;
    h->changing.wrong++;
    return kf_changing_lose(h);
}

kofn_status kf_sketch_settle(kf_host *h)
{
    kf_sketches *s = &h->sketches;
    kofn_time wait = HEDGES * kf_host_hedge(h);
    kofn_node_view view;
    bool ours = false, all;
    size_t n;
    kofn_status st = KOFN_OK;

    if (!s->on)
        return KOFN_OK;
    kf_node_look(h->node, &view);
    n = count_least(h);
    all = n >= view.members;
    if (n <= s->tried || (!all && kf_host_now(h) - s->began < wait))
        return KOFN_OK;
    s->tried = n;
    for (uint32_t i = 0; i < h->program.operands && !st; i++)
        if (kf_lent_bytes(h, i))
            st = compare(h, i, &ours);
    if (st == KOFN_NOMEM)
        return st;
    if (!st || ours)
        return conclude(h, ours);
    s->on = !all; /* with more of them it may be told */
    return KOFN_OK;
}
