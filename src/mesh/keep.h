/* keep.h -- what a node keeps on disk, and going back to it. */
#ifndef KF_MESH_KEEP_H
#define KF_MESH_KEEP_H

#include "host.h"

/* ---- back.c -------------------------------------------------------------- */

kofn_status kf_back_new(kf_host *h);
void kf_back_free(kf_host *h);
/* A packet came that is of no note of this attempt: is it of another? */
void kf_back_hear(kf_host *h, kofn_peer peer, const kofn_packet *p);
/* For how long a node waits that cannot go on without others: they may go
 * back. */
kofn_time kf_back_patience(const kf_host *h);
/* Does this node wait for others to go back with it, although it has failed? */
bool kf_back_waits(const kf_host *h);
/* Goes back, if enough nodes want to. */
kofn_status kf_back_pass(kf_host *h);
/* The mark, in this attempt, of an iterate that was kept: the same at all
 * nodes, and of no iterate of another attempt. */
kofn_iterate_id kf_back_iterate(const kf_host *h, kofn_iterate_id kept);
/* Adds what was counted in the attempts before. */
void kf_back_add(const kf_host *h, kofn_node_view *view);

/* ---- keep.c -------------------------------------------------------------- */

/* Finds what was kept, if it is to go on with it, and begins at the last. */
kofn_status kf_keep_open(kf_host *h);
void kf_keep_close(kf_host *h);
/* A turn is over. */
kofn_status kf_keep_turn(kf_host *h);
/* Begins at the last turn that was kept before that one.  Nothing, where there
 * is no such file, or it cannot be read: the others have it, too. */
kofn_status kf_keep_rewind(kf_host *h, uint64_t before);
/* The last turn before that one which is kept, here or by enough others; 0:
 * none. */
uint64_t kf_keep_last(const kf_host *h, uint64_t before);
/* Will this turn be kept? */
bool kf_keep_is_due(const kf_host *h);
/* Our blocks of that turn agree with those of the others, and so did they
 * before. */
kofn_status kf_keep_sound(kf_host *h, uint64_t turn);
/* Our blocks are wrong, and so may be the files of which they were not
 * compared. */
kofn_status kf_keep_forget(kf_host *h);
/* Another stands at that iterate.  If this node has it on disk, and is not so
 * far, it goes on from there: some had time to keep it when all were lost, and
 * some had not. */
kofn_status kf_keep_meet(kf_host *h, kofn_iterate_id at);
/* The peer has that iterate on disk. */
kofn_status kf_keep_receive(kf_host *h, kf_route *r, kofn_iterate_id at);
/* Our blocks of that seat, if files of ours have them.  KOFN_AGAIN: they do
 * not. */
kofn_status kf_keep_load(kf_host *h, uint32_t seat);

/* ---- keep_file.c --------------------------------------------------------- */

/* Writes the vector, and our blocks, under the name of a draft. */
kofn_status kf_kept_write(kf_host *h, const kf_kept *k);
kofn_status kf_kept_remove(const kf_host *h, const kf_kept *k);
kofn_status kf_kept_rename(const kf_host *h, const kf_kept *k,
                           const kf_kept *to);
/* It is damaged: nobody looks for it under its name any more. */
kofn_status kf_kept_put_aside(const kf_host *h, const kf_kept *k);
/* The file of that name in the folder; *ours: it is one that this node may use.
 * KOFN_INVAL: it is of another job. */
kofn_status kf_kept_look_at(const kf_host *h, const char *name, bool *ours,
                            kf_kept *k);
/* Begins with its vector.  KOFN_FORMAT: it is damaged. */
kofn_status kf_kept_take_vector(kf_host *h, const kf_kept *k);
/* Its blocks become ours. */
kofn_status kf_kept_take_blocks(kf_host *h, const kf_kept *k);
/* Its vector is heard as one that another sent. */
kofn_status kf_kept_restore(kf_host *h, const kf_kept *k);

#endif
