/* rhat_test.c -- mean times of streams of products: published figures,
 * misprints, Markov chains against simulated rounds, and edge cases. */
#include "rig.h"

#include "stream/stream.h"

#include <string.h>

typedef rhat_params params;
typedef rhat_scheme scheme;
typedef rhat_result result;

static const params paper = {4, 5, 0.3, 0};

static result rhat(params q, scheme s)
{
    result r;

    assert_ok(rhat_of(&q, &s, &r));
    return r;
}

static scheme once(size_t threshold)
{
    return (scheme){.kind = RHAT_ONCE, .threshold = threshold};
}

static scheme dip(size_t beta, size_t T, size_t lambda)
{
    return (scheme){
        .kind = RHAT_DIP, .threshold = beta, .T = T, .lambda = lambda};
}

static scheme idip(size_t N, size_t W)
{
    return (scheme){.kind = RHAT_IDIP, .N = N, .W = W};
}

static void near(double got, double want, double off)
{
    if (!(fabs(got - want) <= off))
        fail_msg("%.15g is not %.15g to %g", got, want, off);
}

/* ---- figures ------------------------------------------------------------- */

static void figures(void **state)
{
    result r = rhat(paper, idip(10, 4)), d = rhat(paper, dip(6, 3, 4));

    (void)state;
    near(r.bound_printed, 0.6708, 1e-4);
    near(r.bound_corrected, 0.6916, 1e-4);
    near(r.exact_fixed_load, 0.6894, 1e-4);
    near(r.exact_early_finish, 0.42439, 1e-5);
    near(d.rhat, 0.42439, 1e-5);
    near(d.rhat, r.exact_early_finish, 1e-12);
    near(d.f_tie, 2.461714214798642, 1e-10);
    near(d.f_binomial, 2.488437237493083, 1e-10);
    assert_true(r.rhat == r.exact_early_finish);
    assert_true(r.threshold == 6 && r.delay == 3 && r.slots == 4);
    near(r.load, 4.0 / 6, 1e-12);
    assert_true(d.threshold == 6 && d.delay == 3 && d.slots == 5);
    near(d.load, 5.0 / 6, 1e-12);
    near(rhat(paper, once(4)).rhat, (5 * 0.7599 + 0.2401) / 4, 1e-12);
    near(rhat(paper, once(2)).rhat, (5 * 0.0837 + 0.9163) / 2, 1e-12);
}

/* N = S W: the printed bound exceeds the polynomial code of S in 279 of 720
 * cases, all with delta of at least 0.8 S/P; the exact value exceeds it in
 * none. */
static void claim_of_the_paper(void **state)
{
    static const double alphas[] = {2, 5, 10}, deltas[] = {.2, .3, .4, .5};
    size_t cases = 0, above = 0, exactly = 0;

    (void)state;
    for (size_t P = 3; P <= 7; P++)
        for (size_t W = 2; W <= 4; W++)
            for (size_t S = 1; S < P; S++)
                for (size_t a = 0; a < 3; a++)
                    for (size_t d = 0; d < 4; d++) {
                        params q = {P, alphas[a], deltas[d], 0};
                        double poly = rhat(q, once(P - S)).rhat;
                        result r = rhat(q, idip(S * W, W));
                        bool over = r.bound_printed > poly + 1e-12;

                        cases++;
                        above += over;
                        exactly += r.exact_fixed_load > poly + 1e-9;
                        assert_true(!over || deltas[d] * (double)P >=
                                                 0.8 * (double)S - 1e-12);
                    }
    assert_int_equal(cases, 720);
    assert_int_equal(above, 279);
    assert_int_equal(exactly, 0);
}

/* Figure 1, both panels: the best of each scheme has the same order at every
 * delta, with the printed and the corrected bound. */
static void order_of_figure_1(void **state)
{
    static const struct {
        double alpha;
        size_t P, T;
    } panel[] = {{5, 4, 3}, {10, 6, 4}};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int d = 5; d <= 40; d += 5) {
            size_t P = panel[i].P, T = panel[i].T;
            params q = {P, panel[i].alpha, d / 100.0, 0};
            double printed = HUGE_VAL, corrected = HUGE_VAL;
            result poly, with, without;
            scheme s;

            assert_ok(rhat_best(&q, RHAT_ONCE, 0, &s, &poly));
            assert_ok(rhat_best(&q, RHAT_DIP, T, &s, &with));
            assert_ok(rhat_best(&q, RHAT_DIP, RHAT_ENDLESS, &s, &without));
            for (size_t N = 1; N < P * (T + 1); N++) {
                result r = rhat(q, idip(N, T + 1));

                printed = fmin(printed, r.bound_printed);
                corrected = fmin(corrected, r.bound_corrected);
                assert_true(r.bound_corrected >= r.exact_fixed_load - 1e-12);
            }
            assert_true(rhat(q, once(P)).rhat > poly.rhat);
            assert_true(poly.rhat > printed && poly.rhat > corrected);
            assert_true(printed > with.rhat && corrected > with.rhat);
            assert_true(with.rhat > without.rhat);
        }
}

/* ---- closed forms -------------------------------------------------------- */

/* The expected rounds until beta results have come. */
static void expected_rounds(void **state)
{
    (void)state;
    for (size_t P = 1; P <= 6; P++)
        for (size_t beta = 1; beta <= 40; beta += 3)
            for (int d = 0; d <= 9; d++) {
                double delta = d / 10.0, all = pow(delta, (double)P), E, sum;
                result r =
                    rhat((params){P, 5, delta, 0}, dip(beta, RHAT_ENDLESS, 0));

                /* Wald: beta <= K_1 + .. + K_f < beta + P */
                E = (double)P * (1 - delta + all);
                assert_true(r.f_tie >= (double)beta / E - 1e-12);
                assert_true(r.f_tie <= ((double)(beta + P) - 1) / E + 1e-12);
                near(r.rhat, r.f_tie / (double)beta * (5 * all + 1 - all),
                     1e-12);
                /* f = sum over n of P{Bin(nP, 1-delta) < beta}, term by term */
                sum = 0;
                for (size_t n = 0; n <= 3000; n++) {
                    double below = 0, term = pow(delta, (double)(n * P));

                    for (size_t k = 0; k < beta && k <= n * P; k++) {
                        below += term;
                        term *= (double)(n * P - k) / (double)(k + 1) *
                                (1 - delta) / (delta > 0 ? delta : 1e-300);
                    }
                    if (delta == 0)
                        below = n * P < beta;
                    sum += below;
                    if (below < 1e-16)
                        break;
                }
                near(r.f_binomial, sum, 1e-9 * sum);
            }
}

/* With growing beta there is no best value, but a limit. */
static void limit_of_beta(void **state)
{
    double before = 1;

    (void)state;
    for (size_t beta = 6; beta < 6000; beta *= 10) {
        double all = pow(0.3, 4);
        double limit = (5 * all + 1 - all) / (4 * (0.7 + all));
        double now = rhat(paper, dip(beta, RHAT_ENDLESS, 0)).rhat;

        assert_true(now < before && now > limit);
        near(now, limit, 0.6 / (double)beta);
        before = now;
    }
}

/* Without a delay DIP is one round: with c results each, lambda workers
 * suffice. */
static void without_delay(void **state)
{
    (void)state;
    for (size_t lambda = 1; lambda <= 4; lambda++) {
        /* the same with threshold lambda and c = ceil(6/lambda) results each */
        double c = ceil(6.0 / (double)lambda);
        double need = ceil(6 / c);
        result r = rhat(paper, dip(6, 0, lambda));

        near(r.rhat,
             c / 6 * (double)need * rhat(paper, once((size_t)need)).rhat,
             1e-12);
        assert_true(r.delay == 0 && r.slots == (size_t)c);
    }
    /* IDIP with W = 1 is the polynomial code with S = N. */
    for (size_t N = 0; N < 4; N++) {
        result r = rhat(paper, idip(N, 1));

        near(r.exact_fixed_load, rhat(paper, once(4 - N)).rhat, 1e-12);
        near(r.exact_early_finish, r.exact_fixed_load, 1e-12);
        near(r.bound_printed, r.exact_fixed_load, 1e-12);
    }
}

/* No worker slow, all slow, a factor of 1, and one worker. */
static void edges(void **state)
{
    static const scheme all[] = {
        {.kind = RHAT_ONCE, .threshold = 3},
        {.kind = RHAT_DIP, .threshold = 8, .T = 2, .lambda = 2},
        {.kind = RHAT_DIP, .threshold = 8, .T = RHAT_ENDLESS},
        {.kind = RHAT_IDIP, .N = 4, .W = 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double one = rhat((params){4, 7, 0, 0}, all[i]).rhat;

        near(rhat((params){4, 7, 1, 0}, all[i]).rhat, 7 * one, 1e-12);
        near(rhat((params){4, 1, 0, 0}, all[i]).rhat, one, 1e-12);
        if (all[i].kind == RHAT_ONCE)
            continue;
        /* patience beyond alpha: rounds wait for all, and no worker is marked
         */
        near(rhat((params){4, 2, 0.3, 1}, all[i]).rhat, one * (2 - pow(0.7, 4)),
             1e-12);
    }
    near(rhat((params){1, 3, 0.25, 0}, dip(1, 3, 1)).rhat, 1.5, 1e-12);
    assert_true(isinf(rhat((params){2, 3, 1, 0}, dip(2, 1, 1)).f_binomial));
}

/* ---- chains against simulated rounds --------------------------------------
 */

/* The rules in terms of products instead of marks: the results that each has.
 */
typedef struct played {
    double rhat, sd;
} played;

static played play(params q, scheme s, bool early, uint64_t seed)
{
    enum { BATCHES = 40, ROUNDS = 4000 };
    size_t T = s.kind == RHAT_DIP ? s.T : s.W - 1, got[16] = {0};
    size_t marked[16] = {0};
    double sum = 0, squares = 0;

    assert_true(T < 15);
    for (uint32_t b = 0; b < BATCHES; b++) {
        double time = 0;

        for (uint32_t t = 0; t < often(ROUNDS); t++) {
            size_t slow = 0, open = 0, due = 0, in, window = 0;
            bool wait = false;
            double took;

            memmove(got + 1, got, T * sizeof *got);
            got[0] = 0;
            for (uint32_t w = 0; w < q.workers; w++) {
                kf_rng r = kf_rng_stream(seed + b, KF_FOR_DATA, w, t);

                slow += kf_rng_uniform(&r) < q.delta;
            }
            in = q.workers - slow;
            if (s.kind == RHAT_DIP) {
                for (size_t a = 0; a < T; a++)
                    open += got[a] < s.threshold;
                if (got[T] < s.threshold)
                    due = (s.threshold - got[T] + s.lambda - 1) / s.lambda;
                wait = due && got[T] + in * due < s.threshold;
            } else {
                for (size_t a = 0; a <= T; a++)
                    open += !early || got[a] < s.threshold;
                for (size_t a = 0; a < T; a++)
                    window += marked[a];
                wait = window + slow > s.N;
            }
            wait |= slow == q.workers;
            took = wait ? q.alpha : slow ? 1 + q.mu : 1;
            time += took * (double)(open + due);
            memmove(marked + 1, marked, T * sizeof *marked);
            marked[0] = wait ? 0 : slow;
            for (size_t a = 0; a <= T; a++)
                got[a] += q.workers - marked[0];
        }
        time /= (double)s.threshold * (double)often(ROUNDS);
        sum += time;
        squares += time * time;
    }
    sum /= BATCHES;
    return (played){sum, sqrt((squares / BATCHES - sum * sum) / (BATCHES - 1))};
}

static void against(params q, scheme s, bool early, double exact, uint64_t seed)
{
    played p = play(q, s, early, seed);

    near(p.rhat, exact, 4.5 * p.sd + 1e-9);
    if (SLOWED == 1 && test_scale() >= 1)
        assert_at_most(4.5 * p.sd / exact, 0.02); /* so 2 % can be asserted */
}

static void chains_are_played(void **state)
{
    static const params where[] = {
        {4, 5, 0.3, 0}, {6, 10, 0.3, 0}, {4, 5, 0.3, 0.25}, {3, 2, 0.6, 0.5}};
    uint64_t seed = 100;

    (void)state;
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        params q = where[i];

        for (size_t beta = q.workers; beta <= 3 * q.workers; beta += 3)
            for (size_t lambda = 1; lambda <= q.workers; lambda += 2) {
                scheme s = dip(beta, 3, lambda);

                against(q, s, false, rhat(q, s).rhat, seed += 100);
            }
        for (size_t N = 1; N < 4 * q.workers; N += 4) {
            scheme s = idip(N, 4);
            result r = rhat(q, s);

            s.threshold = r.threshold;
            against(q, s, false, r.exact_fixed_load, seed += 100);
            against(q, s, true, r.exact_early_finish, seed += 100);
        }
    }
}

/* ---- refusals -------------------------------------------------------------
 */

static void refused(params q, scheme s, kofn_status st, const char *words)
{
    result r = {.rhat = -1};

    assert_status(st, rhat_of(&q, &s, &r));
    assert_true(r.rhat == -1);
    if (!strstr(kofn_errmsg(), words))
        fail_msg("\"%s\" does not say \"%s\"", kofn_errmsg(), words);
}

static void wrong_arguments(void **state)
{
    scheme s;

    (void)state;
    refused((params){0, 5, .3, 0}, once(1), KOFN_INVAL, "workers = 0");
    refused(paper, once(0), KOFN_INVAL, "threshold = 0");
    refused(paper, once(5), KOFN_INVAL, "threshold = 5");
    refused(paper, dip(0, 3, 1), KOFN_INVAL, "threshold = 0");
    refused(paper, dip(6, 3, 5), KOFN_INVAL, "lambda = 5");
    refused(paper, dip(6, 300, 4), KOFN_UNSUITED, "states");
    refused(paper, idip(16, 4), KOFN_INVAL, "N = 16");
    refused(paper, idip(3, 0), KOFN_INVAL, "W = 0");
    refused(paper, idip(3, 300), KOFN_UNSUITED, "states");
    assert_status(KOFN_UNSUITED,
                  rhat_best(&(params){50, 5, .3, 0}, RHAT_DIP, 3, &s, NULL));
}

TEST_FILE(rhat_test)
{
    const struct CMUnitTest tests[] = {
        TEST(figures, "rhat: the published figures are reproduced"),
        TEST(
            claim_of_the_paper,
            "rhat: the printed bound fails in 279 of 720 cases, exact in none"),
        TEST(order_of_figure_1,
             "rhat: the order of figure 1 holds at every delta"),
        TEST(expected_rounds,
             "rhat: expected rounds equal their series and Wald's bounds"),
        TEST(limit_of_beta, "rhat: growing beta has a limit and no best value"),
        TEST(without_delay,
             "rhat: without a delay DIP and IDIP are single rounds"),
        TEST(edges, "rhat: edge cases agree (none slow, all slow, one worker)"),
        TEST(chains_are_played,
             "rhat: Markov chains agree with simulated rounds within 2 %"),
        TEST(wrong_arguments,
             "rhat: wrong arguments are refused with the reason"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("rhat", tests, NULL, NULL);
}
