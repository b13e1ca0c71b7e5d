# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
#
# Start-up file of SSH sessions, for bash and plain sh: what a login shell reads, with the
# instance's environment put back between /etc/profile (which resets PATH) and the user's own files
# (which have the last word).
unset ENV
[ -r /etc/profile ] && . /etc/profile
eval "$(/opt/autodl/bin/autodl-shell --export)"
if [ -n "${BASH_VERSION:-}" ] && [ -r ~/.bash_profile ]; then
    . ~/.bash_profile
elif [ -n "${BASH_VERSION:-}" ] && [ -r ~/.bash_login ]; then
    . ~/.bash_login
elif [ -r ~/.profile ]; then
    . ~/.profile
elif [ -n "${BASH_VERSION:-}" ] && [ -r ~/.bashrc ]; then
    . ~/.bashrc
fi
