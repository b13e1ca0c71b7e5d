// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// What can be asked for: cards and images.
#include "control/api/api.hpp"
#include "control/api/to_api.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

Result<http::Response> gpu_types(ControlCore& core, const CallContext&) {
  return json_response(200, api::page_json(all_to_api(core.gpu_types()), std::nullopt));
}

Result<http::Response> images(ControlCore& core, const CallContext&) {
  return json_response(200, api::page_json(all_to_api(core.images()), std::nullopt));
}

}  // namespace

void add_catalogue_routes(http::Router& router, Api& api) {
  add_call(router, api, "GET", "/api/v1/gpu_types", gpu_types,
           About("listGpuTypes", "catalogue", "Cards, their prices, and how many are free")
               .answers_page<api::GpuType>("The kinds of cards"));
  add_call(
      router, api, "GET", "/api/v1/images", images,
      About("listImages", "catalogue", "Images by name").answers_page<api::Image>("The images"));
}

}  // namespace autodl
