// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The pure parts: tables, scripts, configurations and parsers.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "base/unique_fd.hpp"
#include "runtime/cgroups.hpp"
#include "runtime/container.hpp"
#include "runtime/disk.hpp"
#include "runtime/host_files.hpp"
#include "runtime/images.hpp"
#include "runtime/log_disk.hpp"
#include "runtime/mounts.hpp"
#include "runtime/network.hpp"
#include "runtime/oci_bundle.hpp"
#include "runtime/overlay.hpp"
#include "runtime/process.hpp"
#include "runtime/testing/fake_runtime.hpp"

namespace autodl::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Mountinfo, Lines_AreReadWithEscapesAndOptionalFields) {
  const auto table = parse_mountinfo(
      "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:7 - ext3 /dev/root rw\n"
      "nonsense\n"
      "37 35 0:5 / /x rw - overlay overlay rw,lowerdir=0:1\n");
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table[0], (MountEntry{"/mnt 2", "/mnt1", "ext3", "/dev/root", true}));
  EXPECT_EQ(table[1], (MountEntry{"/x", "/", "overlay", "overlay", false}));
}

TEST(HostileTree, DeeperThanDescriptorsReach_IsRemoved) {
  char pattern[] = "/tmp/autodl-tree-XXXXXX";
  const std::string top = ::mkdtemp(pattern);
  UniqueFd at(::open(top.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::mkdirat(at.get(), "boot", 0700), 0);
  UniqueFd next(::openat(at.get(), "boot", O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::symlinkat("/etc", next.get(), "link"), 0);
  ASSERT_EQ(::mkfifoat(next.get(), "fifo", 0600), 0);
  constexpr int kDepth = 3000;
  for (int level = 0; level < kDepth; ++level) {
    at = std::move(next);
    ASSERT_EQ(::mkdirat(at.get(), "0", 0700), 0);
    ASSERT_EQ(::mkdirat(at.get(), "1", 0), 0);
    next.reset(::openat(at.get(), "0", O_RDONLY | O_DIRECTORY));
    ASSERT_TRUE(next.valid());
  }
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few{64, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto removed = remove_hostile_tree(top + "/boot");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(removed.ok()) << removed.error().message();
  EXPECT_TRUE(list_names(top).empty());
  EXPECT_TRUE(remove_hostile_tree(top + "/boot").ok());  // nothing there
  EXPECT_EQ(::rmdir(top.c_str()), 0);
}

TEST(Overlay, Options_OfManyLayers_FitAPage) {
  EXPECT_EQ(overlay_options(3, false), "lowerdir=0:1:2");
  EXPECT_LT(overlay_options(126, true).size(), 4096U);
  EXPECT_THAT(overlay_options(2, true), HasSubstr("index=on,nfs_export=on"));
}

TEST(HostSpace, Promises_AreCounted) {
  EXPECT_EQ(lacking_space({1000, 300}, 600, 100), std::nullopt);
  EXPECT_EQ(lacking_space({1000, 300}, 601, 100), 600);
  EXPECT_EQ(lacking_space({100, 300}, 1, 100), -300);
}

TEST(LogHole, KeepsHeadAndTail) {
  constexpr std::int64_t kMib = 1 << 20;
  EXPECT_EQ(log_hole(64 * kMib, 8 * kMib, 56 * kMib).to, 0);
  const auto hole = log_hole(100 * kMib + 5, 8 * kMib, 56 * kMib);
  EXPECT_EQ(hole.from, 8 * kMib);
  EXPECT_EQ(hole.to, 44 * kMib);
}

TEST(Pool, Text_IsANetworkOrRefused) {
  EXPECT_EQ(parse_pool("100.64.0.0/16")->text(), "100.64.0.0/16");
  for (const char* bad : {"", "100.64.0.0", "100.64.0.1/16", "100.64.0.0/30", "100.64.0.0/x",
                          "100.64.0/16", "300.0.0.0/8", "1.2.3.4.5/8", "-1.0.0.0/8"})
    EXPECT_FALSE(parse_pool(bad).ok()) << bad;
}

TEST(Routes, ConnectedNetworksAndUplink_AreFound) {
  const auto routes = parse_routes(
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
      "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n");
  EXPECT_EQ(routes.default_interface, "eth0");
  EXPECT_THAT(routes.connected, testing::ElementsAre("192.0.2.0/24"));
}

TEST(Resolvers, LoopbackAndNonsense_AreLeftOut) {
  EXPECT_THAT(parse_resolvers(
                  "# x\nnameserver 127.0.0.53\nnameserver 10.0.0.2\nnameserver ::1\nnameserver\n"),
              testing::ElementsAre("10.0.0.2"));
}

TEST(Table, Rules_RefuseWhatTheyMust) {
  const auto script =
      table_script({"rt", {0x64400000, 16}, {"10.0.0.2"}, {}, {"192.0.2.0/24"}, true});
  EXPECT_THAT(script, HasSubstr("add table inet autodl_rt\ndelete table inet autodl_rt\n"));
  for (const char* rule :
       {"iifname \"rt-*\" oifname \"rt-*\" drop", "ip daddr 100.64.0.0/16 oifname != \"rt-*\" drop",
        "meta nfproto ipv6 drop", "fib saddr . iif oif missing drop", "169.254.0.0/16",
        "192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "192.0.2.0/24",
        "ip saddr 100.64.0.0/16 oifname != \"rt-*\" masquerade"})
    EXPECT_THAT(script, HasSubstr(rule));
  EXPECT_THAT(table_script({"rt", {0x64400000, 16}, {}, {}, {}, false}),
              Not(HasSubstr("masquerade")));
}

TEST(Links, Scripts_NameBothEnds) {
  EXPECT_THAT(
      host_link_script("rt-4", 77, 0x64400001, 0x64400006),
      HasSubstr("link add rt-4 type veth peer name eth0 address 02:00:64:40:00:06 netns 77\n"));
  EXPECT_THAT(instance_link_script(0x64400001, 0x64400006),
              HasSubstr("route add default via 100.64.0.1 src 100.64.0.6\n"));
}

TEST(OomKills, Counter_OfBothVersions) {
  EXPECT_EQ(parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
  EXPECT_EQ(parse_oom_kills("low 0\noom 2\noom_kill 5\noom_group_kill 0\n"), 5);
  EXPECT_EQ(parse_oom_kills(""), 0);
}

TEST(Stat, StartTime_IsReadBehindAnyName) {
  const std::string rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
  EXPECT_EQ(parse_start_ticks("12 (a b) c) S 4)" + rest), 4242U);
  EXPECT_EQ(parse_start_ticks("12 (x) Z" + rest.substr(2)), std::nullopt);
  EXPECT_EQ(parse_start_ticks("12 (x"), std::nullopt);
  EXPECT_EQ(parse_start_ticks(""), std::nullopt);
}

BundleSpec bundle_spec() {
  BundleSpec spec;
  spec.instance = "I";
  spec.run = "R";
  spec.root_path = "/r";
  spec.hostname = "h";
  spec.init_argv = {"/opt/autodl/sbin/autodl-init"};
  spec.first_uid = 200000;
  spec.mounts = {{"/dev/x", "/dev/nvidia0", false, false, true},
                 {"/tb", "/opt/autodl", true, true, false}};
  spec.devices = {{'c', 195, 0}};
  spec.cgroup_path = "/autodl/I";
  spec.memory_bytes = 1 << 30;
  spec.pids_max = 100;
  spec.open_files_max = 1024;
  spec.seccomp = boost::json::object{{"defaultAction", "SCMP_ACT_ERRNO"}};
  return spec;
}

TEST(Bundle, HoldsLimitsAndNoPrivilege) {
  const boost::json::value bundle = make_bundle(bundle_spec());
  const auto text = boost::json::serialize(bundle);
  for (const char* never :
       {"CAP_SYS_ADMIN", "CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_MKNOD", "CAP_SYS_PTRACE"})
    EXPECT_THAT(text, Not(HasSubstr(never)));
  EXPECT_EQ(bundle.at_pointer("/linux/resources/memory/limit"), 1 << 30);
  EXPECT_EQ(bundle.at_pointer("/linux/resources/pids/limit"), 100);
  EXPECT_EQ(bundle.at_pointer("/linux/resources/devices/0/allow"), false);
  EXPECT_EQ(bundle.at_pointer("/linux/resources/devices/1/major"), 195);
  EXPECT_EQ(bundle.at_pointer("/linux/uidMappings/0/hostID"), 200000);
  EXPECT_EQ(bundle.at_pointer("/process/noNewPrivileges"), false);
  EXPECT_EQ(bundle.at_pointer("/annotations/autodl.run"), "R");
  EXPECT_THAT(text, HasSubstr("size=536870912"));  // /dev/shm: half of memory
  EXPECT_THAT(text, HasSubstr(R"("options":["bind","nosuid","nodev","noexec","ro"])"));
  EXPECT_THAT(text, HasSubstr(R"("options":["bind","nosuid","rw"])"));  // a device stays one
  EXPECT_THAT(text, HasSubstr("/proc/kcore"));
  EXPECT_THAT(text, Not(HasSubstr("\"cgroup\"")));
}

TEST(Bundle, OnVersion2_HasItsCgroup) {
  auto spec = bundle_spec();
  spec.cgroup_v2 = true;
  EXPECT_THAT(boost::json::serialize(make_bundle(spec)), HasSubstr(R"({"type":"cgroup"})"));
}

TEST(Seccomp, Section_ThatAllowsTooMuch_IsRefused) {
  const auto section = [](const char* name) {
    return std::string(R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[)"
                       R"({"action":"SCMP_ACT_ALLOW","names":[")") +
           name + "\"]}]}";
  };
  EXPECT_TRUE(parse_seccomp(section("read")).ok());
  for (const char* never : {"bpf", "userfaultfd", "io_uring_setup", "keyctl", "perf_event_open"})
    EXPECT_FALSE(parse_seccomp(section(never)).ok()) << never;
  EXPECT_FALSE(parse_seccomp("").ok());
  EXPECT_FALSE(parse_seccomp(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[]})").ok());
  EXPECT_FALSE(
      parse_seccomp(R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"includes":{}}]})").ok());
}

TEST(Names, HostAndCpuset_AreChecked) {
  for (const char* good : {"a", "autodl-001", "A1"}) EXPECT_TRUE(is_hostname(good)) << good;
  for (const char* bad : {"", "-a", "a-", "a b", "a\n", "ü", "a.b"})
    EXPECT_FALSE(is_hostname(bad)) << bad;
  EXPECT_TRUE(is_cpuset("0-3,8"));
  EXPECT_FALSE(is_cpuset("0;1"));
}

TEST(References, OptionsPathsAndTransports_AreRefused) {
  for (const char* good :
       {"autodl/pytorch:2.6.0-cpu-py313", "docker.io/library/debian@sha256:ab", "a"})
    EXPECT_TRUE(check_reference(good).ok()) << good;
  for (const char* bad :
       {"", "-v", "--root=/x", "/etc/passwd", "docker://x", "a b", "a\nb", "../x", "a;b", "名"})
    EXPECT_EQ(check_reference(bad).error().code(), "bad_image_reference") << bad;
}

TEST(Inspect, Description_GivesLayersTopFirst) {
  const std::string id(64, 'a');
  const auto text = R"([{"Id":")" + id +
                    R"(","Size":42,"Config":{"Env":["A=1=2","=x","bad","B="],"WorkingDir":"/w"},)"
                    R"("GraphDriver":{"Data":{"UpperDir":"/top","LowerDir":"/mid:/low"}}}])";
  const auto image = parse_inspect(text, "x:y");
  ASSERT_TRUE(image.ok()) << image.error().message();
  EXPECT_EQ(image->info.digest, "sha256:" + id);
  EXPECT_EQ(image->info.size_bytes, 42);
  EXPECT_THAT(image->info.env,
              testing::ElementsAre(testing::Pair("A", "1=2"), testing::Pair("B", "")));
  EXPECT_THAT(image->layers, testing::ElementsAre("/top", "/mid", "/low"));
  for (const char* bad : {"", "[]", "{}", R"([{"Id":"x"}])", R"([{"Id":"../../etc"}])"})
    EXPECT_FALSE(parse_inspect(bad, "x").ok()) << bad;
}

TEST(PullError, Words_SayWhetherItIsUnknownOrUnreachable) {
  EXPECT_EQ(pull_error("x", "Error: … manifest unknown").code(), "unknown_image");
  EXPECT_EQ(pull_error("x", "Error: … i/o timeout").code(), "pull_failed");
}

TEST(Process, OutputInputAndExit_AreCarried) {
  ProcessOptions options;
  options.input = "in";
  options.env = {"X=y"};
  const auto done = run_process({"sh", "-c", "cat; echo $X >&2; exit 3"}, options);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->out, "in");
  EXPECT_EQ(done->err, "y\n");
  EXPECT_EQ(done->exit_code, 3);
  EXPECT_EQ(run_checked({"sh", "-c", "echo why >&2; exit 1"}).error().code(), "tool_failed");
  EXPECT_EQ(run_process({"/no/such/program"}).error().code(), "tool_missing");
}

TEST(Process, PastItsDeadline_IsKilledWithItsChildren) {
  ProcessOptions options;
  options.deadline = std::chrono::milliseconds{100};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_process({"sh", "-c", "sleep 100 & wait"}, options).error().code(), "tool_timeout");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{20});
}

TEST(Process, FloodOfOutput_IsBounded) {
  ProcessOptions options;
  options.output_max = 1000;
  const auto done = run_process({"sh", "-c", "yes | head -c 1000000"}, options);
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->out.size(), 1000U);
}

TEST(Fake, LifeOfAnInstance_FollowsTheSameRules) {
  FakeRuntime fake;
  const InstanceId id("I");
  const RunId run("R");
  ContainerSpec spec;
  spec.id = id;
  spec.run = run;
  EXPECT_EQ(fake.create_container(spec).error().code(), "no_disk");
  ASSERT_TRUE(fake.ensure_disk({id, 1 << 30, 0}).ok());
  EXPECT_EQ(fake.create_container(spec).error().code(), "no_root");
  ASSERT_TRUE(fake.ensure_root({id, "sha256:x", 0}).ok());
  ASSERT_TRUE(fake.create_container(spec).ok());
  ASSERT_TRUE(fake.start_container(id, run).ok());
  ASSERT_TRUE(fake.start_container(id, run).ok());
  EXPECT_EQ(fake.starts_of(run), 1);
  fake.end_container(id, 7);
  EXPECT_EQ(fake.status(id)->exit_code, 7);
  EXPECT_EQ(fake.start_container(id, run).error().code(), "already_ran");
  fake.fail_next("remove_container", Error(ErrorKind::kUnavailable, "x", "y"));
  EXPECT_FALSE(fake.remove_container(id).ok());
  EXPECT_TRUE(fake.remove_container(id).ok());
  fake.cut_next("destroy");
  EXPECT_THROW(static_cast<void>(fake.destroy(id)), FakeRuntime::Cut);
  EXPECT_FALSE(fake.has_disk(id));
}

}  // namespace
}  // namespace autodl::runtime
