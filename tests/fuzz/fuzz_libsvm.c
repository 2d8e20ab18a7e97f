/* fuzz_libsvm.c -- fuzzes points with labels. fuzz-iterations: 400000
 *
 * An accepted file is read again here, slowly, and compared. */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Compares the entries of row i, from p behind its label. Returns the end of
 * the line. */
static char *compare_row(const kofn_sparse *s, size_t i, char *p,
                         size_t *largest)
{
    size_t k = s->ptr[i];

    for (p += strspn(p, " \t\r"); *p && *p != '\n' && *p != '#'; k++) {
        size_t index = strtoull(p, &p, 10);
        double value;

        MUST(*p == ':' && k < s->ptr[i + 1]);
        value = strtod(p + 1, &p);
        MUST(s->col[k] == index - 1 && s->val[k] == value);
        *largest = index > *largest ? index : *largest;
        p += strspn(p, " \t\r");
    }
    MUST(k == s->ptr[i + 1]);
    return p + strcspn(p, "\n");
}

static void compare(const kofn_file *f, char *p)
{
    const kofn_sparse *s = f->matrix.sparse;
    const kofn_matrix *y = f->labels;
    size_t rows = 0, largest = 0;

    while (*(p += strspn(p, " \t\r\n"))) {
        double label;

        if (*p == '#') {
            p += strcspn(p, "\n");
            continue;
        }
        label = strtod(p, &p);
        MUST(rows < y->rows && ((double *)y->data)[rows] == label);
        p = compare_row(s, rows++, p, &largest);
    }
    MUST(rows == s->rows && rows == y->rows && largest == s->cols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_file *f = parse(data, size, "fuzz.libsvm");
    char *text;

    if (!f)
        return 0;
    text = malloc(size + 1);
    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    if (f->matrix.sparse && *text != '%' && strlen(text) == size)
        compare(f, text + (strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3));
    free(text);
    done(f, data, size, "fuzz.libsvm");
    return 0;
}
