// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Every message of a file channel.
#include "wire/file_messages.hpp"

#include <string>

#include "fuzz.hpp"
#include "wire/json_fields.hpp"

namespace {

// Whether a path that is accepted could name something else than it says.
bool has_dots(std::string_view path) {
  const std::string whole = std::string(path) + "/";
  return whole.find("/../") != std::string::npos || whole.find("/./") != std::string::npos ||
         whole.find('\0') != std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autodl;
  const auto text = fuzz::text_of(data, size);
  const auto print = [](const auto& message) { return to_json(message); };
  fuzz::round_trip(parse_put_begin, print, text, "put begin");
  fuzz::round_trip(parse_put_part, print, text, "put part");
  fuzz::round_trip(parse_put_commit, print, text, "put commit");
  fuzz::round_trip(parse_put_abort, print, text, "put abort");
  fuzz::round_trip(parse_file_get, print, text, "get");
  fuzz::round_trip(parse_get_end, print, text, "get end");
  fuzz::round_trip(parse_file_list, print, text, "list");
  fuzz::round_trip(parse_file_stat, print, text, "stat");
  fuzz::round_trip(parse_file_entries, print, text, "entries");
  fuzz::round_trip(parse_list_end, print, text, "list end");
  fuzz::round_trip(parse_received, print, text, "received");
  fuzz::round_trip(parse_path_only, print, text, "path");
  const Error told = parse_error_reply(text);
  const Error again = parse_error_reply(to_json(told));
  fuzz::require(
      again.code() == told.code() && again.message() == readable_text(told.message(), 8'192),
      "error reply");
  const Error any(ErrorKind::kNotFound, "no_file", std::string(text), std::string(text));
  fuzz::require(parse_error_reply(to_json(any)).code() == "no_file",
                "an error of any words can be read");
  if (check_file_path(text).ok())
    fuzz::require(text.starts_with('/') && !has_dots(text), "a good path stays where it says");
  if (const auto begin = parse_put_begin(text); begin.ok())
    fuzz::require(!has_dots(begin.value().path), "put begin's path stays where it says");
  return 0;
}
