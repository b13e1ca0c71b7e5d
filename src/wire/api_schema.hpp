// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// JSON schemas (2020-12, as OpenAPI 3.1 has them) of the API's types, from the same descriptions
// and rules that the reader uses: what is refused there is refused by the schema, and what is
// written has all members. Lengths of texts are in bytes here and in characters in the schema: a
// schema never refuses what the reader takes.
//
//   SchemaSet set;
//   set.request<CreateInstance>();   // {"$ref":"#/components/schemas/CreateInstance"}
//   set.page<Instance>();            // … "InstancePage"
//   set.components                   // both, and what they use
#pragma once

#include "wire/api_json.hpp"

namespace autodl::api {

class SchemaSet {
 public:
  // A type as a request's body: rules hold, unknown members are refused, null where optional.
  template <class T>
  boost::json::object request() {
    return named<T>(true);
  }
  // A type as an answer: every member is there.
  template <class T>
  boost::json::object answer() {
    return named<T>(false);
  }
  template <class T>
  boost::json::object page() {
    return page_of(T::kName, named<T>(false));
  }
  // A schema that is no struct of ours, under a name.
  boost::json::object add(std::string_view name, boost::json::object schema);

  boost::json::object components;

 private:
  template <class T>
  boost::json::object named(bool as_request) {
    const std::string name(T::kName);
    if (!components.contains(name)) {
      components[name] = nullptr;  // a type that holds itself ends here
      components[name] = describe_struct<T>(as_request);
    }
    return reference(name);
  }

  template <class T>
  boost::json::object describe_struct(bool as_request) {
    using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
    boost::json::object properties;
    boost::json::array required;
    [[maybe_unused]] const T defaults{};
    boost::mp11::mp_for_each<Members>([&](auto member) {
      using Field = std::remove_cvref_t<decltype(defaults.*member.pointer)>;
      const FieldRule& rule = rule_of(T::kName, member.name);
      auto schema = describe<Field>(as_request, rule);
      add_meaning(schema, T::kName, member.name);
      if (!as_request || rule.required) required.emplace_back(member.name);
      if (as_request && !rule.required)
        add_default(schema, parse_json(to_json(defaults.*member.pointer)).value_or(nullptr));
      properties[member.name] = std::move(schema);
    });
    return object_of(std::move(properties), std::move(required), as_request);
  }

  template <class T>
  boost::json::object describe(bool as_request, const FieldRule& rule) {
    if constexpr (detail::is_optional<T>::value)
      return or_null(describe<typename T::value_type>(as_request, rule));
    else if constexpr (std::is_same_v<T, bool>)
      return {{"type", "boolean"}};
    else if constexpr (std::is_integral_v<T>)
      return number(as_request, rule);
    else if constexpr (std::is_same_v<T, std::string>)
      return text(as_request, rule);
    else if constexpr (std::is_same_v<T, boost::json::object>)
      return {{"type", "object"}};
    else if constexpr (detail::is_vector<T>::value)
      return list(describe<typename T::value_type>(as_request, rule), as_request, rule);
    else if constexpr (detail::is_map<T>::value)
      return map(describe<typename T::mapped_type>(as_request, rule), as_request, rule);
    else
      return named<T>(as_request);
  }

  static boost::json::object reference(std::string_view name);
  static boost::json::object or_null(boost::json::object schema);
  static boost::json::object number(bool as_request, const FieldRule& rule);
  static boost::json::object text(bool as_request, const FieldRule& rule);
  static boost::json::object list(boost::json::object items, bool as_request,
                                  const FieldRule& rule);
  static boost::json::object map(boost::json::object values, bool as_request,
                                 const FieldRule& rule);
  static boost::json::object object_of(boost::json::object properties, boost::json::array required,
                                       bool as_request);
  // Enumerations, formats and units, by the type's and the member's name.
  static void add_meaning(boost::json::object& schema, std::string_view type,
                          std::string_view member);
  static void add_default(boost::json::object& schema, boost::json::value value);
  boost::json::object page_of(std::string_view name, boost::json::object items);
};

}  // namespace autodl::api
