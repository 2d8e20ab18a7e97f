/* candidates.c -- lists schemes with their parameters.
 *
 * Owns the list. A number of workers that is large is covered by some forty
 * values of each parameter. */
#include "candidates.h"

#include "base/number.h"
#include "code/operation.h"

#include <assert.h>

#define MOST 1000
#define LEAST 48

/* Returns the number of values of one parameter. */
static size_t values(size_t workers)
{
    return workers <= 64 ? 40 : kf_max(5, 2560 / workers);
}

static kofn_status add(kf_candidates *c, const char *fmt, size_t a, size_t b,
                       size_t d)
{
    if (c->count == c->most)
        return KOFN_OK;
    TRY(kf_grow(&c->spec, &c->cap, c->count, sizeof *c->spec));
    kf_format(c->spec[c->count++], KF_CANDIDATE, fmt, a, b, d);
    return KOFN_OK;
}

/* Returns the value after i, in steps that grow for a large fleet. */
static size_t next(size_t i, size_t workers)
{
    return workers <= 64 ? i + 1 : 2 * i + 1;
}

/* Adds "fmt" with each value of its parameter from `first` to `last`. */
static kofn_status each(kf_candidates *c, const char *fmt, size_t first,
                        size_t last)
{
    size_t step = kf_max(1, last / values(last));

    for (size_t i = first; i <= last; i += step)
        TRY(add(c, fmt, i, 0, 0));
    return KOFN_OK;
}

/* Adds codes with two parameters, of which any `a b` answers are enough. */
static kofn_status pairs(kf_candidates *c, const char *fmt, size_t n)
{
    for (size_t a = 2; a <= n / 2; a = next(a, n))
        for (size_t b = 2; a * b < n; b = next(b, n))
            TRY(add(c, fmt, a, b, 0));
    return KOFN_OK;
}

/* Adds codes that cut along all sides: m n p + n - 1 answers are enough. */
static kofn_status triples(kf_candidates *c, size_t workers)
{
    for (size_t n = 2; n < workers; n = next(n, workers))
        for (size_t m = 1; m * n + n - 1 < workers; m = next(m, workers))
            for (size_t p = m == 1 ? 2 : 1; m * n * p + n - 1 < workers;
                 p = next(p, workers))
                TRY(add(c, "gpd:m=%zu,n=%zu,p=%zu", m, n, p));
    return KOFN_OK;
}

static kofn_status products(kf_candidates *c, const kofn_problem *pb, size_t n,
                            bool uneven)
{
    TRY(each(c, "mds:k=%zu", 2, n - 1));
    TRY(each(c, "elastic:k=%zu", 1, n - 1));
    if (uneven)
        TRY(each(c, "elastic:k=%zu,deal=speed", 2, n - 1));
    for (size_t k = n / 2; k > 1; k--)
        if (n % k == 0)
            TRY(add(c, "replication:k=%zu", k, 0, 0));
    if (kf_operation_of(pb->op)->vector || pb->sparse)
        return KOFN_OK;
    TRY(pairs(c, "polynomial:m=%zu,p=%zu", n));
    TRY(each(c, "matdot:n=%zu", 2, n / 2));
    return triples(c, n);
}

static kofn_status sums(kf_candidates *c, size_t n)
{
    for (size_t d = 2; d < n && d <= values(n); d++) {
        TRY(add(c, "gc:d=%zu", d, 0, 0));
        TRY(add(c, "agc:d=%zu", d, 0, 0));
        for (size_t m = 2; m < d; m++)
            TRY(add(c, "cgc:d=%zu,m=%zu", d, m, 0));
    }
    return KOFN_OK;
}

static kofn_status streams(kf_candidates *c, size_t n)
{
    for (size_t T = 1; T <= 4; T++)
        for (size_t lambda = 1; lambda <= n; lambda += kf_max(1, n / 8))
            TRY(add(c, "dip:T=%zu,lambda=%zu", T, lambda, 0));
    for (size_t W = 2; W <= 4; W++)
        TRY(add(c, "idip:W=%zu", W, 0, 0));
    return pairs(c, "polynomial:m=%zu,p=%zu", n);
}

kofn_status kf_candidates_list(kf_candidates *out, const kofn_problem *pb,
                               size_t workers, bool uneven)
{
    const kf_operation *op = kf_operation_of(pb->op);

    assert(workers > 0 && op);
    *out = (kf_candidates){
        .most = workers <= 64 ? MOST : kf_max(LEAST, 20000 / workers)};
    TRY(add(out, "uncoded", 0, 0, 0));
    if (workers < 2)
        return KOFN_OK;
    if (op->factors == 0)
        return sums(out, workers);
    if (op->stream)
        return streams(out, workers);
    if (op->whole)
        return each(out, "pcr:r=%zu", 2, workers);
    return products(out, pb, workers, uneven);
}

void kf_candidates_free(kf_candidates *c)
{
    kf_free(c->spec);
    *c = (kf_candidates){0};
}
