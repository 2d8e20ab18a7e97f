/* faults.h -- the fault model, and workers that emulate its faults.
 *
 * Any thread may call the model, because it keeps no state. */
#ifndef KF_FAULTS_H
#define KF_FAULTS_H

#include "data/data.h"

/* ---- fault model (faults.c) ---------------------------------------------- */

/* Returns the worker's speed; 1 is the usual one. */
double kf_faults_speed(const kofn_faults *w, uint32_t worker);
/* Returns the seconds that `seconds` of work take for this worker in this
 * round.  A delay comes once, with the first task. */
double kf_faults_stretch(const kofn_faults *w, uint32_t worker, unsigned round,
                         bool first, double seconds);
/* True if the worker is slower than usual in this round. */
bool kf_faults_slow(const kofn_faults *w, uint32_t worker, unsigned round);
/* True if the result of this task is wrong. */
bool kf_faults_corrupts(const kofn_faults *w, uint32_t worker, uint32_t task);
/* Returns the seconds from its arrival to its departure; HUGE_VAL if it
 * stays. */
double kf_faults_leave(const kofn_faults *w, uint32_t worker);
/* Returns the seconds between the arrivals of joiners i - 1 and i. */
double kf_faults_gap(const kofn_faults *w, uint32_t i);
/* Changes a worker's block (kf_block_change), or misses the update, or flips a
 * bit of the block afterwards.  *count counts the worker's updates. */
kofn_status kf_faults_change(const kofn_faults *w, uint32_t worker,
                             uint32_t *count, kf_block *b, const kf_msg *m);
/* Flips a bit, as an events file demands.  *count counts the flips. */
kofn_status kf_faults_flip(const kofn_faults *w, uint32_t worker,
                           uint32_t *count, kf_block *b);
/* Returns the kofn_fault_place with this name; 0 if there is none. */
unsigned kf_fault_place(const char *word, size_t n);
/* True if the n characters at `text` are the name, or are a number, written to
 * *x. */
bool kf_faults_is(const char *name, const char *text, size_t n);
bool kf_faults_number(const char *text, size_t n, double *x);
kofn_time kf_faults_nanoseconds(double seconds);
bool kf_faults_fair(const kofn_faults *w);

/* Seconds of a task that is never answered; the run ends before. */
#define KF_FOR_EVER 1e9

/* A worker under the fault model. */
typedef struct kf_exposed {
    const kofn_faults *faults;
    uint32_t worker;
    double factor; /* slowdown by an events file, 1 or more */
    bool wrong;
    unsigned flips; /* bits to flip before the next task */
    unsigned round; /* of the last task that it began */
    /* Sleeps, unless the task is cancelled. */
    void (*sleep_for)(void *ud, double seconds);
    bool (*stopped)(void *ud);
    void *ud;
    const struct kf_user_multiply *user; /* NULL: it multiplies with BLAS */
} kf_exposed;
/* Does kf_work_do under the model.  *took is the time that it reports. */
kofn_status kf_emulate(kf_exposed *x, const kf_block *b, const kf_msg *m,
                       kofn_time *took);

#endif
