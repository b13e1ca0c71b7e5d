// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error; must be looked at. Status is Result<void>.
//
//   Result<Disk> make_disk(…);
//   ADL_TRY(disk, make_disk(…));        // declares disk, or returns the error
//   ADL_TRY_STATUS(mount(disk));        // returns the error, if there is one
#pragma once

#include <tl/expected.hpp>

#include <type_traits>
#include <utility>

#include "base/assert.hpp"
#include "base/error.hpp"

namespace autodl {

template <class T>
class [[nodiscard]] Result {
  static_assert(!std::is_reference_v<T> && !std::is_pointer_v<T>,
                "a Result holds a value; use std::optional or a handle type");

 public:
  Result(T value) : inner_(std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error) : inner_(tl::unexpected<Error>(std::move(error))) {}  // NOLINT

  bool ok() const { return inner_.has_value(); }
  explicit operator bool() const { return ok(); }

  T& value() & {
    ADL_ASSERT(ok());
    return *inner_;
  }
  const T& value() const& {
    ADL_ASSERT(ok());
    return *inner_;
  }
  T&& value() && {
    ADL_ASSERT(ok());
    return std::move(*inner_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const {
    ADL_ASSERT(!ok());
    return inner_.error();
  }
  T value_or(T fallback) const& { return ok() ? *inner_ : std::move(fallback); }

 private:
  tl::expected<T, Error> inner_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : inner_(tl::unexpected<Error>(std::move(error))) {}  // NOLINT

  bool ok() const { return inner_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    ADL_ASSERT(!ok());
    return inner_.error();
  }

 private:
  tl::expected<void, Error> inner_;
};

using Status = Result<void>;

}  // namespace autodl

#define ADL_CONCAT_INNER(a, b) a##b
#define ADL_CONCAT(a, b) ADL_CONCAT_INNER(a, b)

#define ADL_TRY(name, expression)                                                  \
  auto ADL_CONCAT(name, _result_) = (expression);                                  \
  if (!ADL_CONCAT(name, _result_).ok()) return ADL_CONCAT(name, _result_).error(); \
  auto name = std::move(ADL_CONCAT(name, _result_)).value()

#define ADL_TRY_STATUS(expression) \
  if (auto adl_status_ = (expression); !adl_status_.ok()) return adl_status_.error()

// The same in a coroutine: ADL_CO_TRY(x, co_await f());
#define ADL_CO_TRY(name, expression)                                                  \
  auto ADL_CONCAT(name, _result_) = expression;                                       \
  if (!ADL_CONCAT(name, _result_).ok()) co_return ADL_CONCAT(name, _result_).error(); \
  auto name = std::move(ADL_CONCAT(name, _result_)).value()
