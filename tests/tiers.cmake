# tiers.cmake -- which tests run by day, and in which build.
#
#   day      make test: every idea once, in its best place, ten minutes in all
#   night    make nightly: everything, in every build, with every BLAS kernel, and tests
# that wait in real time
#   release  make release: also the installation, packages, and Slurm
#
# Tags of cases in a shell test: `night` runs by night only; `asan` runs under
# AddressSanitizer by day as well; `processes` runs by day with processes instead of
# threads as well.

# ---- not by day --------------------------------------------------------------

# Repetitions by other means, every kernel of BLAS, and tests that wait for a clock.
set(KOFN_NIGHT
  "kernel_.*" "floor_.*" "processes_.*" campaign_cables_test papers_bench
  valgrind_suspect_narrow)
# Exceptions, which run by day.
set(KOFN_DAY kernel_Prescott kernel_Haswell kernel_libblas processes_product
  processes_train)
set(KOFN_RELEASE install slurm package)

# Accuracy tests that every kernel runs, by day and at night.
set(KOFN_KERNEL_TESTS numerics_test product_numerics_test)
if(NOT KOFN_TIER STREQUAL "day")
  list(APPEND KOFN_KERNEL_TESTS numerics_guard_test pcr_numerics_test pcr_test
    freivalds_test sums_errors_test pcr_errors_test)
endif()

# These test orders of summation, not the codes again.
set(KOFN_KERNEL_SCALE 0.1)
set(KOFN_KERNEL_SKIP "")
if(KOFN_TIER STREQUAL "day")
  set(KOFN_KERNEL_SCALE 0.03)
  set(KOFN_KERNEL_SKIP "KOFN_TEST_SKIP=khatri-rao:*")
endif()

# ---- under sanitizers by day -------------------------------------------------

# Not under AddressSanitizer: numbers, exhaustive sets of survivors, searches, long
# iterations, updates, and memory that runs out at every place in turn. Each has a small case in
# another test: numerics_guard_test, gradient_rounds_test, suspect_narrow_test,
# train_mesh_test, peer_hostile_test, alloc_wire_test.
set(KOFN_NOT_ADDRESS numerics_test numerics_adversary_test gradient_numerics_test
  pcr_numerics_test product_numerics_test acceptance_test laws_codes_test
  gradient_test gradient_paper_test solver_test stream_test elastic_traces_test
  suspect_test suspect_reference_test fit_test verdicts_test verdicts_jobs_test
  check_honest_test freivalds_test tile_test sums_errors_test pcr_errors_test
  coded_faults_test coded_lies_test coded_step_test regress_facts_test
  train_liars_test train_keep_test train_back_test alloc_test alloc_update_test
  baseline_test erring_test experiment_test model_test rhat_test stream_play_test tolerance_test
  campaign_test unresponsive_test laws_net_test stream_faults_test stream_late_test pace_test
  near_test guard_principals_test freivalds_limits_test peer_liars_test
  train_single_test train_deaths_test update_test update_away_test
  peer_histories_test train_campaign_test)
# Tests that start threads.
set(KOFN_THREAD ports_test put_test width_test liars_test operands_test peer_threads_test
  train_mesh_test laws_test away_test away_hostile_test pair_test stream_liars_test
  conform_test sockets_test flow_test share_test net_hostile_test
  seats_test coded_test fleet_jobs_test source_test)

# ---- at any time -------------------------------------------------------------

# Not under ThreadSanitizer: these start processes by the dozen.
set(KOFN_NEVER_THREAD campaign_test campaign_cables_test laws_net_test put_net_test
  hostile_processes_test mesh_net_test spawn_test)
set(KOFN_ENVIRONMENT_spawn_test "KOFN=$<TARGET_FILE:kofn_cli>")

# OpenBLAS is built without ThreadSanitizer. Data that its threads exchange in a large
# product looks like a race.
if(KOFN_SANITIZE STREQUAL "thread")
  set(KOFN_ENVIRONMENT_sparse_test "OPENBLAS_NUM_THREADS=1")
endif()
# By day a sanitizer runs the part that it is for, or less of it.
if(KOFN_TIER STREQUAL "day" AND KOFN_SANITIZE STREQUAL "thread")
  set(KOFN_ENVIRONMENT_train_mesh_test "KOFN_TEST_FILTER=*on threads*")
  set(KOFN_ENVIRONMENT_laws_test "KOFN_TEST_FILTER=*threads:*"
    "KOFN_TEST_SCALE=0.1")
  set(KOFN_ENVIRONMENT_seats_test "KOFN_TEST_FILTER=seats: added keys*")
  set(KOFN_ENVIRONMENT_stream_liars_test "KOFN_TEST_FILTER=stream errors:*(threads)")
  set(KOFN_ENVIRONMENT_liars_test "KOFN_TEST_FILTER=*probabilistic*")
  set(KOFN_ENVIRONMENT_pair_test "KOFN_TEST_SKIP=pair: products are right (each code, with*")
elseif(KOFN_TIER STREQUAL "day" AND KOFN_SANITIZE STREQUAL "address")
  set(KOFN_ENVIRONMENT_train_mesh_test "KOFN_TEST_FILTER=*joins late*")
  set(KOFN_ENVIRONMENT_train_votes_test "KOFN_TEST_FILTER=*several nodes*")
  set(KOFN_ENVIRONMENT_train_slow_link_test "KOFN_TEST_FILTER=*no partial product*")
  set(KOFN_ENVIRONMENT_train_scrub_test "KOFN_TEST_FILTER=*hidden*")
  set(KOFN_ENVIRONMENT_train_single_test "KOFN_TEST_FILTER=*loss of all*")
  set(KOFN_ENVIRONMENT_train_excluded_test "KOFN_TEST_FILTER=*forged name*")
  set(KOFN_ENVIRONMENT_train_histories_test "KOFN_TEST_FILTER=*two lineages*")
  set(KOFN_ENVIRONMENT_laws_test "KOFN_TEST_FILTER=*packets:*")
  set(KOFN_ENVIRONMENT_seats_test "KOFN_TEST_FILTER=seats: added keys*")
  set(KOFN_ENVIRONMENT_combine_test "KOFN_TEST_SKIP=engine: large shapes*")
  set(KOFN_ENVIRONMENT_rebuild_job_test "KOFN_TEST_SKIP=rebuild: drift*")
  set(KOFN_ENVIRONMENT_gradient_rounds_test "KOFN_TEST_SKIP=*closed forms")
  set(KOFN_ENVIRONMENT_sparse_test "KOFN_TEST_SKIP=sparse: work is counted*")
endif()
# ---- functions ---------------------------------------------------------------

function(kofn_one_of name out) # does `name` match one of the patterns?
  set(${out} FALSE PARENT_SCOPE)
  foreach(pattern IN LISTS ARGN)
    if(name MATCHES "^${pattern}$")
      set(${out} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Does this build run the test?
function(kofn_in_tier name out)
  kofn_one_of(${name} night ${KOFN_NIGHT})
  kofn_one_of(${name} day ${KOFN_DAY})
  kofn_one_of(${name} release ${KOFN_RELEASE})
  kofn_compiled(${name} compiled)
  if(NOT compiled OR (release AND NOT KOFN_TIER STREQUAL "release") OR
     (night AND NOT day AND KOFN_TIER STREQUAL "day"))
    set(${out} FALSE PARENT_SCOPE)
  else()
    set(${out} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Is it compiled into its room's runner? In the plain build all are, so that each
# follows changes.
function(kofn_compiled name out)
  set(${out} TRUE PARENT_SCOPE)
  kofn_one_of(${name} never ${KOFN_NEVER_THREAD})
  kofn_one_of(${name} numbers ${KOFN_NOT_ADDRESS} ${KOFN_NIGHT})
  kofn_one_of(${name} threads ${KOFN_THREAD})
  if((KOFN_SANITIZE STREQUAL "thread" AND never) OR
     (KOFN_TIER STREQUAL "day" AND
      ((KOFN_SANITIZE STREQUAL "thread" AND NOT threads) OR
       (KOFN_SANITIZE STREQUAL "address" AND numbers))))
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()

# ---- order -------------------------------------------------------------------

# The longest tests start first, so that the others do not wait for them; `make check`
# leaves them out.
set(KOFN_LONG python laws_.*test tile_test .*numerics.*_test alloc_.*test
  sums_errors_test peer_hostile_test regress_test unresponsive_test train_.*_test campaign_test
  mesh_net_test update_away_test freivalds_test elastic_traces_test away_floods_test
  put_net_test seats_test command_allocations
  papers_bench cli_stream_away cli_train_masterless cli_train_real cli_checkpoint cli_regress coded_faults_test
  gradient_test check_honest_test "kernel_.*" "floor_.*" "processes_.*" "mpi_.*")
function(kofn_label name out)
  kofn_one_of(${name} long ${KOFN_LONG})
  if(long)
    set(${out} long PARENT_SCOPE)
    set(${out}_COST 10 PARENT_SCOPE)
  else()
    set(${out} "" PARENT_SCOPE)
    set(${out}_COST 1 PARENT_SCOPE)
  endif()
endfunction()

# ---- how a test is run -------------------------------------------------------

set(KOFN_SPARED "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/tsan.supp"
  "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/lsan.supp:print_suppressions=0")

# kofn_test(NAME [ENVIRONMENT VALUE...] COMMAND ...): adds a test under the guard, if it
# belongs to this build's tier.
function(kofn_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;ENVIRONMENT")
  kofn_in_tier(${name} wanted)
  if(NOT wanted)
    return()
  endif()
  set(full ${KOFN_BUILD_NAME}${name})
  add_test(NAME ${full} COMMAND guard ${full} ${arg_COMMAND})
  # a second limit, in case the guard hangs
  set_tests_properties(${full} PROPERTIES TIMEOUT 86400
    ENVIRONMENT "${KOFN_SPARED};${arg_ENVIRONMENT}")
  kofn_label(${name} label)
  set_tests_properties(${full} PROPERTIES LABELS "${label}" COST ${label_COST})
endfunction()
