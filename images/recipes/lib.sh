# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
#
# What image recipes share; sourced by scripts/build-image. A recipe defines
#   layers DIR   writes DIR/01.tar, DIR/02.tar, … (lowest first)
#   config       an array of arguments for images/pack.py: environment, command, labels

image_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# debian_layer OUTPUT VARIANT PACKAGES [RECIPE FUNCTION]: a trixie root file system made from Debian's archive. Inside, apt
# asks the archives that this host's apt is set to, and no cache, log or machine identity is left. FUNCTION of RECIPE is
# called with the root file system before that (by file name, since mmdebstrap's hooks run in a plain sh).
debian_layer() {
    local output=$1 variant=$2 packages=$3 lib mirror security hooks=()
    lib=${BASH_SOURCE[0]}
    mirror=$(debian_mirror)
    security=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' |
        awk '$2 ~ /-security$/ && !found {print $1; found = 1}')
    if [ $# -gt 3 ]; then hooks+=("--customize-hook=bash -euc '. \"\$0\"; $5 \"\$1\"' '$4' \"\$1\""); fi
    mmdebstrap --quiet --mode=root --variant="$variant" --components=main ${packages:+--include="$packages"} \
        --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-exclude=/usr/share/locale/*' \
        "${hooks[@]}" --customize-hook="bash -euc '. \"\$0\"; debian_finish \"\$1\" \"\$2\" \"\$3\"' '$lib' \"\$1\" '$mirror' '$security'" --skip=output/dev \
        trixie "$output" "$mirror" >/dev/null
}

# debian_finish ROOT MIRROR SECURITY: runs in mmdebstrap's customize hook; SECURITY may be empty.
debian_finish() {
    local root=$1 mirror=$2 security=$3
    rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root"/etc/hostname \
        "$root"/etc/resolv.conf "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/etc/dpkg/dpkg.cfg.d/99mmdebstrap
    {
        debian_source "$mirror" "trixie trixie-updates"
        [ -z "$security" ] || { echo && debian_source "$security" trixie-security; }
    } >"$root/etc/apt/sources.list.d/debian.sources"
    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb \
        "$root"/var/log/*.log "$root"/var/log/apt/* "$root"/var/cache/debconf/*-old "$root"/var/lib/dpkg/*-old \
        "$root"/tmp/* "$root"/var/tmp/*
    : >"$root/etc/machine-id"
}

# debian_source URI SUITES: one entry of a .sources file.
debian_source() {
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$1" "$2"
    printf 'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n'
}

# busybox_tree DIR: /bin/busybox with its applets as links, and the folders a file system has. No passwd, no bash.
busybox_tree() {
    local root=$1 applet
    mkdir -p "$root"/{bin,sbin,etc,proc,sys,dev,run,root,tmp,var,usr/bin,usr/sbin}
    chmod 700 "$root/root"
    chmod 1777 "$root/tmp"
    install -m 755 /bin/busybox "$root/bin/busybox"
    for applet in $(/bin/busybox --list); do
        [ "$applet" = busybox ] || ln -sf busybox "$root/bin/$applet"
    done
    # As distributions with busybox have them: links, which must stay links.
    ln -sf ../bin/busybox "$root/sbin/poweroff"
    ln -sf ../bin/busybox "$root/sbin/halt"
}

# plain_tar DIR OUTPUT: the same bytes for the same files.
plain_tar() {
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=pax \
        --pax-option=delete=atime,delete=ctime -C "$1" -cf "$2" .
}
