/* basics.c -- messages, the allocator, and facts about the machine. */
#include "example.h"

#include <string.h>

static size_t calls;

/* Allocates blocks of 64 bytes alignment, with the size in front. */
static void *counting(void *ud, void *p, size_t want)
{
    size_t had = p ? *(size_t *)((char *)p - 64) : 0;
    char *q = NULL;

    ++*(size_t *)ud;
    if (want && (q = aligned_alloc(64, 64 + (want + 63) / 64 * 64))) {
        *(size_t *)q = want;
        q += 64;
        if (p)
            memcpy(q, p, had < want ? had : want);
    }
    if (p && (q || !want))
        free((char *)p - 64);
    return q;
}

static void show_failure(void)
{
    double x[2] = {1, 2}, y[2];
    kofn_matrix A = matrix(x, 1, 2), in = matrix(x, 1, 1);
    kofn_matrix out = matrix(y, 1, 1);
    kofn_status st = kofn_product_plain(KOFN_DENSE(&A), &in, &out);

    expect(st == KOFN_SHAPE, "the input has too few rows");
    printf("%s: %s\n", kofn_strerror(st), kofn_errmsg());
}

/* Returns a failure of your own function with its message. */
static kofn_status read_part(size_t part)
{
    return kofn_say(KOFN_INVAL, "part %zu is missing", part);
}

static void multiply(void)
{
    double a[6] = {1, 2, 3, 4, 5, 6}, x[3] = {1, 0, 2}, y[2];
    kofn_matrix A = matrix(a, 2, 3), in = matrix(x, 3, 1);
    kofn_matrix out = matrix(y, 2, 1);

    must(kofn_product_plain(KOFN_DENSE(&A), &in, &out));
    expect(y[0] == 7 && y[1] == 16, "A x");
}

static void use_memory(void)
{
    kofn_matrix slow;

    must(kofn_pattern_new(&slow, "iid:p=0.5", 4, 10, 5, 1));
    expect(calls > 0, "the library allocates with this function only");
    kofn_free(slow.data);
}

static void show_machine(void)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    must(kofn_machine_info(&m));
    printf("%s with %s. %s\n", m.simd, m.blas, m.advice);
}

int main(void)
{
    kofn_set_alloc(counting, &calls);
    show_failure();
    expect(read_part(3) == KOFN_INVAL &&
               !strcmp(kofn_errmsg(), "part 3 is missing"),
           "the message");
    multiply();
    use_memory();
    show_machine();
    return 0;
}
