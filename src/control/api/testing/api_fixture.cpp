// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "control/api/testing/api_fixture.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include "wire/api_signature.hpp"

namespace autodl::testing {
namespace {

constexpr std::int64_t kCardBytes = std::int64_t{24} << 30;

Task<void> stop_server(http::Server* server, boost::asio::io_context* loop) {
  co_await server->stop(Millis(2'000));
  loop->stop();
}

}  // namespace

ObservedInstance InstantNode::observe(const DesiredInstance& wanted) {
  ObservedInstance seen;
  seen.id = wanted.id;
  if (wanted.presence == Presence::kReleased) {
    seen.destroyed = true;
    return seen;
  }
  seen.image = ImageState::kReady;
  seen.image_digest = "sha256:" + std::string(64, 'a');
  seen.disk = DiskState::kReady;
  seen.host_key = "ssh-ed25519 AAAA";
  if (!wanted.run) return seen;
  ObservedRun run;
  run.id = wanted.run->id;
  run.cards = wanted.run->cards;
  run.phase = RunPhase::kRunning;
  run.ready_utc_ms = 1'800'000'000'000;
  run.running_ms = 1'500;
  const std::string command = wanted.run->command.value_or("");
  const bool exits = command.rfind("exit ", 0) == 0;
  if (exits || wanted.run->stop) {
    run.phase = RunPhase::kEnded;
    run.cards.clear();
    RunResult result;
    result.started = true;
    if (exits)
      result.exit_code = std::stoi(command.substr(5));
    else
      result.signal = 2;
    if (wanted.run->stop) result.stopped_by = wanted.run->stop->by;
    run.result = result;
  }
  seen.run = std::move(run);
  return seen;
}

void InstantNode::step(ControlCore& core) {
  ObservedSet observed;
  observed.node = NodeId("local");
  observed.boot_id = "boot";
  observed.simulated_cards = true;
  const auto desired = core.desired_set(NodeId("local"));
  ObservedCard card;
  card.id = CardId("GPU-1");
  card.model = "NVIDIA GeForce RTX 3090";
  card.type = "RTX 3090";
  card.memory_bytes = kCardBytes;
  if (desired) {
    observed.desired_revision = desired->revision;
    for (const auto& wanted : desired->instances) {
      observed.instances.push_back(observe(wanted));
      const auto& run = observed.instances.back().run;
      if (!run || run->cards.empty()) continue;
      card.health = CardHealth::kHeld;
      card.holder = wanted.id;
    }
  }
  observed.cards.push_back(card);
  core.on_observed(observed);
}

Result<UniqueFd> FakeStreams::open(const StreamWish& wish, Millis) {
  Serve serve;
  {
    const std::lock_guard lock(mutex_);
    const auto found = serves_.find(wish.kind);
    if (found != serves_.end()) serve = found->second;
  }
  if (serve) return serve(wish);
  return Error(ErrorKind::kNotFound, "no_stream", "there is no such stream");
}

void FakeStreams::on(const std::string& kind, Serve serve) {
  const std::lock_guard lock(mutex_);
  serves_[kind] = std::move(serve);
}

ApiFixture::ApiFixture() {
  std::string pattern = std::filesystem::temp_directory_path() / "autodl-api-XXXXXX";
  folder_ = ::mkdtemp(pattern.data());
  CatalogueEntry image;
  image.name = "autodl/pytorch:2.6.0-cpu-py313";
  image.aliases = {"pytorch/pytorch:1.12-cuda11.6"};
  image.reference = "localhost/autodl/pytorch:2.6.0-cpu-py313";
  catalogue_ = ImageCatalogue({image});
  CoreConfig config;
  config.prices_micro["RTX 3090"] = 1'580'000;
  auto core = ControlCore::open(config, store_, clock_, random_, catalogue_, secrets_);
  ADL_ASSERT(core.ok());
  CoreRunner::Options options;
  options.tick_every = Millis(5);
  options.after_batch = [this](ControlCore& running) { node_.step(running); };
  options.on_fatal = [](const Error& error) {
    ADD_FAILURE() << error.message();
    std::abort();
  };
  runner_.emplace(std::move(core).value(), loop_.get_executor(), std::move(options));
  runner_->start();
  ApiOptions api_options;
  api_options.setup_token_path = folder_ + "/setup-token";
  api_.emplace(*runner_, streams_, pool_, clock_, api_options);
  http::ServerOptions limits;
  limits.access_log = false;
  server_.emplace(loop_.get_executor(), api_->make_router(), limits);
  ADL_ASSERT(server_->listen("127.0.0.1:0").ok());
  port_ = server_->port();
  const auto setup_token = api_->setup_token.load_or_create(random_);
  ADL_ASSERT(setup_token.ok());
  thread_ = std::thread([this] { loop_.run(); });

  const auto made = call("POST", "/api/v1/setup",
                         fmt::format(R"({{"setup_token":"{}","name":"op"}})", *setup_token),
                         {{"Authorization", "-"}});
  ADL_ASSERT(made.status == 201);
  token_ = made.text("token");
  access_key_ = made.text("access_key");
  secret_key_ = made.text("secret_key");
  account_ = std::string(made.json.at("account").at("id").as_string());
  call("POST", "/api/v1/admin/accounts/" + account_ + "/credit",
       R"({"amount_micro":100000000,"reason":"test"})");
}

ApiFixture::~ApiFixture() {
  stop();
  std::filesystem::remove_all(folder_);
}

void ApiFixture::stop() {
  if (!thread_.joinable()) return;
  boost::asio::post(loop_, [this] {
    api_->stop();
    spawn(loop_.get_executor(), stop_server(&*server_, &loop_), "stop");
  });
  thread_.join();
  runner_->stop();
}

http::Client ApiFixture::client() {
  auto made = http::Client::make("http://127.0.0.1:" + std::to_string(port_));
  ADL_ASSERT(made.ok());
  return std::move(made).value();
}

std::string ApiFixture::Answer::text(const char* name) const {
  const auto* value = json.if_contains(name);
  if (value == nullptr) return "(missing)";
  return value->is_string() ? std::string(value->get_string()) : boost::json::serialize(*value);
}

http::ClientRequest ApiFixture::signed_request(const std::string& method, const std::string& target,
                                               const std::string& body, http::Headers headers) {
  http::ClientRequest request;
  request.method = method;
  request.target = target;
  request.headers = std::move(headers);
  request.body = body;
  if (request.headers.get("Authorization") == "-") {
    request.headers.set("Authorization", "");
    return request;
  }
  if (request.headers.has("Authorization")) return request;
  const auto mark = std::min(target.find('?'), target.size());
  const std::string path = target.substr(0, mark);
  const std::string query = mark < target.size() ? target.substr(mark + 1) : "";
  SignatureHeader signature;
  signature.access_key = access_key_;
  signature.time_s = to_unix_ms(clock_.utc_now()) / 1'000;
  signature.nonce = fmt::format("nonce-{:016}", ++nonce_);
  if (!request.headers.has("X-Autodl-Content-SHA256"))
    request.headers.add("X-Autodl-Content-SHA256", sha256_hex(body));
  SignedParts parts;
  parts.method = method;
  parts.path = path;
  parts.query = query;
  parts.content_sha256 = request.headers.get("X-Autodl-Content-SHA256");
  parts.idempotency_key = request.headers.get("Idempotency-Key");
  parts.time_s = signature.time_s;
  parts.nonce = signature.nonce;
  signature.signature = hmac_sha256_hex(secret_key_, string_to_sign(parts));
  request.headers.add("Authorization", print_signature_header(signature));
  return request;
}

ApiFixture::Answer ApiFixture::call(const std::string& method, const std::string& target,
                                    const std::string& body, http::Headers headers) {
  const auto request = signed_request(method, target, body, std::move(headers));
  auto one = client();
  auto response = one.send(request);
  Answer answer;
  EXPECT_TRUE(response.ok()) << method << " " << target << ": " << response.error().message();
  if (!response.ok()) return answer;
  answer.status = response->status;
  boost::system::error_code error;
  auto json = boost::json::parse(response->body, error);
  if (!error && json.is_object()) answer.json = json.get_object();
  answer.raw = std::move(*response);
  return answer;
}

std::string ApiFixture::create(const std::string& more) {
  const auto made =
      call("POST", "/api/v1/instances",
           R"({"image":"autodl/pytorch:2.6.0-cpu-py313","gpu_type":"RTX 3090")" + more + "}");
  EXPECT_EQ(made.status, 202) << made.raw.body;
  return made.text("id");
}

void ApiFixture::wait_for_state(const std::string& id, const std::string& state) {
  // The core ticks every 5 ms and the node acts after each: some polls, and far below the limit.
  std::string last;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < limit) {
    last = call("GET", "/api/v1/instances/" + id).text("state");
    if (last == state) return;
    std::this_thread::yield();
  }
  FAIL() << "instance stays " << last << ", wanted " << state;
}

}  // namespace autodl::testing
