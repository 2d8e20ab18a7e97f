/* train_faults.h -- a training on the simulated mesh with a few faults. Each is
 * injected before a packet of a given number. Nodes die, stop, are cut off,
 * join, err, send wrong notes, and are all lost. In every run:
 *
 *   - every vector of a node that did not err equals the plain training's, and
 *     two vectors of one iterate are the same (mesh_sim.h);
 *   - its blocks are the coded weights of the step of its vector, to rounding;
 *   - no node returns to an earlier iterate except in a new attempt (back.c);
 *   - all nodes that are up end with the plain weights. */
#ifndef KF_TEST_TRAIN_FAULTS_H
#define KF_TEST_TRAIN_FAULTS_H

#include "keep_rig.h"
#include "train_mesh_rig.h"

#include <sys/stat.h>

#define ABSENCE (300 * MS) /* longer than the failure timeout */
#define FAULTS_MAX 8

/* Faults of a node. Numbers become wrong from FLIP on. */
enum {
    DIE,          /* for good if enough others are left; else as REPLACED */
    STOP,         /* for longer than the failure timeout */
    CUT_OFF,      /* cut off for longer than the failure timeout */
    RESTART,      /* dies and restarts at once */
    REPLACED,     /* dies, and another node replaces it */
    JOIN,         /* one more node joins */
    FLAP,         /* its connections break and are restored */
    LOSE_ALL,     /* all nodes are lost and resume from checkpoints */
    FLIP,         /* flips a bit of one of its blocks */
    ERR_ENCODING, /* errs once in this place */
    ERR_PRODUCT,
    ERR_DECODING,
    ERR_VECTOR,
    ERR_UPDATE,
    FALSE_PIECES, /* from now on its notes are false */
    FALSE_DIGESTS,
    FALSE_SKETCHES,
    FALSE_VECTORS,
    FALSE_BLOCKS,
    KINDS
};

static const char *const kind_names[KINDS] = {
    "die",     "stop",     "cut_off",  "restart", "replaced",
    "join",    "flap",     "lose_all", "flip",    "encoding",
    "product", "decoding", "vector",   "update",  "partial products",
    "digests", "sketches", "vectors",  "blocks"};

typedef struct timed_fault {
    size_t when; /* before this packet */
    size_t node, kind;
} timed_fault;

typedef struct scenario {
    const training_case *l;
    kofn_errors errors;
    uint64_t seed, every, scrub; /* every: 0 means no checkpoints */
    unsigned epochs;
    bool report_deaths, distributed;
    kofn_time give_up; /* 0: never */
    bool lost; /* enough nodes err in the first attempt that all return to a
                  checkpoint */
    uint64_t lost_at; /* they err at the end of this turn */
    timed_fault timed_fault[FAULTS_MAX];
    size_t timed_faults;
} scenario;

/* Counts of findings and of actions of the nodes. */
typedef struct outcome {
    size_t packets, blocks, injected;
    size_t back, rebuilt, again, outvoted, scrubs, adopted, left_out;
    double worst, drift;
} outcome;

static struct {
    const scenario *of;
    unsigned errs[SIM_NODES];      /* places where it will err once */
    bool erred[SIM_NODES];         /* its vector may be wrong */
    bool flipped[SIM_NODES];       /* one of its blocks is still wrong */
    bool kept[SIM_NODES];          /* its checkpoint has a wrong vector */
    bool filed[SIM_NODES];         /* its checkpoint has a wrong block */
    bool bad[SIM_NODES];           /* the node may rightly be found faulty */
    unsigned falsified[SIM_NODES]; /* set of types of notes that are false */
    size_t injected;
    double worst; /* largest error of nodes that did not err */
} now;

static char scenario_text[400]; /* describes the current run, for a failure */

/* ---- description --------------------------------------------------------- */

static void describe_scenario(const scenario *o)
{
    size_t n = (size_t)snprintf(
        scenario_text, sizeof scenario_text,
        "%s, %zu nodes, errors %d, seed %llu, every %llu%s%s:", o->l->scheme,
        o->l->nodes, (int)o->errors, (unsigned long long)o->seed,
        (unsigned long long)o->every,
        o->report_deaths ? ", deaths reported" : "",
        o->distributed ? ", distributed" : "");

    for (size_t i = 0; i < o->timed_faults && n < sizeof scenario_text; i++)
        n += (size_t)snprintf(scenario_text + n, sizeof scenario_text - n,
                              " %s@%zu:%zu", kind_names[o->timed_fault[i].kind],
                              o->timed_fault[i].when, o->timed_fault[i].node);
}

static int print_scenario(void **state)
{
    (void)state;
    if (scenario_text[0])
        print_message("the run that failed: %s\n", scenario_text);
    scenario_text[0] = 0;
    return 0;
}

/* ---- files --------------------------------------------------------------- */

/* Returns the folder of a node. Each node has its own, because its seat may
 * belong to another node when it restarts. */
static const char *folder_of(size_t id)
{
    static char path[SIM_NODES][sizeof folder + 8];

    snprintf(path[id], sizeof path[id], "%s/%zu", folder, id);
    return path[id];
}

static void empty_folders(void)
{
    for (size_t i = 0; i < SIM_NODES; i++)
        empty(folder_of(i));
}

static int make_folders(void **state)
{
    if (make_folder(state))
        return -1;
    for (size_t i = 0; i < SIM_NODES; i++)
        if (mkdir(folder_of(i), 0700))
            return -1;
    return 0;
}

static int remove_folders(void **state)
{
    empty_folders();
    for (size_t i = 0; i < SIM_NODES; i++)
        rmdir(folder_of(i));
    return remove_folder(state);
}

/* ---- wrong numbers ------------------------------------------------------- */

static void spoil_all(sim *s, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += 0.5 + sim_draw(s);
}

static void err(void *ud, kofn_fault_place where, uint64_t t,
                kofn_matrix *numbers)
{
    const sim_node *n = ud;
    const fixture *f = n->sim->own;
    bool lost = now.of->lost && n->host->disk.back.attempt == 0 &&
                where == KOFN_FAULT_IN_PRODUCT && n->id <= n->sim->nodes / 2 &&
                t >= now.of->lost_at * f->turn;

    if (!(now.errs[n->id] & where) && !lost)
        return;
    now.errs[n->id] &= ~(unsigned)where;
    now.erred[n->id] |= where & (KOFN_FAULT_IN_DECODING | KOFN_FAULT_IN_VECTOR);
    now.flipped[n->id] |= where == KOFN_FAULT_IN_UPDATE;
    now.injected += !lost;
    for (size_t i = 0; i < numbers->rows; i++)
        spoil_all(n->sim, kf_at(numbers, i, 0), numbers->cols);
}

static void tamper(sim *s, sim_packet *p)
{
    const kf_host *h = s->node[p->from].host;
    double *x = (double *)(void *)p->body;
    size_t n = p->p.body_bytes / sizeof *x;
    unsigned falsified = now.falsified[p->from];
    kf_note note;

    if (!falsified || kf_note_read(&note, p->p.head, p->p.head_bytes, h->job))
        return;
    if (note.digest.exact && falsified >> KF_NOTE_BEAT & 1) {
        note.digest.exact += 2 * (p->to + note.at.step);
        note.digest.sum += 1 + (double)p->to;
    } else if (n > 0 && falsified >> note.type & 1) {
        spoil_all(s, x, n);
    } else {
        return;
    }
    kf_note_write(p->p.head, &note, h->job, p->body, p->p.body_bytes);
}

/* True if `x` is part of the start matrix, which all nodes share. A block that
 * is not mixed is part of it until it changes. */
static bool is_shared(const kofn_matrix *start, const double *x)
{
    const double *first = start->data;

    return x >= first && x < first + start->rows * start->ld;
}

/* Flips a high bit of the exponent: the number changes by a factor of 2^512,
 * or by nearly its whole value. */
static void flip(sim *s, size_t id)
{
    const fixture *f = s->own;
    const kf_host *h = s->node[id].host;
    const kf_mesh_operand *o =
        &h->blocks.operand[kf_rng_below(&s->rng, f->l->layers)];
    const kf_block *b = o->block;
    double *x;
    uint64_t bits;

    if (h->blocks.seat == KOFN_NO_SEAT || !b ||
        is_shared(&o->dense, b->component[0].data))
        return;
    x = kf_at(&b->component[0], kf_rng_below(&s->rng, b->rows),
              kf_rng_below(&s->rng, b->cols));
    memcpy(&bits, x, sizeof bits);
    bits ^= UINT64_C(1) << 62;
    memcpy(x, &bits, sizeof bits);
    now.flipped[id] = true;
    now.injected++;
}

/* ---- injection ----------------------------------------------------------- */

/* Returns the number of valid blocks of the last step, without that of node
 * `without`. */
static size_t count_whole(const sim *s, size_t without)
{
    uint64_t last = last_turn(s);
    size_t whole = 0;

    for (size_t i = 0; i < s->nodes; i++)
        whole += i != without && s->node[i].up && !now.flipped[i] &&
                 !s->node[i].turncoat &&
                 s->node[i].host->blocks.seat != KOFN_NO_SEAT &&
                 s->node[i].host->blocks.changing.turn + 1 >= last;
    return whole;
}

/* Returns the number of nodes that the training needs to advance. */
static size_t needed(const sim *s)
{
    const fixture *f = s->own;
    size_t enough = 0;

    for (size_t i = 0; i < f->l->layers; i++) {
        enough = kf_max(enough, f->plan[i]->layout.enough);
        enough = kf_max(enough, f->plan[i]->left->layout.enough);
    }
    if (s->opt.errors !=
        KOFN_ERRORS_NONE) /* a vector needs two nodes that confirm it */
        enough = kf_max(enough + 1, 3);
    return kf_max(enough, f->l->nodes / 2 + 1);
}

static void clear_node(size_t id)
{
    now.erred[id] = now.flipped[id] = false;
    now.errs[id] = 0;
}

static void look_at_weights(const sim *s, size_t id)
{
    const fixture *f = s->own;
    size_t rows = f->v0.rows, first = rows - f->net->total;
    const double *v = s->node[id].host->it.v->m.data;
    const double *right = f->ref + iterates(f) * rows;

    for (size_t i = first; i < rows; i++)
        if (!(fabs(v[i] - right[i]) <= 1e-9))
            fail_msg("node %zu ends with %g for %g", id, v[i], right[i]);
}

/* Stops a node. If it had exited with the result, compares the weights first.
 */
static void lose(sim *s, size_t id)
{
    if (s->node[id].gone && !s->node[id].turncoat)
        look_at_weights(s, id);
    now.kept[id] |= now.erred[id];
    now.filed[id] |= now.flipped[id];
    clear_node(id);
    sim_stop(s, id);
}

static void begin_node(sim *s, size_t id, bool prepared)
{
    s->opt.keep = now.of->every ? folder_of(id) : NULL;
    sim_start(s, id, prepared);
    s->node[id].turncoat = now.falsified[id] != 0;
}

static void lose_all(sim *s)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].up)
            lose(s, i);
    s->opt.resume = true;
    for (size_t i = 0; i < now.of->l->nodes; i++)
        begin_node(s, i, true);
}

/* Ends a temporary fault. 0 restores the links; 1 + i restarts node i. */
static void end_fault(sim *s, size_t what)
{
    if (what == 0)
        sim_rebuil(s);
    else if (!s->node[what - 1].up)
        begin_node(s, what - 1, false);
}

/* Stops a node. A node with a block that the others need restarts later. */
static void die(sim *s, size_t id, bool replaced)
{
    const fixture *f = s->own;
    size_t left = count_whole(s, id);

    if (left < f->reads + (s->opt.errors != KOFN_ERRORS_NONE) &&
        s->node[id].host->blocks.changing.turn > 0 && !s->opt.keep)
        return;
    lose(s, id);
    now.injected++;
    if (replaced || left < needed(s))
        sim_at(s, s->now + ABSENCE, SIM_FAULT, 0, 1 + id);
}

static void flap(sim *s, size_t id)
{
    for (size_t i = 0; i < s->nodes; i++)
        if (i != id && s->node[i].up) {
            sim_link(s, i, id, KOFN_WENT);
            sim_link(s, id, i, KOFN_WENT);
            sim_link(s, i, id, KOFN_CAME);
            sim_link(s, id, i, KOFN_CAME);
        }
}

static void send_falsely(sim *s, size_t id, size_t kind)
{
    static const kf_note_type of[] = {KF_NOTE_PARTIAL, KF_NOTE_BEAT,
                                      KF_NOTE_SKETCH, KF_NOTE_VECTOR,
                                      KF_NOTE_BLOCK};

    now.injected++;
    now.falsified[id] |= 1u << of[kind - FALSE_PIECES];
    s->node[id].turncoat = true;
}

static void inject_into(sim *s, size_t id, size_t kind)
{
    sim_node *n = &s->node[id];

    now.injected += kind == STOP || kind == CUT_OFF || kind == FLAP;
    now.bad[id] |= kind >= FLIP;
    switch (kind) {
    case STOP:
        n->stopped = s->now + ABSENCE;
        break;
    case CUT_OFF:
        for (size_t i = 0; i < s->nodes; i++)
            s->cut[i][id] = s->cut[id][i] = true;
        sim_at(s, s->now + ABSENCE, SIM_FAULT, 0, 0);
        break;
    case FLAP:
        flap(s, id);
        break;
    case FLIP:
        flip(s, id);
        break;
    case ERR_ENCODING:
    case ERR_PRODUCT:
    case ERR_DECODING:
    case ERR_VECTOR:
    case ERR_UPDATE:
        now.errs[id] |= (unsigned)KOFN_FAULT_IN_ENCODING
                        << (kind - ERR_ENCODING);
        break;
    default:
        send_falsely(s, id, kind);
    }
}

static void inject_one(sim *s, const timed_fault *b)
{
    size_t id = b->node;
    bool up = s->node[id].up;

    if (b->kind == LOSE_ALL) {
        now.injected++;
        lose_all(s);
    } else if (b->kind == JOIN) {
        if (up)
            return;
        now.injected++;
        begin_node(s, id, false);
    } else if (up && b->kind == RESTART) {
        die(s, id, false);
        if (!s->node[id].up)
            begin_node(s, id, false);
    } else if (up && b->kind <= REPLACED && b->kind != STOP &&
               b->kind != CUT_OFF) {
        die(s, id, b->kind == REPLACED);
    } else if (up) {
        inject_into(s, id, b->kind);
    }
}

static void inject(sim *s)
{
    for (size_t i = 0; i < now.of->timed_faults; i++)
        if (now.of->timed_fault[i].when == s->delivered)
            inject_one(s, &now.of->timed_fault[i]);
}

/* ---- what must hold ------------------------------------------------------ */

static void blame(sim *s, size_t by, size_t node)
{
    if (!now.bad[node] && !now.of->lost)
        fail_msg("node %zu takes node %zu for faulty at %.3g s", by, node,
                 (double)s->now * 1e-9);
}

/* A node that errs has a wrong vector until it finds the error. The others
 * never have one. */
static void compare_vector(sim *s, const sim_node *n)
{
    size_t rows = s->v0.rows;
    const double *v = n->host->it.v->m.data,
                 *right = s->ref + n->seen.step * rows;
    double error = 0;

    assert_true(n->seen.step <= s->steps);
    for (size_t i = 0; i < rows; i++)
        error = fmax(error, fabs(v[i] - right[i]));
    if (error <= 1e-9) {
        now.erred[n->id] = false;
        now.worst = fmax(now.worst, error);
        return;
    }
    if (!now.erred[n->id] && !now.kept[n->id])
        fail_msg("node %zu: iterate %llu is off by %g", n->id,
                 (unsigned long long)n->seen.step, error);
    now.erred[n->id] = true;
    now.kept[n->id] = false;
}

static void look_at_node(sim *s, size_t id)
{
    fixture *f = s->own;
    const fixture before = *f;

    compare_vector(s, &s->node[id]);
    if (now.erred[id] || now.filed[id])
        now.flipped[id] =
            true; /* the node changes its blocks by the wrong vector; a draft is
                     read before it was compared */
    if (!now.flipped[id]) {
        measure_blocks(s, id);
        if (!(f->drift <= 1e-11))
            fail_msg("node %zu: its blocks of step %llu are off by %g", id,
                     (unsigned long long)s->node[id].host->blocks.changing.turn,
                     f->drift);
        return;
    }
    if (s->node[id].host->blocks.seat == KOFN_NO_SEAT)
        return; /* it may rebuild them from wrong numbers */
    measure_blocks(s, id);
    now.flipped[id] = !(f->drift <= 1e-11);
    if (s->node[id].host->blocks.changing.turn >
        0) /* a draft is read with a vector */
        now.filed[id] = false;
    if (now.flipped[id])
        f->drift = before.drift;
}

/* A node that has failed may wait for others to return to a checkpoint with
 * it. */
static bool all_have_ended(const sim *s)
{
    for (size_t i = 0; i < s->nodes; i++) {
        const sim_node *n = &s->node[i];

        if (n->up && !n->turncoat && !n->status && !kf_host_is_over(n->host))
            return false;
    }
    return true;
}

/* ---- a run --------------------------------------------------------------- */

static void scenario_up(sim *s, fixture *f, const scenario *o)
{
    memset(&now, 0, sizeof now);
    now.of = o;
    describe_scenario(o);
    mesh_up(s, f, o->l, o->epochs, o->seed);
    s->nodes++; /* one more node may join */
    s->report_deaths = o->report_deaths;
    s->opt.errors = o->errors;
    s->opt.confirm = o->errors == KOFN_ERRORS_NONE;
    s->opt.scrub = o->scrub;
    s->opt.give_up = o->give_up;
    s->exits = o->give_up > 0;
    s->opt.decoding =
        o->distributed ? KOFN_DECODE_DISTRIBUTED : KOFN_DECODE_REPLICATED;
    if (o->every)
        empty_folders();
    s->opt.every = o->every;
    s->inject = inject;
    s->look = look_at_node;
    if (o->errors != KOFN_ERRORS_NONE) {
        s->opt.fault = err;
        s->tamper = tamper;
        s->blamed = blame;
        s->hostile = &now; /* nodes that leave out other partial products may
                              round differently */
        s->lenient = true; /* look_at_node checks instead */
    }
    for (size_t i = 0; i < o->l->nodes; i++)
        begin_node(s, i, true);
}

static void scenario_end(sim *s, fixture *f, outcome *sum)
{
    for (size_t i = 0; i < s->nodes; i++) {
        const sim_node *n = &s->node[i];
        kofn_node_view v;

        if (!n->host || n->turncoat)
            continue;
        kf_host_look(n->host, &v);
        assert_int_equal(v.at.step, iterates(f));
        assert_int_equal(v.alone, 0);
        look_at_weights(s, i);
        sum->back += v.back;
        sum->again += v.again;
        sum->rebuilt += v.rebuilt;
        sum->scrubs += v.scrubs;
        sum->adopted += v.adopted;
        sum->outvoted += v.outvoted;
        sum->left_out += v.left_out;
    }
    sum->packets += s->delivered;
    sum->blocks += f->blocks;
    sum->injected += now.injected;
    sum->worst = fmax(sum->worst, now.worst);
    sum->drift = fmax(sum->drift, f->drift);
}

#endif
