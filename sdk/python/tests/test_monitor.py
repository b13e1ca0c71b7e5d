# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
import http.server
import json
import os
import socketserver
import tempfile
import threading
import unittest

import autodl
from tests.test_client import WithServer


class Inside(unittest.TestCase):
    """Against a socket such as init serves at /run/autodl/api.sock: one request a connection."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "api.sock")
        self.answers = []
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = test.answers.pop(0) if len(test.answers) > 1 else test.answers[0]
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode() if self.path == "/v1/gpus" else b"")

            def log_message(self, *_):
                pass

            def address_string(self):
                return "unix"

        class Server(socketserver.UnixStreamServer):
            pass

        self.server = Server(self.path, Handler)
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)

    def monitor(self, *gpus):
        self.answers[:] = [(200, {"gpus": list(gpus)})]
        return autodl.Monitor(socket_path=self.path)

    def test_one_card(self):
        monitor = self.monitor({"utilization_percent": 37, "memory_used_mib": 1024,
                                "memory_total_mib": 24576})
        self.assertEqual(monitor.get_gpu_utilization(), 37)
        self.assertEqual(monitor.get_memory_usage(), 1024)
        self.assertEqual(monitor.get_memory_total(), 24576)
        self.assertEqual(monitor.get_gpu_utilization(per_card=True), [37])

    def test_several_cards_one_of_which_does_not_tell(self):
        monitor = self.monitor({"utilization_percent": 20, "memory_used_mib": 1},
                               {"utilization_percent": 41, "memory_used_mib": 2},
                               {"utilization_percent": None, "memory_used_mib": 4})
        self.assertEqual(monitor.get_gpu_utilization(), 30.5)
        self.assertEqual(monitor.get_gpu_utilization(per_card=True), [20, 41, None])
        self.assertEqual(monitor.get_memory_usage(), 7)

    def test_no_card_and_no_figure_are_errors_with_words(self):
        with self.assertRaises(autodl.AutodlError) as caught:
            self.monitor().get_memory_usage()
        self.assertEqual(caught.exception.code, "no_cards")
        with self.assertRaises(autodl.UnavailableError):
            self.monitor({"utilization_percent": None}).get_gpu_utilization()

    def test_the_first_samples_are_waited_for(self):
        monitor = self.monitor({"memory_used_mib": 5})
        self.answers.insert(0, (503, {"code": "no_samples", "detail": "none yet"}))
        self.assertEqual(monitor.get_memory_usage(), 5)

    def test_outside_without_an_id_says_so(self):
        with self.assertRaises(autodl.ConfigError) as caught:
            autodl.Monitor(socket_path=self.path + ".none")
        self.assertEqual(caught.exception.code, "not_inside")


class Outside(WithServer):
    def test_by_task_and_by_id(self):
        task = self.new_task()
        for instance in (task, task.id):
            monitor = autodl.Monitor(instance, client=self.client)
            self.assertEqual(monitor.get_gpu_utilization(), 50.5)
            self.assertEqual(monitor.get_memory_usage(), 1024)
            self.assertEqual(monitor.get_memory_usage(per_card=True), [1000, 24])


if __name__ == "__main__":
    unittest.main()
