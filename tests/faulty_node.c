/* faulty_node.c -- the kofn command with a faulty node of a mesh. The node
 * computes right results, and sends wrong ones over its sockets.
 *
 * KOFN_LIES=T: from iterate T on every partial product, vector, block, sketch
 * and fingerprint is wrong. So are the digests of its iterates, every second
 * note on its own state, and the lists of partial products to be decoded.
 * Checksums match the wrong contents. KOFN_LIES=T:SET: only notes of the types
 * with a bit in SET. It reports its first wrong note on standard error. Linked
 * with
 * --wrap=kofn_net_mesh. */
#include "base/base.h"
#include "base/lent.h"
#include "mesh/note.h"

#include <kofn/net.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern kofn_status __real_kofn_net_mesh(kofn_transport **out,
                                        const char *address,
                                        const kofn_net_options *o);
kofn_status __wrap_kofn_net_mesh(kofn_transport **out, const char *address,
                                 const kofn_net_options *o);

static kofn_status (*send_right)(kofn_transport *t, kofn_peer peer,
                                 const void *head, size_t head_bytes,
                                 const kofn_lent *body, bool urgent);
static uint64_t since, kinds, count;

/* Changes the numbers of a body. The turns behind the numbers of a vector
 * stay. */
static void spoil(double *x, size_t n)
{
    for (size_t i = 0; i < (n + 1) / 2; i++)
        x[i] += (1 + fabs(x[i])) * (double)(1 + (i * 7 + count * 11) % 13);
}

/* Lists the lowest seats, in the same number. */
static void list_others(kf_note *note, void *body, size_t bytes)
{
    uint32_t *list;
    void *room = NULL;

    if (kf_note_unpack(note, body, bytes, &room) == KOFN_OK) {
        list = (uint32_t *)(uintptr_t)note->list;
        for (size_t at = 0; at < note->listed; at += 1 + list[at])
            for (uint32_t i = 0; i < list[at]; i++)
                list[at + 1 + i] = i;
        kf_note_pack(note, body);
    }
    kf_free(room);
}

static void falsify(kf_note *note, void *body, size_t bytes)
{
    note->digest.exact ^= note->digest.exact ? 1 + count : 0;
    note->digest.sum += 1 + fabs(note->digest.sum);
    switch (note->type) {
    case KF_NOTE_PARTIAL:
    case KF_NOTE_VECTOR:
    case KF_NOTE_BLOCK:
    case KF_NOTE_SKETCH:
        spoil(body, bytes / sizeof(double));
        break;
    case KF_NOTE_PRINT:
        note->word[0] ^= UINT64_C(1) << 51;
        break;
    case KF_NOTE_DECIDE:
        list_others(note, body, bytes);
        break;
    case KF_NOTE_BEAT:
        note->at.step += count % 2 * 3;
        note->at.lineage ^= count % 2;
        break;
    default:
        break;
    }
}

static kofn_status send_wrong(kofn_transport *t, kofn_peer peer,
                              const void *head, size_t head_bytes,
                              const kofn_lent *body, bool urgent)
{
    unsigned char other[KF_HEAD];
    size_t bytes = body ? body->bytes : 0;
    kofn_lent false_body = {.bytes = bytes, .done = free};
    kofn_status st;
    uint64_t job;
    kf_note note;

    memcpy(&job, (const char *)head + KF_AT_JOB, sizeof job);
    if (kf_note_read(&note, head, head_bytes, job) || note.at.step < since ||
        (kinds && !(kinds >> note.type & 1)))
        return send_right(t, peer, head, head_bytes, body, urgent);
    if (count++ == 0)
        fprintf(stderr, "faulty_node: wrong notes from iterate %llu on\n",
                (unsigned long long)note.at.step);
    false_body.data = false_body.ud = malloc(bytes + 1);
    if (!false_body.ud)
        return KOFN_NOMEM;
    if (bytes)
        memcpy(false_body.ud, body->data, bytes);
    falsify(&note, false_body.ud, bytes);
    kf_note_write(other, &note, job, false_body.ud, bytes);
    st = send_right(t, peer, other, sizeof other, body ? &false_body : NULL,
                    urgent);
    if (!body || st == KOFN_AGAIN)
        free(false_body.ud); /* it was not accepted */
    if (st != KOFN_AGAIN)
        kf_give_back(body);
    return st;
}

kofn_status __wrap_kofn_net_mesh(kofn_transport **out, const char *address,
                                 const kofn_net_options *o)
{
    kofn_status st = __real_kofn_net_mesh(out, address, o);
    const char *words = getenv("KOFN_LIES");
    char *rest;

    if (st || !words)
        return st;
    since = strtoull(words, &rest, 10);
    kinds = *rest ? strtoull(rest + 1, NULL, 0) : 0;
    send_right = (*out)->send;
    (*out)->send = send_wrong;
    return KOFN_OK;
}
