/* batches.c -- the time of 100 iterations against the batches that a worker
 * stores, for all codes of "Polynomially Coded Regression: Optimal Straggler
 * Mitigation via Data Encoding" (Li, Mousavi Kalan, Yu, Soltanolkotabi,
 * Avestimehr, 2018); math/regression.md 15. */
#include "pcr/pcr.h"

#include <stdlib.h>

#define STORES 7
static const char *const stores[STORES] = {"1", "2", "4", "5", "8", "10", "20"};

/* Adds each scheme by stored batches, if there is such a code. With one batch,
 * all are uncoded. */
kofn_status pcr_batches_add(const papers_args *a, size_t k, json_t *o)
{
    size_t runs = papers_runs(a, PCR_RUNS / 4);
    json_t *by_batches = json_object();

    json_object_set_new(o, "total_by_batches", by_batches);
    for (pcr_scheme c = 0; c < PCR_SCHEMES; c++) {
        json_t *row = json_object();

        json_object_set_new(by_batches, pcr_names[c], row);
        for (size_t i = 0; i < STORES; i++) {
            pcr_setup s = pcr_setup_for(a, k, c);
            double total;

            s.r = strtoul(stores[i], NULL, 10);
            if ((c == PCR_UNCODED) != (s.r == 1))
                continue;
            PAPERS_TRY(pcr_total(&s, runs, &total));
            json_object_set_new(row, stores[i], json_real(total));
        }
    }
    return KOFN_OK;
}

/* ---- output ---------------------------------------------------------------
 */

/* Prints the fastest code that needs no more memory. */
static void tell_best(size_t k, json_t *by_batches)
{
    const char *scheme, *best = NULL;
    double least = HUGE_VAL;
    json_t *row;

    printf("%zu %-8s", k, "least");
    for (size_t i = 0; i < STORES; i++) {
        json_object_foreach(by_batches, scheme,
                            row) if (papers_real(row, stores[i]) < least)
        {
            best = scheme;
            least = papers_real(row, stores[i]);
        }
        printf("%9s", best);
    }
    putchar('\n');
}

void pcr_batches_tell(json_t *list)
{
    json_t *o, *row;
    const char *scheme;

    printf("\nseconds by batches stored\n%-10s", "");
    for (size_t i = 0; i < STORES; i++)
        printf("%9s", stores[i]);
    putchar('\n');
    for (size_t k = 0; (o = json_array_get(list, k)); k++) {
        size_t scenario = (size_t)papers_real(o, "scenario");

        json_object_foreach(papers_at(o, "total_by_batches"), scheme, row)
        {
            printf("%zu %-8s", scenario, scheme);
            for (size_t i = 0; i < STORES; i++)
                if (papers_at(row, stores[i]))
                    printf("%9.2f", papers_real(row, stores[i]));
                else
                    printf("%9s", "-");
            putchar('\n');
        }
        tell_best(scenario, papers_at(o, "total_by_batches"));
    }
}
