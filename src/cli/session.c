/* session.c -- parts that the running commands share: a job from options,
 * progress while it runs, a report when it is over.
 *
 * Owns the port, the job and the report from session_open to the end of the
 * command. It may not know what the command computes. */
#include "cli.h"
#include "log.h"
#include "metrics.h"

#include "base/clock.h"
#include "base/report.h"

#include <kofn/fleet.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

static double seconds(kofn_time t)
{
    return (double)t * 1e-9;
}

/* ---- opening ------------------------------------------------------------- */

static int begin(session *s, const cli_args *a, size_t rounds)
{
    *s = (session){.args = a,
                   .found = {.rel_error = -1},
                   .time.started = kf_clock_seconds(),
                   .time.drawn = kf_clock_seconds(),
                   .time.tell = kf_clock_seconds() + 2,
                   .expected_rounds = rounds};
    s->per_round = json_array();
    s->per_iteration = json_array();
    if (!s->per_round || !s->per_iteration)
        return cli_say(EXIT_FAILED, "out of memory");
    return cli_check_output(a, false);
}

/* Says to those that ask what the command is doing. */
static void label(const session *s)
{
    const cli_command *c = s->args->command;
    bool counted = c->bit & IN_PRODUCT || c->bit == IN_STREAM;
    uint64_t of = c->bit == IN_STREAM ? 0 : s->expected_rounds;
    uint64_t at = s->iterations + 1;

    kofn_job_label(s->job, c->name,
                   c->bit == IN_STREAM ? "product"
                   : counted           ? "round"
                                       : "iteration",
                   counted         ? 0
                   : of && at > of ? of
                                   : at,
                   of);
}

/* Opens a job with the session's plans. */
static int open_job(session *s, const kofn_problem *pb, size_t rounds,
                    bool coded)
{
    const cli_args *a = s->args;
    kofn_options o = a->job;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_port *port;

    if (a->events) {
        TRY_CODE(cli_fail_input(kofn_events_read(
            &s->events, &o.event_count, a->events, a->workers, rounds)));
        o.events = s->next_event = s->events;
        s->events_left = o.event_count;
    }
    TRY_CODE(cli_fail(kofn_plan_describe(s->plan[0], false, &info)));
    s->block_rows = info.block_rows;
    if (!coded)
        TRY_CODE(cli_check_memory(a, pb, &info));
    TRY_CODE(checkpoint_open(&s->checkpoint, a, info.spec));
    /* a restarted worker cannot use blocks that have changed since */
    TRY_CODE(
        cli_port_open(a, pb, coded ? 0 : checkpoint_job(s->checkpoint), &port));
    TRY_CODE(cli_fail(kofn_open_all(&s->job, (const kofn_plan *const *)s->plan,
                                    s->operands, port, &o)));
    s->time.opened = s->time.first = s->time.last = kf_clock_seconds();
    label(s);
    cli_tell_blas(a);
    return 0;
}

int session_open(session *s, const cli_args *a, const kofn_problem *pb,
                 size_t rounds, const cli_training *coded)
{
    kofn_status st;

    TRY_CODE(begin(s, a, rounds));
    s->operands = coded ? coded->shape.layers : 1;
    st = coded ? kofn_training_plans(coded->training, a->scheme, a->workers,
                                     a->seed, s->plan)
               : kofn_plan_new(&s->plan[0], pb, a->scheme, a->workers, a->seed);
    if (!st && a->command->bit == IN_REGRESS) {
        st = kofn_plan_serve_left(s->plan[0], 1); /* for gradients by X' z */
        st = st == KOFN_UNSUITED ? KOFN_OK : st;
    }
    return st ? cli_fail(st) : open_job(s, pb, rounds, coded != NULL);
}

/* ---- progress ------------------------------------------------------------ */

/* Writes "placing 1.2 of 2.4 GB, 14 s left". */
static void say_placing(const session *s, const kofn_progress *p, char out[80])
{
    double past = kf_clock_seconds() - s->time.opened, all = (double)p->blocks,
           done = fmin((double)p->placed, all);
    char of[20], so_far[20];
    int n;

    cli_bytes_text(so_far, done);
    cli_bytes_text(of, all);
    n = snprintf(out, 80, "placing %s of %s", so_far, of);

    if (past > 1 && done > all / 100)
        snprintf(out + n, 80 - (size_t)n, ", %.0f s left",
                 past * (all - done) / done);
}

/* Writes "round 3 of 20", or "iteration 3 of 20" if an iteration takes several
 * rounds, and an estimate of the remaining seconds. */
static void say_where(const session *s, const kofn_progress *p, char out[80])
{
    bool product = (s->args->command->bit & IN_PRODUCT) != 0;
    size_t at = product ? p->round : s->iterations + 1, of = s->expected_rounds;
    double past = kf_clock_seconds() - s->time.first;
    double done = (double)(at - 1) + (product ? p->done : 0);
    int n;

    if (p->here < p->expected) {
        snprintf(out, 80, "%zu of %zu workers are here", p->here, p->expected);
        return;
    }
    if (p->storing > 0 && p->round == 0) {
        say_placing(s, p, out);
        return;
    }
    n = snprintf(out, 80, "%s %zu of %zu", product ? "round" : "iteration",
                 at < of ? at : of, of);

    if (at > 1 && (double)of > done)
        snprintf(out + n, 80 - (size_t)n, ", %.0f s left",
                 past / done * ((double)of - done));
}

static void draw(session *s)
{
    double now = kf_clock_seconds();
    kofn_progress p = KOFN_PROGRESS_INIT;
    uint64_t moved;
    char where[80], fleet[80] = "", owed[80] = "", mending[80] = "", rate[20];

    if (s->args->quiet || now - s->time.drawn < 0.1 || !isatty(STDERR_FILENO))
        return;
    kofn_job_progress(s->job, &p);
    say_where(s, &p, where);
    if (p.joined || p.left)
        snprintf(fleet, sizeof fleet, ", %zu joined, %zu lost", p.joined,
                 p.left);
    if (p.rebuilding || p.corrupt)
        snprintf(mending, sizeof mending, ", %zu rebuilding, %u corrected",
                 p.rebuilding, p.corrupt);
    if (p.outstanding)
        snprintf(owed, sizeof owed, "  %zu strips to come from %zu workers",
                 p.outstanding, p.awaited);
    moved = p.storing > 0 && p.round == 0 ? p.placed : p.sent + p.received;
    cli_bytes_text(rate, moved > s->moved ? (double)(moved - s->moved) /
                                                (now - s->time.drawn)
                                          : 0);
    if (p.storing > 0 && p.round == 0)
        snprintf(owed, sizeof owed, ", %zu still store their blocks",
                 p.storing);
    cli_draw("%s%s  %zu workers live%s%s%s  %s/s", where, s->remark, p.live,
             fleet, mending, owed, rate);
    s->moved = moved;
    s->time.drawn = now;
}

/* Writes to the log what has changed, at most fifty times a second, and renews
 * the figures of --metrics-listen. */
static void log_changes(session *s, bool now)
{
    double clock;

    if (s->job)
        cli_metrics_of_job(s->job, cli_transport_of(s->args->port)->name);
    if (!cli_log_is_open() || !s->job)
        return;
    clock = kf_clock_seconds();
    if (!now && clock - s->time.logged < 0.02)
        return;
    s->time.logged = clock;
    cli_log_fleet(s->job);
}

void session_tell_waiting(session *s, bool quiet)
{
    double now = kf_clock_seconds();
    kofn_progress p = KOFN_PROGRESS_INIT;
    char crowd[200] = "";

    log_changes(s, false);
    kofn_job_progress(s->job, &p);
    if (quiet || (p.here >= p.expected && !p.needed)) {
        s->time.tell = now + 2;
        return;
    }
    if (now < s->time.tell)
        return;
    s->time.tell = now + 10;
    if (p.crowd)
        snprintf(
            crowd, sizeof crowd,
            "; %zu worker%s, because %s%s no seat left: give each worker its "
            "own key, or see --workers-per-principal",
            p.crowd, p.crowd == 1 ? " waits" : "s wait",
            p.crowd == 1 ? "its " : "their ",
            s->args->keys || s->args->tls_ca
                ? p.crowd == 1 ? "key has" : "keys have"
            : p.crowd == 1 ? "host has"
                           : "hosts have");
    cli_erase();
    if (p.here < p.expected)
        fprintf(stderr,
                "%zu of %zu workers are here, waiting for the others%s\n",
                p.here, p.expected, crowd);
    else
        fprintf(stderr,
                "%zu worker%s live and %zu are needed, waiting for more%s\n",
                p.live, p.live == 1 ? " is" : "s are", p.needed, crowd);
}

static bool is_simulated(const session *s)
{
    return cli_transport_of(s->args->port)->simulated;
}

/* Counts rounds that ran before this one without a call, as in the search for
 * a step length. */
static void know_times(session *s)
{
    kofn_report total = KOFN_REPORT_INIT;

    kofn_job_totals(s->job, &total);
    s->time.last = kf_clock_seconds();
    if (s->time.first == s->time.opened && !is_simulated(s))
        s->time.first =
            fmax(s->time.opened, s->time.last - seconds(total.took));
}

static json_t *round_json(const kofn_report *r)
{
    json_t *o = json_object(), *computed = json_array();

    PUT_WHOLE("live", r->live);
    PUT("rows", cli_list(r->rows, r->workers));
    PUT("seconds", cli_number(seconds(r->took)));
    PUT("encode_seconds", cli_number(seconds(r->encoding)));
    PUT("place_seconds", cli_number(seconds(r->placing)));
    PUT("send_seconds", cli_number(seconds(r->sending)));
    PUT("wait_seconds", cli_number(seconds(r->waiting)));
    PUT("receive_seconds", cli_number(seconds(r->receiving)));
    PUT("decode_seconds", cli_number(seconds(r->decoding)));
    PUT("check_seconds", cli_number(seconds(r->checking)));
    PUT("outside_seconds", cli_number(seconds(r->outside)));
    for (size_t i = 0; i < r->workers && r->computed; i++)
        json_array_append_new(computed, cli_number(seconds(r->computed[i])));
    PUT("computed_seconds", computed);
    return o;
}

void session_round(session *s, const kofn_report *rep, double change)
{
    if (!rep)
        session_tell_waiting(s, s->args->quiet);
    else
        know_times(s);
    log_changes(s, rep && rep->corrupt);
    if (rep) {
        label(s);
        cli_log_located(s->job, rep);
    }
    if (!s->args->show)
        draw(s);
    else if (rep)
        show_round(s, rep, change);
    if (!rep || !s->args->json)
        return;
    json_array_append_new(s->per_round, round_json(rep));
}

/* ---- the report ---------------------------------------------------------- */

/* The time of the command, by what it did. */
typedef struct times {
    double total; /* the sum of the others */
    double read, start, encode, place, send, wait, receive, decode, check;
    double verify, write, other;
} times;

/* Lists the members but the first, in order. */
#define TIMES(X)                                                               \
    X(read)                                                                    \
    X(start)                                                                   \
    X(encode)                                                                  \
    X(place) X(send) X(wait) X(receive) X(decode) X(check) X(verify) X(write)

/* Returns the times until now. What the job does not know is measured here. On
 * a simulated clock only the job's times have a meaning. */
static times times_of(const session *s, const kofn_report *t)
{
    times x = {.encode = seconds(t->encoding),
               .place = seconds(t->placing),
               .send = seconds(t->sending),
               .wait = seconds(t->waiting),
               .receive = seconds(t->receiving),
               .decode = seconds(t->decoding),
               .check = seconds(t->checking)};
    double sum = 0;

    if (!is_simulated(s)) {
        x.total = kf_clock_seconds() - cli_begun();
        x.read = s->time.started - cli_begun();
        x.start = s->time.opened - s->time.started;
        x.verify = cli_spent(CLI_VERIFYING, NAN);
        x.write = cli_spent(CLI_WRITING, NAN);
    }
#define X(name) sum += x.name;
    TIMES(X)
#undef X
    if (is_simulated(s))
        x.total = sum;
    x.other = fmax(0, x.total - sum);
    return x;
}

static void put_times(const session *s, const kofn_report *t, json_t *o)
{
    times x = times_of(s, t);

    PUT("total_seconds", cli_number(x.total));
    PUT("read_seconds", cli_number(x.read));
    PUT("start_seconds", cli_number(x.start));
    PUT("verify_seconds", cli_number(x.verify));
    PUT("write_seconds", cli_number(x.write));
    PUT("other_seconds", cli_number(x.other));
}

#define COUNT(key, n) PUT(key, json_integer((json_int_t)(n)));
#define SECONDS(key, time) PUT(key, cli_number(seconds(time)));
#define NUMBER(key, x) PUT(key, cli_number(x));
#define LIST(key, list)

void session_put_report(const session *s, const kofn_report *r, json_t *o)
{
    json_t *corrupted = json_array(), *names = json_array();
    json_t *given_up = json_array();

#define X(field, adds, kind, key, ...) kind(key, r->field)
    KF_REPORT_MAP(X)
#undef X
    for (size_t i = 0; i < r->workers; i++) {
        if (r->located[i]) {
            json_array_append_new(corrupted, json_integer((json_int_t)i));
            json_array_append_new(names, json_string(kofn_job_name(s->job, i)));
        }
        if (r->states[i] == KOFN_WORKER_UNRESPONSIVE)
            json_array_append_new(given_up, json_integer((json_int_t)i));
    }
    PUT("corrupted", corrupted);
    PUT("corrupted_names", names);
    PUT("given_up", given_up);
}

static void report_json(const session *s, const kofn_report *t,
                        const kofn_plan_info *info, int code)
{
    const cli_args *a = s->args;
    json_t *o = json_object();
    char verdict[KOFN_VERDICT] = "";

    PUT("status", json_string(code == EXIT_EXACT          ? "ok"
                              : s->status == KOFN_PARTIAL ? "partial"
                                                          : "failed"));
    if (code != EXIT_EXACT)
        PUT("error", cli_error_json());
    kofn_job_verdict(s->job, verdict, sizeof verdict);
    PUT("command", json_string(a->command->name));
    PUT("verdict", json_string(verdict));
    PUT("scheme", json_string(info->spec));
    PUT_WHOLE("workers", a->workers);
    PUT_WHOLE("threshold", info->threshold);
    PUT_WHOLE("iterations", s->iterations);
    session_put_report(s, t, o);
    if (!is_simulated(s)) /* simulated runs repeat to the byte, times do not */
        put_times(s, t, o);
    if (a->verify)
        PUT("rel_error",
            cli_number(s->found.rel_error < 0 ? NAN : s->found.rel_error));
    if (s->found.rel_error >= 0 && a->command->bit & IN_PRODUCT) {
        PUT("row_error", cli_number(s->found.row_error));
        PUT_WHOLE("worst_row", s->found.worst_row);
    }
    if (a->command->bit == IN_REGRESS)
        PUT_WHOLE("recovery_threshold", info->threshold);
    if (s->figures)
        json_object_update(o, s->figures);
    checkpoint_report(s->checkpoint, o);
    PUT("port", json_string(a->port));
    PUT("clock", json_string(!cli_transport_of(a->port)->simulated ? "real"
                             : a->faults.clock                     ? "measured"
                                               : "modelled"));
    PUT_WHOLE("seed", a->seed);
    cli_put_blas(a, o);
    PUT("per_round", json_incref(s->per_round));
    cli_print_json(o);
}

/* Returns the quantity that the floor is relative to (docs/errors.md). */
static const char *measure(const kofn_plan_info *info)
{
    if (info->parts)
        return "the largest answer";
    if (strcmp(info->scheme, "pcr") == 0)
        return "|column of A| |A x|";
    return "|row of A| |column of the input|";
}

static void report_errors(const kofn_report *t, const kofn_plan_info *info)
{
    fprintf(stderr, "errors below %.1e (relative to %s) cannot be detected",
            t->floor, measure(info));
    if (t->unchecked)
        fprintf(stderr, "; %u round%s not checked", t->unchecked,
                t->unchecked == 1 ? " was" : "s were");
    fprintf(stderr, "\n");
}

/* Prints where the time went; parts of less than a thousandth are left to the
 * rest. */
static void report_times(const session *s, const kofn_report *t)
{
    times x = times_of(s, t);
    const char *before = ": ";
    double rest = x.other;

    fprintf(stderr, "%.3g s%s", x.total,
            is_simulated(s) ? " (simulated)" : " in all");
#define X(name)                                                                \
    if (x.name >= x.total / 1000) {                                            \
        fprintf(stderr, "%s" #name " %.3g", before, x.name);                   \
        before = ", ";                                                         \
    } else {                                                                   \
        rest += x.name;                                                        \
    }
    TIMES(X)
#undef X
    if (rest > 0)
        fprintf(stderr, "%sother %.3g", before, rest);
    fprintf(stderr, "\n");
}

static void report_accuracy(const session *s, const kofn_report *t)
{
    fprintf(stderr, "rounding: at most %.2g times that of plain products",
            fmax(1, t->noise));
    if (s->found.rel_error >= 0)
        fprintf(stderr, "; relative error %.2g", s->found.rel_error);
    if (s->found.rel_error >= 0 && s->args->command->bit & IN_PRODUCT)
        fprintf(stderr, " (row %zu: %.2g of |A| |B|, the most)",
                s->found.worst_row, s->found.row_error);
    fprintf(stderr, "\n");
}

static void report_text(const session *s, const kofn_report *t,
                        const kofn_plan_info *info)
{
    char verdict[KOFN_VERDICT] = "";

    report_times(s, t);
    report_accuracy(s, t);
    if (s->args->job.errors != KOFN_ERRORS_NONE)
        report_errors(t, info);
    for (size_t i = 0; i < t->workers; i++)
        if (t->states[i] == KOFN_WORKER_UNRESPONSIVE) {
            const char *name = kofn_job_name(s->job, i);

            fprintf(stderr,
                    "worker %zu%s%.64s%s was evicted: it was connected but did "
                    "not answer\n",
                    i, *name ? " (" : "", name, *name ? ")" : "");
        }
    cli_report_blas(s->args);
    if (!s->args->output)
        fprintf(stderr, "the result was not kept: no file was named by -o\n");
    kofn_job_verdict(s->job, verdict, sizeof verdict);
    cli_tell("%s", verdict);
}

/* Finishes the drawing and the figures. Failures there are reported but do not
 * spoil an answer. */
static int finish(const session *s, int code)
{
    kofn_status st = cli_caption(s->job, s->args, s->found.rel_error);
    int said;

    if (!st && s->job)
        st = kofn_finish(s->job);
    if (!st)
        return code;
    said = cli_say(code ? 0 : EXIT_FAILED, "%s", kofn_errmsg());
    return code ? code : said;
}

int session_close(session *s, int code)
{
    kofn_report total = KOFN_REPORT_INIT;
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;

    cli_erase();
    log_changes(s, true);
    code = checkpoint_end(s->checkpoint, finish(s, code));
    if (cli_caught() && code)
        cli_interrupted(s->args, s->checkpoint);
    if (s->job && !cli_caught() &&
        kofn_plan_describe(s->plan[0], false, &info) == KOFN_OK) {
        kofn_job_totals(s->job, &total);
        if (s->args->json)
            report_json(s, &total, &info, code);
        else if (!s->args->quiet && code == EXIT_EXACT)
            report_text(s, &total, &info);
    }
    if (cli_caught() && cli_transport_of(s->args->port)->here)
        return 128 + cli_caught(); /* threads may be in the middle of a task */
    if (!cli_caught() || !s->args->checkpoint)
        kofn_close(s->job); /* dismisses remote workers */
    cli_ports_end();
    if (cli_caught())
        return 128 + cli_caught();
    for (size_t i = 0; i < s->operands; i++)
        kofn_plan_free(s->plan[i]);
    kofn_free(s->events);
    checkpoint_free(s->checkpoint);
    json_decref(s->per_round);
    json_decref(s->per_iteration);
    json_decref(s->figures);
    return code;
}
