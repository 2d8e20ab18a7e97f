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

static void compare_sparse(const kofn_sparse *s, const char *at, int pattern,
                           int mirrored)
{
    size_t rows = size_at(&at), cols = size_at(&at), n = size_at(&at);
    size_t have = s->ptr[s->rows];

    MUST(rows == s->rows && cols == s->cols);
    MUST(have <= (mirrored ? 2 * n : n) && (n == 0) == (have == 0));
    for (size_t k = 0; k < n; k++) {
        size_t i = size_at(&at), j = size_at(&at);
        double v = pattern ? 1 : value_at(&at);
        double got = entry_at(s, i - 1, j - 1);

        MUST(!isnan(got));
        if (!mirrored && have == n) /* nothing was summed */
            MUST(got == v);
        if (mirrored)
            MUST(fabs(entry_at(s, j - 1, i - 1)) == fabs(got));
    }
    MUST(*next_word(&at) == 0);
}

static void compare_dense(const kofn_matrix *a, const char *at, int mirrored)
{
    size_t rows = size_at(&at), cols = size_at(&at);
    const double *x = a->data;

    MUST(rows == a->rows && cols == a->cols);
    for (size_t j = 0; j < cols && !mirrored; j++)
        for (size_t i = 0; i < rows; i++)
            MUST(x[i * a->ld + j] == value_at(&at));
    for (size_t i = 0; i < rows && mirrored; i++)
        for (size_t j = 0; j <= i; j++)
            MUST(fabs(x[i * a->ld + j]) == fabs(x[j * a->ld + i]));
}

static void compare(const kofn_file *f, const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *end;

    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    end = text + strcspn(text, "\n");
    if (strlen(text) == size && *end) {
        int mirrored, pattern;

        *end = 0;
        for (char *p = text; p < end; p++)
            *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
        pattern = strstr(text, "pattern") != NULL;
        mirrored = strstr(text, "symmetric") || strstr(text, "hermitian");
        if (f->matrix.sparse)
            compare_sparse(f->matrix.sparse, end + 1, pattern, mirrored);
        else
            compare_dense(f->matrix.dense, end + 1, mirrored);
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
