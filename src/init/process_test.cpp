// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/unique_fd.hpp"

namespace autodl::init {
namespace {

struct Ran {
  std::string output;
  int status = 0;
};

Ran run(ProcessSpec spec) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  spec.stdout_fd = writing.get();
  const auto pid = start_process(spec);
  writing.reset();
  if (!pid.ok()) return {pid.error().code(), -1};
  Ran ran;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(reading.get(), buffer, sizeof buffer)) > 0;)
    ran.output.append(buffer, static_cast<std::size_t>(got));
  waitpid(pid.value(), &ran.status, 0);
  return ran;
}

ProcessSpec shell(std::string line) {
  return {{"sh", "-c", std::move(line)}, {{"PATH", "/usr/bin:/bin"}}, "/", -1, -1, -1, false};
}

TEST(StartProcess, FindsTheProgramInTheGivenPathAlone) {
  EXPECT_EQ(run(shell("echo hello")).output, "hello\n");
  ProcessSpec spec = shell("echo hello");
  spec.env["PATH"] = "/nowhere";
  EXPECT_EQ(run(spec).output, "command_not_found");
}

TEST(StartProcess, GivesExactlyTheEnvironment) {
  ProcessSpec spec;
  spec.argv = {"/usr/bin/env"};
  spec.env = {{"A", "x y"}, {"B", "1\n2"}};
  spec.cwd = "/";
  EXPECT_EQ(run(spec).output, "A=x y\nB=1\n2\n");
}

TEST(StartProcess, InheritsNoDescriptor) {
  const UniqueFd secret(open("/etc/hostname", O_RDONLY));  // without CLOEXEC
  ASSERT_GT(secret.get(), 2);
  const std::string output = run(shell("for f in /proc/self/fd/*; do readlink $f; done")).output;
  EXPECT_EQ(output.find("hostname"), std::string::npos) << output;
}

TEST(StartProcess, LeadsItsOwnSessionWithDefaultSignals) {
  const std::string line = run(shell("cut -d' ' -f5,6 /proc/$$/stat; echo $$; "
                                     "grep -E 'Sig(Blk|Ign)' /proc/$$/status"))
                               .output;
  long group = 0;
  long session = 0;
  long pid = 0;
  ASSERT_EQ(sscanf(line.c_str(), "%ld %ld %ld", &group, &session, &pid), 3);
  EXPECT_EQ(group, pid);
  EXPECT_EQ(session, pid);
  EXPECT_NE(line.find("SigBlk:\t0000000000000000"), std::string::npos) << line;
  EXPECT_NE(line.find("SigIgn:\t0000000000000000"), std::string::npos) << line;
}

TEST(StartProcess, Failures_AreToldApart) {
  ProcessSpec spec = shell("true");
  spec.cwd = "/does/not/exist";
  EXPECT_EQ(run(spec).output, "bad_cwd");
  spec = shell("true");
  spec.argv = {"/etc/passwd"};
  EXPECT_EQ(run(spec).output, "not_executable");
  spec.argv = {"/does/not/exist"};
  EXPECT_EQ(run(spec).output, "command_not_found");
}

TEST(StartProcess, ScriptWithoutInterpreterLine_RunsByTheShell) {
  const std::string path = testing::TempDir() + "/autodl-init-script";
  std::ofstream(path) << "echo by shell $1\n";
  chmod(path.c_str(), 0755);
  ProcessSpec spec = shell("");
  spec.argv = {path, "arg"};
  EXPECT_EQ(run(spec).output, "by shell arg\n");
  unlink(path.c_str());
}

}  // namespace
}  // namespace autodl::init
