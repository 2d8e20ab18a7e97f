/* sequential.c -- codes for a stream of products.  A slow worker makes up for
 * its missing answers in later rounds.
 *
 *     dip   Krishnan, Hosseini, Khisti, "Coded sequential matrix multiplication
 *           for straggler mitigation", 2020, algorithm 1.  Any K answers of
 *           different rows are enough.  When a product is due, its missing
 *           answers are requested so that any lambda workers can give them.
 *     idip  Algorithm 2.  Every worker answers a row of each open product, and
 *           the same row again after a failure.  Products end in time in
 *           every pattern of stragglers of a model.  A row is plain if the
 *           model guarantees that it will be answered in time.
 *
 * There are two models.  In `arbitrary`, any W successive rounds have at most N
 * marks.  In `bursty`, any W rounds have marks of at most eps workers, each
 * with its marks within B rounds.  See docs/math/sequential.md for the
 * statements and their proofs.
 *
 * Rows are those of polynomial.c: any K of them decode, the first K are plain.
 *
 * Keeps no state and no history: the caller passes the past in. */
#include "polynomial.h"

#define MOST_DELAY (KOFN_OPEN_MOST - 2)
#define CUT(axis, what)                                                        \
    {                                                                          \
        axis, KOFN_AUTO, 1, 10000, what, NULL                                  \
    }

enum { YES, NO };
enum { NEWEST, DUE };
enum { ARBITRARY, BURSTY };

static const kofn_param dip_params[] = {
    CUT("m", "row blocks of X; auto: what three quarters of the rows that are "
             "asked for decode"),
    CUT("p", "column blocks of Y; auto: as m"),
    {"n", 1, 1, 10000, "column blocks of X, which are summed over", NULL},
    {"T", 2, 0, MOST_DELAY, "rounds that a product may take beyond its first",
     NULL},
    {"lambda", KOFN_AUTO, 1, 1000000,
     "workers that can finish what is due; auto: all", NULL},
    {"plain", KOFN_AUTO, 0, 0,
     "products of parts as they are before coded ones; auto: yes, but no if n "
     "> "
     "1 or basis=monomial; no: as published",
     "yes|no"},
    {"order", NEWEST, 0, 0, "which product a worker begins with", "newest|due"},
    {"basis", KOFN_AUTO, 0, 0,
     "coefficients or points; auto: quaternion, circle where n > 1; monomial: "
     "as published",
     "quaternion|circle|monomial"},
    {0},
};

static const kofn_param idip_params[] = {
    CUT("m", "row blocks of X; m p is the number of answers that the model "
             "leaves; auto: what is sent least"),
    CUT("p", "column blocks of Y; auto: as m"),
    {"W", 3, 1, 1000, "rounds of a window of the model", NULL},
    {"N", KOFN_AUTO, 0, 100000000,
     "model=arbitrary: marks in a window; auto: what m p leaves, or a quarter",
     NULL},
    {"model", ARBITRARY, 0, 0, "of stragglers", "arbitrary|bursty"},
    {"B", KOFN_AUTO, 1, 1000,
     "model=bursty: rounds within which a worker's marks in a window lie; "
     "auto: "
     "1",
     NULL},
    {"eps", KOFN_AUTO, 1, 1000000,
     "model=bursty: workers with marks in a window; auto: what m p leaves, or "
     "a quarter",
     NULL},
    {"early", YES, 0, 0,
     "a product is over as soon as it can be decoded; no: when it is due, as "
     "published",
     "yes|no"},
    {"basis", KOFN_AUTO, 0, 0,
     "coefficients; auto: quaternion; monomial: as published",
     "quaternion|monomial"},
    {0},
};

static size_t given(const kofn_layout *L, const char *name)
{
    return (size_t)kofn_arg(L, name);
}

static bool is_auto(const kofn_layout *L, const char *name)
{
    return kofn_arg(L, name) == KOFN_AUTO;
}

static void settle(const kofn_layout *L, const char *name, size_t value)
{
    if (is_auto(L, name))
        kofn_arg_choose(L, name, (long)value);
}

/* ---- cuts ---------------------------------------------------------------- */

/* True if the scheme has the parameter n; idip has not. */
static bool sums(const kofn_layout *L)
{
    return !is_auto(L, "n");
}

/* Maps the choices of the parameter basis; idip has no circle. */
static kf_points basis_of(const kofn_layout *L)
{
    static const kf_points words[] = {KF_QUATERNION, KF_CIRCLE, KF_MONOMIAL};
    size_t word = given(L, "basis");

    return words[word == 1 && !sums(L) ? 2 : word];
}

static kf_cut_shape shape_of(const kofn_layout *L)
{
    kf_cut_shape s = {.m = given(L, "m"),
                      .n = sums(L) ? given(L, "n") : 1,
                      .p = given(L, "p"),
                      .points = L->seats - L->plain,
                      .basis = basis_of(L)};

    kf_schemes_entangle(&s);
    return s;
}

/* Returns the numbers that a worker receives for a row: a share of X and one of
 * Y. */
static double sent(const kofn_layout *L, size_t m, size_t p)
{
    return (double)L->problem.m / (double)m + (double)L->problem.p / (double)p;
}

/* Finds the cut into exactly k products that sends least; m or p may be given.
 * False if k cannot be factored so. */
static bool factor(const kofn_layout *L, size_t k)
{
    size_t best = 0;

    for (size_t m = 1; m <= k; m++)
        if (k % m == 0 && (is_auto(L, "m") || m == given(L, "m")) &&
            (is_auto(L, "p") || k / m == given(L, "p")) &&
            (!best || sent(L, m, k / m) < sent(L, best, k / best)))
            best = m;
    if (!best || best > 10000 || k / best > 10000)
        return false;
    settle(L, "m", best);
    settle(L, "p", k / best);
    return true;
}

/* Finishes the layout with the number of different rows that a product may
 * take. */
static kofn_status finish(kofn_layout *L, bool plain, size_t rows)
{
    kf_cut_shape s = shape_of(L);
    const char *why = kf_points_refuse(&s);

    if (why)
        return kofn_say(KOFN_INVAL, "%s", why);
    L->enough = s.K;
    L->plain = plain ? s.K : 0;
    rows = kf_max(rows, s.K) + 1;
    L->seats = L->max_seats = L->plain + rows / 2 * 2;
    if (s.basis == KF_QUATERNION)
        return kf_schemes_khatri_rao(L, &s);
    /* Powers at K points decode, and so do K plain rows.  Some mixtures with
     * fewer of both do not. */
    if (plain)
        L->threshold = kf_min(2 * s.K - 1, L->seats);
    return kf_schemes_tables(L, &s);
}

/* Makes the rows of a seat; the first L->plain seats are plain. */
static kofn_status seat(const kofn_layout *L, size_t i, double *E0, double *E1,
                        double *G)
{
    kf_cut_shape s = shape_of(L);

    if (s.basis == KF_QUATERNION)
        return kf_schemes_khatri_rao_seat(L, &s, i, E0, E1, G);
    if (i >= L->plain)
        return kf_points_seat(L, &s, i - L->plain, E0, E1, G);
    E0[i % s.m] = 1;
    if (E1)
        E1[i / s.m] = 1;
    kf_code_outer(1, s.m, s.p, E0, E1, G);
    return KOFN_OK;
}

/* ---- dip ----------------------------------------------------------------- */

/* Chooses the cut, the side with fewer parts first.  It is as fine as possible
 * while three quarters of the requested answers decode. */
static void choose_cut(const kofn_layout *L)
{
    size_t P = L->workers, most = P * (given(L, "T") + 1);
    size_t m = is_auto(L, "m") ? 1 : given(L, "m");
    size_t p = is_auto(L, "p") ? 1 : given(L, "p"), n = given(L, "n");
    bool grow[2] = {is_auto(L, "m"), is_auto(L, "p")};

    most -= most / 4;
    while (grow[0] || grow[1]) {
        bool rows = grow[0] && (m <= p || !grow[1]);
        size_t *side = rows ? &m : &p;

        if (*side < 10000 && (rows ? p : m) * n * (*side + 1) + n - 1 <= most)
            ++*side;
        else
            grow[!rows] = false;
    }
    settle(L, "m", m);
    settle(L, "p", p);
}

/* Lays out dip.  In the round in which a product is due, any lambda workers can
 * give all K answers.  So a round has T + ceil(K / lambda) slots. */
static kofn_status dip_layout(kofn_layout *L)
{
    size_t P = L->workers, lambda, due;
    kf_cut_shape s;

    settle(L, "lambda", P);
    lambda = given(L, "lambda");
    if (lambda > P)
        return kofn_say(KOFN_INVAL,
                        "dip: lambda = %zu is more than the %zu workers; "
                        "give at most %zu",
                        lambda, P, P);
    settle(L, "basis", given(L, "n") > 1 ? 1 : 0);
    settle(L, "plain",
           given(L, "n") > 1 || basis_of(L) == KF_MONOMIAL ? NO : YES);
    if (given(L, "n") > 1 && given(L, "plain") == YES)
        return kofn_say(KOFN_INVAL,
                        "dip: plain=yes with n = %zu: a product of parts is "
                        "no part of the answer where others are added to "
                        "it; use plain=no or n=1",
                        given(L, "n"));
    if (given(L, "n") > 1 && basis_of(L) == KF_QUATERNION)
        return kofn_say(KOFN_INVAL,
                        "dip: basis=quaternion with n = %zu does not sum; "
                        "use basis=circle or n=1",
                        given(L, "n"));
    choose_cut(L);
    s = shape_of(L);
    due = kf_ceil_div(s.K, lambda);
    if (s.K > 100000 || due > 100000)
        return kofn_say(KOFN_INVAL,
                        "dip: m = %zu, n = %zu and p = %zu need %zu answers "
                        "per product, which is too many; use fewer parts",
                        s.m, s.n, s.p, s.K);
    L->delay = given(L, "T");
    L->slots = L->delay + due;
    L->due_first = given(L, "order") == DUE;
    return finish(L, given(L, "plain") == YES || s.basis == KF_QUATERNION,
                  P * L->slots);
}

/* Algorithm 1 of the paper (the head of this file): line 5, one answer in each
 * round; when the product is due line 10, enough answers that any lambda live
 * workers can finish it. */
static void dip_ask(const kofn_layout *L, const kofn_pending *x,
                    const kofn_past *past, size_t who, kofn_ask *out)
{
    size_t few = kf_min(given(L, "lambda"), x->live);

    (void)past;
    (void)who;
    *out = (kofn_ask){1, given(L, "plain") == YES};
    if (x->age >= L->delay)
        out->rows =
            x->got < x->wanted ? kf_ceil_div(x->wanted - x->got, few) : 0;
}

/* ---- idip: models of stragglers ------------------------------------------ */

typedef struct model {
    size_t W, N, B, eps, length; /* length: of a product's life in rounds */
    bool bursty;
} model;

static model model_of(const kofn_layout *L)
{
    model x = {.W = given(L, "W"), .bursty = given(L, "model") == BURSTY};

    if (x.bursty) {
        x.B = given(L, "B");
        x.eps = given(L, "eps");
    } else {
        x.N = given(L, "N");
    }
    x.length = L->delay + 1;
    return x;
}

/* True if the model forbids more marks: the marks of the last b rounds, plus
 * one in each round up to the end of a window, exceed N. */
static bool too_many(const model *x, const kofn_past *past, size_t age)
{
    size_t marks = 0;

    for (size_t b = 0;; b++) {
        if (b >= age && marks + x->W - b > x->N)
            return true;
        if (b + 1 >= x->W || b >= past->rounds)
            return false;
        marks += past->marked[b];
    }
}

/* Returns the number of workers marked in the last b rounds; one worker is
 * always counted. */
static size_t distinct(const kofn_past *past, size_t b, size_t who)
{
    size_t n = 0;

    for (size_t w = 0; w < past->workers; w++) {
        bool any = w == who;

        for (size_t r = 0; r < b && !any; r++)
            any = past->mark[r * past->workers + w];
        n += any;
    }
    return n;
}

/* Returns the number of rounds since the first mark of a worker within the last
 * b rounds; 0 if there is none. */
static size_t since_first(const kofn_past *past, size_t b, size_t who)
{
    size_t first = 0;

    for (size_t r = 0; r < b; r++)
        if (past->mark[r * past->workers + who])
            first = r + 1;
    return first;
}

/* True if the bursty model forbids that this worker is marked for the rest of
 * the product's life.  Then some window with b past rounds violates the model.
 */
static bool too_long(const model *x, const kofn_past *past, size_t age,
                     size_t who)
{
    size_t left = x->length - kf_min(age, x->length);

    for (size_t b = 0; b < x->W && b <= past->rounds; b++) {
        size_t more = kf_min(left, x->W - b);

        if (since_first(past, b, who) + more > x->B ||
            distinct(past, b, who) > x->eps)
            return true;
    }
    return false;
}

/* Algorithm 2 of the paper, line 13.  Every worker answers one row.  The row is
 * plain if the model guarantees that the worker answers while the product is
 * open. */
static void idip_ask(const kofn_layout *L, const kofn_pending *pending,
                     const kofn_past *past, size_t who, kofn_ask *out)
{
    model x = model_of(L);

    *out = (kofn_ask){1, false};
    if (pending->plain_left)
        out->plain = x.bursty ? too_long(&x, past, pending->age, who)
                              : too_many(&x, past, pending->age);
}

static bool idip_admits(const kofn_layout *L, const kofn_past *past)
{
    model x = model_of(L);
    size_t window = kf_min(x.W, past->rounds), marks = 0;

    for (size_t r = 0; r < window; r++)
        marks += past->marked[r];
    if (!x.bursty)
        return marks <= x.N;
    for (size_t w = 0; w < past->workers; w++) {
        size_t first = since_first(past, window, w), last = 0;

        while (last < first && !past->mark[last * past->workers + w])
            last++;
        if (first - last > x.B)
            return false;
    }
    return distinct(past, window, SIZE_MAX) <= x.eps;
}

/* ---- idip ---------------------------------------------------------------- */

static bool has_cut(const kofn_layout *L)
{
    return !is_auto(L, "m") && !is_auto(L, "p");
}

/* Computes the number of the `all` answers that remain if the largest number
 * that the model allows fails. */
static kofn_status settle_model(const kofn_layout *L, size_t all, size_t *k)
{
    bool bursty = given(L, "model") == BURSTY;
    const char *of = bursty ? "eps" : "N";
    size_t each = 1, P = L->workers, marks;

    if (bursty && (given(L, "B") >= given(L, "W") ||
                   (!is_auto(L, "eps") && given(L, "eps") > P)))
        return kofn_say(KOFN_INVAL,
                        "idip: B = %zu, W = %zu and eps = %ld: bursts are "
                        "shorter than a window, B < W, and of at most the "
                        "%zu workers",
                        given(L, "B"), given(L, "W"), kofn_arg(L, "eps"), P);
    if (bursty)
        each = given(L, "B");
    *k = has_cut(L) ? given(L, "m") * given(L, "p") : 0;
    if (is_auto(L, of)) {
        marks = *k ? (all > *k ? (all - *k) / each : 0) : all / 4 / each;
        if (bursty)
            marks = kf_min(marks ? marks : 1, P);
        kofn_arg_choose(L, of, (long)marks);
    }
    marks = given(L, of) * each;
    if (marks >= all)
        return kofn_say(KOFN_INVAL,
                        "idip: %zu of the %zu rows of a product may fail, "
                        "which leaves none; give a smaller %s",
                        marks, all, of);
    if (*k && *k != all - marks)
        return kofn_say(KOFN_INVAL,
                        "idip: m p = %zu, but of %zu rows of a product the "
                        "model leaves %zu; make them equal",
                        *k, all, all - marks);
    *k = all - marks;
    return KOFN_OK;
}

static kofn_status other_model(const kofn_layout *L)
{
    bool bursty = given(L, "model") == BURSTY;

    if (bursty ? is_auto(L, "N") : is_auto(L, "B") && is_auto(L, "eps"))
        return KOFN_OK;
    return kofn_say(KOFN_INVAL, "idip: %s model=%s; see kofn schemes idip",
                    bursty ? "N does not go with" : "B and eps do not go with",
                    bursty ? "bursty" : "arbitrary");
}

static kofn_status idip_layout(kofn_layout *L)
{
    size_t P = L->workers, W = given(L, "W"), k = 0;
    bool bursty = given(L, "model") == BURSTY;

    TRY(other_model(L));
    if (bursty)
        settle(L, "B", 1);
    L->slots = bursty ? W - 1 + given(L, "B") : W;
    L->delay = L->slots - 1;
    if (L->delay > MOST_DELAY)
        return kofn_say(KOFN_INVAL,
                        "idip: with these windows a product may take %zu "
                        "rounds; the limit is %d",
                        L->delay + 1, MOST_DELAY + 1);
    TRY(settle_model(L, P * L->slots, &k));
    if (k > 100000 || !factor(L, k))
        return kofn_say(KOFN_INVAL,
                        "idip: %zu answers per product do not equal m p, or "
                        "are too many; omit m and p, or give another model",
                        k);
    settle(L, "basis", 0);
    L->memory = W;
    L->repeats = true;
    L->keeps = given(L, "early") == NO;
    return finish(L, true, P * L->slots);
}

/* ---- the schemes --------------------------------------------------------- */

#define CITE                                                                   \
    "Krishnan, Hosseini, Khisti 2020, \"Coded sequential matrix "              \
    "multiplication for straggler mitigation\""

const kofn_scheme kf_dip = {
    .size = sizeof(kofn_scheme),
    .name = "dip",
    .summary = "a stream of products; what is due is finished by any lambda",
    .cite = CITE,
    .ops = KOFN_STREAM,
    .params = dip_params,
    .layout = dip_layout,
    .seat = seat,
    .ask = dip_ask,
};

const kofn_scheme kf_idip = {
    .size = sizeof(kofn_scheme),
    .name = "idip",
    .summary = "a stream of products; in time in all patterns of a model",
    .cite = CITE,
    .ops = KOFN_STREAM,
    .params = idip_params,
    .layout = idip_layout,
    .seat = seat,
    .ask = idip_ask,
    .admits = idip_admits,
};
