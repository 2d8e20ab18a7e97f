/* freivalds.c -- has the product A v checked if matrices do not change.
 *
 * Then a node has A.  It checks a product at the cost of some products of
 * vectors (src/verify/secret.c).  A product that does not pass is made from A
 * alone.  Then each partial product is made again.  If a partial product
 * differs by more than rounding and decoding can explain, its sender is faulty.
 * No other node is informed: each finds out itself, so no node can accuse
 * another falsely.
 *
 * Owns nothing; secrets are the host's. */
#include "host.h"

#include <assert.h>
#include <math.h>

#include "code/operation.h"
#include "mat/mat.h"

/* Products rarely differ by more than this.  One that does is made again, which
 * only costs time. */
#define SHOULD_DIFFER 1e-13

void kf_mesh_freivalds_widen(kf_mesh_work *work)
{
    work->freivalds.noise = fmax(work->freivalds.noise, SHOULD_DIFFER);
}

/* Returns the product that was made, for its test. */
static kf_secret_product product_of(const kf_mesh_work *work)
{
    return (kf_secret_product){.secret = &work->on->secret,
                               .plan = work->on->plan,
                               .in = &work->in->m,
                               .out = &work->on->out->m,
                               .noise = work->freivalds.noise};
}

kofn_status kf_mesh_freivalds_make(kf_host *h)
{
    const kofn_matrix *A = &h->work.on->of->dense, *in;
    const kofn_sparse *sparse = h->work.on->of->sparse;
    kofn_matrix *out = &h->work.on->out->m;
    bool left = h->work.on->plan->op->left;

    assert(!h->blocks.changes);
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

static kofn_status wrong_partial(kf_host *h, const kf_block *block,
                                 size_t group, const kf_partial *partial,
                                 double room, bool *wrong)
{
    kf_buffer *again;

    TRY(kf_host_compute(h, block, partial->seat, group, NULL, &again));
    assert(kf_buffer_bytes(partial->data) == kf_buffer_bytes(again));
    *wrong = !kf_sums_alike(partial->data->m.data, again->m.data,
                            again->m.rows * again->m.cols, room);
    kf_buffer_drop(again);
    return KOFN_OK;
}

/* Checks all partial products of that seat that came from this peer. */
static kofn_status try_seat(kf_host *h, uint32_t seat, kofn_peer from)
{
    const kf_secret_product p = product_of(&h->work);
    bool wrong = false;
    kf_sides *sides;
    kf_block *block;
    kofn_status st;
    double room;

    assert(from != KF_LOCAL);
    TRY(kf_comparison_sides(h, &sides));
    TRY(kf_secret_room(&p, sides, h->work.on->of->code, h->work.on->code, seat,
                       &room));
    TRY(kf_host_encode(h->work.on->of, seat, &block));
    st = KOFN_OK;
    for (size_t g = 0; g < h->work.on->groups && !wrong && !st; g++)
        for (size_t i = 0; i < h->pieces.now[g].count && !wrong && !st; i++) {
            const kf_partial *x = &h->pieces.now[g].partial[i];

            if (x->seat == seat && x->from == from)
                st = wrong_partial(h, block, g, x, room, &wrong);
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
    kf_secret_product p;

    if (h->blocks.changes)
        return h->work.freivalds.odd && h->opt.errors == KOFN_ERRORS_NONE
                   ? kf_fail(
                         KOFN_NONFINITE,
                         "the result of product %zu for iterate %llu is not "
                         "finite",
                         (size_t)(h->work.on - h->work.product),
                         (unsigned long long)h->it.at.step)
                   : KOFN_OK;
    TRY(kf_host_input(h));
    p = product_of(&h->work);
    if (!h->work.freivalds.odd && kf_secret_agrees(&p))
        return KOFN_OK;
    h->work.freivalds.remade++;
    TRY(kf_mesh_freivalds_make(h));
    return find_liars(h);
}
