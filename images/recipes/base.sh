# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
#
# autodl/base:trixie — Debian 13's minimal system with procps and iproute2, for tests.

config=(--env "PATH=$image_path" --cmd '["/bin/bash"]')

layers() {
    debian_layer "$1/01.tar" minbase procps,iproute2
}
