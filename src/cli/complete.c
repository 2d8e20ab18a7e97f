/* complete.c -- the tables as completions for bash and zsh.
 *
 * Owns nothing: commands come from commands.c, options from table.c, and
 * schemes from the library. What the user types is completed by the shell,
 * without a call of kofn. */
#include "cli.h"
#include "help.h"

#include <kofn/scheme.h>

#include <ctype.h>
#include <string.h>

/* What the argument of an option is. */
typedef enum argument {
    NOTHING,
    PATH,
    FOLDER,
    SCHEME,
    CHOICE,
    SETTING,
    OTHER
} argument;

/* True for a word of the interface; a name in capitals stands for others. */
static bool is_choice(const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)word[i]) &&
            !strchr("-_0123456789", word[i]))
            return false;
    return n > 0;
}

static argument argument_of(const cli_option *o)
{
    const char *a = o->arg ? o->arg : "";

    if (!*a)
        return NOTHING;
    if (!strncmp(a, "FILE", 4))
        return PATH;
    if (!strncmp(a, "DIR", 3))
        return FOLDER;
    if (!strcmp(o->name, "scheme"))
        return SCHEME;
    if (!strcmp(o->name, "set"))
        return SETTING;
    return strchr(a, '|') && is_choice(a, strcspn(a, "|")) ? CHOICE : OTHER;
}

/* Prints the words of an argument that can be typed as they are. */
static void choices(FILE *f, const char *a)
{
    for (size_t n; n = strcspn(a, "|"), *a; a += n + (a[n] == '|'))
        if (is_choice(a, n))
            fprintf(f, " %.*s", (int)n, a);
}

static void schemes(FILE *f)
{
    const kofn_scheme *s;

    for (size_t i = 0; (s = kofn_scheme_at(i)) != NULL; i++)
        fprintf(f, " %s", s->name);
}

/* True if a command has the option under --set. */
static bool is_rare(const cli_option *o)
{
    const cli_command *c = cli_commands;

    while (c->name && !(o->in & c->bit && cli_is_rare(o, c)))
        c++;
    return c->name;
}

/* Prints the names of options under --set. */
static void settings(FILE *f)
{
    for (const cli_option *o = cli_options(); o->name; o++)
        if (is_rare(o))
            fprintf(f, " %s%s", o->name, o->arg ? "=" : "");
}

static void commands(FILE *f)
{
    for (const cli_command *c = cli_commands; c->name; c++)
        fprintf(f, " %s", c->name);
}

/* ---- bash ---------------------------------------------------------------- */

static void bash_names(FILE *f, const cli_option *o)
{
    if (o->letter)
        fprintf(f, "-%c|", o->letter);
    fprintf(f, "--%s", o->name);
}

/* Prints the cases of options with an argument that can be completed. */
static void bash_arguments(FILE *f)
{
    for (const cli_option *o = cli_options(); o->name; o++) {
        argument kind = argument_of(o);

        if (kind == NOTHING)
            continue;
        fputs("    ", f);
        bash_names(f, o);
        if (kind == PATH) {
            fputs(") _kofn_files -f; return;;\n", f);
        } else if (kind == FOLDER) {
            fputs(") _kofn_files -d; return;;\n", f);
        } else {
            fputs(") words=\"", f);
            if (kind == SCHEME)
                schemes(f);
            else if (kind == CHOICE)
                choices(f, o->arg);
            else if (kind == SETTING)
                settings(f);
            fputs("\";;\n", f);
        }
    }
}

static void bash(FILE *f)
{
    fputs("# Completion of kofn for bash.\n"
          "_kofn_files() {\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
          "}\n"
          "_kofn() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} words\n"
          "    COMPREPLY=()\n"
          "    case ${COMP_WORDS[COMP_CWORD-1]} in\n",
          f);
    bash_arguments(f);
    fputs("    *) if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"", f);
    commands(f);
    fputs(" help --help --version\"\n"
          "    elif [[ $cur != -* && ${COMP_WORDS[1]} != help ]]; then\n"
          "        _kofn_files -f; return\n"
          "    else case ${COMP_WORDS[1]} in\n    help) words=\"",
          f);
    commands(f);
    fputs("\";;\n", f);
    for (const cli_command *c = cli_commands; c->name; c++) {
        fprintf(f, "    %s) words=\"", c->name);
        for (const cli_option *o = cli_options(); o->name; o++)
            if (o->in & c->bit && !cli_is_rare(o, c))
                fprintf(f, " --%s", o->name);
        fputs("\";;\n", f);
    }
    fputs("    esac; fi;;\n    esac\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "}\n"
          "complete -F _kofn kofn\n",
          f);
}

/* ---- zsh ----------------------------------------------------------------- */

/* Prints text for a specification in single quotes: characters that would end
 * a part are left out or escaped. */
static void zsh_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", f);
        else if (strchr("[]:\\", *text))
            fprintf(f, "\\%c", *text);
        else
            fputc(*text, f);
    }
}

static void zsh_option(FILE *f, const cli_option *o)
{
    argument kind = argument_of(o);

    if (o->letter)
        fprintf(f, "            '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name,
                o->letter, o->name);
    else
        fprintf(f, "            '--%s[", o->name);
    zsh_text(f, o->help);
    fputs("]", f);
    if (kind != NOTHING) {
        fputs(":", f);
        zsh_text(f, o->arg);
        fputs(":", f);
    }
    if (kind == PATH || kind == FOLDER)
        fputs(kind == PATH ? "_files" : "_files -/", f);
    else if (kind == SCHEME || kind == CHOICE || kind == SETTING)
        fputs("(", f);
    if (kind == SCHEME)
        schemes(f);
    else if (kind == CHOICE)
        choices(f, o->arg);
    else if (kind == SETTING)
        settings(f);
    if (kind == SCHEME || kind == CHOICE || kind == SETTING)
        fputs(" )", f);
    fputs("' \\\n", f);
}

static void zsh(FILE *f)
{
    fputs("#compdef kofn\n# Completion of kofn for zsh.\n"
          "_kofn() {\n    if (( CURRENT == 2 )); then\n"
          "        local -a commands=(\n",
          f);
    for (const cli_command *c = cli_commands; c->name; c++) {
        fprintf(f, "            '%s:", c->name);
        zsh_text(f, c->summary);
        fputs("'\n", f);
    }
    fputs("        )\n        _describe command commands\n        return\n"
          "    fi\n    local name=$words[2]\n"
          "    shift words; (( CURRENT-- ))\n    case $name in\n"
          "    help) _values command",
          f);
    commands(f);
    fputs(" ;;\n", f);
    for (const cli_command *c = cli_commands; c->name; c++) {
        fprintf(f, "    %s)\n        _arguments -s \\\n", c->name);
        for (const cli_option *o = cli_options(); o->name; o++)
            if (o->in & c->bit && !cli_is_rare(o, c))
                zsh_option(f, o);
        fputs("            '*:file:_files' ;;\n", f);
    }
    fputs("    esac\n}\n_kofn \"$@\"\n", f);
}

int cli_completion(FILE *f, const char *shell)
{
    if (!strcmp(shell, "bash"))
        bash(f);
    else if (!strcmp(shell, "zsh"))
        zsh(f);
    else
        return cli_say(EXIT_USAGE,
                       "--completion %s: there are bash and zsh; try "
                       "kofn --completion bash >~/.local/share/"
                       "bash-completion/completions/kofn",
                       shell);
    return EXIT_EXACT;
}
