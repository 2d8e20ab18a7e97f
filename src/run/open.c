/* open.c -- checks a product and opens it: it gets its input and a plan.
 *
 * The job owns products, and reuses idle ones.  Mistakes of a caller are found
 * here, before anything is sent. */
#include "job.h"

#include "verify/key.h"

#include <assert.h>

/* ---- checks -------------------------------------------------------------- */

kofn_status kf_job_check_whole(const kofn_job *j)
{
    if (!j->open.broken)
        return KOFN_OK;
    return kf_fail(KOFN_STATE, "the job has failed before (%s); open another",
                   kofn_strerror(j->open.broken));
}

kofn_status kf_job_break(kofn_job *j, kofn_status st)
{
    if (st < 0)
        j->open.broken = st;
    return st;
}

kofn_status kf_job_check_room(const kofn_job *j)
{
    TRY(kf_job_check_whole(j));
    if (j->open.count - kf_job_reads(j) < KOFN_OPEN_MOST)
        return KOFN_OK;
    return kf_fail(KOFN_STATE,
                   "%d products are open, which is the limit; take one of "
                   "them (kofn_take)",
                   KOFN_OPEN_MOST);
}

const kofn_plan *kf_job_plan(const kofn_job *j, uint32_t operand, kofn_use as)
{
    assert(operand < j->operands);
    assert(as <= KOFN_USE_PARTS);
    return kf_core_use(j->core, KOFN_USES * operand + (uint32_t)as)->plan;
}

/* Fails unless all operands were placed, because their blocks are sent
 * together. */
kofn_status kf_job_check_placed(const kofn_job *j)
{
    for (size_t o = 0; o < j->operands; o++)
        if (!j->held[o].placed)
            return o == 0 ? kf_fail(KOFN_STATE,
                                    "no matrix was placed; call kofn_place")
                          : kf_fail(KOFN_STATE,
                                    "no matrix was placed for operand %zu of "
                                    "%zu; call kofn_place_at",
                                    o, j->operands);
    return KOFN_OK;
}

kofn_status kf_job_check_operand(const kofn_job *j, size_t operand)
{
    if (operand < j->operands)
        return KOFN_OK;
    return kf_fail(KOFN_INVAL, "operand %zu: the job has %zu, counted from 0",
                   operand, j->operands);
}

static kofn_status check_state(const kofn_job *j, const kofn_plan *use,
                               kofn_use as)
{
    TRY(kf_job_check_whole(j));
    if (kf_is_stream(j))
        return kf_fail(KOFN_STATE, "products of a stream bring both operands; "
                                   "call kofn_put_pair");
    TRY(kf_job_check_placed(j));
    TRY(kf_job_check_room(j));
    if (use)
        return KOFN_OK;
    if (as == KOFN_USE_READ)
        return kf_fail(KOFN_UNSUITED,
                       "blocks of scheme %s in this operation cannot be read",
                       j->plan->scheme->name);
    return kf_fail(KOFN_STATE, "the plan does not serve left products; "
                               "call kofn_plan_serve_left before kofn_open");
}

kofn_status kf_job_check_longest(const kofn_job *j, const kofn_plan *shape)
{
    const kofn_layout *L = &shape->layout;
    bool left = shape->op->left;
    size_t rows, cols, bytes, longest = j->port->longest;
    size_t width =
        kf_ceil_div(L->problem.p, left ? L->cut[1].rows : L->cut[1].cols);

    kf_operation_block(L, &rows, &cols);
    if (!kf_mul(left ? cols : rows, kf_dtype_size(L->problem.dtype), &bytes) ||
        !kf_mul(bytes, width, &bytes) ||
        !kf_mul(bytes, left ? 1 : L->components, &bytes))
        return kf_nomem(SIZE_MAX);
    if (!longest || bytes <= longest)
        return KOFN_OK;
    return kf_fail(KOFN_UNSUITED,
                   "an answer of this product has %zu bytes, but port %s "
                   "receives at most %zu; cut products finer, or open the "
                   "port for larger answers",
                   bytes, j->port->name, longest);
}

/* True if products may have any number of columns (of rows, if they are left
 * products).  Strips of other left products run along these rows. */
static bool takes_any_width(const kofn_plan *use)
{
    if (use->op->left)
        return use->layout.adjoint;
    return use->op->factors == 1 && !use->op->vector &&
           use->op->in.cols == KF_P;
}

/* Sets *use to *shape, a plan for the width of this input, if that is not the
 * width of the problem. */
static kofn_status fit_width(const kofn_job *j, const kofn_plan **use,
                             kofn_plan *shape, const kofn_matrix *in)
{
    const kofn_problem *pb = &(*use)->layout.problem;
    size_t width;

    TRY(kf_mat_check_matrix(in, "the product's input"));
    width = (*use)->op->left ? in->rows : in->cols;
    if (width == pb->p || !takes_any_width(*use))
        return KOFN_OK;
    TRY(kf_code_shape(shape, *use, pb->m, pb->n, width));
    if (width > pb->p)
        TRY(kf_job_check_longest(j, shape));
    *use = shape;
    return KOFN_OK;
}

/* Refuses an input or output if its shape or type differs from the plan's.
 * Sets *most to the largest magnitude of the input. */
static kofn_status check_product(const kofn_plan *use, const kofn_matrix *in,
                                 const kofn_matrix *out, double *most)
{
    const kofn_problem *pb = &use->layout.problem;
    const kf_operation *op = use->op;
    size_t in_rows = kf_size_of(pb, op->in.rows);
    size_t in_cols = kf_size_of(pb, op->in.cols);
    size_t out_rows = kf_size_of(pb, op->out.rows);
    size_t out_cols = kf_size_of(pb, op->out.cols);

    TRY(kf_mat_check_matrix(out, "the product's output"));
    if (in->rows != in_rows || in->cols != in_cols)
        return kf_fail(KOFN_SHAPE,
                       "the product's input is %zu x %zu and A, "
                       "%zu x %zu, takes %zu x %zu",
                       in->rows, in->cols, pb->m, pb->n, in_rows, in_cols);
    if (out->rows != out_rows || out->cols != out_cols)
        return kf_fail(KOFN_SHAPE,
                       "the product's output is %zu x %zu and must "
                       "be %zu x %zu",
                       out->rows, out->cols, out_rows, out_cols);
    if (in->dtype != pb->dtype || out->dtype != pb->dtype)
        return kf_fail(KOFN_SHAPE, "input and output must be of A's type");
    return kf_mat_check_range(in, "the product's input", most);
}

/* ---- limits to some strips ----------------------------------------------- */

size_t kf_job_strips(const kofn_job *j)
{
    const kofn_layout *L = &j->plan->layout;

    return L->adjoint || L->whole || j->plan->op->left || kf_is_stream(j) ||
                   j->operands > 1
               ? 0
               : j->plan->span;
}

kofn_status kofn_limit(kofn_job *j, size_t lo, size_t hi)
{
    size_t strips = kf_job_strips(j);

    if (strips == 0)
        return kf_fail(KOFN_UNSUITED,
                       "rounds of scheme %s in this operation%s cannot be "
                       "limited to some strips",
                       j->plan->scheme->name,
                       j->operands > 1 ? ", and of several operands," : "");
    if (lo >= hi || hi > strips)
        return kf_fail(KOFN_INVAL,
                       "strips %zu..%zu of %zu: give at least one of them", lo,
                       hi, strips);
    j->open.lo = lo;
    j->open.hi = lo == 0 && hi == strips ? 0 : hi;
    return KOFN_OK;
}

kofn_status kofn_step(kofn_job *j, unsigned step)
{
    if (step == 0)
        return kf_fail(KOFN_INVAL, "step 0: steps count from 1");
    j->open.step = step;
    return KOFN_OK;
}

/* ---- opening ------------------------------------------------------------- */

product *kf_job_last_idle(kofn_job *j)
{
    kf_products *o = &j->open;

    if (o->idles == 0) {
        o->idle[0] = kf_zero(1, sizeof(product));
        o->idles = o->idle[0] != NULL;
    }
    return o->idles ? o->idle[o->idles - 1] : NULL;
}

void kf_job_reset(const kofn_job *j, product *p, const kofn_plan *use)
{
    assert(!p->start.tasks);
    p->number = p->start.core = 0;
    p->start.began = KOFN_NEVER;
    p->operand = 0;
    p->as = KOFN_USE_OWN;
    p->use = use;
    p->lo = j->open.lo;
    p->hi = j->open.hi;
    p->count = 0;
    kf_sides_forget(&p->measure.sides);
    p->measure = (kf_measure){.sides.messages = &p->messages};
    kf_job_feed_again(p);
    p->start.begun = p->audited = p->start.keyed = p->start.alike = false;
    p->end.ended = KOFN_AGAIN;
    p->end.odd = KOFN_OK;
    p->end.why[0] = 0;
    p->pair.undecoded = (kf_undecoded){.source = NULL};
    p->rep = (kofn_report)KOFN_REPORT_INIT;
}

/* Opens the last idle product, at this place of the list. */
static void open_at(kf_products *o, size_t at)
{
    assert(at <= o->count);
    assert(o->count < KF_JOB_OPEN);
    assert(o->idles > 0);
    product *p = o->idle[--o->idles];

    memmove(&o->list[at + 1], &o->list[at], (o->count++ - at) * sizeof p);
    o->list[at] = p;
}

void kf_job_opened(kofn_job *j, product *p)
{
    assert(j->open.idles > 0);
    assert(p == j->open.idle[j->open.idles - 1]);
    p->number = ++j->open.puts;
    p->count = j->open.step ? j->open.step : p->number;
    p->rep.rounds = 1;
    p->rep.number = p->number;
    open_at(&j->open, j->open.count);
}

void kf_job_opened_first(kofn_job *j)
{
    size_t at = j->open.count;

    while (at > 0 && !j->open.list[at - 1]->start.begun)
        at--;
    open_at(&j->open, at);
}

void kf_job_close_product(kofn_job *j, product *p)
{
    kf_products *o = &j->open;
    size_t i = 0;

    assert(o->idles < KF_JOB_OPEN);
    while (o->list[i] != p)
        i++;
    assert(i < o->count);
    memmove(&o->list[i], &o->list[i + 1], (--o->count - i) * sizeof p);
    o->idle[o->idles++] = p;
}

product *kf_job_find(const kofn_job *j, uint32_t number)
{
    for (size_t i = j->open.count; i > 0; i--)
        if (j->open.list[i - 1]->start.core == number)
            return j->open.list[i - 1];
    return NULL;
}

kofn_status kf_job_hold(const kofn_job *j, kf_held *h, const kofn_matrix *A,
                        const char *name)
{
    unsigned kind = kf_equilibrate_kind(h->plan, j->opt.errors);
    kofn_matrix scaled = *A;
    double most;

    assert(!h->scaled);
    TRY(kf_mat_check_range(A, name, &most));
    TRY(kf_equilibrate_dense(kind, &scaled, &h->levels, &h->scaled));
    if (h->scaled)
        TRY(kf_mat_check_range(&scaled, name, &most));
    TRY(kf_resident_dense(&h->resident, h->plan, &scaled));
    h->resident.scaled = h->scaled ? kind : 0;
    h->resident.most = most;
    h->resident.by = kf_range_resident(most, 1, A->dtype);
    return KOFN_OK;
}

void kf_job_let_go(kf_held *h)
{
    kf_resident_free(&h->resident);
    kf_norms_forget(&h->norms);
    kf_key_free(h->key);
    h->key = NULL;
    kf_scaling_free(&h->levels);
    kf_free(h->scaled);
}

unsigned kofn_audited(const kofn_job *j)
{
    return j->opt.audit > 1 ? j->opt.audit : 1;
}

kofn_status kofn_audit(kofn_job *j, unsigned every)
{
    unsigned now = j->open.every ? j->open.every : j->opt.audit;

    if (every == 0)
        return kf_fail(KOFN_INVAL, "every is 0; it must be at least 1");
    if (j->opt.audit <= 1)
        return kf_fail(KOFN_UNSUITED,
                       "the job checks all sums or none; open it with the "
                       "option audit");
    if (every == now)
        return KOFN_OK;
    j->open.every = every;
    j->open.sums = 0;
    return KOFN_OK;
}

/* Returns the use for the next sum: coded, or each part from one worker. */
static kofn_use in_turn(const kofn_job *j, kofn_use as)
{
    unsigned every = j->open.every ? j->open.every : j->opt.audit;
    bool alone = every > 1 && j->open.sums % every;

    return alone && as == KOFN_USE_OWN ? KOFN_USE_PARTS : as;
}

double kf_job_scale_input(const kf_resident *r, product *p,
                          const kofn_plan *use, const kofn_matrix *in,
                          double most)
{
    double by = kf_range_input(use, r, most);

    if (by != 1) { /* it may be much smaller: tiny elements should not vanish */
        most = kf_mat_most(in);
        by = kf_range_input(use, r, most);
    }
    p->room = kf_range_has_room(use, r, most);
    p->back.by = kf_range_back(use, r, by);
    return by;
}

static kofn_status take_input(const kf_held *h, product *p,
                              const kofn_plan *use, const kofn_matrix *in,
                              double most)
{
    kofn_matrix scaled = *in;
    kofn_status st;
    void *own;

    st = kf_equilibrate_input(&h->levels, use, &p->scaled, &scaled, &own);
    if (!st && own)
        st = kf_mat_check_range(&scaled,
                                "the product's input, with what A is "
                                "divided by",
                                &most);
    if (!st)
        st = kf_messages_begin(
            &p->messages, use, &scaled,
            kf_job_scale_input(&h->resident, p, use, &scaled, most));
    kf_free(own);
    kf_equilibrate_back(&h->levels, &p->scaled, use, &p->back);
    return st;
}

void kf_job_code_it(const kofn_job *j, product *p)
{
    assert(p->as == KOFN_USE_PARTS);
    p->as = KOFN_USE_OWN;
    p->use = p->messages.plan = kf_job_plan(j, 0, KOFN_USE_OWN);
}

static kofn_status open_product(kofn_job *j, uint32_t operand, kofn_use as,
                                const kofn_matrix *in, kofn_matrix *out)
{
    const kofn_plan *use = kf_job_plan(j, operand, as = in_turn(j, as));
    double most;
    product *p;

    TRY(check_state(j, use, as));
    p = kf_job_last_idle(j);
    if (!p)
        return KOFN_NOMEM;
    TRY(fit_width(j, &use, &p->shape, in));
    TRY(check_product(use, in, out, &most));
    TRY(take_input(&j->held[operand], p, use, in, most));
    p->out = *out;
    kf_job_reset(j, p, use);
    p->audited = j->opt.audit > 1 && as == KOFN_USE_OWN;
    j->open.sums += j->opt.audit > 1;
    p->operand = operand;
    p->as = as;
    if (as == KOFN_USE_READ)
        p->lo = p->hi = 0;
    kf_job_opened(j, p);
    return KOFN_OK;
}

kofn_status kf_job_open_product(kofn_job *j, uint32_t operand, kofn_use as,
                                const kofn_matrix *in, kofn_matrix *out)
{
    kf_phase before = kf_phase_turn(j, KF_ENCODE);
    kofn_status st = open_product(j, operand, as, in, out);

    kf_phase_turn(j, before);
    return st;
}
