# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
import tempfile
import unittest

from tests import fake_server
from tests.test_client import WithServer

SDK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(SDK, "..", "..", "examples", "quickstart.py")


class Quickstart(WithServer):
    """examples/quickstart.py as a program of its own."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.outcome = "completed"
        self.server.on_part = self.when_uploaded

    def when_uploaded(self, number):
        instance = list(self.server.instances.values())[-1]
        instance.log = [{"time": "t", "stream": "stdout", "text": "epoch 1", "partial": False}]
        instance.end.update(outcome=self.outcome, exit_code=0, reason="as told")
        os.makedirs(instance.root + "/root/output", exist_ok=True)
        with open(instance.root + "/root/output/metrics.json", "w") as out:
            out.write('{"test_accuracy": 0.978, "seconds": 3.4, "data": "digits"}')

    def run_it(self, *argv):
        return subprocess.run(
            [sys.executable, PROGRAM, "--results", os.path.join(self.folder, "results")]
            + list(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder,
            universal_newlines=True, timeout=60, env=dict(
                os.environ, PYTHONPATH=SDK, AUTODL_ENDPOINT=self.server.endpoint,
                AUTODL_ACCESS_KEY=fake_server.ACCESS_KEY, AUTODL_SECRET_KEY=fake_server.SECRET_KEY))

    def test_it_trains_once_shows_the_bill_and_trains_again_when_asked(self):
        first = self.run_it("--quick")
        self.assertEqual(first.returncode, 0, first.stdout)
        for word in ("SIMULATED", "STARTING", "RUNNING", "| epoch 1", "STOPPED", "accuracy  97.80 %",
                     "1427 s on 1 x RTX 3090 at 1.58 CNY/h   0.626294 CNY", "total   0.626294"):
            self.assertIn(word, first.stdout)
        (instance,) = self.server.instances.values()
        self.assertTrue(instance.body["command"].endswith("--quick"))
        self.assertEqual(sorted(os.listdir(instance.root + "/root")),
                         ["model.py", "output", "train.py"])
        second = self.run_it("--quick")
        self.assertIn("trained before", second.stdout)
        self.assertEqual(len(self.server.instances), 1)
        again = self.run_it("--quick", "--again")
        self.assertEqual(again.returncode, 0, again.stdout)
        self.assertEqual([i.states for i in self.server.instances.values()],
                         [["released"], ["stopped"]])

    def test_a_failed_run_says_why(self):
        self.outcome = "failed"
        done = self.run_it()
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: as told", done.stdout)


if __name__ == "__main__":
    unittest.main()
