# pc.cmake -- writes the pkg-config files.  A shared library names its own
# dependencies; a program that links the static one has to name them.

# "-LDIRECTORY -lNAME" for each library that was found.
function(kofn_pc_flags out)
  set(flags "")
  foreach(path IN LISTS ARGN)
    get_filename_component(dir "${path}" DIRECTORY)
    get_filename_component(name "${path}" NAME_WE)
    string(REGEX REPLACE "^lib" "" name "${name}")
    string(APPEND flags " -L${dir} -l${name}")
  endforeach()
  set(${out} "${flags}" PARENT_SCOPE)
endfunction()

kofn_pc_flags(KOFN_PC_PRIVATE ${KOFN_CBLAS} ${KOFN_ZLIB} ${KOFN_NET_LIBRARIES})
string(APPEND KOFN_PC_PRIVATE " -lpthread -lm -ldl")
set(KOFN_PC_PUBLIC "")
if(NOT BUILD_SHARED_LIBS) # there are no others
  set(KOFN_PC_PUBLIC "${KOFN_PC_PRIVATE}")
endif()

# From the folder of the .pc files: what is installed may be moved.
set(from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH KOFN_PC_PREFIX ${from_pc} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH KOFN_PC_INCLUDE ${from_pc} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
