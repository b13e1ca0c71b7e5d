// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Each struct's fields are named once, in fields(); a Writer and a Reader walk the same list, so
// the two directions cannot drift apart.
#include "wire/set_json.hpp"

#include <fmt/format.h>
#include <boost/json.hpp>

#include <algorithm>
#include <limits>

#include "wire/json_fields.hpp"

namespace autodl {
namespace {

namespace json = boost::json;

constexpr std::int64_t kBytesMax = std::int64_t{1} << 60;
constexpr std::int64_t kMillisMax = std::int64_t{100} * 366 * 86'400 * 1'000;  // a century
constexpr std::size_t kInstancesMax = 20'000;
constexpr std::size_t kCardsMax = 1'024;
constexpr std::size_t kTextMax = 4'096;

// ---- enums as words

template <class E>
struct Words;
template <>
struct Words<Presence> {
  static constexpr std::string_view kList[] = {"present", "released"};
};
template <>
struct Words<StopBy> {
  static constexpr std::string_view kList[] = {"user", "rule", "lease", "platform"};
};
template <>
struct Words<ImageState> {
  static constexpr std::string_view kList[] = {"unknown", "pulling", "ready", "failed"};
};
template <>
struct Words<DiskState> {
  static constexpr std::string_view kList[] = {"none", "ready", "failed"};
};
template <>
struct Words<RunPhase> {
  static constexpr std::string_view kList[] = {"absent", "starting", "running", "stopping",
                                               "ended"};
};
template <>
struct Words<CardHealth> {
  static constexpr std::string_view kList[] = {"free", "held", "quarantined"};
};

// Card ids are UUIDs as NVML prints them: "GPU-…", "MIG-…".
bool is_card_id(std::string_view text) {
  if (text.empty() || text.size() > 96) return false;
  for (const char c : text) {
    const bool good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '_';
    if (!good) return false;
  }
  return true;
}

template <class Tag>
bool id_ok(const Id<Tag>& id) {
  return is_ulid(id.str());
}
bool id_ok(const CardId& id) {
  return is_card_id(id.str());
}
bool id_ok(const NodeId& id) {
  return is_card_id(id.str());
}  // a node's name, or a ULID

// ---- writing

class Writer {
 public:
  json::object take() { return std::move(object_); }

  // What can't be read would make the whole set unreadable, again and again: words of others (a
  // tool's error, a driver's names and figures) are written so that they can be.
  void text(std::string_view name, const std::string& value, std::size_t max) {
    object_[name] = readable_text(value, max);
  }
  void flag(std::string_view name, bool value) { object_[name] = value; }
  template <class N>
  void number(std::string_view name, N value, std::int64_t low, std::int64_t high) {
    object_[name] = std::clamp(static_cast<std::int64_t>(value), low, high);
  }
  template <class N>
  void number(std::string_view name, const std::optional<N>& value, std::int64_t low,
              std::int64_t high) {
    const auto plain = static_cast<std::int64_t>(value.value_or(N{}));
    if (value && plain >= low && plain <= high) object_[name] = plain;
  }
  void counter(std::string_view name, std::uint64_t value) { object_[name] = value; }
  template <class E>
  void word(std::string_view name, E value) {
    object_[name] = Words<E>::kList[static_cast<std::size_t>(value)];
  }
  template <class E>
  void word(std::string_view name, const std::optional<E>& value) {
    if (value) word(name, *value);
  }
  template <class I>
  void id(std::string_view name, const I& value) {
    object_[name] = value.str();
  }
  void optional_text(std::string_view name, const std::optional<std::string>& value, std::size_t) {
    if (value) object_[name] = *value;
  }
  template <class I>
  void optional_id(std::string_view name, const I& value) {
    if (!value.empty()) object_[name] = value.str();
  }
  template <class S>
  void optional(std::string_view name, const std::optional<S>& value) {
    if (value) object_[name] = write(*value);
  }
  template <class S>
  void list(std::string_view name, const std::vector<S>& values, std::size_t) {
    json::array out;
    out.reserve(values.size());
    for (const auto& value : values) out.emplace_back(write(value));
    object_[name] = std::move(out);
  }
  void ids(std::string_view name, const std::vector<CardId>& values, std::size_t) {
    json::array out;
    for (const auto& value : values) out.emplace_back(value.str());
    object_[name] = std::move(out);
  }
  void texts(std::string_view name, const std::vector<std::string>& values, std::size_t,
             std::size_t) {
    json::array out;
    for (const auto& value : values) out.emplace_back(value);
    object_[name] = std::move(out);
  }
  void map(std::string_view name, const std::map<std::string, std::string>& values, std::size_t,
           std::size_t) {
    json::object out;
    for (const auto& [key, value] : values) out[key] = value;
    object_[name] = std::move(out);
  }

  template <class S>
  static json::object write(const S& value);

 private:
  json::object object_;
};

// ---- reading

// Walks one object; the first fault wins and stops all further reading.
class Reader {
 public:
  Reader(const json::object& object, std::string path, std::string& fault)
      : object_(object), path_(std::move(path)), fault_(fault) {}

  void text(std::string_view name, std::string& out, std::size_t max) {
    if (const auto* value = find(name)) read_text(*value, where(name), out, max);
  }
  void optional_text(std::string_view name, std::optional<std::string>& out, std::size_t max) {
    const auto* value = find(name);
    if (value != nullptr) read_text(*value, where(name), out.emplace(), max);
  }
  void flag(std::string_view name, bool& out) {
    const auto* value = find(name);
    if (value == nullptr) return;
    if (!value->is_bool()) return fail(where(name), "not true or false");
    out = value->get_bool();
  }
  template <class N>
  void number(std::string_view name, N& out, std::int64_t low, std::int64_t high) {
    const auto* value = find(name);
    if (value == nullptr) return;
    std::int64_t got = 0;
    if (value->is_int64()) {
      got = value->get_int64();
    } else if (value->is_uint64() &&
               value->get_uint64() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      got = static_cast<std::int64_t>(value->get_uint64());
    } else {
      return fail(where(name), "not a whole number");
    }
    if (got < low || got > high) {
      return fail(where(name), fmt::format("{} is not within {} and {}", got, low, high));
    }
    out = static_cast<N>(got);
  }
  template <class N>
  void number(std::string_view name, std::optional<N>& out, std::int64_t low, std::int64_t high) {
    if (find(name) != nullptr) number(name, out.emplace(), low, high);
  }
  void counter(std::string_view name, std::uint64_t& out) {
    const auto* value = find(name);
    if (value == nullptr) return;
    if (value->is_uint64()) {
      out = value->get_uint64();
    } else if (value->is_int64() && value->get_int64() >= 0) {
      out = static_cast<std::uint64_t>(value->get_int64());
    } else {
      fail(where(name), "not a whole number from 0 on");
    }
  }
  template <class E>
  void word(std::string_view name, E& out) {
    const auto* value = find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return fail(where(name), "not a text");
    std::size_t index = 0;
    for (const auto known : Words<E>::kList) {
      if (std::string_view(value->get_string()) == known) {
        out = static_cast<E>(index);
        return;
      }
      ++index;
    }
    fail(where(name), "an unknown word");
  }
  template <class E>
  void word(std::string_view name, std::optional<E>& out) {
    if (find(name) != nullptr) word(name, out.emplace());
  }
  template <class I>
  void id(std::string_view name, I& out) {
    std::string value;
    text(name, value, 96);
    out = I(std::move(value));
    if (fault_.empty() && !id_ok(out)) fail(where(name), "not an id");
  }
  template <class I>
  void optional_id(std::string_view name, I& out) {
    if (find(name) != nullptr) id(name, out);
  }
  template <class S>
  void optional(std::string_view name, std::optional<S>& out) {
    if (const auto* value = find(name)) read(*value, where(name), out.emplace());
  }
  template <class S>
  void list(std::string_view name, std::vector<S>& out, std::size_t max) {
    each(name, max, [&](const json::value& value, const std::string& path) {
      read(value, path, out.emplace_back());
    });
  }
  void ids(std::string_view name, std::vector<CardId>& out, std::size_t max) {
    each(name, max, [&](const json::value& value, const std::string& path) {
      std::string id_text;
      read_text(value, path, id_text, 96);
      if (fault_.empty() && !is_card_id(id_text)) fail(path, "not a card's id");
      out.emplace_back(std::move(id_text));
    });
  }
  void texts(std::string_view name, std::vector<std::string>& out, std::size_t max,
             std::size_t text_max) {
    each(name, max, [&](const json::value& value, const std::string& path) {
      read_text(value, path, out.emplace_back(), text_max);
    });
  }
  void map(std::string_view name, std::map<std::string, std::string>& out, std::size_t max,
           std::size_t text_max) {
    const auto* value = find(name);
    if (value == nullptr) return;
    if (!value->is_object()) return fail(where(name), "not an object");
    if (value->get_object().size() > max) return fail(where(name), "too many entries");
    for (const auto& [key, item] : value->get_object()) {
      if (key.empty() || key.size() > 256 || key.find('\0') != json::string_view::npos) {
        return fail(where(name), "a name in it is empty, too long or holds a NUL");
      }
      read_text(item, where(name) + "." + std::string(key), out[std::string(key)], text_max);
    }
  }

 private:
  template <class S>
  void read(const json::value& value, const std::string& path, S& out);

  template <class F>
  void each(std::string_view name, std::size_t max, const F& read_one) {
    const auto* value = find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return fail(where(name), "not a list");
    if (value->get_array().size() > max) {
      return fail(where(name), fmt::format("more than {} entries", max));
    }
    std::size_t index = 0;
    for (const auto& item : value->get_array()) {
      read_one(item, fmt::format("{}[{}]", where(name), index++));
      if (!fault_.empty()) return;
    }
  }
  void read_text(const json::value& value, const std::string& path, std::string& out,
                 std::size_t max) {
    if (!value.is_string()) return fail(path, "not a text");
    const std::string_view got = value.get_string();
    if (got.size() > max) return fail(path, fmt::format("longer than {} bytes", max));
    if (got.find('\0') != std::string_view::npos) return fail(path, "holds a NUL");
    out.assign(got);
  }
  const json::value* find(std::string_view name) const {
    if (!fault_.empty()) return nullptr;
    const auto* value = object_.if_contains(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  std::string where(std::string_view name) const {
    return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  }
  void fail(const std::string& path, std::string_view what) {
    if (fault_.empty()) fault_ = fmt::format("{}: {}", path, what);
  }

  const json::object& object_;
  std::string path_;
  std::string& fault_;
};

// ---- the fields, once

template <class Io>
void fields(Io& io, auto& v, const StopRequest*) {
  io.word("by", v.by);
  io.number("grace_ms", v.grace_ms, 0, 3'600'000);
}
template <class Io>
void fields(Io& io, auto& v, const DesiredRun*) {
  io.id("id", v.id);
  io.number("attempt", v.attempt, 1, 1'000'000);
  io.ids("cards", v.cards, 64);
  io.optional_text("command", v.command, 65'536);
  io.text("workdir", v.workdir, kTextMax);
  io.map("env", v.env, 1'024, 131'072);  // as validate() allows
  io.number("paid_until_ms", v.paid_until_ms, -kMillisMax, kMillisMax);
  io.optional("stop", v.stop);
}
template <class Io>
void fields(Io& io, auto& v, const DesiredInstance*) {
  io.id("id", v.id);
  io.word("presence", v.presence);
  io.text("name", v.name, 256);
  io.text("image", v.image, 512);
  io.text("image_digest", v.image_digest, 128);
  io.number("disk_bytes", v.disk_bytes, 0, kBytesMax);
  io.number("slot", v.slot, 0, 1'000'000);
  io.texts("authorized_keys", v.authorized_keys, 256, 16'384);
  io.optional("run", v.run);
}
template <class Io>
void fields(Io& io, auto& v, const DesiredSet*) {
  io.text("cluster", v.cluster, 64);
  io.counter("epoch", v.epoch);
  io.counter("revision", v.revision);
  io.list("instances", v.instances, kInstancesMax);
}
template <class Io>
void fields(Io& io, auto& v, const RunResult*) {
  io.flag("started", v.started);
  io.flag("lost", v.lost);
  io.number("exit_code", v.exit_code, 0, 255);
  io.number("signal", v.signal, 1, 64);
  io.flag("out_of_memory", v.out_of_memory);
  io.text("reason", v.reason, kTextMax);
  io.word("stopped_by", v.stopped_by);
  io.flag("shutdown_inside", v.shutdown_inside);
  io.flag("start_failed", v.start_failed);
}
template <class Io>
void fields(Io& io, auto& v, const ObservedRun*) {
  io.id("id", v.id);
  io.word("phase", v.phase);
  io.number("ready_utc_ms", v.ready_utc_ms, 0, kMillisMax);
  io.number("running_ms", v.running_ms, 0, kMillisMax);
  io.ids("cards", v.cards, 64);
  io.optional("result", v.result);
}
template <class Io>
void fields(Io& io, auto& v, const ObservedInstance*) {
  io.id("id", v.id);
  io.flag("unknown", v.unknown);
  io.flag("destroyed", v.destroyed);
  io.word("image", v.image);
  io.text("image_digest", v.image_digest, 128);
  io.number("image_percent", v.image_percent, 0, 100);
  io.word("disk", v.disk);
  io.text("problem", v.problem, kTextMax);
  io.text("remedy", v.remedy, kTextMax);
  io.number("disk_used_bytes", v.disk_used_bytes, 0, kBytesMax);
  io.text("host_key", v.host_key, 1'024);
  io.optional("run", v.run);
}
template <class Io>
void fields(Io& io, auto& v, const ObservedCard*) {
  io.id("id", v.id);
  io.text("model", v.model, 128);
  io.text("type", v.type, 128);
  io.number("memory_bytes", v.memory_bytes, 0, kBytesMax);
  io.word("health", v.health);
  io.text("reason", v.reason, kTextMax);
  io.number("utilization_percent", v.utilization_percent, 0, 100);
  io.number("memory_used_bytes", v.memory_used_bytes, 0, kBytesMax);
  io.number("temperature_c", v.temperature_c, -273, 1'000);
  io.optional_id("holder", v.holder);
}
template <class Io>
void fields(Io& io, auto& v, const ObservedImage*) {
  io.text("reference", v.reference, 512);
  io.text("digest", v.digest, 128);
  io.number("size_bytes", v.size_bytes, 0, kBytesMax);
}
template <class Io>
void fields(Io& io, auto& v, const ObservedSet*) {
  io.id("node", v.node);
  io.text("boot_id", v.boot_id, 64);
  io.counter("desired_revision", v.desired_revision);
  io.flag("simulated_cards", v.simulated_cards);
  io.text("driver_version", v.driver_version, 64);
  io.number("cuda_version", v.cuda_version, 0, 1'000'000);
  io.list("instances", v.instances, kInstancesMax);
  io.list("cards", v.cards, kCardsMax);
  io.list("images", v.images, 10'000);
}

template <class S>
json::object Writer::write(const S& value) {
  Writer writer;
  fields(writer, value, static_cast<const S*>(nullptr));
  return writer.take();
}

template <class S>
void Reader::read(const json::value& value, const std::string& path, S& out) {
  if (!value.is_object()) return fail(path, "not an object");
  Reader reader(value.get_object(), path, fault_);
  fields(reader, out, static_cast<const S*>(nullptr));
}

template <class S>
Result<S> decode(std::string_view text, const char* code) {
  json::parse_options options;
  options.max_depth = 16;
  boost::system::error_code failure;
  const json::value parsed = json::parse(text, failure, {}, options);
  if (failure) return Error(ErrorKind::kInvalid, code, "not JSON: " + failure.message());
  if (!parsed.is_object()) return Error(ErrorKind::kInvalid, code, "not an object");
  S out;
  std::string fault;
  Reader reader(parsed.get_object(), "", fault);
  fields(reader, out, static_cast<const S*>(nullptr));
  if (!fault.empty()) return Error(ErrorKind::kInvalid, code, fault);
  return out;
}

}  // namespace

std::string encode_desired(const DesiredSet& set) {
  return json::serialize(Writer::write(set));
}
std::string encode_observed(const ObservedSet& set) {
  return json::serialize(Writer::write(set));
}

Result<DesiredSet> decode_desired(std::string_view text) {
  return decode<DesiredSet>(text, "bad_desired_set");
}
Result<ObservedSet> decode_observed(std::string_view text) {
  return decode<ObservedSet>(text, "bad_observed_set");
}

}  // namespace autodl
