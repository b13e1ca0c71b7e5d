// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/api_schema.hpp"

namespace autodl::api {
namespace {

namespace json = boost::json;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// What a member means, where its name tells: the API's rules of naming (docs/api/contract.md).
struct Unit {
  std::string_view suffix;
  std::string_view meaning;
};
constexpr Unit kUnits[] = {
    {"_micro_per_hour", "micro-units of the currency per hour"},
    {"_micro_per_card_hour", "micro-units of the currency per card and hour"},
    {"_micro", "micro-units of the currency (1,000,000 are one)"},
    {"_bytes", "bytes"},
    {"_mib", "MiB"},
    {"_mtime_ms", "milliseconds since 1970, UTC"},
    {"_ms", "milliseconds"},
    {"_s", "seconds"},
    {"_percent", "per cent"},
    {"_at", "RFC 3339, UTC"},
    {"_sha256", "SHA-256, lower-case hex"},
};

}  // namespace

json::object SchemaSet::add(std::string_view name, json::object schema) {
  if (!components.contains(name)) components[name] = std::move(schema);
  return reference(name);
}

json::object SchemaSet::reference(std::string_view name) {
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

json::object SchemaSet::or_null(json::object schema) {
  if (auto* type = schema.if_contains("type"); type != nullptr && type->is_string()) {
    json::array both{*type, "null"};
    schema["type"] = std::move(both);
    return schema;
  }
  json::array either;
  either.push_back(std::move(schema));
  either.push_back(json::object{{"type", "null"}});
  json::object out;
  out["anyOf"] = std::move(either);
  return out;
}

json::object SchemaSet::number(bool as_request, const FieldRule& rule) {
  json::object out{{"type", "integer"}, {"format", "int64"}};
  if (!as_request) return out;
  if (rule.min != std::numeric_limits<std::int64_t>::min()) out["minimum"] = rule.min;
  if (rule.max != std::numeric_limits<std::int64_t>::max()) out["maximum"] = rule.max;
  return out;
}

json::object SchemaSet::text(bool as_request, const FieldRule& rule) {
  json::object out{{"type", "string"}};
  if (as_request) out["maxLength"] = rule.bytes_max;
  return out;
}

json::object SchemaSet::list(json::object items, bool as_request, const FieldRule& rule) {
  json::object out{{"type", "array"}};
  out["items"] = std::move(items);
  if (as_request) out["maxItems"] = rule.count_max;
  return out;
}

json::object SchemaSet::map(json::object values, bool as_request, const FieldRule& rule) {
  json::object out{{"type", "object"}};
  out["additionalProperties"] = std::move(values);
  if (as_request) out["maxProperties"] = rule.count_max;
  return out;
}

json::object SchemaSet::object_of(json::object properties, json::array required, bool as_request) {
  json::object out{{"type", "object"}};
  out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  if (as_request) out["additionalProperties"] = false;
  return out;
}

void SchemaSet::add_meaning(json::object& schema, std::string_view type, std::string_view member) {
  const auto words = values_of(type, member);
  if (!words.empty()) {
    json::array values;
    for (const auto word : words) values.emplace_back(word);
    if (const auto* kind = schema.if_contains("type"); kind != nullptr && kind->is_array())
      values.emplace_back(nullptr);
    schema["enum"] = std::move(values);
  }
  if (schema.contains("$ref")) return;
  for (const auto& unit : kUnits) {
    if (!ends_with(member, unit.suffix) && member != unit.suffix.substr(1)) continue;
    schema["description"] = unit.meaning;
    if (unit.suffix == "_at") schema["format"] = "date-time";
    return;
  }
}

void SchemaSet::add_default(json::object& schema, json::value value) {
  if (!schema.contains("$ref")) schema["default"] = std::move(value);
}

json::object SchemaSet::page_of(std::string_view name, json::object items) {
  json::object next{{"type", {"string", "null"}},
                    {"description", "the cursor of the next page; null: there is none"}};
  json::object list{{"type", "array"}};
  list["items"] = std::move(items);
  json::object properties;
  properties["items"] = std::move(list);
  properties["next"] = std::move(next);
  return add(std::string(name) + "Page",
             object_of(std::move(properties), {"items", "next"}, false));
}

}  // namespace autodl::api
