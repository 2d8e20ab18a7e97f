/* busy.h -- says on a terminal what takes more than two seconds. */
#ifndef KOFN_CLI_BUSY_H
#define KOFN_CLI_BUSY_H

#include "cli.h"

/* Lets lines be drawn, if stderr is a terminal. */
void cli_busy_allow(bool wanted);
/* Names what is done now, as "reading X.npy"; draws it with its seconds until
 * cli_busy_end, which does nothing if nothing is named. */
void cli_busy(const char *doing, const char *name);
void cli_busy_end(void);

#endif
