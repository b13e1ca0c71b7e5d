// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu/elf_soname.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/unique_fd.hpp"

namespace autodl {
namespace {

constexpr std::size_t kHeadersMax = 128;
constexpr std::size_t kDynamicMax = 1 << 16;  // bytes
constexpr std::size_t kNameMax = 255;

template <class T>
bool read_at(int fd, T* out, std::size_t count, std::uint64_t offset) {
  const auto bytes = sizeof(T) * count;
  return pread(fd, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// Where in the file a virtual address is.
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& headers, std::uint64_t at) {
  for (const auto& header : headers)
    if (header.p_type == PT_LOAD && at >= header.p_vaddr && at - header.p_vaddr < header.p_filesz)
      return header.p_offset + (at - header.p_vaddr);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> elf_soname(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  Elf64_Ehdr file{};
  if (!fd.valid() || !read_at(fd.get(), &file, 1, 0)) return std::nullopt;
  if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
      file.e_ident[EI_DATA] != ELFDATA2LSB || file.e_phentsize != sizeof(Elf64_Phdr) ||
      file.e_phnum > kHeadersMax)
    return std::nullopt;
  std::vector<Elf64_Phdr> headers(file.e_phnum);
  if (!read_at(fd.get(), headers.data(), headers.size(), file.e_phoff)) return std::nullopt;
  const auto dynamic = std::find_if(headers.begin(), headers.end(),
                                    [](const auto& header) { return header.p_type == PT_DYNAMIC; });
  if (dynamic == headers.end() || dynamic->p_filesz > kDynamicMax) return std::nullopt;
  std::vector<Elf64_Dyn> entries(dynamic->p_filesz / sizeof(Elf64_Dyn));
  if (!read_at(fd.get(), entries.data(), entries.size(), dynamic->p_offset)) return std::nullopt;
  std::optional<std::uint64_t> name;
  std::optional<std::uint64_t> strings;
  for (const auto& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SONAME) name = entry.d_un.d_val;
    if (entry.d_tag == DT_STRTAB) strings = offset_of(headers, entry.d_un.d_ptr);
  }
  if (!name || !strings || *name > (1U << 20U)) return std::nullopt;
  std::string text(kNameMax, '\0');
  const auto got = pread(fd.get(), text.data(), text.size(), static_cast<off_t>(*strings + *name));
  if (got <= 0) return std::nullopt;
  const auto end = text.find('\0');
  if (end == std::string::npos || end == 0 || end > static_cast<std::size_t>(got))
    return std::nullopt;
  text.resize(end);
  if (text.find('/') != std::string::npos) return std::nullopt;
  return text;
}

}  // namespace autodl
