/* schemes.h -- the text of --scheme, completed. */
#ifndef KOFN_CLI_SCHEMES_H
#define KOFN_CLI_SCHEMES_H

#include "cli.h"

/* Puts the parameter into *scheme that --tolerate asks for; does nothing
 * without it. `room` must stay valid as long as the scheme. Returns 0, or the
 * exit code after a message. */
int cli_tolerate(const cli_args *a, const char **scheme, char room[CLI_SPEC]);

/* Loads the scheme if it is a file, and puts its name into *scheme. `room` must
 * stay valid as long as that. Returns 0, or the exit code after a message. */
int cli_own_scheme(const char **scheme, char room[CLI_SPEC]);

#endif
