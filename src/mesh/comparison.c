/* comparison.c -- compares the partial products of a group and finds the wrong
 * ones.
 *
 * The weights are known only to this node (src/verify/compare.c,
 * docs/errors.md). A node that is wrong in more iterates than chance explains,
 * compared with the others, is excluded, as a worker is (src/base/blame.h).  A
 * node that finds its own partial product wrong makes it again.  If the partial
 * product is the same, its block is wrong; if matrices change, it needs another
 * block.
 *
 * Owns the weights and scales of this iterate.  Findings concern this node
 * alone: it reports them to its coordinator, and not to other nodes. */
#include "host.h"

#include "base/entropy.h"

#include <assert.h>

void kf_comparison_free(kf_mesh_work *work)
{
    kf_free(work->comparison.bad);
}

/* ---- a verdict ----------------------------------------------------------- */

/* Draws the weights of one comparison. */
static kofn_status draw_weights(kf_mesh_work *work, kf_compare *c)
{
    TRY(kf_entropy_number(&work->comparison.secret));
    c->secret = work->comparison.secret;
    c->number = work->comparison.number++;
    return KOFN_OK;
}

kofn_status kf_comparison_sides(kf_host *h, kf_sides **out)
{
    kf_sides *s = *out = &h->work.comparison.sides;

    TRY(kf_host_input(h));
    s->resident = &h->work.on->of->resident;
    s->norms = &h->work.on->of->norms;
    s->messages = &h->work.messages;
    s->whole = &h->work.lowered->m;
    return KOFN_OK;
}

/* ---- faulty senders ------------------------------------------------------ */

/* Records that the peer sent something wrong. */
static void strike(kf_host *h, kofn_peer peer, uint32_t seat)
{
    kf_route *r = peer == KF_LOCAL ? NULL : kf_route_of(&h->net, peer);

    h->work.comparison.local |= peer == KF_LOCAL;
    if (!r)
        return;
    r->errs = true;
    r->wrong_seat = seat;
}

void kf_comparison_strike_all(kf_host *h, const kf_reading *r,
                              const kf_found *found)
{
    for (size_t i = 0; i < kf_found_located(found); i++)
        strike(h, r->block[found->bad[i]].from, r->seat[found->bad[i]]);
}

kofn_status kf_comparison_read(kf_host *h, const kf_mesh_operand *o,
                               kf_reading *r, size_t state, kf_found *found)
{
    r->check.row = kf_norms_state(&o->norms, state, 0);
    r->errors = h->opt.errors;
    r->hidden = kf_mesh_hidden(r->plan);
    r->check.changes = h->blocks.changing.turn;
    TRY(draw_weights(&h->work, &r->check));
    return kf_reading_judge(r, state, found);
}

void kf_comparison_outvoted(kf_host *h, kofn_incarnation who,
                            uint64_t principal)
{
    for (size_t i = 0; i < h->net.routes; i++) {
        kf_route *r = &h->net.route[i];

        if (r->incarnation != who || r->principal != principal || r->over)
            continue;
        r->errs = true;
        r->wrong_seat = kf_node_seat_of(h->node, who);
    }
}

static void tell_who(const kf_host *h, const kf_route *r, bool excluded)
{
    kofn_transport *t = h->t;
    const char *name = t->name_of        ? t->name_of(t, r->peer)
                       : t->principal_of ? t->principal_of(t, r->peer)
                                         : NULL;

    if (h->opt.erred)
        h->opt.erred(h->opt.erred_ud, r->wrong_seat, name ? name : "",
                     excluded);
}

/* Counts the iterate of this peer.  Returns true if the peer must be
 * excluded. */
static bool judge_route(kf_host *h, kf_route *r)
{
    bool wrong = r->errs, excluded;

    if (!r->errs && !r->right)
        return false;
    r->errs = r->right = false;
    if (kf_blame_suffices(&r->blame, h->opt.quarantine))
        return false; /* it was reported before */
    kf_blame_note(&r->blame, &h->work.comparison.blame, wrong);
    excluded = kf_blame_suffices(&r->blame, h->opt.quarantine);
    if (wrong)
        tell_who(h, r, excluded);
    if (excluded)
        kf_blame_leave(&r->blame, &h->work.comparison.blame);
    return excluded;
}

void kf_comparison_advance(kf_host *h)
{
    for (size_t i = 0; i < h->net.routes; i++)
        if (judge_route(h, &h->net.route[i]))
            kf_route_accuse(&h->net, h->net.route[i].peer);
}

void kf_comparison_void(kf_connections *net)
{
    for (size_t i = 0; i < net->routes; i++)
        net->route[i].errs = net->route[i].right = false;
}

/* Records whether the partial product of the i-th seat is right, certainly
 * wrong, or neither. */
static void judge_partial(kf_host *h, const kf_found *found, uint32_t i,
                          const kf_partial *p)
{
    kofn_peer from = p->from;
    kf_route *r = from == KF_LOCAL ? NULL : kf_route_of(&h->net, from);
    size_t k = 0;

    while (k < found->count && found->bad[k] != i)
        k++;
    if (k < kf_found_located(found))
        strike(h, from, p->seat);
    else if (found->status == KOFN_OK && k == found->count && r)
        r->right = true;
}

static void judge_all(kf_host *h, const kf_node_task *t, const kf_found *found)
{
    const kf_partials *p = &h->pieces.now[t->group];

    assert(t->group < h->work.on->groups);
    for (uint32_t i = 0; i < t->decoder->seats; i++)
        for (size_t k = 0; k < p->count; k++)
            if (p->partial[k].seat == t->decoder->seat[i])
                judge_partial(h, found, i, &p->partial[k]);
}

/* Compares the partial products of a group, by weights that only this node
 * knows. */
static kofn_status judge(kf_host *h, const kf_node_task *t, kf_source *source,
                         kf_found *found)
{
    const kf_host_product_data *on = h->work.on;
    kf_compare c = {.plan = on->plan,
                    .code = on->code,
                    .decoder = t->decoder,
                    .source = source,
                    .most = t->verdicts.most,
                    .liars = t->verdicts.liars,
                    .independent = t->verdicts.independent,
                    .changes = h->blocks.changing.turn};
    kf_sides *sides;

    TRY(kf_host_sources(h, t, source));
    c.hi = kf_host_strips(on, t->group, &c.lo);
    c.hi += c.lo;
    TRY(kf_comparison_sides(h, &sides));
    TRY(draw_weights(&h->work, &c));
    TRY(kf_verify_results(&c, sides, kf_node_cache(h->node),
                          kf_mesh_hidden(c.plan), t->last, found));
    if (found->status == KOFN_OK) /* hidden errors differ like rounding */
        h->it.noise = fmax(h->it.noise, found->floor);
    return KOFN_OK;
}

kofn_status kf_comparison_check(kf_host *h, const kf_node_task *t,
                                kf_node_event *ev)
{
    size_t n = t->decoder->seats;
    kf_source *source = kf_new(n, sizeof *source);
    kf_found found = {.count = 0};
    kofn_status st = KOFN_NOMEM;

    assert(t->type == KF_NODE_TASK_CHECK);
    if (source)
        st = kf_reach(&h->work.comparison.bad, &h->work.comparison.cap, n,
                      sizeof *h->work.comparison.bad);
    found.bad = h->work.comparison.bad;
    if (!st)
        st = judge(h, t, source, &found);
    kf_free(source);
    TRY(st);
    h->work.comparison.local = false;
    if (found.status == KOFN_OK || found.status == KOFN_CORRUPT)
        judge_all(h, t, &found);
    assert(found.count <= n);
    ev->verdict = found.status;
    ev->bad = found.bad;
    ev->bad_count = found.count;
    ev->doubted = found.doubted;
    return KOFN_OK;
}

kofn_status kf_comparison_appeal(kf_host *h, const kf_node_task *t)
{
    const kf_buffer *was =
        kf_host_partial(&h->pieces.now[t->group], h->blocks.seat);
    kf_buffer *again;
    bool same;

    assert(t->group < h->work.on->groups);
    h->work.comparison.local = false;
    if (!h->blocks.changes || h->blocks.seat == KOFN_NO_SEAT || !was)
        return KOFN_OK;
    TRY(kf_host_compute(h, h->work.on->of->block, h->blocks.seat, t->group,
                        NULL, &again));
    same = memcmp(was->m.data, again->m.data, kf_buffer_bytes(again)) == 0;
    kf_buffer_drop(again);
    if (!same) /* an error that occurred once */
        return KOFN_OK;
    kf_changing_wrong(h);
    return KOFN_OK;
}
