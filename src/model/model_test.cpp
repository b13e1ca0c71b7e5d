// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "model/card_types.hpp"
#include "model/money.hpp"
#include "model/requests.hpp"

namespace autodl {
namespace {

TEST(Money_Charge, IsExactToTheMicro) {
  EXPECT_EQ(charge_micro(1'580'000, 1, (23 * 60 + 47) * 1'000), 626'294);
  EXPECT_EQ(charge_micro(1'580'000, 1, (23 * 60 + 47) * 1'000 + 999), 626'294);  // whole seconds
  EXPECT_EQ(charge_micro(1'580'000, 2, 3'600'000), 3'160'000);
  EXPECT_EQ(charge_micro(0, 1, 3'600'000), 0);
  EXPECT_EQ(charge_micro(1'000, 0, 3'600'000), 1'000);  // without a card: its own price, once
}

TEST(Money_Rounding, HalfGoesToEven) {
  EXPECT_EQ(mul_div_half_even(1, 1, 1, 2), 0);
  EXPECT_EQ(mul_div_half_even(3, 1, 1, 2), 2);
  EXPECT_EQ(mul_div_half_even(5, 1, 1, 2), 2);
  EXPECT_EQ(mul_div_half_even(7, 1, 1, 4), 2);
  EXPECT_EQ(mul_div_half_even(kMicroMax, kMicroMax, 7, 3'600), kMicroMax);  // saturates
}

TEST(Money_Paid, NeverPaysForMoreThanThereIs) {
  for (std::int64_t price : {1, 7, 3'599, 3'600, 1'580'000, 999'999'937}) {
    for (std::int64_t micro : {0, 1, 5, 626'294, 1'580'000, 123'456'789}) {
      const std::int64_t ms = paid_ms(price, 3, micro);
      if (ms == kPaidForever) continue;
      EXPECT_LE(charge_micro(price, 3, ms), micro);
      EXPECT_GE(charge_micro(price, 3, ms + 1'000), micro);
    }
  }
  EXPECT_EQ(paid_ms(0, 1, 0), kPaidForever);
}

TEST(Money_Storage, GbDay) {
  EXPECT_EQ(storage_micro(10'000, std::int64_t{50} << 30, 86'400'000), 500'000);
  EXPECT_EQ(storage_micro(0, std::int64_t{50} << 30, 86'400'000), 0);
}

TEST(CardTypes_Match, AsPeopleWriteThem) {
  const std::vector<std::string> known = {"RTX 3090", "RTX 4090", "A100 40GB", "A100 80GB"};
  struct Row {
    const char* asked;
    std::vector<std::string> means;
  };
  const Row rows[] = {
      {"RTX 3090", {"RTX 3090"}},
      {"rtx3090", {"RTX 3090"}},
      {"NVIDIA GeForce RTX 3090", {"RTX 3090"}},
      {"nvidia-rtx_3090", {"RTX 3090"}},
      {"NVIDIA A100-PCIE-40GB", {"A100 40GB"}},
      {"a100-sxm4-80gb", {"A100 80GB"}},
      {"A100", {"A100 40GB", "A100 80GB"}},
      {"RTX 40", {}},
      {"RTX 3090 Ti", {}},
      {"A1", {}},
      {"", {}},
      {"显卡", {}},
  };
  for (const auto& row : rows)
    EXPECT_EQ(match_card_types(row.asked, known), row.means) << row.asked;
  EXPECT_EQ(near_names("RTX 3091", known).at(0), "RTX 3090");
  EXPECT_EQ(near_names("A100 4OGB", known).at(0), "A100 40GB");
  EXPECT_TRUE(near_names("zzzzzzzzzzzzzzzzzzzzzzzz", known).empty());
}

TEST(Names_Validate, Table) {
  const std::string longest(64, 'x');
  for (const std::string name : {"001", "训练 一", "🚀", "a b", "x.y", longest.c_str()}) {
    EXPECT_TRUE(validate_name(name).ok()) << name;
  }
  const std::string bad[] = {"",         " a",           "a ",
                             "a\nb",     "a\tb",         "../x",
                             "a/b",      "..",           "\x80",
                             "\xC0\xAF", "\xED\xA0\x80", longest + "x",
                             "a\x7F",    "\u202Eabc",    std::string("a\0b", 3),
                             "\u3000a"};
  for (const auto& name : bad) {
    const auto got = validate_name(name);
    ASSERT_FALSE(got.ok()) << name;
    EXPECT_EQ(got.error().code(), "bad_name");
  }
}

CreateRequest good() {
  CreateRequest request;
  request.image = "autodl/base:trixie";
  request.gpu_type = "RTX 3090";
  return request;
}

TEST(Create_Validate, EachFaultHasItsCode) {
  EXPECT_TRUE(validate(good()).ok());
  const auto expect = [](const char* code, auto change) {
    CreateRequest request = good();
    change(request);
    const auto got = validate(request);
    ASSERT_FALSE(got.ok()) << code;
    EXPECT_EQ(got.error().code(), code) << got.error().message();
    EXPECT_EQ(got.error().kind(), ErrorKind::kInvalid);
  };
  using R = CreateRequest;
  expect("bad_name", [](R& r) { r.name = "a\nb"; });
  expect("unknown_image", [](R& r) { r.image = ""; });
  expect("unknown_image", [](R& r) { r.image = "--root=/"; });
  expect("unknown_image", [](R& r) { r.image = "a b"; });
  expect("bad_disk_size", [](R& r) { r.disk_bytes = 0; });
  expect("bad_disk_size", [](R& r) { r.disk_bytes = -5; });
  expect("bad_disk_size", [](R& r) { r.disk_bytes = INT64_MAX; });
  expect("bad_gpu_count", [](R& r) { r.gpu_count = -1; });
  expect("bad_gpu_count", [](R& r) { r.gpu_count = 1'000'000; });
  expect("gpu_type_required", [](R& r) { r.gpu_type.reset(); });
  expect("bad_max_runtime", [](R& r) { r.max_runtime_s = 0; });
  expect("bad_max_runtime", [](R& r) { r.max_runtime_s = INT64_MAX; });
  expect("bad_env", [](R& r) { r.env["A=B"] = "x"; });
  expect("bad_env", [](R& r) { r.env[""] = "x"; });
  expect("bad_env", [](R& r) { r.env["1A"] = "x"; });
  expect("bad_env", [](R& r) { r.env["A"] = std::string("a\0b", 3); });
  expect("bad_env", [](R& r) { r.env["A"] = std::string(200'000, 'x'); });
  expect("bad_workdir", [](R& r) { r.workdir = "root"; });
  expect("bad_workdir", [](R& r) { r.workdir = "/root/../etc"; });
  expect("bad_workdir", [](R& r) { r.workdir = "/a\nb"; });
  expect("bad_restart", [](R& r) { r.restart = "always"; });
  expect("bad_command", [](R& r) { r.command = ""; });
  expect("bad_ssh_key", [](R& r) { r.ssh_keys = {"ssh-ed25519"}; });
  expect("bad_ssh_key", [](R& r) { r.ssh_keys = {"command=\"x\" ssh-ed25519 AAAA"}; });
  expect("bad_ssh_key", [](R& r) { r.ssh_keys = {"ssh-ed25519 AAAA\nssh-rsa AAAA"}; });
}

TEST(Create_Validate, UsualRequestsPass) {
  CreateRequest request = good();
  request.env = {{"LINES_", "a\nb 'c' \"d\""}, {"EMPTY", ""}};
  request.ssh_keys = {
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHvyd3PzQ1FZ1qRZ6Qn0nqX5k1sA7b8QyQyqk1Qe0XYZ me@here"};
  request.gpu_count = 0;
  request.gpu_type.reset();
  const auto got = validate(request);
  EXPECT_TRUE(got.ok()) << got.error().message();
}

}  // namespace
}  // namespace autodl
