/* audit.c -- is the next vector A v?
 *
 * A node has A, so it can tell, at the price of some products of vectors: with
 * a row x that nobody else knows, x (A v) is (x A) v, and x A is made once.  A
 * wrong entry, of an error e, changes the left side by x_i e; the entries of
 * +- x are drawn from [1/2, 1], so the chance that what others sent together
 * comes within t of nothing is at most 2 t / e (Freivalds' check, over the
 * reals), and (2 t / e)^KF_AUDITS for so many rows: errors not far above t are
 * found, too.
 *
 * What does not pass is made from A alone.  Then the pieces are looked at, each
 * made again: who sent one that differs by more than rounding and decoding may
 * make a difference is corrupt.  No node is told of it: each finds out itself,
 * so nobody can accuse anybody.
 */
#include "host.h"

#include <float.h>
#include <math.h>

#include "mat/mat.h"

#define UNIT (DBL_EPSILON / 2)
/* What is decoded by others may be off by so much, relatively: the tolerance
 * of kofn_node_options.  Nobody is accused for less.  Hardly anything is off by
 * more than the second, so what is gets made again, which costs time alone. */
#define MAY_DIFFER 1e-9
#define SHOULD_DIFFER 1e-13

/* ---- the row ------------------------------------------------------------- */

static void add_row(kf_audit *a, size_t i, size_t j, double x)
{
    for (size_t r = 0; r < KF_AUDITS; r++)
        a->times[j * KF_AUDITS + r] += a->row[i * KF_AUDITS + r] * x;
    a->most[j] += fabs(a->row[i * KF_AUDITS] * x);
}

static void multiply(kf_audit *a, size_t rows)
{
    for (size_t i = 0; i < rows && !a->sparse; i++) {
        const double *from = kf_at(&a->dense, i, 0);

        for (size_t j = 0; j < rows; j++)
            add_row(a, i, j, from[j]);
    }
    for (size_t i = 0; i < rows && a->sparse; i++)
        for (int64_t e = (int64_t)a->sparse->ptr[i];
             e < (int64_t)a->sparse->ptr[i + 1]; e++)
            add_row(a, i, (size_t)a->sparse->col[e], a->sparse->val[e]);
}

kofn_status kf_audit_new(kf_host *h, const kofn_matrix *dense,
                         const kofn_sparse *sparse)
{
    kf_audit *a = &h->audit;
    size_t rows = h->v->m.rows;

    if (dense)
        a->dense = *dense;
    a->sparse = sparse;
    a->row = kf_new(rows, KF_AUDITS * sizeof *a->row);
    a->times = kf_zero(rows, KF_AUDITS * sizeof *a->times);
    a->most = kf_zero(rows, sizeof *a->most);
    if (!a->row || !a->times || !a->most)
        return KOFN_NOMEM;
    TRY(kf_host_random(a->row, rows * KF_AUDITS * sizeof *a->row));
    for (size_t i = 0; i < rows * KF_AUDITS; i++) {
        uint64_t bits;

        memcpy(&bits, &a->row[i], sizeof bits);
        a->row[i] =
            (0.5 + (double)(bits >> 12) * 0x1p-53) * (bits & 1 ? 1 : -1);
    }
    multiply(a, rows);
    return KOFN_OK;
}

void kf_audit_free(kf_audit *a)
{
    kf_free(a->row);
    kf_free(a->times);
    kf_free(a->most);
    *a = (kf_audit){0};
}

void kf_audit_widen(kf_host *h)
{
    h->audit.noise = fmax(h->audit.noise, SHOULD_DIFFER);
}

/* ---- who it was ---------------------------------------------------------- */

/* |row| |A| |v|: at least half of any entry of |A| |v|, and of their sum. */
static double weight(const kf_host *h)
{
    const double *v = h->v->m.data;
    double sum = 0;

    for (size_t j = 0; j < h->v->m.rows; j++)
        sum += h->audit.most[j] * fabs(v[j]);
    return sum;
}

/* Of which each entry of `next` is made. */
static double terms(const kf_host *h)
{
    return (double)h->v->m.rows + (double)h->plan->layout.enough;
}

static bool right(const kf_host *h)
{
    const kf_audit *a = &h->audit;
    const double *v = h->v->m.data, *next = h->next->m.data;
    double sum[KF_AUDITS] = {0}, noise = a->noise + terms(h) * UNIT;
    double room = 2 * (double)h->plan->layout.wants * noise * weight(h);

    for (size_t i = 0; i < h->v->m.rows; i++)
        for (size_t r = 0; r < KF_AUDITS; r++)
            sum[r] += a->row[i * KF_AUDITS + r] * next[i] -
                      a->times[i * KF_AUDITS + r] * v[i];
    for (size_t r = 0; r < KF_AUDITS; r++)
        if (!(fabs(sum[r]) <= 2 * room)) /* a row is up to twice another */
            return false;
    return true;
}

kofn_status kf_audit_make(kf_host *h)
{
    const kf_audit *a = &h->audit;
    double *next = h->next->m.data;

    if (a->sparse)
        kf_mat_multiply_sparse(a->sparse, 0, h->v->m.rows, &h->v->m, next);
    else
        kf_mat_multiply(&a->dense, &h->v->m, false, next);
    return kf_mat_check_finite(&h->next->m, "A v");
}

/* It is told when the iterate is made.  Who finds no room lies again. */
static void accuse(kf_audit *a, kofn_peer peer)
{
    for (size_t i = 0; i < a->liars; i++)
        if (a->liar[i] == peer)
            return;
    if (a->liars < KF_MOST_LIARS)
        a->liar[a->liars++] = peer;
}

kofn_status kf_audit_tell(kf_host *h)
{
    kf_audit *a = &h->audit;

    while (a->liars > 0)
        TRY(kf_mail_shun(h, a->liar[--a->liars], true));
    return KOFN_OK;
}

static bool differ(const double *x, const double *y, size_t n, double room)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= room))
            return true;
    return false;
}

/* Sum of the magnitudes of what a seat's block is made with. */
static kofn_status mixed_with(kf_host *h, size_t seat, double *sum)
{
    const kf_seat *rows;

    *sum = 0;
    TRY(kf_code_seat(h->code, seat, &rows));
    for (size_t l = 0; l < h->plan->layout.lanes; l++)
        for (size_t e = 0; e < rows->E0[l].n; e++)
            *sum += fabs(rows->E0[l].val[e]);
    return KOFN_OK;
}

static kofn_status wrong_piece(kf_host *h, const kofn_block *block,
                               size_t group, const kofn_parcel *piece,
                               double room, bool *wrong)
{
    size_t lo, strips = kf_host_strips(h, group, &lo);
    kofn_parcel *again;
    kofn_status st;

    TRY(kf_parcel_new(&again, strips * block->lanes, 1, KOFN_F64));
    st = kofn_compute(block, &h->v->m, lo, lo + strips, &again->m, NULL, NULL);
    *wrong = differ(piece->m.data, again->m.data, strips * block->lanes, room);
    kofn_parcel_drop(again);
    return st;
}

/* All pieces of that seat that came from somebody else. */
static kofn_status try_seat(kf_host *h, uint32_t seat, kofn_peer from)
{
    size_t which = seat;
    bool wrong = false;
    kofn_block *block;
    kofn_status st;
    double mixed;

    TRY(mixed_with(h, seat, &mixed));
    TRY(kf_data_encode(&h->resident, h->code, &which, 1, &block));
    st = KOFN_OK;
    for (size_t g = 0; g < h->groups && !wrong && !st; g++)
        for (size_t i = 0; i < h->now[g].count && !wrong && !st; i++) {
            const kf_piece *p = &h->now[g].piece[i];

            if (p->seat == seat && p->from == from)
                st = wrong_piece(h, block, g, p->data,
                                 4 * MAY_DIFFER * mixed * h->resident.by *
                                     weight(h),
                                 &wrong);
        }
    kofn_block_drop(block);
    if (wrong && !st)
        accuse(&h->audit, from);
    return st;
}

/* Was it looked at with an earlier group? */
static bool seen(const kf_host *h, size_t group, const kf_piece *p)
{
    for (size_t g = 0; g < group; g++)
        for (size_t i = 0; i < h->now[g].count; i++)
            if (h->now[g].piece[i].seat == p->seat &&
                h->now[g].piece[i].from == p->from)
                return true;
    return false;
}

static kofn_status find_liars(kf_host *h)
{
    for (size_t g = 0; g < h->groups; g++)
        for (size_t i = 0; i < h->now[g].count; i++) {
            kf_piece p = h->now[g].piece[i];

            /* who decoded a wrong result may have been lied to himself */
            if (p.from != KF_OURS && p.seat != KOFN_NO_SEAT && !seen(h, g, &p))
                TRY(try_seat(h, p.seat, p.from));
        }
    return KOFN_OK;
}

kofn_status kf_audit_next(kf_host *h)
{
    if (!h->audit.odd && right(h))
        return KOFN_OK;
    TRY(kf_audit_make(h));
    return find_liars(h);
}
