/* figure_4.c -- Figure 4 of "Polynomially Coded Regression: Optimal Straggler
 * Mitigation via Data Encoding" (Li, Mousavi Kalan, Yu, Soltanolkotabi,
 * Avestimehr, 2018): the distribution of an iteration's time with PCR and with
 * the batched coupon collector. Their means are close, their spreads are not.
 */
#include "pcr/pcr.h"

/* The figure's first claim: the mean of BCC is within a tenth of PCR's. */
static bool close_means(const pcr_panel *p)
{
    return pcr_factor(p->mean[PCR_BCC].took, p->mean[PCR_PCR].took) <= 1.1;
}

/* The second claim: BCC has the larger spread, since it waits for a random
 * number of workers. */
static bool steeper(const pcr_panel *p)
{
    return p->mean[PCR_PCR].messages_sd < p->mean[PCR_BCC].messages_sd;
}

json_t *pcr_figure_4_json(const pcr_panel *p)
{
    return papers_pack("bcc_close:b pcr_steeper:b", close_means(p), steeper(p));
}

/* Returns the share of iterations that take at most t. */
static double within(const pcr_mean *m, double t)
{
    size_t count = m->runs * m->iterations, lo = 0, hi = count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (m->quantile[mid] <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return (double)lo / (double)count;
}

#define PICTURE 40
#define PICTURE_MS 80.0

void pcr_figure_4_tell(const pcr_panel *p, size_t panels)
{
    static const pcr_scheme shown[] = {PCR_PCR, PCR_BCC};

    printf("\ntime of an iteration, share done after 0 to %g ms (Fig. 4)\n",
           PICTURE_MS);
    for (size_t i = 0; i < 2 * panels; i++) {
        const pcr_mean *m = &p[i / 2].mean[shown[i % 2]];

        printf("%zu %-4s ", p[i / 2].k, pcr_names[shown[i % 2]]);
        for (int t = 1; t <= PICTURE; t++)
            papers_bar(within(m, t * PICTURE_MS * 1e-3 / PICTURE));
        printf("  %5.1f +- %.1f ms\n", m->took * 1e3, m->took_sd * 1e3);
    }
    printf("means within a tenth, pcr the steeper:");
    for (size_t k = 0; k < panels; k++)
        printf(" %s", papers_mark(close_means(&p[k]) && steeper(&p[k])));
    putchar('\n');
}
