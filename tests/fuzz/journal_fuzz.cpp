// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Any bytes as a journal; and a journal that was written, cut anywhere or with one byte changed:
// what is read is always a prefix of what was written. Bytes 0-2 choose where and what.
#include "journal/journal.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz.hpp"

namespace {

using namespace autodl;

bool is_prefix(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  if (some.size() > all.size()) return false;
  for (std::size_t i = 0; i < some.size(); ++i)
    if (some[i] != all[i]) return false;
  return true;
}

void check_any(std::string_view bytes) {
  const auto parsed = parse_journal(bytes);
  std::string again;
  for (const auto& record : parsed.records) again += encode_journal_record(record);
  fuzz::require(parsed.valid_bytes == again.size() && bytes.starts_with(again),
                "the records are the bytes up to valid_bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  auto text = fuzz::text_of(data + 3, size - 3);
  check_any(text);
  std::vector<std::string> written;
  std::string bytes;
  while (!text.empty()) {  // records: up to each line break
    written.emplace_back(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), written.back().size() + 1));
    bytes += encode_journal_record(written.back());
  }
  check_any(bytes);
  const std::size_t at = (std::size_t{data[0]} << 8 | data[1]) % bytes.size();
  const auto cut = parse_journal(std::string_view(bytes).substr(0, at));
  fuzz::require(cut.damage.empty(), "a torn tail is no damage");
  fuzz::require(is_prefix(cut.records, written), "a torn journal is a prefix");
  if (data[2] == 0) return 0;
  bytes[at] = static_cast<char>(bytes[at] ^ data[2]);
  const auto changed = parse_journal(bytes);
  fuzz::require(is_prefix(changed.records, written) && changed.records.size() < written.size(),
                "a changed record is never read");
  return 0;
}
