// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What goes through streams: files, logs, exec; with a worker, a log file and an init of the
// test's own behind the descriptors.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <list>

#include "control/api/testing/api_fixture.hpp"
#include "http/sse.hpp"
#include "wire/api_signature.hpp"
#include "wire/file_messages.hpp"
#include "wire/frames.hpp"

namespace autodl {
namespace {

using testing::ApiFixture;

// A file worker over a map, in a thread per channel; speaks wire/file_messages.hpp.
class FakeWorker {
 public:
  ~FakeWorker() {
    for (auto& thread : threads_) thread.join();
  }
  Result<UniqueFd> open() {
    int fds[2];
    ADL_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    const std::lock_guard lock(mutex_);
    ++opened;
    threads_.emplace_back([this, fd = fds[1]] { serve(UniqueFd(fd)); });
    return UniqueFd(fds[0]);
  }
  std::map<std::string, std::string> files;  // whole ones and ".part TICKET"
  int opened = 0;

 private:
  struct Channel {
    PutBegin begin;
    std::optional<PutPart> part;
    std::string part_bytes;
  };

  void serve(UniqueFd fd) {
    FrameReader reader;
    Channel channel;
    char buffer[65536];
    while (true) {
      const auto got = ::recv(fd.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return;
      reader.put({buffer, static_cast<std::size_t>(got)});
      while (true) {
        auto frame = reader.next();
        if (!frame.ok()) return;
        if (!*frame) break;
        const auto reply = answer(channel, **frame);
        ::send(fd.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
      }
    }
  }

  static std::string refuse(const char* code, ErrorKind kind = ErrorKind::kInvalid) {
    return file_frame(FileFrame::kError, to_json(Error(kind, code, code)));
  }

  std::string answer(Channel& channel, const Frame& frame) {
    const std::lock_guard lock(mutex_);
    switch (static_cast<FileFrame>(frame.type)) {
      case FileFrame::kPutBegin: {
        channel.begin = *parse_put_begin(frame.payload);
        return received(channel);
      }
      case FileFrame::kPutPart: channel.part = *parse_put_part(frame.payload); return {};
      case FileFrame::kData: return take_data(channel, frame.payload);
      case FileFrame::kPutCommit: {
        const auto bytes = files[part_name(channel.begin.ticket)];
        if (sha256_hex(bytes) != parse_put_commit(frame.payload)->sha256)
          return refuse("hash_mismatch");
        files.erase(part_name(channel.begin.ticket));
        files[channel.begin.path] = bytes;
        return file_frame(FileFrame::kOk, to_json(FileStat{}));
      }
      case FileFrame::kPutAbort:
        files.erase(part_name(parse_put_abort(frame.payload)->ticket));
        return file_frame(FileFrame::kOk, "{}");
      case FileFrame::kGet: return get(*parse_file_get(frame.payload));
      case FileFrame::kList: return list();
      default: return file_frame(FileFrame::kOk, to_json(FileStat{}));
    }
  }

  static std::string part_name(const std::string& ticket) { return ".part " + ticket; }

  std::string received(const Channel& channel) {
    const auto size = static_cast<std::int64_t>(files[part_name(channel.begin.ticket)].size());
    return file_frame(FileFrame::kOk, to_json(Received{size}));
  }

  std::string take_data(Channel& channel, const std::string& bytes) {
    channel.part_bytes += bytes;
    if (static_cast<std::int64_t>(channel.part_bytes.size()) < channel.part->length) return {};
    const auto part = std::exchange(channel.part_bytes, {});
    if (sha256_hex(part) != channel.part->sha256) return refuse("hash_mismatch");
    auto& file = files[part_name(channel.begin.ticket)];
    const auto offset = static_cast<std::size_t>(channel.part->offset);
    if (offset > file.size()) return refuse("gap", ErrorKind::kConflict);
    file.resize(offset);
    file += part;
    return received(channel);
  }

  std::string get(const FileGet& wish) {
    const auto found = files.find(wish.path);
    if (found == files.end()) return refuse("no_such_file", ErrorKind::kNotFound);
    const auto etag = sha256_hex(found->second).substr(0, 8);
    if (!wish.etag.empty() && wish.etag != etag)
      return refuse("file_changed", ErrorKind::kConflict);
    const auto bytes = found->second.substr(static_cast<std::size_t>(wish.offset),
                                            static_cast<std::size_t>(wish.length));
    std::string reply;
    for (std::size_t at = 0; at < bytes.size(); at += 1 << 19)
      reply += file_frame(FileFrame::kReplyData, bytes.substr(at, 1 << 19));
    GetEnd end;
    end.length = static_cast<std::int64_t>(bytes.size());
    end.sha256 = sha256_hex(bytes);
    end.size = static_cast<std::int64_t>(found->second.size());
    end.etag = etag;
    return reply + file_frame(FileFrame::kEnd, to_json(end));
  }

  std::string list() {
    std::vector<FileStat> entries;
    for (const auto& [path, bytes] : files) {
      FileStat stat;
      stat.path = path.substr(1);
      stat.size = static_cast<std::int64_t>(bytes.size());
      entries.push_back(stat);
    }
    return file_frame(FileFrame::kEntries, to_json(entries)) +
           file_frame(FileFrame::kEnd, to_json(ListEnd{}));
  }

  std::mutex mutex_;
  std::list<std::thread> threads_;
};

class Streams : public ApiFixture {
 protected:
  ~Streams() override { stop(); }  // the worker's threads end when the channels are closed
  void serve_files() {
    streams_.on("file", [this](const StreamWish&) { return worker_.open(); });
  }
  std::string open_upload(const std::string& id, const std::string& bytes) {
    const auto opened = call("POST", "/api/v1/instances/" + id + "/transfers",
                             fmt::format(R"({{"path":"/root/a.bin","size":{},"sha256":"{}"}})",
                                         bytes.size(), sha256_hex(bytes)));
    EXPECT_EQ(opened.status, 201) << opened.raw.body;
    received_ = opened.text("received_bytes");
    return "/api/v1/instances/" + id + "/transfers/" + opened.text("ticket");
  }
  Answer put(const std::string& upload, int number, const std::string& part,
             const std::string& hash) {
    return call("PUT", fmt::format("{}/parts/{}", upload, number), part,
                {{"X-Autodl-Content-SHA256", "UNSIGNED-PAYLOAD"}, {"X-Autodl-Part-SHA256", hash}});
  }
  FakeWorker worker_;
  std::string received_;
};

std::string many_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

TEST_F(Streams, Upload_InPartsResumedAndComplete) {
  serve_files();
  const auto id = create();
  wait_for_state(id, "created");
  constexpr std::size_t kPart = 8 << 20;
  const auto bytes = many_bytes(kPart + 1'000'000);
  const auto first = bytes.substr(0, kPart), second = bytes.substr(kPart);
  const auto upload = open_upload(id, bytes);
  EXPECT_EQ(received_, "0");
  EXPECT_EQ(put(upload, 1, second, sha256_hex(second)).text("code"), "gap");
  EXPECT_EQ(put(upload, 0, first, sha256_hex(second)).text("code"), "hash_mismatch");
  EXPECT_EQ(put(upload, 0, first, sha256_hex(first)).text("received_bytes"), "8388608");
  // Opened again: the same ticket, and what is there is known.
  EXPECT_EQ(open_upload(id, bytes), upload);
  EXPECT_EQ(received_, "8388608");
  EXPECT_EQ(put(upload, 0, first, sha256_hex(first)).status, 200);  // a repeated part
  EXPECT_EQ(put(upload, 1, second, sha256_hex(second)).status, 200);
  const auto done = call("POST", upload + "/complete", "{}");
  EXPECT_EQ(done.status, 200) << done.raw.body;
  EXPECT_EQ(worker_.files["/root/a.bin"], bytes);
  EXPECT_EQ(call("POST", upload + "/complete", "{}").text("code"), "no_such_ticket");
  EXPECT_NE(call("GET", "/api/v1/instances/" + id + "/events?limit=200").raw.body.find("uploaded"),
            std::string::npos);
  EXPECT_LE(worker_.opened, 3);  // channels are used again
}

TEST_F(Streams, Upload_WrongRequests) {
  serve_files();
  const auto id = create();
  wait_for_state(id, "created");
  const std::string base = "/api/v1/instances/" + id + "/transfers";
  const std::string hash(64, 'a');
  for (const char* path : {"", "relative", "/a/../b", "/root/.autodl-part-x"})
    EXPECT_EQ(
        call("POST", base, fmt::format(R"({{"path":"{}","size":1,"sha256":"{}"}})", path, hash))
            .status,
        422)
        << path;
  EXPECT_EQ(call("POST", base, R"({"path":"/a","size":1,"sha256":"x"})").text("code"), "bad_field");
  EXPECT_EQ(call("POST", base, R"({"path":"/a","size":-1})").text("code"), "bad_field");
  const std::string bytes = "hello";
  const auto upload = open_upload(id, bytes);
  EXPECT_EQ(put(upload, 1, bytes, sha256_hex(bytes)).text("code"), "bad_part");
  EXPECT_EQ(put(upload, 0, "hell", sha256_hex("hell")).text("code"), "bad_part");
  EXPECT_EQ(put(upload, 0, bytes, "nohash").text("code"), "bad_part");
  EXPECT_EQ(call("PUT", upload + "/parts/0", bytes, {{"X-Autodl-Part-SHA256", hash}}).text("code"),
            "bad_signature");
  EXPECT_EQ(call("POST", upload + "/complete", "{}").text("code"), "hash_mismatch");
  EXPECT_EQ(call("DELETE", upload).status, 204);
  EXPECT_EQ(put(upload, 0, bytes, sha256_hex(bytes)).text("code"), "no_such_ticket");
}

TEST_F(Streams, Files_ReadListAndMake) {
  serve_files();
  worker_.files["/root/out"] = many_bytes(3'000'000);
  const auto id = create();
  wait_for_state(id, "created");
  const std::string base = "/api/v1/instances/" + id;
  const auto part =
      call("GET", base + "/files/content?path=%2Froot%2Fout&offset=100&length=2000000");
  ASSERT_EQ(part.status, 200) << part.raw.body;
  EXPECT_EQ(part.raw.body, worker_.files["/root/out"].substr(100, 2'000'000));
  EXPECT_EQ(part.raw.headers.get("X-Autodl-Part-SHA256"), sha256_hex(part.raw.body));
  EXPECT_EQ(part.raw.headers.get("X-Autodl-File-Size"), "3000000");
  const auto changed =
      call("GET", base + "/files/content?path=/root/out", "", {{"If-Match", "\"other\""}});
  EXPECT_EQ(changed.status, 412) << changed.raw.body;
  EXPECT_EQ(call("GET", base + "/files/content?path=/nothing").status, 404);
  EXPECT_EQ(call("GET", base + "/files/content?path=/a&length=9000000").text("code"),
            "bad_parameter");
  EXPECT_EQ(call("GET", base + "/files?path=../etc").status, 422);
  const auto list = call("GET", base + "/files?path=/&recursive=1");
  EXPECT_NE(list.raw.body.find(R"("path":"root/out","type":"file","size":3000000)"),
            std::string::npos)
      << list.raw.body;
  EXPECT_EQ(call("POST", base + "/directories", R"({"path":"/root/x"})").status, 201);
}

TEST_F(Streams, FilesOfAwayNode_503) {
  const auto id = create();
  wait_for_state(id, "created");
  streams_.on("file", [](const StreamWish&) -> Result<UniqueFd> {
    return Error(ErrorKind::kUnavailable, "node_away", "the node does not answer");
  });
  const auto answer = call("GET", "/api/v1/instances/" + id + "/files?path=/");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.text("code"), "node_away");
}

TEST_F(Streams, Exec_BytesGoBothWays) {
  const auto id = create();
  auto request = signed_request("POST", "/api/v1/instances/" + id + "/exec?pty=1", "", {});
  http::Response refused;
  auto one = client();
  EXPECT_FALSE(one.upgrade(request, "autodl-frames", &refused).ok());
  EXPECT_NE(refused.body.find("not_running"), std::string::npos) << refused.body;

  call("POST", "/api/v1/instances/" + id + "/start", "{}");
  wait_for_state(id, "running");
  UniqueFd init;
  std::string kind;
  streams_.on("pty", [&](const StreamWish& wish) -> Result<UniqueFd> {
    int fds[2];
    ADL_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    init = UniqueFd(fds[1]);
    kind = wish.kind + " " + std::to_string(wish.run.size());
    return UniqueFd(fds[0]);
  });
  request = signed_request("POST", "/api/v1/instances/" + id + "/exec?pty=1", "", {});
  auto upgraded = one.upgrade(request, "autodl-frames", &refused);
  ASSERT_TRUE(upgraded.ok()) << refused.body;
  EXPECT_EQ(kind, "pty 26");
  const auto start = encode_frame(1, R"({"shell":"ls"})");
  ASSERT_EQ(::send(upgraded->socket.get(), start.data(), start.size(), 0),
            static_cast<ssize_t>(start.size()));
  std::string got(start.size(), ' ');
  ASSERT_EQ(::recv(init.get(), got.data(), got.size(), MSG_WAITALL),
            static_cast<ssize_t>(start.size()));
  EXPECT_EQ(got, start);
  const auto exit = encode_frame(8, R"({"exit_code":0})");
  ASSERT_EQ(::send(init.get(), exit.data(), exit.size(), 0), static_cast<ssize_t>(exit.size()));
  init.reset();
  std::string back(exit.size(), ' ');
  ASSERT_EQ(::recv(upgraded->socket.get(), back.data(), back.size(), MSG_WAITALL),
            static_cast<ssize_t>(exit.size()));
  EXPECT_EQ(back, exit);
  EXPECT_EQ(::recv(upgraded->socket.get(), back.data(), 1, 0), 0);  // the end is passed on
  EXPECT_EQ(call("POST", "/api/v1/instances/" + id + "/exec", "").status, 426);
}

class Logs : public Streams {
 protected:
  void serve_log() {
    path_ = folder_ + "/log";
    std::ofstream(path_) << "";
    streams_.on("log", [this](const StreamWish&) -> Result<UniqueFd> {
      return UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    });
  }
  void write(const std::string& stream, const std::string& text) {
    std::ofstream(path_, std::ios::app)
        << "2026-12-01T16:00:00.000000000+00:00 " << stream << " F " << text << "\n";
  }
  std::string path_;
};

TEST_F(Logs, Pages_ByOffset) {
  serve_log();
  const auto id = create(R"(,"command":"exit 0")");
  const std::string base = "/api/v1/instances/" + id + "/logs";
  EXPECT_EQ(call("GET", base).text("code"), "never_started");
  write("stdout", "one");
  write("stderr", "two");
  call("POST", "/api/v1/instances/" + id + "/start", "{}");
  wait_for_state(id, "stopped");
  const auto page = call("GET", base);
  ASSERT_EQ(page.status, 200) << page.raw.body;
  ASSERT_EQ(page.json.at("entries").as_array().size(), 2u) << page.raw.body;
  EXPECT_EQ(page.text("end"), "true");
  EXPECT_EQ(page.json.at("entries").at(1).at("text").as_string(), "two");
  const auto rest = call("GET", base + "?offset=" + page.text("next"));
  EXPECT_EQ(rest.json.at("entries").as_array().size(), 0u);
  EXPECT_EQ(call("GET", base + "?run=nonsense").text("code"), "no_such_run");
  EXPECT_EQ(call("GET", base + "?offset=-1").text("code"), "bad_parameter");
}

TEST_F(Logs, Follow_LinesAsTheyComeThenEnd) {
  serve_log();
  const auto id = create();
  call("POST", "/api/v1/instances/" + id + "/start", "{}");
  wait_for_state(id, "running");
  auto request = signed_request("GET", "/api/v1/instances/" + id + "/logs", "",
                                {{"Accept", "text/event-stream"}});
  http::SseReader reader;
  std::vector<http::SseEvent> events;
  auto one = client();
  bool begun = false;
  const auto answer = one.stream(request, [&](std::string_view bytes) {
    if (!std::exchange(begun, true)) write("stdout", "first");
    reader.put(bytes);
    while (true) {
      auto event = reader.next();
      if (!event.ok() || !*event) return true;
      events.push_back(**event);
      if (events.size() == 1) write("stdout", "second");
      if (events.size() == 2) call("POST", "/api/v1/instances/" + id + "/stop", "{}");
    }
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_NE(events[0].data.find("first"), std::string::npos);
  EXPECT_NE(events[1].data.find("second"), std::string::npos);
  EXPECT_EQ(events[2].event, "end");
  EXPECT_NE(events[2].data.find("completed"), std::string::npos) << events[2].data;
}

}  // namespace
}  // namespace autodl
