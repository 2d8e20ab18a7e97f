/* message.c -- the input of a product as it is sent.
 *
 * Codes that cut only A send the same input to all workers.  If the input is
 * also cut, a mixture of its parts goes with each row of the code and depends
 * only on this row.  In an adjoint code it depends on the other rows too, strip
 * by strip.
 *
 * Owns the buffers of a product's messages; the input is copied or borrowed.  A
 * message that was sent must not be written again. */
#include "data.h"

#include "code/combine.h"
#include "code/operation.h"

#include <assert.h>

static bool coded(const kofn_plan *p)
{
    return p->parts1 > 1 || p->layout.adjoint;
}

/* Releases the messages of the last round.  Workers may still hold some of
 * them; these are reused once they are free. */
void kf_messages_release(kf_messages *m)
{
    for (size_t i = 0; i < m->rows; i++) {
        kf_pool_give(&m->pool, m->row[i]);
        m->row[i] = NULL;
    }
    kf_pool_give(&m->pool, m->plain);
    m->plain = NULL;
    kf_parts_free(&m->parts);
}

/* Returns the cut of the input; in an adjoint code its parts match those of A.
 */
static kofn_cut cut_of(const kofn_plan *plan)
{
    const kofn_layout *L = &plan->layout;

    if (!L->adjoint)
        return L->cut[1];
    return plan->op->left ? (kofn_cut){1, L->cut[0].rows}
                          : (kofn_cut){L->cut[0].cols, 1};
}

/* Starts a round with a copy of the input, or with the borrowed input. */
static kofn_status begin(kf_messages *m, const kofn_plan *plan,
                         const kofn_matrix *in, double by, bool lent)
{
    kofn_cut cut = cut_of(plan);

    assert(by > 0);
    kf_messages_release(m);
    m->plan = plan;
    m->lent = lent;
    m->by = lent ? by : 1;
    if (!lent) {
        TRY(kf_pool_take(&m->pool, in->rows, in->cols, in->dtype, &m->plain));
        kf_mat_copy(in, &m->plain->m);
        kf_range_multiply(&m->plain->m, by);
        in = &m->plain->m;
    }
    return coded(plan) ? kf_parts_new(&m->parts, in, cut.rows, cut.cols)
                       : KOFN_OK;
}

kofn_status kf_messages_begin(kf_messages *m, const kofn_plan *plan,
                              const kofn_matrix *in, double by)
{
    return begin(m, plan, in, by, false);
}

kofn_status kf_messages_lend(kf_messages *m, const kofn_plan *plan,
                             const kofn_matrix *in, double by)
{
    return begin(m, plan, in, by, coded(plan));
}

void kf_messages_forget(kf_messages *m, size_t row)
{
    if (row >= m->rows)
        return;
    kf_pool_give(&m->pool, m->row[row]);
    m->row[row] = NULL;
}

void kf_messages_free(kf_messages *m)
{
    kf_messages_release(m);
    kf_free(m->row);
    kf_pool_free(&m->pool);
}

kf_buffer *kf_messages_take(const kf_messages *m, size_t row)
{
    assert(!coded(m->plan) || row < m->rows);
    return kf_buffer_keep(coded(m->plan) ? m->row[row] : m->plain);
}

/* ---- mixtures that depend on the row ------------------------------------- */

/* Returns true if the message is a whole part of the input, inside its edge. */
static bool plain_part(const kf_messages *m, const kf_row *row)
{
    const kofn_matrix *in, *part;
    uintptr_t from, at;

    if (m->lent || m->plan->layout.inner > 1 || row->n != 1 || row->val[0] != 1)
        return false;
    in = &m->plain->m;
    from = (uintptr_t)in->data;
    part = &m->parts.part[row->col[0]];
    at = (uintptr_t)part->data;
    return part->rows && at >= from &&
           at < from + in->rows * in->cols * kf_dtype_size(in->dtype);
}

/* Prepares buffers for the rows without one, and the mixtures for them. */
static kofn_status lay_out(kf_messages *m, kf_code *code, const size_t *row,
                           size_t n, kf_mixed *mixed, size_t *count)
{
    size_t inner = m->plan->layout.inner, rows = m->parts.rows;

    for (size_t i = 0; i < n; i++) {
        const kf_seat *s;
        kf_buffer **p;

        TRY(kf_reach(&m->row, &m->rows, row[i] + 1, sizeof *m->row));
        p = &m->row[row[i]];
        if (*p)
            continue;
        TRY(kf_code_seat(code, kf_local(m->plan, row[i]), &s));
        if (plain_part(m, &s->E1[0])) {
            TRY(kf_buffer_view(p, m->plain, &m->parts.part[s->E1[0].col[0]]));
            continue;
        }
        TRY(kf_pool_take(&m->pool, inner * rows, m->parts.cols,
                         m->plan->layout.problem.dtype, p));
        for (size_t t = 0; t < inner; t++) {
            kofn_matrix into = (*p)->m;

            into.data = kf_at(&(*p)->m, t * rows, 0);
            into.rows = rows;
            mixed[(*count)++] = (kf_mixed){&s->E1[t], into, m->by};
        }
    }
    return KOFN_OK;
}

kofn_status kf_messages_encode(kf_messages *m, kf_code *code,
                               const size_t *rows, size_t n)
{
    kf_mixed *mixed;
    size_t count = 0;
    kofn_status st;

    if (m->plan->parts1 <= 1 || n == 0)
        return KOFN_OK;
    mixed = kf_new(n, m->plan->layout.inner * sizeof *mixed);
    st = mixed ? lay_out(m, code, rows, n, mixed, &count) : KOFN_NOMEM;
    if (!st)
        st = kf_mix(mixed, count, m->parts.part, m->parts.count, m->parts.rows,
                    m->parts.cols);
    kf_free(mixed);
    return st;
}

/* ---- mixtures that depend on the survivors ------------------------------- */

/* Fills V, the transpose of the decoding matrix.  Row r has the weights that
 * mix the wanted parts into the input of result r. */
static void transpose(const kofn_decoder *d, double *V)
{
    for (size_t w = 0, i = 0; w < d->wants; w++) {
        if (d->copy[w] >= 0)
            V[(size_t)d->copy[w] * d->wants + w] = 1;
        else
            for (size_t r = 0; r < d->results; r++)
                V[r * d->wants + w] = d->D[i * d->results + r];
        i += d->copy[w] < 0;
    }
}

static kofn_status make_room(kf_messages *m, const kofn_decoder *d)
{
    size_t components = m->plan->layout.components;
    bool left = m->plan->op->left;

    for (size_t i = 0; i < d->seats; i++) {
        TRY(kf_reach(&m->row, &m->rows, d->seat[i] + 1, sizeof *m->row));
        if (!m->row[d->seat[i]])
            TRY(kf_pool_take(&m->pool,
                             left ? m->parts.rows : components * m->parts.rows,
                             left ? components * m->parts.cols : m->parts.cols,
                             m->plain->m.dtype, &m->row[d->seat[i]]));
    }
    return KOFN_OK;
}

/* Returns strip `lo` of a part, or of a component of a message; of row i in a
 * left product. */
static void *at_strip(const kofn_matrix *x, bool left, size_t i, size_t strip)
{
    return left ? kf_at(x, i, strip) : kf_at(x, strip, 0);
}

/* Coefficients, and room for sources and destinations. */
typedef struct mixture {
    double *V;
    const void **src;
    void **dst;
} mixture;

static void mix_strips(kf_messages *m, const kofn_decoder *d, const mixture *x,
                       size_t lo, size_t hi)
{
    bool left = m->plan->op->left;
    size_t components = m->plan->layout.components, span = m->plan->span;
    size_t times = left ? m->parts.rows : 1;
    size_t length = (hi - lo) * (left ? 1 : m->parts.cols);

    for (size_t i = 0; i < times; i++) {
        for (size_t w = 0; w < d->wants; w++)
            x->src[w] = at_strip(&m->parts.part[w], left, i, lo);
        for (size_t r = 0; r < d->results; r++)
            x->dst[r] = at_strip(&m->row[d->seat[r / components]]->m, left, i,
                                 r % components * span + lo);
        kf_combine(&(kf_combination){d->results, d->wants, x->V, d->wants,
                                     x->src, x->dst},
                   length, m->plain->m.dtype);
    }
}

kofn_status kf_messages_mix(kf_messages *m, const kofn_decoder *d, size_t lo,
                            size_t hi)
{
    mixture x = {.V = kofn_layout_table(d->results, d->wants),
                 .src = kf_new(d->wants, sizeof *x.src),
                 .dst = kf_new(d->results, sizeof *x.dst)};
    kofn_status st = x.V && x.src && x.dst ? make_room(m, d) : KOFN_NOMEM;

    assert(lo < hi);
    assert(hi <= m->plan->span);
    assert(m->plan->layout.adjoint);
    if (!st) {
        transpose(d, x.V);
        /* parts beyond the input's edge are zero and must not be read */
        for (size_t w = 0; w < d->wants; w++)
            for (size_t r = 0; r < d->results && !m->parts.part[w].rows; r++)
                x.V[r * d->wants + w] = 0;
        mix_strips(m, d, &x, lo, hi);
    }
    kf_free(x.V);
    kf_free(x.src);
    kf_free(x.dst);
    return st;
}
