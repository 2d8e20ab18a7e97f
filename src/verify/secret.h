/* secret.h -- secret rows that test the products of a matrix which is here.
 *
 * A kf_secret owns its rows, which must never be sent, until kf_secret_free. */
#ifndef KF_SECRET_H
#define KF_SECRET_H

#include "results.h"

#define KF_SECRET_ROWS 4 /* all must agree */

/* Secret rows times A, or for left products A times secret columns. */
typedef struct kf_secret {
    double *row;   /* KF_SECRET_ROWS by rows of A: +- 1/2 to 1 */
    double *times; /* KF_SECRET_ROWS by columns of A: row A */
    double *most;  /* of the first row: |row| |A| */
} kf_secret;

/* Draws the rows for products of A by this plan.  `scaled` has the digits by
 * which the rows of A, in left products its columns, are scaled before coding,
 * or is NULL.  Free it even after a failure. */
kofn_status kf_secret_new(kf_secret *s, const kofn_plan *plan, kofn_operand A,
                          const int *scaled);
void kf_secret_free(kf_secret *s);

/* A product to test. */
typedef struct kf_secret_product {
    const kf_secret *secret;
    const kofn_plan *plan;
    const kofn_matrix *in, *out;
    double noise; /* relative error of its parts by decoding */
} kf_secret_product;

/* True if the product is right to within rounding and decoding. */
bool kf_secret_agrees(const kf_secret_product *p);
/* Sets *room to the largest error of a right result of this seat: its blocks
 * and messages are mixtures.  `blocks` and `inputs` encode them; s->whole is
 * the input as it is coded. */
kofn_status kf_secret_room(const kf_secret_product *p, const kf_sides *s,
                           kf_code *blocks, kf_code *inputs, size_t seat,
                           double *room);

#endif
