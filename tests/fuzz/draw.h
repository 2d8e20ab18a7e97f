/* draw.h -- draws numbers from an input. Targets make packets with right
 * checksums of them, so that fuzzing reaches deep code. */
#ifndef KF_FUZZ_DRAW_H
#define KF_FUZZ_DRAW_H

#include "watch.h"

typedef struct draw {
    const uint8_t *data;
    size_t left;
} draw;

static inline unsigned next(draw *d, unsigned below)
{
    unsigned x = d->left ? *d->data : 0;

    if (d->left) {
        d->data++;
        d->left--;
    }
    return x % below;
}

/* Returns x so that x times `times` wraps round to `rest` modulo 2^64. Returns
 * 0 if there is none up to `top`. */
static inline uint64_t wrapping(draw *d, uint64_t times, uint64_t rest,
                                uint64_t top)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t from = next(d, 256);

    for (uint64_t i = 0; times > 1 && i < times; i++) {
        wide whole = ((wide)((from + i) % times) << 64) + rest;

        if (whole % times == 0 && whole >> 64 && whole / times <= top)
            return (uint64_t)(whole / times);
    }
    return 0;
}

/* Returns `fair` or a small number most often. Sometimes returns a number that
 * overflows, alone or `times` times. */
static inline uint64_t size_times(draw *d, uint64_t fair, uint64_t times)
{
    static const uint64_t odd[] = {0,          UINT64_MAX, 1ull << 63,
                                   1ull << 61, 1ull << 32, 1ull << 20};
    static const uint64_t rest[] = {UINT64_MAX, 0, 1, 8, 16, 64};
    unsigned how = next(d, 16);
    uint64_t x;

    if (how < 9)
        return fair;
    if (how < 12)
        return next(d, 64);
    if (how == 12)
        return odd[next(d, 6)];
    x = wrapping(d, times ? times : 1 + next(d, 64), rest[next(d, 6)],
                 how == 13 ? UINT64_MAX : UINT64_MAX / 16);
    return x ? x : fair;
}

static inline uint64_t size_of(draw *d, uint64_t fair)
{
    return size_times(d, fair, 0);
}

#endif
