/* fingerprint.h -- the options on which the numbers of a run depend, as text:
 * an object from names to strings. */
#ifndef KOFN_FINGERPRINT_H
#define KOFN_FINGERPRINT_H

#include "cli.h"

/* Store a value; NULL is stored as "". A number is stored as the shortest text
 * that gives exactly this number. */
void fingerprint_text(json_t *o, const char *key, const char *value);
void fingerprint_size(json_t *o, const char *key, uint64_t value);
void fingerprint_real(json_t *o, const char *key, double value);
/* Stores the command and its own options, without its code and its data. */
void fingerprint_options(json_t *o, const cli_args *a);

#endif
