// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "cli/commands.hpp"
#include "cli/local_folder.hpp"
#include "cli/user_list.hpp"

namespace autodl::cli {
namespace {

TEST(CliOutput_Money, KeepsEveryMicroAndDropsOnlyZeros) {
  EXPECT_EQ(money(626'294, "CNY"), "¥0.626294");
  EXPECT_EQ(money(1'580'000, "CNY"), "¥1.58");
  EXPECT_EQ(money(-100'000'000, "USD"), "-$100.00");
  EXPECT_EQ(money(1, "CREDIT"), "0.000001 credits");
  EXPECT_EQ(money(INT64_MIN, "CNY"), "-¥9223372036854.775808");
}

TEST(CliOutput_ParseAmount, IsExactAndRefusesWhatIsNone) {
  EXPECT_EQ(parse_amount("100").value(), 100'000'000);
  EXPECT_EQ(parse_amount("12.5").value(), 12'500'000);
  EXPECT_EQ(parse_amount("-0.000001").value(), -1);
  EXPECT_EQ(parse_amount("4.1").value(), 4'100'000);
  for (const char* wrong :
       {"", "-", ".", "1.", ".5", "1.2.3", "1e3", "1.0000001", "9999999999999", "--1", "+1", " 1"})
    EXPECT_FALSE(parse_amount(wrong).ok()) << wrong;
}

TEST(CliLocalFolder_Names, ThatLeaveTheFolderAreRefused) {
  EXPECT_EQ(path_parts("a/b c/名").value().size(), 3U);
  EXPECT_TRUE(path_parts("...x/..y").ok());
  for (const std::string_view wrong : {"", "/a", "../a", "a/../b", "a//b", ".", "a/", "a/."})
    EXPECT_FALSE(path_parts(wrong).ok()) << wrong;
  EXPECT_FALSE(path_parts(std::string_view("a\0b", 3)).ok());
}

TEST(CliLocalFolder_Links, StayInsideWhateverTheyLeadThrough) {
  EXPECT_TRUE(link_stays_inside({"a"}, "b/c"));
  EXPECT_TRUE(link_stays_inside({"d", "a"}, "../x"));
  EXPECT_TRUE(link_stays_inside({"a"}, "./b"));
  EXPECT_FALSE(link_stays_inside({"a"}, ".."));
  EXPECT_FALSE(link_stays_inside({"d", "a"}, "../.."));
  EXPECT_FALSE(link_stays_inside({"d", "a"}, "x/../y"));
  EXPECT_FALSE(link_stays_inside({"a"}, "/b"));
  EXPECT_FALSE(link_stays_inside({"a"}, ""));
}

TEST(CliOutput_Sizes, AreReadable) {
  EXPECT_EQ(bytes(50LL << 30), "50 GiB");
  EXPECT_EQ(bytes(1536), "1.5 KiB");
  EXPECT_EQ(duration(23 * 60 + 47), "23m47s");
}

TEST(CliOutput_Table, AlignsWideCharactersAndKeepsControlOut) {
  const auto text = table({"A", "B"}, {{"名字", "x"}, {"ab\033[2J", "y"}});
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(text.find("名字"), std::string::npos);
  EXPECT_TRUE(text.ends_with('\n')) << text;
}

TEST(CliQuote_Words, SurviveAShell) {
  EXPECT_EQ(shell_quote({"python", "train.py", "--lr=0.1"}), "python train.py --lr=0.1");
  EXPECT_EQ(shell_quote({"echo", "a b", "it's", ""}), "echo 'a b' 'it'\\''s' ''");
}

TEST(CliProblem_Text, CarriesRemedyCandidatesAndRequest) {
  http::Response response;
  response.status = 422;
  response.body = R"({"code":"unknown_card","detail":"no card 'RTX 3909'","remedy":"choose one",)"
                  R"("request_id":"R1","candidates":["RTX 3090"]})";
  const auto error = problem_error(response);
  EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
  EXPECT_EQ(error.code(), "unknown_card");
  EXPECT_EQ(error.message(), "no card 'RTX 3909' (request R1)");
  EXPECT_EQ(error.remedy(), "choose one; did you mean: RTX 3090?");
  EXPECT_EQ(exit_code_of(error), 1);
}

class CliConfig : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/autodl-cli-XXXXXX";
    values_["HOME"] = ::mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(values_["HOME"]); }
  Environment environment() {
    return [this](const char* name) -> std::optional<std::string> {
      const auto found = values_.find(name);
      if (found == values_.end()) return std::nullopt;
      return found->second;
    };
  }
  std::map<std::string, std::string> values_;
};

TEST_F(CliConfig, SavedKeys_AreReadBackAndPrivate) {
  const Credentials kept{"http://h:1", "AK1", "s \"quoted\" \\", ""};
  const auto path = config_path(environment());
  ASSERT_TRUE(save_credentials(kept, path).ok());
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto read = load_credentials({}, false, environment());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->endpoint, kept.endpoint);
  EXPECT_EQ(read->secret_key, kept.secret_key);
}

TEST_F(CliConfig, Environment_WinsOverTheFile) {
  ASSERT_TRUE(save_credentials({"http://h:1", "AK1", "s1", ""}, config_path(environment())).ok());
  values_["AUTODL_ACCESS_KEY"] = "AK2";
  values_["AUTODL_SECRET_KEY"] = "s2";
  const auto read = load_credentials({}, false, environment());
  EXPECT_EQ(read->access_key, "AK2");
  EXPECT_EQ(read->endpoint, "http://h:1");
}

TEST_F(CliConfig, BrokenFile_IsNamedWithItsLine) {
  const auto path = config_path(environment());
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "endpoint = \"x\"\naccess_key =\n";
  const auto read = load_credentials({}, false, environment());
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message().find("line 2"), std::string::npos) << read.error().message();
}

TEST(UserList, ReadsQuotesAndSkipsTheHeading) {
  const auto users = parse_user_list(
      "\xEF\xBB\xBFname,group,credit\r\nanna,lab,12.5\r\n\r\n\"li, wei\",\"a \"\"b\"\"\"\nzoe");
  ASSERT_TRUE(users.ok()) << users.error().message();
  ASSERT_EQ(users->size(), 3u);
  EXPECT_EQ((*users)[0].group, "lab");
  EXPECT_EQ((*users)[0].credit_micro, 12'500'000);
  EXPECT_EQ((*users)[1].line, 4u);
  EXPECT_EQ((*users)[1].name, "li, wei");
  EXPECT_EQ((*users)[1].group, "a \"b\"");
  EXPECT_EQ((*users)[2].name, "zoe");
}

TEST(UserList, NamesEveryWrongLine) {
  const auto users =
      parse_user_list("anna,lab,x\nboris\n,lab\nboris,lab\n\"open\nclara,a,1,b\ndora,a,-1\n");
  ASSERT_FALSE(users.ok());
  EXPECT_EQ(users.error().message(),
            "line 1: 'x' is no credit\nline 3: the name is missing\nline 4: 'boris' stands in line "
            "2 already\nline 5: a quoted field is not closed, or is followed by something\nline 6: "
            "more than name,group,credit\nline 7: '-1' is no credit");
}

}  // namespace
}  // namespace autodl::cli
