/* failing.c -- makes allocations fail; it is loaded before the C library.
 *
 * The KOFN_FAIL_AT-th allocation of the process fails, and with KOFN_FAIL_ALL
 * all that follow fail too.  The file KOFN_FAIL_COUNT gets their number.
 *
 * Allocations of foreign libraries do not count if the library ends the process
 * without memory, or cannot work without it.  Allocations of the library that
 * KOFN_FAIL_NOT names do not count either. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t each);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

static atomic_long made;
static long fail_at, pid;
static int fail_all;
static const char *excluded;

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("KOFN_FAIL_AT");

    fail_all = getenv("KOFN_FAIL_ALL") != NULL;
    excluded = getenv("KOFN_FAIL_NOT");
    fail_at = at ? atol(at) : 0;
    pid = getpid();
    atomic_store(&made, 0);
}

__attribute__((destructor)) static void end(void)
{
    const char *name = getenv("KOFN_FAIL_COUNT");
    int fd = name && pid == getpid()
                 ? open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600)
                 : -1;
    char words[32];

    if (fd < 0)
        return;
    snprintf(words, sizeof words, "%ld\n", atomic_load(&made));
    if (write(fd, words, strlen(words)) < 0)
        _exit(99);
    close(fd);
}

static int counts(const void *caller)
{
    static const char *const foreign[] = {
        "uv",       "ssl",    "crypto", "stdc++", "blas",   "gfortran", "blis",
        "ld-linux", "sodium", "gomp",   "krb5",   "gssapi", "pgm",      "norm"};
    Dl_info in;

    if (!dladdr(caller, &in) || !in.dli_fname ||
        (excluded && strstr(in.dli_fname, excluded)))
        return 0;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (strstr(in.dli_fname, foreign[i]))
            return 0;
    return 1;
}

static int fails(const void *caller)
{
    long n;

    if (!pid || pid != getpid() || !counts(caller))
        return 0;
    n = atomic_fetch_add(&made, 1) + 1;
    if (!fail_at || n < fail_at || (n > fail_at && !fail_all))
        return 0;
    errno = ENOMEM;
    return 1;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t n)
{
    return fails(CALLER) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
    return fails(CALLER) ? NULL : __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
    return fails(CALLER) ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    return fails(CALLER) ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    if (fails(CALLER))
        return ENOMEM;
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}
