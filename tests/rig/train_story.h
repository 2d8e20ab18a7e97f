/* train_story.h -- a training on the simulated mesh to which a few things
 * happen, each before a packet of that number: nodes die, stop, are cut off,
 * come, err, lie, and are all lost.  Whatever happens,
 *
 *   - every vector of a node that did not err is the plain training's, and two
 * under one mark are the same (mesh_sim.h);
 *   - its blocks are the coded weights of the step where its vector is, to
 * rounding;
 *   - no node goes back to an earlier iterate but in another attempt (back.c);
 *   - all who are there end, with the plain weights.
 */
#ifndef KF_TEST_TRAIN_STORY_H
#define KF_TEST_TRAIN_STORY_H

#include "keep_rig.h"
#include "train_mesh_rig.h"

#include <sys/stat.h>

#define AWAY (300 * MS) /* longer than a silence */
#define BLOWS 8

/* What happens to a node.  From FLIP on numbers become wrong. */
enum {
    DIE,      /* for good, where enough others are left; else as REPLACED     */
    STOP,     /* for longer than a silence                                    */
    APART,    /* cut off for longer than a silence                            */
    AGAIN,    /* dies, and is there again at once                             */
    REPLACED, /* dies, and another comes in its place                        */
    COME,     /* one more comes                                               */
    FLAP,     /* its connections break and are there again                    */
    ALL,      /* all are lost, and go on with what they kept                  */
    FLIP,     /* a bit of one of its blocks                                   */
    ENCODES,  /* it errs once, in ...                                         */
    MULTIPLIES,
    DECODES,
    MAKES,
    UPDATES,
    PIECES, /* from now on it lies about ...                                */
    DIGESTS,
    SKETCHES,
    VECTORS,
    BLOCKS,
    KINDS
};

static const char *const kind_names[KINDS] = {
    "die",        "stop",     "apart",   "again",   "replaced",
    "come",       "flap",     "all",     "flip",    "encodes",
    "multiplies", "decodes",  "makes",   "updates", "pieces",
    "digests",    "sketches", "vectors", "blocks"};

typedef struct blow {
    size_t when; /* before this packet */
    size_t node, kind;
} blow;

typedef struct story {
    const lesson *l;
    kofn_errors errors;
    uint64_t seed, every, scrub; /* every: 0: nothing is kept */
    unsigned epochs;
    bool tell, distributed;
    kofn_time give_up; /* 0: never */
    bool lost; /* so many err in the first attempt that they go back ... */
    uint64_t lost_at; /* ... as this turn ends */
    blow blow[BLOWS];
    size_t blows;
} story;

/* What was found, and what became of the nodes. */
typedef struct told {
    size_t packets, blocks, happened;
    size_t back, healed, again, outvoted, scrubs, adopted, left_out;
    double worst, drift;
} told;

static struct {
    const story *of;
    unsigned errs[SIM_NODES]; /* places where it will err, once  */
    bool erred[SIM_NODES];    /* its vector may be wrong         */
    bool flipped[SIM_NODES];  /* a block is wrong, as yet        */
    bool kept[SIM_NODES];     /* ... as what it has on disk      */
    bool filed[SIM_NODES];    /* ... or such a block as well     */
    bool bad[SIM_NODES];      /* it may be found to have erred   */
    unsigned lies[SIM_NODES]; /* set of types of notes           */
    size_t happened;
    double worst; /* of vectors of nodes that did not err */
} now;

static char now_told[400]; /* the story that is tried, for what fails */

/* ---- how it is told ------------------------------------------------------ */

static void name_story(const story *o)
{
    size_t n = (size_t)snprintf(
        now_told, sizeof now_told,
        "%s, %zu nodes, errors %d, seed %llu, every %llu%s%s:", o->l->scheme,
        o->l->nodes, (int)o->errors, (unsigned long long)o->seed,
        (unsigned long long)o->every, o->tell ? ", told" : "",
        o->distributed ? ", distributed" : "");

    for (size_t i = 0; i < o->blows && n < sizeof now_told; i++)
        n += (size_t)snprintf(now_told + n, sizeof now_told - n, " %s@%zu:%zu",
                              kind_names[o->blow[i].kind], o->blow[i].when,
                              o->blow[i].node);
}

static int tell_story(void **state)
{
    (void)state;
    if (now_told[0])
        print_message("the story that failed: %s\n", now_told);
    now_told[0] = 0;
    return 0;
}

/* ---- files --------------------------------------------------------------- */

/* Each node has one of its own, for its seat may be another's when it comes
 * again. */
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

/* ---- what is wrong ------------------------------------------------------- */

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
    bool lost = now.of->lost && n->host->back.attempt == 0 &&
                where == KOFN_FAULT_IN_PRODUCT && n->id <= n->sim->nodes / 2 &&
                t >= now.of->lost_at * f->turn;

    if (!(now.errs[n->id] & where) && !lost)
        return;
    now.errs[n->id] &= ~(unsigned)where;
    now.erred[n->id] |= where & (KOFN_FAULT_IN_DECODING | KOFN_FAULT_IN_VECTOR);
    now.flipped[n->id] |= where == KOFN_FAULT_IN_UPDATE;
    now.happened += !lost;
    for (size_t i = 0; i < numbers->rows; i++)
        spoil_all(n->sim, kf_at(numbers, i, 0), numbers->cols);
}

static void twist(sim *s, sim_packet *p)
{
    const kf_host *h = s->node[p->from].host;
    double *x = (double *)(void *)p->body;
    size_t n = p->p.body_bytes / sizeof *x;
    unsigned lies = now.lies[p->from];
    kf_note note;

    if (!lies || kf_note_read(&note, p->p.head, p->p.head_bytes, h->job))
        return;
    if (note.digest.exact && lies >> KF_NOTE_BEAT & 1) {
        note.digest.exact += 2 * (p->to + note.at.step);
        note.digest.sum += 1 + (double)p->to;
    } else if (n > 0 && lies >> note.type & 1) {
        spoil_all(s, x, n);
    } else {
        return;
    }
    kf_note_write(p->p.head, &note, h->job, p->body, p->p.body_bytes);
}

/* Is it the start's, which all nodes have in one place?  A block that is not
 * mixed lies there until it changes. */
static bool is_shared(const kofn_matrix *start, const double *x)
{
    const double *first = start->data;

    return x >= first && x < first + start->rows * start->ld;
}

/* By a factor of 2^512, or nearly all of the number. */
static void flip(sim *s, size_t id)
{
    const fixture *f = s->own;
    const kf_host *h = s->node[id].host;
    const kf_mesh_operand *o = &h->operand[kf_rng_below(&s->rng, f->l->layers)];
    const kf_block *b = o->block;
    double *x;
    uint64_t bits;

    if (h->seat == KOFN_NO_SEAT || !b || is_shared(&o->dense, b->lane[0].data))
        return;
    x = kf_at(&b->lane[0], kf_rng_below(&s->rng, b->rows),
              kf_rng_below(&s->rng, b->cols));
    memcpy(&bits, x, sizeof bits);
    bits ^= UINT64_C(1) << 62;
    memcpy(x, &bits, sizeof bits);
    now.flipped[id] = true;
    now.happened++;
}

/* ---- what happens -------------------------------------------------------- */

/* Blocks of the last step, without those of this node. */
static size_t count_whole(const sim *s, size_t without)
{
    uint64_t last = 0;
    size_t whole = 0;

    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].up)
            last = kf_max(last, s->node[i].host->changing.turn);
    for (size_t i = 0; i < s->nodes; i++)
        whole += i != without && s->node[i].up && !now.flipped[i] &&
                 !s->node[i].turncoat &&
                 s->node[i].host->seat != KOFN_NO_SEAT &&
                 s->node[i].host->changing.turn + 1 >= last;
    return whole;
}

/* Nodes without which nothing goes on. */
static size_t needed(const sim *s)
{
    const fixture *f = s->own;
    size_t enough = 0;

    for (size_t i = 0; i < f->l->layers; i++) {
        enough = kf_max(enough, f->plan[i]->layout.enough);
        enough = kf_max(enough, f->plan[i]->left->layout.enough);
    }
    if (s->opt.errors != KOFN_ERRORS_NONE) /* and a vector is believed of two */
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
    const double *v = s->node[id].host->v->m.data;
    const double *right = f->ref + iterates(f) * rows;

    for (size_t i = first; i < rows; i++)
        if (!(fabs(v[i] - right[i]) <= 1e-9))
            fail_msg("node %zu ends with %g for %g", id, v[i], right[i]);
}

/* Also of one who had gone with the result: that is looked at while it is
 * there. */
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
    s->node[id].turncoat = now.lies[id] != 0;
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

/* What ends of itself: 0: cuts; 1 + a node: it comes again. */
static void later(sim *s, size_t what)
{
    if (what == 0)
        sim_heal(s);
    else if (!s->node[what - 1].up)
        begin_node(s, what - 1, false);
}

/* A node whose block the others need is not lost for good. */
static void die(sim *s, size_t id, bool replaced)
{
    const fixture *f = s->own;
    size_t left = count_whole(s, id);

    if (left < f->reads + (s->opt.errors != KOFN_ERRORS_NONE) &&
        s->node[id].host->changing.turn > 0 && !s->opt.keep)
        return;
    lose(s, id);
    now.happened++;
    if (replaced || left < needed(s))
        sim_at(s, s->now + AWAY, SIM_FAULT, 0, 1 + id);
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

static void lie(sim *s, size_t id, size_t kind)
{
    static const kf_note_type of[] = {KF_NOTE_PIECE, KF_NOTE_BEAT,
                                      KF_NOTE_SKETCH, KF_NOTE_VECTOR,
                                      KF_NOTE_BLOCK};

    now.happened++;
    now.lies[id] |= 1u << of[kind - PIECES];
    s->node[id].turncoat = true;
}

static void happens_to(sim *s, size_t id, size_t kind)
{
    sim_node *n = &s->node[id];

    now.happened += kind == STOP || kind == APART || kind == FLAP;
    now.bad[id] |= kind >= FLIP;
    switch (kind) {
    case STOP:
        n->stopped = s->now + AWAY;
        break;
    case APART:
        for (size_t i = 0; i < s->nodes; i++)
            s->cut[i][id] = s->cut[id][i] = true;
        sim_at(s, s->now + AWAY, SIM_FAULT, 0, 0);
        break;
    case FLAP:
        flap(s, id);
        break;
    case FLIP:
        flip(s, id);
        break;
    case ENCODES:
    case MULTIPLIES:
    case DECODES:
    case MAKES:
    case UPDATES:
        now.errs[id] |= (unsigned)KOFN_FAULT_IN_ENCODING << (kind - ENCODES);
        break;
    default:
        lie(s, id, kind);
    }
}

static void strike(sim *s, const blow *b)
{
    size_t id = b->node;
    bool up = s->node[id].up;

    if (b->kind == ALL) {
        now.happened++;
        lose_all(s);
    } else if (b->kind == COME) {
        if (up)
            return;
        now.happened++;
        begin_node(s, id, false);
    } else if (up && b->kind == AGAIN) {
        die(s, id, false);
        if (!s->node[id].up)
            begin_node(s, id, false);
    } else if (up && b->kind <= REPLACED && b->kind != STOP &&
               b->kind != APART) {
        die(s, id, b->kind == REPLACED);
    } else if (up) {
        happens_to(s, id, b->kind);
    }
}

static void inject(sim *s)
{
    for (size_t i = 0; i < now.of->blows; i++)
        if (now.of->blow[i].when == s->delivered)
            strike(s, &now.of->blow[i]);
}

/* ---- what must hold ------------------------------------------------------ */

static void blame(sim *s, size_t by, size_t who)
{
    if (!now.bad[who] && !now.of->lost)
        fail_msg("node %zu takes node %zu for a liar at %.3g s", by, who,
                 (double)s->now * 1e-9);
}

/* A node that errs has a wrong vector until it finds that; the others never
 * have. */
static void compare_vector(sim *s, const sim_node *n)
{
    size_t rows = s->v0.rows;
    const double *v = n->host->v->m.data, *right = s->ref + n->seen.step * rows;
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
        now.flipped[id] = true; /* what it makes of it changes its blocks; a
                                   draft is read before it was compared */
    if (!now.flipped[id]) {
        measure_blocks(s, id);
        if (!(f->drift <= 1e-11))
            fail_msg("node %zu: its blocks of step %llu are off by %g", id,
                     (unsigned long long)s->node[id].host->changing.turn,
                     f->drift);
        return;
    }
    if (s->node[id].host->seat == KOFN_NO_SEAT)
        return; /* it may make them anew of what is wrong still */
    measure_blocks(s, id);
    now.flipped[id] = !(f->drift <= 1e-11);
    if (s->node[id].host->changing.turn > 0) /* a draft is read with a vector */
        now.filed[id] = false;
    if (now.flipped[id])
        f->drift = before.drift;
}

/* One that has failed may wait for others to go back with it. */
static bool all_have_ended(const sim *s)
{
    for (size_t i = 0; i < s->nodes; i++) {
        const sim_node *n = &s->node[i];

        if (n->up && !n->turncoat && !n->status && !kf_host_is_over(n->host))
            return false;
    }
    return true;
}

/* ---- the whole ----------------------------------------------------------- */

static void story_up(sim *s, fixture *f, const story *o)
{
    memset(&now, 0, sizeof now);
    now.of = o;
    name_story(o);
    mesh_up(s, f, o->l, o->epochs, o->seed);
    s->nodes++; /* one more may come */
    s->tell = o->tell;
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
        s->twist = twist;
        s->blamed = blame;
        s->evil = &now; /* who leaves out others' pieces may round otherwise */
        s->lenient = true; /* look_at_node is not */
    }
    for (size_t i = 0; i < o->l->nodes; i++)
        begin_node(s, i, true);
}

static void story_end(sim *s, fixture *f, told *sum)
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
        sum->healed += v.healed;
        sum->scrubs += v.scrubs;
        sum->adopted += v.adopted;
        sum->outvoted += v.outvoted;
        sum->left_out += v.left_out;
    }
    sum->packets += s->delivered;
    sum->blocks += f->blocks;
    sum->happened += now.happened;
    sum->worst = fmax(sum->worst, now.worst);
    sum->drift = fmax(sum->drift, f->drift);
}

#endif
