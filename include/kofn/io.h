/* io.h -- files to matrices and back.
 *
 * For programs that take their matrices, points and graphs from files of strangers,
 * as the command does.
 *
 * Reads
 *   NumPy's .npy, 1.0 to 3.0, C and Fortran order, both byte orders: floats of
 *     8 and 4 bytes as they are; those of 2 bytes, integers and booleans as
 *     float64, where an integer that float64 cannot hold exactly is refused;
 *   Matrix Market, array and coordinate; real, double, integer,
 *     unsigned-integer and pattern; general, symmetric and hermitian, either
 *     triangle, and skew-symmetric;
 *   CSV of numbers, separated by semicolons, commas, tabs, bars or blanks, with
 *     or without a line of names, comments from # on, decimal commas where no
 *     comma separates;
 *   IDX, of which MNIST is made, and the binary files of CIFAR-10;
 *   .edges, lists of edges, two numbers of nodes from 0 on a line;
 *   .libsvm and .svm, points as LIBSVM has them: `label index:value ...` a line,
 *     indices from 1 and ascending, comments from # on; by any other name where the
 *     first line is one;
 *   and what gzip made of any of them.  As by gzip, what stands behind the last
 *     member and does not begin as one is ignored.  No more is inflated than a
 *     header tells of; of compressed text no more than 16 MiB and 256 bytes for
 *     each number in whole lines.
 * The format is told by the first bytes, then by the suffix; that of CIFAR-10
 * by its suffix, .bin, alone, and a .bin that could be raw numbers as well,
 * since every word of it is a usual one, is refused.  A file is data from a
 * stranger: whatever is in it, the answer is a matrix or a message that names
 * the file, the place in it and the reason.
 */
#ifndef KOFN_IO_H
#define KOFN_IO_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a file holds, which is read only, and goes with kofn_file_free. */
typedef struct kofn_file {
    /* Coordinate files, edges and LIBSVM's are sparse (rows in order, columns
     * ascending within a row, duplicates summed), all others dense. */
    kofn_operand matrix;
    /* Labels, one for each row, n x 1: those that stand beside the images in a
     * CIFAR-10 file, from 0 to 9, and beside LIBSVM's points, any numbers; NULL
     * for any other file. */
    const kofn_matrix *labels;
    /* 1 for a vector in .npy or IDX and for a CSV of one column, all seen as
     * n x 1; else 2. */
    unsigned dims;
    bool half; /* the file has float16, and its numbers are float64 here */
    /* Is it a list of edges, and does a comment in front of them say that they have
     * no direction?  Each is one entry all the same, from its first node to its
     * second. */
    bool edges, undirected;
} kofn_file;

/* KOFN_IO: it cannot be opened or read.  KOFN_FORMAT: it is not what it says
 * it is.  KOFN_NONFINITE: it holds NaN or infinity.  A C-ordered .npy of the
 * machine's byte order is mapped, not copied. */
typedef enum kofn_file_use {
    KOFN_FILE_READ, /* a matrix that is read                                 */
    KOFN_FILE_COPY, /* its numbers may be written to, which leaves the file as
                       it is and takes memory only where it is done; and a .npy
                       may hold NaN and infinity                             */
    KOFN_FILE_GRAPH /* .txt, .tsv and .dat are lists of edges as well        */
} kofn_file_use;
KOFN_API kofn_status kofn_file_open(kofn_file **out, const char *path,
                                    kofn_file_use use);
KOFN_API void kofn_file_free(kofn_file *f);

/* All of these write to a temporary name beside `path`, force it to disk and
 * rename: the old file or the whole new one is there, never a part.  A mount point
 * cannot be replaced: such a file is written in place at the end.
 * .npy is version 1.0, C order, little endian; dims 1 or 2. */
KOFN_API kofn_status kofn_write_npy(const char *path, const kofn_matrix *a,
                                    unsigned dims);
/* By the suffix: .npy, .csv, .mtx (array format).  A sparse one goes to .mtx alone
 * (coordinate, general; pattern when every value is 1), and dims is 2. */
KOFN_API kofn_status kofn_write(const char *path, kofn_operand a,
                                unsigned dims);

/* Any bytes. */
KOFN_API kofn_status kofn_write_bytes(const char *path, const void *bytes,
                                      size_t length);

/* A graph with the skewed degrees of real ones: R-MAT (Chakrabarti, Zhan,
 * Faloutsos 2004) with quadrant chances 0.57, 0.19, 0.19, 0.05 and shuffled
 * node numbers.  `arcs` draws; loops and duplicates are dropped, so slightly
 * fewer remain.  All values are 1.  Freed with kofn_free. */
KOFN_API kofn_status kofn_rmat(kofn_sparse **out, size_t nodes, size_t arcs,
                               uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
