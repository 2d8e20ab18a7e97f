/* key_answers.c -- tests each answer by random sums of its rows of A.
 *
 * The rows of each part of A, in the strips of the answers, are summed up once.
 * The coefficients of a seat turn these sums into a row for each answer.  This
 * row is multiplied with the answer's own input.  The sums take a pass over
 * these rows of A.
 *
 * Owns the sums of a call; answers and operands are borrowed and only read. */
#include "key.h"
#include "rounding.h"

#include <assert.h>
#include <math.h>

typedef struct sums {
    const kf_compare *of;
    const kf_sides *sides;
    double error;
    size_t cols;    /* of a part of A                    */
    double *weight; /* of each strip, divided by its norm */
    double squares; /* square of the effect of an error of 1 in each */
    double *part;   /* parts x cols: sums of their rows  */
    double *row;    /* inner x cols: sums of an answer */
    double *left;   /* a number for each of its columns  */
} sums;

/* Sums up the rows of part j that belong to the strips of the answers. */
static void add_rows(const sums *s, size_t j, double *to)
{
    const kf_compare *of = s->of;
    const kofn_matrix *part =
        kf_resident_part(s->sides->resident, of->group, j);

    for (size_t i = of->lo; i < kf_min(of->hi, part->rows); i++)
        kf_key_add(to, s->sides->resident->by * s->weight[i - of->lo],
                   kf_at(part, i, 0), part->cols, part->dtype);
}

static void add_sparse_rows(const sums *s, size_t j, double *to)
{
    const kf_compare *of = s->of;
    const kofn_sparse *A = s->sides->resident->A;
    size_t first = (of->group * of->plan->parts + j) * of->plan->span;

    for (size_t i = of->lo; i < of->hi && first + i < A->rows; i++)
        for (size_t e = A->ptr[first + i]; e < A->ptr[first + i + 1]; e++)
            to[A->col[e]] +=
                s->sides->resident->by * s->weight[i - of->lo] * A->val[e];
}

static kofn_status sum_up(sums *s, uint64_t secret)
{
    const kf_compare *of = s->of;
    const kofn_plan *p = of->plan;

    assert(of->lo < of->hi);
    TRY_NEW(s->weight, of->hi - of->lo);
    TRY_MADE(s->part, kofn_layout_table(p->parts, s->cols));
    TRY_NEW(s->row, p->layout.inner * s->cols);
    TRY_NEW(s->left, of->source[0].result->cols);
    for (size_t i = of->lo; i < of->hi; i++) {
        double w = kf_weight64(kf_mix64(kf_state64(secret, i)));

        s->weight[i - of->lo] = of->row[i] > 0 ? w / of->row[i] : w;
        s->squares += w * w;
    }
    for (size_t j = 0; j < p->parts; j++)
        if (s->sides->resident->A)
            add_sparse_rows(s, j, s->part + j * s->cols);
        else
            add_rows(s, j, s->part + j * s->cols);
    return KOFN_OK;
}

static void sums_free(sums *s)
{
    kf_free(s->weight);
    kf_free(s->part);
    kf_free(s->row);
    kf_free(s->left);
}

/* Computes the row that gives the sum of component l's answer when it
 * multiplies the message. */
static void make_row(const sums *s, const kf_seat *seat, size_t l)
{
    size_t inner = s->of->plan->layout.inner;

    assert(l < s->of->plan->layout.components);
    memset(s->row, 0, inner * s->cols * sizeof *s->row);
    for (size_t t = 0; t < inner; t++) {
        const kf_row *E = &seat->E0[l * inner + t];

        for (size_t e = 0; e < E->n; e++)
            kf_key_add(s->row + t * s->cols, E->val[e],
                       s->part + E->col[e] * s->cols, s->cols, KOFN_F64);
    }
}

/* Sets s->left to the sums of component l of an answer, minus their right
 * values. */
static void subtract(const sums *s, const kf_source *from, size_t l,
                     const kofn_matrix *message)
{
    const kf_compare *of = s->of;
    const kofn_matrix *y = from->result;
    size_t first = l * (from->hi - from->lo) + of->lo - from->lo;

    assert(from->lo <= of->lo);
    assert(of->hi <= from->hi);
    memset(s->left, 0, y->cols * sizeof *s->left);
    for (size_t i = 0; i < of->hi - of->lo; i++)
        kf_key_add(s->left, s->weight[i], kf_at(y, first + i, 0), y->cols,
                   y->dtype);
    for (size_t c = 0; c < message->rows; c++)
        kf_key_add(s->left, -s->row[c], kf_at(message, c, 0), y->cols,
                   message->dtype);
}

static bool is_small(const sums *s, size_t n, double weight)
{
    double error = KF_ROUNDING_FAR * sqrt(s->squares) * s->error * weight;

    for (size_t j = 0; j < n; j++)
        if (!(fabs(s->left[j]) <= error * s->of->col[j]))
            return false;
    return true;
}

static kofn_status test(const sums *s, size_t i, bool *right)
{
    const kf_compare *of = s->of;
    const kofn_plan *p = of->plan;
    size_t local = of->decoder->seat[i];
    const kf_seat *seat;
    kf_buffer *message;

    assert(i < of->decoder->seats);
    *right = true;
    TRY(kf_code_seat(of->code, local, &seat));
    message = kf_messages_take(s->sides->messages,
                               local * p->layout.groups + of->group);
    for (size_t l = 0; l < p->layout.components && *right; l++) {
        make_row(s, seat, l);
        subtract(s, &of->source[i], l, &message->m);
        *right = is_small(s, of->source[i].result->cols,
                          seat->weight > 0 ? seat->weight : 1);
    }
    kf_buffer_drop(message);
    return KOFN_OK;
}

/* Marks answers that are wrong by one set of weights. */
static kofn_status mark(sums *s, uint64_t secret, uint8_t *wrong)
{
    kofn_status st = sum_up(s, secret);

    for (uint32_t i = 0; i < s->of->decoder->seats && !st; i++) {
        bool right = true;

        if (!wrong[i])
            st = test(s, i, &right);
        wrong[i] |= !right;
    }
    sums_free(s);
    return st;
}

kofn_status kf_key_test_answers(kf_compare *c, kf_sides *s, double error,
                                kf_found *found)
{
    const kf_resident *r = s->resident;
    size_t cols = r->A ? r->A->cols : r->parts.cols;
    uint8_t *wrong;
    kofn_status st = KOFN_OK;

    TRY(kf_sides_measure(s, c));
    TRY_ZERO(wrong, c->decoder->seats);
    for (uint64_t q = 0; q < KF_KEY_SUMS && !st; q++)
        st = mark(&(sums){.of = c, .sides = s, .error = error, .cols = cols},
                  kf_mix64(kf_state64(c->secret, q)), wrong);
    *found = (kf_found){.bad = found->bad};
    for (uint32_t i = 0; i < c->decoder->seats && !st; i++)
        if (wrong[i])
            found->bad[found->count++] = i;
    kf_free(wrong);
    return st;
}
