// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/environment.hpp"

#include <gtest/gtest.h>

namespace autodl::init {
namespace {

TEST(Environment, EmptyImage_GetsSaneDefaults) {
  InitSetup setup;
  setup.run = RunId("r");
  const Environment env = make_environment(setup);
  EXPECT_EQ(env.at("PATH"),
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/autodl/bin");
  EXPECT_EQ(env.at("HOME"), "/root");
  EXPECT_EQ(env.at("PYTHONUNBUFFERED"), "1");
  EXPECT_EQ(env.at("PYTHONPATH"), "/opt/autodl/lib/python");
  EXPECT_EQ(env.at("AUTODL_RUN_ID"), "r");
}

TEST(Environment, ImagesAndUsersValues_Win) {
  InitSetup setup;
  setup.env = {{"PATH", "/opt/conda/bin:/usr/bin"},
               {"HOME", "/home/x"},
               {"PYTHONUNBUFFERED", ""},
               {"PYTHONPATH", "/code"}};
  const Environment env = make_environment(setup);
  EXPECT_EQ(env.at("PATH"), "/opt/conda/bin:/usr/bin:/opt/autodl/bin");
  EXPECT_EQ(env.at("HOME"), "/home/x");
  EXPECT_EQ(env.at("PYTHONUNBUFFERED"), "");
  EXPECT_EQ(env.at("PYTHONPATH"), "/code:/opt/autodl/lib/python");
}

TEST(Environment, ToolboxIsNotAddedTwice) {
  InitSetup setup;
  setup.env = {{"PATH", "/opt/autodl/bin:/usr/bin"}};
  EXPECT_EQ(make_environment(setup).at("PATH"), "/opt/autodl/bin:/usr/bin");
}

TEST(Environment, File_KeepsAnyValue) {
  EXPECT_EQ(to_env_file({{"A", "x y\n\"'"}, {"B", ""}}), std::string("A=x y\n\"'\0B=\0", 12));
}

}  // namespace
}  // namespace autodl::init
