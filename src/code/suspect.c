/* suspect.c -- locating corrupt results by their syndromes.
 *
 * A node is a seat, and all its results are assumed corrupt or honest together.
 * So Y = G X + E, with E zero except on the rows of a few corrupt nodes T.
 * With parities H, H G = 0,
 *
 *     S = H Y = H_T E_T.
 *
 * Honest results leave only rounding in S.  That is tested first and is nearly
 * always true.  Otherwise nodes are suspended, that is, struck from H, until
 * the rest agree:
 *
 *   1. Any q columns of H are independent.  So a column of H is in the span of
 *      the columns of S only if its node is corrupt, or by accident.  The
 *      Capon estimate 1 / (h' (S S' + noise)^-1 h) measures a node's error
 *      without knowledge of the other corrupt nodes.  For an honest node it is
 *      of the size of the noise.  Nodes with large estimates are suspended,
 *      the largest first.  No number of errors and no rank must be decided.
 *   2. Errors that depend on each other span too few dimensions for step 1.
 *      Then a single column of S is explained (information set decoding).
 *      Random sets of nodes, of the largest size that can be struck, are tried
 *      until a set contains all corrupt nodes, which the test shows.  Then the
 *      set is reduced.
 *
 * Suspicion is no proof.  Each suspended node is let back in if the results
 * then still agree.  For the others, certain.c must prove that they are
 * corrupt.  Only a proof is a verdict; it does not depend on how the suspicion
 * arose.
 *
 * The span of S is also used to find the directions of radio sources, with its
 * rank (Schmidt, "Multiple emitter location and signal parameter estimation",
 * 1986) or without (Capon, "High-resolution frequency-wavenumber spectrum
 * analysis", 1969).  Step 2 is Prange, "The use of information sets in decoding
 * cyclic codes", 1962.
 *
 * Owns its state within a call of kf_suspect; evidence is borrowed.  It never
 * locates a node without the proof of certain.c, and knows nodes, not workers.
 */
#include "syndrome.h"

#include <assert.h>
#include <float.h>

/* Relative rounding of the syndromes themselves. */
#define ROUNDING (8 * 0x1p-52)
/* A node is suspended if its estimated error exceeds this fraction of the
 * alarm. */
#define STANDS_OUT 0.5
/* Growth of the alarm from one attempt to the next; and number of attempts. */
#define SLACK 8
#define ATTEMPTS 4
/* COLUMNS_TRIED: columns to explain by guesses.  GUESSING: multiply-adds for
 * all guesses.  GUESSING_SHARE: fraction of the remaining budget for one
 * column.  TIMES_OVER: guesses, as a multiple of the expected number until a
 * guess contains all corrupt nodes that can be located. */
#define COLUMNS_TRIED 4
#define GUESSING 6e8
#define STRIKE 100 /* least cost of a column in a guess */
#define GUESSING_SHARE 0.8
#define TIMES_OVER 10
/* Multiply-adds for the proofs of an attempt: if a proof needs all sets, and if
 * faults are assumed not to conspire. */
#define PROVING 2e9
#define TRYING 3e7

/* Guesses at the corrupt nodes. */
typedef struct guesses {
    uint32_t *pick, *best; /* nodes of a guess first, then the others */
    double *v;             /* q                                       */
    double budget;         /* for guesses */
} guesses;

typedef struct state {
    const kf_evidence *e;
    size_t nodes, components;
    kf_syndromes base, work, trial;
    const double *Y;              /* rows of nodes out of range are zero */
    double alarm;                 /* of this attempt                         */
    double *allowance;            /* per column: alarm plus rounding */
    uint8_t *out_of_range, *held; /* per node; held: suspended */
    uint8_t *accused, *certain;
    size_t out_of_range_count;
    kf_spectrum spectrum;
    kf_spectrum whole; /* of all nodes, if its q is that of base */
    kf_proof proof;
    double *power;   /* per node: the estimate of its error */
    uint32_t *order; /* nodes, largest power first              */
    kf_fit fit;
    size_t locatable; /* corrupt nodes that this evidence can locate */
    kf_arrays arrays;
    guesses guess;
} state;

/* ---- setting up ---------------------------------------------------------- */

static kofn_status set_up(state *s, const kf_evidence *e)
{
    assert(e->components > 0);
    *s = (state){.e = e,
                 .nodes = e->nodes,
                 .components = e->components,
                 .alarm = e->alarm,
                 .guess.budget = GUESSING};
    s->allowance = kf_arrays_new(&s->arrays, e->columns, sizeof *s->allowance);
    s->out_of_range = kf_arrays_new(&s->arrays, e->nodes, 1);
    s->held = kf_arrays_new(&s->arrays, e->nodes, 1);
    kf_syndromes_new(&s->base, &s->arrays, e, s->allowance);
    TRY(kf_arrays_status(&s->arrays));
    memset(s->held, 0, e->nodes);
    return KOFN_OK;
}

/* Allocates the state that is needed only for a disagreement. */
static kofn_status set_up_search(state *s)
{
    assert(!s->guess.pick);
    kf_arrays *a = &s->arrays;

    s->accused = kf_arrays_new(a, s->nodes, 1);
    s->certain = kf_arrays_new(a, s->nodes, 1);
    s->power = kf_arrays_table(a, s->nodes, 1);
    s->order = kf_arrays_new(a, s->nodes, sizeof *s->order);
    s->guess.pick = kf_arrays_new(a, s->nodes, sizeof *s->guess.pick);
    s->guess.best = kf_arrays_new(a, s->nodes, sizeof *s->guess.best);
    s->guess.v = kf_arrays_new(a, s->e->q, sizeof *s->guess.v);
    kf_syndromes_new(&s->work, a, s->e, s->allowance);
    kf_syndromes_new(&s->trial, a, s->e, s->allowance);
    kf_spectrum_new(&s->spectrum, a, s->e);
    kf_spectrum_new(&s->whole, a, s->e);
    kf_fit_new(&s->fit, a, s->e);
    kf_proof_new(&s->proof, a, s->e);
    TRY(kf_arrays_status(a));
    memset(s->certain, 0, s->nodes);
    /* An order for nodes that were never ranked: attempts may accept small
     * errors before any ranking. */
    for (uint32_t n = 0; n < s->nodes; n++)
        s->order[n] = n;
    return KOFN_OK;
}

/* Finds results that are NaN, infinite, or larger than any honest result.  They
 * need no algebra, and would hide all other errors. */
static kofn_status find_out_of_range(state *s)
{
    size_t each = s->components * s->e->columns;
    double *zeroed;

    for (size_t n = 0; n < s->nodes; n++) {
        const double *y = s->e->Y + n * each;
        size_t odd = 0;

        for (size_t i = 0; i < each; i++)
            odd += !(fabs(y[i]) <= s->e->bound && fabs(y[i]) <= DBL_MAX);
        s->out_of_range[n] = odd > 0;
        s->out_of_range_count += s->out_of_range[n];
    }
    s->Y = s->e->Y;
    if (s->out_of_range_count == 0)
        return KOFN_OK;
    s->Y = zeroed = kf_arrays_table(&s->arrays, s->nodes, each);
    TRY(kf_arrays_status(&s->arrays));
    for (size_t n = 0; n < s->nodes; n++)
        if (!s->out_of_range[n])
            memcpy(zeroed + n * each, s->e->Y + n * each,
                   each * sizeof *zeroed);
    return KOFN_OK;
}

static kofn_status fill_base(state *s)
{
    kf_syndromes *t = &s->base;

    assert(s->Y);
    TRY(kf_syndromes_fill(t, s->e->H, s->Y));
    for (size_t n = 0; n < s->nodes; n++)
        if (s->out_of_range[n])
            kf_syndromes_strike(t, n);
    for (size_t c = 0; c < s->e->columns; c++)
        s->allowance[c] = s->e->alarm + ROUNDING * kf_code_view(t, t->rows + c);
    return KOFN_OK;
}

static double loudest_allowance(const state *s)
{
    double top = 0;

    for (size_t c = 0; c < s->e->columns; c++)
        top = fmax(top, s->allowance[c]);
    return top;
}

static bool agree(const kf_syndromes *t)
{
    return kf_code_syndrome_norm(t) <= 1;
}

/* Returns the number of nodes that can be struck while one parity is left to
 * confirm that the rest agree. */
static size_t room(const kf_syndromes *t)
{
    assert(t->components > 0);
    return t->q == 0 ? 0 : (t->q - 1) / t->components;
}

static bool struck(const state *s, size_t node)
{
    return s->out_of_range[node] || s->held[node];
}

/* ---- those who stand out ------------------------------------------------- */

static void sort_by_power(state *s)
{
    for (uint32_t n = 0; n < s->nodes; n++) {
        size_t j = n;

        for (; j > 0 && s->power[s->order[j - 1]] < s->power[n]; j--)
            s->order[j] = s->order[j - 1];
        s->order[j] = n;
    }
}

/* Computes the Capon estimate of every node that is not struck. */
static void rank_nodes(state *s, const kf_spectrum *p)
{
    double least = kf_spectrum_level(p, s->e->noise);

    for (size_t n = 0; n < s->nodes; n++) {
        s->power[n] = struck(s, n) ? -1 : 0;
        for (size_t l = 0; l < s->components && !struck(s, n); l++) {
            double sum = 0;

            kf_code_get_column(&s->work, n * s->components + l, s->guess.v);
            for (size_t k = 0; k < p->q; k++) {
                double x = kf_code_dot(p->U + k * p->q, s->guess.v, p->q);

                sum += x * x / (p->value[k] * p->value[k] + least * least);
            }
            s->power[n] = fmax(s->power[n], sum > 0 ? 1 / sum : HUGE_VAL);
        }
    }
    sort_by_power(s);
}

/* Suspends nodes, the largest estimate first, while the rest disagree, the
 * estimate is large enough and a parity is left.  Returns true if it suspended
 * any; the rest may still disagree. */
static bool suspend_strongest(state *s)
{
    double level = STANDS_OUT * s->alarm * (sqrt((double)s->work.q) + KF_TAIL);
    size_t n = kf_min(room(&s->work), s->nodes), i = 0;

    while (i < n && s->power[s->order[i]] > level * level && !agree(&s->work)) {
        s->held[s->order[i]] = 1;
        kf_syndromes_strike(&s->work, s->order[i++]);
    }
    return i > 0;
}

/* ---- guessing ------------------------------------------------------------ */

/* Returns a number of nodes such that any set of this size has independent
 * columns.  In a code with groups or copies, larger sets may explain any error
 * within one group. */
static size_t independent(const state *s, const kf_syndromes *t)
{
    size_t struck = s->out_of_range_count;

    for (size_t i = 0; i < s->nodes; i++)
        struck += s->held[i] && t == &s->work;
    return kf_min(t->q / t->components,
                  s->e->over - kf_min(s->e->over, struck));
}

/* Searches for a set of nodes that explains column c.  It stops when a set of
 * at most half of the spare results is found, because that set is unique.  It
 * also stops when the budget is used.  best[] receives the smallest set;
 * returns its size, 0 if there is none.
 *
 * A set may have more than half if errors are not malicious.  But such errors
 * may be round numbers, and columns of H may be related.  So two more nodes
 * must be left as witnesses. */
static size_t guess(state *s, const kf_syndromes *t, size_t c, size_t alive)
{
    size_t q = t->q, most = independent(s, t), least = 0;
    size_t want = kf_min(room(t), kf_max(most, 1) - 1);
    double one = sqrt((double)q) + KF_TAIL, limit = s->allowance[c] * one;
    double cost =
        (double)(want * s->components * (q * want * s->components + STRIKE));
    size_t few = kf_min(s->locatable, want);
    double sets =
        kf_code_sets(alive, want) / kf_code_sets(alive - few, want - few);
    kf_budget b = {
        cost, fmin(GUESSING_SHARE * s->guess.budget, TIMES_OVER * cost * sets)};
    double best = HUGE_VAL;

    assert(c < t->columns);
    s->guess.budget -= b.left;
    kf_fit_of(&s->fit, t, c);
    for (; want > 0 && want < alive &&
           kf_fit_choose(&s->fit, s->guess.pick, alive, want, limit, &b);
         b.left -= cost) {
        size_t n = kf_fit_reduce(&s->fit, s->guess.pick, want, limit);
        double left = kf_fit_left(&s->fit, s->guess.pick, n);

        b.left -= (double)want * cost;
        if (least == 0 || n < least || (n == least && left < best)) {
            memcpy(s->guess.best, s->guess.pick, n * sizeof *s->guess.best);
            least = n;
            best = left;
        }
        if (2 * least <= most && best <= s->e->noise * one)
            break;
    }
    s->guess.budget += fmax(b.left, 0);
    return 2 * least <= most || least + 2 <= most ? least : 0;
}

/* Suspends the nodes that explain column c.  False if none is found, or all are
 * suspended already. */
static bool explain_column(state *s, const kf_syndromes *t, size_t c)
{
    size_t alive = 0, n, news = 0;

    assert(c < s->e->columns);
    for (uint32_t i = 0; i < s->nodes; i++)
        if (!s->out_of_range[i] && (!s->held[i] || t == &s->base))
            s->guess.pick[alive++] = i;
    n = guess(s, t, c, alive);
    assert(n <= alive);
    for (size_t i = 0; i < n; i++) {
        uint32_t node = s->guess.best[i];

        if (s->held[node])
            continue;
        s->held[node] = 1;
        kf_syndromes_strike(&s->work, node);
        news++;
    }
    return news > 0;
}

/* Suspends nodes that explain one column, starting with the largest column. */
static bool suspend_by_columns(state *s)
{
    double below = HUGE_VAL;

    for (int i = 0; i < COLUMNS_TRIED; i++) {
        double loudest = 1;
        size_t c = s->e->columns;

        for (size_t k = 0; k < s->e->columns; k++) {
            double x = kf_code_column_syndrome_norm(&s->work, k);

            if (x > loudest && x < below) {
                loudest = x;
                c = k;
            }
        }
        if (c == s->e->columns)
            return false;
        /* Nodes that are already struck may explain more than they cost. */
        if (explain_column(s, &s->work, c) ||
            (s->work.q < s->base.q && explain_column(s, &s->base, c)))
            return true;
        below = loudest;
    }
    return false;
}

/* ---- the verdict --------------------------------------------------------- */

/* Returns the largest number of corrupt nodes that can be located if their
 * errors span this number of directions, but at least 1.  It is the largest t
 * with t - directions + 1 + max(t, liars) <= over (math/errors.md 2.3). */
static size_t can_tell(const state *s, size_t directions)
{
    size_t over = s->e->over + kf_max(directions, 1) - 1;
    size_t alone = over - kf_min(over, s->e->liars);

    return kf_max(alone <= s->e->liars ? alone : over / 2, 1);
}

/* Returns the spectrum of the remaining nodes; each attempt starts with the
 * spectrum of all. */
static const kf_spectrum *spectrum_of_work(state *s, bool begins)
{
    kf_spectrum *p = begins ? &s->whole : &s->spectrum;

    if (!begins || p->q != s->base.q)
        kf_spectrum_of(p, &s->work, s->e, s->Y);
    return p;
}

/* Suspends nodes until the rest agree. */
static kofn_status suspend(state *s)
{
    const kf_spectrum *p;
    bool begins = true;
    size_t rank;

    kf_syndromes_copy(&s->work, &s->base);
    while (s->work.q == 0 || !agree(&s->work)) {
        if (room(&s->work) == 0)
            return KOFN_CORRUPT;
        p = spectrum_of_work(s, begins);
        begins = false;
        rank = kf_spectrum_above(p, kf_spectrum_level(p, s->e->alarm));
        if (rank > room(&s->work) * s->components)
            return KOFN_CORRUPT; /* no witness is left */
        s->locatable = can_tell(s, kf_ceil_div(rank, s->components));
        rank_nodes(s, p);
        if (!suspend_strongest(s) && !suspend_by_columns(s))
            return KOFN_CORRUPT;
    }
    return KOFN_OK;
}

/* Strikes all suspended nodes except `but`; nodes: no exception. */
static void strike_held(state *s, kf_syndromes *t, size_t but)
{
    kf_syndromes_copy(t, &s->base);
    for (size_t n = 0; n < s->nodes; n++)
        if (s->held[n] && n != but)
            kf_syndromes_strike(t, n);
}

/* Lets nodes back in if the rest then still agree, the weakest first.  Returns
 * the number of nodes that stay suspended.  power[] becomes the disagreement
 * that each node causes. */
static size_t clear_innocent(state *s)
{
    size_t n = 0;

    for (size_t i = s->nodes; i-- > 0;) {
        size_t node = s->order[i];

        if (!s->held[node])
            continue;
        strike_held(s, &s->trial, node);
        s->power[node] = kf_code_syndrome_norm(&s->trial);
        s->held[node] = s->power[node] > 1;
        n += s->held[node];
    }
    return n;
}

/* Lists the suspended nodes in pick[]. */
static void list_held(state *s)
{
    size_t n = 0;

    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->held[i])
            s->guess.pick[n++] = i;
}

/* True if the suspended but unproved nodes could explain the remaining
 * syndromes by accident.  That is, this number of random nodes may come near
 * enough to all directions. */
static bool by_accident(state *s, size_t doubted)
{
    kf_spectrum *p = &s->spectrum;
    double level, dims, chance;

    assert(doubted > 0);
    strike_held(s, &s->trial, s->nodes);
    dims = (double)s->trial.q / (s->e->closed ? 4 : 1);
    kf_syndromes_copy(&s->trial, &s->base);
    for (size_t n = 0; n < s->nodes; n++)
        if (s->certain[n])
            kf_syndromes_strike(&s->trial, n);
    kf_spectrum_of(p, &s->trial, s->e, s->Y);
    level = kf_spectrum_level(p, loudest_allowance(s));
    chance = kf_code_sets(s->nodes, doubted);
    for (size_t i = 0; i < p->q; i++)
        chance *= p->value[i] > level ? pow(level / p->value[i], dims) : 1;
    return chance > KF_ACCIDENT;
}

/* Returns the norm, over all columns, that the suspended nodes leave
 * unexplained.  It bounds what they leave of any combination of columns. */
static double unexplained(state *s)
{
    double all = 0;

    strike_held(s, &s->trial, s->nodes);
    for (size_t c = 0; c < s->e->columns; c++) {
        double left = kf_code_view(&s->trial, s->trial.rows + c);

        all += left * left;
    }
    return sqrt(s->e->closed ? 4 * all : all);
}

/* Locates the suspended nodes that are proved corrupt.  The proof holds for any
 * set of corrupt nodes up to a size: the number suspended, or the number that
 * may be wrong in any way.  The other suspended nodes are only left out.  For
 * them enough results must remain to show the errors of all corrupt nodes that
 * are not located. */
static kofn_status confirm_liars(state *s, size_t most, size_t *count)
{
    kf_spectrum *p = &s->spectrum;
    size_t n = clear_innocent(s), m, odd = s->out_of_range_count;
    size_t over = s->e->over - odd, liars = kf_max(odd + n, s->e->liars) - odd;
    size_t independent = s->e->independent - kf_min(s->e->independent, odd);
    double apart;

    *count = 0;
    memset(s->certain, 0, s->nodes);
    if (n == 0)
        return KOFN_OK;
    if (odd + n > most)
        return KOFN_CORRUPT;
    list_held(s);
    s->proof.conspire = s->e->liars;
    s->proof.strict = s->e->independent <= s->e->liars;
    s->proof.budget = s->proof.strict ? PROVING : TRYING;
    kf_spectrum_rotate(p, &s->base, s->e, s->Y, &m);
    apart = kf_spectrum_level(p, loudest_allowance(s)) + unexplained(s);
    if (!kf_proof_of(&s->proof, &s->base, p->C, m, s->guess.pick, n))
        return KOFN_CORRUPT;
    for (size_t j = 0; j < n; j++)
        if (kf_proof_certain(&s->proof, j, liars, independent, over, apart)) {
            s->certain[s->guess.pick[j]] = 1;
            ++*count;
        }
    TRY(kf_arrays_status(&s->arrays));
    if (*count == n)
        return KOFN_OK;
    if (n - *count + liars > over ||
        (n - *count + independent > over && by_accident(s, n - *count)))
        return KOFN_CORRUPT;
    return KOFN_OK;
}

/* Returns a bound on the errors in a column of parities that passed: the
 * remaining syndrome plus the rounding of the other results (math/errors.md
 * 5.1). */
static double unseen(const state *s, const kf_syndromes *t,
                     double syndrome_norm)
{
    return kf_code_unseen(loudest_allowance(s), t->q) *
           (syndrome_norm + s->e->alarm / s->alarm);
}

/* Fails if the suspended nodes might be the honest ones.  If they are more than
 * half of the spare results and agree with each other, that is possible.
 * Examples are workers that return zeros or the answer of the last round: their
 * results are right for another input.  So no node is located if some K + 1 of
 * the suspended nodes agree. */
static kofn_status hear_accused(state *s)
{
    kofn_status st;
    size_t liars = 0;

    for (size_t n = 0; n < s->nodes; n++)
        liars += s->held[n];
    if (2 * liars <= independent(s, &s->base))
        return KOFN_OK;
    for (size_t n = 0; n < s->nodes; n++) {
        s->accused[n] = s->held[n];
        if (!s->held[n] && !s->out_of_range[n])
            kf_syndromes_strike(&s->base, n);
        s->out_of_range[n] |= !s->held[n];
        s->held[n] = 0;
    }
    s->whole.q = 0; /* the spectrum of all has changed */
    st = s->base.q == 0 ? KOFN_CORRUPT : suspend(s);
    memcpy(s->held, s->accused, s->nodes);
    return st == KOFN_OK ? KOFN_CORRUPT : KOFN_OK;
}

static kofn_status attempt(state *s, size_t most, size_t *liars)
{
    memset(s->held, 0, s->nodes);
    TRY(suspend(s));
    return confirm_liars(s, most, liars);
}

/* Searches for the corrupt nodes.  Errors slightly above the alarm may show a
 * disagreement but not their nodes.  Instead of failing, further attempts
 * accept these errors and report a floor that is higher by the same factor. */
static kofn_status search(state *s, size_t most, size_t *liars, double *level)
{
    kofn_status st;

    TRY(set_up_search(s));
    st = attempt(s, most, liars);
    for (int i = 1; i < ATTEMPTS && st == KOFN_CORRUPT; i++) {
        s->alarm *= SLACK;
        for (size_t c = 0; c < s->e->columns; c++)
            s->allowance[c] *= SLACK;
        st = attempt(s, most, liars);
    }
    if (st)
        return st;
    strike_held(s, &s->trial, s->nodes);
    *level = unseen(s, &s->trial, kf_code_syndrome_norm(&s->trial));
    return hear_accused(s);
}

/* Judges one cell in three steps: results out of range, the norm of the
 * syndromes, and only if that is too large the search for the corrupt nodes. */
static kofn_status examine(state *s, size_t most, uint8_t *bad, size_t *count,
                           double *level)
{
    size_t liars = 0;
    double syndrome_norm;

    TRY(find_out_of_range(s));
    for (size_t n = 0; n < s->nodes; n++)
        bad[n] = s->out_of_range[n] ? KF_LOCATED : KF_HONEST;
    *count = s->out_of_range_count;
    if (s->out_of_range_count > most)
        return KOFN_CORRUPT;
    TRY(fill_base(s));
    if (s->base.q == 0)
        return s->out_of_range_count ? KOFN_CORRUPT : KOFN_OK;
    syndrome_norm = kf_code_syndrome_norm(&s->base);
    if (syndrome_norm <= 1) {
        *level = unseen(s, &s->base, syndrome_norm);
        return KOFN_OK;
    }
    if (s->out_of_range_count == most)
        return KOFN_CORRUPT;
    TRY(search(s, most, &liars, level));
    *count += liars;
    assert(*count <= most);
    for (size_t n = 0; n < s->nodes; n++)
        if (s->held[n])
            bad[n] = s->certain[n] ? KF_LOCATED : KF_DOUBTED;
    return KOFN_OK;
}

kofn_status kf_suspect(const kf_evidence *e, size_t most, uint8_t *bad,
                       size_t *count, double *level)
{
    kofn_status st;
    state s;

    *count = 0;
    *level = HUGE_VAL;
    st = set_up(&s, e);
    if (!st)
        st = examine(&s, most, bad, count, level);
    kf_arrays_free(&s.arrays);
    return st;
}
