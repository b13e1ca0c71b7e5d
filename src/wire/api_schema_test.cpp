// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/api_schema.hpp"

#include <gtest/gtest.h>

#include "model/rows.hpp"
#include "model/states.hpp"
#include "wire/api_types.hpp"

namespace autodl::api {
namespace {

const boost::json::object& property(const SchemaSet& set, const char* type, const char* member) {
  return set.components.at(type).at("properties").at(member).as_object();
}

TEST(ApiSchema, Request_HasTheReadersRules) {
  SchemaSet set;
  EXPECT_EQ(boost::json::serialize(set.request<CreateInstance>()),
            R"({"$ref":"#/components/schemas/CreateInstance"})");
  const auto& schema = set.components.at("CreateInstance").as_object();
  EXPECT_EQ(schema.at("additionalProperties"), false);
  EXPECT_EQ(boost::json::serialize(schema.at("required")), R"(["image"])");
  EXPECT_EQ(property(set, "CreateInstance", "gpu_count").at("default"), 1);
  EXPECT_EQ(property(set, "CreateInstance", "image").at("maxLength"), 1'024);
  EXPECT_EQ(property(set, "CreateInstance", "ssh_keys").at("maxItems"), 64);
  EXPECT_EQ(boost::json::serialize(property(set, "CreateInstance", "gpu_type").at("type")),
            R"(["string","null"])");
  set.request<TransferRequest>();
  EXPECT_EQ(property(set, "TransferRequest", "mode").at("maximum"), 07777);
}

TEST(ApiSchema, Answer_HasEveryMemberAndItsParts) {
  SchemaSet set;
  set.page<Instance>();
  const auto& schema = set.components.at("Instance").as_object();
  EXPECT_EQ(schema.at("required").as_array().size(), schema.at("properties").as_object().size());
  EXPECT_FALSE(schema.contains("additionalProperties"));  // members may be added
  EXPECT_TRUE(set.components.contains("InstancePage"));
  EXPECT_EQ(boost::json::serialize(property(set, "Instance", "ssh").at("anyOf")),
            R"([{"$ref":"#/components/schemas/SshEndpoint"},{"type":"null"}])");
  EXPECT_EQ(property(set, "Instance", "created_at").at("format"), "date-time");
  EXPECT_EQ(property(set, "Instance", "disk_bytes").at("description"), "bytes");
}

// The words of the schemas are those of the model: a state that is added must be added there too.
TEST(ApiSchema, Words_AreTheModels) {
  for (const auto word : values_of("Instance", "state"))
    EXPECT_TRUE(parse_instance_state(word)) << word;
  for (const auto word : values_of("Instance", "outcome")) EXPECT_TRUE(parse_outcome(word)) << word;
  for (const auto word : values_of("CreateInstance", "restart"))
    EXPECT_TRUE(parse_restart_policy(word)) << word;
  for (const auto word : values_of("Account", "role")) EXPECT_TRUE(parse_role(word)) << word;
}

}  // namespace
}  // namespace autodl::api
