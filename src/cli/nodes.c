/* nodes.c -- runs the nodes of a mesh: all of them as threads of this process,
 * or this process as one of many. Lets them leave and join.
 *
 * Owns the nodes, their threads and the transports of the mesh from nodes_open
 * to nodes_close. A node's thread stores its results in its own cli_node. */
#include "nodes.h"

#include "log.h"

#include "base/clock.h"
#include "base/mix.h"
#include "base/try.h"

#include <kofn/mpi.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------- */

static int read_events(cli_nodes *m, size_t rounds)
{
    TRY_CODE(cli_fail_input(kofn_events_read(
        &m->events, &m->event_count, m->a->events, m->a->workers, rounds)));
    for (size_t i = 0; i < m->event_count; i++) {
        kofn_fault_event_kind kind = m->events[i].kind;

        if (kind == KOFN_FAULT_EVENT_JOIN &&
            !cli_transport_of(m->a->port)->here)
            return cli_say(
                EXIT_USAGE,
                "%s: this mesh has one process per node, so an event cannot "
                "make a node join; start another process",
                m->a->events);
        if ((kind == KOFN_FAULT_EVENT_CORRUPT ||
             kind == KOFN_FAULT_EVENT_FLIP || kind == KOFN_FAULT_EVENT_ERR) &&
            m->a->job.errors == KOFN_ERRORS_NONE)
            return cli_say(EXIT_USAGE,
                           "%s: nodes can be corrupt, err, or have bits that "
                           "flip only with --errors; without it a result with "
                           "mistakes in it would be taken for one without",
                           m->a->events);
    }
    return 0;
}

int nodes_open(cli_nodes *m, const cli_args *a, size_t rounds)
{
    m->a = a;
    m->count = a->workers;
    TRY_CODE(nodes_check_options(a));
    if (a->events)
        TRY_CODE(read_events(m, rounds));
    m->here = cli_transport_of(a->port)->here ? m->count + m->event_count : 1;
    m->node = calloc(m->here, sizeof *m->node);
    return m->node ? 0 : cli_say(EXIT_FAILED, "out of memory");
}

/* ---- a node's life ------------------------------------------------------- */

static void live(void *ud, kofn_transport *t);

static kofn_status start(cli_nodes *m, size_t number, uint32_t seat)
{
    cli_node *n = &m->node[number];

    *n = (cli_node){.all = m,
                    .seat = seat,
                    .number = number,
                    .resumes = m->a->resume && seat != KOFN_NO_SEAT};
    return kofn_mesh_start(m->mesh, live, n);
}

/* Returns the node's number in the events: that of its thread, or its seat if
 * each process is a node. */
static uint32_t number_of(const cli_node *n)
{
    return n->all->mesh ? (uint32_t)n->number : n->seat;
}

/* Applies the events before this round. The first node that comes here starts
 * a joining node. Returns true if this node is to leave. */
static bool happen(const cli_node *n, uint64_t round)
{
    cli_nodes *m = n->all;
    size_t number = m->count;
    bool go = false;

    for (size_t i = 0; i < m->event_count; i++) {
        const kofn_fault_event *e = &m->events[i];
        size_t expected = i;

        if (e->round > round)
            break;
        go |= e->kind == KOFN_FAULT_EVENT_LEAVE && e->worker == number_of(n);
        if (atomic_compare_exchange_strong(&m->due, &expected, i + 1) &&
            e->kind == KOFN_FAULT_EVENT_JOIN)
            (void)start(m, number,
                        KOFN_NO_SEAT); /* the mesh works without it */
        number += e->kind == KOFN_FAULT_EVENT_JOIN;
    }
    return go;
}

/* Writes to the log when this node sees more or fewer live nodes. */
static void log_live(cli_node *n, const kofn_node_view *view)
{
    bool fewer = view->live < n->live;

    if (view->live == n->live)
        return;
    cli_log(&(cli_event){fewer ? CLI_LOG_WARNING : CLI_LOG_INFO,
                         fewer ? "lost" : "came", n->number, ""},
            "%zu nodes are live, before %zu", view->live, n->live);
    n->live = view->live;
}

/* Stops the node on a signal, or when an event says that it leaves. A node
 * that took the last iterate from others may be late; events before that
 * iterate count as well. */
static int watch(void *ud, const kofn_node_view *view, const double *scalar)
{
    cli_node *n = ud;

    if (n->all->watch)
        n->all->watch(n, view, scalar);
    log_live(n, view);
    if (!n->all->mesh && view->seat != KOFN_NO_SEAT)
        n->seat = view->seat;
    nodes_began(n, view);
    return cli_caught() ||
           happen(n, (view->at.step - view->final) / n->all->each + 1);
}

/* ---- a node that errs ---------------------------------------------------- */

static bool is_normal_again(const cli_node *n, const kofn_fault_event *since,
                            uint64_t step)
{
    const cli_nodes *m = n->all;

    for (const kofn_fault_event *e = since; e < m->events + m->event_count; e++)
        if (e->kind == KOFN_FAULT_EVENT_NORMAL && e->worker == number_of(n) &&
            e->round <= step)
            return true;
    return false;
}

/* True if the event makes this node wrong now. A corrupt node is wrong in all
 * partial products from its event on. A flipped bit or a single error happens
 * once, in the step of the event. */
static bool is_due(cli_node *n, const kofn_fault_event *e,
                   kofn_fault_place where, uint64_t step)
{
    if (e->worker != number_of(n))
        return false;
    if (e->kind == KOFN_FAULT_EVENT_CORRUPT)
        return where == KOFN_FAULT_IN_PRODUCT && step >= e->round &&
               !is_normal_again(n, e, step);
    return step == e->round && n->erred < step &&
           (e->kind == KOFN_FAULT_EVENT_FLIP
                ? where == KOFN_FAULT_IN_MEMORY
                : e->kind == KOFN_FAULT_EVENT_ERR &&
                      where == (kofn_fault_place)e->factor);
}

/* Makes all numbers wrong, in proportion to their size. */
static void lie(kofn_matrix *numbers, uint64_t by)
{
    double *x = numbers->data;
    float *y = numbers->data;

    for (size_t k = 0; k < numbers->rows * numbers->cols; k++) {
        double by_much = 1 + (double)((k * 7 + by * 11) % 13);

        if (numbers->dtype == KOFN_F64)
            x[k] += (1 + fabs(x[k])) * by_much;
        else
            y[k] += (float)((1 + fabs((double)y[k])) * by_much);
    }
}

static bool is_due_by_chance(cli_node *n, kofn_fault_place where)
{
    const kofn_faults *w = &n->all->a->faults;
    uint64_t draw = kf_mix64(kf_state64(w->seed ^ number_of(n), ++n->draws));

    return w->where & where && (double)(draw >> 11) * 0x1p-53 < w->fault;
}

static void fault(void *ud, kofn_fault_place where, uint64_t t,
                  kofn_matrix *numbers)
{
    cli_node *n = ud;
    const cli_nodes *m = n->all;
    uint64_t step = t / m->each + 1;
    bool due = is_due_by_chance(n, where);

    for (size_t i = 0; i < m->event_count; i++) {
        const kofn_fault_event *e = &m->events[i];

        if (!is_due(n, e, where, step))
            continue;
        if (e->kind == KOFN_FAULT_EVENT_CORRUPT) {
            lie(numbers, number_of(n) + t);
        } else {
            due = true;
            n->erred = step;
        }
    }
    if (due)
        kofn_faults_spoil(m->a->faults.seed, number_of(n), n->faults++,
                          numbers);
}

/* Returns the factor of the last event about this node. */
static double slow(void *ud, uint64_t t)
{
    const cli_node *n = ud;
    const cli_nodes *m = n->all;
    double factor = 1;

    for (size_t i = 0; i < m->event_count; i++) {
        const kofn_fault_event *e = &m->events[i];

        if (e->worker != number_of(n) || e->round > t / m->each + 1)
            continue;
        if (e->kind == KOFN_FAULT_EVENT_SLOW)
            factor = e->factor;
        else if (e->kind == KOFN_FAULT_EVENT_NORMAL)
            factor = 1;
    }
    return factor;
}

/* ---- senders of wrong partial products ----------------------------------- */

struct cli_wrong {
    uint32_t seat;
    char name[96];
    unsigned iterates;
    bool excluded;
};

static void erred(void *ud, uint32_t seat, const char *name, bool excluded)
{
    cli_node *n = ud;
    struct cli_wrong *w;
    size_t i = 0;

    while (i < n->wrongs &&
           (n->wrong[i].seat != seat || strcmp(n->wrong[i].name, name) != 0))
        i++;
    if (i == n->wrongs) {
        w = realloc(n->wrong, (i + 1) * sizeof *w);
        if (!w)
            return; /* the report lacks it, no more */
        n->wrong = w;
        cli_log(&(cli_event){CLI_LOG_WARNING, "faulty", seat, name},
                "node %zu found a wrong partial product", n->number);
        w[n->wrongs++] = (struct cli_wrong){.seat = seat};
        snprintf(w[i].name, sizeof w[i].name, "%s", name);
    }
    n->wrong[i].iterates++;
    n->wrong[i].excluded |= excluded;
}

static json_t *list_wrong(const cli_node *n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n->wrongs; i++)
        json_array_append_new(
            list, json_pack("{s:i, s:s, s:i, s:b}", "seat",
                            (int)n->wrong[i].seat, "name", n->wrong[i].name,
                            "iterates", (int)n->wrong[i].iterates, "excluded",
                            (int)n->wrong[i].excluded));
    return list;
}

static void say_wrong(const cli_node *n)
{
    for (size_t i = 0; i < n->wrongs; i++) {
        const struct cli_wrong *w = &n->wrong[i];

        fprintf(stderr,
                "\nwrong partial products of seat %u%s%s%s in %u iterate%s%s",
                w->seat, *w->name ? " (" : "", w->name, *w->name ? ")" : "",
                w->iterates, w->iterates == 1 ? "" : "s",
                w->excluded ? ": it is not heard any more" : "");
    }
}

static void live(void *ud, kofn_transport *t)
{
    cli_node *n = ud;
    cli_nodes *m = n->all;
    kofn_time patience = m->a->job.patience;
    kofn_peer_options p = {
        .size = sizeof(kofn_peer_options),
        .nodes = m->count,
        .seat = n->seat,
        .confirm = m->confirm,
        .decoding = m->decoding,
        .errors = m->a->job.errors,
        .quarantine = m->a->job.quarantine,
        .fault = m->event_count || m->a->faults.fault > 0 ? fault : NULL,
        .slow = m->event_count ? slow : NULL,
        .fault_ud = n,
        .keep = m->a->checkpoint,
        .every = m->every,
        .resume = n->resumes,
        .give_up = patience  ? patience
                   : m->mesh ? 5 * KOFN_SECOND
                             : 60 * KOFN_SECOND,
        .watch = watch,
        .watch_ud = n,
        .erred = erred,
        .erred_ud = n};

    n->end = (kofn_node_view)KOFN_NODE_VIEW_INIT;
    n->status = m->live(n, t, &p);
    nodes_began(n, NULL);
    if (n->status < 0) {
        n->reason = strdup(kofn_errmsg());
        n->failed = 1 + atomic_fetch_add(&m->failures, 1);
    }
}

/* ---- threads ------------------------------------------------------------- */

static int run_threads(cli_nodes *m)
{
    kofn_status st;

    TRY_CODE(nodes_claim_folder(m, KOFN_NO_SEAT));
    st = kofn_mesh_new(&m->mesh);
    for (size_t i = 0; i < m->count && !st; i++)
        st = start(m, i, (uint32_t)i);
    kofn_mesh_free(m->mesh);
    return cli_fail(st);
}

/* ---- one node of many ---------------------------------------------------- */

static kofn_status listen_at(const cli_args *a, size_t body_max,
                             kofn_transport **t)
{
    kofn_net_options z = cli_net_options(a, body_max);

    return kofn_net_mesh(t, a->port, &z);
}

static kofn_status open_mpi(kofn_transport **t, uint32_t *seat)
{
    kofn_mpi_options mpi = KOFN_MPI_OPTIONS_INIT;
    kofn_mpi_info info = KOFN_MPI_INFO_INIT;

    mpi.mesh = true;
    TRY(kofn_mpi_open(t, &mpi, &info));
    *seat = info.rank;
    return KOFN_OK;
}

static kofn_status reach_all(kofn_transport *t, const char *list)
{
    char *copy = strdup(list), *rest = copy, *one;
    kofn_status st = copy ? KOFN_OK : KOFN_NOMEM;

    while (!st && (one = strtok_r(rest, ",", &rest)))
        st = t->reach(t, one);
    free(copy);
    return st;
}

static int run_one(cli_nodes *m)
{
    const cli_args *a = m->a;
    kofn_transport *t = NULL;
    cli_node *n = &m->node[0];
    kofn_status st;
    int code = 0;

    *n = (cli_node){.all = m, .seat = KOFN_NO_SEAT, .resumes = a->resume};
    st = cli_transport_of(a->port)->address ? listen_at(a, m->bytes + 65536, &t)
                                            : open_mpi(&t, &n->seat);
    if (!st && a->reach)
        st = reach_all(t, a->reach);
    if (!st)
        code = nodes_claim_folder(m, n->seat);
    if (!st && !code)
        live(n, t);
    if (t)
        t->close(t, KOFN_SECOND);
    if (st == KOFN_IO) /* keys are the only files it reads */
        return cli_fail_input(st);
    return st ? cli_fail(st) : code;
}

/* ---- what came of it ----------------------------------------------------- */

bool nodes_have(const cli_node *n)
{
    return n->all && !n->status && n->end.final;
}

static json_t *list_failed(const cli_nodes *m)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->here; i++)
        if (m->node[i].failed)
            json_array_append_new(list, json_pack("{s:i, s:s?}", "node", (int)i,
                                                  "error", m->node[i].reason));
    return list;
}

/* Refuses a mesh of threads with too few nodes, which would wait forever. A
 * node that joins by an event of a later step is started only in that step. */
static int check_count(const cli_nodes *m, const kofn_plan *plan)
{
    size_t most = m->count;

    if (!cli_transport_of(m->a->port)->here)
        return 0;
    for (size_t i = 0; i < m->event_count; i++)
        most += m->events[i].kind == KOFN_FAULT_EVENT_JOIN &&
                m->events[i].round <= 1;
    return cli_fail(kofn_nodes_find(plan, m->a->job.errors, most));
}

int nodes_take_plan(cli_nodes *m, const kofn_plan *plan)
{
    const cli_args *a = m->a;

    m->plan = plan;
    m->decoding = a->decode ? (kofn_decoding)a->decode
                  : a->job.errors
                      ? KOFN_DECODE_REPLICATED
                      : kofn_decoding_for(plan, a->workers, 0, 0, 0);
    return check_count(m, plan);
}

static void put(const cli_nodes *m, const kofn_plan_info *info, json_t *o)
{
    const kofn_node_view *v = &m->best->end;
    const struct {
        const char *key;
        uint64_t number;
    } part[] = {{"nodes", m->count},         {"members", v->members},
                {"epochs", v->epoch.number}, {"adopted", v->adopted},
                {"dropped", v->dropped},     {"alone", v->alone},
                {"left_out", v->left_out},   {"outvoted", v->outvoted},
                {"again", v->again},         {"back", v->back},
                {"scrubs", v->scrubs},       {"rebuilt", v->rebuilt},
                {"liars", v->liars}};

    PUT("status", json_string("ok"));
    PUT("command", json_string(m->a->command->name));
    PUT("scheme", json_string(info->spec));
    PUT("seconds", json_real(m->seconds));
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        PUT(part[i].key, json_integer((json_int_t)part[i].number));
    PUT("drift", cli_number(v->drift));
    PUT("decode", json_string(nodes_decoding(m)));
    PUT("wrong", list_wrong(m->best));
    PUT("failed", list_failed(m));
    PUT_WHOLE("finished", m->have);
    PUT("port", json_string(m->a->port));
    PUT_WHOLE("seed", m->a->seed);
    cli_put_blas(m->a, o);
}

static void say(const cli_nodes *m)
{
    const cli_node *n = m->best;

    fprintf(stderr, "\n%zu members in epoch %llu", n->end.members,
            (unsigned long long)n->end.epoch.number);
    if (m->a->job.errors)
        fprintf(stderr,
                ", %llu wrong partial products left out, of %llu liars found",
                (unsigned long long)n->end.left_out,
                (unsigned long long)n->end.liars);
    say_wrong(n);
    for (size_t i = 0; i < m->here; i++)
        if (m->node[i].failed)
            fprintf(stderr, "\nnode %zu has ended without it: %s", i,
                    m->node[i].reason ? m->node[i].reason : "out of memory");
}

void nodes_report(const cli_nodes *m, double rel_error)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    json_t *o;

    if (kofn_plan_describe(m->plan, false, &info))
        return;
    if (m->a->json) {
        o = json_object();
        put(m, &info, o);
        m->put(m, &info, o);
        if (m->a->verify)
            PUT("rel_error", json_real(rel_error));
        cli_print_json(o);
    } else if (!m->a->quiet) {
        m->say(m, &info);
        say(m);
        if (m->a->verify)
            fprintf(stderr, "  relative error %.2g", rel_error);
        fputc('\n', stderr);
        cli_report_blas(m->a);
    }
}

/* Ranks a failure. A disagreement of partial products says most. Too few other
 * nodes says least: those may have ended because of a third node's failure. */
static int weight_of(kofn_status st)
{
    return st == KOFN_CORRUPT                          ? 2
           : st == KOFN_TOOFEW || st == KOFN_TRANSPORT ? 0
                                                       : 1;
}

static bool says_more(const cli_node *a, const cli_node *b)
{
    int more = weight_of(a->status) - weight_of(b->status);

    return more > 0 || (more == 0 && a->failed < b->failed);
}

/* Returns the first failed node with the most telling failure, since later
 * nodes find fewer others; NULL: none has failed. */
static const cli_node *find_reason(const cli_nodes *m)
{
    const cli_node *best = NULL;

    for (size_t i = 0; i < m->here; i++) {
        const cli_node *n = &m->node[i];

        if (n->failed && (!best || says_more(n, best)))
            best = n;
    }
    return best;
}

static int complain(const cli_nodes *m)
{
    const cli_node *n = find_reason(m);
    char differ[400] = "";

    if (!n)
        return cli_say(EXIT_TOOFEW, "no node is left that has the result");
    if (n->status == KOFN_INVAL) /* a checkpoint of another run, perhaps */
        nodes_differences(m, differ, sizeof differ);
    return cli_say(n->status == KOFN_FORMAT ? EXIT_CORRUPT /* a checkpoint */
                                            : cli_exit_code(n->status),
                   "%s%s", n->reason ? n->reason : "out of memory", differ);
}

int nodes_run(cli_nodes *m)
{
    double began;
    int code;

    cli_tell_blas(m->a);
    began = kf_clock_seconds();
    cli_guard(true);
    code = cli_transport_of(m->a->port)->here ? run_threads(m) : run_one(m);
    cli_guard(false);
    m->seconds = kf_clock_seconds() - began;
    TRY_CODE(code);
    if (cli_caught())
        return 128 + cli_caught();
    for (size_t i = 0; i < m->here; i++)
        if (nodes_have(&m->node[i]))
            m->best = m->have++ ? m->best : &m->node[i];
    return m->best ? 0 : complain(m);
}

int nodes_close(cli_nodes *m, int code)
{
    const cli_transport *port = cli_transport_of(m->a->port);

    if (cli_caught() && code)
        cli_interrupted(m->a, NULL);
    for (size_t i = 0; m->node && i < m->here; i++) {
        free(m->node[i].reason);
        free(m->node[i].wrong);
        free(m->node[i].v.data);
        kofn_net_free(m->node[i].net);
    }
    free(m->node);
    kofn_free(m->events);
    nodes_leave_folder(m);
    return port->end ? port->end(code) : code;
}
