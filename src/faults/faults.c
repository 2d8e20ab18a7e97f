/* faults.c -- the fault model: draws faults from named random streams.
 *
 * Every draw depends on (seed, purpose, worker, round or task) alone, not on
 * former draws. So a worker has the same faults whatever the others do,
 * simulated and on real threads.
 *
 * Owns no state, and reads no clock.
 */
#include "faults.h"

#include "base/number.h"
#include "base/rng.h"

#include <assert.h>
#include <float.h>
#include <stdlib.h>

kofn_time kf_faults_nanoseconds(double seconds)
{
    double ns = seconds * 1e9;

    if (!(ns > 0))
        return 0;
    return ns < 9e18 ? (kofn_time)ns : KOFN_NEVER;
}

bool kf_faults_fair(const kofn_faults *w)
{
    return !(w->spread > 0 || w->straggle > 0 || w->leave > 0 || w->join > 0 ||
             w->corrupt > 0 || w->flip > 0 || w->miss > 0 || w->pattern);
}

double kf_faults_speed(const kofn_faults *w, uint32_t worker)
{
    kf_rng r = kf_rng_stream(w->seed, KF_FOR_SPEED, worker, 0);

    return w->spread > 0 ? 1 + w->spread * (2 * kf_rng_uniform(&r) - 1) : 1;
}

/* True if the worker is slow in this round.  With bursts, one round in `burst`
 * is drawn anew, and the other rounds are like the round before. */
static bool straggles(const kofn_faults *w, uint32_t worker, unsigned round)
{
    assert(w->straggle > 0);
    for (;; round--) {
        kf_rng r = kf_rng_stream(w->seed, KF_FOR_STRAGGLE, worker, round);
        bool drawn = kf_rng_uniform(&r) < w->straggle;

        if (round <= 1 || !(w->burst > 1) || kf_rng_uniform(&r) * w->burst < 1)
            return drawn;
    }
}

/* Returns the factor of the pattern, a matrix of the user's, for this round. */
static double patterned(const kofn_faults *w, uint32_t worker, unsigned round)
{
    const kofn_matrix *a = w->pattern;
    double f;

    if (!a || worker >= a->cols || a->rows == 0 || round == 0)
        return 1;
    f = kf_mat_entry(a, (round - 1) % a->rows, worker);
    return f > 0 ? f : 1;
}

bool kf_faults_slow(const kofn_faults *w, uint32_t worker, unsigned round)
{
    return (w->straggle > 0 && straggles(w, worker, round)) ||
           patterned(w, worker, round) > 1;
}

double kf_faults_stretch(const kofn_faults *w, uint32_t worker, unsigned round,
                         bool first, double seconds)
{
    double longer = patterned(w, worker, round);

    if (longer > DBL_MAX)
        return HUGE_VAL; /* of no work at all, too */
    seconds *= longer;
    if (!(w->straggle > 0) || !straggles(w, worker, round))
        return seconds;
    if (w->delay > 0)
        return first ? seconds + w->delay : seconds;
    return seconds * (w->factor > 0 ? w->factor : 5);
}

bool kf_faults_corrupts(const kofn_faults *w, uint32_t worker, uint32_t task)
{
    kf_rng r = kf_rng_stream(w->seed, KF_FOR_CORRUPT, worker, task);

    return w->corrupt > 0 && kf_rng_uniform(&r) < w->corrupt;
}

double kf_faults_leave(const kofn_faults *w, uint32_t worker)
{
    kf_rng r = kf_rng_stream(w->seed, KF_FOR_LEAVE, worker, 0);

    return w->leave > 0 ? kf_rng_exponential(&r) / w->leave : HUGE_VAL;
}

double kf_faults_gap(const kofn_faults *w, uint32_t i)
{
    kf_rng r = kf_rng_stream(w->seed, KF_FOR_JOIN, i, 0);

    return w->join > 0 ? kf_rng_exponential(&r) / w->join : HUGE_VAL;
}

/* Dense errors of the size of the result itself. */
static void spoil_all(kofn_matrix *a, kf_rng *r)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            double wrong = 1 + kf_rng_uniform(r);

            kf_mat_put(a, i, j, kf_mat_entry(a, i, j) * wrong + wrong);
        }
}

static void flip_bit(kofn_matrix *a, size_t i, size_t j, kf_rng *r)
{
    size_t bit = kf_rng_below(r, 8 * kf_dtype_size(a->dtype));
    unsigned char *p = kf_at(a, i, j);

    assert(i < a->rows);
    assert(j < a->cols);
    p[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

/* Spoils all numbers with chance 1/2, and otherwise a single one.  That one has
 * a flipped bit, or becomes NaN, infinite or huge. */
void kofn_faults_spoil(uint64_t seed, uint32_t worker, uint32_t n,
                       kofn_matrix *numbers)
{
    static const double out_of_range[] = {(double)NAN, (double)INFINITY, -1e300,
                                          1e30};
    kf_rng r = kf_rng_stream(seed, KF_FOR_CORRUPT, worker, n);
    size_t i, j, kind;

    kf_rng_u64(&r); /* used to decide whether */
    i = kf_rng_below(&r, numbers->rows);
    j = kf_rng_below(&r, numbers->cols);
    kind = kf_rng_below(&r, 4);
    if (kind < 2)
        spoil_all(numbers, &r);
    else if (kind == 2)
        flip_bit(numbers, i, j, &r);
    else
        kf_mat_put(numbers, i, j, out_of_range[kf_rng_below(&r, 4)]);
}

/* ---- blocks -------------------------------------------------------------- */

kofn_status kf_faults_change(const kofn_faults *w, uint32_t worker,
                             uint32_t *count, kf_block *b, const kf_msg *m)
{
    kf_rng miss, flip;
    bool missed;

    if (m->type != KF_MSG_UPDATE)
        return kf_block_change(b, m);
    miss = kf_rng_stream(w->seed, KF_FOR_MISS, worker, ++*count);
    flip = kf_rng_stream(w->seed, KF_FOR_FLIP, worker, *count);
    missed = w->miss > 0 && kf_rng_uniform(&miss) < w->miss;
    if (missed)
        kf_block_miss(b, m);
    else
        TRY(kf_block_change(b, m));
    if (w->flip > 0 && kf_rng_uniform(&flip) < w->flip)
        return kf_block_flip(b, &flip);
    return KOFN_OK;
}

kofn_status kf_faults_flip(const kofn_faults *w, uint32_t worker,
                           uint32_t *count, kf_block *b)
{
    kf_rng r =
        kf_rng_stream(w->seed, KF_FOR_FLIP, worker, UINT32_MAX - (*count)++);

    return kf_block_flip(b, &r);
}

/* ---- "key=value,..." ----------------------------------------------------- */

typedef struct field {
    const char *name;
    size_t offset;
    double max; /* values run from 0 to this */
} field;

static const field fields[] = {
    {"spread", offsetof(kofn_faults, spread), 0.999},
    {"straggle", offsetof(kofn_faults, straggle), 1},
    {"burst", offsetof(kofn_faults, burst), 1e4},
    {"factor", offsetof(kofn_faults, factor), 1e6},
    {"delay", offsetof(kofn_faults, delay), 1e6},
    {"leave", offsetof(kofn_faults, leave), 1e9},
    {"join", offsetof(kofn_faults, join), 1e9},
    {"corrupt", offsetof(kofn_faults, corrupt), 1},
    {"flip", offsetof(kofn_faults, flip), 1},
    {"miss", offsetof(kofn_faults, miss), 1},
    {"fault", offsetof(kofn_faults, fault), 1},
    {"work", offsetof(kofn_faults, work), 1e6},
    {"latency", offsetof(kofn_faults, latency), 1e6},
    {"bandwidth", offsetof(kofn_faults, bandwidth), 1e18},
};

bool kf_faults_is(const char *name, const char *text, size_t n)
{
    return strlen(name) == n && memcmp(name, text, n) == 0;
}

bool kf_faults_number(const char *text, size_t n, double *x)
{
    char number[40] = "", *end;

    if (n >= sizeof number || strspn(text, "+-0123456789.eE") < n)
        return false;
    memcpy(number, text, n);
    *x = kf_read_real(number, &end);
    return end > number && !*end;
}

const char *kofn_faults_not_of_nodes(const kofn_faults *w)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        double x;

        memcpy(&x, (const char *)w + fields[i].offset, sizeof x);
        if (x > 0 && fields[i].offset != offsetof(kofn_faults, fault))
            return fields[i].name;
    }
    return NULL;
}

unsigned kf_fault_place(const char *word, size_t n)
{
    static const char *const names[] = {"encode", "product", "decode",
                                        "vector", "update",  "memory"};

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (kf_faults_is(names[i], word, n))
            return 1U << i;
    return 0;
}

/* "product+update". */
static kofn_status set_where(kofn_faults *w, const char *value, size_t n)
{
    unsigned all = 0;

    for (size_t i = 0, k; i <= n; i += k + 1) {
        unsigned one;

        for (k = 0; i + k < n && value[i + k] != '+'; k++)
            ;
        one = kf_fault_place(value + i, k);
        if (!one)
            return kf_fail(KOFN_INVAL,
                           "faults: where=%.*s: \"%.*s\" is none of encode, "
                           "product, decode, vector, update, memory",
                           (int)kf_min(n, 80), value, (int)kf_min(k, 40),
                           value + i);
        all |= one;
    }
    w->where = all;
    return KOFN_OK;
}

/* Is the value the second of two words? */
static kofn_status second_of(const char *const words[2], const char *key,
                             const char *value, size_t n, bool *second)
{
    *second = kf_faults_is(words[1], value, n);
    if (*second || kf_faults_is(words[0], value, n))
        return KOFN_OK;
    return kf_fail(KOFN_INVAL, "faults: %s=%.*s is neither %s nor %s", key,
                   (int)kf_min(n, 40), value, words[0], words[1]);
}

static kofn_status unknown_field(const char *key, size_t k)
{
    char known[300] = "clock, whole, where";

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        strncat(known, ", ", sizeof known - 1 - strlen(known));
        strncat(known, fields[i].name, sizeof known - 1 - strlen(known));
    }
    return kf_fail(KOFN_INVAL, "faults has no \"%.*s\"; it takes %s",
                   (int)kf_min(k, 40), key, known);
}

static kofn_status set_field(kofn_faults *w, const char *key, size_t k,
                             const char *value, size_t n)
{
    static const char *const clocks[] = {"modelled", "measured"};
    static const char *const digits[] = {"0", "1"};
    const field *f = fields, *end = fields + sizeof fields / sizeof *fields;
    bool measured;
    double x;

    if (kf_faults_is("clock", key, k)) {
        TRY(second_of(clocks, "clock", value, n, &measured));
        w->clock = measured ? KOFN_CLOCK_MEASURED : KOFN_CLOCK_MODELLED;
        return KOFN_OK;
    }
    if (kf_faults_is("whole", key, k))
        return second_of(digits, "whole", value, n, &w->whole);
    if (kf_faults_is("where", key, k))
        return set_where(w, value, n);
    while (f < end && !kf_faults_is(f->name, key, k))
        f++;
    if (f == end)
        return unknown_field(key, k);
    if (!kf_faults_number(value, n, &x))
        return kf_fail(KOFN_INVAL, "faults: %s=%.*s is not a number", f->name,
                       (int)kf_min(n, 40), value);
    if (!(x >= 0 && x <= f->max))
        return kf_fail(KOFN_INVAL, "faults: %s=%.*s is outside 0..%g", f->name,
                       (int)n, value, f->max);
    memcpy((char *)w + f->offset, &x, sizeof x);
    return KOFN_OK;
}

kofn_status kofn_faults_parse(kofn_faults *w, const char *text)
{
    kofn_faults now = KOFN_FAULTS_INIT();

    TRY(kf_given(&now, sizeof now, w, "KOFN_FAULTS_INIT"));
    while (*text) {
        size_t n = strcspn(text, ","), key = strcspn(text, "=,");

        if (key == n)
            return kf_fail(KOFN_INVAL,
                           "faults: \"%.*s\" is not of the form key=value",
                           (int)kf_min(n, 40), text);
        TRY(set_field(&now, text, key, text + key + 1, n - key - 1));
        text += n;
        if (*text == ',' && !*++text)
            return kf_fail(KOFN_INVAL, "faults: a comma with nothing after");
    }
    kf_give(w, &now, sizeof now);
    return KOFN_OK;
}
