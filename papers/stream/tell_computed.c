/* tell_computed.c -- streams that are computed, as tables and JSON. */
#include "show.h"
#include "stream/tell.h"

/* ---- 5: products of real matrices ---------------------------------------- */

#define SIZE 2000

static kofn_status threads_open(void *ud, const kofn_problem *pb,
                                const kofn_faults *faults, kofn_port **out)
{
    (void)ud;
    (void)pb;
    return kofn_port_threads(out, 4, faults);
}

static json_t *rates_json(const char *port, const rates_result *r)
{
    json_t *list = json_array();

    for (size_t k = 0; k < TABLE1_SCHEMES; k++) {
        const struct rates_row *w = &r->row[k];

        json_array_append_new(
            list, json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "scheme",
                            w->spec, "seconds", w->seconds, "products_a_second",
                            (double)r->products / w->seconds, "ratio", w->ratio,
                            "model", w->model, "encode_seconds", w->encoding,
                            "decode_seconds", w->decoding));
    }
    return json_pack("{s:i, s:s, s:I, s:I, s:i, s:i, s:i, s:f, s:o}",
                     "scenario", 5, "port", port, "size", (json_int_t)r->size,
                     "products", (json_int_t)r->products, "turns", RATES_TURNS,
                     "idle", RATES_IDLE, "factor", RATES_FACTOR, "rel_error",
                     r->worst, "schemes", list);
}

static void rates_text(const char *port, const rates_result *r)
{
    printf(
        "5: %zu products of %zu x %zu each, four workers on port %s, whose "
        "usual task takes\n   %d times as long as it computes, a slow one %d "
        "times that (F2, mu = %g);\n   time by that of the polynomial "
        "code, of the clock and of rounds played by the rules, medians of %d "
        "turns\n%-26s %10s "
        "%6s %6s %8s %8s\n",
        r->products, r->size, r->size, port, RATES_IDLE, RATES_FACTOR, RATES_MU,
        RATES_TURNS, "scheme", "products/s", "ratio", "rules", "encode s",
        "decode s");
    for (size_t k = 0; k < TABLE1_SCHEMES; k++) {
        const struct rates_row *w = &r->row[k];

        printf("%-26s %10.4f %6.3f %6.3f %8.4f %8.4f\n", w->spec,
               (double)r->products / w->seconds, w->ratio, w->model,
               w->encoding, w->decoding);
    }
    printf("largest relative error %.1e\n", r->worst);
}

int stream_rates(const papers_args *a, json_t *list)
{
    static const struct {
        const char *name;
        rates_port port;
    } ports[] = {{"threads", {threads_open, NULL, NULL}},
                 {"processes", {processes_open, processes_close, NULL}}};
    double scale = a->scale > 0 && a->scale < 1 ? a->scale : 1;
    size_t size = scaled_size(scale, SIZE, 4);
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < 2 && !st; i++) {
        rates_result r;

        st = rates_run(size, a->seed, &ports[i].port, &r);
        if (!st && list)
            json_array_append_new(list, rates_json(ports[i].name, &r));
        else if (!st)
            rates_text(ports[i].name, &r);
        fflush(stdout);
    }
    return st ? papers_ended(st) : 0;
}

/* ---- 6: five networks ---------------------------------------------------- */

static json_t *nets_row_json(const nets_row *r)
{
    json_t *schemes = json_array();

    for (size_t k = 0; k < TABLE1_SCHEMES; k++)
        json_array_append_new(
            schemes,
            json_pack("{s:s, s:f, s:f, s:f, s:o, s:o}", "scheme",
                      table1_names[k], "seconds", r->time[k], "rules",
                      r->played[k], "ratio", r->time[k] / r->time[0], "printed",
                      k ? json_real(r->printed[k - 1]) : json_null(),
                      "seconds_to", papers_reals(r->at[k], FIGURE2_POINTS)));
    return json_pack("{s:s, s:s, s:f, s:b, s:o}", "name", r->title, "pattern",
                     r->pattern, "mu", r->mu, "ok", r->within, "schemes",
                     schemes);
}

static json_t *nets_json(const nets_result *r)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < TABLE1_ROWS; i++)
        json_array_append_new(rows, nets_row_json(&r->row[i]));
    return json_pack("{s:i, s:i, s:I, s:I, s:o, s:f, s:f, s:b, s:o}",
                     "scenario", 6, "iterations", (int)r->iterations, "points",
                     (json_int_t)r->points, "products", (json_int_t)r->products,
                     "test_loss", papers_reals(r->test_loss, FIGURE2_POINTS),
                     "test_accuracy", r->accuracy, "apart", r->worst, "ok",
                     r->worst <= 1e-8, "rows", rows);
}

static void table_text(const nets_result *r)
{
    printf("%-7s %5s", "", "mu");
    for (size_t k = 1; k < TABLE1_SCHEMES; k++)
        printf("  %-7s rules printed", table1_names[k]);
    printf("  within 3 %% of the rules\n");
    for (size_t i = 0; i < TABLE1_ROWS; i++) {
        const nets_row *w = &r->row[i];

        printf("%-7s %5.2f", w->title, w->mu);
        for (size_t k = 0; k < 3; k++)
            printf("  %-7.3f %5.3f %7.2f", w->ratio[k], w->model[k],
                   w->printed[k]);
        printf("  %s\n", papers_mark(w->within));
    }
}

static void figure2_text(const nets_result *r)
{
    const nets_row *w = &r->row[1];

    printf("\ntest loss of the first network by seconds, i.i.d., mu = %g (Fig. "
           "2)\n%9s %9s",
           w->mu, "iteration", "loss");
    for (size_t k = 0; k < TABLE1_SCHEMES; k++)
        printf(" %10s", table1_names[k]);
    putchar('\n');
    for (size_t i = 0; i < FIGURE2_POINTS; i++) {
        printf("%9zu %9.4f", (i + 1) * r->iterations / FIGURE2_POINTS,
               r->test_loss[i]);
        for (size_t k = 0; k < TABLE1_SCHEMES; k++)
            printf(" %10.1f", w->at[k][i]);
        putchar('\n');
    }
}

static void nets_text(const nets_result *r)
{
    printf("6: five networks 784-%d-%d-10, %u iterations of %d of %zu points, "
           "%zu products, all\n   computed, on the simulator: time by that of "
           "the polynomial code (Table 1), of its\n   rounds and of the same "
           "rounds played by the rules\n",
           NETS_HIDDEN, NETS_HIDDEN, r->iterations,
           r->points < NETS_BATCH ? (int)r->points : NETS_BATCH, r->points,
           r->products);
    table_text(r);
    figure2_text(r);
    printf("accuracy in the end %.4f; weights of all networks after all "
           "iterations at most\n%.1e from the plain ones %s\n",
           r->accuracy, r->worst, papers_mark(r->worst <= 1e-8));
}

#define TRAIN 8192 /* of those that are made */
#define TEST 1024

static int load_points(const papers_args *a, images *p)
{
    kofn_status st;

    if (a->mnist)
        return papers_mnist(a, p);
    st = images_make(p, TRAIN, TEST, a->seed);
    return st ? papers_ended(st) : 0;
}

int stream_nets(const papers_args *a, json_t *list)
{
    nets_result r;
    images p;
    int code = load_points(a, &p);

    if (!code) {
        kofn_status st = nets_run(&p, (unsigned)papers_runs(a, NETS_ITERATIONS),
                                  a->seed, &r);

        code = st ? papers_ended(st) : 0;
    }
    images_free(&p);
    if (!code && list)
        json_array_append_new(list, nets_json(&r));
    else if (!code)
        nets_text(&r);
    return code;
}
