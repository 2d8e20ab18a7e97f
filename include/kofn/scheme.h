/* scheme.h -- interface of a coding scheme: how operands are cut, and the
 * coefficients of a seat.
 *
 * The resident operand A and the round input B are cut into parts.  A seat
 * returns a row of coefficients times unknown *symbols*.  The wanted output is
 * a matrix times the symbols.
 *
 *     block of seat i = sum_j E0[i][j] A_j       message = sum_j E1[i][j] B_j
 *     result_i = block * message = sum_s G[i][s] symbol_s
 *     wanted_w = sum_s W[w][s] symbol_s
 *
 * For KOFN_LEFT, the product B A, the result is message * block.
 *
 * A scheme provides only this.  Encoding, the test for enough results,
 * decoding, noise and error location are computed by code that all schemes
 * share.
 *
 * Terms: a *part* is a piece of an operand.  A *seat* is a permanent position
 * in the code; workers come and go, and take seats.  A *strip* is a row offset
 * of a block, the unit in which work is dealt and decoded.
 *
 * For authors of codes: fill in a kofn_scheme, as examples/scheme.c does.
 * Plans made by kofn_plan_new_for run on every port.
 *
 * A coefficient may represent a small matrix.  A quaternion code has components
 * = 4: a seat holds four sub-blocks, returns four results together, and has
 * four rows in each table.
 */
#ifndef KOFN_SCHEME_H
#define KOFN_SCHEME_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cut into rows x cols parts.  Part j is at row j % rows and column j /
 * rows. */
typedef struct kofn_cut {
    size_t rows, cols;
} kofn_cut;

typedef struct kofn_args kofn_args; /* the parsed key=value pairs */

/* The layout of a code.  All sizes are of one group.
 *
 * KOFN_SUM: parts are the numbers with which f is called.  A seat computes the
 * parts with a nonzero coefficient in its E0.  The vector f(j, x) is cut into
 * `wants` segments, and symbol j * wants + z is segment z of f(j, x).  W stays
 * NULL: want z is the sum of the symbols z, wants + z, ...
 *
 * With submessages > 1, the rows of submessage t of seat i are requested as
 * those of seat i * submessages + t.  `enough` and `threshold` count answers.
 * All submessages of a seat have the same E0. */
typedef struct kofn_layout {
    /* Given to the scheme. */
    kofn_problem problem;
    const kofn_args *args;
    uint64_t seed;
    size_t workers; /* of the plan, at the start */

    /* Set by layout(). */

    /* Independent copies of the code, each on a band of rows of A.  Seat i of
     * the plan is seat i / groups of group i % groups.  Default 1. */
    size_t groups;
    size_t seats;     /* at the start; default 1                           */
    size_t max_seats; /* seats with fresh rows; default SIZE_MAX: no limit */
    size_t enough;    /* fewer seats cannot decode                         */
    /* Any `threshold` seats decode.  Default: `enough`. */
    size_t threshold;
    size_t components; /* results that a seat returns together; default 1 */
    /* Products that are summed in a result; default 1.  In GRAM, the sub-blocks
     * are stacked. */
    size_t inner;
    bool adjoint; /* the code is transposed; needs E1 == NULL and W == NULL */
    bool whole;   /* answers cannot be computed strip by strip              */
    /* A round uses the answers of all live workers that are not late, at least
     * `enough`. */
    bool everybody;
    /* KOFN_SUM with a part for each seat: the last answer of a seat replaces a
     * missing one. */
    bool remembers;
    /* Answers that a seat sends one after the other in a round, until it is
     * stopped; default 1. */
    size_t submessages;

    /* The next seven are for KOFN_STREAM.  There seats are rows, made on
     * demand, that any worker may answer; `seats` is the most that a product
     * may use (docs/math/sequential.md). */
    size_t delay;   /* rounds after its first in which a product is due    */
    size_t slots;   /* rows that a worker is asked for in a round; default 1 */
    size_t memory;  /* past rounds of marks that the hooks look at         */
    size_t plain;   /* number of uncoded rows, the first; `ask` uses them  */
    bool repeats;   /* a worker gets an incomplete row again               */
    bool due_first; /* due products are worked on first, not last          */
    bool keeps;     /* no product is over before it is due                 */

    kofn_cut cut[2]; /* cuts of A and B; {1, 1}, the default: not cut */
    /* Numbers of symbols and wants; symbols = 0: both are the parts of A. */
    size_t symbols, wants;
    /* Want w is block (w % grid_rows, w / grid_rows) of the output of the
     * group; default 1. */
    size_t grid_rows;
    /* wants x symbols, made by kofn_layout_table() and freed with the plan.
     * NULL: the identity. */
    double *W;
    void *state; /* the scheme's own data, read-only after layout() */
    void (*free_state)(void *state);
} kofn_layout;

/* Rows [lo, hi) of a block, and the index of the member of the live list that
 * computes them. */
typedef struct kofn_deal {
    size_t who, lo, hi;
} kofn_deal;
/* A list of deals, which kofn_scheme.deal fills. */
typedef struct kofn_deals kofn_deals;
/* Adds a deal to the list that kofn_scheme.deal fills.
 * KOFN_INVAL: there is no such member or strip. */
KOFN_API kofn_status kofn_deals_add(kofn_deals *d, size_t who, size_t lo,
                                    size_t hi);

/* A live worker.  Lists of them ascend by seat. */
typedef struct kofn_live {
    size_t seat;  /* within the group             */
    double speed; /* relative; 1 if it is unknown */
} kofn_live;

/* A parameter of a scheme.  The table serves --help, `kofn schemes`, range
 * checks and the fuzzer. */
typedef struct kofn_param {
    const char *name;
    long init, min, max;
    const char *what; /* description                                          */
    const char
        *choices; /* "a|b|c": the value is an index; NULL: it is a number */
} kofn_param;

#define KOFN_AUTO (-1L) /* value of a parameter that is not given */
/* Returns the value of a parameter; KOFN_AUTO if neither the user nor the table
 * gave one. */
KOFN_API long kofn_arg(const kofn_layout *L, const char *name);
/* Records the value that layout() chose for KOFN_AUTO, so that reports can show
 * it. */
KOFN_API void kofn_arg_choose(const kofn_layout *L, const char *name,
                              long value);

/* The workers that were *marked* in past rounds of a stream: those that had not
 * completed their tasks when the round ended.  The latest round comes first.
 * Marks are ordered by worker number. */
typedef struct kofn_past {
    size_t rounds, workers;
    const size_t *marked; /* number of marked workers of each round */
    const uint8_t *mark;  /* rounds x workers                       */
} kofn_past;

/* The state of a product of a stream when a round begins. */
typedef struct kofn_pending {
    size_t age;         /* rounds since its first                        */
    size_t got, wanted; /* answers                                       */
    size_t plain_left;  /* uncoded rows that were given to no worker     */
    size_t live;        /* live workers                                  */
} kofn_pending;

/* A request for rows that were given to no worker before; plain: uncoded rows,
 * if any are left. */
typedef struct kofn_ask {
    size_t rows;
    bool plain;
} kofn_ask;

/* A coding scheme.  The functions seat, ask and admits must be pure: equal
 * arguments give equal results. */
typedef struct kofn_scheme {
    size_t size; /* sizeof(kofn_scheme) */
    const char *name, *summary, *cite;
    unsigned ops;             /* kofn_op bits                */
    const kofn_param *params; /* ends with a NULL name       */

    /* Checks the parameters and sets the sizes.  It reports the reason of a
     * failure with kofn_say. */
    kofn_status (*layout)(kofn_layout *L);

    /* Fills the rows of one seat, which are zero on entry.  It is called for
     * seats below max_seats only.
     *   E0  (components * inner) x parts of A; row l * inner + t belongs to
     * component l. E1  inner x parts of B; NULL if B is not cut. G   components
     * x symbols.  NULL if layout() left `symbols` at 0; wants and symbols are
     * then the parts of A, and the result has the coefficients of the block. */
    kofn_status (*seat)(const kofn_layout *L, size_t seat, double *E0,
                        double *E1, double *G);

    /* Optional.  Deals `span` strips to the n live members.  Each strip goes to
     * at least `cover` members, enough <= cover <= n; in an adjoint code to
     * exactly `enough`.  NULL: each member works on all strips. */
    kofn_status (*deal)(const kofn_layout *L, const kofn_live *live, size_t n,
                        size_t cover, size_t span, kofn_deals *out);

    /* Optional.  Computes a decoder that is better than least squares.  D is
     * wants x (n * components), zero on entry, for the answers of these
     * ascending seats (or submessages of seats). KOFN_TOOFEW: the answers do
     * not determine the wants. KOFN_PARTIAL: D is the best approximation, to be
     * delivered with this status. KOFN_UNSUITED: use least squares. */
    kofn_status (*decode)(const kofn_layout *L, const uint32_t *seats, size_t n,
                          double *D);

    /* Optional, KOFN_STREAM.  Sets the rows of this product that the worker is
     * asked for in the round that begins.  NULL: one row. */
    void (*ask)(const kofn_layout *L, const kofn_pending *pending,
                const kofn_past *past, size_t who, kofn_ask *out);

    /* Optional, KOFN_STREAM.  Returns whether a round may end with these marks,
     * which are the first of `past`.  NULL: always. */
    bool (*admits)(const kofn_layout *L, const kofn_past *past);
} kofn_scheme;

/* Makes a plan with your own scheme.  `args` is "key=value,..." or NULL; the
 * other arguments are as in kofn_plan_new.  It copies *scheme, but not what it
 * points to, which must stay valid until the plan is freed.
 * KOFN_INVAL: also if layout() made an impossible layout.
 * Otherwise it returns the statuses of kofn_plan_new. */
KOFN_API kofn_status kofn_plan_new_for(kofn_plan **out, const kofn_problem *pb,
                                       const kofn_scheme *scheme,
                                       const char *args, size_t workers,
                                       uint64_t seed);

/* Adds your own scheme to those that plans know by name, until the process
 * ends. It copies *scheme, but not what it points to, which must stay valid.
 * `params` and the texts but `name` may be NULL. KOFN_INVAL: the name is taken
 * or has other characters than a-z, 0-9, - and _, a function is missing, or 64
 * schemes were added. */
KOFN_API kofn_status kofn_scheme_add(const kofn_scheme *scheme);
/* What a shared object defines that has schemes, for `kofn -s ./FILE.so:...`: a
 * list that ends with NULL. */
#define KOFN_SCHEMES_SYMBOL "kofn_schemes"

/* Returns scheme i, from 0: those of the library, those of its plugin for
 * comparison if it is installed, then those that were added.
 * NULL: there is no such scheme. */
KOFN_API const kofn_scheme *kofn_scheme_at(size_t i);
/* Returns the scheme of this name; NULL if there is none. */
KOFN_API const kofn_scheme *kofn_scheme_find(const char *name);

/* ---- helpers for authors ------------------------------------------------- */

/* Returns a table of rows x cols zeros for W; NULL if memory runs out. */
KOFN_API double *kofn_layout_table(size_t rows, size_t cols);

#ifdef __cplusplus
}
#endif
#endif
