// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// About: what a route is: who may call it, what it takes, what it answers and refuses. Every route
// is registered with one, and from them /openapi.json is made (openapi.hpp): a route that is not
// described does not pass api_test. Who may call is also what the server checks.
//
//   add_call(router, api, "GET", "/api/v1/instances/{id}", show,
//            About("showInstance", "instances", "One instance, live")
//                .answers<api::Instance>(200, "the instance").refuses({404}));
//
// What every route may answer is added by itself: 400, 408, 431, 500, 505; 401, 429, 503 where it
// needs a sign-in; 403 for operators' routes; 409 of idempotency keys; 413 where it takes a body.
#pragma once

#include <boost/json/object.hpp>
#include <initializer_list>
#include <string>
#include <vector>

#include "wire/api_schema.hpp"

namespace autodl {

class About {
 public:
  using SchemaMaker = boost::json::object (*)(api::SchemaSet&);
  enum class Access { kOpen, kUser, kOperator };

  struct Parameter {
    std::string in;  // "query" | "header"
    std::string name;
    std::string text;
    boost::json::object schema;
    bool required = false;
  };
  struct Content {
    std::string type;
    SchemaMaker schema = nullptr;  // none: any bytes
  };
  struct Answer {
    int status = 0;
    std::string text;
    std::vector<Content> contents;
    std::vector<Parameter> headers;
    std::string rare;  // why a client can't bring it about at will; empty: it can
  };

  About(std::string operation, std::string group, std::string summary)
      : id(std::move(operation)), tag(std::move(group)), title(std::move(summary)) {}

  About& says(std::string text) { return description = std::move(text), *this; }
  About& open() { return access = Access::kOpen, *this; }
  About& for_operators() { return access = Access::kOperator, *this; }
  // The answer has secrets: it is not kept under the Idempotency-Key.
  About& keeps_no_answer() { return remember = false, *this; }

  template <class T>
  About& takes(bool needed = true) {
    body.push_back({"application/json", [](api::SchemaSet& set) { return set.request<T>(); }});
    body_needed = needed;
    return *this;
  }
  About& takes_bytes() { return body.push_back({"application/octet-stream", nullptr}), *this; }

  About& query(std::string name, boost::json::object schema, std::string text);
  About& needs_query(std::string name, boost::json::object schema, std::string text);
  About& header(std::string name, boost::json::object schema, std::string text);
  About& paged(std::int64_t limit_max = 200);  // limit and cursor

  template <class T>
  About& answers(int status, std::string text) {
    return answers_with(status, std::move(text), "application/json",
                        [](api::SchemaSet& set) { return set.answer<T>(); });
  }
  template <class T>
  About& answers_page(std::string text) {
    return answers_with(200, std::move(text), "application/json",
                        [](api::SchemaSet& set) { return set.page<T>(); });
  }
  // Also as server-sent events, whose data is this type.
  About& streams() { return answers_with(200, "", "text/event-stream", nullptr); }
  About& answers_with(int status, std::string text, std::string content_type, SchemaMaker schema);
  About& answers_empty(int status, std::string text);
  About& answer_header(std::string name, boost::json::object schema, std::string text);

  About& refuses(std::initializer_list<int> statuses);
  // A status that a client can't bring about at will, and why.
  About& rarely(int status, std::string why);

  const Answer* answer_of(int status) const;

  // Set when it is registered.
  std::string method, pattern;
  bool core_call = false;
  std::string id, tag, title, description;
  Access access = Access::kUser;
  bool remember = true;
  std::vector<Content> body;
  bool body_needed = false;
  std::vector<Parameter> parameters;
  std::vector<Answer> results;   // what went well
  std::vector<Answer> refusals;  // problems
};

// Schemas of parameters.
boost::json::object number_schema(std::int64_t min, std::int64_t max, std::int64_t fallback);
boost::json::object text_schema();
boost::json::object time_schema();
boost::json::object flag_schema();
boost::json::object words_schema(std::initializer_list<std::string_view> words);
boost::json::object pattern_schema(std::string_view pattern);

}  // namespace autodl
