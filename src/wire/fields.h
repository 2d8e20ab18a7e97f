/* fields.h -- the head of a packet, as a table of its fields.
 *
 * All packets of kofn have heads of KF_HEAD bytes, little-endian on every
 * machine (docs/wire.md).  A head begins with "kofn" and the version, and ends
 * with its checksum, in every version.  The other fields depend on the kind:
 * tasks and blocks (wire.h), or notes between nodes (mesh/note.h).  Each of
 * these is a struct and a table.
 *
 * Tables are constant, structs are the caller's.  Nothing that is read here may
 * be used before it was checked. */
#ifndef KF_WIRE_FIELDS_H
#define KF_WIRE_FIELDS_H

#include "base/base.h"

#define KF_WIRE_VERSION 10
#define KF_HEAD 144

/* A field: its place and bytes in the struct, and in the head. */
typedef struct kf_head_field {
    const char *name;
    size_t place, size;
    size_t at, bytes; /* bytes: at most size */
    uint64_t most;    /* highest value that is read; 0: any */
} kf_head_field;

#define KF_HEAD_FIELD(type, member, at, bytes, most)                           \
    {                                                                          \
#member, offsetof(type, member), sizeof(((type *)0)->member), at,      \
            bytes, most                                                        \
    }

/* The heads of one struct. */
typedef struct kf_head_fields {
    const char *between; /* the ends that send them */
    const kf_head_field *field;
    size_t count;
    bool (*has)(unsigned type); /* true for a type of these packets */
} kf_head_fields;

/* Places of the fields that every head has. */
enum {
    KF_AT_VERSION = 4,
    KF_AT_TYPE = 6,
    KF_AT_JOB = 32,
    KF_AT_BODY_SUM = 128
};

/* Writes a head, with version and checksum. */
void kf_head_fields_write(const kf_head_fields *f, unsigned char head[KF_HEAD],
                          const void *from);
/* Reads a head into a struct.  Each number is then in its range; the caller
 * checks what it means.  Fails with KOFN_FORMAT if the bytes are no head, are
 * damaged, or are of another version or between other ends.  Sets *version: 0
 * if it could not be read. */
kofn_status kf_head_fields_read(const kf_head_fields *f, void *to,
                                const void *bytes, size_t n, unsigned *version);

/* Returns the checksum of a body, 0 if it is empty. */
uint64_t kf_wire_sum(uint64_t job, const void *body, size_t n);
/* Fails with KOFN_FORMAT if the body does not have the checksum of its head. */
kofn_status kf_wire_check(uint64_t job, uint64_t sum, const void *body,
                          size_t n);

#endif
