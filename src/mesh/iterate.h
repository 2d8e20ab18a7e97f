/* iterate.h -- the vector of a node: its iterate, how it is sent, and how nodes
 * confirm each other's.
 *
 * The host owns all of it (kf_host.it). */

#ifndef KF_MESH_ITERATE_H
#define KF_MESH_ITERATE_H

#include "connections.h"

#define KF_PAST 16 /* iterates that a node remembers by their marks */

typedef struct kf_host kf_host;           /* host.h */
typedef struct kf_mesh_work kf_mesh_work; /* products.h */

/* An iterate that came and is not confirmed. */
typedef struct kf_vector_quorum {
    /* the node that was asked last; only its vector is taken */
    kofn_incarnation asked;
    kofn_iterate_id from; /* our iterate when it was asked */
    kf_sender sender;     /* of the vector */
    kf_note note;
    kf_buffer *body; /* NULL: none came */
    /* allowed difference of its fingerprints, because of the votes */
    double room;
    /* number of the last iterate that agreed with ours and was taken */
    uint64_t merged;
} kf_vector_quorum;

/* The vector, and what is known of its iterate. */
typedef struct kf_mesh_iterate {
    kofn_iterate_id at;            /* of v */
    kofn_iterate_id past[KF_PAST]; /* v was made from these; by number */
    kf_buffer *v;                  /* rows x 1 */
    kf_buffer *packed;             /* v as it is sent, or NULL */
    kf_pool vectors; /* memory of vectors that were sent or came */
    double scalar[KOFN_SCALARS];
    bool odd; /* our iterate is not finite; other nodes may have a finite one */
    /* an iterate that gave numbers that are not finite */
    kofn_iterate_id blown;
    uint64_t again;    /* times that an iterate was repeated */
    uint64_t outvoted; /* our vectors that were replaced after a vote */
    uint64_t machine;  /* the same on machines that compute the same bits */
    uint64_t way;      /* digest of the decoded partial products of this turn */
    /* the same for each group of the present product */
    uint64_t from[KF_MAX_GROUPS];
    double noise;    /* predicted error, with hidden errors */
    double rounding; /* without hidden errors */
    kf_vector_quorum quorum;
} kf_mesh_iterate;

/* ballot.c */
/* Returns by how much the sums of `numbers` numbers of an iterate may differ
 * between honest nodes.  Weights are at most 1, and the largest number is
 * `most` (math/training.md 12). */
double kf_host_room(const kf_host *h, size_t numbers, double most);
/* Returns the digest of iterate t: that vector with these scalars. */
kf_node_digest kf_host_digest(const kf_host *h, uint64_t t,
                              const double *scalar, const double *v);
/* Returns the same with our way.  The last iterate has none: all nodes must
 * have it bit for bit. */
kf_node_digest kf_host_digest_of_way(const kf_host *h, uint64_t t,
                                     const double *scalar, const double *v,
                                     bool final);
/* Records from which seats a group was decoded. */
void kf_host_way_note(kf_host *h, size_t group, const kofn_decoder *d);
/* Adds these records to our way: the next iterate is made from all groups. */
void kf_host_way_go(kf_host *h);
/* Sets our way to that of an iterate from another node. */
void kf_host_way_take(kf_mesh_iterate *it, const kf_node_digest *digest);

/* print.c */
/* Returns the fingerprint of our vector under this key. */
double kf_print_local(const kf_mesh_iterate *it, uint64_t key);
/* Returns the allowed difference of fingerprints, relative to the sum of the
 * magnitudes of all entries. */
double kf_print_may_differ(const kf_mesh_work *work);
/* Returns the difference of fingerprints that a vote about the vector allows.
 * There is no limit without votes, or for a node that has decoded nothing and
 * so does not know the noise of the code. */
double kf_print_room(const kf_host *h, const double *body);

/* vector.c */
size_t kf_mesh_vector_bytes(const kf_host *h);
/* Provides memory for a body of `bytes` bytes, used again when nothing refers
 * to it. */
kofn_status kf_mesh_vector_room(kf_mesh_iterate *it, size_t bytes,
                                kf_buffer **out);
kofn_status kf_mesh_vector_body(kf_host *h, kf_buffer **body, size_t *bytes);
/* Records the mark of our iterate, from which the next is made. */
void kf_mesh_part_remember(kf_mesh_iterate *it);
/* True if a request for an iterate needs only what was written since ours. */
bool kf_mesh_part_suffices(const kf_host *h);
/* Chooses whether our iterate goes to that connection as a part.  If so, the
 * note gets its base. */
void kf_mesh_part_choose(const kf_host *h, const kf_route *r, kf_note *note);
/* Returns the bytes of a part that came; 0: its base is not here. */
size_t kf_mesh_part_bytes(const kf_host *h, const kf_note *note);
kofn_status kf_mesh_part_body(kf_host *h, const kf_note *note, kf_buffer **body,
                              size_t *bytes);
/* Returns the base of a part, as its note names it. */
kofn_iterate_id kf_mesh_part_base(const kf_note *note);
/* Copies the rows that the iterates after the base wrote, one after the other,
 * into or out of the vector.  Returns their number.  With `at` NULL it only
 * counts. */
size_t kf_mesh_part_rows(const kf_host *h, uint64_t base, uint64_t t,
                         double *at, bool in);

static inline bool kf_mesh_part_is(const kf_note *note)
{
    return note->type == KF_NOTE_VECTOR && note->vector.after > 0;
}

/* vector_quorum.c */
/* Asks other nodes for fingerprints; `incarnation` was asked for its
 * iterate. */
kofn_status kf_vector_quorum_ask(kf_host *h, kofn_incarnation incarnation,
                                 const kf_note *ask);
/* Stores a fingerprint that came.  kf_vector_quorum_vector stores a VECTOR that
 * was requested. */
void kf_vector_quorum_print(kf_route *r, const kf_note *note);
/* Reads a request for fingerprints, of one iterate and some later ones, or a
 * heartbeat: a peer that is not behind any more gets none. */
void kf_vector_quorum_hear(const kf_mesh_iterate *it, kf_route *r,
                           const kf_note *note);
/* Sends the fingerprint of our new iterate to the peers that asked. */
kofn_status kf_vector_quorum_tell(kf_host *h);
void kf_vector_quorum_vector(kf_host *h, const kf_route *r, const kf_note *note,
                             kf_buffer *body);
/* True if the iterate that came can be taken, and hands it over.  Enough others
 * have confirmed it, or it agrees with ours. */
bool kf_vector_quorum_ready(kf_host *h, kf_note *note, kf_buffer **body);
void kf_vector_quorum_drop(kf_mesh_iterate *it);

/* result.c */
/* True if our vector, with these numbers, still has the digest that was sent.
 * Else leaves word, and this node takes the vector of another one. */
bool kf_host_confirm_local(kf_host *h, const double *scalar, const double *v);
/* Handles numbers that are not finite: with errors this node takes the vector
 * of another one, else it fails with KOFN_NONFINITE. */
kofn_status kf_host_doubt(kf_host *h);
/* Sets the message of a node that has failed with that status. */
kofn_status kf_host_say_why(const kf_host *h, kofn_status st);

/* iterate.c */
/* Moves to another iterate; the partial products of the old one become
 * `before`. */
void kf_host_advance(kf_host *h, kofn_iterate_id at);
kofn_status kf_mesh_vector_take(kf_host *h, kofn_iterate_id at,
                                kf_buffer *body);
kofn_status kf_mesh_part_take(kf_host *h, const kf_note *note,
                              const kf_buffer *body);

#endif
