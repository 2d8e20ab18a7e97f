/* base.c -- status texts, the calling thread's last failure, the allocator.
 *
 * Owns the message of each thread, in memory of the thread's own.  All memory
 * of the library comes from here: from the functions that the caller set, or
 * from malloc. It prints nothing, never ends the process and takes no lock. */
#define _DEFAULT_SOURCE /* madvise */

#include "base.h"
#include "number.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ALIGNMENT 64
#define HUGE ((size_t)2 << 20)
#define LARGE (2 * HUGE)

const char *kofn_strerror(kofn_status st)
{
    switch (st) {
#define X(name, value, text)                                                   \
    case KOFN_##name:                                                          \
        return text;
        KOFN_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

/* ---- failure ------------------------------------------------------------- */

static _Thread_local char message[KF_WORDS];

const char *kofn_errmsg(void)
{
    return message;
}

kofn_status kofn_say(kofn_status st, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    kf_vformat(message, sizeof message, fmt, ap);
    va_end(ap);
    return st;
}

kofn_status kf_fail_in(kofn_status st, const char *fmt, ...)
{
    char old[sizeof message];
    va_list ap;
    size_t n;

    memcpy(old, message, sizeof old);
    va_start(ap, fmt);
    kf_vformat(message, sizeof message, fmt, ap);
    va_end(ap);
    n = strlen(message);
    snprintf(message + n, sizeof message - n, ": %s", old);
    return st;
}

kofn_status kf_nomem(size_t bytes)
{
    return kf_fail(KOFN_NOMEM, "out of memory asking for %zu bytes", bytes);
}

/* ---- structs that begin with their size -----------------------------------
 */

static size_t size_of(const void *given)
{
    size_t has;

    memcpy(&has, given, sizeof has);
    return has;
}

kofn_status kf_begun(const void *to, const char *init)
{
    if (!to || size_of(to) >= sizeof(size_t))
        return KOFN_OK;
    return kf_fail(KOFN_INVAL,
                   "the struct's size is %zu bytes: initialise it with %s",
                   size_of(to), init);
}

kofn_status kf_given(void *all, size_t bytes, const void *given,
                     const char *init)
{
    TRY(kf_begun(given, init));
    if (!given)
        return KOFN_OK;
    memcpy(all, given, kf_min(size_of(given), bytes));
    memcpy(all, &bytes, sizeof bytes);
    return KOFN_OK;
}

kofn_status kf_complete(const void *given, size_t bytes, const char *name)
{
    if (size_of(given) >= bytes)
        return KOFN_OK;
    return kf_fail(
        KOFN_INVAL,
        "the size of a %s is %zu bytes, but %zu here: initialise it with "
        ".size = sizeof(%s), and compile it with the headers of this kofn",
        name, size_of(given), bytes, name);
}

const void *kf_whole(void *room, size_t bytes, const void *given, size_t has)
{
    if (has == 0 || has >= bytes)
        return given;
    memset(room, 0, bytes);
    return memcpy(room, given, has);
}

void kf_give(void *to, const void *all, size_t bytes)
{
    size_t has;

    assert(bytes >= sizeof has);
    if (!to)
        return;
    has = size_of(to);
    memcpy(to, all, kf_min(has, bytes));
    memcpy(to, &has, sizeof has);
}

/* ---- memory -------------------------------------------------------------- */

/* Asks the system for huge pages, if it has any on request.  Memory of this
 * size is soon written, and a page fault for each 4 KiB takes longer than the
 * writing.  The request covers the whole huge pages inside of the memory. */
static void ask_for_huge_pages(unsigned char *p, size_t n)
{
#ifdef MADV_HUGEPAGE
    size_t skip = (HUGE - (uintptr_t)p % HUGE) % HUGE;

    if (n >= LARGE)
        madvise(p + skip, (n - skip) / HUGE * HUGE, MADV_HUGEPAGE);
#else
    (void)p;
    (void)n;
#endif
}

/* Returns aligned memory of the C library, with the pointer of malloc in front
 * of it. aligned_alloc would split and join free memory at every call.  That
 * takes a thousand instructions, and every task would pay for it. */
static void *libc_alloc(void *ud, void *p, size_t want)
{
    const size_t before = sizeof(void *);
    unsigned char *raw;
    void *given;

    (void)ud;
    if (want == 0) {
        if (p) {
            memcpy(&given, (unsigned char *)p - before, before);
            free(given);
        }
        return NULL;
    }
    if (want > SIZE_MAX - before - (ALIGNMENT - 1) ||
        !(given = malloc(want + before + ALIGNMENT - 1)))
        return NULL;
    raw = (unsigned char *)given + before;
    raw += (ALIGNMENT - (uintptr_t)raw % ALIGNMENT) % ALIGNMENT;
    memcpy(raw - before, &given, before);
    ask_for_huge_pages(raw, want);
    return raw;
}

static struct {
    kofn_alloc_fn fn;
    void *ud;
} allocator = {libc_alloc, NULL};

void kofn_set_alloc(kofn_alloc_fn fn, void *ud)
{
    allocator.fn = fn ? fn : libc_alloc;
    allocator.ud = ud;
}

void *kf_new(size_t n, size_t size)
{
    size_t bytes;
    void *p;

    if (!kf_mul(n, size, &bytes)) {
        kf_fail(KOFN_NOMEM, "%zu elements of %zu bytes do not fit in memory", n,
                size);
        return NULL;
    }
    p = allocator.fn(allocator.ud, NULL, bytes ? bytes : 1);
    if (!p)
        kf_nomem(bytes);
    return p;
}

void *kf_zero(size_t n, size_t size)
{
    void *p = kf_new(n, size);

    if (p)
        memset(p, 0, n * size);
    return p;
}

void kf_free(void *p)
{
    if (p)
        allocator.fn(allocator.ud, p, 0);
}

void kofn_free(void *p)
{
    kf_free(p);
}

char *kf_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = kf_new(n, 1);

    if (p)
        memcpy(p, s, n);
    return p;
}

kofn_status kf_reach(void *p, size_t *cap, size_t n, size_t size)
{
    size_t had = *cap, want = had ? had : 8;
    void *old;
    char *now;

    assert(size > 0);
    if (n <= had)
        return KOFN_OK;
    for (; want < n; want *= 2)
        if (want > SIZE_MAX / 2)
            return kf_nomem(SIZE_MAX);
    now = kf_new(want, size);
    if (!now)
        return KOFN_NOMEM;
    memcpy(&old, p, sizeof old);
    if (had)
        memcpy(now, old, had * size);
    memset(now + had * size, 0, (want - had) * size);
    kf_free(old);
    memcpy(p, &now, sizeof now);
    *cap = want;
    return KOFN_OK;
}
