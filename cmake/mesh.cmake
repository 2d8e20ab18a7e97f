# mesh.cmake -- nodes without a master.  They are a plugin, which a program with a
# coordinator need not load.  -DKOFN_MESH=OFF leaves them out; nodes are then refused.
option(KOFN_MESH "nodes without a master" ON)

# Sets KOFN_MESH_INSIDE: what a program takes that has nodes inside.
function(kofn_mesh_objects)
  set(inside src/plug/mesh.c)
  if(KOFN_MESH)
    file(GLOB sources CONFIGURE_DEPENDS src/peer/*.c src/mesh/*.c)
    list(FILTER sources EXCLUDE REGEX "/plugin[.]c$")
    add_library(kofn_mesh_objects OBJECT ${sources} src/ports/mesh.c
      src/learn/train_mesh.c)
    kofn_compile(kofn_mesh_objects)
    set(inside $<TARGET_OBJECTS:kofn_mesh_objects>)
  endif()
  set(KOFN_MESH_INSIDE ${inside} PARENT_SCOPE)
endfunction()

function(kofn_mesh_plugin)
  if(KOFN_MESH AND BUILD_SHARED_LIBS)
    add_library(kofn_mesh MODULE $<TARGET_OBJECTS:kofn_mesh_objects>
      src/mesh/plugin.c)
    set_target_properties(kofn_mesh PROPERTIES OUTPUT_NAME kofn-mesh
      INSTALL_RPATH "$ORIGIN/..")
    target_include_directories(kofn_mesh PRIVATE include src)
    target_link_libraries(kofn_mesh PRIVATE kofn Threads::Threads m)
    target_link_options(kofn_mesh PRIVATE LINKER:-z,defs)
    kofn_exports(kofn_mesh plugin.map)
    install(TARGETS kofn_mesh DESTINATION ${CMAKE_INSTALL_LIBDIR}/kofn)
  endif()
endfunction()
