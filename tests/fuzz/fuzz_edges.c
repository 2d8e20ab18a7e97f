/* fuzz_edges.c -- fuzzes lists of edges. fuzz-iterations: 400000
 *
 * An accepted list is read again here, slowly, and compared. */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static double entry_at(const kofn_sparse *s, size_t i, size_t j)
{
    for (size_t k = s->ptr[i]; k < s->ptr[i + 1]; k++)
        if (s->col[k] == j)
            return s->val[k];
    return 0;
}

static void compare(const kofn_sparse *s, char *p)
{
    double sum = 0, edges = 0;
    size_t largest = 0;

    while (*(p += strspn(p, " \t\r\n"))) {
        size_t i, j;

        if (*p == '#' || *p == '%') {
            p += strcspn(p, "\n");
            continue;
        }
        i = strtoull(p, &p, 10);
        j = strtoull(p, &p, 10);
        edges++;
        MUST(i < s->rows && j < s->cols && entry_at(s, i, j) >= 1);
        largest = i > largest ? i : largest;
        largest = j > largest ? j : largest;
    }
    for (size_t k = 0; k < s->ptr[s->rows]; k++)
        sum += s->val[k];
    MUST(sum == edges && s->rows == largest + 1 && s->cols == s->rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_file *f = parse(data, size, "fuzz.edges");
    char *text;

    if (!f)
        return 0;
    text = malloc(size + 1);
    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    if (f->edges && strlen(text) == size)
        compare(f->matrix.sparse,
                text + (strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3));
    free(text);
    done(f, data, size, "fuzz.edges");
    return 0;
}
