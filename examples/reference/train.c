/* train.c -- a neural network, trained in all three ways, with the same result
 * as without workers. */
#include "example.h"

#include <kofn/train.h>

#include <string.h>

#define POINTS 60
#define WIDTH 6
#define CLASSES 3
#define LAYERS 2

static const size_t widths[LAYERS + 1] = {WIDTH, 5, CLASSES};
static double x[POINTS * WIDTH], y[POINTS], plain[100];
static kofn_matrix X, labels;

/* Makes the same network each time, and its training. */
static kofn_training *begin(kofn_net **net, kofn_train_watch watch, void *ud)
{
    kofn_net_shape shape = KOFN_NET_SHAPE_INIT;
    kofn_train_options opt = KOFN_TRAIN_OPTIONS_INIT;
    kofn_training *t;

    shape.layers = LAYERS;
    shape.widths = widths;
    shape.activation = KOFN_TANH;
    opt.batch = 20;
    opt.epochs = 1;
    opt.watch = watch;
    opt.watch_ud = ud;
    must(kofn_net_new(net, &shape, 7));
    must(kofn_training_new(&t, *net, &X, &labels, &opt));
    return t;
}

/* Copies the weights of the first layer. */
static void read_weights(const kofn_net *net, double *to)
{
    const kofn_matrix *W = kofn_net_weights(net, 1);

    for (size_t i = 0; i < W->rows; i++)
        memcpy(to + i * W->cols, (double *)W->data + i * W->ld,
               W->cols * sizeof *to);
}

/* Compares the weights with those of the training without workers. */
static void compare(const kofn_net *net, const char *what)
{
    double weights[100];

    read_weights(net, weights);
    for (int i = 0; i < 5 * (WIDTH + 1); i++)
        expect(fabs(weights[i] - plain[i]) < 1e-9, what);
}

static void without_workers(void)
{
    kofn_train_result res = KOFN_TRAIN_RESULT_INIT;
    kofn_net *net;
    kofn_training *t = begin(&net, NULL, NULL);

    must(kofn_train_plain(t, &res));
    expect(res.steps == 3, "one epoch");
    read_weights(net, plain);
    kofn_training_free(t);
    kofn_net_free(net);
}

/* First way: workers compute sums of gradients. */
static void with_sums(void)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, 1, 1, 1, KOFN_F64, false);
    kofn_plan *plan;
    kofn_net *net;
    kofn_training *t = begin(&net, NULL, NULL);
    kofn_job *job;
    char spec[64];

    kofn_training_scheme(t, 4, false, spec, sizeof spec);
    must(kofn_training_problem(t, &pb));
    must(kofn_plan_new(&plan, &pb, spec, 4, 1));
    job = open_job(plan, 4, NULL);
    must(kofn_training_place(t, job));
    must(kofn_train(t, NULL));
    compare(net, "sums of gradients");
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_training_free(t);
    kofn_net_free(net);
}

typedef struct kept {
    kofn_training *t;
    size_t numbers;
} kept;

/* Fetches weights and velocities after each step, to keep them. */
static int keep(void *ud, const kofn_train_step *now, const kofn_report *rep)
{
    kept *k = ud;
    const double *state;

    if (!rep)
        return 0;
    must(kofn_training_state(k->t, &state));
    k->numbers = 2 * kofn_training_size(k->t);
    return now->step == 0 || !isfinite(state[k->numbers - 1]);
}

/* Second way: workers store coded weights. */
static void with_coded_weights(void)
{
    kofn_plan *plan[LAYERS];
    const kofn_plan *both[LAYERS];
    kept k = {NULL, 0};
    kofn_port *port;
    kofn_net *net;
    kofn_training *t = begin(&net, keep, &k);
    kofn_job *job;

    k.t = t;
    must(kofn_training_plans(t, "gpd", 6, 1, plan));
    for (int l = 0; l < LAYERS; l++)
        both[l] = plan[l];
    must(kofn_port_sim(&port, 6, NULL));
    must(kofn_open_all(&job, both, LAYERS, port, NULL));
    must(kofn_training_place(t, job));
    must(kofn_train(t, NULL));
    compare(net, "coded weights");
    expect(k.numbers == 2 * (5 * (WIDTH + 1) + CLASSES * 6), "the state");
    kofn_close(job);
    for (int l = 0; l < LAYERS; l++)
        kofn_plan_free(plan[l]);
    kofn_training_free(t);
    kofn_net_free(net);
}

/* Third way, on each node of a mesh. */
static void train_node(void *ud, kofn_transport *transport)
{
    kofn_peer_options peers = KOFN_PEER_OPTIONS_INIT;
    kofn_plan *plan[LAYERS];
    const kofn_plan *both[LAYERS];
    kofn_net *net;
    kofn_training *t = begin(&net, NULL, NULL);

    (void)ud;
    must(kofn_training_plans(t, "gpd", 4, 1, plan));
    for (int l = 0; l < LAYERS; l++)
        both[l] = plan[l];
    peers.linger = 20 * KOFN_SECOND; /* serves slow nodes */
    must(kofn_train_peers(transport, t, both, &peers, NULL, NULL));
    compare(net, "a mesh");
    for (int l = 0; l < LAYERS; l++)
        kofn_plan_free(plan[l]);
    kofn_training_free(t);
    kofn_net_free(net);
}

static void on_a_mesh(void)
{
    kofn_mesh *mesh;

    must(kofn_mesh_new(&mesh));
    for (int i = 0; i < 4; i++)
        must(kofn_mesh_start(mesh, train_node, NULL));
    kofn_mesh_free(mesh);
}

/* Computes probabilities, and the score. */
static void predict(void)
{
    double p[POINTS * CLASSES];
    kofn_net_shape shape = KOFN_NET_SHAPE_INIT;
    kofn_matrix out = matrix(p, POINTS, CLASSES);
    kofn_score score;
    kofn_net *net;

    kofn_training_free(begin(&net, NULL, NULL));
    kofn_net_describe(net, &shape);
    must(kofn_net_predict(net, &X, &out));
    must(kofn_net_score(net, &X, &labels, &score));
    expect(shape.layers == LAYERS, "the shape");
    expect(fabs(p[0] + p[1] + p[2] - 1) < 1e-12, "probabilities");
    expect(score.loss > 0 && score.accuracy <= 1, "the score");
    kofn_net_free(net);
}

int main(void)
{
    fill(x, POINTS * WIDTH, 1);
    for (int i = 0; i < POINTS; i++)
        y[i] = x[i * WIDTH] > 0.4 ? 2 : x[i * WIDTH] > -0.4;
    X = matrix(x, POINTS, WIDTH);
    labels = matrix(y, POINTS, 1);
    without_workers();
    with_sums();
    with_coded_weights();
    on_a_mesh();
    predict();
    return 0;
}
