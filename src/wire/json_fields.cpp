// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

namespace autodl {
namespace json = boost::json;

namespace {
constexpr std::size_t kDepthMax = 8;

// Bytes of the character at the front: 0 where it is not UTF-8.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const unsigned second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool no_character = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || no_character ? 0 : length;
}
}  // namespace

std::string readable_text(std::string_view text, std::size_t bytes_max) {
  constexpr std::string_view kWrong = "\xEF\xBF\xBD";
  std::string out;
  out.reserve(std::min(text.size(), bytes_max));
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    const bool good = length > 0 && text.front() != '\0';
    const auto next = good ? text.substr(0, length) : kWrong;
    if (out.size() + next.size() > bytes_max) break;
    out += next;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

JsonFields::JsonFields(std::string_view text, std::string_view what) : what_(what) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = kDepthMax;
  const json::value value =
      json::parse(json::string_view(text.data(), text.size()), error, json::storage_ptr{}, options);
  if (error)
    fail("is not JSON: " + error.message());
  else if (!value.is_object())
    fail("is not a JSON object");
  else
    object_ = value.get_object();
}

JsonFields::JsonFields(const json::value& value, std::string_view what) : what_(what) {
  if (!value.is_object())
    fail("is not a JSON object");
  else
    object_ = value.get_object();
}

void JsonFields::fail(std::string message) {
  if (!error_) error_ = Error(ErrorKind::kInvalid, "bad_message", what_ + ": " + message);
}

void JsonFields::fail_with(const Error& error) {
  if (!error_) error_ = error.context(what_);
}

const json::value* JsonFields::find(std::string_view name, bool required) {
  seen_.emplace(name);
  const json::value* value = object_.if_contains(json::string_view(name.data(), name.size()));
  if (value != nullptr && !value->is_null()) return value;
  if (required) fail(fmt::format("field '{}' is missing", name));
  return nullptr;
}

bool JsonFields::has(std::string_view name) const {
  const json::value* value = object_.if_contains(json::string_view(name.data(), name.size()));
  return value != nullptr && !value->is_null();
}

std::string JsonFields::text(std::string_view name, std::size_t bytes_max) {
  find(name, true);
  return optional_text(name, bytes_max).value_or("");
}

std::optional<std::string> JsonFields::optional_text(std::string_view name, std::size_t bytes_max) {
  const json::value* value = find(name, false);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    fail(fmt::format("field '{}' is not a string", name));
    return std::nullopt;
  }
  const json::string& string = value->get_string();
  if (string.size() > bytes_max) {
    fail(fmt::format("field '{}' has {} bytes; the maximum is {}", name, string.size(), bytes_max));
    return std::nullopt;
  }
  return std::string(string.data(), string.size());
}

std::int64_t JsonFields::integer(std::string_view name, std::int64_t min, std::int64_t max) {
  find(name, true);
  return integer_or(name, min, min, max);
}

std::int64_t JsonFields::integer_or(std::string_view name, std::int64_t fallback, std::int64_t min,
                                    std::int64_t max) {
  const json::value* value = find(name, false);
  if (value == nullptr) return fallback;
  json::error_code error;
  if (!value->is_int64() && !value->is_uint64()) {
    fail(fmt::format("field '{}' is not an integer", name));
    return fallback;
  }
  const auto number = value->to_number<std::int64_t>(error);
  if (error || number < min || number > max) {
    fail(fmt::format("field '{}' is not between {} and {}", name, min, max));
    return fallback;
  }
  return number;
}

bool JsonFields::flag_or(std::string_view name, bool fallback) {
  const json::value* value = find(name, false);
  if (value == nullptr) return fallback;
  if (value->is_bool()) return value->get_bool();
  fail(fmt::format("field '{}' is not true or false", name));
  return fallback;
}

std::vector<json::value> JsonFields::items(std::string_view name, std::size_t count_max) {
  const json::value* value = find(name, false);
  if (value == nullptr) return {};
  if (!value->is_array()) {
    fail(fmt::format("field '{}' is not a list", name));
    return {};
  }
  const json::array& array = value->get_array();
  if (array.size() > count_max) {
    fail(fmt::format("field '{}' has {} items; the maximum is {}", name, array.size(), count_max));
    return {};
  }
  return {array.begin(), array.end()};
}

std::vector<std::string> JsonFields::texts(std::string_view name, std::size_t count_max,
                                           std::size_t bytes_max) {
  std::vector<std::string> texts;
  for (const json::value& item : items(name, count_max)) {
    if (!item.is_string() || item.get_string().size() > bytes_max) {
      fail(fmt::format("field '{}' holds what is not a string of at most {} bytes", name,
                       bytes_max));
      return {};
    }
    texts.emplace_back(item.get_string().data(), item.get_string().size());
  }
  return texts;
}

std::map<std::string, std::string> JsonFields::text_map(std::string_view name,
                                                        std::size_t count_max,
                                                        std::size_t bytes_max) {
  const json::value* value = find(name, false);
  if (value == nullptr) return {};
  if (!value->is_object() || value->get_object().size() > count_max) {
    fail(fmt::format("field '{}' is not an object of at most {} strings", name, count_max));
    return {};
  }
  std::map<std::string, std::string> map;
  for (const auto& [key, item] : value->get_object()) {
    if (!item.is_string() || item.get_string().size() > bytes_max || key.size() > bytes_max) {
      fail(fmt::format("field '{}' holds what is not a string of at most {} bytes", name,
                       bytes_max));
      return {};
    }
    map.emplace(std::string(key.data(), key.size()),
                std::string(item.get_string().data(), item.get_string().size()));
  }
  return map;
}

Status JsonFields::finish() {
  for (const auto& [key, value] : object_) {
    if (!seen_.contains(std::string_view(key.data(), key.size())))
      fail(fmt::format("unknown field '{}'", std::string_view(key.data(), key.size())));
  }
  if (error_) return *error_;
  return {};
}

}  // namespace autodl
