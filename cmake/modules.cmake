# How folders become libraries and tests. DEPS are modules (folders of src/); docs/dev/layers.md says
# which are allowed and tools/lint/layers checks the includes.
#
# add_module(NAME [THREADED] DEPS module… [LIBS target…] SRCS file… [TESTS file…] [TEST_LIBS target…])
#   the library autodl_NAME and, with TESTS, the program NAME_test, whose cases ctest knows. THREADED:
#   the tests use threads, so they also run under TSan.
# add_real_test(NAME DEPS module… [LIBS target…] SRCS file…)
#   the program NAME: one ctest case (label "real", never two at a time) that needs root and real
#   runc, podman, sshd…; it runs once, without sanitizers.
# add_fuzz(NAME DEPS module… SRCS file…)
#   a libFuzzer target; built with the preset "fuzz" alone.
add_custom_target(unit_tests)
add_custom_target(thread_tests)
add_custom_target(fuzz_targets)

function(add_module name)
  cmake_parse_arguments(M "THREADED" "" "DEPS;LIBS;SRCS;TESTS;TEST_LIBS" ${ARGN})
  list(TRANSFORM M_DEPS PREPEND autodl_)
  if(M_SRCS)
    add_library(autodl_${name} STATIC ${M_SRCS})
    target_link_libraries(autodl_${name} PUBLIC adl_flags ${M_DEPS} ${M_LIBS})
  else()
    add_library(autodl_${name} INTERFACE)
    target_link_libraries(autodl_${name} INTERFACE adl_flags ${M_DEPS} ${M_LIBS})
  endif()
  if(M_TESTS)
    add_executable(${name}_test ${M_TESTS})
    target_link_libraries(${name}_test PRIVATE autodl_${name} ${M_TEST_LIBS} GTest::gmock_main)
    set(labels unit)
    add_dependencies(unit_tests ${name}_test)
    if(M_THREADED)
      list(APPEND labels thread)
      add_dependencies(thread_tests ${name}_test)
    endif()
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS "${labels}")
  endif()
endfunction()

function(add_real_test name)
  cmake_parse_arguments(M "" "" "DEPS;LIBS;SRCS" ${ARGN})
  list(TRANSFORM M_DEPS PREPEND autodl_)
  add_executable(${name} ${M_SRCS})
  target_link_libraries(${name} PRIVATE adl_flags ${M_DEPS} ${M_LIBS} GTest::gmock_main)
  add_test(NAME real.${name} COMMAND ${name})
  set_tests_properties(real.${name} PROPERTIES LABELS real RUN_SERIAL ON TIMEOUT 600)
endfunction()

function(add_fuzz name)
  if(NOT ADL_FUZZ)
    return()
  endif()
  cmake_parse_arguments(M "" "" "DEPS;LIBS;SRCS" ${ARGN})
  list(TRANSFORM M_DEPS PREPEND autodl_)
  add_executable(${name} ${M_SRCS})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE adl_flags ${M_DEPS} ${M_LIBS})
  add_dependencies(fuzz_targets ${name})
endfunction()
