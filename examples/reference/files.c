/* files.c -- matrices in files, and a random graph. */
#include "example.h"

#include <kofn/io.h>

#include <string.h>

static void write_and_read(void)
{
    double a[6] = {1, 2, 3, 4, 5, 6};
    kofn_matrix A = matrix(a, 2, 3);
    kofn_file *f;

    must(kofn_write_npy("example.npy", &A, 2));
    must(kofn_write("example.csv", KOFN_DENSE(&A), 2));
    must(kofn_file_open(&f, "example.npy", KOFN_FILE_READ));
    expect(f->dims == 2 && f->matrix.dense->cols == 3 &&
               !memcmp(f->matrix.dense->data, a, sizeof a),
           "the matrix in the .npy");
    kofn_file_free(f);
    must(kofn_file_open(&f, "example.csv", KOFN_FILE_READ));
    expect(((double *)f->matrix.dense->data)[5] == 6, "the number in the .csv");
    kofn_file_free(f);
    must(kofn_file_open_labelled(&f, "example.csv", "3"));
    expect(((double *)f->labels->data)[1] == 6, "the label in the .csv");
    kofn_file_free(f);
}

/* Writes three arcs of a graph, and reads them as a sparse matrix. */
static void read_graph(void)
{
    static const char arcs[] = "0 1\n1 2\n2 0\n";
    kofn_file *f;

    must(kofn_write_bytes("example.edges", arcs, strlen(arcs)));
    must(kofn_file_open(&f, "example.edges", KOFN_FILE_GRAPH));
    expect(f->edges && f->matrix.sparse->ptr[3] == 3, "three arcs");
    kofn_file_free(f);
}

static void draw_graph(void)
{
    kofn_sparse *g;

    must(kofn_rmat(&g, 100, 500, 1));
    expect(g->rows == 100 && g->ptr[100] > 0 && g->ptr[100] <= 500,
           "at most 500 arcs");
    kofn_free(g);
}

int main(void)
{
    write_and_read();
    read_graph();
    draw_graph();
    remove("example.npy");
    remove("example.csv");
    remove("example.edges");
    return 0;
}
