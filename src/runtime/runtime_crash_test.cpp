// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// kill -9 at each crash point of the runtime: what was cut off is finished or undone by the next
// object, the job starts once, and nothing is left.
#include <cstdlib>
#include <regex>
#include <set>

#include "runtime/testing/real_fixture.hpp"

namespace autodl {
namespace {

using runtime::read_small_file;

std::set<std::string> crash_points() {
  std::set<std::string> points;
  const auto folder = std::string(ADL_SOURCE_DIR) + "/src/runtime";
  const std::regex pattern("crash_point\\(\"([^\"]+)\"\\)");
  for (const auto& name : runtime::list_names(folder)) {
    if (!name.ends_with(".cpp") || name.ends_with("_test.cpp")) continue;
    const auto text = read_small_file(folder + "/" + name).value_or("");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern);
         at != std::sregex_iterator(); ++at)
      points.insert((*at)[1]);
  }
  return points;
}

class CrashTest : public RealRuntimeTest {
 protected:
  static constexpr const char* kJob = "echo started >> /root/autodl-tmp/starts; exit 7";

  void SetUp() override {
    // Made anew in each round, so that the points in their making are passed too.
    static_cast<void>(runtime::remove_tree(config_.state_dir + "/veils"));
    static_cast<void>(runtime::remove_tree(config_.state_dir + "/pins"));
    RealRuntimeTest::SetUp();
  }

  std::size_t starts(const InstanceId& id) const {
    const auto text = read_small_file(disk(id) + "/data/starts").value_or("");
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  void whole_life(const InstanceId& id) {
    prepare_instance(id, kJob);
    start(id, run_of(1));
    await_end(id);
    expect_ok(runtime_->remove_container(id));
    // One that is removed before its start: its network is still there then.
    expect_ok(runtime_->create_container(spec_for(id, run_of(2))));
    expect_ok(runtime_->remove_container(id));
    expect_ok(runtime_->release_root(id));
    expect_ok(runtime_->destroy(id));
  }

  // What an agent does that finds the instance as the crash left it.
  void take_up(const InstanceId& id) {
    const auto found = runtime_->status(id).value_or({});
    if (found.run == run_of(2)) return;  // the first is over, and the second has no job
    const auto phase = found.phase;
    if (phase == ContainerPhase::kCreated) expect_ok(runtime_->start_container(id, run_of(1)));
    const bool fresh = phase == ContainerPhase::kNone && starts(id) == 0 && !was_run(id);
    if (fresh) {
      prepare_instance(id, kJob);
      start(id, run_of(1));
    }
    if (fresh || phase != ContainerPhase::kNone) {
      const auto end = await_end(id);
      EXPECT_EQ(end.exit_code, 7);
      EXPECT_EQ(starts(id), 1U);
    }
  }

  // The log was moved to its last place: the run is over, and only the removal was cut off.
  bool was_run(const InstanceId& id) {
    return runtime_->log_path(id, run_of(1)).starts_with(config_.state_dir);
  }
};

TEST_F(CrashTest, DISABLED_WholeLife) {
  whole_life(instance(9));
}

TEST_F(CrashTest, AtEachPoint_NextObjectFinishesOrUndoes) {
  const auto points = crash_points();
  ASSERT_GT(points.size(), 30U);
  const auto id = instance(9);
  const char* only =
      std::getenv("AUTODL_TEST_CRASH_POINTS");  // part of their names, for one's own use
  for (const auto& point : points) {
    if (only != nullptr && point.find(only) == std::string::npos) continue;
    if (point.starts_with("runtime.pull.")) continue;  // no registry here
    SCOPED_TRACE(point);
    static_cast<void>(runtime::remove_tree(config_.state_dir + "/logs"));
    static_cast<void>(runtime::remove_tree(config_.state_dir + "/veils"));
    runtime::ProcessOptions options;
    options.deadline = std::chrono::seconds{60};
    options.env = {"AUTODL_CRASH_AT=" + point};
    auto child = runtime::run_process({"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                       "--gtest_filter=CrashTest.DISABLED_WholeLife"},
                                      options);
    ASSERT_TRUE(child.ok());
    EXPECT_EQ(child->exit_code, 128 + SIGKILL) << child->out;
    make_runtime();
    take_up(id);
    expect_ok(runtime_->destroy(id));
    EXPECT_EQ(footprint(config_), before_);
  }
}

}  // namespace
}  // namespace autodl
