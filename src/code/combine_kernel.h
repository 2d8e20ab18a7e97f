/* combine_kernel.h -- the kernel of the dot-product engine, shared by all
 * processors.
 *
 * A file includes this text after it has defined a vector of doubles:
 *
 *   TARGET, INLINE     attributes of functions, and of inlined functions
 *   vec, W             the type and how many doubles it holds
 *   splat, madd        x in all places; a * b + c
 *   get, put           W elements from and to memory of any alignment,
 *                      doubles, or floats that are converted
 *   get_some, put_some the first n <= W of them; no other byte is touched
 *   put_around         non-temporal store to aligned memory
 *
 * A group is `rows` outputs by `vecs` vectors of columns.  Its sums stay in
 * registers during the pass over all sources.  So a vector of a source is used
 * `rows` times and a coefficient `vecs` times, and an output is written once.
 * Each sum adds its terms in the order of b->src.  The position of its column
 * and the size of its group have no effect.
 *
 * The arguments rows, vecs, part and far, and whether floats are read (in32)
 * and written (out32), are constants after inlining. */
#define VECS 4 /* most vectors in a group */
#define LINE KF_COMBINE_LINE
/* Sums stay in registers only if the loops over them are unrolled. */
#define UNROLL _Pragma("GCC unroll 8")

/* UNROLL is no statement, which clang-format does not know. */
/* clang-format off */

INLINE void no_sums(vec sum[][VECS], size_t rows, size_t vecs)
{
    UNROLL for (size_t i = 0; i < rows; i++)
        UNROLL for (size_t v = 0; v < vecs; v++)
            sum[i][v] = splat(0);
}

INLINE void take_sums(vec sum[][VECS], const kf_combine_block *b, size_t t,
                      size_t n, size_t rows, size_t vecs, bool part)
{
    UNROLL for (size_t i = 0; i < rows; i++) {
        const double *a = b->acc + i * b->ldacc + (t - b->begin);

        UNROLL for (size_t v = 0; v < vecs; v++)
            sum[i][v] = part ? get_some(a, false, n) : get(a + v * W, false);
    }
}

INLINE void keep_sums(vec sum[][VECS], const kf_combine_block *b, size_t t,
                      size_t n, size_t rows, size_t vecs, bool part)
{
    UNROLL for (size_t i = 0; i < rows; i++) {
        double *a = b->acc + i * b->ldacc + (t - b->begin);

        UNROLL for (size_t v = 0; v < vecs; v++) {
            if (part)
                put_some(a, sum[i][v], false, n);
            else
                put(a + v * W, sum[i][v], false);
        }
    }
}

INLINE void give_sums(vec sum[][VECS], const kf_combine_block *b, size_t t,
                      size_t n, size_t rows, size_t vecs, bool f32, bool part)
{
    const size_t size = f32 ? sizeof(float) : sizeof(double);

    UNROLL for (size_t i = 0; i < rows; i++) {
        char *d = (char *)b->dst[i] + t * size;
        /* Non-temporal stores of partial lines are slow. */
        bool around = b->stream && vecs * W * size % LINE == 0 &&
                      (uintptr_t)d % LINE == 0;

        UNROLL for (size_t v = 0; v < vecs; v++) {
            if (part)
                put_some(d, sum[i][v], f32, n);
            else if (around)
                put_around(d + v * W * size, sum[i][v], f32);
            else
                put(d + v * W * size, sum[i][v], f32);
        }
    }
}

INLINE void group(const kf_combine_block *b, size_t t, size_t n, size_t rows,
                  size_t vecs, bool in32, bool out32, bool part, bool far)
{
    const size_t size = in32 ? sizeof(float) : sizeof(double);
    vec sum[KF_COMBINE_ROWS][VECS], c[KF_COMBINE_ROWS];

    if (b->first)
        no_sums(sum, rows, vecs);
    else
        take_sums(sum, b, t, n, rows, vecs, part);
    for (size_t j = 0; j < b->k; j++) {
        const double *d = b->D + b->col[j];
        const char *s = b->src[j] + t * size;

        if (far)
            UNROLL for (size_t i = 0; i < vecs * W * size; i += LINE)
                __builtin_prefetch(s + b->ahead + i, 0, 2);
        UNROLL for (size_t i = 0; i < rows; i++)
            c[i] = splat(d[i * b->ldd]);
        UNROLL for (size_t v = 0; v < vecs; v++) {
            vec x = part ? get_some(s, in32, n) : get(s + v * W * size, in32);

            UNROLL for (size_t i = 0; i < rows; i++)
                sum[i][v] = madd(c[i], x, sum[i][v]);
        }
    }
    if (b->last)
        give_sums(sum, b, t, n, rows, vecs, out32, part);
    else
        keep_sums(sum, b, t, n, rows, vecs, part);
}

/* clang-format on */

INLINE void columns(const kf_combine_block *b, size_t t, size_t to, size_t rows,
                    size_t vecs, bool in32, bool out32)
{
    /* A test for every source takes a tenth of the time, so it is outside. */
    if (b->ahead)
        for (; t + vecs * W <= to; t += vecs * W)
            group(b, t, W, rows, vecs, in32, out32, false, true);
    for (; t + vecs * W <= to; t += vecs * W)
        group(b, t, W, rows, vecs, in32, out32, false, false);
    for (; t < to; t += W)
        group(b, t, kf_min(W, to - t), rows, 1, in32, out32, true, false);
}

#define KERNEL_OF(name, rows, vecs, in32, out32)                               \
    TARGET static void name##_##rows(const kf_combine_block *b, size_t from,   \
                                     size_t to)                                \
    {                                                                          \
        columns(b, from, to, rows, vecs, in32, out32);                         \
    }
#define KERNEL(rows, vecs)                                                     \
    KERNEL_OF(f64, rows, vecs, false, false)                                   \
    KERNEL_OF(f32, rows, vecs, true, true)                                     \
    KERNEL_OF(round, rows, vecs, false, true)
