// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Which of the account's keys a client may use: init judges the allow-lists itself, because it
// knows the client from the authentic PROXY header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/init_messages.hpp"

namespace autodl::init {

// patterns as in authorized_keys(5)'s from=: numeric addresses, CIDR, '*' and '?'; "!…" denies and
// wins. Host names match nothing: no name is ever looked up. An empty list allows everybody.
bool client_allowed(const std::vector<std::string>& patterns, std::string_view client);

// The text of an authorized_keys file for one client.
std::string authorized_keys_for(const std::vector<AccessKey>& keys, std::string_view client);

}  // namespace autodl::init
