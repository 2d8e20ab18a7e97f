/* masterless_absent.c -- refuses --masterless in a build without nodes
 * (-DKOFN_MESH=OFF). Other builds have nodes.c and what belongs to it instead.
 *
 * Owns nothing. */
#include "masterless.h"

int masterless_check(const cli_args *a)
{
    (void)a;
    return cli_say(EXIT_USAGE,
                   "--masterless: this kofn was built without nodes "
                   "(-DKOFN_MESH=OFF); build it with -DKOFN_MESH=ON, or run "
                   "without --masterless");
}

int masterless_run(const cli_args *a, const cli_iteration *it,
                   const kofn_problem *pb)
{
    (void)it;
    (void)pb;
    return masterless_check(a);
}

int masterless_train(const cli_args *a, cli_training *l)
{
    (void)l;
    return masterless_check(a);
}
