/* unresponsive_worker ADDRESS SECONDS work|store [COUNT] -- runs COUNT workers
 * that are connected and send signs of life. They answer no task, or do not
 * even store their blocks. They end when they are refused or dismissed, and
 * print which. */
#include <kofn.h>
#include <kofn/net.h>

#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

static kofn_transport *coordinator[MOST];

static void say(kofn_transport *t, kofn_peer to, const kf_head *h)
{
    unsigned char head[KF_HEAD];

    kf_head_write(head, h);
    t->send(t, to, head, sizeof head, NULL, false);
}

/* True if this worker is done. */
static bool obey(kofn_transport *t, const kofn_packet *k, bool stores)
{
    kf_head h;

    if (k->what == KOFN_CAME)
        say(t, k->peer, &(kf_head){.type = KF_WIRE_HELLO});
    if (k->what != KOFN_PACKET || kf_head_read(&h, k->head, k->head_bytes))
        return false;
    if (h.type == KF_WIRE_STORE && stores)
        say(t, k->peer,
            &(kf_head){.type = KF_WIRE_STORED, .job = h.job, .block = h.block});
    if (h.type == KF_WIRE_REFUSED)
        printf("refused: %.*s\n", (int)k->body_bytes, (const char *)k->body);
    if (h.type == KF_WIRE_DISMISS)
        printf("dismissed\n");
    return h.type == KF_WIRE_REFUSED || h.type == KF_WIRE_DISMISS;
}

int main(int argc, char **argv)
{
    kofn_net_options o = {
        .size = sizeof o, .body_max = (size_t)1 << 30, .insecure = true};
    int count = argc > 4 ? atoi(argv[4]) : 1, left = count;
    bool stores = argc > 3 && strcmp(argv[3], "work") == 0;

    if (argc < 4 || count < 1 || count > MOST)
        return 2;
    for (int i = 0; i < count; i++)
        if (kofn_net_connect(&coordinator[i], argv[1], &o)) {
            fprintf(stderr, "%s\n", kofn_errmsg());
            return 1;
        }
    for (long turn = atol(argv[2]) * 100; turn > 0 && left > 0; turn--)
        for (int i = 0; i < count; i++) {
            kofn_transport *t = coordinator[i];
            kofn_packet k;

            while (t && t->wait(t, i ? 0 : KOFN_SECOND / 100, &k) == KOFN_OK) {
                bool over = obey(t, &k, stores);

                if (k.own)
                    t->release(t, k.own);
                if (!over)
                    continue;
                t->close(t, KOFN_SECOND);
                t = coordinator[i] = NULL;
                left--;
            }
        }
    for (int i = 0; i < count; i++)
        if (coordinator[i])
            coordinator[i]->close(coordinator[i], 0);
    return 0;
}
