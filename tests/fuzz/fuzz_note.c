/* fuzz_note.c -- fuzzes the notes that other nodes may send a mesh node.
 *
 * An input is a row of notes, a few bytes each. They come from a few
 * incarnations about a few iterates and epochs, so that they make sense. Each
 * becomes bytes and a note again, sometimes damaged on its way.
 *
 * fuzz-iterations: 75000 */
#include "watch.h"

#include "mesh/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define JOB 77
#define GROUPS 4

typedef struct reader {
    const uint8_t *data;
    size_t left;
} reader;

static unsigned next(reader *r, unsigned below)
{
    unsigned x = r->left ? *r->data : 0;

    if (r->left) {
        r->data++;
        r->left--;
    }
    return x % below;
}

static kofn_iterate_id some_iterate(reader *r, const kf_node *n,
                                    const kofn_iterate_id *seen)
{
    kofn_node_view v = KOFN_NODE_VIEW_INIT;
    unsigned how = next(r, 8);

    kf_node_look(n, &v);
    if (how < 4)
        return v.at;
    if (how < 6)
        return *seen;
    return (kofn_iterate_id){v.at.step + next(r, 4), next(r, 3)};
}

/* Writes a note to bytes and reads it again. Returns false if it was damaged,
 * after checking that the damage was found. */
static bool write_and_read(reader *r, kf_note *note, void **room)
{
    unsigned char head[KF_HEAD], *body;
    size_t bytes = kf_note_bytes(note), at = next(r, 255);
    kf_note back;
    bool whole;

    *room = NULL;
    body = malloc(bytes + 1);
    MUST(body);
    kf_note_pack(note, body);
    kf_note_write(head, note, JOB, body, bytes);
    if (at < KF_HEAD && next(r, 8) == 0) {
        head[at] ^= (unsigned char)(1 + next(r, 255));
        MUST(kf_note_read(&back, head, sizeof head, JOB) == KOFN_FORMAT);
        free(body);
        return false;
    }
    MUST(kf_note_read(&back, head, sizeof head, JOB) == KOFN_OK);
    MUST(kf_note_read(&back, head, sizeof head, JOB + 1) == KOFN_FORMAT);
    MUST(kf_note_read(&back, head, at % KF_HEAD, JOB) == KOFN_FORMAT);
    MUST(kf_note_read(&back, head, sizeof head, JOB) == KOFN_OK);
    whole = kf_note_whole(head, body, bytes);
    MUST(whole);
    MUST(kf_note_unpack(&back, body, bytes, room) == KOFN_OK);
    MUST(back.type == note->type && back.from == note->from &&
         back.at.step == note->at.step && back.at.lineage == note->at.lineage &&
         back.epoch.number == note->epoch.number &&
         back.word[0] == note->word[0] && back.word[1] == note->word[1] &&
         back.final == note->final && back.idle == note->idle &&
         back.stranded == note->stranded &&
         back.digest.way == note->digest.way &&
         back.digest.taken == note->digest.taken && back.group == note->group &&
         back.seat == note->seat && back.members == note->members &&
         back.listed == note->listed);
    free(body);
    *note = back;
    return true;
}

static void drain(kf_node *n)
{
    for (kf_node_action a; kf_node_next(n, &a);) {
        MUST(a.type == KF_NODE_SEND || a.type == KF_NODE_TAKE);
        MUST(a.note.type >= KF_NOTE_BEAT && a.note.type <= KF_NOTE_PRINT);
        if (a.note.type == KF_NOTE_PARTIAL)
            MUST(a.note.group < GROUPS);
        if (a.note.type == KF_NOTE_EPOCH && a.note.epoch.number)
            MUST(a.note.members && a.note.member);
    }
}

/* Does the node's next task. The task must make sense. */
static void work(kf_node *n, kofn_time now, bool final)
{
    kf_node_task t;

    kf_node_work(n, &t);
    if (t.type == KF_NODE_TASK_NONE)
        return;
    MUST(t.group < GROUPS || t.type == KF_NODE_TASK_ENCODE);
    MUST(t.type != KF_NODE_TASK_DECODE || t.decoder);
    MUST(t.type == KF_NODE_TASK_ENCODE || t.type == KF_NODE_TASK_UPDATE ||
         t.type == KF_NODE_TASK_SOLO || kf_node_wanted(n, &t));
    MUST(kf_node_step(n, &(kf_node_event){.type = KF_NODE_DONE,
                                          .now = now,
                                          .task = &t,
                                          .final = final}) == KOFN_OK);
    drain(n);
}

static void receive_note(reader *r, kf_node *n, kofn_time now,
                         kofn_iterate_id *seen)
{
    kf_member member[4];
    uint32_t list[16];
    kf_note note = {.type = (kf_note_type)(KF_NOTE_BEAT + next(r, 12)),
                    .from = next(r, 6),
                    .epoch = {next(r, 8), next(r, 6)},
                    .member = member,
                    .list = list};
    void *room;

    note.at = some_iterate(r, n, seen);
    note.word[0] = next(r, 32);
    note.word[1] = next(r, 32);
    note.final = next(r, 16) == 0;
    note.idle = next(r, 2);
    note.stranded = next(r, 2);
    note.digest.way = next(r, 256);
    note.digest.taken = next(r, 2);
    note.group = next(r, GROUPS + 1);
    note.seat = next(r, 8) ? next(r, 6) : KOFN_NO_SEAT;
    if (note.type == KF_NOTE_EPOCH)
        note.members = next(r, 5);
    for (size_t i = 0; i < note.members; i++)
        member[i] =
            (kf_member){next(r, 6), (uint32_t)i + next(r, 2), next(r, 2)};
    if (note.type == KF_NOTE_DECIDE)
        note.listed = next(r, 17);
    for (size_t i = 0; i < note.listed; i++)
        list[i] = next(r, 5);
    *seen = note.at;
    if (!write_and_read(r, &note, &room))
        return;
    MUST(kf_node_step(n, &(kf_node_event){.type = KF_NODE_NOTE,
                                          .now = now,
                                          .note = &note,
                                          .principal = next(r, 3)}) == KOFN_OK);
    drain(n);
    kf_free(room);
}

static void run(reader *r, const kofn_plan *plan)
{
    static const kf_node_event_type went[] = {KF_NODE_WENT, KF_NODE_LIAR};
    kf_node_options o = {.incarnation = 1 + next(r, 5),
                         .job = JOB,
                         .nodes = 3,
                         .groups = GROUPS,
                         .wish = next(r, 2) ? 0 : KOFN_NO_SEAT,
                         .decoding = next(r, 2) ? KOFN_DECODE_REPLICATED
                                                : KOFN_DECODE_DISTRIBUTED};
    kofn_mesh_product product = {.plan = plan};
    kofn_iterate_id seen = {0, JOB};
    kofn_time now = 0;
    uint64_t t = 0;
    kf_node *n;

    MUST(kf_node_new(&n, &product, 1, &o, 0) == KOFN_OK);
    while (r->left) {
        kofn_node_view v = KOFN_NODE_VIEW_INIT;

        now += next(r, 64) == 0 ? KOFN_SECOND : 1000000 * next(r, 60);
        switch (next(r, 8)) {
        case 0:
            MUST(kf_node_step(n, &(kf_node_event){.type = KF_NODE_TICK,
                                                  .now = now}) == KOFN_OK);
            break;
        case 1:
            MUST(kf_node_step(n, &(kf_node_event){.type = went[next(r, 2)],
                                                  .now = now,
                                                  .incarnation = next(r, 6),
                                                  .principal = next(r, 3)}) ==
                 KOFN_OK);
            break;
        case 2:
        case 3:
            work(n, now, next(r, 16) == 0);
            break;
        default:
            receive_note(r, n, now, &seen);
        }
        drain(n);
        kf_node_look(n, &v);
        MUST(v.at.step >= t && v.live >= 1);
        t = v.at.step;
    }
    kf_node_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static kofn_plan *plan;
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 16, 16, 1, KOFN_F64, false);
    reader r = {data, size};

    if (!plan)
        MUST(kofn_plan_new(&plan, &pb, "mds:k=2,basis=gauss_sys", 4, 1) ==
             KOFN_OK);
    run(&r, plan);
    return 0;
}
