/* peer_products_test.c -- steps of several products, on the simulated mesh and
 * on threads. The products are from both sides of one matrix, or of several,
 * dense and sparse, with several columns at a time. Each vector that any node
 * has is compared with plain BLAS. */
#include "mesh_faults.h"

#include "mesh/note.h"

#include <stdatomic.h>

/* ---- programs ------------------------------------------------------------ */

/* The vector is several matrices one after the other, each of COLS columns. A
 * product multiplies one of them with a matrix or its transpose. It writes the
 * product, with columns scaled to length 1, to the place of another. */
enum { MOST = 3, COLS = 3 };

typedef struct move {
    size_t operand;
    bool left;
    size_t from, to; /* places in the vector */
} move;

typedef struct route {
    const char *name;
    struct {
        size_t rows, cols;
        const char *scheme;
        bool sparse;
    } matrix[MOST];
    size_t matrices, place[MOST], places; /* rows of each place */
    move move[MOST];
    size_t moves, cols, nodes;
} route;

/* Singular vectors by products from both sides of one matrix, by products of
 * two matrices in turn, one of them sparse, with different codes, and by both.
 */
static const route routes[] = {
    {"both sides",
     {{23, 17, "gpd:m=2,n=2", false}},
     1,
     {17, 23},
     2,
     {{0, false, 0, 1}, {0, true, 1, 0}},
     2,
     1,
     8},
    {"both sides of columns",
     {{23, 17, "gpd:m=2,n=2", false}},
     1,
     {17, 23},
     2,
     {{0, false, 0, 1}, {0, true, 1, 0}},
     2,
     COLS,
     8},
    {"two matrices",
     {{23, 17, "mds:k=2", false}, {17, 23, "mds:k=4", true}},
     2,
     {17, 23},
     2,
     {{0, false, 0, 1}, {1, false, 1, 0}},
     2,
     COLS,
     6},
    {"three products",
     {{9, 14, "mds:k=3,basis=gauss_sys", false}, {9, 20, "gpd:m=1,n=3", false}},
     2,
     {14, 9, 20},
     3,
     {{0, false, 0, 1}, {1, true, 1, 2}, {1, false, 2, 1}},
     3,
     2,
     7},
};
enum { ROUTES = sizeof routes / sizeof *routes };

typedef struct fixture {
    const route *w;
    size_t steps, entries,
        needs; /* number of nodes that the most demanding product needs */
    kofn_matrix A[MOST];
    kofn_sparse S[MOST];
    kofn_plan *plan[MOST];
    kofn_operand operand[MOST];
    kofn_mesh_product product[MOST];
    kofn_matrix v0;
    double *ref;
} fixture;

static size_t offset(const route *w, size_t place)
{
    size_t at = 0;

    for (size_t i = 0; i < place; i++)
        at += w->place[i] * w->cols;
    return at;
}

static const move *move_of(const route *w, uint64_t t)
{
    return &w->move[(t - 1) % w->moves];
}

/* A place is stored by rows. The input of a left product is its transpose. */
static void transpose(const double *from, size_t rows, size_t cols, double *to)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            to[j * rows + i] = from[i * cols + j];
}

static kofn_status route_input(void *ud, uint64_t t, const kofn_matrix *v,
                               const double scalar[KOFN_SCALARS],
                               kofn_matrix *in)
{
    const route *w = ((const fixture *)ud)->w;
    const move *m = move_of(w, t);
    const double *from = (const double *)v->data + offset(w, m->from);
    size_t rows = w->place[m->from];

    assert_true(scalar[0] == (double)(t - 1)); /* it travels with the vector */
    assert_int_equal(in->rows * in->cols, rows * w->cols);
    if (m->left)
        transpose(from, rows, w->cols, in->data);
    else
        memcpy(in->data, from, rows * w->cols * sizeof *from);
    return KOFN_OK;
}

static void make_units(double *x, size_t rows, size_t cols)
{
    for (size_t j = 0; j < cols; j++) {
        double sum = 0;

        for (size_t i = 0; i < rows; i++)
            sum += x[i * cols + j] * x[i * cols + j];
        for (size_t i = 0; i < rows; i++)
            x[i * cols + j] /= sqrt(sum);
    }
}

static kofn_status route_output(void *ud, uint64_t t, kofn_matrix *product,
                                kofn_matrix *v, double scalar[KOFN_SCALARS],
                                bool *final)
{
    const fixture *f = ud;
    const move *m = move_of(f->w, t);
    double *to = (double *)v->data + offset(f->w, m->to);
    size_t rows = f->w->place[m->to], cols = f->w->cols;

    assert_int_equal(product->rows * product->cols, rows * cols);
    if (m->left)
        transpose(product->data, cols, rows, to);
    else
        memcpy(to, product->data, rows * cols * sizeof *to);
    make_units(to, rows, cols);
    scalar[0] = (double)t;
    *final = t >= f->steps;
    return KOFN_OK;
}

/* ---- the plain iteration ------------------------------------------------- */

static void make_reference(fixture *f)
{
    const route *w = f->w;

    f->ref = numbers((f->steps + 1) * f->entries, sizeof *f->ref);
    memcpy(f->ref, f->v0.data, f->entries * sizeof *f->ref);
    for (size_t t = 1; t <= f->steps; t++) {
        const move *m = move_of(w, t);
        double *v = f->ref + t * f->entries, *to = v + offset(w, m->to);
        const double *x = v - f->entries + offset(w, m->from);
        const kofn_matrix *A = &f->A[m->operand];
        size_t rows = w->place[m->to];

        memcpy(v, v - f->entries, f->entries * sizeof *v);
        cblas_dgemm(CblasRowMajor, m->left ? CblasTrans : CblasNoTrans,
                    CblasNoTrans, (int)rows, (int)w->cols,
                    (int)w->place[m->from], 1, A->data, (int)A->cols, x,
                    (int)w->cols, 0, to, (int)w->cols);
        make_units(to, rows, w->cols);
    }
}

/* Sets two thirds of the entries to zero. Returns the sparse matrix. */
static kofn_sparse thin_out(kofn_matrix *A)
{
    size_t n = A->rows * A->cols, *ptr = numbers(A->rows + 1, sizeof *ptr);
    uint32_t *col = numbers(n, sizeof *col);
    double *val = numbers(n, sizeof *val), *a = A->data;
    size_t entries = 0;

    for (size_t i = 0; i < A->rows; i++) {
        for (size_t j = 0; j < A->cols; j++) {
            double *x = &a[i * A->cols + j];

            if ((i + 2 * j) % 3)
                *x = 0;
            if (*x == 0)
                continue;
            col[entries] = (uint32_t)j;
            val[entries++] = *x;
        }
        ptr[i + 1] = entries;
    }
    return (kofn_sparse){A->rows, A->cols, ptr, col, val};
}

static void make_matrix(fixture *f, size_t i)
{
    const route *w = f->w;
    kofn_problem pb = KOFN_PROBLEM_INIT(w->cols > 1 ? KOFN_MATMUL : KOFN_MATVEC,
                                        w->matrix[i].rows, w->matrix[i].cols,
                                        w->cols, KOFN_F64, w->matrix[i].sparse);

    f->A[i] = random_matrix(pb.m, pb.n, KOFN_F64, 30 + i);
    if (pb.sparse) {
        f->S[i] = thin_out(&f->A[i]);
        f->operand[i].sparse = &f->S[i];
    } else {
        f->operand[i].dense = &f->A[i];
    }
    assert_ok(
        kofn_plan_new(&f->plan[i], &pb, w->matrix[i].scheme, w->nodes, 3));
}

static void set_up(fixture *f, const route *w, size_t steps)
{
    *f = (fixture){.w = w, .steps = steps, .entries = offset(w, w->places)};
    for (size_t i = 0; i < w->matrices; i++)
        make_matrix(f, i);
    for (size_t i = 0; i < w->moves; i++) {
        const move *m = &w->move[i];
        kofn_plan *p = f->plan[m->operand];

        if (m->left)
            assert_ok(kofn_plan_serve_left(p, w->cols));
        f->product[i] = (kofn_mesh_product){
            .plan = p, .operand = (uint32_t)m->operand, .left = m->left};
        f->needs = kf_max(f->needs, kf_plan_use(p, m->left)->layout.enough);
    }
    f->v0 = random_matrix(f->entries, 1, KOFN_F64, 40);
    make_reference(f);
}

static void tear_down(fixture *f)
{
    for (size_t i = 0; i < f->w->matrices; i++) {
        kf_free(f->A[i].data);
        kf_free((void *)(uintptr_t)f->S[i].ptr);
        kf_free((void *)(uintptr_t)f->S[i].col);
        kf_free((void *)(uintptr_t)f->S[i].val);
        kofn_plan_free(f->plan[i]);
    }
    kf_free(f->v0.data);
    kf_free(f->ref);
}

static kofn_program program_of(fixture *f)
{
    return (kofn_program){.size = sizeof(kofn_program),
                          .product = f->product,
                          .products = f->w->moves,
                          .operand = f->operand,
                          .operands = f->w->matrices,
                          .input = route_input,
                          .output = route_output,
                          .ud = f,
                          .digest = f->steps};
}

/* ---- on the simulated mesh ----------------------------------------------- */

/* The simulator passes its node to the program. */
static kofn_status sim_route_input(void *ud, uint64_t t, const kofn_matrix *v,
                                   const double scalar[KOFN_SCALARS],
                                   kofn_matrix *in)
{
    const sim_node *n = ud;

    return route_input(n->sim->own, t, v, scalar, in);
}

static kofn_status sim_route_output(void *ud, uint64_t t, kofn_matrix *product,
                                    kofn_matrix *v, double scalar[KOFN_SCALARS],
                                    bool *final)
{
    const sim_node *n = ud;

    return route_output(n->sim->own, t, product, v, scalar, final);
}

/* The simulator frees the vector and the reference. */
static void mesh_up(sim *s, fixture *f, const route *w, size_t steps,
                    uint64_t seed)
{
    set_up(f, w, steps);
    sim_up(s, "mds:k=2", w->nodes, 4, steps, seed);
    kf_free(s->v0.data);
    kf_free(s->ref);
    s->v0 = f->v0;
    s->ref = f->ref;
    f->v0.data = NULL;
    f->ref = NULL;
    s->own = f;
    s->program = program_of(f);
    s->program.input = sim_route_input;
    s->program.output = sim_route_output;
}

static void mesh_down(sim *s, fixture *f)
{
    sim_down(s);
    tear_down(f);
}

static void all_well(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROUTES; i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            const route *w = &routes[i];
            fixture f;
            sim s;

            mesh_up(&s, &f, w, 13, seed);
            if (seed % 2)
                s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
            s.opt.confirm = seed / 2 ? 0 : 1;
            for (size_t n = 0; n < w->nodes; n++)
                sim_start(&s, n, n % 2);
            sim_finish(&s, 4 * KOFN_SECOND, NULL, w->name, seed);
            for (size_t n = 0; n < w->nodes; n++) {
                kofn_node_view v;

                kf_node_look(s.node[n].host->node, &v);
                assert_int_equal(v.at.step, 13);
                /* coded products did it; no node computed alone */
                assert_int_equal(v.alone, 0);
                assert_int_equal(v.liars, 0);
            }
            mesh_down(&s, &f);
        }
}

/* The nodes suffice for some products, but not for all. */
static void try_too_few(const route *w)
{
    fixture f;
    sim s;

    mesh_up(&s, &f, w, 12, 1);
    assert_int_equal(f.needs, 5);
    assert_int_equal(f.plan[0]->layout.enough, 3);
    s.opt.give_up = KOFN_SECOND;
    for (size_t i = 0; i < 4; i++)
        sim_start(&s, i, true);
    sim_run(&s, 3 * KOFN_SECOND, NULL);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(s.node[i].status, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "4 of the 5 nodes"));
    mesh_down(&s, &f);
}

/* The product that needs fewest nodes comes first or last. */
static void too_few(void **state)
{
    route later = routes[3];

    (void)state;
    try_too_few(&routes[3]);
    memmove(later.move, routes[3].move + 1, 2 * sizeof later.move[0]);
    later.move[2] = routes[3].move[0];
    try_too_few(&later);
}

/* The faults are deaths, stops, cuts, joins, and packets that are lost,
 * repeated or reordered. */
static void histories(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED"); /* the first seed */
    uint64_t first = one ? strtoull(one, NULL, 10) : 0;
    size_t n = often(120);
    double worst = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        kf_rng r = kf_rng_stream(seed, KF_FOR_SAMPLE, 81, 0);
        const route *w = &routes[kf_rng_below(&r, ROUTES)];
        size_t faults = kf_rng_below(&r, 16);
        fixture f;
        sim s;

        mesh_up(&s, &f, w, 8 + kf_rng_below(&r, 30), seed);
        if (kf_rng_below(&r, 2))
            s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
        faults_draw(&s, &r);
        for (size_t i = 0; i < w->nodes; i++)
            if (i < f.needs || sim_draw(&s) < 0.9)
                sim_start(&s, i, sim_draw(&s) < 0.8);
        for (size_t i = 0; i < faults; i++)
            sim_at(&s, (kofn_time)(sim_draw(&s) * 800 * (double)MS), SIM_FAULT,
                   0, 0);
        sim_run(&s, 800 * MS, faults_inject);
        sim_finish(&s, faults_end(&s, f.needs), faults_inject, w->name, seed);
        worst = fmax(worst, s.worst);
        mesh_down(&s, &f);
    }
    print_message("%zu faults: worst deviation %.3g\n", faults_injected, worst);
    assert_true(worst > 0); /* they decoded and did not compute alone */
}

/* ---- wrong partial products ---------------------------------------------- */

static size_t wrong, found;

static void spoil(sim *s, sim_packet *p)
{
    uint64_t job;
    kf_note note;
    double *body = (double *)(void *)p->body;

    memcpy(&job, p->p.head + KF_AT_JOB, sizeof job);
    if (kf_note_read(&note, p->p.head, p->p.head_bytes, job) ||
        note.type != KF_NOTE_PARTIAL || note.seat == KOFN_NO_SEAT ||
        note.at.step % ((const fixture *)s->own)->w->moves !=
            (uintptr_t)s->inject_ud)
        return;
    body[0] += 1;
    kf_note_write(p->p.head, &note, job, p->body, p->p.body_bytes);
    wrong++;
}

static void blame(sim *s, size_t by, size_t node)
{
    (void)by;
    assert_true(s->node[node].turncoat);
    found++;
}

/* The wrong product may be of any product. It is recomputed, and only the
 * sender of the wrong partial product is disconnected. */
static void wrong_partials(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROUTES; i++)
        for (size_t product = 0; product < routes[i].moves; product++) {
            const route *w = &routes[i];
            fixture f;
            sim s;

            wrong = found = 0;
            mesh_up(&s, &f, w, 12, product);
            s.opt.confirm = 2;
            s.tamper = spoil;
            s.blamed = blame;
            s.inject_ud = (void *)(uintptr_t)product;
            s.hostile = &s; /* vectors of one iterate may differ by rounding */
            for (size_t n = 0; n < w->nodes; n++)
                sim_start(&s, n, true);
            s.node[1].turncoat = true;
            sim_finish(&s, 20 * KOFN_SECOND, NULL, w->name, product);
            assert_true(wrong > 0 && found > 0);
            mesh_down(&s, &f);
        }
}

/* ---- on threads ---------------------------------------------------------- */

typedef struct thread_node {
    fixture *f;
    kofn_matrix v;
    bool leaves;
    kofn_decoding decoding;
    kofn_status status;
    char why[200];
} thread_node;

static int leave(void *ud, const kofn_node_view *view, const double *scalar)
{
    const thread_node *l = ud;

    (void)scalar;
    return l->leaves && view->at.step >= 4;
}

static void run_node(void *ud, kofn_transport *t)
{
    thread_node *l = ud;
    kofn_program program = program_of(l->f);
    kofn_peer_options o = {.size = sizeof o,
                           .seat = KOFN_NO_SEAT,
                           .confirm = 1,
                           .decoding = l->decoding,
                           .linger = 20 * KOFN_SECOND,
                           .watch = leave,
                           .watch_ud = l};

    l->status = kofn_peer_run(t, &program, &o, &l->v, NULL, NULL);
    snprintf(l->why, sizeof l->why, "%s", kofn_errmsg());
}

static void try_threads(const route *w, kofn_decoding decoding)
{
    thread_node l[SIM_NODES];
    kofn_mesh *mesh;
    fixture f;

    set_up(&f, w, 15);
    assert_ok(kofn_mesh_new(&mesh));
    for (size_t i = 0; i < w->nodes; i++) {
        l[i] = (thread_node){
            .f = &f, .v = f.v0, .leaves = i == 0, .decoding = decoding};
        l[i].v.data = numbers(f.entries, 8);
        memcpy(l[i].v.data, f.v0.data, f.entries * 8);
        assert_ok(kofn_mesh_start(mesh, run_node, &l[i]));
    }
    kofn_mesh_free(mesh); /* after all have ended */
    for (size_t i = 0; i < w->nodes; i++) {
        if (l[i].status != (l[i].leaves ? KOFN_AGAIN : KOFN_OK))
            fail_msg("%s, node %zu: %s", w->name, i, l[i].why);
        if (!l[i].leaves)
            assert_at_most(relative_error(l[i].v.data,
                                          f.ref + f.steps * f.entries,
                                          f.entries),
                           1e-11);
        kf_free(l[i].v.data);
    }
    tear_down(&f);
}

static void on_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROUTES; i++)
        try_threads(&routes[i],
                    i % 2 ? KOFN_DECODE_REPLICATED : KOFN_DECODE_DISTRIBUTED);
}

/* ---- numbers that are not finite ----------------------------------------- */

static kofn_status odd_input(void *ud, uint64_t t, const kofn_matrix *v,
                             const double scalar[KOFN_SCALARS], kofn_matrix *in)
{
    kofn_status st = route_input(ud, t, v, scalar, in);

    if (t == 2)
        ((double *)in->data)[1] = NAN;
    return st;
}

static atomic_bool odd_seen;

/* The others leave as soon as one has failed. */
static int leave_odd(void *ud, const kofn_node_view *view, const double *scalar)
{
    (void)ud;
    (void)view;
    (void)scalar;
    return odd_seen;
}

static void run_odd_node(void *ud, kofn_transport *t)
{
    thread_node *l = ud;
    kofn_program program = program_of(l->f);
    kofn_peer_options o = {.size = sizeof o,
                           .seat = KOFN_NO_SEAT,
                           .confirm = 1,
                           .watch = leave_odd};

    program.input = odd_input;
    l->status = kofn_peer_run(t, &program, &o, &l->v, NULL, NULL);
    if (l->status == KOFN_NONFINITE)
        odd_seen = true;
    snprintf(l->why, sizeof l->why, "%s", kofn_errmsg());
}

/* The error of an input names the product and the iterate, as that of a result
 * does: a node may see either first. */
static void odd_inputs(void **state)
{
    thread_node l[SIM_NODES];
    kofn_mesh *mesh;
    fixture f;
    bool said = false;

    (void)state;
    odd_seen = false;
    set_up(&f, &routes[0], 5);
    assert_ok(kofn_mesh_new(&mesh));
    for (size_t i = 0; i < f.w->nodes; i++) {
        l[i] = (thread_node){.f = &f, .v = f.v0};
        l[i].v.data = numbers(f.entries, 8);
        memcpy(l[i].v.data, f.v0.data, f.entries * 8);
        assert_ok(kofn_mesh_start(mesh, run_odd_node, &l[i]));
    }
    kofn_mesh_free(mesh); /* after all have ended */
    for (size_t i = 0; i < f.w->nodes; i++) {
        assert_true(l[i].status < 0 || l[i].status == KOFN_AGAIN);
        said |= l[i].status == KOFN_NONFINITE &&
                strstr(l[i].why, "the input of product 1 for iterate 1");
        kf_free(l[i].v.data);
    }
    assert_true(said);
    tear_down(&f);
}

/* ---- refusals ------------------------------------------------------------ */

static kofn_status run(const kofn_program *p, kofn_matrix *v)
{
    kofn_transport nobody = {.size = sizeof nobody};

    return kofn_peer_run(&nobody, p, NULL, v, NULL, NULL);
}

static void refusals(void **state)
{
    kofn_plan *other;
    kofn_program p;
    fixture f;

    (void)state;
    set_up(&f, &routes[0], 5);
    p = program_of(&f);
    p.products = 0;
    assert_status(KOFN_INVAL, run(&p, &f.v0));
    p.products = 2;
    p.operands = 0;
    assert_status(KOFN_INVAL, run(&p, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "product 0 is of matrix 0 of 0"));
    p.operands = 1;
    p.input = NULL; /* 40 x 1 is not 17 x 1 */
    assert_status(KOFN_SHAPE, run(&p, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "40 x 1"));
    p.input = route_input;
    f.operand[0].sparse = &f.S[0];
    assert_status(KOFN_INVAL, run(&p, &f.v0));
    f.operand[0] = (kofn_operand){NULL, NULL};
    assert_status(KOFN_INVAL, run(&p, &f.v0));
    f.operand[0].dense = &f.v0; /* 40 x 1 is not 23 x 17 */
    assert_status(KOFN_SHAPE, run(&p, &f.v0));
    f.operand[0].dense = &f.A[0];
    assert_ok(kofn_plan_new(&other,
                            &(kofn_problem)KOFN_PROBLEM_INIT(
                                KOFN_MATVEC, 23, 17, 1, KOFN_F64, false),
                            "mds:k=2", 8, 3));
    f.product[0].plan = other;
    assert_status(KOFN_INVAL, run(&p, &f.v0));
    assert_non_null(strstr(kofn_errmsg(), "two plans"));
    f.product[0].plan = NULL;
    assert_status(KOFN_INVAL, run(&p, &f.v0));
    kofn_plan_free(other);
    tear_down(&f);
}

TEST_FILE(peer_products_test)
{
    const struct CMUnitTest tests[] = {
        TEST(all_well,
             "products: all nodes end with the plain iterates if none fails"),
        TEST(too_few,
             "products: nodes that suffice for some products only fail"),
        TEST(odd_inputs,
             "products: an input that is not finite is named by product and "
             "iterate"),
        TEST(
            histories,
            "products: seeded histories of faults end with the plain iterates"),
        TEST(
            wrong_partials,
            "products: the sender of a wrong partial product is found in every product"),
        TEST(on_threads,
             "products: nodes on threads end with the plain iterates"),
        TEST(refusals,
             "products: programs that do not fit are refused with the value"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
