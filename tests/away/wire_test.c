/* wire_test.c -- heads, block specifications and slices. Valid ones arrive
 * unchanged, and invalid ones are refused before memory is allocated for them.
 */
#include "rig.h"

#include <kofn/scheme.h>

#include "base/hash.h"
#include "ports/post.h"

/* ---- memory -------------------------------------------------------------- */

static size_t held, peak;

static void *watching(void *ud, void *p, size_t want)
{
    unsigned char *now;
    size_t size;

    (void)ud;
    if (want == 0) {
        if (p) {
            memcpy(&size, (unsigned char *)p - 64, sizeof size);
            held -= size;
            free((unsigned char *)p - 64);
        }
        return NULL;
    }
    held += want;
    peak = kf_max(peak, held);
    now = aligned_alloc(64, 64 + (want + 63) / 64 * 64);
    assert_non_null(now);
    memcpy(now, &want, sizeof want);
    return now + 64;
}

/* ---- heads --------------------------------------------------------------- */

static kf_head random_head(uint64_t seed)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 0, 0);
    uint64_t any[15];

    for (int i = 0; i < 15; i++)
        any[i] = kf_rng_below(&r, UINT64_MAX);
    return (kf_head){.type = seed % 2 ? KF_WIRE_RESULT : KF_WIRE_SLICE,
                     .version = KF_WIRE_VERSION,
                     .how = (kf_how)(seed % 6),
                     .dtype = (kofn_dtype)(seed % 2),
                     .state = (uint8_t)(seed % 4),
                     .operand = (uint32_t)(any[13] % 65536),
                     .status = -(int)(seed % 9),
                     .task = (uint32_t)any[0],
                     .round = (uint32_t)any[1],
                     .product = (uint32_t)any[12],
                     .row = (uint32_t)any[13],
                     .job = any[2],
                     .block = any[3],
                     .input = any[14],
                     .updates = any[12] ^ any[13],
                     .lo = any[4],
                     .hi = any[5],
                     .which = any[6],
                     .took = any[7],
                     .rows = any[8],
                     .cols = any[9],
                     .out_rows = any[10],
                     .out_cols = any[11],
                     .body_sum = any[2] ^ any[3]};
}

static bool same_head(const kf_head *a, const kf_head *b)
{
    return a->type == b->type && a->version == b->version && a->how == b->how &&
           a->dtype == b->dtype && a->state == b->state &&
           a->operand == b->operand && a->status == b->status &&
           a->task == b->task && a->round == b->round &&
           a->product == b->product && a->row == b->row && a->job == b->job &&
           a->block == b->block && a->input == b->input &&
           a->updates == b->updates && a->lo == b->lo && a->hi == b->hi &&
           a->which == b->which && a->took == b->took && a->rows == b->rows &&
           a->cols == b->cols && a->out_rows == b->out_rows &&
           a->out_cols == b->out_cols && a->body_sum == b->body_sum;
}

static void heads(void **state)
{
    unsigned char bytes[KF_HEAD + 8] = {0};
    kf_head back;

    (void)state;
    for (uint64_t seed = 0; seed < 24; seed++) {
        kf_head h = random_head(seed);

        kf_head_write(bytes, &h);
        assert_ok(kf_head_read(&back, bytes, KF_HEAD));
        assert_true(same_head(&h, &back));
        for (size_t bit = 0; bit < 8 * KF_HEAD; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_int_equal(kf_head_read(&back, bytes, KF_HEAD), KOFN_FORMAT);
            assert_int_equal(back.version,
                             0); /* it is damaged, not of another version */
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        for (size_t n = 0; n <= KF_HEAD + 8; n++)
            assert_int_equal(kf_head_read(&back, bytes, n),
                             n == KF_HEAD ? KOFN_OK : KOFN_FORMAT);
    }
}

static void bodies(void **state)
{
    unsigned char body[300];
    kf_head h = {.job = 7};

    (void)state;
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (unsigned char)i;
    h.body_sum = kf_hash(h.job, body, sizeof body);
    assert_ok(kf_wire_check(h.job, h.body_sum, body, sizeof body));
    assert_int_equal(kf_wire_check(h.job, h.body_sum, body, sizeof body - 1),
                     KOFN_FORMAT);
    assert_int_equal(kf_wire_check(h.job, h.body_sum, NULL, 0), KOFN_FORMAT);
    for (size_t bit = 0; bit < 8 * sizeof body; bit++) {
        body[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(kf_wire_check(h.job, h.body_sum, body, sizeof body),
                         KOFN_FORMAT);
        body[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    h.job++;
    assert_int_equal(kf_wire_check(h.job, h.body_sum, body, sizeof body),
                     KOFN_FORMAT);
    h.body_sum = 0;
    assert_ok(kf_wire_check(h.job, h.body_sum, NULL, 0));
}

/* ---- blocks that travel -------------------------------------------------- */

/* An operand, placed for workers that share this memory and for remote ones. */
typedef struct both {
    rig r;
    kofn_matrix y; /* sums: the numbers of the rows */
    kf_resident near, far;
    kf_code *code;
    kf_rng draw;
} both;

/* Counts of components and blocks of each kind. */
typedef struct met {
    size_t dense, coded, zero, beside, below, sparse, sums;
} met;

static void place(const both *t, kf_resident *r)
{
    const rig *g = &t->r;

    if (g->op == KOFN_SUM) {
        kf_resident_sum(r, g->plan);
        r->formula = kofn_formulas;
        r->arg[1] = 1;
        r->X = g->A;
        r->y = t->y.data;
    } else if (g->sparse.ptr) {
        assert_ok(kf_resident_sparse(r, g->plan, &g->sparse));
    } else {
        assert_ok(kf_resident_dense(r, g->plan, &g->A));
    }
}

static double number_at(const kf_block *b, size_t l, size_t i, size_t j)
{
    const kofn_matrix *a = &b->component[l];

    if (!a->rows)
        return 0;
    return a->dtype == KOFN_F64 ? *(const double *)kf_at(a, i, j)
                                : (double)*(const float *)kf_at(a, i, j);
}

/* Compares all components, within rounding. Sums of a few terms may be added in
 * another order when rows are made one by one. Numbers are up to 5, and
 * coefficients are small. */
static void same_components(const kf_block *a, const kf_block *b)
{
    double most = a->dtype == KOFN_F64 ? 1e-14 : 1e-5;

    assert_int_equal(a->components, b->components);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    assert_int_equal(a->dtype, b->dtype);
    for (size_t l = 0; l < a->components; l++)
        for (size_t i = 0; i < a->rows; i++)
            for (size_t j = 0; j < a->cols; j++) {
                double x = number_at(a, l, i, j), y = number_at(b, l, i, j);

                if (!(fabs(x - y) <= most))
                    fail_msg("component %zu, %zu, %zu: %g, not %g", l, i, j, y,
                             x);
            }
}

/* Compares the plain parts that a sparse block mixes, as dense ones. */
static void same_sparse(const kf_block *a, const kf_block *b)
{
    size_t n = a->rows * a->cols;

    assert_int_equal(a->used, b->used);
    assert_memory_equal(a->weight, b->weight,
                        a->components * a->used * sizeof(double));
    for (size_t k = 0; k < a->used; k++) {
        const kf_block *of[2] = {a, b};
        double *x = numbers(2 * n, sizeof *x);

        for (size_t w = 0; w < 2; w++)
            for (size_t i = 0; i < a->rows; i++) {
                size_t row = of[w]->first[k] + i;

                if (row < of[w]->A->rows)
                    for (size_t e = of[w]->A->ptr[row];
                         e < of[w]->A->ptr[row + 1]; e++)
                        x[w * n + i * a->cols + of[w]->A->col[e]] =
                            of[w]->A->val[e];
            }
        assert_memory_equal(x, x + n, n * sizeof *x);
        kf_free(x);
    }
}

static void same_subsets(const kf_subset *a, const kf_subset *b)
{
    assert_int_equal(a->parts, b->parts);
    assert_int_equal(a->of, b->of);
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->segments, b->segments);
    assert_int_equal(a->submessages, b->submessages);
    assert_int_equal(a->points, b->points);
    assert_memory_equal(a->part, b->part, a->parts * sizeof *a->part);
    assert_memory_equal(a->mix, b->mix,
                        a->submessages * a->components * a->parts *
                            a->segments * sizeof *a->mix);
    for (size_t k = 0; k < a->parts; k++) {
        size_t from = kf_part_begin(a->points, a->part[k], a->of);
        size_t rows = kf_part_begin(a->points, a->part[k] + 1, a->of) - from;

        for (size_t i = 0; i < rows; i++)
            assert_memory_equal(kf_at(&a->X, a->at[k] + i, 0),
                                kf_at(&b->X, b->at[k] + i, 0),
                                a->X.cols * sizeof(double));
        assert_memory_equal(a->y + a->at[k], b->y + b->at[k],
                            rows * sizeof(double));
    }
}

static void same_block(const kf_block *a, const kf_block *b)
{
    if (a->subset)
        same_subsets(a->subset, b->subset);
    else if (a->A)
        same_sparse(a, b);
    else
        same_components(a, b);
}

/* Sends all missing slices, a few units at a time. */
static void send_slices(both *t, const kf_block *far, const kf_block_spec *r,
                        size_t section)
{
    for (; section < r->sections; section++) {
        size_t units, bytes, there, size;

        kf_wire_section(far, section, &there, &size);
        kf_wire_section(r->block, section, &units, &bytes);
        assert_int_equal(bytes, size);
        if (units == 0) /* beyond A's edge: not sent */
            continue;
        assert_int_equal(units, there);
        for (size_t lo = 0, hi; lo < units; lo = hi) {
            kf_bytes made = {0};
            const void *at;

            hi = lo + 1 + (size_t)kf_rng_below(&t->draw, units - lo);
            assert_ok(kf_slice_from(far, section, lo, hi, &made, &at));
            memcpy(kf_slice_into(r->block, section, lo), at, (hi - lo) * bytes);
            kf_bytes_free(&made);
        }
    }
    assert_ok(kf_slices_check(r->block));
}

static void done(kf_block_spec *r)
{
    kf_block_spec_free(r);
    kf_block_drop(r->block);
}

/* Reads damaged copies of the block specification. At most the allowed memory
 * is allocated in any of them. */
static void refusals(const kf_bytes *block_spec)
{
    static const uint64_t odd[] = {
        0, UINT64_MAX, 1ull << 63, 1ull << 60, 1ull << 40, 1ull << 31, 65535};
    unsigned char *copy = malloc(block_spec->n + 8);
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    size_t before;
    kf_block_spec r;

    assert_non_null(copy);
    memcpy(copy, block_spec->p, block_spec->n);
    memset(copy + block_spec->n, 0, 8);
    for (size_t n = 0; n < block_spec->n; n += n < 200 ? 1 : 97)
        assert_int_equal(kf_block_spec_read(&r, copy, n, &o), KOFN_FORMAT);
    assert_int_equal(kf_block_spec_read(&r, copy, block_spec->n + 8, &o),
                     KOFN_FORMAT);
    o.memory = 1;
    assert_int_equal(kf_block_spec_read(&r, copy, block_spec->n, &o),
                     KOFN_UNSUITED);
    o.memory = (size_t)1 << 20;
    for (size_t at = 0; at + 8 <= block_spec->n && at < 400; at++)
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            kofn_status st;

            memcpy(copy + at, &odd[i], 8);
            peak = before = held;
            st = kf_block_spec_read(&r, copy, block_spec->n, &o);
            assert_true(peak <= before + o.memory + 4096);
            if (st == KOFN_OK)
                done(&r);
            else
                assert_true(st == KOFN_FORMAT || st == KOFN_UNSUITED);
            memcpy(copy + at, block_spec->p + at, 8);
        }
    free(copy);
}

static void count(const kf_block *b, const kf_block_spec *r, met *m)
{
    size_t inner = r->rows ? r->rows / b->components : 1;

    m->sums += b->subset != NULL;
    m->sparse += b->A != NULL;
    for (size_t l = 0; !b->subset && !b->A && l < b->components; l++) {
        m->zero += r->block->component[l].rows == 0;
        m->dense += r->row[l * inner].n == 1;
        m->coded += r->row[l * inner].n > 1;
        m->beside += inner > 1 && b->rows == r->part_rows;
        m->below += inner > 1 && b->rows > r->part_rows;
    }
}

static void travel(both *t, const kf_block *near, const kf_block *far, bool all,
                   met *m)
{
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kf_bytes block_spec = {0}, again = {0};
    kf_block_spec r;
    const kofn_matrix *A = t->r.sparse.ptr ? NULL : &t->r.A;
    kofn_matrix other = t->r.A;

    assert_ok(kf_block_spec_write(far, "A.npy", &block_spec));
    assert_ok(kf_block_spec_write(far, "A.npy", &again));
    assert_int_equal(block_spec.n, again.n);
    assert_memory_equal(block_spec.p, again.p, block_spec.n);

    assert_ok(kf_block_spec_read(&r, block_spec.p, block_spec.n, &o));
    assert_string_equal(r.source, "A.npy");
    count(far, &r, m);
    send_slices(t, far, &r, 0);
    same_block(near, r.block);
    done(&r);

    assert_ok(kf_block_spec_read(&r, block_spec.p, block_spec.n, &o));
    assert_ok(kf_block_spec_build(&r, A, A ? NULL : &t->r.sparse));
    assert_int_equal(r.built, near->subset ? 1 : r.sections);
    send_slices(t, far, &r, r.built);
    same_block(near, r.block);
    other.rows--;
    if (A && other.rows)
        assert_int_equal(kf_block_spec_build(&r, &other, NULL), KOFN_SHAPE);
    done(&r);
    if (all)
        refusals(&block_spec);
    kf_bytes_free(&block_spec);
    kf_bytes_free(&again);
}

static void run_kind(const rig_kind *k, met *m)
{
    both t = {.draw = kf_rng_stream(k->m, KF_FOR_DATA, 8, 8)};
    size_t seats[32];
    kf_block *near[32], *far[32];

    rig_inputs(&t.r, k);
    t.y = random_matrix(t.r.A.rows, 1, KOFN_F64, 9);
    place(&t, &t.near);
    place(&t, &t.far);
    assert_ok(kf_resident_away(&t.far));
    assert_ok(kf_code_new(&t.code, t.r.plan));
    for (size_t i = 0; i < k->workers; i++)
        seats[i] = i;
    assert_ok(kf_data_encode(&t.near, t.code, seats, k->workers, near));
    assert_ok(kf_data_encode(&t.far, t.code, seats, k->workers, far));
    for (size_t i = 0; i < k->workers; i++) {
        travel(&t, near[i], far[i], i == 1, m);
        kf_block_drop(near[i]);
        kf_block_drop(far[i]);
    }
    kf_code_free(t.code);
    kf_resident_free(&t.near);
    kf_resident_free(&t.far);
    kf_free(t.y.data);
    rig_down(&t.r);
}

/* Returns every scheme with its defaults, and then the further ones. NULL at
 * the end. */
static const char *spec_at(size_t i, const char *const *more, size_t n)
{
    size_t schemes = 0;

    if (kofn_scheme_at(i))
        return kofn_scheme_at(i)->name;
    while (kofn_scheme_at(schemes))
        schemes++;
    return i - schemes < n ? more[i - schemes] : NULL;
}

/* True if the scheme serves streams only. These store no blocks. */
static bool only_streams(const char *spec)
{
    const kofn_scheme *s = kofn_scheme_find(spec);

    return s && s->ops == KOFN_STREAM;
}

static void blocks_that_travel(void **state)
{
    static const kofn_op ops[] = {KOFN_MATVEC, KOFN_MATMUL, KOFN_LEFT,
                                  KOFN_GRAM, KOFN_SUM};
    static const size_t sizes[][3] = {{61, 13, 12}, {9, 30, 12}, {120, 7, 8}};
    static const char *const more[] = {"pcr:r=3,layout=paper",
                                       "gpd:m=2,n=2,p=2,basis=complex",
                                       "elastic:k=4,cut=columns"};
    const char *spec;
    met m = {0};

    (void)state;
    kofn_set_alloc(watching, NULL);
    for (size_t i = 0; (spec = spec_at(i, more, 3)); i++) {
        size_t served = 0;

        for (size_t c = 0; c < 5 * 3 * 3; c++) {
            const size_t *size = sizes[c / 15];
            rig_kind k = {.spec = spec,
                          .workers = size[2],
                          .m = size[0],
                          .n = size[1],
                          .p = ops[c % 5] & (KOFN_MATMUL | KOFN_LEFT) ? 6 : 1,
                          .op = ops[c % 5],
                          .dtype = c / 5 % 3 == 1 ? KOFN_F32 : KOFN_F64,
                          .sparse = c / 5 % 3 == 2};
            kofn_problem pb =
                KOFN_PROBLEM_INIT(k.op, k.op == KOFN_SUM ? k.n : k.m, k.n, k.p,
                                  k.dtype, k.sparse);
            kofn_plan *plan;

            if ((k.op == KOFN_SUM && c / 5 % 3) ||
                kofn_plan_new(&plan, &pb, spec, k.workers, 7))
                continue;
            kofn_plan_free(plan);
            run_kind(&k, &m);
            served++;
        }
        if (!served && !only_streams(spec))
            fail_msg("no block of %s was sent", spec);
    }
    assert_int_equal(held, 0);
    kofn_set_alloc(NULL, NULL);
    print_message(
        "components: %zu plain, %zu coded, %zu zero, %zu side by side, %zu "
        "below; %zu sparse, %zu sums\n",
        m.dense, m.coded, m.zero, m.beside, m.below, m.sparse, m.sums);
    assert_true(m.dense && m.coded && m.zero && m.beside && m.below &&
                m.sparse && m.sums);
}

/* ---- texts --------------------------------------------------------------- */

static unsigned char bytes_of_words[KF_WORDS + 1];

static kofn_status fetch_words(kofn_transport *t, kofn_packet *k, void *into)
{
    (void)t;
    memcpy(into, bytes_of_words, k->body_bytes);
    return KOFN_OK;
}

/* Takes a text of `n` of these bytes, which come with their packet or are
 * fetched. */
static kofn_status words(size_t n, bool come, uint64_t off, char **to)
{
    kofn_transport t = {.fetch = fetch_words};
    kofn_packet k = {.body = come && n ? bytes_of_words : NULL,
                     .body_bytes = n};
    kf_head h = {.type = KF_WIRE_FAILED, .job = 7};

    h.body_sum = (n ? kf_hash(h.job, bytes_of_words, n) : 0) + off;
    return kf_post_take_words(&t, &k, &h, to);
}

static void failure_text(void **state)
{
    static const unsigned char evil[] = "\033[2J\xc3\xbc\x9b\x7f\r\b\0\ta\nb~";
    char *to;

    (void)state;
    memset(bytes_of_words, 'x', sizeof bytes_of_words);
    memcpy(bytes_of_words, evil, sizeof evil - 1);
    for (int come = 0; come < 2; come++) {
        assert_ok(words(KF_WORDS, come, 0, &to));
        assert_int_equal(strlen(to), KF_WORDS);
        assert_memory_equal(to, "?[2J????????a\nb~x", 17);
        kf_free(to);
        assert_ok(words(5, come, 0, &to));
        assert_string_equal(to, "?[2J?");
        kf_free(to);
        assert_ok(words(0, come, 0, &to));
        assert_null(to);
        assert_int_equal(words(KF_WORDS + 1, come, 0, &to), KOFN_FORMAT);
        assert_null(to);
        assert_int_equal(words(5, come, 1, &to), KOFN_FORMAT);
        assert_null(to);
        assert_int_equal(words(0, come, 1, &to), KOFN_FORMAT);
        assert_null(to);
    }
}

/* ---- checksums of bodies ------------------------------------------------- */

static uint64_t sent_sum;

static kofn_status note_sum(kofn_transport *t, kofn_peer peer, const void *head,
                            size_t head_bytes, const kofn_lent *body,
                            bool urgent)
{
    kf_head h;

    (void)t;
    (void)peer;
    (void)body;
    (void)urgent;
    assert_ok(kf_head_read(&h, head, head_bytes));
    sent_sum = h.body_sum;
    return KOFN_OK;
}

static void whole_bodies(void **state)
{
    const char body[] = "any bytes";
    kf_head h = {.type = KF_WIRE_RESULT, .job = 5};
    uint64_t sum = kf_hash(h.job, body, sizeof body);

    (void)state;
    assert_int_not_equal(sum, 0);
    for (int whole = 0; whole < 2; whole++) {
        kofn_transport t = {.send = note_sum, .whole = whole};
        kf_outbox b = {0};

        h.body_sum = 0;
        assert_ok(kf_post(&b, &t, 0, &h,
                          &(kofn_lent){.data = body, .bytes = sizeof body}));
        assert_true(sent_sum == (whole ? 0 : sum));
        assert_int_equal(kf_post_check(&t, &h, body, sizeof body),
                         whole ? KOFN_OK : KOFN_FORMAT);
        h.body_sum = sum;
        assert_ok(kf_post_check(&t, &h, body, sizeof body));
        kf_outbox_free(&b);
    }
}

/* ---- transports of another version --------------------------------------- */

static int closed;

static void count_close(kofn_transport *t, kofn_time linger)
{
    (void)t;
    (void)linger;
    closed++;
}

static void small_transports(void **state)
{
    static const size_t sizes[] = {0, sizeof(kofn_transport) - 1};
    kofn_port *port;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        kofn_transport t = {.size = sizes[i], .close = count_close};

        closed = 0;
        assert_int_equal(kofn_port_away(&port, &t, NULL), KOFN_INVAL);
        assert_non_null(strstr(kofn_errmsg(), "sizeof(kofn_transport)"));
        assert_int_equal(kofn_serve(&t, NULL), KOFN_INVAL);
        assert_non_null(strstr(kofn_errmsg(), "sizeof(kofn_transport)"));
        assert_int_equal(closed, 2);
    }
}

/* Factors that are not finite and too many states do not reach a block. */
static void changes(void **state)
{
    kofn_change c = {sizeof c, 3, {{1, 2}, {3, 4, 5}}, {6, 7, 8, 9}}, got;
    unsigned char bytes[KF_WIRE_CHANGE];

    (void)state;
    c.keep[3][3] = -0.5;
    kf_wire_write_change(bytes, &c);
    assert_ok(kf_wire_read_change(&got, bytes));
    assert_int_equal(got.states, 3);
    assert_memory_equal(got.keep, c.keep, sizeof c.keep);
    assert_memory_equal(got.add, c.add, sizeof c.add);
    c.states = KOFN_CHANGE_STATES + 1;
    kf_wire_write_change(bytes, &c);
    assert_status(KOFN_FORMAT, kf_wire_read_change(&got, bytes));
    assert_non_null(strstr(kofn_errmsg(), "4 optimizer states"));
    c.states = 3;
    c.keep[3][3] = NAN;
    kf_wire_write_change(bytes, &c);
    assert_status(KOFN_FORMAT, kf_wire_read_change(&got, bytes));
}

TEST_FILE(wire_test)
{
    const struct CMUnitTest tests[] = {
        TEST(heads,
             "wire: heads arrive unchanged, and damaged ones are refused"),
        TEST(bodies, "wire: bodies that are damaged or cut short are refused"),
        TEST(blocks_that_travel,
             "wire: sent blocks equal the local ones (each scheme, operation)"),
        TEST(changes, "wire: a change arrives, and a wrong one is refused"),
        TEST(failure_text, "wire: the text of a failure is bounded and plain"),
        TEST(whole_bodies,
             "wire: bodies need a checksum unless the transport keeps them"),
        TEST(small_transports,
             "wire: transports of a smaller size are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
