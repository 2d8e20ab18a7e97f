/* fuzz_events.c -- fuzzes events files. fuzz-iterations: 300000 */
#include <kofn.h>

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORKERS 8
#define ROUNDS 50

static void must(bool rule)
{
    if (!rule)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_fault_event *list;
    size_t count, joins = 0;
    kofn_status st = kofn_events_parse(&list, &count, (const char *)data, size,
                                       WORKERS, ROUNDS);

    must(st == KOFN_OK || st == KOFN_FORMAT || st == KOFN_NOMEM);
    must(st == KOFN_OK || *kofn_errmsg());
    for (size_t i = 0; i < count; i++) {
        const kofn_fault_event *h = &list[i];

        must(h->round >= 1 && h->round <= ROUNDS);
        must(h->fraction >= 0 && h->fraction < 1);
        must(i == 0 || h[-1].round < h->round ||
             (h[-1].round == h->round && h[-1].fraction <= h->fraction));
        joins += h->kind == KOFN_FAULT_EVENT_JOIN;
        must(h->kind == KOFN_FAULT_EVENT_JOIN || h->worker < WORKERS + joins);
        must(h->kind != KOFN_FAULT_EVENT_SLOW ||
             (h->factor > 0 && h->factor <= 1e6));
    }
    kofn_free(list);
    return 0;
}
