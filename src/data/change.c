/* change.c -- changes a worker's blocks in place.
 *
 * A changes by U' V.  A block changes by the product of two mixtures, of U and
 * of V, which the coordinator makes (math/training.md 8).  How its states
 * change is in states.c.
 *
 * The block belongs to the worker, which must be its only owner.  The number of
 * updates is counted here; both ends use it to detect a missed update. */
#include "data.h"

#include "base/rng.h"
#include "mat/mat.h"

#include <assert.h>

/* ---- memory -------------------------------------------------------------- */

/* Copies components that are views of A, because A must not be changed. */
static kofn_status make_own(kf_block *b)
{
    void *all;

    assert(!b->A);
    assert(!b->subset);
    if (b->changes)
        return KOFN_OK;
    TRY(kf_block_room(b, &all));
    for (size_t l = 0; l < b->components; l++) {
        kofn_matrix component = kf_block_component(b, all, l);

        kf_mat_copy(&b->component[l], &component);
        b->component[l] = component;
    }
    kf_free(b->owned);
    b->owned = all;
    b->changes = true;
    return KOFN_OK;
}

/* ---- memory that fails --------------------------------------------------- */

/* Returns the number of numbers in a state of a block. */
static size_t numbers_in(const kf_block *b)
{
    size_t n = 0;

    for (size_t l = 0; l < b->components && !b->A && !b->subset; l++)
        n += b->component[l].rows * b->cols;
    return n;
}

static size_t numbers_of(const kf_block *b)
{
    return numbers_in(b) * (1 + b->states);
}

/* Returns the address of number k of all; NULL if it is in a component of
 * zeros. */
static unsigned char *number_at(kf_block *b, size_t k)
{
    size_t size = kf_dtype_size(b->dtype), l = 0, state;
    unsigned char *x;

    for (; k >= numbers_of(b); b = b->next)
        k -= numbers_of(b);
    state = k / numbers_in(b);
    k %= numbers_in(b);
    for (; k >= b->component[l].rows * b->cols; l++)
        k -= b->component[l].rows * b->cols;
    x = kf_block_state(b, state, l).data;
    x += k * size;
    for (size_t i = 0; i < size; i++)
        if (x[i])
            return x;
    return NULL;
}

static void flip(unsigned char *x, kofn_dtype dtype, kf_rng *r)
{
    size_t bits = 8 * kf_dtype_size(dtype), first = bits == 64 ? 40 : 16;
    size_t bit = first + kf_rng_below(r, bits - first);

    x[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

kofn_status kf_block_flip(kf_block *all, kf_rng *r)
{
    unsigned char *x = NULL;
    size_t n = 0, k;

    for (kf_block *b = all; b; b = b->next) {
        if (numbers_of(b))
            TRY(make_own(b));
        n += numbers_of(b);
    }
    k = n ? kf_rng_below(r, n) : 0;
    for (size_t i = 0; i < n && !x; i++)
        x = number_at(all, (k + i) % n);
    if (x)
        flip(x, all->dtype, r);
    return KOFN_OK;
}

/* ---- messages ------------------------------------------------------------ */

kofn_status kf_data_check_change(const kofn_problem *pb, const kofn_matrix *U,
                                 const kofn_matrix *V)
{
    TRY(kf_mat_check_matrix(U, "U"));
    TRY(kf_mat_check_matrix(V, "V"));
    if (U->rows != V->rows || U->cols != pb->m || V->cols != pb->n)
        return kf_fail(KOFN_SHAPE,
                       "U is %zu x %zu and V %zu x %zu, and for A, %zu x %zu, "
                       "U' V must be made of as many rows of %zu and %zu",
                       U->rows, U->cols, V->rows, V->cols, pb->m, pb->n, pb->m,
                       pb->n);
    if (U->dtype != pb->dtype || V->dtype != pb->dtype)
        return kf_fail(KOFN_SHAPE, "U and V must be of A's type");
    TRY(kf_mat_check_finite(U, "U"));
    return kf_mat_check_finite(V, "V");
}

/* True if the factors fit.  Each is for all components side by side, or one for
 * all.
 */
bool kf_block_takes(const kf_block *b, const kofn_matrix *U,
                    const kofn_matrix *V)
{
    return b && !b->subset && !b->A && U->dtype == b->dtype &&
           V->dtype == b->dtype && U->rows == V->rows &&
           (U->cols == b->rows || U->cols == b->components * b->rows) &&
           (V->cols == b->cols || V->cols == b->components * b->cols);
}

static kofn_status update(kf_block *b, const kf_msg *m)
{
    if (!kf_block_takes(b, &m->in->m, &m->with->m))
        return kf_fail(KOFN_SHAPE,
                       "an update by %zu x %zu and %zu x %zu does not fit the "
                       "block of operand %u",
                       m->in->m.rows, m->in->m.cols, m->with->m.rows,
                       m->with->m.cols, m->operand);
    TRY(make_own(b));
    TRY(kf_block_change_states(b, kf_states_change_of(m->change), &m->in->m,
                               &m->with->m));
    b->updates++;
    return KOFN_OK;
}

void kf_block_miss(kf_block *b, const kf_msg *m)
{
    b = kf_block_of(b, m->operand);
    if (b)
        b->updates++;
}

/* Puts a slice, encoded for this seat from other blocks, into the block. */
static kofn_status put_slice(kf_block *b, const kf_msg *m)
{
    const kf_block *slice = m->block;

    if (!b || !b->changes || slice->components != b->components ||
        slice->cols != b->cols || slice->dtype != b->dtype || m->hi > b->rows ||
        m->lo > m->hi || slice->rows != m->hi - m->lo)
        return kf_fail(KOFN_SHAPE,
                       "a slice of strips [%zu, %zu) does not fit the block of "
                       "operand %u",
                       m->lo, m->hi, m->operand);
    if (m->state > b->states)
        TRY(kf_block_set_states(b, m->state));
    for (size_t l = 0; l < b->components; l++) {
        kofn_matrix component = kf_block_state(b, m->state, l);

        if (component.rows == 0 || slice->component[l].rows == 0)
            continue;
        component.data = kf_at(&component, m->lo, 0);
        kf_mat_copy(&slice->component[l], &component);
    }
    return KOFN_OK;
}

bool kf_block_whole(const kf_block *b)
{
    while (b && !b->empty)
        b = b->next;
    return !b;
}

kofn_status kf_block_change(kf_block *b, const kf_msg *m)
{
    if (m->type == KF_MSG_UPDATE)
        return update(kf_block_of(b, m->operand), m);
    if (m->block)
        return put_slice(kf_block_of(b, m->operand), m);
    for (; b; b = b->next)
        b->empty = false;
    return KOFN_OK;
}

double kf_block_change_size(const kf_block *b, const kf_msg *m)
{
    b = kf_block_of(b, m->operand);
    return b && m->in ? (double)b->components * (double)b->rows *
                            (double)b->cols * (double)m->in->m.rows
                      : 0;
}
