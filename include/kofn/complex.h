/* complex.h -- products with complex matrices, as real ones of twice the
 * columns.
 *
 * For programs with complex matrices or inputs.  <kofn.h> includes it. */
#ifndef KOFN_COMPLEX_H
#define KOFN_COMPLEX_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the input for a product with a complex matrix A.
 *
 * In memory a complex m x n matrix is a real m x 2n matrix A'.  Columns 2j and
 * 2j + 1 are the real and the imaginary part of column j.  With a complex n x p
 * matrix X, A X is in memory the real m x 2p product A' X' of KOFN_MATMUL.  X'
 * is real, 2n x 2p, and has for each entry a + bi of X the block
 *
 *      a  b
 *     -b  a
 *
 * This function writes X'.  If `is_complex`, X is n x 2p as A' is; else X is
 * real, n x p.  `out` is 2n x 2p, has the type of X, and does not overlap it.
 * A real A needs no other input: X itself, as n x 2p, gives A X as m x 2p.
 * Allocates no memory.
 * KOFN_INVAL: a matrix is missing, or the types differ.
 * KOFN_SHAPE: `is_complex`, and X has an odd number of columns; or the shape of
 * `out` is another. */
KOFN_API kofn_status kofn_complex_input(const kofn_matrix *X, bool is_complex,
                                        const kofn_matrix *out);

#ifdef __cplusplus
}
#endif
#endif
