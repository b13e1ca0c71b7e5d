#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Create → SSH banner through the public API, beside podman in the same run.

    start_latency.py [ROUNDS]        default 30, for an image of 1 layer and one of 40

autodl: POST /instances, POST /start, then the first SSH banner on the instance's endpoint.
podman: `podman run -d --userns=auto` of the same image with the same toolbox's sshd and a published
port, then the first banner. The two take turns. Prints p50 and p99 of both, the ratio of the p50s,
and where autodl's time goes (from the instance's own events).
"""
import os
import socket
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/functional"))
import harness  # noqa: E402
from harness import BUSYBOX_IMAGE, CACHE, LAYERS_IMAGE, run  # noqa: E402

FIRST_PORT = 28022


def banner(port, deadline=30):
    """Waits for SSH's version line on a loopback port; pre-banner lines are not it."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
                peer.settimeout(5)
                if peer.recv(8).startswith(b"SSH-2.0"):
                    return
        except OSError:
            pass
        time.sleep(0.002)
    raise AssertionError("no SSH banner on port %d within %d s" % (port, deadline))


def by_autodl(client, image, key):
    begun = time.monotonic()
    task = client.create_instance(image=image, gpu_type="RTX 3090", disk_size=10, ssh_keys=[key])
    task.start()
    banner(task.ssh["port"])
    took = time.monotonic() - begun
    events = [(event["type"], event["at"]) for event in task.events()]
    task.stop()
    task.wait(30)
    task.release()
    harness.await_that(lambda: task.state == "released", "the instance is gone before podman's turn")
    return took, events


class Podman:
    """The same image and sshd under podman, with a published port."""

    def __init__(self, toolbox, folder):
        # A store of its own: what our node has mounted would keep podman from removing containers.
        store = os.path.join(CACHE, "podman")
        for image in (BUSYBOX_IMAGE, LAYERS_IMAGE):
            run(os.path.join(harness.ROOT, "scripts/build-image"), image, "--root", store, timeout=1800)
        self.base = ["podman", "--root", store, "--runroot", store + "-run", "--cgroup-manager", "cgroupfs",
                     "--runtime", "runc"]
        self.port = FIRST_PORT
        self.tables = self.firewall()
        self.toolbox = toolbox
        self.folder = folder
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", os.path.join(folder, "host_key"))
        os.chmod(os.path.join(folder, "host_key"), 0o644)
        open(os.path.join(folder, "empty"), "w").close()
        with open(os.path.join(folder, "start"), "w") as script:
            script.write("mkdir -p /run/sshd; cp /b/host_key /run/host_key; chmod 600 /run/host_key\n"
                         "exec /opt/autodl/sbin/sshd -D -e -f /b/empty -h /run/host_key -o UsePAM=no "
                         "-o StrictModes=no -o PidFile=none "
                         "-o SshdSessionPath=/opt/autodl/libexec/sshd-session "
                         "-o SshdAuthPath=/opt/autodl/libexec/sshd-auth -p 22\n")

    def start(self, image):
        # A new port each time: netavark may leave the rule of the last one behind.
        self.port += 1
        begun = time.monotonic()
        run(*self.base, "run", "-d", "--replace", "--ulimit=nofile=1024:4096",
            "--ulimit=nproc=4096:4096", "--name", "autodl-bench", *self.userns, "-p",
            "127.0.0.1:%d:22" % self.port, "-v", self.toolbox + ":/opt/autodl:ro", "-v",
            self.folder + ":/b:ro", "--entrypoint", "/opt/autodl/bin/sh", image, "/b/start")
        banner(self.port)
        took = time.monotonic() - begun
        self.remove()
        return took


    def prepare(self, image):
        """podman 4.3 loses the mapping of an image with very many layers: then without a user
        namespace, which favours podman."""
        self.userns = ["--userns=auto:size=65536"]
        try:
            self.start(image)
        except AssertionError as refused:
            self.remove()
            self.userns = []
            return "; podman without --userns=auto, which it refuses here: " + str(refused).strip().splitlines()[-1][:160]
        return ""

    def remove(self):
        # podman's own clean-up after the kill may be at it still: then its rm says "busy".
        harness.await_that(lambda: run(*self.base, "rm", "-f", "-t", "0", "--ignore", "autodl-bench",
                                       check=False).returncode == 0, "podman removes its container")

    @staticmethod
    def firewall():
        return set(run("nft", "list", "tables").stdout.splitlines())

    def clean_up(self):
        """What podman added to the firewall and does not take away."""
        for table in self.firewall() - self.tables:
            if table in ("table ip nat", "table ip filter"):
                run("nft", "delete", *table.split())


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def phases(rounds):
    """Mean milliseconds between an instance's events."""
    sums = {}
    for events in rounds:
        times = [harness.seconds_of(at) for _, at in events]
        for index in range(1, len(events)):
            key = "%s → %s" % (events[index - 1][0], events[index][0])
            sums.setdefault(key, []).append(1000 * (times[index] - times[index - 1]))
    return ["%s %.0f ms" % (key, statistics.mean(v)) for key, v in sums.items() if len(v) > len(rounds) / 2]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with harness.Installation(images=(BUSYBOX_IMAGE, LAYERS_IMAGE), name="bench") as site, \
            harness.subordinate_ids():
        client, _ = site.new_user("bench", balance_micro=10 ** 12)
        key_path = os.path.join(site.dir, "key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key_path)
        with open(key_path + ".pub") as public:
            key = public.read().strip()
        podman = Podman(harness.ensure_toolbox(), site.dir)
        try:
            for image in (BUSYBOX_IMAGE, LAYERS_IMAGE):
                ours, theirs, traces = [], [], []
                note = podman.prepare(image)
                for turn in range(rounds + 2):
                    took, events = by_autodl(client, image, key)
                    other = podman.start(image)
                    if turn >= 2:  # two rounds to warm up
                        ours.append(took)
                        theirs.append(other)
                        traces.append(events)
                print("%s, %d rounds: autodl p50 %.0f ms p99 %.0f ms; podman p50 %.0f ms p99 %.0f ms; "
                      "ratio of p50 %.2f%s" % (image, rounds, 1000 * percentile(ours, 0.5),
                                             1000 * percentile(ours, 0.99), 1000 * percentile(theirs, 0.5),
                                             1000 * percentile(theirs, 0.99),
                                             percentile(ours, 0.5) / percentile(theirs, 0.5), note), flush=True)
                print("  " + "; ".join(phases(traces)), flush=True)
        finally:
            podman.clean_up()


if __name__ == "__main__":
    main()
