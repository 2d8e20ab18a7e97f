/* arrays.c -- arrays that are freed together.
 *
 * In front of each array is the address of the array before it.  They belong to
 * the owner of the list; no array is freed alone. */
#include "author.h"

#define FRONT 64 /* keeps arrays aligned like those of kf_new */

static void *take(kf_arrays *a, void *make(size_t n, size_t size), size_t n,
                  size_t size)
{
    void **front = NULL;
    size_t bytes;

    if (kf_mul(n, size, &bytes) && kf_add(bytes, FRONT, &bytes))
        front = make(bytes, 1);
    else
        kf_nomem(SIZE_MAX);
    if (!front) {
        a->failed = true;
        return NULL;
    }
    *front = a->last;
    a->last = front;
    return (char *)front + FRONT;
}

void *kf_arrays_new(kf_arrays *a, size_t n, size_t size)
{
    return take(a, kf_new, n, size);
}

double *kf_arrays_table(kf_arrays *a, size_t rows, size_t cols)
{
    size_t n;

    return take(a, kf_zero, kf_mul(rows, cols, &n) ? n : SIZE_MAX,
                sizeof(double));
}

void kf_arrays_free(kf_arrays *a)
{
    while (a->last) {
        void *front = a->last;

        a->last = *(void **)front;
        kf_free(front);
    }
}
