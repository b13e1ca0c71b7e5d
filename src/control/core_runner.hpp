// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// CoreRunner: the one thread that owns ControlCore. Commands queue up; the thread takes all that
// wait, runs them, commits once for the whole batch (group commit) and only then lets the answers
// go. Between commands it ticks the core.
//
//    callers (loop's thread): co_await runner.run(command) ----+
//    node link (any thread):  runner.post(command) ------------+--> batch -> flush -> answers
//                                                                             `-> after_batch
//
// Where the commit fails, memory is ahead of the store: on_fatal is called and must not return
// (the process ends and is started again).
//
//   auto view = co_await runner.run([account, key](ControlCore& core) {
//     return core.instance(account, key);
//   });                       // the lambda returns Result<T> or Status; name it above the await
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "async/notifier.hpp"
#include "async/task.hpp"
#include "base/clock.hpp"
#include "control/core.hpp"

namespace autodl {

class CoreRunner {
 public:
  struct Options {
    Millis tick_every{200};
    std::size_t jobs_max = 20'000;  // waiting; beyond, calls are refused (kExhausted "busy")
    std::size_t batch_max = 512;
    // On the core's thread after each batch and tick that left nothing uncommitted: sends desired
    // sets and the gateway's snapshot. Must not block for long.
    std::function<void(ControlCore&)> after_batch;
    // On the core's thread; must end the process. Default: logs and exits with 70.
    std::function<void(const Error&)> on_fatal;
  };

  // loop: where answers are given and events_changed() lives (one thread runs it).
  CoreRunner(std::unique_ptr<ControlCore> core, Executor loop, Options options);
  ~CoreRunner();
  CoreRunner(const CoreRunner&) = delete;
  CoreRunner& operator=(const CoreRunner&) = delete;

  void start();
  // Runs what waits, then ends the thread. Blocks; call it before the loop's end.
  void stop();

  // On the loop's thread. The command is run once, on the core's thread; the answer comes after
  // its effects are durable.
  template <class Fn>
  Task<std::invoke_result_t<Fn, ControlCore&>> run(Fn command);

  // From any thread; no answer. Refused (false) where too many wait: the link sends its set again.
  bool post(std::function<void(ControlCore&)> command);

  // Notified when events were committed.
  Notifier& events_changed() { return events_changed_; }

 private:
  class Job {
   public:
    virtual ~Job() = default;
    virtual void execute(ControlCore& core) = 0;  // on the core's thread
    virtual void complete() = 0;                  // on the loop's thread, after the commit
    virtual bool has_answer() const { return true; }
  };
  template <class Fn, class Handler>
  class CommandJob;
  class PostedJob;

  bool push(std::unique_ptr<Job> job);
  bool enter();  // whether one more may wait
  void thread_main();
  std::vector<std::unique_ptr<Job>> wait_for_jobs(std::chrono::steady_clock::time_point until);
  void finish_batch(std::vector<std::unique_ptr<Job>> jobs);

  std::unique_ptr<ControlCore> core_;
  Executor loop_;
  Options options_;
  Notifier events_changed_;
  std::int64_t seen_seq_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Job>> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

template <class Fn, class Handler>
class CoreRunner::CommandJob final : public Job {
 public:
  using Answer = std::invoke_result_t<Fn, ControlCore&>;
  CommandJob(Fn command, Handler handler)
      : command_(std::move(command)), handler_(std::move(handler)) {}
  void execute(ControlCore& core) override { answer_.emplace(command_(core)); }
  void complete() override {
    Handler handler(std::move(handler_));
    handler(std::move(*answer_));
  }

 private:
  Fn command_;
  Handler handler_;
  std::optional<Answer> answer_;
};

template <class Fn>
Task<std::invoke_result_t<Fn, ControlCore&>> CoreRunner::run(Fn command) {
  using Answer = std::invoke_result_t<Fn, ControlCore&>;
  if (!enter())
    co_return Error(ErrorKind::kExhausted, "busy", "the server has too much to do",
                    "try again in a few seconds");
  auto initiate = [this](auto handler, Fn queued) {
    using Handler = std::decay_t<decltype(handler)>;
    push(std::make_unique<CommandJob<Fn, Handler>>(std::move(queued), std::move(handler)));
  };
  co_return co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&,
                                                 void(Answer)>(
      std::move(initiate), boost::asio::use_awaitable, std::move(command));
}

}  // namespace autodl
