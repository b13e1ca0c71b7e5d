#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
# nvtop.sh ROOT BUILD: runs a root folder's own nvtop (Debian trixie's: mmdebstrap --variant=extract
# --include=nvtop,python3-minimal trixie ROOT MIRROR) and Python client on the simulated driver, on
# an instance's view and with its mounts, in namespaces of their own. Prints PASS or says what failed.
set -euo pipefail
root=$(realpath "$1") build=$(realpath "$2")
here=$(dirname "$(realpath "$0")")
if [ "${3:-}" != inside ]; then
    exec unshare --mount --pid --fork --propagation private "$0" "$root" "$build" inside
fi
work=$(mktemp -d)
mount -t tmpfs tmpfs "$work"
tool() { "$build/sim/autodl-sim-gpu" --state "$work/state" "$@"; }
tool create "RTX 4090:1,A100 40GB:1"
tool load 0 88 17500
mkdir -p "$root/proc" "$root/mnt" "$root/dev"
for link in lib lib64; do [ -e "$root/$link" ] || ln -s "usr/$link" "$root/$link"; done
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/mnt"
mkdir "$root/mnt/lib"
cp "$build/sim/libnvidia-ml.so.1" "$build/sim/nvidia-smi" "$root/mnt/lib/"
cp -rL /lib/terminfo "$root/mnt/"
cp "$build/sim/autodl-sim-gpu" "$here/nvml_client.py" "$work/state" "$root/mnt/"
# The root may hold no shell and no env: only what its packages brought.
inside() { env -i PATH=/usr/sbin:/usr/bin TERM=xterm TERMINFO=/mnt/terminfo LD_LIBRARY_PATH=/mnt/lib AUTODL_SIM_STATE=/mnt/state chroot "$root" "$@"; }
export -f inside
export root

json=$(inside /usr/bin/nvtop -s)
echo "$json"
want() { grep -qF "$1" <<<"$json" || { echo "FAIL: nvtop -s has no $1"; exit 1; }; }
want '"device_name": "NVIDIA GeForce RTX 4090"'
want '"gpu_util": "88%"'
want '"device_name": "NVIDIA A100-PCIE-40GB"'
want '"fan_speed": null'
inside /mnt/lib/nvidia-smi -L
# The screen: a terminal of its own, left by "q" once it has drawn.
screen=$( (sleep 2; printf q) | SHELL=/bin/bash timeout 20 script -qec "stty rows 30 cols 120; inside /usr/bin/nvtop" /dev/null || true)
grep -q 'RTX 4090' <<<"$screen" || { echo "FAIL: nvtop's screen shows no card: $screen"; exit 1; }
echo PASS
