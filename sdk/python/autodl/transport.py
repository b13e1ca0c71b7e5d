# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Signed HTTP with kept connections, repeats where repeating is safe, and server-sent events.

Every GET, and every mutating call (each has an idempotency key, so the server carries it out once
and gives the first answer again), is repeated while the server is away: a program that polls
outlives a restart of the server.
"""
import calendar
import http.client
import json
import os
import random
import re
import socket
import ssl
import threading
import time
import urllib.parse
import uuid

from . import signing
from .errors import ConfigError, ServerError, UnavailableError, error_of_answer
from .version import __version__

RETRY_SECONDS = 60.0
# A server that this client never reached is more likely a wrong address than a restart.
FIRST_CONTACT_SECONDS = 10.0
_RETRIED_STATUSES = (429, 502, 503, 504)
_EVENT_LINE_BYTES_MAX = 4 << 20


def quote(text):
    """A path segment or query value, percent-encoded."""
    return urllib.parse.quote(str(text), safe="-._~")


def seconds_of_rfc3339(text):
    """Seconds since the epoch; None where it is no time in UTC."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00)", str(text))
    if not match:
        return None
    try:
        whole = calendar.timegm(time.strptime(match.group(1), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return None
    return whole + float("0" + (match.group(2) or ""))


def _is_loopback(host):
    return host in ("localhost", "::1") or host.startswith("127.")


class Answer:
    """A finished exchange: status, headers (names without regard to case), body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        try:
            return json.loads(self.body.decode("utf-8"))
        except ValueError:
            return None


class Transport:
    """Calls of one server with one set of keys. May be used by several threads at once."""

    def __init__(self, settings, timeout=60.0, retry_seconds=RETRY_SECONDS):
        self.settings = settings
        self._timeout = timeout
        self._retry_seconds = retry_seconds
        self._skew_s = 0.0
        self._reached = False
        self._local = threading.local()
        self._parse_endpoint(settings.endpoint)

    def _parse_endpoint(self, endpoint):
        wrong = ConfigError("bad_endpoint", "'%s' is not a server's address" % endpoint,
                            "write it as http://HOST:PORT or https://HOST:PORT")
        try:
            parts = urllib.parse.urlsplit(endpoint)
            port = parts.port
        except ValueError:
            raise wrong
        if (parts.scheme not in ("http", "https") or not parts.hostname or parts.username
                or parts.path not in ("", "/") or parts.query or parts.fragment):
            raise wrong
        self.endpoint = endpoint.rstrip("/")
        self._host, self._port = parts.hostname, port or (443 if parts.scheme == "https" else 80)
        self._tls = None
        if parts.scheme == "https":
            try:
                self._tls = ssl.create_default_context(cafile=self.settings.ca_file)
            except (OSError, ssl.SSLError) as problem:
                raise ConfigError("bad_ca_file", "read the certificates in '%s': %s"
                                  % (self.settings.ca_file, problem))
        elif self.settings.token and not _is_loopback(self._host):
            raise ConfigError(
                "token_in_clear", "a token would go to %s in clear" % self._host,
                "use https://, or an access key: a signature does not give the key away")

    # ---- connections ----

    def _connect(self, timeout):
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout,
                                               context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _kept(self):
        """This thread's connection and whether it was used before (a fork gets its own)."""
        kept = getattr(self._local, "kept", None)
        if kept is not None and kept[0] == os.getpid():
            return kept[1], True
        connection = self._connect(self._timeout)
        self._local.kept = (os.getpid(), connection)
        return connection, False

    def close(self):
        """Closes this thread's connection; the next call opens another."""
        kept = getattr(self._local, "kept", None)
        self._local.kept = None
        if kept is not None and kept[0] == os.getpid():
            kept[1].close()

    # ---- one exchange ----

    def _headers(self, method, target, body, key, unsigned, extra):
        path, _, query = target.partition("?")
        headers = {"User-Agent": "autodl-sdk/" + __version__, "Accept": "application/json"}
        headers.update(extra or {})
        if key:
            headers["Idempotency-Key"] = key
        settings = self.settings
        if settings.token:
            headers["Authorization"] = "Bearer " + settings.token
            return headers
        digest = signing.UNSIGNED if unsigned else signing.content_hash(body)
        headers["X-Autodl-Content-SHA256"] = digest
        headers["Authorization"] = signing.authorization(
            settings.access_key, settings.secret_key, method, path, query, digest, key,
            int(time.time() + self._skew_s), signing.make_nonce())
        return headers

    def _attempt(self, method, target, body, headers):
        connection, used = self._kept()
        try:
            try:
                connection.request(method, target, body=body or None if method == "GET" else body,
                                   headers=headers)
            except (BrokenPipeError, ConnectionResetError):
                # A server may refuse (a full disk, say) before it has read all of a body: what
                # it said is then still to be read.
                if used:
                    raise
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
            if response.will_close:
                self.close()
            self._reached = True
            return answer
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            if isinstance(problem, ssl.SSLError) and not isinstance(problem, ssl.SSLEOFError):
                raise self._tls_error(problem)
            if used and not isinstance(problem, socket.timeout):
                # The server may have closed a connection that was kept: that is no failure.
                return self._attempt(method, target, body, headers)
            raise
        except BaseException:  # interrupted: what is left of the answer must not be read as another
            self.close()
            raise

    def _tls_error(self, problem):
        return ConfigError("tls_failed", "no safe connection to %s: %s" % (self.endpoint, problem),
                           "pass ca_file=: the server's own authority, as it printed it")

    def _mend_skew(self, answer):
        problem = answer.json()
        if not isinstance(problem, dict) or problem.get("code") != "clock_skew":
            return False
        theirs = seconds_of_rfc3339(problem.get("server_time"))
        if theirs is None:
            return False
        self._skew_s = theirs - time.time()
        return True

    # ---- calls ----

    def request(self, method, target, body=b"", headers=None, unsigned=False, repeat=True):
        """The answer below 400; else the exception of what the server said."""
        key = "" if method == "GET" else uuid.uuid4().hex
        patience = _Patience(self)
        mended = False
        while True:
            signed = self._headers(method, target, body, key, unsigned, headers)
            try:
                answer = self._attempt(method, target, body, signed)
            except (OSError, http.client.HTTPException) as problem:
                if not repeat:
                    raise self._away(problem)
                patience.wait(self._away(problem))
                continue
            if answer.status < 400:
                return answer
            if answer.status == 401 and not mended and self._mend_skew(answer):
                mended = True
                continue
            error = error_of_answer(answer.status, answer.json(),
                                    answer.headers.get("X-Request-Id"))
            if answer.status not in _RETRIED_STATUSES or not repeat:
                raise error
            # What is away comes back sooner than it can promise; a limit is kept to.
            limited = answer.status == 429
            patience.wait(error, answer.headers.get("Retry-After") if limited else None)

    def _away(self, problem):
        return UnavailableError(
            "unreachable", "no answer from %s: %s" % (self.endpoint,
                                                      problem or type(problem).__name__),
            "is the server running, and is the endpoint right?")

    def call(self, method, target, body=None):
        """A call with JSON in and out."""
        data, headers = b"", {}
        if body is not None:
            data = json.dumps(body).encode("utf-8")
            headers["Content-Type"] = "application/json"
        answer = self.request(method, target, data, headers)
        if not answer.body:
            return None
        value = answer.json()
        if not isinstance(value, (dict, list)):
            raise ServerError("bad_answer", "the server's answer is not JSON",
                              "is the endpoint an autodl server?",
                              answer.headers.get("X-Request-Id"), status=answer.status)
        return value

    def pages(self, target):
        """The items of all pages, one after the other."""
        separator = "&" if "?" in target else "?"
        cursor = None
        while True:
            more = separator + "cursor=" + quote(cursor) if cursor else ""
            page = self.call("GET", target + more)
            for item in items_of(page):
                yield item
            following = page.get("next")
            if not following or following == cursor:
                return
            cursor = following

    # ---- server-sent events ----

    def events(self, target, last_id=None):
        """Yields (id, event, data) without end; opens the stream again from the last id where it
        is lost or ends. Close the generator to stop."""
        patience = _Patience(self)
        while True:
            connection = self._connect(self._timeout)
            opened = None
            try:
                headers = {"Accept": "text/event-stream"}
                if last_id is not None:
                    headers["Last-Event-ID"] = last_id
                connection.request("GET", target, headers=self._headers(
                    "GET", target, b"", "", False, headers))
                response = connection.getresponse()
                self._reached = True
                if response.status == 200:
                    opened = time.monotonic()
                    for event in _read_events(response, last_id):
                        opened = 0.0
                        last_id = event[0]
                        yield event
                    error = UnavailableError("stream_ended", "the stream of events ended early")
                else:
                    answer = Answer(response.status, response.headers, response.read())
                    if answer.status == 401 and self._mend_skew(answer):
                        continue
                    error = error_of_answer(answer.status, answer.json(),
                                            answer.headers.get("X-Request-Id"))
                    if answer.status not in _RETRIED_STATUSES:
                        raise error
            except (OSError, http.client.HTTPException) as problem:
                if isinstance(problem, ssl.SSLCertVerificationError):
                    raise self._tls_error(problem)
                error = self._away(problem)
            finally:
                connection.close()
            if opened is not None and time.monotonic() - opened > 5:
                patience = _Patience(self)  # it was there until now: a new absence begins
            patience.wait(error)


class _Patience:
    """Waits between repeats, longer each time, until the limit; then raises what is wrong."""

    def __init__(self, transport):
        self._begun = time.monotonic()
        self._transport = transport
        self._pause = 0.05

    def wait(self, error, retry_after=None):
        limit = self._transport._retry_seconds
        if not self._transport._reached:
            limit = min(limit, FIRST_CONTACT_SECONDS)
        pause = self._pause * random.uniform(0.75, 1.25)
        if retry_after is not None and retry_after.isdigit():
            pause = max(pause, float(retry_after))
        if time.monotonic() + pause - self._begun > limit:
            raise error
        time.sleep(pause)
        self._pause = min(self._pause * 2, 2.0)


def items_of(page):
    """A page's items; a ServerError where the answer is not a page of objects."""
    items = page.get("items") if isinstance(page, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ServerError("bad_answer", "the server's answer is not a page of items")
    return items


def _read_events(response, last_id):
    event, data = "message", []
    while True:
        raw = response.readline(_EVENT_LINE_BYTES_MAX)
        if not raw:
            return
        if not raw.endswith(b"\n"):
            if len(raw) >= _EVENT_LINE_BYTES_MAX:
                raise ServerError("bad_answer", "an event is longer than 4 MiB")
            return  # cut off in the middle: this event comes again
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield last_id, event, "\n".join(data)
            event, data = "message", []
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "id":
                last_id = value
            elif name == "event":
                event = value
            elif name == "data":
                data.append(value)
