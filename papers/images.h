/* images.h -- points to train networks with: images, and a label each. */
#ifndef PAPERS_IMAGES_H
#define PAPERS_IMAGES_H

#include "papers.h"

#define IMAGES_PIXELS 784 /* 28 x 28, as MNIST's */
#define IMAGES_KINDS 10

typedef struct images {
    kofn_matrix X, y, test_X, test_y;
    size_t classes;
} images;

/* As MNIST has them, 0 to 1, of ten patterns.  Freed with images_free, after a
 * failure, too. */
kofn_status images_make(images *p, size_t train, size_t test, uint64_t seed);
/* The four files of MNIST in this folder, compressed or not. */
kofn_status images_read(images *p, const char *folder);
void images_free(images *p);

#endif
