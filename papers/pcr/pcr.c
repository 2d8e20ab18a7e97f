/* pcr.c -- iterations of "Polynomially Coded Regression: Optimal Straggler
 * Mitigation via Data Encoding" (Li, Mousavi Kalan, Yu, Soltanolkotabi,
 * Avestimehr, 2018) in simulated time, the basis of its tables and figures;
 * math/regression.md 15.
 *
 * A worker computes 1.8 ms per batch, a tenth of it random. Now and then the
 * network delays its message. The coordinator's link takes one message after
 * another, 1.9 ms each. Half a second of sleep is several iterations long.
 * That explains the tables: a sleeping worker misses these iterations, or
 * works through a backlog of unneeded results. */
#include "pcr/pcr.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 1.8e-3   /* seconds per batch */
#define RECEIVE 1.9e-3 /* seconds per message */
#define VARYING 0.1    /* exponential share of work */
#define DELAY_CHANCE 0.015
#define DELAY_MEAN 0.2

const char *const pcr_names[PCR_SCHEMES] = {"uncoded", "gc", "pcr", "bcc"};

pcr_setup pcr_scenario(size_t k, pcr_scheme scheme)
{
    return (pcr_setup){.scheme = scheme,
                       .n = k <= 2 ? 40 : 30,
                       .r = scheme == PCR_UNCODED ? 1 : 10,
                       .sleeps = k % 2 == 0,
                       .iterations = PCR_ITERATIONS};
}

size_t pcr_threshold(pcr_scheme scheme, size_t n, size_t r)
{
    size_t c = r ? ceil_div(n, r) : 0;

    if (r < 1 || r > n)
        return 0;
    switch (scheme) {
    case PCR_UNCODED:
        return r == 1 ? n : 0;
    case PCR_GC:
        return n - r + 1;
    case PCR_PCR:
        return r >= 2 ? 2 * c - 1 : 0;
    case PCR_BCC:
        return c;
    }
    return 0;
}

/* ---- one run ------------------------------------------------------------- */

typedef struct message {
    double arrives, began, done;
    double own; /* seconds its worker computed */
    uint32_t worker;
    bool stale;
} message;

typedef struct master {
    const pcr_setup *s;
    size_t threshold;
    double now;
    double *busy;  /* per worker: busy until this time */
    size_t *part;  /* per worker: the part it sends, for all schemes but BCC
                      itself */
    bool *have;    /* per part */
    message *line; /* messages of this iteration, and late ones */
    size_t lined, room;
} master;

static int earlier(const void *a, const void *b)
{
    const message *x = a, *y = b;

    if (x->arrives != y->arrives)
        return x->arrives < y->arrives ? -1 : 1;
    return x->worker < y->worker ? -1 : x->worker > y->worker;
}

/* Draws the placement of the batched coupon collector until every super-batch
 * has a worker. */
static void place(master *m)
{
    const pcr_setup *s = m->s;
    size_t c = ceil_div(s->n, s->r), missing = s->scheme == PCR_BCC ? c : 0;
    dice d = dice_for(s->seed, 1, s->r);

    for (size_t j = 0; j < s->n; j++)
        m->part[j] = j;
    while (missing) {
        memset(m->have, 0, s->n * sizeof *m->have);
        missing = c;
        for (size_t j = 0; j < s->n; j++) {
            m->part[j] = (size_t)(dice_uniform(&d) * (double)c);
            missing -= !m->have[m->part[j]];
            m->have[m->part[j]] = true;
        }
    }
}

/* Returns worker j's message for iteration `it`. The draws are the same for
 * every scheme. */
static message task(const master *m, size_t j, size_t it)
{
    const pcr_setup *s = m->s;
    dice d = dice_for(s->seed, 2 + j, it);
    bool sleeps = dice_uniform(&d) < PCR_SLEEP_CHANCE && s->sleeps;
    double vary = dice_exponential(&d);
    bool delayed = dice_uniform(&d) < DELAY_CHANCE;
    double delay = DELAY_MEAN * dice_exponential(&d);
    message t = {.worker = (uint32_t)j};

    t.own =
        BATCH * (double)s->r * (1 + VARYING * vary) + (sleeps ? PCR_SLEEP : 0);
    t.began = s->stale == PCR_RESET ? m->now : fmax(m->now, m->busy[j]);
    t.done = t.began + t.own;
    t.arrives = t.done + (delayed ? delay : 0);
    return t;
}

static kofn_status line_up(master *m, size_t it)
{
    if (m->lined + m->s->n > m->room) {
        size_t room = 2 * (m->lined + m->s->n);
        message *line = realloc(m->line, room * sizeof *line);

        if (!line)
            return KOFN_NOMEM;
        m->line = line;
        m->room = room;
    }
    for (size_t j = 0; j < m->s->n; j++)
        m->line[m->lined++] = task(m, j, it);
    qsort(m->line, m->lined, sizeof *m->line, earlier);
    return KOFN_OK;
}

/* Receives messages until they suffice. Returns the number received. */
static size_t receive(master *m, pcr_iteration *out)
{
    double link = m->now;
    size_t at = 0, distinct = 0;

    *out = (pcr_iteration){0, 0, 0};
    memset(m->have, 0, m->s->n * sizeof *m->have);
    while (distinct < m->threshold) {
        const message *t = &m->line[at++];

        link = fmax(link, t->arrives) + RECEIVE;
        if (t->stale)
            continue;
        out->messages++;
        out->computation = fmax(out->computation, t->own);
        distinct += !m->have[m->part[t->worker]];
        m->have[m->part[t->worker]] = true;
    }
    out->took = link - m->now;
    m->now = link;
    return at;
}

/* Ends the iteration: updates how long workers are busy and which messages are
 * still to come. */
static void settle(master *m, size_t taken)
{
    size_t left = 0;

    for (size_t i = 0; i < m->lined; i++) {
        message *t = &m->line[i];
        bool never = m->s->stale == PCR_LATEST && t->began >= m->now;

        if (!t->stale && !never)
            m->busy[t->worker] = t->done;
        if (i >= taken && !never && m->s->clogged) {
            m->line[left] = *t;
            m->line[left++].stale = true;
        }
    }
    m->lined = left;
}

static kofn_status iterate(master *m, pcr_iteration *each)
{
    kofn_status st = KOFN_OK;

    place(m);
    for (size_t it = 0; it < m->s->iterations && !st; it++) {
        st = line_up(m, it);
        if (!st)
            settle(m, receive(m, &each[it]));
    }
    return st;
}

kofn_status pcr_run(const pcr_setup *s, pcr_iteration *each)
{
    master m = {.s = s, .threshold = pcr_threshold(s->scheme, s->n, s->r)};
    kofn_status st = KOFN_NOMEM;

    if (m.threshold == 0)
        return KOFN_INVAL;
    m.busy = calloc(s->n, sizeof *m.busy);
    m.part = calloc(s->n, sizeof *m.part);
    m.have = calloc(s->n, sizeof *m.have);
    if (m.busy && m.part && m.have)
        st = iterate(&m, each);
    free(m.busy);
    free(m.part);
    free(m.have);
    free(m.line);
    return st;
}

/* ---- averages ------------------------------------------------------------ */

static double deviation(double sum, double squares, double n)
{
    return sqrt(fmax(0, squares / n - sum / n * (sum / n)));
}

static void average(const pcr_iteration *each, pcr_mean *out)
{
    size_t count = out->runs * out->iterations;
    double n = (double)count, took2 = 0, messages2 = 0;

    for (size_t i = 0; i < count; i++) {
        double k = each[i].messages;

        out->took += each[i].took;
        took2 += each[i].took * each[i].took;
        out->computation += each[i].computation;
        out->messages += k;
        messages2 += k * k;
        out->quantile[i] = each[i].took;
    }
    qsort(out->quantile, count, sizeof *out->quantile, papers_ascending);
    out->took_sd = deviation(out->took, took2, n);
    out->messages_sd = deviation(out->messages, messages2, n);
    out->total = out->took / (double)out->runs;
    out->computation /= (double)out->runs;
    out->took /= n;
    out->messages /= n;
}

kofn_status pcr_average(const pcr_setup *s, size_t runs, pcr_mean *out)
{
    pcr_setup one = *s;
    pcr_iteration *each = malloc(runs * s->iterations * sizeof *each);
    kofn_status st = KOFN_OK;

    *out = (pcr_mean){.iterations = s->iterations, .runs = runs};
    out->quantile = malloc(runs * s->iterations * sizeof *out->quantile);
    if (!each || !out->quantile)
        st = KOFN_NOMEM;
    for (size_t i = 0; i < runs && !st; i++, one.seed++)
        st = pcr_run(&one, each + i * s->iterations);
    if (!st)
        average(each, out);
    free(each);
    return st;
}

kofn_status pcr_total(const pcr_setup *s, size_t runs, double *total)
{
    pcr_mean mean;
    kofn_status st = pcr_average(s, runs, &mean);

    *total = mean.total;
    free(mean.quantile);
    return st;
}
