/* largest_load.c -- the largest load of DIP and IDIP under conforming patterns
 * of slow workers, with P = W = 4 and N = 10; "Coded Sequential Matrix
 * Multiplication For Straggler Mitigation" (Krishnan, Hosseini, Khisti);
 * math/stream_model.md 2. */
#include "show.h"

#define SEEDS 50 /* for each style of pattern */
#define BOUND (4.0 / 6)

typedef struct worst {
    double load[2]; /* DIP, IDIP */
    size_t missed, waits;
} worst;

static kofn_status play(const kofn_matrix *pattern, worst *w)
{
    static const rhat_scheme schemes[2] = {
        {.kind = RHAT_DIP, .threshold = 6, .T = 3, .lambda = 4},
        {.kind = RHAT_IDIP, .N = 10, .W = 4}};

    for (size_t k = 0; k < 2; k++) {
        const stream_setup x = {.scheme = schemes[k],
                                .workers = 4,
                                .alpha = 5,
                                .products = 400,
                                .pattern = pattern};
        stream_played p;

        PAPERS_TRY(stream_play(&x, &p));
        w->load[k] = fmax((double)p.slots / 6, w->load[k]);
        w->missed += p.missed;
        w->waits += p.waits;
    }
    return KOFN_OK;
}

static kofn_status run(const papers_args *a, size_t k, json_t *list)
{
    static const char *const styles[] = {"max", "uniform", "onoff", "sticky"};
    size_t seeds = papers_runs(a, SEEDS);
    worst w = {{0}, 0, 0};
    kofn_status st = KOFN_OK;

    for (size_t n = 0; n < 4 * seeds && !st; n++) {
        kofn_matrix pattern;
        char text[60];

        snprintf(text, sizeof text, "arbitrary:N=10,W=4,style=%s",
                 styles[n % 4]);
        st = kofn_pattern_new(&pattern, text, 4, 404, 5, a->seed + n);
        if (!st)
            st = play(&pattern, &w);
        kofn_free(pattern.data);
    }
    if (st)
        return st;
    if (!a->json) /* --json does not say the number */
        printf("4: the largest load under patterns with at most 10 marks in 4 "
               "rounds of 4 workers\n"
               "   (%zu of each style): ",
               seeds);
    papers_add(list,
               "scenario:z bound:f dip:{load:f ok:b} idip:{load:f ok:b} "
               "missed:z waits:z",
               k, BOUND, w.load[0], fabs(w.load[0] - BOUND) < 1e-12, w.load[1],
               fabs(w.load[1] - BOUND) < 1e-12, w.missed, w.waits);
    return KOFN_OK;
}

static void tell(json_t *o)
{
    papers_print(o, "bound {bound:.4f}, dip {dip.load:.4f} {dip.ok}, idip "
                    "{idip.load:.4f} {idip.ok}; late products {missed},\n"
                    "   rounds that waited though not all were slow {waits}\n");
}

const papers_scenario stream_largest_load = {run, tell, NULL};
