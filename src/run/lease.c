/* lease.c -- sends the blocks that are owed to workers, and limits the time to
 * store them.
 *
 * A worker that never stores is evicted like one that never answers
 * (core/times.c).  The limit is the lease, and many times what half of the
 * others took; it is many leases while no such half exists.  Two times do not
 * count: that which the worker waits for the coordinator, and that which a
 * block of its size needs.  The port knows both.
 *
 * Owns the list of workers that wait for a block.  It measures real time,
 * because storing a block is real work. */
#include "job.h"

#include "base/clock.h"

#include <assert.h>

/* ---- sending blocks ------------------------------------------------------ */

static kofn_status add(kf_waiters *w, uint32_t worker, size_t seat)
{
    TRY(kf_grow(&w->worker, &w->cap, w->count, sizeof *w->worker));
    TRY(kf_grow(&w->seat, &w->seat_cap, w->count, sizeof *w->seat));
    w->worker[w->count] = worker;
    w->seat[w->count++] = seat;
    return KOFN_OK;
}

kofn_status kf_lease_owe(kofn_job *j, const kofn_action *a)
{
    return add(&j->lease.owed, a->worker, a->seat);
}

/* Returns the bytes of the numbers in blocks; empty ones are sent without. */
static size_t numbers_of(const kf_block *b)
{
    size_t bytes = 0;

    for (; b; b = b->next)
        bytes += b->empty ? 0 : kf_block_bytes(b) - kf_block_bytes(b->next);
    return bytes;
}

kofn_status kf_lease_send(kofn_job *j, kf_msg m, const kf_waiters *to, size_t n,
                          kf_block **blocks)
{
    kofn_status st = KOFN_OK;

    assert(m.type == KF_MSG_STORE || m.type == KF_MSG_SLICE);
    assert(n <= to->count);
    for (size_t i = 0; i < n; i++) {
        m.worker = to->worker[i];
        m.block = blocks[i];
        if (!st && m.type == KF_MSG_STORE && !kf_block_whole(m.block))
            st = add(&j->lease.rebuilding, m.worker, to->seat[i]);
        if (st) {
            kf_block_drop(m.block);
            continue;
        }
        kf_job_count(j, &(kofn_report){.sent = numbers_of(m.block)});
        if (m.type == KF_MSG_STORE) {
            j->lease.bytes += kf_block_bytes(m.block);
            kf_job_note_now(j,
                            (kofn_note){.own = "storing", .worker = m.worker});
        }
        st = kf_job_send(j, &m);
    }
    return st;
}

/* Encodes the blocks of all operands for the seats that are owed one.  The
 * block of an operand is linked behind that of the operand before it. */
static kofn_status encode_blocks(kofn_job *j, kf_block **blocks)
{
    const kf_waiters *to = &j->lease.owed;
    kf_block **more = kf_new(to->count, sizeof *more);
    kofn_status st = more ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < to->count; i++)
        blocks[i] = NULL;
    for (size_t o = j->operands; !st && o-- > 0;) {
        st = (j->held[o].changes ? kf_data_empty_blocks : kf_data_encode)(
            &j->held[o].resident,
            kf_core_use(j->core, KOFN_USES * (uint32_t)o)->code, to->seat,
            to->count, more);
        for (size_t i = 0; !st && i < to->count; i++) {
            more[i]->next = blocks[i];
            blocks[i] = more[i];
        }
    }
    for (size_t i = 0; st && i < to->count; i++)
        kf_block_drop(blocks[i]);
    kf_free(more);
    return st;
}

kofn_status kf_lease_hand_out(kofn_job *j)
{
    kf_block **blocks = kf_new(j->lease.owed.count, sizeof *blocks);
    kf_stopwatch watch = kf_job_start_work(j, KF_ENCODE);
    kofn_status st = blocks ? encode_blocks(j, blocks) : KOFN_NOMEM;

    assert(j->lease.owed.count > 0);
    kf_job_end_work(j, watch, "encode");
    j->lease.look_at = 0;
    if (!st)
        st = kf_lease_send(j, (kf_msg){.type = KF_MSG_STORE}, &j->lease.owed,
                           j->lease.owed.count, blocks);
    kf_free(blocks);
    j->lease.owed.count = 0;
    return st;
}

/* ---- rebuilding ---------------------------------------------------------- */

size_t kf_lease_forget_gone(kofn_job *j, size_t among)
{
    kf_waiters *w = &j->lease.rebuilding;
    size_t kept = 0, left = 0;

    assert(among <= w->count);
    for (size_t i = 0; i < w->count; i++) {
        if (kf_core_worker(j->core, w->worker[i]) != KOFN_WORKER_STORING)
            continue;
        left += i < among;
        w->worker[kept] = w->worker[i];
        w->seat[kept++] = w->seat[i];
    }
    w->count = kept;
    return left;
}

void kf_lease_rebuilt(kofn_job *j, size_t n)
{
    kf_waiters *w = &j->lease.rebuilding;

    assert(n <= w->count);
    w->count -= n;
    memmove(w->worker, w->worker + n, w->count * sizeof *w->worker);
    memmove(w->seat, w->seat + n, w->count * sizeof *w->seat);
}

/* ---- waiting ------------------------------------------------------------- */

/* Returns how many of the first workers always suffice, whichever they are.  If
 * results are compared, one seat more is needed. */
static size_t enough(const kofn_plan *p, bool compared)
{
    const kofn_layout *L = &p->layout;
    size_t each = p->workers / L->groups;
    size_t seats = kf_ceil_div(L->threshold, L->submessages) + compared;

    return p->workers - (each - kf_min(seats, each));
}

size_t kf_job_enough(const kofn_job *j)
{
    bool compared = j->opt.errors != KOFN_ERRORS_NONE;
    size_t most = 0;

    for (size_t o = 0; o < j->operands; o++) {
        const kofn_plan *p = j->held[o].plan;

        most = kf_max(most, enough(p, compared));
        if (p->left)
            most = kf_max(most, enough(p->left, compared));
    }
    return most;
}

bool kf_job_has_enough(const kofn_job *j)
{
    return kf_core_live(j->core) >= kf_job_enough(j);
}

bool kf_lease_await(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), most = j->opt.lease, left;
    size_t storing = kf_core_storing(j->core);
    bool live = kf_job_has_enough(j);

    storing -= live ? kf_min(storing, j->lease.rebuilding.count) : 0;
    if (j->lease.storing != storing) {
        j->lease.storing = storing;
        j->lease.since = now;
    }
    if (storing == 0 || most == 0 || !live)
        return storing > 0;
    left = j->lease.since + most - now;
    *atmost = *atmost < left ? *atmost : left;
    return left > 0;
}

static bool half(const kofn_job *j)
{
    return kf_core_live(j->core) >= kf_core_storing(j->core);
}

void kf_lease_stored(kofn_job *j, uint32_t worker)
{
    kofn_time took = j->port->storing ? j->port->storing(j->port, worker) : 0;

    if (!half(j) && took > j->lease.pace)
        j->lease.pace = took;
    j->lease.look_at = 0;
}

uint32_t kf_lease_late(kofn_job *j, uint32_t from, kofn_time now)
{
    kf_lease *l = &j->lease;
    kofn_time most = kf_core_lease(j->core, half(j), l->pace);

    assert(j->port->storing);
    if (from == 0 && now < l->look_at)
        return UINT32_MAX;
    if (from == 0)
        l->look_at = KOFN_NEVER;
    for (uint32_t i = from; i < kf_core_known(j->core); i++) {
        kofn_time left;

        if (kf_core_worker(j->core, i) != KOFN_WORKER_STORING)
            continue;
        left = most - j->port->storing(j->port, i);
        if (left <= 0)
            return i;
        if (left < l->look_at - now)
            l->look_at = now + left;
    }
    return UINT32_MAX;
}
