/* blas.c -- reports which BLAS computes, and corrects its choice of kernels if
 * that is possible.
 *
 * Owns nothing. It may restart the process with another environment before
 * anything is computed, and must not do so later. */
#include "cli.h"

#include <stdlib.h>

static kofn_machine machine(void)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    kofn_machine_info(&m);
    return m;
}

/* OpenBLAS chooses its kernels when it is loaded, before main. To change the
 * choice, the process restarts with a variable set. */
void cli_fast_blas(char **argv)
{
    kofn_machine m = machine();

    if (!m.coretype || getenv("OPENBLAS_CORETYPE"))
        return;
    if (setenv("OPENBLAS_CORETYPE", m.coretype, 1) == 0)
        cli_again(argv);
}

void cli_tell_blas(const cli_args *a)
{
    kofn_machine m = machine();

    if (*m.advice && !m.coretype && !a->quiet)
        fprintf(stderr, "%s: %s\n", m.blas, m.advice);
}

/* True if each worker has one BLAS thread. `kofn worker` processes elsewhere
 * have the number that was set for them there. */
static bool single(const cli_args *a, const kofn_machine *m)
{
    return m->blas_threads == 1 && cli_transport_of(a->port)->ours;
}

void cli_report_blas(const cli_args *a)
{
    kofn_machine m = machine();

    fprintf(stderr, "kernels %s, %s%s\n", m.simd, m.blas,
            single(a, &m) ? ", one BLAS thread a worker" : "");
    if (*m.advice)
        fprintf(stderr, "%s: %s\n", m.blas, m.advice);
}

void cli_put_blas(const cli_args *a, json_t *o)
{
    kofn_machine m = machine();

    PUT("blas", json_string(m.blas));
    PUT("blas_threads", single(a, &m) ? json_integer(1) : json_null());
    PUT("blas_advice", *m.advice ? json_string(m.advice) : json_null());
    PUT("simd", json_string(m.simd));
}
