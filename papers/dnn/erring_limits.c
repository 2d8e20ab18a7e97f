/* erring_limits.c -- finds by experiment the number of faulty nodes that each
 * code tolerates: the limits in the tables of math/training.md 7.
 *
 * The answers of the nodes are drawn as a word of their code, and some are
 * made wrong. The wrong ones are located as in every checked product of kofn.
 * So this file uses internals of libkofn. */
#include "dnn/dnn.h"

#include "base/rng.h"
#include "code/author.h"
#include "code/code.h"
#include "code/suspect.h"

/* Numbers in an answer; more than there are nodes. */
#define COLUMNS 36
/* Rounding of an answer of size 1, and a factor that no correct answer
 * reaches, as in src/verify/compare.c. */
#define USUAL 0x1p-51
#define ALARM 256
#define MOST_NODES 4096

/* A code: `n` values are the rows of G times symbols. W: the wanted
 * combinations of symbols. */
typedef struct words {
    size_t n, symbols, wants, needed, q;
    double *G, *W;
    double *H; /* q x n, orthonormal, H G = 0 */
} words;

typedef struct trial {
    words c;
    bool adversarial;
    kf_rng rng;
    double *S, *Y, *D; /* symbols x columns; values; the decoding matrix */
    uint32_t *order;   /* values                                  */
    uint8_t *wrong;
    size_t passed; /* wrong products that passed undetected */
} trial;

/* ---- codes --------------------------------------------------------------- */

static kofn_status words_new(words *c)
{
    c->G = kofn_layout_table(c->n, c->symbols);
    c->W = kofn_layout_table(c->wants, c->symbols);
    if (!c->G || !c->W)
        return KOFN_NOMEM;
    for (size_t i = 0; i < c->wants && c->wants == c->symbols; i++)
        c->W[i * c->symbols + i] = 1;
    return KOFN_OK;
}

/* Takes the code of kofn's own plan, one value per node. */
static kofn_status words_of_plan(words *c, const kofn_plan *plan)
{
    const kofn_layout *L = &plan->layout;
    kf_code *code = NULL;
    kofn_status st = KOFN_OK;

    c->symbols = L->symbols;
    c->wants = L->wants;
    c->needed = L->threshold;
    TRY(words_new(c));
    if (L->W)
        memcpy(c->W, L->W, c->wants * c->symbols * sizeof *c->W);
    st = kf_code_new(&code, plan);
    for (size_t p = 0; p < c->n && !st; p++) {
        const kf_seat *seat;

        st = kf_code_seat(code, p, &seat);
        for (size_t e = 0; !st && e < seat->G[0].n; e++)
            c->G[p * c->symbols + seat->G[0].col[e]] = seat->G[0].val[e];
    }
    kf_code_free(code);
    return st;
}

static kofn_status gpd(words *c, const dnn_nodes *k, bool back)
{
    size_t all = k->m * k->n * k->cut[back] * 4;
    kofn_problem pb = KOFN_PROBLEM_INIT(back ? KOFN_LEFT : KOFN_MATMUL, all,
                                        all, all, KOFN_F64, false);
    kofn_plan *plan;
    char spec[120];
    kofn_status st;

    snprintf(spec, sizeof spec, "gpd:m=%zu,n=%zu,p=%zu,sub=%s,angles=%zu", k->m,
             k->n, k->cut[back], k->kind == DNN_GPD_VUM ? "vum" : "uvn", k->P);
    c->n = k->P;
    st = kofn_plan_new(&plan, &pb, spec, k->P, 1);
    if (!st)
        st = words_of_plan(c, plan);
    kofn_plan_free(plan);
    return st;
}

/* A code that any `symbols` of n values decode: powers of Chebyshev's points.
 */
static kofn_status powers(words *c, size_t n, size_t symbols)
{
    c->n = n;
    c->symbols = c->wants = c->needed = symbols;
    TRY(words_new(c));
    for (size_t i = 0; i < n; i++) {
        double x = sin(((double)n - 1 - 2 * (double)i) *
                       3.14159265358979323846 / (2 * (double)n));

        for (size_t e = 0; e < symbols; e++)
            c->G[i * symbols + e] = e ? c->G[i * symbols + e - 1] * x : 1;
    }
    return KOFN_OK;
}

/* The code of one of the ways. Copies: a row of the grid is a code of one
 * symbol. Two codes: the values are the sums of rows, or of columns. */
static kofn_status words_for(words *c, const dnn_nodes *k, bool back)
{
    size_t mn = k->m * k->n, lines = back ? k->n : k->m;

    if (k->kind == DNN_REPLICATION)
        return powers(c, k->P / mn, 1);
    if (k->kind == DNN_TWO_MDS)
        return powers(c, lines + (k->P - mn) / (k->m + k->n), lines);
    return k->kind == DNN_NONE ? powers(c, lines, lines) : gpd(c, k, back);
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/* Moves row `at` of Q, the longest one left, to row k of H. Removes its
 * direction from all other rows, twice, so that they are orthogonal to
 * rounding. */
static void take_longest(double *Q, size_t n, double *H, size_t k)
{
    size_t at = 0;
    double *h = H + k * n, length;

    for (size_t i = 1; i < n; i++)
        if (dot(Q + i * n, Q + i * n, n) > dot(Q + at * n, Q + at * n, n))
            at = i;
    memcpy(h, Q + at * n, n * sizeof *h);
    for (size_t j = 0; j < 2 * k; j++) {
        double by = dot(h, H + j % k * n, n);

        for (size_t c = 0; c < n; c++)
            h[c] -= by * H[j % k * n + c];
    }
    length = sqrt(dot(h, h, n));
    for (size_t c = 0; c < n; c++)
        h[c] /= length;
    for (size_t i = 0; i < n; i++) {
        double by = dot(Q + i * n, h, n);

        for (size_t c = 0; c < n; c++)
            Q[i * n + c] -= by * h[c];
    }
}

/* Computes the parities: an orthonormal basis of I - G G^+. */
static kofn_status find_parities(words *c)
{
    size_t n = c->n;
    double *Q = kofn_layout_table(n, n), condition;
    kofn_status st;

    c->q = n - c->needed;
    c->H = kofn_layout_table(n, n);
    st = Q && c->H ? kf_pseudo(&(kf_equation){n, c->symbols, c->G, n, c->G}, Q,
                               &condition)
                   : KOFN_NOMEM;
    for (size_t i = 0; i < n * n && !st; i++)
        Q[i] = (i % (n + 1) == 0) - Q[i];
    for (size_t k = 0; k < c->q && !st; k++)
        take_longest(Q, n, c->H, k);
    kf_free(Q);
    return st;
}

/* ---- wrong answers --------------------------------------------------------
 */

static void draw(kf_rng *r, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = kf_rng_normal(r);
}

/* Computes out = A B; B has `cols` columns. */
static void multiply(const double *A, const double *B, size_t rows,
                     size_t inner, size_t cols, double *out)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            out[i * cols + j] = 0;
            for (size_t k = 0; k < inner; k++)
                out[i * cols + j] += A[i * inner + k] * B[k * cols + j];
        }
}

static void shuffle(trial *t)
{
    for (size_t i = 0; i < t->c.n; i++)
        t->order[i] = (uint32_t)i;
    for (size_t i = t->c.n; i > 1; i--) {
        size_t k = kf_rng_below(&t->rng, (uint32_t)i);
        uint32_t x = t->order[k];

        t->order[k] = t->order[i - 1];
        t->order[i - 1] = x;
    }
}

/* Makes the values of other symbols that agree in as many values as possible,
 * the last in the order. M is the change of the symbols. */
static kofn_status other_codeword(trial *t, double *codeword)
{
    const words *c = &t->c;
    size_t K = c->needed - 1, S = c->symbols;
    double *A = kofn_layout_table(K + 1, S), *Z = kofn_layout_table(S, S),
           *M = kofn_layout_table(2, S), condition;
    kofn_status st = A && Z && M ? KOFN_OK : KOFN_NOMEM;

    for (size_t k = 0; k < K && !st; k++)
        memcpy(A + k * S, c->G + t->order[c->n - 1 - k] * S, S * sizeof *A);
    if (!st)
        draw(&t->rng, M, S);
    if (!st && K) { /* project M onto what those K values do not determine */
        double *I = kofn_layout_table(S, S), *D = kofn_layout_table(S, K);

        for (size_t i = 0; I && i < S; i++)
            I[i * S + i] = 1;
        st = I && D ? kf_pseudo(&(kf_equation){K, S, A, S, I}, D, &condition)
                    : KOFN_NOMEM;
        if (!st) {
            multiply(D, A, S, K, S, Z);
            multiply(Z, M, S, S, 1, M + S);
        }
        kf_free(I);
        kf_free(D);
    }
    for (size_t i = 0; i < S && !st; i++)
        M[i] -= M[S + i];
    if (!st)
        multiply(c->G, M, c->n, S, 1, codeword);
    kf_free(A);
    kf_free(Z);
    kf_free(M);
    return st;
}

/* Makes the first `wrong` values of the order wrong, together or
 * independently. */
static kofn_status lie(trial *t, size_t wrong)
{
    double *codeword = kofn_layout_table(t->c.n, 1), x[COLUMNS];
    kofn_status st = codeword ? KOFN_OK : KOFN_NOMEM;

    if (!st && t->adversarial)
        st = other_codeword(t, codeword);
    draw(&t->rng, x, COLUMNS);
    for (size_t i = 0; i < wrong && !st; i++)
        for (size_t k = 0; k < COLUMNS; k++)
            t->Y[t->order[i] * COLUMNS + k] +=
                10 * (t->adversarial ? codeword[t->order[i]] * x[k]
                                     : kf_rng_normal(&t->rng));
    kf_free(codeword);
    return st;
}

/* ---- one product ----------------------------------------------------------
 */

/* Locates the wrong values by the parities of all values. */
static kofn_status tell(trial *t)
{
    const words *c = &t->c;
    double unseen, unit = sqrt((double)c->symbols);
    size_t most = t->adversarial ? c->q / 2 : c->q - 1, count;
    kf_evidence e = {.nodes = c->n,
                     .components = 1,
                     .q = c->q,
                     .H = c->H,
                     .columns = COLUMNS,
                     .Y = t->Y,
                     .noise = unit * USUAL,
                     .alarm = unit * USUAL * ALARM,
                     .bound = HUGE_VAL,
                     .over = c->q,
                     .liars = c->q / 2,
                     .independent = most};

    memset(t->wrong, 0, c->n);
    return c->q ? kf_suspect(&e, most, t->wrong, &count, &unseen) : KOFN_OK;
}

/* Decodes from the remaining values, and returns the error. */
static kofn_status decode(trial *t, double *off)
{
    const words *c = &t->c;
    size_t left = 0;
    double *G = kofn_layout_table(c->n, c->symbols),
           *Y = kofn_layout_table(c->n, COLUMNS),
           *got = kofn_layout_table(2 * c->wants, COLUMNS), condition;
    kofn_status st = G && Y && got ? KOFN_OK : KOFN_NOMEM;

    for (size_t v = 0; v < c->n && !st; v++)
        if (!t->wrong[v]) {
            memcpy(G + left * c->symbols, c->G + v * c->symbols,
                   c->symbols * sizeof *G);
            memcpy(Y + left++ * COLUMNS, t->Y + v * COLUMNS,
                   COLUMNS * sizeof *Y);
        }
    if (!st)
        st = kf_pseudo(&(kf_equation){left, c->symbols, G, c->wants, c->W},
                       t->D, &condition);
    *off = 0;
    if (!st) {
        double *want = got + c->wants * COLUMNS;

        multiply(t->D, Y, c->wants, left, COLUMNS, got);
        multiply(c->W, t->S, c->wants, c->symbols, COLUMNS, want);
        for (size_t i = 0; i < c->wants * COLUMNS; i++)
            *off = fmax(*off, fabs(got[i] - want[i]));
    }
    kf_free(G);
    kf_free(Y);
    kf_free(got);
    return st;
}

/* True if the product is right with `wrong` wrong values. */
static kofn_status try_once(trial *t, size_t wrong, bool *right)
{
    const words *c = &t->c;
    double off;
    kofn_status st;

    *right = false;
    draw(&t->rng, t->S, c->symbols * COLUMNS);
    multiply(c->G, t->S, c->n, c->symbols, COLUMNS, t->Y);
    shuffle(t);
    TRY(lie(t, wrong));
    st = tell(t);
    if (st == KOFN_CORRUPT)
        return KOFN_OK;
    TRY(st);
    TRY(decode(t, &off));
    *right = off < 1e-6;
    t->passed += !*right;
    return KOFN_OK;
}

/* Finds the limit: the largest number that never fails. Also tries one more
 * and all nodes, if they do not conspire; such failures must be detected. */
static kofn_status try_all(trial *t, size_t trials, size_t *limit)
{
    bool stood = true;

    *limit = 0;
    for (size_t wrong = 0; wrong <= t->c.n;
         wrong = stood ? wrong + 1 : kf_max(wrong + 1, t->c.n))
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

/* ---- all of them ----------------------------------------------------------
 */

static kofn_status trial_new(trial *t, const dnn_nodes *nodes, bool back)
{
    words *c = &t->c;

    TRY(words_for(c, nodes, back));
    TRY(find_parities(c));
    t->S = kofn_layout_table(c->symbols, COLUMNS);
    t->Y = kofn_layout_table(c->n, COLUMNS);
    t->D = kofn_layout_table(c->wants, c->n);
    t->order = kf_new(c->n, sizeof *t->order);
    t->wrong = kf_zero(c->n, 1);
    return t->S && t->Y && t->D && t->order && t->wrong ? KOFN_OK : KOFN_NOMEM;
}

static void trial_free(trial *t)
{
    kf_free(t->c.G);
    kf_free(t->c.W);
    kf_free(t->c.H);
    kf_free(t->S);
    kf_free(t->Y);
    kf_free(t->D);
    kf_free(t->order);
    kf_free(t->wrong);
}

static kofn_status try_way(const dnn_nodes *nodes, bool back, size_t trials,
                           uint64_t seed, dnn_tried *out)
{
    trial t = {.rng = kf_rng_stream(seed, KF_FOR_CORRUPT, back, 0)};
    kofn_status st = trial_new(&t, nodes, back);

    if (!st)
        st = try_all(&t, trials, &out->probabilistic[back]);
    out->declared = out->declared && t.passed == 0;
    t.adversarial = true;
    if (!st)
        st = try_all(&t, trials, &out->adversarial[back]);
    trial_free(&t);
    return st;
}

kofn_status dnn_tolerance_try(const dnn_nodes *nodes, size_t trials,
                              uint64_t seed, dnn_tried *out)
{
    dnn_tolerance t;
    kofn_status st = dnn_tolerance_of(nodes, &t);

    *out = (dnn_tried){.declared = true};
    if (!st && nodes->P > MOST_NODES)
        st = kf_fail(KOFN_INVAL, "%zu nodes; %d at most are tried", nodes->P,
                     MOST_NODES);
    for (size_t back = 0; back < 2 && !st; back++)
        st = try_way(nodes, back, trials, seed, out);
    return st;
}
