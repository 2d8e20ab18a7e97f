/* rebuild.c -- makes blocks of operands that have changed, for workers that
 * have none.
 *
 * The placed matrix is out of date, so a block is made from the blocks of other
 * workers.  The operand is read as by kofn_fetch, but one window of strips at a
 * time.  Each window is encoded for the waiting seats and sent on.  The whole
 * operand is never in memory here.
 *
 * Updates go to all workers.  So a window may be newer than the rest of a
 * block; later updates change both.  Strips that have not come are overwritten
 * when they do.
 *
 * One window is read before every product that the caller begins.  More are
 * read if more workers wait for blocks than may still be lost.  If no product
 * can begin without these workers, all windows are read.
 *
 * kofn_place_from (feed.c) hands strips over that it has from elsewhere.
 *
 * Owns the window that is being read, and knows for which workers.  It begins
 * one window at a time, and never waits in between. */
#include "job.h"

#include <assert.h>

static void next_operand(const kofn_job *j, kf_window *w)
{
    while (w->operand < j->operands && j->held[w->operand].changes == 0)
        w->operand++;
}

static kofn_status begin_window(kofn_job *j)
{
    kf_rebuild *h = &j->rebuild;

    if (h->among == 0) {
        h->among = j->lease.rebuilding.count;
        h->window.operand = h->window.at = 0;
        next_operand(j, &h->window);
    }
    assert(h->window.operand < j->operands);
    kf_window_next(j, &h->window);
    h->window.state = j->held[h->window.operand].states;
    return kf_window_read(j, &h->window);
}

/* ---- pieces -------------------------------------------------------------- */

/* Encodes the window that was read for the seats being rebuilt, and sends it.
 */
static kofn_status pass_on(kofn_job *j)
{
    kf_rebuild *h = &j->rebuild;
    kf_window *w = &h->window;
    const kf_use *use = kf_core_use(j->core, KOFN_USES * (uint32_t)w->operand);
    kf_block **blocks = kf_new(h->among, sizeof *blocks);
    kf_resident r = {.most = 0};
    kofn_status st =
        blocks ? kf_window_resident(j, w, use->plan, &r) : KOFN_NOMEM;

    assert(h->among > 0);
    assert(h->among <= j->lease.rebuilding.count);
    if (!st)
        st = kf_data_encode(&r, use->code, j->lease.rebuilding.seat, h->among,
                            blocks);
    kf_resident_free(&r);
    if (!st)
        st = kf_lease_send(j,
                           (kf_msg){.type = KF_MSG_SLICE,
                                    .operand = (uint32_t)w->operand,
                                    .state = w->state,
                                    .round = j->start.number,
                                    .lo = w->at,
                                    .hi = w->to},
                           &j->lease.rebuilding, h->among, blocks);
    kf_free(blocks);
    return st;
}

/* Reports to the workers being rebuilt that they have all pieces. */
static kofn_status end_batch(kofn_job *j)
{
    kf_rebuild *h = &j->rebuild;

    for (size_t i = 0; i < h->among; i++) {
        kf_msg m = {.type = KF_MSG_SLICE,
                    .worker = j->lease.rebuilding.worker[i],
                    .round = j->start.number};

        TRY(kf_job_send(j, &m));
    }
    kf_lease_rebuilt(j, h->among);
    h->among = 0;
    return KOFN_OK;
}

static kofn_status end_window(kofn_job *j)
{
    kf_window *w = &j->rebuild.window;

    assert(w->at < w->to);
    w->at = w->to;
    if (w->at < kf_window_strips(j, w))
        return KOFN_OK;
    w->at = 0;
    w->operand++;
    next_operand(j, w);
    return w->operand < j->operands ? KOFN_OK : end_batch(j);
}

/* ---- strips that the caller has ------------------------------------------ */

void kf_rebuild_open(kofn_job *j, size_t operand)
{
    kf_rebuild *h = &j->rebuild;

    assert(!h->window.reading);
    assert(h->among == 0);
    h->among = kf_lease_forget_gone(j, j->lease.rebuilding.count);
    h->window.operand = operand;
    h->window.at = 0;
    h->window.state = 0;
}

kofn_status kf_rebuild_feed(kofn_job *j)
{
    kf_rebuild *h = &j->rebuild;

    h->among = kf_lease_forget_gone(j, h->among);
    if (h->among == 0)
        return KOFN_OK;
    TRY(pass_on(j));
    return end_window(j);
}

/* ---- steps --------------------------------------------------------------- */

static kofn_status lost(const kofn_job *j)
{
    return kf_fail(KOFN_TOOFEW,
                   "operand %zu has changed, and the %zu workers that are "
                   "left do not determine it%s; restart from the matrix that "
                   "was fetched last",
                   j->rebuild.window.operand, kf_core_live(j->core),
                   j->opt.errors ? " beyond doubt" : "");
}

/* Fails if the window could not be read, for example because answers were
 * wrong.  The message says why. */
static kofn_status what_came(const kofn_job *j, const product *p)
{
    assert(p->end.ended != KOFN_AGAIN);
    if (p->end.ended > 0 || p->end.ended == KOFN_TOOFEW)
        return lost(j);
    return p->end.ended ? kf_fail(p->end.ended, "operand %zu: %s",
                                  j->rebuild.window.operand, p->end.why)
                        : KOFN_OK;
}

/* Takes a window that has come: passes it on and begins the next reading. */
static kofn_status take_window(kofn_job *j)
{
    assert(j->rebuild.window.reading);
    kf_rebuild *h = &j->rebuild;
    kf_window *w = &h->window;
    kofn_status st = what_came(j, w->reading);

    kf_window_close(j, w);
    TRY(st);
    h->among = kf_lease_forget_gone(j, h->among);
    if (h->among == 0)
        return KOFN_OK;
    TRY(pass_on(j));
    if (w->state == 0)
        return end_window(j);
    w->state--;
    return kf_window_read(j, w);
}

/* True if a running product waits for workers. */
static bool is_awaited(const kofn_job *j)
{
    for (size_t i = 0; i < j->open.count; i++)
        if (kf_job_is_running(j->open.list[i]) &&
            kf_job_starves(j, j->open.list[i]))
            return true;
    return false;
}

/* Returns the number of windows to read before each product while the live
 * workers are enough.  Blocks have to be made at least as fast as workers with
 * blocks are lost.  So the number grows with the workers that wait, and falls
 * with the live workers to spare. */
static size_t windows(const kofn_job *j)
{
    size_t spare = kf_core_live(j->core) - kf_job_enough(j);

    assert(kf_job_has_enough(j));
    return kf_ceil_div(j->lease.rebuilding.count, spare + 1);
}

/* True if it is time to read a window.  Some are read before each product.  If
 * products wait for rebuilt workers, all are read, but not while other workers
 * store blocks that were made here. */
static bool is_time(const kofn_job *j, const product *next)
{
    const kf_rebuild *h = &j->rebuild;

    if (j->lease.rebuilding.count == 0)
        return false;
    if (kf_job_has_enough(j) && !is_awaited(j))
        return next && (next->number != h->last || h->windows < windows(j));
    return kf_core_storing(j->core) <= j->lease.rebuilding.count;
}

kofn_status kf_rebuild_take(kofn_job *j)
{
    const product *p = j->rebuild.window.reading;

    if (p && p->end.ended != KOFN_AGAIN)
        TRY(take_window(j));
    p = j->rebuild.window.reading;
    return p && kf_job_starves(j, p) &&
                   kf_core_storing(j->core) <= j->lease.rebuilding.count
               ? lost(j) /* no worker with any of it can come */
               : KOFN_OK;
}

kofn_status kf_rebuild_begin(kofn_job *j, const product *next)
{
    kf_rebuild *h = &j->rebuild;

    assert(!h->window.reading);
    h->among = kf_lease_forget_gone(j, h->among);
    if (!is_time(j, next))
        return KOFN_OK;
    if (next && next->number != h->last) {
        h->last = next->number;
        h->windows = 0;
    }
    h->windows++;
    TRY(begin_window(j));
    return kf_rebuild_take(j); /* perhaps no worker is left to answer */
}
