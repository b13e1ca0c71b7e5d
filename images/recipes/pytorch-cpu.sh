# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
#
# autodl/pytorch:2.6.0-cpu-py313 — the default image: Debian 13 with PyTorch 2.6.0 (CPU), Python 3.13, scikit-learn,
# Fashion-MNIST and the tools people expect on a rented machine. JupyterLab would add 1.1 GB and is left out.

config=(--env "PATH=${image_path:-}" --env LANG=C.UTF-8 --cmd '["/bin/bash"]')

packages=(python3-torch python3-torchvision python3-numpy python3-sklearn python3-psutil python3-pip
    python-is-python3 dataset-fashion-mnist bash-completion wget curl unzip zip xz-utils bzip2 git sudo tmux nvtop htop
    openssh-client rsync nano vim-tiny less file ca-certificates procps psmisc iproute2 iputils-ping)

layers() {
    debian_layer "$1/01.tar" apt "$(IFS=, && echo "${packages[*]}")" \
        "${BASH_SOURCE[0]}" pytorch_finish
}

pytorch_finish() {
    local root=$1
    # An instance is one user's machine: pip may install into it.
    rm -f "$root"/usr/lib/python3*/EXTERNALLY-MANAGED
    # ping needs no privilege inside (ping_group_range); a file capability that the instance may not have
    # would make it fail to start.
    chmod 755 "$root/usr/bin/ping"
    setcap -q -r "$root/usr/bin/ping" 2>/dev/null || true
    ln -sf vim.tiny "$root/usr/bin/vim"
}
