# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema that /openapi.json uses: whether a value fits, and values that do or don't."""
import json
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$ref", "type", "enum", "anyOf", "properties", "required", "additionalProperties", "items", "format",
         "minimum", "maximum", "minLength", "maxLength", "maxItems", "maxProperties", "pattern", "default",
         "description"}


class Schemas:
    def __init__(self, document):
        self.document = document

    def resolve(self, schema):
        while "$ref" in schema:
            node = self.document
            for piece in schema["$ref"].lstrip("#/").split("/"):
                node = node[piece.replace("~1", "/").replace("~0", "~")]
            schema = node
        return schema

    def faults(self, value, schema, path=""):
        """What is wrong with the value, as texts; none where it fits."""
        schema = self.resolve(schema)
        unknown = set(schema) - KNOWN
        if unknown:
            return ["%s: this validator does not know %s" % (path, sorted(unknown))]
        if "anyOf" in schema:
            tries = [self.faults(value, one, path) for one in schema["anyOf"]]
            return [] if any(not t for t in tries) else tries[0]
        if "enum" in schema and value not in schema["enum"]:
            return ["%s: %r is none of %s" % (path, value, schema["enum"])]
        kinds = schema.get("type")
        if kinds is not None:
            kinds = kinds if isinstance(kinds, list) else [kinds]
            if not any(self._is(value, kind) for kind in kinds):
                return ["%s: %r is no %s" % (path, value, "/".join(kinds))]
        out = []
        if isinstance(value, bool) or value is None:
            return out
        if isinstance(value, int):
            if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
                out.append("%s: %d is out of range" % (path, value))
        elif isinstance(value, str):
            if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
                out.append("%s: %d characters" % (path, len(value)))
            if schema.get("format") == "date-time" and not re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$", value):
                out.append("%s: %r is no time in UTC" % (path, value))
            if "pattern" in schema and not re.search(schema["pattern"], value):
                out.append("%s: %r does not match" % (path, value))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                out += self.faults(item, schema.get("items", {}), "%s/%d" % (path, index))
        elif isinstance(value, dict):
            out += ["%s/%s is missing" % (path, name) for name in schema.get("required", []) if name not in value]
            properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
            for name, item in value.items():
                if name in properties:
                    out += self.faults(item, properties[name], path + "/" + name)
                elif more is False:
                    out.append("%s/%s is not known" % (path, name))
                elif isinstance(more, dict):
                    out += self.faults(item, more, path + "/" + name)
        return out

    @staticmethod
    def _is(value, kind):
        if kind in ("integer", "number"):
            return isinstance(value, int) and not isinstance(value, bool)
        return isinstance(value, TYPES[kind])

    def make(self, schema, rng, depth=0):
        """A value that fits."""
        schema = self.resolve(schema)
        if "anyOf" in schema:
            return self.make(rng.choice(schema["anyOf"]), rng, depth)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        kind = schema.get("type", "string")
        if isinstance(kind, list):
            kind = rng.choice(kind)
        if kind == "object":
            out = {}
            for name, one in schema.get("properties", {}).items():
                if name in schema.get("required", []) or rng.random() < 0.5:
                    out[name] = self.make(one, rng, depth + 1)
            if isinstance(schema.get("additionalProperties"), dict):
                for n in range(rng.randrange(3)):
                    out["K%d" % n] = self.make(schema["additionalProperties"], rng, depth + 1)
            return out
        if kind == "array":
            return [self.make(schema["items"], rng, depth + 1) for _ in range(rng.randrange(3))]
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "null":
            return None
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", -2 ** 63), schema.get("maximum", 2 ** 63 - 1)
            return rng.choice([low, high, max(low, min(high, rng.randrange(-3, 100))), schema.get("default", low)])
        if schema.get("format") == "date-time":
            return "20%02d-0%d-1%dT00:00:00Z" % (rng.randrange(10, 99), rng.randrange(1, 10), rng.randrange(10))
        if "pattern" in schema:
            return "".join(rng.choice("0123456789abcdef") for _ in range(64))
        return rng.choice(["a", "x" * min(200, schema.get("maxLength", 200)), "名字 🚀", "/root/a", "ssh-ed25519 AAAA", "",
                           "RTX 3090", "0" * 64, "-1", "a\nb"])


NASTY = [None, True, False, 0, -1, 1, 2 ** 31, 2 ** 63 - 1, -2 ** 63, 2 ** 64, 10 ** 400, 1.5, 1e308, "", "\0", "a" * 5000,
         "\ud800", "\u202e", "../../etc/passwd", "' OR 1=1 --", "%00", "%s%n", [], {}, [[]], {"a": {}}, [None] * 1500,
         {"x" * 300: 1}]


def mutate(value, rng):
    """The value with one thing about it changed, anywhere inside."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        out, name = dict(value), rng.choice(list(value))
        turn = rng.randrange(5)
        if turn == 0:
            del out[name]
        elif turn == 1:
            out[rng.choice(["x", "id", "__proto__", "", "items", name.upper()])] = rng.choice(NASTY)
        elif turn == 2:
            out[name] = rng.choice(NASTY)
        else:
            out[name] = mutate(value[name], rng)
        return out
    if isinstance(value, list) and value and rng.random() < 0.8:
        out = list(value)
        out[rng.randrange(len(out))] = mutate(rng.choice(out), rng)
        return out * rng.choice([1, 1, 2])
    if isinstance(value, str) and rng.random() < 0.5:
        at = rng.randrange(len(value) + 1)
        return value[:at] + rng.choice(["\0", "\n", "/", "é", "'", "\\", " ", "\x7f"]) + value[at:]
    return rng.choice(NASTY)


def to_bytes(value, rng):
    """JSON, now and then broken."""
    text = json.dumps(value).encode("utf-8", "surrogatepass")
    turn = rng.randrange(12)
    if turn == 0 and text:
        at = rng.randrange(len(text))
        return text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]
    if turn == 1:
        return text[:rng.randrange(len(text) + 1)]
    if turn == 2:
        return b"[" * rng.randrange(1, 2000) + text
    return text
