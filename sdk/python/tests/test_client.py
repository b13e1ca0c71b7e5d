# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
import datetime
import decimal
import threading
import time
import unittest
import unittest.mock

import autodl
from autodl import transport
from tests import fake_server


class WithServer(unittest.TestCase):
    def setUp(self):
        server = fake_server.FakeServer()
        self.server = server.__enter__()
        self.addCleanup(server.__exit__)
        self.client = self.new_client()

    def new_client(self, **given):
        settings = dict(access_key=fake_server.ACCESS_KEY, secret_key=fake_server.SECRET_KEY,
                        endpoint=self.server.endpoint, retry_seconds=5)
        settings.update(given)
        client = autodl.Client(**settings)
        self.addCleanup(client.close)
        return client

    def new_task(self, **given):
        wanted = dict(name="mnist", image="pytorch/pytorch:1.12-cuda11.6", gpu_type="RTX 3090",
                      command="python train.py --data=/root/data --output=/root/output")
        wanted.update(given)
        return self.client.create_task(**wanted)

    def instance(self, task):
        return self.server.instances[task.id]


class Tasks(WithServer):
    def test_create_start_poll_until_stopped(self):
        task = self.new_task(env={"A": 1}, max_runtime=datetime.timedelta(hours=2), disk_size=20)
        self.assertEqual(task.status, "CREATED")
        body = self.instance(task).body
        self.assertEqual(body["disk_bytes"], 20 << 30)
        self.assertEqual(body["max_runtime_s"], 7200)
        self.assertEqual(body["env"], {"A": "1"})
        self.instance(task).end.update(outcome="completed", exit_code=0)
        task.start()
        seen = []
        while not seen or seen[-1] != "STOPPED":
            seen.append(task.status)
            self.assertLess(len(seen), 20)
        self.assertIn("RUNNING", seen)
        self.assertEqual((task.outcome, task.exit_code, task.state), ("completed", 0, "stopped"))
        self.assertEqual(task.runtime, datetime.timedelta(minutes=23, seconds=47))
        self.assertEqual(task.cost, decimal.Decimal("0.626294"))
        self.assertEqual(task.ssh_command, "ssh -p 20001 root@127.0.0.1")
        self.assertEqual(task.image, "autodl/pytorch:2.6.0-cpu-py313")

    def test_every_end_is_stopped(self):
        task = self.new_task()
        for state in ("stopped", "failed", "released"):
            self.instance(task).states = [state]
            self.assertEqual((task.status, task.state), ("STOPPED", state))

    def test_wait_ends_times_out_and_refuses_what_never_ends(self):
        task = self.new_task()
        with self.assertRaises(autodl.AutodlError) as caught:
            task.wait(1)
        self.assertEqual(caught.exception.code, "not_started")
        self.instance(task).states = ["running"]
        with self.assertRaises(TimeoutError) as caught:
            task.wait(0.05)
        self.assertIsInstance(caught.exception, autodl.WaitTimeoutError)
        self.instance(task).states = ["running", "stopping", "stopped"]
        self.assertIs(task.wait(10), task)

    def test_get_by_name_and_list_over_pages(self):
        made = [self.new_task(name="t%d" % i) for i in range(5)]
        self.assertEqual([t.id for t in self.client.list_tasks()], [t.id for t in made])
        self.assertEqual(self.client.get_task("t3"), made[3])
        with self.assertRaises(autodl.NotFoundError) as caught:
            self.client.get_task("nobody's")
        self.assertEqual((caught.exception.code, caught.exception.status), ("not_found", 404))
        self.assertRegex(caught.exception.request_id, "^R-")

    def test_names_of_all_kinds_go_through_signed(self):
        for name in ("中文名字", "emoji 🚀", "a&b=c d+e%2F?"):
            self.assertEqual(self.client.get_task(self.new_task(name=name).name).name, name)

    def test_an_instance_has_no_command(self):
        task = self.client.create_instance(image="autodl/busybox:test", gpu_type="RTX 3090")
        self.assertIsNone(self.instance(task).body["command"])
        self.assertEqual(task.name, "001")

    def test_wrong_arguments_never_reach_the_server(self):
        for code, change in (("bad_gpu_count", {"gpu_count": 1.5}),
                             ("bad_env", {"env": {"A": None}}),
                             ("bad_env", {"env": ["A=1"]}), ("bad_disk_size", {"disk_size": "50"}),
                             ("bad_disk_size", {"disk_size": float("nan")}),
                             ("bad_max_runtime", {"max_runtime": "1h"}),
                             ("bad_command", {"command": ["python"]}),
                             ("unknown_image", {"image": None}),
                             ("bad_ssh_key", {"ssh_keys": ["/no/such.pub"]})):
            with self.subTest(code):
                with self.assertRaises(autodl.InvalidRequestError) as caught:
                    self.new_task(**change)
                self.assertEqual(caught.exception.code, code)
        self.assertEqual(self.server.requests, [])


class Streams(WithServer):
    def setUp(self):
        super().setUp()
        self.task = self.new_task()
        instance = self.instance(self.task)
        instance.log = [{"time": "t", "stream": "stdout", "text": "line-%d" % i, "partial": False}
                        for i in range(7)]
        instance.log_over = True
        instance.events = [{"seq": n, "type": kind, "at": "", "message": ""} for n, kind in
                           ((3, "created"), (5, "running"), (6, "stopped"), (9, "released"))]

    def test_logs_are_read_to_their_end(self):
        self.assertEqual([str(e) for e in self.task.logs()], ["line-%d" % i for i in range(7)])

    def test_pieces_of_lines_are_put_together_by_stream(self):
        def piece(stream, text, partial):
            return {"time": "t", "stream": stream, "text": text, "partial": partial}

        pieces = [piece("stdout", "epoch 1", True), piece("stderr", "warn", True),
                  piece("stdout", "", False), piece("stderr", "ing", False),
                  piece("stdout", "no end", True)]
        self.instance(self.task).log = pieces
        for follow in (False, True):
            self.assertEqual([(e.stream, e.text, e.partial) for e in self.task.logs(follow)],
                             [("stdout", "epoch 1", False), ("stderr", "warning", False),
                              ("stdout", "no end", True)])
            self.assertEqual([e.text for e in self.task.logs(follow, lines=False)],
                             [p["text"] for p in pieces])

    def test_followed_logs_go_on_after_each_lost_connection(self):
        self.assertEqual([e.text for e in self.task.logs(follow=True)],
                         ["line-%d" % i for i in range(7)])

    def test_events_come_once_each_and_following_ends_with_release(self):
        self.assertEqual([e["seq"] for e in self.task.events()], [3, 5, 6, 9])
        self.instance(self.task).events.pop()
        followed = self.task.events(follow=True)
        self.assertEqual([next(followed)["seq"] for _ in range(3)], [3, 5, 6])
        self.instance(self.task).events.append({"seq": 9, "type": "released"})
        self.assertEqual([e["type"] for e in followed], ["released"])


class Failures(WithServer):
    def test_a_problem_carries_everything(self):
        with self.assertRaises(autodl.InvalidRequestError) as caught:
            self.new_task(gpu_type="RTX 3909")
        error = caught.exception
        self.assertEqual((error.code, error.status, error.candidates, error.remedy),
                         ("unknown_card", 422, ["RTX 3090"], "choose one"))
        for part in ("there is no card 'RTX 3909'", "did you mean 'RTX 3090'", "choose one",
                     error.request_id):
            self.assertIn(part, str(error))

    def test_each_status_has_its_class(self):
        for status, kind in ((402, autodl.BalanceTooLowError), (403, autodl.PermissionDeniedError),
                             (409, autodl.ConflictError), (410, autodl.NotFoundError),
                             (500, autodl.ServerError), (501, autodl.UnsupportedError),
                             (507, autodl.LimitError), (418, autodl.InvalidRequestError)):
            self.server.faults = [status]
            with self.assertRaises(kind):
                self.client.balance()

    def test_wrong_keys_are_told_apart(self):
        for keys, code in ((("AKNOBODY", "x"), "unknown_key"),
                           ((fake_server.ACCESS_KEY, "adl_sk_wrong"), "bad_signature")):
            with self.assertRaises(autodl.AuthenticationError) as caught:
                self.new_client(access_key=keys[0], secret_key=keys[1]).balance()
            self.assertEqual(caught.exception.code, code)

    def test_gets_outlive_a_server_that_is_away(self):
        task = self.new_task()
        self.server.faults = ["close", 503, "close", 502, "close"]
        self.assertEqual(task.status, "CREATED")
        self.assertEqual(self.server.faults, [])

    def test_a_lost_answer_to_a_creation_makes_one_instance(self):
        self.server.faults = ["cut", 503]
        task = self.new_task()
        self.assertEqual(list(self.server.instances), [task.id])
        self.assertGreaterEqual(self.server.requests.count(("POST", "/api/v1/instances")), 2)

    def test_a_server_that_stays_away_is_given_up_in_time(self):
        client = self.new_client(retry_seconds=0.3)
        client.balance()
        self.server.faults = [503] * 1000
        begun = time.monotonic()
        with self.assertRaises(autodl.UnavailableError) as caught:
            client.balance()
        self.assertLess(time.monotonic() - begun, 3)
        self.assertEqual(caught.exception.status, 503)

    def test_nobody_at_the_address(self):
        with unittest.mock.patch.object(transport, "FIRST_CONTACT_SECONDS", 0.2):
            with self.assertRaises(autodl.UnavailableError) as caught:
                self.new_client(endpoint="http://127.0.0.1:1").balance()
        self.assertIn("http://127.0.0.1:1", str(caught.exception))
        self.assertIn("is the server running", str(caught.exception))

    def test_a_skewed_clock_is_mended_once_by_the_server_s_time(self):
        self.server.clock_offset = 4000
        self.client.balance()
        self.client.balance()
        self.assertEqual(len(self.server.requests), 3)

    def test_a_refusal_is_not_repeated(self):
        self.server.faults = [409, 409]
        task_calls = len(self.server.requests)
        with self.assertRaises(autodl.ConflictError):
            self.new_task()
        self.assertEqual(len(self.server.requests), task_calls + 1)

    def test_addresses_that_are_none(self):
        for endpoint in ("127.0.0.1:8480", "ftp://h", "http://", "http://h:x", "http://h/prefix",
                         "http://user@h"):
            with self.assertRaises(autodl.ConfigError, msg=endpoint):
                self.new_client(endpoint=endpoint)

    def test_a_token_never_goes_out_in_clear(self):
        self.new_client(access_key=None, secret_key=None, token=fake_server.TOKEN).balance()
        with self.assertRaises(autodl.ConfigError):
            self.new_client(access_key=None, secret_key=None, token=fake_server.TOKEN,
                            endpoint="http://10.1.2.3:8480")


class Account(WithServer):
    def test_amounts_are_exact(self):
        balance = self.client.balance()
        self.assertEqual(balance["available_micro"], 97793706)
        self.assertEqual(balance.available, decimal.Decimal("97.793706"))
        (card,) = self.client.gpu_types()
        self.assertEqual((card.name, card.free, card["price_micro_per_hour"]),
                         ("RTX 3090", 1, 1580000))
        self.assertEqual(card.price_per_hour, decimal.Decimal("1.58"))
        with self.assertRaises(AttributeError):
            card.no_such_member
        bill = self.client.bill(self.new_task().id)
        self.assertEqual(bill["runs"][0]["amount_micro"], 626294)
        self.assertEqual(bill.total, decimal.Decimal("0.626294"))
        self.assertEqual(self.client.images()[0]["aliases"], ["pytorch"])

    def test_threads_share_a_client(self):
        task, found, count = self.new_task(), [], 8

        def ask():
            for _ in range(5):
                found.append(task.status)
            self.client.close()

        threads = [threading.Thread(target=ask) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, ["CREATED"] * 5 * count)


if __name__ == "__main__":
    unittest.main()
