// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/api_json.hpp"

#include <gtest/gtest.h>

#include "wire/api_types.hpp"

namespace autodl::api {
namespace {

TEST(FromJson, Create_DefaultsAndNulls) {
  const auto request = from_json<CreateInstance>(
      R"({"image":"a","name":null,"gpu_type":"RTX 3090","env":{"A":"b c"},"ssh_keys":["k"]})");
  ASSERT_TRUE(request.ok()) << request.error().message();
  EXPECT_EQ(request->image, "a");
  EXPECT_FALSE(request->name);
  EXPECT_EQ(request->gpu_type, "RTX 3090");
  EXPECT_EQ(request->gpu_count, 1);
  EXPECT_EQ(request->disk_bytes, 53687091200);
  EXPECT_EQ(request->env.at("A"), "b c");
  EXPECT_EQ(request->workdir, "/root");
}

TEST(FromJson, Wrong_CodeAndPath) {
  struct Row {
    std::string text;
    const char* code;
    const char* message;
  };
  for (const auto& row : std::vector<Row>{
           {"", "bad_json", ""},
           {"{", "bad_json", ""},
           {"{}x", "bad_json", ""},
           {R"({"image":"\xff"})", "bad_json", ""},
           {std::string(100, '[') + std::string(100, ']'), "bad_json", ""},
           {"[]", "bad_field", "the body must be an object"},
           {"{}", "missing_field", "'/image' is missing"},
           {R"({"image":1})", "bad_field", "'/image' must be text"},
           {R"({"image":null})", "bad_field", "'/image' must be text"},
           {R"({"image":"a\u0000b"})", "bad_field", "'/image' has a NUL character"},
           {R"({"image":"a","gpus":1})", "unknown_field", "'/gpus' is not known"},
           {R"({"image":"a","gpu_count":"2"})", "bad_field", "'/gpu_count' must be an integer"},
           {R"({"image":"a","gpu_count":1.5})", "bad_field", "'/gpu_count' must be an integer"},
           {R"({"image":"a","gpu_count":99999999999999999999})", "bad_field",
            "'/gpu_count' must be an integer"},
           {R"({"image":"a","gpu_count":18446744073709551615})", "bad_field",
            "'/gpu_count' must be a smaller number"},
           {R"({"image":"a","ssh_keys":["k",1]})", "bad_field", "'/ssh_keys/1' must be text"},
           {R"({"image":"a","env":{"A":1}})", "bad_field", "'/env/A' must be text"},
           {R"({"image":"a","allow_cpu_image":"yes"})", "bad_field",
            "'/allow_cpu_image' must be true or false"},
           {R"({"image":")" + std::string(1'025, 'x') + R"("})", "bad_field",
            "'/image' is longer than 1024 bytes"}}) {
    const auto request = from_json<CreateInstance>(row.text);
    ASSERT_FALSE(request.ok()) << row.text;
    EXPECT_EQ(request.error().code(), row.code) << row.text;
    if (*row.message != '\0') EXPECT_EQ(request.error().message(), row.message);
  }
  EXPECT_EQ(from_json<TransferRequest>(R"({"path":"/a","size":-1})").error().message(),
            "'/size' must be from 0 to 70368744177664");
  EXPECT_FALSE(from_json<NoMembers>(R"({"x":1})").ok());
  EXPECT_TRUE(from_json<NoMembers>("{}").ok());
  const auto huge =
      from_json<CreditRequest>(R"({"reason":"r","amount_micro":18446744073709551615})");
  EXPECT_FALSE(huge.ok());
}

TEST(ToJson, WhatIsWritten_IsReadAgain) {
  Instance instance;
  instance.id = "01H";
  instance.name = "训练 \"1\"\n\\\x01";
  instance.env["A"] = "b";
  instance.ssh = SshEndpoint{"h", 20'000, "root", "ssh-ed25519 A"};
  instance.exit_code = -1;
  const auto text = to_json(instance);
  const auto back = from_json<Instance>(text);
  ASSERT_TRUE(back.ok()) << back.error().message() << text;
  EXPECT_EQ(*back, instance);
  EXPECT_NE(text.find(R"("outcome":null)"), std::string::npos);
}

TEST(ToJson, Empty_Forms) {
  EXPECT_EQ(to_json(NoMembers{}), "{}");
  EXPECT_EQ(to_json(std::vector<std::string>{}), "[]");
  EXPECT_EQ(to_json(std::map<std::string, std::string>{}), "{}");
  EXPECT_EQ(page_json(std::vector<Balance>{}, std::nullopt), R"({"items":[],"next":null})");
  EXPECT_EQ(to_json(Balance{5, 2, 3, "CNY"}),
            R"({"balance_micro":5,"held_micro":2,"available_micro":3,"currency":"CNY"})");
}

}  // namespace
}  // namespace autodl::api
