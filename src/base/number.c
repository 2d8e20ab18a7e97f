/* number.c -- reads and writes numbers as text in the C locale.
 *
 * The thread has that locale only while the C library reads or writes.  In
 * glibc and musl the locale for LC_ALL always exists.  So newlocale allocates
 * nothing and cannot fail. */
#include "number.h"

#include <locale.h>
#include <stdlib.h>

/* Gives the calling thread the C locale, and returns the one that it had. */
static locale_t enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

/* Gives the thread its former locale back. */
static void leave(locale_t had)
{
    freelocale(uselocale(had));
}

double kf_read_real(const char *text, char **end)
{
    locale_t had = enter();
    double x = strtod(text, end);

    leave(had);
    return x;
}

int kf_vformat(char *out, size_t room, const char *fmt, va_list ap)
{
    locale_t had = enter();
    int n = vsnprintf(out, room, fmt, ap);

    leave(had);
    return n;
}

int kf_format(char *out, size_t room, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = kf_vformat(out, room, fmt, ap);
    va_end(ap);
    return n;
}

int kf_fformat(FILE *f, const char *fmt, ...)
{
    locale_t had = enter();
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vfprintf(f, fmt, ap);
    va_end(ap);
    leave(had);
    return n;
}
