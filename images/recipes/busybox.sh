# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
#
# autodl/busybox:test — one static program and nothing else: no passwd, no bash, no sshd, no Python.

config=(--env "PATH=$image_path")

layers() {
    busybox_tree "$1/root"
    plain_tar "$1/root" "$1/01.tar"
    rm -rf "$1/root"
}
