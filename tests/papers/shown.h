/* shown.h -- figures and tables of papers as kofn-papers --json prints them. */
#ifndef PAPERS_SHOWN_H
#define PAPERS_SHOWN_H

#include "show.h"

static kofn_status run_figure(const papers_scenario *of, size_t k, double scale,
                              uint64_t seed, json_t *list)
{
    const papers_args a = {.json = true, .scale = scale, .seed = seed};

    return of->run(&a, k, list);
}

/* Returns scenario k as JSON, for json_decref. */
static inline json_t *shown(const papers_scenario *of, size_t k, double scale,
                            uint64_t seed)
{
    json_t *list = json_array(), *o;

    assert_ok(run_figure(of, k, scale, seed, list));
    o = json_incref(json_array_get(list, 0));
    json_decref(list);
    assert_non_null(o);
    return o;
}

/* Returns the status if the n-th allocation, and each after it, fails. */
static inline kofn_status short_of_memory(const papers_scenario *of, size_t k,
                                          double scale, long n)
{
    json_t *list = json_array();
    kofn_status st;

    fail_allocation(n);
    st = run_figure(of, k, scale, 1, list);
    fail_allocation(0);
    assert_true((st == KOFN_OK) == (json_array_size(list) == 1));
    json_decref(list);
    return st;
}

#endif
