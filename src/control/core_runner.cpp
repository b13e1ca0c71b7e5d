// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/core_runner.hpp"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cstdlib>

#include "base/log.hpp"

namespace autodl {
namespace {

constexpr int kExitFatal = 70;

void log_and_end(const Error& error) {
  log_error("control", "cannot go on: {}; ending, so that what is stored is loaded again",
            error.message());
  ::_exit(kExitFatal);
}

}  // namespace

class CoreRunner::PostedJob final : public Job {
 public:
  explicit PostedJob(std::function<void(ControlCore&)> command) : command_(std::move(command)) {}
  void execute(ControlCore& core) override { command_(core); }
  void complete() override {}
  bool has_answer() const override { return false; }

 private:
  std::function<void(ControlCore&)> command_;
};

CoreRunner::CoreRunner(std::unique_ptr<ControlCore> core, Executor loop, Options options)
    : core_(std::move(core)),
      loop_(std::move(loop)),
      options_(std::move(options)),
      events_changed_(loop_),
      seen_seq_(core_->committed_seq()) {
  if (!options_.on_fatal) options_.on_fatal = log_and_end;
}

CoreRunner::~CoreRunner() {
  stop();
}

void CoreRunner::start() {
  thread_ = std::thread([this] { thread_main(); });
}

void CoreRunner::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool CoreRunner::enter() {
  const std::lock_guard lock(mutex_);
  return !stopping_ && waiting_.size() < options_.jobs_max;
}

bool CoreRunner::push(std::unique_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    if (!job->has_answer() && (stopping_ || waiting_.size() >= options_.jobs_max)) return false;
    waiting_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

bool CoreRunner::post(std::function<void(ControlCore&)> command) {
  return push(std::make_unique<PostedJob>(std::move(command)));
}

std::vector<std::unique_ptr<CoreRunner::Job>> CoreRunner::wait_for_jobs(
    std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, until, [this] { return stopping_ || !waiting_.empty(); });
  std::vector<std::unique_ptr<Job>> jobs;
  if (waiting_.size() <= options_.batch_max) {
    jobs.swap(waiting_);
    return jobs;
  }
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(options_.batch_max);
  jobs.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return jobs;
}

void CoreRunner::thread_main() {
  auto next_tick = std::chrono::steady_clock::now();
  while (true) {
    auto jobs = wait_for_jobs(next_tick);
    const auto now = std::chrono::steady_clock::now();
    for (const auto& job : jobs) job->execute(*core_);
    const bool due = now >= next_tick;
    if (due) {
      core_->tick();
      next_tick = now + options_.tick_every;
    }
    const bool nothing_left = jobs.empty();
    finish_batch(std::move(jobs));
    if (!nothing_left) continue;
    const std::lock_guard lock(mutex_);
    if (stopping_ && waiting_.empty()) return;
  }
}

void CoreRunner::finish_batch(std::vector<std::unique_ptr<Job>> jobs) {
  if (core_->dirty()) {
    const auto flushed = core_->flush();
    if (!flushed.ok()) {
      options_.on_fatal(flushed.error());
      std::abort();  // it must not return
    }
  }
  if (options_.after_batch) options_.after_batch(*core_);
  if (core_->committed_seq() > seen_seq_) {
    seen_seq_ = core_->committed_seq();
    events_changed_.notify_from_anywhere();
  }
  std::erase_if(jobs, [](const auto& job) { return !job->has_answer(); });
  if (jobs.empty()) return;
  boost::asio::post(loop_, [done = std::move(jobs)] {
    for (const auto& job : done) job->complete();
  });
}

}  // namespace autodl
