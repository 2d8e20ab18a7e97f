/* baseline_node.c -- a node of a baseline: its blocks, its products, the value
 * it leads, and the repair of wrong blocks (math/training.md 7).
 *
 * A step is a list of stages: the products forward and backward, and a check
 * when blocks are kept. A stage is a list of phases. In each phase a node
 * posts notes and then takes the notes for it. The notes of a phase determine
 * the next one, so all nodes run in lock step without a clock.
 *
 * Only products and updates go wrong. Sums, votes, decoding, activations and
 * kept blocks are right (Dutta et al., 2018). */
#include "dnn/baseline.h"

#include <stdlib.h>
#include <string.h>

#define CHECKPOINT 50
#define GIVE_UP 10  /* times the planned steps */
#define STRENGTH 10 /* of an error, times the mean magnitude of the result */

/* Phases of a product, and of a check. */
enum { PARTS, VALUES, VERDICTS, REPAIRS, PRODUCT_PHASES };
enum { ROWS, COLUMNS, FLAGS, CHECK_PHASES };

/* ---- memory -------------------------------------------------------------- */

static void begin_step(baseline_node *n)
{
    n->stage = n->phase = 0;
    n->failed = false;
    n->over = n->did.steps == n->all->l->steps ||
              n->taken == GIVE_UP * n->all->l->steps;
    n->did.finished = n->did.steps == n->all->l->steps;
    if (n->over)
        return;
    n->taken++;
    baseline_batch_load(&n->b, n->did.steps);
}

/* Mixes the parts of the first weights into a block. */
static void fill_block(baseline_node *n, size_t l)
{
    const baseline_train *a = n->all;
    const baseline_code *c = &a->code;
    const kofn_matrix *W = kofn_net_weights(a->net, l);
    const double *row = c->mix[0] + n->at.row * c->nodes.m,
                 *col = c->mix[1] + n->at.col * c->nodes.n;
    double *block = n->blocks + a->at[l];

    for (size_t i = 0; i < W->rows; i++)
        for (size_t j = 0; j < W->cols; j++)
            block[i % a->h[l] * a->w[l] + j % a->w[l]] +=
                row[i / a->h[l]] * col[j / a->w[l]] *
                ((const double *)W->data)[i * W->ld + j];
}

kofn_status baseline_node_new(baseline_node *n, baseline_train *all,
                              size_t number)
{
    const baseline_code *c = &all->code;
    size_t L = all->l->shape.layers, numbers = all->at[L + 1];
    size_t values = larger(c->way[0].values, c->way[1].values);

    n->all = all;
    n->number = number;
    n->at = baseline_place_of(c, number);
    n->d = dice_for(all->l->seed, 4 + (uint64_t)c->nodes.kind, number);
    n->blocks = calloc(numbers, sizeof *n->blocks);
    n->kept = calloc(numbers, sizeof *n->kept);
    n->value = calloc(all->longest, sizeof *n->value);
    n->group = calloc(values * larger(all->longest, numbers), sizeof *n->group);
    n->bound = calloc(values + 1, sizeof *n->bound);
    if (!n->blocks || !n->kept || !n->value || !n->group || !n->bound)
        return KOFN_NOMEM;
    PAPERS_TRY(baseline_batch_new(&n->b, all->l, &c->nodes));
    for (size_t l = 1; l <= L; l++)
        fill_block(n, l);
    memcpy(n->kept, n->blocks, numbers * sizeof *n->kept);
    begin_step(n);
    return KOFN_OK;
}

void baseline_node_free(baseline_node *n)
{
    for (size_t i = 0; i < BASELINE_MOST_NODES; i++)
        while (n->first[i]) {
            baseline_note *next = n->first[i]->next;

            free(n->first[i]);
            n->first[i] = next;
        }
    free(n->blocks);
    free(n->kept);
    free(n->value);
    free(n->group);
    free(n->bound);
    baseline_batch_free(&n->b);
}

/* ---- mail ---------------------------------------------------------------- */

baseline_note *baseline_note_new(size_t count)
{
    baseline_note *m = calloc(1, sizeof *m + count * sizeof *m->x);

    if (m)
        m->count = count;
    return m;
}

void baseline_node_receive(baseline_node *n, size_t from, baseline_note *m)
{
    if (n->first[from])
        n->last[from]->next = m;
    else
        n->first[from] = m;
    n->last[from] = m;
}

/* Sends `count` numbers with one more in front. */
static kofn_status post(baseline_node *n, size_t to, double head,
                        const double *x, size_t count)
{
    baseline_note *m = baseline_note_new(1 + count);

    if (!m)
        return KOFN_NOMEM;
    m->x[0] = head;
    if (count)
        memcpy(m->x + 1, x, count * sizeof *x);
    return n->all->carrier->send(n, to, m);
}

/* Takes the next note from that node; the caller frees it. */
static kofn_status take(baseline_node *n, size_t from, size_t count,
                        baseline_note **m)
{
    while (!n->first[from])
        PAPERS_TRY(n->all->carrier->wait(n));
    *m = n->first[from];
    n->first[from] = (*m)->next;
    if ((*m)->count == 1 + count)
        return KOFN_OK;
    free(*m);
    return papers_fail(KOFN_STATE,
                       "node %zu sent %zu numbers to node %zu, not %zu", from,
                       (*m)->count, n->number, 1 + count);
}

/* ---- a stage ------------------------------------------------------------- */

typedef struct product {
    bool back;
    size_t layer, len; /* numbers of a value */
    const baseline_way *way;
    size_t group, value; /* the value this node is a member of */
    bool member, leader;
} product;

static bool is_check(const baseline_node *n)
{
    return n->stage == 2 * n->all->l->shape.layers - 1;
}

static bool is_member(const baseline_node *n, bool back)
{
    const baseline_code *c = &n->all->code;

    return back ? n->at.row < c->nodes.m : n->at.col < c->nodes.n;
}

static product product_of(const baseline_node *n)
{
    const baseline_code *c = &n->all->code;
    size_t L = n->all->l->shape.layers, line;
    product p = {.back = n->stage >= L};

    line = p.back ? n->at.col : n->at.row;
    p.layer = p.back ? 2 * L - n->stage : n->stage + 1;
    p.len = (p.back ? n->all->w[p.layer] : n->all->h[p.layer]) * n->b.B;
    p.way = &c->way[p.back];
    p.group = c->copies ? line : 0;
    p.value = c->copies ? n->at.copy : line;
    p.member = is_member(n, p.back);
    p.leader =
        p.member && n->number == baseline_leader(c, p.back, p.group, p.value);
    return p;
}

/* ---- computation, which may go wrong --------------------------------------
 */

static double norm(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Adds Gaussian noise to the whole result if this operation goes wrong. */
static void may_err(baseline_node *n, dnn_operation op, size_t layer, double *x,
                    size_t count)
{
    const dnn_baseline *a = n->all->asked;
    double mean = 0;
    bool errs = a->err ? a->err(a->err_ud, n->number, n->taken, op, layer)
                       : dice_uniform(&n->d) < a->chance;

    if (!errs)
        return;
    n->did.faults++;
    for (size_t i = 0; i < count; i++)
        mean += fabs(x[i]) / (double)count;
    for (size_t i = 0; i < count; i++)
        x[i] += STRENGTH * mean * dice_normal(&n->d);
}

/* Computes out (h x B) += W (h x w) X (w x B). */
static void multiply(const baseline_node *n, size_t l, const double *X,
                     double *out)
{
    size_t h = n->all->h[l], w = n->all->w[l], B = n->b.B;
    const double *W = n->blocks + n->all->at[l];

    for (size_t i = 0; i < h; i++)
        for (size_t k = 0; k < w; k++)
            for (size_t p = 0; p < B; p++)
                out[i * B + p] += W[i * w + k] * X[k * B + p];
}

/* Computes out (w x B) += W' (w x h) D (h x B). */
static void multiply_turned(const baseline_node *n, size_t l, const double *D,
                            double *out)
{
    size_t h = n->all->h[l], w = n->all->w[l], B = n->b.B;
    const double *W = n->blocks + n->all->at[l];

    for (size_t i = 0; i < h; i++)
        for (size_t k = 0; k < w; k++)
            for (size_t p = 0; p < B; p++)
                out[k * B + p] += W[i * w + k] * D[i * B + p];
}

static kofn_status post_part(baseline_node *n, const product *p)
{
    const baseline_train *a = n->all;
    size_t block = a->at[p->layer + 1] - a->at[p->layer];
    size_t in = (p->back ? a->h[p->layer] : a->w[p->layer]) * n->b.B;
    const double *x = p->back ? n->b.D[p->layer] + n->at.row * in
                              : n->b.X[p->layer - 1] + n->at.col * in;

    if (!p->member)
        return KOFN_OK;
    memset(n->group, 0, p->len * sizeof *n->group);
    (p->back ? multiply_turned : multiply)(n, p->layer, x, n->group);
    may_err(n, p->back ? DNN_BACK : DNN_FORWARD, p->layer, n->group, p->len);
    return post(n, baseline_leader(&a->code, p->back, p->group, p->value),
                norm(n->blocks + a->at[p->layer], block) * norm(x, in),
                n->group, p->len);
}

/* Updates W to (1 - step l2) W - step D X', in this node's part. */
static void update(baseline_node *n, size_t l)
{
    const baseline_train *a = n->all;
    const baseline_code *c = &a->code;
    const kofn_train_options *o = &a->l->opt;
    size_t h = a->h[l], w = a->w[l], B = n->b.B;
    double *W = n->blocks + a->at[l], *D = n->group, *X = n->value;

    baseline_combine(c->mix[0] + n->at.row * c->nodes.m, c->nodes.m, n->b.D[l],
                     h * B, D);
    baseline_combine(c->mix[1] + n->at.col * c->nodes.n, c->nodes.n,
                     n->b.X[l - 1], w * B, X);
    for (size_t i = 0; i < h; i++)
        for (size_t k = 0; k < w; k++) {
            double g = 0;

            for (size_t p = 0; p < B; p++)
                g += D[i * B + p] * X[k * B + p];
            W[i * w + k] -= o->step * (g + o->l2 * W[i * w + k]);
        }
    may_err(n, DNN_UPDATE, l, W, h * w);
}

/* ---- phases of a product ------------------------------------------------- */

static kofn_status take_parts(baseline_node *n, const product *p)
{
    const baseline_code *c = &n->all->code;

    if (!p->leader)
        return KOFN_OK;
    memset(n->value, 0, p->len * sizeof *n->value);
    n->bound[p->way->values] = 0;
    for (size_t k = 0; k < p->way->members; k++) {
        baseline_note *m;

        PAPERS_TRY(take(n, baseline_member(c, p->back, p->group, p->value, k),
                        p->len, &m));
        n->bound[p->way->values] += m->x[0];
        for (size_t i = 0; i < p->len; i++)
            n->value[i] += m->x[1 + i];
        free(m);
    }
    return KOFN_OK;
}

static kofn_status post_value(baseline_node *n, const product *p)
{
    for (size_t v = 0; v < p->way->values && p->leader; v++)
        PAPERS_TRY(post(n, baseline_leader(&n->all->code, p->back, p->group, v),
                        n->bound[p->way->values], n->value, p->len));
    return KOFN_OK;
}

static kofn_status take_values(baseline_node *n, const product *p)
{
    const baseline_code *c = &n->all->code;
    const baseline_word word = {n->group, n->bound, p->len, n->did.steps + 1};

    n->failed = false;
    for (size_t v = 0; v < p->way->values && p->leader; v++) {
        baseline_note *m;

        PAPERS_TRY(
            take(n, baseline_leader(c, p->back, p->group, v), p->len, &m));
        n->bound[v] = m->x[0];
        memcpy(n->group + v * p->len, m->x + 1, p->len * sizeof *n->group);
        free(m);
    }
    if (p->leader)
        n->failed = !baseline_judge(c, p->back, &word, &n->bad[p->group]);
    return KOFN_OK;
}

/* True if the value's leader also leads this node: all nodes of its copy, or
 * of its line. */
static bool hears(const baseline_node *n, size_t node, const product *p)
{
    const baseline_code *c = &n->all->code;
    baseline_place at = baseline_place_of(c, node);

    return (c->copies ? at.copy : p->back ? at.col : at.row) == p->value;
}

/* A leader reports which values are wrong, -1 if too many are, and the right
 * ones: K values, or the only one. */
static kofn_status post_verdict(baseline_node *n, const product *p)
{
    const baseline_code *c = &n->all->code;
    uint64_t bad = n->bad[p->group];
    double weight[BASELINE_MOST_NODES];

    if (!p->leader)
        return KOFN_OK;
    for (size_t v = 0; v < p->way->K && !n->failed; v++)
        if (c->copies || bad >> v & 1) {
            baseline_weights(c, p->back, bad, v, weight);
            baseline_combine(weight, p->way->values, n->group, p->len,
                             n->value);
            memcpy(n->group + v * p->len, n->value, p->len * sizeof *n->value);
        }
    for (size_t i = 0; i < c->nodes.P; i++)
        if (hears(n, i, p))
            PAPERS_TRY(post(n, i, n->failed ? -1.0 : (double)n->bad[p->group],
                            n->group, p->way->K * p->len));
    return KOFN_OK;
}

static kofn_status take_verdicts(baseline_node *n, const product *p)
{
    const baseline_code *c = &n->all->code;
    size_t len = p->way->K * p->len;

    n->failed = false;
    for (size_t g = 0; g < p->way->groups; g++) {
        baseline_note *m;

        PAPERS_TRY(take(n, baseline_leader(c, p->back, g, p->value), len, &m));
        n->failed |= m->x[0] < 0;
        n->bad[g] = m->x[0] < 0 ? 0 : (uint64_t)m->x[0];
        memcpy(n->b.product + g * len, m->x + 1, len * sizeof *m->x);
        free(m);
        n->did.corrected += n->bad[g] > 0;
    }
    return KOFN_OK;
}

/* Returns which member of its value this node is. */
static size_t rank_of(const baseline_node *n, const product *p)
{
    return p->back ? n->at.row : n->at.col;
}

static bool is_bad(const baseline_node *n, const product *p)
{
    return p->member && n->bad[p->group] >> p->value & 1;
}

/* A wrong value does not show which member erred. So all its members get new
 * blocks, from the members of good values. */
static kofn_status post_repairs(baseline_node *n, const product *p)
{
    const baseline_train *a = n->all;
    double weight[BASELINE_MOST_NODES];

    if (!p->member)
        return KOFN_OK;
    for (size_t v = 0; v < p->way->values; v++) {
        if (!(n->bad[p->group] >> v & 1))
            continue;
        baseline_weights(&a->code, p->back, n->bad[p->group], v, weight);
        if (weight[p->value] != 0) /* else it is wrong itself, or not needed */
            PAPERS_TRY(post(
                n,
                baseline_member(&a->code, p->back, p->group, v, rank_of(n, p)),
                0, n->blocks + a->at[p->layer],
                a->at[p->layer + 1] - a->at[p->layer]));
    }
    return KOFN_OK;
}

static kofn_status take_repairs(baseline_node *n, const product *p)
{
    const baseline_train *a = n->all;
    size_t len = a->at[p->layer + 1] - a->at[p->layer];
    double *block = n->blocks + a->at[p->layer];
    double weight[BASELINE_MOST_NODES];

    if (!is_bad(n, p))
        return KOFN_OK;
    baseline_weights(&a->code, p->back, n->bad[p->group], p->value, weight);
    memset(block, 0, len * sizeof *block);
    for (size_t v = 0; v < p->way->values; v++) {
        baseline_note *m;

        if (weight[v] == 0)
            continue;
        PAPERS_TRY(take(
            n, baseline_member(&a->code, p->back, p->group, v, rank_of(n, p)),
            len, &m));
        for (size_t i = 0; i < len; i++)
            block[i] += weight[v] * m->x[1 + i];
        free(m);
    }
    return KOFN_OK;
}

/* ---- phases of a check --------------------------------------------------- */

/* True if this node's blocks are in a checked word. Blocks of a column form a
 * word of the row code, blocks of a row one of the column code. Copies are the
 * same both ways. */
static bool is_checked(const baseline_node *n)
{
    bool columns = n->phase == COLUMNS;

    return is_member(n, columns) && !(columns && n->all->code.copies);
}

/* Returns the node of value v in this node's word. */
static size_t beside(const baseline_node *n, size_t v)
{
    bool back = n->phase == COLUMNS;
    const baseline_code *c = &n->all->code;

    return baseline_member(c, back,
                           !c->copies ? 0
                           : back     ? n->at.col
                                      : n->at.row,
                           v, back ? n->at.row : n->at.col);
}

static kofn_status post_blocks(baseline_node *n)
{
    const baseline_train *a = n->all;
    const baseline_way *w = &a->code.way[n->phase == COLUMNS];

    for (size_t v = 0; v < w->values && is_checked(n); v++)
        PAPERS_TRY(
            post(n, beside(n, v), 0, n->blocks, a->at[a->l->shape.layers + 1]));
    return KOFN_OK;
}

/* Judges one layer's blocks of a word, and replaces this node's if it is
 * wrong. */
static void judge_blocks(baseline_node *n, size_t l, baseline_note *const *m)
{
    const baseline_train *a = n->all;
    bool back = n->phase == COLUMNS;
    const baseline_way *w = &a->code.way[back];
    size_t len = a->at[l + 1] - a->at[l], own = 0;
    const baseline_word word = {n->group, n->bound, len, n->did.steps};
    double weight[BASELINE_MOST_NODES];
    uint64_t bad;

    for (size_t v = 0; v < w->values; v++) {
        memcpy(n->group + v * len, m[v]->x + 1 + a->at[l],
               len * sizeof *n->group);
        n->bound[v] = norm(n->group + v * len, len);
        own = beside(n, v) == n->number ? v : own;
    }
    n->failed |= !baseline_judge(&a->code, back, &word, &bad);
    if (n->failed || !(bad >> own & 1))
        return;
    baseline_weights(&a->code, back, bad, own, weight);
    baseline_combine(weight, w->values, n->group, len, n->blocks + a->at[l]);
}

static kofn_status take_blocks(baseline_node *n)
{
    const baseline_train *a = n->all;
    size_t values = a->code.way[n->phase == COLUMNS].values, have = 0;
    baseline_note *m[BASELINE_MOST_NODES];
    kofn_status st = KOFN_OK;

    if (!is_checked(n))
        return KOFN_OK;
    for (; have < values && !st; have += !st)
        st = take(n, beside(n, have), a->at[a->l->shape.layers + 1], &m[have]);
    for (size_t l = 1; l <= a->l->shape.layers && !st; l++)
        judge_blocks(n, l, m);
    while (have > 0)
        free(m[--have]);
    return st;
}

static kofn_status post_flag(baseline_node *n)
{
    for (size_t i = 0; i < n->all->code.nodes.P; i++)
        PAPERS_TRY(post(n, i, n->failed, NULL, 0));
    return KOFN_OK;
}

static kofn_status take_flags(baseline_node *n)
{
    for (size_t i = 0; i < n->all->code.nodes.P; i++) {
        baseline_note *m;

        PAPERS_TRY(take(n, i, 0, &m));
        n->failed |= m->x[0] != 0;
        free(m);
    }
    return KOFN_OK;
}

/* ---- the next stage -------------------------------------------------------
 */

static void roll_back(baseline_node *n)
{
    memcpy(n->blocks, n->kept,
           n->all->at[n->all->l->shape.layers + 1] * sizeof *n->kept);
    n->did.steps = n->saved;
    n->did.rollbacks++;
    begin_step(n);
}

static void keep(baseline_node *n)
{
    memcpy(n->kept, n->blocks,
           n->all->at[n->all->l->shape.layers + 1] * sizeof *n->kept);
    n->saved = n->did.steps;
    begin_step(n);
}

/* Uses a right product. */
static void use(baseline_node *n, const product *p)
{
    size_t L = n->all->l->shape.layers;

    if (!p->back)
        baseline_batch_forward(&n->b, p->layer);
    else { /* the product needed the old weights; now they may change */
        update(n, p->layer);
        baseline_batch_back(&n->b, p->layer);
    }
    if (p->back ? p->layer == 2 : L == 1)
        update(n, 1);
    n->phase = 0;
    n->stage++;
    if (!is_check(n))
        return;
    n->did.steps++;
    if (n->did.steps % CHECKPOINT && n->did.steps != n->all->l->steps)
        begin_step(n);
}

static kofn_status post_product(baseline_node *n, const product *p)
{
    return n->phase == PARTS      ? post_part(n, p)
           : n->phase == VALUES   ? post_value(n, p)
           : n->phase == VERDICTS ? post_verdict(n, p)
                                  : post_repairs(n, p);
}

static kofn_status take_product(baseline_node *n, const product *p)
{
    return n->phase == PARTS      ? take_parts(n, p)
           : n->phase == VALUES   ? take_values(n, p)
           : n->phase == VERDICTS ? take_verdicts(n, p)
                                  : take_repairs(n, p);
}

kofn_status baseline_node_post(baseline_node *n)
{
    product p;

    if (is_check(n))
        return n->phase == FLAGS ? post_flag(n) : post_blocks(n);
    p = product_of(n);
    return post_product(n, &p);
}

static kofn_status take_check(baseline_node *n)
{
    PAPERS_TRY(n->phase == FLAGS ? take_flags(n) : take_blocks(n));
    if (++n->phase < CHECK_PHASES)
        return KOFN_OK;
    if (n->failed)
        roll_back(n);
    else
        keep(n);
    return KOFN_OK;
}

kofn_status baseline_node_take(baseline_node *n)
{
    product p;

    if (is_check(n))
        return take_check(n);
    p = product_of(n);
    PAPERS_TRY(take_product(n, &p));
    n->phase++;
    if (n->phase == REPAIRS && n->failed)
        roll_back(n);
    else if (n->phase == PRODUCT_PHASES)
        use(n, &p);
    return KOFN_OK;
}
