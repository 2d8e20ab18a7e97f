/* emulate.c -- a worker's work under the fault model: slowed, delayed, made
 * wrong.
 *
 * Owns nothing: what a worker's faults depend on is in kf_exposed.  A result
 * is computed first, and delayed or spoilt after that. */
#include "faults.h"

#include "base/clock.h"
#include "data/kernel.h"

#include <assert.h>
#include <math.h>

/* The clock of a computation: real time where the worker's own way to multiply
 * may be that of another processor. */
static kofn_time now(const kf_exposed *x)
{
    return x->user ? kf_clock() : kf_cpu_time();
}

kofn_status kf_emulate(kf_exposed *x, const kf_block *b, const kf_msg *m,
                       kofn_time *took)
{
    kofn_time began = now(x);
    kofn_status st;

    assert(x->sleep_for);
    assert(x->stopped);
    *took = 0;
    if (!b)
        return kf_fail(KOFN_STATE, "there is no block to work on");
    st = kf_work_with(b, m, x->user, x->stopped, x->ud);
    *took = now(x) - began;
    if (!st && (x->factor != 1 || !kf_faults_fair(x->faults))) {
        double real = (double)*took * 1e-9, wanted = real;

        wanted *= x->factor / kf_faults_speed(x->faults, x->worker);
        wanted = kf_faults_stretch(x->faults, x->worker, m->round,
                                   x->round != m->round, wanted);
        x->round = m->round;
        if (wanted > real)
            x->sleep_for(x->ud, fmin(wanted - real, KF_FOR_EVER));
        *took = kf_faults_nanoseconds(wanted);
        if (wanted >= KF_FOR_EVER || x->stopped(x->ud))
            st = KOFN_AGAIN;
    }
    if (!st && (x->wrong || kf_faults_corrupts(x->faults, x->worker, m->task)))
        kofn_faults_spoil(x->faults->seed, x->worker, m->task, &m->result->m);
    return st;
}
