// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/images.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>

#include "base/crash_point.hpp"
#include "runtime/host_files.hpp"
#include "runtime/mounts.hpp"
#include "runtime/overlay.hpp"
#include "runtime/veil.hpp"

namespace autodl::runtime {
namespace {

namespace json = boost::json;

constexpr std::size_t kReferenceMax = 512;
constexpr std::size_t kEnvMax = 512;
constexpr std::size_t kEnvTextMax = 128 << 10;
constexpr std::size_t kLayersMax = 125;

bool is_digest(std::string_view text) {
  return text.size() == 71 && text.starts_with("sha256:") &&
         text.find_first_not_of("0123456789abcdef", 7) == std::string_view::npos;
}

std::string text_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string{};
}

const json::object* object_of(const json::object& object, std::string_view key) {
  const auto* value = object.if_contains(key);
  return value != nullptr ? value->if_object() : nullptr;
}

std::map<std::string, std::string> read_env(const json::object& image) {
  std::map<std::string, std::string> env;
  const auto* config = object_of(image, "Config");
  const auto* list = config != nullptr ? config->if_contains("Env") : nullptr;
  if (list == nullptr || !list->is_array()) return env;
  std::size_t size = 0;
  for (const auto& item : list->as_array()) {
    if (!item.is_string() || env.size() >= kEnvMax) continue;
    const std::string_view text = item.as_string();
    const auto sign = text.find('=');
    size += text.size();
    if (sign == 0 || sign == std::string_view::npos || size > kEnvTextMax ||
        text.find('\0') != std::string_view::npos)
      continue;
    env[std::string(text.substr(0, sign))] = std::string(text.substr(sign + 1));
  }
  return env;
}

std::vector<std::string> read_layers(const json::object& image) {
  std::vector<std::string> layers;
  const auto* driver = object_of(image, "GraphDriver");
  const auto* data = driver != nullptr ? object_of(*driver, "Data") : nullptr;
  if (data == nullptr) return layers;
  if (auto top = text_of(*data, "UpperDir"); !top.empty()) layers.push_back(std::move(top));
  const auto below = text_of(*data, "LowerDir");
  for (std::size_t at = 0; at < below.size();) {
    const auto end = std::min(below.find(':', at), below.size());
    if (end > at) layers.push_back(below.substr(at, end - at));
    at = end + 1;
  }
  return layers;
}

json::object to_json(const StoredImage& image) {
  json::object env;
  for (const auto& [name, value] : image.info.env) env[name] = value;
  return {{"reference", image.info.reference},
          {"digest", image.info.digest},
          {"size_bytes", image.info.size_bytes},
          {"workdir", image.info.workdir},
          {"env", std::move(env)},
          {"layers", json::value_from(image.layers)}};
}

Result<StoredImage> from_json(std::string_view text) {
  try {
    const auto value = json::parse(text);
    const auto& object = value.as_object();
    StoredImage image;
    image.info.reference = text_of(object, "reference");
    image.info.digest = text_of(object, "digest");
    image.info.workdir = text_of(object, "workdir");
    image.info.size_bytes = object.at("size_bytes").to_number<std::int64_t>();
    for (const auto& [name, item] : object.at("env").as_object())
      image.info.env[std::string(name)] = std::string(item.as_string());
    image.layers = json::value_to<std::vector<std::string>>(object.at("layers"));
    return image;
  } catch (const std::exception& failure) {
    return Error(ErrorKind::kInternal, "bad_record",
                 fmt::format("read an image's record: {}", failure.what()));
  }
}

Error unknown_image(const std::string& name) {
  return Error(ErrorKind::kNotFound, "unknown_image",
               fmt::format("image '{}' is not known here", name),
               "see the list of images, or name one that a registry has");
}

}  // namespace

Status check_reference(std::string_view reference) {
  const bool characters = reference.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "._-/:@+") == std::string_view::npos;
  const auto first = reference.empty() ? '-' : reference.front();
  const bool alphanumeric = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
                            (first >= '0' && first <= '9');
  if (characters && alphanumeric && reference.size() <= kReferenceMax &&
      reference.find("//") == std::string_view::npos &&
      reference.find("..") == std::string_view::npos)
    return {};
  return Error(ErrorKind::kInvalid, "bad_image_reference",
               fmt::format("'{}' is not an image reference", reference.substr(0, 100)),
               "write it as name:tag or registry/name@sha256:…");
}

Result<StoredImage> parse_inspect(std::string_view text, const std::string& reference) {
  boost::system::error_code failed;
  const auto value = json::parse(text, failed);
  const auto* list = failed ? nullptr : value.if_array();
  const auto* image = list != nullptr && !list->empty() ? list->front().if_object() : nullptr;
  if (image == nullptr) {
    return Error(ErrorKind::kInternal, "bad_inspect",
                 fmt::format("podman's description of image '{}' makes no sense", reference));
  }
  StoredImage stored;
  stored.info.reference = reference;
  stored.info.digest = "sha256:" + text_of(*image, "Id");
  const auto* size = image->if_contains("Size");
  if (size != nullptr && size->is_int64()) stored.info.size_bytes = size->as_int64();
  stored.info.env = read_env(*image);
  const auto* config = object_of(*image, "Config");
  if (config != nullptr) stored.info.workdir = text_of(*config, "WorkingDir").substr(0, 4096);
  stored.layers = read_layers(*image);
  if (!is_digest(stored.info.digest) || stored.layers.empty() ||
      stored.layers.size() > kLayersMax) {
    return Error(ErrorKind::kInvalid, "bad_image",
                 fmt::format("image '{}' has {} layers: 1 to {} can be used", reference,
                             stored.layers.size(), kLayersMax));
  }
  return stored;
}

Error pull_error(const std::string& reference, std::string_view words) {
  for (const char* sign : {"manifest unknown", "name unknown", "not found",
                           "repository does not exist", "did not resolve to an alias",
                           "access to the resource is denied", "no such image", "image not known"})
    if (words.find(sign) != std::string_view::npos) return unknown_image(reference);
  auto last = words.substr(words.size() > 300 ? words.size() - 300 : 0);
  while (!last.empty() && last.back() == '\n') last.remove_suffix(1);
  return Error(ErrorKind::kUnavailable, "pull_failed",
               fmt::format("pull image '{}': {}", reference, last), "try again later");
}

ImageStore::ImageStore(const RuntimeConfig& config)
    : config_(config),
      root_(config.image_root.empty() ? config.state_dir + "/images" : config.image_root),
      runroot_(config.image_runroot.empty() ? root_ + "-run" : config.image_runroot) {}

Status ImageStore::prepare() {
  ADL_TRY_STATUS(make_folder(root_, 0700));
  ADL_TRY_STATUS(make_folder(runroot_, 0700));
  ADL_TRY_STATUS(make_folder(config_.state_dir + "/pins", 0700));
  ADL_TRY_STATUS(make_folder(config_.state_dir + "/veils", 0700));
  const auto path = runroot_ + "/storage.conf";
  if (path_exists(path)) return {};
  return write_atomically(
      path, fmt::format("[storage]\ndriver = \"overlay\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
                        root_, runroot_));
}

ProcessOptions ImageStore::podman_options(std::chrono::milliseconds deadline) const {
  ProcessOptions options;
  options.deadline = deadline;
  options.output_max = 16U << 20;
  options.env = {"CONTAINERS_CONF=/dev/null",
                 "CONTAINERS_STORAGE_CONF=" + runroot_ + "/storage.conf"};
  for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy",
                           "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "REGISTRY_AUTH_FILE"})
    if (const char* value = std::getenv(name))
      options.env.push_back(fmt::format("{}={}", name, value));
  return options;
}

std::vector<std::string> ImageStore::podman(std::vector<std::string> arguments) const {
  std::vector<std::string> argv = {"podman",   "--root",           root_,  "--runroot",
                                   runroot_,   "--runtime",        "runc", "--cgroup-manager",
                                   "cgroupfs", "--events-backend", "none"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

std::string ImageStore::storage_stamp() const {
  struct stat info{};
  if (::stat((root_ + "/overlay-images/images.json").c_str(), &info) != 0) return "none";
  return fmt::format("{}-{}-{}.{}", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

std::string ImageStore::record_path(const std::string& digest) const {
  return fmt::format("{}/pins/{}.json", config_.state_dir, digest.substr(7));
}

Result<StoredImage> ImageStore::inspect(const std::string& reference) const {
  ADL_TRY(result, run_process(podman({"image", "inspect", "--format", "json", "--", reference}),
                              podman_options(std::chrono::seconds{30})));
  if (result.exit_code != 0) {
    if (result.err.find("image not known") != std::string::npos ||
        result.err.find("no such image") != std::string::npos ||
        result.err.find("failed to find image") != std::string::npos)
      return unknown_image(reference);
    return Error(ErrorKind::kUnavailable, "image_store_failed",
                 fmt::format("look up image '{}': {}", reference, result.err.substr(0, 300)));
  }
  return parse_inspect(result.out, reference);
}

Status ImageStore::pull(const std::string& reference, const PullProgress& progress) const {
  auto options = podman_options(std::chrono::hours{2});
  if (progress) {
    options.on_error_line = [&progress](std::string_view line) {
      if (!line.empty()) progress(std::string(line.substr(0, 200)), std::nullopt);
    };
  }
  crash_point("runtime.pull.before");
  ADL_TRY(result, run_process(podman({"pull", "--", reference}), options));
  crash_point("runtime.pull.after");
  if (result.exit_code != 0) return pull_error(reference, result.err);
  return {};
}

// The record lasts as long as instances may use the image; the veil is made with it.
Status ImageStore::pin(StoredImage& image) const {
  const auto hex = image.info.digest.substr(7);
  const auto veil = fmt::format("{}/veils/{}-1", config_.state_dir, hex);
  if (!path_exists(veil)) {
    const auto folder = fmt::format("{}/m/veil-{}", config_.run_dir, hex.substr(0, 16));
    const auto empty = folder + "/empty";  // an overlay without an upper wants two layers
    ADL_TRY_STATUS(unmount_all(folder + "/r"));
    ADL_TRY_STATUS(make_folder(empty, 0700));
    auto layers = image.layers;
    layers.push_back(empty);
    ADL_TRY_STATUS(mount_layers(folder, layers, -1));
    auto made = make_veil(folder + "/r", veil);
    ADL_TRY_STATUS(unmount_all(folder + "/r"));
    ADL_TRY_STATUS(remove_tree(folder));
    if (!made.ok()) return made.error();
  }
  image.layers.insert(image.layers.begin(), veil);
  crash_point("runtime.pin_image.before");
  ADL_TRY_STATUS(write_durably(record_path(image.info.digest), json::serialize(to_json(image))));
  crash_point("runtime.pin_image.after");
  return {};
}

Result<StoredImage> ImageStore::ensure(const std::string& reference, const PullProgress& progress) {
  ADL_TRY_STATUS(check_reference(reference));
  {
    const std::lock_guard lock(mutex_);
    if (const auto now = storage_stamp(); now != stamp_) {
      by_reference_.clear();
      stamp_ = now;
    }
    if (const auto known = by_reference_.find(reference); known != by_reference_.end())
      return known->second;
  }
  auto found = inspect(reference);
  if (!found.ok() && found.error().code() == "unknown_image") {
    ADL_TRY_STATUS(pull(reference, progress));
    found = inspect(reference);
  }
  if (!found.ok()) return found.error();
  auto image = std::move(found).value();
  const std::lock_guard veil_lock(veil_mutex_);
  ADL_TRY_STATUS(pin(image));
  const std::lock_guard lock(mutex_);
  by_reference_.insert_or_assign(reference, image);
  return image;
}

Result<StoredImage> ImageStore::pinned(const std::string& digest) const {
  if (!is_digest(digest)) return unknown_image(digest);
  auto text = read_small_file(record_path(digest));
  if (!text.ok() && text.error().kind() == ErrorKind::kNotFound) return unknown_image(digest);
  if (!text.ok()) return text.error();
  return from_json(*text);
}

Result<std::vector<ImageInfo>> ImageStore::list() {
  const auto stamp = storage_stamp();  // before podman looks: what comes meanwhile is asked again
  {
    const std::lock_guard lock(mutex_);
    if (stamp == list_stamp_) return list_;
  }
  ADL_TRY(result, run_checked(podman({"images", "--format", "json"}),
                              podman_options(std::chrono::seconds{30})));
  std::vector<ImageInfo> images;
  boost::system::error_code failed;
  const auto value = json::parse(result.out, failed);
  if (failed || !value.is_array()) return images;
  for (const auto& item : value.as_array()) {
    const auto* object = item.if_object();
    const auto* names = object != nullptr ? object->if_contains("Names") : nullptr;
    if (names == nullptr || !names->is_array()) continue;
    for (const auto& name : names->as_array()) {
      ImageInfo info;
      if (name.is_string()) info.reference = std::string(name.as_string());
      info.digest = "sha256:" + text_of(*object, "Id");
      const auto* size = object->if_contains("Size");
      if (size != nullptr && size->is_int64()) info.size_bytes = size->as_int64();
      images.push_back(std::move(info));
    }
  }
  const std::lock_guard lock(mutex_);
  list_stamp_ = stamp;
  list_ = images;
  return images;
}

}  // namespace autodl::runtime
