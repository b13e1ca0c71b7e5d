// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/session.hpp"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <tuple>

#include "base/log.hpp"
#include "http/problem.hpp"
#include "http/url.hpp"

namespace autodl::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;

constexpr std::size_t kIdleBufferBytes = 8 * 1024;   // most requests fit; thousands may be idle
constexpr std::size_t kBufferBytes = 64 * 1024;      // for long headers and bodies
constexpr std::size_t kWriteBytes = 256 * 1024;      // of an answer, for which a deadline holds
constexpr std::size_t kLingerBytesMax = 256 * 1024;  // read and dropped before an early close
constexpr Millis kLingerLimit{2'000};

bool has_no_body(int status) {
  return status / 100 == 1 || status == 204 || status == 304;
}

int status_of_parse_error(const boost::system::error_code& error) {
  if (error == beast_http::error::header_limit) return 431;
  if (error == beast_http::error::bad_version) return 505;
  return 400;
}

}  // namespace

Session::Session(std::shared_ptr<Server::Shared> shared, std::unique_ptr<Conn> conn)
    : shared_(std::move(shared)),
      place_(shared_->sessions.insert(shared_->sessions.end(), this)),
      conn_(std::move(conn)),
      on_chunk_([this](std::uint64_t size, std::string_view, boost::system::error_code& error) {
        if (body_bytes_ > body_bytes_max_ || size > body_bytes_max_ - body_bytes_)
          error = beast_http::error::body_limit;
      }),
      in_(kIdleBufferBytes) {}

Session::~Session() {
  shared_->sessions.erase(place_);
  shared_->session_ended.notify();
}

Task<void> Session::run() {
  while (!shared_->stopping) {
    const auto next = co_await one_request();
    if (next == Next::kEnd) break;
  }
  conn_->close();
}

std::size_t Session::buffer_bytes_max() const {
  return std::max(kBufferBytes, shared_->options.header_bytes_max + 4096);
}

Task<Result<std::size_t>> Session::fill() {
  if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
  if (in_end_ == in_.size() && in_begin_ > 0) {
    std::copy(in_.begin() + static_cast<std::ptrdiff_t>(in_begin_), in_.end(), in_.begin());
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  if (in_end_ == in_.size() && in_.size() < buffer_bytes_max()) in_.resize(buffer_bytes_max());
  if (in_end_ == in_.size())
    co_return Error(ErrorKind::kInvalid, "bad_request", "a line of the request is too long");
  const std::span<char> room(in_.data() + in_end_, in_.size() - in_end_);
  const auto got = co_await conn_->read_some(room);
  if (got.ok()) in_end_ += *got;
  co_return got;
}

Task<Session::Next> Session::one_request() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_->options.header_bytes_max));
  parser_->body_limit(boost::none);  // checked per route: set later it would be ignored
  parser_->on_chunk_header(on_chunk_);
  request_ = Request{};
  body_bytes_ = 0;
  status_ = 0;
  sent_bytes_ = 0;
  streaming_ = chunked_ = whole_ = upgraded_ = keep_alive_ = expects_continue_ = false;
  actor_.clear();

  const bool have_header = co_await read_header();
  if (!have_header) co_return Next::kEnd;
  take_request();

  const auto form = check_request();
  auto match = shared_->router.find(request_.method, request_.path);
  if (!form.ok()) {
    co_await refuse(400, form.error());
  } else if (match.bad_encoding) {
    const Error error(ErrorKind::kInvalid, "bad_path", "the path has a wrong percent code");
    co_await refuse(400, error);
  } else if (match.route == nullptr && match.allowed.empty()) {
    const Error error(ErrorKind::kNotFound, "no_such_path",
                      fmt::format("there is nothing at {}", request_.path.substr(0, 200)));
    co_await refuse(404, error);
  } else if (match.route == nullptr) {
    const Error error(ErrorKind::kInvalid, "method_not_allowed",
                      fmt::format("{} is not possible here", request_.method),
                      "possible: " + match.allowed);
    co_await refuse(405, error);
  } else {
    request_.params = std::move(match.params);
    co_await call_handler(match.route);
  }
  conn_->expires_after(shared_->options.silence_limit);
  if (shared_->options.access_log) log_access();
  const bool go_on = keep_alive_ && whole_ && parser_->is_done() && !upgraded_;
  if (go_on) co_return Next::kAnotherRequest;
  if (whole_ && !parser_->is_done()) co_await linger();
  co_return Next::kEnd;
}

Task<bool> Session::read_header() {
  idle_ = true;
  if (in_begin_ == in_end_ && in_.size() > kIdleBufferBytes) {
    in_ = std::vector<char>(kIdleBufferBytes);
    in_begin_ = in_end_ = 0;
  }
  conn_->expires_after(shared_->options.silence_limit);
  bool deadline_set = false;
  while (true) {
    boost::system::error_code error;
    if (in_begin_ < in_end_) {
      idle_ = false;
      in_begin_ += parser_->put(asio::buffer(in_.data() + in_begin_, in_end_ - in_begin_), error);
      if (parser_->is_header_done()) break;
      if (error && error != beast_http::error::need_more) {
        const Error problem(ErrorKind::kInvalid, "bad_request",
                            "the request is not HTTP/1.1: " + error.message());
        began_ = std::chrono::steady_clock::now();
        co_await refuse(status_of_parse_error(error), problem);
        co_await linger();
        co_return false;
      }
      if (!deadline_set) conn_->expires_after(shared_->options.header_limit);
      deadline_set = true;
    }
    const auto got = co_await fill();
    if (got.ok() && *got > 0) continue;
    if (!got.ok() && got.error().code() == "timed_out" && !idle_) {
      const Error problem(ErrorKind::kInvalid, "request_timeout", "the request came too slowly");
      began_ = std::chrono::steady_clock::now();
      co_await refuse(408, problem);
    } else if (!got.ok() && got.error().kind() == ErrorKind::kInvalid) {
      co_await refuse(431, got.error());
    }
    co_return false;
  }
  conn_->expires_after(shared_->options.silence_limit);
  co_return true;
}

void Session::take_request() {
  const auto& message = parser_->get();
  began_ = std::chrono::steady_clock::now();
  request_.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const auto mark = std::min(target.find('?'), target.size());
  request_.path = std::string(target.substr(0, mark));
  request_.query = std::string(target.substr(std::min(target.size(), mark + 1)));
  for (const auto& field : message.base())
    request_.headers.add(std::string(field.name_string()), std::string(field.value()));
  request_.peer = conn_->peer();
  request_.request_id = shared_->next_request_id();
  keep_alive_ = parser_->keep_alive();
  expects_continue_ = equal_ignoring_case(request_.headers.get("Expect"), "100-continue");
}

Status Session::check_request() const {
  const bool old = parser_->get().version() < 11;
  if (!old && request_.headers.count("Host") != 1)
    return Error(ErrorKind::kInvalid, "bad_request", "the request must have one Host header");
  if (request_.path.empty() || request_.path.front() != '/')
    return Error(ErrorKind::kInvalid, "bad_request", "the request's target must be a path");
  return {};
}

Task<void> Session::refuse(int status, Error error) {
  if (request_.request_id.empty()) request_.request_id = shared_->next_request_id();
  auto response = problem_response(error, request_.request_id, status);
  if (status == 405) response.headers.add("Allow", error.remedy().substr(10));
  // Small bodies are read and dropped so that the connection can be kept; big ones are not waited
  // for. A request that could not be parsed ends the connection.
  if (!parser_->is_header_done()) keep_alive_ = false;
  if (!parser_->is_done()) keep_alive_ = false;
  conn_->expires_after(shared_->options.silence_limit);
  std::ignore = co_await send(std::move(response));
}

Task<void> Session::call_handler(const Route* route) {
  body_bytes_max_ = route->body_bytes_max;
  const auto length = parser_->content_length();
  if (length && *length > body_bytes_max_) {
    const Error error(ErrorKind::kInvalid, "body_too_long",
                      fmt::format("a body of {} bytes is over this call's maximum of {}", *length,
                                  body_bytes_max_));
    co_await refuse(413, error);
    co_return;
  }
  if (route->body == BodyMode::kWhole) {
    const bool read = co_await read_whole_body();
    if (!read) co_return;
  }
  try {
    co_await route->handler(*this);
  } catch (const std::exception& exception) {
    log_error("http", "request {} {} {}: {}", request_.request_id, request_.method, request_.path,
              exception.what());
    keep_alive_ = false;
  }
  if (!answered()) {
    const Error error(ErrorKind::kInternal, "no_answer", "the handler gave no answer");
    co_await refuse(500, error);
  } else if (!whole_ && !upgraded_) {
    keep_alive_ = false;  // a stream that was broken off: the client must see that
  }
}

Task<bool> Session::read_whole_body() {
  if (const auto length = parser_->content_length())
    request_.body.reserve(static_cast<std::size_t>(*length));
  std::vector<char> piece(parser_->is_done() ? 0 : 16 * 1024);
  while (!parser_->is_done()) {
    const auto got = co_await read_body(piece);
    if (!got.ok()) {
      const bool slow = got.error().code() == "timed_out";
      const bool long_body = got.error().code() == "body_too_long";
      if (slow || got.error().kind() == ErrorKind::kInvalid)
        co_await refuse(slow ? 408 : long_body ? 413 : 400, got.error());
      co_return false;
    }
    request_.body.append(piece.data(), *got);
  }
  co_return true;
}

Task<Result<std::size_t>> Session::read_body(std::span<char> buffer) {
  if (expects_continue_ && in_begin_ == in_end_ && !parser_->is_done()) {
    const auto sent = co_await conn_->write_all("HTTP/1.1 100 Continue\r\n\r\n");
    if (!sent.ok()) co_return sent.error();
  }
  expects_continue_ = false;
  if (!parser_->is_done() && in_.size() < kBufferBytes) in_.resize(buffer_bytes_max());
  while (!parser_->is_done()) {
    auto& body = parser_->get().body();
    body.data = buffer.data();
    body.size = buffer.size();
    boost::system::error_code error;
    const auto used =
        parser_->put(asio::buffer(in_.data() + in_begin_, in_end_ - in_begin_), error);
    in_begin_ += used;
    const std::size_t produced = buffer.size() - body.size;
    body_bytes_ += produced;
    if (body_bytes_ > body_bytes_max_ || error == beast_http::error::body_limit)
      co_return Error(
          ErrorKind::kInvalid, "body_too_long",
          fmt::format("the body is over this call's maximum of {} bytes", body_bytes_max_));
    if (error && error != beast_http::error::need_more && error != beast_http::error::need_buffer)
      co_return Error(ErrorKind::kInvalid, "bad_body",
                      "the request's body can't be read: " + error.message());
    if (produced > 0) co_return produced;
    if (parser_->is_done()) break;
    if (used > 0 && in_begin_ < in_end_ && error != beast_http::error::need_more) continue;
    conn_->expires_after(shared_->options.silence_limit);
    const auto got = co_await fill();
    if (!got.ok()) co_return got.error();
    if (*got == 0)
      co_return Error(ErrorKind::kUnavailable, "reset", "the client went away in its body");
  }
  co_return std::size_t{0};
}

void Session::append_head(std::string& head, int status, const Headers& headers,
                          std::optional<std::size_t> length) {
  fmt::format_to(std::back_inserter(head), "HTTP/1.1 {} {}\r\nDate: {}\r\n", status,
                 reason_phrase(status), shared_->date_now());
  for (const auto& [name, value] : headers.entries())
    head.append(name).append(": ").append(value).append("\r\n");
  if (length) fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n", *length);
  head.append("X-Request-Id: ").append(request_.request_id).append("\r\n");
  if (!keep_alive_ && status != 101) head += "Connection: close\r\n";
  if (keep_alive_ && parser_->is_header_done() && parser_->get().version() < 11)
    head += "Connection: keep-alive\r\n";
}

Task<Status> Session::send(Response response) {
  ADL_ASSERT(!answered());
  status_ = response.status;
  // A body that was not read to its end would be taken for the next request.
  if (!parser_->is_done() || shared_->stopping) keep_alive_ = false;
  std::string head;
  head.reserve(512);
  const auto length = has_no_body(response.status)
                          ? std::nullopt
                          : std::optional<std::size_t>(response.body.size());
  append_head(head, response.status, response.headers, length);
  head += "\r\n";
  std::string_view body = response.body;
  if (request_.method == "HEAD" || has_no_body(response.status)) body = {};
  sent_bytes_ = body.size();
  conn_->expires_after(shared_->options.silence_limit);
  auto sent = co_await conn_->write_all(head, body.substr(0, kWriteBytes));
  // A long body goes on in pieces: the deadline is for each, so that a slow line may take its time.
  for (std::size_t at = kWriteBytes; sent.ok() && at < body.size(); at += kWriteBytes) {
    conn_->expires_after(shared_->options.silence_limit);
    sent = co_await conn_->write_all(body.substr(at, kWriteBytes));
  }
  whole_ = sent.ok();
  co_return sent;
}

Task<Status> Session::begin_stream(int status, Headers headers) {
  ADL_ASSERT(!answered());
  status_ = status;
  streaming_ = true;
  chunked_ = parser_->get().version() >= 11;
  if (!chunked_ || !parser_->is_done() || shared_->stopping) keep_alive_ = false;
  if (chunked_) headers.add("Transfer-Encoding", "chunked");
  std::string head;
  append_head(head, status, headers, std::nullopt);
  head += "\r\n";
  conn_->expires_after(shared_->options.silence_limit);
  const auto sent = co_await conn_->write_all(head);
  co_return sent;
}

Task<Status> Session::write_stream(std::string bytes) {
  ADL_ASSERT(streaming_ && !whole_);
  if (bytes.empty() || request_.method == "HEAD") co_return Status{};
  conn_->expires_after(shared_->options.silence_limit);
  sent_bytes_ += bytes.size();
  if (chunked_) {
    const std::string size_line = fmt::format("{:x}\r\n", bytes.size());
    bytes += "\r\n";
    const auto sent = co_await conn_->write_all(size_line, bytes);
    co_return sent;
  }
  const auto sent = co_await conn_->write_all(bytes);
  co_return sent;
}

Task<Status> Session::end_stream() {
  ADL_ASSERT(streaming_ && !whole_);
  Status sent;
  if (chunked_ && request_.method != "HEAD") sent = co_await conn_->write_all("0\r\n\r\n");
  whole_ = sent.ok();
  co_return sent;
}

Task<Result<UpgradedConn>> Session::upgrade(std::string protocol) {
  ADL_ASSERT(!answered());
  const auto& headers = request_.headers;
  if (!has_token(headers.get("Connection"), "upgrade") ||
      !has_token(headers.get("Upgrade"), protocol) || !parser_->is_done())
    co_return Error(
        ErrorKind::kInvalid, "upgrade_required",
        fmt::format("this call needs 'Connection: Upgrade' and 'Upgrade: {}'", protocol));
  status_ = 101;
  upgraded_ = true;
  std::string head;
  Headers answer{{"Connection", "Upgrade"}, {"Upgrade", std::move(protocol)}};
  append_head(head, 101, answer, std::nullopt);
  head += "\r\n";
  const auto sent = co_await conn_->write_all(head);
  if (!sent.ok()) co_return sent.error();
  conn_->expires_never();
  UpgradedConn upgraded;
  upgraded.conn = conn_.get();
  upgraded.leftover.assign(in_.data() + in_begin_, in_end_ - in_begin_);
  co_return upgraded;
}

Task<void> Session::linger() {
  // Closing with unread bytes makes the kernel send a reset, which can destroy the answer on its
  // way: end our side, then read what still comes, within bounds.
  conn_->shutdown_write();
  conn_->expires_after(kLingerLimit);
  std::size_t dropped = 0;
  while (dropped < kLingerBytesMax) {
    const auto got = co_await conn_->read_some(in_);
    if (!got.ok() || *got == 0) break;
    dropped += *got;
  }
}

void Session::log_access() const {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - began_);
  log_info("access", "{} {} {} {} {} B {:.1f} ms {} {}", request_.peer, request_.method,
           request_.path, status_, sent_bytes_, static_cast<double>(took.count()) / 1000.0,
           request_.request_id, actor_.empty() ? "-" : actor_);
}

}  // namespace autodl::http
