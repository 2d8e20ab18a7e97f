/* core.c -- the coordinator as a state machine, driven by hand, and a trace of
 * the run. */
#include "example.h"

#include <kofn/core.h>

static kofn_core *core;
static kofn_drawing *drawing;
static uint64_t digest;
static kofn_event later[100]; /* answers that are on their way */
static size_t waiting;
static bool delivered;

/* Answers an action, as workers that never fail would. */
static void answer(const kofn_action *a)
{
    kofn_event ev = {.worker = a->worker,
                     .product = a->product,
                     .task = a->task,
                     .row = (uint32_t)a->row};

    if (a->type == KOFN_DO_STORE)
        ev.type = KOFN_EV_STORED;
    else if (a->type == KOFN_DO_WORK)
        ev.type = KOFN_EV_RESULT;
    else if (a->type == KOFN_DO_DELIVER)
        delivered = a->status == KOFN_OK;
    if (ev.type && waiting < 100)
        later[waiting++] = ev;
}

/* Processes an event, and takes all actions of this step. */
static void step(kofn_event ev)
{
    static kofn_time now;
    kofn_action a;

    ev.now = now += KOFN_SECOND / 1000;
    must(kofn_drawing_event(drawing, &ev));
    must(kofn_core_step(core, &ev));
    while (kofn_core_next(core, &a)) {
        must(kofn_drawing_action(drawing, &a));
        digest = kofn_action_digest(digest, &a);
        answer(&a);
    }
}

static void print(void *ud, const char *words)
{
    (void)ud;
    printf("    %s\n", words);
}

/* Lets three workers join, and computes one product. */
static void run(void)
{
    for (uint32_t i = 0; i < 3; i++)
        step((kofn_event){.type = KOFN_EV_JOINED, .worker = i});
    while (waiting > 0)
        step(later[--waiting]);
    step((kofn_event){.type = KOFN_EV_BEGIN, .product = 1});
    kofn_core_tell(core, print, NULL);
    while (waiting > 0 && !delivered)
        step(later[--waiting]);
    expect(delivered && digest != 0, "the product is delivered");
}

/* Makes the trace of the run, a file for ui.perfetto.dev, and a report, which
 * has the name of worker 0 and the totals as a journal says them. */
static void draw(const kofn_plan *plan)
{
    kofn_drawing_options opt = KOFN_DRAWING_OPTIONS_INIT;
    kofn_note over = {.own = "over", .product = 1, .round = 1};
    kofn_report total = KOFN_REPORT_INIT;

    opt.trace = "example.trace";
    opt.report = "example.html";
    must(kofn_drawing_new(&drawing, core, plan, &opt));
    run();
    over.now = KOFN_SECOND;
    kofn_drawing_note(drawing, &over);
    total.rounds = 1;
    must(kofn_drawing_name(drawing, 0, "node7"));
    must(kofn_drawing_totals(drawing, &total, "all went well"));
    must(kofn_drawing_end(drawing, true));
    expect(remove("example.html") == 0, "the report was written");
    expect(remove("example.trace") == 0, "the trace was written");
}

int main(void)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 4, 1, KOFN_F64, false);
    kofn_core_options opt = KOFN_CORE_OPTIONS_INIT;
    const kofn_plan *one[1];
    kofn_plan *plan;

    must(kofn_plan_new(&plan, &pb, "mds:k=2", 3, 1));
    one[0] = plan;
    must(kofn_core_new_all(&core, one, 1, &opt));
    draw(plan);
    kofn_core_free(core);
    kofn_plan_free(plan);
    return 0;
}
