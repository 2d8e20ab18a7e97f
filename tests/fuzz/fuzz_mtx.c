/* fuzz_mtx.c -- fuzzes Matrix Market files. fuzz-iterations: 250000
 *
 * An accepted file is read again here, slowly and with strtod, and compared. */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns the next word outside comments, from *at on. *at moves behind it. */
static const char *next_word(const char **at)
{
    const char *p = *at;

    for (;;) {
        p += strspn(p, " \t\r\n");
        if (*p != '%')
            break;
        p += strcspn(p, "\n");
    }
    *at = p + strcspn(p, " \t\r\n");
    return p;
}

static double entry_at(const kofn_sparse *s, size_t i, size_t j)
{
    for (size_t k = s->ptr[i]; k < s->ptr[i + 1]; k++)
        if (s->col[k] == j)
            return s->val[k];
    return NAN;
}

static size_t size_at(const char **at)
{
    return (size_t)strtoull(next_word(at), NULL, 10);
}

/* strtod does not accept the exponent D. Long words have none. */
static double value_at(const char **at)
{
    char word[4200] = ""; /* longer than the words of libFuzzer */
    const char *p = next_word(at);
    size_t n = (size_t)(*at - p);

    if (n >= sizeof word)
        return strtod(p, NULL);
    memcpy(word, p, n);
    for (size_t k = 0; k < n; k++)
        word[k] = (char)(word[k] == 'd' || word[k] == 'D' ? 'e' : word[k]);
    return strtod(word, NULL);
}

/* What the first line says of the numbers. */
typedef struct kind {
    size_t width; /* of complex numbers 2 */
    int pattern, mirrored;
} kind;

/* Checks that the parts of entry (i, j) are those of (j, i), but for signs. */
static void check_mirror(const kofn_sparse *s, size_t i, size_t j, size_t width)
{
    for (size_t p = 0; p < width; p++)
        MUST(fabs(entry_at(s, j, width * i + p)) ==
             fabs(entry_at(s, i, width * j + p)));
}

static void compare_sparse(const kofn_sparse *s, const char *at, kind is)
{
    size_t rows = size_at(&at), cols = size_at(&at), n = size_at(&at);
    size_t have = s->ptr[s->rows], w = is.width;

    MUST(rows == s->rows && w * cols == s->cols);
    MUST(have <= (is.mirrored ? 2 * n : n) * w && (n == 0) == (have == 0));
    for (size_t k = 0; k < n; k++) {
        size_t i = size_at(&at), j = size_at(&at);

        for (size_t p = 0; p < w; p++) {
            double v = is.pattern ? 1 : value_at(&at);
            double got = entry_at(s, i - 1, w * (j - 1) + p);

            MUST(!isnan(got));
            if (!is.mirrored && have == n * w) /* nothing was summed */
                MUST(got == v);
        }
        if (is.mirrored)
            check_mirror(s, i - 1, j - 1, w);
    }
    MUST(*next_word(&at) == 0);
}

static void compare_dense(const kofn_matrix *a, const char *at, kind is)
{
    size_t rows = size_at(&at), cols = size_at(&at), w = is.width;
    const double *x = a->data;

    MUST(rows == a->rows && w * cols == a->cols);
    for (size_t j = 0; j < cols && !is.mirrored; j++)
        for (size_t i = 0; i < rows; i++)
            for (size_t p = 0; p < w; p++)
                MUST(x[i * a->ld + w * j + p] == value_at(&at));
    for (size_t i = 0; i < rows && is.mirrored; i++)
        for (size_t j = 0; j <= i; j++)
            for (size_t p = 0; p < w; p++)
                MUST(fabs(x[i * a->ld + w * j + p]) ==
                     fabs(x[j * a->ld + w * i + p]));
}

static void compare(const kofn_file *f, const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *end;

    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    end = text + strcspn(text, "\n");
    if (strlen(text) == size && *end) {
        kind is = {.width = f->is_complex ? 2 : 1};

        *end = 0;
        for (char *p = text; p < end; p++)
            *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
        is.pattern = strstr(text, "pattern") != NULL;
        is.mirrored = strstr(text, "symmetric") || strstr(text, "hermitian");
        MUST(f->is_complex == !!strstr(text, "complex"));
        if (f->matrix.sparse)
            compare_sparse(f->matrix.sparse, end + 1, is);
        else
            compare_dense(f->matrix.dense, end + 1, is);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_file *f = parse(data, size, "fuzz.mtx");

    if (f) {
        if (data[0] == '%')
            compare(f, data, size);
        done(f, data, size, "fuzz.mtx");
    }
    return 0;
}
