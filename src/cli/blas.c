/* blas.c -- which BLAS computes: put right where that can be done, and told.
 *
 * Owns nothing.  It may start the process anew before anything was computed,
 * with the environment that makes the BLAS choose other kernels, and must not
 * do so later. */
#include "cli.h"

#include <stdlib.h>

static kofn_machine machine(void)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    kofn_machine_info(&m);
    return m;
}

/* OpenBLAS chooses its kernels when it is loaded, before main: the only way
 * to another choice is to start again with the variable set. */
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

/* Is it one BLAS thread a worker?  Those of a `kofn worker` are as many as it
 * was told where it was started. */
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
