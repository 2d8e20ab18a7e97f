/* agc_link.c -- the traffic of gradient codes over links, counted on the wire.
 *
 * The coordinator sums vectors of 600,000 float32 numbers from eight workers.
 * It prints a line per round: the seconds, and the bytes that came in over the
 * device since the last round, as a share of eight vectors. The last line has
 * the same for all rounds, with what still comes in the next two seconds.
 * scripts/agc-link runs it on narrow links.
 *
 *     agc_link work ADDRESS [FAULTS]
 *     agc_link coordinate ADDRESS SCHEME ROUNDS DEVICE
 */
#define BENCH_NO_BLAS
#include "bench.h"

#include <kofn/net.h>

#include <inttypes.h>

#define NUMBERS 600000
#define WORKERS 8
#define SETTLED (2 * KOFN_SECOND)

static kofn_status part(void *ctx, size_t which, size_t parts,
                        const kofn_matrix *in, kofn_matrix *out)
{
    const float *x = in->data;
    float *y = out->data;

    (void)ctx;
    for (size_t i = 0; i < out->rows; i++)
        y[i] = x[0] * (float)((which + 1) * (1 + i % 7)) / (float)parts;
    return KOFN_OK;
}

static void check_sum(const float *y, float x)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        float is = x * (float)((1 + i % 7) * (WORKERS + 1)) / 2;

        must(y[i] > 0.999f * is && y[i] < 1.001f * is, "the sum is wrong");
    }
}

/* Returns the bytes received over the device. */
static double received(const char *device)
{
    FILE *f = fopen("/proc/net/dev", "r");
    char line[400];
    double bytes = -1;

    must(f != NULL, "/proc/net/dev");
    while (fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':'), *name = line + strspn(line, " ");

        if (!colon)
            continue;
        *colon = 0;
        if (!strcmp(device, "all") ? strcmp(name, "lo") != 0
                                   : !strcmp(name, device))
            bytes = (bytes < 0 ? 0 : bytes) + strtod(colon + 1, NULL);
    }
    fclose(f);
    must(bytes >= 0, "there is no such device");
    return bytes;
}

static void work(const char *address, const char *faults)
{
    kofn_faults w = KOFN_FAULTS_INIT();
    kofn_serve_options opt = KOFN_SERVE_OPTIONS_INIT;
    kofn_net_options plain = KOFN_NET_OPTIONS_INIT;
    kofn_transport *t = NULL;

    plain.insecure = true;
    check(kofn_faults_parse(&w, faults), faults);
    opt.faults = &w;
    opt.f = part;
    opt.patience = 20 * KOFN_SECOND;
    check(kofn_net_connect(&t, address, &plain), address);
    check(kofn_serve(t, &opt), address);
}

static void rounds(kofn_job *job, size_t count, const char *device)
{
    const double whole = 4.0 * NUMBERS * WORKERS;
    float x, *y = need(NUMBERS * sizeof *y);
    kofn_matrix in = {&x, 1, 1, 1, KOFN_F32};
    kofn_matrix out = {y, NUMBERS, 1, 1, KOFN_F32};
    double took = 0, first = 0, before = 0;

    for (size_t i = 0; i <= count; i++) { /* in the first round all connect */
        double start = now(), bytes;

        x = (float)i + 1;
        check(kofn_round(job, &in, &out, NULL), "a round");
        bytes = received(device);
        if (i == 0) {
            first = bytes;
        } else {
            took += now() - start;
            printf("%.3f %.3f\n", now() - start, (bytes - before) / whole);
        }
        before = bytes;
        check_sum(y, x);
    }
    nanosleep(&(struct timespec){SETTLED / KOFN_SECOND, 0}, NULL);
    printf("all %.3f %.4f\n", took / (double)count,
           (received(device) - first) / whole / (double)count);
    free(y);
}

static void coordinate(const char *address, const char *scheme, size_t count,
                       const char *device)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_SUM, NUMBERS, 1, 1, KOFN_F32, false);
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_net_options plain = KOFN_NET_OPTIONS_INIT;
    kofn_transport *t = NULL;
    kofn_port *port = NULL;
    kofn_plan *plan = NULL;
    kofn_job *job = NULL;

    plain.insecure = true;
    away.workers = WORKERS;
    check(kofn_plan_new(&plan, &pb, scheme, WORKERS, 1), scheme);
    check(kofn_net_listen(&t, address, &plain), address);
    check(kofn_port_away(&port, t, &away), address);
    check(kofn_open(&job, plan, port, NULL), scheme);
    check(kofn_place_parts(job, part, NULL), scheme);
    rounds(job, count, device);
    kofn_close(job);
    kofn_plan_free(plan);
}

int main(int argc, char **argv)
{
    if ((argc == 3 || argc == 4) && !strcmp(argv[1], "work")) {
        work(argv[2], argc == 4 ? argv[3] : "");
    } else if (argc == 6 && !strcmp(argv[1], "coordinate")) {
        coordinate(argv[2], argv[3], strtoul(argv[4], NULL, 10), argv[5]);
    } else {
        fprintf(stderr, "usage: agc_link work ADDRESS [FAULTS] | "
                        "coordinate ADDRESS SCHEME ROUNDS DEVICE\n");
        return 2;
    }
    return 0;
}
