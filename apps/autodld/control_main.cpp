// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The role `control`: store, core, API, link to the node, endpoint table for the gateway.
#include <boost/asio/executor_work_guard.hpp>
#include <thread>

#include "base/log.hpp"
#include "control/api/api.hpp"
#include "control/core_runner.hpp"
#include "endpoint_feed.hpp"
#include "gateway/endpoints.hpp"
#include "http/server.hpp"
#include "link/control_link.hpp"
#include "link/stream_client.hpp"
#include "roles.hpp"
#include "store/secret_box.hpp"
#include "store/sqlite_store.hpp"

namespace autodl {

namespace {

class NodeStreams final : public StreamOpener {
 public:
  explicit NodeStreams(std::string path) : client_(std::move(path)) {}
  Result<UniqueFd> open(const StreamWish& wish, Millis limit) override {
    StreamRequest request;
    request.id = 1;
    request.kind = wish.kind;
    request.instance = InstanceId(wish.instance);
    request.run = RunId(wish.run);
    request.client = wish.client;
    request.local = wish.local;
    return client_.open(request, limit);
  }

 private:
  StreamClient client_;
};

CoreConfig core_config(const DaemonConfig& config) {
  CoreConfig core;
  core.public_host = config.public_host;
  core.port_first = config.port_first;
  core.port_last = config.port_last;
  core.currency = config.currency;
  core.prices_micro = config.prices;
  core.no_card_micro_per_hour = config.no_card_micro_per_hour;
  core.storage_micro_per_gb_day = config.storage_micro_per_gb_day;
  core.contact_grace = std::chrono::seconds{config.contact_grace_s};
  return core;
}

std::string endpoint_line(const ControlCore& core, const std::string& host) {
  std::vector<Endpoint> rows;
  for (const auto& view : core.endpoints())
    rows.push_back({host, static_cast<std::uint16_t>(view.port), view.instance, view.name,
                    std::string(to_string(view.state))});
  return print_endpoints(rows);
}

// Sends the node its desired set at each change, and every 2 s.
class DesiredSender {
 public:
  DesiredSender(NodeId node, const Clock& clock) : node_(std::move(node)), clock_(clock) {}

  void send(ControlCore& core, ControlLink& link) {
    const auto now = clock_.steady_now();
    if (core.desired_revision() == revision_ && now < due_) return;
    const auto set = core.desired_set(node_);
    if (!set.has_value()) return;
    link.send_desired(*set);
    revision_ = core.desired_revision();
    due_ = now + std::chrono::seconds{2};
  }

 private:
  const NodeId node_;
  const Clock& clock_;
  std::uint64_t revision_ = 0;
  SteadyTime due_{};
};

// What is opened while still root would belong to root: everything is opened after the drop, but
// the catalogue, which may lie where only root can read.
struct Opened {
  ImageCatalogue catalogue;
  std::unique_ptr<SqliteStore> store;
  std::optional<SecretBox> secrets;
};

Result<Opened> open_all(const DaemonConfig& config, const Clock& clock, Random& random) {
  Opened opened;
  if (!config.catalogue.empty()) {
    ADL_TRY(catalogue, ImageCatalogue::load(config.catalogue));
    opened.catalogue = std::move(catalogue);
  }
  ADL_TRY(user, find_user(config.user));
  ADL_TRY_STATUS(drop_privileges(user));
  ADL_TRY(secrets, SecretBox::load_or_create(config.control_dir() + "/master.key", random));
  opened.secrets.emplace(std::move(secrets));
  ADL_TRY(store, SqliteStore::open(config.control_dir() + "/autodl.db", clock, random));
  opened.store = std::move(store);
  return opened;
}

Task<void> stop_all(Api& api, http::Server& server, boost::asio::io_context& loop) {
  api.stop();
  co_await server.stop(Millis{3'000});
  loop.stop();
}

}  // namespace

Status run_control(const DaemonConfig& config) {
  SystemClock clock;
  SystemRandom random;
  ADL_TRY(opened, open_all(config, clock, random));
  ADL_TRY(snapshot, opened.store->load());
  ADL_TRY(core, ControlCore::open(core_config(config), *opened.store, clock, random,
                                  opened.catalogue, *opened.secrets));
  const bool needs_operator = !core->has_operator();
  ADL_TRY(feed, EndpointFeed::open(config.gateway_socket()));

  boost::asio::io_context loop(1);
  const NodeId node{"local"};
  CoreRunner* runner_pointer = nullptr;
  ControlLink::Events events;
  events.observed = [&runner_pointer](ObservedSet set) {
    runner_pointer->post([set = std::move(set)](ControlCore& c) { c.on_observed(set); });
  };
  events.event = [&runner_pointer, node](const LinkEvent& event) {
    runner_pointer->post([node, event](ControlCore& c) {
      c.on_node_event(node, event.instance, event.type, event.message);
    });
  };
  events.refused = [](const Error& error) {
    log_error("link", "the node refuses the desired set: {}", error.message());
  };
  events.down = [&runner_pointer, node](const Error&) {
    runner_pointer->post([node](ControlCore& c) { c.on_node_lost(node); });
  };
  LinkHello hello;
  hello.role = "control";
  hello.cluster = snapshot.cluster;
  hello.epoch = snapshot.epoch;
  ControlLink link(config.link_socket(), hello, events);

  DesiredSender sender(node, clock);
  CoreRunner::Options options;
  options.after_batch = [&](ControlCore& c) {
    sender.send(c, link);
    feed->publish(endpoint_line(c, config.endpoint_host));
  };
  CoreRunner runner(std::move(core), loop.get_executor(), std::move(options));
  runner_pointer = &runner;

  NodeStreams streams(config.streams_socket());
  BlockingPool pool(8, 256);
  ApiOptions api_options;
  api_options.version = ADL_VERSION;
  api_options.node = node;
  api_options.local_address = config.listen;
  api_options.database_path = config.control_dir() + "/autodl.db";
  api_options.setup_token_path = config.control_dir() + "/setup-token";
  Api api(runner, streams, pool, clock, api_options);
  if (needs_operator) {
    ADL_TRY(token, api.setup_token.load_or_create(random));
    // Only where it lies: logs are read by more people than the state folder.
    log_info("control", "no operator yet: autodl setup < {} makes the first one",
             api_options.setup_token_path);
  }
  http::Server server(loop.get_executor(), api.make_router());
  ADL_TRY_STATUS(server.listen(config.listen));
  runner.start();
  link.start();
  std::thread signals([&] {
    wait_for_stop_signal();
    spawn(loop.get_executor(), stop_all(api, server, loop), "stop");
  });
  log_info("control", "ready: API http://{}", config.listen);
  const auto keep_running = boost::asio::make_work_guard(loop);
  loop.run();
  signals.join();
  link.stop();
  runner.stop();
  return {};
}

}  // namespace autodl
