/* judge.h -- contains the rules of docs/wire.md for frames a second time, in
 * short. A judge decides whether the bytes sent to a transport are allowed,
 * and which packets they contain. A receiver reads the output of the
 * transport. */
#ifndef KF_FUZZ_JUDGE_H
#define KF_FUZZ_JUDGE_H

#include "watch.h"

#include "net/inside.h"

#define JUDGED 4096 /* packets of a channel, at most */

typedef struct judged {
    size_t head_bytes;
    uint64_t bytes, sum; /* of the head and the body */
} judged;

typedef struct judged_channel {
    bool coming, asks;
    uint64_t bytes, at;    /* length of the incoming packet; bytes received */
    uint64_t got, whole;   /* credit used; used by whole packets */
    uint64_t window, may;  /* the first credit; credit given by the transport */
    uint64_t special;      /* the largest credit allowed for a long body */
    uint64_t allowed;      /* credit of the transport */
    judged packet[JUDGED]; /* in order; the last may be incomplete */
    size_t begun, done, delivered;
} judged_channel;

typedef struct judge {
    bool dialled;      /* the transport dialled: WELCOME and GO may come */
    bool peer;         /* greeted */
    bool invalid;      /* a frame was not allowed: the link must end */
    bool over;         /* GO was sent: the link must end */
    bool unsure;       /* the credit may or may not have been enough */
    bool sent_to;      /* the transport was asked to send something */
    uint64_t body_max; /* of the transport */
    unsigned char part[KF_HEADER + KOFN_HEAD_MAX];
    size_t have;
    uint64_t left; /* of a body in this frame */
    int into;      /* its channel */
    judged_channel channel[KF_CHANNELS];
} judge;

static inline uint64_t judge_sum(uint64_t sum, const void *data, size_t n)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i++)
        sum = (sum ^ p[i]) * 0x100000001b3u; /* FNV-1a */
    return sum;
}

/* True if the credit covers the sent bytes. */
static inline bool judge_credit(judge *j, const judged_channel *a)
{
    if (a->got > kf_max(a->whole + a->window, a->special))
        return false;
    j->unsure |= a->got > a->may;
    return true;
}

static inline void judge_whole(judged_channel *a)
{
    a->coming = false;
    a->whole += KF_COST + a->bytes;
    a->done++;
}

static inline bool judge_packet(judge *j, judged_channel *a, uint64_t chunk,
                                uint64_t bytes)
{
    size_t head = (size_t)kf_net_number(j->part + 2, 2);

    a->got += KF_COST;
    if (a->coming || bytes > j->body_max || chunk > bytes ||
        !judge_credit(j, a))
        return false;
    a->asks = bytes > a->window - KF_COST;
    if (a->asks)
        a->special = a->got + bytes;
    MUST(a->begun < JUDGED);
    a->packet[a->begun++] =
        (judged){head, bytes, judge_sum(0, j->part + KF_HEADER, head)};
    a->coming = true;
    a->bytes = bytes;
    a->at = 0;
    if (!bytes)
        judge_whole(a);
    return !(a->asks && chunk);
}

static inline bool judge_chunk(judge *j, judged_channel *a, uint64_t chunk)
{
    if (!a->coming || !chunk || chunk > KF_CHUNK || chunk > a->bytes - a->at)
        return false;
    if (a->asks) /* sure once the transport has answered */
        j->unsure |= a->may < a->special;
    a->got += chunk;
    j->left = chunk;
    return judge_credit(j, a);
}

static inline bool judge_greeting(judge *j, int word)
{
    if (kf_net_number(j->part + 2, 2) != sizeof(kf_greeting) ||
        memcmp(j->part + KF_HEADER, KF_MAGIC, 8) != 0)
        return false;
    if (j->dialled && word == KF_GO) {
        j->over = true;
        return true;
    }
    if (j->peer || word != (j->dialled ? KF_WELCOME : KF_HELLO))
        return false;
    j->peer = true;
    for (int i = 0; i < KF_CHANNELS; i++)
        j->channel[i].allowed =
            kf_net_number(j->part + KF_HEADER +
                              (i ? offsetof(kf_greeting, urgent)
                                 : offsetof(kf_greeting, window)),
                          8);
    return true;
}

/* True if the complete header and head are allowed now. */
static inline bool judge_frame(judge *j)
{
    int word = j->part[0], channel = j->part[1];
    uint64_t chunk = kf_net_number(j->part + 4, 4);
    uint64_t number = kf_net_number(j->part + 8, 8);
    judged_channel *a = &j->channel[channel & 1];

    if (channel > 1 || (chunk && word != KF_PACKET && word != KF_DATA))
        return false;
    if (word == KF_HELLO || word == KF_WELCOME || word == KF_GO)
        return judge_greeting(j, word);
    j->into = channel;
    switch (j->peer ? word : 0) {
    case KF_PACKET:
        return judge_packet(j, a, chunk, number) &&
               (!chunk || judge_chunk(j, a, chunk));
    case KF_DATA:
        return judge_chunk(j, a, chunk);
    case KF_SKIP: /* allowed before a body begins */
        j->unsure |= j->sent_to;
        return j->sent_to;
    case KF_CREDIT:
        if (number < a->allowed)
            return false;
        a->allowed = number;
        return true;
    default:
        return false;
    }
}

static inline size_t judge_body(judge *j, const unsigned char *p, size_t n)
{
    judged_channel *a = &j->channel[j->into];
    size_t m = (size_t)kf_min(j->left, (uint64_t)n);
    judged *k = &a->packet[a->begun - 1];

    k->sum = judge_sum(k->sum, p, m);
    a->at += m;
    j->left -= m;
    if (!j->left && a->at == a->bytes)
        judge_whole(a);
    return m;
}

/* Judges bytes that are sent to the transport. */
static inline void judge_feed(judge *j, const unsigned char *p, size_t n)
{
    while (n > 0 && !j->invalid && !j->over) {
        size_t m = 1, want;

        if (j->left) {
            m = judge_body(j, p, n);
        } else if (j->have > 0 || *p != KF_BEAT || !j->peer) {
            j->part[j->have++] = *p;
            want = KF_HEADER;
            if (j->have >= KF_HEADER)
                want += (size_t)kf_net_number(j->part + 2, 2);
            j->invalid = want > sizeof j->part;
            if (!j->invalid && j->have == want) {
                j->have = 0;
                j->invalid = !judge_frame(j);
            }
        }
        p += m;
        n -= m;
    }
}

/* Checks a delivered packet: it must be the next one of a channel. */
static inline void judge_delivered(judge *j, const kofn_packet *k)
{
    uint64_t sum = judge_sum(0, k->head, k->head_bytes);

    MUST(k->body_bytes == 0 || k->body);
    sum = judge_sum(sum, k->body, k->body_bytes);
    for (int i = 0; i < KF_CHANNELS; i++) {
        judged_channel *a = &j->channel[i];
        const judged *is = &a->packet[a->delivered];

        if (a->delivered < a->done && is->head_bytes == k->head_bytes &&
            is->bytes == k->body_bytes && is->sum == sum) {
            a->delivered++;
            return;
        }
    }
    MUST(false); /* a packet that was never sent */
}

/* ---- output of the transport --------------------------------------------- */

typedef struct receiver {
    unsigned char part[KF_HEADER + KOFN_HEAD_MAX];
    size_t have, left;
    uint64_t got[KF_CHANNELS];
} receiver;

static inline void receiver_frame(receiver *e, judge *j)
{
    int word = e->part[0], channel = e->part[1];
    size_t chunk = (size_t)kf_net_number(e->part + 4, 4);
    uint64_t number = kf_net_number(e->part + 8, 8);

    MUST(channel < KF_CHANNELS && word && strchr("HWGPDCS", word));
    MUST(chunk <= KF_CHUNK);
    if (word == KF_CREDIT) {
        MUST(number >= j->channel[channel].may);
        j->channel[channel].may = number;
    }
    if (word == KF_PACKET || word == KF_DATA) {
        e->got[channel] += chunk + (word == KF_PACKET ? KF_COST : 0);
        MUST(e->got[channel] <= j->channel[channel].allowed);
    } else {
        MUST(chunk == 0);
    }
    e->left = chunk;
}

static inline void receiver_feed(receiver *e, judge *j, const unsigned char *p,
                                 size_t n)
{
    while (n > 0) {
        size_t m = kf_min(e->left, n), want = KF_HEADER;

        e->left -= m;
        if (m == 0 && e->have == 0 && *p == KF_BEAT) {
            m = 1;
        } else if (m == 0) {
            e->part[e->have++] = *p;
            m = 1;
            if (e->have >= KF_HEADER)
                want += (size_t)kf_net_number(e->part + 2, 2);
            MUST(want <= sizeof e->part);
            if (e->have == want) {
                e->have = 0;
                receiver_frame(e, j);
            }
        }
        p += m;
        n -= m;
    }
}

#endif
