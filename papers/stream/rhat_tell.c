/* rhat_tell.c -- how long streams of products take, by
 * scheme, and which parameters are best. */
#include "show.h"
#include "stream/rhat.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000000 /* of a parameter */

/* ---- "name:key=value,..." ------------------------------------------------ */

#define NONE (SIZE_MAX - 1) /* it was not given */

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

/* 0, or the exit code after a message; only keys that are in `takes` may be there,
 * and the last three, which say nothing about time. */
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

/* Blocks m p n of the operands, or beta, the results that decode, as the paper has
 * it. */
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

/* Any code of one answer a worker, as kofn has it. */
static int read_plan(const papers_args *a, const char *spec, rhat_scheme *s)
{
    kofn_problem pb = {KOFN_MATMUL, 27720, 27720, 27720, KOFN_F64, false};
    kofn_plan_info info;
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

/* ---- telling ------------------------------------------------------------- */

static json_t *count_json(size_t n)
{
    return n == RHAT_ENDLESS ? json_null() : json_integer((json_int_t)n);
}

/* What is of one kind of scheme only is left out of the others. */
static json_t *result_json(const char *spec, const rhat_scheme *s,
                           const rhat_result *r)
{
    const struct {
        const char *name;
        double value;
        rhat_kind of;
    } more[] = {{"f_tie", r->f_tie, RHAT_DIP},
                {"f_binomial", r->f_binomial, RHAT_DIP},
                {"bound_printed", r->bound_printed, RHAT_IDIP},
                {"bound_corrected", r->bound_corrected, RHAT_IDIP},
                {"exact_fixed_load", r->exact_fixed_load, RHAT_IDIP},
                {"exact_early_finish", r->exact_early_finish, RHAT_IDIP}};
    json_t *o = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "scheme", spec, "rhat",
        papers_number(r->rhat), "slots", count_json(r->slots), "threshold",
        count_json(r->threshold), "delay", count_json(r->delay), "load",
        papers_number(r->load), "mean_load", papers_number(r->mean_load));

    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (s->kind == more[i].of)
            json_object_set_new(o, more[i].name, papers_number(more[i].value));
    return o;
}

static void line(const char *spec, const rhat_result *r)
{
    char slots[24] = "-", delay[24] = "-";

    if (r->slots != RHAT_ENDLESS) {
        snprintf(slots, sizeof slots, "%zu", r->slots);
        snprintf(delay, sizeof delay, "%zu", r->delay);
    }
    printf("%-28s %10.6g %6s %9zu %6s %9.4g %9.4g\n", spec, r->rhat, delay,
           r->threshold, slots, r->load, r->mean_load);
}

static void heading(void)
{
    printf("%-28s %10s %6s %9s %6s %9s %9s\n", "scheme", "R-hat", "delay",
           "threshold", "slots", "load", "mean");
}

static void more_text(const rhat_scheme *s, const rhat_result *r)
{
    if (s->kind == RHAT_DIP)
        printf("rounds a product takes without a deadline: %.10g; %.10g if "
               "nothing came where all are slow\n",
               r->f_tie, r->f_binomial);
    if (s->kind == RHAT_IDIP)
        printf("bound as printed %.6g, corrected %.6g\nexact, every product "
               "carried to its end %.6g, finished early %.6g\n",
               r->bound_printed, r->bound_corrected, r->exact_fixed_load,
               r->exact_early_finish);
}

/* ---- one, or the best of each -------------------------------------------- */

static int one(const papers_args *a)
{
    rhat_scheme s;
    rhat_result r;
    int code = read_scheme(a, a->scheme, &s);
    rhat_params q = a->stream;

    q.workers = a->workers;
    if (code)
        return code;
    if (rhat_of(&q, &s, &r))
        return papers_say(PAPERS_USAGE, "%s", kofn_errmsg());
    if (a->json) {
        papers_print_json(result_json(a->scheme, &s, &r));
        return 0;
    }
    heading();
    line(a->scheme, &r);
    more_text(&s, &r);
    return 0;
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

static void all_json(const papers_args *a, const contender *c, size_t n,
                     size_t best)
{
    json_t *each = json_object();

    for (size_t i = 0; i < n; i++)
        json_object_set_new(each, c[i].name,
                            result_json(c[i].spec, &c[i].s, &c[i].r));
    papers_print_json(json_pack("{s:I, s:f, s:f, s:f, s:I, s:o, s:s}",
                                "workers", (json_int_t)a->workers, "alpha",
                                a->stream.alpha, "delta", a->stream.delta, "mu",
                                a->stream.mu, "delay", (json_int_t)a->delay,
                                "schemes", each, "best", c[best].name));
}

/* Without a deadline is told, and is not what keeps one. */
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

    for (size_t i = 0; i < n; i++) {
        if (find(a, &c[i], i == 0))
            return papers_say(PAPERS_USAGE, "%s", kofn_errmsg());
        if (!c[i].endless && c[i].r.rhat < c[best].r.rhat * (1 - 1e-9))
            best = i;
    }
    if (a->json) {
        all_json(a, c, n, best);
        return 0;
    }
    printf("%zu workers, each slow with chance %g and then %g times as long; "
           "rounds by that\nof a whole product on one worker; a delay of at "
           "most %zu\n\n",
           a->workers, a->stream.delta, a->stream.alpha, a->delay);
    heading();
    for (size_t i = 0; i < n; i++)
        line(c[i].spec, &c[i].r);
    printf("least that keeps the delay: %s", c[best].spec);
    if (best > 1)
        printf(", %.0f %% less than %s",
               100 * (1 - c[best].r.rhat / c[1].r.rhat), c[1].spec);
    putchar('\n');
    return 0;
}

int papers_rhat(const papers_args *given)
{
    papers_args a = *given;

    a.workers = a.workers ? a.workers : 8;
    return a.scheme ? one(&a) : all(&a);
}
