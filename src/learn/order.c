/* order.c -- the order in which an epoch visits the points.
 *
 * The order is a permutation, and each place is computed on its own. So a
 * worker finds its points of a batch without memory. A Feistel network of eight
 * rounds permutes the next power of four, and is applied again while the
 * result lies beyond the points ("cycle walking": Black, Rogaway, "Ciphers
 * with arbitrary finite domains", 2002; rounds: Luby, Rackoff, 1988).
 *
 * Owns nothing: pure functions of seed, epoch and place. */
#include "net.h"

#define ROUNDS 8

/* Returns the bits that a round adds to one half, computed from the other
 * half. */
static uint64_t mixture(uint64_t half, uint64_t key, uint64_t round,
                        unsigned bits)
{
    return kf_mix64(kf_state64(key, round) ^ kf_mix64(half)) &
           (((uint64_t)1 << bits) - 1);
}

/* Applies all rounds; with `back`, their inverses in reverse order. */
static uint64_t scrambled(uint64_t x, uint64_t key, unsigned bits, bool back)
{
    uint64_t left = x >> bits, right = x & (((uint64_t)1 << bits) - 1);
    uint64_t a = back ? right : left, b = back ? left : right;

    for (uint64_t k = 1; k <= ROUNDS; k++) {
        uint64_t round = back ? ROUNDS + 1 - k : k;
        uint64_t next = a ^ mixture(b, key, round, bits);

        a = b;
        b = next;
    }
    return back ? b << bits | a : a << bits | b;
}

static uint64_t key_of(uint64_t seed, uint64_t epoch)
{
    return kf_mix64(kf_state64(kf_mix64(seed), epoch + 1));
}

/* Returns the bits of half a number that can count m points. */
static unsigned bits_for(size_t m)
{
    unsigned bits = 1;

    while (bits < 31 && (uint64_t)1 << 2 * bits < m)
        bits++;
    return bits;
}

static size_t walk(uint64_t key, size_t i, size_t m, bool back)
{
    uint64_t x = i;
    unsigned bits = bits_for(m);

    do
        x = scrambled(x, key, bits, back);
    while (x >= m);
    return (size_t)x;
}

size_t kf_order_at(uint64_t seed, uint64_t epoch, size_t i, size_t m)
{
    return walk(key_of(seed, epoch), i, m, false);
}

size_t kf_order_place(uint64_t seed, uint64_t epoch, size_t point, size_t m)
{
    return walk(key_of(seed, epoch), point, m, true);
}
