# mpi.cmake -- builds one plugin for each MPI that is found, next to libkofn.
# libkofn loads the plugin of the MPI that started the job, and links none.
#
# Elsewhere than on Debian name the compiler wrapper yourself:
#   cmake -DKOFN_MPICC_OPENMPI=/opt/openmpi/bin/mpicc

find_program(KOFN_MPICC_OPENMPI mpicc.openmpi
  DOC "compiler wrapper of Open MPI")
find_program(KOFN_MPICC_MPICH mpicc.mpich DOC "compiler wrapper of MPICH")

# Give target `name` what the wrapper would: its -I, -L and -l.
function(kofn_use_mpi name mpicc)
  execute_process(COMMAND ${mpicc} -show OUTPUT_VARIABLE line
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${line}")
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      target_include_directories(${name} SYSTEM PRIVATE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L(.+)")
      target_link_directories(${name} PRIVATE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-(l|Wl,)")
      target_link_libraries(${name} PRIVATE ${word})
    endif()
  endforeach()
endfunction()

set(KOFN_MPIS "")
foreach(mpi openmpi mpich)
  string(TOUPPER ${mpi} MPI)
  if(KOFN_MPICC_${MPI})
    add_library(kofn_mpi_${mpi} MODULE src/mpi/mpi.c
      src/mpi/report.c src/mpi/send.c src/mpi/receive.c src/mpi/transport.c)
    set_target_properties(kofn_mpi_${mpi} PROPERTIES
      OUTPUT_NAME kofn-mpi-${mpi})
    target_include_directories(kofn_mpi_${mpi} PRIVATE include src)
    kofn_use_mpi(kofn_mpi_${mpi} ${KOFN_MPICC_${MPI}})
    install(TARGETS kofn_mpi_${mpi} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kofn)
    list(APPEND KOFN_MPIS ${mpi})
  endif()
endforeach()
if(KOFN_MPIS)
  message(STATUS "MPI: ${KOFN_MPIS}")
else()
  message(STATUS "MPI: none (neither mpicc.openmpi nor mpicc.mpich is here)")
endif()
