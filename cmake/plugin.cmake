# plugin.cmake -- parts of the library that a program need not load.

# kofn_plugin(NAME SOURCE LIBRARY...): builds libkofn-NAME of the objects kofn_NAME_objects
# and of its table in SOURCE, beside libkofn.  A static library has the objects inside.
function(kofn_plugin name source)
  if(NOT TARGET kofn_${name}_objects OR NOT BUILD_SHARED_LIBS)
    return()
  endif()
  add_library(kofn_${name} MODULE $<TARGET_OBJECTS:kofn_${name}_objects> ${source})
  set_target_properties(kofn_${name} PROPERTIES OUTPUT_NAME kofn-${name}
    INSTALL_RPATH "$ORIGIN/..")
  target_include_directories(kofn_${name} PRIVATE include src)
  target_link_libraries(kofn_${name} PRIVATE kofn ${ARGN})
  target_link_options(kofn_${name} PRIVATE LINKER:-z,defs)
  kofn_exports(kofn_${name} plugin.map)
  install(TARGETS kofn_${name} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kofn)
endfunction()
