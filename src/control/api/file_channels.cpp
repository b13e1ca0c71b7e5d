// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/file_channels.hpp"

#include <boost/asio/steady_timer.hpp>

namespace autodl {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kKeptFor{10};
constexpr std::size_t kPerInstanceMax = 8;
constexpr std::size_t kInAllMax = 128;
constexpr Millis kOpenLimit{20'000};
constexpr Millis kSilence{60'000};

}  // namespace

// Shared with the sweeping timer's handler.
struct FileChannels::State {
  struct Idle {
    std::unique_ptr<FileClient> client;
    SteadyClock::time_point since;
  };
  std::map<InstanceId, std::list<Idle>> idle;
  std::map<InstanceId, std::size_t> lent;
  std::size_t lent_in_all = 0;
  std::optional<boost::asio::steady_timer> timer;
  bool sweeping = false;
  bool stopped = false;

  static void sweep_later(const std::shared_ptr<State>& state) {
    if (state->sweeping || state->stopped || !state->timer) return;
    state->sweeping = true;
    state->timer->expires_after(kKeptFor);
    state->timer->async_wait([weak = std::weak_ptr(state)](const auto& error) {
      const auto self = weak.lock();
      if (error || !self) return;
      self->sweeping = false;
      const auto limit = SteadyClock::now() - kKeptFor;
      for (auto& [instance, list] : self->idle)
        list.remove_if([&](const Idle& one) { return one.since <= limit; });
      std::erase_if(self->idle, [](const auto& entry) { return entry.second.empty(); });
      if (!self->idle.empty()) sweep_later(self);
    });
  }
};

FileChannels::FileChannels(StreamOpener& streams, BlockingPool& pool)
    : streams_(streams), pool_(pool), state_(std::make_shared<State>()) {}

FileChannels::~FileChannels() {
  stop();
}

void FileChannels::stop() {
  state_->stopped = true;
  state_->idle.clear();
  if (state_->timer) state_->timer->cancel();
}

Task<Result<std::unique_ptr<FileClient>>> FileChannels::acquire(InstanceId instance) {
  const auto state = state_;
  const auto executor = co_await boost::asio::this_coro::executor;
  if (!state->timer) state->timer.emplace(executor);
  if (state->lent[instance] >= kPerInstanceMax || state->lent_in_all >= kInAllMax)
    co_return Error(ErrorKind::kExhausted, "busy", "too many file requests run already",
                    "try again in a few seconds");
  ++state->lent[instance];
  ++state->lent_in_all;
  while (!state->idle[instance].empty()) {
    auto client = std::move(state->idle[instance].back().client);
    state->idle[instance].pop_back();
    const auto alive = co_await client->stat("/");  // the node may have ended it meanwhile
    if (alive.ok()) co_return client;
  }
  StreamWish wish;
  wish.kind = "file";
  wish.instance = instance.str();
  auto open = [streams = &streams_, wish]() { return streams->open(wish, kOpenLimit); };
  auto fd = co_await run_blocking(pool_, std::move(open));
  std::optional<Error> failure;
  std::unique_ptr<Conn> conn;
  if (!fd.ok()) {
    failure = fd.error();
  } else {
    auto adopted = adopt_conn(executor, std::move(*fd), "file worker of " + instance.str());
    if (adopted.ok())
      conn = std::move(*adopted);
    else
      failure = adopted.error();
  }
  if (failure) {
    give_back(instance, nullptr);
    co_return *failure;
  }
  co_return std::make_unique<FileClient>(std::move(conn), kSilence);
}

void FileChannels::give_back(const InstanceId& instance, std::unique_ptr<FileClient> client) {
  --state_->lent_in_all;
  if (--state_->lent[instance] == 0) state_->lent.erase(instance);
  if (!client || state_->stopped) return;
  state_->idle[instance].push_back({std::move(client), SteadyClock::now()});
  State::sweep_later(state_);
}

}  // namespace autodl
