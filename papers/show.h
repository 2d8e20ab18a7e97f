/* show.h -- the program kofn-papers: its arguments, and the display of
 * results. */
#ifndef PAPERS_SHOW_H
#define PAPERS_SHOW_H

#include "gradient/gradient.h"
#include "images.h"
#include "plot.h"
#include "stream/stream.h"

#include <jansson.h>
#include <stdio.h>

/* Exit code for wrong arguments; other failures exit with 1. */
#define PAPERS_USAGE 2

/* ---- arguments (options.c) ----------------------------------------------- */

typedef struct papers_args {
    const struct paper *paper;
    bool json, help;
    const char *svg; /* a file, or NULL */
    uint64_t seed;
    size_t scenario;    /* 0: all */
    double scale;       /* 0: the usual one */
    int stale;          /* 1 + fifo, latest, reset; 0: fifo */
    const char *mnist;  /* a folder, or NULL */
    size_t workers;     /* 0: not given */
    const char *scheme; /* NULL: not given */
    aet_params aet;     /* for gradient codes */
    rhat_params stream; /* for streams; workers are above */
    size_t delay;
    const char *grid, *batch_cut;
    size_t width, batch;
    const char *points, *labels; /* files, or NULL */
    int mesh;                    /* 1 + simulated, threads; 0: simulated */
} papers_args;

/* A paper: one row each in main.c. */
typedef struct paper {
    const char *name, *summary, *text;
    const char *examples; /* one per line: the command, two blanks or more, a
                             description */
    unsigned bit;         /* marks the options of this paper */
    int (*run)(const papers_args *a); /* returns 0, or the exit code after a
                                         message; NULL: papers_scenarios */
    const struct papers_scenario *const *scenario; /* NULL: run knows them */
    size_t scenarios,
        usual; /* their number; the first ones, which run without --scenario */
    const char *pictures; /* scenarios with a picture, the best first; "": a
                             picture without scenarios; NULL: no picture */
    double most_scale;
    const char *most; /* describes `most` */
} paper;

enum {
    PAPER_PCR = 1 << 0,
    PAPER_ELASTIC = 1 << 1,
    PAPER_GRADIENT = 1 << 2,
    PAPER_STREAM = 1 << 3,
    PAPER_DNN = 1 << 4,
    PAPER_AET = 1 << 5,
    PAPER_AGC_TABLE = 1 << 6,
    PAPER_RHAT = 1 << 7,
    PAPER_TOLERANCE = 1 << 8,
    PAPER_CODES = 1 << 9,
    PAPER_RUNS =
        PAPER_PCR | PAPER_ELASTIC | PAPER_GRADIENT | PAPER_STREAM | PAPER_DNN
};

/* Reads the options of the paper in a->paper. Returns 0, or the exit code
 * after a message. */
int papers_parse(int argc, char **argv, papers_args *a);
void papers_help_options(const paper *p);
/* Prints words wrapped from column `left` on. */
void papers_fill(const char *text, size_t left);

int papers_pcr(const papers_args *a);
int papers_gradient(const papers_args *a);
int papers_aet(const papers_args *a);
int papers_agc_table(const papers_args *a);
int papers_rhat(const papers_args *a);
int papers_tolerance(const papers_args *a);
int papers_codes(const papers_args *a);

/* ---- messages (show.c) --------------------------------------------------- */

/* Prints "kofn-papers: text" on stderr, as one line. Returns the code. */
int papers_say(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the library's message. Returns the exit code of the status. */
int papers_ended(kofn_status st);
/* With --json, prints an object for a failure before there was anything to
 * report. */
void papers_print_failure(const papers_args *a);

/* ---- results (show.c) ---------------------------------------------------- */

/* Every result is converted to JSON once. --json prints it, tables are printed
 * from it, and pictures drawn. */

/* Returns an object for "name:kind" pairs, separated by blanks, and a value
 * for each. f: a real, null if not finite; z: a size_t; i: an int; b: a bool;
 * s: a text; o: JSON; p: two size_t, as a list. "name:{..}" is a nested
 * object. */
json_t *papers_pack(const char *fields, ...);
/* Appends such an object to the list. */
void papers_add(json_t *list, const char *fields, ...);
/* Returns the value at `path`: names and list places, separated by '.'. */
json_t *papers_at(const json_t *o, const char *path);
/* Returns a number; infinite if it is missing. */
double papers_real(const json_t *o, const char *path);
bool papers_true(const json_t *o, const char *path);

/* Prints text with {path}, {path:format} and {path*factor:format} replaced by
 * values of o. The format is printf's without %, and without a letter unless
 * it is e, f or g. true prints ok, false prints off, null prints - or
 * infinite. */
void papers_print(const json_t *o, const char *text);
/* Prints text for every member of the list or object; {@}: its name, {.}:
 * itself. */
void papers_each(json_t *o, const char *text);
/* Prints text for every member of the list, with a bar. The largest value of
 * path gets `wide` characters. */
void papers_each_bar(json_t *list, const char *text, const char *path,
                     size_t wide);
/* Returns the mark of a figure that meets its expectation or not. */
const char *papers_mark(bool ok);
/* Prints a character as high as `share` of a line, or a digit if the terminal
 * has none. */
void papers_bar(double share);
/* Returns {"status": "ok", "command": name, "experiment": name, "seed": ..}. */
json_t *papers_json(const papers_args *a);

/* A figure or table of a paper, in a file of its name. */
typedef struct papers_scenario {
    /* Adds the results to the list. */
    kofn_status (*run)(const papers_args *a, size_t k, json_t *list);
    void (*tell)(json_t *o);
    void (*draw)(json_t *o, plot *p); /* or NULL */
} papers_scenario;
extern const papers_scenario elastic_figure_2a, elastic_figure_2b,
    elastic_figure_2c, gradient_table_vi, stream_figure_1, stream_table_1,
    stream_largest_load, stream_products, stream_figure_2, dnn_limits,
    dnn_soft_errors, dnn_autoencoder;
/* Runs the scenario of --scenario, or all of a usual run. `iterations`: their
 * number, 0: not reported. Returns 0, or the exit code after a message. */
int papers_scenarios(const papers_args *a, size_t iterations);
/* Prints o if --json is given, and frees it. Returns 0. */
int papers_ending(const papers_args *a, json_t *o);
/* Draws a curve, or bars, of all members of the list: y, a format, against x,
 * or against their places if x is NULL. */
void papers_curve(plot *p, json_t *list, const char *x, const char *y, ...)
    __attribute__((format(printf, 4, 5)));
/* Writes the plot to the file of --svg and frees it. Returns 0, or the exit
 * code after a message. */
int papers_draw(const papers_args *a, plot *p);
json_t *papers_reals(const double *x, size_t n);
json_t *papers_sizes(const size_t *x, size_t n);
/* Returns {"value", "low", "high", "ok"}. */
json_t *papers_band_json(double value, double low, double high);
bool papers_within(double value, double low, double high);
/* Returns --scale, or the usual one. */
double papers_scale(const papers_args *a, double usual);
/* Returns the usual number of runs times --scale. */
size_t papers_runs(const papers_args *a, size_t usual);
/* Reads the folder of --mnist. */
kofn_status papers_mnist(const papers_args *a, images *p);
/* Reads the files of --points and --labels (points.c). */
kofn_status papers_points(const papers_args *a, images *p);

#endif
