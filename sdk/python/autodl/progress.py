# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""How far a transfer is: a function of the caller's, or a line on a terminal."""
import os
import sys
import time


def make_progress(progress, title):
    """progress: None (a line where stderr is a terminal), False (nothing), or a function
    (name, done_bytes, total_bytes) that is called after each part."""
    if callable(progress):
        return _Calls(progress)
    if progress is None and _is_terminal(sys.stderr):
        return _Line(title)
    return _Silent()


def _is_terminal(stream):
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def size_text(count):
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return "%d B" % count if unit == "B" else "%.1f %s" % (value, unit)
        value /= 1024
    return "%.1f TiB" % value


def _printable(text):
    return "".join(c if c.isprintable() else "?" for c in text)


class _Silent:
    def note(self, what, step):
        """Something that is waited for; step: None or {"phase", "percent"}."""

    def show(self, name, done, total):
        pass

    def end(self):
        pass


class _Calls(_Silent):
    def __init__(self, function):
        self._function = function

    def show(self, name, done, total):
        self._function(name, done, total)


class _Line(_Silent):
    def __init__(self, title):
        self._title = title
        self._last = 0.0
        self._begun = time.monotonic()
        self._shown = False

    def note(self, what, step):
        if isinstance(step, dict) and step.get("phase"):
            what += ": " + _printable(str(step["phase"]))
            if step.get("percent") is not None:
                what += " %s %%" % step["percent"]
        sys.stderr.write("\r\033[K%s (%s)" % (self._title, what))
        sys.stderr.flush()
        self._shown = True
        self._begun = time.monotonic()

    def show(self, name, done, total):
        now = time.monotonic()
        if now - self._last < 0.1 and done < total:
            return
        self._last = now
        filled = int(20 * done / total) if total else 20
        rate = done / max(now - self._begun, 0.001)
        shown = _printable(name)
        if len(shown) > 30:
            shown = "…" + shown[-29:]
        sys.stderr.write("\r\033[K%s %s%s %s of %s, %s/s  %s" % (
            self._title, "#" * filled, "." * (20 - filled), size_text(done), size_text(total),
            size_text(rate), shown))
        sys.stderr.flush()
        self._shown = True

    def end(self):
        if self._shown:
            sys.stderr.write("\n")
            sys.stderr.flush()
