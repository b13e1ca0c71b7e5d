// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/init_messages.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace autodl {
namespace {

TEST(InitMessages, ExecStart_RoundTrip) {
  ExecStart start;
  start.argv = {"python", "-c", "print('é\n\"')"};
  start.cwd = "/root/数据";
  start.env = {{"A", "x y"}, {"B", "line\nline"}};
  start.cols = 132;
  start.rows = 50;
  EXPECT_EQ(parse_exec_start(to_json(start)).value(), start);
  ExecStart line;
  line.shell = "echo $HOME";
  EXPECT_EQ(parse_exec_start(to_json(line)).value(), line);
}

TEST(InitMessages, ExecStart_BadInput_NamesTheField) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "JSON"},
      {"[]", "object"},
      {"{}", "exactly one"},
      {R"({"argv":["a"],"shell":"b"})", "exactly one"},
      {R"({"argv":[""]})", "argv[0]"},
      {R"({"argv":["a\u0000b"]})", "NUL"},
      {R"({"argv":"a"})", "'argv' is not a list"},
      {R"({"argv":[1]})", "argv"},
      {R"({"shell":"a","env":{"":"x"}})", "empty name"},
      {R"({"shell":"a","env":{"A=B":"x"}})", "'='"},
      {R"({"shell":"a","cols":0})", "cols"},
      {R"({"shell":"a","cols":1.5})", "integer"},
      {R"({"shell":"a","surprise":1})", "unknown field 'surprise'"},
      {"{\"shell\":\"\xff\"}", "JSON"},
      {"[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]", "JSON"},
  };
  for (const auto& [text, word] : cases) {
    const auto parsed = parse_exec_start(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::kInvalid);
    EXPECT_NE(parsed.error().message().find(word), std::string::npos)
        << text << " → " << parsed.error().message();
  }
}

TEST(InitMessages, Setup_RoundTrip) {
  InitSetup setup;
  setup.run = RunId("01RUN");
  setup.instance = InstanceId("01INST");
  setup.name = "训练 🚀";
  setup.env = {{"PATH", "/usr/bin"}};
  setup.keys = {{"ssh-ed25519 AAAA me@laptop", {"10.0.0.0/8", "!10.0.0.5"}}, {"ssh-rsa BBBB", {}}};
  setup.host_key = "-----BEGIN OPENSSH PRIVATE KEY-----\n…\n";
  setup.command = "python train.py --data=/root/data";
  setup.cards = true;
  EXPECT_EQ(parse_init_setup(to_json(setup)).value(), setup);
  setup.command.reset();
  EXPECT_EQ(parse_init_setup(to_json(setup)).value(), setup);
}

TEST(InitMessages, Keys_OfSeveralLinesOrWithQuotes_AreRefused) {
  EXPECT_FALSE(parse_keys(keys_to_json({{"ssh-ed25519 A\nssh-ed25519 B", {}}})).ok());
  EXPECT_FALSE(parse_keys(keys_to_json({{"ssh-ed25519 A", {"1.2.3.4\",command=\"x"}}})).ok());
  EXPECT_TRUE(parse_keys(keys_to_json({{"ssh-ed25519 A", {"1.2.3.4"}}})).ok());
}

TEST(InitMessages, ExitRecord_IsExactlyOneOfCodeAndSignal) {
  const ExitRecord code{RunId("r"), {3, std::nullopt}, false};
  EXPECT_EQ(to_json(code), R"({"run":"r","exit_code":3})");
  EXPECT_EQ(parse_exit_record(to_json(code)).value(), code);
  const ExitRecord signal{RunId("r"), {std::nullopt, 9}, true};
  EXPECT_EQ(parse_exit_record(to_json(signal)).value(), signal);
  for (const char* text : {R"({"run":"r"})", R"({"run":"r","exit_code":0,"signal":9})",
                           R"({"run":"r","exit_code":256})", R"({"run":"r","signal":0})",
                           R"({"exit_code":0})", R"({"run":"r","exit_code":-1})"})
    EXPECT_FALSE(parse_exit_record(text).ok()) << text;
  EXPECT_FALSE(
      parse_exit_record(R"({"run":"r","exit_code":0,"x":")" + std::string(5000, 'x')).ok());
}

TEST(InitMessages, Signals_ByNameAlone) {
  EXPECT_EQ(parse_signal(signal_to_json(SIGINT)).value(), SIGINT);
  EXPECT_EQ(parse_signal(R"({"name":"SIGTERM"})").value(), SIGTERM);
  EXPECT_FALSE(parse_signal(R"({"name":"9"})").ok());
  EXPECT_FALSE(parse_signal(R"({"name":"SEGV"})").ok());
}

TEST(InitMessages, SmallOnes_RoundTrip) {
  EXPECT_EQ(parse_init_stop(to_json(InitStop{RunId("r"), 500})).value(),
            (InitStop{RunId("r"), 500}));
  EXPECT_FALSE(parse_init_stop(R"({"run":"r","grace_ms":-1})").ok());
  EXPECT_EQ(parse_run(run_to_json(RunId("r"))).value(), RunId("r"));
  EXPECT_EQ(parse_window_size(to_json(WindowSize{1, 2})).value(), (WindowSize{1, 2}));
  EXPECT_EQ(parse_init_error(to_json(InitError{"c", "m"})).value(), (InitError{"c", "m"}));
  EXPECT_EQ(parse_init_ready(to_json(InitReady{RunId("r"), "SSH-2.0-x"})).value(),
            (InitReady{RunId("r"), "SSH-2.0-x"}));
  EXPECT_EQ(parse_init_report(to_json(InitReport{"info", "m"})).value(), (InitReport{"info", "m"}));
  EXPECT_TRUE(check_samples(R"({"gpus":[{"index":0,"utilization_percent":null}]})").ok());
  EXPECT_FALSE(check_samples(R"({"gpus":{}})").ok());
  EXPECT_FALSE(check_samples("{}").ok());
}

TEST(InitMessages, ErrorsOfAnyWords_CanBeRead) {
  const std::string words = "exec: \xff" + std::string(10'000, 'x');
  const auto error = parse_init_error(to_json(InitError{"failed", words}));
  ASSERT_TRUE(error.ok()) << error.error().message();
  EXPECT_EQ(error.value().message.size(), 8'192U);
  EXPECT_TRUE(parse_init_report(to_json(InitReport{"warning", words})).ok());
}

}  // namespace
}  // namespace autodl
