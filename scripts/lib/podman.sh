# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
#
# podman with storage and configuration of its own, so that neither the host's images nor
# /etc/containers matter.

# podman_at ROOT RUNROOT ARGUMENT…: the storage keeps its configuration beside its run folder.
podman_at() {
    local root=$1 runroot=$2
    shift 2
    if [ ! -e "$runroot/storage.conf" ]; then
        mkdir -p -m 700 "$root" "$runroot"
        printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' "$root" "$runroot" \
            >"$runroot/storage.conf.new"
        mv "$runroot/storage.conf.new" "$runroot/storage.conf"
    fi
    CONTAINERS_CONF=/dev/null CONTAINERS_STORAGE_CONF=$runroot/storage.conf podman --root "$root" --runroot "$runroot" \
        --runtime runc --cgroup-manager cgroupfs --events-backend none "$@"
}

# load_image REFERENCE ARCHIVE ROOT RUNROOT: does nothing where the storage already holds this very
# image.
load_image() {
    local reference=$1 archive=$2 root runroot want have
    root=$(realpath -m "$3")
    runroot=$(realpath -m "${4:-$root-run}")
    want=$(<"$archive.id")
    have=$(podman_at "$root" "$runroot" image inspect --format '{{.Id}}' "$reference" 2>/dev/null || true)
    [ "$have" = "$want" ] && return 0
    say "loading $reference"
    podman_at "$root" "$runroot" load --quiet --input "$archive" >/dev/null
}
