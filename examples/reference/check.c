/* check.c -- finds and corrects wrong entries of a product. */
#include "example.h"

#include <kofn/check.h>

#define N 40

static double a[N * N], b[N * N], c[N * N];

static void find_and_correct(void)
{
    kofn_matrix A = matrix(a, N, N), B = matrix(b, N, N), C = matrix(c, N, N);
    kofn_findings *found;

    c[5 * N + 7] += 1;
    expect(kofn_check_product(KOFN_DENSE(&A), &B, &C, 0, &found) ==
               KOFN_CORRUPT,
           "an entry is wrong");
    expect(found->complete && found->entries == 1 && found->entry[0].row == 5 &&
               found->entry[0].col == 7,
           "this entry");
    must(kofn_correct(found, &C));
    kofn_findings_free(found);
    expect(is_product(&A, &B, &C), "the corrected product");
}

/* Checks a product of small whole numbers, which float16 holds exactly. */
static void check_half(void)
{
    double x[4] = {1, 2, 3, 4}, y[4] = {2, 0, 1, 2}, z[4] = {4, 4, 10, 8};
    kofn_matrix X = matrix(x, 2, 2), Y = matrix(y, 2, 2), Z = matrix(z, 2, 2);
    kofn_findings *found;

    must(kofn_check_product_half(KOFN_DENSE(&X), &Y, &Z, 0, &found));
    expect(found->entries == 0, "nothing is wrong");
    kofn_findings_free(found);
}

int main(void)
{
    kofn_matrix A = matrix(a, N, N), B = matrix(b, N, N), C = matrix(c, N, N);

    fill(a, N * N, 1);
    fill(b, N * N, 2);
    must(kofn_product_plain(KOFN_DENSE(&A), &B, &C));
    find_and_correct();
    check_half();
    return 0;
}
