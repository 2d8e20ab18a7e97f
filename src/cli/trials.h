/* trials.h -- runs of a command for kofn compare and kofn sweep. */
#ifndef KOFN_CLI_TRIALS_H
#define KOFN_CLI_TRIALS_H

#include "cli.h"

#define TRIAL_OVER 6    /* varied names of a sweep, at most */
#define TRIAL_VALUE 120 /* bytes of a value */

/* What a run gave. Times are in seconds; NAN: unknown. */
typedef struct trial {
    char scheme[CLI_SPEC]; /* as given */
    char value[TRIAL_OVER][TRIAL_VALUE];
    char error[300]; /* "": it was done */
    int code;        /* exit code of the run */
    double median,
        most; /* of the rounds: half, and nine of ten, took no more */
    double total, placing, sent, received, predicted;
    size_t rounds, lost, corrupt;
} trial;

/* The words of compare or sweep, and of the command that is run. */
typedef struct trial_words {
    const cli_command *command;
    char **word; /* of that command, from its name on, to NULL */
    size_t words;
    char **own; /* own options, after the own name, to NULL */
    size_t owns;
    char **picked; /* values of the option that is repeated */
    size_t picks;
    cli_args given; /* own options, read: csv, svg, json, help */
} trial_words;

/* Sorts the words of the command line of `c`. Values of the option with this
 * letter (0: none) and long name are picked. Returns 0, or the exit code after
 * a message. The caller calls trial_free in any case. */
int trial_read(const cli_command *c, int argc, char **argv, char letter,
               const char *name, trial_words *out);
void trial_free(trial_words *w);
/* Runs the command with these words added, and fills in what it gave. Returns 0
 * also if it fails; else the exit code after a message, or after Ctrl-C. */
int trial_run(const trial_words *w, char *const *more, trial *out);
/* Prints progress on a terminal: trial `at` of `of`. */
void trial_show(size_t at, size_t of, const char *what);

/* The commands. They get all their words, and return an exit code. */
int cmd_compare(const cli_command *c, int argc, char **argv);
int cmd_sweep(const cli_command *c, int argc, char **argv);

/* ---- what is written ----------------------------------------------------- */

/* A curve of a chart, or the bars of one. */
typedef struct chart_curve {
    char name[CLI_SPEC];
    double *x, *y;
    size_t count;
} chart_curve;

typedef struct chart {
    const char *title, *x, *y; /* titles */
    chart_curve *curve;
    size_t curves;
    bool bars; /* one bar of each curve: its last y */
} chart;

/* Writes an SVG file. Returns 0, or the exit code after a message. */
int chart_write(const chart *c, const char *path);
/* Writes a field of CSV, quoted if need be. */
void trial_csv(FILE *f, const char *text);
#define TRIAL_CSV                                                              \
    "rounds,round_seconds_50,round_seconds_90,seconds,place_seconds,"          \
    "sent_bytes,received_bytes,predicted_error,left,corrupt_results,error"
/* Writes the fields of TRIAL_CSV and ends the line. Unknown ones are empty. */
void trial_csv_row(FILE *f, const trial *t);
/* Adds the numbers of a trial to an object. */
void trial_json(json_t *o, const trial *t);

#endif
