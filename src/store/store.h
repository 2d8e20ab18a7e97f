/* store.h -- sets of files on disk: a reader finds one set whole, or none.
 *
 * A set has a *manifest*: the caller's JSON, to which the store adds the name,
 * the length and the digest of each file, and a digest of the manifest itself.
 * Files are written under other names (drafts) and forced to disk, the manifest
 * last.  When the manifest takes its name, the new set counts.  Then the drafts
 * take their names.  A draft that a killed process has not renamed is found by
 * its digest.  So a set survives a full disk, and a kill at any point.
 *
 * What the files mean, locks, and when to write are the caller's.  The store
 * owns the text and the list of files of a kf_store, until kf_store_close. */
#ifndef KF_STORE_H
#define KF_STORE_H

#include <kofn.h>

#define KF_STORE_PATH 4096 /* bytes of a path */
#define KF_STORE_NAME 120  /* bytes of a file's name */

typedef struct kf_store_file {
    char name[KF_STORE_NAME];
    uint64_t bytes, digest;
} kf_store_file;

/* The caller fills the first four, which must stay. */
typedef struct kf_store {
    const char *folder, *name; /* `name` is the manifest's */
    const char *before; /* the manifest of the set before has this name; NULL:
                           that set is not kept */
    const char *remedy; /* what to do if the set is damaged */
    char id[32];        /* part of the names of drafts, different in each set */
    kf_store_file *file;
    size_t files, cap;
    char *text;  /* the manifest that was read: JSON */
    bool is_old; /* the set is that before the last, which is damaged */
} kf_store;

/* ---- writing ------------------------------------------------------------- */

/* Begins a new set, with an `id`. */
KOFN_API kofn_status kf_store_begin(kf_store *s);
/* Adds a file.  The caller writes it to `path`, and forces it to disk. */
KOFN_API kofn_status kf_store_add(kf_store *s, const char *name,
                                  char path[KF_STORE_PATH]);
/* Ends the set in any case: `st` is what writing gave.  If that is KOFN_OK, and
 * all goes well here, the set is on disk, and files of the set that it replaces
 * are removed.  Else the old set remains.  `json` is an object with members.
 * With `before` the caller gives other names to files than in the last set. */
KOFN_API kofn_status kf_store_commit(kf_store *s, const char *json,
                                     kofn_status st);

/* ---- reading ------------------------------------------------------------- */

/* Reads the manifest alone.
 * KOFN_AGAIN: there is none.
 * KOFN_FORMAT: it is damaged.
 * KOFN_IO: it cannot be read. */
KOFN_API kofn_status kf_store_look(kf_store *s);
/* Reads the manifest and checks all files; if a part is damaged, those of the
 * set before.  Then `is_old` is set, and kofn_errmsg gives the reason.
 * KOFN_AGAIN: there is no set.
 * KOFN_FORMAT: it is damaged. */
KOFN_API kofn_status kf_store_open(kf_store *s);
/* Sets `path` to that of file i, whose length and digest were compared.  If
 * `into` is not NULL, its bytes are read to there.
 * KOFN_FORMAT: it is damaged or missing. */
KOFN_API kofn_status kf_store_find(const kf_store *s, size_t i, void *into,
                                   char path[KF_STORE_PATH]);

/* ---- sets as a whole ----------------------------------------------------- */

/* Gives drafts of this set their names, makes it the last if it is that before,
 * and removes what killed processes have left in the folder.  No other process
 * may be writing there. */
KOFN_API void kf_store_settle(kf_store *s);
/* Gives the manifest another name, in place of a set with that name. */
KOFN_API kofn_status kf_store_rename(const kf_store *s, const char *to);
/* Removes the set. */
KOFN_API kofn_status kf_store_remove(const kf_store *s);
/* Frees what it holds; the names stay. */
KOFN_API void kf_store_close(kf_store *s);

/* Computes the length and the XXH3 of a file. */
KOFN_API kofn_status kf_store_digest(const char *path, uint64_t *bytes,
                                     uint64_t *digest);

#endif
