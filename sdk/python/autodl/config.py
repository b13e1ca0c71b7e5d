# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Where endpoint and keys come from: arguments, then AUTODL_* variables, then the file that
`autodl login` writes (~/.config/autodl/config.toml)."""
import collections
import os
import re

from .errors import ConfigError

DEFAULT_ENDPOINT = "http://127.0.0.1:8480"

Settings = collections.namedtuple("Settings", "endpoint access_key secret_key token ca_file")

_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def config_path(environ=os.environ):
    if environ.get("AUTODL_CONFIG"):
        return environ["AUTODL_CONFIG"]
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "autodl", "config.toml")


def _basic_string(text, start):
    """A "…" string that begins at start; (value, index behind it)."""
    value, at = "", start + 1
    while at < len(text):
        sign = text[at]
        if sign == '"':
            return value, at + 1
        if sign == "\\":
            kind = text[at + 1:at + 2]
            if kind in ("u", "U"):
                width = 4 if kind == "u" else 8
                digits = text[at + 2:at + 2 + width]
                if len(digits) != width or not re.fullmatch("[0-9A-Fa-f]+", digits):
                    raise ValueError("a bad \\%s escape" % kind)
                number = int(digits, 16)
                if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
                    raise ValueError("no such character: \\%s%s" % (kind, digits))
                value += chr(number)
                at += 2 + width
                continue
            if kind not in _ESCAPES:
                raise ValueError("a bad escape: \\%s" % kind)
            value += _ESCAPES[kind]
            at += 2
            continue
        value += sign
        at += 1
    raise ValueError('a string without its closing "')


def _value(text):
    """A value and an optional comment behind it."""
    if text.startswith(('"""', "'''")):
        raise ValueError("a string over several lines is not supported here")
    if text.startswith('"'):
        value, end = _basic_string(text, 0)
    elif text.startswith("'"):
        end = text.find("'", 1) + 1
        if end == 0:
            raise ValueError("a string without its closing '")
        value = text[1:end - 1]
    else:
        word = text.split("#", 1)[0].strip()
        if word in ("true", "false"):
            return word == "true"
        if re.fullmatch(r"[+-]?[0-9]+(_[0-9]+)*", word):
            return int(word.replace("_", ""))
        raise ValueError("a value that is not a string, a number, true or false" if word
                         else "a key without a value")
    rest = text[end:].strip()
    if rest and not rest.startswith("#"):
        raise ValueError("something behind the value: %s" % rest)
    return value


def parse_toml(text):
    """The part of TOML that our configuration uses: keys with strings, integers and booleans,
    comments, [tables]. Returns {"key": value, "table.key": value}; ValueError names the line."""
    found, table = {}, ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            if line.startswith("["):
                header = re.fullmatch(r"\[\s*([A-Za-z0-9_.-]+)\s*\]\s*(#.*)?", line)
                if not header:
                    raise ValueError("a table header that is not [name]")
                table = header.group(1) + "."
                continue
            key, equals, rest = line.partition("=")
            key = key.strip().strip('"')
            if not equals or not _KEY.fullmatch(key):
                raise ValueError("not of the form key = value")
            if table + key in found:
                raise ValueError("'%s' is set twice" % key)
            found[table + key] = _value(rest.strip())
        except ValueError as problem:
            raise ValueError("line %d: %s" % (number, problem))
    return found


def _read_file(path):
    try:
        with open(path, encoding="utf-8") as source:
            return parse_toml(source.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise ConfigError("bad_config", "%s: %s" % (path, problem),
                          "mend the file, or write it anew with: autodl login")


def load_settings(endpoint=None, access_key=None, secret_key=None, token=None, ca_file=None,
                  environ=os.environ):
    """The settings of a client. Keys come as a whole from one place: never an access key of one
    and a secret key of another."""
    path = config_path(environ)
    kept = _read_file(path)

    def pick(given, name):
        value = given or environ.get("AUTODL_" + name.upper()) or kept.get(name)
        return value if isinstance(value, str) and value else None

    endpoint = pick(endpoint, "endpoint") or DEFAULT_ENDPOINT
    ca_file = pick(ca_file, "ca_file")
    variables = [environ.get("AUTODL_" + n) for n in ("ACCESS_KEY", "SECRET_KEY", "TOKEN")]
    in_file = [kept.get(n) for n in ("access_key", "secret_key", "token")]
    for source, keys in (("the arguments", [access_key, secret_key, token]),
                         ("the environment", variables), (path, in_file)):
        key, secret, bearer = (k if isinstance(k, str) and k else None for k in keys)
        if bool(key) != bool(secret) and not bearer:
            missing = "secret key" if key else "access key"
            raise ConfigError("no_keys", "%s: the %s is missing" % (source, missing),
                              "give both access_key and secret_key")
        if key and secret:
            return Settings(endpoint, key, secret, None, ca_file)
        if bearer:
            return Settings(endpoint, None, None, bearer, ca_file)
    raise ConfigError(
        "no_keys", "no keys are known",
        "pass access_key and secret_key, set AUTODL_ACCESS_KEY and AUTODL_SECRET_KEY, or run: "
        "autodl login")
