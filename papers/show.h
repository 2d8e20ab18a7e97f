/* show.h -- the program kofn-papers: its arguments, and how results are
 * shown. */
#ifndef PAPERS_SHOW_H
#define PAPERS_SHOW_H

#include "gradient/gradient.h"
#include "images.h"
#include "plot.h"
#include "stream/stream.h"

#include <jansson.h>
#include <stdio.h>

/* Ends with this where arguments are wrong, with 1 where something fails. */
#define PAPERS_USAGE 2

/* ---- arguments (options.c) ----------------------------------------------- */

typedef struct papers_args {
    const struct paper *paper;
    bool json, help;
    const char *svg; /* file, or NULL */
    uint64_t seed;
    size_t scenario;    /* 0: all                           */
    double scale;       /* 0: as usual                      */
    int stale;          /* 1 + fifo, latest, reset; 0: fifo */
    const char *mnist;  /* folder, or NULL                  */
    size_t workers;     /* 0: not given                     */
    const char *scheme; /* NULL: not given                  */
    aet_params aet;     /* of gradient codes                */
    rhat_params stream; /* of streams; workers are above    */
    size_t delay;
    const char *grid, *batch_cut;
    size_t width, batch;
    const char *points, *labels; /* files, or NULL */
    int mesh;                    /* 1 + simulated, threads; 0: simulated */
} papers_args;

/* What there is to be computed: a row each in main.c. */
typedef struct paper {
    const char *name, *summary, *text;
    const char *examples; /* one a line: command, two blanks or more, what */
    unsigned bit;         /* says which options are its own                */
    int (*run)(const papers_args *a); /* 0, or the exit code after a message;
                                         NULL: papers_scenarios            */
    const struct papers_scenario *const *scenario; /* NULL: run knows */
    size_t scenarios, usual; /* how many, and of these without --scenario */
    const char *pictures; /* scenarios that have one, the best first; "": it has
                                none of them; NULL: no picture             */
    double most_scale;
    const char *most; /* what that is */
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

/* The options of the paper in a->paper: 0, or the exit code after a message. */
int papers_parse(int argc, char **argv, papers_args *a);
void papers_help_options(const paper *p);
/* Words on lines of their own, from column `left` on. */
void papers_fill(const char *text, size_t left);

int papers_pcr(const papers_args *a);
int papers_gradient(const papers_args *a);
int papers_aet(const papers_args *a);
int papers_agc_table(const papers_args *a);
int papers_rhat(const papers_args *a);
int papers_tolerance(const papers_args *a);
int papers_codes(const papers_args *a);

/* ---- messages (show.c) --------------------------------------------------- */

/* "kofn-papers: text" on stderr, one line; returns the code. */
int papers_say(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The library's message; the exit code that goes with the status. */
int papers_ended(kofn_status st);
/* With --json, an object for a failure before there was anything to report. */
void papers_print_failure(const papers_args *a);

/* ---- results (show.c) ---------------------------------------------------- */

/* Whatever is found is made into JSON once: --json prints that, tables are
 * printed of it, and pictures drawn. */

/* An object of "name:kind" one after another with blanks between them, and a
 * value for each: f a real, null where it is not finite; z a size_t; i an int;
 * b a bool; s a text; o JSON; p two size_t, a list.  "name:{..}" is an object
 * in it. */
json_t *papers_pack(const char *fields, ...);
/* The same at the end of the list. */
void papers_add(json_t *list, const char *fields, ...);
/* What `path` leads to, names and places of lists with '.' between them. */
json_t *papers_at(const json_t *o, const char *path);
/* A number, or infinite where there is none. */
double papers_real(const json_t *o, const char *path);
bool papers_true(const json_t *o, const char *path);

/* On stdout, with {path}, {path:format} and {path*factor:format} replaced by
 * values of o: the format is printf's without % and, but for e, f and g,
 * without a letter.  What is true is ok, what is false off, null is - or
 * infinite. */
void papers_print(const json_t *o, const char *text);
/* Of every member of the list or object; {@}: its name, {.}: itself. */
void papers_each(json_t *o, const char *text);
/* Of every member of the list, with a bar that is `wide` for the greatest value
 * of path. */
void papers_each_bar(json_t *list, const char *text, const char *path,
                     size_t wide);
/* How a figure compares with what is expected of it. */
const char *papers_mark(bool ok);
/* A character as high as `share` of a line, or a digit where there are none. */
void papers_bar(double share);
/* {"status": "ok", "command": name, "experiment": name, "seed": ..} */
json_t *papers_json(const papers_args *a);

/* What a paper is made of: a figure or a table, in a file of its name. */
typedef struct papers_scenario {
    /* Adds what is found to the list. */
    kofn_status (*run)(const papers_args *a, size_t k, json_t *list);
    void (*tell)(json_t *o);
    void (*draw)(json_t *o, plot *p); /* or NULL */
} papers_scenario;
extern const papers_scenario elastic_figure_2a, elastic_figure_2b,
    elastic_figure_2c, gradient_table_vi, stream_figure_1, stream_table_1,
    stream_largest_load, stream_products, stream_figure_2, dnn_limits,
    dnn_soft_errors, dnn_autoencoder;
/* Scenario by scenario, that of --scenario or all of a usual run; `iterations`:
 * how many there were, 0: that is not told.  0, or the exit code after a
 * message. */
int papers_scenarios(const papers_args *a, size_t iterations);
/* With --json printed, and freed: 0. */
int papers_ending(const papers_args *a, json_t *o);
/* A curve, or bars, of all members of the list: y, a format, by x, or by their
 * places where x is NULL. */
void papers_curve(plot *p, json_t *list, const char *x, const char *y, ...)
    __attribute__((format(printf, 4, 5)));
/* Into the file of --svg, and freed: 0, or the exit code after a message. */
int papers_draw(const papers_args *a, plot *p);
json_t *papers_reals(const double *x, size_t n);
json_t *papers_sizes(const size_t *x, size_t n);
/* {"value", "low", "high", "ok"} */
json_t *papers_band_json(double value, double low, double high);
bool papers_within(double value, double low, double high);
/* That of --scale, or the usual one. */
double papers_scale(const papers_args *a, double usual);
/* How many runs --scale makes of the usual number. */
size_t papers_runs(const papers_args *a, size_t usual);
/* What is in the folder of --mnist. */
kofn_status papers_mnist(const papers_args *a, images *p);
/* Reads the files of --points and --labels (points.c). */
kofn_status papers_points(const papers_args *a, images *p);

#endif
