/* io_edges_test.c -- lists of edges: every variant and every refusal. */
#include "io_rig.h"

#include "base/rng.h"

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
        {"0 2\r\n\r\n  2   2 \r\n", 2, {0, 1, 0, 1}},
        {"1 0\n1 0\n# twice", 2, {0, 0, 1, 0}},
        {"0,1\n1 ,0", 2, {0, 1, 1, 0}},
        {"from to\n10 7\n07 3", 3, {0, 0, 0, 1, 0, 0, 0, 1, 0}},
        {"b a\na 7\n", 3, {0, 0, 0, 1, 0, 0, 0, 1, 0}},
        {"# Undirected graph\n4 9\n9 9\n9 4", 2, {0, 1, 1, 1}},
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
        {"0 1\n,1\n", "line 2 ends where|goes from"},
        {"0 1 0.5\n", "line 1|'0.5' follows|--weights"},
        {"0 1 # c\n", "line 1|'#' follows"},
        {"# nothing\n", "no edge"},
        {"%\n", "no edge"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++)
        refused(KOFN_FORMAT, "a.edges", all[k][0], strlen(all[k][0]),
                all[k][1]);
}

/* Opens a list of edges for this use. */
static kofn_file *graph(const char *text, int use)
{
    kofn_file *f;

    write_file("a.edges", text, strlen(text));
    assert_ok(kofn_file_open(&f, path_of("a.edges"),
                             (kofn_file_use)(KOFN_FILE_GRAPH | use)));
    return f;
}

static void names_of_nodes(void **state)
{
    static const char *const numbers[] = {"3", "20", "18446744073709551617"};
    static const char *const names[] = {"10", "a", "ab", "b"};
    kofn_file *f = graph("20 3\n0018446744073709551617 20\n", 0);

    (void)state;
    for (size_t k = 0; k < 3; k++)
        assert_string_equal(f->names[k], numbers[k]);
    assert_true(sparse_at(f->matrix.sparse, 2, 1) == 1);
    kofn_file_free(f);
    f = graph("b ab\na b\n10 a\n", 0);
    for (size_t k = 0; k < 4; k++)
        assert_string_equal(f->names[k], names[k]);
    kofn_file_free(f);
    f = graph("1 0\n2 1\n", 0);
    assert_null(f->names);
    kofn_file_free(f);
}

static void uses_of_graphs(void **state)
{
    kofn_file *f = graph("# Nodes: 5 Edges: 7\n3 1 0.5\n3 1 0.25\n1 1 2\n",
                         KOFN_GRAPH_WEIGHTS | KOFN_GRAPH_UNDIRECTED);

    (void)state;
    assert_int_equal(f->matrix.sparse->rows, 2);
    assert_true(sparse_at(f->matrix.sparse, 1, 0) == 0.75);
    assert_true(sparse_at(f->matrix.sparse, 0, 1) == 0.75);
    assert_true(sparse_at(f->matrix.sparse, 0, 0) == 2);
    assert_true(f->undirected && f->listed == 3);
    assert_true(f->said_nodes == 5 && f->said_edges == 7);
    kofn_file_free(f);
    f = graph("# undirected\n3 1\n", KOFN_GRAPH_DIRECTED | KOFN_GRAPH_ISOLATED);
    assert_int_equal(f->matrix.sparse->rows, 4);
    assert_true(sparse_at(f->matrix.sparse, 3, 1) == 1);
    assert_true(sparse_at(f->matrix.sparse, 1, 3) == 0);
    assert_true(!f->undirected && !f->names);
    kofn_file_free(f);
}

/* Fails unless the last message has all words between '|'. */
static void assert_message(const char *words)
{
    char all[200], *rest, *word;

    snprintf(all, sizeof all, "%s", words);
    for (word = strtok_r(all, "|", &rest); word;
         word = strtok_r(NULL, "|", &rest))
        if (!strstr(kofn_errmsg(), word))
            fail_msg("\"%s\" is not in: %s", word, kofn_errmsg());
}

static void refused_uses(void **state)
{
    static const struct {
        const char *text;
        int use;
        const char *words;
    } all[] = {
        {"0 1\n5000000 0\n1 2\n", KOFN_GRAPH_ISOLATED,
         "node 5000000|the 3 edges"},
        {"0 18446744073709551617\n", KOFN_GRAPH_ISOLATED,
         "node 18446744073709551617"},
        {"a b\n", KOFN_GRAPH_ISOLATED, "the nodes have names"},
        {"0 1\n", KOFN_GRAPH_WEIGHTS, "line 1 has no weight"},
        {"0 1 -1\n", KOFN_GRAPH_WEIGHTS, "line 1: '-1' is no weight"},
        {"0 1 x\n", KOFN_GRAPH_WEIGHTS, "line 1: 'x' is no weight"},
        {"0 1 1e999\n", KOFN_GRAPH_WEIGHTS, "line 1: '1e999' is no weight"},
        {"0 1 1 9\n", KOFN_GRAPH_WEIGHTS, "line 1: '9' follows the weight"},
    };

    (void)state;
    for (size_t k = 0; k < COUNT(all); k++) {
        kofn_file *f;

        write_file("a.edges", all[k].text, strlen(all[k].text));
        assert_int_equal(
            kofn_file_open(&f, path_of("a.edges"),
                           (kofn_file_use)(KOFN_FILE_GRAPH | all[k].use)),
            KOFN_FORMAT);
        assert_message(all[k].words);
    }
}

/* 5,000 nodes with numbers far apart, against a bitmap. */
static void many_nodes(void **state)
{
    enum { NODES = 5000, EDGES = 20000 };
    static bool entry[NODES][NODES];
    kf_rng r = kf_rng_stream(7, KF_FOR_DATA, 0, 0);
    char *text = malloc(EDGES * 24), *at = text;
    size_t row[NODES], rows = 0, arcs = 0;
    bool seen[NODES] = {false};
    kofn_file *f;

    (void)state;
    assert_non_null(text);
    for (size_t e = 0; e < EDGES; e++) {
        size_t i = (size_t)kf_rng_below(&r, NODES);
        size_t j = (size_t)kf_rng_below(&r, NODES);

        at += sprintf(at, "%zu %zu\n", 1000 * i + 1, 1000 * j + 1);
        seen[i] = seen[j] = true;
        arcs += !entry[i][j];
        entry[i][j] = true;
    }
    for (size_t i = 0; i < NODES; i++)
        row[i] = seen[i] ? rows++ : SIZE_MAX;
    f = graph(text, 0);
    assert_int_equal(f->matrix.sparse->rows, rows);
    assert_int_equal(f->matrix.sparse->ptr[rows], arcs);
    for (size_t i = 0; i < NODES; i++)
        for (size_t j = 0; j < NODES; j++)
            if (entry[i][j])
                assert_true(sparse_at(f->matrix.sparse, row[i], row[j]) == 1);
    kofn_file_free(f);
    free(text);
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
    assert_int_equal(f->matrix.sparse->rows, 2);
    kofn_file_free(f);
    assert_ok(kofn_file_open(&f, path_of("g.csv"), KOFN_FILE_READ));
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
         false},
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
        TEST(names_of_nodes,
             "edges: nodes are those that edges name, with their names"),
        TEST(uses_of_graphs,
             "edges: weights, directions and nodes without edges are as asked"),
        TEST(refused_uses,
             "edges: lists that do not fit what is asked are refused"),
        TEST(many_nodes, "edges: 20,000 edges of 5,000 nodes are all there"),
        TEST(comments_on_directions,
             "edges: a comment that calls the graph undirected is noticed"),
        TEST(graphs_in_text,
             "edges: text is a graph only if a graph is asked for"),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
