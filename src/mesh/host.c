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
#include "keep.h"
#include "spread.h"

#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

/* Discards all that was made from the iterate, which is repeated. */
static kofn_status begin_again(kf_host *h)
{
    kofn_node_view view;

    kf_node_look(h->node, &view);
    h->again = view.again;
    h->at = view.at;
    kf_host_drop_partials(h->now);
    kf_host_forget_input(h);
    kf_comparison_void(h);
    kf_comparison_forget(h);
    return kf_sketch_begin(h);
}

kofn_status kf_host_act(kf_host *h, bool *take)
{
    kf_node_action a;

    if (kf_node_agains(h->node) != h->again)
        TRY(begin_again(h));

    while (kf_node_next(h->node, &a)) {
        if (a.type == KF_NODE_SEND)
            TRY(kf_mail_send(h, a.to, &a.note));
        else if (a.type == KF_NODE_ERRED)
            kf_comparison_outvoted(h, a.to, a.principal);
        else if (take)
            *take = true;
    }
    return KOFN_OK;
}

kofn_status kf_host_step(kf_host *h, const kf_node_event *ev)
{
    TRY(kf_node_step(h->node, ev));
    return kf_host_act(h, NULL);
}

void kf_host_advance(kf_host *h, kofn_iterate_id at)
{
    kf_partials *p = h->before;

    if (at.step > h->at.step)
        kf_comparison_advance(h);
    else
        kf_comparison_void(h);
    kf_mesh_part_remember(h);
    h->before = h->now;
    h->before_at = h->at;
    h->now = p;
    h->at = at;
    h->on = kf_host_product(h, at.step);
    kf_host_drop_partials(h->now);
    kf_buffer_drop(h->packed);
    h->packed = NULL;
    kf_route_recall(h);
    kf_host_forget_input(h);
    h->freivalds.noise = 0;
    h->freivalds.odd = false;
    kf_comparison_forget(h);
}

void kf_host_forget(kf_host *h)
{
    kf_changing *c = &h->changing;

    kf_borrowed_forget(h);
    kf_sketch_forget(h);
    kf_vector_quorum_drop(h);
    h->vector_quorum.merged = 0;
    c->turn = c->changed = 0;
    memset(c->line, 0, h->program.recalls * sizeof *c->line);
    h->opt.seat = h->seat != KOFN_NO_SEAT ? h->seat : h->opt.seat;
    h->seat = KOFN_NO_SEAT;
    h->again = h->outvoted = 0;
    h->odd = false;
    h->blown = (kofn_iterate_id){0, 0};
    h->greeted = 0;
    for (size_t i = 0; i < h->routes; i++) {
        h->route[i].t = 0;
        h->route[i].prints = 0;
        h->route[i].agrees = h->route[i].met = false;
    }
}

void kf_host_fault(const kf_host *h, kofn_fault_place where, uint64_t t,
                   kofn_matrix *numbers)
{
    if (h->opt.fault)
        h->opt.fault(h->opt.fault_ud, where, t, numbers);
}

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
    if (h->program.change && !kf_changing_recalls(h)) {
        kofn_status st = kf_keep_load(h, seat);

        h->seat = st ? h->seat : seat;
        return st == KOFN_AGAIN ? kf_borrowed_make(h, seat) : st;
    }
    h->seat = KOFN_NO_SEAT;
    for (size_t i = 0; i < h->program.operands; i++) {
        kf_mesh_operand *o = &h->operand[i];

        if (!o->plan) /* no product uses it */
            continue;
        kf_block_drop(o->block);
        o->block = NULL;
        TRY(kf_host_encode(o, seat, &o->block));
    }
    if (h->program.change)
        TRY(kf_changing_fresh(h, seat, 0));
    h->seat = seat;
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
    st = kf_host_compute(h, h->on->of->block, h->seat, t->group, stopped, &out);
    if (!st && h->opt.slow)
        linger(h, t->at.step, kf_host_now(h) - began);
    if (h->status)
        st = h->status;
    if (st || !kf_node_wanted(h->node, t)) {
        kf_buffer_drop(out);
        return st == KOFN_AGAIN ? KOFN_OK : st;
    }
    kf_host_fault(h, KOFN_FAULT_IN_PRODUCT, t->at.step, &out->m);
    TRY(kf_host_keep(h, t->group, h->seat, KF_LOCAL, out));
    return done(h, t, false);
}

/* Keeps a copy of the result of a group, in the layout in which it is sent. */
static kofn_status keep_result(kf_host *h, size_t group)
{
    const kf_host_product_data *on = h->on;
    size_t lo, strips = kf_host_strips(on, group, &lo);
    kofn_matrix m = kf_host_partial_shape(on, strips, KOFN_NO_SEAT, NULL);
    kf_buffer *p;

    TRY(kf_buffer_new(&p, m.rows, m.cols, m.dtype));
    kf_data_gather(on->plan, 0, lo, lo + strips, &on->out->m, p->m.data);
    return kf_host_keep(h, group, KOFN_NO_SEAT, KF_LOCAL, p);
}

/* Decodes a group from the partial products that the decision names; all are
 * here.  A result that is not finite is examined before the iterate is made. */
static kofn_status decode(kf_host *h, const kf_node_task *t)
{
    const kofn_decoder *d = t->decoder;
    const kofn_plan *plan = h->on->plan;
    kofn_matrix *out = &h->on->out->m;
    size_t lo, strips = kf_host_strips(h->on, t->group, &lo);
    kf_source *source = kf_new(d->seats, sizeof *source);
    kofn_status st = source ? KOFN_OK : KOFN_NOMEM;
    kf_back back = {.by = 1 / h->on->of->resident.by};

    kf_equilibrate_back(&h->on->of->scaling, &(kf_scaling){NULL, NULL}, plan,
                        &back);
    if (h->on->mixes && !st && !(st = kf_host_input(h)))
        st = kf_mesh_spread_check(h, d);
    if (!st)
        st = kf_host_sources(h, t, source);
    if (!st)
        st = kf_data_decode(plan, d, source, (kf_band){0, lo, lo + strips},
                            &(kf_output){out, &back}, &h->scratch);
    kf_free(source);
    if (st == KOFN_NONFINITE) /* from A itself, or from a faulty node */
        h->freivalds.odd = true;
    else
        TRY(st);
    h->freivalds.noise = fmax(h->freivalds.noise, d->predicted);
    h->noise = fmax(h->noise, d->predicted);
    h->rounding = fmax(h->rounding, d->predicted);
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
    return h->comparison.local ? kf_comparison_appeal(h, t) : KOFN_OK;
}

static kofn_status make_vector(kf_host *h, const kf_node_task *t, bool *final)
{
    if (t->type == KF_NODE_TASK_SOLO)
        TRY(kf_mesh_freivalds_make(h));
    else
        TRY(kf_mesh_freivalds_next(h));
    kf_host_fault(h, KOFN_FAULT_IN_DECODING, t->at.step, &h->on->out->m);
    TRY(h->on->mixes ? kf_host_input(h) : KOFN_OK);
    TRY(kf_mesh_spread_clear(h));
    TRY(h->program.output(h->program.ud, t->at.step + 1, &h->on->out->m,
                          &h->v->m, h->scalar, final));
    kf_host_fault(h, KOFN_FAULT_IN_VECTOR, t->at.step, &h->v->m);
    return KOFN_OK;
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
    digest = kf_host_digest_of_way(h, t->at.step + 1, h->scalar, h->v->m.data,
                                   final);
    if (st || h->freivalds.odd)
        digest.sum = NAN;
    h->odd = digest.exact && !isfinite(digest.sum);
    /* Pieces are handed over with the mark, before any other request. */
    kf_host_advance(h, (kofn_iterate_id){t->at.step + 1, 0});
    TRY(kf_node_step(h->node, &(kf_node_event){.type = KF_NODE_DONE,
                                               .now = kf_host_now(h),
                                               .task = t,
                                               .final = final,
                                               .digest = digest}));
    kf_node_look(h->node, &view);
    h->at = view.at;
    TRY(kf_host_act(h, NULL));
    if (h->odd)
        return kf_vector_quorum_tell(h);
    if (h->program.change)
        TRY(kf_changing_turn(h));
    else if (!final) /* a node with the last one would make one more */
        TRY(kf_keep_turn(h));
    TRY(kf_vector_quorum_tell(h));
    return kf_mesh_freivalds_tell(h);
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
    out->scrubs = h->sketches.done;
    out->drift = h->sketches.drift;
    out->rebuilt = h->changing.rebuilt;
    kf_back_add(h, out);
}

bool kf_host_is_over(const kf_host *h)
{
    return !kf_node_failed(h->node) && kf_node_is_over(h->node);
}

static kofn_status watch(kf_host *h)
{
    kofn_status st = kf_node_failed(h->node);
    kofn_node_view view;

    if (st && kf_node_is_over(h->node) && !kf_back_waits(h))
        return kf_host_say_why(h, st);
    if (h->odd && kf_node_is_agreed(h->node))
        return kf_fail(KOFN_NONFINITE,
                       "iterate %llu is not finite, and no majority disagrees",
                       (unsigned long long)h->at.step);
    if (!h->opt.watch)
        return KOFN_OK;
    kf_host_look(h, &view);
    if (!h->opt.watch(h->opt.watch_ud, &view, h->scalar))
        return KOFN_OK;
    TRY(kf_host_step(
        h, &(kf_node_event){.type = KF_NODE_LEAVE, .now = kf_host_now(h)}));
    return KOFN_AGAIN;
}

kofn_status kf_host_hear(kf_host *h, kofn_time atmost)
{
    kofn_status st = kf_mail_receive(h, atmost);

    return st == KOFN_NONFINITE ? kf_host_doubt(h) : st;
}

static kofn_status hear(kf_host *h)
{
    TRY(look_up(h, 0));
    if (h->changing.unsure && kf_node_is_agreed(h->node))
        h->changing.unsure = false;
    TRY(kf_sketch_settle(h));
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
    return st == KOFN_NONFINITE ? kf_host_doubt(h) : st;
}

/* ---- life ---------------------------------------------------------------- */

/* Returns a digest of data and options, which all nodes must share. */
static uint64_t job_of(const kf_host *h, uint64_t turns)
{
    const kofn_program *p = &h->program;
    uint64_t course[] = {turns, p->after, p->recalls, p->change != NULL,
                         KF_NOTE_VERSION};
    uint64_t d =
        kf_hash(p->digest, h->v->m.data, h->v->m.rows * sizeof(double));

    for (size_t i = 0; i < p->products; i++) {
        const kofn_plan *plan = h->product[i].plan;
        uint64_t few[] = {plan->layout.seed,  h->product[i].groups,
                          h->opt.decoding,    p->product[i].operand,
                          p->product[i].left, p->product[i].read,
                          h->opt.errors};

        d = kf_hash(d, plan->spec, strlen(plan->spec));
        d = kf_hash(d, few, sizeof few);
    }
    d = kf_hash(d, course, sizeof course);
    if (h->opt.keep)
        d = kf_hash(d, &h->opt.every, sizeof h->opt.every);
    return kf_host_operands_digest(h, d);
}

/* Returns the job number that checkpoints must have.  The number of turns is
 * not part of it.  If matrices do not change, a checkpoint is a vector alone,
 * which is the same in every code. */
static uint64_t kept_job_of(const kf_host *h)
{
    uint64_t d =
        kf_hash(h->program.digest, h->v->m.data, h->v->m.rows * sizeof(double));

    return h->program.change ? job_of(h, 0) : kf_host_operands_digest(h, d);
}

size_t kf_host_most_wrong(const kf_host *h)
{
    size_t least = h->opt.nodes;

    for (size_t i = 0; i < h->program.products; i++)
        least = kf_min(least, h->program.product[i].plan->layout.enough);
    return kf_max(1, (h->opt.nodes - least) / 2);
}

/* Returns the default of `confirm`.  If matrices change, no node makes an
 * iterate alone.  So `confirm` is the least that includes an honest node.  With
 * more, some nodes may be ahead, too few to be believed, and the others too few
 * to follow. */
static size_t confirm_of(const kf_host *h)
{
    if (!h->program.change)
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

kofn_status kf_host_random(void *into, size_t bytes)
{
    if (getrandom(into, bytes, 0) != (ssize_t)bytes)
        return kf_fail(KOFN_IO, "the system has no random numbers to give");
    return KOFN_OK;
}

/* as for jobs (src/core/core.c) */
#define TOLERANCE_F32 1e-4

/* Returns the quorum.  If two parts of a divided network both continue, one
 * must later take vector and blocks of the other. */
static size_t quorum_of(const kf_host *h)
{
    const kofn_peer_options *o = &h->opt;

    return o->quorum || !h->program.change ? o->quorum : o->nodes / 2 + 1;
}

kofn_status kf_host_node_new(kf_host *h)
{
    const kofn_peer_options *o = &h->opt;
    kf_node_options n = {.incarnation = o->incarnation,
                         .job = h->job,
                         .nodes = o->nodes,
                         .quorum = quorum_of(h),
                         .confirm = h->confirm,
                         .groups = kf_min(o->nodes, KF_MAX_GROUPS),
                         .decoding = o->decoding,
                         .errors = o->errors,
                         .turns = h->program.turns,
                         .after = h->program.after,
                         .changes = h->program.change != NULL,
                         .wish = o->seat,
                         .tolerance = h->single ? TOLERANCE_F32 : 0,
                         .from = h->at,
                         .beat = o->beat,
                         .silence = o->silence,
                         .hedge = o->hedge,
                         .patience = o->patience,
                         .linger = o->linger,
                         .give_up = o->give_up};

    while (n.incarnation == 0)
        TRY(kf_host_random(&n.incarnation, sizeof n.incarnation));
    h->opt.incarnation = n.incarnation;
    return kf_node_new(&h->node, h->program.product, h->program.products, &n,
                       kf_host_now(h));
}

/* Builds the node: its products, its vector, its checkpoints, its coordinator,
 * and its block if the seat is given. */
static kofn_status make(kf_host *h, const kofn_matrix *v)
{
    kofn_status st;

    TRY(kf_host_products_new(h, v));
    TRY(kf_buffer_new(&h->v, v->rows, 1, KOFN_F64));
    memcpy(h->v->m.data, v->data, v->rows * sizeof(double));
    h->job = kf_hash(job_of(h, h->program.turns), &h->opt.scrub,
                     sizeof h->opt.scrub);
    h->machine = kf_host_machine();
    h->keeping.job = kept_job_of(h);
    h->largest =
        kf_max(h->largest, (v->rows + KOFN_SCALARS + h->program.recalls +
                            kf_mesh_norms_count(h)) *
                               sizeof(double));
    TRY_ZERO(h->now, KF_MAX_GROUPS);
    TRY_ZERO(h->before, KF_MAX_GROUPS);
    h->at = h->before_at = (kofn_iterate_id){0, h->job};
    TRY(kf_back_new(h)); /* before it starts from a checkpoint */
    TRY(kf_keep_open(h));
    TRY(kf_host_node_new(h));
    if (h->opt.seat == KOFN_NO_SEAT)
        return KOFN_OK;
    for (size_t i = 0; i < h->program.products; i++)
        if (h->opt.seat >= h->product[i].plan->layout.max_seats)
            return kf_fail(KOFN_INVAL, "seat %u of %zu", h->opt.seat,
                           h->product[i].plan->layout.max_seats);
    if (h->at.step > 0) /* it looks for its blocks when it is a member */
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
    h->program = *program;
    h->timer = timer;
    h->seat = KOFN_NO_SEAT;
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
    kf_mail_free(h);
    kf_vector_quorum_drop(h);
    kf_comparison_free(h);
    kf_sketch_forget(h);
    kf_back_free(h);
    kf_buffer_drop(h->packed);
    kf_host_forget_input(h);
    kf_messages_free(&h->messages);
    free_partials(h->now);
    free_partials(h->before);
    kf_buffer_drop(h->v);
    kf_pool_free(&h->vectors);
    kf_node_free(h->node);
    kf_keep_close(h);
    kf_host_products_free(h);
    kf_scratch_free(&h->scratch);
    kf_free(h);
}
