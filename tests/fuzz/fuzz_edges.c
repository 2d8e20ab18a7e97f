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

/* True if a line ends at p: a carriage return alone belongs to a name. */
static bool ends_line(const char *p)
{
    return *p == 0 || *p == '\n' || (*p == '\r' && (p[1] == '\n' || !p[1]));
}

/* Returns the row of this name, possibly without leading zeros. */
static size_t find(const kofn_file *f, const char *p, size_t n, bool zeros)
{
    for (size_t i = 0; i < f->matrix.sparse->rows; i++) {
        char number[24];
        const char *name = f->names ? f->names[i] : number;
        size_t length, skip = 0;

        snprintf(number, sizeof number, "%zu", i);
        length = strlen(name);
        while (zeros && skip + length < n && p[skip] == '0')
            skip++;
        if (length == n - skip && memcmp(name, p + skip, length) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* Returns the row of the node that begins at p, and sets *p behind it. */
static size_t row_of(const kofn_file *f, char **p)
{
    size_t n, i;

    *p += strspn(*p, " \t");
    for (n = 0; !ends_line(*p + n) && !strchr(" \t,", (*p)[n]); n++)
        ;
    i = find(f, *p, n, false);
    if (i == SIZE_MAX)
        i = find(f, *p, n, true);
    *p += n;
    *p += strspn(*p, " \t");
    *p += **p == ',';
    return i;
}

/* Each line has an entry; only the first may be a header. */
static void compare(const kofn_file *f, char *p)
{
    const kofn_sparse *s = f->matrix.sparse;
    size_t lines = 0;

    for (;;) {
        size_t i, j;
        char *at;

        while (*p && (ends_line(p) || *p == ' ' || *p == '\t'))
            p++;
        if (!*p)
            break;
        at = p;
        if (*p != '#' && *p != '%') {
            i = row_of(f, &at);
            j = i == SIZE_MAX ? i : row_of(f, &at);
            MUST(j != SIZE_MAX || lines == 0);
            if (j != SIZE_MAX)
                MUST(entry_at(s, i, j) == 1);
            lines += 1;
        }
        p += strcspn(p, "\n");
    }
    MUST(f->listed == lines || f->listed + 1 == lines);
    for (size_t k = 0; k < s->ptr[s->rows]; k++)
        MUST(s->val[k] == 1);
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
        compare(f, text + (strncmp(text, "\xef\xbb\xbf", 3) ? 0 : 3));
    free(text);
    done(f, data, size, "fuzz.edges");
    return 0;
}
