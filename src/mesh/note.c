/* note.c -- notes between the nodes of a mesh: from fields to bytes and back.
 *
 * Bytes go into the caller's memory.  A list that is read is in memory that the
 * caller frees.  A note that is incomplete or invalid is refused here. */
#include "note.h"

#include <assert.h>

#define MAGIC UINT32_C(0x6e666f6b) /* "kofn" */
#define SUM_AT 84
#define BODY_SUM_AT 88

/* The fields that are sent unchanged, and their offsets. */
#define FIELDS(X)                                                              \
    X(from, 16)                                                                \
    X(epoch.number, 24)                                                        \
    X(epoch.proposer, 32)                                                      \
    X(at.step, 40)                                                             \
    X(at.lineage, 48)                                                          \
    X(word, 56)                                                                \
    X(group, 72)                                                               \
    X(seat, 76)                                                                \
    X(digest.exact, 96)                                                        \
    X(digest.machine, 104)                                                     \
    X(digest.sum, 112)                                                         \
    X(digest.way, 120)

/* Fields, partial products and vectors are sent in their representation in
 * memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "heads and bodies are little-endian");

/* ---- numbers ------------------------------------------------------------- */

static void put(unsigned char *p, uint64_t x, size_t bytes)
{
    assert(bytes <= 8);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(x >> 8 * i);
}

static uint64_t get(const unsigned char *p, size_t bytes)
{
    uint64_t x = 0;

    assert(bytes <= 8);
    for (size_t i = 0; i < bytes; i++)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

static uint32_t get32(const unsigned char *p)
{
    return (uint32_t)get(p, 4);
}

static uint32_t head_sum(const unsigned char *head)
{
    unsigned char copy[KF_NOTE_HEAD];

    memcpy(copy, head, sizeof copy);
    put(copy + SUM_AT, 0, 4);
    return (uint32_t)kf_hash(0, copy, sizeof copy);
}

/* ---- types --------------------------------------------------------------- */

kf_note_kind kf_note_kind_of(kf_note_type type)
{
    static const kf_note_kind of[KF_NOTE_LAST + 1] = {
        [KF_NOTE_BEAT] = {.state = true},
        [KF_NOTE_EPOCH] = {.state = true, .urgent = true},
        [KF_NOTE_DECIDE] = {.urgent = true},
        [KF_NOTE_ENOUGH] = {.urgent = true},
        [KF_NOTE_VECTOR] = {.state = true},
    };

    assert(type >= KF_NOTE_BEAT && type <= KF_NOTE_LAST);
    return of[type];
}

/* ---- heads --------------------------------------------------------------- */

void kf_note_write(unsigned char head[KF_NOTE_HEAD], const kf_note *note,
                   uint64_t job, const void *body, size_t body_bytes)
{
    assert(note->type >= KF_NOTE_BEAT);
    assert(note->type <= KF_NOTE_LAST);
    assert(body_bytes == 0 || body);
    put(head, MAGIC, 4);
    put(head + 4, KF_NOTE_VERSION, 2);
    put(head + 6, (uint64_t)note->type, 2);
    put(head + 8, job, 8);
#define X(field, at) memcpy(head + (at), &note->field, sizeof note->field);
    FIELDS(X)
#undef X
    put(head + 80,
        (uint64_t)note->final | (uint64_t)note->idle << 1 |
            (uint64_t)note->stranded << 2 | (uint64_t)note->digest.taken << 3,
        4);
    put(head + BODY_SUM_AT, body_bytes ? kf_hash(0, body, body_bytes) : 0, 8);
    put(head + SUM_AT, head_sum(head), 4);
}

static kofn_status check_head(const unsigned char *head, size_t bytes,
                              uint64_t job)
{
    if (bytes < 8 || get32(head) != MAGIC)
        return kf_fail(KOFN_FORMAT,
                       "a packet that is not kofn's: %zu bytes of head", bytes);
    if (get(head + 4, 2) != KF_NOTE_VERSION)
        return kf_fail(KOFN_FORMAT,
                       "another node uses protocol version %u, this one "
                       "version %d; run the same release on all nodes",
                       (unsigned)get(head + 4, 2), KF_NOTE_VERSION);
    if (bytes != KF_NOTE_HEAD || head_sum(head) != get32(head + SUM_AT))
        return kf_fail(KOFN_FORMAT,
                       "a note was damaged on its way: head of %zu bytes",
                       bytes);
    if (get(head + 8, 8) != job)
        return kf_fail(KOFN_FORMAT,
                       "a node works on job %016llx, this one on %016llx; "
                       "give all nodes the same matrix, scheme, nodes, seed "
                       "and options",
                       (unsigned long long)get(head + 8, 8),
                       (unsigned long long)job);
    return KOFN_OK;
}

kofn_status kf_note_read(kf_note *note, const unsigned char *head,
                         size_t head_bytes, uint64_t job)
{
    uint32_t flags;
    uint64_t type;

    TRY(check_head(head, head_bytes, job));
    type = get(head + 6, 2);
    if (type < KF_NOTE_BEAT || type > KF_NOTE_LAST)
        return kf_fail(KOFN_FORMAT, "a note has the unknown type %u",
                       (unsigned)type);
    flags = get32(head + 80);
    *note = (kf_note){.type = (kf_note_type)type,
                      .final = flags & 1,
                      .idle = flags & 2,
                      .stranded = flags & 4,
                      .digest.taken = flags & 8};
#define X(field, at) memcpy(&note->field, head + (at), sizeof note->field);
    FIELDS(X)
#undef X
    return KOFN_OK;
}

bool kf_note_whole(const unsigned char *head, const void *body, size_t bytes)
{
    return get(head + BODY_SUM_AT, 8) == (bytes ? kf_hash(0, body, bytes) : 0);
}

/* ---- bodies -------------------------------------------------------------- */

size_t kf_note_bytes(const kf_note *note)
{
    return note->type == KF_NOTE_EPOCH    ? note->members * KF_NOTE_MEMBER
           : note->type == KF_NOTE_DECIDE ? note->listed * 4
                                          : 0;
}

void kf_note_pack(const kf_note *note, unsigned char *body)
{
    if (note->type == KF_NOTE_EPOCH)
        for (size_t r = 0; r < note->members; r++, body += KF_NOTE_MEMBER) {
            put(body, note->member[r].incarnation, 8);
            put(body + 8, note->member[r].seat, 4);
            put(body + 12, note->member[r].prompt, 4);
        }
    else if (note->type == KF_NOTE_DECIDE)
        for (size_t i = 0; i < note->listed; i++)
            put(body + 4 * i, note->list[i], 4);
}

static kofn_status unpack_members(kf_note *note, const unsigned char *body,
                                  size_t bytes, void **room)
{
    kf_member *m = kf_new(bytes / KF_NOTE_MEMBER, sizeof *m);

    assert(bytes % KF_NOTE_MEMBER == 0);
    *room = m;
    if (!m)
        return KOFN_NOMEM;
    note->member = m;
    note->members = bytes / KF_NOTE_MEMBER;
    for (size_t r = 0; r < note->members; r++, body += KF_NOTE_MEMBER)
        m[r] =
            (kf_member){get(body, 8), get32(body + 8), get32(body + 12) != 0};
    return KOFN_OK;
}

static kofn_status unpack_list(kf_note *note, const unsigned char *body,
                               size_t bytes, void **room)
{
    uint32_t *list = kf_new(bytes / 4, sizeof *list);

    assert(bytes % 4 == 0);
    *room = list;
    if (!list)
        return KOFN_NOMEM;
    note->list = list;
    note->listed = bytes / 4;
    for (size_t i = 0; i < note->listed; i++)
        list[i] = get32(body + 4 * i);
    return KOFN_OK;
}

kofn_status kf_note_unpack(kf_note *note, const unsigned char *body,
                           size_t bytes, void **room)
{
    size_t unit = note->type == KF_NOTE_EPOCH    ? KF_NOTE_MEMBER
                  : note->type == KF_NOTE_DECIDE ? 4
                                                 : 0;

    *room = NULL;
    if (unit ? bytes % unit : bytes > 0)
        return kf_fail(KOFN_FORMAT,
                       "a note of type %d with a body of %zu bytes",
                       (int)note->type, bytes);
    if (note->type == KF_NOTE_EPOCH)
        return unpack_members(note, body, bytes, room);
    if (note->type == KF_NOTE_DECIDE)
        return unpack_list(note, body, bytes, room);
    return KOFN_OK;
}
