# SPDX-FileCopyrightText: 2026 The autodl authors
# SPDX-License-Identifier: Apache-2.0
"""Monitor: how busy an instance's cards are, asked from inside or from outside."""
import http.client
import json
import os
import socket
import time

from .errors import AutodlError, ConfigError, ServerError, UnavailableError, error_of_answer
from .records import to_records
from .transport import quote

SOCKET = "/run/autodl/api.sock"
_FIRST_SAMPLES_SECONDS = 10.0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._path)
        except OSError:
            self.close()
            raise


class Monitor:
    """`Monitor()` inside an instance needs no keys; `Monitor(task)` or `Monitor("ID")` outside asks
    the server (client: else one is made as Client() does).

    The figures are of all cards together: the mean of their utilization, the sum of their memory.
    per_card=True gives a list, one figure per card; a card that does not tell has None.
    """

    def __init__(self, instance=None, client=None, socket_path=None):
        self._socket = self._transport = None
        if instance is None:
            self._socket = socket_path or SOCKET
            if not os.path.exists(self._socket):
                raise ConfigError("not_inside", "this is not inside an instance: there is no %s"
                                  % self._socket, "name one: autodl.Monitor('ID')")
            return
        if client is None:
            from .client import Client
            client = Client()
        self._transport = client._transport
        self._target = "/api/v1/instances/%s/monitor" % quote(getattr(instance, "id", instance))

    def read(self):
        """Everything that is known now: {"gpus": [{"index", "model", "utilization_percent",
        "memory_used_mib", "memory_total_mib", "temperature_c", …}], …}."""
        found = self._ask_inside() if self._socket else self._transport.call("GET", self._target)
        if not isinstance(found, dict) or not isinstance(found.get("gpus"), list):
            raise ServerError("bad_answer", "the answer holds no list of cards")
        return to_records(found)

    def get_gpu_utilization(self, per_card=False):
        """Percent, 0 to 100."""
        figures = self._figures("utilization_percent")
        if per_card:
            return figures
        known = self._known(figures, "utilization")
        return sum(known) / len(known) if len(known) > 1 else known[0]

    def get_memory_usage(self, per_card=False):
        """MiB of card memory in use."""
        figures = self._figures("memory_used_mib")
        return figures if per_card else sum(self._known(figures, "memory use"))

    def get_memory_total(self, per_card=False):
        """MiB of card memory there are."""
        figures = self._figures("memory_total_mib")
        return figures if per_card else sum(self._known(figures, "memory"))

    def _figures(self, name):
        gpus = self.read()["gpus"]
        if not gpus:
            raise AutodlError("no_cards", "this instance has no card now",
                              "it has one while it runs, where it was made with a gpu_type")
        return [card.get(name) for card in gpus]

    def _known(self, figures, what):
        known = [figure for figure in figures if isinstance(figure, (int, float))]
        if not known:
            raise UnavailableError("not_measured", "the card does not tell its %s" % what)
        return known

    def _ask_inside(self):
        end = time.monotonic() + _FIRST_SAMPLES_SECONDS
        while True:
            connection = _UnixConnection(self._socket, 10)
            try:
                connection.request("GET", "/v1/gpus")
                response = connection.getresponse()
                status, body = response.status, response.read()
            except (OSError, http.client.HTTPException) as problem:
                raise UnavailableError("unreachable", "ask %s: %s" % (self._socket, problem))
            finally:
                connection.close()
            try:
                found = json.loads(body.decode("utf-8"))
            except ValueError:
                found = None
            if status == 200:
                return found
            # Just after the start there are no samples yet: they come within seconds.
            if status != 503 or time.monotonic() > end:
                raise error_of_answer(status, found, None)
            time.sleep(0.2)
