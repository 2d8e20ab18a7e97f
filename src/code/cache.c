/* cache.c -- decoders by survivor set.
 *
 * Survivor sets recur from round to round, so each system is solved once.
 * Entries are in a hash table by set and in a list by last use.
 *
 * Owns every decoder that it returns until it is trimmed; no caller may free
 * one.  Looking for a decoder trims nothing. */
#include "suspect.h"

#include <assert.h>

typedef struct entry {
    struct entry *next, *newer, *older;
    uint64_t hash;
    kofn_decoder *decoder;
    size_t bytes;
    uint32_t trim; /* number of trims before its last use */
    bool partial;
} entry;

#define BUCKETS 1024
#define NEAR 8 /* a set is like one from which it differs in an eighth */

struct kf_cache {
    kf_code *code;
    size_t budget, bytes;
    size_t sample; /* most systems of a size that are solved; 0: all */
    uint32_t trims;
    entry *bucket[BUCKETS], *newest, *oldest;
};

kofn_status kf_cache_new(kf_cache **out, kf_code *c, size_t budget)
{
    kf_cache *cache = kf_zero(1, sizeof *cache);

    assert(c);
    *out = cache;
    if (!cache)
        return KOFN_NOMEM;
    cache->code = c;
    cache->budget = budget;
    return KOFN_OK;
}

static uint64_t hash_set(const uint32_t *seats, size_t n)
{
    uint64_t h = KF_FNV;

    for (size_t i = 0; i < n; i++)
        h = kf_fnv(h, seats[i]);
    return h;
}

static void unlink_use(kf_cache *cache, entry *e)
{
    assert(e->newer ? e->newer->older == e : cache->newest == e);
    assert(e->older ? e->older->newer == e : cache->oldest == e);
    *(e->newer ? &e->newer->older : &cache->newest) = e->older;
    *(e->older ? &e->older->newer : &cache->oldest) = e->newer;
}

static void link_newest(kf_cache *cache, entry *e)
{
    e->newer = NULL;
    assert(!cache->newest == !cache->oldest);
    e->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = e;
    cache->newest = e;
}

static entry *lookup(kf_cache *cache, uint64_t h, const uint32_t *seats,
                     size_t n, bool partial)
{
    entry *e = cache->bucket[h % BUCKETS];

    while (e &&
           (e->hash != h || e->partial != partial || e->decoder->seats != n ||
            memcmp(e->decoder->seat, seats, n * sizeof *seats) != 0))
        e = e->next;
    return e;
}

void kf_cache_sample(kf_cache *cache, size_t sets)
{
    cache->sample = sets;
}

/* Returns the number of seats that two ascending lists of n have in common. */
static size_t common(const uint32_t *a, const uint32_t *b, size_t n)
{
    size_t count = 0;

    for (size_t i = 0, k = 0; i < n && k < n;) {
        count += a[i] == b[k];
        if (a[i] <= b[k])
            i++;
        else
            k++;
    }
    return count;
}

/* Returns the solved set of n that is nearest to this one; NULL if this one has
 * to be solved. */
static entry *stand_in(kf_cache *cache, const uint32_t *seats, size_t n,
                       bool partial)
{
    entry *nearest = NULL;
    size_t most = 0, solved = 0;

    for (entry *e = cache->sample ? cache->oldest : NULL; e; e = e->newer)
        if (e->decoder->seats == n && e->partial == partial) {
            size_t same = common(e->decoder->seat, seats, n);

            solved++;
            if (same >= most) {
                most = same;
                nearest = e;
            }
        }
    return solved >= cache->sample || most > n - n / NEAR ? nearest : NULL;
}

kofn_status kf_cache_get(kf_cache *cache, const uint32_t *seats, size_t n,
                         bool partial, const kofn_decoder **out)
{
    uint64_t h = hash_set(seats, n);
    entry *e = lookup(cache, h, seats, n, partial);
    kofn_status st;

    *out = NULL;
    if (!e)
        e = stand_in(cache, seats, n, partial);
    if (e) {
        unlink_use(cache, e);
    } else {
        TRY_ZERO(e, 1);
        st = kf_decoder_new(&e->decoder, cache->code, seats, n, partial);
        if (st) {
            kf_free(e);
            return st;
        }
        e->hash = h;
        e->partial = partial;
        /* factors take at most twice the memory of D */
        e->bytes = sizeof *e +
                   (e->decoder->factor ? 3 : 1) * e->decoder->mixed *
                       e->decoder->results * 8 +
                   n * 4 + e->decoder->wants * 4;
        e->next = cache->bucket[h % BUCKETS];
        cache->bucket[h % BUCKETS] = e;
        cache->bytes += e->bytes;
    }
    link_newest(cache, e);
    e->trim = cache->trims;
    *out = e->decoder;
    return KOFN_OK;
}

static kofn_status entry_of(kf_cache *cache, const kofn_decoder *d, entry **out)
{
    entry *e = cache->bucket[hash_set(d->seat, d->seats) % BUCKETS];

    while (e && e->decoder != d)
        e = e->next;
    *out = e;
    return e ? KOFN_OK
             : kf_fail(KOFN_STATE, "a decoder that is not of this cache");
}

kofn_status kf_cache_parity(kf_cache *cache, const kofn_decoder *d,
                            const double **H, size_t *q)
{
    entry *e;

    TRY(entry_of(cache, d, &e));
    if (!e->decoder->H) {
        kofn_decoder *mine = e->decoder;

        TRY(kf_parity(cache->code, mine->seat, mine->seats, &mine->H,
                      &mine->q));
        e->bytes += mine->q * mine->results * sizeof *mine->H;
        cache->bytes += mine->q * mine->results * sizeof *mine->H;
    }
    *H = d->H;
    *q = d->q;
    return KOFN_OK;
}

kofn_status kf_cache_hidden(kf_cache *cache, const kofn_decoder *d, size_t few,
                            double *hidden)
{
    const double *H;
    entry *e;
    size_t q;

    TRY(entry_of(cache, d, &e));
    TRY(kf_cache_parity(cache, d, &H, &q));
    few = kf_max(few, 1);
    if (e->decoder->few != few) {
        TRY(kf_hidden_of(cache->code, d, H, q, few, &e->decoder->hidden));
        e->decoder->few = few;
    }
    *hidden = d->hidden;
    return KOFN_OK;
}

static void drop_oldest(kf_cache *cache)
{
    entry *e = cache->oldest, **at = &cache->bucket[e->hash % BUCKETS];

    assert(!e->older && cache->bytes >= e->bytes);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    unlink_use(cache, e);
    cache->bytes -= e->bytes;
    kf_decoder_free(e->decoder);
    kf_free(e);
}

void kf_cache_trim(kf_cache *cache)
{
    while (cache->bytes > cache->budget && cache->oldest)
        drop_oldest(cache);
}

KF_WRAPS void kf_cache_trim_idle(kf_cache *cache)
{
    while (cache->bytes > cache->budget && cache->oldest &&
           cache->oldest->trim != cache->trims)
        drop_oldest(cache);
    cache->trims++;
}

const kofn_plan *kf_cache_plan(const kf_cache *cache)
{
    return cache->code->plan;
}

void kf_cache_free(kf_cache *cache)
{
    if (!cache)
        return;
    while (cache->oldest)
        drop_oldest(cache);
    kf_free(cache);
}
