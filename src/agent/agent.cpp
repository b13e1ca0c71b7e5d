// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.hpp"

#include <fmt/format.h>

#include <future>

#include "base/log.hpp"

namespace autodl {

namespace {

constexpr Millis kTick{100};
constexpr Millis kTellEvery{2'000};
constexpr Millis kInventoryLimit{5'000};
constexpr std::int64_t kDiskRounds = 5;  // meter rounds between two looks at a disk's use
constexpr std::int64_t kImageRounds = 60;

// Steps that wait for something else than the runtime: file workers need not wait for them.
bool holds_instance(ActionKind kind) {
  switch (kind) {
    case ActionKind::kRecord:
    case ActionKind::kEnsureImage:
    case ActionKind::kConnect:
    case ActionKind::kGo:
    case ActionKind::kKeys:
    case ActionKind::kStop:
    case ActionKind::kProve: return false;
    default: return true;
  }
}

NodeLink::Config link_config(const AgentOptions& options, const Clock& clock) {
  NodeLink::Config config;
  config.path = options.link_path;
  config.rights = options.rights;
  config.user = options.user;
  config.mine.role = "node";
  config.mine.node = options.core.node;
  config.mine.boot_id = clock.boot_id();
  return config;
}

StreamServer::Config streams_config(const AgentOptions& options) {
  StreamServer::Config config;
  config.path = options.streams_path;
  config.rights = options.rights;
  config.user = options.user;
  return config;
}

}  // namespace

Agent::Agent(AgentOptions options, AgentParts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      journal_(options_.state_dir + "/instances"),
      files_(options_.state_dir + "/instances"),
      core_(options_.core, parts_.clock, journal_),
      links_(
          [this](InitEvent event) {
            post([event = std::move(event)](AgentCore& core) { core.on_init_event(event); });
          },
          parts_.random),
      runner_(
          RunnerParts{parts_.runtime, parts_.inventory, parts_.cards, links_, files_, journal_,
                      parts_.clock, parts_.random},
          options_.core.split,
          RunnerEvents{
              [this](const InstanceId& id, std::string phase, std::optional<int> part) {
                post([=](AgentCore& core) { core.on_progress(id, phase, part); });
              },
              [this](const InstanceId& id, UniqueFd pidfd) { exits_.add(id, std::move(pidfd)); }}),
      exits_([this](const InstanceId& id) { post([id](AgentCore& core) { core.on_exit(id); }); }),
      link_(link_config(options_, parts_.clock),
            NodeLink::Events{[this](DesiredSet set) -> Status {
                               // The core's answer is told to control, so it is waited for.
                               auto answer = std::make_shared<std::promise<Status>>();
                               auto taken = answer->get_future();
                               post([set = std::move(set), answer](AgentCore& core) {
                                 answer->set_value(core.on_desired(set));
                               });
                               while (taken.wait_for(kTick) != std::future_status::ready) {
                                 const std::lock_guard lock(mutex_);
                                 if (stopping_) return {};
                               }
                               return taken.get();
                             },
                             [this] { post([this](AgentCore&) { told_version_ = 0; }); }}),
      streams_(streams_config(options_),
               [this](const StreamRequest& request) { return open_stream(request); }) {}

Agent::~Agent() {
  stop();
}

Status Agent::start() {
  ADL_TRY_STATUS(parts_.runtime.prepare());
  ADL_TRY(found, parts_.runtime.scan());
  ADL_TRY_STATUS(core_.load(found));
  core_.on_inventory(parts_.inventory.query(kInventoryLimit));
  log_info("agent", "{} instances on this machine, {} cards", found.size(),
           core_.cards().inventory().cards.size());
  // A stream may be asked for at once: it must find the disks that are here.
  give_out(core_.take_actions());
  threads_.emplace_back([this] { loop(); });
  for (std::size_t i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { work(); });
  threads_.emplace_back([this] { meter(); });
  ADL_TRY_STATUS(streams_.start());
  return link_.start();
}

void Agent::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  input_came_.notify_all();
  job_came_.notify_all();
  stop_came_.notify_all();
  link_.stop();
  streams_.stop();
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
  threads_.clear();
}

// ---- the loop

void Agent::post(Input input) {
  {
    const std::lock_guard lock(mutex_);
    inputs_.push_back(std::move(input));
  }
  input_came_.notify_one();
}

void Agent::loop() {
  for (;;) {
    std::deque<Input> inputs;
    {
      std::unique_lock lock(mutex_);
      input_came_.wait_for(lock, kTick, [&] { return stopping_ || !inputs_.empty(); });
      if (stopping_) return;
      inputs.swap(inputs_);
    }
    for (const auto& input : inputs) input(core_);
    give_out(core_.take_actions());
    tell_control();
  }
}

void Agent::give_out(std::vector<Action> actions) {
  auto running = core_.running();
  std::map<InstanceId, std::uint32_t> with_disk;
  for (const auto& [id, slot] : core_.disks()) with_disk[id] = slot;
  {
    const std::lock_guard lock(mutex_);
    running_ = std::move(running);
    with_disk_ = std::move(with_disk);
    for (auto& action : actions) jobs_.push_back(std::move(action));
  }
  job_came_.notify_all();
}

void Agent::tell_control() {
  for (auto& event : core_.take_events())
    link_.send_event({event.instance, std::move(event.type), std::move(event.message)});
  const auto now = parts_.clock.steady_now();
  if (core_.observed_version() == told_version_ && now - told_at_ < kTellEvery) return;
  link_.send_observed(core_.observed_set());
  told_version_ = core_.observed_version();
  told_at_ = now;
}

void Agent::work() {
  for (;;) {
    Action action;
    {
      std::unique_lock lock(mutex_);
      job_came_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      action = std::move(jobs_.front());
      jobs_.pop_front();
    }
    ActionResult result;
    {
      const auto mutex = lock_of(action.instance);
      std::unique_lock held(*mutex, std::defer_lock);
      if (holds_instance(action.kind)) held.lock();
      result = runner_.run(action);
    }
    const bool image_came = action.kind == ActionKind::kEnsureImage && result.status.ok();
    // Shared only because a function object must be copyable.
    auto shared = std::make_shared<ActionResult>(std::move(result));
    post([id = action.instance, shared](AgentCore& core) { core.on_result(id, *shared); });
    if (image_came) refresh_images();  // after the result: the start does not wait for it
  }
}

std::shared_ptr<std::mutex> Agent::lock_of(const InstanceId& instance) {
  const std::lock_guard lock(mutex_);
  auto& mutex = locks_[instance];
  if (!mutex) mutex = std::make_shared<std::mutex>();
  return mutex;
}

// ---- the meter

void Agent::meter() {
  for (std::int64_t round = 0;; ++round) {
    {
      std::unique_lock lock(mutex_);
      if (stop_came_.wait_for(lock, std::chrono::seconds{1}, [&] { return stopping_; })) return;
    }
    meter_once(round);
  }
}

void Agent::meter_once(std::int64_t round) {
  std::vector<RunningRun> runs;
  std::map<InstanceId, std::uint32_t> disks;
  {
    const std::lock_guard lock(mutex_);
    runs = running_;
    disks = with_disk_;
  }
  report_loads(runs);
  auto inventory = std::make_shared<Result<Inventory>>(parts_.inventory.query(kInventoryLimit));
  post([inventory](AgentCore& core) { core.on_inventory(*inventory); });
  if (inventory->ok())
    for (const auto& run : runs)
      if (run.open && !run.cards.empty()) {
        // Where init is away for a moment the next second brings the next sample.
        [[maybe_unused]] const auto sent =
            links_.samples(run.instance, print_samples(**inventory, run.cards));
      }
  if (round % kDiskRounds == 0)
    for (const auto& [id, slot] : disks)
      if (const auto used = parts_.runtime.disk_used_bytes(id); used.ok())
        post([one = id, bytes = *used](AgentCore& core) { core.on_disk_used(one, bytes); });
  if (round % kImageRounds == 0) refresh_images();
}

void Agent::report_loads(const std::vector<RunningRun>& runs) {
  const auto now = parts_.clock.steady_now();
  for (const auto& run : runs) {
    if (!run.open || run.cards.empty()) continue;
    const auto cpu = parts_.runtime.cpu_time_ns(run.instance);
    const auto status = parts_.runtime.status(run.instance);
    if (!cpu || !status.ok() || status->pid == 0) continue;
    const auto use = read_cgroup_use(status->pid);
    CardLoad load;
    load.utilization_percent =
        cpu_load_.percent(run.instance, *cpu, now, options_.core.split.processors);
    load.memory_used_bytes = use.memory_bytes / static_cast<std::int64_t>(run.cards.size());
    load.pids = use.pids;
    std::vector<CardLoad> loads;
    for (const auto& card : run.cards) {
      load.card = card;
      loads.push_back(load);
    }
    const auto told = parts_.cards.report_load(run.instance, loads);
    if (!told.ok())
      log_debug("agent", "load of {}: {}", run.instance.str(), told.error().message());
  }
}

void Agent::refresh_images() {
  auto images = parts_.runtime.list_images();
  if (!images.ok()) {
    log_warn("agent", "list images: {}", images.error().message());
    return;
  }
  post([list = std::move(images).value()](AgentCore& core) { core.on_images(list); });
}

}  // namespace autodl
