/* rounds.c -- simulates the rounds of a stream of products by the rules, over
 * patterns of slow workers.
 *
 * "Coded Sequential Matrix Multiplication For Straggler Mitigation" (Krishnan,
 * Hosseini, Khisti), Figure 1 and Table 1; math/stream_model.md 2 and 7. The
 * results of a product are counted here product by product. The chains
 * (chain.c) know marks only. */
#include "stream/stream.h"

#include <stdlib.h>

/* ---- one stream ---------------------------------------------------------- */

typedef struct stream_state {
    const stream_setup *x;
    size_t threshold, delay; /* SIZE_MAX: none */
    double parts;
    size_t *got;          /* per product */
    uint8_t *marks;       /* of the last `window` rounds, a row per round */
    size_t window, first; /* the oldest unfinished product */
} stream_state;

static bool is_bursty(const stream_setup *x)
{
    return x->scheme.kind == RHAT_IDIP && x->eps > 0;
}

size_t stream_threshold(const stream_setup *x)
{
    const rhat_scheme *s = &x->scheme;

    if (is_bursty(x))
        return x->workers * (s->W - 1 + x->B) - x->B * x->eps;
    return s->kind == RHAT_IDIP ? x->workers * s->W - s->N : s->threshold;
}

static size_t delay_of(const stream_setup *x)
{
    const rhat_scheme *s = &x->scheme;

    return s->kind == RHAT_ONCE  ? 0
           : s->kind == RHAT_DIP ? s->T
           : is_bursty(x)        ? s->W + x->B - 2
                                 : s->W - 1;
}

static bool slow(const stream_setup *x, size_t t, size_t w)
{
    const kofn_matrix *a = x->pattern;

    return ((const double *)a->data)[t % a->rows * a->ld + w] > 1;
}

static double size_of(const stream_setup *x, size_t i)
{
    return x->sizes ? x->size[i / x->models % x->sizes] : 1;
}

/* Returns the mini-tasks of each worker for product i in round t. */
static size_t tasks(const stream_state *s, size_t i, size_t t)
{
    const rhat_scheme *c = &s->x->scheme;
    bool over = s->got[i] >= s->threshold;

    if (c->kind != RHAT_DIP || t - i < s->delay)
        return !over || (c->kind == RHAT_IDIP && c->late);
    return over ? 0 : (s->threshold - s->got[i] + c->lambda - 1) / c->lambda;
}

/* True if the window that ends now has at most N marks, or if at most eps
 * workers have marks within B rounds. */
static bool admits(const stream_state *s, size_t t)
{
    const stream_setup *x = s->x;
    size_t marks = 0, workers = 0;

    for (size_t w = 0; w < x->workers; w++) {
        size_t last = SIZE_MAX, span = 0;

        for (size_t back = 0; back < s->window && back <= t; back++) {
            bool on = back == 0
                          ? slow(x, t, w)
                          : s->marks[(t - back) % s->window * x->workers + w];

            marks += on;
            if (on && last == SIZE_MAX)
                last = back;
            if (on)
                span = back - last + 1;
        }
        workers += span > 0;
        if (is_bursty(x) && span > x->B)
            return false;
    }
    return is_bursty(x) ? workers <= x->eps : marks <= x->scheme.N;
}

/* True if the round cannot end without the slow workers. */
static bool waits(const stream_state *s, size_t t, size_t in)
{
    const stream_setup *x = s->x;
    size_t due = t - s->delay;

    if (in == 0)
        return true;
    switch (x->scheme.kind) {
    case RHAT_ONCE:
        return in < s->threshold;
    case RHAT_IDIP:
        return !admits(s, t);
    case RHAT_DIP:
        break;
    }
    return t >= s->delay && due < x->products && s->got[due] < s->threshold &&
           s->got[due] + in * tasks(s, due, t) < s->threshold;
}

static void keep_marks(const stream_state *s, size_t t, bool none)
{
    const stream_setup *x = s->x;

    for (size_t w = 0; w < x->workers && s->window; w++)
        s->marks[t % s->window * x->workers + w] = !none && slow(x, t, w);
}

static void round_over(stream_state *s, size_t t, size_t in, stream_played *out)
{
    const stream_setup *x = s->x;
    size_t last = t < x->products ? t : x->products - 1;

    for (size_t i = s->first; i <= last; i++) {
        size_t had = s->got[i];

        s->got[i] += in * tasks(s, i, t);
        if (had < s->threshold && s->got[i] >= s->threshold &&
            t - i > out->delay)
            out->delay = t - i;
    }
    while (s->first <= last &&
           (s->got[s->first] >= s->threshold || t - s->first >= s->delay)) {
        bool carried = x->scheme.kind == RHAT_IDIP && x->scheme.late;

        if (carried && t - s->first < s->delay)
            break;
        out->missed += s->got[s->first++] < s->threshold;
    }
}

static void play_round(stream_state *s, size_t t, stream_played *out)
{
    const stream_setup *x = s->x;
    size_t in = 0, slots = 0;
    double load = 0, longer = 1;
    bool waited, patient = x->alpha <= 1 + x->mu;

    for (size_t w = 0; w < x->workers; w++)
        in += !slow(x, t, w);
    for (size_t i = s->first; i <= t && i < x->products; i++) {
        slots += tasks(s, i, t);
        load += (double)tasks(s, i, t) * size_of(x, i) / s->parts;
    }
    waited = waits(s, t, in) || patient;
    if (in < x->workers)
        longer = waited                        ? x->alpha
                 : x->scheme.kind != RHAT_ONCE ? 1 + x->mu
                                               : 1;
    keep_marks(s, t, waited);
    out->waits += waited && !patient && in > 0 && in < x->workers && slots > 0;
    out->slots = slots > out->slots ? slots : out->slots;
    out->time += load * longer;
    if (x->took && t < x->rounds_kept)
        x->took[t] = load * longer * s->parts;
    round_over(s, t, waited ? x->workers : in, out);
}

kofn_status stream_play(const stream_setup *x, stream_played *out)
{
    stream_state s = {.x = x,
                      .threshold = stream_threshold(x),
                      .delay = delay_of(x),
                      .window = x->scheme.kind == RHAT_IDIP ? x->scheme.W : 0};
    kofn_status st = KOFN_OK;

    *out = (stream_played){.time = 0};
    s.parts = (double)(x->scheme.parts ? x->scheme.parts : s.threshold);
    s.got = calloc(x->products, sizeof *s.got);
    s.marks = calloc(s.window + 1, x->workers);
    if (!s.got || !s.marks)
        st = KOFN_NOMEM;
    for (size_t t = 0; !st && s.first < x->products; t++)
        play_round(&s, t, out);
    free(s.got);
    free(s.marks);
    return st;
}
