/* order.c -- the order in which an epoch goes through the points.
 *
 * A permutation of which each place can be asked for by itself, so that a worker
 * finds its points of a batch without the other places and without memory: a
 * Feistel network of eight rounds over the next power of four, gone through again
 * while it leads beyond the points ("cycle walking": Black, Rogaway, "Ciphers
 * with arbitrary finite domains", 2002; Luby, Rackoff 1988 for the rounds).
 */
#include "net.h"

static uint64_t scrambled(uint64_t x, uint64_t key, unsigned bits)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    uint64_t left = x >> bits, right = x & mask;

    for (uint64_t round = 1; round <= 8; round++) {
        uint64_t next =
            left ^ (kf_mix64(kf_state64(key, round) ^ kf_mix64(right)) & mask);

        left = right;
        right = next;
    }
    return left << bits | right;
}

size_t kf_order_at(uint64_t seed, uint64_t epoch, size_t i, size_t m)
{
    uint64_t key = kf_mix64(kf_state64(kf_mix64(seed), epoch + 1)), x = i;
    unsigned bits = 1;

    while (bits < 31 && (uint64_t)1 << 2 * bits < m)
        bits++;
    do
        x = scrambled(x, key, bits);
    while (x >= m);
    return (size_t)x;
}
