# blas.cmake -- a BLAS with the CBLAS interface: KOFN_CBLAS to link with and
# KOFN_CBLAS_INCLUDE.  Another than the one that is found:
#   cmake -DKOFN_BLAS=/opt/blas/libblas.so -DKOFN_CBLAS_INCLUDE=/opt/blas/include
include(CheckFunctionExists)

find_library(KOFN_BLAS NAMES openblas blis mkl_rt
  DOC "a fast library with the CBLAS interface")
set(KOFN_CBLAS ${KOFN_BLAS})
if(NOT KOFN_BLAS)
  # Not kept as KOFN_BLAS: a fast one is taken as soon as it is there.
  find_library(KOFN_SLOW_BLAS blas REQUIRED)
  find_library(KOFN_SLOW_CBLAS cblas) # a library of its own, not on Debian
  set(KOFN_CBLAS ${KOFN_SLOW_BLAS})
  if(KOFN_SLOW_CBLAS)
    list(PREPEND KOFN_CBLAS ${KOFN_SLOW_CBLAS})
  endif()
  message(NOTICE "BLAS: ${KOFN_CBLAS}, for want of OpenBLAS, BLIS and MKL; "
    "the reference BLAS is many times slower than these")
endif()

set(CMAKE_REQUIRED_LIBRARIES ${KOFN_CBLAS} m)
unset(KOFN_HAS_CBLAS CACHE)
check_function_exists(cblas_sgemm KOFN_HAS_CBLAS)
unset(CMAKE_REQUIRED_LIBRARIES)
if(NOT KOFN_HAS_CBLAS)
  message(FATAL_ERROR "${KOFN_CBLAS} has no cblas_sgemm: "
    "name a library with the CBLAS interface, -DKOFN_BLAS=FILE")
endif()

find_path(KOFN_CBLAS_INCLUDE cblas.h PATH_SUFFIXES
  openblas-pthread openblas-openmp openblas-serial openblas
  blis-pthread blis-openmp blis-serial blis)
if(NOT KOFN_CBLAS_INCLUDE)
  # MKL calls it otherwise.
  find_path(KOFN_MKL_INCLUDE mkl_cblas.h PATH_SUFFIXES mkl REQUIRED)
  file(WRITE ${CMAKE_BINARY_DIR}/mkl/cblas.h "#include <mkl_cblas.h>\n")
  set(KOFN_CBLAS_INCLUDE ${CMAKE_BINARY_DIR}/mkl ${KOFN_MKL_INCLUDE})
endif()
