/* fuzz_csv.c -- tables from a stranger.  fuzz-iterations: 3000000
 *
 * What is accepted is read again here, slowly and with strtod, and compared.
 */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A line with numbers, or NULL; *at moves behind it and it ends in 0. */
static char *next_line(char **at)
{
    while (**at) {
        char *line = *at + strspn(*at, " \t\r"), *end = strchr(line, '\n');

        *at = end ? end + 1 : line + strlen(line);
        if (end)
            *end = 0;
        if (*line && *line != '#')
            return line;
    }
    return NULL;
}

static size_t count_lines(const char *text, size_t size)
{
    char *copy = malloc(size + 1), *at = copy;
    size_t n = 0;

    MUST(copy);
    memcpy(copy, text, size + 1);
    while (next_line(&at))
        n++;
    free(copy);
    return n;
}

static void compare(const kofn_matrix *a, char *text, size_t size)
{
    size_t lines = count_lines(text, size), k = 0;
    const double *x = a->data;
    char *at = text, *line;

    MUST(lines == a->rows || lines == a->rows + 1);
    if (lines > a->rows)
        next_line(&at);
    while ((line = next_line(&at)))
        for (char *p = line; *(p += strspn(p, " \t\r,;\"")); k++) {
            char *end;
            double v = strtod(p, &end);

            MUST(end > p && k < a->rows * a->cols);
            MUST(memcmp(&v, &x[k], sizeof v) == 0);
            p = end;
        }
    MUST(k == a->rows * a->cols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kofn_file *f = parse(data, size, "fuzz.csv");

    if (f && data[0] != 0x93 && data[0] != '%') {
        size_t bom = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        char *text = malloc(size + 1);

        MUST(text);
        memcpy(text, data, size);
        text[size] = 0;
        if (strlen(text) == size)
            compare(kofn_file_dense(f), text + bom, size - bom);
        free(text);
    }
    if (f)
        done(f, data, size, "fuzz.csv");
    return 0;
}
