/* says.h -- in the place of the command's own mouth: every message is whole, is
 * about a slip of the user's, and is counted. */
#ifndef KF_FUZZ_SAYS_H
#define KF_FUZZ_SAYS_H

#include "watch.h"

#include "cli/cli.h"

#include <stdarg.h>

static int messages;

int cli_say(int code, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    MUST(vsnprintf(text, sizeof text, fmt, ap) > 5);
    va_end(ap);
    MUST(code == EXIT_USAGE || code == EXIT_CORRUPT);
    messages++;
    return code;
}

#endif
