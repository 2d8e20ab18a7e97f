/* rng.c -- where the numbers of a random stream are drawn.  Random123's header
 * is read here alone: it brings all of the processor's vector intrinsics with
 * it, which take longer to compile than most files of the library.
 *
 * A stream is a struct of the caller's; there is no state besides, no memory
 * is allocated and no entropy is asked for. */
#include "base/rng.h"

#include <Random123/philox.h>
#include <assert.h>

static philox4x32_ctr_t draw(kf_rng *r)
{
    philox4x32_ctr_t counter = {
        {r->counter[0]++, r->counter[1], r->counter[2], r->counter[3]}};
    philox4x32_key_t key = {{r->key[0], r->key[1]}};

    return philox4x32(counter, key);
}

void kf_rng_refill(kf_rng *r)
{
    philox4x32_ctr_t x = draw(r);

    assert(r->left == 0);
    for (size_t i = 0; i < 4; i++)
        r->out[i] = x.v[i];
    r->left = 4;
}

void kf_rng_fill(kf_rng *r, uint64_t *to, size_t n)
{
    for (; n > 0 && r->left > 0; n--)
        *to++ = kf_rng_u64(r);
    for (; n > 1; n -= 2) {
        philox4x32_ctr_t x = draw(r);

        *to++ = (uint64_t)x.v[0] << 32 | x.v[1];
        *to++ = (uint64_t)x.v[2] << 32 | x.v[3];
    }
    if (n > 0)
        *to = kf_rng_u64(r);
}
