// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
#include "init/environment.hpp"

#include <unistd.h>

#include <string_view>

namespace autodl::init {
namespace {

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::string_view kToolboxPath = "/opt/autodl/bin";
constexpr std::string_view kSdkPath = "/opt/autodl/lib/python";

void append_folder(std::string& list, std::string_view folder) {
  if ((":" + list + ":").find(":" + std::string(folder) + ":") != std::string::npos) return;
  if (!list.empty()) list += ':';
  list += folder;
}

}  // namespace

Environment make_environment(const InitSetup& setup) {
  Environment environment = setup.env;
  std::string& path = environment["PATH"];
  if (path.empty()) path = kDefaultPath;
  append_folder(path, kToolboxPath);
  append_folder(environment["PYTHONPATH"], kSdkPath);
  environment.emplace("HOME", "/root");
  environment.emplace("USER", "root");
  environment.emplace("LOGNAME", "root");
  environment.emplace("SHELL", access("/bin/bash", X_OK) == 0 ? "/bin/bash" : shell_path());
  environment.emplace("PYTHONUNBUFFERED", "1");
  environment.emplace("AUTODL_INSTANCE_ID", setup.instance.str());
  environment.emplace("AUTODL_RUN_ID", setup.run.str());
  return environment;
}

std::string to_env_file(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) {
    text += name + "=" + value;
    text += '\0';
  }
  return text;
}

}  // namespace autodl::init
