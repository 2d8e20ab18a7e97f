/* dry.h -- a job without numbers: the coordinator on a simulated clock.
 *
 * The caller owns the plan and the times. */
#ifndef KF_FORECAST_DRY_H
#define KF_FORECAST_DRY_H

#include <kofn/forecast.h>

#include "base/base.h"

/* What a dry job took. */
typedef struct kf_dry_times {
    kofn_status status;    /* of the job */
    double place;          /* seconds until all blocks are stored */
    double *round;         /* seconds of each round; the caller frees it */
    unsigned rounds;       /* rounds that were completed */
    double rest;           /* seconds of a stream after its last product came */
    double sent, received; /* bytes of the coordinator */
    double work;           /* multiply-adds of all workers */
    double error;          /* predicted relative error of the last round */
} kf_dry_times;

/* Runs the job.  The options are complete: no pointer in them is NULL. */
kofn_status kf_dry_run(kf_dry_times *out, const kofn_plan *plan,
                       const kofn_forecast_options *opt);

/* The work that a plan makes. */
typedef struct kf_dry_size {
    double work;     /* multiply-adds of strips [lo, hi) of one row */
    double elements; /* numbers of its answer */
} kf_dry_size;
/* Returns the size of a task (size.c). */
kf_dry_size kf_dry_task(const kofn_plan *p, size_t row, size_t lo, size_t hi,
                        double part);
/* Returns the columns of the input of a task: it is cut into columns, or not.
 */
double kf_dry_width(const kofn_plan *p);
/* Returns the multiply-adds after which a worker sees that its task was
 * cancelled. */
double kf_dry_stride(const kofn_plan *p);
/* Returns bytes of a block that a seat stores, and of the input of a task.
 * `data`: bytes of all parts of a sum. */
double kf_dry_block(const kofn_plan *p, double data);
double kf_dry_input(const kofn_plan *p);
/* Fails with KOFN_INVAL unless there is such an operation, and that number of
 * workers can be simulated. */
kofn_status kf_dry_check(const kofn_problem *pb, size_t workers);
/* Returns the multiply-adds of the plain product. */
double kf_dry_plain(const kofn_problem *pb, double part);

#endif
