/* masterless.h -- --masterless: all that the rest of the command calls of its
 * nodes.
 *
 * -DKOFN_MESH=OFF leaves the nodes out: then masterless_absent.c alone has
 * these functions, and refuses. */
#ifndef KOFN_MASTERLESS_H
#define KOFN_MASTERLESS_H

#include "iterations.h"

/* Checks the options of a run with --masterless before anything is read.
 * Returns 0, or the exit code after a message. */
int masterless_check(const cli_args *a);
/* Runs the whole iteration on a mesh, with reports and output. Returns the
 * exit code. */
int masterless_run(const cli_args *a, const cli_iteration *it,
                   const kofn_problem *pb);
/* Runs the whole training on a mesh, likewise. */
int masterless_train(const cli_args *a, cli_training *l);

#endif
