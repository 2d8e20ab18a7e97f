/* clean.c -- takes from a text what a terminal would obey.
 *
 * Owns nothing. */
#include "log.h"

#include <string.h>

/* Returns the code point at `p` and sets *bytes to its length; 0: not UTF-8. */
static unsigned long code_point(const unsigned char *p, int *bytes)
{
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
    unsigned long c = *p & (0xffu >> (n + 1));

    *bytes = n;
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            *bytes = 0;
            return 0;
        }
        c = c << 6 | (p[i] & 0x3f);
    }
    if (n && (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)))
        *bytes = 0;
    return c;
}

/* True if the character is invisible or changes how others are shown. */
static bool is_odd(unsigned long c)
{
    static const unsigned long odd[][2] = {
        {0, 0x9f},          {0xad, 0xad},     {0x61c, 0x61c},
        {0x180b, 0x180f},   {0x200b, 0x200f}, {0x2028, 0x202f},
        {0x2060, 0x206f},   {0xe000, 0xf8ff}, {0xfe00, 0xfe0f},
        {0xfeff, 0xfeff},   {0xfff0, 0xfffb}, {0xfffe, 0xffff},
        {0xe0000, 0x10ffff}};

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (c >= odd[i][0] && c <= odd[i][1])
            return true;
    return false;
}

void cli_clean(char *text)
{
    unsigned char *p = (unsigned char *)text;

    while (*p) {
        int bytes = 1;
        bool bad = *p < ' ' || *p == 0x7f;

        if (*p >= 0x80) {
            unsigned long c = code_point(p, &bytes);

            bad = !bytes || is_odd(c);
            bytes += !bytes;
        }
        if (bad)
            memset(p, '?', (size_t)bytes);
        p += bytes;
    }
}
