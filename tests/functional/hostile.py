#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""A tenant with root inside an instance, another user with keys, and an unprivileged host user
attack a whole installation; everybody else must not notice.

    hostile.py           all attacks
    hostile.py net api   only those whose text or name holds one of the words

Prints PASS or FAIL per line, and the time it took.
"""
from hostile_world import *  # noqa: F401,F403 (the world and its tools)
import hostile_inside  # noqa: E402,F401 (its lines come first)


# ---- the API

@line("api: another account's instance, files, logs, exec, transfer, events and keys do not exist")
def api_foreign(world):
    theirs = world.theirs
    status, _, opened = api(world, "POST", "/transfers", {
        "path": "/root/t", "size": 3, "mode": 420, "sha256": "0" * 64}, made=world.other_made, task=theirs)
    assert status == 201, opened
    ticket = opened["ticket"]
    probes = [("GET", "", None), ("DELETE", "", None), ("POST", "/start", {}), ("POST", "/stop", {}),
              ("POST", "/release", {}), ("GET", "/logs", None), ("GET", "/events", None),
              ("GET", "/bill", None), ("GET", "/files?path=/root", None),
              ("GET", "/files/content?path=/etc/shadow", None),
              ("POST", "/directories", {"path": "/root/x", "mode": 493}),
              ("POST", "/transfers", {"path": "/root/x", "size": 1, "mode": 420, "sha256": "0" * 64}),
              ("POST", "/transfers/%s/complete" % ticket, {}), ("DELETE", "/transfers/" + ticket, None)]
    for method, path, body in probes:
        status, _, answer = api(world, method, path, body, task=theirs)
        assert status in (404, 405), (method, path, status, answer)
    upgrade = raw(world, ("POST /api/v1/instances/%s/exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                          "Upgrade: autodl-frames\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n"
                          % (theirs.id, world.made["token"])).encode(), 3)
    assert b" 404 " in upgrade.split(b"\r\n")[0], upgrade[:200]
    # A ticket of theirs under an instance of ours.
    for method, path in (("POST", "/transfers/%s/complete" % ticket), ("DELETE", "/transfers/" + ticket)):
        status, _, answer = api(world, method, path, {} if method == "POST" else None)
        assert status == 404, (method, path, status, answer)
    for guess in ("../" + theirs.id, theirs.name, theirs.id.lower(), theirs.id[:-1] + "0", "%00", "*", "' OR 1=1 --",
                  "x" * 5000, theirs.id + "%2f..%2f" + theirs.id, "null", "-1"):
        status, _, _ = world.site.call("GET", "/api/v1/instances/" + urllib.parse.quote(guess, safe="%"),
                                       token=world.made["token"])
        assert status in (400, 404, 414, 431), (guess[:60], status)
    status, _, answer = world.site.call("GET", "/api/v1/instances", token=world.made["token"])
    assert theirs.id not in json.dumps(answer)
    for method, path, body in (("GET", "/api/v1/admin/accounts", None), ("POST", "/api/v1/admin/accounts",
                               {"name": "x", "role": "operator"}),
                               ("POST", "/api/v1/admin/accounts/%s/credit" % world.made["account"]["id"],
                                {"amount_micro": 10 ** 12, "reason": "me"}),
                               ("POST", "/api/v1/setup", {"setup_token": "adl_setup_x", "name": "me"})):
        status, _, answer = world.site.call(method, path, body, token=world.made["token"])
        assert status in (403, 404, 405, 409), (method, path, status, answer)
    assert world.theirs.status == "RUNNING"


@line("api: malformed JSON, wrong types, huge numbers, nesting and bodies are refused, nothing breaks")
def api_bodies(world):
    control = world.site.child_pid("control")
    head = ("POST /api/v1/instances HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
            "Content-Type: application/json\r\nConnection: close\r\n" % world.made["token"]).encode()
    bodies = [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{\"image\":1}", b"[" * 30000, b"{\"a\":" * 9000,
              b'{"image":"x","image":"y"}', b'{"gpu_count":1e999}', b'{"gpu_count":-1}',
              b'{"disk_bytes":9223372036854775808}', b'{"env":{"A=B":"x"}}', b'{"env":{"A":"x\\u0000y"}}',
              b'{"name":"' + b"n" * 60000 + b'"}', b'{"command":"\\ud800"}', b'"' + b"x" * 60000 + b'"']
    for body in bodies:
        answer = raw(world, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        code = int(answer.split()[1]) if answer else 0
        assert 400 <= code < 500, (body[:60], answer[:300])
    huge = raw(world, head + b"Content-Length: 99999999999999\r\n\r\n" + b"x" * 200000)
    assert huge.split()[1:2] in ([b"413"], [b"400"]), huge[:200]
    chunked = raw(world, head + b"Transfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
                  + b"ffffffffffffffff\r\n" + b"x" * 100000)
    assert chunked.split()[1:2] in ([b"413"], [b"400"]), chunked[:200]
    assert world.site.child_pid("control") == control
    assert len(list(world.client.list_tasks())) == len([t for t in world.client.list_tasks()])


@line("api: smuggled requests, header bombs and strange request lines are refused")
def api_smuggling(world):
    token = world.made["token"].encode()
    inner = b"GET /api/v1/account HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + b"\r\n\r\n"
    start_line = b"POST /api/v1/instances HTTP/1.1\r\nHost: x\r\n"
    for name, data in (
            ("both", start_line + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner),
            ("two lengths", start_line + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + inner),
            ("plus", start_line + b"Content-Length: +5\r\n\r\nxxxxx"),
            ("xchunked", start_line + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner),
            ("space", start_line + b"Content-Length : 3\r\n\r\nabc" + inner),
            ("fold", start_line + b"X: a\r\n Content-Length: 3\r\n\r\n"),
            ("bare cr", b"GET /version HTTP/1.1\rHost: x\r\n\r\n"),
            ("nul", b"GET /ver\0sion HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("no version", b"GET /version\r\n\r\n"), ("version", b"GET /version HTTP/9.9\r\nHost: x\r\n\r\n"),
            ("absolute", b"GET http://evil/version HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("two hosts", b"GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
            ("tls", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 300),
            ("bomb", b"GET /version HTTP/1.1\r\n" + b"".join(b"h%d: x\r\n" % i for i in range(9000)) + b"\r\n"),
            ("long", b"GET /version HTTP/1.1\r\nX: " + b"a" * 100000 + b"\r\n\r\n")):
        answer = raw(world, data, 4)
        assert answer.count(b"HTTP/1.1 200") == 0 and b"adl_" not in answer, (name, answer[:300])
        assert b"HTTP/1.1 5" not in answer or b" 505 " in answer, (name, answer[:300])
    assert raw(world, b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200")


@line("api: 3000 idle and slow connections keep nobody out")
def api_many_connections(world):
    kept = []
    try:
        for i in range(3000):
            conn = socket.create_connection(("127.0.0.1", world.site.port), 10)
            if i % 2:
                conn.sendall(b"GET /version HTTP/1.1\r\nHost: ")
            kept.append(conn)
        assert world.others_are_well() < 20
    finally:
        for conn in kept:
            conn.close()


# ---- the gateway

@line("gateway: a flood of connections to one endpoint keeps nobody out of another")
def gateway_flood(world):
    host, port = world.mine.ssh["host"], world.mine.ssh["port"]
    gateway = world.site.child_pid("gateway")
    kept = []
    try:
        for i in range(1500):
            # From many addresses: the limit is by client address.
            conn = socket.socket()
            conn.bind(("127.0.%d.%d" % (1 + i % 200, 1 + i // 200), 0))
            conn.settimeout(5)
            conn.connect((host, port))
            kept.append(conn)
        assert world.others_are_well() < 20
        with socket.create_connection((world.theirs.ssh["host"], world.theirs.ssh["port"]), 5) as conn:
            conn.settimeout(20)
            conn.sendall(os.urandom(100000))
            with contextlib.suppress(OSError):
                while conn.recv(65536):
                    pass
    finally:
        for conn in kept:
            conn.close()
    assert world.site.child_pid("gateway") == gateway
    await_that(lambda: world.ssh(world.mine, "echo in").stdout == "in\n", "the own endpoint is back", 60, 1)


# ---- an unprivileged user of the host

@line("host: another host user can open no socket, file, state or process of the installation")
def host_user(world):
    nobody = pwd.getpwnam("nobody")

    def as_nobody(*argv):
        return run("setpriv", "--reuid", nobody.pw_uid, "--regid", nobody.pw_gid, "--clear-groups",
                   *argv, check=False)
    sockets = []
    for root, _, names in os.walk(world.site.run_dir):
        sockets += [os.path.join(root, name) for name in names
                    if stat.S_ISSOCK(os.lstat(os.path.join(root, name)).st_mode)]
    named = {os.path.basename(path) for path in sockets}
    assert {"link.sock", "streams.sock"} <= named, sockets
    program = ("import socket, sys\nfor kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):\n"
               " s = socket.socket(socket.AF_UNIX, kind)\n try:\n  s.connect(sys.argv[1]); print('open')\n"
               " except PermissionError: pass\n except OSError as e: print(e.errno) if e.errno != 91 else 0")
    for path in sockets:
        tried = as_nobody("python3", "-c", program, path)
        assert "open" not in tried.stdout, path
    for folder in (world.site.dir + "/state", world.site.run_dir):
        seen = as_nobody("find", folder, "-type", "f", "-readable", "-not", "-path", "*/sim/*").stdout.split()
        assert not seen, seen[:10]
        written = as_nobody("find", folder, "-writable", "-not", "-type", "l").stdout.split()
        assert not written, written[:10]
    control = world.site.child_pid("control")
    with open("/proc/%d/status" % control) as text:
        status = dict(row.split(":\t", 1) for row in text.read().splitlines() if ":\t" in row)
    assert status["Uid"].split()[0] != "0" and int(status["CapBnd"], 16) == 0, status["Uid"]
    # Control's own user, were control taken over: the node's sockets and folders stay the node's.
    uid, gid = status["Uid"].split()[0], status["Gid"].split()[0]
    for name in ("link.sock", "streams.sock", "rt"):
        path = os.path.join(world.site.run_dir, name)
        moved = run("setpriv", "--reuid", uid, "--regid", gid, "--clear-groups", "mv", path, path + ".x",
                    check=False)
        assert moved.returncode != 0 and os.path.lexists(path), "control's user moved " + name


@line("host: no token, key or secret in logs, command lines, environments or events")
def secrets_told(world):
    with open(world.site.log_path, errors="replace") as log:
        text = log.read()
    secrets = [made[name] for made in (world.made, world.other_made, world.site.operator)
               for name in ("token", "secret_key")]
    assert not [s for s in secrets if s in text] and "adl_setup_" not in text
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                with open("/proc/%s/%s" % (pid, name), "rb") as f:
                    data = f.read()
                if name == "environ" and b"AUTODL_SECRET_KEY" in data:
                    continue  # a client of this test
                assert not [s for s in secrets if s.encode() in data], (pid, name)
    told = json.dumps([dict(e) for e in world.mine.events()]) + json.dumps(dict(world.mine.info()))
    assert not [s for s in secrets if s in told] and "PRIVATE KEY" not in told
    status, _, listing = world.site.call("GET", "/api/v1/account", token=world.made["token"])
    assert status == 200 and world.made["secret_key"] not in json.dumps(listing)


@line("at the end: no child died, everything can be released and nothing is left")
def at_the_end(world):
    with open(world.site.log_path, errors="replace") as log:
        died = [row for row in log if "was killed by signal" in row or "/serve: " in row and "ended with" in row]
    assert not died, died
    world.others_are_well()
    for client in (world.client, world.other_client):
        for task in client.list_tasks():
            if task.status in ("RUNNING", "QUEUED", "STARTING"):
                task.stop()
                task.wait(90)
            task.release()
    await_that(lambda: not list(world.client.list_tasks()), "all are released", 60)
    after = {}

    def clean():
        after.update(harness.footprint(world.site.tag))
        return after == world.before
    await_that(clean, "footprint as before %s" % world.before, 60)


def main(words):
    chosen = [(text, f) for text, f in LINES
              if not words or any(w in text or w in f.__name__ for w in words)]
    failed = 0
    with harness.Installation(images=(BUSYBOX_IMAGE, TORCH_IMAGE), gpus="RTX 3090:4",
                              name="host") as site:
        before = harness.footprint(site.tag)
        try:
            world = World(site)
        except Exception:
            print(site.log_tail())
            raise
        world.before = before
        for text, function in chosen:
            begun = time.monotonic()
            try:
                if world.mine.status != "RUNNING":
                    restart(world.mine)
                function(world)
                print("PASS %s (%.1f s)" % (text, time.monotonic() - begun), flush=True)
            except Exception:
                failed += 1
                print("FAIL %s (%.1f s)" % (text, time.monotonic() - begun), flush=True)
                traceback.print_exc(file=sys.stdout)
        shutil.rmtree(world.scratch, ignore_errors=True)
        if failed:
            print(site.log_tail())
    print("hostile: done, %d of %d lines failed" % (failed, len(chosen)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
