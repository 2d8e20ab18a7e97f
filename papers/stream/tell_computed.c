/* tell_computed.c -- streams that are computed, as JSON and tables. */
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

static void add_rates(const char *port, const rates_result *r, json_t *list)
{
    json_t *schemes = json_array();

    for (size_t k = 0; k < TABLE1_SCHEMES; k++) {
        const struct rates_row *w = &r->row[k];

        papers_add(schemes,
                   "scheme:s seconds:f products_a_second:f ratio:f model:f "
                   "encode_seconds:f decode_seconds:f",
                   w->spec, w->seconds, (double)r->products / w->seconds,
                   w->ratio, w->model, w->encoding, w->decoding);
    }
    papers_add(list,
               "scenario:i port:s size:z products:z turns:i idle:i factor:i "
               "rel_error:f schemes:o",
               5, port, r->size, r->products, RATES_TURNS, RATES_IDLE,
               RATES_FACTOR, r->worst, schemes);
}

kofn_status run_rates(const papers_args *a, size_t k, json_t *list)
{
    static const struct {
        const char *name;
        rates_port port;
    } ports[] = {{"threads", {threads_open, NULL, NULL}},
                 {"processes", {processes_open, processes_close, NULL}}};
    double scale = a->scale > 0 && a->scale < 1 ? a->scale : 1;
    size_t size = scaled_size(scale, SIZE, 4);
    kofn_status st = KOFN_OK;

    (void)k;
    for (size_t i = 0; i < 2 && !st; i++) {
        rates_result r;

        st = rates_run(size, a->seed, &ports[i].port, &r);
        if (!st)
            add_rates(ports[i].name, &r, list);
    }
    return st;
}

void tell_rates(json_t *o)
{
    papers_print(o, "5: {products} products of {size} x {size} each, four "
                    "workers on port {port}, whose usual task takes\n   {idle} "
                    "times as long as it computes, a slow one {factor} times "
                    "that ");
    printf("(F2, mu = %g);\n   time by that of the polynomial code, of the "
           "clock and of rounds played by the rules, medians of %d turns\n"
           "%-26s %10s %6s %6s %8s %8s\n",
           RATES_MU, RATES_TURNS, "scheme", "products/s", "ratio", "rules",
           "encode s", "decode s");
    papers_each(papers_at(o, "schemes"),
                "{scheme:-26} {products_a_second:10.4f} {ratio:6.3f} "
                "{model:6.3f} {encode_seconds:8.4f} {decode_seconds:8.4f}\n");
    papers_print(o, "largest relative error {rel_error:.1e}\n");
}

/* ---- 6: five networks ---------------------------------------------------- */

#define TRAIN 8192 /* of those that are made */
#define TEST 1024

static void add_nets_row(const nets_row *r, json_t *rows)
{
    json_t *schemes = json_array();

    for (size_t k = 0; k < TABLE1_SCHEMES; k++)
        papers_add(schemes,
                   "scheme:s seconds:f rules:f ratio:f printed:f seconds_to:o",
                   table1_names[k], r->time[k], r->played[k],
                   r->time[k] / r->time[0], k ? r->printed[k - 1] : (double)NAN,
                   papers_reals(r->at[k], FIGURE2_POINTS));
    papers_add(rows, "name:s pattern:s mu:f ok:b schemes:o", r->title,
               r->pattern, r->mu, r->within, schemes);
}

static void add_nets(const nets_result *r, json_t *list)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < TABLE1_ROWS; i++)
        add_nets_row(&r->row[i], rows);
    papers_add(list,
               "scenario:i iterations:i points:z products:z test_loss:o "
               "test_accuracy:f apart:f ok:b rows:o",
               6, r->iterations, r->points, r->products,
               papers_reals(r->test_loss, FIGURE2_POINTS), r->accuracy,
               r->worst, r->worst <= 1e-8, rows);
}

kofn_status run_nets(const papers_args *a, size_t k, json_t *list)
{
    nets_result r;
    images p = {.X = {.data = NULL}};
    kofn_status st =
        a->mnist ? papers_mnist(a, &p) : images_make(&p, TRAIN, TEST, a->seed);

    (void)k;
    if (!st)
        st = nets_run(&p, (unsigned)papers_runs(a, NETS_ITERATIONS), a->seed,
                      &r);
    images_free(&p);
    if (!st)
        add_nets(&r, list);
    return st;
}

static void tell_table(json_t *o)
{
    json_t *row, *scheme;
    size_t i, k;

    printf("%-7s %5s", "", "mu");
    for (k = 1; k < TABLE1_SCHEMES; k++)
        printf("  %-7s rules printed", table1_names[k]);
    printf("  within 3 %% of the rules\n");
    for (i = 0; (row = json_array_get(papers_at(o, "rows"), i)); i++) {
        papers_print(row, "{name:-7} {mu:5.2f}");
        for (k = 0; (scheme = json_array_get(papers_at(row, "schemes"), k));
             k++) {
            if (k == 0)
                continue;
            papers_print(scheme, "  {ratio:-7.3f} ");
            printf("%5.3f", papers_real(scheme, "rules") /
                                papers_real(row, "schemes.0.rules"));
            papers_print(scheme, " {printed:7.2f}");
        }
        papers_print(row, "  {ok}\n");
    }
}

static void tell_figure2(json_t *o)
{
    json_t *row = papers_at(o, "rows.1"), *scheme, *loss;
    size_t i, k;

    papers_print(row, "\ntest loss of the first network by seconds, i.i.d., mu "
                      "= {mu} (Fig. 2)\niteration      loss");
    papers_each(papers_at(row, "schemes"), " {scheme:10}");
    putchar('\n');
    for (i = 0; (loss = json_array_get(papers_at(o, "test_loss"), i)); i++) {
        printf("%9zu %9.4f",
               (i + 1) * (size_t)papers_real(o, "iterations") / FIGURE2_POINTS,
               json_number_value(loss));
        for (k = 0; (scheme = json_array_get(papers_at(row, "schemes"), k));
             k++)

            printf(" %10.1f", json_number_value(json_array_get(
                                  papers_at(scheme, "seconds_to"), i)));
        putchar('\n');
    }
}

void tell_nets(json_t *o)
{
    double points = papers_real(o, "points");

    printf("6: five networks 784-%d-%d-10, ", NETS_HIDDEN, NETS_HIDDEN);
    papers_print(o, "{iterations} iterations of ");
    printf("%.0f", fmin(points, NETS_BATCH));
    papers_print(o, " of {points} points, {products} products, all\n   "
                    "computed, on the simulator: time by that of the "
                    "polynomial code (Table 1), of its\n   rounds and of the "
                    "same rounds played by the rules\n");
    tell_table(o);
    tell_figure2(o);
    papers_print(o, "accuracy in the end {test_accuracy:.4f}; weights of all "
                    "networks after all iterations at most\n{apart:.1e} from "
                    "the plain ones {ok}\n");
}
