/* host.c -- a node of a mesh with its data: does the work that its
 * coordinator names, and lives until everybody has the result.
 *
 * One thread.  While it computes it looks at what has come whenever it looks
 * up from its work, so that a node is never silent and never stays at what
 * nobody needs any more.
 */
#include "host.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

kofn_status kf_host_step(kf_host *h, const kofn_node_event *ev)
{
    kofn_node_action a;

    TRY(kofn_node_step(h->node, ev));
    while (kofn_node_next(h->node, &a))
        if (a.type == KOFN_NODE_SEND)
            TRY(kf_mail_send(h, a.to, &a.note));
    return KOFN_OK;
}

/* ---- pieces -------------------------------------------------------------- */

size_t kf_host_strips(const kf_host *h, size_t group, size_t *lo)
{
    size_t span = h->plan->span, each = span / h->groups;
    size_t more = span % h->groups; /* the first ones have one more */

    *lo = group * each + kf_min(group, more);
    return each + (group < more);
}

kofn_parcel *kf_host_piece(const kf_pieces *p, uint32_t seat)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->piece[i].seat == seat)
            return p->piece[i].data;
    return NULL;
}

/* Takes the parcel. */
kofn_status kf_host_keep(kf_host *h, size_t group, uint32_t seat,
                         kofn_peer from, kofn_parcel *data)
{
    kf_pieces *p = &h->now[group];
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < p->count; i++)
        if (p->piece[i].seat == seat) {
            kofn_parcel_drop(p->piece[i].data);
            p->piece[i] = (kf_piece){seat, from, data};
            return KOFN_OK;
        }
    st = kf_grow(&p->piece, &p->cap, p->count, sizeof *p->piece);
    if (st) {
        kofn_parcel_drop(data);
        return st;
    }
    p->piece[p->count++] = (kf_piece){seat, from, data};
    return KOFN_OK;
}

static void drop_pieces(kf_host *h, kf_pieces *p)
{
    for (size_t g = 0; p && g < h->groups; g++) {
        for (size_t i = 0; i < p[g].count; i++)
            kofn_parcel_drop(p[g].piece[i].data);
        p[g].count = 0;
    }
}

void kf_host_advance(kf_host *h, kofn_mark at)
{
    kf_pieces *p = h->before;

    h->before = h->now;
    h->before_at = h->at;
    h->now = p;
    h->at = at;
    drop_pieces(h, h->now);
    kofn_parcel_drop(h->packed);
    h->packed = NULL;
    h->audit.noise = 0;
    h->audit.odd = false;
}

/* ---- tasks --------------------------------------------------------------- */

static kofn_status done(kf_host *h, const kofn_task *t, bool final)
{
    return kf_host_step(h, &(kofn_node_event){.type = KOFN_NODE_DONE,
                                              .now = h->clock(h->clock_ud),
                                              .task = t,
                                              .final = final});
}

static kofn_status tick(kf_host *h)
{
    kofn_time now = h->clock(h->clock_ud);

    if (now < kofn_node_alarm(h->node))
        return KOFN_OK;
    TRY(kf_mail_greet(h));
    return kf_host_step(h,
                        &(kofn_node_event){.type = KOFN_NODE_TICK, .now = now});
}

static kofn_status look_up(kf_host *h, kofn_time atmost)
{
    TRY(kf_mail_hear(h, atmost));
    return tick(h);
}

static bool stopped(void *ud)
{
    kf_host *h = ud;

    if (!h->status)
        h->status = look_up(h, 0);
    return h->status || !kofn_node_wanted(h->node, &h->task);
}

static kofn_status encode(kf_host *h, uint32_t seat)
{
    size_t which = seat;

    kofn_block_drop(h->block);
    h->block = NULL;
    TRY(kf_data_encode(&h->resident, h->code, &which, 1, &h->block));
    h->seat = seat;
    return KOFN_OK;
}

static kofn_status compute(kf_host *h, const kofn_task *t)
{
    size_t lo, strips = kf_host_strips(h, t->group, &lo);
    kofn_parcel *out, *v = kofn_parcel_keep(h->v); /* it may be replaced */
    kofn_status st = kf_parcel_new(&out, strips * h->block->lanes, 1, KOFN_F64);

    h->status = KOFN_OK;
    if (!st)
        st =
            kofn_compute(h->block, &v->m, lo, lo + strips, &out->m, stopped, h);
    kofn_parcel_drop(v);
    if (h->status)
        st = h->status;
    if (st || !kofn_node_wanted(h->node, t)) {
        kofn_parcel_drop(out);
        return st == KOFN_AGAIN ? KOFN_OK : st;
    }
    TRY(kf_host_keep(h, t->group, h->seat, KF_OURS, out));
    return done(h, t, false);
}

/* The result as it is sent: the wants' strips one below the other. */
static kofn_status keep_result(kf_host *h, size_t group)
{
    size_t lo, strips = kf_host_strips(h, group, &lo), rows = h->v->m.rows;
    const double *from = h->next->m.data;
    size_t wants = h->plan->layout.wants;
    kofn_parcel *p;
    double *to;

    TRY(kf_parcel_new(&p, wants * strips, 1, KOFN_F64));
    to = p->m.data;
    memset(to, 0, wants * strips * sizeof *to);
    for (size_t w = 0; w < wants; w++) {
        size_t row = w * h->plan->span + lo;

        if (row < rows)
            memcpy(to + w * strips, from + row,
                   kf_min(strips, rows - row) * sizeof *to);
    }
    return kf_host_keep(h, group, KOFN_NO_SEAT, KF_OURS, p);
}

static kofn_status decode(kf_host *h, const kofn_task *t)
{
    const kf_decoder *d = t->decoder;
    size_t lo, strips = kf_host_strips(h, t->group, &lo);
    kf_source *source = kf_new(d->seats, sizeof *source);
    kofn_status st = source ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < d->seats && !st; i++) {
        kofn_parcel *p = kf_host_piece(&h->now[t->group], d->seat[i]);

        source[i] = (kf_source){p ? &p->m : NULL, lo, lo + strips};
        if (!p)
            st = kf_fail(KOFN_STATE,
                         "the piece of seat %u, group %u, is not "
                         "here",
                         d->seat[i], t->group);
    }
    if (!st)
        st = kf_decode(h->plan, d, source, 0, lo, lo + strips, &h->next->m,
                       &h->scratch);
    if (!st)
        st = kf_data_restore(h->plan, d, 0, lo, lo + strips, 1 / h->resident.by,
                             &h->next->m);
    kf_free(source);
    if (st == KOFN_NONFINITE) /* from A itself, or by a liar? */
        h->audit.odd = true;
    else
        TRY(st);
    h->audit.noise = fmax(h->audit.noise, d->predicted);
    if (h->opt.decoding == KOFN_DECODE_DISTRIBUTED)
        TRY(keep_result(h, t->group));
    return done(h, t, false);
}

static kofn_status update(kf_host *h, const kofn_task *t)
{
    kofn_node_view view;
    bool final = false;

    if (t->type == KOFN_TASK_ALONE)
        TRY(kf_audit_make(h));
    else
        TRY(kf_audit_next(h));
    TRY(h->it.update(h->it.ud, t->at.t + 1, h->v->m.rows, h->v->m.data,
                     h->next->m.data, h->scalar, &final));
    /* Pieces are handed over with the mark, before anything is asked for. */
    kf_host_advance(h, (kofn_mark){t->at.t + 1, 0});
    TRY(kofn_node_step(h->node, &(kofn_node_event){.type = KOFN_NODE_DONE,
                                                   .now = h->clock(h->clock_ud),
                                                   .task = t,
                                                   .final = final}));
    kofn_node_look(h->node, &view);
    h->at = view.at;
    for (kofn_node_action a; kofn_node_next(h->node, &a);)
        TRY(kf_mail_send(h, a.to, &a.note));
    TRY(kf_claim_tell(h));
    return kf_audit_tell(h);
}

static kofn_status work(kf_host *h, bool *worked)
{
    kofn_task *t = &h->task;

    kofn_node_work(h->node, t);
    *worked = t->type != KOFN_TASK_NONE;
    switch (t->type) {
    case KOFN_TASK_ENCODE:
        TRY(encode(h, t->seat));
        return done(h, t, false);
    case KOFN_TASK_COMPUTE:
        return compute(h, t);
    case KOFN_TASK_DECODE:
        return decode(h, t);
    case KOFN_TASK_UPDATE:
    case KOFN_TASK_ALONE:
        return update(h, t);
    case KOFN_TASK_NONE:
        break;
    }
    return KOFN_OK;
}

static kofn_status watch(kf_host *h)
{
    kofn_node_view view;

    if (!h->opt.watch)
        return KOFN_OK;
    kofn_node_look(h->node, &view);
    if (!h->opt.watch(h->opt.watch_ud, &view, h->scalar))
        return KOFN_OK;
    TRY(kf_host_step(h, &(kofn_node_event){.type = KOFN_NODE_LEAVE,
                                           .now = h->clock(h->clock_ud)}));
    return KOFN_AGAIN;
}

kofn_status kf_host_pass(kf_host *h, bool *worked)
{
    kofn_status st;

    *worked = false;
    TRY(look_up(h, 0));
    st = watch(h);
    return st ? st : work(h, worked);
}

/* ---- life ---------------------------------------------------------------- */

/* What must be the same on all nodes. */
static uint64_t job_of(const kf_host *h, const kofn_matrix *dense,
                       const kofn_sparse *sparse, const kofn_matrix *v)
{
    uint64_t few[4] = {h->plan->layout.seed, h->groups, h->opt.decoding,
                       h->it.digest};
    uint64_t d = kf_mesh_digest(0, h->plan->spec, strlen(h->plan->spec));

    d = kf_mesh_digest(d, few, sizeof few);
    d = kf_mesh_digest(d, v->data, v->rows * sizeof(double));
    for (size_t i = 0; dense && i < dense->rows; i++)
        d = kf_mesh_digest(d, kf_at(dense, i, 0), dense->cols * sizeof(double));
    if (!sparse)
        return d;
    d = kf_mesh_digest(d, sparse->ptr,
                       (sparse->rows + 1) * sizeof *sparse->ptr);
    d = kf_mesh_digest(d, sparse->col,
                       sparse->ptr[sparse->rows] * sizeof *sparse->col);
    return kf_mesh_digest(d, sparse->val,
                          sparse->ptr[sparse->rows] * sizeof *sparse->val);
}

static kofn_status check(const kofn_plan *plan, const kofn_matrix *v,
                         const kofn_matrix *dense, const kofn_sparse *sparse)
{
    size_t rows = plan->layout.problem.m;

    if (!v || !v->data || v->rows != rows || v->cols != 1 || v->ld != 1 ||
        v->dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE,
                       "the vector of a mesh must be %zu x 1, "
                       "contiguous, float64",
                       rows);
    TRY(kf_mat_check_finite(v, "the vector"));
    if (!dense == !sparse)
        return kf_fail(KOFN_INVAL,
                       "a mesh iterates one matrix, dense or "
                       "sparse; %s given",
                       dense ? "both are" : "none is");
    if (!plan->layout.problem.sparse != !sparse)
        return kf_fail(KOFN_INVAL, "the plan is for a %s matrix",
                       sparse ? "dense" : "sparse");
    if ((dense ? dense->rows : sparse->rows) != rows ||
        (dense ? dense->cols : sparse->cols) != rows)
        return kf_fail(KOFN_SHAPE,
                       "the matrix is %zu x %zu, the plan's %zu x "
                       "%zu",
                       dense ? dense->rows : sparse->rows,
                       dense ? dense->cols : sparse->cols, rows, rows);
    return dense ? kf_mat_check_matrix(dense, "the matrix")
                 : kf_mat_check_sparse(sparse, "the matrix");
}

static void settle(kf_host *h, const kofn_peer_options *opt)
{
    kofn_peer_options *o = &h->opt;

    *o = (kofn_peer_options){.size = sizeof *o, .seat = KOFN_NO_SEAT};
    if (opt)
        memcpy(o, opt, kf_min(opt->size, sizeof *o));
    if (o->nodes == 0)
        o->nodes = h->plan->workers;
    if (o->decoding == KOFN_DECODE_AUTO)
        o->decoding = kofn_decoding_for(h->plan, o->nodes, 0, 0, 0);
    h->groups = kofn_node_groups(h->plan, o->nodes);
    h->confirm = o->confirm ? o->confirm : kofn_node_confirm(o->nodes);
}

kofn_status kf_host_random(void *into, size_t bytes)
{
    if (getrandom(into, bytes, 0) != (ssize_t)bytes)
        return kf_fail(KOFN_IO, "the system has no random numbers to give");
    return KOFN_OK;
}

static kofn_status make_node(kf_host *h)
{
    const kofn_peer_options *o = &h->opt;
    kofn_node_options n = {.incarnation = o->incarnation,
                           .job = h->job,
                           .nodes = o->nodes,
                           .quorum = o->quorum,
                           .confirm = h->confirm,
                           .groups = h->groups,
                           .decoding = o->decoding,
                           .wish = o->seat,
                           .beat = o->beat,
                           .silence = o->silence,
                           .hedge = o->hedge,
                           .patience = o->patience,
                           .linger = o->linger,
                           .give_up = o->give_up};

    while (n.incarnation == 0)
        TRY(kf_host_random(&n.incarnation, sizeof n.incarnation));
    h->opt.incarnation = n.incarnation;
    return kofn_node_new(&h->node, h->plan, &n, h->clock(h->clock_ud));
}

static kofn_status make(kf_host *h, const kofn_matrix *dense,
                        const kofn_sparse *sparse, const kofn_matrix *v)
{
    size_t rows = v->rows;

    TRY(dense ? kf_resident_dense(&h->resident, h->plan, dense)
              : kf_resident_sparse(&h->resident, h->plan, sparse));
    if (dense) /* with room for sums of a row: the vector is as it is */
        TRY(kf_mat_check_range(dense, "the matrix", &h->resident.most));
    if (dense)
        h->resident.by =
            kf_range_resident(h->resident.most, (double)rows, KOFN_F64);
    TRY(kf_code_new(&h->code, h->plan));
    TRY(kf_parcel_new(&h->v, rows, 1, KOFN_F64));
    memcpy(h->v->m.data, v->data, rows * sizeof(double));
    TRY(kf_parcel_new(&h->next, rows, 1, KOFN_F64));
    h->now = kf_zero(h->groups, sizeof *h->now);
    h->before = kf_zero(h->groups, sizeof *h->before);
    if (!h->now || !h->before)
        return KOFN_NOMEM;
    h->at = h->before_at = (kofn_mark){0, h->job};
    TRY(kf_audit_new(h, dense, sparse));
    TRY(make_node(h));
    if (h->opt.seat == KOFN_NO_SEAT)
        return KOFN_OK;
    if (h->opt.seat >= h->plan->layout.max_seats)
        return kf_fail(KOFN_INVAL, "seat %u of %zu", h->opt.seat,
                       h->plan->layout.max_seats);
    TRY(encode(h, h->opt.seat));
    return done(h, &(kofn_task){.type = KOFN_TASK_ENCODE, .seat = h->opt.seat},
                false);
}

kofn_status kf_host_new(kf_host **out, kofn_transport *t, const kofn_plan *plan,
                        const kofn_matrix *dense, const kofn_sparse *sparse,
                        const kofn_iteration *it, const kofn_peer_options *opt,
                        const kofn_matrix *v, kofn_time (*clock)(void *),
                        void *clock_ud)
{
    kf_host *h;
    kofn_status st;

    *out = NULL;
    TRY(check(plan, v, dense, sparse));
    h = kf_zero(1, sizeof *h);
    if (!h)
        return KOFN_NOMEM;
    h->t = t;
    h->plan = plan;
    h->it = *it;
    h->clock = clock;
    h->clock_ud = clock_ud;
    h->seat = KOFN_NO_SEAT;
    settle(h, opt);
    h->job = job_of(h, dense, sparse, v);
    st = make(h, dense, sparse, v);
    if (st) {
        kf_host_free(h);
        return st;
    }
    /* The largest body there is. */
    t->body_max =
        kf_max(t->body_max, (v->rows + KOFN_SCALARS + 4096) * sizeof(double));
    *out = h;
    return KOFN_OK;
}

void kf_host_free(kf_host *h)
{
    if (!h)
        return;
    kf_mail_free(h);
    kf_claim_drop(h);
    kf_audit_free(&h->audit);
    kofn_parcel_drop(h->packed);
    drop_pieces(h, h->now);
    drop_pieces(h, h->before);
    for (size_t g = 0; g < h->groups; g++) {
        if (h->now)
            kf_free(h->now[g].piece);
        if (h->before)
            kf_free(h->before[g].piece);
    }
    kf_free(h->now);
    kf_free(h->before);
    kofn_parcel_drop(h->v);
    kofn_parcel_drop(h->next);
    kofn_block_drop(h->block);
    kofn_node_free(h->node);
    kf_code_free(h->code);
    kf_resident_free(&h->resident);
    kf_scratch_free(&h->scratch);
    kf_free(h);
}

static kofn_time wall_clock(void *ud)
{
    (void)ud;
    return kf_clock();
}

#define WAY_MAY_BE_FREE (KOFN_SECOND / 1000)

static kofn_status live(kf_host *h)
{
    for (;;) {
        kofn_node_view view;
        bool worked;
        kofn_status st = kf_host_pass(h, &worked);
        kofn_time atmost;

        if (st)
            return st;
        kofn_node_look(h->node, &view);
        if (view.over)
            return KOFN_OK;
        atmost = kofn_node_alarm(h->node) - wall_clock(NULL);
        if (h->waits && atmost > WAY_MAY_BE_FREE)
            atmost = WAY_MAY_BE_FREE;
        if (!worked && atmost > 0)
            TRY(kf_mail_hear(h, atmost));
    }
}

kofn_status kofn_peer_run(kofn_transport *t, const kofn_plan *plan,
                          const kofn_matrix *dense, const kofn_sparse *sparse,
                          const kofn_iteration *it,
                          const kofn_peer_options *opt, kofn_matrix *v,
                          double scalar[KOFN_SCALARS], kofn_node_view *end)
{
    kf_host *h;
    kofn_status st;

    if (end)
        *end = (kofn_node_view){.seat = KOFN_NO_SEAT};
    if (scalar)
        memset(scalar, 0, KOFN_SCALARS * sizeof *scalar);
    TRY(kf_host_new(&h, t, plan, dense, sparse, it, opt, v, wall_clock, NULL));
    st = live(h);
    if (scalar)
        memcpy(scalar, h->scalar, sizeof h->scalar);
    if (end)
        kofn_node_look(h->node, end);
    if (st == KOFN_OK)
        memcpy(v->data, h->v->m.data, v->rows * sizeof(double));
    kf_host_free(h);
    return st;
}
