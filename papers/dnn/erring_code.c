/* erring_code.c -- codes by which nodes train without a master: Generalized PolyDot,
 * by kofn's plans, and what the paper compares it with: no code, copies of the grid,
 * and two systematic codes, on its rows and on its columns (Dutta, Bai, Jeong, Low,
 * Grover 2018; math/training.md 7). */
#include "dnn/erring.h"

#include "code/code.h"

#include <math.h>
#include <stdio.h>

/* ---- codes ---------------------------------------------------------------- */

static void code_free(erring_code *c)
{
    kf_free(c->member);
    kf_free(c->G);
    kf_free(c->W);
    kf_free(c->D);
    kf_free(c->H);
    *c = (erring_code){0};
}

static kofn_status code_new(erring_code *c)
{
    c->member = kf_zero(c->groups * c->values * c->members, sizeof *c->member);
    c->G = kofn_layout_table(c->values, c->symbols);
    c->W = kofn_layout_table(c->wants, c->symbols);
    c->D = kofn_layout_table(c->wants, c->values);
    c->H = kofn_layout_table(c->values, c->values);
    return c->member && c->G && c->W && c->D && c->H ? KOFN_OK : KOFN_NOMEM;
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/* Row `at` of Q, the longest that is left, becomes row k of H, and is taken out of
 * all others, twice, so that what is left is orthogonal to rounding. */
static void take_longest(double *Q, size_t n, double *H, size_t k)
{
    size_t at = 0;
    double *h = H + k * n, length;

    for (size_t i = 1; i < n; i++)
        if (dot(Q + i * n, Q + i * n, n) > dot(Q + at * n, Q + at * n, n))
            at = i;
    memcpy(h, Q + at * n, n * sizeof *h);
    for (size_t twice = 0; twice < 2; twice++)
        for (size_t j = 0; j < k; j++) {
            double by = dot(h, H + j * n, n);

            for (size_t c = 0; c < n; c++)
                h[c] -= by * H[j * n + c];
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

/* D and the parities: what of I - G G^+ is left.  Needed values decode. */
static kofn_status settle(erring_code *c)
{
    size_t n = c->values;
    double *Q = kofn_layout_table(n, n), condition;
    kofn_status st = Q ? KOFN_OK : KOFN_NOMEM;

    if (!st)
        st = kf_pseudo(&(kf_equation){n, c->symbols, c->G, c->wants, c->W},
                       c->D, &condition);
    if (!st)
        st = kf_pseudo(&(kf_equation){n, c->symbols, c->G, n, c->G}, Q,
                       &condition);
    for (size_t i = 0; i < n * n && !st; i++)
        Q[i] = (i % (n + 1) == 0) - Q[i];
    c->q = n - c->needed;
    for (size_t k = 0; k < c->q && !st; k++)
        take_longest(Q, n, c->H, k);
    kf_free(Q);
    return st;
}

static void identity(double *W, size_t n)
{
    for (size_t i = 0; i < n; i++)
        W[i * n + i] = 1;
}

/* Of so many symbols, each of which is wanted. */
static kofn_status plain_code(erring_code *c, size_t groups, size_t values,
                              size_t members, size_t symbols)
{
    *c = (erring_code){.groups = groups,
                       .values = values,
                       .members = members,
                       .symbols = symbols,
                       .wants = symbols,
                       .needed = symbols};
    TRY(code_new(c));
    identity(c->W, symbols);
    return KOFN_OK;
}

/* ---- Generalized PolyDot --------------------------------------------------- */

static void spread(const kf_row *row, double *to)
{
    for (size_t e = 0; e < row->n; e++)
        to[row->col[e]] = row->val[e];
}

static kofn_status gpd_way(erring_nodes *c, const kofn_plan *plan, bool back)
{
    const kofn_layout *L = &plan->layout;
    erring_way *w = &c->way[back];
    erring_code *k = &w->code;
    kf_code *code = NULL;
    kofn_status st;

    *k = (erring_code){.groups = 1,
                       .values = c->P,
                       .members = 1,
                       .symbols = L->symbols,
                       .wants = L->wants,
                       .needed = L->threshold};
    w->parts = L->cut[1].rows * L->cut[1].cols;
    w->rows = L->cut[1].rows;
    w->cut = back ? L->cut[1].rows : L->cut[1].cols;
    w->grid_rows = L->grid_rows;
    w->in = kofn_layout_table(c->P, w->parts);
    st = w->in ? code_new(k) : KOFN_NOMEM;
    if (!st)
        st = kf_code_new(&code, plan);
    for (size_t p = 0; p < c->P && !st; p++) {
        const kf_seat *seat;

        st = kf_code_seat(code, p, &seat);
        if (st)
            break;
        k->member[p] = (uint32_t)p;
        if (seat->E1)
            spread(&seat->E1[0], w->in + p * w->parts);
        else
            w->in[p] = 1;
        spread(&seat->G[0], k->G + p * k->symbols);
        if (!back)
            st = kf_code_factors(code, p, c->f + p * c->m, c->g + p * c->n);
    }
    kf_code_free(code);
    if (st)
        return st;
    if (L->W)
        memcpy(k->W, L->W, k->wants * k->symbols * sizeof *k->W);
    else
        identity(k->W, k->symbols);
    return settle(k);
}

/* What blocks must be: all P of m n parts. */
static kofn_status gpd_blocks(erring_nodes *c)
{
    erring_code *k = &c->blocks[0];

    c->checks = 1;
    TRY(plain_code(k, 1, c->P, 1, c->m * c->n));
    for (size_t p = 0; p < c->P; p++) {
        k->member[p] = (uint32_t)p;
        for (size_t x = 0; x < c->m * c->n; x++)
            k->G[p * k->symbols + x] =
                c->f[p * c->m + x % c->m] * c->g[p * c->n + x / c->m];
    }
    return settle(k);
}

static kofn_status gpd(erring_nodes *c, const size_t cut[2])
{
    kofn_status st = KOFN_OK;

    for (size_t back = 0; back < 2 && !st; back++) {
        size_t all = c->m * c->n * cut[back] * 4;
        kofn_problem pb = KOFN_PROBLEM_INIT(back ? KOFN_LEFT : KOFN_MATMUL, all,
                                            all, all, KOFN_F64, false);
        kofn_plan *plan;
        char spec[120];

        snprintf(spec, sizeof spec, "gpd:m=%zu,n=%zu,p=%zu,sub=%s,angles=%zu",
                 c->m, c->n, cut[back], c->kind == DNN_GPD_VUM ? "vum" : "uvn",
                 c->P);
        st = kofn_plan_new(&plan, &pb, spec, c->P, 1);
        if (!st)
            st = gpd_way(c, plan, back);
        kofn_plan_free(plan);
    }
    return st ? st : gpd_blocks(c);
}

/* ---- what it is compared with ----------------------------------------------- */

/* Systematic: m plain rows and then, of `all`, such that any m determine all: powers
 * of Chebyshev's points, divided by the first m rows. */
static kofn_status systematic(double *G, size_t all, size_t m)
{
    double *V = kofn_layout_table(all, m), *top = kofn_layout_table(m, m),
           condition;
    kofn_status st = V && top ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < all && !st; i++) {
        double x = cos((2 * (double)i + 1) * 3.14159265358979323846 /
                       (2 * (double)all));

        for (size_t e = 0; e < m; e++)
            V[i * m + e] = e ? V[i * m + e - 1] * x : 1;
    }
    if (!st)
        memcpy(top, V, m * m * sizeof *top);
    if (!st)
        st = kf_pseudo(&(kf_equation){m, m, top, all, V}, G, &condition);
    for (size_t i = 0; i < m * m && !st; i++)
        G[i] = i % (m + 1) == 0;
    kf_free(V);
    kf_free(top);
    return st;
}

/* Both ways of a grid: what goes in is cut as the other side of the weights. */
static kofn_status grid_way(erring_nodes *c, bool back)
{
    erring_way *w = &c->way[back];

    w->cut = 1;
    w->parts = back ? c->m : c->n;
    w->rows = back ? 1 : c->n;
    w->grid_rows = back ? 1 : c->m;
    w->in = kofn_layout_table(c->P, w->parts);
    return w->in ? KOFN_OK : KOFN_NOMEM;
}

/* Node (copy, i, j).  A row of a copy is a value, a group its copies. */
static kofn_status copies(erring_nodes *c)
{
    size_t m = c->m, n = c->n, mn = m * n, r = c->P / mn;

    for (size_t back = 0; back < 2; back++) {
        size_t lines = back ? n : m, across = back ? m : n;
        erring_code *k = &c->way[back].code;

        TRY(grid_way(c, back));
        TRY(plain_code(k, lines, r, across, 1));
        for (size_t i = 0; i < lines * r * across; i++) {
            size_t line = i / across / r, copy = i / across % r, x = i % across;
            size_t row = back ? x : line, col = back ? line : x;

            k->member[i] = (uint32_t)(copy * mn + row + m * col);
            c->way[back].in[k->member[i] * across + x] = 1;
        }
        for (size_t i = 0; i < r; i++)
            k->G[i] = 1;
        TRY(settle(k));
    }
    for (size_t p = 0; p < c->P; p++) {
        c->f[p * m + p % mn % m] = 1;
        c->g[p * n + p % mn / m] = 1;
    }
    c->checks = 1;
    TRY(plain_code(&c->blocks[0], mn, r, 1, 1));
    for (size_t i = 0; i < mn * r; i++) {
        c->blocks[0].member[i] = (uint32_t)(i % r * mn + i / r);
        c->blocks[0].G[i % r] = 1;
    }
    return settle(&c->blocks[0]);
}

/* Of two codes: node (i, j) of an (m + d) x n grid, and then of m x d. */
static uint32_t at(const erring_nodes *c, size_t d, size_t i, size_t j)
{
    return (uint32_t)(j < c->n ? i + (c->m + d) * j
                               : (c->m + d) * c->n + i + c->m * (j - c->n));
}

static kofn_status two_way(erring_nodes *c, bool back, size_t d,
                           const double *code)
{
    size_t lines = (back ? c->n : c->m) + d, across = back ? c->m : c->n;
    erring_code *k = &c->way[back].code, *b = &c->blocks[back];

    TRY(grid_way(c, back));
    TRY(plain_code(k, 1, lines, across, lines - d));
    TRY(plain_code(b, across, lines, 1, lines - d));
    memcpy(k->G, code, lines * (lines - d) * sizeof *code);
    memcpy(b->G, code, lines * (lines - d) * sizeof *code);
    for (size_t i = 0; i < lines; i++)
        for (size_t x = 0; x < across; x++) {
            uint32_t p = back ? at(c, d, x, i) : at(c, d, i, x);

            k->member[i * across + x] = p;
            b->member[x * lines + i] = p;
            c->way[back].in[p * across + x] = 1;
            memcpy((back ? c->g + p * c->n : c->f + p * c->m),
                   code + i * (lines - d), (lines - d) * sizeof *code);
            (back ? c->f + p * c->m : c->g + p * c->n)[x] = 1;
        }
    TRY(settle(k));
    return settle(b);
}

static kofn_status two_codes(erring_nodes *c)
{
    size_t d = (c->P - c->m * c->n) / (c->m + c->n);
    kofn_status st = KOFN_OK;

    c->P = c->m * c->n + d * (c->m + c->n);
    c->checks = 2;
    for (size_t back = 0; back < 2 && !st; back++) {
        size_t lines = back ? c->n : c->m;
        double *G = kofn_layout_table(lines + d, lines);

        st = G ? systematic(G, lines + d, lines) : KOFN_NOMEM;
        if (!st)
            st = two_way(c, back, d, G);
        kf_free(G);
    }
    return st;
}

/* ---- all ------------------------------------------------------------------- */

kofn_status erring_nodes_new(erring_nodes *c, const dnn_nodes *nodes)
{
    const dnn_redundancy kind = nodes->kind;
    size_t mn = nodes->m * nodes->n;
    dnn_tolerance t;
    kofn_status st;

    *c = (erring_nodes){
        .kind = kind, .P = nodes->P, .m = nodes->m, .n = nodes->n};
    TRY(dnn_tolerance_of(nodes, &t));
    if (c->P > 4096)
        return kf_fail(KOFN_INVAL, "%zu nodes; each is computed, 4096 at most",
                       c->P);
    if (kind == DNN_NONE)
        c->P = mn;
    if (kind == DNN_REPLICATION)
        c->P = c->P / mn * mn;
    c->f = kofn_layout_table(c->P, c->m);
    c->g = kofn_layout_table(c->P, c->n);
    if (!c->f || !c->g)
        st = KOFN_NOMEM;
    else if (kind == DNN_TWO_MDS)
        st = two_codes(c);
    else
        st = kind == DNN_NONE || kind == DNN_REPLICATION ? copies(c)
                                                         : gpd(c, nodes->cut);
    if (st)
        erring_nodes_free(c);
    return st;
}

void erring_nodes_free(erring_nodes *c)
{
    for (size_t i = 0; i < 2; i++) {
        code_free(&c->way[i].code);
        code_free(&c->blocks[i]);
        kf_free(c->way[i].in);
    }
    kf_free(c->f);
    kf_free(c->g);
    *c = (erring_nodes){.P = 0};
}
