/* leave.h -- why a worker leaves without a signal: its machine is about to be
 * taken away, as a file or a command says.
 *
 * A cli_leaving owns the process of its command until cli_leaving_end. */
#ifndef KOFN_LEAVE_H
#define KOFN_LEAVE_H

#include <stdbool.h>
#include <sys/types.h>

/* Reasons to leave that are no signal. A caller sets the first two.
 */
typedef struct cli_leaving {
    const char *file, *command; /* NULL: none */
    const char *why;            /* NULL: no reason yet */
    double look, ask;           /* times of the next look for either */
    pid_t child;                /* the running command; 0: it does not run */
    bool warned;
} cli_leaving;
/* Returns the reason to leave, or NULL. Call it often: it does not block. */
const char *cli_leaving_why(cli_leaving *l);
/* Ends a command that still runs. */
void cli_leaving_end(cli_leaving *l);

#endif
