/* suspect.c -- locating corrupt results by their syndromes.
 *
 * All entries of a result lie or are honest together.  So with Y = G X + E,
 * E zero but on the rows of a few nodes T, and parities H with H G = 0,
 *
 *     S = H Y = H_T E_T.
 *
 * Honest results leave rounding in S and nothing else; that is tested first
 * and nearly always the end of it.  Otherwise nodes are suspended, that is
 * struck from H, until the others agree:
 *
 *   1. Any q columns of H are independent, so a column of H lies in the span
 *      of the columns of S only if its node is corrupt, or by accident.  A
 *      node's lie can be estimated from that without knowing who else is: by
 *      the Capon estimate 1 / (h' (S S' + noise)^-1 h), which for an honest
 *      node is as small as the noise.  Those who stand out are suspended, the
 *      strongest first; nothing has to be counted, and no rank decided.
 *   2. Lies that depend on each other span too little to hold their columns
 *      one by one.  Then a single column of S is explained: guess as many
 *      nodes as can be struck until the liars are among them, which shows, and
 *      reduce them (decoding by information sets).
 *
 * Who is suspended is not yet guilty.  Every one is let back in unless that
 * makes the results disagree, and then it is proved that they are corrupt
 * (certain.c). Only what passes that is a verdict: it does not rest on how the
 * suspicion arose.
 *
 * The span of S is what finds the directions of radio sources, by its rank
 * (Schmidt, "Multiple emitter location and signal parameter estimation", 1986)
 * or without (Capon, "High-resolution frequency-wavenumber spectrum analysis",
 * 1969).  2 is Prange, "The use of information sets in decoding cyclic codes",
 * 1962.
 *
 * Owns its state within a call of kf_suspect; evidence is borrowed.  It may
 * locate nobody without the proof of certain.c, and does not know which worker
 * sat where.
 */
#include "syndrome.h"

#include <float.h>

/* Large syndromes are not exact either. */
#define ROUNDING (8 * 0x1p-52)
/* A node stands out whose lie is this share of what raises the alarm. */
#define STANDS_OUT 0.5
/* Each attempt's alarm, by the one before; and attempts. */
#define SLACK 8
#define ATTEMPTS 4
/* Columns that are guessed at; multiply-adds that may go into guesses, and into
 * one column of what is left of them; and guesses for each that is needed to
 * have all of as many liars in it as the evidence can tell, so that none is
 * likely missed. */
#define COLUMNS_TRIED 4
#define GUESSING 6e8
#define STRIKE 100 /* takes as long as so many of them at least */
#define GUESSING_SHARE 0.8
#define TIMES_OVER 10
/* Multiply-adds that may go into proofs of an attempt, where nobody is located
 * without one, and where somebody may be. */
#define PROVING 2e9
#define TRYING 3e7

typedef struct state {
    const kf_evidence *e;
    size_t nodes, lanes;
    kf_syndromes base, work, trial;
    const double *Y;   /* out of range rows are zero                      */
    double alarm;      /* of this attempt                         */
    double *allowance; /* per column: alarm, and rounding         */
    uint8_t *out_of_range, *held; /* per node; who is suspended              */
    uint8_t *accused, *certain;
    size_t out_of_range_count;
    kf_spectrum spectrum;
    kf_spectrum whole; /* of all, if q is theirs                  */
    kf_proof proof;
    double *power;         /* per node: how strongly it may be corrupt */
    uint32_t *order;       /* nodes, largest power first              */
    uint32_t *pick, *best; /* nodes of a guess, then the others       */
    double *v;             /* q                                       */
    kf_fit fit;
    double budget; /* for guesses                             */
    size_t told;   /* liars that so much evidence can tell    */
    kf_arrays arrays;
} state;

/* ---- setting up ---------------------------------------------------------- */

static kofn_status set_up(state *s, const kf_evidence *e)
{
    *s = (state){.e = e,
                 .nodes = e->nodes,
                 .lanes = e->lanes,
                 .alarm = e->alarm,
                 .budget = GUESSING};
    s->allowance = kf_arrays_new(&s->arrays, e->columns, sizeof *s->allowance);
    s->out_of_range = kf_arrays_new(&s->arrays, e->nodes, 1);
    s->held = kf_arrays_new(&s->arrays, e->nodes, 1);
    kf_syndromes_new(&s->base, &s->arrays, e, s->allowance);
    TRY(kf_arrays_status(&s->arrays));
    memset(s->held, 0, e->nodes);
    return KOFN_OK;
}

/* Sets up the state that only a disagreement needs. */
static kofn_status set_up_search(state *s)
{
    kf_arrays *a = &s->arrays;

    s->accused = kf_arrays_new(a, s->nodes, 1);
    s->certain = kf_arrays_new(a, s->nodes, 1);
    s->power = kf_arrays_table(a, s->nodes, 1);
    s->order = kf_arrays_new(a, s->nodes, sizeof *s->order);
    s->pick = kf_arrays_new(a, s->nodes, sizeof *s->pick);
    s->best = kf_arrays_new(a, s->nodes, sizeof *s->best);
    s->v = kf_arrays_new(a, s->e->q, sizeof *s->v);
    kf_syndromes_new(&s->work, a, s->e, s->allowance);
    kf_syndromes_new(&s->trial, a, s->e, s->allowance);
    kf_spectrum_new(&s->spectrum, a, s->e);
    kf_spectrum_new(&s->whole, a, s->e);
    kf_fit_new(&s->fit, a, s->e);
    kf_proof_new(&s->proof, a, s->e);
    TRY(kf_arrays_status(a));
    memset(s->certain, 0, s->nodes);
    /* An order even of those who were never ranked: what is small enough to be
     * let be is let be before anybody is. */
    for (uint32_t n = 0; n < s->nodes; n++)
        s->order[n] = n;
    return KOFN_OK;
}

/* Finds results that are no number, or larger than any honest result can be:
 * they need no algebra, and would drown all else. */
static kofn_status find_out_of_range(state *s)
{
    size_t each = s->lanes * s->e->columns;
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

/* Nodes that can be struck with a parity left to say that the rest agree. */
static size_t room(const kf_syndromes *t)
{
    return t->q == 0 ? 0 : (t->q - 1) / t->lanes;
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

/* The Capon estimate of every node that is not struck. */
static void rank_nodes(state *s, const kf_spectrum *p)
{
    double least = kf_spectrum_level(p, s->e->noise);

    for (size_t n = 0; n < s->nodes; n++) {
        s->power[n] = struck(s, n) ? -1 : 0;
        for (size_t l = 0; l < s->lanes && !struck(s, n); l++) {
            double sum = 0;

            kf_code_get_column(&s->work, n * s->lanes + l, s->v);
            for (size_t k = 0; k < p->q; k++) {
                double x = kf_code_dot(p->U + k * p->q, s->v, p->q);

                sum += x * x / (p->value[k] * p->value[k] + least * least);
            }
            s->power[n] = fmax(s->power[n], sum > 0 ? 1 / sum : HUGE_VAL);
        }
    }
    sort_by_power(s);
}

/* Suspend those who stand out, the strongest first, until the rest agree; false
 * when nobody does. */
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

/* Nodes of which any so many have independent columns: where a code has groups,
 * or copies, a few more explain anything that is wrong in one. */
static size_t independent(const state *s, const kf_syndromes *t)
{
    size_t struck = s->out_of_range_count;

    for (size_t i = 0; i < s->nodes; i++)
        struck += s->held[i] && t == &s->work;
    return kf_min(t->q / t->lanes, s->e->over - kf_min(s->e->over, struck));
}

/* Guess until there is an explanation of column c by no more than half of the
 * results over, which is the only one then, or until it is time to stop; the
 * smallest goes to best[].  Its size, 0 for none.
 *
 * More than half can be, as lies are not made to mislead; but they may be round
 * numbers, and the columns of H no strangers to each other.  So two nodes more
 * have to be left to bear witness. */
static size_t guess(state *s, const kf_syndromes *t, size_t c, size_t alive)
{
    size_t q = t->q, most = independent(s, t), least = 0;
    size_t want = kf_min(room(t), kf_max(most, 1) - 1);
    double one = sqrt((double)q) + KF_TAIL, limit = s->allowance[c] * one;
    double cost = (double)(want * s->lanes * (q * want * s->lanes + STRIKE));
    size_t few = kf_min(s->told, want);
    double sets =
        kf_code_sets(alive, want) / kf_code_sets(alive - few, want - few);
    kf_budget b = {cost,
                   fmin(GUESSING_SHARE * s->budget, TIMES_OVER * cost * sets)};
    double best = HUGE_VAL;

    s->budget -= b.left;
    kf_fit_of(&s->fit, t, c);
    for (; want > 0 && want < alive &&
           kf_fit_choose(&s->fit, s->pick, alive, want, limit, &b);
         b.left -= cost) {
        size_t n = kf_fit_reduce(&s->fit, s->pick, want, limit);
        double left = kf_fit_left(&s->fit, s->pick, n);

        b.left -= (double)want * cost;
        if (least == 0 || n < least || (n == least && left < best)) {
            memcpy(s->best, s->pick, n * sizeof *s->best);
            least = n;
            best = left;
        }
        if (2 * least <= most && best <= s->e->noise * one)
            break;
    }
    s->budget += fmax(b.left, 0);
    return 2 * least <= most || least + 2 <= most ? least : 0;
}

/* Suspend those who made column c of a table, if guessing finds out; false when
 * it does not, or they are already. */
static bool explain_column(state *s, const kf_syndromes *t, size_t c)
{
    size_t alive = 0, n, news = 0;

    for (uint32_t i = 0; i < s->nodes; i++)
        if (!s->out_of_range[i] && (!s->held[i] || t == &s->base))
            s->pick[alive++] = i;
    n = guess(s, t, c, alive);
    for (size_t i = 0; i < n; i++) {
        uint32_t node = s->best[i];

        if (s->held[node])
            continue;
        s->held[node] = 1;
        kf_syndromes_strike(&s->work, node);
        news++;
    }
    return news > 0;
}

/* Suspends nodes that explain one column, the loudest column first. */
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
        /* Nodes that are struck already may explain more than they cost. */
        if (explain_column(s, &s->work, c) ||
            (s->work.q < s->base.q && explain_column(s, &s->base, c)))
            return true;
        below = loudest;
    }
    return false;
}

/* ---- the verdict --------------------------------------------------------- */

/* Liars that can be located when what they send spans so many directions: t are
 * where t - directions + 1 + max(t, liars) <= over (math/errors.md 2.3). */
static size_t can_tell(const state *s, size_t directions)
{
    size_t over = s->e->over + kf_max(directions, 1) - 1;
    size_t alone = over - kf_min(over, s->e->liars);

    return kf_max(alone <= s->e->liars ? alone : over / 2, 1);
}

/* The spectrum of what is left; each attempt begins with that of all. */
static const kf_spectrum *spectrum_of_work(state *s, bool begins)
{
    kf_spectrum *p = begins ? &s->whole : &s->spectrum;

    if (!begins || p->q != s->base.q)
        kf_spectrum_of(p, &s->work, s->e, s->Y);
    return p;
}

/* Suspend until the rest agree. */
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
        if (rank > room(&s->work) * s->lanes)
            return KOFN_CORRUPT; /* so many lie that nobody is left to tell */
        s->told = can_tell(s, kf_ceil_div(rank, s->lanes));
        rank_nodes(s, p);
        if (!suspend_strongest(s) && !suspend_by_columns(s))
            return KOFN_CORRUPT;
    }
    return KOFN_OK;
}

/* All that are held, but one; nodes for: but none. */
static void strike_held(state *s, kf_syndromes *t, size_t but)
{
    kf_syndromes_copy(t, &s->base);
    for (size_t n = 0; n < s->nodes; n++)
        if (s->held[n] && n != but)
            kf_syndromes_strike(t, n);
}

/* Let back in who makes no difference, the weakest first; how many stay.
 * power[] is then how much difference they make. */
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

/* Lists the nodes that are held in pick[]. */
static void list_held(state *s)
{
    size_t n = 0;

    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->held[i])
            s->pick[n++] = i;
}

/* Could those who are only doubted explain what the others leave by accident,
 * that is, do so many random nodes come near enough to all its directions? */
static bool by_accident(state *s, size_t doubted)
{
    kf_spectrum *p = &s->spectrum;
    double level, dims, chance;

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

/* The norm that the nodes held leave of all columns together, which bounds what
 * they leave of any combination of columns. */
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

/* Name those who are needed and certain to lie, whoever the liars are, as long
 * as there are no more of them than are held or may do as they like.  The
 * others who are held are only left out, for which there must be results
 * enough: those left have to show the lies of all liars who are not located. */
static kofn_status confirm_liars(state *s, size_t most, size_t *count)
{
    kf_spectrum *p = &s->spectrum;
    size_t n = clear_innocent(s), m, odd = s->out_of_range_count;
    size_t over = s->e->over - odd, liars = kf_max(odd + n, s->e->liars) - odd;
    size_t promised = s->e->promised - kf_min(s->e->promised, odd);
    double apart;

    *count = 0;
    memset(s->certain, 0, s->nodes);
    if (n == 0)
        return KOFN_OK;
    if (odd + n > most)
        return KOFN_CORRUPT;
    list_held(s);
    s->proof.conspire = s->e->liars;
    s->proof.strict = s->e->promised <= s->e->liars;
    s->proof.budget = s->proof.strict ? PROVING : TRYING;
    kf_spectrum_rotate(p, &s->base, s->e, s->Y, &m);
    apart = kf_spectrum_level(p, loudest_allowance(s)) + unexplained(s);
    if (!kf_proof_of(&s->proof, &s->base, p->C, m, s->pick, n))
        return KOFN_CORRUPT;
    for (size_t j = 0; j < n; j++)
        if (kf_proof_certain(&s->proof, j, liars, promised, over, apart)) {
            s->certain[s->pick[j]] = 1;
            ++*count;
        }
    TRY(kf_arrays_status(&s->arrays));
    if (*count == n)
        return KOFN_OK;
    if (n - *count + liars > over ||
        (n - *count + promised > over && by_accident(s, n - *count)))
        return KOFN_CORRUPT;
    return KOFN_OK;
}

/* A bound on lies in a column of parities that passed: no more than what is
 * left of it, this loud, and the rounding of the others (math/errors.md 5.1).
 */
static double unseen(const state *s, const kf_syndromes *t,
                     double syndrome_norm)
{
    return kf_code_unseen(loudest_allowance(s), t->q) *
           (syndrome_norm + s->e->alarm / s->alarm);
}

/* Liars who are more than half of the results over, and agree on something,
 * could as well be the honest ones: workers that return zeros, or the answer
 * of the round before, are right about another input.  So the accused are
 * heard: nobody is located when some K + 1 of them agree. */
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
    s->whole.q = 0; /* that of all is another */
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

/* Lies hardly above the alarm may show and not give their workers away.  Rather
 * than fail for their sake further attempts let them be, and say so: the floor
 * is that much higher. */
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
 * syndromes, and only if that is too large the search for who is wrong. */
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
