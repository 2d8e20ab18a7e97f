/* forge.h -- makes block specifications as a hostile coordinator may send
 * them. They are well formed. Their sizes fit each other, or their products
 * wrap round. */
#ifndef KF_FUZZ_FORGE_H
#define KF_FUZZ_FORGE_H

#include "packets.h"

#define FORGED_MOST 4096

typedef struct forged {
    uint8_t p[FORGED_MOST];
    size_t n;
    kofn_dtype dtype;
    uint64_t components, rows, cols, span; /* span: strips of a sum */
    uint64_t numbers;                      /* in a row of the data of the sum */
    bool sum;
} forged;

static inline void forge_bytes(forged *f, const void *p, size_t n)
{
    if (n <= FORGED_MOST - f->n) {
        memcpy(f->p + f->n, p, n);
        f->n += n;
    }
}

static inline void forge_number(forged *f, uint64_t x)
{
    forge_bytes(f, &x, sizeof x);
}

static inline void forge_reals(forged *f, uint64_t n)
{
    double one = 1;

    for (uint64_t i = 0; i < n && i < FORGED_MOST / 8; i++)
        forge_bytes(f, &one, sizeof one);
}

static inline void forge_dense(forged *f, draw *d)
{
    uint64_t down = 1 + next(d, 3), right = 1 + next(d, 3);
    uint64_t inner = next(d, 4) ? 1 : 2;

    forge_number(f, f->rows <= UINT64_MAX / 64 ? f->rows * down : f->rows);
    forge_number(f, f->cols <= UINT64_MAX / 64 ? f->cols / inner * right
                                               : f->cols);
    forge_number(f, down);
    forge_number(f, right);
    forge_number(f, inner);
    for (uint64_t i = 0; i < f->components * inner; i++) {
        uint64_t n = next(d, 3);

        forge_number(f, n);
        for (uint64_t e = 0; e < n; e++)
            forge_number(f, next(d, 9));
        forge_reals(f, n);
    }
}

static inline void forge_sparse(forged *f, draw *d, uint64_t used)
{
    forge_number(f, next(d, 4) ? f->rows : size_of(d, 8));
    forge_number(f, size_times(d, next(d, 8), 4u << next(d, 2)));
    forge_number(f, used);
    for (uint64_t j = 0; j < used; j++)
        forge_number(f, size_of(d, 0));
    forge_reals(f, f->components * used);
}

static inline void forge_sum(forged *f, draw *d)
{
    static const char named[] = "loss-gradient";
    const char *name = f->dtype == KOFN_F32
                           ? ""
                           : named; /* empty: the worker's own function */
    uint64_t parts = next(d, 5), pieces = 1 + next(d, 20);
    uint64_t submessages = 1 + next(d, 3), of = parts + 1 + next(d, 3);
    uint64_t wraps = next(d, 2) ? f->components : pieces * kf_max(1, parts);
    double arg[KOFN_FORMULA_ARGS] = {0, 1};

    f->span = size_times(d, 4, wraps);
    forge_number(f, strlen(name));
    if (*name) {
        forge_bytes(f, name, strlen(name));
        forge_bytes(f, arg, sizeof arg);
        forge_number(f, size_times(d, 4, of));
        f->numbers = size_times(d, 3, 8);
        forge_number(f, f->numbers);
    }
    forge_number(f, of);
    forge_number(f, size_of(d, 4));
    forge_number(f, pieces);
    forge_number(f, f->span);
    forge_number(f, submessages);
    forge_number(f, parts);
    for (uint64_t k = 0; k < parts; k++)
        forge_number(f, k);
    forge_reals(f, parts * pieces * submessages * f->components);
}

static inline void forge(forged *f, draw *d)
{
    enum { DENSE, SPARSE, SUM, EMPTY }; /* as in block_spec.c */
    unsigned kind = next(d, 4);
    uint64_t used = next(d, 64), narrow = next(d, 2);

    f->n = 0;
    f->sum = kind == SUM;
    f->components = 1 + next(d, 20);
    f->rows = size_times(d, 4, kind == SPARSE && narrow ? used : f->components);
    f->cols = size_of(d, 4);
    f->span = f->numbers = 0;
    f->dtype = next(d, 8) == 1 ? KOFN_F32 : KOFN_F64;
    forge_number(f, kind);
    forge_number(f, f->dtype);
    forge_number(f, f->components);
    forge_number(f, f->rows);
    forge_number(f, f->cols);
    forge_number(f, 0); /* no file */
    if (kind == SUM)
        forge_sum(f, d);
    else if (kind == SPARSE)
        forge_sparse(f, d, used);
    else if (kind == EMPTY)
        for (uint64_t l = 0; l < f->components; l++)
            forge_number(f, next(d, 16) ? l % 2 : size_of(d, 1));
    else
        forge_dense(f, d);
}

/* Makes a task for the block. Sizes fit, or their products wrap round. */
static inline void forge_task(const forged *f, draw *d, kf_head *h)
{
    uint64_t strips = f->sum ? f->span : f->rows, wide;

    h->how = f->sum ? KF_HOW_SUBMESSAGE : (kf_how)next(d, 8);
    if (h->how > KF_HOW_READ)
        h->how = KF_HOW_ROWS;
    h->dtype = next(d, 8) == 1 ? KOFN_F32 + KOFN_F64 - f->dtype : f->dtype;
    h->row = next(d, 3);
    h->lo = size_of(d, 0);
    h->hi = size_times(d, strips, f->components);
    wide = size_times(d, 1, 8);
    fair_task(h, f->components, f->rows, f->cols, wide);
    if (f->sum) {
        h->rows = f->numbers + 1;
        h->out_rows = f->components * strips; /* or wraps */
    }
    h->rows = size_times(d, h->rows, f->components);
    h->cols = size_times(d, h->cols, 8);
    if (next(d, 4) == 1)
        h->out_rows = size_of(d, h->out_rows);
}

#endif
