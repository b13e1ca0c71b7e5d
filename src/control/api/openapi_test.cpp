// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The document and the routes are the same thing seen twice; what it says of them is checked
// against a whole server by tests/functional/api.py.
#include <set>

#include "control/api/testing/api_fixture.hpp"

namespace autodl::testing {
namespace {

class OpenApi : public ApiFixture {
 protected:
  OpenApi() : document_(call("GET", "/openapi.json", "", {{"Authorization", "-"}}).json) {}
  const boost::json::object document_;
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

TEST_F(OpenApi, Document_HasExactlyTheRouters_Routes) {
  std::set<std::string> described;
  for (const auto& [path, operations] : document_.at("paths").as_object())
    for (const auto& [method, ignored] : operations.as_object())
      described.insert(std::string(method) + " " + std::string(path));
  std::set<std::string> routed;
  const auto again = api_->make_router();
  for (const auto& route : again.routes()) routed.insert(lower(route.method) + " " + route.pattern);
  EXPECT_EQ(described, routed);
}

TEST_F(OpenApi, EveryRoute_IsDescribed) {
  std::set<std::string> ids;
  for (const auto& about : api_->routes) {
    const auto name = about.method + " " + about.pattern;
    EXPECT_FALSE(about.id.empty() || about.title.empty())
        << name << ": register it with an About (control/api/about.hpp)";
    EXPECT_TRUE(ids.insert(about.id).second) << name << ": the id " << about.id << " is taken";
    EXPECT_FALSE(about.results.empty()) << name << ": what does it answer?";
    const bool one = about.pattern.find("{id}") != std::string::npos;
    EXPECT_EQ(one, about.answer_of(404) != nullptr) << name << ": 404 belongs to paths with {id}";
  }
}

TEST_F(OpenApi, Operation_TellsBodyParametersAndSignIn) {
  const auto& create = document_.at("paths").at("/api/v1/instances").at("post").as_object();
  EXPECT_EQ(create.at("requestBody").at("content").at("application/json").at("schema").at("$ref"),
            "#/components/schemas/CreateInstance");
  for (const auto* status : {"202", "400", "401", "409", "413", "422", "503"})
    EXPECT_TRUE(create.at("responses").as_object().contains(status)) << status;
  EXPECT_EQ(document_.at("security").as_array().size(), 2u);
  EXPECT_TRUE(document_.at("paths").at("/healthz").at("get").at("security").as_array().empty());
  EXPECT_TRUE(document_.at("paths")
                  .at("/api/v1/admin/nodes")
                  .at("get")
                  .at("responses")
                  .as_object()
                  .contains("403"));
}

// Every reference leads somewhere, and everything that is named is used.
TEST_F(OpenApi, References_AreWhole) {
  const std::string text = boost::json::serialize(document_);
  std::set<std::string> used;
  const std::string mark = R"("$ref":"#/components/)";
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    used.insert(text.substr(begin, text.find('"', begin) - begin));
  }
  std::set<std::string> named;
  for (const auto* kind : {"schemas", "parameters", "headers"})
    for (const auto& [name, ignored] : document_.at("components").at(kind).as_object())
      named.insert(std::string(kind) + "/" + std::string(name));
  EXPECT_EQ(used, named);
}

}  // namespace
}  // namespace autodl::testing
