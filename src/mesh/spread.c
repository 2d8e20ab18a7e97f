/* spread.c -- lines of the input that a code mixes, and how far apart they are.
 *
 * The columns of B in A B, and the rows of B in B A, stay apart in the product.
 * A code that cuts them mixes one of each part, and the rounding of the largest
 * is then in all of them.  If A does not change, a node finds that and makes
 * the product alone (freivalds.c).  If A changes, no node has it.  Then the
 * predicted error of the smallest line is the error of decoding times the ratio
 * of the norms.  A larger error than the tolerance is refused
 * (docs/numerics.md).  Lines of zeros give zeros in the product.
 *
 * Owns nothing but scratch of a call; the norms are the host's. */
#include "host.h"

#include "code/operation.h"
#include "data/scale.h"

#include <assert.h>
#include <math.h>

#define TOLERANCE_F64 1e-9
#define TOLERANCE_F32 1e-4

kofn_status kf_mesh_spread_new(kf_host_product_data *p, bool left)
{
    const kofn_layout *L = &p->plan->layout;
    size_t parts = left ? L->cut[1].rows : L->cut[1].cols;

    assert(p->code);
    p->mixes = false;
    for (size_t n = 0; parts > 1 && n < L->seats; n++) {
        const kf_seat *s;

        TRY(kf_code_seat(p->code, n, &s));
        for (size_t k = 0; s->E1 && k < L->inner; k++)
            p->mixes |= s->E1[k].n > 1;
    }
    return KOFN_OK;
}

static size_t lines_of(const kofn_matrix *m, bool left)
{
    return left ? m->rows : m->cols;
}

/* Computes the squares of the norms of all lines. */
static void squares_of(const kofn_matrix *in, bool left, double *square)
{
    if (!left) {
        kf_scale_add_squares(in, square);
        return;
    }
    for (size_t i = 0; i < in->rows; i++)
        square[i] = kf_scale_squares(kf_at(in, i, 0), in->cols, in->dtype);
}

/* Returns the largest ratio of the norms of two lines that are mixed: those
 * `each` apart. */
static double spread_of(const double *square, size_t lines, size_t each)
{
    double spread = 1;

    assert(each > 0);
    for (size_t i = 0; i < each; i++) {
        double least = HUGE_VAL, most = 0;

        for (size_t k = i; k < lines; k += each) {
            most = fmax(most, square[k]);
            least = square[k] > 0 ? fmin(least, square[k]) : least;
        }
        if (most > 0)
            spread = fmax(spread, sqrt(most) / sqrt(least));
    }
    return spread;
}

/* Computes the squares of the norms of lines, once for each input. */
static kofn_status know_squares(kf_mesh_work *work)
{
    assert(work->lowered);
    bool left = work->on->plan->op->left;
    const kofn_matrix *in = &work->lowered->m;

    if (work->square)
        return KOFN_OK;
    TRY_ZERO(work->square, lines_of(in, left));
    squares_of(in, left, work->square);
    return KOFN_OK;
}

kofn_status kf_mesh_spread_measure(kf_host *h)
{
    bool left = h->work.on->plan->op->left;

    h->work.spread = 1;
    if (!h->work.on->mixes || !h->blocks.changes)
        return KOFN_OK;
    TRY(know_squares(&h->work));
    h->work.spread = spread_of(
        h->work.square, lines_of(&h->work.lowered->m, left),
        left ? h->work.messages.parts.rows : h->work.messages.parts.cols);
    return KOFN_OK;
}

kofn_status kf_mesh_spread_check(kf_host *h, const kofn_decoder *d)
{
    const kofn_plan *p = h->work.on->plan;
    bool wide = p->layout.problem.dtype == KOFN_F64;
    double most = wide ? TOLERANCE_F64 : TOLERANCE_F32;

    if (!h->work.on->mixes || !h->blocks.changes)
        return KOFN_OK;
    if (d->predicted * h->work.spread <= most)
        return KOFN_OK;
    return kf_fail(
        KOFN_UNSTABLE,
        "iterate %llu: %s mixes %s of what nodes multiply, whose norms "
        "are %.1e times apart, so that the error predicted for the "
        "smallest is %.1e of it and the tolerance is %.1e; say p=1",
        (unsigned long long)h->it.at.step, p->spec,
        p->op->left ? "rows" : "columns", h->work.spread,
        d->predicted * h->work.spread, most);
}

static void clear(const kofn_matrix *out, bool left, size_t line)
{
    size_t n = left ? out->cols : out->rows;

    assert(line < lines_of(out, left));
    for (size_t i = 0; i < n; i++)
        kf_mat_put(out, left ? line : i, left ? i : line, 0);
}

kofn_status kf_mesh_spread_clear(kf_host *h)
{
    bool left = h->work.on->plan->op->left;

    if (!h->work.on->mixes || !h->blocks.changes)
        return KOFN_OK;
    TRY(know_squares(&h->work));
    for (size_t i = 0; i < lines_of(&h->work.lowered->m, left); i++)
        if (h->work.square[i] == 0)
            clear(&h->work.on->out->m, left, i);
    return KOFN_OK;
}
