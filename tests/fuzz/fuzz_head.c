/* fuzz_head.c -- fuzzes heads of all packets, unchanged and with a right
 * checksum: those of workers, and notes of nodes.
 * fuzz-iterations: 1000000 */
#include "packets.h"

#include "mesh/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes of the heads that no field uses. */
enum { OF_NOTES = 11 };

static bool check_task(const unsigned char *bytes, size_t n)
{
    unsigned char again[KF_HEAD];
    kf_head h;
    kofn_status st = kf_head_read(&h, bytes, n);

    MUST(st == KOFN_OK || (st == KOFN_FORMAT && *kofn_errmsg()));
    if (st) {
        MUST(h.version != KF_WIRE_VERSION);
        return false;
    }
    MUST(n == KF_HEAD && h.version == KF_WIRE_VERSION);
    MUST(h.how <= KF_HOW_PART && h.dtype <= KOFN_F32);
    kf_head_write(again, &h);
    MUST(memcmp(again, bytes, KF_HEAD) == 0); /* every byte has a meaning */
    return true;
}

/* Fields that no note has are not read: they may hold anything. */
static bool check_note(const unsigned char *bytes, size_t n)
{
    static const struct {
        size_t at, end;
    } used[] = {{0, OF_NOTES}, {12, 20}, {24, 120}, {128, 136}};
    unsigned char again[KF_HEAD];
    uint64_t job = 0;
    kf_note note;
    kofn_status st;

    if (n == KF_HEAD)
        memcpy(&job, bytes + KF_AT_JOB, sizeof job);
    MUST(kf_note_read(&note, bytes, n, job + 1) == KOFN_FORMAT);
    st = kf_note_read(&note, bytes, n, job);
    MUST(st == KOFN_OK || (st == KOFN_FORMAT && *kofn_errmsg()));
    if (st)
        return false;
    MUST(note.type >= KF_NOTE_BEAT && note.type <= KF_NOTE_LAST);
    kf_note_write(again, &note, job, NULL, 0);
    memcpy(again + KF_AT_BODY_SUM, bytes + KF_AT_BODY_SUM, 8);
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        MUST(memcmp(again + used[i].at, bytes + used[i].at,
                    used[i].end - used[i].at) == 0);
    return true;
}

/* No head is a task and a note. */
static void check(const unsigned char *bytes, size_t n)
{
    bool task = check_task(bytes, n), note = check_note(bytes, n);

    MUST(!task || !note);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint16_t version = KF_WIRE_VERSION;
    unsigned char bytes[KOFN_HEAD_MAX] = {0};
    size_t n = kf_min(size, sizeof bytes);
    uint64_t sum = kf_wire_sum(size, data, size);

    MUST(kf_wire_check(size, sum, data, size) == KOFN_OK);
    MUST(kf_wire_check(size, sum ^ 1, data, size) == KOFN_FORMAT);
    if (n)
        memcpy(bytes, data, n);
    check(bytes, n);
    if (n >= 16) {
        memcpy(bytes, "kofn", 4);
        if (size % 4)
            memcpy(bytes + KF_AT_VERSION, &version, sizeof version);
        sum = kf_hash(0, bytes, n - 8);
        memcpy(bytes + n - 8, &sum, 8);
        check(bytes, n);
    }
    return 0;
}
