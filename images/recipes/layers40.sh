# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
#
# autodl/layers40:test — the busybox image below 39 layers. Each adds a file, each rewrites /layers/last, and each
# even one deletes the file of the layer below, so that whoever stacks them in the wrong order is found out.

config=(--env "PATH=$image_path" --label autodl.layers=40)

layers() {
    local dir=$1 n name
    busybox_tree "$dir/root"
    plain_tar "$dir/root" "$dir/01.tar"
    rm -rf "$dir/root"
    for n in $(seq 2 40); do
        printf -v name %02d "$n"
        mkdir -p "$dir/root/layers"
        printf '%s\n' "$n" >"$dir/root/layers/$name"
        printf '%s\n' "$n" >"$dir/root/layers/last"
        if [ $((n % 2)) -eq 0 ] && [ "$n" -gt 2 ]; then
            : >"$dir/root/layers/.wh.$(printf %02d $((n - 1)))"
        fi
        plain_tar "$dir/root" "$dir/$name.tar"
        rm -rf "$dir/root"
    done
}
