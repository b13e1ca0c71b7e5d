// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "async/notifier.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

namespace autodl {

namespace asio = boost::asio;

Notifier::Notifier(Executor executor)
    : executor_(std::move(executor)), state_(std::make_shared<State>()) {}

std::uint64_t Notifier::version() const {
  return state_->version;
}

void Notifier::State::notify() {
  ++version;
  for (asio::steady_timer* timer : waiters) timer->cancel();
}

void Notifier::notify() {
  state_->notify();
}

void Notifier::notify_from_anywhere() {
  asio::post(executor_, [state = state_] { state->notify(); });
}

Task<bool> Notifier::wait(std::uint64_t seen, Millis timeout) {
  const auto state = state_;
  if (state->version > seen) co_return true;
  asio::steady_timer timer(executor_, timeout);
  const auto place = state->waiters.insert(state->waiters.end(), &timer);
  // Leaves the list also where the coroutine is destroyed while it waits.
  const struct Leave {
    State& state;
    std::list<asio::steady_timer*>::iterator place;
    ~Leave() { state.waiters.erase(place); }
  } leave{*state, place};
  boost::system::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  co_return state->version > seen;
}

}  // namespace autodl
