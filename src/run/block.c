/* block.c -- what a seat stores, and what it computes with it.
 *
 * A dense block is coded before it is handed out: each lane is a linear
 * combination of parts of A, or a view of A where the row of coefficients is
 * a unit vector.  A sparse block is not: the combination of sparse parts is
 * denser than all of them together, so a seat holds the plain parts that its
 * rows name and mixes their products instead.  For a linear operation the
 * result is the same.
 */
#include "run.h"

#include "code/combine.h"

/* A worker looks up from its work after about this much of it, so that a
 * cancelled task ends within a millisecond or so. */
#define LOOK_UP_WORK 2e6

/* ---- the resident operand ------------------------------------------------- */

kofn_status kf_resident_dense(kf_resident *r, const kofn_plan *plan,
                              const kofn_matrix *A)
{
    const kofn_layout *L = &plan->layout;

    *r = (kf_resident){.plan = plan};
    return kf_parts_new(&r->parts, A, L->groups * L->cut[0].rows,
                        L->cut[0].cols);
}

kofn_status kf_resident_sparse(kf_resident *r, const kofn_plan *plan,
                               const kofn_sparse *A)
{
    *r = (kf_resident){.plan = plan, .view = *A};
    if (plan->layout.cut[0].cols != 1)
        return kf_fail(KOFN_UNSUITED, "scheme %s cuts columns, which a sparse "
                       "matrix does not allow; choose another scheme or a "
                       "dense matrix", plan->scheme->name);
    r->A = &r->view;
    return KOFN_OK;
}

void kf_resident_free(kf_resident *r)
{
    kf_parts_free(&r->parts);
    r->A = NULL;
}

/* Part j of a group among the parts of all groups, which are numbered down
 * the columns of the whole grid. */
static size_t part_index(const kofn_plan *p, size_t group, size_t j)
{
    size_t rows = p->layout.cut[0].rows;

    return j / rows * rows * p->layout.groups + group * rows + j % rows;
}

/* ---- references ------------------------------------------------------------ */

kofn_block *kofn_block_keep(kofn_block *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void kofn_block_drop(kofn_block *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    kf_free(b->lane);
    kf_free(b->owned);
    kf_free(b->first);
    kf_free(b->weight);
    kf_free(b);
}

static kofn_status block_new(kofn_block **out, const kofn_plan *plan)
{
    kofn_block *b = kf_zero(1, sizeof *b);

    *out = b;
    if (!b)
        return KOFN_NOMEM;
    atomic_init(&b->refs, 1);
    b->lanes = plan->layout.lanes;
    b->span = plan->span;
    b->cols = plan->layout.problem.n;
    b->dtype = plan->layout.problem.dtype;
    return KOFN_OK;
}

/* ---- sparse: choose the parts ---------------------------------------------- */

static kofn_status sparse_block(const kf_resident *r, const kf_seat *rows,
                                size_t group, kofn_block *b)
{
    size_t parts = r->plan->parts;
    size_t *place = kf_new(parts, sizeof *place);

    if (!place)
        return KOFN_NOMEM;
    memset(place, 0xff, parts * sizeof *place);
    for (size_t l = 0; l < b->lanes; l++)
        for (size_t e = 0; e < rows->E0[l].n; e++)
            if (place[rows->E0[l].col[e]] == SIZE_MAX)
                place[rows->E0[l].col[e]] = b->used++;
    b->A = r->A;
    b->first = kf_new(b->used, sizeof *b->first);
    b->weight = kofn_layout_table(b->lanes, b->used);
    if (b->first && b->weight)
        for (size_t l = 0; l < b->lanes; l++)
            for (size_t e = 0; e < rows->E0[l].n; e++) {
                size_t j = rows->E0[l].col[e];

                b->first[place[j]] = part_index(r->plan, group, j) * b->span;
                b->weight[l * b->used + place[j]] = rows->E0[l].val[e];
            }
    kf_free(place);
    return b->first && b->weight ? KOFN_OK : KOFN_NOMEM;
}

/* ---- dense: view or combine ------------------------------------------------- */

/* One coded lane to be made. */
typedef struct lane_job {
    const kf_row *row;
    size_t group;
    kofn_matrix *lane;
} lane_job;

static bool plain_lane(const kf_row *row)
{
    return row->n == 0 || (row->n == 1 && row->val[0] == 1);
}

/* Views for plain lanes, memory for coded ones. */
static kofn_status lay_out(const kf_resident *r, const kf_seat *rows,
                           size_t group, kofn_block *b, lane_job *jobs,
                           size_t *count)
{
    size_t size = kf_dtype_size(b->dtype), coded = 0, bytes, next = 0;

    b->cols = r->parts.cols;
    b->lane = kf_new(b->lanes, sizeof *b->lane);
    if (!b->lane)
        return KOFN_NOMEM;
    for (size_t l = 0; l < b->lanes; l++)
        coded += !plain_lane(&rows->E0[l]);
    if (!kf_mul(coded * size, b->span, &bytes) ||
        !kf_mul(bytes, b->cols, &bytes))
        return kf_nomem(SIZE_MAX);
    if (coded && !(b->owned = kf_new(bytes, 1)))
        return KOFN_NOMEM;
    for (size_t l = 0; l < b->lanes; l++) {
        const kf_row *row = &rows->E0[l];

        if (row->n == 0) {
            b->lane[l] = (kofn_matrix){NULL, 0, b->cols, b->cols, b->dtype};
        } else if (plain_lane(row)) {
            b->lane[l] =
                r->parts.part[part_index(r->plan, group, row->col[0])];
        } else {
            b->lane[l] = (kofn_matrix){
                (char *)b->owned + next++ * b->span * b->cols * size, b->span,
                b->cols, b->cols, b->dtype};
            jobs[(*count)++] = (lane_job){row, group, &b->lane[l]};
        }
    }
    return KOFN_OK;
}

/* All coded lanes of one group in one pass over its parts: dst = D src, by
 * whole parts where they are contiguous, else row by row. */
static kofn_status combine_lanes(const kf_resident *r, size_t group,
                                 const lane_job *jobs, size_t n)
{
    const kofn_plan *p = r->plan;
    double *D = kofn_layout_table(n, p->parts);
    const void **src = kf_new(p->parts, sizeof *src);
    void **dst = kf_new(n, sizeof *dst);
    size_t k = 0, *column = kf_new(p->parts, sizeof *column);
    size_t rows = 1, length = p->span * r->parts.cols;
    const kofn_matrix **part = kf_new(p->parts, sizeof *part);
    bool ok = D && src && dst && column && part;

    for (size_t j = 0; ok && j < p->parts; j++) {
        const kofn_matrix *a = &r->parts.part[part_index(p, group, j)];

        column[j] = k;
        if (a->rows == 0)
            continue;
        part[k++] = a;
        if (a->ld != a->cols && rows == 1) {
            rows = p->span;
            length = a->cols;
        }
    }
    for (size_t i = 0; ok && i < n; i++)
        for (size_t e = 0; e < jobs[i].row->n; e++) {
            size_t j = jobs[i].row->col[e];

            if (r->parts.part[part_index(p, group, j)].rows)
                D[i * p->parts + column[j]] = jobs[i].row->val[e];
        }
    for (size_t t = 0; ok && t < rows; t++) {
        for (size_t j = 0; j < k; j++)
            src[j] = kf_at(part[j], t, 0);
        for (size_t i = 0; i < n; i++)
            dst[i] = kf_at(jobs[i].lane, t, 0);
        kf_combine(n, k, D, p->parts, src, dst, length,
                   p->layout.problem.dtype);
    }
    kf_free(D);
    kf_free(src);
    kf_free(dst);
    kf_free(column);
    kf_free(part);
    return ok ? KOFN_OK : KOFN_NOMEM;
}

static kofn_status encode_dense(const kf_resident *r, lane_job *jobs,
                                size_t count)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && jobs[end].group == jobs[i].group;)
            end++;
        TRY(combine_lanes(r, jobs[i].group, jobs + i, end - i));
    }
    return KOFN_OK;
}

static kofn_status make_blocks(const kf_resident *r, kf_code *code,
                               const size_t *seats, size_t n,
                               kofn_block **blocks, lane_job *jobs,
                               size_t *count)
{
    const kofn_plan *p = r->plan;

    /* Group by group, so that the lanes of one follow each other. */
    for (size_t g = 0; g < p->layout.groups; g++)
        for (size_t i = 0; i < n; i++) {
            const kf_seat *rows;

            if (kf_group(p, seats[i]) != g)
                continue;
            TRY(kf_code_seat(code, kf_local(p, seats[i]), &rows));
            TRY(block_new(&blocks[i], p));
            TRY(r->A ? sparse_block(r, rows, g, blocks[i])
                     : lay_out(r, rows, g, blocks[i], jobs, count));
        }
    return KOFN_OK;
}

kofn_status kf_encode(const kf_resident *r, kf_code *code,
                      const size_t *seats, size_t n, kofn_block **blocks)
{
    lane_job *jobs = kf_new(n * r->plan->layout.lanes, sizeof *jobs);
    size_t count = 0;
    kofn_status st = KOFN_NOMEM;

    for (size_t i = 0; i < n; i++)
        blocks[i] = NULL;
    if (jobs) {
        st = make_blocks(r, code, seats, n, blocks, jobs, &count);
        if (!st)
            st = encode_dense(r, jobs, count);
    }
    kf_free(jobs);
    for (size_t i = 0; st && i < n; i++) {
        kofn_block_drop(blocks[i]);
        blocks[i] = NULL;
    }
    return st;
}

/* ---- what it costs ----------------------------------------------------------- */

size_t kofn_block_bytes(const kofn_block *b)
{
    size_t bytes = 0;

    for (size_t l = 0; b->lane && l < b->lanes; l++)
        bytes += b->lane[l].rows * b->lane[l].cols * kf_dtype_size(b->dtype);
    for (size_t j = 0; b->A && j < b->used; j++)
        bytes += (size_t)kofn_block_work(b, 0, b->span, 1) * 12 / b->used;
    return bytes;
}

/* Rows [lo, hi) of a part as rows of A, as far as there are any. */
static void part_rows(const kofn_block *b, size_t j, size_t lo, size_t hi,
                      size_t *from, size_t *to)
{
    *from = kf_min(b->first[j] + lo, b->A->rows);
    *to = kf_min(b->first[j] + hi, b->A->rows);
}

double kofn_block_work(const kofn_block *b, size_t lo, size_t hi, size_t cols)
{
    double work = 0;

    for (size_t l = 0; b->lane && l < b->lanes; l++)
        if (b->lane[l].rows)
            work += (double)(hi - lo) * (double)b->cols;
    for (size_t j = 0; b->A && j < b->used; j++) {
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        work += (double)(b->A->ptr[to] - b->A->ptr[from]);
    }
    return work * (double)cols;
}

/* ---- the worker's work -------------------------------------------------------- */

/* Strips that are about LOOK_UP_WORK, at least one. */
static size_t stride(const kofn_block *b, size_t cols)
{
    double each = b->A ? (double)b->A->ptr[b->A->rows] / (double)b->A->rows *
                             (double)b->used
                       : (double)b->cols;
    double n = LOOK_UP_WORK / (each * (double)cols + 1);

    return n < 1 ? 1 : (size_t)n;
}

static void compute_dense(const kofn_block *b, const kofn_matrix *in, size_t l,
                          size_t lo, size_t hi, char *out)
{
    kofn_matrix rows = b->lane[l];

    if (rows.rows == 0) {
        memset(out, 0, (hi - lo) * in->cols * kf_dtype_size(b->dtype));
        return;
    }
    rows.data = kf_at(&rows, lo, 0);
    rows.rows = hi - lo;
    kf_multiply(&rows, in, out);
}

/* Products of the plain parts, then their mix.  temp: used x strips x cols. */
static void compute_sparse(const kofn_block *b, const kofn_matrix *in,
                           size_t lo, size_t hi, double *temp,
                           const void **src, void **dst)
{
    size_t length = (hi - lo) * in->cols;

    for (size_t j = 0; j < b->used; j++) {
        double *t = temp + j * length;
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        kf_multiply_sparse(b->A, from, to, in, t);
        memset(t + (to - from) * in->cols, 0,
               (length - (to - from) * in->cols) * sizeof *t);
        src[j] = t;
    }
    kf_combine(b->lanes, b->used, b->weight, b->used, src, dst, length,
               KOFN_F64);
}

static kofn_status sparse_strips(const kofn_block *b, const kofn_matrix *in,
                                 size_t lo, size_t hi, kofn_matrix *out,
                                 bool (*stopped)(void *), void *ud)
{
    size_t step = kf_min(stride(b, in->cols), hi - lo);
    double *temp = kf_new(b->used * step, in->cols * sizeof *temp);
    const void **src = kf_new(b->used, sizeof *src);
    void **dst = kf_new(b->lanes, sizeof *dst);
    kofn_status st = temp && src && dst ? KOFN_OK : KOFN_NOMEM;

    for (size_t at = lo; at < hi && !st; at += step) {
        size_t end = kf_min(at + step, hi);

        for (size_t l = 0; l < b->lanes; l++)
            dst[l] = kf_at(out, l * (hi - lo) + at - lo, 0);
        compute_sparse(b, in, at, end, temp, src, dst);
        if (end < hi && stopped && stopped(ud))
            st = KOFN_AGAIN;
    }
    kf_free(temp);
    kf_free(src);
    kf_free(dst);
    return st;
}

kofn_status kofn_compute(const kofn_block *b, const kofn_matrix *in, size_t lo,
                         size_t hi, kofn_matrix *out, bool (*stopped)(void *),
                         void *ud)
{
    size_t step = stride(b, in->cols);

    if (b->A)
        return sparse_strips(b, in, lo, hi, out, stopped, ud);
    for (size_t l = 0; l < b->lanes; l++)
        for (size_t at = lo; at < hi; at += step) {
            size_t end = kf_min(at + step, hi);

            if ((l > 0 || at > lo) && stopped && stopped(ud))
                return KOFN_AGAIN;
            compute_dense(b, in, l, at, end,
                          kf_at(out, l * (hi - lo) + at - lo, 0));
        }
    return KOFN_OK;
}
