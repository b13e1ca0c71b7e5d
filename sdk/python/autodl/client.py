# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Client: the way into an autodl server."""
import datetime
import math
import os

from .config import load_settings
from .errors import InvalidRequestError
from .progress import make_progress
from .records import to_records
from .task import Task
from .transfer import Downloader, Files, Uploader
from .transport import RETRY_SECONDS, Transport, items_of, quote

GB = 1 << 30  # as AutoDL's users know it: 1 GB of disk is 2^30 bytes


class Client:
    """Calls of one server with one account's keys.

    access_key, secret_key   the account's key; or token= (`adl_…`) in their place
    endpoint                 default http://127.0.0.1:8480
    ca_file                  the authority to trust for https://, PEM; else the system's
    timeout                  seconds to wait for the next bytes of an answer
    retry_seconds            how long a server that is away is waited for

    What is not given comes from AUTODL_ACCESS_KEY, AUTODL_SECRET_KEY, AUTODL_TOKEN,
    AUTODL_ENDPOINT and AUTODL_CA_FILE, then from ~/.config/autodl/config.toml (`autodl login`).
    May be used by several threads at once.
    """

    def __init__(self, access_key=None, secret_key=None, endpoint=None, ca_file=None, token=None,
                 timeout=60.0, retry_seconds=RETRY_SECONDS):
        settings = load_settings(endpoint=endpoint, access_key=access_key, secret_key=secret_key,
                                 token=token, ca_file=ca_file)
        self._transport = Transport(settings, timeout, retry_seconds)
        self.endpoint = self._transport.endpoint

    def __repr__(self):
        return "<autodl.Client %s>" % self.endpoint

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._transport.close()

    # ---- instances ----

    def create_task(self, name, image, command, gpu_type=None, gpu_count=1, disk_size=50,
                    max_runtime=None, env=None, workdir="/root", restart="never", ssh_keys=None,
                    allow_cpu_image=False):
        """Makes an instance that runs a command once started. Nothing runs, and nothing but storage
        is billed, before start().

        name             1 to 64 characters; None for the next of 001, 002, …
        image            a catalogue name, an alias, or any OCI reference
        command          a line for /bin/sh
        gpu_type         "RTX 3090", as people write it; required where gpu_count > 0
        disk_size        GB (2^30 bytes): the hard size of the whole file system
        max_runtime      seconds or a timedelta; the run is then ended by that rule
        env              {"NAME": value}
        restart          "never", or "on-loss": once more where the platform lost the run
        ssh_keys         public keys, or paths of .pub files
        allow_cpu_image  accept a substitute image without CUDA
        """
        if not isinstance(command, str) or not command.strip():
            raise InvalidRequestError(
                "bad_command", "command %r is not a line of text" % (command,),
                "a machine without a command is made by create_instance()")
        return self._create(name, image, command, gpu_type, gpu_count, disk_size, max_runtime, env,
                            workdir, restart, ssh_keys, allow_cpu_image)

    def create_instance(self, name=None, image=None, gpu_type=None, gpu_count=1, disk_size=50,
                        max_runtime=None, env=None, workdir="/root", restart="never",
                        ssh_keys=None, allow_cpu_image=False):
        """Makes a machine to SSH into: it runs from start() until stop(). As create_task."""
        return self._create(name, image, None, gpu_type, gpu_count, disk_size, max_runtime, env,
                            workdir, restart, ssh_keys, allow_cpu_image)

    def _create(self, name, image, command, gpu_type, gpu_count, disk_size, max_runtime, env,
                workdir, restart, ssh_keys, allow_cpu_image):
        if not isinstance(image, str) or not image:
            raise InvalidRequestError("unknown_image", "image %r is not a name" % (image,),
                                      "client.images() lists what there is")
        body = {
            "name": name, "image": image, "command": command, "gpu_type": gpu_type,
            "gpu_count": _whole("gpu_count", gpu_count, "bad_gpu_count"),
            "disk_bytes": _disk_bytes(disk_size), "max_runtime_s": _seconds(max_runtime),
            "env": _environment(env), "workdir": workdir, "restart": restart,
            "ssh_keys": [_public_key(key) for key in _list("ssh_keys", ssh_keys)],
            "allow_cpu_image": bool(allow_cpu_image)}
        return Task(self._transport, self._transport.call("POST", "/api/v1/instances", body))

    def get_task(self, task_id):
        """The task by its id or its name."""
        return Task(self._transport, self._transport.call("GET", _instance(task_id)))

    def list_tasks(self, state=None):
        """All tasks and instances, newest first. state: only those in that state ("running")."""
        target = "/api/v1/instances?limit=200" + ("&state=" + quote(state) if state else "")
        return [Task(self._transport, info) for info in self._transport.pages(target)]

    # ---- files ----

    def upload_files(self, task_id, local_path, remote_path="/root/", progress=None):
        """Sends files and folders into an instance: before start, while it runs, after it stopped.

        A list lands in the folder remote_path. A single file lands in remote_path where that ends
        in '/' or is a folder, else under that very name. A single folder lands in remote_path
        under its own name where that ends in '/', else its contents become remote_path's. Parent
        folders are made. Every local path is looked at before any byte moves.

        progress: None for a line on terminals, False for nothing, or a function (name, done_bytes,
        total_bytes). Returns the remote paths of the files.
        """
        return Uploader(self._transport, _instance(task_id),
                        make_progress(progress, "upload")).upload(local_path, remote_path)

    def download_files(self, task_id, remote_path, local_path=".", progress=None):
        """Fetches a file or a folder; also long after the run has ended, until release.

        The contents of a remote folder become those of the folder local_path, whether or not that
        exists; a remote file lands in the folder local_path under its own name. Links are made
        again where they stay inside. Returns the local paths of the files.
        """
        return Downloader(self._transport, _instance(task_id),
                          make_progress(progress, "download")).download(remote_path, local_path)

    def list_files(self, task_id, remote_path="/root", recursive=False):
        """What a remote folder holds: [{"path", "type", "size", "mode", "mtime_ms", "target"}]."""
        found = []
        for _, items in Files(self._transport, _instance(task_id)).pages(remote_path, recursive):
            found.extend(items)
        return to_records(found)

    # ---- what there is ----

    def gpu_types(self):
        """Cards with their memory, price and how many are free: [{"name", "free", "total", …}]."""
        return self._items("/api/v1/gpu_types")

    def images(self):
        """The catalogue: [{"name", "aliases", "description", "present", …}]."""
        return self._items("/api/v1/images")

    def _items(self, target):
        return to_records(items_of(self._transport.call("GET", target)))

    def version(self):
        return to_records(self._transport.call("GET", "/version"))

    # ---- account and money ----

    def account(self):
        return to_records(self._transport.call("GET", "/api/v1/account"))

    def balance(self):
        """{"balance_micro", "held_micro", "available_micro", "currency"}; `.balance`, `.held` and
        `.available` are the same as exact Decimals in whole units."""
        return to_records(self._transport.call("GET", "/api/v1/balance"))

    def bill(self, task_id=None, start=None, end=None):
        """The bill of one task, or of the account between two times (datetime or RFC 3339 text):
        runs, intervals, prices, seconds and amounts in micro-units, which add up."""
        if task_id is not None:
            return to_records(self._transport.call("GET", _instance(task_id) + "/bill"))
        limits = [name + "=" + quote(_rfc3339(value))
                  for name, value in (("from", start), ("to", end)) if value is not None]
        return to_records(self._transport.call(
            "GET", "/api/v1/bill" + ("?" + "&".join(limits) if limits else "")))

    def ssh_keys(self):
        """The account's public keys: each opens every instance of the account."""
        return self._items("/api/v1/ssh_keys")

    def add_ssh_key(self, name, public_key):
        """public_key: the line itself, or the path of a .pub file."""
        return to_records(self._transport.call(
            "POST", "/api/v1/ssh_keys", {"name": name, "public_key": _public_key(public_key)}))

    def remove_ssh_key(self, key_id):
        self._transport.request("DELETE", "/api/v1/ssh_keys/" + quote(key_id))


def _instance(task_id):
    text = task_id.id if isinstance(task_id, Task) else task_id
    if not isinstance(text, str) or text in ("", ".", ".."):
        raise InvalidRequestError("bad_task", "%r is neither a task nor its id" % (task_id,))
    return "/api/v1/instances/" + quote(text)


def _whole(name, value, code):
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(code, "%s %r is not a whole number" % (name, value))
    return value


def _disk_bytes(disk_size):
    if (isinstance(disk_size, bool) or not isinstance(disk_size, (int, float))
            or not math.isfinite(disk_size) or abs(disk_size) > 1 << 32):
        raise InvalidRequestError("bad_disk_size",
                                  "disk_size %r is not a size in GB" % (disk_size,))
    return int(disk_size * GB)


def _seconds(duration):
    if duration is None:
        return None
    if isinstance(duration, datetime.timedelta):
        return int(duration.total_seconds())
    if isinstance(duration, bool) or not isinstance(duration, (int, float)) \
            or not math.isfinite(duration):
        raise InvalidRequestError("bad_max_runtime", "max_runtime %r is neither seconds nor a "
                                  "timedelta" % (duration,))
    return int(duration)


def _environment(env):
    if env is None:
        return {}
    if not isinstance(env, dict):
        raise InvalidRequestError("bad_env", "env %r is not a dictionary" % (env,))
    found = {}
    for name, value in env.items():
        if not isinstance(name, str) or value is None or isinstance(value, (dict, list, bytes)):
            raise InvalidRequestError("bad_env", "env: %r=%r is not text" % (name, value))
        found[name] = str(value)
    return found


def _list(name, values):
    if values is None:
        return []
    if isinstance(values, (str, bytes)):
        raise InvalidRequestError("bad_request", "%s is a list" % name)
    return list(values)


def _public_key(key):
    """A key's line; read from its file where a path is given."""
    text = os.fspath(key) if isinstance(key, os.PathLike) else key
    if not isinstance(text, str):
        raise InvalidRequestError("bad_ssh_key", "%r is not a public key" % (key,))
    path = os.path.expanduser(text.strip())
    if not (path.endswith(".pub") and " " not in path) and not isinstance(key, os.PathLike):
        return text.strip()
    try:
        with open(path, encoding="utf-8") as source:
            found = source.read(65536).strip()
    except (OSError, ValueError) as problem:
        raise InvalidRequestError("bad_ssh_key", "read '%s': %s" % (path, problem))
    if "PRIVATE KEY" in found:
        raise InvalidRequestError("bad_ssh_key", "'%s' is a private key: it was not sent" % path,
                                  "give the file that ends in .pub")
    return found


def _rfc3339(value):
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value
