/* laws_faults.h -- tests laws 5 and 9. With any faults a round ends with the
 * right answer or a status and a reason, and its journal replays. The laws are
 * the same for all ports. */
#ifndef KF_TEST_LAWS_FAULTS_H
#define KF_TEST_LAWS_FAULTS_H

#include "laws_rig.h"

#include "cli/replay.h" /* a part of the command, linked with the tests */

#include <unistd.h>

#define FAULT_EVENTS 24
#define ROUNDS 5

/* Draws events. A worker gets an event only while it is there. */
static inline size_t random_fault_events(kofn_fault_event *h, size_t workers,
                                         kf_rng *r)
{
    static const double at[] = {0, 0.1, 0.25, 0.5, 0.75, 0.9, 1};
    bool gone[64] = {false};
    size_t n = 0, there = workers;

    for (unsigned round = 1; round <= ROUNDS; round++)
        for (size_t f = 0; f < 7 && n < FAULT_EVENTS; f++) {
            kofn_fault_event_kind kind =
                (kofn_fault_event_kind)(1 + kf_rng_below(r, 4));
            uint32_t w = (uint32_t)kf_rng_below(r, there);

            if (kf_rng_below(r, 2) ||
                (gone[w] && kind != KOFN_FAULT_EVENT_JOIN))
                continue;
            h[n++] = (kofn_fault_event){round, at[f], kind, w,
                                        1 + (double)kf_rng_below(r, 9)};
            gone[w] |= kind == KOFN_FAULT_EVENT_LEAVE;
            there += kind == KOFN_FAULT_EVENT_JOIN;
        }
    return n;
}

/* The place of the workers: how they are started there, and how they are ended
 * after the job is closed (NULL if nothing is to be done). */
typedef struct site {
    bool simulated;
    bool staged; /* the coordinator decides about joins, not the fault model */
    kofn_port *(*open)(const rig *x, const rig_kind *kind,
                       const kofn_faults *faults);
    void (*close)(void);
} site;

static inline kofn_faults random_faults(const site *on, kf_rng *r)
{
    bool sim = on->simulated;
    kofn_faults w = KOFN_FAULTS_INIT(.seed = kf_rng_u64(r));

    if (kf_rng_below(r, 2))
        w.spread = 0.5;
    if (kf_rng_below(r, 2))
        w.straggle = 0.3;
    if (kf_rng_below(r, 3) == 0)
        w.delay = sim ? 1e-5 : 1e-3;
    /* Rates depend on the clock. On a loaded machine a round would take longer
     * than the next leave, so real workers leave and join by events only. */
    if (kf_rng_below(r, 3) == 0 && sim)
        w.leave = 1e4;
    if (kf_rng_below(r, 3) == 0 && sim && !on->staged)
        w.join = 1e4;
    if (sim && kf_rng_below(r, 2)) {
        w.latency = 1e-6;
        w.bandwidth = 1e9;
    }
    return w;
}

/* Draws a mode of errors if there are spare workers. */
static inline kofn_errors random_errors(const kofn_plan *p, kf_rng *r)
{
    const kofn_layout *L = &p->layout;

    if (L->adjoint || L->whole || p->op->stream ||
        p->workers / L->groups <= L->enough)
        return KOFN_ERRORS_NONE;
    return (kofn_errors)kf_rng_below(r, 4);
}

static inline kofn_options random_options(const kofn_plan *p, kf_rng *r)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    bool plain = p->mixes_parts && !p->layout.adjoint && !p->op->stream;

    o.in_flight = (kofn_in_flight)kf_rng_below(r, 3);
    o.errors = random_errors(p, r);
    plain &= o.errors == KOFN_ERRORS_NONE;
    o.below = (kofn_below)kf_rng_below(r, plain ? 3 : 2);
    o.patience = KOFN_SECOND / 100;
    o.late = kf_rng_below(r, 2) ? 2 : 0;
    o.pieces = 1 + (unsigned)kf_rng_below(r, 5);
    return o;
}

/* Checks a partial result: present numbers are right, and missing ones are
 * NaN. Whole rows are missing, unless blocks consist of columns. */
static inline void check_partial(const rig *x)
{
    size_t cols = x->y.cols;
    double *y = as_doubles(&x->y);

    for (size_t i = 0; i < x->y.rows; i++) {
        size_t nans = 0;

        for (size_t j = 0; j < cols; j++)
            nans += isnan(y[i * cols + j]) ? 1 : 0;
        check(x->op == KOFN_LEFT || nans == 0 || nans == cols);
        for (size_t j = 0; j < cols; j++)
            check(isnan(y[i * cols + j]) ||
                  fabs(y[i * cols + j] - x->want[i * cols + j]) <=
                      (x->y.dtype == KOFN_F64 ? 1e-8 : 1e-2));
    }
    kf_free(y);
}

static inline char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    text = numbers(*n + 1, 1);
    assert_int_equal(fread(text, 1, *n, f), *n);
    fclose(f);
    return text;
}

static inline int replay_edited(const char *text, size_t n, size_t at,
                                size_t cut, const char *instead)
{
    char *copy = numbers(n + strlen(instead) + 1, 1);
    replay_result res;
    int code;

    memcpy(copy, text, at);
    memcpy(copy + at, instead, strlen(instead));
    memcpy(copy + at + strlen(instead), text + at + cut, n - at - cut);
    code = replay(copy, n - cut + strlen(instead), "edited", NULL, &res);
    check(code == SAME || (res.line > 0 && *res.error));
    kf_free(copy);
    return code;
}

/* Changes one field of a line that made the core act. The replay must fail. */
static inline void spoil_line(const char *text, size_t n, const char *line,
                              size_t length, kf_rng *r)
{
    static const char *const keys[] = {"\"h\":\"",
                                       "\"w\":", "\"k\":", "\"ev\":\""};
    static const char *const instead[] = {"0123456789abcdef", "190000",
                                          "4000000000", "nonsense"};
    size_t f = (size_t)kf_rng_below(r, 4), key = strlen(keys[f]), at, cut;
    char field[400];
    const char *found;

    assert_true(length < sizeof field);
    memcpy(field, line, length);
    field[length] = 0;
    found = strstr(field, keys[f]);
    if (!found)
        return;
    at = (size_t)(line - text) + (size_t)(found - field) + key;
    cut = strcspn(found + key, "\",}");
    check(replay_edited(text, n, at, cut, instead[f]) != SAME);
}

static inline void spoil_journal(const char *text, size_t n, kf_rng *r)
{
    const char *line = text, *end;

    while ((end = memchr(line, '\n', (size_t)(text + n - line)))) {
        size_t length = (size_t)(end - line);

        if (line > text && length > 5 && strstr(line, "\"h\"") &&
            strstr(line, "\"h\"") < end && kf_rng_below(r, 12) == 0)
            spoil_line(text, n, line, length, r);
        line = end + 1;
    }
    check(replay_edited(text, n, 2, 4, "oldw") == NOT_A_JOURNAL);
    check(replay_edited(text, n, n - 1, 1, "") == SAME); /* cut off */
}

static inline void replays(const char *path, unsigned rounds, kf_rng *r)
{
    replay_result res;
    size_t n;
    char *text = read_all(path, &n);
    int code = replay(text, n, path, NULL, &res);

    if (code)
        fail_msg("%s:%s: %s", where->scheme->name, where->args, res.error);
    /* a product that fails its test as a whole is computed once more */
    check(res.events > 0 && res.rounds >= rounds);
    spoil_journal(text, n, r);
    kf_free(text);
}

/* The number of faulty workers. If any worker may be faulty, there may be more
 * of them than can be located. Then the output is right only with a certain
 * chance, which tests/verify/verdicts_test.c measures. */
typedef enum faulty { FAULTY_NONE, FAULTY_ONE, FAULTY_MANY } faulty;

/* The promises about the products of a run. */
typedef struct bounds {
    const kofn_plan *plan;
    kofn_errors errors;
    kofn_below below;
    faulty corrupt;
    bool
        still; /* nothing happens between the end of a product and its report */
} bounds;

/* Checks that a product fails for lack of workers only if fewer than
 * `threshold` are live, whatever happened to other workers before. */
static inline void check_too_few(const bounds *of, const kofn_report *rep)
{
    const kofn_layout *L = &of->plan->layout;

    if (of->still && of->errors == KOFN_ERRORS_NONE && L->groups == 1 &&
        L->submessages == 1)
        check(rep->live < L->threshold);
}

/* Checks the end of a product: the right answer, or a status with a message. */
static inline void check_ended(const rig *x, const kofn_report *rep,
                               kofn_status st, const bounds *of)
{
    faulty corrupt = of->corrupt;
    bool independent =
        corrupt == FAULTY_NONE || (corrupt == FAULTY_ONE && rep->liars > 0);

    if (st == KOFN_OK && independent)
        check_answer(x, rep);
    else if (st == KOFN_PARTIAL)
        check_partial(x);
    else
        check(st == KOFN_OK || st == KOFN_TOOFEW || st == KOFN_UNSTABLE ||
              st == KOFN_LATE || (st == KOFN_CORRUPT && corrupt));
    check(st >= 0 || *kofn_errmsg());
    check(st != KOFN_PARTIAL || of->below == KOFN_BELOW_DEGRADE);
    if (st == KOFN_TOOFEW)
        check_too_few(of, rep);
}

/* Runs products with up to `most` open at once. They are taken in any order,
 * and some are cancelled before they end. Returns the number of products that
 * ended. */
static inline unsigned several_open(rig *x, size_t most, const bounds *of,
                                    kf_rng *r)
{
    bool stream = x->op == KOFN_STREAM;
    rig one[ROUNDS];
    uint32_t number[ROUNDS];
    size_t put = 0, open = 0;
    unsigned over = 0;
    bool broken = false;

    while (!broken && (put < ROUNDS || open > 0)) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;
        size_t i;

        if (put < ROUNDS && open < most) {
            one[open] = rig_beside(x, put++ + 70);
            st = rig_put(&one[open], &number[open]);
            check(st == KOFN_OK && number[open] == put);
            open++;
            continue;
        }
        i = kf_rng_below(r, open);
        st = kofn_take(x->job, number[i], kf_rng_below(r, 6) ? KOFN_NEVER : 0,
                       &rep);
        if (st == KOFN_AGAIN) {
            st = kofn_cancel(x->job, number[i]);
            check(st == (stream ? KOFN_UNSUITED : KOFN_OK));
            if (stream)
                continue;
        } else {
            check_ended(&one[i], &rep, st, of);
            broken = st == KOFN_LATE && strstr(kofn_errmsg(), "can come");
            over += !broken;
        }
        rig_put_away(&one[i]);
        one[i] = one[--open];
        number[i] = number[open];
    }
    while (open-- > 0) { /* products that ended before the failure are kept */
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st = kofn_take(x->job, number[open], KOFN_NEVER, &rep);

        if (st != KOFN_STATE)
            check_ended(&one[open], &rep, st, of);
        over += st != KOFN_STATE;
        rig_put_away(&one[open]);
    }
    return over;
}

static inline unsigned one_by_one(rig *x, const bounds *of)
{
    unsigned over = 0;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        rig_next(x, round + 70);
        st = rig_round(x, &rep);
        check_ended(x, &rep, st, of);
        if (st == KOFN_LATE && strstr(kofn_errmsg(), "can come"))
            break;
        over++;
    }
    return over;
}

/* Runs a job with random faults and any number of open products. */
static inline void any_faults(const point *at, const kofn_plan *p, kf_rng *r,
                              const site *on)
{
    kofn_fault_event events[FAULT_EVENTS + 1];
    kofn_faults faults = random_faults(on, r);
    kofn_options o = random_options(p, r);
    char path[] = "laws_faults.XXXXXX";
    int fd = mkstemp(path);
    size_t most = kf_rng_below(r, 2) ? 1 : 2 + kf_rng_below(r, 3);
    unsigned over;
    rig_kind kind;
    bounds of = {p, o.errors, o.below, FAULTY_NONE, on->simulated};
    rig x;

    assert_true(fd >= 0);
    close(fd);
    o.journal = path;
    o.events = events;
    if (o.errors != KOFN_ERRORS_NONE)
        of.corrupt = (faulty)kf_rng_below(r, 3);
    if (of.corrupt == FAULTY_ONE)
        events[o.event_count++] =
            (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_CORRUPT,
                               (uint32_t)kf_rng_below(r, at->workers), 0};
    if (of.corrupt == FAULTY_MANY)
        faults.corrupt = 0.1;
    o.event_count +=
        random_fault_events(events + o.event_count, at->workers, r);
    job_inputs(&x, at, &kind);
    assert_ok(kofn_open(&x.job, p, on->open(&x, &kind, &faults), &o));
    check(rig_place(&x) == KOFN_OK);
    over = most > 1 ? several_open(&x, most, &of, r) : one_by_one(&x, &of);
    kofn_close(x.job);
    x.job = NULL;
    if (on->close)
        on->close(); /* before freeing what its workers read */
    rig_down(&x);
    replays(path, over, r);
    unlink(path);
}

#endif
