/* faults.c -- simulated faults, and the table of options. */
#include "example.h"

#include <string.h>

static void read_events(void)
{
    static const char text[] = "2 leave 0\n3.5 corrupt 1 # half of round 3\n";
    kofn_fault_event *event, *other;
    size_t count;
    FILE *f = fopen("example.events", "w");

    expect(f && fputs(text, f) >= 0 && fclose(f) == 0, "the file is written");
    must(kofn_events_read(&event, &count, "example.events", 4, 10));
    must(kofn_events_parse(&other, &count, text, strlen(text), 4, 10));
    remove("example.events");
    expect(count == 2 && event[0].round == 2 && event[1].worker == 1 &&
               other[1].fraction == 0.5,
           "two events");
    kofn_free(event);
    kofn_free(other);
}

static void read_model(void)
{
    kofn_faults w = KOFN_FAULTS_INIT(.seed = 7);

    must(kofn_faults_parse(&w, "straggle=0.1,factor=5"));
    expect(w.straggle == 0.1 && w.factor == 5 && w.seed == 7, "the members");
    printf("nodes of a mesh have no `%s`\n", kofn_faults_not_of_nodes(&w));
}

/* Makes the slowdown of 4 workers in 10 rounds, with at most 2 in 3 rounds. */
static void make_pattern(void)
{
    kofn_matrix slow;
    const double *at;

    must(kofn_pattern_new(&slow, "arbitrary:N=2,W=3", 4, 10, 5, 1));
    at = slow.data;
    for (size_t r = 0; r + 3 <= slow.rows; r++) {
        int n = 0;

        for (size_t i = r * 4; i < (r + 3) * 4; i++)
            n += at[i] > 1;
        expect(n <= 2, "at most 2 in any 3 rounds");
    }
    kofn_free(slow.data);
}

static void spoil(void)
{
    double x[4] = {1, 2, 3, 4};
    const double right[4] = {1, 2, 3, 4};
    kofn_matrix numbers = matrix(x, 2, 2);

    kofn_faults_spoil(1, 0, 1, &numbers);
    expect(memcmp(x, right, sizeof x) != 0, "something is wrong now");
}

/* Sets an option by its name, as a command does for its user. */
static void set_option(const char *name, double given)
{
    const kofn_option *o;
    kofn_options opt;

    kofn_options_begin(&opt);
    for (size_t i = 0; (o = kofn_option_at(i)); i++)
        if (strcmp(o->name, name) == 0)
            must(kofn_option_set(&opt, o, given));
    o = kofn_option_in(KOFN_TABLE_REGRESS, 0);
    expect(strcmp(o->name, "loss") == 0, "a regression has a table as well");
    expect(opt.patience == 2 * KOFN_SECOND, "seconds become nanoseconds");
}

int main(void)
{
    read_events();
    read_model();
    make_pattern();
    spoil();
    set_option("patience", 2);
    return 0;
}
