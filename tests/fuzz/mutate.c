/* mutate.c -- makes numbers of an input wrap round.
 *
 * Changes of single bytes never make the product of two sizes wrap. So this
 * finds the numbers of an input, in decimal or as 64-bit words, and replaces
 * one of them. Its product with up to two others and the size of an element,
 * or its sum with a few, is then small modulo 2^64.
 *
 * Both libFuzzer and driver.c call it for every mutation.  Most often it leaves
 * the mutation to them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed);

__extension__ typedef unsigned __int128 wide;

#define NUMBERS 256

typedef struct number {
    size_t at, length;
    uint64_t value;
} number;

typedef struct found {
    number number[NUMBERS];
    size_t count;
} found;

static uint64_t state;

static uint64_t draw(uint64_t below) /* splitmix64 */
{
    return kf_next64(&state) % below;
}

/* ---- finding numbers ----------------------------------------------------- */

static void find_decimal(found *f, const uint8_t *data, size_t size)
{
    for (size_t i = 0, j; i < size && f->count < NUMBERS; i = j + 1) {
        uint64_t x = 0;

        for (j = i; j < size && data[j] >= '0' && data[j] <= '9'; j++)
            x = x * 10 + (uint64_t)(data[j] - '0');
        if (j > i)
            f->number[f->count++] = (number){i, j - i, x};
    }
}

/* Finds aligned words, which are sizes more often than reals. */
static void find_words(found *f, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 8 <= size && f->count < NUMBERS; i += 8) {
        number n = {i, 8, 0};

        memcpy(&n.value, data + i, 8);
        f->number[f->count++] = n;
    }
}

/* ---- solving ------------------------------------------------------------- */

/* Returns x so that its product with `times` wraps round to less than `times`,
 * or to -1 if possible. It is a little more than a multiple of 2^64, divided
 * by `times`. */
static uint64_t wrapping(uint64_t times)
{
    uint64_t j = 1 + draw(times - 1);
    wide whole = (wide)j << 64;

    for (uint64_t i = 0; draw(2) && i < times && i < 300; i++) {
        wide less = ((wide)(1 + (j + i) % (times - 1)) << 64) - 1;

        if (less % times == 0)
            return (uint64_t)(less / times);
    }
    return (uint64_t)((whole + times - 1) / times + draw(2));
}

/* Returns the product of an element's size and of up to two of the numbers. */
static uint64_t some_product(const found *f)
{
    static const uint64_t size[] = {1, 1, 4, 8, 8, 12, 16, 24};
    uint64_t product = size[draw(8)];

    for (uint64_t i = draw(3); i > 0; i--) {
        uint64_t x = f->number[draw(f->count)].value;

        if (x > 1 && x < UINT32_MAX && product < UINT32_MAX)
            product *= x;
    }
    return product;
}

static uint64_t odd_one(const found *f)
{
    uint64_t times = some_product(f);

    if (times < 2 || draw(8) == 0) /* a sum */
        return UINT64_MAX - draw(64) * (draw(2) ? 1 : 8);
    return draw(8) ? wrapping(times) : UINT64_MAX / times + draw(3);
}

/* ---- writing ------------------------------------------------------------- */

static size_t put_decimal(uint8_t *data, size_t size, size_t max_size,
                          const number *n, uint64_t x)
{
    char text[24];
    size_t length =
        (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)x);

    if (size - n->length + length > max_size)
        return size;
    memmove(data + n->at + length, data + n->at + n->length,
            size - n->at - n->length);
    memcpy(data + n->at, text, length);
    return size - n->length + length;
}

static size_t wrap(uint8_t *data, size_t size, size_t max_size)
{
    found f = {.count = 0};
    int words = draw(2) == 0;
    const number *n;

    if (words)
        find_words(&f, data, size);
    else
        find_decimal(&f, data, size);
    if (f.count == 0)
        return 0;
    n = &f.number[draw(f.count)];
    if (!words)
        return put_decimal(data, size, max_size, n, odd_one(&f));
    memcpy(data + n->at, &(uint64_t){odd_one(&f)}, 8);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed)
{
    size_t n = 0;

    state = seed;
    if (draw(8) == 0)
        n = wrap(data, size, max_size);
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
