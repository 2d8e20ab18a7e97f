# mesh.cmake -- nodes without a master.  They are a plugin, which a program with a
# coordinator need not load.  -DKOFN_MESH=OFF leaves them out.
# Those of the command are left out, too; both are then refused.
option(KOFN_MESH "nodes without a master" ON)

# The nodes of the command.
set(KOFN_MESH_OF_COMMAND "/(nodes|nodes_[a-z]+|masterless|train_masterless)[.]c")

# kofn_mesh_command(SOURCES): takes out of the command's sources its nodes, or what
# refuses them.
function(kofn_mesh_command sources)
  set(out "/masterless_absent[.]c")
  if(NOT KOFN_MESH)
    set(out ${KOFN_MESH_OF_COMMAND})
  endif()
  list(FILTER ${sources} EXCLUDE REGEX "${out}")
  set(${sources} ${${sources}} PARENT_SCOPE)
endfunction()

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
