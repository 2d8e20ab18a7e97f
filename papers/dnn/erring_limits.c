/* erring_limits.c -- how many nodes may be wrong, by trying: the tables of
 * math/training.md 7 as limits that are reached. */
#include "dnn/erring.h"

#include "code/code.h"
#include "mat/mat.h"

#include <math.h>

/* Blocks of this many rows and columns, so that a value has more numbers than there
 * are nodes to be told apart. */
#define SIDE 6

typedef struct trial {
    erring_layer l;
    const erring_code *c;
    bool back, adversarial;
    kofn_matrix a, W, right, out; /* a W' or a W       */
    kf_rng rng;
    uint32_t *order; /* values, of one group */
    size_t columns;
    size_t false_ones; /* wrong products that were not told of */
} trial;

static void draw(kf_rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = kf_rng_normal(r);
}

static void shuffle(trial *t)
{
    size_t n = t->c->values;

    for (size_t i = 0; i < n; i++)
        t->order[i] = (uint32_t)i;
    for (size_t i = n; i > 1; i--) {
        size_t k = kf_rng_below(&t->rng, (uint32_t)i);
        uint32_t x = t->order[k];

        t->order[k] = t->order[i - 1];
        t->order[i - 1] = x;
    }
}

/* ---- lies ------------------------------------------------------------------------ */

/* Values that those of other symbols would have, and 0 for as many as can be: those
 * that come last in the order.  M is what the symbols are more. */
static kofn_status other_codeword(trial *t, double *codeword)
{
    const erring_code *c = t->c;
    size_t K = c->needed - 1, S = c->symbols;
    double *A = kofn_layout_table(K + 1, S), *I = kofn_layout_table(S, S),
           *D = kofn_layout_table(S, K + 1), *M = kofn_layout_table(S, 2);
    kofn_status st = A && I && D && M ? KOFN_OK : KOFN_NOMEM;
    double condition;

    if (!st) {
        draw(&t->rng, M, S);
        memcpy(M + S, M, S * sizeof *M);
        for (size_t i = 0; i < S; i++)
            I[i * S + i] = 1;
        for (size_t k = 0; k < K; k++)
            memcpy(A + k * S, c->G + t->order[c->values - 1 - k] * S,
                   S * sizeof *A);
        if (K)
            st = kf_pseudo(&(kf_equation){K, S, A, S, I}, D, &condition);
    }
    for (size_t k = 0; k < K && !st; k++) {
        double by = 0;

        for (size_t i = 0; i < S; i++)
            by += A[k * S + i] * M[S + i];
        for (size_t i = 0; i < S; i++)
            M[i] -= D[i * K + k] * by;
    }
    for (size_t v = 0; v < c->values && !st; v++) {
        codeword[v] = 0;
        for (size_t i = 0; i < S; i++)
            codeword[v] += c->G[v * S + i] * M[i];
    }
    kf_free(A);
    kf_free(I);
    kf_free(D);
    kf_free(M);
    return st;
}

/* The first so many of the order lie, together or each for itself. */
static kofn_status lie(trial *t, size_t wrong)
{
    double *codeword = kofn_layout_table(t->c->values, 1),
           *x = kofn_layout_table(t->columns, 1);
    kofn_status st = codeword && x ? KOFN_OK : KOFN_NOMEM;

    if (!st && t->adversarial)
        st = other_codeword(t, codeword);
    if (!st)
        draw(&t->rng, x, t->columns);
    for (size_t i = 0; i < wrong && !st; i++) {
        double *y = t->l.Y + t->order[i] * t->columns;

        for (size_t k = 0; k < t->columns; k++)
            y[k] += 10 * (t->adversarial ? codeword[t->order[i]] * x[k]
                                         : kf_rng_normal(&t->rng));
    }
    kf_free(codeword);
    kf_free(x);
    return st;
}

/* ---- one product ------------------------------------------------------------------ */

static double off(const kofn_matrix *a, const kofn_matrix *b)
{
    double most = 0;

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            most =
                fmax(most, fabs(kf_mat_entry(a, i, j) - kf_mat_entry(b, i, j)));
    return most;
}

/* Is the product right although so many are wrong? */
static kofn_status try_once(trial *t, size_t wrong, bool *right)
{
    erring_fate none = {.chance = 0};
    size_t bad;
    kofn_status st;

    *right = false;
    erring_answer(&t->l, t->back, &t->a, &none);
    shuffle(t);
    TRY(lie(t, wrong));
    st = erring_decode(&t->l, t->back, t->adversarial, &t->out, &bad);
    if (st == KOFN_CORRUPT)
        return KOFN_OK;
    *right = !st && off(&t->out, &t->right) < 1e-6;
    t->false_ones += !st && !*right;
    return st;
}

/* As many as are always stood; beyond it, where they do not conspire, one more and all
 * of them are tried as well, which must be told. */
static kofn_status try_all(trial *t, size_t trials, size_t *limit)
{
    bool stood = true;

    *limit = 0;
    for (size_t wrong = 0; wrong <= t->c->values;
         wrong = stood ? wrong + 1 : kf_max(wrong + 1, t->c->values))
        for (size_t i = 0; i < trials; i++) {
            bool right;

            TRY(try_once(t, wrong, &right));
            stood = stood && right;
            if (!stood && t->adversarial)
                return KOFN_OK;
            if (stood && i + 1 == trials)
                *limit = wrong;
        }
    return KOFN_OK;
}

/* ---- all --------------------------------------------------------------------------- */

static kofn_matrix table(size_t rows, size_t cols)
{
    return (kofn_matrix){kofn_layout_table(rows, cols), rows, cols, cols,
                         KOFN_F64};
}

static kofn_status trial_new(trial *t, const erring_nodes *c, bool back)
{
    size_t out = c->m * SIDE, in = c->n * SIDE, batch = c->way[back].cut * SIDE;

    t->c = &c->way[back].code;
    t->back = back;
    TRY(erring_layer_new(&t->l, c, out, in, batch));
    t->columns = erring_columns(&t->l, back);
    t->a = table(batch, back ? out : in);
    t->W = table(out, in);
    t->right = table(batch, back ? in : out);
    t->out = table(batch, back ? in : out);
    t->order = kf_new(t->c->values, sizeof *t->order);
    if (!t->a.data || !t->W.data || !t->right.data || !t->out.data || !t->order)
        return KOFN_NOMEM;
    draw(&t->rng, t->a.data, t->a.rows * t->a.cols);
    draw(&t->rng, t->W.data, out * in);
    kf_mat_multiply_turned(&t->a, false, &t->W, !back, &t->right);
    erring_encode(&t->l, &t->W);
    return KOFN_OK;
}

static void trial_free(trial *t)
{
    erring_layer_free(&t->l);
    kf_free(t->a.data);
    kf_free(t->W.data);
    kf_free(t->right.data);
    kf_free(t->out.data);
    kf_free(t->order);
}

static kofn_status try_way(const erring_nodes *c, bool back, size_t trials,
                           uint64_t seed, dnn_tried *out)
{
    trial t = {.rng = kf_rng_stream(seed, KF_FOR_CORRUPT, back, 0)};
    kofn_status st = trial_new(&t, c, back);

    if (!st)
        st = try_all(&t, trials, &out->probabilistic[back]);
    out->declared = out->declared && t.false_ones == 0;
    t.adversarial = true;
    if (!st)
        st = try_all(&t, trials, &out->adversarial[back]);
    trial_free(&t);
    return st;
}

kofn_status dnn_tolerance_try(const dnn_nodes *nodes, size_t trials,
                              uint64_t seed, dnn_tried *out)
{
    erring_nodes c;
    kofn_status st = erring_nodes_new(&c, nodes);

    *out = (dnn_tried){.declared = true};
    for (size_t back = 0; back < 2 && !st; back++)
        st = try_way(&c, back, trials, seed, out);
    erring_nodes_free(&c);
    return st;
}
