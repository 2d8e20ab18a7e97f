# zmq.cmake -- libkofn-zmq, for machines that come and go.
find_library(KOFN_ZMQ zmq REQUIRED)
find_path(KOFN_ZMQ_INCLUDE zmq.h REQUIRED)

file(GLOB KOFN_ZMQ_SOURCES CONFIGURE_DEPENDS src/zmq/*.c)
add_library(kofn_zmq_objects OBJECT ${KOFN_ZMQ_SOURCES})
set_target_properties(kofn_zmq_objects PROPERTIES
  POSITION_INDEPENDENT_CODE ON)
target_include_directories(kofn_zmq_objects PUBLIC include PRIVATE src)
target_include_directories(kofn_zmq_objects SYSTEM PRIVATE ${KOFN_ZMQ_INCLUDE})
add_library(kofn_zmq $<TARGET_OBJECTS:kofn_zmq_objects>)
set_target_properties(kofn_zmq PROPERTIES OUTPUT_NAME kofn-zmq
  VERSION ${PROJECT_VERSION} SOVERSION 0
  INSTALL_RPATH "$ORIGIN") # where libkofn is
target_link_libraries(kofn_zmq PUBLIC kofn PRIVATE ${KOFN_ZMQ}
  Threads::Threads)
kofn_exports(kofn_zmq exports-zmq.map)
if(KOFN_TESTS)
  add_library(kofn_zmq_inside SHARED EXCLUDE_FROM_ALL
    $<TARGET_OBJECTS:kofn_zmq_objects>)
else()
  add_library(kofn_zmq_inside STATIC EXCLUDE_FROM_ALL
    $<TARGET_OBJECTS:kofn_zmq_objects>)
endif()
target_link_libraries(kofn_zmq_inside PUBLIC kofn_inside ${KOFN_ZMQ})
install(TARGETS kofn_zmq EXPORT kofn-targets)
