// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/router.hpp"

#include <gtest/gtest.h>

namespace autodl::http {
namespace {

Router sample() {
  Router router;
  for (const auto& [method, pattern] :
       std::vector<std::pair<std::string, std::string>>{{"GET", "/"},
                                                        {"GET", "/a"},
                                                        {"POST", "/a"},
                                                        {"GET", "/a/{id}"},
                                                        {"POST", "/a/{id}/b/{n}"},
                                                        {"GET", "/a/{id}/c"}}) {
    Route route;
    route.method = method;
    route.pattern = pattern;
    router.add(std::move(route));
  }
  return router;
}

TEST(Router, Table) {
  const auto router = sample();
  struct Row {
    const char *method, *path, *pattern;
  };
  for (const auto& row : std::vector<Row>{{"GET", "/", "/"},
                                          {"GET", "/a", "/a"},
                                          {"HEAD", "/a", "/a"},
                                          {"GET", "/a/1", "/a/{id}"},
                                          {"GET", "/a/1/c", "/a/{id}/c"},
                                          {"POST", "/a/x%2Fy/b/2", "/a/{id}/b/{n}"}}) {
    const auto match = router.find(row.method, row.path);
    ASSERT_NE(match.route, nullptr) << row.path;
    EXPECT_EQ(match.route->pattern, row.pattern);
  }
  for (const char* path : {"/b", "/a/", "/a/1/", "/a//c", "", "a", "//a"})
    EXPECT_EQ(router.find("GET", path).route, nullptr) << path;
}

TEST(Router, Params_Decoded) {
  const auto match = sample().find("POST", "/a/%E8%AE%AD%2F..%2Fx/b/2");
  EXPECT_EQ(match.params.at("id"), "训/../x");
  EXPECT_EQ(match.params.at("n"), "2");
  EXPECT_TRUE(sample().find("GET", "/a/%zz").bad_encoding);
  EXPECT_TRUE(sample().find("GET", "/a/%00").bad_encoding);
}

TEST(Router, WrongMethod_AllowedOnesNamed) {
  EXPECT_EQ(sample().find("DELETE", "/a").allowed, "GET, POST");
  EXPECT_EQ(sample().find("DELETE", "/x").allowed, "");
}

}  // namespace
}  // namespace autodl::http
