/* core.h -- queries of the loop that drives the coordinator, in addition to
 * <kofn/core.h>.
 *
 * The coordinator owns everything that is returned here.  A returned pointer is
 * valid until the next step.  No function here changes a decision. */
#ifndef KF_CORE_H
#define KF_CORE_H

#include <kofn/core.h>

#include "code/code.h"

/* Makes a coordinator for one operand.  Borrows the plan. */
kofn_status kf_core_new(kofn_core **out, const kofn_plan *plan,
                        const kofn_core_options *opt);
/* Finds the struct that begins with this number in a list of n structs of
 * `size` bytes; NULL if there is none.  The numbers ascend and wrap around to
 * 0.  They are successive while one product is open.  With several open
 * products they have gaps, which this allows for. */
void *kf_core_find(void *list, size_t n, size_t size, uint32_t number);
/* Returns how long a worker may owe an answer or a block before it is evicted.
 * `pace` is the time that others took; it counts only if `known`. */
kofn_time kf_core_lease(const kofn_core *c, bool known, kofn_time pace);
/* Returns the time at which to send KOFN_EV_ALARM unless an earlier event
 * comes; KOFN_NEVER if no alarm is set. */
kofn_time kf_core_alarm(const kofn_core *c);

/* A use of an operand, by its kofn_use: its own operation, the left product,
 * ... */
typedef struct kf_use {
    const kofn_plan *plan; /* NULL if the operand does not serve this use */
    kofn_plan *owned;      /* the same plan if this use owns it, else NULL */
    const struct kf_policy *policy; /* see policy.h */
    kofn_errors errors;             /* how errors are searched for */
    bool alone;      /* each part of the product comes from one worker.  If a
                        part is missing, the product ends without waiting, and a
                        coded one replaces it */
    kf_code *code;   /* the rows; shared with the encoder */
    kf_cache *cache; /* the decoders; shared with the code that answers
                        KOFN_DO_CHECK */
} kf_use;
const kf_use *kf_core_use(const kofn_core *c, uint32_t use);

/* Returns the number of seated workers that were located and are still suspect.
 * Do not believe their answers unless results are compared. */
size_t kf_core_suspects(const kofn_core *c);

/* The state of the coordinator.  `done` and `corrupt` refer to one product. */
typedef struct kf_core_view {
    unsigned round; /* number of that product */
    bool running;
    size_t needed; /* live workers that a starved product needs; else 0 */
    size_t live, storing, standby; /* numbers of workers */
    size_t liars;   /* with errors: the number of principals that may conspire
                       without a wrong answer passing as right */
    size_t awaited; /* workers with outstanding tasks */
    double done;    /* share of its strips that has come, 0 to 1 */
    size_t dropped; /* dropped events that did not fit the state, since the
                       start */
    const unsigned *located; /* per worker: the number of products it was
                                located in */
    size_t corrupt;          /* results found wrong */
    size_t workers;          /* all that ever came */
} kf_core_view;
kofn_worker_state kf_core_worker(const kofn_core *c, uint32_t worker);
/* True if the worker may answer: it is live or leaving. */
bool kf_core_works(const kofn_core *c, uint32_t worker);
/* Returns the seat of a worker that is storing, live or leaving; else
 * SIZE_MAX. */
size_t kf_core_seat(const kofn_core *c, uint32_t worker);
/* Returns the number of strips of this product that the worker was asked
 * for. */
size_t kf_core_rows(const kofn_core *c, uint32_t product, uint32_t worker);
/* True if the worker stands by because its principal has all the seats it may
 * have. */
bool kf_core_crowded(const kofn_core *c, uint32_t worker);
/* Return `live` and `storing` of kf_core_view, without the cost of
 * kf_core_look. */
size_t kf_core_live(const kofn_core *c);
size_t kf_core_storing(const kofn_core *c);
size_t kf_core_known(const kofn_core *c); /* all that ever came */
/* Fills *v; walks through all groups and cells.  The members for one product
 * refer to `product` if it is open, or if no other product began after it
 * ended.  Otherwise, and if `product` is 0, they refer to the product that
 * began last. */
void kf_core_look(const kofn_core *c, uint32_t product, kf_core_view *v);
/* Returns `done` of kf_core_view, without the cost of kf_core_look. */
double kf_core_done(const kofn_core *c, uint32_t product);
/* Returns the options, with defaults filled in.  `event` and `action` are the
 * sizes of the caller's structs. */
const kofn_core_options *kf_core_options(const kofn_core *c);
/* Returns the round of a stream that ended in the last step.  The core does not
 * know its load and its times. */
void kf_core_round(const kofn_core *c, kofn_stream_round *out);

#endif
