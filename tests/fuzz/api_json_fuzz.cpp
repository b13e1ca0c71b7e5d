// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Request bodies of the API, and any text as a value in an answer.
#include "wire/api_json.hpp"

#include <string>

#include "fuzz.hpp"
#include "wire/api_types.hpp"

namespace {

using namespace autodl;

template <class T>
void body(std::string_view text) {
  fuzz::round_trip([](std::string_view json) { return api::from_json<T>(json); },
                   [](const T& value) { return api::to_json(value); }, text, T::kName.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  body<api::CreateInstance>(text);
  body<api::SshKeyRequest>(text);
  body<api::TransferRequest>(text);
  body<api::DirectoryRequest>(text);
  body<api::AccountRequest>(text);
  body<api::CreditRequest>(text);
  body<api::SetupRequest>(text);
  body<api::NoMembers>(text);
  if (const auto value = api::parse_json(text); value.ok()) {
    if (const auto* plain = value.value().if_string()) {
      const std::string kept(plain->data(), plain->size());
      const auto read = api::parse_json(api::to_json(kept));
      fuzz::require(read.ok() && read.value().is_string() && read.value().get_string() == kept,
                    "any text is escaped so that it reads as the same");
    }
  }
  return 0;
}
