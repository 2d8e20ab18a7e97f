/* layout.c -- the table of schemes, their argument strings, and plans.
 *
 * Owns the table. Its first part is constant. Those of the plugin follow, and
 * then those that the program adds. They stay until the process ends. */
#include "code.h"

#include "base/near.h"
#include "base/number.h"
#include "operation.h"
#include "outside.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the schemes --------------------------------------------------------- */

extern const kofn_scheme kf_agc, kf_cgc, kf_dip, kf_elastic, kf_g_agc, kf_g_cgc,
    kf_gc, kf_gpd, kf_idip, kf_matdot, kf_mds, kf_pcr, kf_polydot,
    kf_polynomial, kf_replication, kf_uncoded;

static const kofn_scheme *const schemes[] = {
    &kf_agc,     &kf_cgc,        &kf_dip,         &kf_elastic,
    &kf_g_agc,   &kf_g_cgc,      &kf_gc,          &kf_gpd,
    &kf_idip,    &kf_matdot,     &kf_mds,         &kf_pcr,
    &kf_polydot, &kf_polynomial, &kf_replication, &kf_uncoded,
};

enum { SCHEMES = sizeof schemes / sizeof *schemes, ADDED = 64 };

static _Atomic(kofn_scheme *) added[ADDED]; /* no gaps */

const kofn_scheme *kofn_scheme_at(size_t i)
{
    const kofn_scheme *const *outside;

    if (i < SCHEMES)
        return schemes[i];
    i -= SCHEMES;
    outside = kf_plug_schemes();
    for (; outside && *outside; outside++, i--)
        if (i == 0)
            return *outside;
    return i < ADDED ? atomic_load(&added[i]) : NULL;
}

static const kofn_scheme *find(const char *name, size_t length)
{
    const kofn_scheme *s;

    for (size_t i = 0; (s = kofn_scheme_at(i)); i++)
        if (strlen(s->name) == length && !memcmp(s->name, name, length))
            return s;
    return NULL;
}

const kofn_scheme *kofn_scheme_find(const char *name)
{
    return find(name, strlen(name));
}

static bool is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_");

    return n > 0 && n < 40 && !name[n];
}

/* Puts the scheme at the first free place. */
static kofn_status add(kofn_scheme *s)
{
    for (size_t i = 0; i < ADDED; i++) {
        kofn_scheme *none = NULL;

        if (kofn_scheme_find(s->name))
            return kf_fail(KOFN_INVAL, "there is a scheme %s already", s->name);
        if (atomic_compare_exchange_strong(&added[i], &none, s))
            return KOFN_OK;
    }
    return kf_fail(KOFN_INVAL, "%d schemes were added, which is the limit",
                   ADDED);
}

kofn_status kofn_scheme_add(const kofn_scheme *scheme)
{
    static const kofn_param none[] = {{0}};
    kofn_scheme *s;
    kofn_status st;

    TRY_ZERO(s, 1);
    st = kf_given(s, sizeof *s, scheme, "sizeof(kofn_scheme)");
    if (!st && (!s->name || !is_name(s->name)))
        st = kf_fail(KOFN_INVAL,
                     "scheme \"%.40s\": a name has small letters, digits, - "
                     "and _, at most 39",
                     s->name ? s->name : "");
    if (!st && (!s->layout || !s->seat || !s->ops))
        st =
            kf_fail(KOFN_INVAL,
                    "scheme %s: `layout`, `seat` or `ops` is missing", s->name);
    if (!st) {
        s->params = s->params ? s->params : none;
        s->summary = s->summary ? s->summary : "";
        s->cite = s->cite ? s->cite : "";
        st = add(s);
    }
    if (st)
        kf_free(s);
    return st;
}

/* ---- arguments ----------------------------------------------------------- */

/* Appends to a text, and cuts it off at `room`. */
KF_PRINTF(3, 4)
static void append(char *text, size_t room, const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    kf_vformat(text + n, room - n, fmt, ap);
    va_end(ap);
}

/* Writes " (did you mean basis?)", or nothing. */
static const char *did_you_mean(const kf_near *near, char meant[60])
{
    *meant = 0;
    if (near->best)
        append(meant, 60, " (did you mean %.*s?)", (int)near->best_length,
               near->best);
    return meant;
}

/* Compares a word with those in "a|b|c". */
static void try_choices(kf_near *near, const char *choices)
{
    for (size_t n; n = strcspn(choices, "|"), *choices;
         choices += n + (choices[n] == '|'))
        kf_near_try(near, choices, n);
}

static kofn_status unknown_choice(const kofn_scheme *s, const kofn_param *p,
                                  const char *text, size_t n)
{
    kf_near near = {.word = text, .length = n};
    char meant[60];

    try_choices(&near, p->choices);
    return kf_fail(KOFN_INVAL, "scheme %s: %s=%.*s is not one of %s%s", s->name,
                   p->name, (int)kf_min(n, 40), text, p->choices,
                   did_you_mean(&near, meant));
}

static size_t param_index(const kofn_param *params, const char *name,
                          size_t length)
{
    size_t i = 0;

    while (params[i].name && (strlen(params[i].name) != length ||
                              memcmp(params[i].name, name, length) != 0))
        i++;
    return i;
}

long kofn_arg(const kofn_layout *L, const char *name)
{
    const kofn_args *a = L->args;
    size_t i = param_index(a->params, name, strlen(name));

    return a->params[i].name ? a->value[i] : KOFN_AUTO;
}

void kofn_arg_choose(const kofn_layout *L, const char *name, long value)
{
    /* The layout is part of its plan, which this file may write. */
    kofn_args *a = (kofn_args *)(uintptr_t)L->args;
    size_t i = param_index(a->params, name, strlen(name));

    if (a->params[i].name)
        a->value[i] = value;
}

/* Returns the index of the word in "a|b|c", or -1. */
static long choice(const char *choices, const char *word, size_t length)
{
    for (long i = 0;; i++) {
        size_t n = strcspn(choices, "|");

        if (n == length && !memcmp(choices, word, n))
            return i;
        if (!choices[n])
            return -1;
        choices += n + 1;
    }
}

static kofn_status parse_value(const kofn_scheme *s, const kofn_param *p,
                               const char *text, size_t n, long *value)
{
    char number[24], *end;

    if (p->choices) {
        *value = choice(p->choices, text, n);
        return *value >= 0 ? KOFN_OK : unknown_choice(s, p, text, n);
    }
    if (n == 0 || n >= sizeof number || strspn(text, "-0123456789") < n)
        return kf_fail(KOFN_INVAL, "scheme %s: %s=%.*s is not a whole number",
                       s->name, p->name, (int)kf_min(n, 40), text);
    memcpy(number, text, n);
    number[n] = 0;
    *value = strtol(number, &end, 10);
    if (*end)
        return kf_fail(KOFN_INVAL, "scheme %s: %s=%s is not a whole number",
                       s->name, p->name, number);
    if (*value < p->min || *value > p->max)
        return kf_fail(KOFN_INVAL, "scheme %s: %s=%s is outside %ld..%ld (%s)",
                       s->name, p->name, number, p->min, p->max, p->what);
    return KOFN_OK;
}

static kofn_status unknown_param(const kofn_scheme *s, const char *text,
                                 size_t n)
{
    kf_near near = {.word = text, .length = n};
    char known[200] = "", meant[60];

    for (const kofn_param *p = s->params; p->name; p++) {
        append(known, sizeof known, "%s%s", *known ? ", " : "", p->name);
        kf_near_try(&near, p->name, strlen(p->name));
    }
    return kf_fail(KOFN_INVAL, "scheme %s has no parameter %.*s%s; it takes %s",
                   s->name, (int)kf_min(n, 40), text,
                   did_you_mean(&near, meant), *known ? known : "none");
}

static kofn_status parse_args(const kofn_scheme *s, const char *text,
                              kofn_args *a)
{
    bool given[KF_MAX_PARAMS] = {false};

    a->params = s->params;
    for (size_t i = 0; s->params[i].name; i++)
        a->value[i] = s->params[i].init;
    while (text && *text) {
        size_t n = strcspn(text, ","), key = strcspn(text, "=,"), i;

        if (key == n)
            return kf_fail(KOFN_INVAL,
                           "scheme %s: \"%.*s\" is not of the form key=value",
                           s->name, (int)kf_min(n, 40), text);
        i = param_index(s->params, text, key);
        if (!s->params[i].name)
            return unknown_param(s, text, key);
        if (given[i])
            return kf_fail(KOFN_INVAL, "scheme %s: %s is given twice", s->name,
                           s->params[i].name);
        given[i] = true;
        TRY(parse_value(s, &s->params[i], text + key + 1, n - key - 1,
                        &a->value[i]));
        text += n;
        if (*text == ',' && !*++text)
            return kf_fail(KOFN_INVAL, "scheme %s: a comma with nothing after",
                           s->name);
    }
    return KOFN_OK;
}

/* Writes "NAME:key=value,..." with every parameter, so that a report or a
 * journal contains all that is needed to remake the plan. */
static void spell(kofn_plan *p)
{
    size_t room = sizeof p->spec;
    char before = ':';

    append(p->spec, room, "%s", p->scheme->name);
    for (size_t i = 0; p->args.params[i].name; i++) {
        const kofn_param *q = &p->args.params[i];
        const char *word = q->choices;

        if (p->args.value[i] == KOFN_AUTO)
            continue;
        append(p->spec, room, "%c%s=", before, q->name);
        for (long c = 0; word && c < p->args.value[i]; c++)
            word += strcspn(word, "|") + 1;
        if (word)
            append(p->spec, room, "%.*s", (int)strcspn(word, "|"), word);
        else
            append(p->spec, room, "%ld", p->args.value[i]);
        before = ',';
    }
}

/* ---- plan ---------------------------------------------------------------- */

static kofn_status check_problem(const kofn_problem *pb,
                                 const kofn_scheme *scheme, size_t workers)
{
    const kf_operation *op = kf_operation_of(pb->op);
    size_t bytes, wide;

    if (!op)
        return kf_fail(KOFN_INVAL, "no operation has number %d; see kofn_op",
                       (int)pb->op);
    if (pb->m == 0 || pb->n == 0 || pb->p == 0)
        return kf_fail(KOFN_SHAPE,
                       "a %zu x %zu matrix times %zu columns: "
                       "every size must be at least 1",
                       pb->m, pb->n, pb->p);
    if (op->vector && pb->p != 1)
        return kf_fail(KOFN_SHAPE,
                       "%s takes 1 column, not %zu; for a vector "
                       "of more use matmul",
                       op->name, pb->p);
    if (pb->sparse && !op->sparse)
        return kf_fail(KOFN_UNSUITED,
                       "%s is not computed with a sparse "
                       "matrix; use a dense one",
                       op->name);
    /* BLAS uses 32-bit integers */
    wide = kf_max(kf_max(pb->n, pb->p), kf_size_of(pb, op->in.cols));
    if (wide > INT32_MAX)
        return kf_fail(KOFN_SHAPE, "%zu columns are more than 2^31-1", wide);
    if (!kf_mul(pb->m, pb->p, &bytes) || !kf_mul(bytes, 16, &bytes) ||
        !kf_mul(pb->n, pb->p, &bytes) || !kf_mul(bytes, 16, &bytes) ||
        (!pb->sparse &&
         (!kf_mul(pb->m, pb->n, &bytes) || !kf_mul(bytes, 16, &bytes))))
        return kf_fail(KOFN_SHAPE,
                       "a %zu x %zu matrix times %zu columns does "
                       "not fit in memory",
                       pb->m, pb->n, pb->p);
    if (workers < 1 || workers > 1000000)
        return kf_fail(KOFN_INVAL, "workers = %zu is outside 1..1000000",
                       workers);
    if (!(scheme->ops & (unsigned)pb->op))
        return kf_fail(KOFN_UNSUITED, "scheme %s does not serve %s; take %s",
                       scheme->name, op->name, op->served);
    return KOFN_OK;
}

/* Reports a mistake of a scheme before it can cause a wrong answer. */
static kofn_status check_layout(const kofn_plan *p)
{
    const kofn_layout *L = &p->layout;

    if (!L->groups || !L->seats || !L->enough || !L->components || !L->inner ||
        !p->parts || !p->parts1 || !L->symbols || !L->wants ||
        !L->submessages || L->enough > L->seats * L->submessages ||
        L->threshold < L->enough || (L->submessages > 1 && !L->whole) ||
        (L->remembers && (L->wants != 1 || L->components != 1 ||
                          L->submessages != 1 || L->max_seats != p->parts)) ||
        (L->whole && (L->groups > 1 || p->parts1 > 1)) ||
        L->wants % L->grid_rows || (!L->W && L->symbols != L->wants) ||
        (p->op->stream && (L->groups > 1 || L->whole || L->adjoint ||
                           !L->slots || L->delay > KF_MOST_DELAY)))
        return kf_fail(KOFN_INVAL, "scheme %s made an impossible layout",
                       p->scheme->name);
    if (L->adjoint && (p->parts1 > 1 || L->W || !p->mixes_parts ||
                       L->inner > 1 || L->groups > 1))
        return kf_fail(KOFN_INVAL,
                       "scheme %s transposes a code that is not a plain one",
                       p->scheme->name);
    /* a sparse A is cut into rows only, and its strips are rows */
    if (L->problem.sparse &&
        (L->cut[0].cols > 1 || (L->inner > 1 && !p->op->below) ||
         (L->adjoint && !p->op->left)))
        return kf_fail(KOFN_UNSUITED,
                       "scheme %s does not serve sparse matrices in this "
                       "operation; choose another scheme or a dense matrix",
                       p->scheme->name);
    return KOFN_OK;
}

/* Makes want z the sum of symbols z, z + wants, ... */
static kofn_status sum_of_parts(kofn_layout *L)
{
    L->whole = true;
    L->grid_rows = L->wants;
    if (L->W || L->wants == 0 || L->symbols % L->wants)
        return kf_fail(KOFN_INVAL, "a scheme made an impossible layout");
    L->W = kofn_layout_table(L->wants, L->symbols);
    if (!L->W)
        return KOFN_NOMEM;
    for (size_t s = 0; s < L->symbols; s++)
        L->W[s % L->wants * L->symbols + s] = 1;
    return KOFN_OK;
}

static kofn_status make_layout(kofn_plan *p)
{
    kofn_layout *L = &p->layout;

    L->args = &p->args;
    L->workers = p->workers;
    L->groups = L->components = L->inner = L->seats = L->grid_rows =
        L->submessages = L->slots = 1;
    L->max_seats = SIZE_MAX;
    L->cut[0] = L->cut[1] = (kofn_cut){1, 1};
    TRY(p->scheme->layout(L));
    if (p->op->factors == 0)
        TRY(sum_of_parts(L));
    L->whole |= p->op->whole;
    p->parts = L->cut[0].rows * L->cut[0].cols;
    p->parts1 = L->cut[1].rows * L->cut[1].cols;
    p->mixes_parts = L->symbols == 0;
    if (p->mixes_parts) {
        L->symbols = L->wants = p->parts;
        L->grid_rows = L->cut[0].rows;
    }
    if (L->threshold == 0)
        L->threshold = L->enough;
    TRY(check_layout(p));
    p->span = p->op->span(L);
    return KOFN_OK;
}

kofn_status kofn_plan_new_for(kofn_plan **out, const kofn_problem *pb,
                              const kofn_scheme *scheme, const char *args,
                              size_t workers, uint64_t seed)
{
    kofn_scheme owned = {.size = sizeof owned};
    kofn_problem problem = {.size = sizeof problem};
    kofn_plan *p;
    kofn_status st;

    *out = NULL;
    TRY(kf_given(&owned, sizeof owned, scheme, ".size = sizeof(kofn_scheme)"));
    TRY(kf_given(&problem, sizeof problem, pb, "KOFN_PROBLEM_INIT"));
    TRY(check_problem(&problem, &owned, workers));
    TRY_ZERO(p, 1);
    p->owned = owned;
    p->scheme = &p->owned;
    p->workers = workers;
    p->op = kf_operation_of(problem.op);
    p->layout = (kofn_layout){.problem = problem, .seed = seed};
    st = parse_args(p->scheme, args, &p->args);
    if (!st)
        st = make_layout(p);
    if (st) {
        kofn_plan_free(p);
        return st;
    }
    spell(p);
    *out = p;
    return KOFN_OK;
}

kofn_status kf_code_shape(kofn_plan *out, const kofn_plan *p, size_t rows,
                          size_t inner, size_t cols)
{
    kofn_problem pb = p->layout.problem;

    pb.m = rows;
    pb.n = inner;
    pb.p = cols;
    TRY(check_problem(&pb, p->scheme, p->workers));
    *out = *p;
    out->layout.problem = pb;
    out->span = p->op->span(&out->layout);
    return KOFN_OK;
}

kofn_status kofn_plan_serve_left(kofn_plan *plan, size_t p)
{
    kofn_problem pb = plan->layout.problem;
    const kofn_layout *L = &plan->layout, *M;
    const char *args = strchr(plan->spec, ':');

    if (plan->left || plan->op->left)
        return kf_fail(KOFN_STATE, "the plan serves left products already");
    pb.op = KOFN_LEFT;
    pb.p = p;
    TRY(kofn_plan_new_for(&plan->left, &pb, plan->scheme,
                          args ? args + 1 : NULL, plan->workers, L->seed));
    M = &plan->left->layout;
    if (M->groups == L->groups && M->seats == L->seats &&
        M->max_seats == L->max_seats && M->components == L->components &&
        M->inner == L->inner && M->cut[0].rows == L->cut[0].rows &&
        M->cut[0].cols == L->cut[0].cols)
        return KOFN_OK;
    kofn_plan_free(plan->left);
    plan->left = NULL;
    return kf_fail(KOFN_UNSUITED,
                   "scheme %s stores other blocks for left "
                   "products than for this operation",
                   plan->scheme->name);
}

kofn_status kofn_plan_new(kofn_plan **out, const kofn_problem *pb,
                          const char *spec, size_t workers, uint64_t seed)
{
    size_t n = strcspn(spec, ":");
    const kofn_scheme *s = find(spec, n);
    kf_near near = {.word = spec, .length = n};
    char known[200] = "", meant[60];

    *out = NULL;
    if (s)
        return kofn_plan_new_for(out, pb, s, spec[n] ? spec + n + 1 : NULL,
                                 workers, seed);
    if (choice(KF_CODE_OUTSIDE, spec, n) >= 0 && kf_plug_schemes_absent())
        return KOFN_NOSCHEME; /* with its message */
    for (size_t i = 0; (s = kofn_scheme_at(i)); i++) {
        append(known, sizeof known, "%s%s", i ? ", " : "", s->name);
        kf_near_try(&near, s->name, strlen(s->name));
    }
    return kf_fail(KOFN_NOSCHEME, "no scheme \"%.*s\"%s; there are %s",
                   (int)kf_min(n, 40), spec, did_you_mean(&near, meant), known);
}

void kofn_plan_free(kofn_plan *p)
{
    if (!p)
        return;
    if (p->layout.free_state)
        p->layout.free_state(p->layout.state);
    kf_free(p->layout.W);
    kofn_plan_free(p->left);
    kf_free(p);
}

double *kofn_layout_table(size_t rows, size_t cols)
{
    size_t n;

    if (!kf_mul(rows, cols, &n)) {
        kf_nomem(SIZE_MAX);
        return NULL;
    }
    return kf_zero(n, sizeof(double));
}

/* ---- questions of a layout ----------------------------------------------- */

bool kf_code_decodes_itself(const kofn_plan *p, bool uneven)
{
    return p->scheme->decode && !p->of && !(uneven && p->op->factors > 1);
}

size_t kf_code_seats(const kofn_layout *L, size_t each)
{
    return kf_ceil_div(L->threshold, L->submessages) - 1 +
           kf_ceil_div(L->submessages, each);
}

size_t kf_code_each(const kofn_layout *L, const uint32_t *rows, size_t n)
{
    size_t each = 1;

    if (L->submessages == 1)
        return 1;
    while (each < n && rows[each] / L->submessages == rows[0] / L->submessages)
        each++;
    return each;
}
