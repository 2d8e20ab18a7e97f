/* verdicts_test.c -- a campaign of wrong results against the verdicts on them.
 *
 * Rounds of every scheme with redundancy, few columns wide or many, in which
 * some of the workers err in every way that is thought of; answers come in a
 * random order and are asked for as the coordinator asks.  Whatever happens:
 * nobody honest is named, and what is delivered is as near to what honest
 * workers would have made of it as the floor says.
 *
 * The short form is a matter of seconds; KOFN_TEST_SCALE=320 tries a million
 * rounds, in some ten minutes.  The table of docs/errors.md is what this prints. */
#include "verdicts_rig.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY 7
#else
#define EVERY 1
#endif

/* ---- the campaign -------------------------------------------------------- */

typedef struct tally {
    size_t rounds, declared;
} tally;

static void print_table(tally table[MODES][2][WIDTHS])
{
    print_message("    declared failures by width; up to half, and beyond\n");
    for (size_t m = 0; m < DETECT; m++)
        for (size_t b = 0; b < 2; b++) {
            print_message("    %-13s %s", mode_names[m], b ? ">" : "<=");
            for (size_t w = 0; w < WIDTHS; w++)
                print_message("  %zu: %zu/%zu", widths[w],
                              table[m][b][w].declared, table[m][b][w].rounds);
            print_message("\n");
        }
}

static void campaign(void **state)
{
    static tally table[MODES][2][WIDTHS];
    size_t rounds = (size_t)ceil(test_scale()), all = 0;

    (void)state;
    for (size_t z = 0; z < CODES; z++) {
        fleet f;

        fleet_up(&f, codes[z].spec, codes[z].nodes);
        for (size_t i = 0; i < rounds * WIDTHS * WAYS * MODES;
             i += EVERY * codes[z].every) {
            trial t = {
                .f = &f,
                .r = kf_rng_stream(1, KF_FOR_SAMPLE, (uint32_t)z, (uint32_t)i)};
            size_t w = i % WIDTHS;
            tally *to;

            t.columns = widths[w];
            t.way = (way)(i / WIDTHS % WAYS);
            t.mode = (mode)(i / WIDTHS / WAYS % MODES);
            t.wide = kf_rng_below(&t.r, 2);
            t.liars = most_liars(&t);
            if (t.liars)
                t.liars = 1 + kf_rng_below(&t.r, t.liars);
            shuffle(t.liar, f.nodes, &t.r);
            t.constant = pow(10, 3 * kf_rng_uniform(&t.r) - 3);
            to = &table[t.mode][t.liars > half(&f)][w];
            to->rounds++;
            to->declared += run(&t) == DECLARED;
            all++;
        }
        fleet_down(&f);
    }
    print_message("    %zu rounds: nobody honest named, nothing wrong "
                  "delivered\n",
                  all);
    print_table(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(campaign)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
