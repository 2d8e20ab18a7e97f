/* verdicts_test.c -- a campaign of wrong results against the verdicts on them.
 *
 * Rounds run with every redundant scheme, with few columns or many. Some
 * workers err in every known way. Answers come in a random order and are asked
 * for as the coordinator does. No honest worker is named, and the output
 * differs from that of honest workers by the floor at most.
 *
 * The short form takes seconds. KOFN_TEST_SCALE=4630 tries a million rounds of
 * each code. `verdicts_test CODE FROM` tries only the code with that number in
 * the list, from round 216 FROM on, so that the outputs of several runs can be
 * added up. The output has the tables of docs/errors.md. The digest covers all
 * decisions: it changes if one of them does. */
#include "verdicts_rig.h"

#include <inttypes.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY 7
#else
#define EVERY 1
#endif

/* ---- the campaign -------------------------------------------------------- */

#define STRETCH (WIDTHS * WAYS * MODES)

typedef struct count {
    size_t rounds, declared;
} count;

typedef struct tally {
    count width[MODES][2][WIDTHS]; /* up to half, and beyond */
    count way[MODES][WAYS];
    size_t rounds;
    uint64_t digest;
} tally;

static struct {
    bool one;
    size_t code, from;
} only;

static void add(count *to, const count *c)
{
    to->rounds += c->rounds;
    to->declared += c->declared;
}

static void add_up(tally *all, const tally *t)
{
    for (size_t m = 0; m < MODES; m++)
        for (size_t b = 0; b < 2; b++)
            for (size_t w = 0; w < WIDTHS; w++)
                add(&all->width[m][b][w], &t->width[m][b][w]);
    all->rounds += t->rounds;
}

static void print_widths(const tally *t)
{
    for (size_t m = 0; m < DETECT; m++)
        for (size_t b = 0; b < 2; b++) {
            if (m == ADVERSARIAL && b)
                continue;
            print_message("    %-13s %s", mode_names[m], b ? ">" : "<=");
            for (size_t w = 0; w < WIDTHS; w++)
                print_message("  %zu: %zu/%zu", widths[w],
                              t->width[m][b][w].declared,
                              t->width[m][b][w].rounds);
            print_message("\n");
        }
}

/* Prints the adversarial rounds by the kind of error. */
static void print_ways(const tally *t)
{
    for (size_t y = 0; y < WAYS; y++)
        if (t->way[ADVERSARIAL][y].declared)
            print_message("    adversarial, %s: %zu/%zu\n", way_names[y],
                          t->way[ADVERSARIAL][y].declared,
                          t->way[ADVERSARIAL][y].rounds);
}

static void try_round(const code_case *f, size_t z, size_t i, tally *to)
{
    trial t = {.f = f,
               .r = kf_rng_stream(1, KF_FOR_SAMPLE, (uint32_t)z, (uint32_t)i),
               .columns = widths[i % WIDTHS],
               .way = (way)(i / WIDTHS % WAYS),
               .mode = (mode)(i / WIDTHS / WAYS % MODES),
               .digest = to->digest};
    count one = {.rounds = 1};

    t.wide = kf_rng_below(&t.r, 2);
    t.liars = most_liars(&t);
    if (t.liars)
        t.liars = 1 + kf_rng_below(&t.r, t.liars);
    shuffle(t.liar, f->nodes, &t.r);
    t.constant = pow(10, 3 * kf_rng_uniform(&t.r) - 3);
    one.declared = run(&t) == DECLARED;
    add(&to->width[t.mode][t.liars > half(f)][i % WIDTHS], &one);
    add(&to->way[t.mode][t.way], &one);
    to->rounds++;
    to->digest = t.digest;
}

static void try_code(size_t z, size_t stretches, tally *to)
{
    size_t from = only.from * STRETCH;
    code_case f;

    *to = (tally){.digest = KF_FNV};
    code_case_up(&f, codes[z].spec, codes[z].nodes);
    for (size_t i = 0; i < stretches * STRETCH;
         i += EVERY * (stretches > 1 ? 1 : codes[z].every))
        try_round(&f, z, from + i, to);
    code_case_down(&f);
}

static void campaign(void **state)
{
    static tally all, one;
    size_t stretches = (size_t)ceil(test_scale());

    (void)state;
    for (size_t z = 0; z < CODES; z++) {
        if (only.one && z != only.code)
            continue;
        try_code(z, stretches, &one);
        print_message("    %2zu %s of %zu: %zu rounds, digest %016" PRIx64 "\n",
                      z, codes[z].spec, codes[z].nodes, one.rounds, one.digest);
        add_up(&all, &one);
        if (stretches > 1 || only.one)
            print_widths(&one);
        print_ways(&one);
        fflush(stdout);
    }
    print_message("    %zu rounds: no honest worker named, nothing wrong "
                  "delivered\n    declared failures by width; up to half, and "
                  "beyond\n",
                  all.rounds);
    print_widths(&all);
}

TEST_FILE(verdicts_test)
{
    const struct CMUnitTest tests[] = {
        TEST(campaign,
             "verdicts: no honest worker is named, nothing wrong delivered")};

    only.one = argc > 1;
    only.code = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    only.from = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
