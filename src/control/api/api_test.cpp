// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The API over real HTTP: sign-in, idempotency, problems, instances from create to release.
#include <fmt/format.h>

#include "control/api/testing/api_fixture.hpp"
#include "http/sse.hpp"
#include "wire/api_signature.hpp"

namespace autodl {
namespace {

using testing::ApiFixture;

class Api_ : public ApiFixture {};

TEST_F(Api_, Health_NeedsNoSignIn) {
  const http::Headers nobody{{"Authorization", "-"}};
  EXPECT_EQ(call("GET", "/healthz", "", nobody).status, 200);
  const auto version = call("GET", "/version", "", nobody);
  EXPECT_EQ(version.text("name"), "autodl");
  EXPECT_EQ(version.text("simulated_gpus"), "true");
  EXPECT_EQ(call("GET", "/readyz", "", nobody).status, 200);
}

TEST_F(Api_, SignIn_BothWays) {
  EXPECT_EQ(call("GET", "/api/v1/account").text("name"), "op");
  EXPECT_EQ(call("GET", "/api/v1/account", "", {{"Authorization", "Bearer " + token_}}).text("id"),
            account_);
}

TEST_F(Api_, SignIn_Refusals) {
  struct Row {
    const char* code;
    http::Headers headers;
  };
  auto wrong = signed_request("GET", "/api/v1/account", "", {}).headers;
  const std::string good(wrong.get("Authorization"));
  auto key = good;
  key.replace(key.find("key=") + 4, 4, "AKXX");
  auto time = good;
  const auto at = time.find("time=") + 5;
  time[at] = '2';  // some thirty years on
  auto signature = good;
  signature.back() = signature.back() == '0' ? '1' : '0';
  const std::string hash(wrong.get("X-Autodl-Content-SHA256"));
  for (const auto& row : std::vector<Row>{
           {"missing_credentials", {{"Authorization", "-"}}},
           {"missing_credentials", {{"Authorization", "Basic abc"}}},
           {"bad_token", {{"Authorization", "Bearer adl_nonsense"}}},
           {"bad_signature", {{"Authorization", "ADL1-HMAC-SHA256 nonsense"}}},
           {"unknown_key", {{"Authorization", key}, {"X-Autodl-Content-SHA256", hash}}},
           {"clock_skew", {{"Authorization", time}, {"X-Autodl-Content-SHA256", hash}}},
           {"bad_signature", {{"Authorization", signature}, {"X-Autodl-Content-SHA256", hash}}},
           {"bad_signature", {{"Authorization", good}}},
           {"bad_signature",
            {{"Authorization", good}, {"X-Autodl-Content-SHA256", "UNSIGNED-PAYLOAD"}}}}) {
    const auto answer = call("GET", "/api/v1/account", "", row.headers);
    EXPECT_EQ(answer.status, 401) << row.code;
    EXPECT_EQ(answer.text("code"), row.code);
    EXPECT_EQ(answer.json.contains("server_time"), std::string(row.code) == "clock_skew");
  }
  // The same signature for another path or query is none.
  EXPECT_EQ(call("GET", "/api/v1/balance", "",
                 {{"Authorization", good}, {"X-Autodl-Content-SHA256", hash}})
                .text("code"),
            "bad_signature");
}

TEST_F(Api_, NonceOfMutatingCall_Once) {
  const std::string body = R"({"image":"autodl/pytorch:2.6.0-cpu-py313","gpu_count":0})";
  const auto request = signed_request("POST", "/api/v1/instances", body, {});
  auto one = client();
  EXPECT_EQ(one.send(request)->status, 202);
  const auto again = one.send(request);
  EXPECT_EQ(again->status, 401);
  EXPECT_NE(again->body.find("replayed"), std::string::npos);
}

TEST_F(Api_, Idempotency_FirstAnswerAgain) {
  const http::Headers key{{"Idempotency-Key", "k-1"}};
  const std::string body = R"({"image":"autodl/pytorch:2.6.0-cpu-py313","gpu_count":0})";
  const auto first = call("POST", "/api/v1/instances", body, key);
  const auto second = call("POST", "/api/v1/instances", body, key);
  EXPECT_EQ(first.status, 202) << first.raw.body;
  EXPECT_EQ(second.status, 202);
  EXPECT_EQ(first.raw.body, second.raw.body);
  const auto other = call("POST", "/api/v1/instances", R"({"image":"other"})", key);
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.text("code"), "idempotency_mismatch");
  EXPECT_EQ(call("POST", "/api/v1/instances", body, {{"Idempotency-Key", std::string(129, 'k')}})
                .text("code"),
            "bad_idempotency_key");
  EXPECT_EQ(call("GET", "/api/v1/instances").json.at("items").as_array().size(), 1u);
}

TEST_F(Api_, BadInput_CodesAndNothingMade) {
  struct Row {
    std::string body;
    int status;
    const char* code;
  };
  const std::string image = R"("image":"autodl/pytorch:2.6.0-cpu-py313")";
  for (const auto& row :
       std::vector<Row>{{"{", 400, "bad_json"},
                        {"{}", 422, "missing_field"},
                        {"{" + image + R"(,"cards":1})", 422, "unknown_field"},
                        {"{" + image + R"(,"gpu_type":"RTX 9999"})", 422, "unknown_card"},
                        {"{" + image + R"(,"gpu_count":-1})", 422, "bad_gpu_count"},
                        {"{" + image + R"(,"gpu_count":0,"disk_bytes":0})", 422, "bad_disk_size"},
                        {"{" + image + R"(,"gpu_count":0,"name":"a\nb"})", 422, "bad_name"},
                        {R"({"image":"NOT AN IMAGE","gpu_count":0})", 422, "unknown_image"}}) {
    const auto answer = call("POST", "/api/v1/instances", row.body);
    EXPECT_EQ(answer.status, row.status) << row.body << answer.raw.body;
    EXPECT_EQ(answer.text("code"), row.code) << answer.raw.body;
    EXPECT_EQ(answer.raw.headers.get("Content-Type"), "application/problem+json");
    EXPECT_EQ(answer.text("request_id"), answer.raw.headers.get("X-Request-Id"));
  }
  const auto card = call("POST", "/api/v1/instances", "{" + image + R"(,"gpu_type":"RTX 3091"})");
  EXPECT_NE(card.text("candidates").find("RTX 3090"), std::string::npos) << card.raw.body;
  EXPECT_EQ(call("GET", "/api/v1/instances").json.at("items").as_array().size(), 0u);
  EXPECT_EQ(call("GET", "/api/v1/instances?limit=0").text("code"), "bad_parameter");
  EXPECT_EQ(call("GET", "/api/v1/instances?color=1").text("code"), "unknown_parameter");
  EXPECT_EQ(call("GET", "/api/v1/instances?state=happy").text("code"), "bad_parameter");
  EXPECT_EQ(call("GET", "/api/v1/instances/nobody").status, 404);
}

TEST_F(Api_, Task_FromCreateToBill) {
  const auto id = create(R"(,"command":"exit 3","name":"训练 🚀")");
  wait_for_state(id, "created");
  EXPECT_EQ(call("POST", "/api/v1/instances/" + id + "/start", "{}").status, 202);
  wait_for_state(id, "stopped");
  const auto shown = call("GET", "/api/v1/instances/" + http::percent_encode("训练 🚀"));
  EXPECT_EQ(shown.text("id"), id);
  EXPECT_EQ(shown.text("status"), "STOPPED");
  EXPECT_EQ(shown.text("outcome"), "failed");
  EXPECT_EQ(shown.text("exit_code"), "3");
  EXPECT_EQ(call("GET", "/api/v1/instances/" + id + "/runs").json.at("items").as_array().size(),
            1u);
  const auto bill = call("GET", "/api/v1/instances/" + id + "/bill");
  EXPECT_EQ(bill.status, 200) << bill.raw.body;
  // 1,500 ms are 1 s: 1,580,000 / 3600, rounded half to even.
  EXPECT_EQ(bill.text("total_micro"), "439") << bill.raw.body;
  EXPECT_EQ(call("GET", "/api/v1/bill").text("total_micro"), "439");
  EXPECT_EQ(call("GET", "/api/v1/balance").text("balance_micro"), "99999561");
  EXPECT_EQ(call("GET", "/api/v1/bill?from=yesterday").text("code"), "bad_parameter");
}

TEST_F(Api_, Machine_RunsUntilStoppedAndReleased) {
  const auto id = create();
  call("POST", "/api/v1/instances/" + id + "/start", "");
  wait_for_state(id, "running");
  EXPECT_EQ(call("POST", "/api/v1/instances/" + id + "/start").text("code"), "already_running");
  EXPECT_EQ(call("POST", "/api/v1/instances/" + id + "/stop", R"({"x":1})").text("code"),
            "unknown_field");
  const auto monitor = call("GET", "/api/v1/instances/" + id + "/monitor");
  EXPECT_NE(monitor.raw.body.find("\"uuid\":\"GPU-1\""), std::string::npos) << monitor.raw.body;
  call("POST", "/api/v1/instances/" + id + "/stop", "{}");
  wait_for_state(id, "stopped");
  call("POST", "/api/v1/instances/" + id + "/release", "{}");
  wait_for_state(id, "released");
}

TEST_F(Api_, OthersInstances_DoNotExist) {
  const auto id = create();
  const auto made = call("POST", "/api/v1/admin/accounts", R"({"name":"user"})");
  ASSERT_EQ(made.status, 201) << made.raw.body;
  EXPECT_EQ(made.raw.headers.get("Cache-Control"), "no-store");
  const http::Headers other{{"Authorization", "Bearer " + made.text("token")}};
  for (const char* path : {"", "/runs", "/bill", "/events", "/logs", "/monitor", "/files?path=/"})
    EXPECT_EQ(call("GET", "/api/v1/instances/" + id + path, "", other).status, 404) << path;
  for (const char* path : {"/start", "/stop", "/release"})
    EXPECT_EQ(call("POST", "/api/v1/instances/" + id + path, "{}", other).status, 404) << path;
  EXPECT_EQ(call("GET", "/api/v1/admin/accounts", "", other).text("code"), "operator_only");
  EXPECT_EQ(call("GET", "/api/v1/admin/accounts").json.at("items").as_array().size(), 2u);
  EXPECT_EQ(call("GET", "/api/v1/admin/cards").json.at("items").as_array().size(), 1u);
  EXPECT_EQ(call("GET", "/api/v1/admin/nodes").json.at("items").as_array().size(), 1u);
}

TEST_F(Api_, Setup_OnlyOnceAndOnlyWithTheToken) {
  const http::Headers nobody{{"Authorization", "-"}};
  EXPECT_EQ(call("POST", "/api/v1/setup", R"({"setup_token":"x","name":"b"})", nobody).status, 409);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/setup-token"));
}

TEST_F(Api_, Catalogue_CardsAndImages) {
  const auto types = call("GET", "/api/v1/gpu_types");
  EXPECT_NE(types.raw.body.find(R"("name":"RTX 3090")"), std::string::npos) << types.raw.body;
  EXPECT_NE(call("GET", "/api/v1/images").raw.body.find("pytorch"), std::string::npos);
}

TEST_F(Api_, SshKeys_AddListRemove) {
  const std::string key =
      "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3XzQKZk7hH0Tkq1JqXZ0b1u3m2Xl1R0n7c2o5XyQ3p me";
  const auto added =
      call("POST", "/api/v1/ssh_keys", fmt::format(R"({{"name":"k","public_key":"{}"}})", key));
  ASSERT_EQ(added.status, 201) << added.raw.body;
  EXPECT_EQ(call("GET", "/api/v1/ssh_keys").json.at("items").as_array().size(), 1u);
  EXPECT_EQ(call("POST", "/api/v1/ssh_keys", R"({"name":"k","public_key":"x"})").text("code"),
            "bad_ssh_key");
  EXPECT_EQ(call("DELETE", "/api/v1/ssh_keys/" + added.text("id")).status, 204);
  EXPECT_EQ(call("GET", "/api/v1/ssh_keys").json.at("items").as_array().size(), 0u);
}

TEST_F(Api_, Events_PageAndStream) {
  const auto id = create(R"(,"command":"exit 0")");
  call("POST", "/api/v1/instances/" + id + "/start", "{}");
  // The stream is read from the beginning until the run's end has come, while it happens.
  auto request = signed_request("GET", "/api/v1/instances/" + id + "/events", "",
                                {{"Accept", "text/event-stream"}, {"Last-Event-ID", "0"}});
  http::SseReader reader;
  std::vector<http::SseEvent> events;
  auto one = client();
  const auto answer = one.stream(request, [&](std::string_view bytes) {
    reader.put(bytes);
    while (true) {
      auto event = reader.next();
      if (!event.ok() || !*event) return true;
      events.push_back(**event);
      if (events.back().event == "exited" || events.back().event == "stopped") return false;
    }
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events[0].event, "created");
  for (std::size_t i = 1; i < events.size(); ++i)
    EXPECT_GT(std::stoll(events[i].id), std::stoll(events[i - 1].id));
  const auto page =
      call("GET", "/api/v1/instances/" + id + "/events?limit=1&after=" + events[0].id);
  ASSERT_EQ(page.json.at("items").as_array().size(), 1u);
  EXPECT_EQ(page.json.at("items").at(0).at("seq").as_int64(), std::stoll(events[1].id));
  EXPECT_EQ(call("GET", "/api/v1/events?after=x").text("code"), "bad_parameter");
}

TEST_F(Api_, Operators_ChangeAndAreAudited) {
  const auto made =
      call("POST", "/api/v1/admin/accounts", R"({"name":"li","group":"lab","credit_micro":7})");
  ASSERT_EQ(made.status, 201) << made.raw.body;
  const http::Headers li{{"Authorization", "Bearer " + made.text("token")}};
  EXPECT_EQ(call("GET", "/api/v1/account", "", li).text("group"), "lab");
  EXPECT_EQ(call("GET", "/api/v1/balance", "", li).text("available_micro"), "7");
  EXPECT_EQ(call("POST", "/api/v1/admin/accounts", R"({"name":"li"})").text("code"), "name_taken");
  struct Row {
    const char* path;
    const char* body;
    int status;
    const char* code;
  };
  for (const auto& row : std::vector<Row>{
           {"accounts/li/quota", R"({"cards_max":2,"reason":"r"})", 200, "(missing)"},
           {"accounts/nobody/quota", R"({"cards_max":2,"reason":"r"})", 404, "no_such_account"},
           {"accounts/li/quota", R"({"cards_max":-2,"reason":"r"})", 422, "bad_field"},
           {"groups/lab/quota", R"({"instances_max":9,"reason":"r"})", 200, "(missing)"},
           {"groups/none/quota", R"({"instances_max":9,"reason":"r"})", 404, "no_such_group"},
           {"nodes/local/drain", R"({"reason":"r","until":"soon"})", 422, "bad_until"},
           {"nodes/other/drain", R"({"reason":"r"})", 404, "no_such_node"},
           {"cards/GPU-none/cordon", R"({"reason":"r"})", 404, "no_such_card"},
           {"image_aliases", R"({"alias":"a","reference":"NO IMAGE"})", 422, "unknown_image"},
           {"accounts/op/disable", R"({"reason":"r"})", 409, "own_account"},
           {"accounts/li/disable", R"({"reason":"gone"})", 200, "(missing)"}}) {
    const auto path = std::string("/api/v1/admin/") + row.path;
    EXPECT_EQ(call("POST", path, row.body, li).status, 403) << path << " is for operators alone";
    const auto answer = call("POST", path, row.body);
    EXPECT_EQ(answer.status, row.status) << path << answer.raw.body;
    EXPECT_EQ(answer.text("code"), row.code) << answer.raw.body;
  }
  EXPECT_EQ(call("GET", "/api/v1/account", "", li).text("code"), "account_disabled");
  const auto audit = call("GET", "/api/v1/admin/audit?limit=2");
  const auto& items = audit.json.at("items").as_array();
  ASSERT_EQ(items.size(), 2u) << audit.raw.body;
  EXPECT_EQ(items[0].at("action").as_string(), "user.disable");
  EXPECT_EQ(items[0].at("actor_name").as_string(), "op");
  EXPECT_EQ(items[0].at("reason").as_string(), "gone");
  EXPECT_EQ(items[0].at("after").at("disabled").as_bool(), true);
  EXPECT_EQ(items[1].at("action").as_string(), "group.quota.set");
  const auto older = call("GET", "/api/v1/admin/audit?limit=1&cursor=" + audit.text("next"));
  EXPECT_EQ(older.json.at("items").at(0).at("action").as_string(), "quota.set");
  EXPECT_EQ(call("POST", "/api/v1/admin/accounts/li/enable", R"({"reason":"back"})").status, 200);
  EXPECT_EQ(call("GET", "/api/v1/account", "", li).status, 200);
}

}  // namespace
}  // namespace autodl
