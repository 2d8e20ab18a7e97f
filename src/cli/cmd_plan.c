/* cmd_plan.c -- kofn plan: which code to take, before anything runs.
 *
 * Owns the list of forecasts until it is printed. It reads no matrix. */
#include "busy.h"
#include "plan_from.h"

#include "base/spec.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Costs of a network that nobody measured: 10 Gbit/s, and a tenth of a
 * millisecond for a message. */
#define LATENCY 1e-4
#define BANDWIDTH 1.25e9
/* A message between processes of one machine, and one through a network.  Each
 * end of a loopback takes ten times as long for bytes as a copy does. */
#define MESSAGE_HERE 3e-5
#define COPIES_HERE 10
#define MESSAGE_AWAY 2e-5

/* An operation of the command, and the ones of the library that serve it. */
typedef struct operation {
    const char *name;
    int sizes;        /* number of operands after the name */
    kofn_op op[2];    /* 0: none */
    bool sum[2];      /* it is a sum over parts of the points */
    const char *form; /* of the operands */
    double passes;    /* SUM: multiply-adds for an element of A */
} operation;

static const operation operations[] = {
    {"matvec", 1, {KOFN_MATVEC}, {false}, "MxN", 0},
    {"matmul", 2, {KOFN_MATMUL}, {false}, "MxN NxP", 0},
    {"power", 1, {KOFN_MATVEC}, {false}, "NxN", 0},
    {"stream", 2, {KOFN_STREAM}, {false}, "MxN NxP", 0},
    {"regress", 1, {KOFN_GRAM, KOFN_SUM}, {false, true}, "POINTSxCOLUMNS", 2},
    {"train", 2, {KOFN_SUM}, {true}, "POINTSxCOLUMNS N0-N1-...", 3},
    {NULL, 0, {0}, {false}, NULL, 0},
};

typedef struct all {
    kofn_forecast *row;
    size_t count;
    char run[CLI_SPEC];         /* the scheme of --journal; "": none */
    kofn_forecast was, uncoded; /* its code, and none */
} all;

/* ---- arguments ----------------------------------------------------------- */

static const operation *operation_of(const char *name)
{
    for (const operation *o = operations; o->name; o++)
        if (!strcmp(o->name, name))
            return o;
    return NULL;
}

/* Reads "ROWSxCOLUMNS", with k, M or G. */
static int read_sizes(const char *text, size_t *rows, size_t *cols)
{
    const char *by = strchr(text, 'x');
    char first[32];

    if (by && (size_t)(by - text) < sizeof first) {
        snprintf(first, sizeof first, "%.*s", (int)(by - text), text);
        if (cli_whole(first, 1000000000000, rows) && *rows &&
            cli_whole(by + 1, 1000000000000, cols) && *cols)
            return 0;
    }
    return cli_say(EXIT_USAGE,
                   "%s is no size of a matrix; give ROWSxCOLUMNS, such as "
                   "200000x20000 or 200kx20k",
                   text);
}

/* Reads the widths of a network, and counts its weights. */
static int read_widths(const char *text, size_t columns, size_t *weights)
{
    size_t before = 0, n = 0, width;

    *weights = 0;
    for (const char *p = text; *p; p += strspn(p, "-")) {
        char word[32];
        size_t length = strcspn(p, "-");

        snprintf(word, sizeof word, "%.*s", (int)length, p);
        if (length >= sizeof word || !cli_whole(word, 1000000000, &width) ||
            !width)
            break;
        *weights += n++ ? width * (before + 1) : 0;
        if (n == 1 && width != columns)
            return cli_say(EXIT_USAGE,
                           "%s: the first layer has %zu numbers and a point "
                           "has %zu",
                           text, width, columns);
        before = width;
        p += length;
        if (!*p && n > 1)
            return 0;
    }
    return cli_say(EXIT_USAGE,
                   "%s is no list of widths; give N0-N1-..., such as "
                   "784-128-10",
                   text);
}

/* Makes the problem for operation `i` of the library, and the work of a
 * round. */
static int problem_of(const cli_args *a, const operation *o, int i,
                      kofn_problem *pb, kofn_forecast_options *opt)
{
    bool wide = strcmp(a->dtype, "f4") != 0;
    double each = wide ? 8 : 4;
    size_t n, p = 1, weights;

    *pb = (kofn_problem)KOFN_PROBLEM_INIT(o->op[i], 0, 0, 1,
                                          wide ? KOFN_F64 : KOFN_F32, false);
    TRY_CODE(read_sizes(a->operand[1], &pb->m, &pb->n));
    if (!strcmp(o->name, "train")) {
        TRY_CODE(read_widths(a->operand[2], pb->n, &weights));
        opt->part = o->passes * (double)a->train.batch * (double)weights;
        opt->data = (double)pb->m * (double)pb->n * each;
        pb->m = pb->n = weights;
        return 0;
    }
    if (o->sizes == 2) {
        TRY_CODE(read_sizes(a->operand[2], &n, &p));
        if (n != pb->n)
            return cli_say(EXIT_USAGE,
                           "%s and %s: the number of columns of the first is "
                           "not that of the rows of the second",
                           a->operand[1], a->operand[2]);
        pb->p = p;
    }
    if (!strcmp(o->name, "power") && pb->m != pb->n)
        return cli_say(EXIT_USAGE,
                       "%s is not square, and only a square matrix has "
                       "eigenvectors; give NxN",
                       a->operand[1]);
    opt->part = o->passes * (double)pb->m * (double)pb->n;
    opt->data = (double)pb->m * (double)pb->n * each;
    if (o->sum[i])
        pb->m = pb->n;
    return 0;
}

/* Completes the costs for the place of the workers. */
static void place_workers(const cli_args *a, kofn_costs *c, bool *away)
{
    const cli_transport *to = cli_transport_of(a->port);

    *away = !to->here;
    if (to->here)
        return;
    c->message = to->ours ? MESSAGE_HERE : MESSAGE_AWAY;
    c->latency = to->ours ? 0 : LATENCY;
    c->bandwidth = to->ours ? 1e9 / (COPIES_HERE * c->copy) : BANDWIDTH;
    if (!to->ours) {
        c->cores = 0;
        c->work = c->plain; /* a worker has all cores of its machine */
    }
    if (a->faults.latency > 0)
        c->latency = a->faults.latency;
    if (a->faults.bandwidth > 0)
        c->bandwidth = a->faults.bandwidth;
    if (a->faults.work > 0)
        c->work = a->faults.work;
}

/* ---- forecasts ----------------------------------------------------------- */

/* Forecasts all codes. */
static int every(const cli_args *a, const kofn_problem *pb,
                 const kofn_forecast_options *opt, all *out)
{
    kofn_forecast *row;
    size_t n;

    TRY_CODE(cli_fail(kofn_forecast_all(&row, &n, pb, a->workers, opt)));
    out->row = calloc(n, sizeof *row);
    if (out->row)
        memcpy(out->row, row, n * sizeof *row);
    out->count = out->row ? n : 0;
    kofn_free(row);
    return out->row ? 0 : cli_say(EXIT_FAILED, "out of memory");
}

/* Forecasts plain BLAS and the code of --scheme. */
static int one(const cli_args *a, const kofn_problem *pb,
               const kofn_forecast_options *opt, all *out)
{
    out->row = calloc(2, sizeof *out->row);
    if (!out->row)
        return cli_say(EXIT_FAILED, "out of memory");
    out->count = 2;
    for (size_t i = 0; i < 2; i++) {
        out->row[i].size = sizeof *out->row;
        TRY_CODE(cli_fail(kofn_forecast_job(
            &out->row[i], pb, i ? a->scheme : "", a->workers, opt)));
    }
    return 0;
}

/* True if the scheme of this specification serves the operation, or is not
 * known. */
static bool serves(const char *spec, kofn_op op)
{
    char name[CLI_SPEC];
    const kofn_scheme *s;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
    s = kofn_scheme_find(name);
    return *name && (!s || s->ops & op);
}

/* Forecasts the code of the recorded run, and the same without a code, if they
 * serve the operation and were not forecast before. */
static int as_run(const cli_args *a, const kofn_problem *pb,
                  const kofn_forecast_options *opt, all *out)
{
    const char *spec[] = {out->run, "uncoded"};
    kofn_forecast *to[] = {&out->was, &out->uncoded};

    for (size_t i = 0; i < 2 && *out->run; i++)
        if (!to[i]->size && serves(spec[i], pb->op)) {
            to[i]->size = sizeof *to[i];
            TRY_CODE(cli_fail(
                kofn_forecast_job(to[i], pb, spec[i], a->workers, opt)));
        }
    return 0;
}

/* Forecasts operation `i`: the rows if `rows`, and the recorded run. */
static int forecast(const cli_args *a, const operation *o, int i, bool rows,
                    all *out)
{
    kofn_forecast_options opt = KOFN_FORECAST_OPTIONS_INIT;
    kofn_costs costs = KOFN_COSTS_INIT;
    kofn_problem pb, like;

    TRY_CODE(problem_of(a, o, i, &pb, &opt));
    like = pb;
    if (o->sum[i]) { /* its products are those of a gradient */
        like.op = KOFN_MATMUL;
        TRY_CODE(read_sizes(a->operand[1], &like.m, &like.n));
        like.p = o->sizes == 2 ? a->train.batch : 1;
    }
    TRY_CODE(cli_fail(kofn_costs_measure(&costs, &like, a->workers)));
    place_workers(a, &costs, &opt.away);
    opt.costs = &costs;
    opt.faults = &a->faults;
    opt.job = &a->job;
    opt.rounds = (unsigned)a->rounds;
    opt.memory = (double)a->memory;
    opt.deadline = a->deadline;
    opt.faulty = a->faulty;
    opt.survive = a->tolerate;
    if (rows)
        TRY_CODE(a->scheme_given ? one(a, &pb, &opt, out)
                                 : every(a, &pb, &opt, out));
    return as_run(a, &pb, &opt, out);
}

/* Adds the coded rows of the second list to the first, by their total time. */
static int merge(all *into, const all *more)
{
    kofn_forecast *both =
        realloc(into->row, (into->count + more->count) * sizeof *both);

    if (!both)
        return cli_say(EXIT_FAILED, "out of memory");
    into->row = both;
    for (size_t i = 1; i < more->count; i++) {
        size_t at = into->count++;

        for (; at > 1 && both[at - 1].total > more->row[i].total; at--)
            both[at] = both[at - 1];
        both[at] = more->row[i];
    }
    return 0;
}

/* Forecasts all operations that do the work.  With --scheme, only those that it
 * serves. */
static int forecast_each(const cli_args *a, const operation *o, all *out)
{
    bool given = a->scheme_given;
    bool second = o->op[1] && (!given || serves(a->scheme, o->op[1]));
    bool first = !given || !second || serves(a->scheme, o->op[0]);
    all more = *out;
    int code;

    code = forecast(a, o, 0, first, out);
    if (code || !o->op[1])
        return code;
    more.was = out->was;
    more.uncoded = out->uncoded;
    code = forecast(a, o, 1, second && !(first && given), &more);
    if (!code && !out->row) {
        *out = more;
        return 0;
    }
    out->was = more.was;
    out->uncoded = more.uncoded;
    if (!code)
        code = merge(out, &more);
    free(more.row);
    return code;
}

/* ---- what it says -------------------------------------------------------- */

static void print_row(const kofn_forecast *f)
{
    char spec[KF_SPEC_SHORT], r50[16], r90[16], r99[16], total[16], memory[20];

    kf_spec_short(spec, f->spec);
    cli_seconds_text(r50, f->round50);
    cli_seconds_text(r90, f->round90);
    cli_seconds_text(r99, f->round99);
    cli_seconds_text(total, f->total);
    cli_bytes_text(memory, f->memory);
    if (f->status)
        printf("%-28s fails: %s\n", spec, kofn_strerror(f->status));
    else
        printf("%-28s %8s %8s %8s %9s %8s %7zu %7zu  %.0e\n", spec, r50, r90,
               r99, total, memory, f->survives, f->faulty, f->error);
}

static json_t *row_json(const kofn_forecast *f)
{
    json_t *o = json_object();

    PUT("scheme", *f->spec ? json_string(f->spec) : json_null());
    PUT("status", json_string(f->status ? "failed" : "ok"));
    PUT("place_seconds", cli_number(f->place));
    PUT("round_seconds_50", cli_number(f->round50));
    PUT("round_seconds_90", cli_number(f->round90));
    PUT("round_seconds_99", cli_number(f->round99));
    PUT("seconds", cli_number(f->total));
    PUT("memory", cli_number(f->memory));
    PUT("sent_bytes", cli_number(f->sent));
    PUT("received_bytes", cli_number(f->received));
    PUT("work", cli_number(f->work));
    PUT_WHOLE("survives", f->survives);
    PUT_WHOLE("faulty", f->faulty);
    PUT("predicted_error", cli_number(f->error));
    return o;
}

/* Returns the first code that survives a loss; NULL if there is none. */
static const kofn_forecast *best_of(const all *l)
{
    for (size_t i = 1; i < l->count; i++)
        if (!l->row[i].status && l->row[i].survives > 0)
            return &l->row[i];
    return NULL;
}

/* Writes why no code is recommended, and which options to change. */
static void no_code(const all *l, const cli_args *a, char *out, size_t room)
{
    const struct {
        bool given;
        const char *words;
    } option[] = {{a->memory > 0, ", or more --memory"},
                  {a->deadline > 0, ", or a longer --deadline"},
                  {a->tolerate > 0, ", or a lower --tolerate"},
                  {a->faulty > 0, ", or a lower --faulty"}};
    size_t n;

    for (size_t i = 1; i < l->count; i++)
        if (l->row[i].status) {
            snprintf(out, room, "no code can be recommended: %s",
                     kofn_strerror(l->row[i].status));
            return;
        }
    if (a->scheme_given) {
        snprintf(out, room, "%s survives no loss of a worker", a->scheme);
        return;
    }
    n = (size_t)snprintf(out, room,
                         "no code that survives a loss fits; take more "
                         "workers");
    for (size_t i = 0; i < sizeof option / sizeof *option && n < room; i++)
        if (option[i].given)
            n += (size_t)snprintf(out + n, room - n, "%s", option[i].words);
}

/* Writes one sentence: what to use, and from which number of rounds on. */
static void advise(const all *l, const cli_args *a, char *out, size_t room)
{
    const kofn_forecast *plain = &l->row[0], *best = best_of(l);
    char spec[KF_SPEC_SHORT], from[40];
    double gain, rounds;

    if (!best) {
        no_code(l, a, out, room);
        return;
    }
    kf_spec_short(spec, best->spec);
    gain = plain->round50 - best->round50;
    rounds = gain > 0 ? ceil(best->place / gain) : HUGE_VAL;
    snprintf(from, sizeof from, rounds < 1e9 ? "from %.0f rounds on" : "never",
             rounds);
    if (plain->total <= best->total && rounds < 1e9)
        snprintf(out, room,
                 "%zu round%s of this size: use BLAS on one machine; "
                 "%s, %s is faster",
                 a->rounds, a->rounds == 1 ? "" : "s", from, spec);
    else if (plain->total <= best->total)
        snprintf(out, room,
                 "use BLAS on one machine if it never fails; %s "
                 "takes %.2g times as long and survives %zu lost "
                 "worker%s",
                 spec, best->total / plain->total, best->survives,
                 best->survives == 1 ? "" : "s");
    else
        snprintf(out, room,
                 "use %s: %.2g times as fast as BLAS on one machine, "
                 "and any %zu worker%s may be lost",
                 spec, plain->total / best->total, best->survives,
                 best->survives == 1 ? "" : "s");
}

/* Prints how far such times were from those of jobs (bench/plan_bench). */
static void print_accuracy(const cli_transport *to)
{
    if (to->here)
        puts("Half of such times were right to 13 %, and nine of ten to 26 %; "
             "a load makes them worse (docs/choosing.md).");
    else if (to->ours)
        puts("Half of such times were right to 22 %, and nine of ten to 39 %; "
             "most were too short (docs/choosing.md).");
    else
        puts("Such times were not compared with rounds on several machines "
             "(docs/choosing.md).");
}

static void print_table(const cli_args *a, const all *l)
{
    const kofn_forecast *best = best_of(l);
    const cli_transport *to = cli_transport_of(a->port);
    char advice[400], spec[KF_SPEC_SHORT];

    printf("%-28s %26s %9s %8s %7s %7s  %s\n", "", "seconds of a round",
           "in all", "memory", "may be", "faulty", "error");
    printf("%-28s %8s %8s %8s %9s %8s %7s %7s  %s\n", "code", "median", "90 %",
           "99 %", "", "a worker", "lost", "found", "(median)");
    for (size_t i = 0; i < l->count; i++)
        print_row(&l->row[i]);
    advise(l, a, advice, sizeof advice);
    printf("\n%c%s.\n", toupper((unsigned char)*advice), advice + 1);
    if (*l->run) {
        plan_run_text(l->run, &l->was, &l->uncoded, best, advice,
                      sizeof advice);
        printf("%c%s.\n", toupper((unsigned char)*advice), advice + 1);
    }
    print_accuracy(to);
    if (!best)
        return;
    kf_spec_short(spec, best->spec);
    printf("\n  kofn %s ... -n %zu -s %s", a->operand[0], a->workers, spec);
    if (!to->here)
        printf(strpbrk(a->port, "*?[") ? " -p '%s'" : " -p %s", a->port);
    putchar('\n');
}

static void print_all(const cli_args *a, const all *l)
{
    json_t *o, *rows = json_array();
    char advice[400];

    if (!a->json) {
        json_decref(rows);
        print_table(a, l);
        return;
    }
    for (size_t i = 0; i < l->count; i++)
        json_array_append_new(rows, row_json(&l->row[i]));
    advise(l, a, advice, sizeof advice);
    o = json_object();
    PUT_WHOLE("workers", a->workers);
    PUT_WHOLE("rounds", a->rounds);
    PUT("codes", rows);
    PUT("advice", json_string(advice));
    if (*l->run) {
        plan_run_text(l->run, &l->was, &l->uncoded, best_of(l), advice,
                      sizeof advice);
        PUT("run", json_pack("{ss so so ss}", "scheme", l->run, "as_run",
                             row_json(&l->was), "uncoded",
                             row_json(&l->uncoded), "text", advice));
    }
    cli_print_json(o);
}

/* Takes what is known of the workers from where an option says. */
static int know_workers(cli_args *a, char run[CLI_SPEC])
{
    if (!!a->from_journal + !!a->fleet + !!a->pattern_text > 1)
        return cli_say(EXIT_USAGE, "--journal, --fleet and --pattern all say "
                                   "how slow the workers are; give one");
    if (a->from_journal)
        return plan_from_journal(a, run);
    if (a->fleet)
        return plan_from_fleet(a);
    return cli_make_pattern(a);
}

/* True if such a port can never be opened. */
static bool lacks_address(const cli_transport *to, const char *port)
{
    const char *at = port + strlen(to->name) + strlen("://");

    return to->address &&
           (!*at || (!strcmp(to->name, "tcp") && !strchr(at, ':')));
}

int cmd_plan(cli_args *a)
{
    const operation *o = operation_of(a->operand[0]);
    const cli_transport *to = cli_transport_of(a->port);
    all l = {.row = NULL};
    int code;

    if (!o)
        return cli_say(EXIT_USAGE,
                       "cannot plan \"%s\"; there are matvec, matmul, power, "
                       "stream, regress, train",
                       a->operand[0]);
    if (a->operands != o->sizes + 1)
        return cli_say(EXIT_USAGE, "plan %s takes %s, not %d size%s", o->name,
                       o->form, a->operands - 1, a->operands == 2 ? "" : "s");
    if (lacks_address(to, a->port))
        return cli_say(EXIT_USAGE, "--port %s is no address; give %s", a->port,
                       to->form);
    TRY_CODE(know_workers(a, l.run));
    cli_busy("forecasting", o->name);
    code = forecast_each(a, o, &l);
    cli_busy_end();
    if (!code)
        print_all(a, &l);
    free(l.row);
    return code;
}
