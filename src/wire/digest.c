/* digest.c -- checksums of the parts of an operand.
 *
 * A worker compares them to know that its own file has the coordinator's
 * numbers.  They do not depend on the distance of rows in memory, or on the
 * byte order of the machine.  Owns nothing. */
#include "wire.h"

#include "base/hash.h"

#define XXH_INLINE_ALL
#include <assert.h>
#include <xxhash.h>

static uint64_t digest_dense(const kofn_matrix *part)
{
    size_t row = part->cols * kf_dtype_size(part->dtype);
    XXH3_state_t state;

    if (part->ld == part->cols)
        return kf_hash(0, part->data, part->rows * row);
    XXH3_64bits_reset(&state);
    for (size_t i = 0; i < part->rows; i++)
        XXH3_64bits_update(&state, kf_at(part, i, 0), row);
    return XXH3_64bits_digest(&state);
}

static uint64_t digest_sparse(const kofn_sparse *A, size_t lo, size_t hi)
{
    size_t first = kf_min(lo, A->rows), end = kf_min(hi, A->rows);
    size_t from = A->ptr[first], n = A->ptr[end] - from;
    XXH3_state_t state;

    XXH3_64bits_reset(&state);
    for (size_t i = first; i < end; i++) {
        uint64_t entries = A->ptr[i + 1] - from;

        XXH3_64bits_update(&state, &entries, sizeof entries);
    }
    if (n) {
        XXH3_64bits_update(&state, A->col + from, n * sizeof *A->col);
        XXH3_64bits_update(&state, A->val + from, n * sizeof *A->val);
    }
    return XXH3_64bits_digest(&state);
}

/* ---- of a block ---------------------------------------------------------- */

static uint64_t digest_part(const kf_operand *o, size_t part)
{
    uint64_t known = o->digest ? o->digest[part] : 0, made;
    kofn_matrix rows;

    assert(part < o->parts);
    if (known)
        return known;
    if (o->sparse) {
        made = digest_sparse(o->sparse, part * o->span, (part + 1) * o->span);
    } else if (o->part) {
        made = digest_dense(&o->part[part]);
    } else {
        rows = *o->X;
        rows.data = kf_at(o->X, kf_part_begin(o->X->rows, part, o->parts), 0);
        rows.rows = kf_part_begin(o->X->rows, part + 1, o->parts) -
                    kf_part_begin(o->X->rows, part, o->parts);
        made = digest_dense(&rows);
    }
    if (o->digest)
        o->digest[part] = made;
    return made;
}

/* Marks the parts that a block is made of, if they exist. */
static void mark_used(const kf_block *b, const kf_operand *o, bool *used)
{
    for (size_t k = 0; b->subset && k < b->subset->parts; k++)
        used[b->subset->part[k]] = true;
    for (size_t j = 0; b->A && j < b->used; j++)
        if (o->first[j] / b->rows < o->parts)
            used[o->first[j] / b->rows] = true;
    for (size_t i = 0; i < o->rows; i++)
        for (size_t e = 0; e < o->row[i].n; e++) {
            size_t j = o->row[i].col[e];

            used[b->from ? kf_data_part_index(b->from->plan, b->group, j) : j] =
                true;
        }
}

kofn_status kf_digest_block(const kf_block *b, const kf_operand *o,
                            uint64_t *digest)
{
    bool *used;

    TRY_ZERO(used, o->parts);
    mark_used(b, o, used);
    *digest = 0;
    for (size_t j = 0; j < o->parts; j++)
        if (used[j]) {
            uint64_t part = digest_part(o, j);

            *digest = kf_hash(*digest + j, &part, sizeof part);
        }
    kf_free(used);
    return KOFN_OK;
}
