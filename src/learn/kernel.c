/* kernel.c -- kernel matrices, for regression on them (math/regression.md 10).
 *
 * The kernel matrix is the caller's.  It is made on this thread without a job.
 */
#include "regress.h"

#include "base/number.h"
#include "mat/mat.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

typedef enum kind { LINEAR, RBF, POLY } kind;

typedef struct kernel {
    kind kind;
    double s, degree, c;
} kernel;

/* ---- "name:key=value,..." ------------------------------------------------ */

static double *parameter(kernel *k, const char *name, size_t length)
{
    static const char *const names[] = {"s", "degree", "c"};
    double *const places[] = {&k->s, &k->degree, &k->c};

    for (size_t i = 0; i < 3; i++)
        if (strlen(names[i]) == length && !memcmp(names[i], name, length) &&
            (i == 0) == (k->kind == RBF) && k->kind != LINEAR)
            return places[i];
    return NULL;
}

static kofn_status parameters(kernel *k, const char *text)
{
    while (*text) {
        size_t key = strcspn(text, "=,");
        double *place = parameter(k, text, key);
        char *end;

        if (!place || text[key] != '=')
            return kf_fail(KOFN_INVAL,
                           "kernel: \"%.40s\" is not a parameter with a value; "
                           "there are rbf:s=S and poly:degree=D,c=C",
                           text);
        *place = kf_read_real(text + key + 1, &end);
        if (end == text + key + 1 || (*end && *end != ',') ||
            !(*place - *place == 0))
            return kf_fail(KOFN_INVAL, "kernel: \"%.40s\" is not a number",
                           text + key + 1);
        text = end + (*end == ',');
    }
    return KOFN_OK;
}

static kofn_status parse(kernel *k, const char *text)
{
    static const char *const names[] = {"linear", "rbf", "poly"};
    size_t n = strcspn(text, ":"), i = 0;

    while (i < 3 && (strlen(names[i]) != n || memcmp(names[i], text, n) != 0))
        i++;
    if (i == 3)
        return kf_fail(KOFN_INVAL,
                       "no kernel \"%.40s\"; there are linear, "
                       "rbf:s=S and poly:degree=D,c=C",
                       text);
    *k = (kernel){.kind = (kind)i, .s = 1, .degree = 2, .c = 1};
    TRY(parameters(k, text[n] ? text + n + 1 : ""));
    if (!(k->s > 0))
        return kf_fail(KOFN_INVAL, "kernel rbf: s = %g is not > 0", k->s);
    if (!(k->degree >= 1) || k->degree != floor(k->degree) || k->degree > 100)
        return kf_fail(KOFN_INVAL,
                       "kernel poly: degree = %g is not a whole "
                       "number in 1..100",
                       k->degree);
    return KOFN_OK;
}

/* ---- values -------------------------------------------------------------- */

static double value(const kernel *k, const double *x, const double *z, size_t n)
{
    assert(k->s > 0);
    double dot, far = 0, y = 1;

    if (k->kind == RBF) { /* not |x|^2 + |z|^2 - 2 x.z, which cancels */
        for (size_t j = 0; j < n; j++)
            far += (x[j] - z[j]) * (x[j] - z[j]);
        return exp(-far / (2 * k->s * k->s));
    }
    dot = kf_learn_dot(x, z, n);
    if (k->kind == LINEAR)
        return dot;
    for (int d = 0; d < (int)k->degree; d++)
        y *= dot + k->c;
    return y;
}

kofn_status kofn_kernel(kofn_matrix *K, const kofn_matrix *X,
                        const kofn_matrix *Z, const char *text)
{
    kernel k;

    *K = (kofn_matrix){0};
    TRY(kf_regress_shape(X, "X"));
    TRY(kf_regress_shape(Z, "Z"));
    if (X->cols != Z->cols)
        return kf_fail(KOFN_SHAPE,
                       "points of %zu and of %zu features have no kernel",
                       X->cols, Z->cols);
    TRY(parse(&k, text));
    TRY(kf_mat_new(K, X->rows, Z->rows, KOFN_F64));
    for (size_t i = 0; i < X->rows; i++)
        for (size_t j = 0; j < Z->rows; j++)
            kf_mat_put(K, i, j,
                       value(&k, kf_at(X, i, 0), kf_at(Z, j, 0), X->cols));
    return KOFN_OK;
}
