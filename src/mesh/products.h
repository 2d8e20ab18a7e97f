/* products.h -- this node's product: its input, its check, and the comparison
 * of partial products.
 *
 * The host owns all of it (kf_host.work). */

#ifndef KF_MESH_PRODUCTS_H
#define KF_MESH_PRODUCTS_H

#include "blocks.h"

#include "verify/secret.h"

typedef struct kf_host kf_host; /* host.h */

/* What is known of the product that is being made. */
typedef struct kf_mesh_freivalds {
    double noise;  /* predicted error of its parts */
    bool odd;      /* some of it is not finite */
    size_t remade; /* products that did not pass, ever */
} kf_mesh_freivalds;

/* Comparisons of partial products, if errors are looked for. */
typedef struct kf_comparison {
    uint64_t secret; /* seed of the weights of comparisons */
    uint32_t number; /* number of the comparison */
    kf_sides sides;  /* of the product that is made; its input is h->work.in */
    uint32_t *bad;
    size_t cap;
    bool local;     /* a partial product or a block of this node was wrong */
    kf_blame blame; /* counts over all nodes that are not excluded */
} kf_comparison;

/* A product with its data. */
typedef struct kf_host_product_data {
    const kofn_plan *plan; /* the plan of its operation */
    kofn_plan *reader;     /* owned `plan` of a product that reads; else NULL */
    kf_mesh_operand *of;
    size_t groups, width; /* width: columns of a partial product */
    bool mixes;           /* mixes lines of input that stay apart after it */
    kf_code *code;        /* the code that mixes inputs, if these are cut */
    kf_buffer *out;       /* the product that is being made */
    kf_secret secret;
} kf_host_product_data;

/* Returns the bound of errors that may be hidden, relative to the norms of rows
 * and columns.  If larger errors could be hidden, more results are requested
 * (docs/errors.md). */
static inline double kf_mesh_hidden(const kofn_plan *p)
{
    return p->layout.problem.dtype == KOFN_F64 ? 1e-9 : 1e-2;
}

typedef struct kf_mesh_work {
    kf_host_product_data *product; /* one of each product */
    kf_host_product_data *on;      /* the one that is computed from v */
    kf_course course;              /* order of the products */
    kf_buffer *in;                 /* the input that is made from v, or NULL */
    kf_buffer *lowered;   /* the input for blocks with scaled rows or columns */
    kf_messages messages; /* the input mixed for seats, if it is cut */
    double *square; /* squares of the norms of its lines, or NULL (spread.c) */
    /* largest ratio of the norms of lines that are mixed (spread.c) */
    double spread;
    bool encoded; /* the input is mixed for our own seat */
    bool single;  /* some products are in float32 */
    kf_mesh_freivalds freivalds;
    kf_comparison comparison;
    kf_scratch scratch;
} kf_mesh_work;

/* products.c */
/* Fills in the partial products that the decoder of a task uses; all must be
 * here. */
kofn_status kf_host_sources(const kf_host *h, const kf_node_task *t,
                            kf_source *source);
kofn_status kf_host_products_new(kf_host *h, const kofn_matrix *v);
void kf_host_products_free(kf_host *h);
/* Returns the product that is computed from iterate t. */
kf_host_product_data *kf_host_product(const kf_mesh_work *work, uint64_t t);
/* Returns the number of strips in a group, and the first in *lo. */
size_t kf_host_strips(const kf_host_product_data *p, size_t group, size_t *lo);
/* Returns the shape of a partial product with that number of strips;
 * KOFN_NO_SEAT: of a result. */
kofn_matrix kf_host_partial_shape(const kf_host_product_data *p, size_t strips,
                                  uint32_t seat, void *numbers);
size_t kf_host_partial_bytes(const kf_host_product_data *p, size_t strips,
                             uint32_t seat);
/* Returns a digest of the operands, with their types. */
uint64_t kf_host_operands_digest(const kf_mesh_blocks *blocks, uint64_t d);
/* Encodes the block of a seat, of one operand. */
kofn_status kf_host_encode(const kf_mesh_operand *o, uint32_t seat,
                           kf_block **block);
/* Makes h->work.in, if it is not there. */
kofn_status kf_host_input(kf_host *h);
void kf_host_forget_input(kf_mesh_work *work);
/* Computes the partial product of a group, from the block of that seat of the
 * present operand.  KOFN_AGAIN if it was stopped. */
kofn_status kf_host_compute(kf_host *h, const kf_block *block, uint32_t seat,
                            size_t group, bool (*stopped)(void *),
                            kf_buffer **out);

/* spread.c */
/* Sets p->mixes. */
kofn_status kf_mesh_spread_new(kf_host_product_data *p, bool left);
/* Sets h->work.spread for the input that was just made. */
kofn_status kf_mesh_spread_measure(kf_host *h);
/* Checks the error of this decoder for the smallest line, if the code mixes the
 * input, which must be there.  Fails with KOFN_UNSTABLE if the error exceeds
 * the tolerance. */
kofn_status kf_mesh_spread_check(kf_host *h, const kofn_decoder *d);
/* Sets lines of the product to zero if they are zero in the input, which must
 * be there. */
kofn_status kf_mesh_spread_clear(kf_host *h);

/* comparison.c */
/* Returns both operands of the product that is made. */
kofn_status kf_comparison_sides(kf_host *h, kf_sides **out);
/* Compares the partial products of the decoder's seats.  The finding goes into
 * `ev`. */
kofn_status kf_comparison_check(kf_host *h, const kf_node_task *t,
                                kf_node_event *ev);
/* Compare a state of the blocks of a matrix; record the senders that
 * are certainly wrong. */
kofn_status kf_comparison_read(kf_host *h, const kf_mesh_operand *o,
                               kf_reading *r, size_t state, kf_found *found);
void kf_comparison_strike_all(kf_host *h, const kf_reading *r,
                              const kf_found *found);
/* Records that the incarnation had another iterate than the majority. */
void kf_comparison_outvoted(kf_host *h, kofn_incarnation who,
                            uint64_t principal);
/* Counts for each peer, at the end of an iterate, whether its partial products
 * were right or wrong. */
void kf_comparison_advance(kf_host *h);
/* Examines our block after a partial product of ours was found wrong. */
kofn_status kf_comparison_appeal(kf_host *h, const kf_node_task *t);
/* Discards the findings for an iterate that is repeated.  It was not clear
 * which partial products were wrong, so right ones may have been taken for
 * wrong. */
void kf_comparison_void(kf_connections *net);
void kf_comparison_free(kf_mesh_work *work);

/* freivalds.c */
/* Checks the product.  If it is wrong, it is made from A, and the senders that
 * made it wrong are accused. */
kofn_status kf_mesh_freivalds_next(kf_host *h);
/* Makes the product from A alone. */
kofn_status kf_mesh_freivalds_make(kf_host *h);
/* Records that other nodes decoded some of it. */
void kf_mesh_freivalds_widen(kf_mesh_work *work);

#endif
