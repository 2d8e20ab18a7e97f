/* scheme.h -- what a coding scheme is: a cut, and a few rows of numbers a seat.
 *
 * The resident operand A and the round input B are cut into parts.  What a
 * seat returns is a row of numbers times unknown *symbols*, and what is wanted
 * is a matrix times the symbols:
 *
 *     block of seat i = sum_j E0[i][j] A_j       message = sum_j E1[i][j] B_j
 *     result_i = block * message = sum_s G[i][s] symbol_s
 *     wanted_w = sum_s W[w][s] symbol_s
 *
 * For KOFN_LEFT, the product B A, it is message * block.
 *
 * A scheme says only this.  Encoding, "is this enough?", decoding, noise and
 * error location are the same arithmetic for all schemes and live elsewhere.
 *
 * Words: a *part* is a piece of an operand as cut; a *seat* is a position in
 * the code, for ever; workers come and go and sit on seats; a *strip* is a row
 * offset of a block, the unit in which work is dealt and decoded.
 *
 * For authors of codes: fill in a kofn_scheme, as examples/scheme.c does, and
 * kofn_plan_new_for makes plans of it that run wherever those of the library do.
 *
 * A coefficient may stand for a small matrix: a quaternion code has lanes = 4,
 * so that a seat holds four sub-blocks, answers four results together, and
 * contributes four rows to each table.
 */
#ifndef KOFN_SCHEME_H
#define KOFN_SCHEME_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Part j of an operand sits at row j % rows, column j / rows of the cut. */
typedef struct kofn_cut {
    size_t rows, cols;
} kofn_cut;

typedef struct kofn_args kofn_args; /* the parsed key=value pairs */

typedef struct kofn_layout {
    /* Given to the scheme. */
    kofn_problem problem;
    const kofn_args *args;
    uint64_t seed;
    size_t workers; /* of the plan, at the start */

    /* Set by layout().  All sizes are of one group: `groups` independent
     * copies of the code stand side by side on row bands of A, and seat i of
     * the plan is seat i / groups of group i % groups. */
    size_t groups;    /* 1 unless set                                        */
    size_t seats;     /* at the start                                        */
    size_t max_seats; /* beyond which no fresh rows exist; SIZE_MAX: none    */
    size_t enough;    /* no fewer seats can decode                           */
    size_t threshold; /* any this many seats decode; `enough` unless set     */
    size_t lanes;     /* results a seat answers together                     */
    size_t inner;     /* products summed in a result; 1 unless set.  In
                         GRAM the sub-blocks stand one below the other       */
    bool adjoint;     /* transposed; needs E1 == NULL, W == NULL           */
    bool whole;       /* answers are not to be had strip by strip            */
    bool everybody;   /* a round takes what all who are live, and not late,
                         answer; `enough` is the least                       */
    bool remembers;   /* KOFN_SUM, a part a seat: what a seat last answered
                         stands in for it when it is missing                 */
    size_t submessages; /* answers a seat sends one after the other in a
                         round, until it is stopped; 1 unless set            */

    /* KOFN_STREAM, where seats are rows that are made as they are asked for and
     * anybody answers any of them; `seats` are the most that a product may
     * take.  docs/math/sequential.md. */
    size_t delay;   /* rounds after its first in which a product is due       */
    size_t slots;   /* rows that a worker may be asked for in a round by the
                       scheme; 1 unless set                                   */
    size_t memory;  /* rounds of marks that the hooks look at                 */
    size_t plain;   /* the first so many rows are products of parts as they
                       are, and given out where `ask` says so                 */
    bool repeats;   /* whoever did not get done answers the same row again    */
    bool due_first; /* what is due is worked at first, not last               */
    bool keeps;     /* a product is not over before it is due                 */
    kofn_cut cut[2]; /* A, B; {1,1} is whole                                */
    size_t symbols, wants;
    size_t grid_rows; /* want w is block (w % grid_rows, w / grid_rows) of
                         the output band                                     */
    double *W;        /* wants x symbols; NULL: identity.  From
                         kofn_layout_table(), freed with the plan            */
    void *state;      /* the scheme's own, read-only after layout()          */
    void (*free_state)(void *state);
} kofn_layout;

/* KOFN_SUM: parts are numbers that f is called with, E0 says which of them a
 * seat computes (any number but 0), the vector f(j, x) is cut into `wants`
 * segments, symbol j*wants + z is segment z of f(j, x), and W is left NULL:
 * want z is the sum of symbols z, wants + z, ...
 *
 * With submessages > 1 the rows of submessage t of seat i are asked for as
 * those of seat i*submessages + t, `enough` and `threshold` count answers, and
 * the E0 of all submessages of a seat is the same. */

/* Rows [lo, hi) of a block for the member `who` of the live list. */
typedef struct kofn_deal {
    size_t who, lo, hi;
} kofn_deal;
typedef struct kofn_deals kofn_deals;
KOFN_API kofn_status kofn_deals_add(kofn_deals *d, size_t who, size_t lo,
                                    size_t hi);

typedef struct kofn_live {
    size_t seat;  /* within the group; the list ascends */
    double speed; /* relative; 1 when unknown           */
} kofn_live;

/* A parameter of a scheme.  The table of them serves --help, `kofn schemes`,
 * range checks and the fuzzer. */
typedef struct kofn_param {
    const char *name;
    long init, min, max;
    const char *what;
    const char *choices; /* "a|b|c": the value is an index; NULL: a number */
} kofn_param;

/* Value of a parameter; KOFN_AUTO where neither user nor table gave one. */
#define KOFN_AUTO (-1L)
KOFN_API long kofn_arg(const kofn_layout *L, const char *name);
/* Records the value that layout() chose for KOFN_AUTO, so that reports can say
 * it. */
KOFN_API void kofn_arg_choose(const kofn_layout *L, const char *name,
                              long value);

/* The workers that were *marked* in rounds of a stream: those that had not done
 * all they were asked for when the round ended.  The last round comes first;
 * marks are by workers' numbers. */
typedef struct kofn_past {
    size_t rounds, workers;
    const size_t *marked; /* so many, per round */
    const uint8_t *mark;  /* rounds x workers   */
} kofn_past;

/* Where a product of a stream stands as a round begins. */
typedef struct kofn_pending {
    size_t age;         /* rounds since its first */
    size_t got, wanted; /* answers                */
    size_t plain_left;  /* plain rows that nobody was asked for */
    size_t live;        /* workers that are there */
} kofn_pending;

/* A number of rows that nobody was asked for before; plain ones if there are
 * any. */
typedef struct kofn_ask {
    size_t rows;
    bool plain;
} kofn_ask;

typedef struct kofn_scheme {
    size_t size; /* sizeof(kofn_scheme), so that it may grow */
    const char *name, *summary, *cite;
    unsigned ops;             /* kofn_op bits                */
    const kofn_param *params; /* ends with a NULL name       */

    /* Check the parameters and set the sizes.  Failures keep their message
     * with kofn_say. */
    kofn_status (*layout)(kofn_layout *L);

    /* Fill the rows of one seat: E0 is (lanes inner) x parts of A, row
     * l*inner + t of lane l; E1 is inner x parts of B; G lanes x symbols; all
     * zero on entry.  E1 is NULL when B is whole.  G is NULL when wants and
     * symbols are the parts of A (layout() left `symbols` at 0), the result
     * then being mixed as the block is.  Pure: a function of the layout and
     * the seat.  Called for seats below max_seats only. */
    kofn_status (*seat)(const kofn_layout *L, size_t seat, double *E0,
                        double *E1, double *G);

    /* Optional.  Who works on which of `span` strips, each of which must be
     * dealt to at least `cover` members, enough <= cover <= n; an adjoint code
     * is dealt exactly `enough`.  NULL: everyone, everything. */
    kofn_status (*deal)(const kofn_layout *L, const kofn_live *live, size_t n,
                        size_t cover, size_t span, kofn_deals *out);

    /* Optional.  A better way to decode than least squares: D is wants x
     * (n lanes), zero on entry, over the answers of these seats (or submessages
     * of seats), ascending.  KOFN_TOOFEW when they do not determine the wants;
     * KOFN_PARTIAL when D makes the best of what there is, which is then
     * delivered under that status; KOFN_UNSUITED where least squares is best
     * after all. */
    kofn_status (*decode)(const kofn_layout *L, const uint32_t *seats, size_t n,
                          double *D);

    /* Optional, KOFN_STREAM, and pure.  What worker `who` is asked for of this
     * product in the round that begins.  NULL: one row. */
    void (*ask)(const kofn_layout *L, const kofn_pending *pending,
                const kofn_past *past, size_t who, kofn_ask *out);

    /* Likewise.  May a round end with these marks, the first of `past`?  NULL:
     * with any. */
    bool (*admits)(const kofn_layout *L, const kofn_past *past);
} kofn_scheme;

/* A plan for a scheme of one's own. */
KOFN_API kofn_status kofn_plan_new_for(kofn_plan **out, const kofn_problem *pb,
                                       const kofn_scheme *scheme,
                                       const char *args, size_t workers,
                                       uint64_t seed);

/* The schemes that come with the library: i = 0, 1, ... until NULL. */
KOFN_API const kofn_scheme *kofn_scheme_at(size_t i);
KOFN_API const kofn_scheme *kofn_scheme_find(const char *name);

/* ---- helpers for authors ------------------------------------------------- */

/* A zeroed table of rows x cols for W; NULL when memory runs out. */
KOFN_API double *kofn_layout_table(size_t rows, size_t cols);

#ifdef __cplusplus
}
#endif
#endif
