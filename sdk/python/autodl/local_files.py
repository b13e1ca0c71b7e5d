# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""What is uploaded, and where downloads may be written. A listing comes from inside an instance,
so its names are hostile: nothing is ever written outside the folder that the caller named."""
import collections
import errno
import os
import stat
import warnings

from .errors import LocalFileError, TransferError

# kind: "file" or "directory"; remote: where it goes; size 0 for folders.
Upload = collections.namedtuple("Upload", "kind local remote size")


def local_error(action, path, problem):
    reason = os.strerror(problem.errno) if getattr(problem, "errno", None) else str(problem)
    error = LocalFileError("local_file", "%s '%s': %s" % (action, path, reason))
    error.errno = getattr(problem, "errno", None)
    error.filename = path
    return error


def _missing(path, problem):
    error = local_error("open", path, problem)
    error.code = "no_such_file" if problem.errno == errno.ENOENT else "local_file"
    error.remedy = "nothing was sent"
    return error


def join_remote(folder, name):
    return (folder.rstrip("/") or "") + "/" + name


def _skip(path, why):
    warnings.warn("skipped: '%s' is %s" % (path, why), stacklevel=2)


def _add_folder(plan, local, remote):
    def failed(problem):
        raise _missing(problem.filename or local, problem)

    for folder, names, files in os.walk(local, onerror=failed):
        relative = os.path.relpath(folder, local)
        target = remote if relative == os.curdir else join_remote(
            remote, relative.replace(os.sep, "/"))
        for name in sorted(names):
            if os.path.islink(os.path.join(folder, name)):
                _skip(os.path.join(folder, name), "a symbolic link to a folder")
        if not files and not any(not os.path.islink(os.path.join(folder, n)) for n in names):
            plan.append(Upload("directory", folder, target or "/", 0))
        names.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            try:
                info = os.stat(path)
            except FileNotFoundError:
                if not os.path.islink(path):
                    continue  # deleted meanwhile
                _skip(path, "a symbolic link to nothing")
                continue
            if stat.S_ISREG(info.st_mode):
                _check_readable(path)
                plan.append(Upload("file", path, join_remote(target, name), info.st_size))
            else:
                _skip(path, "no regular file")


def _check_readable(path):
    try:
        with open(path, "rb"):
            pass
    except OSError as problem:
        raise _missing(path, problem)


def plan_uploads(local_path, remote_path, remote_is_folder):
    """All that is to be sent. Every local file is looked at first, so that a missing or unreadable
    one fails before anything moves. remote_is_folder(): whether the remote path is a folder now."""
    several = not isinstance(local_path, (str, bytes, os.PathLike))
    paths = [os.fspath(p) for p in (local_path if several else [local_path])]
    if not paths:
        raise LocalFileError("no_such_file", "there is nothing to upload: the list is empty")
    found = []
    for path in paths:
        path = os.fsdecode(path)
        try:
            found.append((path, os.stat(path)))
        except OSError as problem:
            raise _missing(path, problem)
    plan = []
    into = several or remote_path.endswith("/")
    for path, info in found:
        name = os.path.basename(os.path.abspath(path))
        if stat.S_ISDIR(info.st_mode):
            target = join_remote(remote_path, name) if into else remote_path.rstrip("/")
            _add_folder(plan, path, target)
        elif stat.S_ISREG(info.st_mode):
            _check_readable(path)
            inside = into or remote_is_folder()
            target = join_remote(remote_path, name) if inside else remote_path
            plan.append(Upload("file", path, target, info.st_size))
        else:
            raise LocalFileError("local_file", "'%s' is neither a file nor a folder" % path)
    return plan


# ---- downloads ----


def safe_parts(relative):
    """The components of a listed name below the folder; TransferError where it would leave it."""
    parts = relative.split("/") if isinstance(relative, str) else []
    for part in parts or [""]:
        if (part in ("", ".", "..") or "\0" in part or (os.sep != "/" and os.sep in part)
                or (os.name == "nt" and ":" in part)):
            raise TransferError("bad_path", "the listing names a path outside the folder: %r"
                                % (relative,), "nothing was written there")
    return parts


def link_stays_inside(parts, target):
    """Whether a link at these components points below the folder, whatever other (checked) links
    its target leads through: '..' only at its beginning, and not more than it is deep."""
    if not isinstance(target, str) or not target or target.startswith("/") or "\0" in target:
        return False
    steps = [step for step in target.split("/") if step not in ("", ".")]
    climbs = 0
    while climbs < len(steps) and steps[climbs] == "..":
        climbs += 1
    return climbs <= len(parts) - 1 and ".." not in steps[climbs:]


class Target:
    """The local folder of a download. Makes folders and gives places for files below it, and
    never follows a link below it."""

    def __init__(self, root):
        self.root = os.path.abspath(os.path.expanduser(os.fspath(root)))
        self._made = set()

    def make_root(self):
        try:
            os.makedirs(self.root, exist_ok=True)
        except OSError as problem:
            raise local_error("make the folder", self.root, problem)

    def folder(self, parts):
        path = self.root
        for part in parts:
            path = os.path.join(path, part)
            if path in self._made:
                continue
            try:
                kind = os.lstat(path).st_mode
            except FileNotFoundError:
                try:
                    os.mkdir(path)
                except OSError as problem:
                    raise local_error("make the folder", path, problem)
            except OSError as problem:
                raise local_error("look at", path, problem)
            else:
                if not stat.S_ISDIR(kind):
                    raise LocalFileError(
                        "local_file", "'%s' is in the way: it is no folder (links are not followed)"
                        % path, "remove it, or download into another folder")
            self._made.add(path)
        return path

    def place(self, parts):
        """Where a file goes; its folder exists."""
        path = os.path.join(self.folder(parts[:-1]), parts[-1])
        if os.path.isdir(path) and not os.path.islink(path):
            raise LocalFileError("local_file", "'%s' is in the way: it is a folder" % path,
                                 "remove it, or download into another folder")
        return path

    def link(self, parts, target):
        path = self.place(parts)
        temporary = temporary_name(path)
        try:
            os.symlink(target, temporary)
            os.replace(temporary, path)
        except (OSError, NotImplementedError) as problem:
            _skip(path, "a symbolic link (%s)" % problem)


def temporary_name(path):
    # Short names leave room for the prefix: a name may have 255 bytes.
    folder, name = os.path.split(path)
    return os.path.join(folder, ".autodl-part-%s-%s" % (os.urandom(6).hex(), name[:40]))
