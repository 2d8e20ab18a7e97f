/* node_weights.c -- weights of the nodes of a graph, from a vector or a list.
 *
 * A list has a node on each line, by its number or its name, and possibly a
 * weight, which is 1 by default.  A node that is listed twice has the sum.
 *
 * Owns the file within a call; the caller frees the weights. */
#include "iterations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The names of the nodes in an order for searches. */
typedef struct directory {
    const char *const *name;
    size_t *at; /* rows, by their names; NULL: a number is its row */
    size_t n;
} directory;

static const char *const *ordered; /* the names that by_name compares */

static int by_name(const void *a, const void *b)
{
    return strcmp(ordered[*(const size_t *)a], ordered[*(const size_t *)b]);
}

static int open_directory(directory *d, const cli_iteration *it)
{
    *d = (directory){.name = it->file ? it->file->names : NULL, .n = it->n};
    if (!d->name)
        return 0;
    d->at = malloc(d->n * sizeof *d->at);
    if (!d->at)
        return cli_say(EXIT_FAILED, "out of memory for %zu nodes", d->n);
    for (size_t i = 0; i < d->n; i++)
        d->at[i] = i;
    ordered = d->name;
    qsort(d->at, d->n, sizeof *d->at, by_name);
    return 0;
}

/* Returns the row of a node; SIZE_MAX if there is none. */
static size_t find(const directory *d, const char *name)
{
    size_t lo = 0, hi = d->n;
    unsigned long long number;
    char *end;

    if (!d->at) {
        errno = 0;
        number = strtoull(name, &end, 10);
        return *name < '0' || *name > '9' || *end || errno || number >= d->n
                   ? SIZE_MAX
                   : (size_t)number;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(d->name[d->at[mid]], name);

        if (c == 0)
            return d->at[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return SIZE_MAX;
}

/* Adds the node of a line.  Empty lines and comments have none. */
static int take_line(const directory *d, char *line, size_t number,
                     const char *path, double *to)
{
    static const char blanks[] = " \t,\r\n";
    char *rest, *name = strtok_r(line, blanks, &rest);
    char *weight = name ? strtok_r(NULL, blanks, &rest) : NULL, *end = NULL;
    double w = weight ? strtod(weight, &end) : 1;
    size_t i;

    if (!name || *name == '#')
        return 0;
    i = find(d, name);
    if (i == SIZE_MAX)
        return cli_say(EXIT_USAGE, "%s: line %zu: '%s' is no node of the graph",
                       path, number, name);
    if (weight && (*end || !(w >= 0) || w - w != 0))
        return cli_say(EXIT_USAGE,
                       "%s: line %zu: '%s' is no weight; it must be a number "
                       ">= 0",
                       path, number, weight);
    to[i] += w;
    return 0;
}

static int read_list(const cli_iteration *it, const char *path, double *to)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0, number = 0;
    directory d;
    int code;

    if (!f)
        return cli_say(EXIT_USAGE, "cannot open %s: %s", path, strerror(errno));
    code = open_directory(&d, it);
    while (!code && getline(&line, &room, f) >= 0)
        code = take_line(&d, line, ++number, path, to);
    if (!code && ferror(f))
        code = cli_say(EXIT_USAGE, "cannot read %s: %s", path, strerror(errno));
    free(line);
    free(d.at);
    fclose(f);
    return code;
}

static int read_vector(const cli_iteration *it, const char *path, double *to)
{
    input in = {0};
    kofn_matrix m;
    int code = input_matrix(&in, &m, path);

    if (!code && m.rows * m.cols != it->n)
        code = cli_say(EXIT_USAGE,
                       "%s is %zu x %zu; the graph has %zu nodes, and a vector "
                       "needs a weight for each",
                       path, m.rows, m.cols, it->n);
    for (size_t i = 0; !code && i < m.rows; i++)
        for (size_t j = 0; j < m.cols; j++)
            to[i * m.cols + j] = cli_element(&m, i, j);
    input_free(&in);
    return code;
}

static int take(const cli_iteration *it, const char *path, kofn_matrix *out)
{
    size_t n = path ? strlen(path) : 0;

    if (!path)
        return 0;
    TRY_CODE(cli_room(out, it->n, 1, path));
    memset(out->data, 0, it->n * sizeof(double));
    return n >= 4 && strcmp(path + n - 4, ".txt") == 0
               ? read_list(it, path, out->data)
               : read_vector(it, path, out->data);
}

int cli_read_nodes(const cli_args *a, cli_iteration *it)
{
    TRY_CODE(take(it, a->personalize, &it->personalize));
    TRY_CODE(take(it, a->sinks, &it->sinks));
    return take(it, a->start, &it->start);
}
