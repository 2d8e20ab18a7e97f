/* heal.c -- blocks of operands that have changed, for those who have none.
 *
 * What is placed is of no use any more: what a seat stores is made of what others
 * hold.  They are read as for kofn_fetch, a window of strips at a time, which is
 * encoded for the seat and sent on; the operand as a whole is never here.
 * Updates go to everybody, so a window is once read of a version that the rest of
 * the block does not have yet, and is changed with it from then on; strips that
 * have not come are written over when they do.
 *
 * Before every product that the caller begins one window is read, and more where
 * more workers wait for blocks than may still be lost; as many as there are where
 * nobody can begin without.
 *
 * Owns the window that is being read, and knows for whom.  It begins one window at
 * a time and never waits in between. */
#include "job.h"

static void next_operand(const kofn_job *j, kf_window *w)
{
    while (w->operand < j->operands && j->held[w->operand].changes == 0)
        w->operand++;
}

static kofn_status begin_window(kofn_job *j)
{
    kf_heal *h = &j->heal;

    if (h->among == 0) {
        h->among = j->lease.healing.count;
        h->window.operand = h->window.at = 0;
        next_operand(j, &h->window);
    }
    kf_window_next(j, &h->window);
    h->window.velocity = j->held[h->window.operand].moves;
    return kf_window_read(j, &h->window);
}

/* ---- pieces -------------------------------------------------------------- */

/* Encodes the window that was read for the seats being healed, and sends it. */
static kofn_status pass_on(kofn_job *j)
{
    kf_heal *h = &j->heal;
    kf_window *w = &h->window;
    const kf_use *use = kf_core_use(j->core, KOFN_USES * (uint32_t)w->operand);
    kf_block **blocks = kf_new(h->among, sizeof *blocks);
    kf_resident r = {.most = 0};
    kofn_status st =
        blocks ? kf_window_resident(j, w, use->plan, &r) : KOFN_NOMEM;

    if (!st)
        st = kf_data_encode(&r, use->code, j->lease.healing.seat, h->among,
                            blocks);
    kf_resident_free(&r);
    if (!st)
        st = kf_lease_send(j,
                           (kf_msg){.type = KF_MSG_PIECE,
                                    .operand = (uint32_t)w->operand,
                                    .velocity = w->velocity,
                                    .round = j->start.number,
                                    .lo = w->at,
                                    .hi = w->to},
                           &j->lease.healing, h->among, blocks);
    kf_free(blocks);
    return st;
}

/* Tells the workers of the batch that they have all pieces. */
static kofn_status end_batch(kofn_job *j)
{
    kf_heal *h = &j->heal;

    for (size_t i = 0; i < h->among; i++) {
        kf_msg m = {.type = KF_MSG_PIECE,
                    .worker = j->lease.healing.worker[i],
                    .round = j->start.number};

        TRY(j->port->send(j->port, &m));
    }
    kf_lease_healed(j, h->among);
    h->among = 0;
    return KOFN_OK;
}

static kofn_status end_window(kofn_job *j)
{
    kf_window *w = &j->heal.window;

    w->at = w->to;
    if (w->at < kf_window_strips(j, w))
        return KOFN_OK;
    w->at = 0;
    w->operand++;
    next_operand(j, w);
    return w->operand < j->operands ? KOFN_OK : end_batch(j);
}

/* ---- from one thing to the next ------------------------------------------ */

static kofn_status lost(const kofn_job *j)
{
    return kf_fail(KOFN_TOOFEW,
                   "operand %zu has changed since it was placed, and the %zu "
                   "workers that are left do not determine what it is%s; begin "
                   "again with what was fetched last",
                   j->heal.window.operand, kf_core_live(j->core),
                   j->opt.errors ? " beyond doubt" : "");
}

/* Answers may also be wrong, of whom is then said. */
static kofn_status what_came(const kofn_job *j, const product *p)
{
    if (p->ended > 0 || p->ended == KOFN_TOOFEW)
        return lost(j);
    return p->ended ? kf_fail(p->ended, "operand %zu: %s",
                              j->heal.window.operand, p->why)
                    : KOFN_OK;
}

/* A window has come. */
static kofn_status take_window(kofn_job *j)
{
    kf_heal *h = &j->heal;
    kf_window *w = &h->window;
    kofn_status st = what_came(j, w->reading);

    kf_window_close(j, w);
    TRY(st);
    h->among = kf_lease_forget_gone(j, h->among);
    if (h->among == 0)
        return KOFN_OK;
    TRY(pass_on(j));
    if (!w->velocity)
        return end_window(j);
    w->velocity = false;
    return kf_window_read(j, w);
}

/* Is one that is with the workers waiting for blocks? */
static bool is_awaited(const kofn_job *j)
{
    for (size_t i = 0; i < j->open.count; i++)
        if (kf_job_is_running(j->open.list[i]) &&
            kf_job_starves(j, j->open.list[i]))
            return true;
    return false;
}

/* Windows before each product while the live workers are enough.  Blocks have to
 * be made at least as fast as holders of them are lost: the fewer may still be lost
 * and the more have none, the more windows. */
static size_t windows(const kofn_job *j)
{
    size_t spare = kf_core_live(j->core) - kf_job_enough(j);

    return kf_ceil_div(j->lease.healing.count, spare + 1);
}

/* True if it is time to read a window: some before each product, or all of them
 * where products wait for it, except for workers on the way with a block that
 * was made here. */
static bool is_time(const kofn_job *j, const product *next)
{
    const kf_heal *h = &j->heal;

    if (j->lease.healing.count == 0)
        return false;
    if (kf_job_has_enough(j) && !is_awaited(j))
        return next && (next->number != h->last || h->windows < windows(j));
    return kf_core_storing(j->core) <= j->lease.healing.count;
}

kofn_status kf_heal_take(kofn_job *j)
{
    const product *p = j->heal.window.reading;

    if (p && p->ended != KOFN_AGAIN)
        TRY(take_window(j));
    p = j->heal.window.reading;
    return p && kf_job_starves(j, p) &&
                   kf_core_storing(j->core) <= j->lease.healing.count
               ? lost(j) /* nobody can come who holds any of it */
               : KOFN_OK;
}

kofn_status kf_heal_begin(kofn_job *j, const product *next)
{
    kf_heal *h = &j->heal;

    h->among = kf_lease_forget_gone(j, h->among);
    if (!is_time(j, next))
        return KOFN_OK;
    if (next && next->number != h->last) {
        h->last = next->number;
        h->windows = 0;
    }
    h->windows++;
    TRY(begin_window(j));
    return kf_heal_take(j); /* nobody may be left who could answer */
}
