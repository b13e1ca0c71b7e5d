// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// ADL_ASSERT: on in release builds too; for what cannot happen, never for input.
#pragma once

namespace autodl {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}

#define ADL_ASSERT(expression)         \
  ((expression) ? static_cast<void>(0) \
                : ::autodl::assertion_failed(#expression, __FILE__, __LINE__))
