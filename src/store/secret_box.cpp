// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "store/secret_box.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/unique_fd.hpp"

namespace autodl {
namespace {

constexpr std::size_t kNonceBytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t kTagBytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string to_hex(const std::vector<unsigned char>& bytes) {
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

Error sealed_error() {
  return Error(
      ErrorKind::kInternal, "bad_seal",
      "a sealed secret does not open: the master key is another one or the row was changed",
      "restore the master key file that belongs to this store");
}

}  // namespace

Result<SecretBox> SecretBox::load_or_create(const std::string& path, Random& random) {
  std::array<unsigned char, 32> key{};
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid()) {
    struct stat about{};
    if (::fstat(fd.get(), &about) != 0) return errno_error("stat the master key", errno);
    if ((about.st_mode & 077) != 0) {
      return Error(ErrorKind::kDenied, "key_readable",
                   fmt::format("the master key '{}' is readable by others", path),
                   fmt::format("chmod 600 '{}'", path));
    }
    if (::read(fd.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size())) {
      return Error(ErrorKind::kInternal, "key_short",
                   fmt::format("the master key '{}' is cut off", path), "restore it from a backup");
    }
    return SecretBox(key);
  }
  if (errno != ENOENT) return errno_error(fmt::format("open '{}'", path), errno);
  random.fill(key);
  // A temporary name first: a crash in between leaves no half key.
  const std::string part = path + ".part";
  ::unlink(part.c_str());
  UniqueFd made(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made.valid() ||
      ::write(made.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size()) ||
      ::fsync(made.get()) != 0 || ::rename(part.c_str(), path.c_str()) != 0) {
    return errno_error(fmt::format("make '{}'", path), errno);
  }
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  UniqueFd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid() || ::fsync(parent.get()) != 0) {
    return errno_error(fmt::format("sync '{}'", folder), errno);
  }
  return SecretBox(key);
}

std::string SecretBox::seal(std::string_view secret, std::string_view context,
                            Random& random) const {
  std::vector<unsigned char> out(kNonceBytes + secret.size() + kTagBytes);
  random.fill(std::span(out.data(), kNonceBytes));
  crypto_aead_xchacha20poly1305_ietf_encrypt(out.data() + kNonceBytes, nullptr, bytes_of(secret),
                                             secret.size(), bytes_of(context), context.size(),
                                             nullptr, out.data(), key_.data());
  return to_hex(out);
}

Result<std::string> SecretBox::open(std::string_view sealed_hex, std::string_view context) const {
  std::vector<unsigned char> sealed(sealed_hex.size() / 2);
  std::size_t length = 0;
  if (sealed.empty()) return sealed_error();  // sodium takes no null pointer
  if (sodium_hex2bin(sealed.data(), sealed.size(), sealed_hex.data(), sealed_hex.size(), nullptr,
                     &length, nullptr) != 0 ||
      length != sealed.size() || length < kNonceBytes + kTagBytes) {
    return sealed_error();
  }
  std::vector<unsigned char> plain(length - kNonceBytes - kTagBytes + 1);
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(
          plain.data(), nullptr, nullptr, sealed.data() + kNonceBytes, length - kNonceBytes,
          bytes_of(context), context.size(), sealed.data(), key_.data()) != 0) {
    return sealed_error();
  }
  return std::string(plain.begin(), plain.end() - 1);
}

std::string hash_of_token(std::string_view text) {
  std::vector<unsigned char> hash(crypto_hash_sha256_BYTES);
  crypto_hash_sha256(hash.data(), bytes_of(text), text.size());
  return to_hex(hash);
}

}  // namespace autodl
