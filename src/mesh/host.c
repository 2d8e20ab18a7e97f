/* host.c -- a node of a mesh with its data.
 *
 * It does the tasks that its coordinator names, until all nodes have the
 * result.  It has one thread.  A computation receives packets from time to
 * time, so a node is never silent, and stops a task that is no longer needed.
 *
 * Owns the node with all its data from kf_host_new to kf_host_free; the
 * program, the transport and the matrices are borrowed.  It must not decide
 * what the coordinator of the node decides.
 */
#include "host.h"

#include <math.h>
#include <stdlib.h>

/* ---- tasks --------------------------------------------------------------- */

static kofn_status done(kf_host *h, const kf_node_task *t, bool final)
{
    return kf_host_step(h, &(kf_node_event){.type = KF_NODE_DONE,
                                            .now = kf_host_now(h),
                                            .task = t,
                                            .final = final});
}

static kofn_status tick(kf_host *h)
{
    kofn_time now = kf_host_now(h);

    TRY(kf_mail_look(h));
    if (now < kf_node_alarm(h->node))
        return KOFN_OK;
    TRY(kf_mail_greet(h));
    return kf_host_step(h, &(kf_node_event){.type = KF_NODE_TICK,
                                            .now = now,
                                            .lacks = kf_borrowed_lacks(h)});
}

static kofn_status look_up(kf_host *h, kofn_time atmost)
{
    TRY(kf_mail_receive(h, atmost));
    return tick(h);
}

static bool stopped(void *ud)
{
    kf_host *h = ud;

    if (!h->status)
        h->status = look_up(h, 0);
    return h->status || !kf_node_wanted(h->node, &h->task);
}

/* Makes the blocks of a seat.  KOFN_AGAIN: it waits for those of others. */
static kofn_status encode(kf_host *h, uint32_t seat)
{
    if (h->blocks.changes && !kf_changing_recalls(&h->blocks)) {
        kofn_status st = kf_keep_load(h, seat);

        h->blocks.seat = st ? h->blocks.seat : seat;
        return st == KOFN_AGAIN ? kf_borrowed_make(h, seat) : st;
    }
    h->blocks.seat = KOFN_NO_SEAT;
    for (size_t i = 0; i < h->blocks.operands; i++) {
        kf_mesh_operand *o = &h->blocks.operand[i];

        if (!o->plan) /* no product uses it */
            continue;
        kf_block_drop(o->block);
        o->block = NULL;
        TRY(kf_host_encode(o, seat, &o->block));
    }
    if (h->blocks.changes)
        TRY(kf_changing_fresh(h, seat, 0));
    h->blocks.seat = seat;
    return KOFN_OK;
}

#define SLICE (KOFN_SECOND / 1000)

/* Extends a task by the slowdown factor, unless it is no longer needed. */
static void linger(kf_host *h, uint64_t t, kofn_time took)
{
    double factor = h->opt.slow(h->opt.fault_ud, t);
    double longer = factor > 1 ? (factor - 1) * (double)took : 0;
    kofn_time until = kf_host_now(h) + (kofn_time)fmin(longer, 1e18);

    while (!stopped(h) && kf_host_now(h) < until)
        h->status = look_up(h, SLICE);
}

static kofn_status compute(kf_host *h, const kf_node_task *t)
{
    kofn_time began = kf_host_now(h);
    kf_buffer *out;
    kofn_status st;

    h->status = KOFN_OK;
    st = kf_host_compute(h, h->work.on->of->block, h->blocks.seat, t->group,
                         stopped, &out);
    if (!st && h->opt.slow)
        linger(h, t->at.step, kf_host_now(h) - began);
    if (h->status)
        st = h->status;
    if (st || !kf_node_wanted(h->node, t)) {
        kf_buffer_drop(out);
        return st == KOFN_AGAIN ? KOFN_OK : st;
    }
    kf_host_fault(h, KOFN_FAULT_IN_PRODUCT, t->at.step, &out->m);
    TRY(kf_host_keep(&h->pieces, t->group, h->blocks.seat, KF_LOCAL, out));
    return done(h, t, false);
}

/* Keeps a copy of the result of a group, in the layout in which it is sent. */
static kofn_status keep_result(kf_host *h, size_t group)
{
    const kf_host_product_data *on = h->work.on;
    size_t lo, strips = kf_host_strips(on, group, &lo);
    kofn_matrix m = kf_host_partial_shape(on, strips, KOFN_NO_SEAT, NULL);
    kf_buffer *p;

    TRY(kf_buffer_new(&p, m.rows, m.cols, m.dtype));
    kf_data_gather(on->plan, 0, lo, lo + strips, &on->out->m, p->m.data);
    return kf_host_keep(&h->pieces, group, KOFN_NO_SEAT, KF_LOCAL, p);
}

/* Decodes a group from the partial products that the decision names; all are
 * here.  A result that is not finite is examined before the iterate is made. */
static kofn_status decode(kf_host *h, const kf_node_task *t)
{
    const kofn_decoder *d = t->decoder;
    const kofn_plan *plan = h->work.on->plan;
    kofn_matrix *out = &h->work.on->out->m;
    size_t lo, strips = kf_host_strips(h->work.on, t->group, &lo);
    kf_source *source = kf_new(d->seats, sizeof *source);
    kofn_status st = source ? KOFN_OK : KOFN_NOMEM;
    kf_back back = {.by = 1 / h->work.on->of->resident.by};

    kf_equilibrate_back(&h->work.on->of->scaling, &(kf_scaling){NULL, NULL},
                        plan, &back);
    if (h->work.on->mixes && !st && !(st = kf_host_input(h)))
        st = kf_mesh_spread_check(h, d);
    if (!st)
        st = kf_host_sources(h, t, source);
    if (!st)
        st = kf_data_decode(plan, d, source, (kf_band){0, lo, lo + strips},
                            &(kf_output){out, &back}, &h->work.scratch);
    kf_free(source);
    if (st == KOFN_NONFINITE) /* from A itself, or from a faulty node */
        h->work.freivalds.odd = true;
    else
        TRY(st);
    h->work.freivalds.noise = fmax(h->work.freivalds.noise, d->predicted);
    h->it.noise = fmax(h->it.noise, d->predicted);
    h->it.rounding = fmax(h->it.rounding, d->predicted);
    kf_host_way_note(h, t->group, d);
    if (h->opt.decoding == KOFN_DECODE_DISTRIBUTED)
        TRY(keep_result(h, t->group));
    return done(h, t, false);
}

static kofn_status check(kf_host *h, const kf_node_task *t)
{
    kf_node_event ev = {.type = KF_NODE_DONE, .task = t};

    TRY(kf_comparison_check(h, t, &ev));
    ev.now = kf_host_now(h);
    TRY(kf_host_step(h, &ev));
    return h->work.comparison.local ? kf_comparison_appeal(h, t) : KOFN_OK;
}

static kofn_status make_vector(kf_host *h, const kf_node_task *t, bool *final)
{
    if (t->type == KF_NODE_TASK_SOLO)
        TRY(kf_mesh_freivalds_make(h));
    else
        TRY(kf_mesh_freivalds_next(h));
    kf_host_fault(h, KOFN_FAULT_IN_DECODING, t->at.step, &h->work.on->out->m);
    TRY(h->work.on->mixes ? kf_host_input(h) : KOFN_OK);
    TRY(kf_mesh_spread_clear(h));
    TRY(h->program.output(h->program.ud, t->at.step + 1, &h->work.on->out->m,
                          &h->it.v->m, h->it.scalar, final));
    kf_host_fault(h, KOFN_FAULT_IN_VECTOR, t->at.step, &h->it.v->m);
    return KOFN_OK;
}

/* Brings the blocks to the iterate that this node has made. */
static kofn_status turn(kf_host *h)
{
    uint64_t was = h->blocks.changing.turn;

    TRY(kf_changing_turn(h));
    return kf_turns_made(h, was);
}

/* Makes the next iterate: checks the product, computes the vector, and reports
 * it to the coordinator before any other request.  Numbers that are not finite
 * may be an error of this node alone.  If nodes compare their iterates, it
 * waits for those of the others. */
static kofn_status update(kf_host *h, const kf_node_task *t)
{
    kofn_node_view view;
    bool final = false;
    kf_node_digest digest;
    kofn_status st;

    st = make_vector(h, t, &final);
    if (st && (st != KOFN_NONFINITE || h->opt.errors == KOFN_ERRORS_NONE))
        return st;
    kf_host_way_go(h);
    digest = kf_host_digest_of_way(h, t->at.step + 1, h->it.scalar,
                                   h->it.v->m.data, final);
    if (st || h->work.freivalds.odd)
        digest.sum = NAN;
    h->it.odd = digest.exact && !isfinite(digest.sum);
    /* Pieces are handed over with the mark, before any other request. */
    kf_host_advance(h, (kofn_iterate_id){t->at.step + 1, 0});
    TRY(kf_node_step(h->node, &(kf_node_event){.type = KF_NODE_DONE,
                                               .now = kf_host_now(h),
                                               .task = t,
                                               .final = final,
                                               .digest = digest}));
    kf_node_look(h->node, &view);
    h->it.at = view.at;
    TRY(kf_host_act(h, NULL));
    if (h->it.odd)
        return kf_vector_quorum_tell(h);
    if (h->blocks.changes)
        TRY(turn(h));
    else if (!final) /* a node with the last one would make one more */
        TRY(kf_keep_turn(h));
    TRY(kf_vector_quorum_tell(h));
    return kf_mail_exclude_accused(h);
}

/* Does one task that the coordinator of the node names.  *worked is false if
 * there was none. */
static kofn_status work(kf_host *h, bool *worked)
{
    kf_node_task *t = &h->task;
    kofn_status st;

    kf_node_work(h->node, t);
    *worked = t->type != KF_NODE_TASK_NONE;
    switch (t->type) {
    case KF_NODE_TASK_ENCODE:
        st = encode(h, t->seat);
        *worked = st != KOFN_AGAIN;
        return st ? *worked ? st : KOFN_OK : done(h, t, false);
    case KF_NODE_TASK_COMPUTE:
        return compute(h, t);
    case KF_NODE_TASK_CHECK:
        return check(h, t);
    case KF_NODE_TASK_DECODE:
        return decode(h, t);
    case KF_NODE_TASK_UPDATE:
    case KF_NODE_TASK_SOLO:
        return update(h, t);
    case KF_NODE_TASK_NONE:
        break;
    }
    return KOFN_OK;
}

void kf_host_look(const kf_host *h, kofn_node_view *out)
{
    kf_node_look(h->node, out);
    out->scrubs = h->blocks.sketches.done;
    out->drift = h->blocks.sketches.drift;
    out->rebuilt = h->blocks.changing.rebuilt;
    kf_back_add(&h->disk, out);
}

bool kf_host_is_over(const kf_host *h)
{
    return !kf_node_failed(h->node) && kf_node_is_over(h->node);
}

/* Compares the copy, if there is one, because the caller gets the copy. */
kofn_status kf_host_hand_out(kf_host *h, double *v, bool *over)
{
    *over = kf_host_is_over(h);
    if (!*over)
        return KOFN_OK;
    if (v)
        memcpy(v, h->it.v->m.data, h->it.v->m.rows * sizeof *v);
    *over = kf_host_confirm_local(h, h->it.scalar, v ? v : h->it.v->m.data);
    return kf_step_deliver(h);
}

static kofn_status watch(kf_host *h)
{
    kofn_status st = kf_node_failed(h->node);
    kofn_node_view view;

    if (st && kf_node_is_over(h->node) && !kf_attempt_waits(h))
        return kf_host_say_why(h, st);
    if (h->it.odd && kf_node_is_agreed(h->node))
        return kf_fail(KOFN_NONFINITE,
                       "iterate %llu is not finite, and no majority disagrees",
                       (unsigned long long)h->it.at.step);
    if (!h->opt.watch)
        return KOFN_OK;
    kf_host_look(h, &view);
    if (!h->opt.watch(h->opt.watch_ud, &view, h->it.scalar))
        return KOFN_OK;
    TRY(kf_host_step(
        h, &(kf_node_event){.type = KF_NODE_LEAVE, .now = kf_host_now(h)}));
    return KOFN_AGAIN;
}

/* Handles numbers that are not finite, and delivers what files below left word
 * of. */
static kofn_status settle_up(kf_host *h, kofn_status st)
{
    if (st == KOFN_NONFINITE)
        st = kf_host_doubt(h);
    return st ? st : kf_step_deliver(h);
}

kofn_status kf_host_hear(kf_host *h, kofn_time atmost)
{
    return settle_up(h, kf_mail_receive(h, atmost));
}

static kofn_status hear(kf_host *h)
{
    TRY(look_up(h, 0));
    if (h->blocks.changing.unsure && kf_node_is_agreed(h->node))
        h->blocks.changing.unsure = false;
    TRY(kf_sketch_settle(h));
    TRY(kf_step_deliver(h));
    return kf_back_pass(h);
}

kofn_status kf_host_pass(kf_host *h, bool *worked)
{
    kofn_status st = hear(h);

    *worked = false;
    if (!st) {
        TRY(watch(h));
        st = work(h, worked);
    }
    return settle_up(h, st);
}

/* ---- life ---------------------------------------------------------------- */

/* Returns a digest of data and options, which all nodes must share. */
static uint64_t job_of(const kf_host *h, uint64_t turns)
{
    const kofn_program *p = &h->program;
    uint64_t course[] = {turns,      p->after,
                         p->recalls, p->change != NULL,
                         p->states,  KF_WIRE_VERSION};
    uint64_t d =
        kf_hash(p->digest, h->it.v->m.data, h->it.v->m.rows * sizeof(double));

    for (size_t i = 0; i < p->products; i++) {
        const kofn_plan *plan = h->work.product[i].plan;
        uint64_t few[] = {plan->layout.seed,  h->work.product[i].groups,
                          h->opt.decoding,    p->product[i].operand,
                          p->product[i].left, p->product[i].read,
                          h->opt.errors};

        d = kf_hash(d, plan->spec, strlen(plan->spec));
        d = kf_hash(d, few, sizeof few);
    }
    d = kf_hash(d, course, sizeof course);
    if (h->opt.keep)
        d = kf_hash(d, &h->opt.every, sizeof h->opt.every);
    return kf_host_operands_digest(&h->blocks, d);
}

/* Returns the job number that checkpoints must have.  The number of turns is
 * not part of it.  If matrices do not change, a checkpoint is a vector alone,
 * which is the same in every code. */
static uint64_t kept_job_of(const kf_host *h)
{
    uint64_t d = kf_hash(h->program.digest, h->it.v->m.data,
                         h->it.v->m.rows * sizeof(double));

    return h->blocks.changes ? job_of(h, 0)
                             : kf_host_operands_digest(&h->blocks, d);
}

/* Returns the default of `confirm`.  If matrices change, no node makes an
 * iterate alone.  So `confirm` is the least that includes an honest node.  With
 * more, some nodes may be ahead, too few to be believed, and the others too few
 * to follow. */
static size_t confirm_of(const kf_host *h)
{
    if (!h->blocks.changes)
        return kf_node_confirm(h->opt.nodes);
    if (h->opt.errors == KOFN_ERRORS_NONE || h->opt.nodes < 3)
        return 1;
    return 1 + (h->opt.errors == KOFN_ERRORS_ADVERSARIAL ? kf_host_most_wrong(h)
                                                         : 1);
}

static kofn_status settle(kf_host *h, const kofn_peer_options *opt)
{
    const kofn_plan *first = h->program.product[0].plan;
    kofn_peer_options *o = &h->opt;

    *o = (kofn_peer_options)KOFN_PEER_OPTIONS_INIT;
    TRY(kf_given(o, sizeof *o, opt, "KOFN_PEER_OPTIONS_INIT"));
    TRY(kf_complete(h->t, sizeof *h->t, "kofn_transport"));
    if (o->nodes == 0)
        o->nodes = first->workers;
    if (o->quarantine == 0)
        o->quarantine = 3;
    if (o->decoding == KOFN_DECODE_AUTO && o->errors != KOFN_ERRORS_NONE)
        o->decoding = KOFN_DECODE_REPLICATED;
    if (o->decoding == KOFN_DECODE_AUTO)
        o->decoding = kofn_decoding_for(first, o->nodes, 0, 0, 0);
    h->confirm = o->confirm ? o->confirm : confirm_of(h);
    return KOFN_OK;
}

/* Builds the node: its products, its vector, its checkpoints, its coordinator,
 * and its block if the seat is given. */
static kofn_status make(kf_host *h, const kofn_matrix *v)
{
    kofn_status st;

    TRY(kf_host_products_new(h, v));
    TRY(h->blocks.changes ? kf_changing_new(h) : KOFN_OK);
    TRY(kf_buffer_new(&h->it.v, v->rows, 1, KOFN_F64));
    memcpy(h->it.v->m.data, v->data, v->rows * sizeof(double));
    h->job = kf_hash(job_of(h, h->program.turns), &h->opt.scrub,
                     sizeof h->opt.scrub);
    h->it.machine = kf_host_machine();
    h->disk.keeping.job = kept_job_of(h);
    h->largest = kf_max(h->largest,
                        (v->rows + KOFN_SCALARS + h->blocks.changing.recalls +
                         kf_mesh_norms_count(&h->blocks)) *
                            sizeof(double));
    TRY_ZERO(h->pieces.now, KF_MAX_GROUPS);
    TRY_ZERO(h->pieces.before, KF_MAX_GROUPS);
    h->it.at = h->pieces.before_at = (kofn_iterate_id){0, h->job};
    TRY(kf_back_new(h)); /* before it starts from a checkpoint */
    TRY(kf_keep_open(h));
    TRY(kf_host_node_new(h));
    if (h->opt.seat == KOFN_NO_SEAT)
        return KOFN_OK;
    for (size_t i = 0; i < h->program.products; i++)
        if (h->opt.seat >= h->work.product[i].plan->layout.max_seats)
            return kf_fail(KOFN_INVAL, "seat %u of %zu", h->opt.seat,
                           h->work.product[i].plan->layout.max_seats);
    if (h->it.at.step > 0) /* it looks for its blocks when it is a member */
        return KOFN_OK;
    st = encode(h, h->opt.seat);
    if (st) /* KOFN_AGAIN: the node requests blocks when it is a member */
        return st == KOFN_AGAIN ? KOFN_OK : st;
    return done(
        h, &(kf_node_task){.type = KF_NODE_TASK_ENCODE, .seat = h->opt.seat},
        false);
}

kofn_status kf_host_new(kf_host **out, kofn_transport *t,
                        const kofn_program *program,
                        const kofn_peer_options *opt, const kofn_matrix *v,
                        kf_timer timer)
{
    kofn_program whole = KOFN_PROGRAM_INIT;
    kf_host *h;
    kofn_status st;

    *out = NULL;
    TRY(kf_given(&whole, sizeof whole, program, "KOFN_PROGRAM_INIT"));
    TRY(kf_node_products_check(whole.product, whole.products));
    TRY_ZERO(h, 1);
    h->t = t;
    h->program = whole;
    h->timer = timer;
    h->blocks.seat = KOFN_NO_SEAT;
    h->blocks.operands = whole.operands;
    h->blocks.changes = whole.change != NULL;
    h->blocks.states = whole.states;
    h->blocks.changing.recalls = whole.recalls;
    st = settle(h, opt);
    if (!st)
        st = make(h, v);
    if (st) {
        kf_host_free(h);
        return st;
    }
    t->body_max = kf_max(t->body_max, h->largest + 4096 * sizeof(double));
    *out = h;
    return KOFN_OK;
}

static void free_partials(kf_partials *p)
{
    kf_host_drop_partials(p);
    for (size_t g = 0; p && g < KF_MAX_GROUPS; g++)
        kf_free(p[g].partial);
    kf_free(p);
}

void kf_host_free(kf_host *h)
{
    if (!h)
        return;
    kf_mail_free(&h->net);
    kf_vector_quorum_drop(&h->it);
    kf_comparison_free(&h->work);
    kf_sketch_forget(&h->blocks);
    kf_back_free(&h->disk);
    kf_buffer_drop(h->it.packed);
    kf_host_forget_input(&h->work);
    kf_messages_free(&h->work.messages);
    free_partials(h->pieces.now);
    free_partials(h->pieces.before);
    kf_buffer_drop(h->it.v);
    kf_pool_free(&h->it.vectors);
    kf_node_free(h->node);
    kf_keep_close(&h->disk);
    kf_changing_free(&h->blocks);
    kf_host_products_free(h);
    kf_scratch_free(&h->work.scratch);
    kf_free(h);
}
