/* io_csv_test.c -- CSV, and the numbers of all texts against strtod. */
#include "comma_locale.h"
#include "io_rig.h"
#include "rig.h"

#include "base/rng.h"
#include "io/text.h"

#include <math.h>

/* ---- CSV ----------------------------------------------------------------- */

static void csv_variants(void **state)
{
    static const struct {
        const char *text;
        size_t rows, cols;
        double want[6];
        /* clang-format off */
    } all[] = {
        {"1,2,3\n4,5,6\n", 2, 3, {1, 2, 3, 4, 5, 6}},
        {"1;2;3\r\n4;5;6\r\n", 2, 3, {1, 2, 3, 4, 5, 6}},
        {"1\t2\t3\n4\t5\t6", 2, 3, {1, 2, 3, 4, 5, 6}},
        {"  1   2 3\n4\t5 6  \n", 2, 3, {1, 2, 3, 4, 5, 6}},
        {" 1 ,\t2\n3,4 \n", 2, 2, {1, 2, 3, 4}},
        {"\xef\xbb\xbf"
         "1,2\n",
         1, 2, {1, 2}},
        {"x,y z,\"a,b\"\n1,2,3\n", 1, 3, {1, 2, 3}},
        {"\"he said \"\"x\"\"\";y\n1;2\n", 1, 2, {1, 2}},
        {"\ta\tb\n0\t1\t2\n", 1, 3, {0, 1, 2}},
        {"# by hand\n\n\"1\",\" 2 \"\n  # more\n-3e2,+.5\n\n",
         2, 2, {1, 2, -300, .5}},
        {"1\n2\n3\n", 3, 1, {1, 2, 3}},
        {"x\r\n1\r\n2.\r\n", 2, 1, {1, 2}},
        {"7", 1, 1, {7}},
        {"5e-1 \n", 1, 1, {.5}},
        /* names that contain separators */
        {"house price\n1\n2\n", 2, 1, {1, 2}},
        {"height (cm)\n170\n180\n", 2, 1, {170, 180}},
        {"temp; C,weight\n1,2\n3,4\n", 2, 2, {1, 2, 3, 4}},
        {"\"a;b\",\"c d\"\n1,2\n", 1, 2, {1, 2}},
        {"\"price, total\"\n1\n2\n", 2, 1, {1, 2}},
        {"price, net;tax, all\n1;2\n", 1, 2, {1, 2}},
        {"a, b\tc\n1\t2\n", 1, 2, {1, 2}},
        {"item #,n\n1,2\n", 1, 2, {1, 2}},
        {"x 1,x 2\n1,2\n", 1, 2, {1, 2}},
        {"2020 [USD],a\n1,2\n", 1, 2, {1, 2}},
        {",a\n0,1\n1,5\n", 2, 2, {0, 1, 1, 5}},
        /* bars */
        {"a|b\n1|2\n3|4\n", 2, 2, {1, 2, 3, 4}},
        {"1 | 2\n3 | 4\n", 2, 2, {1, 2, 3, 4}},
        /* Excel's separator line */
        {"sep=;\na;b\n1;2\n", 1, 2, {1, 2}},
        {"\xef\xbb\xbfsep=,\r\n1,2\r\n", 1, 2, {1, 2}},
        {"\"sep=|\"\n1|2\n", 1, 2, {1, 2}},
        {"SEP=\t\n1\t2\n", 1, 2, {1, 2}},
        {"sep=;\n1,5\n2,5\n", 2, 1, {1.5, 2.5}},
        /* a separator after every row */
        {"1,2,\n3,4,\n", 2, 2, {1, 2, 3, 4}},
        {"1;2; \n3;4;\n", 2, 2, {1, 2, 3, 4}},
        {"1\t2\t\n3\t4\t\n", 2, 2, {1, 2, 3, 4}},
        {"a,b\n1,2,\n", 1, 2, {1, 2}},
        {"a,b,\n1,2,\n3,4, # c\n", 2, 2, {1, 2, 3, 4}},
        {"1|\n2|\n", 2, 1, {1, 2}},
        /* comments after numbers */
        {"# made by numpy\n1.0 2.0 # c\n3.0 4.0\n", 2, 2, {1, 2, 3, 4}},
        {"1,2#c\n3,4 # a;b,c\n", 2, 2, {1, 2, 3, 4}},
        {"1 # a;b\n2\n", 2, 1, {1, 2}},
        {"x\n1\t#1\n2\n", 2, 1, {1, 2}},
        /* decimal commas */
        {"1;2\n1,5;2\n", 2, 2, {1, 2, 1.5, 2}},
        {"a;b\n1,500;-,5\n-2,5e3;+1,\n", 2, 2, {1.5, -.5, -2500, 1}},
        {"1,5\t2,25\n", 1, 2, {1.5, 2.25}},
        {"0,125|\"2,125\"\n", 1, 2, {.125, 2.125}},
        {"1,5\n2,5\n", 2, 2, {1, 5, 2, 5}},
        {"1,5", 1, 2, {1, 5}},
    };
    /* clang-format on */

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        reads_as("a.csv", all[k].text, strlen(all[k].text),
                 all[k].cols == 1 ? 1 : 2, all[k].rows, all[k].cols,
                 all[k].want);
}

static void csv_refusals(void **state)
{
    static const char *const all[][2] = {
        {"1,2\n3\n", "line 2|1 columns|line 1 has 2"},
        {"# c\n1,2\n\n3,4,5\n", "line 4|more than the 2|line 2"},
        {"1,,3\n", "line 1, column 2|empty"},
        {"1,2,\n", "line 1, column 3|empty"},
        {"\t1\t2\n\t3\t4\n\t5\t6\n", "line 1, column 1|empty"},
        {"1,2\n3,four\n", "line 2, column 2|'four'"},
        {"x,1\n2,3\n", "line 1, column 1|'x'"},
        {"a,b\nc,d\n1,2\n", "line 2, column 1|'c'"},
        {"1 2\n1,5 2\n", "line 2, column 1|'1,5'"},
        {"NA,NA\n1,2\n3,4\n", "line 1 has no numbers and could be data"},
        {"null\n1\n", "line 1 has no numbers and could be data|missing"},
        {"# c\n-;N/A\n1;2\n", "line 2 has no numbers and could be data"},
        {"\"\",\"na\"\n1,2\n", "line 1 has no numbers and could be data"},
        {",\n1,2\n", "line 1 has no numbers and could be data"},
        {"NA NA\n1\n2\n", "line 1 has no numbers and could be data"},
        {"1 2,3 4\n5,6\n", "line 1 has no numbers|numbers stand in"},
        {"170 cm,60 kg\n180,70\n", "line 1 has no numbers|numbers stand in"},
        {"170 cm\n180\n", "line 1, column 2|'cm'"},
        {"a,b\n1\n2\n", "line 2 has 1 columns|line 1 has 2"},
        {"1,5\n2\n3\n", "line 2 has 1 columns|line 1 has 2"},
        {"a;b\n1,2\n", "line 2 has 1 columns|line 1 has 2"},
        {"a,b,c\n1,2,\n3,4,\n", "line 2, column 3|empty"},
        {"1,2,\n3,4\n", "line 1, column 3|empty"},
        {"1,2\n3,4,\n", "line 2 has more than the 2"},
        {"1,2,\n3,4,\n5,6\n", "line 3 does not end in a separator"},
        {"1,2,\n3,4,\n5,6,7\n", "line 3 has more than the 2"},
        {"1,2,,\n3,4,,\n", "line 1, column 3|empty"},
        {"|1|2|\n|3|4|\n", "line 1, column 1|empty"},
        {"1,2\n3,x # c\n", "line 2, column 2|'x'"},
        {"sep=:\n1:2\n", "line 1|sep=':'"},
        {"sep=;\n1,2,3\n", "line 2 has no numbers"},
        {"1,5;2\n3;4.5\n", "line 2|'4.5' has a point|line 1 has a comma"},
        {"1;2.5\n\n3,5;4\n", "line 3|'3,5' has a comma|line 1 has a point"},
        {"x;y\n1,500;2\n-2,000;3\n", "line 2|'1,500'|decimal|digits"},
        {"1,2,3;4\n", "line 1, column 1|'1,2,3'"},
        {"1.234,5;2\n", "line 1, column 1|'1.234,5'"},
        {"1,2\n3;4\n", "line 2, column 1|'3;4'"},
        {"1\n2,3\n", "line 2, column 1|'2,3'"},
        {"1\n1 000\n", "'1 000'"},
        {"1\r2\r3\r", "no line of numbers|\\n or \\r\\n, not \\r"},
        {"1,2\r3,4\r", "line 1, column 2|'2\\x0d3'"},
        {"\r\r", "no line of numbers"},
        {"1\n0x10\n", "'0x10'"},
        {"1\n1e\n", "'1e'"},
        {"1\n-\n", "'-'"},
        {"1\n\x1b]0;\n", "'\\x1b]0;'"},
        {"\"1,2\n", "line 1, column 1|never closed"},
        {"1,\"2\"3\n", "line 1, column 2|'3' follows the closing quote"},
        {"\"1\"\"2\"\n3\n4 5\n", "line 3"},
        {"a,b\n", "no line of numbers"},
        {"# nothing\n\n", "no number"},
        {"\xef\xbb\xbf", "no number"},
    };
    static const char *const odd[][2] = {
        {"1,2\n3,nan\n", "line 2, column 2|nan"},
        {"NaN\n", "line 1, column 1"},
        {"1,-Infinity\n", "line 1, column 2|-Infinity"},
        {"1\n-1e999\n", "line 2, column 1|-1e999|too large"},
        {"1;1,5e999\n", "line 1, column 2|1,5e999|too large"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(KOFN_FORMAT, "a.csv", all[k][0], strlen(all[k][0]), all[k][1]);
    for (size_t k = 0; k < COUNT(odd); k++)
        refused(KOFN_NONFINITE, "a.csv", odd[k][0], strlen(odd[k][0]),
                odd[k][1]);
}

/* Neither the first line nor the first rows decide alone. */
static void csv_long_tables(void **state)
{
    static char text[200000];
    size_t n = (size_t)sprintf(text, "temp; C,weight\n");
    kofn_file *f;

    (void)state;
    for (int k = 0; k < 10000; k++)
        n += (size_t)sprintf(text + n, "%d,%d\n", k, -k);
    assert_ok(kf_file_parse(&f, text, n, "a.csv"));
    assert_int_equal(f->matrix.dense->rows, 10000);
    assert_true(at(f->matrix.dense, 9999, 1) == -9999);
    kofn_file_free(f);
    n += (size_t)sprintf(text + n, "1;2\n");
    refused(KOFN_FORMAT, "a.csv", text, n, "line 10002, column 1|'1;2'");
}

/* ---- numbers ------------------------------------------------------------- */

static void same_as_strtod(const char *text)
{
    const char *end;
    double got = -1, want = strtod(text, NULL);
    kf_scan found = kf_scan_number(text, text + strlen(text), &end, &got);

    if (found != (isinf(want) ? KF_TOO_LARGE : KF_NUMBER) || *end ||
        memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%s: %a, not %a", text, got, want);
}

static size_t random_digits(kf_rng *r, char *to, size_t n)
{
    for (size_t k = 0; k < n; k++)
        to[k] = (char)('0' + kf_rng_below(r, 10));
    return n;
}

static void numbers_as_strtod(void **state)
{
    static const char *const odd[] = {
        "0",
        "-0",
        "0.0e5",
        "000",
        "1",
        "9007199254740993",
        "9007199254740992.99999999999999999999999999999999999999999999999999",
        "9007199254740993.0000000000000000000000000000000000000000000000001",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "10000000000000000000",
        "4.9406564584124654e-324",
        "2.4703282292062e-324",
        "2.4703282292062327208e-324",
        "1e-400",
        "1e400",
        "-1e309",
        "1e308",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "1e99999999999999999",
        "1e-99999999999999999999",
        "0e99999999999",
        "00000000000000000000001e0",
        ".00000000000000000000000000000000000000000000001",
        "123e-2",
        "5.",
        "8.5070591730234616e37",
        "1e27",
        "1e28",
        "1e-27",
        "1e-28",
        "1.e+3",
    };
    kf_rng r = kf_rng_stream(3, KF_FOR_DATA, 0, 0);
    char text[3000];

    (void)state;
    for (size_t k = 0; k < COUNT(odd); k++)
        same_as_strtod(odd[k]);
    for (size_t k = 0; k < often(100000); k++) {
        size_t n = 0, most = k % 1000 ? 25 : 1400;

        text[n++] = "+-"[k & 1];
        n -= kf_rng_below(&r, 2);
        n += random_digits(&r, text + n, 1 + kf_rng_below(&r, most));
        if (kf_rng_below(&r, 3)) {
            text[n++] = '.';
            n += random_digits(&r, text + n, kf_rng_below(&r, most));
        }
        text[n] = 0;
        if (kf_rng_below(&r, 2))
            sprintf(text + n, "%c%+d", "eE"[k >> 1 & 1],
                    (int)kf_rng_below(&r, k % 3 ? 60 : 700) -
                        (k % 3 ? 30 : 350));
        same_as_strtod(text);
    }
    /* Halfway between two neighbours, and slightly off: (2 w + 1) / 2 times a
     * power of two, printed exactly. */
    for (size_t k = 0; k < often(20000); k++) {
        double w = (double)(kf_rng_u64(&r) >> 11 | (uint64_t)1 << 52);
        int e = (int)kf_rng_below(&r, 90) - 45;
        size_t n;

        n = (size_t)sprintf(text, "%.70Lf", ldexpl((long double)w + 0.5L, e));
        same_as_strtod(text);
        text[n++] = '1';
        text[n] = 0;
        same_as_strtod(text);
    }
}

static void numbers_print_and_read_back(void **state)
{
    kf_rng r = kf_rng_stream(4, KF_FOR_DATA, 0, 0);
    char text[KF_DIGITS];
    const char *end;
    double back;

    (void)state;
    for (size_t k = 0; k < often(50000); k++) {
        uint64_t bits = kf_rng_u64(&r);
        double v;
        float x;
        size_t n;

        memcpy(&v, &bits, sizeof v);
        memcpy(&x, &bits, sizeof x);
        if (isfinite(v)) {
            n = kf_io_print_number(text, v, false);
            assert_int_equal(kf_scan_number(text, text + n, &end, &back),
                             KF_NUMBER);
            assert_true(back == v && end == text + n);
        }
        if (isfinite(x)) {
            n = kf_io_print_number(text, (double)x, true);
            kf_scan_number(text, text + n, &end, &back);
            assert_true((float)back == x && n < 16);
        }
    }
    assert_int_equal(kf_io_print_number(text, 0.1, false), 3);
    assert_string_equal(text, "0.1");
    kf_io_print_number(text, 1.7976931348623157e308, false);
    assert_string_equal(text, "1.7976931348623157e+308");
    kf_io_print_number(text, -NAN, false);
    assert_string_equal(text, "nan");
    kf_io_print_number(text, -INFINITY, true);
    assert_string_equal(text, "-inf");
}

static void numbers_in_any_locale(void **state)
{
    const char *text = "0.1234567890123456789012345e-100", *end;
    char out[KF_DIGITS];
    double v;

    (void)state;
    if (!comma_begin(folder))
        skip();
    kf_io_print_number(out, -1.25e-7, false);
    assert_string_equal(out, "-1.25e-07");
    assert_int_equal(kf_scan_number(text, text + strlen(text), &end, &v),
                     KF_NUMBER);
    refused(KOFN_FORMAT, "a.csv", "1 2\n1,5 2\n", 10, "'1,5'");
    comma_end();
    assert_true(*end == 0 && v == strtod(text, NULL));
}

static void csv_labels(void **state)
{
    static const char text[] = "a;\"the; label\";a\n1;2,5;3\n4;5,5;6\n";
    static const char *const names[] = {"the; label", "2"};
    static const char *const wrong[] = {"b", "0", "4", "2x", "", "a"};
    static const double points[] = {1, 3, 4, 6}, labels[] = {2.5, 5.5};
    char path[300];
    kofn_file *f;

    (void)state;
    snprintf(path, sizeof path, "%s/l.csv", folder);
    assert_ok(kofn_write_bytes(path, text, strlen(text)));
    for (size_t i = 0; i < 2; i++) {
        assert_ok(kofn_file_open_labelled(&f, path, names[i]));
        assert_int_equal(f->matrix.dense->cols, 2);
        assert_int_equal(f->matrix.dense->rows, 2);
        assert_memory_equal(f->matrix.dense->data, points, sizeof points);
        assert_memory_equal(f->labels->data, labels, sizeof labels);
        kofn_file_free(f);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(kofn_file_open_labelled(&f, path, wrong[i]),
                         KOFN_INVAL);
        assert_null(f);
        assert_non_null(strstr(kofn_errmsg(), wrong[i][0] == 'a'
                                                  ? "columns 1 and 3 are both"
                                                  : "from 1 to 3, or a name"));
    }
    assert_ok(kofn_write_bytes(path, "1\n2\n", 4));
    assert_int_equal(kofn_file_open_labelled(&f, path, "1"), KOFN_INVAL);
    assert_non_null(strstr(kofn_errmsg(), "there are no points"));
    assert_int_equal(kofn_file_open_labelled(&f, path, NULL), KOFN_INVAL);
}

TEST_FILE(io_csv_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            csv_variants,
            "csv: every variant is read (separators, names, comments, commas)"),
        TEST(csv_refusals, "csv: wrong files are refused with line and reason"),
        TEST(csv_long_tables,
             "csv: the whole file decides on names and separators"),
        TEST(csv_labels, "csv: a column named or numbered has the labels"),
        TEST(numbers_as_strtod,
             "csv: numbers equal those of strtod to the bit"),
        TEST(numbers_print_and_read_back,
             "csv: printed numbers are read back to the bit"),
        TEST(numbers_in_any_locale, "csv: numbers do not depend on the locale"),
    };

    return cmocka_run_group_tests_name("io_csv", tests, set_up, tear_down);
}
