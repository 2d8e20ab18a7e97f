/* wrap_test.c -- a coordinator that sends sizes with products and sums that
 * wrap round. The worker refuses them, and touches no memory beyond its own. */
#include "scripted_coordinator.h"

#include <malloc.h>

enum { DENSE, SPARSE, SUM, EMPTY }; /* the kinds of block_spec.c */

#define ALL UINT64_MAX

/* ---- block specifications that are written ------------------------------- */

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

static void begin(note *b, uint64_t kind, uint64_t components, uint64_t rows,
                  uint64_t cols)
{
    b->n = 0;
    number(b, kind);
    number(b, KOFN_F64);
    number(b, components);
    number(b, rows);
    number(b, cols);
    number(b, 0); /* no file */
}

/* Writes a sparse block of `used` plain parts without an entry. */
static void sparse(note *b, uint64_t components, uint64_t rows, uint64_t used)
{
    begin(b, SPARSE, components, rows, 4);
    number(b, rows); /* rows of the operand */
    number(b, 0);
    number(b, used);
    for (uint64_t j = 0; j < used; j++)
        number(b, 0);
    for (uint64_t j = 0; j < used * components; j++)
        real(b, 1);
}

/* Writes a dense block of components that are zero. Nothing is stored for them.
 */
static void zeros(note *b, uint64_t components, uint64_t rows)
{
    begin(b, DENSE, components, rows, 1);
    number(b, rows);
    number(b, 1);
    number(b, 1);
    number(b, 1);
    number(b, 1);
    for (uint64_t l = 0; l < components; l++)
        number(b, 0);
}

/* Writes an empty block, which takes strips of others. Its components are zero.
 */
static void empty(note *b, uint64_t components, uint64_t cols)
{
    begin(b, EMPTY, components, 1, cols);
    for (uint64_t l = 0; l < components; l++)
        number(b, 0);
}

/* Writes a block for a sum without parts. Nothing is computed or stored. */
static void sum(note *b, uint64_t components, uint64_t slices, uint64_t span)
{
    static const char name[] = "loss-gradient";

    begin(b, SUM, components, 4, 4);
    number(b, strlen(name));
    put(b, name, strlen(name));
    for (int i = 0; i < KOFN_FORMULA_ARGS; i++)
        real(b, i == 1);
    number(b, 4); /* points */
    number(b, 3); /* columns */
    number(b, 2); /* parts of the sum */
    number(b, 4); /* length */
    number(b, slices);
    number(b, span);
    number(b, 1); /* submessages */
    number(b, 0); /* parts here */
}

/* ---- block specifications that are read ---------------------------------- */

static kofn_status read_it(const note *b)
{
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kf_block_spec r;
    kofn_status st;

    o.memory = (size_t)1 << 20;
    st = kf_block_spec_read(&r, b->p, b->n, &o);
    if (st == KOFN_OK) {
        kf_block_spec_free(&r);
        kf_block_drop(r.block);
    }
    return st;
}

static void block_specs(void **state)
{
    note b;

    (void)state;
    sparse(&b, 1, 100, 3);
    assert_ok(read_it(&b));      /* only the sizes are wrong below */
    sparse(&b, 1, ALL / 17, 17); /* used rows + 1 wraps to 0 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);
    sparse(&b, 1, ALL / 51, 51);
    assert_int_equal(read_it(&b), KOFN_FORMAT);
    sparse(&b, 17, ALL / 17 + 1, 0); /* components rows wraps to 16 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);

    sparse(&b, 1, 100,
           3); /* its products are float64, and have the same length */
    memcpy(b.p + sizeof(uint64_t), &(uint64_t){KOFN_F32}, sizeof(uint64_t));
    assert_int_equal(read_it(&b), KOFN_FORMAT);

    zeros(&b, 4, 100);
    assert_ok(read_it(&b));
    zeros(&b, 17, ALL / 17 + 1);
    assert_int_equal(read_it(&b), KOFN_FORMAT);

    empty(&b, 17, 100);
    assert_ok(read_it(&b));
    empty(&b, 17,
          ALL / 17 + 1); /* components cols, the length of V, wraps to 16 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);

    sum(&b, 4, 1, 4);
    assert_ok(read_it(&b));
    sum(&b, 17, 1, ALL / 17 + 1); /* components span wraps to 16 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);
    sum(&b, 1, 17, ALL / 17 + 1); /* slices span wraps to 16 */
    assert_int_equal(read_it(&b), KOFN_FORMAT);
}

/* ---- tasks --------------------------------------------------------------- */

/* The tasks would fit but for the size of their result. */
static void tasks(void **state)
{
    kofn_matrix in = {NULL, 1, 1, 1, KOFN_F64};
    kofn_matrix out = {NULL, 16, 1, 1,
                       KOFN_F64}; /* 17 (ALL / 17 + 1) wraps to 16 */
    kf_subset subset = {
        .components = 17, .span = ALL / 17 + 1, .submessages = 1};
    kf_block zero = {.components = 17, .rows = ALL / 17 + 1, .cols = 1};
    kf_block left = {.components = 17, .rows = 1, .cols = 1};
    kf_block submessage = {.subset = &subset};
    kf_msg m = {.how = KF_HOW_ROWS, .lo = 0, .hi = ALL / 17 + 1};

    (void)state;
    assert_int_equal(kf_work_fits(&zero, &m, &in, &out), KOFN_SHAPE);
    m.how = KF_HOW_SUBMESSAGE;
    assert_int_equal(kf_work_fits(&submessage, &m, &in, &out), KOFN_SHAPE);
    m.how = KF_HOW_LEFT_ROWS;
    in.rows = m.hi;
    assert_int_equal(kf_work_fits(&left, &m, &in, &out), KOFN_SHAPE);
    m.hi = 3;
    out.rows = 51;
    assert_ok(kf_work_fits(&left, &m, &in, &out));
}

/* ---- memory -------------------------------------------------------------- */

static size_t held, peak;

static void *counting_alloc(void *ud, void *p, size_t want)
{
    (void)ud;
    if (p)
        held -= malloc_usable_size(p);
    free(p);
    p = want ? aligned_alloc(64, (want + 63) / 64 * 64) : NULL;
    if (p)
        held += malloc_usable_size(p);
    peak = kf_max(peak, held);
    return p;
}

/* A block specification of a few bytes has many components for which nothing is
 * stored. The memory of a task does not grow with their number. */
static void many_components(void **state)
{
    const size_t components = 60000, rows = 1000;
    kf_msg m = {.how = KF_HOW_GRAM, .hi = rows};
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kf_block_spec r;
    note b;

    (void)state;
    kofn_set_alloc(counting_alloc, NULL);
    sparse(&b, components, rows, 0);
    assert_ok(kf_block_spec_read(&r, b.p, b.n, &o));
    assert_ok(kf_buffer_new(&m.in, 4, 1, KOFN_F64));
    assert_ok(kf_buffer_new(&m.result, 4, 1, KOFN_F64));
    memset(m.in->m.data, 0, 32);
    assert_ok(kf_work_fits(r.block, &m, &m.in->m, &m.result->m));
    assert_ok(kf_work_do(r.block, &m, NULL, NULL));
    assert_at_most((double)peak, 32 << 20);
    kf_buffer_drop(m.in);
    kf_buffer_drop(m.result);
    kofn_free(m.why);
    kf_block_spec_free(&r);
    kf_block_drop(r.block);
    assert_int_equal(held, 0);
    kofn_set_alloc(NULL, NULL);
}

/* Half of a batch would begin before the first point. */
static void batches(void **state)
{
    double X[12] = {0}, y[4] = {0}, w[4] = {0, 0, 0, 0.5}, g[4];
    double arg[KOFN_FORMULA_ARGS] = {0, 2};
    const kofn_rows part = {.X = {X, 4, 3, 3, KOFN_F64}, .y = y};
    const kofn_matrix in = {w, 4, 1, 1, KOFN_F64};
    kofn_matrix out = {g, 4, 1, 1, KOFN_F64};

    (void)state;
    assert_int_equal(kofn_formulas[0].f(arg, &part, &in, &out), KOFN_INVAL);
    w[3] = 1;
    assert_ok(kofn_formulas[0].f(arg, &part, &in, &out));
    arg[1] = 2.5;
    assert_int_equal(kofn_formulas[0].f(arg, &part, &in, &out), KOFN_INVAL);
    arg[1] = UINT32_MAX; /* more than the distance of any two points */
    w[3] = 3;
    assert_ok(kofn_formulas[0].f(arg, &part, &in, &out));
}

/* ---- a worker ------------------------------------------------------------ */

static void refuses(const note *block_spec, kf_head work)
{
    static scripted o;

    o = (scripted){.work = work};
    memcpy(o.block_spec, block_spec->p, block_spec->n);
    o.block_spec_bytes = block_spec->n;
    assert_int_equal(script_serve(&o, (size_t)1 << 20), KOFN_FORMAT);
    assert_int_equal(o.results, 0);
}

static void workers(void **state)
{
    note b;

    (void)state;
    sparse(&b, 1, ALL / 17, 17);
    refuses(&b, (kf_head){0});
    sum(&b, 17, 1, ALL / 17 + 1);
    refuses(&b, (kf_head){.type = KF_WIRE_WORK,
                          .how = KF_HOW_SUBMESSAGE,
                          .rows = 4,
                          .cols = 1,
                          .out_rows = 16,
                          .out_cols = 1});
    zeros(&b, 17, ALL / 17 + 1);
    refuses(&b, (kf_head){.type = KF_WIRE_WORK,
                          .how = KF_HOW_ROWS,
                          .rows = 1,
                          .cols = 1,
                          .hi = ALL / 17 + 1,
                          .out_rows = 16,
                          .out_cols = 1});
}

TEST_FILE(wrap_test)
{
    const struct CMUnitTest tests[] = {
        TEST(block_specs,
             "wire: block specifications with sizes that wrap are refused"),
        TEST(tasks, "wire: tasks with sizes that wrap are refused"),
        TEST(many_components,
             "wire: 60000 components without numbers cost no memory in a task"),
        TEST(batches, "wire: batches beyond the points are refused"),
        TEST(workers, "wire: a worker refuses blocks with sizes that wrap"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
