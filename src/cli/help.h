/* help.h -- the tables as text: help, manual pages, completions. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "cli.h"

/* Groups of options in help and manuals, in their order there. */
typedef enum cli_group {
    CLI_RESULT,
    CLI_WORK,
    CLI_WORKERS,
    CLI_CODE,
    CLI_TRIALS,
    CLI_RECORDS,
    CLI_GROUPS /* their number */
} cli_group;
const char *cli_group_title(cli_group g);
cli_group cli_group_of(const cli_option *o);
/* True if the command's --help shows the option. */
bool cli_is_in_front(const cli_option *o, const cli_command *c);
/* True if the command has the option under --set. */
bool cli_is_rare(const cli_option *o, const cli_command *c);

void cli_help(FILE *f);
/* Prints the help of a command: what people use, or `all` of it. */
void cli_help_command(FILE *f, const cli_command *c, bool all);
/* Part of a text. */
typedef struct cli_span {
    const char *text;
    size_t n;
} cli_span;
/* Splits the first of a command's examples into what is typed and what it does.
 * Returns the next ones, or NULL if there is none. */
const char *cli_example(const char *e, cli_span *typed, cli_span *what);
/* Writes the name of an option under --set, as "late=FACTOR". */
void cli_option_setting(const cli_option *o, char *out, size_t size);
/* Writes the names of an option, as "-o, --output FILE". */
void cli_option_names(const cli_option *o, char *out, size_t size);
/* Prints the man page of a command, or that of all commands for NULL. */
void cli_manual(FILE *f, const cli_command *c);
/* Prints the completion for a shell, "bash" or "zsh". Returns the exit code. */
int cli_completion(FILE *f, const char *shell);
void cli_version(FILE *f);

#endif
