# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
import os
import stat
import tempfile
import warnings

import autodl
from autodl.local_files import link_stays_inside, safe_parts
from tests.test_client import WithServer


def write(path, data=b"x"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data)


def read(path):
    with open(path, "rb") as source:
        return source.read()


class Transfers(WithServer):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.local = folder.name
        self.task = self.new_task()
        self.remote_root = self.instance(self.task).root
        self.server.part_bytes = 1000

    def here(self, *parts):
        return os.path.join(self.local, *parts)

    def there(self, path):
        return self.remote_root + path

    def send(self, local_path, remote_path="/root/", **more):
        return self.client.upload_files(task_id=self.task.id, local_path=local_path,
                                        remote_path=remote_path, **more)

    def fetch(self, remote_path, *local, **more):
        return self.client.download_files(task_id=self.task.id, remote_path=remote_path,
                                          local_path=self.here(*local), **more)

    def list_below(self, root):
        return sorted(os.path.relpath(os.path.join(folder, name), root)
                      for folder, names, files in os.walk(root) for name in names + files)


class Uploads(Transfers):
    def test_a_list_lands_in_the_folder_whatever_its_spelling(self):
        write(self.here("train.py"), b"train")
        write(self.here("model.py"), b"model")
        for remote in ("/root/", "/root/a", "/root/b/"):
            sent = self.send([self.here("train.py"), self.here("model.py")], remote)
            base = remote.rstrip("/")
            self.assertEqual(sent, [base + "/train.py", base + "/model.py"])
            self.assertEqual(read(self.there(base + "/model.py")), b"model")

    def test_a_single_file_by_the_three_forms(self):
        write(self.here("m.bin"), b"m")
        self.assertEqual(self.send(self.here("m.bin"), "/root"), ["/root/m.bin"])
        self.assertEqual(self.send(self.here("m.bin"), "/root/other.bin"), ["/root/other.bin"])
        self.assertEqual(self.send(self.here("m.bin"), "/root/new/"), ["/root/new/m.bin"])

    def test_a_folder_with_parts_empty_folders_modes_and_odd_names(self):
        big = os.urandom(4321)
        write(self.here("tree/sub/big"), big)
        write(self.here("tree/名字 &+%2F?x"), b"")
        os.makedirs(self.here("tree/sub/empty"))
        write(self.here("tree/run.sh"))
        os.chmod(self.here("tree/run.sh"), 0o750)
        self.send(self.here("tree"), "/root/at/")
        self.send(self.here("tree"), "/root/named")
        for base in ("/root/at/tree", "/root/named"):
            self.assertEqual(self.list_below(self.there(base)), self.list_below(self.here("tree")))
            self.assertEqual(read(self.there(base + "/sub/big")), big)
        mode = os.stat(self.there("/root/named/run.sh")).st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o750)
        parts = [p for m, p in self.server.requests if m == "PUT"]
        self.assertEqual(len(parts), 2 * (5 + 1))

    def test_one_missing_file_and_nothing_is_sent(self):
        write(self.here("good"))
        for wrong in ([self.here("good"), self.here("missing")], self.here("missing")):
            count = len(self.server.requests)
            with self.assertRaises(autodl.LocalFileError) as caught:
                self.send(wrong)
            self.assertIn("missing", str(caught.exception))
            self.assertEqual(caught.exception.code, "no_such_file")
            self.assertIsInstance(caught.exception, OSError)
            self.assertEqual(len(self.server.requests), count)
        with self.assertRaises(autodl.LocalFileError):
            self.send([])

    def test_special_files_and_links_to_folders_are_skipped_with_a_warning(self):
        write(self.here("tree/file"))
        os.symlink("file", self.here("tree/link"))
        os.symlink("/", self.here("tree/all"))
        os.symlink("nowhere", self.here("tree/broken"))
        os.mkfifo(self.here("tree/fifo"))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.send(self.here("tree"), "/root/t")
        self.assertEqual(self.list_below(self.there("/root/t")), ["file", "link"])
        self.assertEqual(len(told), 3)

    def test_lost_connections_and_lost_answers_change_nothing(self):
        data = os.urandom(5000)
        write(self.here("f"), data)
        self.client.balance()
        self.server.faults = [None, "cut", "close", None, 503, "close", "cut"]
        self.send(self.here("f"))
        self.assertEqual(read(self.there("/root/f")), data)
        self.assertEqual(self.server.faults, [])

    def test_a_file_that_changes_while_it_is_sent_is_sent_again_whole(self):
        write(self.here("f"), b"a" * 30000)

        def change(number):
            if number == 1:
                write(self.here("f"), b"b" * 30000)
                self.server.on_part = None

        self.server.on_part = change
        self.send(self.here("f"))
        self.assertEqual(read(self.there("/root/f")), b"b" * 30000)

    def test_a_disk_that_is_still_being_made_is_waited_for(self):
        write(self.here("f"), b"data")
        self.server.disk_ready_after = 3
        self.send([self.here("f")])
        self.assertEqual(read(self.there("/root/f")), b"data")
        self.server.disk_ready_after = 2
        self.assertEqual(len(self.client.list_files(self.task.id, "/root")), 1)

    def test_a_disk_that_will_never_be_made_is_not_waited_for(self):
        write(self.here("f"), b"data")
        self.server.disk_ready_after = 1000
        self.instance(self.task).states = ["failed"]
        self.instance(self.task).end["reason"] = "no room for it"
        with self.assertRaises(autodl.ConflictError) as caught:
            self.send([self.here("f")])
        self.assertIn("no room for it", str(caught.exception))

    def test_a_part_that_the_server_is_still_busy_with(self):
        write(self.here("f"), b"data")
        self.server.busy_parts = 2
        self.send([self.here("f")])
        self.assertEqual(read(self.there("/root/f")), b"data")

    def test_a_full_disk_is_said_at_once_and_the_name_stays_free(self):
        write(self.here("full"))
        with self.assertRaises(autodl.LimitError) as caught:
            self.send(self.here("full"), "/root/full")
        self.assertIn("full", str(caught.exception))
        self.assertFalse(os.path.exists(self.there("/root/full")))

    def test_relative_remote_paths_are_refused(self):
        write(self.here("f"))
        with self.assertRaises(autodl.TransferError):
            self.send(self.here("f"), "root/")

    def test_progress_is_told_up_to_the_end(self):
        write(self.here("f"), b"x" * 2500)
        told = []
        self.send(self.here("f"), progress=lambda name, done, total: told.append((done, total)))
        self.assertEqual(told, [(1000, 2500), (2000, 2500), (2500, 2500)])


class Downloads(Transfers):
    def test_contents_of_a_folder_land_in_local_path_whether_or_not_it_exists(self):
        write(self.there("/root/output/a"), b"a" * 2500)
        write(self.there("/root/output/sub/b 名"), b"")
        os.makedirs(self.there("/root/output/empty"))
        os.makedirs(self.here("exists"))
        for name in ("exists", "new/deep"):
            self.fetch("/root/output", name)
            self.assertEqual(self.list_below(self.here(name)), ["a", "empty", "sub", "sub/b 名"])
            self.assertEqual(read(self.here(name, "a")), b"a" * 2500)

    def test_a_file_lands_in_the_folder_with_its_time_and_mode(self):
        write(self.there("/root/f"), b"data")
        os.chmod(self.there("/root/f"), 0o640)
        os.utime(self.there("/root/f"), (1500000000, 1500000000))
        (path,) = self.fetch("/root/f", "back")
        self.assertEqual(path, self.here("back", "f"))
        info = os.stat(path)
        self.assertEqual((stat.S_IMODE(info.st_mode), int(info.st_mtime)), (0o640, 1500000000))

    def test_a_missing_remote_file(self):
        with self.assertRaises(autodl.NotFoundError):
            self.fetch("/root/nothing", "back")

    def test_damaged_parts_are_fetched_again_and_not_for_ever(self):
        write(self.there("/root/f"), b"0123456789" * 200)
        self.server.damage_parts = 2
        self.fetch("/root/f", "back")
        self.assertEqual(read(self.here("back", "f")), b"0123456789" * 200)
        self.server.damage_parts = 100
        with self.assertRaises(autodl.TransferError) as caught:
            self.fetch("/root/f", "again")
        self.assertEqual(caught.exception.code, "hash_mismatch")
        self.assertEqual(os.listdir(self.here("again")), [])

    def test_a_file_that_changes_is_fetched_anew(self):
        write(self.there("/root/f"), b"a" * 2500)

        def change(name, done, total):
            if done == 1000:
                write(self.there("/root/f"), b"b" * 1500)

        self.fetch("/root/f", "back", progress=change)
        self.assertEqual(read(self.here("back", "f")), b"b" * 1500)
        self.assertEqual(os.listdir(self.here("back")), ["f"])

    def test_a_failed_download_leaves_the_old_file(self):
        write(self.here("back/f"), b"old")
        write(self.there("/root/f"), b"new" * 1000)

        def stop(name, done, total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.fetch("/root/f", "back", progress=stop)
        self.assertEqual(self.list_below(self.here("back")), ["f"])
        self.assertEqual(read(self.here("back", "f")), b"old")

    def test_files_that_vanish_meanwhile_are_skipped(self):
        for name in "abc":
            write(self.there("/root/d/" + name))

        def change(name, done, total):
            if name.endswith("/a"):
                os.unlink(self.there("/root/d/b"))

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.fetch("/root/d", "back", progress=change)
        self.assertEqual(self.list_below(self.here("back")), ["a", "c"])
        self.assertEqual(len(told), 1)

    def row(self, path, kind="file", target=None):
        return {"path": path, "type": kind, "size": 1, "mode": 0o644, "mtime_ms": 0,
                "target": target}

    def test_a_hostile_listing_writes_nothing_outside(self):
        write(self.there("/root/d/x"))
        for path in ("../evil", "/etc/evil", "a/../../evil", "a//b", ".", "", "a\0b", None):
            self.server.hostile_listing = [self.row("fine", "directory"), self.row(path)]
            with self.assertRaises(autodl.TransferError, msg=repr(path)) as caught:
                self.fetch("/root/d", "into")
            self.assertEqual(caught.exception.code, "bad_path")
        self.assertEqual(self.list_below(self.local), ["into"])

    def test_a_link_is_never_followed_while_writing(self):
        write(self.there("/root/d/way/evil"))
        os.makedirs(self.here("outside"))
        os.makedirs(self.here("into"))
        os.symlink(self.here("outside"), self.here("into", "way"))
        with self.assertRaises(autodl.LocalFileError) as caught:
            self.fetch("/root/d", "into")
        self.assertIn("in the way", str(caught.exception))
        self.assertEqual(os.listdir(self.here("outside")), [])

    def test_a_link_and_a_file_through_it_in_one_listing(self):
        write(self.there("/root/d/x/evil"))
        self.server.hostile_listing = [self.row("x", "symlink", ".."), self.row("x/evil")]
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            try:
                self.fetch("/root/d", "into")
            except autodl.AutodlError:
                pass
        self.assertFalse(os.path.exists(self.here("evil")))

    def test_links_inside_are_made_again_and_others_skipped(self):
        write(self.there("/root/d/sub/file"), b"f")
        for name, to in (("in", "sub/file"), ("sub/up", "../sub/file"), ("out", "../x"),
                         ("abs", "/etc/passwd"), ("trick", "sub/../../x")):
            os.symlink(to, self.there("/root/d/" + name))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.fetch("/root/d", "into")
            self.fetch("/root/d", "into")  # again, over itself
        self.assertEqual(self.list_below(self.here("into")), ["in", "sub", "sub/file", "sub/up"])
        self.assertEqual(read(self.here("into/sub/up")), b"f")
        self.assertEqual(len([w for w in told if "leads out" in str(w.message)]), 6)

    def test_list_files(self):
        for name in "abcde":
            write(self.there("/root/l/" + name))
        self.assertEqual([r["path"] for r in self.client.list_files(self.task.id, "/root/l")],
                         list("abcde"))


class Rules(Transfers):
    def test_links(self):
        for parts, target, inside in (
                (["a"], "b", True), (["a"], "./b", True), (["a"], "..", False),
                (["d", "a"], "..", True), (["d", "a"], "../..", False),
                (["d", "a"], "../x/y", True),
                (["d", "a"], "x/../y", False), (["a"], "/b", False), (["a"], "", False),
                (["a"], None, False), (["d", "e", "a"], "../../b", True)):
            self.assertEqual(link_stays_inside(parts, target), inside, (parts, target))

    def test_names(self):
        self.assertEqual(safe_parts("a/b c/名"), ["a", "b c", "名"])
        self.assertEqual(safe_parts("...x/..y"), ["...x", "..y"])
