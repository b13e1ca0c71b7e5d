// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Logs of a run: a page by offset, or a stream (SSE) that follows it to its end. Offsets are
// positions in conmon's file; the file is read through a descriptor that the node gave.
#include <unistd.h>

#include <tuple>

#include "control/api/api.hpp"
#include "control/api/container_log.hpp"
#include "control/api/file_watch.hpp"
#include "control/api/query_values.hpp"
#include "http/sse.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

constexpr Millis kOpenLimit{15'000};
constexpr Millis kLookAgain{200};  // at the run's state, where events came meanwhile
constexpr Millis kHeartbeatEvery{15'000};
constexpr std::int64_t kChunkBytes = 128 * 1024;
constexpr std::int64_t kLimitBytesMax = 4 << 20;

struct LogWish {
  std::string key;
  std::string run;  // empty: the current or last one
  std::int64_t offset = 0;
  std::int64_t limit_bytes = kChunkBytes;
  bool follow = false;
};

Result<LogWish> read_wish(const http::Request& request) {
  ADL_TRY(query, http::Query::parse(request.query));
  ADL_TRY_STATUS(query.only({"run", "offset", "limit_bytes"}));
  LogWish wish;
  wish.key = request.param("id");
  wish.run = query.get("run").value_or("");
  wish.follow = http::has_token(request.headers.get("Accept"), "text/event-stream");
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max() / 2;
  ADL_TRY(offset, query_number(query, "offset", 0, 0, kMax));
  ADL_TRY(limit, query_number(query, "limit_bytes", 1 << 20, 1'024, kLimitBytesMax));
  wish.offset = offset;
  wish.limit_bytes = limit;
  const auto last = request.headers.get("Last-Event-ID");
  if (!last.empty()) {
    const auto number = parse_number(last);
    if (!number || *number < 0 || *number > kMax)
      return Error(ErrorKind::kInvalid, "bad_parameter", "Last-Event-ID must be an offset");
    wish.offset = *number;
  }
  return wish;
}

Result<RunView> find_run(ControlCore& core, const AccountId& account, const std::string& key,
                         const std::string& run) {
  ADL_TRY(runs, core.runs(account, key));
  const RunView* found = nullptr;
  for (const auto& one : runs)
    if (run.empty() ? found == nullptr || one.row.attempt > found->row.attempt ||
                          one.row.requested_at > found->row.requested_at
                    : one.row.id.str() == run)
      found = &one;
  if (found != nullptr) return *found;
  if (!run.empty())
    return Error(ErrorKind::kNotFound, "no_such_run", "the instance has no such run");
  return Error(ErrorKind::kNotFound, "never_started", "the instance was never started",
               "start it first");
}

Task<Result<RunView>> look_up(Api* api, AccountId account, std::string key, std::string run) {
  auto command = [account = std::move(account), key = std::move(key), run = std::move(run)](
                     ControlCore& core) { return find_run(core, account, key, run); };
  co_return co_await api->runner.run(std::move(command));
}

Task<Result<UniqueFd>> open_log(Api* api, const RunView* run) {
  StreamWish wish;
  wish.kind = "log";
  wish.instance = run->row.instance.str();
  wish.run = run->row.id.str();
  auto open = [streams = &api->streams, wish = std::move(wish)] {
    return streams->open(wish, kOpenLimit);
  };
  co_return co_await run_blocking(api->pool, std::move(open));
}

// Up to limit bytes at the offset; fewer at the file's end.
Task<Result<std::string>> read_at(Api* api, int fd, std::int64_t offset, std::int64_t limit) {
  auto read = [fd, offset, limit]() -> Result<std::string> {
    std::string bytes(static_cast<std::size_t>(limit), '\0');
    std::size_t got = 0;
    while (got < bytes.size()) {
      const auto more = ::pread(fd, bytes.data() + got, bytes.size() - got,
                                offset + static_cast<std::int64_t>(got));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) return errno_error("read a run's log", errno);
      if (more == 0) break;
      got += static_cast<std::size_t>(more);
    }
    bytes.resize(got);
    return bytes;
  };
  co_return co_await run_blocking(api->pool, std::move(read));
}

bool has_ended(const RunView& run) {
  return run.row.state == RunState::kEnded;
}
bool has_no_log_yet(const Error& error) {
  return error.kind() == ErrorKind::kNotFound;
}

Task<void> send_page(Api* api, http::Exchange& exchange, LogWish wish, RunView run) {
  api::LogPage page;
  page.run = run.row.id.str();
  page.offset = page.next = wish.offset;
  const auto fd = co_await open_log(api, &run);
  if (!fd.ok() && !has_no_log_yet(fd.error())) {
    co_await api->fail(exchange, fd.error());
    co_return;
  }
  page.end = has_ended(run) && !fd.ok();
  if (fd.ok()) {
    auto bytes = co_await read_at(api, fd->get(), wish.offset, wish.limit_bytes);
    if (!bytes.ok()) {
      co_await api->fail(exchange, bytes.error());
      co_return;
    }
    const bool at_file_end = static_cast<std::int64_t>(bytes->size()) < wish.limit_bytes;
    const bool at_end = at_file_end && has_ended(run);
    auto chunk = parse_container_log(*bytes, wish.offset, at_end);
    page.entries = std::move(chunk.entries);
    page.next = wish.offset + static_cast<std::int64_t>(chunk.consumed);
    page.end = at_end;
  }
  std::ignore = co_await exchange.send(json_response(200, api::to_json(page)));
}

std::string end_event(const RunView& run, std::int64_t offset) {
  api::LogEnd end;
  if (run.row.outcome) end.outcome = std::string(to_string(*run.row.outcome));
  end.exit_code = run.row.exit_code;
  return http::format_sse(std::to_string(offset), "end", api::to_json(end));
}

// Sends what is there from the offset on. Whether the client still listens.
Task<bool> send_rest(Api* api, http::Exchange& exchange, int fd, std::int64_t* offset,
                     bool run_ended) {
  while (true) {
    auto bytes = co_await read_at(api, fd, *offset, kChunkBytes);
    if (!bytes.ok()) co_return false;
    const bool at_end = run_ended && static_cast<std::int64_t>(bytes->size()) < kChunkBytes;
    const auto chunk = parse_container_log(*bytes, *offset, at_end);
    std::string text;
    for (std::size_t i = 0; i < chunk.entries.size(); ++i)
      text += http::format_sse(std::to_string(chunk.next_offsets[i]), "log",
                               api::to_json(chunk.entries[i]));
    *offset += static_cast<std::int64_t>(chunk.consumed);
    const auto sent = co_await exchange.write_stream(std::move(text));
    if (!sent.ok()) co_return false;
    if (chunk.consumed == 0 || static_cast<std::int64_t>(bytes->size()) < kChunkBytes)
      co_return true;
  }
}

// The loop of a follower: 1. is the run over? 2. send what the file has 3. wait for more. The
// order matters: what was written before the end was seen is sent before the end is told.
Task<void> follow(Api* api, http::Exchange& exchange, AccountId account, LogWish wish,
                  RunView run) {
  http::Headers headers{{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}};
  const auto begun = co_await exchange.begin_stream(200, std::move(headers));
  if (!begun.ok()) co_return;
  const auto hello = co_await exchange.write_stream(std::string(http::kSseHeartbeat));
  if (!hello.ok()) co_return;

  const auto executor = co_await boost::asio::this_coro::executor;
  Notifier& changed = api->runner.events_changed();
  UniqueFd fd;
  std::optional<FileWatch> watch;
  auto last_sign = std::chrono::steady_clock::now();
  std::int64_t offset = wish.offset;
  std::optional<std::uint64_t> seen;  // the events that the run's state was asked after
  while (!api->stopping()) {
    if (seen != changed.version()) {
      seen = changed.version();
      auto now_run = co_await look_up(api, account, wish.key, run.row.id.str());
      if (!now_run.ok()) break;
      run = std::move(*now_run);
    }
    const bool ended = has_ended(run);
    if (!fd.valid()) {
      auto opened = co_await open_log(api, &run);
      if (opened.ok()) {
        fd = std::move(*opened);
        watch.emplace(executor, fd.get());
      } else if (!has_no_log_yet(opened.error()) && ended) {
        break;  // the client comes back with its offset
      }
    }
    const auto before = offset;
    if (fd.valid()) {
      const bool listening = co_await send_rest(api, exchange, fd.get(), &offset, ended);
      if (!listening) co_return;
    }
    if (ended) {
      std::ignore = co_await exchange.write_stream(end_event(run, offset));
      break;
    }
    const auto now = std::chrono::steady_clock::now();
    if (offset != before) last_sign = now;
    if (now - last_sign > kHeartbeatEvery) {
      last_sign = now;
      const auto alive = co_await exchange.write_stream(std::string(http::kSseHeartbeat));
      if (!alive.ok()) co_return;
    }
    if (watch)
      co_await watch->wait(kLookAgain);
    else
      std::ignore = co_await changed.wait(*seen, kLookAgain);
  }
  std::ignore = co_await exchange.end_stream();
}

Task<void> logs(Api* api, http::Exchange& exchange) {
  const auto caller = co_await api->signed_in(exchange, BodySigning::kWhole);
  if (!caller) co_return;
  auto wish = read_wish(exchange.request());
  if (!wish.ok()) {
    co_await api->fail(exchange, wish.error());
    co_return;
  }
  auto run = co_await look_up(api, caller->account, wish->key, wish->run);
  if (!run.ok()) {
    co_await api->fail(exchange, run.error());
    co_return;
  }
  if (wish->follow)
    co_await follow(api, exchange, caller->account, std::move(*wish), std::move(*run));
  else
    co_await send_page(api, exchange, std::move(*wish), std::move(*run));
}

}  // namespace

void add_log_routes(http::Router& router, Api& api) {
  constexpr auto kOffsetMax = std::numeric_limits<std::int64_t>::max() / 2;
  add_handler(router, api, "GET", "/api/v1/instances/{id}/logs", logs,
              About("readLogs", "logs", "What a run's command wrote, from an offset on")
                  .says("With `Accept: text/event-stream` a stream that follows the run to its "
                        "end: `event: log` with a LogEntry, then `event: end` with a LogEnd; `id` "
                        "is the offset behind. Go on after a break with `Last-Event-ID`.")
                  .query("run", text_schema(), "which run; none: the current or last one")
                  .query("offset", number_schema(0, kOffsetMax, 0), "`next` of the page before")
                  .query("limit_bytes", number_schema(1'024, kLimitBytesMax, 1 << 20),
                         "how much of the log to read")
                  .header("Last-Event-ID", number_schema(0, kOffsetMax, 0),
                          "the offset seen last; goes before `offset`")
                  .answers<api::LogPage>(200, "A page of the log, or a stream of it")
                  .streams()
                  .refuses({404, 422}));
}

}  // namespace autodl
