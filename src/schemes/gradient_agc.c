/* gradient_agc.c -- sums of gradients with messages that adapt to the number of
 * stragglers.  Each worker sends segments of p/lam numbers one after the other
 * until all can be stopped.  With s stragglers that is after lam/(d-s)
 * segments, for every s.
 *
 *     agc     Cao, Yan, Tang, Han, "Adaptive gradient coding", 2021.
 *     g-agc   agc in groups of d workers, section VI: agc with groups=n/d.
 *
 * There are three ways to mix the segments:
 *
 *     staircase    The construction of the paper (gradient_linked.c).
 *     decoupled    The same without links between submessages.  Each
 *                  submessage alone cancels the missing seats, and the
 *                  segments are mixed at random.
 *     sequential   The segments are not mixed but chosen.  A submessage of
 *                  round r has d-r segments; the last r columns of M cancel
 *                  r stragglers.  After rounds 0..r-1 from all but r workers,
 *                  one segment of each submessage is missing.  Round r
 *                  consists of these segments.
 *
 * Its state belongs to the layout and is freed with it.  The rows are made
 * before it is known which submessages will arrive. */
#include "gcd.h"
#include "gradient.h"

/* Number of draws, and of multiply-adds to compare them. */
#define DRAWS 8
#define COMPARING 2e8
/* Real unknowns of one decoding system; more take seconds. */
#define UNKNOWNS 900
/* Default number of segments if several are possible. */
#define PIECES 60
/* Most submessages that the staircase can link if a code has more than d
 * workers.  Each submessage enlarges rounding errors: a thousandfold in five to
 * ten. */
#define LINKED 24
/* Up to ALL_SETS sets of seats are all tried; beyond that, SOME_SETS random
 * ones. */
#define ALL_SETS 2000
#define SOME_SETS 50

typedef enum form { SEQUENTIAL, STAIRCASE, DECOUPLED } form;

#define LAM_PARAM                                                              \
    "lam", KOFN_AUTO, 1, 100000,                                               \
        "segments of a vector, sent one by one; auto: lcm(1..d), if "          \
        "decoupled the best up to 60",                                         \
        NULL
#define FORM_PARAM                                                             \
    "form", KOFN_AUTO, 0, 0,                                                   \
        "sequential: most accurate; staircase: the paper's, for d <= 3; "      \
        "decoupled: for any lam; auto: sequential for d <= 6",                 \
        "sequential|staircase|decoupled"
#define DRAWS_PARAM                                                            \
    "draws", KOFN_AUTO, 1, 1000,                                               \
        "random forms: random draws, from which the best is taken; auto: up "  \
        "to 8",                                                                \
        NULL

static const kofn_param params[] = {
    {KF_D_GROUPS_PARAM}, {KF_GROUPS_PARAM}, {LAM_PARAM},
    {FORM_PARAM},        {DRAWS_PARAM},     {0},
};

static const kofn_param g_params[] = {
    {KF_D_PARAM}, {LAM_PARAM}, {FORM_PARAM}, {DRAWS_PARAM}, {0},
};

/* ---- sequential ---------------------------------------------------------- */

/* Lists the segments of round r: one of each earlier submessage.  Segments of
 * late submessages of round 0 come first, because most workers lack them. */
static size_t collect(const kf_dual *u, size_t submessages, size_t r,
                      size_t *list)
{
    size_t d = u->d, count = 0;

    for (size_t origin = u->units / d; origin-- > 0;)
        for (size_t t = 0; t < submessages; t++) {
            size_t unit = u->slot[t * d + d - r];

            if (unit / d == origin)
                list[count++] = unit;
        }
    return count;
}

/* Assigns segments to submessages; units is a multiple of each of 1..d. */
static kofn_status fill_slots(kf_dual *u)
{
    size_t d = u->d, submessages = u->units / d, *list;

    TRY_NEW(list, u->units);
    for (size_t e = 0; e < u->units; e++)
        u->slot[e] = e;
    for (size_t r = 1; r < d; r++) {
        size_t count = collect(u, submessages, r, list), each = d - r;

        for (size_t e = 0; e < count; e++)
            u->slot[(submessages + e / each) * d + e % each] = list[e];
        submessages += count / each;
    }
    kofn_free(list);
    return KOFN_OK;
}

static kofn_status make_sequential(const kofn_layout *L, kf_dual *u,
                                   uint64_t seed)
{
    TRY(kf_dual_new(u, true));
    TRY(fill_slots(u));
    TRY(kf_dual_fill(u, kofn_arg(L, "draws"), seed));
    return kf_dual_level(u);
}

/* ---- random -------------------------------------------------------------- */

/* Draws the random numbers of a code; M exists unless submessages are linked.
 */
static kofn_status draw(kf_dual *u, uint64_t seed)
{
    TRY(u->linked ? kf_dual_draw(u, seed) : kf_dual_random_P(u, seed));
    return kf_dual_level(u);
}

/* ---- how good a draw is (math/gradients.md 6.1) -------------------------- */

/* Iterates over sets of `count` of n seats: all in order, or some. */
typedef struct sets {
    size_t n, count, tried;
    bool all;
    uint64_t state;
    size_t *seat; /* ascending */
} sets;

/* Returns C(n, k), or `most` if that is smaller. */
static size_t binomial(size_t n, size_t k, size_t most)
{
    double c = 1;

    for (size_t i = 0; i < k; i++)
        c = c * (double)(n - i) / (double)(i + 1);
    return c < (double)most ? (size_t)(c + 0.5) : most;
}

static size_t sets_of(const kf_dual *u, bool *all)
{
    size_t sum = 0;

    for (size_t s = 0; s < u->d; s++)
        sum += binomial(u->n, s, ALL_SETS + 1);
    *all = sum <= ALL_SETS;
    return *all ? sum : u->d * (SOME_SETS + u->n);
}

static void random_seats(sets *s)
{
    for (size_t i = 0, taken = 0; taken < s->count; i++)
        if (kf_mix64(s->state++) % (s->n - i) < s->count - taken)
            s->seat[taken++] = i;
}

static bool next_in_order(sets *s)
{
    size_t i = s->count;

    while (i > 0 && s->seat[i - 1] == s->n - s->count + i - 1)
        i--;
    if (i == 0)
        return false;
    s->seat[i - 1]++;
    for (; i < s->count; i++)
        s->seat[i] = s->seat[i - 1] + 1;
    return true;
}

/* Moves to the next set; false after the last.  If not all sets are tried, runs
 * of seats come first, then random sets. */
static bool next_set(sets *s)
{
    size_t at = s->tried++;

    if (s->all && at)
        return next_in_order(s);
    if (s->count == 0)
        return at == 0;
    for (size_t i = 0; i < s->count; i++)
        s->seat[i] = s->all ? i : (at + i) % s->n;
    if (!s->all && at >= s->n)
        random_seats(s);
    return s->all || at < s->n + SOME_SETS;
}

static bool among(const sets *s, size_t i)
{
    for (size_t k = 0; k < s->count; k++)
        if (s->seat[k] == i)
            return true;
    return false;
}

/* Raises *gain to max_z |D_z| / sqrt n for this set of missing seats.  All
 * others have sent the submessages that decoding needs. */
static kofn_status gain_without(const kf_dual *u, const sets *s,
                                uint32_t *answers, double *D, double *gain)
{
    size_t submessages = kf_ceil_div(u->units, u->d - s->count);
    size_t count = 0, rows = u->units * u->field, wide;
    kofn_status st;

    for (size_t i = 0; i < u->n; i++)
        for (size_t t = 0; t < submessages && !among(s, i); t++)
            answers[count++] = (uint32_t)(i * u->submessages + t);
    wide = count * u->field;
    memset(D, 0, rows * wide * sizeof *D);
    st = kf_dual_decode(u, answers, count, 0, D, wide);
    if (st == KOFN_TOOFEW)
        *gain = HUGE_VAL;
    for (size_t z = 0; z < rows && !st; z++) {
        double sum = kf_code_sum(D + z * wide, D + z * wide, wide);

        *gain = fmax(*gain, sqrt(sum / (double)u->n));
    }
    return st == KOFN_TOOFEW ? KOFN_OK : st;
}

/* Returns in *gain the largest row norm of D over sqrt(n) (math/gradients.md
 * 6.1).  It is the worst over all, or many, sets of up to d-1 missing seats.
 * The other seats have sent the submessages that decoding needs.  Only one of
 * `every` sets is examined. */
static kofn_status worst_gain(const kf_dual *u, uint64_t seed, size_t every,
                              double *gain)
{
    size_t most = u->n * u->submessages, met = 0;
    kf_arrays scratch = {0};
    uint32_t *answers = kf_arrays_new(&scratch, most, sizeof *answers);
    double *D = kf_arrays_table(&scratch, u->units * u->field, most * u->field);
    sets s = {.n = u->n, .state = seed};
    kofn_status st;

    s.seat = kf_arrays_new(&scratch, u->d, sizeof *s.seat);
    st = kf_arrays_status(&scratch);
    sets_of(u, &s.all);
    *gain = 0;
    for (s.count = 0; s.count < u->d && !st; s.count++) {
        s.tried = 0;
        while (!st && next_set(&s))
            if (met++ % every == 0)
                st = gain_without(u, &s, answers, D, gain);
    }
    kf_arrays_free(&scratch);
    return st;
}

/* Returns the approximate number of multiply-adds of one decoder, for making
 * the equations and solving them. */
static double work_of(const kf_dual *u)
{
    double d = (double)(u->d * u->field), n = (double)(u->n * u->field);
    double units = (double)(u->units * u->field);

    return (u->linked ? units : 1) * d * d * units * n +
           10 * units * units * units;
}

/* Returns the number of draws. One set in *every is examined. */
static size_t draws_for(const kf_dual *u, long given, size_t *every)
{
    bool all;
    double most = COMPARING / work_of(u), total = (double)sets_of(u, &all);
    double draws = given != KOFN_AUTO ? (double)given
                   : most < DRAWS     ? floor(fmax(most, 1))
                                      : DRAWS;

    *every = (size_t)fmax(1, fmin(total, ceil(draws * total / most)));
    return (size_t)draws;
}

static kofn_status make_random(const kofn_layout *L, kf_dual *u, uint64_t seed)
{
    size_t every, draws = draws_for(u, kofn_arg(L, "draws"), &every), best = 0;
    double least = HUGE_VAL, gain;
    kofn_status st = kf_dual_new(u, false);

    if (!st && !u->linked)
        st = kf_dual_fill(u, KOFN_AUTO, seed);

    for (size_t k = 0; k < draws && draws > 1 && !st; k++) {
        st = draw(u, kf_state64(seed, k));
        if (!st)
            st = worst_gain(u, seed, every, &gain);
        if (!st && gain < least) {
            least = gain;
            best = k;
        }
        if (st == KOFN_UNSTABLE) /* singular: try the next draw */
            st = KOFN_OK;
    }
    return st ? st : draw(u, kf_state64(seed, best));
}

/* ---- plans --------------------------------------------------------------- */

static size_t lcm_up_to(size_t d)
{
    size_t lcm = 1;

    for (size_t k = 2; k <= d && lcm < 100000; k++)
        lcm *= k / kf_gcd(lcm, k);
    return lcm;
}

/* Returns a lam up to PIECES that is nearly optimal for all k up to d.  If k
 * seats answer for a part, each sends ceil(lam / k) segments; the optimum is
 * 1/k of the vector.  The value lcm(1..d) is optimal for all k but may be too
 * large. */
static size_t lam_near_best(size_t d)
{
    size_t best = PIECES;
    double least = HUGE_VAL;

    for (size_t lam = PIECES; lam > 0; lam--) {
        double most = 0;

        for (size_t k = 1; k <= d; k++)
            most = fmax(most, (double)(kf_ceil_div(lam, k) * k) / (double)lam);
        if (most <= least) { /* on a tie, fewer segments */
            least = most;
            best = lam;
        }
    }
    return best;
}

static form choose_form(const kofn_layout *L, size_t d)
{
    long given = kofn_arg(L, "form");
    form f = given != KOFN_AUTO       ? (form)given
             : lcm_up_to(d) <= PIECES ? SEQUENTIAL
                                      : DECOUPLED;

    kofn_arg_choose(L, "form", (long)f);
    return f;
}

static kofn_status choose_lam(const kofn_layout *L, const char *who, size_t d,
                              form f, size_t *lam)
{
    long given = kofn_arg(L, "lam");
    size_t lcm = lcm_up_to(d);

    *lam = given != KOFN_AUTO ? (size_t)given
           : f == DECOUPLED   ? lam_near_best(d)
                              : lcm;
    if (f == SEQUENTIAL && *lam % lcm && *lam < lcm)
        return kofn_say(KOFN_INVAL,
                        "%s: lam = %zu must be divisible by 1..%zu, as %zu "
                        "is; or ask for form=decoupled",
                        who, *lam, d, lcm);
    if (f == SEQUENTIAL && *lam % lcm)
        return kofn_say(KOFN_INVAL,
                        "%s: lam = %zu must be divisible by 1..%zu, as %zu "
                        "and %zu are; or ask for form=decoupled",
                        who, *lam, d, *lam / lcm * lcm, (*lam / lcm + 1) * lcm);
    if (*lam * kf_gradient_best_field(d) > UNKNOWNS)
        return kofn_say(KOFN_INVAL,
                        "%s: lam = %zu segments take long to decode; ask for "
                        "form=decoupled with lam <= %zu, or for d <= 6",
                        who, *lam, UNKNOWNS / kf_gradient_best_field(d));
    kofn_arg_choose(L, "lam", (long)*lam);
    return KOFN_OK;
}

/* Refuses sizes that take too much memory: V and M of the staircase grow with
 * the square of lam and of the workers. */
static kofn_status check_staircase(const kofn_layout *L, const char *who,
                                   size_t d, size_t lam, size_t groups)
{
    size_t n = L->workers;
    double size = (double)lam * (double)lam * (double)n * (double)n;

    if (lam > LINKED && n > groups * d)
        return kofn_say(KOFN_INVAL,
                        "%s: form=staircase loses all digits with lam = %zu; "
                        "ask for form=decoupled, or for lam <= 12",
                        who, lam);
    if (size * (double)(d + 1) <= 4e7)
        return KOFN_OK;
    return kofn_say(KOFN_INVAL,
                    "%s: form=staircase with lam = %zu on %zu workers is "
                    "too large; ask for form=decoupled or a smaller lam",
                    who, lam, n);
}

static kofn_status make_code(const kofn_layout *L, kf_dual *u, form f,
                             size_t field, uint64_t seed)
{
    u->units = u->submessages = (size_t)kofn_arg(L, "lam");
    u->field = field;
    u->linked = f == STAIRCASE;
    return f == SEQUENTIAL ? make_sequential(L, u, seed)
                           : make_random(L, u, seed);
}

static kofn_status layout(kofn_layout *L, const kf_preset *p)
{
    form f;
    size_t d, groups, lam, field;
    kf_gradient *g;

    TRY(kf_gradient_groups(L, p, &d, &groups));
    f = choose_form(L, d);
    TRY(choose_lam(L, p->name, d, f, &lam));
    if (f == STAIRCASE)
        TRY(check_staircase(L, p->name, d, lam, groups));
    g = kf_gradient_new(L, d, groups);
    if (!g)
        return KOFN_NOMEM;
    field = f == STAIRCASE ? 1 : kf_gradient_best_field(d);
    TRY(kf_gradient_sizes(L, p->name, lam, field, lam));
    TRY(make_code(L, &g->code[1], f, field, L->seed));
    if (g->codes > 1)
        TRY(make_code(L, &g->code[0], f, field, kf_state64(L->seed, 1000)));
    /* worst case: submessages in which every seat cancels a straggler */
    L->threshold = (L->seats - d + 1) * lam;
    L->enough =
        g->codes * lam + (L->seats - g->codes * d) * kf_ceil_div(lam, d);
    L->whole = true;
    return KOFN_OK;
}

KF_PRESET(agc, "agc", false, false, params, kf_gradient_decode,
          "sums of gradients; messages grow with the stragglers there are",
          "Cao, Yan, Tang, Han 2021, arXiv:2006.04845");
KF_PRESET(g_agc, "g-agc", false, true, g_params, kf_gradient_decode,
          "agc in groups of d; any d-1 stragglers of each group",
          "Cao, Yan, Tang, Han 2021, arXiv:2006.04845");
