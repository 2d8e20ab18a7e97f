/* cmd_gen.c -- kofn gen: generates inputs to try kofn with.
 *
 * Owns what it generates until it is written. Equal seeds give equal files on
 * every machine, so no other source of randomness may be used. */
#include "cli.h"

#include "base/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns element i of a uniform sequence, independent of all others:
 * splitmix64's finaliser over (seed, index). */
static double uniform(uint64_t seed, uint64_t i)
{
    uint64_t of_seed = seed * UINT64_C(0xD1B54A32D192ED03);

    return (double)(kf_mix64(kf_state64(of_seed, i + 1)) >> 11) * 0x1p-53;
}

static double normal(uint64_t seed, uint64_t i)
{
    double u = uniform(seed, 2 * i), v = uniform(seed, 2 * i + 1);

    return sqrt(-2 * log1p(-u)) * cos(6.283185307179586477 * v);
}

static int write_dense(const cli_args *a, size_t rows, size_t cols,
                       unsigned dims, double (*draw)(uint64_t, uint64_t))
{
    kofn_dtype type = strcmp(a->dtype, "f4") == 0 ? KOFN_F32 : KOFN_F64;
    kofn_matrix m = {NULL, rows, cols, cols, type};
    size_t count;
    int code;

    if (__builtin_mul_overflow(rows, cols, &count) || count > SIZE_MAX / 8)
        return cli_say(EXIT_USAGE, "%zu x %zu is too large", rows, cols);
    m.data = malloc(count * (type == KOFN_F64 ? 8 : 4));
    if (!m.data)
        return cli_say(EXIT_FAILED, "out of memory for %zu x %zu", rows, cols);
    for (size_t i = 0; i < count; i++) {
        if (type == KOFN_F64)
            ((double *)m.data)[i] = draw(a->seed, i);
        else
            ((float *)m.data)[i] = (float)draw(a->seed, i);
    }
    code = cli_write(a, KOFN_DENSE(&m), dims);
    free(m.data);
    return code;
}

static int write_graph(const cli_args *a, size_t nodes, size_t arcs)
{
    kofn_sparse *g;
    int code;

    TRY_CODE(cli_fail(kofn_rmat(&g, nodes, arcs, a->seed)));
    code = cli_write(a, KOFN_SPARSE(g), 2);
    kofn_free(g);
    return code;
}

int cmd_gen(cli_args *a)
{
    const char *kind = a->operand[0];
    bool vector = !strcmp(kind, "vector"), graph = !strcmp(kind, "graph");
    bool flat = !strcmp(kind, "uniform"), pattern = !strcmp(kind, "pattern");
    size_t size[2] = {0, 1};
    int code, want = vector ? 1 : 2;

    if (!vector && !graph && !flat && !pattern && strcmp(kind, "matrix") != 0)
        return cli_say(EXIT_USAGE,
                       "cannot make \"%s\"; there are matrix, "
                       "vector, uniform, graph, pattern",
                       kind);
    if (pattern && a->operands != 4)
        return cli_say(EXIT_USAGE, "gen pattern takes MODEL ROUNDS WORKERS");
    if (!pattern && a->operands != want + 1)
        return cli_say(EXIT_USAGE, "gen %s takes %d size%s, not %d", kind, want,
                       want == 1 ? "" : "s", a->operands - 1);
    if (!a->output)
        return cli_say(EXIT_USAGE, "gen needs -o FILE");
    for (int i = 0; i < want; i++) {
        const char *text = a->operand[1 + pattern + i];

        if (!cli_whole(text, 1000000000000, &size[i]) || !size[i])
            return cli_say(EXIT_USAGE,
                           "%s is not a size; give a whole number from 1 to "
                           "1000G, as it is or with k, M or G",
                           text);
    }
    TRY_CODE(cli_check_output(a, graph));
    code = pattern ? cli_gen_pattern(a, size[0], size[1])
           : graph ? write_graph(a, size[0], size[1])
                   : write_dense(a, size[0], size[1], vector ? 1 : 2,
                                 flat ? uniform : normal);
    return cli_caught() ? 128 + cli_caught() : code;
}
