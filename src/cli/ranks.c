/* ranks.c -- ranks of a graph with the names of its nodes.
 *
 * A list of edges names its nodes; ranks are in the order of the matrix.  This
 * file writes names beside ranks, and prints the largest ranks.
 *
 * Borrows file and ranks, and owns what it writes within a call. */
#include "iterations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 24 /* of a node without a name: its number */

/* Returns the name of node i, which may be in `room`. */
static const char *name_of(const kofn_file *file, size_t i,
                           char room[NAME_BYTES])
{
    if (file && file->names)
        return file->names[i];
    snprintf(room, NAME_BYTES, "%zu", i);
    return room;
}

/* Writes a line per node to a file: its name, and its rank if v is given. */
static int write_lines(const char *path, const kofn_file *file, const double *v,
                       size_t n)
{
    char room[NAME_BYTES], *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    bool bad = !f;
    kofn_status st;

    if (f && v)
        fputs("node,rank\n", f);
    for (size_t i = 0; i < n && f; i++) {
        fputs(name_of(file, i, room), f);
        if (v)
            fprintf(f, ",%.17g", v[i]);
        fputc('\n', f);
    }
    if (f)
        bad = ferror(f);
    if (f && fclose(f))
        bad = true;
    if (bad) {
        free(text);
        return cli_say(EXIT_FAILED, "out of memory for the names of %zu nodes",
                       n);
    }
    cli_guard(true);
    st = kofn_write_bytes(path, text, bytes);
    cli_guard(false);
    free(text);
    return cli_wrote(st);
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), k = strlen(suffix);

    return n >= k && strcmp(path + n - k, suffix) == 0;
}

/* Sets *id to the number of node i; false if it is none. */
static bool number_of(const kofn_file *file, size_t i, int64_t *id)
{
    char room[NAME_BYTES], *end;
    const char *name = name_of(file, i, room);

    errno = 0;
    *id = strtoll(name, &end, 10);
    return *name >= '0' && *name <= '9' && *end == 0 && errno == 0;
}

/* Writes the numbers of the nodes as int64 of NumPy. */
static int write_numbers(const char *path, const kofn_file *file, size_t n)
{
    enum { HEAD = 128 };
    size_t bytes = HEAD + n * sizeof(int64_t);
    unsigned char *all = calloc(bytes, 1);
    kofn_status st;

    if (!all)
        return cli_say(EXIT_FAILED, "out of memory for %zu nodes", n);
    memcpy(all, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(all + 10, ' ', HEAD - 10);
    snprintf((char *)all + 10, HEAD - 11,
             "{'descr': '<i8', 'fortran_order': False, 'shape': (%zu,), }", n);
    all[10 + strlen((char *)all + 10)] = ' ';
    all[HEAD - 1] = '\n';
    for (size_t i = 0; i < n; i++) {
        int64_t id;

        if (!number_of(file, i, &id)) {
            free(all);
            return cli_say(EXIT_USAGE,
                           "node '%s' is no number of 64 bits; write the names "
                           "as text, --ids %.*s.txt",
                           file->names[i], (int)(strlen(path) - 4), path);
        }
        for (size_t b = 0; b < 8; b++)
            all[HEAD + 8 * i + b] = (unsigned char)((uint64_t)id >> 8 * b);
    }
    cli_guard(true);
    st = kofn_write_bytes(path, all, bytes);
    cli_guard(false);
    free(all);
    return cli_wrote(st);
}

/* ---- the largest ranks --------------------------------------------------- */

typedef struct ranked {
    double rank;
    size_t node;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Returns the nodes, the largest rank first; NULL if memory is short. */
static ranked *in_order(const kofn_matrix *v)
{
    ranked *all = malloc(v->rows * sizeof *all);

    for (size_t i = 0; i < v->rows && all; i++)
        all[i] = (ranked){((const double *)v->data)[i], i};
    if (all)
        qsort(all, v->rows, sizeof *all, by_rank);
    return all;
}

static int print_top(const cli_args *a, const kofn_file *file,
                     const kofn_matrix *v, json_t *figures)
{
    size_t n = a->top < v->rows ? a->top : v->rows;
    json_t *list = json_array();
    char room[NAME_BYTES];
    ranked *all;

    if (n == 0) {
        json_decref(list);
        return 0;
    }
    all = in_order(v);
    if (!all) {
        json_decref(list);
        return cli_say(EXIT_FAILED, "out of memory for %zu nodes", v->rows);
    }
    cli_erase();
    for (size_t k = 0; k < n; k++) {
        const char *name = name_of(file, all[k].node, room);

        if (a->json)
            json_array_append_new(list, json_pack("[s, f]", name, all[k].rank));
        else
            printf("%-20s %.6g\n", name, all[k].rank);
    }
    free(all);
    if (a->json)
        json_object_set_new(figures, "top", list);
    else
        json_decref(list);
    return 0;
}

static int write_ranks(const cli_args *a, const kofn_file *file,
                       const kofn_matrix *v)
{
    if (a->output && has_suffix(a->output, ".csv") && file && file->edges)
        return write_lines(a->output, file, v->data, v->rows);
    return cli_write(a, KOFN_DENSE(v), 1);
}

static int write_ids(const cli_args *a, const kofn_file *file, size_t n)
{
    if (!a->ids)
        return 0;
    return has_suffix(a->ids, ".npy") ? write_numbers(a->ids, file, n)
                                      : write_lines(a->ids, file, NULL, n);
}

/* If one of them fails, the others are still written. */
int cli_ranks(const cli_args *a, const kofn_file *file, const kofn_matrix *v,
              json_t *figures)
{
    int wrote = write_ranks(a, file, v), top = print_top(a, file, v, figures);
    int ids = write_ids(a, file, v->rows);

    return wrote ? wrote : top ? top : ids;
}
