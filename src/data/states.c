/* states.c -- the states of a block: A itself, and the optimizer states that a
 * linear optimizer keeps with it, such as a velocity.
 *
 * A change is linear in all states and in U' V (change.h).  A coded block is a
 * combination of parts of A.  The same combination of the parts of a state is
 * a coded state, and changes by the same factors.  So a worker keeps coded
 * states next to its block (math/training.md 8).
 *
 * The block owns its states.  Its worker must be its only owner when it
 * changes. */
#include "data.h"

#include "mat/mat.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#define ALL (KOFN_CHANGE_STATES + 1) /* A and the optimizer states */

/* ---- memory -------------------------------------------------------------- */

kofn_matrix kf_block_state(const kf_block *b, size_t state, size_t l)
{
    assert(l < b->components);
    if (state == 0)
        return b->component[l];
    if (state <= b->states)
        return kf_block_component(b, b->state[state - 1], l);
    return (kofn_matrix){NULL, 0, b->cols, b->cols, b->dtype};
}

kofn_status kf_block_set_states(kf_block *b, size_t states)
{
    assert(states <= KOFN_CHANGE_STATES);
    while (b->states > states) {
        kf_free(b->state[--b->states]);
        b->state[b->states] = NULL;
    }
    while (b->states < states) {
        TRY(kf_block_room(b, &b->state[b->states]));
        b->states++;
    }
    return KOFN_OK;
}

/* ---- changes ------------------------------------------------------------- */

kofn_status kofn_change_sgd(kofn_change *change, double step, double decay,
                            double momentum, bool nesterov)
{
    double ahead = nesterov ? momentum : 0, all = step * (1 + ahead);
    kofn_change c = KOFN_CHANGE_INIT;

    if (!isfinite(step) || !isfinite(decay) || !isfinite(momentum))
        return kf_fail(KOFN_NONFINITE,
                       "a change with step %g, decay %g and momentum %g: give "
                       "finite numbers",
                       step, decay, momentum);
    TRY(kf_given(&c, sizeof c, change, "KOFN_CHANGE_INIT"));
    c = (kofn_change)KOFN_CHANGE_INIT;
    c.keep[0][0] = 1 - all * decay;
    c.add[0] = -all;
    if (momentum != 0) {
        c.states = 1;
        c.keep[0][1] = -step * (nesterov ? ahead * momentum : momentum);
        c.keep[1][0] = decay;
        c.keep[1][1] = momentum;
        c.add[1] = 1;
    }
    kf_give(change, &c, sizeof c);
    return KOFN_OK;
}

kofn_status kf_states_change_new(kf_buffer **out, const kofn_change *c)
{
    TRY(kf_buffer_new(out, 1, kf_ceil_div(sizeof *c, sizeof(double)),
                      KOFN_F64));
    memcpy((*out)->m.data, c, sizeof *c);
    return KOFN_OK;
}

kofn_status kf_states_check_change(const kofn_change *c)
{
    bool finite = true;

    if (c->states > KOFN_CHANGE_STATES)
        return kf_fail(KOFN_INVAL,
                       "a change with %zu optimizer states; at most %d",
                       c->states, KOFN_CHANGE_STATES);
    for (size_t s = 0; s <= c->states; s++) {
        finite &= isfinite(c->add[s]);
        for (size_t t = 0; t < ALL; t++)
            finite &= isfinite(c->keep[s][t]);
    }
    return finite ? KOFN_OK
                  : kf_fail(KOFN_NONFINITE,
                            "a factor of a change, in `keep` or `add`, is NaN "
                            "or infinite; give finite numbers");
}

/* The change of the states in three steps.  First, each state becomes a sum of
 * states.  Then the pivot gains add U' V in one product.  Then the others gain
 * multiples of the pivot, which has U' V. */
typedef struct steps {
    size_t before, after; /* states that are read, and that are written */
    size_t pivot;
    double keep[ALL][ALL], add; /* of the first step, and of the pivot */
    double gain[ALL];
    double scale; /* factor of the pivot in its product */
} steps;

/* Returns a - b, or 0 if that is rounding alone. */
static double minus(double a, double b)
{
    double d = a - b;

    return fabs(d) <= 4 * DBL_EPSILON * fabs(a) ? 0 : d;
}

static size_t largest(const double *x, size_t n)
{
    size_t at = 0;

    for (size_t i = 1; i < n; i++)
        if (fabs(x[i]) > fabs(x[at]))
            at = i;
    return at;
}

/* Leaves the multiplication of the pivot to its product, if it depends on no
 * other state. */
static void leave_pivot(steps *s)
{
    double *row = s->keep[s->pivot];

    for (size_t t = 0; t < ALL; t++)
        if (t != s->pivot && row[t] != 0)
            return;
    s->scale = row[s->pivot];
    row[s->pivot] = 1;
}

/* Plans the change of a block that has this number of optimizer states. */
static steps plan(const kofn_change *c, size_t states)
{
    steps s = {.before = states + 1, .after = c->states + 1, .scale = 1};
    size_t p = s.pivot = largest(c->add, s.after);

    s.add = c->add[p];
    for (size_t i = 0; i < s.after; i++) {
        double by = i == p || s.add == 0 ? 0 : c->add[i] / s.add;

        s.gain[i] = by;
        for (size_t t = 0; t < s.before; t++)
            s.keep[i][t] = by == 0 ? c->keep[i][t]
                                   : minus(c->keep[i][t], by * c->keep[p][t]);
    }
    leave_pivot(&s);
    return s;
}

/* Bytes of a state that are summed at a time, so that all fit into a cache. */
#define CHUNK ((size_t)4096)

/* Compute to = sum of f x over the states; to += f x. */
#define SUMS(name, type)                                                       \
    static void name##_sum(void *to, const double *f, void *const *x,          \
                           size_t states, size_t n)                            \
    {                                                                          \
        type *restrict y = to;                                                 \
                                                                               \
        memset(y, 0, n * sizeof *y);                                           \
        for (size_t t = 0; t < states; t++) {                                  \
            const type *restrict from = x[t];                                  \
            const type by = (type)f[t];                                        \
                                                                               \
            for (size_t i = 0; f[t] != 0 && i < n; i++)                        \
                y[i] += by * from[i];                                          \
        }                                                                      \
    }                                                                          \
    static void name##_add(void *to, double f, const void *x, size_t n)        \
    {                                                                          \
        type *restrict y = to;                                                 \
        const type *restrict from = x;                                         \
        const type by = (type)f;                                               \
                                                                               \
        for (size_t i = 0; i < n; i++)                                         \
            y[i] += by * from[i];                                              \
    }
SUMS(f64, double)
SUMS(f32, float)

/* True if the first step does not change this state. */
static bool stays(const steps *s, size_t state)
{
    for (size_t t = 0; t < s->before; t++)
        if (s->keep[state][t] != (t == state))
            return false;
    return state < s->before;
}

/* Does the first step for some numbers of all states. */
static void mix_chunk(const steps *s, kofn_dtype dtype, char *const *state,
                      size_t at, size_t bytes)
{
    double sum[ALL][CHUNK / sizeof(double)];
    void *from[ALL];

    assert(bytes <= CHUNK);
    for (size_t t = 0; t < s->before; t++)
        from[t] = state[t] + at;
    for (size_t i = 0; i < s->after; i++)
        if (stays(s, i))
            continue;
        else if (dtype == KOFN_F64)
            f64_sum(sum[i], s->keep[i], from, s->before, bytes / 8);
        else
            f32_sum(sum[i], s->keep[i], from, s->before, bytes / 4);
    for (size_t i = 0; i < s->after; i++)
        if (!stays(s, i))
            memcpy(state[i] + at, sum[i], bytes);
}

static void mix_states(const steps *s, kofn_dtype dtype, char *const *state,
                       size_t bytes)
{
    bool all = true;

    for (size_t i = 0; i < s->after; i++)
        all &= stays(s, i);
    for (size_t at = 0; at < bytes && !all; at += CHUNK)
        mix_chunk(s, dtype, state, at, kf_min(CHUNK, bytes - at));
}

/* Changes these rows of a component, which are next to each other in every
 * state. */
static void change_rows(const steps *s, const kofn_matrix *u,
                        const kofn_matrix *v, const kofn_matrix *A,
                        char *const *state)
{
    size_t n = A->rows * A->cols, size = kf_dtype_size(A->dtype);
    kofn_matrix pivot = *A;

    assert(u->rows == v->rows);
    assert(A->ld == A->cols);
    mix_states(s, A->dtype, state, n * size);
    pivot.data = state[s->pivot];
    kf_mat_add_transposed(u, v, s->add, s->scale, &pivot);
    for (size_t i = 0; i < s->after; i++)
        if (s->gain[i] == 0)
            continue;
        else if (A->dtype == KOFN_F64)
            f64_add(state[i], s->gain[i], pivot.data, n);
        else
            f32_add(state[i], s->gain[i], pivot.data, n);
}

static kofn_matrix columns(const kofn_matrix *a, size_t first, size_t cols)
{
    assert(first + cols <= a->cols);
    return (kofn_matrix){kf_at(a, 0, first), a->rows, cols, a->ld, a->dtype};
}

/* True if all components can be changed at once: V is the same for all and none
 * is empty.  Components are below each other in memory. */
static bool stacks(const kf_block *b, const kofn_matrix *U,
                   const kofn_matrix *V)
{
    bool whole = U->cols == b->components * b->rows;

    for (size_t l = 0; l < b->components; l++)
        whole &= b->component[l].rows > 0;
    return whole && V->cols == b->cols;
}

kofn_status kf_block_change_states(kf_block *b, const kofn_change *c,
                                   const kofn_matrix *U, const kofn_matrix *V)
{
    size_t all = stacks(b, U, V) ? b->components : 1, rows = all * b->rows;
    steps s = plan(c, b->states);

    assert(b->changes);
    TRY(kf_block_set_states(b, kf_max(b->states, c->states)));
    for (size_t l = 0; l < b->components; l += all) {
        kofn_matrix A = b->component[l];
        kofn_matrix u = columns(U, U->cols > rows ? l * rows : 0, rows);
        kofn_matrix v =
            columns(V, V->cols > b->cols ? l * b->cols : 0, b->cols);
        char *state[ALL];

        if (A.rows == 0)
            continue;
        A.rows = rows;
        for (size_t i = 0; i <= b->states; i++)
            state[i] = kf_block_state(b, i, l).data;
        change_rows(&s, &u, &v, &A, state);
    }
    return kf_block_set_states(b, c->states);
}
