/* first.c -- multiplies two matrices on four threads; any two suffice.
 *
 *     cc first.c $(pkg-config --cflags --libs kofn) -o first && ./first
 */
#include <kofn.h>
#include <stdio.h>

int main(void)
{
    double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 1, 0, 3}, c[4];
    kofn_matrix A = {a, 2, 3, 3, KOFN_F64}, B = {b, 3, 2, 2, KOFN_F64};
    kofn_matrix C = {c, 2, 2, 2, KOFN_F64};
    kofn_status st = kofn_product(&A, &B, &C, "elastic:k=2", 4);

    if (st)
        fprintf(stderr, "%s: %s\n", kofn_strerror(st), kofn_errmsg());
    else
        printf("%g %g\n%g %g\n", c[0], c[1], c[2], c[3]);
    return st != KOFN_OK;
}
