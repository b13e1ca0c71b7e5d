// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/about.hpp"

#include <algorithm>

namespace autodl {

namespace json = boost::json;

About& About::query(std::string name, json::object schema, std::string text) {
  parameters.push_back({"query", std::move(name), std::move(text), std::move(schema), false});
  return *this;
}

About& About::needs_query(std::string name, json::object schema, std::string text) {
  parameters.push_back({"query", std::move(name), std::move(text), std::move(schema), true});
  return *this;
}

About& About::header(std::string name, json::object schema, std::string text) {
  parameters.push_back({"header", std::move(name), std::move(text), std::move(schema), false});
  return *this;
}

About& About::paged(std::int64_t limit_max) {
  query("limit", number_schema(1, limit_max, std::min<std::int64_t>(50, limit_max)),
        "how many items at most");
  return query("cursor", text_schema(), "`next` of the page before");
}

About& About::answers_with(int status, std::string text, std::string content_type,
                           SchemaMaker schema) {
  const auto same = [status](const Answer& answer) { return answer.status == status; };
  auto found = std::find_if(results.begin(), results.end(), same);
  if (found == results.end()) {
    Answer answer;
    answer.status = status;
    answer.text = std::move(text);
    found = results.insert(results.end(), std::move(answer));
  }
  found->contents.push_back({std::move(content_type), schema});
  return *this;
}

About& About::answers_empty(int status, std::string text) {
  Answer answer;
  answer.status = status;
  answer.text = std::move(text);
  results.push_back(std::move(answer));
  return *this;
}

About& About::answer_header(std::string name, json::object schema, std::string text) {
  ADL_ASSERT(!results.empty());
  results.back().headers.push_back(
      {"header", std::move(name), std::move(text), std::move(schema), false});
  return *this;
}

About& About::refuses(std::initializer_list<int> statuses) {
  for (const int status : statuses) {
    Answer answer;
    answer.status = status;
    refusals.push_back(std::move(answer));
  }
  return *this;
}

About& About::rarely(int status, std::string why) {
  Answer answer;
  answer.status = status;
  answer.rare = std::move(why);
  refusals.push_back(std::move(answer));
  return *this;
}

const About::Answer* About::answer_of(int status) const {
  for (const auto* list : {&results, &refusals})
    for (const auto& answer : *list)
      if (answer.status == status) return &answer;
  return nullptr;
}

json::object number_schema(std::int64_t min, std::int64_t max, std::int64_t fallback) {
  json::object out{{"type", "integer"}, {"format", "int64"}, {"minimum", min}};
  if (max < std::numeric_limits<std::int64_t>::max() / 2) out["maximum"] = max;
  out["default"] = fallback;
  return out;
}

json::object text_schema() {
  return {{"type", "string"}};
}

json::object time_schema() {
  return {{"type", "string"}, {"format", "date-time"}};
}

json::object flag_schema() {
  return {{"type", "integer"}, {"enum", {0, 1}}, {"default", 0}};
}

json::object words_schema(std::initializer_list<std::string_view> words) {
  json::array values;
  for (const auto word : words) values.emplace_back(word);
  json::object out{{"type", "string"}};
  out["enum"] = std::move(values);
  return out;
}

json::object pattern_schema(std::string_view pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}

}  // namespace autodl
