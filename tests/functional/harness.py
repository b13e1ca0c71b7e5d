# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Starts a whole `autodld serve` of its own (paths, ports, names) and gives the tests clients of it.

Needs root, a build (AUTODL_BUILD, default build/dev) and what scripts/setup installs. Images are
kept in one store for all test runs (AUTODL_TEST_CACHE, default /var/cache/autodl/test).
"""
import contextlib
import datetime
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(os.environ.get("AUTODL_BUILD", os.path.join(ROOT, "build/dev")))
CACHE = os.environ.get("AUTODL_TEST_CACHE", "/var/cache/autodl/test")
sys.path.insert(0, os.path.join(ROOT, "sdk/python"))

import autodl  # noqa: E402  (the SDK under test)

TORCH_IMAGE = "autodl/pytorch:2.6.0-cpu-py313"
BUSYBOX_IMAGE = "autodl/busybox:test"
LAYERS_IMAGE = "autodl/layers40:test"
BASE_IMAGE = "autodl/base:trixie"


def run(*argv, check=True, timeout=120, **keywords):
    """A finished command with text output; its output is in the exception where it fails."""
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout, universal_newlines=True, **keywords)
    if check and done.returncode != 0:
        raise AssertionError("%s: exit %d\n%s%s" % (argv, done.returncode, done.stdout, done.stderr))
    return done


def await_that(condition, what, seconds=30, every=0.05):
    """Polls a condition of the outside world until it holds; says what it waited for."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited %g s for: %s" % (seconds, what))
        time.sleep(every)


def free_port(start):
    for port in range(start, start + 400):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no free port from %d" % start)


def ensure_images(names):
    """Builds the test images into the store of all test runs, where they are not yet there."""
    store = os.path.join(CACHE, "images")
    os.makedirs(store, exist_ok=True)
    for name in names:
        run(os.path.join(ROOT, "scripts/build-image"), name, "--root", store, timeout=1800)
    return store


def ensure_toolbox():
    out = os.path.join(CACHE, "toolbox")
    os.makedirs(CACHE, exist_ok=True)
    run(os.path.join(ROOT, "scripts/build-toolbox"), out, "--programs", BUILD, timeout=900)
    return os.path.realpath(os.path.join(out, "current"))


class Installation:
    """One running installation. Use as a context manager: leaves nothing behind."""

    def __init__(self, images=(BUSYBOX_IMAGE,), gpus="RTX 3090:2,RTX 4090:1,A100 40GB:1",
                 settings="", node_settings="", name=None):
        self.tag = name or "t%d" % random.SystemRandom().randrange(10 ** 6)
        self.dir = tempfile.mkdtemp(prefix="autodl-%s-" % self.tag, dir="/var/tmp")
        os.chmod(self.dir, 0o755)
        self.run_dir = tempfile.mkdtemp(prefix="autodl-%s-" % self.tag, dir="/run")
        os.chmod(self.run_dir, 0o755)
        self.gpus = gpus
        self.port = free_port(18480)
        first = free_port(21000 + random.SystemRandom().randrange(80) * 100)
        self.endpoint = "http://127.0.0.1:%d" % self.port
        self.config = os.path.join(self.dir, "autodld.toml")
        octet = random.SystemRandom().randrange(65, 127)
        with open(self.config, "w") as out:
            out.write("""
[server]
listen = "127.0.0.1:%d"
public_host = "127.0.0.1"
state_dir = "%s/state"
run_dir = "%s"
[node]
toolbox = "%s"
image_store = "%s"
catalogue = "%s/images/catalogue.toml"
name_prefix = "%s"
address_pool = "100.%d.0.0/16"
uid_base = %d
port_first = %d
port_last = %d
%s
[prices]
"RTX 3090" = 1580000
"RTX 4090" = 2280000
"A100 40GB" = 5980000
%s
""" % (self.port, self.dir, self.run_dir, ensure_toolbox(), ensure_images(images), ROOT,
                self.tag, octet, 1000000000 + octet * 10000000, first, first + 99, node_settings,
                settings))
        self.server = None
        self.log_path = os.path.join(self.dir, "serve.log")
        self.operator = None

    def __enter__(self):
        try:
            self.start()
            self.set_up()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def start(self, env=None, wait=True):
        environment = dict(os.environ)
        environment.update(env or {})
        self.server = subprocess.Popen(
            [os.path.join(BUILD, "apps/autodld/autodld"), "serve", "--config", self.config,
             "--simulate-gpus", self.gpus],
            stdout=subprocess.DEVNULL, stderr=open(self.log_path, "ab"), env=environment,
            start_new_session=True)
        if wait:
            self.await_ready()

    def await_ready(self, seconds=60):
        def ready():
            if self.server.poll() is not None:
                raise AssertionError("autodld serve ended with %s:\n%s"
                                     % (self.server.returncode, self.log_tail()))
            try:
                with urllib.request.urlopen(self.endpoint + "/readyz", timeout=2) as answer:
                    return answer.status == 200
            except OSError:
                return False
        await_that(ready, "readyz of %s\n%s" % (self.endpoint, self.log_path), seconds)

    def log_tail(self, lines=40):
        with open(self.log_path, errors="replace") as log:
            return "".join([row for row in log if "/access: " not in row][-lines:])

    def call(self, method, path, body=None, token=None, headers=None):
        """A raw request; returns (status, headers, parsed JSON or text)."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.endpoint + path, data=data, method=method)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", "Bearer " + token)
        for key, value in (headers or {}).items():
            request.add_header(key, value)
        try:
            answer = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as refused:
            answer = refused
        text = answer.read().decode("utf-8", "replace")
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = text
        return answer.status, answer.headers, parsed

    def set_up(self):
        with open(os.path.join(self.dir, "state/control/setup-token")) as token:
            status, _, made = self.call("POST", "/api/v1/setup", {"setup_token": token.read().strip(),
                                                                  "name": "operator"})
        assert status == 201, made
        self.operator = made

    def new_user(self, name, balance_micro=100000000):
        """A user with a balance; returns (SDK client, what the API told at creation)."""
        status, _, made = self.call("POST", "/api/v1/admin/accounts", {"name": name, "role": "user"},
                                    token=self.operator["token"])
        assert status == 201, made
        if balance_micro:
            status, _, answer = self.call(
                "POST", "/api/v1/admin/accounts/%s/credit" % made["account"]["id"],
                {"amount_micro": balance_micro, "reason": "test"}, token=self.operator["token"])
            assert status == 200, answer
        client = autodl.Client(access_key=made["access_key"], secret_key=made["secret_key"],
                               endpoint=self.endpoint)
        return client, made

    def cli(self, made, *argv, **keywords):
        env = dict(os.environ, AUTODL_ENDPOINT=self.endpoint, AUTODL_ACCESS_KEY=made["access_key"],
                   AUTODL_SECRET_KEY=made["secret_key"], HOME=self.dir)
        return run(os.path.join(BUILD, "apps/autodl/autodl"), *argv, env=env, **keywords)

    def child_pid(self, role):
        """The pid of control, gateway or node below our own supervisor."""
        for pid in os.listdir("/proc"):
            if not pid.isdigit():
                continue
            try:
                with open("/proc/%s/stat" % pid) as stat:
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
                with open("/proc/%s/cmdline" % pid, "rb") as line:
                    argv = line.read().split(b"\0")
            except OSError:
                continue
            if parent == self.server.pid and len(argv) > 1 and argv[1] == role.encode():
                return int(pid)
        return None

    def kill_child(self, role):
        pid = await_that(lambda: self.child_pid(role), "%s runs" % role)
        os.kill(pid, signal.SIGKILL)
        await_that(lambda: self.child_pid(role) not in (None, pid), "%s is back" % role)

    def stop(self):
        if self.server and self.server.poll() is None:
            self.server.terminate()
            try:
                self.server.wait(20)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
        self.server = None

    def __exit__(self, *_):
        self.stop()
        self.purge()

    def purge(self):
        """What a crashed run leaves: containers, mounts, veths, nft tables, folders."""
        run(os.path.join(ROOT, "scripts/uninstall"), "--config", self.config, "--yes", check=False)
        shutil.rmtree(self.run_dir, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)


def seconds_of(rfc3339):
    """Seconds since the epoch of an API time."""
    return datetime.datetime.strptime(rfc3339, "%Y-%m-%dT%H:%M:%S.%fZ").replace(
        tzinfo=datetime.timezone.utc).timestamp()


@contextlib.contextmanager
def subordinate_ids():
    """podman's --userns=auto wants a `containers` range; the files are put back afterwards."""
    kept = {}
    for path in ("/etc/subuid", "/etc/subgid"):
        with open(path) as table:
            kept[path] = table.read()
        if "containers:" not in kept[path]:
            with open(path, "a") as table:
                table.write("containers:1900000000:1000000\n")
    try:
        yield
    finally:
        for path, text in kept.items():
            with open(path, "w") as table:
                table.write(text)


def footprint(tag):
    """What the machine holds for an installation: each must be as before once all is released."""
    with open("/proc/self/mountinfo") as table:
        mounts = sum(1 for line in table if tag in line)
    loops = run("losetup", "-l", "-n", "-O", "BACK-FILE").stdout.count(tag)
    veths = sum(1 for name in os.listdir("/sys/class/net") if name.startswith(tag))
    cgroups = 0
    for base in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
        path = os.path.join(base, tag)
        if os.path.isdir(path):
            cgroups += sum(len(d) for _, d, _ in os.walk(path))
            break
    nft = run("nft", "list", "ruleset", check=False).stdout
    elements = sum(line.count(tag) for line in nft.splitlines() if "elements" in line)
    return {"mounts": mounts, "loops": loops, "veths": veths, "cgroups": cgroups, "nft": elements}
