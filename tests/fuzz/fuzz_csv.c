/* fuzz_csv.c -- fuzzes tables. fuzz-iterations: 3000000
 *
 * An accepted table is read again here, slowly and with strtod, and compared.
 * Any separator has numbers between. */
#include "parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* True for Excel's line with the separator. It may only be the first one, but
 * no other line looks like it. */
static int is_sep(const char *line)
{
    line += *line == '"';
    return (line[0] | 32) == 's' && (line[1] | 32) == 'e' &&
           (line[2] | 32) == 'p' && line[3] == '=' &&
           strspn(line + 5, "\"\r") == strlen(line + 5);
}

/* Returns a line with numbers, or NULL. *at moves behind it, and the line ends
 * in 0. */
static char *next_line(char **at)
{
    while (**at) {
        char *line = *at + strspn(*at, " \t\r"), *end = strchr(line, '\n');

        *at = end ? end + 1 : line + strlen(line);
        if (end)
            *end = 0;
        if (*line && *line != '#' && !is_sep(line))
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

/* Checks that the numbers of a line are the next ones of x. Decimal commas
 * become points. */
static void compare_line(char *p, int commas, const double *x, size_t *k,
                         size_t n)
{
    const char *marks = commas ? " \t\r;|\"" : " \t\r,;|\"";

    p[strcspn(p, "#")] = 0;
    for (char *c = p; commas && (c = strchr(c, ','));)
        *c = '.';
    while (*(p += strspn(p, marks))) {
        char *end;
        double v = strtod(p, &end);

        if (end == p && commas && *p == '.') /* at the end of the row */
            break;
        MUST(end > p && *k < n);
        MUST(memcmp(&v, &x[(*k)++], sizeof v) == 0);
        p = end;
    }
}

static void compare(const kofn_matrix *a, char *text, size_t size)
{
    size_t lines = count_lines(text, size), k = 0, n = a->rows * a->cols;
    char *at = text, *line;

    MUST(lines == a->rows || lines == a->rows + 1);
    if (lines > a->rows)
        next_line(&at);
    while ((line = next_line(&at))) {
        size_t length = strcspn(line, "#");
        int bars = memchr(line, ';', length) || memchr(line, '|', length);

        if (!bars && memchr(line, '\t', length) && memchr(line, ',', length))
            return; /* either may be the separator */
        compare_line(line, bars || a->cols == 1, a->data, &k, n);
    }
    MUST(k == n);
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
            compare(f->matrix.dense, text + bom, size - bom);
        free(text);
    }
    if (f)
        done(f, data, size, "fuzz.csv");
    return 0;
}
