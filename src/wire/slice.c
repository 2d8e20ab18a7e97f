/* slice.c -- the numbers of a block, some at a time.
 *
 * The coordinator never has a whole block for a worker on another machine.
 * Coded rows are mixed when the worker requests them, and plain rows are sent
 * from their place in A.  So the coordinator's memory does not grow with the
 * number of workers.
 *
 * The caller owns the buffer of a slice.  At most one slice is in memory for
 * each worker.
 */
#include "wire.h"

#include <assert.h>

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "row ends are sent as "
                                                   "they are in memory");

enum { ENDS, COLUMNS, VALUES, SPARSE_SECTIONS };
enum { ROWS, NUMBERS, ROW_SECTIONS }; /* of a sum over rows: X and y */

/* Returns the number of sections of this operand. */
static size_t own_sections(const kf_block *b)
{
    if (b->empty)
        return 0;
    if (b->subset)
        return b->subset->formula ? ROW_SECTIONS : 0;
    return b->A ? SPARSE_SECTIONS : b->components;
}

size_t kf_wire_sections(const kf_block *b)
{
    size_t n = 0;

    for (; b; b = b->next)
        n += own_sections(b);
    return n;
}

/* Returns the block that has the section, and sets *section to its number
 * there. */
static const kf_block *block_of(const kf_block *b, size_t *section)
{
    for (; *section >= own_sections(b); b = b->next)
        *section -= own_sections(b);
    return b;
}

/* Finds the entries of plain part j of a sparse block.  The last part may reach
 * beyond A. */
static void part_entries(const kf_block *b, size_t j, size_t *from, size_t *to)
{
    assert(j < b->used);
    *from = b->A->ptr[kf_min(b->first[j], b->A->rows)];
    *to = b->A->ptr[kf_min(b->first[j] + b->rows, b->A->rows)];
}

static size_t entries(const kf_block *b)
{
    size_t sum = 0;

    for (size_t j = 0; j < b->used; j++) {
        size_t from, to;

        part_entries(b, j, &from, &to);
        sum += to - from;
    }
    return sum;
}

void kf_wire_section(const kf_block *b, size_t section, size_t *units,
                     size_t *bytes)
{
    assert(section < kf_wire_sections(b));
    b = block_of(b, &section);
    if (b->subset) {
        *units = b->subset->held;
        *bytes = (section == ROWS ? b->subset->X.cols : 1) * sizeof(double);
    } else if (!b->A) {
        *units = b->component[section].rows;
        *bytes = b->component[section].cols * kf_dtype_size(b->dtype);
    } else if (section == ENDS) {
        *units = b->used * b->rows;
        *bytes = sizeof(uint64_t);
    } else {
        *units = b->own.ptr ? b->entries : entries(b);
        *bytes = section == COLUMNS ? sizeof(uint32_t) : sizeof(double);
    }
}

void kf_bytes_free(kf_bytes *b)
{
    kf_free(b->p);
    *b = (kf_bytes){0};
}

static kofn_status room(kf_bytes *b, size_t bytes)
{
    if (b->cap >= bytes)
        return KOFN_OK;
    kf_bytes_free(b);
    b->p = kf_new(bytes, 1);
    b->cap = b->p ? bytes : 0;
    return b->p ? KOFN_OK : KOFN_NOMEM;
}

/* ---- dense --------------------------------------------------------------- */

/* Sub-block t of a coded component, rows [lo, hi) of its parts. */
static kofn_status mix_rows(const kf_block *b, const kf_row *row, size_t lo,
                            size_t hi, kofn_matrix into)
{
    const kf_resident *r = b->from;
    size_t parts = r->plan->parts;
    kofn_matrix *part;
    kf_mixed job = {row, into, r->by};
    kofn_status st;

    assert(lo < hi);
    TRY_NEW(part, parts);
    for (size_t j = 0; j < parts; j++) {
        part[j] = *kf_resident_part(r, b->group, j);
        if (part[j].rows) {
            part[j].data = kf_at(&part[j], lo, 0);
            part[j].rows = hi - lo;
        }
    }
    st = kf_mix(&job, 1, part, parts, hi - lo, r->parts.cols);
    kf_free(part);
    return st;
}

/* Sub-blocks stand side by side, or one below the other (block.c). */
static kofn_status mix_component(const kf_block *b, size_t component, size_t lo,
                                 size_t hi, void *p)
{
    assert(hi <= b->rows);
    assert(b->from);
    size_t inner = b->from->plan->layout.inner, rows = b->from->parts.rows;
    kofn_matrix into = {p, 0, b->from->parts.cols, b->cols, b->dtype};
    bool below = b->rows > rows;

    for (size_t t = 0; t < inner; t++) {
        const kf_row *row = &b->coded[component * inner + t];
        size_t first = below ? kf_max(lo, t * rows) : lo;
        size_t last = below ? kf_min(hi, (t + 1) * rows) : hi;

        if (first >= last)
            continue;
        into.rows = last - first;
        TRY(mix_rows(b, row, below ? first - t * rows : lo,
                     below ? last - t * rows : hi, into));
        into.data =
            below ? kf_at(&into, last - first, 0) : kf_at(&into, 0, into.cols);
    }
    return KOFN_OK;
}

static kofn_status dense_slice(const kf_block *b, size_t component, size_t lo,
                               size_t hi, kf_bytes *scratch, const void **at)
{
    const kofn_matrix *a = &b->component[component];
    size_t row = b->cols * kf_dtype_size(b->dtype);

    assert(component < b->components);
    assert(lo < hi);
    if (a->data && a->ld == a->cols) {
        *at = kf_at(a, lo, 0);
        return KOFN_OK;
    }
    TRY(room(scratch, (hi - lo) * row));
    *at = scratch->p;
    if (!a->data)
        return mix_component(b, component, lo, hi, scratch->p);
    for (size_t i = lo; i < hi; i++)
        memcpy(scratch->p + (i - lo) * row, kf_at(a, i, 0), row);
    return KOFN_OK;
}

/* ---- sparse -------------------------------------------------------------- */

/* Ends of rows [lo, hi), counted in the entries of the block's own parts. */
static void sparse_ends(const kf_block *b, size_t lo, size_t hi, uint64_t *out)
{
    size_t before = 0;

    for (size_t j = 0; j < b->used; j++) {
        size_t from, to;

        part_entries(b, j, &from, &to);
        for (size_t i = 0; i < b->rows; i++) {
            size_t row = j * b->rows + i;
            size_t end = kf_min(b->first[j] + i + 1, b->A->rows);

            if (row >= lo && row < hi)
                out[row - lo] = before + b->A->ptr[end] - from;
        }
        before += to - from;
    }
}

static void sparse_entries(const kf_block *b, size_t section, size_t lo,
                           size_t hi, unsigned char *out)
{
    size_t size = section == COLUMNS ? sizeof(uint32_t) : sizeof(double);
    const char *all =
        section == COLUMNS ? (const void *)b->A->col : (const void *)b->A->val;
    size_t before = 0;

    assert(section == COLUMNS || section == VALUES);
    for (size_t j = 0; j < b->used; j++) {
        size_t from, to, first, last;

        part_entries(b, j, &from, &to);
        first = kf_max(lo, before);
        last = kf_min(hi, before + to - from);
        if (first < last)
            memcpy(out + (first - lo) * size,
                   all + (from + first - before) * size, (last - first) * size);
        before += to - from;
    }
}

/* ---- rows of a sum ------------------------------------------------------- */

static kofn_matrix rows_or_numbers(const kf_subset *s, size_t section)
{
    return section == ROWS ? s->X
                           : (kofn_matrix){s->y, s->X.rows, 1, 1, KOFN_F64};
}

static kofn_status subset_slice(const kf_subset *s, size_t section, size_t lo,
                                size_t hi, kf_bytes *scratch, const void **at)
{
    kofn_matrix m = rows_or_numbers(s, section);
    size_t row = m.cols * sizeof(double), before = 0;

    assert(section < ROW_SECTIONS);
    for (size_t k = 0; k < s->parts; k++) {
        size_t n = kf_part_begin(s->points, s->part[k] + 1, s->of) -
                   kf_part_begin(s->points, s->part[k], s->of);
        size_t first = kf_max(lo, before), last = kf_min(hi, before + n);

        if (first < last && hi - lo == last - first && m.ld == m.cols) {
            *at = kf_at(&m, s->at[k] + first - before, 0);
            return KOFN_OK;
        }
        TRY(room(scratch, (hi - lo) * row));
        for (size_t i = first; i < last; i++)
            memcpy(scratch->p + (i - lo) * row,
                   kf_at(&m, s->at[k] + i - before, 0), row);
        before += n;
    }
    *at = scratch->p;
    return KOFN_OK;
}

kofn_status kf_slice_from(const kf_block *b, size_t section, size_t lo,
                          size_t hi, kf_bytes *scratch, const void **at)
{
    size_t units, bytes;

    if (section >= kf_wire_sections(b))
        return kf_fail(KOFN_INVAL, "a block has %zu sections, not %zu",
                       kf_wire_sections(b), section + 1);
    kf_wire_section(b, section, &units, &bytes);
    if (lo >= hi || hi > units)
        return kf_fail(KOFN_INVAL, "a section has %zu units, not [%zu, %zu)",
                       units, lo, hi);
    b = block_of(b, &section);
    if (b->subset)
        return subset_slice(b->subset, section, lo, hi, scratch, at);
    if (!b->A)
        return dense_slice(b, section, lo, hi, scratch, at);
    TRY(room(scratch, (hi - lo) * bytes));
    *at = scratch->p;
    if (section == ENDS)
        sparse_ends(b, lo, hi, (void *)scratch->p);
    else
        sparse_entries(b, section, lo, hi, scratch->p);
    return KOFN_OK;
}

/* ---- at the worker ------------------------------------------------------- */

void *kf_slice_into(const kf_block *b, size_t section, size_t lo)
{
    assert(section < kf_wire_sections(b));
    b = block_of(b, &section);
    if (b->subset)
        return section == ROWS ? kf_at(&b->subset->X, lo, 0)
                               : b->subset->y + lo;
    if (!b->A)
        return kf_at(&b->component[section], lo, 0);
    if (section == ENDS)
        return (size_t *)(uintptr_t)b->A->ptr + 1 + lo;
    if (section == COLUMNS)
        return (uint32_t *)(uintptr_t)b->A->col + lo;
    return (double *)(uintptr_t)b->A->val + lo;
}

/* No end of a row is beyond what was sent, since the last is the largest. */
static kofn_status check_sparse(const kf_block *b)
{
    const kofn_sparse *a = b->A;

    if (a->ptr[a->rows] != b->entries)
        return kf_fail(KOFN_FORMAT,
                       "a sparse block: its rows have %zu entries "
                       "and %zu were sent",
                       a->ptr[a->rows], b->entries);
    return kf_mat_check_sparse(a, "a sparse block");
}

static kofn_status check_rows(const kf_subset *s)
{
    kofn_matrix y = rows_or_numbers(s, NUMBERS);

    if (!s->formula || s->held == 0)
        return KOFN_OK;
    TRY(kf_mat_check_finite(&s->X, "rows of a sum"));
    return kf_mat_check_finite(&y, "numbers of a sum");
}

static kofn_status check_block(const kf_block *b)
{
    if (b->subset)
        return check_rows(b->subset);
    if (b->A)
        return check_sparse(b);
    for (size_t l = 0; l < b->components; l++)
        if (b->component[l].rows)
            TRY(kf_mat_check_finite(&b->component[l], "a block"));
    return KOFN_OK;
}

kofn_status kf_slices_check(const kf_block *b)
{
    for (; b; b = b->next)
        TRY(check_block(b));
    return KOFN_OK;
}
