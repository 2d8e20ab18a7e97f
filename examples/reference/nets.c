/* nets.c -- networks that are trained side by side on a stream of products. */
#include "example.h"

#include <kofn/train.h>

#define POINTS 40
#define WIDTH 6
#define NETS 3

static double x[POINTS * WIDTH], y[POINTS];

/* Sees that the weights are those of the same steps without workers. */
static int look(void *ud, const kofn_nets_step *now, const kofn_report *rep)
{
    (void)rep;
    if (now && now->product == now->of) {
        expect(now->apart < 1e-9, "the weights");
        ++*(unsigned *)ud;
    }
    return 0;
}

/* Makes the networks, and trains them for two iterations. */
static void train(kofn_net **net, kofn_job *job)
{
    kofn_matrix X = matrix(x, POINTS, WIDTH), labels = matrix(y, POINTS, 1);
    kofn_nets_options opt = KOFN_NETS_OPTIONS_INIT;
    unsigned steps = 0;
    kofn_nets *nets;

    opt.batch = 20;
    opt.iterations = 2;
    opt.verify = true;
    opt.watch = look;
    opt.watch_ud = &steps;
    must(kofn_nets_new(&nets, net, NETS, &X, &labels, &opt));
    must(kofn_nets_train(nets, job));
    expect(steps == 2 * NETS, "all steps are made");
    kofn_close(job);
    kofn_nets_free(nets);
}

int main(void)
{
    static const size_t widths[] = {WIDTH, 5, 2};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 20, WIDTH + 1, 5, KOFN_F64, false);
    kofn_net_shape shape = KOFN_NET_SHAPE_INIT;
    kofn_net *net[NETS];
    kofn_plan *plan;

    fill(x, POINTS * WIDTH, 1);
    for (int i = 0; i < POINTS; i++)
        y[i] = x[i * WIDTH] > 0;
    shape.layers = 2;
    shape.widths = widths;
    for (uint64_t i = 0; i < NETS; i++)
        must(kofn_net_new(&net[i], &shape, i));
    must(kofn_plan_new(&plan, &pb, "dip:T=1", 4, 1));
    train(net, open_job(plan, 4, NULL));
    for (int i = 0; i < NETS; i++)
        kofn_net_free(net[i]);
    kofn_plan_free(plan);
    return 0;
}
