/* train_masterless.c -- kofn train on a mesh: the work of a node, and the
 * result.
 *
 * Each node has its own network. The nodes of this process share the points,
 * which may not be written. */
#include "nodes.h"
#include "schemes.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

typedef struct run {
    const cli_args *a;
    cli_training *training;
    kofn_plan *plan[KOFN_NET_MOST];
    cli_nodes nodes;
    size_t same;      /* results equal to the best one, bit for bit */
    history history;  /* written by any node that holds the lock below */
    uint64_t step;    /* step of the last line, or of the state at the start */
    uint64_t attempt; /* current attempt: increases whenever nodes roll back; 0
                         until they have loaded what was kept */
    double at;        /* when the last line was written */
} run;

/* ---- its history --------------------------------------------------------- */

static const char heading[] =
    "step,epoch,loss,accuracy,seconds,members,adopted,"
    "left_out,outvoted,again,back,scrubs,rebuilt,drift";

static void write_line(run *r, uint64_t step, const kofn_node_view *v,
                       const double *scalar)
{
    const cli_training *l = r->training;
    double now = kf_clock_seconds();
    bool labels =
        !l->shape.autoencoder && l->shape.loss == KOFN_NET_LOSS_SOFTMAX;
    size_t epochs = l->options.epochs;
    size_t epoch = l->steps / epochs;

    history_line(
        &r->history, NULL,
        "%llu,%llu,%.17g,%.17g,%.9g,%zu,%llu,%llu,%llu,%llu,%llu,%llu,"
        "%llu,%.3g",
        (unsigned long long)step, (unsigned long long)((step - 1) / epoch + 1),
        scalar[0], labels ? scalar[1] : (double)NAN, now - r->at, v->members,
        (unsigned long long)v->adopted, (unsigned long long)v->left_out,
        (unsigned long long)v->outvoted, (unsigned long long)v->again,
        (unsigned long long)v->back, (unsigned long long)v->scrubs,
        (unsigned long long)v->rebuilt, v->drift);
    r->at = now;
}

/* True if the history may get a line for this step. A node that took its
 * iterate from others may be in the middle of the next step and have that
 * step's loss. */
static bool has_done(const run *r, uint64_t step, uint64_t beyond)
{
    const cli_training *l = r->training;

    return step == l->steps || (step < l->steps && beyond < l->shape.layers);
}

/* Writes the line of a step, on the first node of this process that has done
 * it. */
static void watch(const cli_node *n, const kofn_node_view *view,
                  const double *scalar)
{
    run *r = n->all->ud;
    uint64_t each = n->all->each, step = view->at.step / each;
    uint64_t attempt = view->back + 1;

    flockfile(r->history.f);
    if (attempt > r->attempt) {
        r->attempt = attempt;
        r->step = step;
    } else if (attempt == r->attempt && step > r->step &&
               has_done(r, step, view->at.step % each)) {
        write_line(r, step, view, scalar);
        r->step = step;
    }
    funlockfile(r->history.f);
}

/* ---- a node's life ------------------------------------------------------- */

static kofn_status live(cli_node *n, kofn_transport *t,
                        const kofn_peer_options *p)
{
    run *r = n->all->ud;
    const cli_training *l = r->training;
    kofn_training *training = NULL;
    kofn_status st = kofn_net_new(&n->net, &l->shape, r->a->seed);

    n->trained = (kofn_train_result)KOFN_TRAIN_RESULT_INIT;
    if (!st)
        st =
            kofn_training_new(&training, n->net, &l->X,
                              l->shape.autoencoder ? NULL : &l->y, &l->options);
    if (!st)
        st = kofn_train_peers(t, training, (const kofn_plan *const *)r->plan, p,
                              &n->trained, &n->end);
    kofn_training_free(training);
    return st;
}

/* ---- what came of it ----------------------------------------------------- */

static size_t bytes_of(const kofn_matrix *W)
{
    return W->rows * W->cols *
           (W->dtype == KOFN_F64 ? sizeof(double) : sizeof(float));
}

static bool same_weights(const kofn_net *a, const kofn_net *b)
{
    const kofn_matrix *x, *y;

    for (size_t l = 1; (x = kofn_net_weights(a, l)); l++) {
        y = kofn_net_weights(b, l);
        if (memcmp(x->data, y->data, bytes_of(x)) != 0)
            return false;
    }
    return true;
}

static void copy_weights(const kofn_net *from, kofn_net *to)
{
    const kofn_matrix *x;

    for (size_t l = 1; (x = kofn_net_weights(from, l)); l++)
        cli_copy(x, kofn_net_weights(to, l));
}

static void put(const cli_nodes *m, const kofn_plan_info *info, json_t *o)
{
    const run *r = m->ud;

    (void)info;
    PUT_WHOLE("iterations", m->best->trained.steps);
    PUT_WHOLE("same", r->same);
    json_object_update(o, r->training->session->figures);
}

static void say(const cli_nodes *m, const kofn_plan_info *info)
{
    const run *r = m->ud;

    fprintf(stderr, "%s  %zu nodes  %.3g s, %s decoding", info->spec, m->count,
            m->seconds, nodes_decoding(m));
    if (m->here > 1)
        fprintf(stderr, "\n%zu nodes have the weights, %zu of them the same",
                m->have, r->same);
}

static int conclude(run *r)
{
    cli_training *l = r->training;
    const cli_nodes *m = &r->nodes;

    for (size_t i = 0; i < m->here; i++)
        r->same += nodes_have(&m->node[i]) &&
                   same_weights(m->node[i].net, m->best->net);
    copy_weights(m->best->net, l->model.net);
    TRY_CODE(l->conclude(l, m->best->trained.steps));
    nodes_report(m, l->session->found.rel_error);
    return 0;
}

/* ---- the whole ----------------------------------------------------------- */

/* Returns the size of the largest message: the vector, or a node's blocks. */
static size_t largest(const cli_training *l)
{
    size_t batch = l->options.batch, numbers = 0;

    for (size_t i = 0; i <= l->shape.layers; i++)
        numbers += (8 * batch + 4) * (l->shape.widths[i] + 1);
    return (numbers + 4 * kofn_training_size(l->training)) * sizeof(double);
}

static int prepare(run *r, size_t steps)
{
    const cli_args *a = r->a;
    cli_nodes *m = &r->nodes;
    kofn_training *t = r->training->training;
    char suited[40], tolerated[CLI_SPEC];
    const char *scheme =
        a->scheme_given
            ? a->scheme
            : kofn_training_scheme(t, a->workers, true, suited, sizeof suited);

    if (a->train.scrub && !a->job.errors)
        return cli_say(EXIT_USAGE,
                       "--scrub compares the blocks of the nodes where errors "
                       "are looked for; give --errors");
    TRY_CODE(cli_tolerate(a, &scheme, tolerated));
    TRY_CODE(cli_check_output(a, false));
    TRY_CODE(
        nodes_open(m, a, steps + 1)); /* the last iterate reads the weights */
    TRY_CODE(
        cli_fail(kofn_training_plans(t, scheme, a->workers, a->seed, r->plan)));
    TRY_CODE(nodes_take_plan(m, r->plan[0]));
    m->each = 2 * r->training->shape.layers - 1;
    m->every = r->training->every;
    m->bytes = largest(r->training);
    m->live = live;
    m->put = put;
    m->say = say;
    m->watch = a->history ? watch : NULL;
    m->ud = r;
    r->attempt = !a->resume;
    r->at = kf_clock_seconds();
    return history_open(&r->history, a->history,
                        a->resume ? HISTORY_GOES_ON : 0, heading, false);
}

int masterless_train(const cli_args *a, cli_training *l)
{
    run r = {.a = a, .training = l, .nodes = {.a = a}};
    int code = prepare(&r, l->steps);

    if (!code)
        code = nodes_run(&r.nodes);
    if (!code)
        code = conclude(&r);
    for (size_t i = 0; i < KOFN_NET_MOST; i++)
        kofn_plan_free(r.plan[i]);
    return nodes_close(&r.nodes, history_close(&r.history, code));
}
