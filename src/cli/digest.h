/* digest.h -- digests of files, and JSON that is written with care.
 *
 * The caller owns what it gives, but for JSON that is written. */
#ifndef KOFN_CLI_DIGEST_H
#define KOFN_CLI_DIGEST_H

#include "cli.h"

/* Computes XXH3 (64 bits) over all values of o, whatever its layout. Returns
 * false if memory ran out. */
bool cli_digest_json(const json_t *o, uint64_t *hash);
/* Computes the digest and the length of a file. Returns false and sets errno
 * if the file cannot be read. */
bool cli_digest_file(const char *path, uint64_t *bytes, char hex[17]);
/* Writes o to a file and frees it. Returns NULL, or why it could not be
 * written. Data is complete if cli_json_lost() did not change meanwhile. */
const char *cli_write_json(const char *path, json_t *o, size_t lost);

#endif
