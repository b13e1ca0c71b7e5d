// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The link's small messages and the requests for streams. What a node writes of others' words (an
// event, a refusal) is read by control whatever these words are.
#include "link/link_messages.hpp"

#include <string>

#include "fuzz.hpp"
#include "link/stream_messages.hpp"
#include "wire/json_fields.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autodl;
  const auto text = fuzz::text_of(data, size);
  const auto print = [](const auto& message) { return to_json(message); };
  fuzz::round_trip(parse_link_hello, print, text, "hello");
  fuzz::round_trip(parse_stream_request, print, text, "stream request");
  if (const auto request = parse_stream_request(text); request.ok())
    fuzz::require(stream_request_id(text) == request.value().id, "a request's id");
  static_cast<void>(stream_request_id(text));
  if (const auto event = parse_link_event(text); event.ok()) {
    const auto again = parse_link_event(to_json(event.value()));
    fuzz::require(
        again.ok() && again.value().message == readable_text(event.value().message, 2'000),
        "an event that is passed on is an event");
  }
  if (const auto reply = parse_stream_reply(text); reply.ok()) {
    const auto again = parse_stream_reply(to_json(reply.value()));
    fuzz::require(again.ok() && again.value().id == reply.value().id &&
                      again.value().error.has_value() == reply.value().error.has_value(),
                  "a reply reads as the same");
    if (reply.value().error)
      fuzz::require(again.value().error->code() == reply.value().error->code() &&
                        again.value().error->kind() == reply.value().error->kind(),
                    "a reply's error reads as the same");
  }
  const Error refusal = parse_refusal(text);
  fuzz::require(
      parse_refusal(refusal_to_json(refusal)).message() == readable_text(refusal.message(), 4'096),
      "a refusal reads as the same");

  const LinkEvent event{InstanceId("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "progress", std::string(text)};
  fuzz::require(parse_link_event(to_json(event)).ok(), "an event of any words can be read");
  const Error error(ErrorKind::kDenied, "no", std::string(text), std::string(text));
  fuzz::require(parse_refusal(refusal_to_json(error)).code() == "no" &&
                    parse_stream_reply(to_json(StreamReply{1, error})).ok(),
                "a refusal of any words can be read");
  return 0;
}
