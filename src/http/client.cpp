// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <cerrno>
#include <optional>

#include "http/url.hpp"
#include "net/address.hpp"

namespace autodl::http {
namespace {

namespace beast_http = boost::beast::http;
using Parser = beast_http::response_parser<beast_http::buffer_body>;

Error lost(std::string_view action, int error) {
  return Error(ErrorKind::kUnavailable, "connection_lost", errno_error(action, error).message(),
               "check that the server runs, then try again");
}

// Waits for the socket; the limit counts from here.
Status wait_for(int fd, short events, Millis limit, std::string_view what) {
  pollfd poll_fd{fd, events, 0};
  while (true) {
    const int ready = ::poll(&poll_fd, 1, static_cast<int>(limit.count()));
    if (ready > 0) return {};
    if (ready == 0)
      return Error(ErrorKind::kUnavailable, "timed_out",
                   fmt::format("{}: nothing within {} ms", what, limit.count()));
    if (errno != EINTR) return lost(what, errno);
  }
}

Result<UniqueFd> connect_one(int family, const sockaddr* address, socklen_t length, Millis limit) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("make a socket", errno);
  if (::connect(fd.get(), address, length) != 0) {
    if (errno != EINPROGRESS) return lost("connect", errno);
    ADL_TRY_STATUS(wait_for(fd.get(), POLLOUT, limit, "connect"));
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) return lost("connect", failure);
  }
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

Error connect_failed(std::string_view where, std::string_view why) {
  return Error(ErrorKind::kUnavailable, "connect_failed",
               fmt::format("connect to {}: {}", where, why),
               "check the address and that the server runs");
}

}  // namespace

class Client::Impl {
 public:
  Impl(Url url, std::string unix_address, ClientOptions options)
      : url_(std::move(url)), unix_address_(std::move(unix_address)), options_(options) {}

  // on_bytes may be null: the body is kept.
  Result<Response> exchange(const ClientRequest& request, const OnBytes* on_bytes) {
    const bool repeatable = request.method == "GET" || request.method == "HEAD" ||
                            request.headers.has("Idempotency-Key");
    const bool kept = fd_.valid();
    ADL_TRY_STATUS(connect_if_needed());
    bool answered = false;
    auto result = attempt(request, on_bytes, &answered);
    if (result.ok() || answered || !kept || !repeatable) return result;
    fd_.reset();  // the server had closed the kept connection
    ADL_TRY_STATUS(connect_if_needed());
    return attempt(request, on_bytes, &answered);
  }

  Result<Upgraded> upgrade(const ClientRequest& request, std::string_view protocol,
                           Response* refused) {
    fd_.reset();
    ADL_TRY_STATUS(connect_if_needed());
    ClientRequest asked = request;
    asked.headers.set("Connection", "Upgrade");
    asked.headers.set("Upgrade", std::string(protocol));
    bool answered = false;
    upgraded_ = false;
    ADL_TRY(response, attempt(asked, nullptr, &answered));
    if (!upgraded_) {
      *refused = std::move(response);
      return Error(ErrorKind::kInvalid, "not_upgraded",
                   fmt::format("the server answered {}", refused->status));
    }
    ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) & ~O_NONBLOCK);
    return Upgraded{std::move(fd_), std::move(buffer_)};
  }

 private:
  Status connect_if_needed() {
    if (fd_.valid()) return {};
    buffer_.clear();
    if (!unix_address_.empty()) {
      ADL_TRY(address, parse_address(unix_address_));
      auto fd = connect_one(AF_UNIX, address.raw(), address.length, options_.connect_limit);
      if (!fd.ok()) return connect_failed(unix_address_, fd.error().message());
      fd_ = std::move(fd).value();
      return {};
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int failure =
        ::getaddrinfo(url_.host.c_str(), std::to_string(url_.port).c_str(), &hints, &found);
    const std::string where = fmt::format("{}:{}", url_.host, url_.port);
    if (failure != 0) return connect_failed(where, ::gai_strerror(failure));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
    std::string why = "no address";
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      auto fd = connect_one(one->ai_family, one->ai_addr, one->ai_addrlen, options_.connect_limit);
      if (fd.ok()) {
        fd_ = std::move(fd).value();
        return {};
      }
      why = fd.error().message();
    }
    return connect_failed(where, why);
  }

  std::string head_of(const ClientRequest& request) const {
    std::string head =
        fmt::format("{} {}{} HTTP/1.1\r\n", request.method, url_.path, request.target);
    const bool plain = url_.host.find(':') == std::string::npos;
    head += plain ? fmt::format("Host: {}:{}\r\n", url_.host, url_.port)
                  : fmt::format("Host: [{}]:{}\r\n", url_.host, url_.port);
    for (const auto& [name, value] : request.headers.entries())
      head += fmt::format("{}: {}\r\n", name, value);
    if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
      head += fmt::format("Content-Length: {}\r\n", request.body.size());
    return head + "\r\n";
  }

  Status write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        ADL_TRY_STATUS(wait_for(fd_.get(), POLLOUT, options_.silence_limit, "send the request"));
      } else if (errno != EINTR) {
        return lost("send the request", errno);
      }
    }
    return {};
  }

  // Appends to buffer_; 0 at the server's end.
  Result<std::size_t> read_more() {
    std::array<char, 65536> piece;
    while (true) {
      const auto got = ::recv(fd_.get(), piece.data(), piece.size(), 0);
      if (got >= 0) {
        buffer_.append(piece.data(), static_cast<std::size_t>(got));
        return static_cast<std::size_t>(got);
      }
      if (errno == EAGAIN) {
        ADL_TRY_STATUS(wait_for(fd_.get(), POLLIN, options_.silence_limit, "wait for the answer"));
      } else if (errno != EINTR) {
        return lost("read the answer", errno);
      }
    }
  }

  Result<Response> attempt(const ClientRequest& request, const OnBytes* on_bytes, bool* answered) {
    // An answer may come before the whole request is sent (413): then the send's error is not the
    // story, so it is remembered while the answer is looked for.
    Status sent = write_all(head_of(request));
    if (sent.ok()) sent = write_all(request.body);
    auto result = read_answer(request, on_bytes, answered);
    if (!result.ok()) fd_.reset();
    if (!result.ok() && !sent.ok() && !*answered) return sent.error();
    return result;
  }

  Result<Response> read_answer(const ClientRequest& request, const OnBytes* on_bytes,
                               bool* answered) {
    while (true) {
      Parser parser;
      parser.body_limit(boost::none);
      parser.header_limit(64 * 1024);
      parser.skip(request.method == "HEAD");
      ADL_TRY_STATUS(parse_header(parser, answered));
      const int status = static_cast<int>(parser.get().result_int());
      if (status >= 100 && status < 200 && status != 101) continue;
      Response response;
      response.status = status;
      for (const auto& field : parser.get().base())
        response.headers.add(std::string(field.name_string()), std::string(field.value()));
      upgraded_ = status == 101;
      if (upgraded_) return response;
      const bool hand_over = on_bytes != nullptr && status / 100 == 2;
      ADL_TRY_STATUS(read_body(parser, hand_over ? on_bytes : nullptr, response.body));
      if (!parser.is_done() || !parser.keep_alive()) fd_.reset();
      return response;
    }
  }

  Status parse_header(Parser& parser, bool* answered) {
    while (!parser.is_header_done()) {
      boost::system::error_code error;
      const auto used = parser.put(boost::asio::buffer(buffer_), error);
      buffer_.erase(0, used);
      if (error == beast_http::error::need_more) {
        ADL_TRY(got, read_more());
        if (got == 0)
          return Error(ErrorKind::kUnavailable, "connection_lost",
                       "the server closed the connection without an answer", "try again");
        *answered = true;
      } else if (error) {
        return Error(ErrorKind::kInvalid, "bad_answer",
                     "the server's answer is no HTTP: " + error.message());
      }
    }
    return {};
  }

  Status read_body(Parser& parser, const OnBytes* on_bytes, std::string& kept) {
    std::array<char, 65536> piece;
    while (!parser.is_done()) {
      auto& body = parser.get().body();
      body.data = piece.data();
      body.size = piece.size();
      boost::system::error_code error;
      const auto used = parser.put(boost::asio::buffer(buffer_), error);
      buffer_.erase(0, used);
      const std::string_view got(piece.data(), piece.size() - body.size);
      if (!got.empty() && on_bytes != nullptr) {
        if (!(*on_bytes)(got)) return {};
      } else {
        kept.append(got);
      }
      if (kept.size() > options_.body_bytes_max)
        return Error(ErrorKind::kInvalid, "bad_answer", "the server's answer is too long");
      if (error == beast_http::error::need_more || (!error && used == 0 && !parser.is_done())) {
        ADL_TRY(more, read_more());
        if (more == 0) ADL_TRY_STATUS(end_of_stream(parser));
      } else if (error && error != beast_http::error::need_buffer) {
        return Error(ErrorKind::kInvalid, "bad_answer",
                     "the server's answer is no HTTP: " + error.message());
      }
    }
    return {};
  }

  static Status end_of_stream(Parser& parser) {
    boost::system::error_code error;
    parser.put_eof(error);
    if (!error) return {};
    return Error(ErrorKind::kUnavailable, "connection_lost",
                 "the server closed the connection in the middle of its answer", "try again");
  }

  Url url_;
  std::string unix_address_;
  ClientOptions options_;
  UniqueFd fd_;
  std::string buffer_;  // read and not yet parsed
  bool upgraded_ = false;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::make(std::string_view base_url, ClientOptions options) {
  if (base_url.substr(0, 5) == "unix:") {
    ADL_TRY_STATUS(
        Status(parse_address(base_url).ok() ? Status{} : Status(parse_address(base_url).error())));
    Url url;
    url.host = "localhost";
    return Client(std::make_unique<Impl>(std::move(url), std::string(base_url), options));
  }
  ADL_TRY(url, parse_url(base_url));
  if (url.scheme != "http")
    return Error(ErrorKind::kUnsupported, "no_tls",
                 fmt::format("'{}': https is not supported yet", base_url), "use http://");
  return Client(std::make_unique<Impl>(std::move(url), std::string(), options));
}

Result<Response> Client::send(const ClientRequest& request) {
  return impl_->exchange(request, nullptr);
}

Result<Response> Client::stream(const ClientRequest& request, const OnBytes& on_bytes) {
  return impl_->exchange(request, &on_bytes);
}

Result<Upgraded> Client::upgrade(const ClientRequest& request, std::string_view protocol,
                                 Response* refused) {
  return impl_->upgrade(request, protocol, refused);
}

}  // namespace autodl::http
