# schemes.cmake -- schemes that papers compare theirs with.  They are a plugin, and can be
# given as -s ./libkofn-schemes.so.  -DKOFN_SCHEMES=OFF leaves them out.
option(KOFN_SCHEMES "schemes for comparison (papers/schemes)" ON)

# Sets KOFN_SCHEMES_INSIDE: what a program takes that has them inside.
function(kofn_schemes_objects)
  set(inside src/plug/schemes.c)
  if(KOFN_SCHEMES)
    file(GLOB sources CONFIGURE_DEPENDS papers/schemes/*.c)
    list(FILTER sources EXCLUDE REGEX "/(plugin|inside)[.]c$")
    add_library(kofn_schemes_objects OBJECT ${sources})
    kofn_compile(kofn_schemes_objects)
    set(inside $<TARGET_OBJECTS:kofn_schemes_objects> papers/schemes/inside.c)
  endif()
  set(KOFN_SCHEMES_INSIDE ${inside} PARENT_SCOPE)
endfunction()
