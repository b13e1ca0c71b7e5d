// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>

#include "link/control_link.hpp"
#include "link/node_link.hpp"
#include "wire/set_json.hpp"

namespace autodl {
namespace {

const InstanceId kInstance("01ARZ3NDEKTSV4RRFFQ69G5FAV");

// Values that threads hand over to the test, which waits for them.
template <class T>
class Mailbox {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  std::optional<T> take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds{5}, [&] { return !values_.empty(); }))
      return std::nullopt;
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

class LinkTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/autodl-link-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    path_ = folder_ + "/link.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<NodeLink> make_node() {
    NodeLink::Config config;
    config.path = path_;
    config.user = ::getuid();
    config.mine.role = "node";
    config.mine.node = NodeId("local");
    config.mine.boot_id = "boot";
    NodeLink::Events events;
    events.desired = [this](DesiredSet set) -> Status {
      if (set.epoch < 7) return Error(ErrorKind::kDenied, "old_epoch", "too old");
      desired_.put(std::move(set));
      return {};
    };
    auto node = std::make_unique<NodeLink>(std::move(config), std::move(events));
    EXPECT_TRUE(node->start().ok());
    return node;
  }

  std::unique_ptr<ControlLink> make_control() {
    ControlLink::Events events;
    events.up = [this](const LinkHello& hello) { up_.put(hello); };
    events.observed = [this](ObservedSet set) { observed_.put(std::move(set)); };
    events.event = [this](const LinkEvent& event) { events_.put(event); };
    events.refused = [this](const Error& error) { refused_.put(error); };
    events.down = [this](const Error& error) { down_.put(error); };
    LinkHello mine;
    mine.role = "control";
    auto control = std::make_unique<ControlLink>(path_, mine, std::move(events));
    control->start();
    return control;
  }

  static DesiredSet desired(std::uint64_t epoch, std::size_t instances) {
    DesiredSet set;
    set.cluster = "01ARZ3NDEKTSV4RRFFQ69G5FAA";
    set.epoch = epoch;
    set.revision = 3;
    for (std::size_t i = 0; i < instances; ++i) {
      DesiredInstance instance;
      instance.id = kInstance;
      instance.name = "001";
      instance.image = "autodl/base:trixie";
      instance.disk_bytes = std::int64_t{1} << 30;
      set.instances.push_back(instance);
    }
    return set;
  }

  std::string folder_, path_;
  Mailbox<DesiredSet> desired_;
  Mailbox<LinkHello> up_;
  Mailbox<ObservedSet> observed_;
  Mailbox<LinkEvent> events_;
  Mailbox<Error> refused_, down_;
};

TEST_F(LinkTest, SetsAndEventsArriveBothWays) {
  const auto node = make_node();
  const auto control = make_control();
  EXPECT_EQ(up_.take().value().node, NodeId("local"));
  const auto set = desired(7, 1);
  control->send_desired(set);
  EXPECT_EQ(desired_.take().value(), set);
  ObservedSet seen;
  seen.node = NodeId("local");
  seen.boot_id = "boot";
  seen.desired_revision = 3;
  node->send_event({kInstance, "progress", "pulling the image"});
  node->send_observed(seen);
  EXPECT_EQ(observed_.take().value(), seen);
  EXPECT_EQ(events_.take().value(), (LinkEvent{kInstance, "progress", "pulling the image"}));
}

TEST_F(LinkTest, RefusedSetIsToldAndTheLinkStays) {
  const auto node = make_node();
  const auto control = make_control();
  control->send_desired(desired(6, 0));
  EXPECT_EQ(refused_.take().value().code(), "old_epoch");
  control->send_desired(desired(7, 0));
  EXPECT_TRUE(desired_.take().has_value());
}

TEST_F(LinkTest, NodeComesBack_ControlConnectsAgain) {
  auto node = make_node();
  const auto control = make_control();
  EXPECT_TRUE(up_.take().has_value());
  node.reset();
  EXPECT_TRUE(down_.take().has_value());
  node = make_node();
  EXPECT_TRUE(up_.take().has_value());
  control->send_desired(desired(8, 1));
  EXPECT_EQ(desired_.take().value().epoch, 8U);
}

TEST_F(LinkTest, ControlComesBack_ReplacesTheOld) {
  const auto node = make_node();
  auto first = make_control();
  EXPECT_TRUE(up_.take().has_value());
  const auto second = make_control();
  EXPECT_TRUE(up_.take().has_value());
  first->stop();
  second->send_desired(desired(9, 1));
  EXPECT_EQ(desired_.take().value().epoch, 9U);
}

TEST_F(LinkTest, GarbageFromControl_ClosesThatConnectionOnly) {
  const auto node = make_node();
  {
    auto raw = connect_unix(path_, SOCK_STREAM).value();
    const std::string huge("\x02\xff\xff\xff\xff", 5);
    ASSERT_GT(::send(raw.get(), huge.data(), huge.size(), MSG_NOSIGNAL), 0);
    std::string got;
    for (;;) {  // its hello, then the end
      auto message = receive_message(raw.get(), 4096, Millis{5'000});
      if (!message.ok() || message->bytes.empty()) break;
      got += message->bytes;
    }
    EXPECT_LT(got.size(), 500U);
  }
  const auto control = make_control();
  control->send_desired(desired(7, 0));
  EXPECT_TRUE(desired_.take().has_value());
}

TEST_F(LinkTest, BigSetsArriveWhole) {
  const auto node = make_node();
  const auto control = make_control();
  auto set = desired(7, 0);
  for (int i = 0; i < 2'000; ++i) {
    auto one = desired(7, 1).instances[0];
    one.id = InstanceId("01ARZ3NDEKTSV4RRFFQ69G" + std::to_string(1000 + i));
    one.slot = static_cast<std::uint32_t>(i);
    set.instances.push_back(one);
  }
  control->send_desired(set);
  const auto got = desired_.take();
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->instances.size(), 2'000U);
}

TEST(LinkMessages_AnyWords_CanBeRead, Test) {
  const std::string words = "podman: \xff" + std::string(5'000, 'x');
  EXPECT_TRUE(parse_link_event(to_json(LinkEvent{kInstance, "progress", words})).ok());
  const Error error(ErrorKind::kDenied, "no", words, words);
  EXPECT_EQ(parse_refusal(refusal_to_json(error)).code(), "no");
}

TEST(LinkMessages_OtherVersion_IsTold, Test) {
  LinkHello hello;
  hello.version = kLinkVersion + 2;
  hello.role = "node";
  EXPECT_EQ(parse_link_hello(to_json(hello)).error().code(), "link_version");
  hello.version = kLinkVersion + 1;
  EXPECT_EQ(parse_link_hello(to_json(hello)).value(), hello);
}

}  // namespace
}  // namespace autodl
