/* blas.c -- which BLAS is it, is it the right one, and one thread each.
 *
 * OpenBLAS chooses its kernels when it is loaded.  Builds older than the
 * processor fall back to kernels of another age and lose a factor of up to
 * five without a word (OpenBLAS 0.3.21 on Intel server cores since 2021).
 * What OpenBLAS offers beyond CBLAS is looked up at run time, so that any
 * other BLAS links as well.
 */
#define _GNU_SOURCE
#include "mat.h"

#include <dlfcn.h>

/* ISO C has no cast from an object pointer to a function. */
static void *symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static const char *core_name(void)
{
    char *(*f)(void);
    void *p = symbol("openblas_get_corename");

    if (!p)
        return NULL;
    memcpy(&f, &p, sizeof f);
    return f();
}

int kf_blas_single(void)
{
    int (*get)(void);
    void (*set)(int);
    void *g = symbol("openblas_get_num_threads");
    void *s = symbol("openblas_set_num_threads");
    int before;

    if (!g || !s)
        return 0;
    memcpy(&get, &g, sizeof get);
    memcpy(&set, &s, sizeof set);
    before = get();
    if (before != 1)
        set(1);
    return before;
}

void kf_blas_restore(int threads)
{
    void (*set)(int);
    void *s = symbol("openblas_set_num_threads");

    if (!s || threads <= 1)
        return;
    memcpy(&set, &s, sizeof set);
    set(threads);
}

/* ---- the right kernel ---------------------------------------------------- */

/* Kernels by the widest vectors they use: 1 none to speak of, 2 AVX2 with
 * fused multiply-add, 3 AVX-512. */
static int kernel_rank(const char *core)
{
    static const char *const avx512[] = {"SkylakeX", "Cooperlake",
                                         "SapphireRapids", NULL};
    static const char *const avx2[] = {"Haswell", "Zen", "Excavator", NULL};

    for (size_t i = 0; avx512[i]; i++)
        if (!strcmp(core, avx512[i]))
            return 3;
    for (size_t i = 0; avx2[i]; i++)
        if (!strcmp(core, avx2[i]))
            return 2;
    return 1;
}

/* What this processor deserves.  AMD's first 512-bit cores gain little over
 * the 256-bit kernels, so those count as right there. */
static int processor_rank(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && !__builtin_cpu_is("amd"))
        return 3;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 2;
    return 1;
#else
    return 0;
#endif
}

static const char *best_core(int rank)
{
    return rank == 3 ? "SkylakeX" : rank == 2 ? "Haswell" : NULL;
}

const char *kf_blas_core(const char **better)
{
    const char *core = core_name();
    int rank = processor_rank();

    *better = core && kernel_rank(core) < rank ? best_core(rank) : NULL;
    return core;
}
