/* entropy.h -- random numbers of the system, which no other process knows. */
#ifndef KF_ENTROPY_H
#define KF_ENTROPY_H

#include "base.h"

/* Fills memory with random numbers. */
kofn_status kf_entropy(void *into, size_t bytes);
/* Draws a number that is not 0, unless there is one. */
kofn_status kf_entropy_number(uint64_t *number);

#endif
