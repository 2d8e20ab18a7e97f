/* io_edges_test.c -- lists of edges: every variant and every refusal. */
#include "io_rig.h"

static void edges_variants(void **state)
{
    static const struct {
        const char *text;
        size_t nodes;
        double want[9];
        /* clang-format off */
    } all[] = {
        {"# Directed graph\n# Nodes: 3 Edges: 3\n# FromNodeId\tToNodeId\n"
         "0\t1\n0\t2\n2\t0\n", 3, {0, 1, 1, 0, 0, 0, 1, 0, 0}},
        {"0 2\r\n\r\n  2   2 \r\n", 3, {0, 0, 1, 0, 0, 0, 0, 0, 1}},
        {"1 0\n1 0\n# twice", 2, {0, 0, 2, 0}},
        {"\xef\xbb\xbf" "0 0", 1, {1}},
        {"% asym unweighted\n% 1 2 2\n0 1\n % more\n", 2, {0, 1, 0, 0}},
    };
    /* clang-format on */

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        reads_as(k % 2 ? "a.edges" : "a.EDGES", all[k].text,
                 strlen(all[k].text), 2, all[k].nodes, all[k].nodes,
                 all[k].want);
}

static void edges_refusals(void **state)
{
    static const char *const all[][2] = {
        {"0 1\n2\n", "line 2 ends where|goes to"},
        {"0 1\n\n1 x\n", "line 3|'x' is not the number of a node"},
        {"0 1\n-1 0\n", "line 2|'-1'"},
        {"0 1\n1.0 0\n", "line 2|'1.0'"},
        {"0,1\n", "line 1|'0,1'"},
        {"from to\n0 1\n", "line 1|'from'"},
        {"0 1 0.5\n", "line 1|'0.5' follows|Matrix Market"},
        {"0 1 # c\n", "line 1|'#' follows"},
        {"0 4294967295\n", "line 1|'4294967295'"},
        {"0 18446744073709551617\n", "line 1|'18446744073709551617'"},
        {"0 1\n5000000 0\n1 2\n", "line 2 has node 5000000|only 3 edges"},
        {"# nothing\n", "no edge"},
        {"%\n", "no edge"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(KOFN_FORMAT, "a.edges", all[k][0], strlen(all[k][0]),
                all[k][1]);
}

/* Text is read as edges only if a graph is asked for. */
static void graphs_in_text(void **state)
{
    static const char text[] = "0\t1\n1\t2\n";
    static const char *const name[] = {"g.txt", "g.tsv", "g.dat", "g.edges"};
    static const char market[] =
        "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n";
    kofn_file *f;

    (void)state;
    for (size_t k = 0; k < COUNT(name); k++) {
        write_file(name[k], text, strlen(text));
        assert_ok(kofn_file_open(&f, path_of(name[k]), KOFN_FILE_GRAPH));
        assert_non_null(f->matrix.sparse);
        assert_int_equal(f->matrix.sparse->rows, 3);
        assert_true(sparse_at(f->matrix.sparse, 1, 2) == 1);
        kofn_file_free(f);
        assert_ok(kofn_file_open(&f, path_of(name[k]), KOFN_FILE_READ));
        assert_int_equal(!f->matrix.sparse, k < 3);
        kofn_file_free(f);
    }
    write_file("g.txt", market, strlen(market));
    assert_ok(kofn_file_open(&f, path_of("g.txt"), KOFN_FILE_GRAPH));
    assert_int_equal(f->matrix.sparse->rows, 2);
    kofn_file_free(f);
    write_file("g.csv", "0,1\n1,0\n", 8);
    assert_ok(kofn_file_open(&f, path_of("g.csv"), KOFN_FILE_GRAPH));
    assert_null(f->matrix.sparse);
    kofn_file_free(f);
}

/* Comments in front of the edges may call the graph undirected. */
static void comments_on_directions(void **state)
{
    static const struct {
        const char *text;
        bool undirected;
    } all[] = {
        {"# Undirected graph: a.txt\n0 1\n", true},
        {"# a.txt\r\n\r\n#UNDIRECTED\r\n0 1\r\n", true},
        {"# Directed graph (each unordered pair of nodes is saved once)\n0 1",
         true},
        {"% sym unweighted\n0 1\n", true},
        {"% asym unweighted\n0 1\n", false},
        {"# Directed graph\n0 1\n# undirected\n", false},
        {"0 1\n", false},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        kofn_file *f;

        write_file("a.edges", all[k].text, strlen(all[k].text));
        assert_ok(kofn_file_open(&f, path_of("a.edges"), KOFN_FILE_READ));
        assert_true(f->edges);
        assert_int_equal(f->undirected, all[k].undirected);
        kofn_file_free(f);
    }
}

TEST_FILE(io_edges_test)
{
    const struct CMUnitTest tests[] = {
        TEST(edges_variants, "edges: every variant is read"),
        TEST(edges_refusals,
             "edges: wrong files are refused with line and reason"),
        TEST(comments_on_directions,
             "edges: a comment that calls the graph undirected is noticed"),
        TEST(graphs_in_text,
             "edges: text is a graph only if a graph is asked for"),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
