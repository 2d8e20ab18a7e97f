/* main.c -- kofn-papers: published experiments and closed forms, computed, and
 * put beside what was published.  Every figure shown is computed in the run,
 * but for those said to be published. */
#include "show.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OF_PUBLISHED "the published size"
#define OF_RUNS "a thousand times as many runs"
#define OF_SEEDS "all seeds and steps"

/* By --scenario. */
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
     "kofn-papers pcr --scenario 2 --stale reset  as if sleepers woke up with "
     "every iteration",
     PAPER_PCR, papers_pcr, NULL, 4, 4, "1234", 1000, OF_RUNS},
    {"elastic", "coded elastic computing, simulated",
     "Products and regression on machines that come and go, with real matrices.",
     "kofn-papers elastic --scenario 3 --json  test errors of all 60 iterations\n"
     "kofn-papers elastic --scale 0.1  smaller matrices",
     PAPER_ELASTIC, NULL, elastic, 3, 3, "3", 1, OF_PUBLISHED},
    {"gradient", "adaptive gradient coding, simulated", "Against its formula.",
     "kofn-papers gradient --scale 10  ten times as many iterations",
     PAPER_GRADIENT, papers_gradient, gradient, 2, 2, "12", 1000, OF_RUNS},
    {"stream", "DIP and IDIP: streams of products",
     "Formulas and chains against rounds that are played out, and against "
     "products that are computed.",
     "kofn-papers stream --scenario 3  Table 1 of the paper on sequential codes\n"
     "kofn-papers stream --scenario 6 --scale 0.004  the same with networks that "
     "are trained",
     PAPER_STREAM, NULL, stream, 6, 4, "123", 1000, OF_RUNS},
    {"dnn", "training whose nodes err",
     "Nodes without a master that err, with a Generalized PolyDot code and without "
     "code, on threads; beside them the baselines of the paper, replication and two "
     "MDS codes, trained as well, on a simulated mesh or on threads; and how many "
     "nodes may be wrong. Scenario 2 takes a quarter of an hour of two cores, with "
     "--scale 0.1 a minute.",
     "kofn-papers dnn --scenario 3  a sparse autoencoder whose nodes err\n"
     "kofn-papers dnn --scenario 2 --scale 0.2  trainings under soft errors, one "
     "seed and two epochs\n"
     "kofn-papers dnn --scenario 2 --points X.npy --labels y.npy  the same with "
     "your own points, every fourth of them held out",
     PAPER_DNN, NULL, dnn, 3, 3, "12", 1, OF_SEEDS},
    {"aet", "what gradient codes take on the average",
     "The average execution time of an iteration under every gradient code, in "
     "closed form, when stragglers are started again; with --json one object of "
     "scheme and time.",
     "kofn-papers aet --n 20 --d 3 --p 0.05 --tcp 1 --tcm 1  and which is the "
     "least\n"
     "kofn-papers aet --p 0.1 --tcp 2.45 --tcm 13 --json  for machines",
     PAPER_AET, papers_aet, NULL, 0, 0, NULL, 0, NULL},
    {"agc-table", "Table VI of the paper on adaptive gradient coding",
     "As printed and without its two slips.",
     "kofn-papers agc-table  all 18 numbers, and what they should be",
     PAPER_AGC_TABLE, papers_agc_table, NULL, 0, 0, NULL, 0, NULL},
    {"rhat", "what streams of products take on the average",
     "The mean time of a round when a product begins in each, by that of a whole "
     "product on one worker, of a scheme or of the best of each. T of dip may be "
     "inf; idip goes with m and p or without, and early=no.",
     "kofn-papers rhat -n 4 --alpha 5 --delta 0.3  what is best where one in "
     "three is five times as slow\n"
     "kofn-papers rhat -n 4 --alpha 5 --delta 0.3 -s idip:N=10,W=4 --json  one "
     "of them, with the bounds of the paper",
     PAPER_RHAT, papers_rhat, NULL, 0, 0, NULL, 0, NULL},
    {"tolerance", "how many nodes that train a network may be wrong",
     "How many of the nodes, each with a block of the weights, may lie or fail "
     "under each of four redundancies, in closed form (Fig. 8 of the paper on "
     "Generalized PolyDot codes).",
     "kofn-papers tolerance --grid 3x3  for 9 to 100 nodes\n"
     "kofn-papers tolerance -n 12 --grid 2x2 --batch-cut 1,2 --json  thresholds, "
     "too",
     PAPER_TOLERANCE, papers_tolerance, NULL, 0, 0, "", 0, NULL},
    {"codes", "the same of the codes that kofn has, and what they cost",
     "What a coded training stands, keeps, sends and computes for a layer, how "
     "long messages take, and answers against numbers sent, each beside what was "
     "published.",
     "kofn-papers codes -n 12 --grid 2x2 --width 2048 --batch 256  Tables I to IV "
     "and Fig. 5 of the paper on Generalized PolyDot codes",
     PAPER_CODES, papers_codes, NULL, 0, 0, NULL, 0, NULL},
    {.name = NULL},
};

/* ---- help ---------------------------------------------------------------- */

static int help(void)
{
    printf(
        "kofn-papers NAME [options] -- published experiments and closed forms, "
        "computed\n\n");
    for (const paper *p = papers; p->name; p++)
        printf("  %-12s%s\n", p->name, p->summary);
    printf("\nkofn-papers NAME --help says more.  Ends with 0, with 1 where "
           "something fails, with\n2 where arguments are wrong.\n");
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

/* All names, or of those that have pictures. */
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

/* Is there a picture of what is asked for? */
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

/* Checks that --points and --labels fit what else is asked for, and that the
 * files can be used, before anything is computed. */
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

/* OpenBLAS chooses its kernels when it is loaded, before main: where it chose
 * some that are too slow, another choice takes a new start. */
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
    setlocale(LC_CTYPE, ""); /* for the terminal's character set */
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
