/* train_mesh_bench.c -- the cost of a training step on a mesh.
 *
 * 1. A step on eight nodes that are threads, of a network of two layers as
 * wide as the points and one of ten. It is compared with a step of the same
 * training by a coordinator and eight workers, in processor time of the
 * process. With error detection; also with blocks compared in every step; and
 * with a node that is wrong in every product. 2. The work of a node in a step,
 * part by part. Each part is a bare loop, BLAS call or packet of the same
 * size, times its number. The step is compared with the sum. One thread per
 * processor runs the parts at a time, since nodes share memory and caches.
 *
 * The compared values are measured in turn. Prints medians; ratios are taken
 * turn by turn.
 *
 *     train_mesh_bench [REPETITIONS [WIDTH [BATCH]]] */
#include "bench.h"

#include "base/hash.h"
#include "code/operation.h"
#include "data/data.h"
#include "learn/coded.h"
#include "learn/training.h"
#include "mat/mat.h"
#include "mesh/note.h"

#include <kofn/peer.h>

#include <pthread.h>
#include <unistd.h>

#define LAYERS 3
#define NODES 8
#define SCHEME "gpd:m=2,n=2,p=1"
#define TURN (2 * LAYERS - 1) /* iterates of a step */
#define WARM 2                /* steps that do not count ... */
#define STEPS 8               /* ... and steps that count */
#define LIAR 1                /* the node that is wrong */

static int reps = 3;
static size_t width = 512, batch = 256;

static double all_cpu(void)
{
    return 1e-9 * (double)kf_read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* ---- a network and its points -------------------------------------------- */

typedef struct school {
    size_t widths[LAYERS + 1];
    kofn_net_shape shape;
    kofn_matrix X, y;
    kofn_plan *plan[LAYERS];
} school;

static kofn_net *network(const school *s)
{
    kofn_net *net;

    check(kofn_net_new(&net, &s->shape, 1), "network");
    return net;
}

static void school_up(school *s)
{
    kofn_net *net;

    for (size_t l = 0; l <= LAYERS; l++)
        s->widths[l] = l < LAYERS ? width : 10;
    s->shape = (kofn_net_shape){
        .size = sizeof s->shape, .layers = LAYERS, .widths = s->widths};
    s->X = (kofn_matrix){numbers(batch * width), batch, width, width, KOFN_F64};
    s->y = (kofn_matrix){need(batch * sizeof(double)), batch, 1, 1, KOFN_F64};
    for (size_t i = 0; i < batch; i++)
        ((double *)s->y.data)[i] = (double)(i * 7 % 10);
    net = network(s);
    check(kf_coded_plans(net, batch, SCHEME, NODES, 1, s->plan), SCHEME);
    kofn_net_free(net);
}

static void school_down(school *s)
{
    for (size_t l = 0; l < LAYERS; l++)
        kofn_plan_free(s->plan[l]);
    free(s->X.data);
    free(s->y.data);
}

/* ---- a job --------------------------------------------------------------- */

/* Returns the processor time of one step. */
static double job_cpu(const school *s, kofn_errors errors)
{
    const kofn_change change = {sizeof change, 0, {{1}}, {-0.1}};
    kofn_net *net = network(s);
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_report sum = KOFN_REPORT_INIT;
    double from = 0, cost, right;
    kofn_port *port;
    kofn_job *job;
    kf_coded c;

    opt.errors = errors;
    opt.late = -1;
    check(kofn_port_threads(&port, NODES, NULL), "threads");
    check(kofn_open_all(&job, (const kofn_plan *const *)s->plan, LAYERS, port,
                        &opt),
          "job");
    for (size_t l = 0; l < LAYERS; l++)
        check(kofn_place_at(job, l, KOFN_DENSE(&net->W[l])), "weights");
    check(kf_coded_new(&c, net, true, batch, job), "memory");
    c.sum = &sum;
    for (unsigned i = 0; i < WARM + STEPS; i++) {
        if (i == WARM)
            from = all_cpu();
        check(kofn_step(job, i + 1), "step");
        kf_passes_begin(&c.p);
        for (size_t k = 0; k < batch; k++)
            kf_passes_put(&c.p, kf_at(&s->X, k, 0), kf_at(&s->y, k, 0));
        check(kf_coded_step(&c, &change, &cost, &right), "step of the job");
    }
    kofn_close(job); /* waits for the last updates */
    cost = (all_cpu() - from) / STEPS;
    kf_coded_free(&c);
    kofn_net_free(net);
    return cost;
}

/* ---- a mesh -------------------------------------------------------------- */

typedef struct course {
    kofn_errors errors;
    kofn_decoding decoding;
    unsigned scrub;
    bool lies;
} course;

typedef struct node {
    const school *s;
    const course *c;
    size_t number;
    double from, to; /* processor time of the process */
    uint64_t adopted;
} node;

static int watch(void *ud, const kofn_node_view *view, const double *scalar)
{
    node *n = ud;

    (void)scalar;
    if (n->from == 0 && view->at.step >= WARM * TURN)
        n->from = all_cpu();
    if (n->to == 0 && view->at.step >= (WARM + STEPS) * TURN)
        n->to = all_cpu();
    return 0;
}

static void err(void *ud, kofn_fault_place where, uint64_t t, kofn_matrix *a)
{
    (void)ud;
    (void)t;
    if (where == KOFN_FAULT_IN_PRODUCT)
        *(double *)a->data += 1e3;
}

static void live(void *ud, kofn_transport *t)
{
    node *n = ud;
    const course *c = n->c;
    kofn_net *net = network(n->s);
    kofn_train_options of = KOFN_TRAIN_OPTIONS_INIT;
    kofn_peer_options opt = KOFN_PEER_OPTIONS_INIT;
    kofn_node_view end = KOFN_NODE_VIEW_INIT;
    kofn_training *training;

    of.batch = batch; /* all points: an epoch is a step */
    of.epochs = WARM + STEPS;
    of.scrub = c->scrub;
    opt.errors = c->errors;
    opt.decoding = c->decoding;
    opt.quarantine = UINT_MAX; /* the wrong node stays */
    opt.fault = c->lies && n->number == LIAR ? err : NULL;
    opt.watch = watch;
    opt.watch_ud = n;
    check(kofn_training_new(&training, net, &n->s->X, &n->s->y, &of),
          "training");
    check(kofn_train_peers(t, training, (const kofn_plan *const *)n->s->plan,
                           &opt, NULL, &end),
          "training of a node");
    n->adopted = end.adopted;
    kofn_training_free(training);
    kofn_net_free(net);
}

/* Returns the processor time of one step, as the first node sees it. Sets
 * *adopted to the vectors that nodes took from others. */
static double mesh_cpu(const school *s, const course *c, uint64_t *adopted)
{
    node n[NODES];
    kofn_mesh *mesh;

    check(kofn_mesh_new(&mesh), "mesh");
    for (size_t i = 0; i < NODES; i++) {
        n[i] = (node){.s = s, .c = c, .number = i};
        check(kofn_mesh_start(mesh, live, &n[i]), "node");
    }
    kofn_mesh_free(mesh);
    *adopted = 0;
    for (size_t i = 0; i < NODES; i++)
        *adopted += n[i].adopted;
    return (n[0].to - n[0].from) / STEPS;
}

/* ---- 1: steps ------------------------------------------------------------ */

enum { PLAIN, EACH, CHECKED, SCRUBBED, LIED, COURSES };

static const struct {
    const char *name, *to_name;
    int to; /* the course it is compared with; -1: the job */
    course c;
} courses[COURSES] = {
    {"mesh", "the job", -1, {.decoding = KOFN_DECODE_AUTO}},
    {"decoding replicated",
     "the mesh",
     PLAIN,
     {.decoding = KOFN_DECODE_REPLICATED}},
    {"checked", "the checked job", -1, {.errors = KOFN_ERRORS_PROBABILISTIC}},
    {"blocks compared in every step",
     "checked",
     CHECKED,
     {.errors = KOFN_ERRORS_PROBABILISTIC, .scrub = 1}},
    {"a node errs in every product",
     "checked",
     CHECKED,
     {.errors = KOFN_ERRORS_PROBABILISTIC, .lies = true}},
};

enum {
    PRODUCTS,
    UPDATES,
    ENCODING,
    DECODING,
    PASSES,
    PACKETS,
    COMPARING,
    PARTS
};

static const char *const part_name[PARTS] = {
    "products",         "updates", "mixing inputs and changes", "decoding",
    "activations, ...", "packets", "comparing (where checked)"};

/* Measurements of a turn, per step. */
typedef struct turns {
    double job[2][MOST]; /* also with error detection */
    double took[COURSES][MOST];
    uint64_t adopted[COURSES];
    double part[PARTS][MOST];          /* per node */
    double plain[MOST], checked[MOST]; /* over all nodes */
} turns;

static void steps(const school *s, turns *t, int turn)
{
    t->job[0][turn] = job_cpu(s, KOFN_ERRORS_NONE);
    t->job[1][turn] = job_cpu(s, KOFN_ERRORS_PROBABILISTIC);
    for (int k = 0; k < COURSES; k++) {
        uint64_t adopted;

        t->took[k][turn] = mesh_cpu(s, &courses[k].c, &adopted);
        t->adopted[k] += adopted;
    }
}

static void tell_steps(const turns *t)
{
    printf("1. steps\n  job %.1f ms, checked %.1f ms\n",
           1e3 * turn_median(t->job[0], reps),
           1e3 * turn_median(t->job[1], reps));
    for (int k = 0; k < COURSES; k++) {
        const double *to = courses[k].to < 0
                               ? t->job[courses[k].c.errors != KOFN_ERRORS_NONE]
                               : t->took[courses[k].to];
        double ratio = turn_ratio(t->took[k], to, reps);

        printf("  %-30s %6.1f ms  ratio to %s %.2f  (%.1f vectors taken of "
               "others in a training of %d steps)\n",
               courses[k].name, 1e3 * turn_median(t->took[k], reps),
               courses[k].to_name, ratio, (double)t->adopted[k] / reps,
               WARM + STEPS);
        figure(ratio, "", "less", "processor time of a step, %s, %zu x %zu",
               courses[k].name, width, batch);
    }
}

/* ---- 2: the model -------------------------------------------------------- */

static kofn_matrix room(size_t rows, size_t cols)
{
    return (kofn_matrix){numbers(rows * cols), rows, cols, cols, KOFN_F64};
}

/* The work of some of the nodes, on a thread. */
typedef struct hand {
    pthread_t thread;
    pthread_barrier_t *all;
    void (*do_it)(kofn_matrix m[3]);
    kofn_matrix (*m)[3];
    int first, step;
    double took;
} hand;

static void *work(void *ud)
{
    hand *h = ud;

    pthread_barrier_wait(h->all);
    h->took = -cpu_now();
    for (int i = h->first; i < NODES; i += h->step)
        h->do_it(h->m[i]);
    h->took += cpu_now();
    return NULL;
}

/* Returns the time per node, on average. Nodes have their own memory, so what
 * one uses is seldom in the caches when its turn comes. The model has its own
 * memory, too. */
static double at_each_node(void (*do_it)(kofn_matrix m[3]),
                           const kofn_matrix shape[3])
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int hands = cores > 1 && cores < NODES ? (int)cores : NODES;
    kofn_matrix m[NODES][3];
    pthread_barrier_t all;
    hand h[NODES];
    double took = 0;

    for (int i = 0; i < NODES; i++)
        for (int k = 0; k < 3; k++)
            m[i][k] = room(shape[k].rows, shape[k].cols);
    must(!pthread_barrier_init(&all, NULL, (unsigned)hands), "barrier");
    for (int i = 0; i < hands; i++) {
        h[i] = (hand){
            .all = &all, .do_it = do_it, .m = m, .first = i, .step = hands};
        must(!pthread_create(&h[i].thread, NULL, work, &h[i]), "thread");
    }
    for (int i = 0; i < hands; i++) {
        pthread_join(h[i].thread, NULL);
        took += h[i].took;
    }
    pthread_barrier_destroy(&all);
    for (int i = 0; i < NODES; i++)
        for (int k = 0; k < 3; k++)
            free(m[i][k].data);
    return took / NODES;
}

/* Packets without bodies, which are not copied on a mesh of threads. Before
 * the next iterate a node sends one to each other node and waits for theirs. */
static size_t pieces[TURN]; /* pieces sent to each node, besides the question */

static void exchange(void *ud, kofn_transport *t)
{
    unsigned char head[KF_HEAD] = {0};
    kofn_peer others[NODES];
    size_t known = 0;

    (void)ud;
    while (known < NODES - 1) {
        kofn_packet p;

        if (!t->wait(t, KOFN_SECOND, &p) && p.what == KOFN_CAME)
            others[known++] = p.peer;
    }
    for (int k = 0; k < TURN * STEPS; k++) {
        size_t wanted = known * (1 + pieces[k % TURN]);

        for (size_t i = 0; i < wanted; i++)
            check(t->send(t, others[i % known], head, sizeof head, NULL, false),
                  "packet");
        for (size_t came = 0; came < wanted;) {
            kofn_packet p;

            came += !t->wait(t, KOFN_SECOND, &p) && p.what == KOFN_PACKET;
        }
    }
}

/* Returns the time of the packets of a step. */
static double packets(const school *s)
{
    kofn_mesh *mesh;
    double from = all_cpu();

    for (size_t k = 0; k < TURN; k++) /* there are as many groups as nodes */
        pieces[k] = (k < LAYERS ? s->plan[k]
                                : kf_plan_use(s->plan[k - LAYERS + 1], true))
                        ->layout.enough;
    check(kofn_mesh_new(&mesh), "mesh");
    for (int i = 0; i < NODES; i++)
        check(kofn_mesh_start(mesh, exchange, NULL), "node");
    kofn_mesh_free(mesh);
    return (all_cpu() - from) / STEPS / NODES;
}

static void multiply(kofn_matrix m[3])
{
    kf_mat_multiply_transposed(&m[0], false, &m[1], false, &m[2]);
}

static void multiply_turned(kofn_matrix m[3])
{
    kf_mat_multiply_transposed(&m[0], true, &m[1], false, &m[2]);
}

/* Returns the time of a b, or of a' b. */
static double product(size_t m, size_t k, size_t n, bool turned)
{
    const kofn_matrix shape[3] = {
        {.rows = turned ? k : m, .cols = turned ? m : k},
        {.rows = k, .cols = n},
        {.rows = m, .cols = n}};

    return at_each_node(turned ? multiply_turned : multiply, shape);
}

/* Returns the time of a pass over two vectors. */
static double sweep(void (*do_it)(kofn_matrix m[3]), size_t n)
{
    const kofn_matrix shape[3] = {
        {.rows = 1, .cols = n}, {.rows = 1, .cols = n}, {.rows = 1, .cols = 8}};

    return at_each_node(do_it, shape);
}

/* y += x: the cost of mixing one part. */
static void mix(kofn_matrix m[3])
{
    double *x = m[0].data, *y = m[1].data;

    for (size_t i = 0; i < m[0].cols; i++)
        y[i] += 0.5 * x[i];
}

/* Sums numbers with weights. */
static void weigh(kofn_matrix m[3])
{
    const double *x = m[0].data, *w = m[1].data;
    double *sum = m[2].data;

    for (size_t i = 0; i + 8 <= m[0].cols; i += 8)
        for (size_t k = 0; k < 8; k++)
            sum[k] += w[i + k] * x[i + k];
}

static void hash(kofn_matrix m[3])
{
    *(double *)m[2].data = (double)kf_hash(0, m[0].data, m[0].cols * 8);
}

/* Returns the time of a digest of n numbers, by which iterates are compared. */
static double digest(size_t n)
{
    return sweep(weigh, n) + sweep(hash, n);
}

static kofn_status no_product(void *ud, kf_pass pass, size_t layer,
                              const kofn_matrix *a, const kofn_matrix *b,
                              kofn_matrix *out)
{
    (void)ud;
    (void)pass;
    (void)layer;
    (void)a;
    (void)b;
    (void)out;
    return KOFN_OK;
}

/* Returns the time of activations and deltas of a step, and of transpositions
 * for the products. */
static double passing(const school *s)
{
    const kf_multiplier by = {no_product, NULL};
    kofn_net *net = network(s);
    double cost = 0, right = 0, t;
    kf_passes p;

    check(kf_passes_new(&p, net, true, batch), "memory");
    t = cpu_now();
    kf_passes_begin(&p);
    for (size_t i = 0; i < batch; i++)
        kf_passes_put(&p, kf_at(&s->X, i, 0), kf_at(&s->y, i, 0));
    check(kf_passes_forward(&p, &by), "forward");
    kf_passes_cost(&p, 1 / (double)batch, &cost, &right);
    check(kf_passes_back(&p, 1 / (double)batch, NULL, &by, net->W), "back");
    t = cpu_now() - t;
    for (size_t l = 0; l < LAYERS; l++)
        for (int out = 0; out < 2; out++) {
            kofn_matrix X = out ? p.D[l] : p.X[l], to = room(X.cols, X.rows);
            double from = cpu_now();

            kf_mat_transpose(&X, &to);
            t += cpu_now() - from;
            free(to.data);
        }
    kf_passes_free(&p);
    kofn_net_free(net);
    return t;
}

/* Adds one product of a layer: what a node encodes, computes and decodes for
 * it. */
static void model_product(const kofn_plan *p, size_t l, const school *s,
                          double part[PARTS])
{
    const kofn_layout *L = &p->layout;
    size_t rows = kf_ceil_div(s->widths[l + 1], L->cut[0].rows);
    size_t cols = kf_ceil_div(s->widths[l] + 1, L->cut[0].cols);
    bool left = p->op->left;
    size_t deep = left ? rows : cols, numbers_of = (left ? cols : rows) * batch;
    double share = (double)L->enough / NODES; /* of the groups */
    double all = left ? product(batch, rows, cols, false)
                      : product(rows, cols, batch, false);

    part[PRODUCTS] += share * all;
    part[ENCODING] +=
        (double)(L->cut[1].rows * L->cut[1].cols) * sweep(mix, deep * batch);
    part[DECODING] +=
        product(L->wants, L->enough * L->components, numbers_of, false);
    /* the pieces of all nodes, made for comparing; the input; and the output,
     * written once as it is and once with the step */
    part[COMPARING] += (1 - share) * all +
                       sweep(weigh, NODES * L->components * numbers_of) +
                       2 * sweep(weigh, s->widths[l + !left] * batch) +
                       2 * digest(s->widths[l + !left] * batch);
}

static void model(const school *s, double part[PARTS])
{
    for (size_t l = 0; l < LAYERS; l++) {
        const kofn_plan *p = s->plan[l];
        kofn_cut cut = p->layout.cut[0];
        size_t rows = kf_ceil_div(s->widths[l + 1], cut.rows);
        size_t cols = kf_ceil_div(s->widths[l] + 1, cut.cols);

        model_product(p, l, s, part);
        if (l > 0)
            model_product(kf_plan_use(p, true), l, s, part);
        part[UPDATES] += product(rows, batch, cols, true);
        part[ENCODING] += (double)cut.rows * sweep(mix, rows * batch) +
                          (double)cut.cols * sweep(mix, cols * batch);
        /* half of the squares of 32 rows, for each bound of norms */
        part[COMPARING] += (product(batch, s->widths[l + 1], 32, false) +
                            product(batch, s->widths[l] + 1, 32, false)) /
                           2;
    }
    part[PASSES] = passing(s);
    part[PACKETS] = packets(s);
}

static void parts(const school *s, turns *t, int turn)
{
    double one[PARTS] = {0};

    model(s, one);
    t->plain[turn] = 0;
    for (int k = 0; k < PARTS; k++) {
        t->part[k][turn] = one[k];
        t->plain[turn] += k == COMPARING ? 0 : NODES * one[k];
    }
    t->checked[turn] = t->plain[turn] + NODES * one[COMPARING];
}

static void tell_parts(const turns *t)
{
    double plain = turn_ratio(t->took[EACH], t->plain, reps);
    double checked = turn_ratio(t->took[CHECKED], t->checked, reps);

    printf("2. by its model\n");
    for (int k = 0; k < PARTS; k++)
        printf("  %-28s %6.2f ms a node\n", part_name[k],
               1e3 * turn_median(t->part[k], reps));
    printf(
        "  of all nodes %.1f ms, ratio to it, decoding replicated, %.2f;  checked "
        "%.1f ms, ratio %.2f\n",
        1e3 * turn_median(t->plain, reps), plain,
        1e3 * turn_median(t->checked, reps), checked);
    figure(plain, "", "less", "step of a mesh by its model, %zu x %zu", width,
           batch);
    figure(checked, "", "less",
           "checked step of a mesh by its model, %zu x %zu", width, batch);
}

int main(int argc, char **argv)
{
    static turns t;
    school s;

    if (argc > 1)
        reps = atoi(argv[1]);
    if (argc > 2)
        width = (size_t)strtoull(argv[2], NULL, 10);
    if (argc > 3)
        batch = (size_t)strtoull(argv[3], NULL, 10);
    if (argc > 4 || reps < 1 || reps > MOST || width < 8 || width > 20000 ||
        batch < 10 || batch > 20000) {
        fprintf(stderr,
                "usage: train_mesh_bench [REPETITIONS [WIDTH [BATCH]]]\n");
        return 2;
    }
    keep_memory();
    kf_blas_single();
    school_up(&s);
    printf("layers of %zu, %zu and 10, batches of %zu, float64, %s of %d, "
           "processor time of a step, medians of %d\n",
           width, width, batch, SCHEME, NODES, reps);
    for (int i = 0; i < reps; i++) {
        steps(&s, &t, i);
        parts(&s, &t, i);
    }
    tell_steps(&t);
    tell_parts(&t);
    school_down(&s);
    return 0;
}
