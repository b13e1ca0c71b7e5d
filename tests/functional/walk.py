#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""The user-level lines of the product, one after the other, through the public API on real runc.

    walk.py             all lines
    walk.py ssh bill    only those whose name holds one of the words

Prints PASS or FAIL per line, and the time it took.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback

import harness
from harness import BUSYBOX_IMAGE, ROOT, TORCH_IMAGE, autodl, await_that, run

LINES = []


def line(text):
    def keep(function):
        LINES.append((text, function))
        return function
    return keep


class World:
    """What the lines share: one installation, one user, a key, a scratch folder."""

    def __init__(self, site):
        self.site = site
        self.client, self.made = site.new_user("mei")
        self.scratch = tempfile.mkdtemp(prefix="autodl-walk-")
        self.key = os.path.join(self.scratch, "key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key)
        with open(self.key + ".pub") as public:
            self.public_key = public.read().strip()

    def path(self, *parts):
        return os.path.join(self.scratch, *parts)

    def ssh_options(self, task):
        known = self.path("known-%s" % task.id)
        with open(known, "w") as out:
            out.write("[%s]:%d %s\n" % (task.ssh["host"], task.ssh["port"], task.ssh["host_key"]))
        return ["-i", self.key, "-o", "UserKnownHostsFile=" + known, "-o", "StrictHostKeyChecking=yes",
                "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR"]

    def ssh(self, task, command, **keywords):
        return run("ssh", *self.ssh_options(task), "-p", task.ssh["port"],
                   "root@" + task.ssh["host"], command, **keywords)

    def machine(self, image=BUSYBOX_IMAGE, **keywords):
        """A running instance without command."""
        keywords.setdefault("gpu_type", "RTX 3090")
        keywords.setdefault("disk_size", 1)
        task = self.client.create_instance(image=image, ssh_keys=[self.public_key], **keywords)
        task.start()
        await_that(lambda: task.status in ("RUNNING", "STOPPED"), "%s runs" % task.name)
        assert task.status == "RUNNING", (task.state, task.reason)
        return task


def finish(task, timeout=60):
    task.stop()
    task.wait(timeout)
    task.release()


def expect_problem(code, function, *args, **keywords):
    try:
        function(*args, **keywords)
    except autodl.AutodlError as problem:
        assert problem.code == code, "%s instead of %s: %s" % (problem.code, code, problem)
        assert str(problem).strip(), "no text"
        return problem
    raise AssertionError("nothing was refused; %s was expected" % code)


@line("version, health and a signed GET by the SDK")
def signed_get(world):
    status, _, version = world.site.call("GET", "/version")
    assert status == 200 and version["name"] == "autodl" and version["simulated_gpus"] is True
    assert world.site.call("GET", "/healthz")[0] == 200
    types = {row["name"]: row for row in world.client.gpu_types()}
    assert types["RTX 3090"]["total"] == 2 and types["RTX 3090"]["free"] == 2, types
    assert world.client.balance()["available_micro"] == 100000000


@line("the program people write: create, upload a list, start, poll, download")
def program_people_write(world):
    client = world.client
    source = world.path("program")
    os.makedirs(source)
    for name in ("train.py", "model.py"):
        with open(os.path.join(ROOT, "examples/mnist", name)) as original:
            with open(os.path.join(source, name), "w") as copy:
                copy.write(original.read())
    before = os.getcwd()
    os.chdir(source)
    try:
        task = client.create_task(
            name="mnist", image="pytorch/pytorch:1.12-cuda11.6", gpu_type="RTX 3090",
            command="python train.py --data=/root/data --output=/root/output --quick", disk_size=10)
        assert task.status == "CREATED", task.status
        client.upload_files(task_id=task.id, local_path=["train.py", "model.py"], remote_path="/root/")
        task.start()
        seen = set()
        end = time.monotonic() + 180
        while task.status != "STOPPED":
            seen.add(task.status)
            assert time.monotonic() < end, "still %s after 180 s" % task.state
            time.sleep(0.2)
        assert "RUNNING" in seen, seen
        assert (task.outcome, task.exit_code) == ("completed", 0), (
            task.outcome, task.exit_code, task.reason, list(task.logs()))
        client.download_files(task_id=task.id, remote_path="/root/output", local_path="./results")
        with open("results/metrics.json") as metrics:
            accuracy = json.load(metrics)["test_accuracy"]
        assert accuracy >= 0.97, accuracy
    finally:
        os.chdir(before)
    kinds = [event["type"] for event in task.events()]
    assert "image_substituted" in kinds, kinds
    assert any("accuracy" in str(entry) for entry in task.logs()), "no accuracy in the logs"
    world.trained = task


@line("the bill adds up to the micro-unit and the balance shows it")
def bill_adds_up(world):
    bill = world.client.bill(world.trained.id)
    (power_on,) = bill["runs"]
    expected_halves = 2 * power_on["price_micro_per_card_hour"] * power_on["seconds"]
    amount, rest = divmod(expected_halves, 2 * 3600)
    if rest * 2 > 7200 or (rest * 2 == 7200 and amount % 2):
        amount += 1
    assert power_on["amount_micro"] == amount, (power_on, amount)
    assert power_on["seconds"] == power_on["ms"] // 1000
    assert power_on["ms"] == sum(part["ms"] for part in power_on["intervals"] if part["billed"])
    assert bill["total_micro"] == amount
    assert world.client.balance()["balance_micro"] == 100000000 - amount
    world.trained.release()


@line("ssh, scp, sftp and rsync with a key given at creation, as soon as it runs")
def ssh_and_friends(world):
    task = world.machine(image=harness.BASE_IMAGE)
    assert world.ssh(task, "echo hello-$((40+2))").stdout == "hello-42\n"
    assert world.ssh(task, "exit 7", check=False).returncode == 7
    assert "127.0.0.1" in world.ssh(task, "echo $SSH_CONNECTION").stdout
    sent = world.path("sent.bin")
    with open(sent, "wb") as out:
        out.write(os.urandom(3 << 20))
    options, port, host = world.ssh_options(task), task.ssh["port"], "root@" + task.ssh["host"]
    run("scp", "-q", *options, "-P", port, sent, host + ":/root/a.bin")
    run("scp", "-q", "-O", *options, "-P", port, host + ":/root/a.bin", world.path("a.bin"))
    batch = world.path("batch")
    with open(batch, "w") as out:
        out.write("put %s /root/b.bin\nget /root/b.bin %s\n" % (sent, world.path("b.bin")))
    run("sftp", "-q", *options, "-P", port, "-b", batch, host)
    shell = "ssh %s -p %d" % (" ".join(options), port)
    run("rsync", "-a", "-e", shell, sent, host + ":/root/c.bin")
    run("rsync", "-a", "-e", shell, host + ":/root/c.bin", world.path("c.bin"))
    with open(sent, "rb") as original:
        data = original.read()
    for name in ("a.bin", "b.bin", "c.bin"):
        with open(world.path(name), "rb") as copy:
            assert copy.read() == data, name
    finish(task)


@line("a busybox-only image: ssh, sftp, rsync, a command")
def busybox_only(world):
    task = world.machine()
    assert world.ssh(task, "echo ok; id -u").stdout.split() == ["ok", "0"]
    sent = world.path("small")
    with open(sent, "w") as out:
        out.write("small\n")
    options, port, host = world.ssh_options(task), task.ssh["port"], "root@" + task.ssh["host"]
    run("scp", "-q", *options, "-P", port, sent, host + ":/root/small")
    shell = "ssh %s -p %d" % (" ".join(options), port)
    run("rsync", "-a", "-e", shell, sent, host + ":/root/by-rsync")
    assert world.ssh(task, "cat /root/small /root/by-rsync").stdout == "small\nsmall\n"
    finish(task)


@line("a key of the account opens an instance; an unknown key does not")
def account_keys(world):
    client, made = world.site.new_user("keys")
    client.add_ssh_key("laptop", world.public_key)
    task = client.create_instance(image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1)
    task.start()
    await_that(lambda: task.status == "RUNNING", "it runs")
    assert world.ssh(task, "echo in").stdout == "in\n"
    stranger = world.path("stranger")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stranger)
    refused = run("ssh", "-i", stranger, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o",
                  "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-p",
                  task.ssh["port"], "root@127.0.0.1", "true", check=False)
    assert refused.returncode == 255 and "denied" in refused.stderr.lower(), refused.stderr
    finish(task)


@line("shutdown, /usr/bin/shutdown and poweroff typed inside end the instance")
def shutdown_inside(world):
    for image, commands in ((BUSYBOX_IMAGE, ("shutdown", "/usr/bin/shutdown", "poweroff")),
                            (harness.BASE_IMAGE, ("shutdown", "/usr/bin/shutdown", "poweroff"))):
        for command in commands:
            task = world.machine(image=image)
            world.ssh(task, command, check=False)
            await_that(lambda: task.status == "STOPPED", "%s ends a %s" % (command, image))
            assert task.outcome in ("completed", "cancelled"), (task.outcome, task.reason)
            task.release()


@line("the environment is the same for command, exec and ssh, quotes and newlines included")
def same_environment(world):
    value = "a 'b' \"c\"\n$HOME `x` \\ ü"
    task = world.machine(env={"TRICKY": value, "PLAIN": "1"})
    by_ssh = world.ssh(task, "printf %s \"$TRICKY\"").stdout
    by_exec = world.site.cli(world.made, "exec", task.id, "--", "sh", "-c", "printf %s \"$TRICKY\"").stdout
    assert by_ssh == value and by_exec == value, (by_ssh, by_exec)
    finish(task)


@line("upload and download: before start, while running, after stop; folders; hash-verified")
def files_at_any_time(world):
    client = world.client
    folder = world.path("tree")
    os.makedirs(os.path.join(folder, "sub/empty"))
    digests = {}
    for name, size in (("one", 10), ("sub/two", 9 << 20), ("sub/名字 x", 0)):
        data = os.urandom(size)
        digests[name] = hashlib.sha256(data).hexdigest()
        with open(os.path.join(folder, name), "wb") as out:
            out.write(data)
    task = client.create_instance(image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1,
                                  ssh_keys=[world.public_key])
    for moment in ("created", "running", "stopped"):
        if moment == "running":
            task.start()
            await_that(lambda: task.status == "RUNNING", "it runs")
        if moment == "stopped":
            task.stop()
            task.wait(60)
        remote = "/root/at-" + moment
        client.upload_files(task_id=task.id, local_path=folder, remote_path=remote + "/")
        back = world.path("back-" + moment)
        client.download_files(task_id=task.id, remote_path=remote + "/tree", local_path=back)
        for name, digest in digests.items():
            with open(os.path.join(back, name), "rb") as copy:
                assert hashlib.sha256(copy.read()).hexdigest() == digest, (moment, name)
        assert os.path.isdir(os.path.join(back, "sub/empty")), moment
    task.release()


@line("a missing local file fails before any byte moves; ../ and symlink tricks are refused")
def file_tricks(world):
    client = world.client
    task = client.create_instance(image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1)
    good = world.path("good")
    with open(good, "w") as out:
        out.write("good")
    try:
        client.upload_files(task_id=task.id, local_path=[good, world.path("missing")],
                            remote_path="/root/")
        raise AssertionError("the missing file was not noticed")
    except (autodl.AutodlError, OSError) as problem:
        assert "missing" in str(problem), problem
    listed = [row["path"] for row in client.list_files(task.id, "/root")]
    assert "good" not in listed, listed
    with open("/etc/hostname") as host:
        secret = host.read()
    for path in ("/root/../../../../etc/hostname", "/proc/1/root/etc/hostname"):
        try:
            back = world.path("trick")
            client.download_files(task_id=task.id, remote_path=path, local_path=back)
            with open(os.path.join(back, "hostname")) as copy:
                assert copy.read() != secret, "read the host's file by %s" % path
        except (autodl.AutodlError, OSError):
            pass
    task.release()


@line("disk_size is hard: ENOSPC inside, and a clear refusal of an upload that does not fit")
def hard_disk_size(world):
    task = world.machine()
    full = world.ssh(task, "dd if=/dev/zero of=/root/fill bs=1M count=3000 2>&1; echo rc $?")
    assert "No space left" in full.stdout, full.stdout
    big = world.path("big")
    with open(big, "wb") as out:
        out.truncate(64 << 20)
    try:
        world.client.upload_files(task_id=task.id, local_path=big, remote_path="/root/")
        raise AssertionError("an upload onto a full disk was accepted")
    except autodl.AutodlError as problem:
        assert "full" in str(problem).lower() or "space" in str(problem).lower(), problem
    finish(task)


@line("no card free: queued with place and reason, starts by itself, can be cancelled")
def queue(world):
    first = world.machine(gpu_type="A100 40GB")
    second = world.client.create_instance(image=BUSYBOX_IMAGE, gpu_type="A100 40GB", disk_size=1)
    third = world.client.create_instance(image=BUSYBOX_IMAGE, gpu_type="A100 40GB", disk_size=1)
    second.start()
    third.start()
    await_that(lambda: all(t.status == "QUEUED" and "A100" in t.queue["reason"]
                           for t in (second, third)), "both wait for an A100")
    assert (second.queue["position"], third.queue["position"]) == (1, 2), (second.queue, third.queue)
    third.stop()
    third.wait(20)
    assert third.outcome == "cancelled", third.outcome
    finish(first)
    await_that(lambda: second.status == "RUNNING", "the queued one starts by itself")
    finish(second)
    third.release()


@line("exit codes, signals, a command that does not exist and memory over the limit are told")
def how_it_ended(world):
    cases = [("exit 3", "failed", 3), ("true", "completed", 0),
             ("no-such-program --x", "failed", 127), ("kill -9 $$", "failed", None)]
    for command, outcome, code in cases:
        task = world.client.create_task(name=None, image=BUSYBOX_IMAGE, gpu_type="RTX 3090",
                                        command=command, disk_size=1)
        task.start()
        task.wait(60)
        assert (task.outcome, task.exit_code) == (outcome, code), (
            command, task.outcome, task.exit_code, task.reason)
        if "no-such" in command:
            assert any("not found" in str(entry) for entry in task.logs()), list(task.logs())
        if "kill" in command:
            assert "9" in task.reason or "KILL" in task.reason, task.reason
        task.release()


@line("memory over the limit is reported as such, with the limit")
def out_of_memory(world):
    task = world.client.create_task(
        name=None, image=TORCH_IMAGE, gpu_type="RTX 3090", disk_size=2,
        command="python -c 'x = [b\"x\" * (1 << 28) for _ in range(400)]'")
    task.start()
    task.wait(120)
    assert task.outcome == "failed", task.outcome
    assert "memory" in task.reason.lower() and "GiB" in task.reason, task.reason
    task.release()


@line("max_runtime ends a run as a rule, and the one to fire first is shown")
def max_runtime(world):
    task = world.client.create_task(name=None, image=BUSYBOX_IMAGE, gpu_type="RTX 3090",
                                    command="sleep 600", disk_size=1, max_runtime=3)
    task.start()
    task.wait(60)
    assert task.outcome == "rule" and "max_runtime" in task.reason, (task.outcome, task.reason)
    assert 3 <= task.runtime.total_seconds() <= 6, task.runtime
    task.release()


@line("Monitor inside without arguments and outside with an id")
def monitor(world):
    task = world.machine(image=TORCH_IMAGE, disk_size=5)
    outside = autodl.Monitor(task.id, client=world.client)
    assert 0 <= outside.get_gpu_utilization() <= 100
    assert outside.get_memory_usage() >= 0
    inside = world.ssh(task, "python -c 'import autodl; m = autodl.Monitor(); "
                             "print(m.get_gpu_utilization(), m.get_memory_usage())'").stdout.split()
    assert len(inside) == 2 and 0 <= float(inside[0]) <= 100, inside
    smi = world.ssh(task, "nvidia-smi -L").stdout
    assert smi.count("RTX 3090") == 1, smi
    finish(task)


@line("the tools of the default image work")
def default_tools(world):
    task = world.machine(image=TORCH_IMAGE, disk_size=5)
    world.ssh(task, "set -e; python --version; pip --version; nvidia-smi; wget --version; "
                    "curl --version; unzip -v; git --version; sudo -n true; tmux -V; "
                    "nvtop --version; htop --version; apt --version", timeout=60)
    world.ssh(task, "tmux new-session -d -s w 'sleep 100' && tmux ls")
    told = world.ssh(task, "check_env; echo status $?").stdout
    assert "RTX 3090" in told and "status" in told, told
    finish(task)


@line("bad input gets a clear, specific error and changes nothing")
def bad_input(world):
    client = world.client
    good = dict(name=None, image=BUSYBOX_IMAGE, command="true", gpu_type="RTX 3090", disk_size=1)
    cases = [("unknown_card", {"gpu_type": "RTX 3909"}), ("unknown_image", {"image": "autodl/pytroch"}),
             ("gpu_type_required", {"gpu_type": None}), ("bad_gpu_count", {"gpu_count": -1}),
             ("bad_gpu_count", {"gpu_count": 10 ** 6}), ("bad_disk_size", {"disk_size": 0}),
             ("bad_disk_size", {"disk_size": -5}), ("bad_disk_size", {"disk_size": 10 ** 9}),
             ("bad_name", {"name": "a\nb"}), ("bad_name", {"name": "x" * 65}),
             ("bad_name", {"name": "a/b"}), ("bad_env", {"env": {"A=B": "x"}}),
             ("bad_max_runtime", {"max_runtime": -1}), ("bad_workdir", {"workdir": "relative"}),
             ("bad_ssh_key", {"ssh_keys": ["ssh-rsa nonsense"]}), ("bad_restart", {"restart": "maybe"})]
    before = {task.id for task in client.list_tasks()}
    for code, change in cases:
        problem = expect_problem(code, client.create_task, **dict(good, **change))
        if code in ("unknown_card", "unknown_image"):
            assert problem.candidates, "no near matches for %s" % change
    assert {task.id for task in client.list_tasks()} <= before
    for name in ("中文名字", "emoji 🚀"):
        task = client.create_task(**dict(good, name=name))
        assert task.name == name
        expect_problem("name_taken", client.create_task, **dict(good, name=name))
        task.release()
    expect_problem("no_such_instance", client.get_task, "01ARZ3NDEKTSV4RRFFQ69G5FAV")


@line("wrong keys, bad signatures, replays and skewed clocks are refused by name")
def sign_in(world):
    made = world.made
    for keys, code in (((made["access_key"], "adl_sk_wrong"), "bad_signature"),
                       (("AKNOSUCHKEY000000000", made["secret_key"]), "unknown_key")):
        client = autodl.Client(access_key=keys[0], secret_key=keys[1], endpoint=world.site.endpoint)
        expect_problem(code, client.balance)
    assert world.site.call("GET", "/api/v1/balance")[2]["code"] == "missing_credentials"
    assert world.site.call("GET", "/api/v1/balance", token="adl_nope")[2]["code"] == "bad_token"


@line("another user can neither see nor touch an instance")
def strangers(world):
    other, _ = world.site.new_user("mallory")
    task = world.client.create_instance(image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1)
    for touch in (other.get_task, lambda i: other.download_files(task_id=i, remote_path="/root",
                                                                 local_path=world.path("stolen"))):
        expect_problem("no_such_instance", touch, task.id)
    assert task.id not in [seen.id for seen in other.list_tasks()]
    task.release()


@line("too little balance is refused with 402 and what is missing")
def too_poor(world):
    poor, _ = world.site.new_user("poor", balance_micro=1000)
    task = poor.create_instance(image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1)
    problem = expect_problem("balance_too_low", task.start)
    assert "1.58" in str(problem) or "1580000" in str(problem), problem
    assert task.status == "CREATED"
    task.release()


@line("events and logs by SSE go on from Last-Event-ID")
def server_sent_events(world):
    task = world.client.create_task(name=None, image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1,
                                    command="for i in 1 2 3; do echo line-$i; sleep 0.2; done")
    task.start()
    followed = "".join(str(entry) for entry in task.logs(follow=True))
    assert all("line-%d" % i in followed for i in (1, 2, 3)), followed
    task.wait(30)
    events = list(task.events())
    sequence = [event["seq"] for event in events]
    assert sequence == sorted(set(sequence)), sequence
    command = ["curl", "-sN", "--max-time", "2", "-H", "Accept: text/event-stream", "-H",
               "Authorization: Bearer " + world.made["token"], "-H",
               "Last-Event-ID: %d" % sequence[1],
               "%s/api/v1/instances/%s/events" % (world.site.endpoint, task.id)]
    stream = subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True).stdout
    ids = [int(row[3:]) for row in stream.splitlines() if row.startswith("id:")]
    assert ids == sequence[2:], (ids, sequence)
    task.release()


@line("an idempotency key gives one effect; another body under it is refused")
def idempotency(world):
    body = {"image": BUSYBOX_IMAGE, "gpu_type": "RTX 3090", "gpu_count": 1, "disk_bytes": 1 << 30}
    send = lambda payload: world.site.call(  # noqa: E731
        "POST", "/api/v1/instances", payload, token=world.made["token"],
        headers={"Idempotency-Key": "walk-once"})
    first, second = send(body), send(body)
    assert first[0] == second[0] == 202 and first[2]["id"] == second[2]["id"]
    status, _, problem = send(dict(body, disk_bytes=2 << 30))
    assert (status, problem["code"]) == (409, "idempotency_mismatch"), problem
    world.client.get_task(first[2]["id"]).release()


@line("kill -9 of control, gateway and node: the run goes on, is adopted, starts once")
def kills(world):
    task = world.client.create_task(
        name=None, image=BUSYBOX_IMAGE, gpu_type="RTX 3090", disk_size=1,
        command="echo start >> /root/starts; i=0; while [ $i -lt 80 ]; do echo tick $i; i=$((i+1)); "
                "sleep 0.1; done; exit 5", ssh_keys=[world.public_key])
    task.start()
    await_that(lambda: task.status == "RUNNING", "it runs")
    for role in ("control", "gateway", "node"):
        world.site.kill_child(role)
    world.site.await_ready()
    task.wait(60)
    assert (task.outcome, task.exit_code) == ("failed", 5), (task.outcome, task.exit_code, task.reason)
    back = world.path("starts")
    world.client.download_files(task_id=task.id, remote_path="/root/starts", local_path=back)
    with open(os.path.join(back, "starts")) as starts:
        assert starts.read() == "start\n"
    assert "tick 79" in "".join(str(entry) for entry in task.logs())
    assert 7 <= task.runtime.total_seconds() <= 15, task.runtime
    task.release()


@line("the CLI: gpus, images, create, start, ps, show, exec, ssh, logs, cp, bill, events, run")
def command_line(world):
    cli = lambda *argv, **more: world.site.cli(world.made, *argv, **more)  # noqa: E731
    assert "RTX 3090" in cli("gpus").stdout and BUSYBOX_IMAGE in cli("images").stdout
    made = json.loads(cli("create", "--image", BUSYBOX_IMAGE, "--gpu", "rtx3090", "--disk", "1",
                          "--ssh-key", world.key + ".pub", "-o", "json").stdout)
    name = made["name"]
    cli("start", name, "--wait")
    assert name in cli("ps").stdout
    assert json.loads(cli("show", name, "-o", "json").stdout)["state"] == "running"
    assert cli("exec", name, "--", "sh", "-c", "echo out; exit 9", check=False).returncode == 9
    assert cli("ssh", name, "-i", world.key, "--", "exit 4", check=False).returncode == 4
    with open(world.path("cli-file"), "w") as out:
        out.write("by cli\n")
    cli("cp", world.path("cli-file"), name + ":/root/cli-file")
    cli("cp", name + ":/root/cli-file", world.path("cli-back"))
    with open(world.path("cli-back")) as back:
        assert back.read() == "by cli\n"
    assert "created" in cli("events", name).stdout
    cli("stop", name, "--wait")
    assert "1.58" in cli("bill", name).stdout
    cli("release", name)
    assert "99" in cli("balance").stdout
    folder = world.path("run")
    os.makedirs(folder)
    with open(os.path.join(folder, "job.sh"), "w") as out:
        out.write("echo from-the-job; mkdir -p output; echo made > output/file; exit 6\n")
    done = cli("run", "--gpu", "RTX 3090", "--image", BUSYBOX_IMAGE, "--disk", "1", "--", "sh",
               "job.sh", check=False, cwd=folder)
    assert done.returncode == 6 and "from-the-job" in done.stdout, (done.returncode, done.stderr)
    with open(os.path.join(folder, "output/file")) as output:
        assert output.read() == "made\n"


@line("after release nothing is left: mounts, loops, veths, nft elements, cgroups as before")
def nothing_left(world):
    for task in world.client.list_tasks():
        task.release()
    await_that(lambda: not list(world.client.list_tasks()), "all are released", 60)
    after = {}

    def clean():
        after.update(harness.footprint(world.site.tag))
        return after["loops"] == world.before["loops"] and after["veths"] == 0
    await_that(clean, "footprint %s as before %s" % (after, world.before))
    assert after == world.before, (after, world.before)


def main(words):
    chosen = [(text, f) for text, f in LINES if not words or any(w in text or w in f.__name__ for w in words)]
    failed = 0
    with harness.Installation(images=(TORCH_IMAGE, BUSYBOX_IMAGE, harness.BASE_IMAGE),
                              name="walk") as site:
        world = World(site)
        world.before = harness.footprint(site.tag)
        for text, function in chosen:
            begun = time.monotonic()
            try:
                function(world)
                print("PASS %s (%.1f s)" % (text, time.monotonic() - begun), flush=True)
            except Exception:
                failed += 1
                print("FAIL %s (%.1f s)" % (text, time.monotonic() - begun), flush=True)
                traceback.print_exc(file=sys.stdout)
        if failed:
            print(site.log_tail())
    print("walk: done, %d of %d lines failed" % (failed, len(chosen)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
