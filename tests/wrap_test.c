/* wrap_test.c -- a coordinator that sends sizes whose products and sums wrap
 * round: its worker refuses them, and touches nothing that is not its own. */
#include "rig.h"

#include "run/wire.h"

enum { DENSE, SPARSE, SUM }; /* as recipe.c has them */

#define ALL UINT64_MAX

/* ---- what it writes -------------------------------------------------------------- */

typedef struct note {
    unsigned char p[4096];
    size_t n;
} note;

static void put(note *b, const void *p, size_t n)
{
    assert_true(n <= sizeof b->p - b->n);
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void number(note *b, uint64_t x)
{
    put(b, &x, sizeof x);
}

static void real(note *b, double x)
{
    put(b, &x, sizeof x);
}

static void begin(note *b, uint64_t kind, uint64_t lanes, uint64_t rows,
                  uint64_t cols)
{
    b->n = 0;
    number(b, kind);
    number(b, KOFN_F64);
    number(b, lanes);
    number(b, rows);
    number(b, cols);
    number(b, 0); /* no file */
}

/* `used` plain parts without an entry. */
static void sparse(note *b, uint64_t lanes, uint64_t rows, uint64_t used)
{
    begin(b, SPARSE, lanes, rows, 4);
    number(b, rows); /* of the operand */
    number(b, 0);
    number(b, used);
    for (uint64_t j = 0; j < used; j++)
        number(b, 0);
    for (uint64_t j = 0; j < used * lanes; j++)
        real(b, 1);
}

/* Lanes that are zero throughout: nothing is stored for them. */
static void zeros(note *b, uint64_t lanes, uint64_t rows)
{
    begin(b, DENSE, lanes, rows, 1);
    number(b, rows);
    number(b, 1);
    number(b, 1);
    number(b, 1);
    number(b, 1);
    for (uint64_t l = 0; l < lanes; l++)
        number(b, 0);
}

/* Of no part: nothing is computed and nothing stored. */
static void sum(note *b, uint64_t lanes, uint64_t pieces, uint64_t span)
{
    static const char name[] = "loss-gradient";

    begin(b, SUM, lanes, 4, 4);
    number(b, strlen(name));
    put(b, name, strlen(name));
    for (int i = 0; i < KOFN_FORMULA_ARGS; i++)
        real(b, i == 1);
    number(b, 4); /* points */
    number(b, 3); /* columns */
    number(b, 2); /* parts of the sum */
    number(b, 4); /* length */
    number(b, pieces);
    number(b, span);
    number(b, 1); /* turns */
    number(b, 0); /* parts here */
}

/* ---- recipes --------------------------------------------------------------------- */

static kofn_status read_it(const note *b)
{
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kf_recipe r;
    kofn_status st;

    o.memory = (size_t)1 << 20;
    st = kf_recipe_read(&r, b->p, b->n, &o);
    if (st == KOFN_OK) {
        kf_recipe_free(&r);
        kofn_block_drop(r.block);
    }
    return st;
}

static void recipes(void **state)
{
    note b;

    (void)state;
    sparse(&b, 1, 100, 3);
    assert_ok(read_it(&b)); /* it is its sizes that are wrong below */
    sparse(&b, 1, ALL / 17, 17); /* used rows + 1 is 0 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);
    sparse(&b, 1, ALL / 51, 51);
    assert_int_equal(read_it(&b), KOFN_FORMAT);
    sparse(&b, 17, ALL / 17 + 1, 0); /* lanes rows is 16 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);

    zeros(&b, 4, 100);
    assert_ok(read_it(&b));
    zeros(&b, 17, ALL / 17 + 1);
    assert_int_equal(read_it(&b), KOFN_FORMAT);

    sum(&b, 4, 1, 4);
    assert_ok(read_it(&b));
    sum(&b, 17, 1, ALL / 17 + 1); /* lanes span is 16 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);
    sum(&b, 1, 17, ALL / 17 + 1); /* pieces span is 16 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);
}

/* ---- tasks ----------------------------------------------------------------------- */

/* They would fit but for the size of their result. */
static void tasks(void **state)
{
    kofn_matrix in = {NULL, 1, 1, 1, KOFN_F64};
    kofn_matrix out = {NULL, 16, 1, 1, KOFN_F64}; /* 17 (ALL / 17 + 1) */
    kf_share share = {.lanes = 17, .span = ALL / 17 + 1, .turns = 1};
    kofn_block zero = {.lanes = 17, .rows = ALL / 17 + 1, .cols = 1};
    kofn_block left = {.lanes = 17, .rows = 1, .cols = 1};
    kofn_block turn = {.share = &share};
    kofn_msg m = {.how = KOFN_ROWS, .lo = 0, .hi = ALL / 17 + 1};

    (void)state;
    assert_int_equal(kf_work_fits(&zero, &m, &in, &out), KOFN_SHAPE);
    m.how = KOFN_TURN;
    assert_int_equal(kf_work_fits(&turn, &m, &in, &out), KOFN_SHAPE);
    m.how = KOFN_LEFT_ROWS;
    in.rows = m.hi;
    assert_int_equal(kf_work_fits(&left, &m, &in, &out), KOFN_SHAPE);
    m.hi = 3;
    out.rows = 51;
    assert_ok(kf_work_fits(&left, &m, &in, &out));
}

/* ---- a worker ---------------------------------------------------------------------- */

/* A transport whose other end says WELCOME, STORE, whatever is asked for and
 * then WORK. */
typedef struct office {
    kofn_transport base;
    note recipe;
    kf_head asked, work;
    unsigned char body[1 << 16];
    int said;
    bool refused; /* the worker ended without doing the work */
} office;

static kofn_status office_send(kofn_transport *t, kofn_peer peer,
                               const void *head, size_t head_bytes,
                               const void *body, size_t body_bytes, bool urgent,
                               void (*done)(void *ud), void *ud)
{
    office *o = (office *)t;
    kf_head h;

    (void)peer, (void)body, (void)body_bytes, (void)urgent;
    assert_ok(kf_head_read(&h, head, head_bytes));
    if (h.type == KF_WIRE_NEED)
        o->asked = h;
    o->refused &= h.type != KF_WIRE_RESULT;
    if (done)
        done(ud);
    return KOFN_OK;
}

/* What comes next: 64 KiB of 'A' where a piece is asked for. */
static size_t say(office *o, kf_head *h)
{
    switch (o->said++) {
    case 1:
        h->type = KF_WIRE_WELCOME;
        return 0;
    case 2:
        h->type = KF_WIRE_STORE;
        memcpy(o->body, o->recipe.p, o->recipe.n);
        h->id = kf_checksum(~h->job, o->body, o->recipe.n);
        return o->recipe.n;
    case 3:
        h->type = KF_WIRE_PIECE;
        h->id = o->asked.id;
        h->turn = o->asked.turn;
        h->hi = sizeof o->body / 8;
        memset(o->body, 'A', sizeof o->body);
        return sizeof o->body;
    case 4:
        *h = o->work;
        memset(o->body, 0, sizeof o->body);
        return h->rows * h->cols * 8;
    default:
        h->type = KF_WIRE_DISMISS;
        return 0;
    }
}

static kofn_status office_wait(kofn_transport *t, kofn_time atmost,
                               kofn_packet *k)
{
    office *o = (office *)t;
    kf_head h = {.job = 5};

    (void)atmost;
    *k = (kofn_packet){.what = KOFN_CAME, .peer = 1};
    if (o->said == 0) {
        o->said++;
        return KOFN_OK;
    }
    k->what = KOFN_PACKET;
    k->body_bytes = say(o, &h);
    h.job = 5;
    if (k->body_bytes) {
        k->body = o->body;
        h.body_sum = kf_checksum(h.job, o->body, k->body_bytes);
    }
    k->head_bytes = KF_HEAD;
    kf_head_write(k->head, &h);
    return KOFN_OK;
}

static void office_forget(kofn_transport *t, kofn_peer peer)
{
    (void)t, (void)peer;
}

static void office_close(kofn_transport *t, kofn_time linger)
{
    (void)t, (void)linger;
}

static kofn_status serve(office *o)
{
    kofn_serve_options opt = KOFN_SERVE_OPTIONS_INIT;

    o->base = (kofn_transport){.name = "test", .send = office_send,
                               .wait = office_wait, .forget = office_forget,
                               .close = office_close};
    o->refused = true;
    opt.memory = (size_t)1 << 20;
    return kofn_serve(&o->base, &opt);
}

static void workers(void **state)
{
    static office o;

    (void)state;
    sparse(&o.recipe, 1, ALL / 17, 17);
    assert_int_equal(serve(&o), KOFN_FORMAT);

    o = (office){.work = {.type = KF_WIRE_WORK, .how = KOFN_TURN, .rows = 4,
                          .cols = 1, .out_rows = 16, .out_cols = 1}};
    sum(&o.recipe, 17, 1, ALL / 17 + 1);
    assert_int_equal(serve(&o), KOFN_FORMAT);
    assert_true(o.refused);

    o = (office){.work = {.type = KF_WIRE_WORK, .how = KOFN_ROWS, .rows = 1,
                          .cols = 1, .hi = ALL / 17 + 1, .out_rows = 16,
                          .out_cols = 1}};
    zeros(&o.recipe, 17, ALL / 17 + 1);
    assert_int_equal(serve(&o), KOFN_FORMAT);
    assert_true(o.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipes),
        cmocka_unit_test(tasks),
        cmocka_unit_test(workers),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
