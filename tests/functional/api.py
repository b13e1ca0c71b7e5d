#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Holds a running `autodld serve` to its own /openapi.json.

    api.py [REQUESTS] [SEED]     default 3000 random requests

1. The document is clean under redocly (tools/dev/openapi; where npm is).
2. Every documented status of every operation is reached, except those that the document itself
   marks as rare (x-autodl-rare), and every answer fits what the document says of it.
3. Random requests (valid, mutated, raw bytes; seeded) to every operation: each answer has a
   documented status and fits its schema; no 5xx; the server stays the same process.

Prints PASS or FAIL per line and "api: done".
"""
import base64
import hashlib
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import harness
import schema as schemas_of

METHODS = ("get", "put", "post", "delete", "patch")


UPGRADE = {"Connection": "Upgrade", "Upgrade": "autodl-frames"}


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


def exchange(port, data, method="GET", whole=False, stream_bytes=1 << 16):
    """Sends bytes, reads one answer; None where the server closed without one."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line:
        try:
            line.sendall(data)
            if whole:
                line.shutdown(socket.SHUT_WR)  # a request that promises more than it has must not be waited for
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all was sent; the answer is still there
        reply = http.client.HTTPResponse(line, method=method)
        try:
            reply.begin()
            kind = reply.getheader("Content-Type", "")
            if reply.status == 101:
                return Answer(101, dict(reply.getheaders()), b"")
            body = reply.read1(stream_bytes) if kind.startswith("text/event-stream") else reply.read()
        except (http.client.HTTPException, ConnectionResetError):
            return None
        return Answer(reply.status, {k.lower(): v for k, v in reply.getheaders()}, body)


class Operation:
    def __init__(self, document, path, method, spec):
        self.id, self.path, self.method, self.spec = spec["operationId"], path, method.upper(), spec
        self.open = spec.get("security") == []
        self.operator = spec.get("x-autodl-role") == "operator"
        self.body = spec.get("requestBody", {}).get("content", {})
        self.parameters = []
        for one in spec.get("parameters", []):
            if "$ref" in one:
                one = document["components"]["parameters"][one["$ref"].rsplit("/", 1)[1]]
            self.parameters.append(one)

    def statuses(self, rare=False):
        return {int(s) for s, r in self.spec["responses"].items() if rare or "x-autodl-rare" not in r}

    def queries(self):
        return [p for p in self.parameters if p["in"] == "query"]


class World:
    """An installation with what requests need: accounts, and instances in several states."""

    def __init__(self):
        self.site = harness.Installation()
        self.faults, self.reached, self.sent = [], {}, 0

    def __enter__(self):
        try:
            self.site.start()
            self.document = self.site.call("GET", "/openapi.json")[2]
            self.schemas = schemas_of.Schemas(self.document)
            self.operations = {}
            for path, methods in self.document["paths"].items():
                for method in METHODS:
                    if method in methods:
                        one = Operation(self.document, path, method, methods[method])
                        self.operations[one.id] = one
            self.set_up()
        except BaseException:
            self.site.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        self.site.__exit__(None, None, None)

    def set_up(self):
        with open(os.path.join(self.site.dir, "state/control/setup-token")) as file:
            token = file.read().strip()
        self.token = None
        self.ask("setup", body={"setup_token": "adl_setup_wrong", "name": "x"})
        made = self.ask("setup", body={"setup_token": token, "name": "operator"}).json()
        self.ask("setup", body={"setup_token": token, "name": "x"})
        self.site.operator = made
        self.operator_token = made["token"]
        self.account = {}
        self.public_key, self.other_key = ["ssh-ed25519 " + base64.b64encode(
            b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes([n]) * 32).decode() for n in (1, 2)]
        self.user_token = self.new_user("user", 10 ** 9)
        self.poor_token = self.new_user("poor", 0)
        self.token = self.user_token
        self.running = self.create("running", command="echo hello; sleep 3000")
        self.stopped = self.create("stopped")
        self.released = self.create("gone")
        for key in (self.running, self.stopped, self.released):
            harness.await_that(lambda: self.state(key)["progress"] is None or self.disk_ready(key), "the disk of " + key)
        self.ask("startInstance", {"id": self.running}, body={})
        self.ask("releaseInstance", {"id": self.released}, body={})
        harness.await_that(lambda: self.state(self.running)["state"] == "running", "an instance runs", 60)
        harness.await_that(lambda: self.state(self.released)["state"] == "released", "an instance is released", 60)

    def new_user(self, name, money):
        made = self.ask("createAccount", body={"name": name, "role": "user"}, token=self.operator_token).json()
        if money:
            self.ask("creditAccount", {"id": made["account"]["id"]}, body={"amount_micro": money, "reason": "test"},
                     token=self.operator_token)
        self.account[name] = made["account"]["id"]
        return made["token"]

    def create(self, name, token="-", **more):
        body = {"name": name, "image": harness.BUSYBOX_IMAGE, "gpu_type": "RTX 3090", "disk_bytes": 1 << 30}
        body.update(more)
        return self.ask("createInstance", body=body, token=token).json()["id"]

    def state(self, key):
        return self.ask("showInstance", {"id": key}).json()

    def disk_ready(self, key):
        events = self.ask("listInstanceEvents", {"id": key}).json()["items"]
        return any(e["type"] == "disk_ready" for e in events)

    # ---- one request, checked against the document

    def ask(self, operation, path=None, query=None, body=None, token="-", headers=None, data=None, raw=None):
        """token: "-" the user's, None for none. data: bytes of the body; raw: the whole request."""
        op = self.operations[operation] if isinstance(operation, str) else operation
        token = self.token if token == "-" else token
        values = {"id": getattr(self, "running", "x"), "ticket": "none", "n": "0"}
        values.update(path or {})
        target, made_up = op.path, raw is not None
        for name, value in values.items():
            target = target.replace("{%s}" % name, urllib.parse.quote(str(value), safe=""))
        if query:
            target += "?" + (query if isinstance(query, str) else urllib.parse.urlencode(query, errors="surrogatepass"))
        if raw is None:
            data = json.dumps(body).encode() if data is None and body is not None else data
            lines = ["%s %s HTTP/1.1" % (op.method, target), "Host: localhost"]
            fields = {"Connection": "close"}
            if token:
                fields["Authorization"] = "Bearer " + token
            if data is not None or op.method != "GET":
                fields["Content-Length"] = str(len(data or b""))
            fields.update(headers or {})
            lines += ["%s: %s" % (k, v) for k, v in fields.items() if v is not None]
            raw = "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + (data or b"")
        else:
            raw = raw.replace(b"TARGET", target.encode())
        answer = exchange(self.site.port, raw, op.method, made_up)
        self.sent += 1
        if answer is not None:
            self.check(op, answer, raw)
        return answer

    def check(self, op, answer, raw):
        said = op.spec["responses"].get(str(answer.status))
        if said is None:
            return self.fault(op, raw, answer, "status %d is not documented" % answer.status)
        if answer.status >= 500 and answer.status != 505:
            return self.fault(op, raw, answer, "status %d" % answer.status)
        self.reached.setdefault(op.id, set()).add(answer.status)
        if answer.status != 101 and "x-request-id" not in answer.headers:
            return self.fault(op, raw, answer, "no X-Request-Id")
        content = said.get("content", {})
        kind = answer.headers.get("content-type", "").split(";")[0]
        if not content:
            return answer.body and self.fault(op, raw, answer, "has a body, and none is documented")
        if kind not in content:
            return self.fault(op, raw, answer, "Content-Type '%s' is not documented" % kind)
        if not kind.endswith("json"):
            return None
        try:
            value = answer.json()
        except ValueError as wrong:
            return self.fault(op, raw, answer, "no JSON: %s" % wrong)
        faults = self.schemas.faults(value, content[kind]["schema"])
        if kind == "application/problem+json" and not faults:
            if value["status"] != answer.status or value["type"] != "urn:autodl:problem:" + value["code"]:
                faults = ["a problem that contradicts itself"]
            elif answer.status not in (400, 404) and not value["detail"]:
                faults = ["a problem without detail"]
        for fault in faults[:1]:
            self.fault(op, raw, answer, fault)
        return None

    def fault(self, op, raw, answer, what):
        self.faults.append("%s: %s\n      request %r\n      answer  %d %r" % (op.id, what, raw[:400], answer.status, answer.body[:300]))


def hash_of(data):
    return hashlib.sha256(data).hexdigest()


# ---- every documented status

def reach_general(world, op):
    """What each operation refuses in the same way."""
    token = world.operator_token if op.operator else world.user_token
    line = ("%s TARGET HTTP/1.1\r\nHost: localhost\r\n" % op.method).encode()
    world.ask(op, raw=line + b"no colon here\r\n\r\n")
    world.ask(op, raw=line.replace(b"HTTP/1.1", b"HTTP/9.9") + b"\r\n")
    world.ask(op, raw=line + b"X-Long: " + b"a" * 200000 + b"\r\n\r\n")
    sign = b"Authorization: Bearer " + token.encode() + b"\r\n"
    if op.body:
        world.ask(op, raw=line + sign + b"Content-Length: 999999999\r\n\r\n")
    if not op.open:
        world.ask(op, token=None)
        world.ask(op, token="adl_nobody")
    if op.operator:
        world.ask(op, token=world.user_token, body={} if op.body else None)
    if "{id}" in op.path:
        world.ask(op, {"id": "no-such-thing"}, valid_query(world, op), valid_body(world, op, {}), token,
                  UPGRADE if op.id == "exec" else None)
    if op.method == "GET":
        world.ask(op, query=valid_query(world, op), token=token)
    if 422 in op.statuses():
        if op.queries():
            world.ask(op, query={"no_such_parameter": 1}, token=token)
        if "application/json" in op.body:
            world.ask(op, body={"no_such_member": 1}, token=token)


def valid_query(world, op):
    return {p["name"]: "/root" for p in op.queries() if p.get("required")}


def valid_body(world, op, more=None):
    if op.id in ("openTransfer",):
        return {"path": "/root/none", "size": 1, "sha256": "0" * 64}
    if op.id == "creditAccount":
        return {"amount_micro": 1, "reason": "x"}
    if op.id == "makeDirectory":
        return {"path": "/root/made"}
    return more if "application/json" in op.body else None


def reach_conflict_of_keys(world, op):
    """409 idempotency_mismatch: a key that was used for another request."""
    if op.method == "GET" or 409 not in op.statuses():
        return
    token = world.operator_token if op.operator else world.user_token
    world.ask(op, body=valid_body(world, op, {}), token=token, headers={"Idempotency-Key": "é"})
    account = world.account["user"]
    if op.operator:
        world.ask("creditAccount", {"id": account}, body={"amount_micro": 1, "reason": "first"}, token=token,
                  headers={"Idempotency-Key": "used"})
    else:
        world.ask("addSshKey", body={"name": "first", "public_key": world.public_key}, headers={"Idempotency-Key": "used"})
    world.ask(op, {"id": world.stopped if not op.operator else account}, body=valid_body(world, op, {}), token=token,
              headers={"Idempotency-Key": "used"})


def reach_instances(world):
    world.ask("createInstance", body={"name": "running", "image": harness.BUSYBOX_IMAGE, "gpu_type": "RTX 3090"})
    poor = world.create("poor", world.poor_token)
    world.ask("startInstance", {"id": poor}, body={}, token=world.poor_token)
    world.ask("startInstance", {"id": world.running}, body={})
    for verb in ("startInstance", "stopInstance", "releaseInstance"):
        world.ask(verb, {"id": world.released}, body={})
        world.ask(verb, {"id": world.stopped}, body={"no_such_member": 1})
    for path in ({"id": "%ff"}, {"id": "a\0b"}):
        world.ask("showInstance", path)
    key = world.ask("addSshKey", body={"public_key": world.other_key})
    world.ask("removeSshKey", {"id": key.json().get("id", "x")})
    world.ask("creditAccount", {"id": world.account["poor"]}, body={"amount_micro": -1, "reason": "x"},
              token=world.operator_token)
    world.ask("createAccount", body={"name": "poor"}, token=world.operator_token)
    for stream in ("listEvents", "listInstanceEvents", "readLogs"):
        world.ask(stream, headers={"Accept": "text/event-stream"})
        world.ask(stream, headers={"Last-Event-ID": "x"})


def reach_operators(world):
    """Ends as it began: who was disabled is enabled, who was drained is resumed."""
    token, nobody = world.operator_token, {"id": "no-such-thing"}
    account = {"id": world.account["poor"]}
    node = {"id": world.ask("listNodes", token=token).json()["items"][0]["id"]}
    reason = {"reason": "test"}
    quota = {"cards_max": 3, "reason": "test"}
    for target in (nobody, account):
        world.ask("disableAccount", target, body=reason, token=token)
        world.ask("enableAccount", target, body=reason, token=token)
        world.ask("setQuota", target, body=quota, token=token)
    world.ask("createAccount", body={"name": "student", "group": "lab"}, token=token)
    for target in (nobody, {"id": "lab"}):
        world.ask("setGroupQuota", target, body=quota, token=token)
    for target in (nobody, node):
        world.ask("drainNode", target, body=reason, token=token)
        world.ask("resumeNode", target, body=reason, token=token)
    card = {"id": world.ask("listCards", token=token).json()["items"][-1]["id"]}
    for target in (nobody, card):
        world.ask("cordonCard", target, body=reason, token=token)
        world.ask("uncordonCard", target, body=reason, token=token)
        world.ask("showCardHistory", target, token=token)
    for reference in (harness.BUSYBOX_IMAGE, ""):
        world.ask("setImageAlias", body={"alias": "lab/box:1", "reference": reference, "reason": "test"}, token=token)
    backup = world.ask("makeBackup", token=token).json()
    world.ask("getBackupPart", {"id": backup["id"]}, token=token)


def reach_exec(world):
    world.ask("exec", headers=UPGRADE)
    world.ask("exec", {"id": world.stopped}, headers=UPGRADE)
    world.ask("exec", query={"pty": 7}, headers=UPGRADE)
    world.ask("exec")


def reach_files(world):
    content = b"twelve bytes"
    opened = world.ask("openTransfer", body={"path": "/root/f", "size": 12, "sha256": hash_of(content)}).json()
    at = {"ticket": opened["ticket"], "n": 0}
    part = {"X-Autodl-Part-SHA256": hash_of(content)}
    world.ask("completeTransfer", at, body={})
    world.ask("putPart", at, data=content, headers={"X-Autodl-Part-SHA256": "x"})
    world.ask("putPart", at, data=b"1\r\nx\r\n0\r\n\r\n", headers=dict(part, **{"Content-Length": None, "Transfer-Encoding": "chunked"}))
    world.ask("putPart", at, data=b"twelve bytez", headers=part)
    world.ask("putPart", at, data=content, headers=part)
    world.ask("completeTransfer", at, body={})
    world.ask("completeTransfer", at, body={})
    world.ask("readFile", query={"path": "/root/f"})
    world.ask("readFile", query={"path": "/root/f"}, headers={"If-Match": '"other"'})
    world.ask("listFiles", query={"path": "/root", "recursive": 1})
    wrong = world.ask("openTransfer", body={"path": "/root/g", "size": 12, "sha256": "1" * 64}).json()
    at = {"ticket": wrong["ticket"], "n": 0}
    world.ask("putPart", at, data=content, headers=part)
    world.ask("completeTransfer", at, body={})
    again = world.ask("openTransfer", body={"path": "/root/h", "size": 12, "sha256": "2" * 64}).json()
    world.ask("dropTransfer", {"ticket": again["ticket"]})
    world.ask("makeDirectory", body={"path": "/root/dir"})
    late = world.ask("openTransfer", body={"path": "/root/k", "size": 12, "sha256": hash_of(content)}).json()
    at = {"ticket": late["ticket"], "n": 0}
    world.ask("putPart", at, data=content, headers=part)
    world.ask("makeDirectory", body={"path": "/root/k"})
    world.ask("completeTransfer", at, body={})  # a folder is in its place
    for key in (world.running, world.released):
        for path in ("/proc", "/proc/1/status", "/root/none"):
            world.ask("listFiles", {"id": key}, {"path": path})
            world.ask("readFile", {"id": key}, {"path": path})
        world.ask("makeDirectory", {"id": key}, body={"path": "/proc/x"})
        world.ask("openTransfer", {"id": key}, body={"path": "/proc/x", "size": 1, "sha256": "0" * 64})
        world.ask("putPart", {"id": key, "ticket": "x", "n": 0}, data=b"x", headers=part)
        world.ask("completeTransfer", {"id": key, "ticket": "x"}, body={})
        world.ask("dropTransfer", {"id": key, "ticket": "x"})


def unreached(world):
    out = []
    for op in world.operations.values():
        missing = op.statuses() - world.reached.get(op.id, set())
        out += ["%s %d" % (op.id, status) for status in sorted(missing)]
    return out


# ---- random requests

class Fuzzer:
    # What a random request may do for real is done to an account and instances of its own.
    def __init__(self, world, seed):
        self.world, self.rng = world, random.Random(seed)
        self.token = world.new_user("fuzz", 10 ** 8)
        self.creations = 0
        self.keys = [world.create("fuzz-%d" % n, self.token, gpu_count=0, gpu_type=None) for n in range(2)] + ["none", "名字"]

    def one(self):
        rng, world = self.rng, self.world
        op = rng.choice(list(world.operations.values()))
        if rng.random() < 0.1:
            return self.raw(op)
        token = rng.choice([self.token] * 8 + [None, "adl_x", "\0"])
        if op.operator and rng.random() < 0.7:
            token = world.operator_token
        query = {}
        for parameter in op.queries():
            if parameter.get("required") or rng.random() < 0.4:
                value = world.schemas.make(parameter["schema"], rng)
                query[parameter["name"]] = schemas_of.mutate(value, rng) if rng.random() < 0.3 else value
        if rng.random() < 0.05:
            query["x"] = "y"
        headers = {}
        for parameter in op.parameters:
            if parameter["in"] == "header" and rng.random() < 0.3:
                value = str(world.schemas.make(parameter["schema"], rng))
                headers[parameter["name"]] = value.replace("\n", " ")[:2000]
        if op.id in ("listEvents", "listInstanceEvents", "readLogs") and rng.random() < 0.3:
            headers["Accept"] = "text/event-stream"
        path = {"id": rng.choice(self.keys), "ticket": rng.choice(["x", "0" * 32]), "n": rng.choice([0, 1, -1, 2 ** 64, "x"])}
        return world.ask(op, path, query, token=token, headers=headers, data=self.body(op, token))

    def body(self, op, token):
        rng = self.rng
        if not op.body or rng.random() < 0.05:
            return None
        if "application/json" not in op.body:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(50)))
        value = self.world.schemas.make(op.body["application/json"]["schema"], rng)
        if op.id == "createInstance":
            value.update(image=harness.BUSYBOX_IMAGE, gpu_count=0, gpu_type=None, disk_bytes=1 << 30, ssh_keys=[], max_runtime_s=None)
            self.creations += 1
            if self.creations > 6:
                value["gpu_count"] = -1  # refused, however it is mutated further
        if rng.random() < 0.6:
            value = schemas_of.mutate(value, rng)
        return schemas_of.to_bytes(value, rng)

    def raw(self, op):
        rng = self.rng
        text = bytearray(b"%s TARGET HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{}"
                         % (op.method.encode(), self.token.encode()))
        target = text.find(b"TARGET")
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text))
            if not target - 20 <= at < target + 7:  # the method and the path stay: the operation is known
                text[at:at + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
        data = bytes(text)
        if b"TARGET" not in data:
            return None
        return self.world.ask(op, {"id": self.keys[0]}, raw=data)


# ---- the lines

def line(text, faults):
    for fault in faults[:12]:
        print("   " + fault)
    print("%s %s" % ("FAIL" if faults else "PASS", text), flush=True)
    return 1 if faults else 0


def has_node():
    """Debian 12's own Node.js is too old for redocly."""
    if not shutil.which("npm") or not shutil.which("node"):
        return False
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")
    return tuple(int(n) for n in version.split(".")[:2]) >= (20, 19)


def lint(document):
    folder = os.path.join(harness.ROOT, "tools/dev/openapi")
    if not os.path.exists(os.path.join(folder, "node_modules/.bin/redocly")):
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            return ["npm ci: " + done.stderr[-500:]]
    with tempfile.TemporaryDirectory() as at:
        path = os.path.join(at, "openapi.json")
        with open(path, "w") as out:
            json.dump(document, out, indent=1)
        done = subprocess.run(["node_modules/.bin/redocly", "lint", "--config", "redocly.yaml", "--format", "json", path],
                              cwd=folder, capture_output=True, text=True, timeout=300, env=dict(os.environ, REDOCLY_TELEMETRY="off"))
    found = json.loads(done.stdout or "{}")
    if done.returncode == 0 and found.get("totals") == {"errors": 0, "warnings": 0, "ignored": 0}:
        return []
    return [p["ruleId"] + ": " + p["message"] for p in found.get("problems", [])] or [done.stderr[-500:]]


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10 ** 9)
    began = time.monotonic()
    with World() as world:
        failed = 0
        if has_node():
            failed += line("openapi.json is clean under redocly", lint(world.document))
        else:
            print("SKIP openapi.json is clean under redocly: needs npm and Node.js 20.19 or newer", flush=True)
        control = world.site.child_pid("control")
        for op in world.operations.values():
            reach_general(world, op)
            reach_conflict_of_keys(world, op)
        for reach in (reach_instances, reach_operators, reach_exec, reach_files):
            reach(world)
        failed += line("%d operations: every answer is as documented" % len(world.operations), world.faults)
        failed += line("every documented status is reached (%d)" % sum(len(s) for s in world.reached.values()), unreached(world))
        world.faults = []
        fuzzer, sent = Fuzzer(world, seed), world.sent
        for n in range(requests):
            fuzzer.one()
            if len(world.faults) > 20:
                break
        failed += line("%d random requests: documented, no 5xx (repeat: scripts/prove api %d %d)"
                       % (world.sent - sent, requests, seed), world.faults)
        alive = [] if world.site.child_pid("control") == control else ["control is another process: " + world.site.log_tail()]
        failed += line("the server is the same process", alive)
    print("api: done, %d failed (%d s)" % (failed, time.monotonic() - began))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
