#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Rents a card, trains examples/mnist on it, fetches the results and shows the bill.

    python examples/quickstart.py [--quick] [--again] [--results ./results] [--ssh-key KEY]

What scripts/quickstart runs at its end, and a program to start from. --quick trains on small
digits (seconds); --again trains anew where it was done before. With --ssh-key (a private key whose
.pub lies beside it) a machine to log in to is left running, and the command for it is printed.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import time

import autodl

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "pytorch/pytorch:1.12-cuda11.6"
TASK_NAME, MACHINE_NAME = "quickstart-mnist", "quickstart-ssh"


def pick_card(client):
    """The name of a card type that is free, the classic one first."""
    cards = client.gpu_types()
    for card in cards:
        print("  %-12s %d of %d free, %s %s/h%s" % (
            card["name"], card["free"], card["total"], card.price_per_hour, card["currency"],
            "  (SIMULATED)" if card["simulated"] else ""))
    if not cards:
        sys.exit("this server has no cards")
    if any(card["simulated"] for card in cards):
        print("  These cards are SIMULATED (there is no NVIDIA driver): computation runs on the CPU.")
    names = [card["name"] for card in cards]
    free = [card["name"] for card in cards if card["free"]]
    return "RTX 3090" if "RTX 3090" in names else (free or names)[0]


def find(client, name):
    """The instance of that name, or None; one that was released is none."""
    try:
        task = client.get_task(name)
    except autodl.NotFoundError:
        return None
    return None if task.state == "released" else task


def let_go(task):
    """Releases it and waits until its name is free again."""
    task.release()
    end = time.monotonic() + 300
    while task.state != "released":
        if time.monotonic() > end:
            sys.exit("%s is not released after 5 minutes: it is %s" % (task.name, task.state))
        time.sleep(0.2)


def make_task(client, quick):
    card = pick_card(client)
    print("creating a task on an %s with %s" % (card, IMAGE))
    command = "python train.py --data=/root/data --output=/root/output"
    task = client.create_task(name=TASK_NAME, image=IMAGE, gpu_type=card, disk_size=10,
                              command=command + (" --quick" if quick else ""))
    for event in task.events():
        if event["type"] == "image_substituted":
            print("  note: %s" % event["message"])
    print("uploading train.py and model.py")
    files = [os.path.join(HERE, "mnist", name) for name in ("train.py", "model.py")]
    client.upload_files(task_id=task.id, local_path=files, remote_path="/root/")
    task.start()
    return task


def watch(task):
    """Shows how far it is until it has ended."""
    shown = None
    while True:
        info = task.info()
        line = info["status"]
        if info["queue"]:
            line += ", place %d: %s" % (info["queue"]["position"], info["queue"]["reason"])
        if info["progress"]:
            line += ", %s" % info["progress"]["phase"]
        if line != shown:
            print("  %s" % line, flush=True)
            shown = line
        if info["status"] in ("RUNNING", "STOPPING", "STOPPED"):
            break
        time.sleep(0.2)
    for entry in task.logs(follow=True):
        print("  | %s" % entry, flush=True)
    while task.status != "STOPPED":
        time.sleep(0.2)
    print("  STOPPED after %s: %s" % (task.runtime, task.outcome))


def show_bill(client, task):
    bill = client.bill(task.id)
    print("bill of %s" % bill["name"])
    for run in bill["runs"]:
        for part in run["intervals"]:
            print("  run %d   %s to %s   %.3f s%s" % (
                run["attempt"], part["from"], part["to"], part["ms"] / 1000,
                "" if part["billed"] else "   not billed: " + part["reason"]))
        print("  run %d   %d s on %d x %s at %s %s/h   %s %s" % (
            run["attempt"], run["seconds"], run["cards"], run["gpu_type"],
            run.price_per_card_hour, bill["currency"], run.amount, bill["currency"]))
    print("  total   %s %s" % (bill.total, bill["currency"]))
    print("balance   %s %s" % (client.balance().balance, bill["currency"]))


def leave_machine(client, key):
    """A machine without card, running; prints the command that logs in, which was tried."""
    with open(key + ".pub") as public:
        line = public.read().strip()
    if line.split()[1] not in [k["public_key"].split()[1] for k in client.ssh_keys()]:
        client.add_ssh_key("quickstart", line)
    machine = find(client, MACHINE_NAME)
    if machine is not None and machine.state == "failed":
        let_go(machine)
        machine = None
    if machine is None:
        machine = client.create_instance(name=MACHINE_NAME, image=IMAGE, gpu_count=0, disk_size=10)
    if machine.status in ("CREATED", "STOPPED"):
        machine.start()
    begun = time.monotonic()
    while machine.status != "RUNNING":
        if machine.status == "STOPPED" or time.monotonic() - begun > 300:
            sys.exit("the machine to log in to does not run: %s (%s)"
                     % (machine.state, machine.reason))
        time.sleep(0.1)
    ssh = machine.ssh
    known = os.path.join(os.path.dirname(os.path.abspath(key)), "quickstart_known_hosts")
    with open(known + ".new", "w") as out:
        out.write("[%s]:%d %s\n" % (ssh["host"], ssh["port"], ssh["host_key"]))
    os.replace(known + ".new", known)
    command = ["ssh", "-i", key, "-o", "UserKnownHostsFile=" + known, "-p", str(ssh["port"]),
               "%s@%s" % (ssh["user"], ssh["host"])]
    tried = command[:1] + ["-o", "BatchMode=yes", "-o", "LogLevel=ERROR"] + command[1:] + ["true"]
    subprocess.check_call(tried, timeout=60, stdin=subprocess.DEVNULL)
    print("log in    %s" % " ".join(command))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="train on small digits: seconds")
    parser.add_argument("--again", action="store_true", help="train anew where it was done before")
    parser.add_argument("--results", default="./results", help="local folder of the results")
    parser.add_argument("--ssh-key", help="leave a machine running that this private key opens")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    client = autodl.Client()
    print("server %s, balance %s" % (client.endpoint, client.balance().available))
    task = find(client, TASK_NAME)
    if task is not None and (arguments.again or task.state == "failed"
                             or task.outcome not in (None, "completed")):
        let_go(task)
        task = None
    if task is not None and task.outcome == "completed":
        print("%s has been trained before (--again trains anew)" % TASK_NAME)
    else:
        if task is not None and task.status == "CREATED":  # cut off before it was started
            let_go(task)
            task = None
        task = task or make_task(client, arguments.quick)
        watch(task)
    if task.outcome != "completed":
        sys.exit("%s: %s %s" % (task.outcome, task.reason, task.remedy))
    client.download_files(task_id=task.id, remote_path="/root/output", local_path=arguments.results)
    with open(os.path.join(arguments.results, "metrics.json")) as source:
        metrics = json.load(source)
    print("results   %s" % os.path.abspath(arguments.results))
    print("accuracy  %.2f %% on the test pictures (%s, %s)" % (
        100 * metrics["test_accuracy"], metrics["data"],
        datetime.timedelta(seconds=round(metrics["seconds"]))))
    show_bill(client, task)
    if arguments.ssh_key:
        leave_machine(client, os.path.expanduser(arguments.ssh_key))


if __name__ == "__main__":
    try:
        main()
    except autodl.AutodlError as problem:
        sys.exit("error: %s" % problem)
