// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Every message between node and init; the record of the exit may be written by the tenant.
#include "wire/init_messages.hpp"

#include <string>

#include "fuzz.hpp"
#include "wire/json_fields.hpp"

namespace {

// parse, with the message's words as they are printed.
template <class Parse>
auto with_readable_words(Parse parse) {
  return [parse](std::string_view text) {
    auto parsed = parse(text);
    if (parsed.ok()) parsed.value().message = autodl::readable_text(parsed.value().message, 8'192);
    return parsed;
  };
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autodl;
  const auto text = fuzz::text_of(data, size);
  const auto print = [](const auto& message) { return to_json(message); };
  fuzz::round_trip(parse_exec_start, print, text, "exec start");
  fuzz::round_trip(parse_window_size, print, text, "window size");
  fuzz::round_trip(parse_exit_status, print, text, "exit status");
  fuzz::round_trip(with_readable_words(parse_init_error), print, text, "init error");
  fuzz::round_trip(parse_init_setup, print, text, "setup");
  fuzz::round_trip(parse_init_ready, print, text, "ready");
  fuzz::round_trip(parse_init_stop, print, text, "stop");
  fuzz::round_trip(with_readable_words(parse_init_report), print, text, "report");
  fuzz::round_trip(parse_exit_record, print, text, "exit record");
  fuzz::round_trip(parse_signal, signal_to_json, text, "signal");
  fuzz::round_trip(parse_run, run_to_json, text, "run");
  fuzz::round_trip(parse_keys, keys_to_json, text, "keys");
  static_cast<void>(check_samples(text));
  const std::string words(text);
  fuzz::require(parse_init_error(to_json(InitError{"failed", words})).ok() &&
                    parse_init_report(to_json(InitReport{"warning", words})).ok(),
                "an error or report of any words can be read");
  if (const auto record = parse_exit_record(text); record.ok()) {
    const auto& exit = record.value().exit;
    fuzz::require(exit.exit_code.has_value() != exit.signal.has_value(),
                  "an exit has either a code or a signal");
  }
  return 0;
}
