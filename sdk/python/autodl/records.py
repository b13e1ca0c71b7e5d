# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Answers as values: dictionaries whose members are attributes too, log entries, amounts."""
import decimal

_MICRO = decimal.Decimal(1000000)


def amount(micro):
    """Micro-units as an exact Decimal in whole units: 626294 -> Decimal('0.626294')."""
    return decimal.Decimal(int(micro or 0)) / _MICRO


class Record(dict):
    """An answer of the API. `r["free"]` and `r.free` are the same; an amount that the API tells in
    micro-units (`price_micro_per_hour`, `balance_micro`) is also there as an exact Decimal in
    whole units under the name without `micro` (`price_per_hour`, `balance`)."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        for key, value in self.items():
            if "_micro" in key and key.replace("_micro", "", 1) == name:
                return amount(value)
        raise AttributeError("%s; there are: %s" % (name, ", ".join(sorted(map(str, self)))))

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(map(str, self)))


def to_records(value):
    """Parsed JSON with every object as a Record."""
    if isinstance(value, dict):
        return Record((key, to_records(member)) for key, member in value.items())
    if isinstance(value, list):
        return [to_records(member) for member in value]
    return value


class LogEntry:
    """One line that the command wrote: `.text` without its line break, `.stream` ("stdout",
    "stderr"; "platform" for a mark of the platform's own), `.time` (RFC 3339). `.partial` is true
    where the line goes on in the next entry. str() is the text."""

    __slots__ = ("time", "stream", "text", "partial")

    def __init__(self, entry):
        self.time = entry.get("time", "")
        self.stream = entry.get("stream", "stdout")
        self.text = entry.get("text", "")
        self.partial = bool(entry.get("partial"))

    def __str__(self):
        return self.text

    def __repr__(self):
        return "<%s %s %r>" % (self.time, self.stream, self.text)


_LINE_MAX = 1 << 20


def whole_lines(entries):
    """Entries with the parts of a line put together: a program whose output is not buffered writes
    text and line break apart. A line of more than a million characters comes in pieces."""
    open_lines = {}
    for entry in entries:
        begun = open_lines.pop(entry.stream, None)
        if begun is not None:
            begun.text += entry.text
            begun.partial = entry.partial
            entry = begun
        if entry.partial and len(entry.text) < _LINE_MAX:
            open_lines[entry.stream] = entry
        else:
            yield entry
    for entry in open_lines.values():
        yield entry
