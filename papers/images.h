/* images.h -- points to train networks with: images with labels. */
#ifndef PAPERS_IMAGES_H
#define PAPERS_IMAGES_H

#include "papers.h"

#define IMAGES_PIXELS 784 /* 28 x 28, as in MNIST */
#define IMAGES_KINDS 10

typedef struct images {
    kofn_matrix X, y, test_X, test_y;
    size_t classes;
} images;

/* Makes images like MNIST's, pixels from 0 to 1, of ten patterns. Free them
 * with images_free, also after a failure. */
kofn_status images_make(images *p, size_t train, size_t test, uint64_t seed);
/* Reads the four files of MNIST from this folder, compressed or not. */
kofn_status images_read(images *p, const char *folder);
void images_free(images *p);

#endif
