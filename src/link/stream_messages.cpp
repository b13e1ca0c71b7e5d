// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/stream_messages.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/json.hpp>
#include <limits>

#include "wire/json_fields.hpp"

namespace autodl {

namespace json = boost::json;

namespace {

constexpr std::array<std::string_view, 6> kKinds = {"ssh", "exec", "pty", "tcp", "file", "log"};
constexpr std::array kErrorKinds = {
    ErrorKind::kInvalid,     ErrorKind::kPayment,     ErrorKind::kNotFound,
    ErrorKind::kDenied,      ErrorKind::kConflict,    ErrorKind::kExhausted,
    ErrorKind::kUnavailable, ErrorKind::kUnsupported, ErrorKind::kInternal};

ErrorKind parse_error_kind(std::string_view text) {
  for (const auto kind : kErrorKinds)
    if (to_string(kind) == text) return kind;
  return ErrorKind::kInternal;
}

}  // namespace

std::string to_json(const StreamRequest& request) {
  json::object out{
      {"id", request.id}, {"kind", request.kind}, {"instance", request.instance.str()}};
  if (!request.run.empty()) out["run"] = request.run.str();
  if (!request.client.empty()) out["client"] = request.client;
  if (!request.local.empty()) out["local"] = request.local;
  if (request.port != 0) out["port"] = request.port;
  return json::serialize(out);
}

std::string to_json(const StreamReply& reply) {
  json::object out{{"id", reply.id}, {"ok", !reply.error.has_value()}};
  if (reply.error) {
    out["kind"] = to_string(reply.error->kind());
    out["code"] = reply.error->code();
    out["message"] = readable_text(reply.error->message(), 4'096);
    out["remedy"] = readable_text(reply.error->remedy(), 4'096);
  }
  return json::serialize(out);
}

Result<StreamRequest> parse_stream_request(std::string_view text) {
  JsonFields fields(text, "stream request");
  StreamRequest request;
  request.id = fields.integer("id", 0, std::numeric_limits<std::int64_t>::max());
  request.kind = fields.text("kind", 16);
  request.instance = InstanceId(fields.text("instance", 26));
  request.run = RunId(fields.optional_text("run", 26).value_or(""));
  request.client = fields.optional_text("client", 64).value_or("");
  request.local = fields.optional_text("local", 64).value_or("");
  request.port = fields.integer_or("port", 0, 0, 65'535);
  ADL_TRY_STATUS(fields.finish());
  const auto bad = [](const std::string& why) {
    return Error(ErrorKind::kInvalid, "bad_stream_request", "stream request: " + why);
  };
  if (std::find(kKinds.begin(), kKinds.end(), request.kind) == kKinds.end())
    return bad(fmt::format("unknown kind '{}'", request.kind));
  if (!is_ulid(request.instance.str())) return bad("instance is no id");
  if (!request.run.empty() && !is_ulid(request.run.str())) return bad("run is no id");
  if (request.kind == "log" && request.run.empty()) return bad("a log needs a run");
  if (request.kind == "tcp" && request.port == 0) return bad("tcp needs a port");
  return request;
}

Result<StreamReply> parse_stream_reply(std::string_view text) {
  JsonFields fields(text, "stream reply");
  StreamReply reply;
  reply.id = fields.integer("id", 0, std::numeric_limits<std::int64_t>::max());
  const bool ok = fields.flag_or("ok", false);
  const auto kind = fields.optional_text("kind", 32).value_or("");
  const auto code = fields.optional_text("code", 64).value_or("stream_refused");
  const auto message = fields.optional_text("message", 4'096).value_or("the node refused");
  const auto remedy = fields.optional_text("remedy", 4'096).value_or("");
  ADL_TRY_STATUS(fields.finish());
  if (!ok) reply.error = Error(parse_error_kind(kind), code, message, remedy);
  return reply;
}

std::int64_t stream_request_id(std::string_view text) {
  boost::system::error_code failed;
  const auto parsed = json::parse(text, failed);
  if (failed || !parsed.is_object()) return 0;
  const auto* id = parsed.get_object().if_contains("id");
  return id != nullptr && id->is_int64() ? id->get_int64() : 0;
}

}  // namespace autodl
