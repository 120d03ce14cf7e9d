"""An archive in INVOKER mode with a simulated driver, and clients with control sessions.

client.request(Request, ...)  -->  request publication  ~~>  archive  ~~>  client.received
"""

import random
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

from tests.unit.driver.archive.server.own_stream import Recorder
from tests.unit.driver.client.invoked_client import run_until, world
from windtunnel.driver.archive.protocol.codec import decode, encode
from windtunnel.driver.archive.protocol.codes import (
    NULL_VALUE,
    PROTOCOL_VERSION,
    ControlResponseCode,
)
from windtunnel.driver.archive.protocol.requests import AuthConnectRequest
from windtunnel.driver.archive.protocol.responses import ControlResponse, Ping, RecordingSignalEvent
from windtunnel.driver.archive.server.archive import Archive
from windtunnel.driver.archive.server.id_generator import IdGenerator
from windtunnel.driver.archive.settings.archive_settings import INVOKER, ArchiveSettings
from windtunnel.driver.client.image.assembler import FragmentAssembler

LOCAL = "aeron:ipc?term-length=64k"
CONTROL_STREAM, RESPONSE_STREAM = 10, 20
SEGMENT = 131_072


def settings(folder, **changed):
    """Return settings of an archive that uses no socket."""
    values = ArchiveSettings(
        aeron_dir=folder / "aeron", dir=folder / "archive", threading_mode=INVOKER,
        control_channel_enabled=False, control_response_channel="aeron:udp?endpoint=h:0",
        replication_channel="aeron:udp?endpoint=10.0.0.1:0", segment_file_length=SEGMENT,
        low_storage_space_threshold=0, archive_id=77,
    )  # fmt: skip
    return replace(values, **changed)


class ControlClient(Recorder):
    """A client of the archive, with one control session."""

    def __init__(
        self, env, channel=LOCAL, response_channel=LOCAL, response_stream=RESPONSE_STREAM,
        stream=CONTROL_STREAM,
    ):  # fmt: skip
        self.env, self.aeron = env, env.world.connect()
        self.received = []
        """All messages received from the archive except pings."""
        self.pings = 0
        self.session_id = NULL_VALUE
        self._assembler = FragmentAssembler(self._on_message)
        self.responses = self.aeron.add_subscription(response_channel, response_stream)
        self.requests = self.aeron.add_exclusive_publication(channel, stream)
        self._response = (response_channel, response_stream)
        env.until(lambda: self.requests.is_connected)
        env.clients.append(self)

    def _on_message(self, payload, header):
        message = decode(payload)
        if isinstance(message, Ping):
            self.pings += 1
        else:
            self.received.append(message)

    def poll(self):
        self.responses.poll(self._assembler, 50)

    def post(self, content):
        """Send arbitrary bytes."""
        self.env.until(lambda: self.requests.offer(content) > 0)

    def connect_request(self, **changed):
        channel, stream = self._response
        values = {
            "correlation_id": self.aeron.next_correlation_id(), "response_stream_id": stream,
            "version": PROTOCOL_VERSION, "response_channel": channel, "encoded_credentials": b"",
            "client_info": "name=test",
        }  # fmt: skip
        return AuthConnectRequest(**(values | changed))

    def connect(self, **changed):
        """Open a session. Returns the response."""
        request = self.connect_request(**changed)
        self.post(encode(request))
        response = self.env.until(lambda: self.response_to(request.correlation_id))
        self.session_id = response.control_session_id
        return response

    def send(self, kind, **values):
        """Send a request, with defaults for fields that are not given. Returns its
        correlation id.
        """
        correlation_id = self.aeron.next_correlation_id()
        values = {
            "control_session_id": self.session_id, "correlation_id": correlation_id, **values
        }  # fmt: skip
        names = {field.name for field in fields(kind)}
        self.post(encode(kind(**{name: value for name, value in values.items() if name in names})))
        return correlation_id

    def request(self, kind, **values):
        """Send a request and return its first response."""
        correlation_id = self.send(kind, **values)
        return self.env.until(lambda: self.response_to(correlation_id))

    def responses_to(self, correlation_id):
        return [
            each for each in self.received
            if isinstance(each, ControlResponse) and each.correlation_id == correlation_id
        ]  # fmt: skip

    def response_to(self, correlation_id):
        return next(iter(self.responses_to(correlation_id)), None)

    def summaries(self, correlation_id):
        """Summarize all messages with this correlation id: ("OK", 5), ("START", 0, 64)..."""
        return [short(each) for each in self.received if each.correlation_id == correlation_id]

    def signals(self):
        return [short(each) for each in self.received if isinstance(each, RecordingSignalEvent)]


def short(message):
    if isinstance(message, ControlResponse):
        return message.code.name, message.relevant_id
    if isinstance(message, RecordingSignalEvent):
        return message.signal.name, message.recording_id, message.position
    return type(message).__name__, message.recording_id


@dataclass
class Ok:
    """The expected value of a response with code OK."""

    relevant_id: int = 0

    def __eq__(self, other):
        return (other.code, other.relevant_id) == (ControlResponseCode.OK, self.relevant_id)


@dataclass
class Err:
    """The expected value of a response with code ERROR."""

    code: int

    def __eq__(self, other):
        return (
            other.code == ControlResponseCode.ERROR
            and other.relevant_id == self.code
            and bool(other.error_message)
        )


class ArchiveEnvironment:
    """A simulated driver, its archive, and the archive's clients."""

    def __init__(self, world, folder, **changed):
        self.world, self.folder, self.clients = world, folder, []
        self.settings = settings(folder, **changed)
        self.clock = world.driver.clock
        self.directory = self.settings.dir
        self.others = []
        self.has_defect = False
        """Whether the archive may have logged an unexpected error."""
        self.start()

    def start(self):
        client = self.world.connect()
        self.archive = Archive(self.settings, self.clock, client, IdGenerator(random.Random(5)))

    def end(self):
        """Close the archive, and let the driver process the close."""
        self.archive.close()
        self.world.both(20)
        for client in self.clients:
            client.poll()
        self.clients.clear()

    def beside(self, name, **changed):
        """Start another archive that uses the same driver, with another control stream."""
        other = replace(self.settings, dir=self.folder / name, **changed).conclude()
        self.others.append(
            Archive(other, self.clock, self.world.connect(), IdGenerator(random.Random(6)))
        )
        return self.others[-1]

    def step(self, step_ns=1_000_000):
        for archive in (self.archive, *self.others):
            archive.invoke()
        self.world.both(1, step_ns)
        for client in self.clients:
            client.poll()

    def run_for(self, duration_ns, step_ns=20_000_000):
        for _ in range(duration_ns // step_ns):
            self.step(step_ns)

    def until(self, condition, turns=3_000):
        return run_until(self.step, condition, turns)

    def connect_client(self, **changed):
        """Return a client with a session. `stream` selects the archive by its control stream."""
        client = ControlClient(self, **changed)
        client.connect()
        return client

    @property
    def errors(self):
        from windtunnel.driver.archive.storage.mark_file import FILE_NAME, read_error_log

        return [each.text for each in read_error_log(self.directory / FILE_NAME)]


@contextmanager
def own_archive(folder, monkeypatch, **changed):
    with world(folder, monkeypatch) as driver_world:
        env = ArchiveEnvironment(driver_world, folder, **changed)
        try:
            yield env
        finally:
            for archive in (env.archive, *env.others):
                archive.close()
        defects = [text for text in env.errors if "Traceback" in text]
        assert env.has_defect or not defects, defects[0]
