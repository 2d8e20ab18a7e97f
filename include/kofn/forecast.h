/* forecast.h -- the time, memory and error of a job before it runs.
 *
 * A forecast needs the shapes of the operands and the costs of the machines,
 * and no numbers.  The coordinator decides as it would in the job, on a
 * simulated clock.
 */
#ifndef KOFN_FORECAST_H
#define KOFN_FORECAST_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Costs of the machines and of the network.  KOFN_COSTS_INIT has zeros: a
 * resource without limits. */
typedef struct kofn_costs {
    size_t size;    /* sizeof(kofn_costs) */
    double work;    /* worker: seconds for 1e9 multiply-adds */
    double plain;   /* one machine without kofn: the same, with all its cores */
    double combine; /* coordinator: seconds for 1e9 multiply-adds of a code */
    double copy;    /* coordinator: seconds for 1e9 bytes that are copied */
    double task;    /* worker: seconds for a task, besides its products */
    double message; /* coordinator: seconds for a message, sent or received */
    double latency; /* network: seconds that a message takes */
    double bandwidth; /* coordinator's link: bytes a second, in each direction;
                       * 0: no limit */
    size_t cores;     /* number of cores that all workers share; 0: each worker
                       * has its own */
    double narrow;    /* worker: what a multiply-add costs if the input has half
                       * of the columns, as a multiple; 0: the same */
} kofn_costs;
#define KOFN_COSTS_INIT                                                        \
    {                                                                          \
        sizeof(kofn_costs), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                       \
    }

/* Measures work, plain, combine, copy, task, message and narrow on this
 * machine, for products of this shape, in about a second.  It sets `cores` to
 * the number of cores, and `latency` and `bandwidth` to 0: the costs of workers
 * that are threads of this process. KOFN_NOMEM: no memory. */
KOFN_API kofn_status kofn_costs_measure(kofn_costs *out, const kofn_problem *pb,
                                        size_t workers);

/* What a forecast assumes. */
typedef struct kofn_forecast_options {
    size_t size;               /* sizeof(kofn_forecast_options) */
    const kofn_costs *costs;   /* NULL: those of kofn_costs_measure */
    const kofn_faults *faults; /* NULL: none.  Work, latency and bandwidth are
                                * taken from `costs`. */
    const kofn_options *job;   /* NULL: KOFN_OPTIONS_INIT */
    unsigned rounds;           /* products; 0 means 1 */
    double part;   /* SUM: multiply-adds of the function for all parts; 0: m */
    double data;   /* SUM: bytes of the data of all parts; 0: none */
    bool away;     /* blocks and inputs are sent to other machines */
    double memory; /* bytes of a worker; a code that needs more is left out.
                    * 0: no limit */
    double deadline; /* seconds for all; a slower code is left out.  0: none */
    size_t faulty;   /* number of workers with wrong results that must be
                      * found */
    size_t survive;  /* number of workers that may be lost */
} kofn_forecast_options;
#define KOFN_FORECAST_OPTIONS_INIT                                             \
    {                                                                          \
        sizeof(kofn_forecast_options), NULL, NULL, NULL, 0, 0, 0, false, 0, 0, \
            0, 0                                                               \
    }

/* A forecast.  Times are seconds. */
typedef struct kofn_forecast {
    size_t size;        /* sizeof(kofn_forecast) */
    char spec[256];     /* the scheme with its parameters; "": plain BLAS on one
                         * machine, without kofn */
    kofn_status status; /* KOFN_OK, or the failure of the simulated job; the
                         * times are then those until it failed */
    double place;       /* time to encode and send A */
    double round50, round90, round99; /* quantiles of the time of a round */
    double total;                     /* time of placing and of all rounds */
    double memory;                    /* bytes that a worker stores */
    double sent, received;            /* bytes of the coordinator in all */
    double work;     /* multiply-adds of all workers, as a multiple of those of
                      * the plain products */
    size_t survives; /* number of workers that may be lost at any time */
    size_t faulty;   /* number of faulty workers that can be found */
    double error;    /* relative error by rounding: the median over sets of
                      * survivors */
} kofn_forecast;
#define KOFN_FORECAST_INIT                                                     \
    {                                                                          \
        sizeof(kofn_forecast), "", KOFN_OK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* Forecasts a job with this scheme; "" is plain BLAS on one machine.
 * KOFN_INVAL: `workers` or an option is out of range.
 * Otherwise it returns the failures of kofn_plan_new. */
KOFN_API kofn_status kofn_forecast_job(kofn_forecast *out,
                                       const kofn_problem *pb, const char *spec,
                                       size_t workers,
                                       const kofn_forecast_options *opt);
/* Forecasts the job with all schemes and parameters that fit, up to a thousand,
 * and returns the best ones: plain BLAS first, then in order of their total
 * time.  A code is left out if another one is not worse in time, memory,
 * losses and faulty workers.  The caller frees *out with kofn_free.
 * KOFN_INVAL: `workers` or an option is out of range.
 * KOFN_SHAPE: the shapes are impossible, or too large. */
KOFN_API kofn_status kofn_forecast_all(kofn_forecast **out, size_t *count,
                                       const kofn_problem *pb, size_t workers,
                                       const kofn_forecast_options *opt);

#ifdef __cplusplus
}
#endif
#endif
