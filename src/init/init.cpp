// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Start-up and the conversation with the node.
#include "init/init.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "init/access_keys.hpp"
#include "init/environment.hpp"
#include "init/files.hpp"
#include "init/init_incoming.hpp"

namespace autodl::init {
namespace {

constexpr const char* kLdconfig = "/opt/autodl/sbin/ldconfig";
constexpr const char* kDriverLibraries = "/usr/lib/autodl-nvidia";
// A shutdown typed inside ends the instance even where no node answers.
constexpr Millis kShutdownPatience{10'000};
constexpr Millis kShutdownGrace{10'000};

}  // namespace

Init::Init(InitPaths paths)
    : paths_(std::move(paths)),
      ssh_(loop_, children_, paths_.run_dir),
      api_(loop_, [this](const std::string& method, const std::string& path,
                         bool root) { return on_api(method, path, root); }),
      host_{loop_, children_, {}, {}, [this](Stream* stream) {
              loop_.later([this, stream] { streams_.erase(stream); });
            }} {}

Init::~Init() = default;

Status Init::begin() {
  // Nothing inside may look into this process, whose memory holds the run's key.
  prctl(PR_SET_DUMPABLE, 0);
  signal(SIGPIPE, SIG_IGN);
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaddset(&handled, number);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  signals_ = UniqueFd(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return errno_error("make a signalfd", errno);
  loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo == SIGCHLD) continue;
      // What busybox's own halt (USR1), poweroff (USR2) and reboot (TERM) send to PID 1: its shell
      // runs these applets whatever lies on PATH. Only the instance's root can send them.
      if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2)
        on_shutdown();
      else
        begin_stop(kShutdownGrace);  // runc's own stop, without a node: the same stages
    }
    children_.reap();
    if (stopping_ && !others_left()) enter_stop_stage(StopStage::kEnd);
  });

  const std::string key_path = paths_.boot_dir + "/key";
  ADL_TRY(key, read_small_file(key_path, kRunKeyBytes));
  unlink(key_path.c_str());
  if (key.size() != kRunKeyBytes)
    return Error(ErrorKind::kInvalid, "bad_key",
                 fmt::format("'{}' has {} bytes, not {}", key_path, key.size(), kRunKeyBytes));
  key_ = std::move(key);
  unlink((paths_.boot_dir + "/exit.json").c_str());

  // What an image may lack. Where one can't be made the image is read-only there, which is its
  // owner's wish; what needs it says so.
  static_cast<void>(ensure_folder("/root", 0700));
  static_cast<void>(ensure_folder("/tmp", 01777));
  static_cast<void>(ensure_folder("/var", 0755));
  static_cast<void>(ensure_folder("/var/tmp", 01777));
  static_cast<void>(ensure_folder("/etc", 0755));
  ADL_TRY_STATUS(ensure_folder(paths_.run_dir, 0755));
  ADL_TRY_STATUS(api_.listen(paths_.run_dir + "/api.sock"));
  return listen();
}

int Init::run() {
  loop_.run();
  return exit_code_;
}

// ---- control

void Init::take_control(UniqueFd socket) {
  drop_control();  // the newest connection is the node's; an older one is dead or about to be
  control_ = std::make_unique<FrameConn>(
      loop_, std::move(socket),
      FrameConn::Handlers{
          [this](const Frame& frame) { on_control_frame(frame); }, [this] { drop_control(); }, {}});
}

void Init::drop_control() {
  // Destroyed later: this may run within its own handler. Shared only to fit into a std::function.
  const std::shared_ptr<FrameConn> old = std::move(control_);
  loop_.later([old] {});
}

void Init::send(InitFrame type, std::string_view payload) {
  if (control_) control_->send(type, payload);
}

void Init::send_error(const Error& error) {
  send(InitFrame::kError, to_json(InitError{error.code(), error.message()}));
}

bool Init::is_this_run(const RunId& run) {
  if (setup_ && setup_->run == run) return true;
  send_error(Error(ErrorKind::kConflict, "other_run",
                   fmt::format("run '{}' is not the one set up here", run.str())));
  return false;
}

void Init::on_control_frame(const Frame& frame) {
  switch (static_cast<InitFrame>(frame.type)) {
    case InitFrame::kSetup: return on_setup(frame.payload);
    case InitFrame::kGo: {
      const auto run = parse_run(frame.payload);
      if (!run.ok()) return send_error(run.error());
      if (is_this_run(run.value())) on_go();
      return;
    }
    case InitFrame::kStop: {
      const auto stop = parse_init_stop(frame.payload);
      if (!stop.ok()) return send_error(stop.error());
      if (is_this_run(stop.value().run)) begin_stop(Millis(stop.value().grace_ms));
      return;
    }
    case InitFrame::kKeys: return on_keys(frame.payload);
    case InitFrame::kSamples: return on_samples(frame.payload);
    case InitFrame::kPing: return send(InitFrame::kPong, frame.payload.substr(0, 64));
    default: return;  // a newer node's frame changes nothing
  }
}

void Init::on_setup(const std::string& payload) {
  const auto setup = parse_init_setup(payload);
  if (!setup.ok()) return send_error(setup.error());
  if (setup_ && setup_->run != setup.value().run) {
    send_error(Error(
        ErrorKind::kConflict, "other_run",
        fmt::format("this is run '{}', not '{}'", setup_->run.str(), setup.value().run.str())));
    return;
  }
  if (ready_) {  // dialled again: the state as it is, and what the node may have missed
    send(InitFrame::kReady, to_json(*ready_));
    if (shutdown_asked_) send(InitFrame::kShutdown, run_to_json(setup_->run));
    if (ended_) send(InitFrame::kEnded, to_json(*ended_));
    return;
  }
  if (!preparing_) apply_setup(setup.value());
}

void Init::apply_setup(const InitSetup& setup) {
  setup_ = setup;
  host_.environment = make_environment(setup);
  host_.workdir = setup.workdir;
  const auto written = [&]() -> Status {
    ADL_TRY_STATUS(
        write_file_atomic(paths_.run_dir + "/env", to_env_file(host_.environment), 0600));
    // For people who look, and for tools: all keys; logins use a file made for each client.
    std::string all;
    for (const AccessKey& key : setup.keys) all += key.public_key + "\n";
    ADL_TRY_STATUS(write_file_atomic(paths_.run_dir + "/authorized_keys", all, 0600));
    return ssh_.prepare(setup);
  }();
  if (!written.ok()) return send_error(written.error());
  preparing_ = true;
  if (setup.cards)
    run_ldconfig();
  else
    run_self_test();
}

// The driver's libraries become findable without any file of the image but ld.so.cache being
// touched.
void Init::run_ldconfig() {
  ProcessSpec spec;
  spec.argv = {kLdconfig, kDriverLibraries};
  spec.env = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}};
  spec.cwd = "/";
  const auto pid = start_process(spec);
  if (!pid.ok()) {
    send(InitFrame::kReport, to_json(InitReport{"warning", "ldconfig: " + pid.error().message()}));
    return run_self_test();
  }
  const pid_t child = pid.value();
  const auto timer = loop_.after(Millis(20'000), [child] { kill(child, SIGKILL); });
  children_.on_exit(child, [this, timer](ExitStatus status) {
    loop_.cancel(timer);
    if (status.exit_code != 0)
      send(InitFrame::kReport,
           to_json(InitReport{"warning",
                              "the image's library cache could not be rebuilt (ldconfig): programs "
                              "may not find the driver's libraries"}));
    run_self_test();
  });
}

void Init::run_self_test() {
  ssh_.self_test([this](Result<std::string> banner) {
    preparing_ = false;
    if (!banner.ok()) return send_error(banner.error());
    ready_ = InitReady{setup_->run, banner.value()};
    send(InitFrame::kReady, to_json(*ready_));
  });
}

void Init::on_go() {
  if (!ready_) return send_error(Error(ErrorKind::kConflict, "not_ready", "go came before ready"));
  if (going_) return;
  going_ = true;
  if (setup_->command) start_command();
}

void Init::on_keys(const std::string& payload) {
  auto keys = parse_keys(payload);
  if (!keys.ok()) return send_error(keys.error());
  std::string all;
  for (const AccessKey& key : keys.value()) all += key.public_key + "\n";
  static_cast<void>(write_file_atomic(paths_.run_dir + "/authorized_keys", all, 0600));
  ssh_.set_keys(std::move(keys).value());
}

void Init::on_samples(const std::string& payload) {
  if (auto status = check_samples(payload); !status.ok()) return send_error(status.error());
  samples_ = payload;
}

// ---- questions from inside

HttpReply Init::on_api(const std::string& method, const std::string& path, bool root) {
  const bool get = method == "GET";
  if (path == "/v1/gpus" && get) {
    if (!samples_.empty()) return {200, samples_};
    if (setup_ && !setup_->cards) return {200, R"({"gpus":[]})"};
    return {503, R"({"code":"no_samples","detail":"no figures have come yet: try again"})"};
  }
  if (path == "/v1/instance" && get && setup_) {
    return {200, boost::json::serialize(boost::json::object{{"id", setup_->instance.str()},
                                                            {"name", setup_->name},
                                                            {"run", setup_->run.str()},
                                                            {"command", bool(setup_->command)}})};
  }
  if (path == "/v1/shutdown" && method == "POST") {
    if (!root) return {403, R"({"code":"denied","detail":"only root may end the instance"})"};
    on_shutdown();
    return {202, R"({"status":"shutting down"})"};
  }
  if (path == "/v1/gpus" || path == "/v1/instance" || path == "/v1/shutdown")
    return {405, R"({"code":"bad_method","detail":"this path takes another method"})"};
  return {404, R"({"code":"not_found","detail":"no such path"})"};
}

void Init::on_shutdown() {
  if (shutdown_asked_) return;
  shutdown_asked_ = true;
  if (setup_) send(InitFrame::kShutdown, run_to_json(setup_->run));
  loop_.after(kShutdownPatience, [this] { begin_stop(kShutdownGrace); });
}

}  // namespace autodl::init
