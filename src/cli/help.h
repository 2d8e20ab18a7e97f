/* help.h -- the tables as text: help, manual pages, completions. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli.h"

void cli_help(FILE *f);
void cli_help_command(FILE *f, const cli_command *c);
/* Part of a text. */
typedef struct cli_span {
    const char *text;
    size_t n;
} cli_span;
/* Splits the first of a command's examples into what is typed and what it does.
 * Returns the next ones, or NULL if there is none. */
const char *cli_example(const char *e, cli_span *typed, cli_span *what);
/* Writes the names of an option, as "-o, --output FILE". */
void cli_option_names(const cli_option *o, char *out, size_t size);
/* Prints the man page of a command, or that of all commands for NULL. */
void cli_manual(FILE *f, const cli_command *c);
/* Prints the completion for a shell, "bash" or "zsh". Returns the exit code. */
int cli_completion(FILE *f, const char *shell);
void cli_version(FILE *f);

#endif
