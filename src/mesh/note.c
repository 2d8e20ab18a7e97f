/* note.c -- notes between the nodes of a mesh: from fields to bytes and back.
 *
 * Bytes go into the caller's memory.  A list that is read is in memory that the
 * caller frees.  A note that is incomplete or invalid is refused here. */
#include "note.h"

#include <assert.h>

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

/* A note as it is sent. */
typedef struct sent {
    kf_note note;
    uint64_t job, body_sum;
} sent;

static bool has(unsigned type)
{
    return type >= KF_NOTE_BEAT && type <= KF_NOTE_LAST;
}

static const kf_head_field field[] = {
    KF_HEAD_FIELD(sent, note.type, KF_AT_TYPE, 1, 0),
    KF_HEAD_FIELD(sent, note.final, 7, 1, 1),
    KF_HEAD_FIELD(sent, note.idle, 8, 1, 1),
    KF_HEAD_FIELD(sent, note.stranded, 9, 1, 1),
    KF_HEAD_FIELD(sent, note.digest.taken, 10, 1, 1),
    KF_HEAD_FIELD(sent, note.group, 12, 4, 0),
    KF_HEAD_FIELD(sent, note.seat, 16, 4, 0),
    KF_HEAD_FIELD(sent, note.from, 24, 8, 0),
    KF_HEAD_FIELD(sent, job, KF_AT_JOB, 8, 0),
    KF_HEAD_FIELD(sent, note.epoch.number, 40, 8, 0),
    KF_HEAD_FIELD(sent, note.epoch.proposer, 48, 8, 0),
    KF_HEAD_FIELD(sent, note.at.step, 56, 8, 0),
    KF_HEAD_FIELD(sent, note.at.lineage, 64, 8, 0),
    KF_HEAD_FIELD(sent, note.word[0], 72, 8, 0),
    KF_HEAD_FIELD(sent, note.word[1], 80, 8, 0),
    KF_HEAD_FIELD(sent, note.digest.exact, 88, 8, 0),
    KF_HEAD_FIELD(sent, note.digest.machine, 96, 8, 0),
    KF_HEAD_FIELD(sent, note.digest.sum, 104, 8, 0),
    KF_HEAD_FIELD(sent, note.digest.way, 112, 8, 0),
    KF_HEAD_FIELD(sent, body_sum, KF_AT_BODY_SUM, 8, 0),
};

static const kf_head_fields notes = {"nodes of a mesh", field,
                                     sizeof field / sizeof *field, has};

void kf_note_write(unsigned char head[KF_HEAD], const kf_note *note,
                   uint64_t job, const void *body, size_t body_bytes)
{
    const sent s = {*note, job, kf_wire_sum(job, body, body_bytes)};

    assert(body_bytes == 0 || body);
    kf_head_fields_write(&notes, head, &s);
}

kofn_status kf_note_read(kf_note *note, const unsigned char *head,
                         size_t head_bytes, uint64_t job)
{
    sent s = {0};
    unsigned version;

    TRY(kf_head_fields_read(&notes, &s, head, head_bytes, &version));
    if (s.job != job)
        return kf_fail(KOFN_FORMAT,
                       "a node works on job %016llx, this one on %016llx; "
                       "give all nodes the same matrix, scheme, nodes, seed "
                       "and options",
                       (unsigned long long)s.job, (unsigned long long)job);
    *note = s.note;
    return KOFN_OK;
}

bool kf_note_whole(const unsigned char *head, const void *body, size_t bytes)
{
    return !kf_wire_check(get(head + KF_AT_JOB, 8),
                          get(head + KF_AT_BODY_SUM, 8), body, bytes);
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
