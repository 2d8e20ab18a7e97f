/* averages.c -- kofn-papers rhat: mean times of streams of products, by
 * scheme, and the best parameters; "Coded Sequential Matrix Multiplication For
 * Straggler Mitigation" (Krishnan, Hosseini, Khisti), sections 4 and 5;
 * docs/model.md. */
#include "show.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000000 /* largest parameter */

/* ---- "name:key=value,..." ------------------------------------------------ */

#define NONE (SIZE_MAX - 1) /* not given */

typedef struct words {
    size_t m, p, n, beta, T, lambda, N, W, S;
    bool late;
} words;

static bool is(const char *name, const char *text, size_t n)
{
    return strlen(name) == n && !memcmp(name, text, n);
}

static int set_size(const char *name, const char *key, const char *value,
                    size_t *out)
{
    char *end = NULL;

    if (!strcmp(key, "T") && !strcmp(value, "inf")) {
        *out = RHAT_ENDLESS;
        return 0;
    }
    if (isdigit((unsigned char)*value) && strlen(value) < 10)
        *out = strtoul(value, &end, 10);
    if (end && !*end && *out <= MOST)
        return 0;
    return papers_say(PAPERS_USAGE,
                      "%s: %s=%.40s: give a whole number up to %d%s", name, key,
                      value, MOST, *key == 'T' ? ", or inf" : "");
}

/* Returns 0, or the exit code after a message. Accepts the keys in `takes` and
 * the last three keys, which do not affect time. */
static int parse(const char *name, const char *spec, const char *takes,
                 words *w)
{
    enum { EARLY = 9, IDLE };
    char *const keys[] = {"m", "p", "n",     "beta",  "T",     "lambda", "N",
                          "W", "S", "early", "basis", "plain", "order",  NULL};
    size_t *const at[] = {&w->m,      &w->p, &w->n, &w->beta, &w->T,
                          &w->lambda, &w->N, &w->W, &w->S};
    char copy[200], *text = copy, *value;

    *w = (words){NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 0};
    if ((size_t)snprintf(copy, sizeof copy, "%s", spec) >= sizeof copy)
        return papers_say(PAPERS_USAGE, "%s: %zu bytes of parameters", name,
                          strlen(spec));
    while (*text) {
        const char *word = text;
        int k = getsubopt(&text, keys, &value);

        if (k < 0 || !value || (k < IDLE && !strstr(takes, keys[k])))
            return papers_say(PAPERS_USAGE,
                              "%s has no \"%.40s\" here; it takes %s", name,
                              word, takes);
        if (k < EARLY && set_size(name, keys[k], value, at[k]))
            return PAPERS_USAGE;
        w->late |= k == EARLY && !strcmp(value, "no");
    }
    return 0;
}

/* ---- a scheme ------------------------------------------------------------ */

/* Reads the blocks m, p, n of the operands, or beta, the results that decode
 * (the paper's name). */
static int read_dip(const char *text, rhat_scheme *s)
{
    words w;

    if (parse("dip", text, "m, p, n, beta, T, lambda", &w))
        return PAPERS_USAGE;
    if (w.T == NONE)
        return papers_say(PAPERS_USAGE,
                          "dip needs T, the rounds of delay, or inf");
    if (w.lambda == 0)
        return papers_say(PAPERS_USAGE, "dip: lambda=0: give 1 or more");
    if (w.beta != NONE && (w.m != NONE || w.p != NONE || w.n != NONE))
        return papers_say(PAPERS_USAGE, "dip: give beta or m, p and n");
    if (w.beta == NONE && (w.m == NONE || w.p == NONE))
        return papers_say(PAPERS_USAGE, "dip needs m and p, or beta");
    w.n = w.n == NONE ? 1 : w.n;
    *s = (rhat_scheme){.kind = RHAT_DIP,
                       .parts = w.beta == NONE ? w.m * w.p * w.n : w.beta,
                       .threshold =
                           w.beta == NONE ? w.m * w.p * w.n + w.n - 1 : w.beta,
                       .T = w.T,
                       .lambda = w.lambda == NONE ? 0 : w.lambda};
    return 0;
}

static int read_idip(const papers_args *a, const char *text, rhat_scheme *s)
{
    words w;

    if (strstr(text, "model=bursty"))
        return papers_say(PAPERS_USAGE, "idip: under model=bursty there is no "
                                        "closed form; give N and W");
    if (parse("idip", text, "m, p, N, W, early", &w))
        return PAPERS_USAGE;
    if (w.N == NONE || w.W == NONE)
        return papers_say(PAPERS_USAGE, "idip needs N and W");
    if ((w.m == NONE) != (w.p == NONE) ||
        (w.m != NONE && w.m * w.p + w.N != a->workers * w.W))
        return papers_say(
            PAPERS_USAGE,
            "idip: m p = %zu, and P W - N = %zu x %zu - %zu: they "
            "are to be the same",
            w.m == NONE || w.p == NONE ? 0 : w.m * w.p, a->workers, w.W, w.N);
    *s = (rhat_scheme){.kind = RHAT_IDIP, .N = w.N, .W = w.W, .late = w.late};
    return 0;
}

/* Reads any kofn code with one answer per worker. */
static int read_plan(const papers_args *a, const char *spec, rhat_scheme *s)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 27720, 27720, 27720, KOFN_F64, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;
    kofn_status st = kofn_plan_new(&plan, &pb, spec, a->workers, a->seed);

    if (!st)
        st = kofn_plan_describe(plan, false, &info);
    if (st)
        return papers_say(PAPERS_USAGE, "%s", kofn_errmsg());
    *s = (rhat_scheme){.kind = RHAT_ONCE,
                       .threshold = info.threshold,
                       .parts = (size_t)(1 / info.load + 0.5)};
    kofn_plan_free(plan);
    return 0;
}

static int read_once(const papers_args *a, const char *spec, const char *text,
                     rhat_scheme *s)
{
    words w;

    if (strncmp(spec, "polynomial:S=", 13) != 0)
        return read_plan(a, spec, s);
    if (parse("polynomial", text, "S", &w))
        return PAPERS_USAGE;
    if (w.S >= a->workers)
        return papers_say(PAPERS_USAGE,
                          "polynomial: S=%zu: of %zu workers fewer can be done "
                          "without",
                          w.S, a->workers);
    *s = (rhat_scheme){.kind = RHAT_ONCE, .threshold = a->workers - w.S};
    return 0;
}

static int read_scheme(const papers_args *a, const char *spec, rhat_scheme *s)
{
    static const char *const others[] = {"uncoded", "polynomial", "matdot",
                                         "polydot", "gpd"};
    size_t n = strcspn(spec, ":");
    const char *text = spec + n + (spec[n] == ':');

    if (is("dip", spec, n))
        return read_dip(text, s);
    if (is("idip", spec, n))
        return read_idip(a, text, s);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is(others[i], spec, n))
            return read_once(a, spec, text, s);
    return papers_say(PAPERS_USAGE,
                      "no model of \"%.*s\"; there are dip, idip, uncoded, "
                      "polynomial, matdot, polydot, gpd",
                      (int)(n < 40 ? n : 40), spec);
}

/* ---- output ---------------------------------------------------------------
 */

static json_t *count_json(size_t n)
{
    return n == RHAT_ENDLESS ? json_null() : json_integer((json_int_t)n);
}

/* Leaves out what the kind of scheme does not have. */
static json_t *result_json(const char *spec, const rhat_scheme *s,
                           const rhat_result *r)
{
    json_t *o = papers_pack(
        "scheme:s rhat:f slots:o threshold:z delay:o load:f mean_load:f", spec,
        r->rhat, count_json(r->slots), r->threshold, count_json(r->delay),
        r->load, r->mean_load);

    if (s->kind == RHAT_DIP)
        json_object_update_new(
            o, papers_pack("f_tie:f f_binomial:f", r->f_tie, r->f_binomial));
    if (s->kind == RHAT_IDIP)
        json_object_update_new(
            o, papers_pack("bound_printed:f bound_corrected:f "
                           "exact_fixed_load:f exact_early_finish:f",
                           r->bound_printed, r->bound_corrected,
                           r->exact_fixed_load, r->exact_early_finish));
    return o;
}

static void heading(void)
{
    printf("%-28s %10s %6s %9s %6s %9s %9s\n", "scheme", "R-hat", "delay",
           "threshold", "slots", "load", "mean");
}

static void line(json_t *o)
{
    papers_print(o, "{scheme:-28} {rhat:10.6g} {delay:6} {threshold:9} "
                    "{slots:6} {load:9.4g} {mean_load:9.4g}\n");
}

/* ---- one scheme, or the best of each kind ---------------------------------
 */

static int one(const papers_args *a)
{
    rhat_scheme s;
    rhat_result r;
    int code = read_scheme(a, a->scheme, &s);
    rhat_params q = a->stream;
    json_t *o;

    q.workers = a->workers;
    if (code)
        return code;
    if (rhat_of(&q, &s, &r))
        return papers_say(PAPERS_USAGE, "%s", kofn_errmsg());
    o = result_json(a->scheme, &s, &r);
    if (!a->json) {
        heading();
        line(o);
        if (s.kind == RHAT_DIP)
            papers_print(o, "rounds a product takes without a deadline: "
                            "{f_tie:.10g}; {f_binomial:.10g} if nothing came "
                            "where all are slow\n");
        if (s.kind == RHAT_IDIP)
            papers_print(o, "bound as printed {bound_printed:.6g}, corrected "
                            "{bound_corrected:.6g}\n"
                            "exact, every product carried to its end "
                            "{exact_fixed_load:.6g}, finished early "
                            "{exact_early_finish:.6g}\n");
    }
    return papers_ending(a, o);
}

typedef struct contender {
    const char *name;
    rhat_kind kind;
    bool endless;
    rhat_scheme s;
    rhat_result r;
    char spec[80];
} contender;

static void name_it(const papers_args *a, contender *c)
{
    const rhat_scheme *s = &c->s;
    size_t n = sizeof c->spec;

    if (c->kind == RHAT_ONCE && s->threshold == a->workers)
        snprintf(c->spec, n, "uncoded");
    else if (c->kind == RHAT_ONCE)
        snprintf(c->spec, n, "polynomial:S=%zu", a->workers - s->threshold);
    else if (c->kind == RHAT_IDIP)
        snprintf(c->spec, n, "idip:N=%zu,W=%zu", s->N, s->W);
    else if (c->endless)
        snprintf(c->spec, n, "dip:beta=%zu,T=inf", s->threshold);
    else
        snprintf(c->spec, n, "dip:beta=%zu,T=%zu,lambda=%zu", s->threshold,
                 s->T, s->lambda);
}

static kofn_status find(const papers_args *a, contender *c, bool uncoded)
{
    rhat_params q = a->stream;
    kofn_status st;

    q.workers = a->workers;
    c->s = (rhat_scheme){.kind = c->kind, .threshold = a->workers};
    st = uncoded ? rhat_of(&q, &c->s, &c->r)
                 : rhat_best(&q, c->kind, c->endless ? RHAT_ENDLESS : a->delay,
                             &c->s, &c->r);
    if (!st)
        name_it(a, c);
    return st;
}

/* A scheme without a deadline is reported, but is not among the best. */
static int all(const papers_args *a)
{
    contender c[] = {
        {.name = "uncoded", .kind = RHAT_ONCE},
        {.name = "polynomial", .kind = RHAT_ONCE},
        {.name = "dip", .kind = RHAT_DIP},
        {.name = "idip", .kind = RHAT_IDIP},
        {.name = "dip_endless", .kind = RHAT_DIP, .endless = true}};
    const size_t n = sizeof c / sizeof *c;
    size_t best = 0;
    json_t *each, *o;
    const char *name;

    for (size_t i = 0; i < n; i++) {
        if (find(a, &c[i], i == 0))
            return papers_say(PAPERS_USAGE, "%s", kofn_errmsg());
        if (!c[i].endless && c[i].r.rhat < c[best].r.rhat * (1 - 1e-9))
            best = i;
    }
    each = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(each, c[i].name,
                            result_json(c[i].spec, &c[i].s, &c[i].r));
    o = papers_pack("workers:z alpha:f delta:f mu:f delay:z schemes:o best:s",
                    a->workers, a->stream.alpha, a->stream.delta, a->stream.mu,
                    a->delay, each, c[best].name);
    if (!a->json) {
        papers_print(
            o, "{workers} workers; each is slow with chance {delta}, by a "
               "factor of {alpha}.\n"
               "Times of a round relative to a whole product on one worker; "
               "delay up to {delay}\n"
               "\n");
        heading();
        json_object_foreach(papers_at(o, "schemes"), name, each) line(each);
        printf("fastest that keeps the delay: %s", c[best].spec);
        if (best > 1)
            printf(", %.0f %% less than %s",
                   100 * (1 - c[best].r.rhat / c[1].r.rhat), c[1].spec);
        putchar('\n');
    }
    return papers_ending(a, o);
}

int papers_rhat(const papers_args *given)
{
    papers_args a = *given;

    a.workers = a.workers ? a.workers : 8;
    return a.scheme ? one(&a) : all(&a);
}
