"""An archive that says what a test wrote down, over a whole driver, on a clock moved by hand."""

from contextlib import contextmanager

from tests.unit.driver.client.invoked_client import turns_until, world
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
    """The answer that all went well."""
    return ControlResponse(
        **{
            "control_session_id": SESSION_ID, "correlation_id": request.correlation_id,
            "relevant_id": relevant_id, "code": ControlResponseCode.OK,
            "version": PROTOCOL_VERSION, "error_message": "",
        } | fields
    )  # fmt: skip


def error(request, code, **fields):
    """The answer that it did not."""
    fields = {"code": ControlResponseCode.ERROR, "error_message": "because"} | fields
    return ok(request, code, **fields)


class ScriptedArchive:
    """Hears every request and answers with what `script` makes of it, by its kind."""

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
        """What was asked so far, in short."""
        return [type(each).__name__ for each in self.requests]

    def of(self, kind):
        return [each for each in self.requests if isinstance(each, kind)]

    def step(self):
        """Hear what there is and answer it."""
        heard = len(self.requests)
        self.subscription.poll(self._assembler)
        for request in self.requests[heard:]:
            if isinstance(request, AuthConnectRequest) and self.publication is None:
                self.publication = self._aeron.add_exclusive_publication(
                    request.response_channel, request.response_stream_id
                )
            for answer in self.script.get(type(request), lambda _: ())(request) or ():
                self.say(answer)

    def say(self, message):
        """Say something, asked or not."""
        content = message if isinstance(message, bytes) else codec.encode(message)
        while self.publication.offer(content) <= 0:
            system.sleep_ns(MS)


class Stage:
    """The scripted archive, its clients, and the clock."""

    def __init__(self, made):
        self.world = made
        self.clock = made.driver.clock
        self.archive = ScriptedArchive(made.connect())
        self.aeron = made.connect()
        self._is_stepping = False

    def turn(self, _):
        """What happens while anybody waits: a millisecond for all."""
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
        """A client that waits."""
        return AeronArchive.connect(self.aeron, self.context(**settings), self.clock)

    def connecting(self, **settings):
        """A connection that is being made."""
        return Connecting(self.aeron, self.context(**settings), self.clock)

    def until(self, condition, turns=5_000):
        return turns_until(lambda: self.turn(0), condition, turns)


@contextmanager
def stage(folder, monkeypatch):
    with world(folder, monkeypatch) as made:
        opened = Stage(made)
        monkeypatch.setattr(system, "sleep_ns", opened.turn)
        yield opened
        monkeypatch.setattr(system, "sleep_ns", lambda ns: made.driver.turn(1, MS))
