# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Task: an instance as its owner sees it."""
import datetime
import json
import time

from .errors import AutodlError, WaitTimeoutError
from .records import LogEntry, amount, to_records, whole_lines
from .transport import items_of, quote

CREATED, QUEUED, STARTING = "CREATED", "QUEUED", "STARTING"
RUNNING, STOPPING, STOPPED = "RUNNING", "STOPPING", "STOPPED"


class Task:
    """One instance: a command on a card, or a machine to SSH into.

    Each property but `id` and `name` asks the server when it is read. `status` is one of CREATED
    QUEUED STARTING RUNNING STOPPING STOPPED, and every end is STOPPED: completed, failed, lost,
    cancelled and released. Why it ended: `outcome`, `exit_code`, `reason`. `info()` gives all of
    it by one call.
    """

    def __init__(self, transport, info):
        self._transport = transport
        self.id = info["id"]
        self.name = info.get("name")
        self._base = "/api/v1/instances/" + quote(self.id)
        self._moved = False  # start() or release() was called here: it will not stay CREATED

    def __repr__(self):
        return "<autodl.Task %s (%s)>" % (self.name, self.id)

    def __eq__(self, other):
        return isinstance(other, Task) and other.id == self.id

    def __hash__(self):
        return hash(self.id)

    # ---- what it is now ----

    def info(self):
        """Everything the server says of it, as a Record (a dictionary with attributes)."""
        return to_records(self._transport.call("GET", self._base))

    @property
    def status(self):
        return self.info()["status"]

    @property
    def state(self):
        """The full state: created, queued, starting, running, stopping, stopped, failed or
        released."""
        return self.info()["state"]

    @property
    def outcome(self):
        """None until a run has ended; then completed, failed, rule, cancelled, lost or
        start_failed."""
        return self.info().get("outcome")

    @property
    def exit_code(self):
        """The command's exit code; None where it has not ended or was killed by a signal."""
        return self.info().get("exit_code")

    @property
    def signal(self):
        return self.info().get("signal")

    @property
    def reason(self):
        """Why it is so, in words; may be empty."""
        return self.info().get("reason") or ""

    @property
    def remedy(self):
        return self.info().get("remedy") or ""

    @property
    def runtime(self):
        """How long the current or last run has been running: whole seconds, live."""
        return datetime.timedelta(seconds=int(self.info().get("runtime_s") or 0))

    @property
    def cost(self):
        """What the current or last run has cost so far: an exact Decimal in whole units."""
        return amount(self.info().get("cost_micro"))

    @property
    def currency(self):
        return self.info().get("currency")

    @property
    def queue(self):
        """None, or {"position": 1, "reason": "…"} while it waits for a card."""
        return self.info().get("queue")

    @property
    def progress(self):
        """None, or {"phase": "…", "percent": 40} while something is being prepared."""
        return self.info().get("progress")

    @property
    def ssh(self):
        """None, or {"host", "port", "user", "host_key"}."""
        return self.info().get("ssh")

    @property
    def ssh_command(self):
        """What to type to log in; None while there is no endpoint."""
        ssh = self.ssh
        return ssh and "ssh -p %d %s@%s" % (ssh["port"], ssh["user"], ssh["host"])

    @property
    def image(self):
        """The image that is used; another than the one asked for where a substitute was found."""
        info = self.info()
        return info.get("image_resolved") or info.get("image")

    # ---- what can be done with it ----

    def _do(self, verb):
        self._transport.call("POST", "%s/%s" % (self._base, verb), {})
        return self

    def start(self):
        """Asks for a card and runs; queued where none is free. Billing begins at RUNNING."""
        self._do("start")
        self._moved = True
        return self

    def stop(self):
        """Ends the run (a queued one is cancelled). The disk and its files are kept."""
        return self._do("stop")

    def release(self):
        """Deletes the instance and its disk, after stopping it where needed. Bill, events and logs
        are kept."""
        self._do("release")
        self._moved = True
        return self

    def wait(self, timeout=None):
        """Returns the task when it is STOPPED. timeout: seconds; then WaitTimeoutError is raised
        and the task goes on. A task that was never started would never end: that is an error."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = 0.1
        while True:
            status = self.status
            if status == STOPPED:
                return self
            if status == CREATED and not self._moved:
                raise AutodlError("not_started", "task '%s' was not started" % self.name,
                                  "call start() before wait()")
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise WaitTimeoutError("wait_timeout", "task '%s' is still %s after %g s"
                                       % (self.name, status, timeout))
            time.sleep(pause if left is None else min(pause, left))
            pause = min(pause * 1.5, 1.0)

    def runs(self):
        """Every run so far."""
        return to_records(items_of(self._transport.call("GET", self._base + "/runs")))

    def bill(self):
        """Runs, intervals, prices, seconds and amounts; see Client.bill."""
        return to_records(self._transport.call("GET", self._base + "/bill"))

    def logs(self, follow=False, run=None, lines=True):
        """Yields what the command wrote, as LogEntry (str() is the line). follow: goes on until the
        run ends, through lost connections. run: an earlier run's id; else the last one.
        lines=False gives pieces of lines as they come (`.partial`), as for a progress bar."""
        suffix = "run=" + quote(run) if run else ""
        entries = self._follow_logs(suffix) if follow else self._read_logs(suffix)
        return whole_lines(entries) if lines else entries

    def _read_logs(self, suffix):
        offset = 0
        while True:
            page = self._transport.call(
                "GET", "%s/logs?offset=%d%s" % (self._base, offset, "&" + suffix if suffix else ""))
            for entry in page.get("entries") or []:
                yield LogEntry(entry)
            following = page.get("next")
            if page.get("end") or not isinstance(following, int) or following <= offset:
                return
            offset = following

    def _follow_logs(self, suffix):
        target = self._base + "/logs" + ("?" + suffix if suffix else "")
        for _, event, data in self._transport.events(target):
            if event == "end":
                return
            if event == "log":
                yield LogEntry(json.loads(data))

    def events(self, follow=False):
        """Yields what happened to it, oldest first ({"seq", "at", "type", "actor", "message", …}).
        follow: goes on until the instance is released."""
        last = 0
        while True:
            page = items_of(self._transport.call(
                "GET", "%s/events?after=%d&limit=200" % (self._base, last)))
            fresh = [event for event in page if event.get("seq", 0) > last]
            for event in fresh:
                last = event["seq"]
                yield to_records(event)
                if event.get("type") == "released":
                    return
            if not fresh:
                break
        if not follow:
            return
        for _, _, data in self._transport.events(self._base + "/events", str(last)):
            event = to_records(json.loads(data))
            yield event
            if event.get("type") == "released":
                return
