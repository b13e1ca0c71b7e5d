// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Events of an instance or of the whole account: a page, or a stream (SSE) that goes on.
#include <tuple>

#include "control/api/api.hpp"
#include "control/api/query_values.hpp"
#include "control/api/to_api.hpp"
#include "http/sse.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

constexpr Millis kHeartbeatEvery{15'000};
constexpr std::size_t kStreamPage = 200;

struct EventsWish {
  std::string key;  // of an instance; empty: the account's
  std::int64_t after = 0;
  std::int64_t limit = 0;
};

Result<EventsWish> read_wish(const http::Request& request) {
  ADL_TRY(query, http::Query::parse(request.query));
  ADL_TRY_STATUS(query.only({"after", "limit", "cursor"}));
  EventsWish wish;
  const auto id = request.params.find("id");
  if (id != request.params.end()) wish.key = id->second;
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const bool by_cursor = query.get("cursor").has_value();
  ADL_TRY(after, query_number(query, by_cursor ? "cursor" : "after", 0, 0, kMax));
  ADL_TRY(limit, query_number(query, "limit", 50, 1, 200));
  wish.after = after;
  wish.limit = limit;
  const auto last = request.headers.get("Last-Event-ID");
  if (!last.empty()) {
    const auto number = parse_number(last);
    if (!number || *number < 0)
      return Error(ErrorKind::kInvalid, "bad_parameter", "Last-Event-ID must be an event's seq");
    wish.after = *number;
  }
  return wish;
}

Task<Result<EventPage>> read_page(Api* api, AccountId account, EventsWish wish, std::size_t limit) {
  auto command = [account = std::move(account), wish = std::move(wish), limit](ControlCore& core) {
    return core.events(account, wish.key, wish.after, limit);
  };
  co_return co_await api->runner.run(std::move(command));
}

Task<void> stream_events(Api* api, http::Exchange& exchange, AccountId account, EventsWish wish) {
  Notifier& changed = api->runner.events_changed();
  bool begun = false;
  while (!api->stopping()) {
    const auto seen = changed.version();
    auto page = co_await read_page(api, account, wish, kStreamPage);
    if (!page.ok()) {
      co_await api->fail(exchange, page.error());
      co_return;
    }
    std::string text;
    if (!begun) {
      http::Headers headers{{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}};
      const auto sent = co_await exchange.begin_stream(200, std::move(headers));
      if (!sent.ok()) co_return;
      begun = true;
      text = std::string(http::kSseHeartbeat);  // so that the client sees the stream open
    }
    for (const auto& event : page->items) {
      text += http::format_sse(std::to_string(event.seq), event.type, api::to_json(to_api(event)));
      wish.after = event.seq;
    }
    const auto sent = co_await exchange.write_stream(std::move(text));
    if (!sent.ok()) co_return;
    if (page->items.size() >= kStreamPage) continue;
    const bool news = co_await changed.wait(seen, kHeartbeatEvery);
    if (news) continue;
    const auto alive = co_await exchange.write_stream(std::string(http::kSseHeartbeat));
    if (!alive.ok()) co_return;
  }
  if (begun) std::ignore = co_await exchange.end_stream();
}

Task<void> events(Api* api, http::Exchange& exchange) {
  const auto caller = co_await api->signed_in(exchange, BodySigning::kWhole);
  if (!caller) co_return;
  auto wish = read_wish(exchange.request());
  if (!wish.ok()) {
    co_await api->fail(exchange, wish.error());
    co_return;
  }
  if (http::has_token(exchange.request().headers.get("Accept"), "text/event-stream")) {
    co_await stream_events(api, exchange, caller->account, std::move(*wish));
    co_return;
  }
  const auto limit = static_cast<std::size_t>(wish->limit);
  auto page = co_await read_page(api, caller->account, std::move(*wish), limit);
  if (!page.ok()) {
    co_await api->fail(exchange, page.error());
    co_return;
  }
  std::optional<std::string> next;
  if (page->next) next = std::to_string(*page->next);
  auto body = api::page_json(all_to_api(page->items), next);
  std::ignore = co_await exchange.send(json_response(200, std::move(body)));
}

}  // namespace

void add_event_routes(http::Router& router, Api& api) {
  const auto about = [](const char* id, const char* title) {
    return About(id, "events", title)
        .says(
            "With `Accept: text/event-stream` a stream that goes on: `id` is the event's seq, "
            "`event` its type, `data` an Event. Go on after a break with `Last-Event-ID`.")
        .query("after", number_schema(0, std::numeric_limits<std::int64_t>::max(), 0),
               "only events with a higher seq")
        .paged()
        .header("Last-Event-ID", number_schema(0, std::numeric_limits<std::int64_t>::max(), 0),
                "the seq seen last; goes before `after`")
        .answers_page<api::Event>("A page of events, or a stream of them")
        .streams()
        .refuses({422});
  };
  add_handler(
      router, api, "GET", "/api/v1/instances/{id}/events", events,
      about("listInstanceEvents", "What happened to an instance, from the oldest").refuses({404}));
  add_handler(router, api, "GET", "/api/v1/events", events,
              about("listEvents", "What happened in the account, from the oldest"));
}

}  // namespace autodl
