// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/container_log.hpp"

#include <gtest/gtest.h>

#include "base/utf8.hpp"

namespace autodl {
namespace {

const std::string kTime = "2026-12-01T16:00:00.123456789+08:00 ";
const std::string kUtc = "2026-12-01T08:00:00.123456Z";

TEST(ContainerLog, Records_EntriesWithOffsets) {
  const std::string first = kTime + "stdout F hello world\n";
  const std::string text =
      first + kTime + "stderr P part\n" + kTime + "stdout F \n" + kTime + "std";
  const auto chunk = parse_container_log(text, 100, false);
  ASSERT_EQ(chunk.entries.size(), 3u);
  EXPECT_EQ(chunk.entries[0], (api::LogEntry{kUtc, "stdout", "hello world", false}));
  EXPECT_EQ(chunk.entries[1], (api::LogEntry{kUtc, "stderr", "part", true}));
  EXPECT_EQ(chunk.entries[2], (api::LogEntry{kUtc, "stdout", "", false}));
  EXPECT_EQ(chunk.next_offsets[0], 100 + static_cast<std::int64_t>(first.size()));
  EXPECT_EQ(text.substr(chunk.consumed), kTime + "std");  // goes on later
  EXPECT_EQ(parse_container_log(text, 100, true).entries.size(), 4u);
}

TEST(ContainerLog, WrongBytes_Replaced) {
  EXPECT_EQ(to_valid_utf8("a\xff训\xe8\xae"), "a\xEF\xBF\xBD训\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(to_valid_utf8("\xed\xa0\x80\xc0\x80\xf5"), to_valid_utf8("\xff\xff\xff\xff\xff\xff"));
}

TEST(ContainerLog, CharacterCutByPartial_Joined) {
  const auto text = kTime + "stdout P a\xe8\xae\n" + kTime + "stdout F \xad!\n";
  const auto chunk = parse_container_log(text, 0, false);
  ASSERT_EQ(chunk.entries.size(), 2u);
  EXPECT_EQ(chunk.entries[0].text + chunk.entries[1].text, "a训!");
}

TEST(ContainerLog, Hole_OneEntry) {
  const auto text =
      kTime + "stdout F a\n" + std::string(50, '\0') + "rest of a line\n" + kTime + "stdout F b\n";
  const auto chunk = parse_container_log(text, 0, false);
  ASSERT_EQ(chunk.entries.size(), 3u);
  EXPECT_EQ(chunk.entries[1].stream, "platform");
  EXPECT_EQ(chunk.entries[2].text, "b");
  EXPECT_EQ(chunk.consumed, text.size());
}

TEST(ContainerLog, Garbage_TakenAsText) {
  for (const std::string& text : {std::string("x\n"), std::string("\n"), kTime + "stdout X y\n",
                                  std::string("time stdout F x\n"), std::string(70'000, 'x')}) {
    const auto chunk = parse_container_log(text, 0, true);
    ASSERT_GE(chunk.entries.size(), 1u);
    EXPECT_EQ(chunk.consumed, text.size());
  }
}

}  // namespace
}  // namespace autodl
