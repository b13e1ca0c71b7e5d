# add_static_program(NAME FOLDERS src-folder… SRCS file… [LIBS target…])
#   a program without any shared library, for a place where none can be relied on (an instance's
#   image). It compiles base and what it needs of wire again, with fmt from its headers, because
#   Debian has no static libfmt. No NSS, iconv or dlopen may be reached from it.
find_library(ADL_SECCOMP_A libseccomp.a REQUIRED)
find_library(ADL_SODIUM_A libsodium.a REQUIRED)
find_library(ADL_BOOST_JSON_A libboost_json.a REQUIRED)
find_library(ADL_BOOST_CONTAINER_A libboost_container.a REQUIRED)

set(src ${CMAKE_SOURCE_DIR}/src)
add_library(adl_static_core STATIC EXCLUDE_FROM_ALL
  ${src}/base/base.cpp ${src}/base/error.cpp
  ${src}/wire/frames.cpp ${src}/wire/json_fields.cpp ${src}/wire/proxy_v2.cpp
  ${src}/wire/init_messages.cpp ${src}/wire/file_messages.cpp)
target_include_directories(adl_static_core PUBLIC ${src})
target_compile_definitions(adl_static_core PUBLIC FMT_HEADER_ONLY)
target_compile_options(adl_static_core PUBLIC -Os -ffunction-sections -fdata-sections -fno-sanitize=all)
target_link_libraries(adl_static_core PUBLIC ${ADL_BOOST_JSON_A} ${ADL_BOOST_CONTAINER_A} ${ADL_SODIUM_A})

function(add_static_program name)
  cmake_parse_arguments(M "" "" "FOLDERS;SRCS;LIBS" ${ARGN})
  set(sources ${M_SRCS})
  foreach(folder ${M_FOLDERS})
    get_target_property(files autodl_${folder} SOURCES)
    list(TRANSFORM files PREPEND ${CMAKE_SOURCE_DIR}/src/${folder}/)
    list(APPEND sources ${files})
  endforeach()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE adl_static_core ${M_LIBS})
  target_link_options(${name} PRIVATE -static -Wl,--gc-sections -Wl,-s -fno-sanitize=all)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endfunction()
