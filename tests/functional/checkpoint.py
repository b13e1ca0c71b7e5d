#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""A live SSH session through gateway → node → init → sshd, across a checkpoint and restore.

    checkpoint.py [ROUNDS]      default 3

What the product will do by itself is done here by hand, to prove that the chain bears it: the node
stands still, CRIU dumps the running instance and its container is deleted; then it is restored at
the same address and the node, restarted, adopts it. The session's shell keeps its variable, its
background job and its terminal; new logins work; the run goes on and its bill too.
"""
import json
import os
import signal
import subprocess
import sys
import time

import harness
from harness import BASE_IMAGE, await_that, run

CRIU = "/opt/autodl-criu"
HOOK = """#!/bin/bash
# Runs inside the restore, before sockets are rebuilt. The host's end stays down until it is over, or
# the first packets would be answered with RST.
pid=$(sed 's/.*"pid":\\([0-9]*\\).*/\\1/')
ip link delete {veth} 2>/dev/null
ip link add {veth} type veth peer name eth0 address {mac} netns "$pid" || exit 1
ip addr add {host}/32 dev {veth}
nsenter -t "$pid" -n ip -batch - <<END
link set lo up
addr add {address}/32 dev eth0
link set eth0 up
route add {host}/32 dev eth0
route add default via {host} src {address}
END
"""


class Session:
    """An interactive SSH session, written to and read from by lines."""

    def __init__(self, port, key):
        self.process = subprocess.Popen(
            ["ssh", "-tt", "-p", str(port), "-i", key, "-o", "StrictHostKeyChecking=no", "-o",
             "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "root@127.0.0.1", "bash --norc"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text = ""

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def heard(self, text):
        self.text += (self.process.stdout.read() or b"").decode(errors="replace")
        return text in self.text

    def ask(self, line, answer, seconds=30):
        self.say(line)
        await_that(lambda: self.heard(answer), "'%s' in the session; it said: %s" % (answer, self.text[-500:]),
                   seconds, every=0.01)


def start_ticks(pid):
    with open("/proc/%d/stat" % pid) as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[19])


class Move:
    """Checkpoint, delete and restore of one instance's container, as the node's runtime lays it out."""

    def __init__(self, site, instance):
        self.runc = ["runc", "--root", os.path.join(site.run_dir, "rt/runc")]
        self.bundle = os.path.join(site.run_dir, "rt/c", instance)
        self.id = instance
        self.tag = site.tag
        self.folder = os.path.join(site.dir, "move")
        with open(os.path.join(self.bundle, "created.json")) as source:
            self.created = json.load(source)
        with open(os.path.join(self.bundle, "config.json")) as source:
            self.config = json.load(source)
        self.env = dict(os.environ, PATH="%s/bin:%s" % (CRIU, os.environ["PATH"]))
        # conmon's own words, read off the one that runs.
        with open("/proc/%d/cmdline" % self.created["conmon"]["pid"], "rb") as line:
            self.conmon = [word.decode() for word in line.read().split(b"\0")[:-1]]
        self.veth = "%s-%d" % (self.tag, self.created["slot"])

    def network(self):
        """(host address, instance address, MAC) of the veth as it stands."""
        route = [line for line in run("ip", "-o", "route").stdout.splitlines() if " %s " % self.veth in line + " "]
        words = route[0].split()
        host = words[words.index("src") + 1]
        link = run("nsenter", "-t", self.created["init"]["pid"], "-n", "ip", "-o", "link", "show", "eth0").stdout
        return host, words[0], link.split("link/ether ")[1].split()[0]

    def checkpoint(self):
        self.host, self.address, mac = self.network()
        run("rm", "-rf", self.folder)
        os.makedirs(os.path.join(self.folder, "work"))
        os.makedirs(os.path.join(self.folder, "image"))
        hook = os.path.join(self.folder, "hook")
        with open(hook, "w") as out:
            out.write(HOOK.format(veth=self.veth, mac=mac, host=self.host, address=self.address))
        os.chmod(hook, 0o755)
        self.config.setdefault("hooks", {})["createRuntime"] = [{"path": hook}]
        self.config.setdefault("annotations", {})["org.criu.config"] = CRIU + "/etc/runc.conf"
        with open(os.path.join(self.bundle, "config.json"), "w") as out:
            json.dump(self.config, out)
        # runc keeps the annotations of its start: CRIU's options are named here again.
        done = run(*self.runc, "checkpoint", "--image-path", self.folder + "/image", "--work-path",
                   self.folder + "/work", "--tcp-established", "--file-locks", "--empty-ns", "network",
                   self.id, env=self.env, check=False)
        if done.returncode != 0:
            with open(self.folder + "/work/dump.log") as log:
                errors = [line for line in log if "Error" in line]
            raise AssertionError("checkpoint: %s %s" % (done.stderr, "".join(errors[-10:])))
        run(*self.runc, "delete", "--force", self.id, check=False)
        os.chmod(os.path.join(self.folder, "image"), 0o755)
        run("rm", "-f", os.path.join(self.bundle, "exit", self.id), os.path.join(self.bundle, "pid"))

    def restore(self):
        options = ["--restore", self.folder + "/image"]
        for word in ("--work-path", self.folder + "/work", "--tcp-established", "--file-locks", "--empty-ns",
                     "network"):
            options += ["--runtime-opt", word]
        run(*self.conmon, *options, env=self.env, cwd=self.bundle)
        pid_file = os.path.join(self.bundle, "pid")

        def restored():
            assert os.path.exists("/proc/%s" % open(os.path.join(self.bundle, "conmon.pid")).read()), \
                open(self.folder + "/work/restore.log").read()[-2000:]
            return os.path.exists(pid_file) and os.path.getsize(pid_file)
        await_that(restored, "conmon tells the pid", every=0.002)
        run("ip", "link", "set", self.veth, "up")
        run("ip", "route", "replace", self.address + "/32", "dev", self.veth, "src", self.host)
        for name in ("init", "conmon"):
            with open(os.path.join(self.bundle, "pid" if name == "init" else "conmon.pid")) as source:
                pid = int(source.read())
            self.created[name] = dict(self.created[name], pid=pid, start_ticks=start_ticks(pid))
        with open(os.path.join(self.bundle, "created.json"), "w") as out:
            json.dump(self.created, out)


def one_move(site, task, session, number):
    node = site.child_pid("node")
    os.kill(node, signal.SIGSTOP)
    move = Move(site, task.id)
    begun = time.monotonic()
    move.checkpoint()
    dumped = time.monotonic()
    move.restore()
    restored = time.monotonic()
    session.ask("echo again-$((x + %d))" % number, "again-%d" % (42 + number))
    answered = time.monotonic()
    os.kill(node, signal.SIGKILL)
    await_that(lambda: site.child_pid("node") not in (None, node), "node is back")
    return dumped - begun, restored - dumped, answered - begun


def login(port, key):
    return run("ssh", "-p", port, "-i", key, "-o", "StrictHostKeyChecking=no", "-o",
               "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "root@127.0.0.1", "echo new",
               check=False).stdout == "new\n"


def one_life(site, client, key, number):
    """Start, log in, move, log in again, stop, bill. One move a life: see ADR 0003."""
    with open(key + ".pub") as public:
        task = client.create_instance(image=BASE_IMAGE, gpu_type="RTX 3090", disk_size=5,
                                      ssh_keys=[public.read().strip()])
    before = harness.footprint(site.tag)
    task.start()
    await_that(lambda: task.state == "running", "running")
    port = task.ssh["port"]
    session = Session(port, key)
    session.ask("x=42; sleep 1000 & job=$!; echo ready-$x", "ready-42")
    dump, restore, dark = one_move(site, task, session, number)
    session.ask("kill -0 $job && echo job-%d-lives; tty" % number, "job-%d-lives" % number)
    await_that(lambda: login(port, key), "a new login after the node's restart", 30)
    assert task.state == "running", task.state
    session.ask("exit", "exit")
    assert session.process.wait(20) == 0, session.process.returncode
    task.stop()
    task.wait(60)
    assert task.outcome == "completed", (task.outcome, task.reason)
    (power_on,) = client.bill(task.id)["runs"]
    task.release()
    await_that(lambda: task.state == "released", "released")
    await_that(lambda: all(harness.footprint(site.tag)[k] <= before[k] for k in before), "nothing left")
    print("PASS life %d: the session answers after the move and the run was billed %d s; dump %.2f s, "
          "restore %.2f s, dark %.2f s; nothing is left" %
          (number, power_on["seconds"], dump, restore, dark), flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with harness.Installation(images=(BASE_IMAGE,), name="ckpt") as site:
        client, _ = site.new_user("mover", balance_micro=10 ** 12)
        key = os.path.join(site.dir, "key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        for number in range(1, rounds + 1):
            one_life(site, client, key, number)
    print("checkpoint: done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
