/* blas.c -- finds out which BLAS computes, whether it is fast, and sets its
 * threads.
 *
 * Only at run time is it known which library computes: Debian's alternatives,
 * the loader's path and LD_PRELOAD decide after linking.  So this file looks
 * for the library that holds cblas_dgemm, and looks up its functions beyond
 * CBLAS.  Any other BLAS links as well.
 *
 * OpenBLAS chooses its kernels when it is loaded.  A build that is older than
 * the processor silently takes old kernels, and may be five times slower
 * (OpenBLAS 0.3.21 on Intel server cores since 2021).
 *
 * Keeps which library was found, once for the process.  Opens no library that
 * is not loaded, and changes only the number of threads.
 */
#define _GNU_SOURCE
#include "mat.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the library --------------------------------------------------------- */

/* Functions and variables that are looked up in the library. */
typedef enum symbol_name {
    OPENBLAS_GET,
    OPENBLAS_SET,
    OPENBLAS_CORE,
    BLIS_GET,
    BLIS_SET,
    BLIS_ARCH,
    BLIS_ARCH_NAME,
    MKL_GET,
    MKL_SET,
    REFERENCE, /* a variable of Netlib's wrapper of the Fortran routines */
    NAMES
} symbol_name;

static const char *const names[NAMES] = {
    [OPENBLAS_GET] = "openblas_get_num_threads",
    [OPENBLAS_SET] = "openblas_set_num_threads",
    [OPENBLAS_CORE] = "openblas_get_corename",
    [BLIS_GET] = "bli_thread_get_num_threads",
    [BLIS_SET] = "bli_thread_set_num_threads",
    [BLIS_ARCH] = "bli_arch_query_id",
    [BLIS_ARCH_NAME] = "bli_arch_string",
    [MKL_GET] = "MKL_Get_Max_Threads",
    [MKL_SET] = "MKL_Set_Num_Threads",
    [REFERENCE] = "RowMajorStrg",
};

/* The file of the BLAS, "" if it is linked statically, and the addresses of its
 * symbols; NULL if there are none.  Threads that look at the same time find the
 * same. */
static struct {
    _Atomic bool looked;
    _Atomic(const char *) file;
    _Atomic(void *) at[NAMES];
} blas;

static void look(void)
{
    void *p, *library;
    Dl_info info;
    const char *file;

    if (blas.looked)
        return;
    p = dlsym(RTLD_DEFAULT, "cblas_dgemm");
    file = p && dladdr(p, &info) && info.dli_fname ? info.dli_fname : "";
    library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; i < NAMES; i++)
        blas.at[i] = dlsym(library ? library : RTLD_DEFAULT, names[i]);
    if (library)
        dlclose(library); /* it stays: it is in use */
    blas.file = file;
    blas.looked = true;
}

static void *symbol(symbol_name n)
{
    look();
    return blas.at[n];
}

static const char *file_of_blas(void)
{
    look();
    return blas.file;
}

/* ISO C has no cast from an object pointer to a function. */
#define LOOK_UP(f, name)                                                       \
    do {                                                                       \
        void *look_up_ = symbol(name);                                         \
                                                                               \
        memcpy(&(f), &look_up_, sizeof(f));                                    \
    } while (0)

/* ---- threads ------------------------------------------------------------- */

typedef struct counts {
    symbol_name get, set;
    bool wide; /* counts are of type long */
} counts;

static const counts makes[] = {
    {OPENBLAS_GET, OPENBLAS_SET, false},
    {BLIS_GET, BLIS_SET, true},
    {MKL_GET, MKL_SET, false},
};

static const counts *make_of_blas(void)
{
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
        if (symbol(makes[i].get) && symbol(makes[i].set))
            return &makes[i];
    return NULL;
}

static int get_threads(const counts *c)
{
    int (*get)(void);
    long (*get_wide)(void);

    if (!c->wide) {
        LOOK_UP(get, c->get);
        return get();
    }
    LOOK_UP(get_wide, c->get);
    return get_wide() < 1 ? 1 : (int)get_wide(); /* -1: never set, and one */
}

static void set_threads(const counts *c, int n)
{
    void (*set)(int);
    void (*set_wide)(long);

    assert(n > 0);
    if (c->wide) {
        LOOK_UP(set_wide, c->set);
        set_wide(n);
    } else {
        LOOK_UP(set, c->set);
        set(n);
    }
}

/* Set even when it is one already: where OpenMP keeps the count each thread
 * has its own, and shows that of another. */
int kf_blas_single(void)
{
    const counts *c = make_of_blas();
    int before = c ? get_threads(c) : 0;

    if (c)
        set_threads(c, 1);
    return before;
}

void kf_blas_restore(int threads)
{
    const counts *c = make_of_blas();

    if (c && threads > 1)
        set_threads(c, threads);
}

/* ---- its kernels --------------------------------------------------------- */

/* Kernels of OpenBLAS by the widest vectors they use: 1 narrower than AVX2, 2
 * AVX2 with fused multiply-add, 3 AVX-512 and whatever is not known here. */
static int kernel_rank(const char *core)
{
    static const char *const narrow[] = {
        "Prescott",     "Core2",     "Penryn",     "Dunnington", "Nehalem",
        "Sandybridge",  "Atom",      "Nano",       "Athlon",     "Opteron",
        "Opteron_SSE3", "Barcelona", "Bobcat",     "Bulldozer",  "Piledriver",
        "Steamroller",  "Katmai",    "Coppermine", "Northwood",  "Banias",
        "Unknown"};
    static const char *const avx2[] = {"Haswell", "Zen", "Excavator"};

    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (!strcmp(core, narrow[i]))
            return 1;
    for (size_t i = 0; i < sizeof avx2 / sizeof *avx2; i++)
        if (!strcmp(core, avx2[i]))
            return 2;
    return 3;
}

/* The widest that this processor has: AMD's as well as Intel's, as OpenBLAS
 * itself chooses for processors that it knows. */
static int processor_rank(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return 3;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 2;
    return 1;
#else
    return 0;
#endif
}

/* Returns the best value of OPENBLAS_CORETYPE.  NULL if the kernels are right,
 * or if the variable has that value and this OpenBLAS lacks the kernels. */
static const char *better_core(const char *core)
{
    int rank = processor_rank();
    const char *best = rank == 3 ? "SkylakeX" : rank == 2 ? "Haswell" : NULL;
    const char *told = getenv("OPENBLAS_CORETYPE");

    return best && kernel_rank(core) < rank && !(told && !strcmp(told, best))
               ? best
               : NULL;
}

/* ---- its name ------------------------------------------------------------ */

/* True if the file is the reference BLAS.  Libraries made from it have its
 * variable, but other names. */
static bool is_reference(const char *file)
{
    return symbol(REFERENCE) &&
           (!strncmp(file, "libblas.", 8) || !strncmp(file, "libcblas.", 9));
}

#define SLOW                                                                   \
    "many times slower than OpenBLAS; as root: apt-get install -y "            \
    "libopenblas-dev; or, where that is: export LD_PRELOAD=libopenblas.so.0"

/* Looks at BLIS.  It computes in plain C on a processor that it does not
 * know. */
static void look_at_blis(kf_blas *b)
{
    int (*query)(void);
    char *(*string)(int);
    const char *kernel = "";

    LOOK_UP(query, BLIS_ARCH);
    LOOK_UP(string, BLIS_ARCH_NAME);
    if (query && string)
        kernel = string(query());
    snprintf(b->name, sizeof b->name, "BLIS %s", kernel);
    if (!strcmp(kernel, "generic") && processor_rank() > 1)
        b->slow = SLOW;
}

/* Writes the real path of the library: its name may be one of Debian's
 * alternatives. */
static void name_stranger(char *name, size_t size)
{
    const char *file = file_of_blas();
    char *real = realpath(file, NULL);

    snprintf(name, size, "a BLAS that kofn does not know, %s",
             real    ? real
             : *file ? file
                     : "linked statically");
    free(real);
}

void kf_blas_look(kf_blas *b)
{
    const char *file = file_of_blas(), *slash = strrchr(file, '/');
    const counts *c = make_of_blas();
    char *(*core)(void);

    *b = (kf_blas){.threads = c ? 1 : 0};
    if (c == &makes[0]) {
        LOOK_UP(core, OPENBLAS_CORE);
        snprintf(b->name, sizeof b->name, "OpenBLAS %s", core ? core() : "");
        b->better = core ? better_core(core()) : NULL;
    } else if (c == &makes[1]) {
        look_at_blis(b);
    } else if (c == &makes[2]) {
        snprintf(b->name, sizeof b->name, "MKL");
    } else if (is_reference(slash ? slash + 1 : file)) {
        snprintf(b->name, sizeof b->name, "the reference BLAS");
        b->threads = 1; /* it has no others */
        b->slow = SLOW;
    } else {
        name_stranger(b->name, sizeof b->name);
    }
}
