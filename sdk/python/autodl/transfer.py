# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Files up and down, in parts whose hashes are checked at both ends. A file appears under its name
whole, or not at all."""
import hashlib
import os
import time
import warnings

from .errors import (AutodlError, ConflictError, NotFoundError, ServerError, TransferError,
                     UnavailableError)
from .local_files import Target, link_stays_inside, local_error, plan_uploads, safe_parts
from .local_files import temporary_name
from .transport import items_of, quote

PART_BYTES = 8 << 20
_TRIES = 3


def _integer(record, name):
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ServerError("bad_answer", "the server's answer has no '%s'" % name)
    return value


class Files:
    """The files of one instance, as the API has them."""

    PREPARE_SECONDS_MAX = 3600.0

    def __init__(self, transport, base, progress=None):
        self._transport = transport
        self._base = base  # /api/v1/instances/ID
        self._progress = progress

    def await_disk(self, call):
        """The call's result. An instance that was just made has no disk yet, and an image may have
        to be pulled first: that is waited for."""
        pause, end = 0.02, time.monotonic() + self.PREPARE_SECONDS_MAX
        while True:
            try:
                return call()
            except ConflictError as problem:
                if problem.code != "disk_not_ready" or time.monotonic() > end:
                    raise
                waiting = problem
            info = self._transport.call("GET", self._base)
            if info.get("state") in ("failed", "released"):
                waiting.detail += ": %s" % (info.get("reason") or info["state"])
                raise waiting
            if self._progress is not None:
                self._progress.note("preparing", info.get("progress"))
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    def is_folder(self, remote_path):
        try:
            page = self.await_disk(lambda: self._transport.call(
                "GET", self._base + "/files?path=" + quote(remote_path)))
        except NotFoundError:
            return False  # where it is the instance that is missing, the upload says so
        return isinstance(page, dict) and page.get("type") == "directory"

    def pages(self, remote_path, recursive):
        """(type, items) of each page of a listing."""
        target = "%s/files?path=%s&recursive=%d" % (self._base, quote(remote_path),
                                                    1 if recursive else 0)
        cursor = None
        while True:
            more = "&cursor=" + quote(cursor) if cursor else ""
            page = self.await_disk(lambda: self._transport.call("GET", target + more))
            yield page.get("type") if isinstance(page, dict) else None, items_of(page)
            following = page.get("next")
            if not following or following == cursor:
                return
            cursor = following


class Uploader(Files):
    def __init__(self, transport, base, progress):
        super().__init__(transport, base, progress)
        self._done = 0
        self._total = 0

    def upload(self, local_path, remote_path):
        if not isinstance(remote_path, str) or not remote_path.startswith("/"):
            raise TransferError("bad_path", "remote_path %r is not absolute" % (remote_path,),
                                "write it as /root/…")
        plan = plan_uploads(local_path, remote_path, lambda: self.is_folder(remote_path))
        self._total = sum(item.size for item in plan)
        sent = []
        try:
            for item in plan:
                if item.kind == "directory":
                    body = {"path": item.remote, "mode": 0o755}
                    self.await_disk(lambda: self._transport.call(
                        "POST", self._base + "/directories", body))
                else:
                    self._send(item)
                    sent.append(item.remote)
        finally:
            self._progress.end()
        return sent

    def _send(self, item):
        for attempt in range(_TRIES):
            done_before = self._done
            try:
                with open(item.local, "rb") as source:
                    self._send_open(item, source)
                return
            except OSError as problem:
                if isinstance(problem, AutodlError):
                    raise
                raise local_error("read", item.local, problem)
            except AutodlError as problem:
                # A server that lost the ticket, or a file that was being written to: once more.
                again = problem.code in ("no_such_ticket", "hash_mismatch", "file_changed")
                if not again or attempt + 1 == _TRIES:
                    raise
                self._done = done_before

    def _send_open(self, item, source):
        info = os.fstat(source.fileno())
        digest = hashlib.sha256()
        size = 0
        for chunk in iter(lambda: source.read(1 << 20), b""):
            digest.update(chunk)
            size += len(chunk)
        wanted = {"path": item.remote, "size": size, "mode": info.st_mode & 0o777,
                  "mtime_ms": info.st_mtime_ns // 1000000, "sha256": digest.hexdigest()}
        ticket = self.await_disk(
            lambda: self._transport.call("POST", self._base + "/transfers", wanted))
        name = ticket.get("ticket") if isinstance(ticket, dict) else None
        if not isinstance(name, str):
            raise ServerError("bad_answer", "the server gave no ticket for the upload")
        part_bytes = _integer(ticket, "part_bytes")
        if part_bytes == 0 or part_bytes > (256 << 20):
            raise ServerError("bad_answer", "the server asks for parts of %d bytes" % part_bytes)
        base = self._base + "/transfers/" + quote(name)
        try:
            # What an earlier upload of this very file left is not sent again.
            number = min(_integer(ticket, "received_bytes"), size) // part_bytes
            offset = number * part_bytes
            self._done += offset
            source.seek(offset)
            while offset < size:
                data = source.read(min(part_bytes, size - offset))
                if not data:
                    raise TransferError("file_changed", "'%s' became shorter while it was sent"
                                        % item.local, "send it again")
                self._send_part("%s/parts/%d" % (base, number), data)
                offset += len(data)
                number += 1
                self._done += len(data)
                self._progress.show(item.local, self._done, self._total)
            self._transport.call("POST", base + "/complete", {})
        except UnavailableError:
            raise  # what was sent is kept there: the same upload goes on from it
        except BaseException:
            self._drop(base)
            raise

    def _send_part(self, target, data):
        headers = {"Content-Type": "application/octet-stream",
                   "X-Autodl-Part-SHA256": hashlib.sha256(data).hexdigest()}
        end = time.monotonic() + 30
        while True:
            try:
                return self._transport.request("PUT", target, data, headers, unsigned=True)
            except ConflictError as problem:
                # The server may still be busy with a try whose connection was lost.
                if problem.code != "transfer_busy" or time.monotonic() > end:
                    raise
            time.sleep(0.2)

    def _drop(self, base):
        try:
            self._transport.request("DELETE", base, repeat=False)
        except AutodlError:
            pass  # the server drops what is not completed by itself


class Downloader(Files):
    def __init__(self, transport, base, progress):
        super().__init__(transport, base, progress)
        self._done = 0
        self._total = 0

    def download(self, remote_path, local_path):
        if not isinstance(remote_path, str) or not remote_path.startswith("/"):
            raise TransferError("bad_path", "remote_path %r is not absolute" % (remote_path,),
                                "write it as /root/…")
        kind, items = self._list(remote_path)
        target = Target(local_path)
        target.make_root()
        try:
            if kind == "file":
                if not items:
                    raise ServerError("bad_answer", "the server's answer names no file")
                self._total = _integer(items[0], "size")
                parts = safe_parts(remote_path.rstrip("/").rsplit("/", 1)[1])
                return [self._fetch(remote_path, items[0], target.place(parts))]
            return self._fetch_folder(remote_path.rstrip("/"), items, target)
        finally:
            self._progress.end()

    def _list(self, remote_path):
        kind, items = None, []
        for page_kind, page in self.pages(remote_path, recursive=True):
            kind = kind or page_kind
            if kind not in ("file", "directory"):
                raise TransferError("bad_file_type", "'%s' is neither a file nor a folder"
                                    % remote_path)
            items.extend(page)
        return kind, items

    def _fetch_folder(self, remote_path, items, target):
        planned = []
        for item in items:
            planned.append((safe_parts(item.get("path")), item))
        self._total = sum(_integer(item, "size") for _, item in planned
                          if item.get("type") == "file")
        written, links = [], []
        for parts, item in planned:
            kind = item.get("type")
            if kind == "directory":
                target.folder(parts)
            elif kind == "file":
                try:
                    written.append(self._fetch(remote_path + "/" + "/".join(parts), item,
                                               target.place(parts)))
                except NotFoundError as problem:
                    if problem.code != "no_such_file":
                        raise
                    # A running job deletes files too (an old checkpoint, say).
                    warnings.warn("skipped: '%s' was gone when its turn came" % "/".join(parts),
                                  stacklevel=4)
            elif kind == "symlink":
                links.append((parts, item.get("target")))
            else:
                warnings.warn("skipped: '%s' is no regular file" % "/".join(parts), stacklevel=4)
        # Links come last: while files are written, nothing below the folder is one of theirs.
        for parts, to in links:
            if link_stays_inside(parts, to):
                target.link(parts, to)
            else:
                warnings.warn("skipped: the link '%s' leads out of the folder (to %r)"
                              % ("/".join(parts), to), stacklevel=4)
        return written

    def _fetch(self, remote, item, place):
        done_before = self._done
        for attempt in range(_TRIES):
            temporary = temporary_name(place)
            try:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL
                                     | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0),
                                     0o600)
            except OSError as problem:
                raise local_error("write", place, problem)
            try:
                with os.fdopen(descriptor, "wb") as out:
                    self._fetch_into(remote, out)
                self._finish(temporary, place, item)
                return place
            except ConflictError as problem:
                _remove(temporary)
                if problem.code != "file_changed" or attempt + 1 == _TRIES:
                    raise
                self._done = done_before
            except OSError as problem:
                _remove(temporary)
                if isinstance(problem, AutodlError):
                    raise
                raise local_error("write", place, problem)
            except BaseException:
                _remove(temporary)
                raise

    def _finish(self, temporary, place, item):
        mode = item.get("mode")
        os.chmod(temporary, (mode if isinstance(mode, int) else 0o644) & 0o777 | 0o400)
        changed = item.get("mtime_ms")
        if isinstance(changed, int) and 0 < changed < 1 << 52:
            os.utime(temporary, ns=(changed * 1000000, changed * 1000000))
        os.replace(temporary, place)

    def _fetch_into(self, remote, out):
        tag, offset, size = None, 0, None
        while size is None or offset < size:
            answer = self._part(remote, offset, tag)
            tag = answer.headers.get("ETag") or tag
            size = self._size_of(answer)
            if not answer.body and offset < size:
                raise TransferError("file_changed", "'%s' ended early" % remote, "try again")
            out.write(answer.body)
            offset += len(answer.body)
            self._done += len(answer.body)
            self._total = max(self._total, self._done)
            self._progress.show(remote, self._done, self._total)
        if offset != size:
            raise TransferError("file_changed", "'%s' has %d bytes and %d came"
                                % (remote, size, offset), "try again")

    def _part(self, remote, offset, tag):
        target = "%s/files/content?path=%s&offset=%d&length=%d" % (
            self._base, quote(remote), offset, PART_BYTES)
        headers = {"Accept": "application/octet-stream"}
        if tag:
            headers["If-Match"] = tag
        for _ in range(_TRIES):
            answer = self._transport.request("GET", target, headers=headers)
            if hashlib.sha256(answer.body).hexdigest() == answer.headers.get(
                    "X-Autodl-Part-SHA256", "").lower():
                return answer
        raise TransferError("hash_mismatch", "a part of '%s' arrived damaged %d times"
                            % (remote, _TRIES), "is there a proxy that changes contents?")

    def _size_of(self, answer):
        text = answer.headers.get("X-Autodl-File-Size") or ""
        if not text.isdigit():
            raise ServerError("bad_answer", "the server did not tell the file's size")
        return int(text)


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass
