# Everything comes from Debian 12 (scripts/setup installs it).
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json url)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)

set(ADL_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize= takes them")
option(ADL_FUZZ "build the libFuzzer targets" OFF)

add_library(adl_flags INTERFACE)
target_compile_options(adl_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wsign-conversion -Wconversion
    -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast -Wimplicit-fallthrough
    -Wno-missing-designated-field-initializers -Wno-missing-field-initializers -Werror>)
target_include_directories(adl_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(adl_flags INTERFACE fmt::fmt)
if(ADL_SANITIZE)
  add_compile_options(-fsanitize=${ADL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ADL_SANITIZE})
endif()
if(ADL_FUZZ)  # the modules tell libFuzzer which branches were taken; without it, it guesses blindly
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Asio and Beast are compiled once (src/async/asio_impl.cpp, src/http/beast_impl.cpp).
add_library(adl_boost INTERFACE)
target_compile_definitions(adl_boost INTERFACE BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION)
target_link_libraries(adl_boost INTERFACE Boost::headers Boost::json Boost::url OpenSSL::SSL
  OpenSSL::Crypto Threads::Threads)
