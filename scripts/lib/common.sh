# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
#
# What the scripts share. Source it after `set -euo pipefail`; it prints nothing and changes
# nothing.

# Downloaded and built things that may be thrown away at any time (never inside the repository).
AUTODL_CACHE=${AUTODL_CACHE:-/var/cache/autodl}
# CRIU with libraries of its own; the node puts $AUTODL_CRIU/bin first in runc's PATH.
AUTODL_CRIU=${AUTODL_CRIU:-/opt/autodl-criu}

say() { printf '%s\n' "$*" >&2; }
die() {
    say "${0##*/}: $*"
    exit 1
}

need_root() {
    [ "$(id -u)" -eq 0 ] || die "needs root: it installs packages or makes file systems (run it with sudo)"
}

# Debian's archive as this host's apt is configured to reach it: a mirror is a host's own affair
# and never stands in a file of ours. It serves every suite that we need.
debian_mirror() {
    local uri
    # Without release information, so that it works before the first `apt-get update` too.
    uri=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' |
        awk '$2 == "bookworm" && !found { print $1; found = 1 }')
    [ -n "$uri" ] || die "apt has no source for 'bookworm': check /etc/apt/sources.list and sources.list.d"
    printf '%s\n' "$uri"
}

# with_lock NAME COMMAND…: one at a time on this host, so that two builds share one result.
with_lock() {
    local name=$1
    shift
    mkdir -p "$AUTODL_CACHE"
    (
        flock 8
        "$@" 8>&-
    ) 8>"$AUTODL_CACHE/$name.lock"
}
