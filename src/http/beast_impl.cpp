// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Beast's own code (its parsers are what we use), compiled once.
#include <boost/beast/src.hpp>
