// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "wire/file_messages.hpp"

#include <gtest/gtest.h>

namespace autodl {
namespace {

const std::string kHash(64, 'a');

TEST(FileMessages, RoundTrips) {
  const PutBegin begin{"01TICKET", "/root/数据.bin", 5, 0755, -1};
  EXPECT_EQ(parse_put_begin(to_json(begin)).value(), begin);
  const PutPart part{8, 16, kHash};
  EXPECT_EQ(parse_put_part(to_json(part)).value(), part);
  EXPECT_EQ(parse_put_commit(to_json(PutCommit{kHash})).value(), PutCommit{kHash});
  const PutAbort abort{"t", "/x"};
  EXPECT_EQ(parse_put_abort(to_json(abort)).value(), abort);
  const FileGet get{"/x", 3, 4, "1-2-3"};
  EXPECT_EQ(parse_file_get(to_json(get)).value(), get);
  const GetEnd get_end{4, kHash, 9, "1-2-3"};
  EXPECT_EQ(parse_get_end(to_json(get_end)).value(), get_end);
  const FileList list{"/root", true, "a/b", 10};
  EXPECT_EQ(parse_file_list(to_json(list)).value(), list);
  const FileStat stat{"a/b", FileType::kSymlink, 3, 0777, 12, "../c", "", ""};
  EXPECT_EQ(parse_file_stat(to_json(stat)).value(), stat);
  const std::vector<FileStat> entries{stat, {"c", FileType::kFile, 1, 0644, 5, "", "e", kHash}};
  EXPECT_EQ(parse_file_entries(to_json(entries)).value(), entries);
  const ListEnd list_end{FileType::kFile, "next", 2};
  EXPECT_EQ(parse_list_end(to_json(list_end)).value(), list_end);
  EXPECT_EQ(parse_received(to_json(Received{7})).value(), Received{7});
  const PathOnly path{"/a", 0700};
  EXPECT_EQ(parse_path_only(to_json(path)).value(), path);
  const Error error(ErrorKind::kExhausted, "no_space", "full", "delete something");
  EXPECT_EQ(parse_error_reply(to_json(error)), error);
}

TEST(FileMessages, Paths_ThatLeadElsewhere_AreRefused) {
  for (const char* path : {"", "root", "../x", "/..", "/a/../b", "/a/./b", "/a/.."})
    EXPECT_FALSE(check_file_path(path).ok()) << path;
  EXPECT_FALSE(check_file_path(std::string("/a\0b", 4)).ok());
  EXPECT_FALSE(check_file_path("/" + std::string(256, 'x')).ok());
  EXPECT_FALSE(check_file_path("/root/.autodl-part-01X").ok());
  EXPECT_FALSE(check_file_path("/root/" + std::string(5000, '/')).ok());
  for (const char* path : {"/", "/a", "/a//b/", "/a/..b", "/a/b..", "/root/ x\n"})
    EXPECT_TRUE(check_file_path(path).ok()) << path;
}

TEST(FileMessages, BadFields_AreNamed) {
  const auto message = [](const auto& result) {
    EXPECT_FALSE(result.ok());
    return result.ok() ? std::string() : result.error().message();
  };
  EXPECT_NE(message(parse_put_begin(R"({"ticket":"../x","path":"/a","size":1})")).find("ticket"),
            std::string::npos);
  EXPECT_NE(message(parse_put_begin(R"({"ticket":"x","path":"/a","size":-1})")).find("size"),
            std::string::npos);
  EXPECT_NE(
      message(parse_put_begin(R"({"ticket":"x","path":"/a","size":1,"mode":4096})")).find("mode"),
      std::string::npos);
  EXPECT_NE(message(parse_put_part(R"({"offset":0,"length":0,"sha256":""})")).find("length"),
            std::string::npos);
  EXPECT_NE(message(parse_put_part(R"({"offset":0,"length":1,"sha256":"zz"})")).find("sha256"),
            std::string::npos);
  EXPECT_NE(message(parse_file_get(R"({"path":"/a","length":8388609})")).find("length"),
            std::string::npos);
  EXPECT_NE(message(parse_file_list(R"({"path":"/a","limit":0})")).find("limit"),
            std::string::npos);
  EXPECT_NE(message(parse_path_only(R"({"path":"/a","x":1})")).find("unknown field"),
            std::string::npos);
}

}  // namespace
}  // namespace autodl
