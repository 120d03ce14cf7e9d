"""An archive that sends scripted responses, with a complete driver and a manual clock."""

from contextlib import contextmanager

from tests.unit.driver.client.invoked_client import run_until, world
from tests.unit.driver.media_driver.invoked_driver import MS
from windtunnel.driver.archive.client import AeronArchive, ArchiveContext, Connecting
from windtunnel.driver.archive.protocol import codec
from windtunnel.driver.archive.protocol.codes import PROTOCOL_VERSION, ControlResponseCode
from windtunnel.driver.archive.protocol.requests import AuthConnectRequest
from windtunnel.driver.archive.protocol.responses import ControlResponse
from windtunnel.driver.base import system
from windtunnel.driver.client import FragmentAssembler

CHANNEL = "aeron:ipc"
SESSION_ID = 77_000_000_001
ARCHIVE_ID = 4_711


def ok(request, relevant_id=0, **fields):
    """Return an OK response to a request."""
    return ControlResponse(
        **{
            "control_session_id": SESSION_ID, "correlation_id": request.correlation_id,
            "relevant_id": relevant_id, "code": ControlResponseCode.OK,
            "version": PROTOCOL_VERSION, "error_message": "",
        } | fields
    )  # fmt: skip


def error(request, code, **fields):
    """Return an error response to a request."""
    fields = {"code": ControlResponseCode.ERROR, "error_message": "because"} | fields
    return ok(request, code, **fields)


class ScriptedArchive:
    """Receives requests. Responds to each with the result of the `script` for its class."""

    def __init__(self, aeron):
        self._aeron = aeron
        self.subscription = aeron.add_subscription(CHANNEL, 10)
        self.requests, self.publication = [], None
        self.script = {}
        self._assembler = FragmentAssembler(self._on_request)

    def _on_request(self, payload, header):
        self.requests.append(codec.decode(payload))

    @property
    def kinds(self):
        """The class names of the requests so far."""
        return [type(each).__name__ for each in self.requests]

    def of(self, kind):
        return [each for each in self.requests if isinstance(each, kind)]

    def step(self):
        """Receive requests and send the scripted responses."""
        received_count = len(self.requests)
        self.subscription.poll(self._assembler)
        for request in self.requests[received_count:]:
            if isinstance(request, AuthConnectRequest) and self.publication is None:
                self.publication = self._aeron.add_exclusive_publication(
                    request.response_channel, request.response_stream_id
                )
            for response in self.script.get(type(request), lambda _: ())(request) or ():
                self.send(response)

    def send(self, message):
        """Send a message, also without a request."""
        content = message if isinstance(message, bytes) else codec.encode(message)
        while self.publication.offer(content) <= 0:
            system.sleep_ns(MS)


class Environment:
    """The scripted archive, its clients, and the clock."""

    def __init__(self, driver_world):
        self.world = driver_world
        self.clock = driver_world.driver.clock
        self.archive = ScriptedArchive(driver_world.connect())
        self.aeron = driver_world.connect()
        self._is_stepping = False

    def turn(self, _):
        """Advance everything by a millisecond. Called while a client waits."""
        self.world.both(1)
        if not self._is_stepping:
            self._is_stepping = True
            try:
                self.archive.step()
            finally:
                self._is_stepping = False

    @staticmethod
    def context(**settings):
        return ArchiveContext(
            **{
                "control_request_channel": CHANNEL, "control_response_channel": CHANNEL,
                "message_timeout_ns": 2_000 * MS,
            } | settings
        )  # fmt: skip

    def connect(self, **settings):
        """Return a blocking client."""
        return AeronArchive.connect(self.aeron, self.context(**settings), self.clock)

    def connecting(self, **settings):
        """Return an attempt to connect."""
        return Connecting(self.aeron, self.context(**settings), self.clock)

    def until(self, condition, turns=5_000):
        return run_until(lambda: self.turn(0), condition, turns)


@contextmanager
def environment(folder, monkeypatch):
    with world(folder, monkeypatch) as driver_world:
        env = Environment(driver_world)
        monkeypatch.setattr(system, "sleep_ns", env.turn)
        yield env
        monkeypatch.setattr(system, "sleep_ns", lambda ns: driver_world.driver.turn(1, MS))
