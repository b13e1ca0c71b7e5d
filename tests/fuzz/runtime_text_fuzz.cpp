// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What the runtime reads: an image's description (made by whoever made the image), references,
// and the kernel's tables, in which instances' names and paths stand.
#include <string>

#include "fuzz.hpp"
#include "runtime/cgroups.hpp"
#include "runtime/container.hpp"
#include "runtime/images.hpp"
#include "runtime/mounts.hpp"
#include "runtime/network.hpp"
#include "runtime/oci_bundle.hpp"

namespace {

using namespace autodl;

void check_image(std::string_view text) {
  const auto image = runtime::parse_inspect(text, "example.org/image:1");
  if (!image.ok()) return;
  const auto& digest = image.value().info.digest;
  fuzz::require(digest.size() == 71 && digest.starts_with("sha256:") &&
                    digest.find_first_not_of("0123456789abcdef", 7) == std::string::npos,
                "a digest is one");
  fuzz::require(!image.value().layers.empty(), "an image has layers");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  check_image(text);
  if (runtime::check_reference(text).ok())
    fuzz::require(!text.starts_with('-') && text.find("://") == std::string_view::npos &&
                      text.find_first_of(" \n\t'\"$;") == std::string_view::npos,
                  "a reference is one word and no option");
  for (const auto& mount : runtime::parse_mountinfo(text))
    fuzz::require(!mount.fstype.empty() && !mount.mount_point.empty(), "a mount is whole");
  if (const auto address = runtime::parse_ipv4(text))
    fuzz::require(runtime::parse_ipv4(runtime::to_ipv4(*address)) == address, "an address");
  if (const auto pool = runtime::parse_pool(text); pool.ok()) {
    const auto again = runtime::parse_pool(pool.value().text());
    fuzz::require(again.ok() && again.value().network == pool.value().network &&
                      again.value().bits == pool.value().bits,
                  "a pool reads as the same");
  }
  for (const auto& resolver : runtime::parse_resolvers(text))
    fuzz::require(runtime::parse_ipv4(resolver).has_value(), "a resolver is an address");
  static_cast<void>(runtime::parse_routes(text));
  static_cast<void>(runtime::parse_seccomp(text));
  static_cast<void>(runtime::parse_start_ticks(text));
  fuzz::require(runtime::parse_oom_kills(text) >= 0, "nothing is killed less than never");
  return 0;
}
