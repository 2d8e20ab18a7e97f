/* core.h -- the coordinator's other side: what the loop that drives it asks besides
 * what <kofn/core.h> shows.
 *
 * All that is returned here stays the coordinator's, and holds until its next
 * step.  Nothing here changes a decision. */
#ifndef KF_CORE_H
#define KF_CORE_H

#include <kofn/core.h>

#include "code/code.h"

/* For one operand.  Borrows the plan. */
kofn_status kf_core_new(kofn_core **out, const kofn_plan *plan,
                        const kofn_core_options *opt);
/* Which of n structs of so many bytes begins with this number; NULL: none does.  The
 * numbers ascend, and begin again at 0 when there are no more; they are successive
 * unless other products are open, too: then fewer come before it. */
void *kf_core_find(void *list, size_t n, size_t size, uint32_t number);
/* How long a worker may owe an answer, or a block, where others took `pace` if that is
 * known. */
kofn_time kf_core_lease(const kofn_core *c, bool known, kofn_time pace);
/* When to send KOFN_EV_ALARM unless something else happens before. */
kofn_time kf_core_alarm(const kofn_core *c);

/* A use of an operand: its own operation, the left product, ... */
typedef struct kf_use {
    const kofn_plan *plan; /* NULL: it is not served */
    kofn_plan *own;        /* the same where it is the use's, or NULL */
    const struct kf_policy *policy; /* policy.h */
    kofn_errors errors;             /* that are looked for */
    bool alone;      /* of parts, each from one worker: where one is missing the
                           product is coded instead, and nobody is waited for */
    kf_code *code;   /* its rows, which are shared with whoever encodes ... */
    kf_cache *cache; /* ... and decoders, with whoever answers KOFN_DO_CHECK */
} kf_use;
const kf_use *kf_core_use(const kofn_core *c, uint32_t use);

/* Workers on a seat who were located and are not forgiven yet: what they answer is not
 * to be believed where nothing is compared. */
size_t kf_core_suspects(const kofn_core *c);

/* `done` and `corrupt` are of one product. */
typedef struct kf_core_view {
    unsigned round; /* the number of that product */
    bool running;
    size_t needed; /* a starved one: live workers that it waits for; else 0 */
    size_t live, storing, standby; /* workers */
    size_t liars;   /* principals that may lie together and make no wrong answer
                     pass, whatever they know; with errors */
    size_t awaited; /* workers with a task in hand */
    double done;    /* share of its strips that has come */
    size_t dropped; /* events that did not fit, since the beginning */
    const unsigned *located; /* per worker: products it was located in */
    size_t corrupt;          /* results found wrong                          */
    size_t workers;          /* who ever came */
} kf_core_view;
kofn_worker_state kf_core_worker(const kofn_core *c, uint32_t worker);
/* May the worker answer? */
bool kf_core_works(const kofn_core *c, uint32_t worker);
/* The seat of a worker that is storing, live or leaving; SIZE_MAX: it is none of
 * these. */
size_t kf_core_seat(const kofn_core *c, uint32_t worker);
/* Strips of this product that it was asked for. */
size_t kf_core_rows(const kofn_core *c, uint32_t product, uint32_t worker);
/* Does it stand by because its principal has all the seats it may have? */
bool kf_core_crowded(const kofn_core *c, uint32_t worker);
/* The numbers that a look gives as `live` and `storing`, without the cost of a
 * look. */
size_t kf_core_live(const kofn_core *c);
size_t kf_core_storing(const kofn_core *c);
size_t kf_core_known(const kofn_core *c); /* who ever came */
/* Looks at all groups and cells.  What is of a product is of this one, where it is
 * open or none has begun since it was; else, and of 0, of the one that began last. */
void kf_core_look(const kofn_core *c, uint32_t product, kf_core_view *v);
/* With defaults: the caller's events and actions are of the sizes told there. */
const kofn_core_options *kf_core_options(const kofn_core *c);
/* The round of a stream that ended in the last step; its load and times are not
 * known here. */
void kf_core_round(const kofn_core *c, kofn_stream_round *out);

#endif
