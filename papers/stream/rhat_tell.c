/* rhat_tell.c -- how long streams of products take, by
 * scheme, and which parameters are best. */
#include "show.h"
#include "stream/rhat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000000 /* of a parameter */

/* ---- "name:key=value,..." ------------------------------------------------ */

typedef struct field {
    const char *key;
    size_t *value;
    bool endless; /* may be inf */
    bool given;
} field;

static bool is(const char *name, const char *text, size_t n)
{
    return strlen(name) == n && !memcmp(name, text, n);
}

static int set_field(const char *name, field *f, const char *value, size_t n)
{
    unsigned long long x = 0;
    char *end = NULL;

    f->given = true;
    if (f->endless && n == 3 && !memcmp(value, "inf", 3)) {
        *f->value = RHAT_ENDLESS;
        return 0;
    }
    if (n > 0 && n < 10 && strspn(value, "0123456789") >= n)
        x = strtoull(value, &end, 10);
    if (end != value + n || x > MOST)
        return papers_say(PAPERS_USAGE,
                          "%s: %s=%.*s: give a whole number up to %d%s", name,
                          f->key, (int)(n < 40 ? n : 40), value, MOST,
                          f->endless ? ", or inf" : "");
    *f->value = (size_t)x;
    return 0;
}

/* Keys that say nothing about time are passed over. */
static bool no_matter(const char *key, size_t n)
{
    static const char *const keys[] = {"basis", "plain", "order"};

    for (size_t i = 0; i < 3; i++)
        if (is(keys[i], key, n))
            return true;
    return false;
}

static int no_key(const char *name, const char *key, size_t n, const field *f)
{
    char known[100] = "";

    for (; f->key; f++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 *known ? ", " : "", f->key);
    return papers_say(PAPERS_USAGE, "%s has no \"%.*s\" here; it takes %s",
                      name, (int)(n < 40 ? n : 40), key, known);
}

/* 0, or the exit code after a message. */
static int parse(const char *name, const char *text, field *fields)
{
    while (*text) {
        size_t n = strcspn(text, ","), key = strcspn(text, "=,");
        field *f = fields;

        while (f->key && !is(f->key, text, key))
            f++;
        if (key == n || (!f->key && !no_matter(text, key)))
            return no_key(name, text, key, fields);
        if (f->key && set_field(name, f, text + key + 1, n - key - 1))
            return PAPERS_USAGE;
        text += n;
        text += *text == ',';
    }
    return 0;
}

/* ---- a scheme ------------------------------------------------------------ */

/* Blocks m p n of the operands, or the results that decode, as the paper has
 * it. */
static int cut(const char *name, size_t m, size_t p, size_t n, size_t beta,
               rhat_scheme *s)
{
    if (beta && (m || p || n))
        return papers_say(PAPERS_USAGE, "%s: give beta or m, p and n", name);
    if (!beta && !(m && p))
        return papers_say(PAPERS_USAGE, "%s needs m and p, or beta", name);
    n = n ? n : 1;
    s->parts = beta ? beta : m * p * n;
    s->threshold = beta ? beta : m * p * n + n - 1;
    return 0;
}

static int read_dip(const char *text, rhat_scheme *s)
{
    size_t m = 0, p = 0, n = 0, beta = 0, none = MOST + 1;
    field f[] = {
        {"m", &m, false, false},   {"p", &p, false, false},
        {"n", &n, false, false},   {"beta", &beta, false, false},
        {"T", &s->T, true, false}, {"lambda", &s->lambda, false, false},
        {NULL, NULL, false, false}};

    s->kind = RHAT_DIP;
    s->T = none;
    if (parse("dip", text, f))
        return PAPERS_USAGE;
    if (s->T == none)
        return papers_say(PAPERS_USAGE,
                          "dip needs T, the rounds of delay, or inf");
    if (f[5].given && s->lambda == 0)
        return papers_say(PAPERS_USAGE, "dip: lambda=0: give 1 or more");
    return cut("dip", m, p, n, beta, s);
}

static int read_idip(const papers_args *a, const char *text, rhat_scheme *s)
{
    size_t m = 0, p = 0, N = 0, W = 0;
    const char *early = strstr(text, "early=no");
    char rest[200];
    field f[] = {{"m", &m, false, false},
                 {"p", &p, false, false},
                 {"N", &N, false, false},
                 {"W", &W, false, false},
                 {NULL, NULL, false, false}};

    s->kind = RHAT_IDIP;
    if (strstr(text, "model=bursty"))
        return papers_say(PAPERS_USAGE, "idip: under model=bursty there is no "
                                        "closed form; give N and W");
    if (strlen(text) >= sizeof rest)
        return papers_say(PAPERS_USAGE, "idip: %zu bytes of parameters",
                          strlen(text));
    strcpy(rest, text);
    if (early) {
        s->late = true;
        memcpy(rest + (early - text), "basis=no", 8); /* to be passed over */
    }
    if (parse("idip", rest, f))
        return PAPERS_USAGE;
    if (!f[2].given || !f[3].given)
        return papers_say(PAPERS_USAGE, "idip needs N and W");
    s->N = N;
    s->W = W;
    if (f[0].given != f[1].given || (f[0].given && m * p + N != a->workers * W))
        return papers_say(
            PAPERS_USAGE,
            "idip: m p = %zu, and P W - N = %zu x %zu - %zu: they "
            "are to be the same",
            m * p, a->workers, W, N);
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

static int read_once(const papers_args *a, const char *name, const char *text,
                     rhat_scheme *s)
{
    size_t S = 0;
    field f[] = {{"S", &S, false, false}, {NULL, NULL, false, false}};

    if (!is("polynomial", name, strcspn(name, ":")) ||
        strncmp(text, "S=", 2) != 0)
        return read_plan(a, name, s);
    if (parse("polynomial", text, f))
        return PAPERS_USAGE;
    if (S >= a->workers)
        return papers_say(PAPERS_USAGE,
                          "polynomial: S=%zu: of %zu workers fewer can be done "
                          "without",
                          S, a->workers);
    *s = (rhat_scheme){.kind = RHAT_ONCE, .threshold = a->workers - S};
    return 0;
}

static int read_scheme(const papers_args *a, const char *spec, rhat_scheme *s)
{
    static const char *const others[] = {"uncoded", "polynomial", "matdot",
                                         "polydot", "gpd"};
    size_t n = strcspn(spec, ":");
    const char *text = spec + n + (spec[n] == ':');

    *s = (rhat_scheme){.parts = 0};
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

static json_t *result_json(const char *spec, const rhat_scheme *s,
                           const rhat_result *r)
{
    json_t *o = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "scheme", spec, "rhat",
        papers_number(r->rhat), "slots", count_json(r->slots), "threshold",
        count_json(r->threshold), "delay", count_json(r->delay), "load",
        papers_number(r->load), "mean_load", papers_number(r->mean_load));

    if (o && s->kind == RHAT_DIP) {
        json_object_set_new(o, "f_tie", papers_number(r->f_tie));
        json_object_set_new(o, "f_binomial", papers_number(r->f_binomial));
    }
    if (o && s->kind == RHAT_IDIP) {
        json_object_set_new(o, "bound_printed",
                            papers_number(r->bound_printed));
        json_object_set_new(o, "bound_corrected",
                            papers_number(r->bound_corrected));
        json_object_set_new(o, "exact_fixed_load",
                            papers_number(r->exact_fixed_load));
        json_object_set_new(o, "exact_early_finish",
                            papers_number(r->exact_early_finish));
    }
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
