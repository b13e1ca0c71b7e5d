// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/api.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>

#include "wire/api_signature.hpp"

namespace autodl::cli {

namespace {

constexpr std::chrono::seconds kAwayLimit{60};
// A server that was never reached is more likely a wrong address than a restart.
constexpr std::chrono::seconds kFirstContactLimit{10};
constexpr std::chrono::seconds kLongOpen{5};

std::string text_of(const json::object& object, std::string_view key) {
  const auto* member = object.if_contains(key);
  return member != nullptr && member->is_string() ? std::string(member->get_string())
                                                  : std::string();
}

ErrorKind kind_of_status(int status) {
  switch (status) {
    case 401:
    case 403: return ErrorKind::kDenied;
    case 402: return ErrorKind::kPayment;
    case 404:
    case 410: return ErrorKind::kNotFound;
    case 409:
    case 412: return ErrorKind::kConflict;
    case 429:
    case 507: return ErrorKind::kExhausted;
    case 501: return ErrorKind::kUnsupported;
    case 502:
    case 503:
    case 504: return ErrorKind::kUnavailable;
    default: return status >= 500 ? ErrorKind::kInternal : ErrorKind::kInvalid;
  }
}

Result<json::value> parse_body(const http::Response& response) {
  if (response.status >= 400) return problem_error(response);
  if (response.body.empty()) return json::value();
  boost::system::error_code failed;
  auto value = json::parse(response.body, failed);
  if (failed)
    return Error(ErrorKind::kUnavailable, "bad_answer", "the server's answer is not JSON",
                 "is the endpoint an autodl server?");
  return value;
}

}  // namespace

Error problem_error(const http::Response& response) {
  boost::system::error_code failed;
  const auto body = json::parse(response.body, failed);
  if (failed || !body.is_object())
    return Error(kind_of_status(response.status), "http_error",
                 fmt::format("the server answered {}", response.status));
  const auto& problem = body.get_object();
  auto detail = text_of(problem, "detail");
  if (detail.empty()) detail = text_of(problem, "title");
  auto remedy = text_of(problem, "remedy");
  if (const auto* near = problem.if_contains("candidates");
      near != nullptr && near->is_array() && !near->get_array().empty() &&
      remedy.find("did you mean") == std::string::npos) {
    std::vector<std::string> names;
    for (const auto& name : near->get_array())
      if (name.is_string()) names.emplace_back(name.get_string());
    if (!remedy.empty()) remedy += "; ";
    remedy += fmt::format("did you mean: {}?", fmt::join(names, ", "));
  }
  if (const auto id = text_of(problem, "request_id"); !id.empty())
    detail += fmt::format(" (request {})", id);
  return Error(kind_of_status(response.status), text_of(problem, "code"), detail, remedy);
}

namespace {
bool is_local(std::string_view endpoint) {
  constexpr std::string_view kLocal[] = {"http://127.",
                                         "http://localhost:", "http://[::1]:", "unix:", "https://"};
  return std::any_of(std::begin(kLocal), std::end(kLocal),
                     [&](std::string_view start) { return endpoint.starts_with(start); });
}
}  // namespace

Result<Api> Api::make(Credentials credentials, const Clock& clock, Random& random) {
  const bool by_key = !credentials.access_key.empty() && !credentials.secret_key.empty();
  if (!by_key && !credentials.token.empty() && !is_local(credentials.endpoint))
    return Error(ErrorKind::kDenied, "token_in_clear",
                 fmt::format("a token would go to {} in clear", credentials.endpoint),
                 "use an access key: a signature does not give the key away");
  ADL_TRY(client, http::Client::make(credentials.endpoint));
  return Api(std::move(credentials), std::move(client), clock, random);
}

void Api::sign(http::ClientRequest& request, bool unsigned_payload, const std::string& key) {
  if (!key.empty()) request.headers.set("Idempotency-Key", key);
  if (credentials_.access_key.empty() || credentials_.secret_key.empty()) {
    if (!credentials_.token.empty())
      request.headers.set("Authorization", "Bearer " + credentials_.token);
    return;
  }
  const std::string hash =
      unsigned_payload ? std::string(kUnsignedPayload) : sha256_hex(request.body);
  const std::string_view target(request.target);
  const auto mark = std::min(target.find('?'), target.size());
  SignatureHeader header;
  header.access_key = credentials_.access_key;
  header.time_s = to_unix_ms(clock_->utc_now()) / 1000 + skew_s_;
  header.nonce = random_->hex(16);
  header.signature = hmac_sha256_hex(
      credentials_.secret_key, string_to_sign({request.method, target.substr(0, mark),
                                               target.substr(std::min(mark + 1, target.size())),
                                               hash, key, header.time_s, header.nonce}));
  request.headers.set("X-Autodl-Content-SHA256", hash);
  request.headers.set("Authorization", print_signature_header(header));
}

Result<http::Response> Api::send(http::ClientRequest request, bool unsigned_payload,
                                 const std::string& key) {
  const bool safe = request.method == "GET" || !key.empty();
  const auto begun = clock_->steady_now();
  bool skew_mended = false;
  bool told = false;
  for (auto pause = std::chrono::milliseconds{50};;) {
    sign(request, unsigned_payload, key);
    auto answer = client_.send(request);
    reached_ = reached_ || answer.ok();
    if (answer.ok() && answer->status == 401 && !skew_mended) {
      boost::system::error_code failed;
      const auto body = json::parse(answer->body, failed);
      if (!failed && body.is_object() && text_of(body.get_object(), "code") == "clock_skew") {
        if (const auto theirs = parse_rfc3339(text_of(body.get_object(), "server_time"))) {
          skew_s_ = (to_unix_ms(*theirs) - to_unix_ms(clock_->utc_now())) / 1000;
          skew_mended = true;
          continue;
        }
      }
    }
    const bool away =
        answer.ok() ? answer->status == 503 : answer.error().kind() == ErrorKind::kUnavailable;
    const auto waited = clock_->steady_now() - begun;
    if (!away || !safe || waited > (reached_ ? kAwayLimit : kFirstContactLimit)) return answer;
    if (waited > std::chrono::seconds{1} && !told) {
      fmt::print(stderr, "no answer from {} yet; trying on\n", credentials_.endpoint);
      told = true;
    }
    std::this_thread::sleep_for(pause);  // backoff: nothing announces a server's return
    pause = std::min(pause * 2, std::chrono::milliseconds{2000});
  }
}

Result<json::value> Api::get(const std::string& target) {
  http::ClientRequest request;
  request.target = target;
  ADL_TRY(answer, send(std::move(request), false, ""));
  return parse_body(answer);
}

Result<json::value> Api::post(const std::string& target, const json::value& body) {
  const auto text = json::serialize(body);
  http::ClientRequest request;
  request.method = "POST";
  request.target = target;
  request.body = text;
  request.headers.set("Content-Type", "application/json");
  ADL_TRY(answer, send(std::move(request), false, "cli-" + random_->hex(16)));
  return parse_body(answer);
}

Status Api::remove(const std::string& target) {
  http::ClientRequest request;
  request.method = "DELETE";
  request.target = target;
  ADL_TRY(answer, send(std::move(request), false, "cli-" + random_->hex(16)));
  if (answer.status >= 400) return problem_error(answer);
  return {};
}

Result<json::value> Api::put_part(const std::string& target, std::string_view bytes) {
  http::ClientRequest request;
  request.method = "PUT";
  request.target = target;
  request.body = bytes;
  request.headers.set("Content-Type", "application/octet-stream");
  request.headers.set("X-Autodl-Part-SHA256", sha256_hex(bytes));
  ADL_TRY(answer, send(std::move(request), true, "cli-" + random_->hex(16)));
  return parse_body(answer);
}

Result<Api::Content> Api::get_bytes(const std::string& target, const std::string& if_match) {
  http::ClientRequest request;
  request.target = target;
  if (!if_match.empty()) request.headers.set("If-Match", if_match);
  ADL_TRY(answer, send(std::move(request), false, ""));
  if (answer.status >= 400) return problem_error(answer);
  const auto hash = answer.headers.get("X-Autodl-Part-SHA256");
  if (hash != sha256_hex(answer.body))
    return Error(ErrorKind::kUnavailable, "hash_mismatch", "a part arrived damaged", "try again");
  return Content{std::move(answer.body), std::move(answer.headers)};
}

Status Api::events(const std::string& target,
                   const std::function<bool(const http::SseEvent&)>& on_event) {
  std::string last_id;
  auto end = clock_->steady_now() + kAwayLimit;
  for (;;) {
    http::ClientRequest request;
    request.target = target;
    request.headers.set("Accept", "text/event-stream");
    if (!last_id.empty()) request.headers.set("Last-Event-ID", last_id);
    sign(request, false, "");
    http::SseReader reader;
    bool done = false;
    bool news = false;
    const auto opened = clock_->steady_now();
    auto answer = client_.stream(request, [&](std::string_view bytes) {
      reader.put(bytes);
      for (;;) {
        auto event = reader.next();
        if (!event.ok()) return false;
        if (!event->has_value()) return true;
        news = true;
        last_id = (*event)->id;
        if (!on_event(**event)) {
          done = true;
          return false;
        }
      }
    });
    if (done) return {};
    if (answer.ok() && answer->status >= 400 && answer->status != 503)
      return problem_error(*answer);
    // A stream that was there until now begins a new absence; one that ends at once does not.
    const auto now = clock_->steady_now();
    if (news || now - opened > kLongOpen) end = now + kAwayLimit;
    if (now > end) {
      if (!answer.ok()) return answer.error();
      if (answer->status >= 400) return problem_error(*answer);
      return Error(ErrorKind::kUnavailable, "stream_ended", "the stream ends again and again");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
}

Result<http::Upgraded> Api::upgrade(const std::string& target, std::string_view protocol) {
  http::ClientRequest request;
  request.method = "POST";
  request.target = target;
  sign(request, false, "cli-" + random_->hex(16));
  http::Response refused;
  refused.status = 0;
  auto upgraded = client_.upgrade(request, protocol, &refused);
  if (!upgraded.ok() && refused.status >= 400) return problem_error(refused);
  return upgraded;
}

}  // namespace autodl::cli
