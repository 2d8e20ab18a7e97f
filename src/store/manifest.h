/* manifest.h -- the manifest of a set as text (manifest.c), for store.c. */
#ifndef KF_MANIFEST_H
#define KF_MANIFEST_H

#include "store.h"

/* Says that a file is damaged, and why.  Returns KOFN_FORMAT. */
kofn_status kf_manifest_damaged(const char *path, const char *why);
/* Writes the manifest: the object `json` and the files of the set. */
kofn_status kf_manifest_write(const kf_store *s, const char *json,
                              const char *path);
/* Reads `text` and `file`, which must be empty. */
kofn_status kf_manifest_read(kf_store *s, const char *path);

#endif
