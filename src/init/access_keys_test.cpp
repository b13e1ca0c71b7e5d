// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/access_keys.hpp"

#include <gtest/gtest.h>

namespace autodl::init {
namespace {

TEST(AccessKeys, ClientAllowed_Table) {
  struct Row {
    std::vector<std::string> patterns;
    const char* client;
    bool allowed;
  };
  const Row rows[] = {
      {{}, "10.0.0.7", true},
      {{"10.0.0.7"}, "10.0.0.7", true},
      {{"10.0.0.7"}, "10.0.0.70", false},
      {{"10.0.0.*"}, "10.0.0.70", true},
      {{"10.0.0.?"}, "10.0.0.70", false},
      {{"10.0.0.0/8"}, "10.255.1.1", true},
      {{"10.0.0.0/8"}, "11.0.0.1", false},
      {{"10.0.0.0/31"}, "10.0.0.1", true},
      {{"10.0.0.0/31"}, "10.0.0.2", false},
      {{"0.0.0.0/0"}, "1.2.3.4", true},
      {{"10.0.0.0/33"}, "10.0.0.0", false},
      {{"10.0.0.0/x"}, "10.0.0.0", false},
      {{"*", "!10.0.0.5"}, "10.0.0.5", false},
      {{"*", "!10.0.0.5"}, "10.0.0.6", true},
      {{"!10.0.0.5"}, "10.0.0.6", false},
      {{"!10.0.0.0/8", "10.0.0.7"}, "10.0.0.7", false},
      {{"2001:db8::/32"}, "2001:db8:1::2", true},
      {{"2001:db8::/32"}, "2001:db9::2", false},
      {{"0.0.0.0/0"}, "2001:db8::1", false},
      {{"2001:0db8::0001"}, "2001:db8::1", true},
      {{"laptop.example"}, "10.0.0.7", false},
      {{"************************x"}, "10.0.0.7", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(client_allowed(row.patterns, row.client), row.allowed)
        << (row.patterns.empty() ? "" : row.patterns[0]) << " " << row.client;
  }
}

TEST(AccessKeys, FileHoldsOnlyTheClientsKeys) {
  const std::vector<AccessKey> keys{{"ssh-ed25519 A a", {"10.0.0.0/8"}}, {"ssh-ed25519 B b", {}}};
  EXPECT_EQ(authorized_keys_for(keys, "10.1.1.1"), "ssh-ed25519 A a\nssh-ed25519 B b\n");
  EXPECT_EQ(authorized_keys_for(keys, "9.1.1.1"), "ssh-ed25519 B b\n");
}

}  // namespace
}  // namespace autodl::init
