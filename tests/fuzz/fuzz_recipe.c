/* fuzz_recipe.c -- recipes of blocks: those of the input, and a good one of
 * which the input changes some bytes.  fuzz-iterations: 1000000 */
#include "packets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY ((size_t)64 << 10)

/* Every byte that may come has its place. */
static void fill(const kf_recipe *r)
{
    for (size_t s = 0; s < r->sections; s++) {
        size_t units, bytes;

        kf_section(r->block, s, &units, &bytes);
        MUST(bytes > 0 && units <= MEMORY / bytes + 1);
        if (units)
            memset(kf_piece_into(r->block, s, 0), 0, units * bytes);
    }
    kf_pieces_check(r->block);
}

static void cook(kf_recipe *r)
{
    static double zeros[4096];
    kofn_matrix A = {zeros, r->A_rows, r->A_cols, r->A_cols, r->block->dtype};
    kofn_status st;

    if (r->block->A || !A.rows || !A.cols || A.rows > 4096 / A.cols)
        return;
    st = kf_recipe_cook(r, &A, NULL);
    MUST(st == KOFN_OK || st == KOFN_SHAPE || st == KOFN_NOMEM);
}

static void read(const uint8_t *bytes, size_t n)
{
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    size_t before = held;
    kofn_status st;
    kf_recipe r;

    o.memory = MEMORY;
    most = held + MEMORY + 4096;
    st = kf_recipe_read(&r, bytes, n, &o);
    MUST(st == KOFN_OK || st == KOFN_FORMAT || st == KOFN_UNSUITED);
    if (st == KOFN_OK) {
        fill(&r);
        most += 4 * MEMORY;
        cook(&r);
        kf_recipe_free(&r);
        kofn_block_drop(r.block);
    }
    most = SIZE_MAX;
    MUST(held == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    draw d = {data, size};
    const sample *s;
    uint8_t *copy;

    watch_memory();
    read(data, size);
    s = &samples()[next(&d, BLOCKS)];
    copy = malloc(s->recipe.n);
    MUST(copy);
    memcpy(copy, s->recipe.p, s->recipe.n);
    while (d.left) {
        size_t at = (next(&d, 256) + 256 * next(&d, 4)) % s->recipe.n;

        copy[at] = (uint8_t)next(&d, 256);
    }
    read(copy, s->recipe.n);
    free(copy);
    return 0;
}
