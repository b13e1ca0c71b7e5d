// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/socket_init_links.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <future>

#include "agent/exit_watch.hpp"

namespace autodl {
namespace {

const InstanceId kInstance("01ARZ3NDEKTSV4RRFFQ69G5FAA");
const RunId kRun("01ARZ3NDEKTSV4RRFFQ69G5FR1");
const std::string kKey(kRunKeyBytes, 'k');

// The test plays init on a loopback port.
class InitLinksTest : public testing::Test {
 protected:
  void SetUp() override {
    listening_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ASSERT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    ASSERT_EQ(::listen(listening_.get(), 8), 0);
    ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    links_ = std::make_unique<SocketInitLinks>([this](InitEvent event) { got(std::move(event)); },
                                               random_, ntohs(address.sin_port));
  }

  static InitTarget target() {
    InitTarget target;
    target.instance = kInstance;
    target.run = kRun;
    target.address = "127.0.0.1";
    target.key = kKey;
    target.setup.run = kRun;
    target.setup.instance = kInstance;
    target.setup.name = "001";
    target.setup.host_key = "pem";
    return target;
  }
  auto connect(Millis limit = Millis{5'000}) {
    return std::async(std::launch::async,
                      [this, limit] { return links_->connect(target(), limit); });
  }

  // As init: the header is authentic, then frames.
  void accept() {
    init_.reset(::accept(listening_.get(), nullptr, nullptr));
    reader_ = FrameReader();
    std::string bytes;
    for (std::size_t size = 16; bytes.size() < size;) {
      bytes += read_exactly(size - bytes.size());
      size = proxy_header_size(bytes).value();
    }
    const auto header = parse_proxy_header(kKey, bytes);
    ASSERT_TRUE(header.ok()) << header.error().message();
    EXPECT_EQ(header->target.kind, StreamKind::kControl);
  }
  std::string read_exactly(std::size_t count) const {
    std::string bytes(count, '\0');
    EXPECT_EQ(::recv(init_.get(), bytes.data(), count, MSG_WAITALL), static_cast<ssize_t>(count));
    return bytes;
  }
  Frame next_frame() {
    char chunk[4096];
    for (;;) {
      auto frame = reader_.next();
      if (frame.ok() && frame->has_value()) return **frame;
      const auto count = ::recv(init_.get(), chunk, sizeof chunk, 0);
      if (count <= 0) return Frame{};
      reader_.put({chunk, static_cast<std::size_t>(count)});
    }
  }
  void say(InitFrame type, const std::string& payload) const {
    const auto bytes = init_frame(type, payload);
    ASSERT_EQ(::send(init_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void say_ready() const { say(InitFrame::kReady, to_json(InitReady{kRun, "SSH-2.0-test"})); }
  void greet() {
    auto connected = connect();
    accept();
    EXPECT_EQ(parse_init_setup(next_frame().payload).value(), target().setup);
    say_ready();
    ASSERT_TRUE(connected.get().ok());
  }

  void got(InitEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  std::optional<InitEvent> event() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds{5}, [&] { return !events_.empty(); }))
      return std::nullopt;
    auto first = std::move(events_.front());
    events_.pop_front();
    return first;
  }

  SystemRandom random_;
  UniqueFd listening_, init_;
  FrameReader reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<InitEvent> events_;
  std::unique_ptr<SocketInitLinks> links_;
};

TEST_F(InitLinksTest, SetupReadyGoAndWhatInitSays) {
  greet();
  ASSERT_TRUE(links_->go(kInstance, kRun).ok());
  const auto go = next_frame();
  EXPECT_EQ(go.type, static_cast<std::uint8_t>(InitFrame::kGo));
  EXPECT_EQ(parse_run(go.payload).value(), kRun);
  ASSERT_TRUE(links_->stop(kInstance, {kRun, 4'000}).ok());
  EXPECT_EQ(parse_init_stop(next_frame().payload).value(), (InitStop{kRun, 4'000}));
  say(InitFrame::kShutdown, run_to_json(kRun));
  EXPECT_EQ(event()->kind, InitEvent::Kind::kShutdown);
  ExitRecord record;
  record.run = kRun;
  record.exit.exit_code = 3;
  say(InitFrame::kEnded, to_json(record));
  EXPECT_EQ(event()->kind, InitEvent::Kind::kEnded);
}

TEST_F(InitLinksTest, SecondConnect_AnswersWithoutDiallingAgain) {
  greet();
  EXPECT_EQ(links_->connect(target(), Millis{100}).value().ssh_banner, "SSH-2.0-test");
  pollfd wanted{listening_.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 0), 0);
}

TEST_F(InitLinksTest, NotReadyInTime_TheNextCallWaitsOn) {
  auto first = connect(Millis{50});
  accept();
  next_frame();
  EXPECT_EQ(first.get().error().code(), "not_ready");
  auto second = connect();
  say_ready();
  EXPECT_TRUE(second.get().ok());
}

TEST_F(InitLinksTest, InitEnds_IsToldAndCallsAreRefused) {
  greet();
  init_.reset();
  EXPECT_EQ(event()->kind, InitEvent::Kind::kLost);
  EXPECT_EQ(links_->go(kInstance, kRun).error().code(), "init_gone");
  greet();
  EXPECT_TRUE(links_->go(kInstance, kRun).ok());
}

TEST_F(InitLinksTest, GarbageFromInside_DropsTheStream) {
  greet();
  say(InitFrame::kEnded, "{\"run\":1}");
  EXPECT_EQ(event()->kind, InitEvent::Kind::kLost);
}

TEST_F(InitLinksTest, FloodOfReports_IsCut) {
  greet();
  for (int i = 0; i < 200; ++i)
    say(InitFrame::kReport, to_json(InitReport{"info", std::to_string(i)}));
  say(InitFrame::kShutdown, run_to_json(kRun));
  int reports = 0;
  for (;;) {
    const auto one = event();
    ASSERT_TRUE(one.has_value());
    if (one->kind == InitEvent::Kind::kShutdown) break;
    ++reports;
  }
  EXPECT_GE(reports, 1);
  EXPECT_LE(reports, 40);  // two seconds' worth, should one have passed
}

TEST_F(InitLinksTest, ClosedByUs_NoEventFollows) {
  greet();
  links_->close(kInstance);
  EXPECT_EQ(next_frame().payload, "");  // init sees the end
  greet();
  say(InitFrame::kShutdown, run_to_json(kRun));
  EXPECT_EQ(event()->kind, InitEvent::Kind::kShutdown);
}

TEST(ExitWatch_Descriptor, IsToldOnce) {
  std::promise<InstanceId> told;
  ExitWatch watch([&](const InstanceId& id) { told.set_value(id); });
  UniqueFd ended(::eventfd(0, EFD_CLOEXEC));
  watch.add(kInstance, UniqueFd(::dup(ended.get())));
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(ended.get(), &one, sizeof one), 8);
  EXPECT_EQ(told.get_future().get(), kInstance);
}

}  // namespace
}  // namespace autodl
