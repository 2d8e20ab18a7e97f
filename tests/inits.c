/* inits.c -- checks what the _INIT macros of the public headers set.
 *
 * scripts/headers compiles it as C11 and as C++17, and runs it.  Every macro is
 * here. */
#include <kofn.h>

#include <kofn/core.h>
#include <kofn/fleet.h>
#include <kofn/forecast.h>
#include <kofn/mpi.h>
#include <kofn/net.h>
#include <kofn/peer.h>
#include <kofn/train.h>

#include <stdio.h>
#include <string.h>

/* This program does not have the library. */
const kofn_formula kofn_formulas[1] = {{NULL, NULL}};

static int wrong;

static void compare(const char *init, const void *is, const void *want,
                    size_t bytes)
{
    if (memcmp(is, want, bytes) == 0)
        return;
    fprintf(stderr, "inits.c: %s sets other values\n", init);
    wrong = 1;
}

/* Compares with a struct of zeros, its size, and what `set` sets.  Objects with
 * static storage have no bytes that are left out. */
#define SETS(type, init, set)                                                  \
    do {                                                                       \
        static const type is = init;                                           \
        type want;                                                             \
                                                                               \
        memset(&want, 0, sizeof want);                                         \
        want.size = sizeof want;                                               \
        set;                                                                   \
        compare(#init, &is, &want, sizeof want);                               \
    } while (0)
#define NOTHING (void)0

static void jobs(void)
{
    SETS(kofn_problem, KOFN_PROBLEM_INIT(KOFN_LEFT, 2, 3, 4, KOFN_F32, true),
         (want.op = KOFN_LEFT, want.m = 2, want.n = 3, want.p = 4,
          want.dtype = KOFN_F32, want.sparse = true));
    SETS(kofn_plan_info, KOFN_PLAN_INFO_INIT, NOTHING);
    SETS(kofn_options, KOFN_OPTIONS_INIT, want.mu = 0.25);
    SETS(kofn_report, KOFN_REPORT_INIT, NOTHING);
    SETS(kofn_progress, KOFN_PROGRESS_INIT, NOTHING);
    SETS(kofn_machine, KOFN_MACHINE_INIT, NOTHING);
    SETS(kofn_change, KOFN_CHANGE_INIT,
         (want.keep[0][0] = 1, want.add[0] = -1));
    SETS(kofn_source, KOFN_SOURCE_INIT, NOTHING);
    SETS(kofn_faults, KOFN_FAULTS_INIT(), NOTHING);
    SETS(kofn_core_options, KOFN_CORE_OPTIONS_INIT,
         (want.event = sizeof(kofn_event), want.action = sizeof(kofn_action)));
    SETS(kofn_drawing_options, KOFN_DRAWING_OPTIONS_INIT,
         (want.port = is.port, wrong |= strcmp(is.port, "") != 0));
}

static void learning(void)
{
    SETS(kofn_iterate_options, KOFN_ITERATE_OPTIONS_INIT, NOTHING);
    SETS(kofn_iterate_result, KOFN_ITERATE_RESULT_INIT, NOTHING);
    SETS(kofn_regress_options, KOFN_REGRESS_OPTIONS_INIT, NOTHING);
    SETS(kofn_regress_result, KOFN_REGRESS_RESULT_INIT, NOTHING);
    SETS(kofn_net_shape, KOFN_NET_SHAPE_INIT, NOTHING);
    SETS(kofn_train_options, KOFN_TRAIN_OPTIONS_INIT, NOTHING);
    SETS(kofn_train_result, KOFN_TRAIN_RESULT_INIT, NOTHING);
    SETS(kofn_nets_options, KOFN_NETS_OPTIONS_INIT, NOTHING);
}

static void transports(void)
{
    SETS(kofn_fleet_options, KOFN_FLEET_OPTIONS_INIT, want.workers = 1);
    SETS(kofn_fleet_worker, KOFN_FLEET_WORKER_INIT, NOTHING);
    SETS(kofn_mpi_options, KOFN_MPI_OPTIONS_INIT, NOTHING);
    SETS(kofn_mpi_info, KOFN_MPI_INFO_INIT, NOTHING);
    SETS(kofn_net_options, KOFN_NET_OPTIONS_INIT, NOTHING);
    SETS(kofn_away_options, KOFN_AWAY_OPTIONS_INIT, want.workers = 1);
    SETS(kofn_serve_counts, KOFN_SERVE_COUNTS_INIT, NOTHING);
    SETS(kofn_serve_options, KOFN_SERVE_OPTIONS_INIT,
         want.formulas = kofn_formulas);
}

static void forecasts(void)
{
    SETS(kofn_costs, KOFN_COSTS_INIT, NOTHING);
    SETS(kofn_forecast_options, KOFN_FORECAST_OPTIONS_INIT, NOTHING);
    SETS(kofn_forecast, KOFN_FORECAST_INIT, NOTHING);
}

static void nodes(void)
{
    SETS(kofn_node_view, KOFN_NODE_VIEW_INIT, want.seat = KOFN_NO_SEAT);
    SETS(kofn_program, KOFN_PROGRAM_INIT, NOTHING);
    SETS(kofn_peer_options, KOFN_PEER_OPTIONS_INIT, want.seat = KOFN_NO_SEAT);
    SETS(kofn_peering, KOFN_PEERING_INIT, NOTHING);
}

int main(void)
{
    jobs();
    learning();
    transports();
    forecasts();
    nodes();
    return wrong;
}
