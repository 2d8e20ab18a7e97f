/* iterate.c -- parts that iterations on workers and on a mesh share: options,
 * the start, the plain iteration, and advice.
 *
 * Owns the plain result within a call. */
#include "busy.h"
#include "iterations.h"

#include "base/mix.h"

#include <stdlib.h>
#include <string.h>

kofn_iterate_options cli_iterate_options(const cli_args *a,
                                         const cli_iteration *it)
{
    return (kofn_iterate_options){
        .size = sizeof(kofn_iterate_options),
        .tol = a->tol,
        .max_iterations = (unsigned)a->max_iter,
        .damping =
            a->damping_given && a->damping == 0 ? KOFN_NO_DAMPING : a->damping,
        .personalize = it->personalize.data ? &it->personalize : NULL,
        .sinks = it->sinks.data ? &it->sinks : NULL,
        .warm = a->start != NULL};
}

int cli_start(const cli_iteration *it, uint64_t seed, const char *what,
              kofn_matrix *v)
{
    uint64_t x = seed;

    TRY_CODE(cli_room(v, it->n, 1, what));
    if (it->start.data)
        memcpy(v->data, it->start.data, it->n * sizeof(double));
    for (size_t i = 0; i < it->n && it->power; i++)
        ((double *)v->data)[i] = (double)(kf_next64(&x) >> 11) * 0x1p-53 + 0.5;
    return 0;
}

int cli_verify_iteration(const cli_args *a, const cli_iteration *it,
                         const kofn_matrix *v, unsigned iterations,
                         cli_exactness *found)
{
    kofn_iterate_options o = cli_iterate_options(a, it);
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_matrix want;
    kofn_status st;
    int code;

    TRY_CODE(cli_start(it, a->seed, "--verify", &want));
    cli_busy("computing without workers", "to verify");
    st = it->power
             ? kofn_power_peers(NULL, it->A, &want, &o, &res)
             : kofn_pagerank_peers(NULL, it->M, it->dangling, &want, &o, &res);
    cli_busy_end();
    code = st ? cli_fail(st) : cli_verify(found, v, &want);
    if (!st && res.iterations != iterations)
        cli_say(0, "the plain iteration took %u iterations, this one %u",
                res.iterations, iterations);
    free(want.data);
    return code;
}

/* Prints advice. The change falls by |second eigenvalue| / |first| in each
 * iteration. */
void cli_advise_iterate(const cli_args *a, const kofn_iterate_result *res)
{
    bool power = strcmp(a->command->name, "power") == 0;

    if (power && res->iterations >= 20 && res->change > 0.01)
        cli_say(
            0,
            "not converged after %u iterations: the change, %.3g, does not "
            "fall. A seems to have two dominant eigenvalues of the same size. "
            "If these are c and -c, use A + c I, which has the same vectors; "
            "a complex pair has no vector to converge to",
            res->iterations, res->change);
    else
        cli_say(0,
                "not converged after %u iterations: the change is %.3g; "
                "raise --max-iter or --tol",
                res->iterations, res->change);
}
