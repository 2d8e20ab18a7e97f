/* options.c -- converts argv to papers_args, and prints help, by one table. */
#include "show.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind {
    FLAG, /* bool, set if the option is given */
    TEXT, /* const char *                                         */
    WORD, /* int: 1 and the place of the word in `arg` */
    SIZE, /* size_t or uint64_t, with k, M or G; most 0: INT64_MAX */
    REAL  /* double                                               */
} kind;

typedef struct row {
    char letter; /* letter of the short form; 0: none */
    const char *name, *arg, *help;
    unsigned of; /* papers that have the option */
    kind kind;
    double least, most; /* range of a number */
    size_t at;          /* offset in papers_args */
} row;

#define AT(field) offsetof(papers_args, field)

static const row rows[] = {
    {0, "scenario", "K",
     "only this scenario: pcr 1 to 4, elastic 1 to 3, gradient 1 to 2, stream "
     "1 to 6, dnn 1 to 3 (all; stream: 1 to 4, which multiply nothing)",
     PAPER_RUNS, SIZE, 1, 0, AT(scenario)},
    {0, "scale", "F",
     "elastic, stream 5: size of the matrices, 1: as published (0.2, 0.6, "
     "0.06; 1); stream 6: iterations, 1: as published; dnn: seeds and epochs; "
     "else number of averaged runs, 1: the usual one (1)",
     PAPER_RUNS, REAL, 0.001, 1000, AT(scale)},
    {0, "seed", "S", "seed of all random draws (1)", PAPER_RUNS, SIZE, 0, 0,
     AT(seed)},
    {0, "mnist", "DIR",
     "stream 6, dnn: a folder with the four files of MNIST, as published or "
     "unpacked "
     "(images of that shape are made; dnn: of 7 x 7)",
     PAPER_STREAM | PAPER_DNN, TEXT, 0, 0, AT(mnist)},
    {0, "points", "FILE",
     "dnn: your own points instead of images, one per row; every fourth is "
     "held out",
     PAPER_DNN, TEXT, 0, 0, AT(points)},
    {0, "labels", "FILE",
     "dnn: with --points, a label of each point: 0, 1 and so on", PAPER_DNN,
     TEXT, 0, 0, AT(labels)},
    {0, "mesh", "simulated|threads",
     "dnn: nodes of replication and two MDS codes run in turn on one thread, "
     "or on one thread each, with the same result (simulated)",
     PAPER_DNN, WORD, 0, 0, AT(mesh)},
    {0, "stale", "fifo|latest|reset",
     "a late worker works through its backlog, continues with the newest "
     "iteration, or drops everything at once (fifo)",
     PAPER_PCR, WORD, 0, 0, AT(stale)},
    {0, "n", "N", "workers, and subsets of the data (20)", PAPER_AET, SIZE, 1,
     AET_MOST_N, AT(aet.n)},
    {0, "d", "D", "subsets that each worker computes (3)", PAPER_AET, SIZE, 1,
     AET_MOST_N, AT(aet.d)},
    {0, "p", "P", "chance that a worker straggles in an epoch (0.05)",
     PAPER_AET, REAL, 0, AET_MOST_P, AT(aet.p)},
    {0, "tcp", "T", "time of the computation of D subsets (1)", PAPER_AET, REAL,
     0, 1e100, AT(aet.t_cp)},
    {0, "tcm", "T", "time of a message as long as the gradient (1)", PAPER_AET,
     REAL, 0, 1e100, AT(aet.t_cm)},
    {'n', "workers", "N",
     "workers or nodes (rhat: 8; tolerance: all numbers up to 100; codes: "
     "three "
     "times the blocks)",
     PAPER_RHAT | PAPER_TOLERANCE | PAPER_CODES, SIZE, 1, 1e6, AT(workers)},
    {'s', "scheme", "NAME[:key=value,...]",
     "only this scheme: dip:m,p,n,T,lambda or dip:beta,T,lambda, idip:N,W, "
     "uncoded, polynomial:S, or a code of kofn (the best of each)",
     PAPER_RHAT, TEXT, 0, 0, AT(scheme)},
    {0, "alpha", "A", "slowdown of slow workers, as a factor (5)", PAPER_RHAT,
     REAL, 1, 1e6, AT(stream.alpha)},
    {0, "delta", "D", "chance that a worker is slow in a round (0.3)",
     PAPER_RHAT, REAL, 0, 1, AT(stream.delta)},
    {0, "mu", "MU",
     "patience: unless all workers are done, a round lasts 1 + MU times the "
     "first worker's time (0)",
     PAPER_RHAT, REAL, 0, 1e6, AT(stream.mu)},
    {0, "delay", "T",
     "without --scheme: rounds that a product may take beyond its first (3)",
     PAPER_RHAT, SIZE, 0, 100, AT(delay)},
    {0, "grid", "MxN", "blocks that weights are cut into (codes: 2x2)",
     PAPER_TOLERANCE | PAPER_CODES, TEXT, 0, 0, AT(grid)},
    {0, "batch-cut", "B1,B2",
     "parts of a batch in the forward and in the backward product (1,1)",
     PAPER_TOLERANCE | PAPER_CODES, TEXT, 0, 0, AT(batch_cut)},
    {0, "width", "N", "width of a layer and of the layer before it (1024)",
     PAPER_CODES, SIZE, 1, 1e6, AT(width)},
    {0, "batch", "B", "points of a step (64)", PAPER_CODES, SIZE, 1, 1e6,
     AT(batch)},
    {'j', "json", NULL, "one JSON object on stdout", ~0u, FLAG, 0, 0, AT(json)},
    {0, "svg", "FILE",
     "also draw a picture of this scenario, or of the paper's main one", ~0u,
     TEXT, 0, 0, AT(svg)},
    {'h', "help", NULL, "this text", ~0u, FLAG, 0, 0, AT(help)},
};

#define ROWS (sizeof rows / sizeof *rows)

/* ---- values -------------------------------------------------------------- */

/* Reads a whole number with an optional k, M or G. */
static bool whole(const char *text, size_t max, size_t *out)
{
    unsigned long long x, scale = 1;
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    x = strtoull(text, &end, 10);
    if (*end && strchr("kMG", *end))
        scale = *end == 'k' ? 1000 : *end == 'M' ? 1000000 : 1000000000;
    if (errno || end[scale > 1] || x > max / scale)
        return false;
    *out = (size_t)(x * scale);
    return true;
}

static int set_size(const row *o, const char *text, size_t *out)
{
    size_t least = (size_t)o->least,
           most = o->most > 0 ? (size_t)o->most : INT64_MAX;

    if (whole(text, most, out) && *out >= least)
        return 0;
    if (o->most == 0)
        return papers_say(PAPERS_USAGE,
                          "--%s %s: give a whole number, of %zu at least",
                          o->name, text, least);
    return papers_say(PAPERS_USAGE,
                      "--%s %s: give a whole number from %zu to %zu", o->name,
                      text, least, most);
}

static int set_real(const row *o, const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    if (*text && !isspace((unsigned char)*text) && !*end && *out >= o->least &&
        *out <= o->most)
        return 0;
    return papers_say(PAPERS_USAGE, "--%s %s: give a number from %g to %g",
                      o->name, text, o->least, o->most);
}

static int set_word(const row *o, const char *text, int *out)
{
    size_t n = strlen(text);
    int place = 1;

    for (const char *p = o->arg;; place++) {
        size_t m = strcspn(p, "|");

        if (m == n && !memcmp(p, text, n))
            break;
        if (!p[m])
            return papers_say(PAPERS_USAGE, "--%s %s: give one of %s", o->name,
                              text, o->arg);
        p += m + 1;
    }
    *out = place;
    return 0;
}

static int set(papers_args *a, const row *o, const char *text)
{
    void *at = (char *)a + o->at;

    switch (o->kind) {
    case FLAG:
        *(bool *)at = true;
        return 0;
    case WORD:
        return set_word(o, text, at);
    case SIZE:
        return set_size(o, text, at);
    case REAL:
        return set_real(o, text, at);
    case TEXT:
        break;
    }
    if (!*text)
        return papers_say(PAPERS_USAGE, "--%s \"\": give %s", o->name, o->arg);
    *(const char **)at = text;
    return 0;
}

/* ---- the parser ---------------------------------------------------------- */

/* Returns the key that getopt_long reports: the letter, or a number above all
 * letters. */
static int key_of(const row *o)
{
    return o->letter ? o->letter : UCHAR_MAX + 1 + (int)(o - rows);
}

/* Converts the rows of this paper for getopt_long. */
static void getopt_tables(const paper *p, struct option *longs, char *shorts)
{
    *shorts++ = ':';
    for (size_t i = 0; i < ROWS; i++) {
        const row *o = &rows[i];

        if (!(o->of & p->bit))
            continue;
        *longs++ = (struct option){
            o->name, o->arg ? required_argument : no_argument, NULL, key_of(o)};
        if (o->letter)
            *shorts++ = o->letter;
        if (o->letter && o->arg)
            *shorts++ = ':';
    }
    *longs = (struct option){0};
    *shorts = 0;
}

/* Returns the exit code after a message about an unknown option. getopt_long
 * puts the option's key into optopt, an unknown letter unchanged. For an
 * unknown word optopt is 0, and the word is the last argument read. */
static int bad_option(const paper *p, bool bare, const char *word)
{
    for (size_t i = 0; i < ROWS; i++)
        if (key_of(&rows[i]) == optopt && rows[i].of & p->bit)
            return papers_say(
                PAPERS_USAGE, "--%s %s; see kofn-papers %s --help",
                rows[i].name, bare ? "needs a value" : "takes no value",
                p->name);
    return papers_say(PAPERS_USAGE,
                      "%s has no option %.40s; see kofn-papers %s --help",
                      p->name, word, p->name);
}

int papers_parse(int argc, char **argv, papers_args *a)
{
    struct option longs[ROWS + 1];
    char shorts[2 * ROWS + 2];
    int key;

    getopt_tables(a->paper, longs, shorts);
    opterr = 0;
    while ((key = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        size_t i = 0;

        if (key == ':' || key == '?')
            return bad_option(a->paper, key == ':', argv[optind - 1]);
        while (key_of(&rows[i]) != key)
            i++;
        if (set(a, &rows[i], optarg))
            return PAPERS_USAGE;
        if (a->help)
            return 0;
    }
    if (optind == argc)
        return 0;
    return papers_say(PAPERS_USAGE,
                      "%s takes options only, not %.40s; see kofn-papers %s "
                      "--help",
                      a->paper->name, argv[optind], a->paper->name);
}

/* ---- help ---------------------------------------------------------------- */

#define WIDTH 79

void papers_fill(const char *text, size_t left)
{
    size_t at = WIDTH;

    while (*text) {
        size_t n = strcspn(text, " ");
        bool fits = at + 1 + n <= WIDTH;

        printf("%s%*s%.*s", fits ? " " : "\n", fits ? 0 : (int)left, "", (int)n,
               text);
        at = (fits ? at + 1 : left) + n;
        text += n;
        text += strspn(text, " ");
    }
    putchar('\n');
}

void papers_help_options(const paper *p)
{
    for (size_t i = 0; i < ROWS; i++) {
        const row *o = &rows[i];
        char letter[] = {'-', o->letter, ',', ' ', 0};

        if (!(o->of & p->bit))
            continue;
        printf("  %s--%s%s%s", o->letter ? letter : "    ", o->name,
               o->arg ? " " : "", o->arg ? o->arg : "");
        papers_fill(o->help, 10);
    }
}
