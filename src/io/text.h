/* text.h -- numbers and lines in text, whatever the locale.
 *
 * A kf_text is a place in bytes of the caller's, which are only read.  Nothing
 * here allocates. */
#ifndef KF_TEXT_H
#define KF_TEXT_H

#include "base/base.h"

typedef struct kf_text {
    const char *at, *begin, *end;
    size_t line; /* that `at` is on, from 1 */
} kf_text;

static inline bool kf_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char kf_small(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static inline bool kf_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline void kf_skip_blanks(kf_text *t)
{
    while (t->at < t->end && kf_is_blank(*t->at))
        t->at++;
}

/* A carriage return ends a line together with what follows it.  Alone it is
 * no blank either: a file that has nothing else would be read as one line. */
static inline bool kf_line_ends(const char *p, const char *end)
{
    return p == end || *p == '\n' ||
           (*p == '\r' && (p + 1 == end || p[1] == '\n'));
}

static inline bool kf_at_line_end(const kf_text *t)
{
    return kf_line_ends(t->at, t->end);
}

/* To the end of the line, which stays unread. */
void kf_io_skip_line(kf_text *t);

/* On to the first byte of the next line that is neither blank nor begins with
 * `comment`; false when there is none.  `at` must be at the beginning of a
 * line or at the end of one. */
bool kf_io_next_line(kf_text *t, char comment);

typedef enum kf_scan {
    KF_NUMBER,
    KF_WORD,     /* no number stands here */
    KF_NAN,      /* nan, inf or infinity, in any case */
    KF_TOO_LARGE /* beyond float64 */
} kf_scan;

/* Reads [+-] digits [. digits] [e [+-] digits] at p.  The value is exactly that
 * of strtod in the C locale.  Sets *next to the first character after the
 * number; the caller checks that a number may end there. */
kf_scan kf_scan_number(const char *p, const char *end, const char **next,
                       double *value);

/* Reads the same, with D for E as in Fortran. */
kf_scan kf_scan_fortran(const char *p, const char *end, const char **next,
                        double *value);

/* Are the n bytes the same but for the case of letters?  strncasecmp would ask
 * the locale. */
bool kf_io_alike(const char *p, const char *q, size_t n);
/* Are p .. end-1 the word, in any case? */
bool kf_io_is_word(const char *p, const char *end, const char *word);

/* The mark that some editors put before UTF-8. */
#define KF_BOM "\xef\xbb\xbf"
#define KF_BOM_BYTES 3

/* All lines of a text, behind that mark. */
kf_text kf_io_text(const void *data, size_t length);

/* Reads digits; false when there are none or they exceed a size_t. */
static inline bool kf_scan_size(const char **p, const char *end, size_t *value)
{
    const char *q = *p;
    size_t v = 0;

    while (q < end && kf_is_digit(*q)) {
        if (!kf_mul(v, 10, &v) || !kf_add(v, (size_t)(*q - '0'), &v))
            return false;
        q++;
    }
    *value = v;
    if (q == *p)
        return false;
    *p = q;
    return true;
}

/* p .. end-1 for a message: shortened, and with bytes that could upset a
 * terminal written as \xNN. */
#define KF_SHOWN 48
const char *kf_io_show(char shown[KF_SHOWN], const char *p, const char *end);
/* The same up to the next blank or line end. */
const char *kf_io_show_word(char shown[KF_SHOWN], const char *p,
                            const char *end);

/* The shortest of %.15g, %.16g and %.17g that reads back as v (for a float
 * %.6g to %.9g), with a point whatever the locale.  Returns the length. */
#define KF_DIGITS 40
size_t kf_io_print_number(char out[KF_DIGITS], double v, bool single);

#endif
