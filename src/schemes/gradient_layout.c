/* gradient_layout.c -- plans of gradient codes, of one or several groups.
 *
 * A group of d seats shares d parts; the last group has the remaining seats and
 * parts too (Cao, Yan, Tang, Han, "Adaptive gradient coding", 2021, section
 * VI).  Any d-1 seats of *each* group may be missing.  One group has all seats
 * and any d.
 *
 * Its state, the codes of the groups, belongs to the layout and is freed with
 * it. */
#include "gradient.h"

/* Most numbers in the table that sums up the parts. */
#define TABLE ((size_t)1 << 27)
/* Most numbers in the tables of a code. */
#define CODES ((size_t)1 << 24)
/* A vector of any length may be cut into this number of segments, the most that
 * agc chooses itself.  More segments than the vector has numbers gain nothing
 * and make decoding slow. */
#define PADDED 60

static void free_state(void *state)
{
    kf_gradient *g = state;

    kf_arrays_free(&g->code[0].owned);
    kf_arrays_free(&g->code[1].owned);
    kofn_free(g->E);
    kofn_free(g);
}

kf_gradient *kf_gradient_new(kofn_layout *L, size_t d, size_t groups)
{
    size_t n = L->workers;
    kf_gradient *g = kf_zero(1, sizeof *g);

    if (!g)
        return NULL;
    L->state = g;
    L->free_state = free_state;
    g->d = d;
    g->codes = groups;
    g->code[0].n = g->code[0].d = g->code[1].d = d;
    g->code[1].n = n - (g->codes - 1) * d;
    return g;
}

/* Returns the code of a seat or part, and its first seat in *first. */
static const kf_dual *code_of(const kf_gradient *g, size_t seat, size_t *first)
{
    size_t h = kf_min(seat / g->d, g->codes - 1);

    *first = h * g->d;
    return &g->code[h + 1 == g->codes];
}

kofn_status kf_gradient_sizes(kofn_layout *L, const char *who, size_t units,
                              size_t field, size_t submessages)
{
    const kf_gradient *g = L->state;
    size_t n = L->workers, d = g->d, wants = units * field;

    if (units > L->problem.m && units > PADDED)
        return kofn_say(KOFN_INVAL,
                        "%s: a vector of %zu numbers is not cut into %zu "
                        "segments; ask for at most %zu",
                        who, L->problem.m, units, kf_max(L->problem.m, PADDED));
    if (wants > TABLE / wants / n)
        return kofn_say(KOFN_INVAL,
                        "%s: %zu segments of %zu vectors are too many to "
                        "keep track of; ask for fewer",
                        who, wants, n);
    if (d * field > CODES / field / n / d)
        return kofn_say(KOFN_INVAL,
                        "%s: with d = %zu there is too much to solve on %zu "
                        "workers; ask for a smaller d",
                        who, d, n);
    L->seats = L->max_seats = n;
    L->cut[0] = (kofn_cut){n, 1};
    L->components = field;
    L->wants = wants;
    L->symbols = n * wants;
    L->submessages = submessages;
    return KOFN_OK;
}

/* ---- rows ---------------------------------------------------------------- */

static void paper_row(const kofn_layout *L, const double *E, double *E0,
                      double *G)
{
    for (size_t s = 0; s < L->symbols; s++) {
        G[s] = E[s];
        if (E[s] != 0)
            E0[s / L->wants] = 1;
    }
}

kofn_status kf_gradient_seat(const kofn_layout *L, size_t answer, double *E0,
                             double *E1, double *G)
{
    const kf_gradient *g = L->state;
    size_t seat = answer / L->submessages, first;
    const kf_dual *u = code_of(g, seat, &first);

    (void)E1;
    if (g->E) {
        paper_row(L, g->E + seat * L->symbols, E0, G);
        return KOFN_OK;
    }
    for (size_t q = 0; q < u->d; q++)
        E0[first + (seat - first + q) % u->n] = 1;
    kf_dual_row(u, seat - first, answer % L->submessages, first, L->symbols, G);
    return KOFN_OK;
}

/* Returns the number of answers of code h, which start at answers[at]. */
static size_t answers_of(const kofn_layout *L, size_t h,
                         const uint32_t *answers, size_t at, size_t count)
{
    const kf_gradient *g = L->state;
    size_t end = at;

    while (end < count && (h + 1 == g->codes ||
                           answers[end] < (h + 1) * g->d * L->submessages))
        end++;
    return end - at;
}

/* Decodes only after all groups have enough answers. */
kofn_status kf_gradient_decode(const kofn_layout *L, const uint32_t *answers,
                               size_t count, double *D)
{
    const kf_gradient *g = L->state;
    kofn_status st = KOFN_OK;

    if (g->E)
        return KOFN_UNSUITED; /* use least squares */
    for (int solve = 0; solve < 2; solve++)
        for (size_t h = 0, at = 0, n; h < g->codes && !st; h++, at += n) {
            const kf_dual *u = &g->code[h + 1 == g->codes];
            uint32_t base = (uint32_t)(h * g->d * L->submessages);

            n = answers_of(L, h, answers, at, count);
            st = solve ? kf_dual_decode(u, answers + at, n, base,
                                        D + at * L->components,
                                        count * L->components)
                       : kf_dual_enough(u, answers + at, n, base);
        }
    return st;
}

/* ---- choices ------------------------------------------------------------- */

/* Refuses a number of groups without d: names those next to it that divide the
 * workers. */
static kofn_status refuse_uneven(const char *who, size_t n, size_t groups)
{
    size_t fewer = groups, more = groups, d = n / groups;

    if (groups > n)
        return kofn_say(KOFN_INVAL,
                        "%s: groups = %zu of %zu workers; ask for groups <= "
                        "%zu",
                        who, groups, n, n);
    while (n % fewer)
        fewer--;
    while (n % more)
        more++;
    if (n / d == groups)
        return kofn_say(KOFN_INVAL,
                        "%s: groups = %zu does not divide the %zu workers; "
                        "%zu and %zu do, or give d = %zu too for a last group "
                        "of %zu workers",
                        who, groups, n, fewer, more, d, n - (groups - 1) * d);
    return kofn_say(KOFN_INVAL,
                    "%s: groups = %zu does not divide the %zu workers; %zu "
                    "and %zu do",
                    who, groups, n, fewer, more);
}

/* Refuses d and several groups that contradict each other. */
static kofn_status refuse_both(const char *who, size_t n, size_t d,
                               size_t groups)
{
    if (groups > n || n % groups)
        return kofn_say(KOFN_INVAL,
                        "%s: d = %zu and groups = %zu contradict each other on "
                        "%zu workers; ask for groups = %zu with d = %zu",
                        who, d, groups, n, n / d, d);
    return kofn_say(KOFN_INVAL,
                    "%s: d = %zu and groups = %zu contradict each other on %zu "
                    "workers; d = %zu goes with groups = %zu, and groups = %zu "
                    "with d = %zu",
                    who, d, groups, n, d, n / d, groups, n / groups);
}

kofn_status kf_gradient_groups(const kofn_layout *L, const kf_preset *p,
                               size_t *d, size_t *groups)
{
    size_t n = L->workers;
    long given = kofn_arg(L, "d"), asked = kofn_arg(L, "groups");

    *groups = asked == KOFN_AUTO ? 1 : (size_t)asked;
    if (given == KOFN_AUTO && n % *groups)
        return refuse_uneven(p->name, n, *groups);
    *d = given != KOFN_AUTO ? (size_t)given
         : *groups > 1      ? n / *groups
                            : kf_min(3, n);
    if (*d > n)
        return kofn_say(KOFN_INVAL,
                        "%s: d = %zu parts for each of %zu workers; there "
                        "are as many parts as workers: ask for d <= %zu",
                        p->name, *d, n, n);
    if (*groups > 1 && n / *d != *groups)
        return refuse_both(p->name, n, *d, *groups);
    if (p->groups)
        *groups = n / *d;
    kofn_arg_choose(L, "d", (long)*d);
    return KOFN_OK;
}
