// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// JSON of the API's types, both ways, from their Boost.Describe descriptions. Reading refuses
// unknown members, wrong types and what breaks a rule of api_rules.hpp, and says where: the error's
// message names the member by its path ("/ssh_keys/0"). A member that is missing keeps the type's
// default unless its rule says that it is required. Writing goes straight to text.
#pragma once

#include <boost/describe.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "wire/api_rules.hpp"

namespace autodl::api {

// Text to value: kInvalid "bad_json" (no JSON, too deep).
Result<boost::json::value> parse_json(std::string_view text);

namespace detail {

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_map : std::false_type {};
template <class T>
struct is_map<std::map<std::string, T>> : std::true_type {};

Error wrong_type(const std::string& path, std::string_view wanted);
Error unknown_member(const std::string& path, std::string_view name);
Error missing_member(const std::string& path, std::string_view name);
Status check_text(const std::string& path, std::string_view text, const FieldRule& rule);
Status check_number(const std::string& path, std::int64_t number, const FieldRule& rule);
Status check_count(const std::string& path, std::size_t count, const FieldRule& rule);
void append_text(std::string& out, std::string_view text);

template <class T>
Status read(const boost::json::value& value, T& out, const std::string& path,
            const FieldRule& rule);

template <class T>
Status read_number(const boost::json::value& value, T& out, const std::string& path,
                   const FieldRule& rule) {
  std::int64_t number = 0;
  if (const auto* plain = value.if_int64())
    number = *plain;
  else if (const auto* big = value.if_uint64(); big != nullptr)
    return wrong_type(path, "a smaller number");
  else
    return wrong_type(path, "an integer");
  ADL_TRY_STATUS(check_number(path, number, rule));
  if (number < static_cast<std::int64_t>(std::numeric_limits<T>::min()) ||
      (sizeof(T) < 8 && number > static_cast<std::int64_t>(std::numeric_limits<T>::max())))
    return wrong_type(path, "a smaller number");
  out = static_cast<T>(number);
  return {};
}

template <class T>
Status read_list(const boost::json::value& value, T& out, const std::string& path,
                 const FieldRule& rule) {
  const auto* list = value.if_array();
  if (list == nullptr) return wrong_type(path, "a list");
  ADL_TRY_STATUS(check_count(path, list->size(), rule));
  for (std::size_t i = 0; i < list->size(); ++i) {
    typename T::value_type item{};
    ADL_TRY_STATUS(read((*list)[i], item, path + "/" + std::to_string(i), rule));
    out.push_back(std::move(item));
  }
  return {};
}

template <class T>
Status read_map(const boost::json::value& value, T& out, const std::string& path,
                const FieldRule& rule) {
  const auto* object = value.if_object();
  if (object == nullptr) return wrong_type(path, "an object");
  ADL_TRY_STATUS(check_count(path, object->size(), rule));
  for (const auto& [key, member] : *object) {
    const std::string name(key);
    const std::string member_path = path + "/" + name;
    ADL_TRY_STATUS(check_text(member_path, name, rule));
    typename T::mapped_type item{};
    ADL_TRY_STATUS(read(member, item, member_path, rule));
    out.emplace(name, std::move(item));
  }
  return {};
}

template <class T>
Status read_struct(const boost::json::value& value, T& out, const std::string& path) {
  using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
  const auto* object = value.if_object();
  if (object == nullptr) return wrong_type(path, "an object");
  for (const auto& [key, ignored] : *object) {
    bool known = false;
    boost::mp11::mp_for_each<Members>([&, name = std::string_view(key.data(), key.size())](
                                          auto member) { known = known || name == member.name; });
    if (!known) return unknown_member(path, {key.data(), key.size()});
  }
  Status status;
  boost::mp11::mp_for_each<Members>([&](auto member) {
    if (!status.ok()) return;
    const FieldRule& rule = rule_of(T::kName, member.name);
    const auto* found = object->if_contains(member.name);
    if (found == nullptr) {
      if (rule.required) status = missing_member(path, member.name);
      return;
    }
    status = read(*found, out.*member.pointer, path + "/" + member.name, rule);
  });
  return status;
}

template <class T>
Status read(const boost::json::value& value, T& out, const std::string& path,
            const FieldRule& rule) {
  if constexpr (is_optional<T>::value) {
    if (value.is_null()) {
      out.reset();
      return {};
    }
    return read(value, out.emplace(), path, rule);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_bool()) return wrong_type(path, "true or false");
    out = value.get_bool();
    return {};
  } else if constexpr (std::is_integral_v<T>) {
    return read_number(value, out, path, rule);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return wrong_type(path, "text");
    const std::string_view text(value.get_string().data(), value.get_string().size());
    ADL_TRY_STATUS(check_text(path, text, rule));
    out = std::string(text);
    return {};
  } else if constexpr (std::is_same_v<T, boost::json::object>) {
    if (!value.is_object()) return wrong_type(path, "an object");
    out = value.get_object();
    return {};
  } else if constexpr (is_vector<T>::value) {
    out.clear();
    return read_list(value, out, path, rule);
  } else if constexpr (is_map<T>::value) {
    out.clear();
    return read_map(value, out, path, rule);
  } else {
    return read_struct(value, out, path);
  }
}

}  // namespace detail

// A request body. Errors: kInvalid "bad_json", "bad_field", "unknown_field", "missing_field".
template <class T>
Result<T> from_json(std::string_view text) {
  ADL_TRY(value, parse_json(text));
  T out{};
  ADL_TRY_STATUS(detail::read(value, out, "", FieldRule{}));
  return out;
}

template <class T>
void append_json(std::string& out, const T& value) {
  if constexpr (detail::is_optional<T>::value) {
    if (value)
      append_json(out, *value);
    else
      out += "null";
  } else if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out.append(digits, end);
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
    detail::append_text(out, value);
  } else if constexpr (std::is_same_v<T, boost::json::object>) {
    out += boost::json::serialize(value);
  } else if constexpr (detail::is_vector<T>::value) {
    char before = '[';
    for (const auto& item : value) {
      out += before;
      before = ',';
      append_json(out, item);
    }
    if (before == '[') out += '[';
    out += ']';
  } else if constexpr (detail::is_map<T>::value) {
    char before = '{';
    for (const auto& [key, item] : value) {
      out += before;
      before = ',';
      detail::append_text(out, key);
      out += ':';
      append_json(out, item);
    }
    if (before == '{') out += '{';
    out += '}';
  } else {
    using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
    char before = '{';
    boost::mp11::mp_for_each<Members>([&](auto member) {
      out += before;
      before = ',';
      out.append("\"").append(member.name).append("\":");
      append_json(out, value.*member.pointer);
    });
    if (before == '{') out += '{';
    out += '}';
  }
}

template <class T>
std::string to_json(const T& value) {
  std::string out;
  append_json(out, value);
  return out;
}

// {"items":[…],"next":"…"|null}
template <class T>
std::string page_json(const std::vector<T>& items, const std::optional<std::string>& next) {
  std::string out = "{\"items\":";
  append_json(out, items);
  out += ",\"next\":";
  append_json(out, next);
  out += '}';
  return out;
}

}  // namespace autodl::api
