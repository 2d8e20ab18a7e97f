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
