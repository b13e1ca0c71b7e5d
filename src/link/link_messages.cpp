// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "link/link_messages.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <limits>

#include "wire/json_fields.hpp"

namespace autodl {

namespace json = boost::json;

std::string to_json(const LinkHello& hello) {
  return json::serialize(json::object{{"version", hello.version},
                                      {"role", hello.role},
                                      {"cluster", hello.cluster},
                                      {"epoch", static_cast<std::int64_t>(hello.epoch)},
                                      {"node", hello.node.str()},
                                      {"boot_id", hello.boot_id}});
}

std::string to_json(const LinkEvent& event) {
  return json::serialize(json::object{{"instance", event.instance.str()},
                                      {"type", event.type},
                                      {"message", readable_text(event.message, 2'000)}});
}

std::string refusal_to_json(const Error& error) {
  return json::serialize(json::object{{"code", error.code()},
                                      {"message", readable_text(error.message(), 4'096)},
                                      {"remedy", readable_text(error.remedy(), 4'096)}});
}

Result<LinkHello> parse_link_hello(std::string_view text) {
  JsonFields fields(text, "hello");
  LinkHello hello;
  hello.version = fields.integer("version", 0, 1'000'000);
  hello.role = fields.text("role", 32);
  hello.cluster = fields.text("cluster", 64);
  hello.epoch = static_cast<std::uint64_t>(
      fields.integer("epoch", 0, std::numeric_limits<std::int64_t>::max()));
  hello.node = NodeId(fields.text("node", 64));
  hello.boot_id = fields.text("boot_id", 64);
  ADL_TRY_STATUS(fields.finish());
  if (hello.version < kLinkVersion - 1 || hello.version > kLinkVersion + 1)
    return Error(ErrorKind::kUnsupported, "link_version",
                 fmt::format("the {} speaks link version {}, this program {}", hello.role,
                             hello.version, kLinkVersion),
                 "upgrade the older of the two");
  return hello;
}

Result<LinkEvent> parse_link_event(std::string_view text) {
  JsonFields fields(text, "event");
  LinkEvent event;
  event.instance = InstanceId(fields.text("instance", 26));
  event.type = fields.text("type", 32);
  event.message = fields.text("message", 4'096);
  ADL_TRY_STATUS(fields.finish());
  if (!is_ulid(event.instance.str()))
    return Error(ErrorKind::kInvalid, "bad_event", "event: instance is no id");
  return event;
}

Error parse_refusal(std::string_view text) {
  JsonFields fields(text, "refusal");
  const auto code = fields.text("code", 64);
  const auto message = fields.text("message", 4'096);
  const auto remedy = fields.text("remedy", 4'096);
  if (const auto fault = fields.finish(); !fault.ok()) return fault.error();
  return Error(ErrorKind::kDenied, code, message, remedy);
}

}  // namespace autodl
