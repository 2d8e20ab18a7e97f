/* fuzz_train.c -- fuzzes a node that trains without a coordinator.  Other nodes
 * send it epochs, iterates ahead of the node, and the requested blocks.  These
 * have wrong lengths, seats, steps and matrices.
 *
 * Default fuzz-iterations: 10000. */
#include "drawn_peers.h"

#include "learn/training.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LAYERS 2
#define POINTS 3
#define TURNS 8

static kofn_plan *plan[LAYERS];
static kofn_net *net;
static kofn_training *training;

static void make_training(void)
{
    static const size_t widths[] = {4, 3, 2};
    static double points[POINTS * 4], labels[POINTS] = {0, 1, 0};
    const kofn_net_shape shape = {
        .size = sizeof shape, .layers = LAYERS, .widths = widths};
    const kofn_matrix X = {points, POINTS, 4, 4, KOFN_F64};
    const kofn_matrix y = {labels, POINTS, 1, 1, KOFN_F64};
    const kofn_train_options o = {.size = sizeof o,
                                  .step = 0.1,
                                  .momentum = 0.5,
                                  .batch = POINTS,
                                  .epochs = TURNS};

    for (size_t i = 0; i < POINTS * 4; i++)
        points[i] = (double)(i % 5) / 4;
    MUST(kofn_net_new(&net, &shape, 1) == KOFN_OK);
    MUST(kofn_training_new(&training, net, &X, &y, &o) == KOFN_OK);
    MUST(kofn_training_plans(training, "gpd:m=2,n=1,p=1", 4, 1, plan) ==
         KOFN_OK);
}

/* Makes an honest note. If blocks were requested, it is a block of the node's
 * iterate or of one some steps ahead. Else it names the members or a position.
 */
static void honest_note(drawn_peers *s, kofn_peer peer, kf_note *n)
{
    const kf_changing *c = &s->host->blocks.changing;
    uint64_t each = 2 * LAYERS - 1, turn = c->turn;
    bool ahead = next(&s->d, 4) == 0;

    n->from = 2 + peer;
    n->seat = peer;
    if (s->asked == KF_NOTE_READ && !ahead) {
        n->type = KF_NOTE_BLOCK;
        n->group = next(&s->d, 8) ? c->window.operand : next(&s->d, LAYERS);
        n->rows.lo = c->window.lo;
        n->rows.hi = c->window.hi + (next(&s->d, 8) == 0);
        n->at = (kofn_iterate_id){turn * each,
                                  c->line[turn % s->host->program.recalls]};
        return;
    }
    n->epoch = (kofn_epoch){1, 2};
    n->at = (kofn_iterate_id){each * kf_min(turn + (ahead ? 5 : 0), TURNS), 0};
    n->final = false;
    n->word[0] =
        next(&s->d, 2) ? s->host->it.at.step + 1 : 0; /* a part, or all */
    n->word[1] = s->host->it.at.lineage;
    n->type = s->asked == KF_NOTE_ASK ? KF_NOTE_VECTOR
              : next(&s->d, 2)        ? KF_NOTE_EPOCH
                                      : KF_NOTE_BEAT;
}

static void run(drawn_peers *s)
{
    kofn_peer_options o = {.size = sizeof o,
                           .nodes = 3,
                           .incarnation = 1,
                           .confirm = 1,
                           .give_up = 60 * KOFN_SECOND};
    kofn_status st = KOFN_OK;
    kofn_program program;
    kf_train_mesh m;
    kofn_matrix v;

    o.seat = next(&s->d, 2) ? 3 : KOFN_NO_SEAT;
    o.decoding =
        next(&s->d, 2) ? KOFN_DECODE_REPLICATED : KOFN_DECODE_DISTRIBUTED;
    MUST(kf_train_mesh_new(&m, training, (const kofn_plan *const *)plan,
                           &program, &v) == KOFN_OK);
    MUST(kf_host_new(&s->host, &s->base, &program, &o, &v,
                     (kf_timer){peers_clock, s}) == KOFN_OK);
    while (s->d.left && !st) {
        bool worked;

        st = kf_host_pass(s->host, &worked);
    }
    MUST(!st || *kofn_errmsg());
    kf_host_free(s->host);
    kf_train_mesh_free(&m);
    MUST(s->out == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    drawn_peers s = {
        .base = drawn_transport, .d = {data, size}, .honest = honest_note};
    size_t before;

    s.base.whole = size && data[0] / 64 % 2; /* as a connection with keys */
    watch_memory();
    if (!training)
        make_training();
    before = held;
    most = held + ((size_t)16 << 20);
    run(&s);
    MUST(held == before);
    most = SIZE_MAX;
    return 0;
}
