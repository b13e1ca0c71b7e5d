#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""An online backup, and its restore while a run goes on: the run is adopted, ends and is billed once.

    backup.py
"""
import os
import subprocess
import sys

import harness
from harness import BUSYBOX_IMAGE, await_that

SECONDS = 12


def program(site, name, *argv):
    env = dict(os.environ, HOME=site.dir, AUTODL_TOKEN=site.operator["token"], AUTODL_ENDPOINT=site.endpoint)
    return subprocess.run([os.path.join(harness.BUILD, "apps", name, name)] + list(argv), env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)


def main():
    with harness.Installation(images=(BUSYBOX_IMAGE,), name="backup") as site:
        client, _ = site.new_user("keeper")
        task = client.create_task(name="a", image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1,
                                  command="date >> /root/starts; sleep %d; exit 7" % SECONDS)
        task.start()
        await_that(lambda: task.state == "running", "running")
        kept = os.path.join(site.dir, "kept.db")
        done = program(site, "autodl", "admin", "backup", kept)
        assert done.returncode == 0 and "master key" in done.stdout + done.stderr, done
        print("PASS a backup while in use", flush=True)
        refused = program(site, "autodld", "restore", kept, "--config", site.config)
        assert refused.returncode != 0 and "stop it first" in refused.stderr, refused
        print("PASS a restore under a running control is refused", flush=True)
        site.stop()
        done = program(site, "autodld", "restore", kept, "--config", site.config)
        assert done.returncode == 0, done
        site.start()
        task.wait(60)
        assert (task.outcome, task.exit_code) == ("failed", 7), (task.outcome, task.exit_code, task.reason)
        (power_on,) = client.bill(task.id)["runs"]
        assert SECONDS - 1 <= power_on["seconds"] <= SECONDS + 2, power_on
        folder = os.path.join(site.dir, "down")
        client.download_files(task_id=task.id, remote_path="/root/starts", local_path=folder)
        with open(os.path.join(folder, "starts")) as starts:
            assert len(starts.readlines()) == 1
        print("PASS the run went on, was adopted, started once and was billed %d s" % power_on["seconds"])
    print("backup: done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
