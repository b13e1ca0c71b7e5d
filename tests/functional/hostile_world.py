# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""A tenant with root inside an instance, another user with keys, and an unprivileged host user
attack a whole installation; everybody else must not notice.

    hostile.py           all attacks
    hostile.py net api   only those whose text or name holds one of the words

Prints PASS or FAIL per line, and the time it took.
"""
import contextlib
import glob
import json
import os
import pwd
import shutil
import socket
import stat
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse

import harness
from harness import BUSYBOX_IMAGE, TORCH_IMAGE, autodl, await_that, run

LINES = []
INIT_PORT = 65022


def line(text):
    def keep(function):
        LINES.append((text, function))
        return function
    return keep


class World:
    """One installation; the attacker's instance, the victim's, and what both share."""

    def __init__(self, site):
        self.site = site
        self.scratch = tempfile.mkdtemp(prefix="autodl-hostile-")
        self.key = self.path("key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key)
        with open(self.key + ".pub") as public:
            self.public_key = public.read().strip()
        self.client, self.made = site.new_user("mallory")
        self.other_client, self.other_made = site.new_user("victim")
        self.mine = self.machine(self.client, "mine")
        self.theirs = self.machine(self.other_client, "theirs")

    def path(self, *parts):
        return os.path.join(self.scratch, *parts)

    def machine(self, client, name, image=TORCH_IMAGE, **keywords):
        keywords.setdefault("disk_size", 1)
        task = client.create_instance(name=name, image=image, gpu_type="RTX 3090",
                                      ssh_keys=[self.public_key], **keywords)
        start(task)
        return task

    def ssh(self, task, command, **keywords):
        keywords.setdefault("check", False)
        return run("ssh", "-i", self.key, "-o", "UserKnownHostsFile=/dev/null", "-o",
                   "StrictHostKeyChecking=no", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
                   "-o", "LogLevel=ERROR", "-p", task.ssh["port"], "root@" + task.ssh["host"],
                   command, **keywords)

    def python(self, task, program, **keywords):
        """Runs a Python program inside; returns what it printed as JSON."""
        done = self.ssh(task, "python -I -", input=PRELUDE + program, **keywords)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def address(self, task):
        return self.ssh(task, "hostname -I").stdout.split()[0]

    def others_are_well(self):
        """What a victim needs: API, exec, SSH, a file, in good time."""
        begun = time.monotonic()
        assert self.ssh(self.theirs, "echo well").stdout == "well\n"
        done = self.site.cli(self.other_made, "exec", self.theirs.id, "--", "echo", "well")
        assert done.stdout == "well\n", done
        assert self.other_client.list_files(self.theirs.id, "/etc")
        return time.monotonic() - begun


PRELUDE = r"""
import ctypes, errno, json, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, *args):
    ctypes.set_errno(0)
    result = getattr(libc, name)(*args)
    return "done" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
def syscall(number, *args):
    return attempt("syscall", *(ctypes.c_long(a) if isinstance(a, int) else a
                                for a in (number,) + args))
def write(path, text):
    try:
        with open(path, "wb", 0) as out: out.write(text)
        return "done"
    except OSError as e: return errno.errorcode[e.errno]
def dial(host, port, family=socket.AF_INET, seconds=0.7):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(seconds)
    try:
        s.connect((host, port)); return "open"
    except (socket.timeout, TimeoutError): return "silent"
    except OSError as e: return errno.errorcode.get(e.errno, str(e))
"""


def start(task):
    task.start()
    await_that(lambda: task.status in ("RUNNING", "STOPPED"), "%s runs" % task.name, 60)
    assert task.status == "RUNNING", (task.state, task.reason)


def restart(task):
    if task.status == "RUNNING":
        task.stop()
    task.wait(90)
    start(task)


def host_addresses():
    rows = json.loads(run("ip", "-j", "addr").stdout)
    return [(info["family"], info["local"]) for row in rows for info in row["addr_info"]
            if info["scope"] != "link" or info["family"] == "inet"]


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open("/proc/%d/stat" % int(name)) as text:
                if int(text.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
    return found


# ---- network


def api(world, method, path, body=None, made=None, task=None):
    """A call below an instance, by its owner's token unless told otherwise."""
    token = (made or world.made)["token"]
    target = "/api/v1/instances/%s%s" % ((task or world.mine).id, path)
    return world.site.call(method, target, body, token=token)


def raw(world, data, seconds=10, half_close=False):
    """Bytes to the API's port; all that comes back."""
    with socket.create_connection(("127.0.0.1", world.site.port), seconds) as conn:
        conn.settimeout(seconds)
        try:
            conn.sendall(data)
            if half_close:
                conn.shutdown(socket.SHUT_WR)
            answer = b""
            while True:
                more = conn.recv(65536)
                if not more:
                    return answer
                answer += more
        except (socket.timeout, ConnectionError):
            return answer if "answer" in locals() else b""
