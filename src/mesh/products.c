/* products.c -- the products of a mesh with their data: factors, and the
 * partial product of a seat's block.
 *
 * Owns the blocks, the coded inputs and the outputs of the products.  A
 * computation receives packets from time to time, and may be stopped. */
#include "host.h"

#include "code/operation.h"
#include "data/kernel.h"

#include <assert.h>
#include <stdio.h>

kf_host_product_data *kf_host_product(const kf_mesh_work *work, uint64_t t)
{
    return &work->product[kf_course_product(&work->course, t)];
}

/* ---- sizes --------------------------------------------------------------- */

size_t kf_host_strips(const kf_host_product_data *p, size_t group, size_t *lo)
{
    size_t span = p->plan->span, each = span / p->groups;
    size_t more = span % p->groups; /* the first ones have one more */

    assert(p->groups <= span);
    assert(group < p->groups);
    *lo = group * each + kf_min(group, more);
    return each + (group < more);
}

static kofn_dtype dtype_of(const kofn_plan *p)
{
    return p->layout.problem.dtype;
}

kofn_matrix kf_host_partial_shape(const kf_host_product_data *p, size_t strips,
                                  uint32_t seat, void *numbers)
{
    const kofn_layout *L = &p->plan->layout;
    size_t rows = strips * (seat == KOFN_NO_SEAT ? L->wants : L->components);

    assert(strips > 0);
    assert(strips <= p->plan->span);
    return (kofn_matrix){numbers, rows, p->width, p->width, dtype_of(p->plan)};
}

size_t kf_host_partial_bytes(const kf_host_product_data *p, size_t strips,
                             uint32_t seat)
{
    kofn_matrix m = kf_host_partial_shape(p, strips, seat, NULL);

    return m.rows * m.cols * kf_dtype_size(m.dtype);
}

static size_t rows_of(const kofn_plan *p, kf_shape s)
{
    return kf_size_of(&p->layout.problem, s.rows);
}

static size_t cols_of(const kofn_plan *p, kf_shape s)
{
    return kf_size_of(&p->layout.problem, s.cols);
}

/* ---- what can be multiplied ---------------------------------------------- */

static const char *type_of(kofn_dtype type)
{
    return type == KOFN_F64 ? "float64" : "float32";
}

/* Checks the types.  The vector is float64, so it must be float64 if it is
 * multiplied itself.  A node that makes a product alone knows only the bounds
 * of float64. */
static kofn_status check_type(const kofn_program *program,
                              const kofn_operand *o, const kofn_plan *p)
{
    kofn_dtype type = o->dense ? o->dense->dtype : KOFN_F64;

    if (type != dtype_of(p))
        return kf_fail(KOFN_SHAPE, "the matrix is in %s, and the plan for %s",
                       type_of(type), type_of(dtype_of(p)));
    if (type != KOFN_F64 && (!program->change || !program->input))
        return kf_fail(KOFN_UNSUITED,
                       "in float32 a mesh multiplies only changing matrices "
                       "(`change`) with the result of `input`; use float64");
    return KOFN_OK;
}

static kofn_status check_operand(const kofn_operand *o, const kofn_plan *p)
{
    const kofn_problem *pb = &p->layout.problem;
    size_t rows, cols;

    if (!o->dense == !o->sparse)
        return kf_fail(KOFN_INVAL,
                       "a mesh multiplies with a matrix that is dense or "
                       "sparse; %s given",
                       o->dense ? "both are" : "none is");
    if (!pb->sparse != !o->sparse)
        return kf_fail(KOFN_INVAL, "the plan is for a %s matrix",
                       o->sparse ? "dense" : "sparse");
    rows = o->dense ? o->dense->rows : o->sparse->rows;
    cols = o->dense ? o->dense->cols : o->sparse->cols;
    if (rows != pb->m || cols != pb->n)
        return kf_fail(KOFN_SHAPE,
                       "the matrix is %zu x %zu, the plan's %zu x %zu", rows,
                       cols, pb->m, pb->n);
    return o->dense ? kf_mat_check_matrix(o->dense, "the matrix")
                    : kf_mat_check_sparse(o->sparse, "the matrix");
}

/* Checks the shapes.  Without `input`, the vector itself is multiplied. */
static kofn_status check_input(const kofn_program *program, const kofn_plan *p,
                               const kofn_matrix *v)
{
    size_t rows = rows_of(p, p->op->in), cols = cols_of(p, p->op->in);

    if (program->input || (rows == v->rows && cols == 1) ||
        (rows == 1 && cols == v->rows))
        return KOFN_OK;
    return kf_fail(KOFN_SHAPE,
                   "the vector of a mesh is %zu x 1, but a product multiplies "
                   "with %zu x %zu; set `input` to convert it",
                   v->rows, rows, cols);
}

/* Checks that blocks can change.  No node has a matrix that changes, so no node
 * can check its products. */
static kofn_status check_change(const kofn_program *p, size_t i)
{
    const kofn_mesh_product *s = &p->product[i];

    if (!p->change)
        return s->read ? kf_fail(KOFN_INVAL,
                                 "product %zu has `read`, but no matrix "
                                 "changes; clear `read`, or give `change`",
                                 i)
                       : KOFN_OK;
    return kf_code_can_be_read(s->plan)
               ? KOFN_OK
               : kf_fail(KOFN_UNSUITED,
                         "blocks of scheme %s in this operation cannot "
                         "change: that needs a dense matrix, one product of "
                         "it and no pairs of blocks (basis=circle)",
                         s->plan->scheme->name);
}

static kofn_status check_course(const kofn_program *p,
                                const kofn_peer_options *opt)
{
    if (p->change && p->recalls < 2)
        return kf_fail(KOFN_INVAL,
                       "`recalls` is %zu; it must be at least 2, for the last "
                       "turn and the current one",
                       p->recalls);
    if (p->states > KOFN_CHANGE_STATES)
        return kf_fail(KOFN_INVAL,
                       "`states` is %zu; a matrix has at most %d optimizer "
                       "states",
                       p->states, KOFN_CHANGE_STATES);
    if (p->change && opt->confirm > 1 && opt->errors == KOFN_ERRORS_NONE)
        return kf_fail(
            KOFN_UNSUITED,
            "confirm = %zu needs `errors`, because only the search for "
            "errors compares products with changing matrices; set "
            "errors, or confirm = 1",
            opt->confirm);
    return KOFN_OK;
}

static kofn_status check(const kofn_program *p, const kofn_matrix *v)
{
    if (!v || !v->data || v->rows == 0 || v->cols != 1 || v->ld != 1 ||
        v->dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "the vector of a mesh must be n x 1, "
                                   "contiguous, float64");
    TRY(kf_mat_check_matrix(v, "the vector"));
    TRY(kf_mat_check_finite(v, "the vector"));
    for (size_t i = 0; i < p->products; i++) {
        const kofn_mesh_product *s = &p->product[i];

        if (s->operand >= p->operands)
            return kf_fail(KOFN_INVAL, "product %zu is of matrix %u of %zu", i,
                           s->operand, p->operands);
        TRY(check_operand(&p->operand[s->operand], s->plan));
        TRY(check_type(p, &p->operand[s->operand], s->plan));
        TRY(check_change(p, i));
        if (!s->read)
            TRY(check_input(p, kf_plan_use(s->plan, s->left), v));
    }
    return KOFN_OK;
}

/* ---- life ---------------------------------------------------------------- */

static kofn_status sparse_new(kf_mesh_operand *o, const kofn_plan *plan,
                              unsigned kind)
{
    o->coded = *o->sparse;
    TRY(kf_equilibrate_sparse(kind, &o->coded, &o->scaling, &o->scaled));
    return kf_resident_sparse(&o->resident, plan, &o->coded);
}

static kofn_status dense_new(kf_mesh_operand *o, const kofn_plan *plan,
                             unsigned kind)
{
    kofn_matrix coded = o->dense;

    TRY(kf_equilibrate_dense(kind, &coded, &o->scaling, &o->scaled));
    TRY(kf_resident_dense(&o->resident, plan, &coded));
    o->resident.most = kf_mat_most(&coded);
    return kf_mat_check_finite(&coded, "the matrix");
}

static kofn_status operand_new(kf_host *h, uint32_t which,
                               const kofn_plan *plan)
{
    const kofn_problem *pb = &plan->layout.problem;
    const kofn_operand *from = &h->program.operand[which];
    unsigned kind = kf_equilibrate_kind(plan, h->opt.errors);
    kf_mesh_operand *o = &h->blocks.operand[which];

    assert(which < h->blocks.operands);
    if (o->plan) /* an earlier product has made it */
        return KOFN_OK;
    o->plan = plan;
    o->sparse = from->sparse;
    TRY(kf_code_new(&o->code, plan));
    if (o->sparse)
        return sparse_new(o, plan, kind);
    o->dense = *from->dense;
    TRY(dense_new(o, plan, kind));
    /* with room for sums of a row or column; the input is unscaled */
    o->resident.by = kf_range_resident(o->resident.most,
                                       (double)kf_max(pb->m, pb->n), pb->dtype);
    return KOFN_OK;
}

static kofn_status secret_new(kf_host_product_data *p)
{
    const kf_mesh_operand *o = p->of;
    const kofn_operand A = {o->sparse ? NULL : &o->dense, o->sparse};

    return kf_secret_new(&p->secret, p->plan, A,
                         p->plan->op->left ? o->scaling.col : o->scaling.row);
}

static kofn_status product_new(kf_host *h, size_t i)
{
    const kofn_mesh_product *s = &h->program.product[i];
    kf_host_product_data *p = &h->work.product[i];
    const kofn_layout *L;
    size_t cols;

    if (s->read)
        TRY(kf_code_reader(&p->reader, s->plan));
    p->plan = s->read ? p->reader : kf_plan_use(s->plan, s->left);
    p->of = &h->blocks.operand[s->operand];
    TRY(operand_new(h, s->operand, s->plan));
    L = &p->plan->layout;
    cols = cols_of(p->plan, p->plan->op->out);
    p->groups = kf_node_groups(s, h->opt.nodes, h->opt.errors);
    p->width = kf_ceil_div(cols, L->wants / L->grid_rows);
    TRY(kf_code_new(&p->code, p->plan));
    if (!s->read)
        TRY(kf_mesh_spread_new(p, s->left));
    TRY(kf_buffer_new(&p->out, rows_of(p->plan, p->plan->op->out), cols,
                      dtype_of(p->plan)));
    h->work.single |= dtype_of(p->plan) != KOFN_F64;
    h->largest =
        kf_max(h->largest,
               kf_max(kf_host_partial_bytes(p, p->plan->span, 0),
                      kf_host_partial_bytes(p, p->plan->span, KOFN_NO_SEAT)));
    return h->blocks.changes ? KOFN_OK : secret_new(p);
}

kofn_status kf_host_products_new(kf_host *h, const kofn_matrix *v)
{
    TRY(check_course(&h->program, &h->opt));
    TRY(check(&h->program, v));
    h->work.course =
        (kf_course){h->program.products, h->program.turns, h->program.after};
    TRY_ZERO(h->blocks.operand, h->blocks.operands);
    TRY_ZERO(h->work.product, h->program.products);
    for (size_t i = 0; i < h->program.products; i++)
        TRY(product_new(h, i));
    h->work.on = h->work.product;
    return KOFN_OK;
}

void kf_host_products_free(kf_host *h)
{
    for (size_t i = 0; h->work.product && i < h->program.products; i++) {
        kf_code_free(h->work.product[i].code);
        kofn_plan_free(h->work.product[i].reader);
        kf_buffer_drop(h->work.product[i].out);
        kf_secret_free(&h->work.product[i].secret);
    }
    for (size_t i = 0; h->blocks.operand && i < h->blocks.operands; i++) {
        kf_block_drop(h->blocks.operand[i].block);
        kf_code_free(h->blocks.operand[i].code);
        kf_resident_free(&h->blocks.operand[i].resident);
        kf_scaling_free(&h->blocks.operand[i].scaling);
        kf_free(h->blocks.operand[i].scaled);
        kf_norms_forget(&h->blocks.operand[i].norms);
    }
    kf_free(h->work.product);
    kf_free(h->blocks.operand);
}

/* ---- the job ------------------------------------------------------------- */

static uint64_t digest_dense(uint64_t d, const kofn_matrix *A)
{
    for (size_t i = 0; i < A->rows; i++)
        d = kf_hash(d, kf_at(A, i, 0), A->cols * kf_dtype_size(A->dtype));
    return A->dtype == KOFN_F64
               ? d
               : kf_hash(d, type_of(A->dtype), strlen(type_of(A->dtype)));
}

static uint64_t digest_sparse(uint64_t d, const kofn_sparse *A)
{
    size_t entries = A->ptr[A->rows];

    d = kf_hash(d, A->ptr, (A->rows + 1) * sizeof *A->ptr);
    d = kf_hash(d, A->col, entries * sizeof *A->col);
    return kf_hash(d, A->val, entries * sizeof *A->val);
}

uint64_t kf_host_operands_digest(const kf_mesh_blocks *blocks, uint64_t d)
{
    for (size_t i = 0; i < blocks->operands; i++) {
        const kf_mesh_operand *o = &blocks->operand[i];

        if (o->plan)
            d = o->sparse ? digest_sparse(d, o->sparse)
                          : digest_dense(d, &o->dense);
    }
    return d;
}

/* ---- work ---------------------------------------------------------------- */

kofn_status kf_host_encode(const kf_mesh_operand *o, uint32_t seat,
                           kf_block **block)
{
    size_t which = seat;

    assert(seat != KOFN_NO_SEAT);
    assert(o->code);
    return kf_data_encode(&o->resident, o->code, &which, 1, block);
}

/* Makes the input a view of the vector, as a column or a row. */
static kofn_status view_vector(kf_host *h, size_t rows, size_t cols)
{
    kofn_matrix m = {h->it.v->m.data, rows, cols, cols, KOFN_F64};

    assert(rows * cols == h->it.v->m.rows);
    return kf_buffer_view(&h->work.in, h->it.v, &m);
}

/* Fails with KOFN_NONFINITE if an input has a NaN or an infinity; the message
 * names the product and the iterate. */
static kofn_status check_finite(const kf_host *h, const kf_buffer *in,
                                const char *how)
{
    char name[160];

    snprintf(name, sizeof name, "the input of product %zu for iterate %llu%s",
             (size_t)(h->work.on - h->work.product),
             (unsigned long long)h->it.at.step, how);
    return kf_mat_check_finite(&in->m, name);
}

/* Divides the input by the factors of the scaled matrix.  Lines of the input
 * itself are not scaled.  The vectors of nodes may differ by rounding, so nodes
 * would not all scale the lines by the same factor.  If the original input is
 * not needed, it is changed in place. */
static kofn_status lower_input(kf_host *h)
{
    const kf_scaling *held = &h->work.on->of->scaling;
    const kofn_matrix *in = &h->work.in->m;

    assert(h->work.in);
    assert(!h->work.lowered);
    bool lowers = kf_equilibrate_divides(held, h->work.on->plan);

    if (!lowers || (h->blocks.changes && h->program.input)) {
        h->work.lowered = kf_buffer_keep(h->work.in);
    } else {
        TRY(kf_buffer_new(&h->work.lowered, in->rows, in->cols, in->dtype));
        memcpy(h->work.lowered->m.data, in->data, kf_buffer_bytes(h->work.in));
    }
    if (!lowers)
        return KOFN_OK;
    kf_equilibrate_divide(held, h->work.on->plan, &h->work.lowered->m);
    return check_finite(h, h->work.lowered,
                        ", with what the matrix is divided by");
}

static kofn_status make_input(kf_host *h)
{
    const kofn_plan *p = h->work.on->plan;
    size_t rows = rows_of(p, p->op->in), cols = cols_of(p, p->op->in);

    assert(!h->work.in);
    if (!h->program.input && !h->work.on->reader)
        return view_vector(h, rows, cols);
    TRY(kf_buffer_new(&h->work.in, rows, cols, dtype_of(p)));
    if (h->work.on->reader)
        return KOFN_OK;
    TRY(h->program.input(h->program.ud, h->it.at.step + 1, &h->it.v->m,
                         h->it.scalar, &h->work.in->m));
    return check_finite(h, h->work.in, "");
}

kofn_status kf_host_input(kf_host *h)
{
    const kofn_plan *p = h->work.on->plan;

    if (h->work.in)
        return KOFN_OK;
    TRY(make_input(h));
    TRY(lower_input(h));
    if (p->parts1 > 1)
        TRY(kf_messages_lend(&h->work.messages, p, &h->work.lowered->m, 1));
    return kf_mesh_spread_measure(h);
}

void kf_host_forget_input(kf_mesh_work *work)
{
    kf_messages_release(&work->messages);
    kf_buffer_drop(work->in);
    kf_buffer_drop(work->lowered);
    kf_free(work->square);
    kf_sides_forget(&work->comparison.sides);
    work->in = work->lowered = NULL;
    work->square = NULL;
    work->encoded = false;
}

/* Returns the message for a seat, with a new reference. */
static kofn_status message_for(kf_host *h, uint32_t seat, kf_buffer **out)
{
    size_t row = seat;

    TRY(kf_host_input(h));
    if (h->work.on->plan->parts1 > 1) {
        TRY(kf_messages_encode(&h->work.messages, h->work.on->code, &row, 1));
        *out = kf_messages_take(&h->work.messages, row);
        if (seat == h->blocks.seat && !h->work.encoded) /* once per iterate */
            kf_host_fault(h, KOFN_FAULT_IN_ENCODING, h->it.at.step, &(*out)->m);
        h->work.encoded |= seat == h->blocks.seat;
    } else {
        *out = kf_buffer_keep(h->work.lowered);
    }
    return KOFN_OK;
}

kofn_status kf_host_compute(kf_host *h, const kf_block *block, uint32_t seat,
                            size_t group, bool (*stopped)(void *),
                            kf_buffer **out)
{
    assert(block);
    const kf_host_product_data *p = h->work.on;
    size_t lo, strips = kf_host_strips(p, group, &lo);
    kofn_matrix r = kf_host_partial_shape(p, strips, seat, NULL);
    kf_msg m = {.row = (uint32_t)block->row,
                .lo = lo,
                .hi = lo + strips,
                .how = kf_kernel_for(p->plan)->how};
    kofn_status st;

    *out = NULL;
    TRY(message_for(h, seat, &m.in)); /* another iterate may come meanwhile */
    st = kf_buffer_new(&m.result, r.rows, r.cols, r.dtype);
    if (!st)
        st = kf_work_do(block, &m, stopped, h);
    kf_buffer_drop(m.in);
    if (st) {
        kf_buffer_drop(m.result);
        m.result = NULL;
    }
    *out = m.result;
    return st;
}

kofn_status kf_host_sources(const kf_host *h, const kf_node_task *t,
                            kf_source *source)
{
    const kofn_decoder *d = t->decoder;
    size_t lo, strips = kf_host_strips(h->work.on, t->group, &lo);

    for (size_t i = 0; i < d->seats; i++) {
        kf_buffer *p = kf_host_partial(&h->pieces.now[t->group], d->seat[i]);

        if (!p)
            return kf_fail(
                KOFN_STATE,
                "the partial product of seat %u, group %u, is not here",
                d->seat[i], t->group);
        source[i] = (kf_source){&p->m, lo, lo + strips};
    }
    return KOFN_OK;
}
