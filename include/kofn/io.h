/* io.h -- reads matrices from files, and writes them.
 *
 * For programs that read matrices, points and graphs from untrusted files, such
 * as the command.  A file of any content gives a matrix or a message with the
 * name of the file, the place and the reason.
 *
 * Formats that are read:
 *   .npy           NumPy 1.0 to 3.0, C and Fortran order, both byte orders.
 *                  Floats of 8 and 4 bytes keep their type.  Floats of 2 bytes,
 *                  integers and booleans become float64.  Integers that float64
 *                  cannot hold exactly are refused.  Complex numbers of 16
 *                  and 8 bytes keep their type; see KOFN_FILE_COMPLEX.
 *   Matrix Market  Array and coordinate; real, double, integer,
 *                  unsigned-integer, pattern and, with KOFN_FILE_COMPLEX,
 *                  complex; general, symmetric, hermitian and skew-symmetric.
 *                  Symmetric and hermitian files may hold either triangle.
 *   CSV            Numbers separated by semicolons, commas, tabs, bars or
 *                  blanks, with or without a line of names.  # begins a
 *                  comment.  Decimal commas are allowed if no comma separates
 *                  numbers.
 *   IDX            The format of MNIST.
 *   CIFAR-10       Its binary files, named .bin.
 *   .edges         Lists of edges: two nodes on a line, as numbers or names,
 * and possibly a weight.  Only nodes that edges name exist. .libsvm, .svm
 * Points in the format of LIBSVM: `label index:value ...` on a line.  Indices
 * start at 1 and ascend.  # begins a comment. Other names are allowed if the
 * first line has this form.
 *
 * Each of them may be compressed with gzip.  Data after the last gzip member is
 * ignored if it does not begin like a member; gzip does the same.  A file is
 * not inflated beyond the size that its header states.  Text is not inflated
 * beyond 16 MiB and 256 bytes for each number in complete lines.
 *
 * The first bytes determine the format, then the suffix.  Only the suffix .bin
 * marks CIFAR-10.  A .bin that may also be raw numbers, because every word of
 * it is a plausible number, is refused.
 */
#ifndef KOFN_IO_H
#define KOFN_IO_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The content of a file.  It is read only, except with KOFN_FILE_COPY.
 * kofn_file_free frees it with all matrices. */
typedef struct kofn_file {
    /* Sparse for coordinate files, edges and LIBSVM: rows in order, columns
     * ascending within a row, duplicates summed.  Dense for all other
     * formats. */
    kofn_operand matrix;
    /* Labels, n x 1, one for each row: 0 .. 9 for images of CIFAR-10, any
     * numbers for points of LIBSVM, or the column of kofn_file_open_labelled.
     * NULL for other formats. */
    const kofn_matrix *labels;
    /* 1 for a vector in .npy or IDX and for a CSV of one column, which are read
     * as n x 1 matrices.  Otherwise 2. */
    unsigned dims;
    bool half; /* the file has float16; the matrix is float64 */
    /* edges: the file is a list of edges.  undirected: its edges have no
     * direction, by a comment at its start or by KOFN_GRAPH_UNDIRECTED; each is
     * an entry in both directions. */
    bool edges, undirected;
    /* Of a list of edges: the names of its nodes, one for each row of the
     * matrix.  NULL for other formats, and if the nodes are 0, 1, 2, ... */
    const char *const *names;
    /* Of a list of edges: its lines, and the numbers of nodes and edges that a
     * comment at its start states, as SNAP does; 0: none. */
    size_t listed, said_nodes, said_edges;
    /* True if the numbers are complex.  An m x n file is then a real m x 2n
     * matrix: columns 2j and 2j + 1 are the real and the imaginary part of
     * column j. */
    bool is_complex;
} kofn_file;

/* The purpose for which a file is opened. */
typedef enum kofn_file_use {
    /* The matrix is only read. */
    KOFN_FILE_READ,
    /* The numbers may be written to; the file stays unchanged, and only written
     * pages take memory.  A .npy may hold NaN and infinity. */
    KOFN_FILE_COPY,
    /* A graph: other text files than .mtx are also read as lists of edges. */
    KOFN_FILE_GRAPH,
    /* These may be added to KOFN_FILE_GRAPH.  The third field of an edge is its
     * weight.  Every edge goes in both directions.  Edges go from the first
     * node to the second, whatever comments say.  Every number from 0 to the
     * largest is a node, also without edges. */
    KOFN_GRAPH_WEIGHTS = 4,
    KOFN_GRAPH_UNDIRECTED = 8,
    KOFN_GRAPH_DIRECTED = 16,
    KOFN_GRAPH_ISOLATED = 32,
    /* This may be added to KOFN_FILE_READ and KOFN_FILE_COPY.  A .npy or Matrix
     * Market file may have complex numbers; `is_complex` shows that it has.
     * Otherwise a file with complex numbers is refused. */
    KOFN_FILE_COMPLEX = 64
} kofn_file_use;
/* Reads a file.  A C-ordered .npy in the byte order of the machine is mapped,
 * not copied.  The caller frees *out with kofn_file_free; it is NULL on
 * failure.
 * KOFN_INVAL: `out` or `path` is NULL.
 * KOFN_IO: the file cannot be opened or read.
 * KOFN_FORMAT: the file is malformed.
 * KOFN_NONFINITE: the file has a NaN or an infinity. */
KOFN_API kofn_status kofn_file_open(kofn_file **out, const char *path,
                                    kofn_file_use use);
/* Reads a file with points in its rows and their labels in a column.  `label`
 * is the name of the column in the first line of a CSV, or its number from 1.
 * The matrix has all other columns, in float64.
 * KOFN_INVAL: an argument is NULL, there is no such column or no other, or
 * labels are not in a column of the format.
 * KOFN_IO, KOFN_FORMAT, KOFN_NONFINITE: as for kofn_file_open. */
KOFN_API kofn_status kofn_file_open_labelled(kofn_file **out, const char *path,
                                             const char *label);
/* Frees the content of a file; NULL is allowed. */
KOFN_API void kofn_file_free(kofn_file *f);

/* Writes a dense matrix as .npy 1.0, in C order and little endian.  `dims` is
 * 2, or 1 to write a vector.
 *
 * This and the three functions below write to a temporary file next to `path`,
 * force it to disk and rename it.  So `path` has either its old or its complete
 * new content.  A mount point cannot be replaced; it is overwritten in place at
 * the end.
 * KOFN_IO: the file cannot be written.
 * KOFN_INVAL, KOFN_SHAPE: an argument is missing, or `dims` does not fit the
 * shape. */
KOFN_API kofn_status kofn_write_npy(const char *path, const kofn_matrix *a,
                                    unsigned dims);
/* Writes a matrix in the format of the suffix: .npy, .csv or .mtx (array).  A
 * sparse matrix is written as .mtx only (coordinate, general; pattern if every
 * value is 1), and needs `dims` = 2.
 * KOFN_IO: the file cannot be written.
 * KOFN_INVAL, KOFN_SHAPE: the suffix is none of these, or an argument is
 * invalid.
 * KOFN_NONFINITE: a sparse matrix has a NaN or an infinity. */
KOFN_API kofn_status kofn_write(const char *path, kofn_operand a,
                                unsigned dims);

/* Writes a dense complex m x n matrix in the format of the suffix: .npy or .mtx
 * (array).  `a` is m x 2n: columns 2j and 2j + 1 are the real and the imaginary
 * part of column j.  `dims` is 2, or 1 to write a vector.
 * KOFN_IO: the file cannot be written.
 * KOFN_INVAL, KOFN_SHAPE: the suffix is neither, the number of columns is odd,
 * or an argument is invalid. */
KOFN_API kofn_status kofn_write_complex(const char *path, const kofn_matrix *a,
                                        unsigned dims);

/* Writes `length` bytes.
 * KOFN_IO: the file cannot be written.
 * KOFN_INVAL: `path` is NULL. */
KOFN_API kofn_status kofn_write_bytes(const char *path, const void *bytes,
                                      size_t length);

/* Makes a random graph with skewed degrees, as real graphs have them: R-MAT
 * with quadrant probabilities 0.57, 0.19, 0.19, 0.05 and shuffled node numbers.
 * It draws `arcs` arcs and drops loops and duplicates, so slightly fewer
 * remain.  All values are 1.  `nodes` is 2 .. 2^32 - 1.  The caller frees *out
 * with kofn_free.  Source: Chakrabarti, Zhan, Faloutsos, "R-MAT", 2004.
 * KOFN_INVAL: `nodes` is out of range. */
KOFN_API kofn_status kofn_rmat(kofn_sparse **out, size_t nodes, size_t arcs,
                               uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
