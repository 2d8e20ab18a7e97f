/* fingerprint.c -- the options on which the numbers of a run depend, as text.
 *
 * Owns nothing. */
#include "fingerprint.h"

#include <inttypes.h>
#include <stdlib.h>

void fingerprint_text(json_t *o, const char *key, const char *value)
{
    PUT(key, json_string(value ? value : ""));
}

void fingerprint_size(json_t *o, const char *key, uint64_t value)
{
    PUT(key, json_sprintf("%" PRIu64, value));
}

void fingerprint_real(json_t *o, const char *key, double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    PUT(key, json_string(text));
}

static void say_regress(json_t *o, const cli_args *a)
{
    const kofn_regress_options *r = &a->regress;
    static const char *const loss[] = {"squares", "logistic", "poisson"};
    static const char *const optimizer[] = {"auto", "gd", "nesterov", "sgd",
                                            "lbfgs"};
    static const char *const search[] = {"none", "exact", "armijo", "grid"};

    fingerprint_text(o, "--loss", loss[r->loss]);
    fingerprint_text(o, "--optimizer", optimizer[r->optimizer]);
    fingerprint_text(o, "--line-search", search[r->line_search]);
    fingerprint_text(o, "--kernel", a->kernel);
    fingerprint_real(o, "--l2", r->l2);
    fingerprint_real(o, "--step", r->step);
    fingerprint_real(o, "--batches", r->batches);
    fingerprint_real(o, "--intercept", r->intercept);
    fingerprint_text(o, "--start", a->start);
    fingerprint_real(o, "--scale", a->standardise);
}

static void say_train(json_t *o, const cli_args *a)
{
    const kofn_net_shape *s = &a->net;
    const kofn_train_options *t = &a->train;

    fingerprint_text(o, "--layers", a->widths);
    fingerprint_text(o, "--activation", model_activation(s->activation));
    fingerprint_text(o, "--output-activation", model_activation(s->output));
    fingerprint_text(o, "--loss", model_loss(s->loss));
    fingerprint_text(o, "--dtype", a->dtype);
    fingerprint_real(o, "--autoencoder", s->autoencoder);
    fingerprint_real(o, "--sparsity", s->sparsity);
    fingerprint_real(o, "--sparsity-weight", s->sparsity_weight);
    fingerprint_real(o, "--step", t->step ? t->step : 0.1);
    fingerprint_real(o, "--momentum", t->momentum);
    fingerprint_real(o, "--nesterov", t->nesterov);
    fingerprint_real(o, "--l2", t->l2);
    fingerprint_size(o, "--batch", t->batch);
    fingerprint_real(o, "--unit", a->unit);
}

void fingerprint_options(json_t *o, const cli_args *a)
{
    fingerprint_text(o, "command", a->command->name);
    fingerprint_size(o, "--seed", a->seed);
    if (a->command->bit == IN_PAGERANK)
        fingerprint_real(o, "--damping", a->damping_given ? a->damping : 0.85);
    if (a->command->bit == IN_REGRESS)
        say_regress(o, a);
    if (a->command->bit == IN_TRAIN)
        say_train(o, a);
}
