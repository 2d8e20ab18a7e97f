/* keep.h -- checkpoints of a node on disk, and returning to them. */
#ifndef KF_MESH_KEEP_H
#define KF_MESH_KEEP_H

#include "host.h"

/* ---- back.c -------------------------------------------------------------- */

kofn_status kf_back_new(kf_host *h);
void kf_back_free(kf_host *h);
/* Reads a packet that is no note of this attempt: it may be a heartbeat of
 * another. */
void kf_back_hear(kf_host *h, kofn_peer peer, const kofn_packet *p);
/* Returns how long a node that cannot continue alone waits for the others,
 * which may return to a checkpoint. */
kofn_time kf_back_patience(const kf_host *h);
/* True if this node has failed, and waits for others to return with it. */
bool kf_back_waits(const kf_host *h);
/* Starts another attempt, if enough nodes want one. */
kofn_status kf_back_pass(kf_host *h);
/* Returns the mark, in this attempt, of an iterate that was kept.  It is the
 * same at all nodes, and different from all marks of other attempts. */
kofn_iterate_id kf_back_iterate(const kf_host *h, kofn_iterate_id kept);
/* Adds the counts of earlier attempts. */
void kf_back_add(const kf_host *h, kofn_node_view *view);

/* ---- keep.c -------------------------------------------------------------- */

/* Finds the checkpoints, if the node resumes, and starts from the last. */
kofn_status kf_keep_open(kf_host *h);
void kf_keep_close(kf_host *h);
/* Handles the end of a turn. */
kofn_status kf_keep_turn(kf_host *h);
/* Starts from the last checkpoint before that turn.  Does nothing if there is
 * none, or it cannot be read: the other nodes have it, too. */
kofn_status kf_keep_rewind(kf_host *h, uint64_t before);
/* Returns the last turn before that one that is kept, here or by enough others;
 * or 0. */
uint64_t kf_keep_last(const kf_host *h, uint64_t before);
/* True if this turn will be kept. */
bool kf_keep_is_due(const kf_host *h);
/* Records that our blocks of that turn, and of earlier ones, agree with those
 * of the others. */
kofn_status kf_keep_sound(kf_host *h, uint64_t turn);
/* Drops the files of blocks that were not compared, because our blocks are
 * wrong. */
kofn_status kf_keep_forget(kf_host *h);
/* Handles a heartbeat of another node at that iterate.  If this node is at an
 * earlier one and has that iterate on disk, it continues from the file.  When
 * all nodes were lost, only some may have had time to keep it. */
kofn_status kf_keep_meet(kf_host *h, kofn_iterate_id at);
/* Records that the peer has that iterate on disk. */
kofn_status kf_keep_receive(kf_host *h, kf_route *r, kofn_iterate_id at);
/* Loads our blocks of that seat from a file.  KOFN_AGAIN: no file has them. */
kofn_status kf_keep_load(kf_host *h, uint32_t seat);

/* ---- keep_file.c --------------------------------------------------------- */

/* Writes the vector and our blocks under the name of a draft. */
kofn_status kf_kept_write(kf_host *h, const kf_kept *k);
kofn_status kf_kept_remove(const kf_host *h, const kf_kept *k);
kofn_status kf_kept_rename(const kf_host *h, const kf_kept *k,
                           const kf_kept *to);
/* Renames a damaged file, so that it is not found again. */
kofn_status kf_kept_put_aside(const kf_host *h, const kf_kept *k);
/* Reads the head of the file of that name.  *ours: this node may use it.
 * KOFN_INVAL: it is of another job. */
kofn_status kf_kept_look_at(const kf_host *h, const char *name, bool *local,
                            kf_kept *k);
/* Starts from the vector of a file.  KOFN_FORMAT: it is damaged. */
kofn_status kf_kept_take_vector(kf_host *h, const kf_kept *k);
/* Replaces our blocks by those of the file. */
kofn_status kf_kept_take_blocks(kf_host *h, const kf_kept *k);
/* Handles the vector of the file like one that another node sent. */
kofn_status kf_kept_restore(kf_host *h, const kf_kept *k);

#endif
