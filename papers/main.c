/* main.c -- kofn-papers: computes published experiments and closed forms, and
 * shows them next to the published values. Every shown figure is computed in
 * the run, except those marked as published. */
#include "show.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OF_PUBLISHED "the published size"
#define OF_RUNS "a thousand times as many runs"
#define OF_SEEDS "all seeds and steps"

/* Scenarios, in the order of --scenario. */
typedef const papers_scenario *const scenarios;
static scenarios elastic[] = {&elastic_figure_2a, &elastic_figure_2b,
                              &elastic_figure_2c};
static scenarios gradient[] = {&gradient_table_vi, &gradient_table_vi};
static scenarios stream[] = {&stream_figure_1, &stream_figure_1,
                             &stream_table_1,  &stream_largest_load,
                             &stream_products, &stream_figure_2};
static scenarios dnn[] = {&dnn_limits, &dnn_soft_errors, &dnn_autoencoder};

static const paper papers[] = {
    {"pcr", "polynomially coded regression, simulated",
     "Against gradient coding, BCC and no code, with stragglers.",
     "kofn-papers pcr  all four scenarios, and what explains them\n"
     "kofn-papers pcr --scenario 2 --stale reset  as if sleeping workers woke "
     "with every iteration",
     PAPER_PCR, papers_pcr, NULL, 4, 4, "1234", 1000, OF_RUNS},
    {"elastic", "coded elastic computing, simulated",
     "Products and regression on machines that come and go, with real matrices.",
     "kofn-papers elastic --scenario 3 --json  test errors of all 60 "
     "iterations\n"
     "kofn-papers elastic --scale 0.1  smaller matrices",
     PAPER_ELASTIC, NULL, elastic, 3, 3, "3", 1, OF_PUBLISHED},
    {"gradient", "adaptive gradient coding, simulated", "Against its formula.",
     "kofn-papers gradient --scale 10  ten times the iterations",
     PAPER_GRADIENT, papers_gradient, gradient, 2, 2, "12", 1000, OF_RUNS},
    {"stream", "DIP and IDIP: streams of products",
     "Formulas and Markov chains against simulated rounds, and against "
     "computed products.",
     "kofn-papers stream --scenario 3  Table 1 of the paper on sequential "
     "codes\n"
     "kofn-papers stream --scenario 6 --scale 0.004  the same with networks "
     "that "
     "are trained",
     PAPER_STREAM, NULL, stream, 6, 4, "123", 1000, OF_RUNS},
    {"dnn", "training on faulty nodes",
     "Masterless training on faulty nodes, with a Generalized PolyDot code "
     "and uncoded, on threads. Compares with the paper's baselines, "
     "replication and two MDS codes, and counts how many nodes may be wrong. "
     "Scenario 2 takes a quarter of an hour on two cores, with --scale 0.1 a "
     "minute.",
     "kofn-papers dnn --scenario 3  a sparse autoencoder on faulty nodes\n"
     "kofn-papers dnn --scenario 2 --scale 0.2  trainings under soft errors, "
     "one seed and two epochs\n"
     "kofn-papers dnn --scenario 2 --points X.npy --labels y.npy  the same "
     "with your own points, every fourth of them held out",
     PAPER_DNN, NULL, dnn, 3, 3, "12", 1, OF_SEEDS},
    {"aet", "mean times of gradient codes",
     "The mean execution time of an iteration under every gradient code, in "
     "closed form, if stragglers are restarted. With --json, one object of "
     "scheme and time.",
     "kofn-papers aet --n 20 --d 3 --p 0.05 --tcp 1 --tcm 1  and the fastest "
     "scheme\n"
     "kofn-papers aet --p 0.1 --tcp 2.45 --tcm 13 --json  for machines",
     PAPER_AET, papers_aet, NULL, 0, 0, NULL, 0, NULL},
    {"agc-table", "Table VI of the paper on adaptive gradient coding",
     "As printed and without its two slips.",
     "kofn-papers agc-table  all 18 numbers, and their correct values",
     PAPER_AGC_TABLE, papers_agc_table, NULL, 0, 0, NULL, 0, NULL},
    {"rhat", "mean times of streams of products",
     "The mean time of a round in which one product begins, relative to a "
     "whole product on one worker: for one scheme, or the best of each kind. "
     "dip accepts T=inf. idip accepts m and p, and early=no.",
     "kofn-papers rhat -n 4 --alpha 5 --delta 0.3  the best schemes if a "
     "third of the workers is five times slower\n"
     "kofn-papers rhat -n 4 --alpha 5 --delta 0.3 -s idip:N=10,W=4 --json  "
     "one scheme, with the paper's bounds",
     PAPER_RHAT, papers_rhat, NULL, 0, 0, NULL, 0, NULL},
    {"tolerance", "how many nodes that train a network may be wrong",
     "The number of nodes that may return wrong answers under each of four "
     "kinds of redundancy, in closed form (Fig. 8 of the paper on Generalized "
     "PolyDot codes). Each node has a block of the weights.",
     "kofn-papers tolerance --grid 3x3  for 9 to 100 nodes\n"
     "kofn-papers tolerance -n 12 --grid 2x2 --batch-cut 1,2 --json  also the "
     "thresholds",
     PAPER_TOLERANCE, papers_tolerance, NULL, 0, 0, "", 0, NULL},
    {"codes", "the same for kofn's codes, and their costs",
     "The tolerated faults, memory, traffic and computation of coded training "
     "for one layer, the time of its messages, and answers against numbers "
     "sent. Each value stands next to the published one.",
     "kofn-papers codes -n 12 --grid 2x2 --width 2048 --batch 256  Tables I "
     "to IV "
     "and Fig. 5 of the paper on Generalized PolyDot codes",
     PAPER_CODES, papers_codes, NULL, 0, 0, NULL, 0, NULL},
    {.name = NULL},
};

/* ---- help ---------------------------------------------------------------- */

static int help(void)
{
    printf("kofn-papers NAME [options] -- published experiments and closed "
           "forms, computed\n"
           "\n");
    for (const paper *p = papers; p->name; p++)
        printf("  %-12s%s\n", p->name, p->summary);
    printf("\n"
           "kofn-papers NAME --help says more.  Ends with 0, with 1 where "
           "something fails, with\n"
           "2 where arguments are wrong.\n");
    return 0;
}

static int help_paper(const paper *p)
{
    printf("kofn-papers %s -- %s\n", p->name, p->summary);
    papers_fill(p->text, 0);
    printf("\noptions:\n");
    papers_help_options(p);
    printf("\nexamples:\n");
    for (const char *e = p->examples; *e;) {
        size_t n = strcspn(e, "\n"), m = (size_t)(strstr(e, "  ") - e);

        printf("  %.*s\n      %.*s\n", (int)m, e, (int)(n - m - 2), e + m + 2);
        e += n + (e[n] == '\n');
    }
    return 0;
}

/* ---- which it is --------------------------------------------------------- */

/* Returns all names, or those of papers with pictures. */
static const char *names_of(bool pictures)
{
    static char known[200];

    *known = 0;
    for (const paper *p = papers; p->name; p++)
        if (p->pictures || !pictures) {
            strcat(known, *known ? ", " : "");
            strcat(known, p->name);
        }
    return known;
}

static int no_paper(const char *name)
{
    return name ? papers_say(PAPERS_USAGE, "no paper \"%s\"; there are %s",
                             name, names_of(false))
                : papers_say(PAPERS_USAGE, "name what to compute: %s",
                             names_of(false));
}

/* Checks that there is a picture of what is asked for. */
static int check_picture(const papers_args *a)
{
    const char *have = a->paper->pictures;

    if (!have)
        return papers_say(PAPERS_USAGE,
                          "--svg: %s has no picture; there are those of %s",
                          a->paper->name, names_of(true));
    if (!a->scenario || strchr(have, (int)('0' + a->scenario)))
        return 0;
    return papers_say(PAPERS_USAGE,
                      "--svg: scenario %zu of %s has no picture; there are "
                      "those of %.1s%s%s",
                      a->scenario, a->paper->name, have, have[1] ? " to " : "",
                      have[1] ? have + strlen(have) - 1 : "");
}

/* Checks that --points and --labels fit the other options, and that the files
 * can be used, before anything is computed. */
static int check_points(const papers_args *a, bool with_images)
{
    kofn_status st;
    images p;

    if (!with_images)
        return papers_say(PAPERS_USAGE,
                          "--points: goes with dnn but for --scenario 1");
    if (!a->points || !a->labels)
        return papers_say(PAPERS_USAGE, "%s: goes with %s; give both",
                          a->points ? "--points" : "--labels",
                          a->points ? "--labels" : "--points");
    if (a->mnist)
        return papers_say(PAPERS_USAGE, "--mnist, --points: give one of them");
    st = papers_points(a, &p);
    images_free(&p);
    return st ? papers_ended(st) : 0;
}

static int check(const papers_args *a)
{
    const paper *p = a->paper;
    bool with_images =
        a->scenario == 6 || (p->bit == PAPER_DNN && a->scenario != 1);

    if (a->scenario > p->scenarios)
        return papers_say(PAPERS_USAGE, "--scenario %zu: %s has 1 to %zu",
                          a->scenario, p->name, p->scenarios);
    if (a->scale > p->most_scale)
        return papers_say(PAPERS_USAGE, "--scale %g: %s takes at most %g, %s",
                          a->scale, p->name, p->most_scale, p->most);
    if (a->mnist && !with_images)
        return papers_say(
            PAPERS_USAGE,
            "--mnist: goes with stream --scenario 6, and with dnn "
            "but for --scenario 1");
    if (a->svg && check_picture(a))
        return PAPERS_USAGE;
    return a->points || a->labels ? check_points(a, with_images) : 0;
}

static int run(const paper *p, int argc, char **argv)
{
    papers_args a = {.paper = p,
                     .seed = 1,
                     .aet = {20, 3, 0.05, 1, 1, 0},
                     .stream = {0, 5, 0.3, 0},
                     .delay = 3};
    int code = papers_parse(argc, argv, &a);

    if (!code && a.help)
        return help_paper(p);
    if (!code)
        code = check(&a);
    if (!code)
        code = p->run ? p->run(&a) : papers_scenarios(&a, 0);
    if (code)
        papers_print_failure(&a);
    return code;
}

/* OpenBLAS chooses its kernels when it is loaded, before main. If they are too
 * slow, the process restarts with another choice. */
static void choose_blas(char **argv)
{
    kofn_machine m = KOFN_MACHINE_INIT;

    kofn_machine_info(&m);
    if (m.coretype && !getenv("OPENBLAS_CORETYPE") &&
        setenv("OPENBLAS_CORETYPE", m.coretype, 1) == 0)
        execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const paper *p = papers;
    int code;

    choose_blas(argv);
    setlocale(LC_CTYPE, ""); /* selects the terminal's character set */
    if (argc == 4 && !strcmp(name, PROCESSES_WORKER))
        return processes_serve(argv[2], argv[3]);
    while (name && p->name && strcmp(p->name, name) != 0)
        p++;
    if (name && (!strcmp(name, "--help") || !strcmp(name, "-h")))
        code = help();
    else if (!name || !p->name)
        code = no_paper(name);
    else
        code = run(p, argc - 1, argv + 1);
    if (fflush(stdout) || ferror(stdout))
        code = papers_say(code ? code : 1, "stdout: %s", strerror(errno));
    return code;
}
