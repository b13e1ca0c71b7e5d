# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""The built `autodl` program, each verb, against the SDK's test server (real bytes over a socket).

    AUTODL_CLI=build/dev/apps/autodl/autodl PYTHONPATH=sdk/python:apps/autodl \\
        python3 -m unittest commands_test
"""
import json
import os
import stat
import subprocess
import tempfile
import unittest

from tests import fake_server


class Commands(unittest.TestCase):
    def setUp(self):
        server = fake_server.FakeServer()
        self.server = server.__enter__()
        self.addCleanup(server.__exit__)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name
        self.keys = {"AUTODL_ENDPOINT": self.server.endpoint,
                     "AUTODL_ACCESS_KEY": fake_server.ACCESS_KEY,
                     "AUTODL_SECRET_KEY": fake_server.SECRET_KEY}

    def path(self, *parts):
        return os.path.join(self.home, *parts)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as out:
            out.write(data)
        return self.path(name)

    def read(self, path):
        with open(path, "rb") as source:
            return source.read()

    def cli(self, *argv, code=0, keys=None, stdin=b"", path=None):
        environment = {"HOME": self.home, "PATH": path or os.environ["PATH"], "LANG": "C.UTF-8"}
        environment.update(self.keys if keys is None else keys)
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                environment[name] = os.environ[name]
        done = subprocess.run([os.environ["AUTODL_CLI"]] + list(argv), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, input=stdin, env=environment, cwd=self.home,
                              timeout=60)
        done.out, done.err = (text.decode("utf-8", "replace")
                              for text in (done.stdout, done.stderr))
        self.assertEqual(done.returncode, code, (argv, done.out, done.err))
        return done

    def create(self, *more):
        return json.loads(self.cli("create", "--image", "pytorch/pytorch:1.12-cuda11.6", "--gpu",
                                   "RTX 3090", "-o", "json", *more).out)

    def running(self):
        made = self.create()
        self.instance(made).states = ["queued", "starting", "running"]
        return made["name"]

    def instance(self, made):
        return self.server.instances[made["id"]]


class WhatThereIs(Commands):
    def test_cards_say_that_they_are_simulated(self):
        out = self.cli("gpus").out
        for word in ("RTX 3090", "24 GiB", "1 of 2", "¥1.58/h", "SIMULATED"):
            self.assertIn(word, out)
        self.assertEqual(json.loads(self.cli("gpus", "-o", "json").out)["items"][0]["free"], 1)

    def test_images_and_balance(self):
        self.assertIn("autodl/pytorch:2.6.0-cpu-py313", self.cli("images").out)
        self.assertIn("¥97.793706", self.cli("balance").out)

    def test_login_keeps_keys_for_later_and_for_nobody_else(self):
        keys = "%s\n%s\n" % (fake_server.ACCESS_KEY, fake_server.SECRET_KEY)
        out = self.cli("--endpoint", self.server.endpoint, "login", keys={},
                       stdin=keys.encode()).out
        self.assertIn("signed in as mei", out)
        path = self.path(".config/autodl/config.toml")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertIn("¥", self.cli("balance", keys={}).out)

    def test_login_with_wrong_keys_keeps_nothing(self):
        self.cli("--endpoint", self.server.endpoint, "login", keys={}, stdin=b"AK1\nx\n", code=3)
        self.assertFalse(os.path.exists(self.path(".config/autodl/config.toml")))


class Life(Commands):
    def test_create_start_show_stop_release(self):
        made = self.create("--disk", "7", "--env", "A=b c", "--name", "名字", "--max-runtime", "60",
                           "--", "python", "train.py", "--x=a b")
        body = self.instance(made).body
        self.assertEqual(body["command"], "python train.py '--x=a b'")
        self.assertEqual((body["disk_bytes"], body["env"], body["max_runtime_s"]),
                         (7 << 30, {"A": "b c"}, 60))
        self.assertEqual(self.cli("start", "名字", "--wait").out, "名字 running\n")
        self.assertIn("名字", self.cli("ps").out)
        self.assertEqual(json.loads(self.cli("show", "名字", "-o", "json").out)["id"], made["id"])
        second = self.create("--env", "A=1", "--env", "B=", "--ssh-key", self.write(
            "k.pub", b"ssh-ed25519 AAAA me\n"), "--", "true")
        self.assertEqual(self.instance(second).body["env"], {"A": "1", "B": ""})
        self.assertEqual(self.instance(second).body["ssh_keys"], ["ssh-ed25519 AAAA me"])
        self.cli("stop", "名字", "--wait")
        self.assertEqual(self.cli("release", "名字", "--wait").out, "名字 released\n")
        self.assertNotIn("名字", self.cli("ps").out)
        self.assertIn("名字", self.cli("ps", "--all").out)

    def test_a_substituted_image_is_said(self):
        told = self.cli("create", "--image", "pytorch/pytorch:1.12-cuda11.6", "--gpu", "RTX 3090")
        self.assertIn("autodl/pytorch:2.6.0-cpu-py313", told.err)
        self.assertIn("001 (", told.out)

    def test_the_bill_shows_interval_price_seconds_and_amount(self):
        out = self.cli("bill", self.create()["name"]).out
        for word in ("1427 s", "¥1.58", "¥0.626294", "2026-01-01T00:23:47.4Z"):
            self.assertIn(word, out)

    def test_events(self):
        made = self.create()
        self.instance(made).events = [{"seq": n, "at": "2026", "type": "kind-%d" % n, "actor": "user",
                                       "message": "m\033[2J"} for n in (2, 3, 9)]
        out = self.cli("events", made["name"]).out
        for word in ("kind-2", "kind-3", "kind-9"):
            self.assertIn(word, out)
        self.assertNotIn("\033", out)

    def test_logs_whole_and_followed_through_lost_connections(self):
        made = self.create()
        self.instance(made).log = [
            {"time": "t", "stream": "stdout", "text": "line %d" % n, "partial": False}
            for n in range(5)]
        self.instance(made).log_over = True
        wanted = "".join("line %d\n" % n for n in range(5))
        self.assertEqual(self.cli("logs", made["name"]).out, wanted)
        self.assertEqual(self.cli("logs", "-f", made["name"]).out, wanted)


class Inside(Commands):
    def test_exec_passes_bytes_and_exit_codes(self):
        name = self.running()
        done = self.cli("exec", name, "--", "echo", "-n", "two  words", code=7)
        self.assertEqual((done.out, done.err), ("echo -n two  words\n", "to-stderr\n"))
        data = bytes(range(256)) * 3000
        self.assertEqual(self.cli("exec", name, "--", "cat", stdin=data, code=7).stdout, data)
        copied = os.urandom(1) * (8 << 20)
        self.assertTrue(self.cli("exec", name, "--", "tee", stdin=copied).stdout == copied * 3)
        for words in (["a", "--help", "-o", "x"], ["a", "--", "b"], ["a", "--env", "-t"], ["a", ""]):
            self.assertEqual(self.cli("exec", name, "--", *words, code=7).out,
                             " ".join(words) + "\n")
        self.cli("exec", name, "--", "die", code=128 + 9)
        self.assertIn("not found", self.cli("exec", name, "--", "no-such", code=127).err)
        self.cli("exec", "nobody's", "--", "true", code=4)

    def test_ssh_and_exec_say_that_it_is_not_started(self):
        name = self.create()["name"]
        for verb in (["ssh", name], ["exec", name, "--", "true"]):
            self.assertIn("autodl start " + name, self.cli(*verb, code=5).err)

    def test_ssh_pins_the_host_key_and_passes_the_exit_code(self):
        name = self.running()
        script = self.write("bin/ssh", b"""#!/bin/sh
for word; do
    echo "[$word]"
    case $word in UserKnownHostsFile=*) cat "${word#*=}" ;; esac
done
exit 4
""")
        os.chmod(script, 0o755)
        out = self.cli("ssh", name, "-i", "/k", "--", "exit 4", code=4,
                       path=self.path("bin") + ":" + os.environ["PATH"]).out
        for line in ("[127.0.0.1]:20001 ssh-ed25519 A", "[StrictHostKeyChecking=yes]", "[20001]",
                     "[root@127.0.0.1]", "[exit 4]", "[/k]"):
            self.assertIn(line, out.splitlines())

    def test_cp_files_and_folders_both_ways(self):
        made = self.create()
        self.server.part_bytes = 1000
        data = os.urandom(3500)
        self.write("tree/sub/file", data)
        self.write("one", b"1")
        self.cli("cp", "one", "tree", made["name"] + ":/root/")
        self.cli("cp", "one", made["name"] + ":/root/two")
        root = self.instance(made).root
        self.assertEqual(self.read(root + "/root/tree/sub/file"), data)
        self.assertEqual(self.read(root + "/root/two"), b"1")
        self.cli("cp", made["name"] + ":/root/tree", "back")
        self.cli("cp", made["name"] + ":/root/two", "renamed")
        self.assertEqual(self.read(self.path("back/sub/file")), data)
        self.assertEqual(self.read(self.path("renamed")), b"1")

    def test_cp_sends_nothing_where_one_is_missing(self):
        name = self.create()["name"]
        self.write("one", b"1")
        count = len(self.server.requests)
        self.assertIn("missing", self.cli("cp", "one", "missing", name + ":/root/", code=1).err)
        self.assertEqual(len(self.server.requests), count)

    def test_cp_writes_nothing_outside_its_folder(self):
        made = self.create()
        os.makedirs(self.instance(made).root + "/root/d")
        row = {"type": "file", "size": 1, "mode": 420, "mtime_ms": 0, "target": None}
        for evil in ("../evil", "/evil", "a/../../evil"):
            self.server.hostile_listing = [dict(row, path=evil)]
            self.cli("cp", made["name"] + ":/root/d", "into", code=1)
        self.assertEqual([n for n in os.listdir(self.home) if "evil" in n], [])
        os.makedirs(self.path("outside"))
        os.makedirs(self.path("into"), exist_ok=True)
        os.symlink(self.path("outside"), self.path("into", "way"))
        self.server.hostile_listing = [dict(row, path="way/evil")]
        os.makedirs(self.instance(made).root + "/root/d/way")
        with open(self.instance(made).root + "/root/d/way/evil", "w") as out:
            out.write("x")
        self.cli("cp", made["name"] + ":/root/d", "into", code=1)
        self.assertEqual(os.listdir(self.path("outside")), [])

    def test_run_uploads_runs_streams_downloads_and_releases(self):
        self.write("job/train.py", b"train")
        self.write("job/lib/model.py", b"model")
        command = ["run", "--gpu", "RTX 3090", "--image", "autodl/busybox:test", "--folder",
                   self.path("job"), "--", "python", "train.py"]
        server = self.server

        def when_uploaded(number):
            (instance,) = server.instances.values()
            instance.log = [{"time": "t", "stream": "stdout", "text": "trained", "partial": False}]
            instance.end.update(outcome="failed", exit_code=6, reason="exit 6")
            os.makedirs(instance.root + "/root/output", exist_ok=True)
            with open(instance.root + "/root/output/model.pt", "w") as out:
                out.write("weights")

        self.server.on_part = when_uploaded
        done = self.cli(*command, code=6)
        (instance,) = self.server.instances.values()
        self.assertEqual(self.read(instance.root + "/root/train.py"), b"train")
        self.assertEqual(self.read(instance.root + "/root/lib/model.py"), b"model")
        self.assertIn("trained\n", done.out)
        self.assertEqual(self.read(self.path("output/model.pt")), b"weights")
        self.assertEqual(instance.states, ["released"])


class Operators(Commands):
    def test_setup_needs_no_keys_but_the_token(self):
        made = json.loads(self.cli("--endpoint", self.server.endpoint, "-o", "json", "setup", keys={},
                                   stdin=b"once\n").out)
        self.assertEqual((made["account"]["name"], made["secret_key"]),
                         ("operator", fake_server.SECRET_KEY))
        self.assertIn("setup token", self.cli("setup", stdin=b"other\n", code=3).err)
        self.cli("setup", "once", code=2)  # an argument would stand in the list of processes

    def test_accounts_and_credit(self):
        out = self.cli("admin", "user", "add", "li").out
        for word in ("li", fake_server.ACCESS_KEY, fake_server.SECRET_KEY, "shown this once"):
            self.assertIn(word, out)
        self.assertIn("li", self.cli("admin", "user", "list").out)
        self.assertIn("GPU-1", self.cli("admin", "cards").out)
        told = json.loads(self.cli("admin", "credit", "A2", "-12.000001", "--reason", "r").out)
        self.assertEqual(told["balance_micro"], -12000001)
        self.cli("admin", "credit", "A2", "1e3", "--reason", "r", code=2)


class Failures(Commands):
    def test_a_problem_is_told_with_remedy_candidates_and_request(self):
        err = self.cli("create", "--image", "x", "--gpu", "RTX 3909", code=1).err
        for word in ("error: there is no card 'RTX 3909'", "(request R-", "choose one", "RTX 3090"):
            self.assertIn(word, err)
        self.assertNotIn("\033", err)

    def test_exit_codes(self):
        self.cli("frobnicate", code=2)
        self.cli("cp", "a", "b", code=2)
        self.assertIn("autodl login", self.cli("balance", keys={}, code=3).err)
        self.assertIn("nobody's", self.cli("show", "nobody's", code=4).err)
        for status, code in ((409, 5), (402, 6), (429, 7), (500, 1)):
            self.server.faults = [status]
            self.cli("balance", code=code)

    def test_lost_answers_are_asked_for_again_and_done_once(self):
        self.server.faults = ["cut", 503]
        made = self.create()
        self.assertEqual(list(self.server.instances), [made["id"]])

    def test_a_skewed_clock_is_mended(self):
        self.server.clock_offset = -5000
        self.cli("balance")

    def test_an_answer_that_is_none_of_ours_is_no_crash(self):
        real = fake_server._Handler._fixed
        self.addCleanup(setattr, fake_server._Handler, "_fixed", real)
        for answer in ([], "text", {"items": 5}, {"items": [5]}, {"items": [{"name": []}]}, None):
            fake_server._Handler._fixed = lambda handler, a=answer: a
            for verb in ("gpus", "images", "balance"):
                done = subprocess.run([os.environ["AUTODL_CLI"], verb], stderr=subprocess.PIPE,
                                      stdout=subprocess.PIPE, env=dict(self.keys, HOME=self.home))
                self.assertIn(done.returncode, (0, 1, 7), (verb, answer, done))


if __name__ == "__main__":
    unittest.main()
