/* figure1.h -- the code of figure 1 of the elastic paper: six machines, any
 * three suffice. */
#ifndef KF_TEST_FIGURE1_H
#define KF_TEST_FIGURE1_H

#include <kofn/scheme.h>
#include <string.h>

static const double fig1[6][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1},
                                  {1, 1, 1}, {1, 2, 3}, {1, 4, 9}};

static const kofn_param fig1_no_params[] = {{0}};

static inline kofn_status fig1_layout(kofn_layout *L)
{
    L->seats = L->max_seats = 6;
    L->enough = L->cut[0].rows = 3;
    L->adjoint = L->problem.op == KOFN_LEFT;
    return KOFN_OK;
}

static inline kofn_status fig1_seat(const kofn_layout *L, size_t seat,
                                    double *E0, double *E1, double *G)
{
    (void)L, (void)E1, (void)G;
    memcpy(E0, fig1[seat], sizeof fig1[seat]);
    return KOFN_OK;
}

#endif
