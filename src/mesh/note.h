/* note.h -- notes between the nodes of a mesh, as bytes.
 *
 * The head of a note is one of all heads (wire/fields.h); docs/wire.md has its
 * fields.  The body:
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
 * other; then those of its optimizer states.
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

#include "data/data.h"
#include "wire/fields.h"

#define KF_NOTE_MEMBER 16 /* bytes of a member of an epoch */

/* How notes of a type are sent. */
typedef struct kf_note_kind {
    bool state;  /* it reports a state: of those that wait for a connection only
                    the newest is sent */
    bool urgent; /* it is sent before bodies that are on their way */
} kf_note_kind;
kf_note_kind kf_note_kind_of(kf_note_type type);

/* Writes the head; `body` is the body that is sent with it. */
void kf_note_write(unsigned char head[KF_HEAD], const kf_note *note,
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
