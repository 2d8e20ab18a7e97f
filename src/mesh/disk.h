/* disk.h -- checkpoints of a node on disk, and returning to them.
 *
 * The host owns all of it (kf_host.disk). */

#ifndef KF_MESH_DISK_H
#define KF_MESH_DISK_H

#include "connections.h"

#define KF_MOST_ATTEMPTS 16 /* of a run */
#define KF_MOST_VAIN 3      /* in succession, without a new checkpoint */
#define KF_WANTS                                                               \
    32 /* wait for other nodes, in silences; `give_up` is added                \
        */

typedef struct kf_host kf_host; /* host.h */

/* A checkpoint: a set of files with our blocks and the vector (keep.c). */
typedef struct kf_kept {
    kofn_iterate_id at;
    uint64_t turn;
    uint32_t seat;
    bool sound; /* its blocks were compared, or errors are not looked for */
    bool whole; /* all members have theirs; else it is a draft */
} kf_kept;

typedef struct kf_keeping {
    kf_kept *file;
    size_t files, cap;
    uint64_t job;    /* job of the files */
    uint64_t others; /* the last turn that enough others announced */
    kofn_time tried; /* time of the last draft */
} kf_keeping;

/* The attempts of a run (back.c). */
typedef struct kf_backing {
    uint64_t job;          /* of the first attempt */
    unsigned attempt;      /* number of the present one */
    unsigned vain;         /* failed in succession, without a new checkpoint */
    uint64_t times;        /* times that this node returned to a checkpoint */
    uint64_t turn;         /* turn at which this attempt started */
    uint64_t kept;         /* the last turn that was kept at that time */
    kofn_time since;       /* when it failed, or 0 */
    kofn_time announced;   /* when the failure was last announced */
    kofn_node_view before; /* counts of earlier attempts */
    kf_buffer *start;      /* the first vector; NULL: this node never returns */
} kf_backing;

typedef struct kf_mesh_disk {
    kf_keeping keeping;
    kf_backing back;
} kf_mesh_disk;

/* keep_file.c */
/* Writes the vector and our blocks under the name of a draft. */
kofn_status kf_kept_write(kf_host *h, const kf_kept *k);
kofn_status kf_kept_remove(const kf_host *h, const kf_kept *k);
kofn_status kf_kept_rename(const kf_host *h, const kf_kept *k,
                           const kf_kept *to);
/* Renames a damaged manifest, so that the set is not found again. */
kofn_status kf_kept_put_aside(const kf_host *h, const kf_kept *k);
/* Reads the manifest of that name.  *local: this node may use the set.
 * KOFN_INVAL: it is of another job. */
kofn_status kf_kept_look_at(const kf_host *h, const char *name, bool *local,
                            kf_kept *k);
/* Replaces our blocks by those of the checkpoint. */
kofn_status kf_kept_take_blocks(kf_host *h, const kf_kept *k);
/* Reads the vector of a checkpoint, as the body of a note VECTOR.  KOFN_FORMAT:
 * a file is damaged or missing. */
kofn_status kf_kept_vector(kf_host *h, const kf_kept *k, kf_buffer **body);

/* keep.c */
/* Finds the checkpoints, if the node resumes, and starts from the last. */
kofn_status kf_keep_open(kf_host *h);
void kf_keep_close(kf_mesh_disk *disk);
/* Handles the end of a turn. */
kofn_status kf_keep_turn(kf_host *h);
/* Starts from the last checkpoint before that turn.  Does nothing if there is
 * none, or it cannot be read: the other nodes have it, too. */
kofn_status kf_keep_rewind(kf_host *h, uint64_t before);
/* Returns the last turn before that one that is kept, here or by enough others;
 * or 0. */
uint64_t kf_keep_last(const kf_mesh_disk *disk, uint64_t before);
/* True if this turn will be kept. */
bool kf_keep_is_due(const kf_host *h);
/* Records that our blocks of that turn, and of earlier ones, agree with those
 * of the others. */
kofn_status kf_keep_sound(kf_host *h, uint64_t turn);
/* Drops the files of blocks that were not compared, because our blocks are
 * wrong. */
kofn_status kf_keep_forget(kf_host *h);
/* Records that the peer has that iterate on disk. */
kofn_status kf_keep_receive(kf_host *h, kf_route *r, kofn_iterate_id at);
/* Loads our blocks of that seat from a file.  KOFN_AGAIN: no file has them. */
kofn_status kf_keep_load(kf_host *h, uint32_t seat);
/* Takes file i off the list. */
void kf_kept_forget(kf_keeping *k, size_t i);

/* attempt.c */
/* Reads a packet that is no note of this attempt: it may be a heartbeat of
 * another. */
void kf_attempt_hear(kf_host *h, kofn_peer peer, const kofn_packet *p);
/* Returns how long a node that cannot continue alone waits for the others,
 * which may return to a checkpoint. */
kofn_time kf_attempt_patience(const kf_host *h);
/* True if this node has failed, and waits for others to return with it. */
bool kf_attempt_waits(const kf_host *h);
/* Returns the mark, in this attempt, of an iterate that was kept.  It is the
 * same at all nodes, and different from all marks of other attempts. */
kofn_iterate_id kf_attempt_iterate(const kf_host *h, kofn_iterate_id kept);
/* True if another attempt is possible. */
bool kf_attempt_can_go(const kf_mesh_disk *disk);
/* True if this node cannot continue in this attempt. */
bool kf_attempt_has_failed(const kf_host *h);
/* Returns the job number of an attempt. */
uint64_t kf_attempt_job(const kf_mesh_disk *disk, unsigned attempt);

/* back.c */
kofn_status kf_back_new(kf_host *h);
void kf_back_free(kf_mesh_disk *disk);
/* Starts another attempt, if enough nodes want one. */
kofn_status kf_back_pass(kf_host *h);
/* Adds the counts of earlier attempts. */
void kf_back_add(const kf_mesh_disk *disk, kofn_node_view *view);

#endif
