/* cli_messages.h -- replaces the message function of the command. It checks
 * that every message is complete and has the status of a wrong input, and
 * counts messages. */
#ifndef KF_FUZZ_CLI_MESSAGES_H
#define KF_FUZZ_CLI_MESSAGES_H

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
