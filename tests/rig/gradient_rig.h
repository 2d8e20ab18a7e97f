/* gradient_rig.h -- codes for sums of vectors without the rest of the library.
 * The parts are random vectors. Every seat's answers are computed as by a
 * worker, and decoded as by the coordinator. */
#ifndef KF_TEST_GRADIENT_RIG_H
#define KF_TEST_GRADIENT_RIG_H

#include "rig.h"

#include "code/code.h"
#include "run/run.h"

#include <stdio.h>

typedef struct sum_case {
    kofn_plan *plan;
    const kofn_layout *L;
    kf_code *code;
    kofn_dtype dtype;
    size_t n, p;        /* seats; numbers in a vector */
    void *part;         /* parts x p */
    double *want;       /* their sum, added in double */
    double size;        /* the norm of `want` */
    kf_buffer **answer; /* seat submessages + submessage */
    kofn_matrix out;
    double noise, predicted; /* of the last decoded answers */
    kf_scratch scratch;
} sum_case;

static inline double number_at(const void *x, size_t i, kofn_dtype dtype)
{
    return dtype == KOFN_F64 ? ((const double *)x)[i]
                             : (double)((const float *)x)[i];
}

static inline kofn_status stored_part(void *ctx, size_t part, size_t parts,
                                      const kofn_matrix *in, kofn_matrix *out)
{
    const sum_case *f = ctx;
    size_t bytes = f->p * kf_dtype_size(f->dtype);

    (void)parts;
    (void)in;
    memcpy(out->data, (const char *)f->part + part * bytes, bytes);
    return KOFN_OK;
}

static inline void make_parts(sum_case *f, size_t parts)
{
    size_t size = kf_dtype_size(f->dtype);
    kf_rng r = kf_rng_stream(77, KF_FOR_DATA, 0, 0);

    f->part = numbers(parts * f->p, size);
    f->want = numbers(f->p, sizeof *f->want);
    for (size_t i = 0; i < parts * f->p; i++) {
        /* cheaper than a normal number, and as good */
        double x = kf_rng_uniform(&r) + kf_rng_uniform(&r) - 1;

        if (f->dtype == KOFN_F64)
            ((double *)f->part)[i] = x;
        else
            ((float *)f->part)[i] = (float)x;
        f->want[i % f->p] += number_at(f->part, i, f->dtype);
    }
    for (size_t i = 0; i < f->p; i++)
        f->size += f->want[i] * f->want[i];
    f->size = sqrt(f->size);
}

/* Computes all submessages of one seat. */
static inline void answer_of(sum_case *f, const kf_resident *r, kf_buffer *in,
                             size_t seat)
{
    kf_block *block;

    assert_ok(kf_data_encode(r, f->code, &seat, 1, &block));
    for (size_t t = 0; t < f->L->submessages; t++) {
        kf_msg m = {.how = KF_HOW_SUBMESSAGE,
                    .hi = f->plan->span,
                    .product = 1,
                    .row = (uint32_t)(seat * f->L->submessages + t),
                    .in = in};

        assert_ok(kf_buffer_new(&m.result, f->L->components * f->plan->span, 1,
                                f->dtype));
        assert_ok(kf_work_do(block, &m, NULL, NULL));
        f->answer[seat * f->L->submessages + t] = m.result;
    }
    kf_block_drop(block);
}

static inline void case_plan(sum_case *f, const char *spec, size_t n, size_t p,
                             kofn_dtype dtype)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, p, 1, 1, dtype, false);

    *f = (sum_case){.n = n, .p = p, .dtype = dtype};
    assert_ok(kofn_plan_new(&f->plan, &pb, spec, n, 5));
    f->L = &f->plan->layout;
    assert_ok(kf_code_new(&f->code, f->plan));
}

static inline void case_up(sum_case *f, const char *spec, size_t n, size_t p,
                           kofn_dtype dtype)
{
    kf_resident r;
    kf_buffer *in;

    case_plan(f, spec, n, p, dtype);
    make_parts(f, f->plan->parts);
    f->answer = numbers(n * f->L->submessages, sizeof(kf_buffer *));
    f->out = (kofn_matrix){numbers(p, kf_dtype_size(dtype)), p, 1, 1, dtype};
    kf_resident_sum(&r, f->plan);
    r.f = stored_part;
    r.ctx = f;
    assert_ok(kf_buffer_new(&in, 1, 1, dtype));
    memset(in->m.data, 0, kf_dtype_size(dtype));
    for (size_t i = 0; i < n; i++)
        answer_of(f, &r, in, i);
    kf_buffer_drop(in);
    kf_resident_free(&r);
}

static inline void case_down(sum_case *f)
{
    for (size_t i = 0; f->answer && i < f->n * f->L->submessages; i++)
        kf_buffer_drop(f->answer[i]);
    kf_free(f->answer);
    kf_free(f->part);
    kf_free(f->want);
    kf_free(f->out.data);
    kf_scratch_free(&f->scratch);
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
}

/* Returns ||answer - sum|| / ||sum||, or -1 if the answers do not decode. */
static inline double case_error(sum_case *f, const uint32_t *answers, size_t n)
{
    kf_source *source = numbers(n, sizeof *source);
    kofn_decoder *d;
    kofn_status st = kf_decoder_new(&d, f->code, answers, n, false);
    double sum = 0;

    assert_true(st == KOFN_OK || st == KOFN_TOOFEW);
    for (size_t i = 0; i < n; i++)
        source[i] = (kf_source){&f->answer[answers[i]]->m, 0, f->plan->span};
    if (!st) {
        f->noise = d->noise;
        f->predicted = d->predicted;
        memset(f->out.data, 0xff, f->p * kf_dtype_size(f->dtype));
        assert_ok(kf_decode(f->plan, d, source, (kf_band){0, 0, f->plan->span},
                            &f->out, &f->scratch));
        for (size_t i = 0; i < f->p; i++) {
            double x = number_at(f->out.data, i, f->dtype) - f->want[i];

            sum += x * x;
        }
    }
    kf_free(source);
    kf_decoder_free(d);
    return st ? -1 : sqrt(sum) / f->size;
}

/* Lists the answers to submessages 0..submessages-1 of all workers that are
 * not `out`. */
static inline size_t answers_of(const sum_case *f, const bool *out,
                                size_t submessages, uint32_t *answers)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        for (size_t t = 0; t < submessages && !out[i]; t++)
            answers[n++] = (uint32_t)(i * f->L->submessages + t);
    return n;
}

static inline double error_without(sum_case *f, const bool *out,
                                   size_t submessages)
{
    uint32_t *answers = numbers(f->n * f->L->submessages, sizeof *answers);
    size_t n = answers_of(f, out, submessages, answers);
    double e = case_error(f, answers, n);

    kf_free(answers);
    return e;
}

/* ---- partial progress -----------------------------------------------------
 */

#define LENGTH 241 /* a prime */

/* Sanitizers look at memory; larger codes have nothing new. */
#define LARGEST (SLOWED > 1 ? (size_t)5 : 8)

/* Returns the error after worker i has sent submessages 0..count[i]-1. */
static inline double error_after(sum_case *f, const size_t *count)
{
    uint32_t *answers = numbers(f->n * f->L->submessages, sizeof *answers);
    size_t n = 0;
    double e;

    for (size_t i = 0; i < f->n; i++)
        for (size_t t = 0; t < count[i]; t++)
            answers[n++] = (uint32_t)(i * f->L->submessages + t);
    e = case_error(f, answers, n);
    kf_free(answers);
    return e;
}

/* Decodes: the sum within the prediction (up to four times that for short
 * vectors) and below `worst`; or a refusal. */
static inline void try_counts(sum_case *f, const char *spec,
                              const size_t *count, bool whole, double worst)
{
    double e = error_after(f, count);
    char text[200] = "";

    if (whole ? e >= 0 && e <= 4 * f->predicted && e <= worst : e < 0)
        return;
    for (size_t i = 0; i < f->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %zu",
                 count[i]);
    fail_msg("%s on %zu workers that sent%s: error %g, predicted %g; should%s "
             "decode",
             spec, f->n, text, e, f->predicted, whole ? "" : " not");
}

static const char *const forms[] = {"sequential", "staircase", "decoupled"};

#endif
