/* loop.c -- one loop over any port: a message becomes an event, the event a
 * step of the core, the step actions.  The core decides on numbers.  This room
 * alone handles matrices.
 *
 * Owns a message of the port until it is handed on or dropped.  Only this file
 * waits for a port. */
#include "job.h"

#include "base/clock.h"

#include <assert.h>

/* ---- one pass of the loop ------------------------------------------------ */

static kofn_status one_step(kofn_job *j, kofn_event *ev)
{
    kf_loop *l = &j->loop;
    size_t n = 0;

    ev->now = kf_job_now(j);
    if (j->journal)
        kf_journal_event(
            j->journal, ev,
            ev->type == KOFN_EV_JOINED ? kofn_job_name(j, ev->worker) : "");
    TRY(kf_task_outcomes_event(&j->outcomes, ev));
    TRY(kofn_core_step(j->core, ev));
    do
        TRY(kf_grow(&l->todo, &l->todo_cap, n, sizeof *l->todo));
    while (kofn_core_next(j->core, &l->todo[n]) && ++n);
    for (size_t i = 0; i < n; i++) {
        if (j->journal)
            kf_journal_action(j->journal, &l->todo[i]);
        TRY(kf_task_outcomes_action(&j->outcomes, &l->todo[i]));
    }
    if (j->journal)
        kf_journal_step(j->journal);
    TRY(kf_job_encode_inputs(j, l->todo, n));
    for (size_t i = 0; i < n; i++)
        TRY(kf_job_act(j, &l->todo[i]));
    return j->journal ? kf_journal_check(j->journal) : KOFN_OK;
}

/* True once all expected workers have come, until the first blocks are sent. */
static bool owes_blocks(const kofn_job *j)
{
    return j->lease.owed.count > 0 && kf_job_all_came(j);
}

/* Sends the first blocks together, once all expected workers have come. */
static kofn_status hand_out(kofn_job *j)
{
    return owes_blocks(j) ? kf_lease_hand_out(j) : KOFN_OK;
}

/* Makes a step, and the steps for the verdicts of its checks. */
kofn_status kf_job_step(kofn_job *j, kofn_event *ev)
{
    TRY(one_step(j, ev));
    while (kf_guard_next(&j->guard, ev))
        TRY(one_step(j, ev));
    return hand_out(j);
}

kofn_status kf_job_tell(kofn_job *j, kofn_event_type type, uint32_t worker)
{
    kofn_event ev = {.type = type, .worker = worker};

    return kf_job_step(j, &ev);
}

/* Keeps the result if its product is running; the core decides whether it
 * counts. */
static void file_result(kofn_job *j, kf_msg *m)
{
    product *p = kf_job_find(j, m->product);
    kf_slot *s = p && kf_job_is_running(p) ? kf_job_task(p, m->task) : NULL;

    assert(m->type == KF_MSG_RESULT || m->type == KF_MSG_FAILED);
    if (s && s->worker == m->worker)
        kf_pace_came(j, s, m->took);
    if (m->type == KF_MSG_RESULT)
        kf_job_count_result(j, m->worker, m->took, kf_buffer_bytes(m->result));
    if (m->type == KF_MSG_RESULT && p)
        p->rep.received += kf_buffer_bytes(m->result);
    else if (m->type == KF_MSG_RESULT)
        kf_job_count(j, &(kofn_report){.received = kf_buffer_bytes(m->result)});
    if (m->type == KF_MSG_RESULT && s && s->worker == m->worker && !s->result)
        s->result = m->result;
    else
        kf_pool_give(&j->spare, m->result);
    if (m->why && p && !p->end.failure) {
        p->end.failure = m->why;
        p->end.failed_by = m->worker;
        m->why = NULL;
    }
}

/* Returns the event for a message; 0 if there is none. */
static kofn_event_type event_of(kf_msg_type type)
{
    static const kofn_event_type event[] = {
        [KF_MSG_HELLO] = KOFN_EV_JOINED,
        [KF_MSG_STORED] = KOFN_EV_STORED,
        [KF_MSG_NOTICE] = KOFN_EV_LEAVING,
        [KF_MSG_BYE] = KOFN_EV_LEFT,
        [KF_MSG_RESULT] = KOFN_EV_RESULT,
        [KF_MSG_FAILED] = KOFN_EV_FAILED,
        [KF_MSG_MOVED] = KOFN_EV_MOVED,
        [KF_MSG_UNRESPONSIVE] = KOFN_EV_UNRESPONSIVE,
    };

    return type < sizeof event / sizeof *event ? event[type] : 0;
}

/* Stores the contents of a message and makes a step with its event.  A hello
 * counts towards the expected workers only if its worker may get a seat. */
static kofn_status handle(kofn_job *j, kf_msg *m)
{
    kofn_event ev = {.type = event_of(m->type),
                     .worker = m->worker,
                     .product = m->product,
                     .task = m->task,
                     .row = m->row,
                     .principal = m->principal,
                     .took = m->took};

    if (!ev.type)
        return kf_fail(KOFN_TRANSPORT,
                       "port %s delivered a message that only workers receive",
                       j->port->name);
    if (m->type == KF_MSG_HELLO)
        kf_job_count(j, &(kofn_report){.joined = kf_job_all_came(j)});
    if (m->type == KF_MSG_BYE || m->type == KF_MSG_UNRESPONSIVE)
        kf_job_count(j, &(kofn_report){.left = 1});
    if (m->type == KF_MSG_STORED) {
        kf_lease_stored(j, m->worker);
        kf_evidence_stored(j, m->worker);
    }
    if (m->type == KF_MSG_RESULT || m->type == KF_MSG_FAILED)
        file_result(j, m);
    kf_buffer_drop(m->in);
    kf_block_drop(m->block);
    kf_free(m->why);
    TRY(kf_job_step(j, &ev));
    /* A worker is not waited for if its principal already has all the seats
     * that it may have. */
    if (m->type != KF_MSG_HELLO || kf_core_crowded(j->core, m->worker))
        return KOFN_OK;
    j->loop.greeted++;
    return hand_out(j);
}

/* Returns what the coordinator waits for. */
static kf_phase waits_for(const kofn_job *j)
{
    return kf_job_all_came(j) && kf_core_storing(j->core) == 0 ? KF_WAIT
                                                               : KF_PLACE;
}

/* Receives a message.  First takes one that is here already, because it may
 * show that no more tasks have to be sent. */
static kofn_status receive(kofn_job *j, kofn_time until, kofn_time atmost,
                           kf_msg *m)
{
    kofn_time alarm = kf_pace_alarm(j);

    if (j->paced.due || kf_job_now(j) >= alarm) {
        kofn_status st = j->port->wait(j->port, kf_job_now(j), 0, m);

        if (st != KOFN_AGAIN)
            return st;
        TRY(kf_pace_go_on(j));
    }
    alarm = kf_pace_alarm(j);
    return j->port->wait(j->port, until < alarm ? until : alarm, atmost, m);
}

kofn_status kf_job_pass(kofn_job *j, kofn_time until, kofn_time atmost)
{
    kofn_time alarm = kf_core_alarm(j->core);
    kf_phase phase;
    kf_msg m = {0};
    kofn_status st;

    if (j->outcomes.observers) {
        kf_task_outcomes_tell(&j->outcomes, &(kf_moment){.type = KF_PASS});
        atmost = atmost < KOFN_SECOND ? atmost : KOFN_SECOND;
    }
    kf_job_tell_doing(j, false);
    phase = kf_phase_turn(j, waits_for(j));
    st = receive(j, alarm < until ? alarm : until, atmost, &m);
    kf_phase_turn(j, phase);
    if (st == KOFN_OK)
        return handle(j, &m);
    if (st == KOFN_AGAIN && kf_job_now(j) >= alarm)
        return kf_job_tell(j, KOFN_EV_ALARM, 0);
    if (st == KOFN_AGAIN && owes_blocks(j)) /* fewer workers are expected */
        return kf_lease_hand_out(j);
    if (st == KOFN_LATE)
        return kf_fail(KOFN_LATE, "too few workers are left, and no message "
                                  "can come; start more workers");
    return st;
}

/* ---- workers that are slow to store -------------------------------------- */

kofn_status kf_job_give_up(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), left;

    if (!j->port->storing || j->opt.lease == 0 || kf_core_storing(j->core) == 0)
        return KOFN_OK;
    for (uint32_t i = kf_lease_late(j, 0, now); i != UINT32_MAX;
         i = kf_lease_late(j, i + 1, now)) {
        TRY(kf_job_evict(j, i));
        TRY(kf_job_tell(j, KOFN_EV_UNRESPONSIVE,
                        i)); /* another worker may have the seat now */
    }
    left = j->lease.look_at > now ? j->lease.look_at - now : 0;
    *atmost = left < *atmost ? left : *atmost;
    return KOFN_OK;
}

/* ---- events files -------------------------------------------------------- */

/* Carries out one line of the events file at the port.  Joins and leaves are
 * reported to the core at once, because no hello or goodbye comes. */
static kofn_status happen(kofn_job *j, const kofn_fault_event *h)
{
    kofn_port *p = j->port;
    uint32_t worker = h->worker;

    switch (h->kind) {
    case KOFN_FAULT_EVENT_LEAVE:
        TRY(p->remove(p, worker));
        kf_job_count(j, &(kofn_report){.left = 1});
        return kf_job_tell(j, KOFN_EV_LEFT, worker);
    case KOFN_FAULT_EVENT_JOIN:
        TRY(p->admit(p, &worker));
        kf_job_count(j, &(kofn_report){.joined = 1});
        return kf_job_tell(j, KOFN_EV_JOINED, worker);
    case KOFN_FAULT_EVENT_SLOW:
        p->slow(p, worker, h->factor);
        break;
    case KOFN_FAULT_EVENT_NORMAL:
        p->slow(p, worker, 1);
        p->corrupt(p, worker, false);
        break;
    case KOFN_FAULT_EVENT_CORRUPT:
        p->corrupt(p, worker, true);
        break;
    case KOFN_FAULT_EVENT_FLIP:
        return p->flip(p, worker);
    case KOFN_FAULT_EVENT_ERR: /* was refused */
        break;
    }
    return KOFN_OK;
}

/* Returns the next line if it is due once this share of the product has come;
 * else NULL. */
static const kofn_fault_event *next_due(const kofn_job *j, const product *p,
                                        double done)
{
    const kofn_fault_event *h;

    assert(j->loop.next_event <= j->opt.event_count);
    if (j->loop.next_event == j->opt.event_count)
        return NULL;
    h = &j->opt.events[j->loop.next_event];
    return h->round < p->count || (h->round == p->count && h->fraction <= done)
               ? h
               : NULL;
}

bool kf_job_is_due(const kofn_job *j, const product *p)
{
    return next_due(j, p, 0) != NULL;
}

kofn_status kf_job_stage(kofn_job *j, const product *p, double done)
{
    for (const kofn_fault_event *h; (h = next_due(j, p, done));) {
        j->loop.next_event++;
        TRY(happen(j, h));
    }
    return KOFN_OK;
}

kofn_status kf_job_stage_now(kofn_job *j)
{
    const product *newest = NULL;

    if (j->loop.next_event == j->opt.event_count)
        return KOFN_OK;
    for (size_t i = 0; i < j->open.count && j->open.list[i]->start.begun; i++)
        newest = j->open.list[i]->number ? j->open.list[i] : newest;
    if (!newest || newest->end.ended != KOFN_AGAIN ||
        j->opt.events[j->loop.next_event].round > newest->count)
        return KOFN_OK;
    return kf_job_stage(j, newest, kf_core_done(j->core, newest->start.core));
}
