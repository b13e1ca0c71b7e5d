// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "net/splice.hpp"

#include <vector>

namespace autodl {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

Task<void> relay(Conn* from, Conn* to) {
  std::vector<char> buffer(kBufferBytes);
  while (true) {
    const auto got = co_await from->read_some(buffer);
    if (!got.ok()) break;
    if (*got == 0) {
      to->shutdown_write();
      co_return;
    }
    const auto sent = co_await to->write_all({buffer.data(), *got}, {});
    if (!sent.ok()) break;
  }
  from->close();
  to->close();
}

}  // namespace

Task<void> splice_both(Conn& one, Conn& other) {
  auto there = relay(&one, &other);
  auto back = relay(&other, &one);
  co_await all_of(std::move(there), std::move(back));
}

}  // namespace autodl
