/* faults.h -- what goes wrong, as drawn from a model, and workers under it.
 *
 * Nothing is owned here but the list of an events file.  The model may be
 * asked by any thread, for it keeps no state. */
#ifndef KF_FAULTS_H
#define KF_FAULTS_H

#include "data/data.h"

/* ---- fault model (faults.c) ---------------------------------------------- */

double kf_faults_speed(const kofn_faults *w, uint32_t worker);
/* Seconds that `seconds` of work become for this worker in this round.  A
 * delay comes once, with its first task. */
double kf_faults_stretch(const kofn_faults *w, uint32_t worker, unsigned round,
                         bool first, double seconds);
/* Does it take longer than usual in this round? */
bool kf_faults_slow(const kofn_faults *w, uint32_t worker, unsigned round);
bool kf_faults_corrupts(const kofn_faults *w, uint32_t worker, uint32_t task);
/* Seconds from its arrival to its departure; HUGE_VAL: stays. */
double kf_faults_leave(const kofn_faults *w, uint32_t worker);
/* Seconds between the arrival of joiner i - 1 and of joiner i. */
double kf_faults_gap(const kofn_faults *w, uint32_t i);
/* Changes a worker's block (kf_block_change); *count of the updates that came
 * to it: it may miss one, or a bit of its block may flip afterwards. */
kofn_status kf_faults_change(const kofn_faults *w, uint32_t worker,
                             uint32_t *count, kf_block *b, const kf_msg *m);
/* A bit flips, as an events file asks for; *count of those that did. */
kofn_status kf_faults_flip(const kofn_faults *w, uint32_t worker,
                           uint32_t *count, kf_block *b);
/* The place of that name, as a kofn_fault_place; 0: there is none. */
unsigned kf_fault_place(const char *word, size_t n);
/* What stands in text .. text + n - 1: is it the name?  Is it a number? */
bool kf_faults_is(const char *name, const char *text, size_t n);
bool kf_faults_number(const char *text, size_t n, double *x);
kofn_time kf_faults_nanoseconds(double seconds);
bool kf_faults_fair(const kofn_faults *w);

/* Seconds: of a task that is never answered, which is left in the end. */
#define KF_FOR_EVER 1e9

/* A worker under the fault model. */
typedef struct kf_exposed {
    const kofn_faults *faults;
    uint32_t worker;
    double factor; /* as staged by an events file */
    bool wrong;
    unsigned flips; /* bits that are to flip before what it does next */
    unsigned round; /* of the last task it took up */
    /* Sleep, unless the task is cancelled. */
    void (*sleep_for)(void *ud, double seconds);
    bool (*stopped)(void *ud);
    void *ud;
    const struct kf_own *own; /* NULL: it multiplies with BLAS */
} kf_exposed;
/* kf_work_do as this worker does it; *took is what it made of the time. */
kofn_status kf_emulate(kf_exposed *x, const kf_block *b, const kf_msg *m,
                       kofn_time *took);

#endif
