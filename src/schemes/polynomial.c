/* polynomial.c -- coded products of two matrices by polynomials.
 *
 *     polynomial  Yu, Maddah-Ali, Avestimehr, "Polynomial codes: an optimal
 *                 design for high-dimensional coded matrix multiplication",
 *                 2017.  Cuts only the outer sides; any m p answers decode.
 *     matdot      Dutta, Fahim, Haddadpour, Jeong, Cadambe, Grover, "On the
 *                 optimal recovery threshold of coded matrix multiplication",
 *                 2018.  Cuts only the summed side; any 2n-1 answers decode.
 *     polydot     The same paper.  Cuts both; any m p (2n-1) answers decode.
 *     gpd         Dutta, Bai, Jeong, Low, Grover, "A unified coded deep neural
 *                 network training strategy based on generalized PolyDot
 *                 codes", 2018, and entangled polynomial codes (Yu, Maddah-Ali,
 *                 Avestimehr, 2018).  Cuts both; any m n p + n - 1 decode.
 *
 * All are one code with three exponents (polynomial.h).  A(x) B(x) is a
 * polynomial with K coefficients, which follow from its values at K points.
 * The wanted products are some of them.  For B A with the same blocks of A the
 * exponents of the input run the other way, and K differs.  The file points.c
 * chooses the points.
 *
 * If nothing is summed, there is a better code than points: systematic codes
 * that mix A with quaternions and B with reals.  Their ill-conditioned sets are
 * rare (the Khatri-Rao product of two codes; Subramaniam, Heidarzadeh,
 * Narayanan, "Random Khatri-Rao-product codes", 2019, with reals).
 *
 * Keeps no state.  The cut is settled here once, and no row may change it. */
#include "polynomial.h"

#define BASES "circle|complex|chebyshev|monomial|vandermonde"
#define CUT KOFN_AUTO, 1, 10000
#define M_PARAM                                                                 \
    "m", CUT,                                                                   \
        "row blocks of A; auto: what three quarters of the workers decode, on " \
        "points at most 100 answers",                                           \
        0
#define N_PARAM                                                                 \
    "n", CUT,                                                                   \
        "column blocks of A; auto: what three quarters of the workers decode, " \
        "on points at most 100 answers",                                        \
        0
#define P_PARAM                                                                  \
    "p", CUT,                                                                    \
        "column blocks of the input, row blocks in left products; auto: what "   \
        "three quarters of the workers decode together with the blocks of A, 1 " \
        "for a vector",                                                          \
        0
#define Q_PARAM                                                                    \
    "q", CUT,                                                                      \
        "row blocks of the input in left products, where they are others than p; " \
        "auto: p",                                                                 \
        0
#define BASIS_PARAM                                                            \
    "basis", KF_CIRCLE, 0, 0, "where polynomials are evaluated", BASES
#define ANGLES_PARAM                                                              \
    "angles", KOFN_AUTO, 1, 1000000,                                              \
        "different points of basis=circle; auto: one for each worker, or K+6 "    \
        "where there are more than K+10, K the answers of A B or B A, whichever " \
        "are more",                                                               \
        0

static const kofn_param polynomial_params[] = {
    {M_PARAM},
    {P_PARAM},
    {Q_PARAM},
    {"basis", KOFN_AUTO, 0, 0,
     "points or coefficients; auto: quaternion, circle in left products",
     BASES "|quaternion"},
    {ANGLES_PARAM},
    {0},
};
static const kofn_param matdot_params[] = {
    {N_PARAM}, {BASIS_PARAM}, {ANGLES_PARAM}, {0}};
static const kofn_param polydot_params[] = {
    {M_PARAM},     {N_PARAM},      {P_PARAM}, {Q_PARAM},
    {BASIS_PARAM}, {ANGLES_PARAM}, {0}};
static const kofn_param gpd_params[] = {
    {M_PARAM},
    {N_PARAM},
    {P_PARAM},
    {Q_PARAM},
    {"sub", 0, 0, 0, "u=v^n: few answers in A B; v=u^m: few answers in B A",
     "uvn|vum"},
    {BASIS_PARAM},
    {ANGLES_PARAM},
    {0},
};

/* ---- the shape ----------------------------------------------------------- */

/* The sides that a scheme cuts, in the order in which they grow. */
typedef struct kind {
    const char *name;
    bool cuts[3];
    bool polydot;
} kind;

/* Returns the name of the parameter that cuts the input: left products may have
 * their own, `q`. */
static const char *input_axis(const kofn_layout *L, bool left)
{
    return left && kofn_arg(L, "q") != KOFN_AUTO ? "q" : "p";
}

static const char *axis_name(const kofn_layout *L, size_t axis)
{
    return axis == 0   ? "m"
           : axis == 2 ? "n"
                       : input_axis(L, L->problem.op == KOFN_LEFT);
}

/* Computes the other sizes from m, n and p.  In PolyDot all exponents of A B
 * are different; B A does not need that. */
static void complete(kf_cut_shape *s, bool vum, bool dot)
{
    s->eu = vum ? 1 : s->n;
    s->ev = vum ? s->m : 1;
    s->ew = dot && !s->left ? s->m * (2 * s->n - 1) : s->m * s->n;
    s->sum = s->left ? s->m : s->n;
    s->es = s->left ? s->eu : s->ev;
    s->kept = s->left ? s->n : s->m;
    s->ek = s->left ? s->ev : s->eu;
    s->K = s->ek * (s->kept - 1) + 2 * s->es * (s->sum - 1) +
           s->ew * (s->p - 1) + 1;
}

void kf_schemes_entangle(kf_cut_shape *s)
{
    complete(s, false, false);
}

/* Returns the number of parts of a side: 1 if the scheme does not cut it or no
 * number is given. */
static size_t parts(const kofn_layout *L, const char *axis)
{
    long value = kofn_arg(L, axis);

    return value == KOFN_AUTO ? 1 : (size_t)value;
}

static bool vum_of(const kofn_layout *L, const kind *k)
{
    return k->polydot || kofn_arg(L, "sub") == 1;
}

/* Returns the shape that the arguments give. */
static kf_cut_shape shape_of(const kofn_layout *L, const kind *k)
{
    long basis = kofn_arg(L, "basis"), angles = kofn_arg(L, "angles");
    kf_cut_shape s = {
        .m = parts(L, "m"),
        .n = parts(L, "n"),
        .p = parts(L, axis_name(L, 1)),
        .left = L->problem.op == KOFN_LEFT,
        .points = L->workers,
    };

    if (basis != KOFN_AUTO)
        s.basis = (kf_points)basis;
    else
        s.basis = s.left ? KF_CIRCLE : KF_QUATERNION;
    if (s.basis == KF_CIRCLE && angles != KOFN_AUTO)
        s.points = (size_t)angles;
    complete(&s, vum_of(L, k), k->polydot);
    return s;
}

/* Adds one part to an axis.  False, and no change, if `answers` could then no
 * longer decode. */
static bool step(const kofn_layout *L, const kind *k, kf_cut_shape *s,
                 size_t *axis, size_t answers)
{
    ++*axis;
    complete(s, vum_of(L, k), k->polydot);
    if (kf_answers(s) <= answers)
        return true;
    --*axis;
    complete(s, vum_of(L, k), k->polydot);
    return false;
}

/* Points are known to be accurate up to this number of answers.  A larger
 * number must be given explicitly. */
#define PROVEN 100

/* Chooses the cuts that are not given, the coarsest side first.  They are as
 * fine as possible while three quarters of the workers can decode. */
static void choose_sizes(const kofn_layout *L, const kind *k, kf_cut_shape *s)
{
    size_t n = L->workers, answers = n - kf_code_spare(n);
    size_t *axis[] = {&s->m, &s->p, &s->n};
    bool open[3];

    if (s->basis != KF_QUATERNION)
        answers = kf_min(answers, PROVEN);
    for (size_t i = 0; i < 3; i++)
        open[i] = k->cuts[i] && kofn_arg(L, axis_name(L, i)) == KOFN_AUTO &&
                  (i != 1 || L->problem.p > 1);
    for (;;) {
        size_t least = 3;

        for (size_t i = 0; i < 3; i++)
            if (open[i] && (least == 3 || *axis[i] < *axis[least]))
                least = i;
        if (least == 3)
            break;
        open[least] =
            *axis[least] < 10000 && step(L, k, s, axis[least], answers);
    }
    for (size_t i = 0; i < 3; i++)
        if (k->cuts[i])
            kofn_arg_choose(L, axis_name(L, i), (long)*axis[i]);
}

/* Refuses a cut and names one that works: the finest side is made coarser until
 * it fits. */
static kofn_status refuse_size(const kofn_layout *L, const kind *k,
                               const kf_cut_shape *s)
{
    size_t n = L->workers, need = kf_answers(s);
    const char *cut = axis_name(L, 1);
    kf_cut_shape t = *s;

    while (kf_answers(&t) > n) {
        size_t *most = t.m >= t.p && t.m >= t.n ? &t.m
                       : t.p >= t.n             ? &t.p
                                                : &t.n;
        --*most;
        complete(&t, vum_of(L, k), k->polydot);
    }
    if (!k->cuts[0])
        return kofn_say(KOFN_INVAL,
                        "%s: n = %zu needs %zu answers and there are %zu "
                        "workers; n = %zu would fit, or %zu workers",
                        k->name, s->n, need, n, t.n, need);
    if (!k->cuts[2])
        return kofn_say(
            KOFN_INVAL,
            "%s: m = %zu and %s = %zu need %zu answers and there are %zu "
            "workers; m = %zu and %s = %zu would fit, or %zu workers",
            k->name, s->m, cut, s->p, need, n, t.m, cut, t.p, need);
    return kofn_say(KOFN_INVAL,
                    "%s: m = %zu, n = %zu and %s = %zu need %zu answers and "
                    "there are %zu workers; m = %zu, n = %zu and %s = %zu "
                    "would fit, or %zu workers",
                    k->name, s->m, s->n, cut, s->p, need, n, t.m, t.n, cut, t.p,
                    need);
}

/* ---- how many are enough ------------------------------------------------- */

/* Returns the larger number of answers of A B and B A, because the blocks of A
 * serve both. */
static size_t most_answers(const kofn_layout *L, const kind *k, kf_cut_shape s)
{
    size_t K = s.K;

    s.left = !s.left;
    if (kofn_arg(L, "q") != KOFN_AUTO)
        s.p = parts(L, input_axis(L, s.left));
    complete(&s, vum_of(L, k), k->polydot);
    return kf_max(K, s.K);
}

static kofn_status settle_angles(kofn_layout *L, const kind *k, kf_cut_shape *s)
{
    size_t n = L->workers, most;
    long given = kofn_arg(L, "angles");

    if (s->basis != KF_CIRCLE)
        return given == KOFN_AUTO
                   ? KOFN_OK
                   : kofn_say(KOFN_INVAL,
                              "%s: angles = %ld goes with basis=circle",
                              k->name, given);
    if (given == KOFN_AUTO) {
        most = most_answers(L, k, *s);
        s->points = n <= most + 10 ? n : most + 6;
    }
    if (s->points < s->K || s->points > n)
        return kofn_say(KOFN_INVAL,
                        "%s: angles = %zu must be in %zu..%zu, from the "
                        "answers needed to the workers",
                        k->name, s->points, s->K, n);
    kofn_arg_choose(L, "angles", (long)s->points);
    L->threshold = kf_points_threshold(n, s->points, s->K);
    return KOFN_OK;
}

/* ---- a layout ------------------------------------------------------------ */

kofn_status kf_schemes_tables(kofn_layout *L, const kf_cut_shape *s)
{
    size_t inner = s->left ? s->m : s->n;

    L->cut[0] = (kofn_cut){s->m, s->n};
    L->cut[1] = s->left ? (kofn_cut){s->p, inner} : (kofn_cut){inner, s->p};
    L->symbols = s->K;
    L->wants = s->kept * s->p;
    L->grid_rows = s->left ? s->p : s->m;
    if (s->sum == 1)
        return KOFN_OK;
    L->W = kofn_layout_table(L->wants, L->symbols);
    if (!L->W)
        return KOFN_NOMEM;
    kf_points_wants(s, L->W);
    return KOFN_OK;
}

kofn_status kf_schemes_khatri_rao(kofn_layout *L, const kf_cut_shape *s)
{
    L->max_seats = SIZE_MAX;
    L->components = 4;
    L->cut[0].rows = L->grid_rows = 4 * s->m;
    L->cut[1].cols = s->p;
    L->symbols = L->wants = 4 * s->K;
    return KOFN_OK;
}

static kofn_status layout(kofn_layout *L, const kind *k)
{
    kf_cut_shape s = shape_of(L, k);
    size_t n = L->workers;
    const char *why;

    if (L->problem.op == KOFN_MATVEC && s.p > 1)
        return kofn_say(KOFN_INVAL,
                        "%s: p = %zu, but the input of a matvec is one "
                        "column; ask for p = 1 or use matmul",
                        k->name, s.p);
    choose_sizes(L, k, &s);
    if (kf_answers(&s) > n)
        return refuse_size(L, k, &s);
    why = kf_points_refuse(&s);
    if (why)
        return kofn_say(KOFN_INVAL, "%s: %s", k->name, why);
    L->seats = L->max_seats = n;
    L->enough = kf_answers(&s);
    kofn_arg_choose(L, "basis", (long)s.basis);
    TRY(settle_angles(L, k, &s));
    if (s.basis == KF_QUATERNION)
        return kf_schemes_khatri_rao(L, &s);
    if (s.basis == KF_COMPLEX) {
        L->components = 2;
        L->inner = s.p * s.sum > 1 ? 2 : 1;
        /* A complex answer counts twice, because the symbols are real.  But
         * half of the answers are far worse conditioned than all. */
        L->threshold = kf_min(s.K, n);
    }
    return kf_schemes_tables(L, &s);
}

/* ---- systematic: quaternions x reals ------------------------------------- */

/* Makes B's coefficients: random signs and magnitudes in (1/2, 1), from the
 * exact dyadic numbers of quaternions, four at a time.  A coefficient near 0
 * would make a seat useless for all products with that column of B. */
static void real_row(const kofn_layout *L, size_t seat, size_t p, double *row)
{
    for (size_t b = 0; b < p; b += 4) {
        double q[16];
        uint64_t seed = kf_state64(L->seed, (uint64_t)(b / 4 + 1));
        kf_family four = {KF_BASIS_QUATERNION, L->seats, 1, 0, seed, NULL};

        kf_basis_rows(&four, seat, q);
        for (size_t i = 0; i < 4 && b + i < p; i++)
            row[b + i] = (q[4 * i] + (q[4 * i] > 0 ? 1 : -1)) / 2;
    }
}

/* Makes the rows of a seat.  Product (i, k) is at seat i + m k.  The loss of
 * several products of one row block leaves a real system, which is worse.  So
 * they are not neighbours. */
kofn_status kf_schemes_khatri_rao_seat(const kofn_layout *L,
                                       const kf_cut_shape *s, size_t seat,
                                       double *E0, double *E1, double *G)
{
    size_t width = 4 * s->m;

    if (seat < s->K) {
        for (size_t l = 0; l < 4; l++)
            E0[l * width + 4 * (seat % s->m) + l] = 1;
        if (E1)
            E1[seat / s->m] = 1;
    } else {
        kf_family rows = {
            KF_BASIS_QUATERNION, L->seats, s->m, 0, L->seed, NULL};

        kf_basis_rows(&rows, seat, E0);
        if (E1)
            real_row(L, seat, s->p, E1);
    }
    kf_code_outer(4, width, s->p, E0, E1, G);
    return KOFN_OK;
}

static kofn_status seat_of(const kofn_layout *L, const kind *k, size_t seat,
                           double *E0, double *E1, double *G)
{
    kf_cut_shape s = shape_of(L, k);

    return s.basis == KF_QUATERNION
               ? kf_schemes_khatri_rao_seat(L, &s, seat, E0, E1, G)
               : kf_points_seat(L, &s, seat, E0, E1, G);
}

/* ---- the schemes --------------------------------------------------------- */

/* A scheme: the sides of m, p and n that it cuts, and whether the products of
 * blocks keep apart, as in PolyDot.  A side that is not cut is one part: matdot
 * is gpd with m = p = 1. */
#define PRESET(which, m, p, n, dot, about, source)                             \
    static const kind which = {#which, {m, p, n}, dot};                        \
    static kofn_status which##_layout(kofn_layout *L)                          \
    {                                                                          \
        return layout(L, &which);                                              \
    }                                                                          \
    static kofn_status which##_seat(const kofn_layout *L, size_t seat,         \
                                    double *E0, double *E1, double *G)         \
    {                                                                          \
        return seat_of(L, &which, seat, E0, E1, G);                            \
    }                                                                          \
    const kofn_scheme kf_##which = {                                           \
        .size = sizeof(kofn_scheme),                                           \
        .name = #which,                                                        \
        .summary = about,                                                      \
        .cite = source,                                                        \
        .ops = KOFN_MATVEC | KOFN_MATMUL | KOFN_LEFT | KOFN_STREAM,            \
        .params = which##_params,                                              \
        .layout = which##_layout,                                              \
        .seat = which##_seat,                                                  \
    }

PRESET(polynomial, true, true, false, false,
       "A B with rows of A and columns of B cut; any m p answers",
       "Yu et al. 2017, arXiv:1705.10464");
PRESET(matdot, false, false, true, false,
       "A B cut along the sum; fewest answers, 2n-1, each full size",
       "Dutta et al. 2018, arXiv:1801.10292");
PRESET(polydot, true, true, true, true,
       "A B cut along all sides; any m p (2n-1) answers",
       "Dutta et al. 2018, arXiv:1801.10292");
PRESET(gpd, true, true, true, false,
       "A B cut along all sides; any m n p + n - 1 answers",
       "Dutta et al. 2018, arXiv:1811.10751; Yu et al. 2018, arXiv:1801.07487");
