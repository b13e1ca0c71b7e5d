// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/openapi.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <map>

#include "http/message.hpp"

namespace autodl {
namespace {

namespace json = boost::json;

constexpr std::string_view kSignature =
    "`Authorization: ADL1-HMAC-SHA256 key=AK…, time=…, nonce=…, signature=…` beside "
    "`X-Autodl-Content-SHA256`. What is signed, and how, stands in docs/api/contract.md, with test "
    "vectors in docs/api/vectors.json.";

struct Tag {
  std::string_view name;
  std::string_view text;
};
constexpr Tag kTags[] = {
    {"instances", "Instances and tasks: a disk, an image, and runs with cards"},
    {"events", "What happened, in order, as pages or as a stream"},
    {"logs", "What the command wrote"},
    {"files", "Files of an instance: before, during and after a run"},
    {"exec", "Commands and terminals inside"},
    {"money", "Balance, bills, vouchers, statements"},
    {"catalogue", "Cards, prices and images that can be asked for"},
    {"account", "The caller's own account"},
    {"admin", "For operators"},
    {"server", "The server itself"},
};

struct PathParameter {
  std::string_view name;
  std::string_view text;
};
constexpr PathParameter kPathParameters[] = {
    {"id", "an id; of an instance also its name (for the instances of the caller)"},
    {"ticket", "the ticket of the upload"},
    {"n", "the part's number, from 0"},
};

std::string_view text_of_parameter(std::string_view name) {
  for (const auto& parameter : kPathParameters)
    if (parameter.name == name) return parameter.text;
  return "which one";
}

std::string_view text_of_status(int status) {
  switch (status) {
    case 400: return "The request can't be read";
    case 401: return "Not signed in, or the signature is not accepted";
    case 402: return "The balance is too low";
    case 403: return "Not allowed for this account";
    case 404: return "There is no such thing, or it is another's";
    case 408: return "The request came too slowly";
    case 409: return "Not possible in the present state";
    case 410: return "What is asked for is no longer kept";
    case 411: return "The body's length must be told";
    case 412: return "The file has changed";
    case 413: return "The body is too long";
    case 422: return "A member or parameter is not acceptable; `detail` names it";
    case 426: return "The connection must be upgraded";
    case 429: return "Too much at once; try again after `Retry-After`";
    case 431: return "The header is too long";
    case 500: return "A fault of the server, which is logged under the request's id";
    case 501: return "This installation can't do that";
    case 503: return "The store or the node is away; repeat with the same Idempotency-Key";
    case 505: return "Only HTTP/1.1 and 1.0 are spoken";
    case 507: return "No space is left on the disk";
    default: return "Refused";
  }
}

json::object problem_schema() {
  const auto text = [](std::string_view what) {
    return json::object{{"type", "string"}, {"description", what}};
  };
  json::object names{{"type", "array"}, {"description", "near names"}};
  names["items"] = json::object{{"type", "string"}};
  json::object properties;
  properties["type"] = text("urn:autodl:problem:CODE");
  properties["title"] = text("the code in words");
  properties["status"] = json::object{{"type", "integer"}};
  properties["code"] = text("for programs");
  properties["detail"] = text("for people: what was wrong");
  properties["remedy"] = text("for people: what to do");
  properties["request_id"] = text("for the operator's log");
  properties["candidates"] = std::move(names);
  properties["server_time"] = text("of clock_skew: the server's time");
  properties["oldest"] = json::object{
      {"type", "integer"}, {"description", "of events_gone: the oldest event that is kept"}};
  json::object out{{"type", "object"}};
  out["properties"] = std::move(properties);
  out["required"] = {"type", "title", "status", "code", "detail", "remedy", "request_id"};
  return out;
}

json::object parameter_object(const About::Parameter& parameter) {
  json::object out;
  out["name"] = parameter.name;
  out["in"] = parameter.in;
  if (parameter.required) out["required"] = true;
  out["description"] = parameter.text;
  out["schema"] = parameter.schema;
  return out;
}

json::object content_object(const std::vector<About::Content>& contents, api::SchemaSet& schemas) {
  json::object out;
  for (const auto& content : contents) {
    json::object media;
    if (content.schema != nullptr)
      media["schema"] = content.schema(schemas);
    else if (content.type.starts_with("text/"))
      media["schema"] = json::object{{"type", "string"}};
    else
      media["schema"] = json::object{};
    out[content.type] = std::move(media);
  }
  return out;
}

json::object answer_object(const About::Answer& answer, api::SchemaSet& schemas) {
  json::object headers;
  for (const auto& header : answer.headers) {
    json::object one;
    one["description"] = header.text;
    one["schema"] = header.schema;
    headers[header.name] = std::move(one);
  }
  headers["X-Request-Id"] = json::object{{"$ref", "#/components/headers/RequestId"}};
  json::object out;
  out["description"] = answer.text;
  out["headers"] = std::move(headers);
  if (!answer.contents.empty()) out["content"] = content_object(answer.contents, schemas);
  return out;
}

json::object refusal_object(const About::Answer& answer, api::SchemaSet& schemas) {
  json::object media;
  media["schema"] = schemas.add("Problem", problem_schema());
  json::object content;
  content["application/problem+json"] = std::move(media);
  json::object out;
  out["description"] = answer.text.empty() ? text_of_status(answer.status) : answer.text;
  out["content"] = std::move(content);
  if (!answer.rare.empty()) out["x-autodl-rare"] = answer.rare;
  return out;
}

// What the description leaves to the rules of all routes.
std::map<int, About::Answer> refusals_of(const About& about) {
  std::map<int, About::Answer> out;
  const auto add = [&out](int status, std::string rare = {}) {
    About::Answer answer;
    answer.status = status;
    answer.rare = std::move(rare);
    out.emplace(status, std::move(answer));
  };
  for (const auto& answer : about.refusals) out.emplace(answer.status, answer);
  add(400);
  add(408, "a client that sends its request for longer than 10 s");
  add(431);
  add(505);
  add(500, "a fault of the server: never on purpose");
  if (!about.body.empty()) add(413);
  if (about.access == About::Access::kOpen) return out;
  add(401);
  add(429, "only while 20,000 requests wait");
  add(503, "only while the store, the node or the server itself is away");
  if (about.access == About::Access::kOperator) add(403);
  // A key of idempotency that can't be one, or was used for another request.
  if (about.core_call && about.method != "GET") add(422);
  if (about.core_call && about.remember && about.method != "GET") add(409);
  return out;
}

void add_path_parameters(const About& about, json::array& parameters) {
  std::string_view rest = about.pattern;
  while (true) {
    const auto begin = rest.find('{');
    if (begin == std::string_view::npos) return;
    const auto end = rest.find('}', begin);
    const auto name = rest.substr(begin + 1, end - begin - 1);
    About::Parameter parameter;
    parameter.in = "path";
    parameter.name = std::string(name);
    parameter.text = std::string(text_of_parameter(name));
    parameter.schema = name == "n" ? json::object{{"type", "integer"}, {"minimum", 0}}
                                   : json::object{{"type", "string"}, {"minLength", 1}};
    parameter.required = true;
    parameters.push_back(parameter_object(parameter));
    rest.remove_prefix(end);
  }
}

json::object operation_object(const About& about, api::SchemaSet& schemas) {
  json::object out;
  out["operationId"] = about.id;
  out["tags"] = {about.tag};
  out["summary"] = about.title;
  if (!about.description.empty()) out["description"] = about.description;
  const bool open = about.access == About::Access::kOpen;
  if (open) out["security"] = json::array{};
  if (about.access == About::Access::kOperator) out["x-autodl-role"] = "operator";
  json::array parameters;
  add_path_parameters(about, parameters);
  for (const auto& parameter : about.parameters) parameters.push_back(parameter_object(parameter));
  if (about.method != "GET" && !open)
    parameters.push_back(json::object{{"$ref", "#/components/parameters/IdempotencyKey"}});
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  if (!about.body.empty()) {
    json::object body;
    if (about.body_needed) body["required"] = true;
    body["content"] = content_object(about.body, schemas);
    out["requestBody"] = std::move(body);
  }
  json::object responses;
  for (const auto& answer : about.results)
    responses[std::to_string(answer.status)] = answer_object(answer, schemas);
  for (const auto& [status, answer] : refusals_of(about))
    responses[std::to_string(status)] = refusal_object(answer, schemas);
  out["responses"] = std::move(responses);
  return out;
}

std::string lower(std::string_view method) {
  std::string out(method);
  for (char& c : out) c = static_cast<char>(c - 'A' + 'a');
  return out;
}

json::object security_schemes() {
  json::object bearer{{"type", "http"},
                      {"scheme", "bearer"},
                      {"description", "a token: `adl_…`, for CLI, curl and console"}};
  json::object signature{{"type", "apiKey"}, {"in", "header"}, {"name", "Authorization"}};
  signature["description"] = kSignature;
  json::object out;
  out["bearer"] = std::move(bearer);
  out["signature"] = std::move(signature);
  return out;
}

json::object shared_parameters() {
  json::object schema{{"type", "string"}, {"minLength", 1}, {"maxLength", 128}};
  json::object key;
  key["name"] = "Idempotency-Key";
  key["in"] = "header";
  key["description"] =
      "The same key with the same method, path and body gives the first answer again for 24 h";
  key["schema"] = std::move(schema);
  json::object out;
  out["IdempotencyKey"] = std::move(key);
  return out;
}

json::object info_object(std::string_view version) {
  json::object license{{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}};
  json::object out;
  out["title"] = "autodl";
  out["version"] = version;
  out["summary"] = "An open GPU compute platform";
  out["description"] =
      "Money is in integer micro-units (`*_micro`), sizes in bytes, durations in seconds (`*_s`), "
      "times are RFC 3339 in UTC. Refusals are RFC 9457 problems. Event streams are server-sent "
      "events: send `Accept: text/event-stream`. docs/api has guides and examples.";
  out["license"] = std::move(license);
  return out;
}

}  // namespace

std::string openapi_document(const std::vector<About>& routes, std::string_view version) {
  api::SchemaSet schemas;
  json::object paths;
  for (const auto& about : routes) {
    auto& path = paths[about.pattern];
    if (!path.is_object()) path = json::object{};
    path.as_object()[lower(about.method)] = operation_object(about, schemas);
  }
  json::array tags;
  for (const auto& tag : kTags) {
    for (const auto& about : routes) {
      if (about.tag != tag.name) continue;
      tags.push_back(json::object{{"name", tag.name}, {"description", tag.text}});
      break;
    }
  }
  json::object request_id{{"description", "for the operator's log"}};
  request_id["schema"] = json::object{{"type", "string"}};
  json::object headers;
  headers["RequestId"] = std::move(request_id);
  json::object components;
  components["schemas"] = std::move(schemas.components);
  components["securitySchemes"] = security_schemes();
  components["parameters"] = shared_parameters();
  components["headers"] = std::move(headers);
  json::array security;
  security.push_back(json::object{{"bearer", json::array{}}});
  security.push_back(json::object{{"signature", json::array{}}});
  json::array servers;
  servers.push_back(json::object{{"url", "/"}, {"description", "this server"}});
  json::object document;
  document["openapi"] = "3.1.0";
  document["info"] = info_object(version);
  document["servers"] = std::move(servers);
  document["security"] = std::move(security);
  document["tags"] = std::move(tags);
  document["paths"] = std::move(paths);
  document["components"] = std::move(components);
  return json::serialize(document);
}

}  // namespace autodl
