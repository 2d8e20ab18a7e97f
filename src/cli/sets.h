/* sets.h -- sets of files (store/store.h) with JSON of the command. */
#ifndef KOFN_CLI_SETS_H
#define KOFN_CLI_SETS_H

#include "cli.h"

#include "store/store.h"

/* Refuses a folder with a file whose name begins with one of these, up to NULL:
 * something else keeps its files there. Returns 0, or the exit code after a
 * message. */
int cli_set_refuse(const char *folder, const char *const *begin);

/* Commits the set with o, and frees o. `lost` is the value of cli_json_lost
 * before o was made. */
kofn_status cli_set_commit(kf_store *s, json_t *o, size_t lost, kofn_status st);
/* Reads the JSON of a set that was opened. Returns 0, or the exit code after a
 * message. */
int cli_set_json(const kf_store *s, json_t **out);
/* Says why a set cannot be read. Returns the exit code. */
int cli_set_fail(kofn_status st);

#endif
