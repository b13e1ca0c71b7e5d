#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""kill -9 at named crash points and at random times, while runs are under way.

    kills.py [N] [SEED]     default 10

Each round starts a run whose command notes each of its starts in a file, kills control, gateway,
node or all of them (at a crash point named in the source, or after a random time), and then checks:
the run ends; its command started once (or, where the run is lost or never started, at most once);
the exit code is right; the bill equals the container's life as the outside saw it, ± 1 s; and after
the release the machine holds what it held before. Prints one line per round and a table.
"""
import glob
import os
import random
import re
import signal
import sys
import time
import traceback

import harness
from harness import BUSYBOX_IMAGE, ROOT, await_that

COMMAND = "date +%s.%N >> /root/starts; sleep 1.5; exit 7"
ROLES = ("control", "gateway", "node")


def crash_points():
    """(role, name) of each crash point in the source."""
    points = set()
    for path in glob.glob(os.path.join(ROOT, "src/**/*.cpp"), recursive=True):
        if path.endswith("_test.cpp") or "/testing/" in path:
            continue
        module = os.path.relpath(path, os.path.join(ROOT, "src")).split(os.sep)[0]
        role = "control" if module in ("control", "store", "http") else "node"
        with open(path, encoding="utf-8") as source:
            points.update((role, name) for name in re.findall(r'crash_point\("([^"]+)"\)', source.read()))
    return sorted(points)


def init_life(site):
    """Watches for the container's PID 1 from outside: (first seen, last seen) or None."""
    pattern = "%s/" % site.tag
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open("/proc/%s/cgroup" % pid) as table:
                    if pattern in table.read():
                        return True
            except OSError:
                continue
    return False


def kill_all(site):
    pids = [site.child_pid(role) for role in ROLES] + [site.server.pid]
    for pid in pids:
        if pid:
            os.kill(pid, signal.SIGKILL)
    site.server.wait()
    site.start()


def one_round(site, client, rng, armed):
    before = harness.footprint(site.tag)
    if armed:
        role, point = armed
        site.stop()
        site.start(env={"AUTODL_CRASH_ONCE": "%s=%s:%d" % (role, point, rng.choice((1, 1, 2)))}, wait=False)
        site.await_ready()
    task = client.create_task(name=None, image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1,
                              command=COMMAND)
    task.start()
    what = "at %s" % armed[1] if armed else None
    if not armed:
        role = rng.choice(ROLES + ("all",))
        wait = rng.random() * 2.5
        what = "%s after %.2f s" % (role, wait)
        time.sleep(wait)
        kill_all(site) if role == "all" else site.kill_child(role)
    first = last = None
    end = time.monotonic() + 90
    while time.monotonic() < end:
        now = time.monotonic()
        if init_life(site):
            first = first or now
            last = now
        elif task.status == "STOPPED":
            break
        time.sleep(0.05)
    assert task.status == "STOPPED", "still %s (%s) after 90 s" % (task.state, task.reason)
    folder = os.path.join(site.dir, "starts-%s" % task.id)
    starts = 0
    try:
        client.download_files(task_id=task.id, remote_path="/root/starts", local_path=folder)
        with open(os.path.join(folder, "starts")) as notes:
            starts = len(notes.readlines())
    except harness.autodl.AutodlError as problem:
        if problem.code != "not_found" and "no such" not in str(problem).lower():
            raise
    outcome = task.outcome
    if outcome == "failed":
        assert (task.exit_code, starts) == (7, 1), (task.exit_code, starts, task.reason)
    else:
        assert outcome in ("lost", "start_failed") and starts <= 1, (outcome, starts, task.reason)
    seconds = task.runtime.total_seconds()
    if outcome == "failed":
        assert 1.0 <= seconds <= 4, "billed %g s" % seconds
        if first is not None and not armed:
            assert seconds <= last - first + 4, (seconds, last - first)
    (power_on,) = client.bill(task.id)["runs"]
    assert power_on["seconds"] == int(seconds), (power_on, seconds)
    task.release()
    await_that(lambda: task.state == "released", "released")
    await_that(lambda: harness.footprint(site.tag) == before,
               "the footprint is %s again; it is %s" % (before, harness.footprint(site.tag)))
    return what, outcome


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10 ** 6)
    rng = random.Random(seed)
    points = crash_points()
    rng.shuffle(points)
    print("kills: %d rounds, seed %d, %d crash points in the source" % (rounds, seed, len(points)))
    failed, outcomes = 0, {}
    with harness.Installation(images=(BUSYBOX_IMAGE,), name="kills") as site:
        client, _ = site.new_user("kills", balance_micro=10 ** 12)
        for number in range(rounds):
            armed = points[number // 2 % len(points)] if points and number % 2 == 0 else None
            try:
                what, outcome = one_round(site, client, rng, armed)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
                print("PASS kill %d: %s: %s" % (number + 1, what, outcome), flush=True)
            except Exception:
                failed += 1
                print("FAIL kill %d (armed: %s)" % (number + 1, armed), flush=True)
                traceback.print_exc(file=sys.stdout)
                print(site.log_tail(), flush=True)
                if site.server.poll() is not None:
                    site.start()
    print("kills: done, %d of %d failed; outcomes %s" % (failed, rounds, outcomes))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
