/* gradient.c -- sums of gradients that tolerate stragglers.  A worker sends one
 * message.
 *
 *     gc      Tandon, Lei, Dimakis, Karampatziakis, "Gradient coding: avoiding
 *             stragglers in distributed learning", 2017.  A worker has
 *             d = s + 1 parts; a message has the length of the vector.
 *     cgc     Ye, Abbe, "Communication-computation efficient gradient coding",
 *             2018.  A worker has d = s + m parts; a message has 1/m of the
 *             length.
 *     g-cgc   cgc in groups of d workers: cgc with groups=n/d.
 *
 * gc is cgc with m = 1.  The constructions of the papers can be chosen.  The
 * default is an accurate construction (gradient_dual.c, docs/gradients.md).
 *
 * Its state belongs to the layout and is freed with it.  Any seats may be
 * missing. */
#include "gradient.h"

#define DRAWS_PARAM                                                            \
    "draws", KOFN_AUTO, 1, 10000,                                              \
        "quaternions: random draws; the best is taken; auto: up to 20", NULL

typedef enum construction {
    DUAL,
    DFT,
    QUATERNION,
    FIRST_OF_PAPERS
} construction;

static const kofn_param gc_params[] = {
    {KF_D_GROUPS_PARAM},
    {KF_GROUPS_PARAM},
    {"construction", DUAL, 0, 0,
     "dual: dft for d <= 8, else quaternion; as published: cyclic (random), "
     "polynomial, fractional (d divides the workers)",
     "dual|dft|quaternion|cyclic|polynomial|fractional"},
    {DRAWS_PARAM},
    {0},
};
enum { CYCLIC = FIRST_OF_PAPERS, POLYNOMIAL, FRACTIONAL };

#define S_PARAM                                                                \
    "s", KOFN_AUTO, 0, 1000, "stragglers tolerated; auto: d - m", NULL
#define M_PARAM                                                                \
    "m", KOFN_AUTO, 1, 1000,                                                   \
        "segments of a vector: messages are 1/m as long; auto: d - s, or 2",   \
        NULL

static const kofn_param cgc_params[] = {
    {KF_D_GROUPS_PARAM},
    {KF_GROUPS_PARAM},
    {S_PARAM},
    {M_PARAM},
    {"construction", DUAL, 0, 0,
     "dual: dft for d <= 8, else quaternion; as published: vandermonde, random",
     "dual|dft|quaternion|vandermonde|random"},
    {DRAWS_PARAM},
    {0},
};
enum { VANDERMONDE = FIRST_OF_PAPERS, RANDOM };

static const kofn_param g_cgc_params[] = {
    {KF_D_PARAM},
    {S_PARAM},
    {M_PARAM},
    {"construction", DUAL, 0, 0, "dual: dft for d <= 8, else quaternion",
     "dual|dft|quaternion"},
    {DRAWS_PARAM},
    {0},
};

/* ---- the accurate codes -------------------------------------------------- */

/* Makes a dual.  The wanted segments are the first m columns of M.  So the last
 * s columns, which do not affect the sum, can cancel any s missing seats. */
static kofn_status make_dual(const kofn_layout *L, kf_dual *u, size_t m,
                             size_t field, uint64_t seed)
{
    kofn_status st;

    u->units = m;
    u->submessages = 1;
    u->field = field;
    st = kf_dual_new(u, true);
    for (size_t q = 0; q < m && !st; q++)
        u->slot[q] = q;
    if (!st)
        st = kf_dual_fill(u, kofn_arg(L, "draws"), seed);
    return st ? st : kf_dual_level(u);
}

static kofn_status dual_layout(kofn_layout *L, const char *who, size_t d,
                               size_t groups, size_t m, construction kind)
{
    kf_gradient *g = kf_gradient_new(L, d, groups);
    size_t field = kind == DUAL || d == 1 ? kf_gradient_best_field(d)
                   : kind == DFT          ? 2
                                          : 4;

    TRY(g ? kf_gradient_sizes(L, who, m, field, 1) : KOFN_NOMEM);
    TRY(make_dual(L, &g->code[1], m, field, L->seed));
    if (g->codes > 1)
        TRY(make_dual(L, &g->code[0], m, field, kf_state64(L->seed, 1000)));
    L->threshold = L->seats - (d - m);
    L->enough = L->seats - g->codes * (d - m);
    return KOFN_OK;
}

/* ---- as published -------------------------------------------------------- */

/* Chebyshev points times two, in an order that separates neighbours; or the
 * points of the paper in ascending order: +-(1 + h/2), and 0 if n is odd. */
static void points(const kofn_layout *L, bool chebyshev, double *x)
{
    size_t n = L->seats;

    for (size_t i = 0; i < n; i++) {
        double from = (double)i - ((double)n - 1) / 2;

        if (chebyshev)
            x[i] = 2 * kf_code_chebyshev_point(i, n);
        else if (n % 2)
            x[i] = from == 0 ? 0 : (from + (from > 0 ? 1 : -1)) / 2;
        else
            x[i] = (from + (from > 0 ? 1.5 : -1.5)) / 2;
    }
}

static kofn_status polynomial(kofn_layout *L, size_t d, size_t m,
                              bool chebyshev, double *E)
{
    double *x;
    kofn_status st;

    TRY_NEW(x, L->seats);
    points(L, chebyshev, x);
    st = kf_gradient_paper_polynomial(L->seats, d, m, x, E);
    kofn_free(x);
    return st;
}

/* In each group, d seats compute the same d parts and answer their plain sum.
 */
static void fractional(size_t n, size_t d, double *E)
{
    size_t groups = n / d;

    for (size_t i = 0; i < n; i++)
        for (size_t q = 0; q < d; q++)
            E[i * n + i % groups * d + q] = 1;
}

static kofn_status paper_layout(kofn_layout *L, const char *who, size_t d,
                                size_t m, kf_gradient **out)
{
    *out = kf_gradient_new(L, d, 1);
    TRY(*out ? kf_gradient_sizes(L, who, m, 1, 1) : KOFN_NOMEM);
    L->enough = L->threshold = L->seats - (d - m);
    return KOFN_OK;
}

static kofn_status table_layout(kofn_layout *L, const char *who, size_t d,
                                size_t m, kf_gradient **out)
{
    TRY(paper_layout(L, who, d, m, out));
    (*out)->E = kofn_layout_table(L->seats, L->symbols);
    return (*out)->E ? KOFN_OK : KOFN_NOMEM;
}

static kofn_status random_layout(kofn_layout *L, size_t d, size_t m)
{
    kf_gradient *g;
    kf_dual *u;

    TRY(paper_layout(L, "cgc", d, m, &g));
    u = &g->code[1];
    u->units = m;
    u->submessages = u->field = 1;
    u->linked = true;
    TRY(kf_dual_new(u, false));
    return kf_dual_draw(u, L->seed);
}

/* ---- gc ------------------------------------------------------------------ */

static kofn_status refuse_fractional(size_t n, size_t d)
{
    size_t less = d;

    while (n % less)
        less--;
    return kofn_say(KOFN_INVAL,
                    "gc: construction=fractional wants d to divide the "
                    "workers and %zu does not divide %zu; d = %zu does, and "
                    "the other constructions take any d",
                    d, n, less);
}

static kofn_status gc_of_papers(kofn_layout *L, size_t d, long kind)
{
    size_t n = L->workers;
    kf_gradient *g;

    if (kind == FRACTIONAL && n % d)
        return refuse_fractional(n, d);
    TRY(table_layout(L, "gc", d, 1, &g));
    if (kind == CYCLIC)
        return kf_gradient_paper_cyclic(n, d, L->seed, g->E);
    if (kind == POLYNOMIAL)
        return polynomial(L, d, 1, true, g->E);
    fractional(n, d, g->E);
    L->enough = n / d;
    return KOFN_OK;
}

/* Returns the group of d parts that a seat of fractional repetition sums up. */
static size_t group_of(const kofn_layout *L, size_t seat)
{
    return seat % (L->seats / (size_t)kofn_arg(L, "d"));
}

static kofn_status gc_decode(const kofn_layout *L, const uint32_t *seats,
                             size_t n, double *D)
{
    if (kofn_arg(L, "construction") != FRACTIONAL)
        return kf_gradient_decode(L, seats, n, D);
    return kf_code_first_of_each(L, L->seats / (size_t)kofn_arg(L, "d"),
                                 group_of, seats, n, D);
}

/* ---- cgc ----------------------------------------------------------------- */

/* Finds m from d = s + m; the caller may give any two of the three. */
static kofn_status split(const kofn_layout *L, const char *who, size_t d,
                         size_t *m)
{
    long s = kofn_arg(L, "s"), given = kofn_arg(L, "m");

    if (given != KOFN_AUTO)
        *m = (size_t)given;
    else if (s != KOFN_AUTO)
        *m = (size_t)s < d ? d - (size_t)s : 0;
    else
        *m = d < 2 ? 1 : 2;
    if (*m < 1)
        return kofn_say(KOFN_INVAL,
                        "%s: s = %ld stragglers may be all %zu workers of a "
                        "part; ask for s <= %zu",
                        who, s, d, d - 1);
    if (*m > d)
        return kofn_say(KOFN_INVAL,
                        "%s: m = %zu exceeds d = %zu; ask for m <= %zu", who,
                        *m, d, d);
    if (s != KOFN_AUTO && (size_t)s + *m > d)
        return kofn_say(KOFN_INVAL,
                        "%s: s = %ld and m = %zu need d >= %zu, not %zu; "
                        "ask for s <= %zu or m <= %zu",
                        who, s, *m, (size_t)s + *m, d, d - *m, d - (size_t)s);
    kofn_arg_choose(L, "m", (long)*m);
    kofn_arg_choose(L, "s", (long)(d - *m)); /* a smaller s would waste parts */
    return KOFN_OK;
}

static kofn_status cgc_of_papers(kofn_layout *L, size_t d, size_t m, long kind)
{
    kf_gradient *g;

    if (kind == RANDOM)
        return random_layout(L, d, m);
    TRY(table_layout(L, "cgc", d, m, &g));
    return polynomial(L, d, m, false, g->E);
}

/* ---- the schemes --------------------------------------------------------- */

static kofn_status layout(kofn_layout *L, const kf_preset *p)
{
    long kind = kofn_arg(L, "construction");
    size_t d, groups, m = 1;

    TRY(kf_gradient_groups(L, p, &d, &groups));
    if (!p->whole)
        TRY(split(L, p->name, d, &m));
    if (kind < FIRST_OF_PAPERS)
        return dual_layout(L, p->name, d, groups, m, (construction)kind);
    if (groups > 1)
        return kofn_say(KOFN_INVAL,
                        "%s: groups = %zu goes with construction=dual, dft or "
                        "quaternion; published constructions are for groups "
                        "= 1",
                        p->name, groups);
    return p->whole ? gc_of_papers(L, d, kind) : cgc_of_papers(L, d, m, kind);
}

KF_PRESET(gc, "gc", true, false, gc_params, gc_decode,
          "sums of gradients; any d-1 stragglers, whole messages",
          "Tandon et al. 2017, arXiv:1612.03301");
KF_PRESET(cgc, "cgc", false, false, cgc_params, kf_gradient_decode,
          "sums of gradients; any d-m stragglers, messages 1/m as long",
          "Ye, Abbe 2018, arXiv:1802.03475");
KF_PRESET(g_cgc, "g-cgc", false, true, g_cgc_params, kf_gradient_decode,
          "cgc in groups of d; any d-m stragglers of each group",
          "Cao, Yan, Tang, Han 2021, arXiv:2006.04845");
