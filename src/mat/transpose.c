/* transpose.c -- the transpose of a dense matrix, at the speed of memory.
 *
 * Squares of four by four are transposed in vectors.  They move along eight
 * rows of the result, so that each cache line of the input is used whole.
 *
 * Owns nothing, and allocates nothing. */
#include "mat.h"

#include "base/vectors.h"

#include <assert.h>

#define SIDE 4 /* numbers in a vector           */
#define BAND 8 /* rows that are written at once */

/* Vectors of numbers that lie where numbers do. */
typedef double doubles __attribute__((vector_size(SIDE * sizeof(double))));
typedef double some_doubles
    __attribute__((vector_size(SIDE * sizeof(double)), aligned(8), may_alias));
typedef float floats __attribute__((vector_size(SIDE * sizeof(float))));
typedef float some_floats
    __attribute__((vector_size(SIDE * sizeof(float)), aligned(4), may_alias));

#define PICK __builtin_shufflevector

/* A square; `over` and `down` are the distances of rows. */
#define SQUARE(name, type, vector, lying)                                      \
    static inline void name(const type *from, size_t over, type *to,           \
                            size_t down)                                       \
    {                                                                          \
        vector a = *(const lying *)from;                                       \
        vector b = *(const lying *)(from + over);                              \
        vector c = *(const lying *)(from + 2 * over);                          \
        vector d = *(const lying *)(from + 3 * over);                          \
        vector even_ab = PICK(a, b, 0, 4, 2, 6);                               \
        vector odd_ab = PICK(a, b, 1, 5, 3, 7);                                \
        vector even_cd = PICK(c, d, 0, 4, 2, 6);                               \
        vector odd_cd = PICK(c, d, 1, 5, 3, 7);                                \
                                                                               \
        *(lying *)to = PICK(even_ab, even_cd, 0, 1, 4, 5);                     \
        *(lying *)(to + down) = PICK(odd_ab, odd_cd, 0, 1, 4, 5);              \
        *(lying *)(to + 2 * down) = PICK(even_ab, even_cd, 2, 3, 6, 7);        \
        *(lying *)(to + 3 * down) = PICK(odd_ab, odd_cd, 2, 3, 6, 7);          \
    }

/* Rows [lo, hi) of `to`. */
#define ROWS(name, type, square)                                               \
    KF_VECTORS(optimize("O3"))                                                 \
    static void name(const kofn_matrix *from, const kofn_matrix *to,           \
                     size_t lo, size_t hi)                                     \
    {                                                                          \
        const type *x = from->data;                                            \
        type *y = to->data;                                                    \
        size_t j = 0;                                                          \
                                                                               \
        for (; hi - lo == BAND && j + SIDE <= to->cols; j += SIDE)             \
            for (size_t i = lo; i < hi; i += SIDE)                             \
                square(x + j * from->ld + i, from->ld, y + i * to->ld + j,     \
                       to->ld);                                                \
        for (; j < to->cols; j++)                                              \
            for (size_t i = lo; i < hi; i++)                                   \
                y[i * to->ld + j] = x[j * from->ld + i];                       \
    }

SQUARE(square_f64, double, doubles, some_doubles)
SQUARE(square_f32, float, floats, some_floats)
ROWS(rows_f64, double, square_f64)
ROWS(rows_f32, float, square_f32)

void kf_mat_transpose(const kofn_matrix *from, const kofn_matrix *to)
{
    assert(from->dtype == to->dtype && from->rows >= to->cols &&
           from->cols >= to->rows);
    for (size_t i = 0; i < to->rows; i += BAND)
        (to->dtype == KOFN_F64 ? rows_f64 : rows_f32)(
            from, to, i, kf_min(i + BAND, to->rows));
}
