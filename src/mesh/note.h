/* note.h -- notes between the nodes of a mesh, as bytes.
 *
 * Little-endian.  The head has KF_NOTE_HEAD bytes:
 *
 *      0  u32  "kofn"              48  u64  lineage of the iterate
 *      4  u16  version             56  u64  first word of the type
 *      6  u16  type                64  u64  second word of the type
 *      8  u64  job                 72  u32  group
 *     16  u64  the sender's incarnation   76  u32  seat
 *     24  u64  epoch: number       80  u32  flags: 1 final, 2 idle, 4 stranded,
 *                                           8 taken
 *     32  u64  epoch: proposer     84  u32  low half of XXH3 of the head,
 *     40  u64  number of the                with zeros here
 *              iterate             88  u64  XXH3 of the body
 *     96  u64  digest: exact      112  f64  digest: sum
 *    104  u64  digest: machine    120  u64  digest: way
 *
 * The body:
 *
 *   - EPOCH: per member u64 incarnation, u32 seat, u32 prompt.
 *   - DECIDE: the note's list, as u32.
 *   - PARTIAL: float64; components x strips of a coded partial product, wants x
 * strips of a result.
 *   - VECTOR: KOFN_SCALARS float64 of the iteration, then the vector, or the
 *     rows that `vector` of the note names.  If matrices change, the lineages
 *     of the last turns follow, as u64, and their norms, if errors are looked
 *     for.
 *   - BLOCK: these rows of the block's components, one component after the
 * other; then those of its velocity, if it has one.
 *   - SKETCH: float64, a number for each row of these components.
 *   - Other notes have none.
 *
 * A note is a struct of the caller's.  Lists that it points to are borrowed
 * until it is sent.  Those of a note that was read are in *room, which the
 * caller frees.
 */
#ifndef KF_MESH_NOTE_H
#define KF_MESH_NOTE_H

#include "peer/peer.h"

#include "base/hash.h"
#include "data/data.h"

#define KF_NOTE_VERSION 13
#define KF_NOTE_HEAD 128
#define KF_NOTE_MEMBER 16 /* bytes of a member of an epoch */

/* How notes of a type are sent. */
typedef struct kf_note_kind {
    bool state;  /* it reports a state: of those that wait for a connection only
                    the newest is sent */
    bool urgent; /* it is sent before bodies that are on their way */
} kf_note_kind;
kf_note_kind kf_note_kind_of(kf_note_type type);

/* Writes the head; `body` is the body that is sent with it. */
void kf_note_write(unsigned char head[KF_NOTE_HEAD], const kf_note *note,
                   uint64_t job, const void *body, size_t body_bytes);
/* Reads the head.  Fails with KOFN_FORMAT, and a message, unless it is a
 * complete note of this version and job. */
kofn_status kf_note_read(kf_note *note, const unsigned char *head,
                         size_t head_bytes, uint64_t job);
/* True if this is the body for which the head was written. */
bool kf_note_whole(const unsigned char *head, const void *body, size_t bytes);

/* Bodies of EPOCH and DECIDE: their size, and conversion to and from bytes. */
size_t kf_note_bytes(const kf_note *note);
void kf_note_pack(const kf_note *note, unsigned char *body);
/* *room owns the lists of the note, and the caller frees it.  Fails with
 * KOFN_FORMAT if the bytes cannot be such a body. */
kofn_status kf_note_unpack(kf_note *note, const unsigned char *body,
                           size_t bytes, void **room);

#endif
