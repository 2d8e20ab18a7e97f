/* freivalds.c -- checks that the product A v is right.
 *
 * If matrices do not change, a node has A.  It can check a product at the cost
 * of some products of vectors.  For a row x that only this node knows, x (A v)
 * must be (x A) v, and x A is made once.  A wrong entry with an error e changes
 * the left side by x_i e.  The entries of +- x are drawn from [1/2, 1].  So
 * whatever others send together, it comes within t of passing with a chance of
 * at most 2 t / e (Freivalds' check, over the reals).  With KF_FREIVALDS_SUMS
 * rows the chance is (2 t / e)^KF_FREIVALDS_SUMS, so errors not far above t are
 * found, too.
 *
 * A product that does not pass is made from A alone.  Then each partial product
 * is made again.  If a partial product differs by more than rounding and
 * decoding can explain, its sender is faulty.  No other node is informed: each
 * finds out itself, so no node can accuse another falsely.
 *
 * Owns the secret rows and their products with A, which must never be sent.
 */
#include "host.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "code/operation.h"
#include "mat/mat.h"

#define UNIT (DBL_EPSILON / 2)
/* Relative differences.  A product that others decoded may have the first: it
 * is the tolerance of kf_node_options.  No node is accused for less.  Products
 * rarely differ by more than the second.  One that does is made again, which
 * only costs time. */
#define MAY_DIFFER 1e-9
#define SHOULD_DIFFER 1e-13

void kf_mesh_freivalds_widen(kf_mesh_work *work)
{
    work->freivalds.noise = fmax(work->freivalds.noise, SHOULD_DIFFER);
}

/* ---- a product ----------------------------------------------------------- */

/* A vector of the input or of the product; all are multiplied in the same way.
 * It is a column, or in left products a row. */
typedef struct line {
    const double *at;
    size_t n, step;
} line;

static line line_of(const kf_mesh_work *work, const kofn_matrix *m,
                    size_t which)
{
    assert(which < (work->on->plan->op->left ? m->rows : m->cols));
    if (work->on->plan->op->left)
        return (line){kf_at(m, which, 0), m->cols, 1};
    return (line){kf_at(m, 0, which), m->rows, m->ld};
}

static size_t lines(const kf_mesh_work *work)
{
    assert(work->in);
    return work->on->plan->op->left ? work->in->m.rows : work->in->m.cols;
}

/* Returns |row| |A| |v|.  It is at least half of any entry of |A| |v|, and of
 * their sum. */
static double weight(const kf_mesh_work *work, size_t which)
{
    line v = line_of(work, &work->in->m, which);
    double sum = 0;

    assert(work->on->secret.most);
    for (size_t j = 0; j < v.n; j++)
        sum += work->on->secret.most[j] * fabs(v.at[j * v.step]);
    return sum;
}

/* Returns the number of terms in each entry of the product. */
static double terms(const kf_mesh_work *work)
{
    return (double)line_of(work, &work->in->m, 0).n +
           (double)work->on->plan->layout.enough;
}

static bool right_line(const kf_mesh_work *work, size_t which)
{
    const kf_secret *s = &work->on->secret;
    line v = line_of(work, &work->in->m, which);
    line out = line_of(work, &work->on->out->m, which);
    double sum[KF_FREIVALDS_SUMS] = {0},
           noise = work->freivalds.noise + terms(work) * UNIT;
    double room =
        2 * (double)work->on->plan->layout.wants * noise * weight(work, which);

    for (size_t i = 0; i < out.n; i++)
        for (size_t r = 0; r < KF_FREIVALDS_SUMS; r++)
            sum[r] += s->row[i * KF_FREIVALDS_SUMS + r] * out.at[i * out.step];
    for (size_t j = 0; j < v.n; j++)
        for (size_t r = 0; r < KF_FREIVALDS_SUMS; r++)
            sum[r] -= s->times[j * KF_FREIVALDS_SUMS + r] * v.at[j * v.step];
    for (size_t r = 0; r < KF_FREIVALDS_SUMS; r++)
        /* the entries of a row are up to twice those of another */
        if (!(fabs(sum[r]) <= 2 * room))
            return false;
    return true;
}

static bool right(const kf_mesh_work *work)
{
    for (size_t i = 0; i < lines(work); i++)
        if (!right_line(work, i))
            return false;
    return true;
}

kofn_status kf_mesh_freivalds_make(kf_host *h)
{
    const kofn_matrix *A = &h->work.on->of->dense, *in;
    const kofn_sparse *sparse = h->work.on->of->sparse;
    kofn_matrix *out = &h->work.on->out->m;
    bool left = h->work.on->plan->op->left;

    assert(!h->program.change);
    TRY(kf_host_input(h));
    in = &h->work.in->m;
    if (sparse && left) {
        memset(out->data, 0, out->rows * out->cols * sizeof(double));
        kf_mat_multiply_by_sparse(in, sparse, 0, out->data);
    } else if (sparse) {
        kf_mat_multiply_sparse(sparse, 0, out->rows, in, out->data);
    } else {
        kf_mat_multiply(left ? in : A, left ? A : in, false, out->data);
    }
    return kf_mat_check_finite(out, "the product");
}

/* ---- faulty senders ------------------------------------------------------ */

static double sum_of(const kf_row *row, size_t rows)
{
    double sum = 0;

    for (size_t l = 0; l < rows; l++)
        for (size_t e = 0; e < row[l].n; e++)
            sum += fabs(row[l].val[e]);
    return sum;
}

/* Returns a bound of the entries of all products of parts.  If the input is
 * cut, a partial product also contains products that are not part of A v. */
static double largest(const kf_mesh_work *work)
{
    const kf_mesh_operand *o = work->on->of;
    double most = 0;

    if (work->on->plan->parts1 > 1)
        return o->resident.most * terms(work) * kf_mat_most(&work->lowered->m);
    for (size_t i = 0; i < lines(work); i++)
        most = fmax(most, weight(work, i));
    return most;
}

/* Sets *room to the largest error of a right partial product of that seat: its
 * blocks and messages are mixtures. */
static kofn_status room_of(kf_mesh_work *work, size_t seat, double *room)
{
    const kofn_layout *L = &work->on->plan->layout;
    const kf_seat *rows;

    TRY(kf_code_seat(work->on->of->code, seat, &rows));
    *room = 4 * MAY_DIFFER * sum_of(rows->E0, L->components * L->inner) *
            work->on->of->resident.by * largest(work);
    if (work->on->plan->parts1 == 1)
        return KOFN_OK;
    TRY(kf_code_seat(work->on->code, seat, &rows));
    *room *= sum_of(rows->E1, L->inner);
    return KOFN_OK;
}

static kofn_status wrong_partial(kf_host *h, const kf_block *block,
                                 size_t group, const kf_partial *partial,
                                 double room, bool *wrong)
{
    kf_buffer *again;

    TRY(kf_host_compute(h, block, partial->seat, group, NULL, &again));
    assert(kf_buffer_bytes(partial->data) == kf_buffer_bytes(again));
    *wrong = !kf_print_alike(partial->data->m.data, again->m.data,
                             again->m.rows * again->m.cols, room);
    kf_buffer_drop(again);
    return KOFN_OK;
}

/* Checks all partial products of that seat that came from this peer. */
static kofn_status try_seat(kf_host *h, uint32_t seat, kofn_peer from)
{
    bool wrong = false;
    kf_block *block;
    kofn_status st;
    double room;

    assert(from != KF_LOCAL);
    TRY(room_of(&h->work, seat, &room));
    TRY(kf_host_encode(h->work.on->of, seat, &block));
    st = KOFN_OK;
    for (size_t g = 0; g < h->work.on->groups && !wrong && !st; g++)
        for (size_t i = 0; i < h->pieces.now[g].count && !wrong && !st; i++) {
            const kf_partial *p = &h->pieces.now[g].partial[i];

            if (p->seat == seat && p->from == from)
                st = wrong_partial(h, block, g, p, room, &wrong);
        }
    kf_block_drop(block);
    if (wrong && !st)
        kf_route_accuse(&h->net, from);
    return st;
}

/* True if it was checked with an earlier group. */
static bool seen(const kf_pieces_here *pieces, size_t group,
                 const kf_partial *p)
{
    for (size_t g = 0; g < group; g++)
        for (size_t i = 0; i < pieces->now[g].count; i++)
            if (pieces->now[g].partial[i].seat == p->seat &&
                pieces->now[g].partial[i].from == p->from)
                return true;
    return false;
}

static kofn_status find_liars(kf_host *h)
{
    for (size_t g = 0; g < h->work.on->groups; g++)
        for (size_t i = 0; i < h->pieces.now[g].count; i++) {
            kf_partial p = h->pieces.now[g].partial[i];

            /* a node that decoded a wrong result may have got wrong partial
             * products */
            if (p.from != KF_LOCAL && p.seat != KOFN_NO_SEAT &&
                !seen(&h->pieces, g, &p))
                TRY(try_seat(h, p.seat, p.from));
        }
    return KOFN_OK;
}

kofn_status kf_mesh_freivalds_next(kf_host *h)
{
    if (h->program.change)
        return h->work.freivalds.odd && h->opt.errors == KOFN_ERRORS_NONE
                   ? kf_fail(
                         KOFN_NONFINITE,
                         "the result of product %zu for iterate %llu is not "
                         "finite",
                         (size_t)(h->work.on - h->work.product),
                         (unsigned long long)h->it.at.step)
                   : KOFN_OK;
    TRY(kf_host_input(h));
    if (!h->work.freivalds.odd && right(&h->work))
        return KOFN_OK;
    h->work.freivalds.remade++;
    TRY(kf_mesh_freivalds_make(h));
    return find_liars(h);
}
