// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "config.hpp"

#include <gtest/gtest.h>

namespace autodl {
namespace {

TEST(DaemonConfig_Empty, HasDefaults) {
  const auto config = parse_config("", "x.toml");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->listen, "127.0.0.1:8480");
  EXPECT_EQ(config->image_store, "/var/lib/autodl/node/images");
}

TEST(DaemonConfig_Faults, AreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"[server]\nlisen = \"127.0.0.1:1\"", "lisen"},
      {"[sever]\n", "[sever]"},
      {"[server]\nlisten = 3", "listen has the wrong type"},
      {"[server]\nlisten = \"127.0.0.1\"", "no address and port"},
      {"[server]\nlisten = \"0.0.0.0:8480\"", "no TLS"},
      {"[node]\nport_first = 30000\nport_last = 40000", "port_first"},
      {"[money]\ncurrency = \"EUR\"", "EUR"},
      {"[prices]\n\"RTX 3090\" = \"cheap\"", "RTX 3090"},
      {"[prices]\n\"RTX 3090\" = -1", "RTX 3090"},
      {"[server\n", "line 1"},
  };
  for (const auto& [text, expected] : cases) {
    const auto config = parse_config(text, "x.toml");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_NE(config.error().message().find(expected), std::string::npos)
        << config.error().message();
  }
}

TEST(DaemonConfig_Full, IsTaken) {
  const auto config = parse_config(
      "[server]\nlisten = \"127.0.0.1:18480\"\nstate_dir = \"/s\"\n[node]\nresolvers = "
      "[\"9.9.9.9\"]\n"
      "[prices]\n\"A100 40GB\" = 5980000\n",
      "x.toml");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->prices.at("A100 40GB"), 5'980'000);
  EXPECT_EQ(config->resolvers.at(0), "9.9.9.9");
  EXPECT_EQ(config->control_dir(), "/s/control");
}

}  // namespace
}  // namespace autodl
