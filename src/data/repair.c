/* repair.c -- blocks without A, because no machine has A after it has changed.
 * It reads a block as rows of numbers, and computes rows of a block from other
 * blocks.
 *
 * The block of a seat is a row of the code times A.  So it is a combination of
 * the blocks of other seats if their rows span this row (math/training.md 8).
 * The combination is done row by row: a window of rows comes from the same
 * window of the other blocks.  Optimizer states are combined in the same way.
 *
 * Owns nothing between calls.  A block is written only by the caller that owns
 * it. */
#include "kernel.h"

#include <assert.h>
#include <math.h>

/* The noise above which other blocks determine a block too badly. */
#define TOLERANCE 1e-9
#define TOLERANCE_F32 (1e-4 * 0x1p-29) /* predicted for float64 */

/* ---- rows ---------------------------------------------------------------- */

void kf_block_read(const kf_block *b, size_t state, size_t lo, size_t hi,
                   void *to)
{
    kofn_matrix rows = {to, b->components * (hi - lo), b->cols, b->cols,
                        b->dtype};

    assert(lo <= hi && hi <= b->rows);
    (void)kf_data_read_dense(
        b, &(kf_work){.out = &rows, .lo = lo, .hi = hi, .state = state});
}

/* Returns a component of a state from row `lo` on; without rows if it is zeros.
 */
static kofn_matrix component_from(const kf_block *b, size_t state, size_t l,
                                  size_t lo)
{
    kofn_matrix component = kf_block_state(b, state, l);

    if (component.rows)
        component.data = kf_at(&component, lo, 0);
    return component;
}

kofn_status kf_block_write(kf_block *b, size_t state, size_t lo, size_t hi,
                           const void *from)
{
    size_t bytes = (hi - lo) * b->cols * kf_dtype_size(b->dtype);

    assert(b->changes && lo <= hi && hi <= b->rows);
    if (state > b->states)
        TRY(kf_block_set_states(b, state));
    for (size_t l = 0; l < b->components; l++) {
        kofn_matrix component = component_from(b, state, l, lo);

        if (component.rows)
            memcpy(component.data, (const char *)from + l * bytes, bytes);
    }
    return KOFN_OK;
}

/* ---- rows of others' ----------------------------------------------------- */

/* Components of other blocks that are mixed into those of a block. */
typedef struct mixture {
    size_t n;               /* components of all other blocks */
    double *x;              /* components of the block x n              */
    uint32_t *col;          /* 0, 1, ...                           */
    kofn_matrix *component; /* of the other blocks */
    kf_row *row;            /* of x                                */
    kf_mixed *mixed;        /* components of the block that have rows */
} mixture;

static kofn_status mixture_new(mixture *m, size_t components, size_t n)
{
    m->n = n;
    TRY_NEW(m->x, components * n);
    TRY_NEW(m->col, n);
    TRY_NEW(m->component, n);
    TRY_NEW(m->row, components);
    TRY_NEW(m->mixed, components);
    for (size_t i = 0; i < n; i++)
        m->col[i] = (uint32_t)i;
    return KOFN_OK;
}

static void mixture_free(mixture *m)
{
    kf_free(m->x);
    kf_free(m->col);
    kf_free(m->component);
    kf_free(m->row);
    kf_free(m->mixed);
}

static kofn_status mix(mixture *m, const kf_block *b, size_t state, size_t lo,
                       const kf_others *others)
{
    size_t rows = others->block[0]->rows, count = 0;

    assert(lo + rows <= b->rows);
    for (size_t i = 0; i < m->n; i++)
        m->component[i] = component_from(others->block[i / b->components],
                                         state, i % b->components, 0);
    for (size_t l = 0; l < b->components; l++) {
        kofn_matrix into = component_from(b, state, l, lo);

        m->row[l] = (kf_row){m->n, m->col, m->x + l * m->n};
        if (into.rows)
            m->mixed[count++] = (kf_mixed){&m->row[l], into, 1};
    }
    return kf_mix(m->mixed, count, m->component, m->n, rows, b->cols);
}

/* Returns the largest number of states that any of the blocks has. */
static size_t most_states(const kf_block *b, const kf_others *others)
{
    size_t most = b->states;

    for (size_t i = 0; i < others->n; i++)
        most = kf_max(most, others->block[i]->states);
    return most;
}

static kofn_status regenerate(mixture *m, kf_block *b, size_t lo,
                              const kf_others *others)
{
    size_t states = most_states(b, others);

    TRY(kf_block_set_states(b, states));
    for (size_t s = 0; s <= states; s++)
        TRY(mix(m, b, s, lo, others));
    return KOFN_OK;
}

kofn_status kf_block_regenerate(kf_block *b, kf_code *code, uint32_t seat,
                                size_t lo, const kf_others *others)
{
    double most = b->dtype == KOFN_F32 ? TOLERANCE_F32 : TOLERANCE, predicted;
    mixture m = {.n = 0};
    kofn_status st = mixture_new(&m, b->components, others->n * b->components);

    assert(b->changes);
    if (!st)
        st = kf_code_regenerator(code, others->seat, others->n, seat, m.x,
                                 &predicted);
    if (!st && predicted > most)
        st = KOFN_TOOFEW;
    if (!st)
        st = regenerate(&m, b, lo, others);
    mixture_free(&m);
    return st;
}
