# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, one class per way of dealing with it. All derive from AutodlError."""


class AutodlError(Exception):
    """A call that was not carried out.

    code        short and stable, for programs ("unknown_card")
    detail      what was wrong, for people
    remedy      what to do about it, may be empty
    candidates  near matches of an unknown name
    request_id  what the server's log knows the call by; None where no server was involved
    status      the HTTP status; None likewise
    """

    def __init__(self, code, detail, remedy="", request_id=None, candidates=(), status=None):
        self.code = code
        self.detail = detail
        self.remedy = remedy or ""
        self.request_id = request_id
        self.candidates = list(candidates or ())
        self.status = status
        super().__init__(detail)

    def __str__(self):
        text = self.detail or self.code
        if self.candidates and "did you mean" not in self.remedy + text:
            text += "; did you mean %s?" % " or ".join("'%s'" % name for name in self.candidates)
        if self.remedy and not ("did you mean" in text and "did you mean" in self.remedy):
            text += " (%s)" % self.remedy
        marks = [self.code] + (["request " + self.request_id] if self.request_id else [])
        return "%s [%s]" % (text, ", ".join(marks))

    def __reduce__(self):
        return (_again, (type(self), dict(self.__dict__)))


def _again(kind, state):
    error = kind(state["code"], state["detail"])
    error.__dict__.update(state)
    return error


class ConfigError(AutodlError):
    """No keys, or a configuration file that can't be read."""


class InvalidRequestError(AutodlError):
    """The request is wrong and will stay wrong: change it (400, 422)."""


class AuthenticationError(AutodlError):
    """Unknown or wrong keys (401)."""


class PermissionDeniedError(AutodlError):
    """Signed in, but this is not for you (403)."""


class BalanceTooLowError(AutodlError):
    """Not enough balance to start (402)."""


class NotFoundError(AutodlError):
    """No such thing, or not yours (404, 410)."""


class ConflictError(AutodlError):
    """The state does not allow it now: look again (409, 412)."""


class LimitError(AutodlError):
    """Too much at once, or no room: later (413, 429, 507)."""


class UnsupportedError(AutodlError):
    """This server does not do that (501)."""


class UnavailableError(AutodlError):
    """The server could not be reached, or a part of it is away (502, 503, 504)."""


class ServerError(AutodlError):
    """A fault of the server's (500), or an answer that makes no sense."""


class TransferError(AutodlError):
    """A file that did not arrive whole, or that kept changing."""


class LocalFileError(AutodlError, OSError):
    """A local file or folder that is missing or can't be read or written. Nothing was sent."""


class WaitTimeoutError(AutodlError, TimeoutError):
    """The task had not ended in time. It goes on."""


_BY_STATUS = {
    400: InvalidRequestError, 401: AuthenticationError, 402: BalanceTooLowError,
    403: PermissionDeniedError, 404: NotFoundError, 409: ConflictError, 410: NotFoundError,
    412: ConflictError, 413: LimitError, 422: InvalidRequestError, 429: LimitError,
    501: UnsupportedError, 502: UnavailableError, 503: UnavailableError, 504: UnavailableError,
    507: LimitError,
}


def _text(value):
    return value if isinstance(value, str) else ""


def error_of_answer(status, problem, request_id):
    """The exception for an HTTP answer; problem: its parsed body, of any kind."""
    kind = _BY_STATUS.get(status)
    if kind is None:
        kind = ServerError if status >= 500 else InvalidRequestError
    if not isinstance(problem, dict):
        return kind("http_%d" % status, "the server answered %d without saying why" % status,
                    "is the endpoint an autodl server?", request_id, status=status)
    candidates = problem.get("candidates")
    if not isinstance(candidates, list):
        candidates = []
    return kind(
        _text(problem.get("code")) or "http_%d" % status,
        _text(problem.get("detail")) or _text(problem.get("title")) or "refused",
        _text(problem.get("remedy")), _text(problem.get("request_id")) or request_id,
        [name for name in candidates if isinstance(name, str)], status)
