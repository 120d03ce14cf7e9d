"""Helpers that record streams and read replays."""

from dataclasses import dataclass

from windtunnel.driver.archive.protocol.codes import BooleanType, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ExtendRecordingRequest2,
    ReplayRequest,
    StartRecordingRequest2,
    StopRecordingSubscriptionRequest,
)
from windtunnel.driver.archive.protocol.responses import ControlResponse
from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.publication.exclusive_publication import ExclusivePublication

STREAM = 1001
IPC = "aeron:ipc?term-length=64k"
PAYLOAD = 1000
FRAME = 1056
"""The length that a message of 1000 bytes occupies."""
REPLAY_STREAM = 5


def message(number):
    return number.to_bytes(4, "little") + bytes([number % 251]) * (PAYLOAD - 4)


def continuing(position, initial_term_id, *, mtu=1408, term=65_536):
    """Return the channel of a publication that begins at a position."""
    count, offset = divmod(position, term)
    return (
        f"aeron:ipc?init-term-id={initial_term_id}|term-id={initial_term_id + count}"
        f"|term-offset={offset}|term-length={term}|mtu={mtu}"
    )


@dataclass(frozen=True)
class Live:
    """An active recording: the response to its request, its publication, its id and position."""

    response: ControlResponse
    publication: ExclusivePublication
    recording_id: int
    end: int


class Recorder:
    """Recording and replay methods of a client; they use its `env`, `aeron` and `request`."""

    def start(self, channel=IPC, stream=STREAM, *, auto_stop=False, location=SourceLocation.LOCAL):
        """Start a recording. Returns the response."""
        return self.request(
            StartRecordingRequest2, stream_id=stream, source_location=location,
            auto_stop=BooleanType(auto_stop), channel=channel,
        )  # fmt: skip

    def extend(self, recording_id, channel, stream=STREAM, *, auto_stop=False):
        """Extend a recording. Returns the response."""
        return self.request(
            ExtendRecordingRequest2, recording_id=recording_id, stream_id=stream,
            source_location=SourceLocation.LOCAL, auto_stop=BooleanType(auto_stop),
            channel=channel,
        )  # fmt: skip

    def publish(self, publication, count, first=0):
        """Offer messages. Returns the position of the stream."""
        for number in range(first, first + count):
            self.env.until(lambda number=number: publication.offer(message(number)) > 0)
        return publication.position

    def recorded(self, recording_id, position, archive_id=77):
        """Wait until a recording has reached a position."""
        key, tail = recording_id.to_bytes(8, "little"), f"archiveId={archive_id}"

        def is_there():
            return any(
                each.type_id == 100 and each.key[:8] == key and each.value >= position
                for each in self.aeron.counters
                if each.label.endswith(tail)
            )

        self.env.until(is_there)

    def live_recording(
        self, count=0, *, channel=IPC, stream=STREAM, archive_id=77, auto_stop=False
    ):  # fmt: skip
        """Record messages from a new publication, and wait until they are written."""
        response = self.start(channel, stream, auto_stop=auto_stop)
        before = len(self.signals())
        publication = self.aeron.add_exclusive_publication(channel, stream)
        self.env.until(lambda: len(self.signals()) > before)
        recording_id = self.signals()[-1][1]
        end = self.publish(publication, count)
        self.recorded(recording_id, end, archive_id)
        return Live(response, publication, recording_id, end)

    def stop(self, live, end):
        """Stop a recording at a position."""
        subscription_id = live.response.relevant_id
        self.request(StopRecordingSubscriptionRequest, subscription_id=subscription_id)
        self.env.until(lambda: ("STOP", live.recording_id, end) in self.signals())

    def stopped_recording(self, count=10, **where):
        """Record messages, then close the publication."""
        live = self.live_recording(count, **where)
        self.stop(live, live.end)
        live.publication.close()
        return live

    def request_replay(self, recording_id, kind=ReplayRequest, **changed):
        """Request a replay. Returns the response."""
        return self.request(kind, **replay_values(recording_id, **changed))


def replay_values(recording_id, **changed):
    return {
        "recording_id": recording_id, "position": -1, "length": -1,
        "replay_stream_id": REPLAY_STREAM, "file_io_max_length": -1, "replay_token": -1,
        "replay_channel": IPC,
    } | changed  # fmt: skip


class Reader:
    """Reads a replay."""

    def __init__(self, client, channel=IPC, stream=REPLAY_STREAM):
        self.env = client.env
        self.seen, self.positions = [], []
        self.subscription = client.aeron.add_subscription(channel, stream)
        self._assembler = FragmentAssembler(self._on_message)

    def _on_message(self, payload, header):
        self.seen.append(bytes(payload))
        self.positions.append(header.position)

    def poll(self):
        return self.subscription.poll(self._assembler, 50)

    def until(self, condition):
        def polled():
            self.poll()
            return condition()

        return self.env.until(polled)

    def until_end(self):
        """Read the whole replay. Returns its messages."""
        (image,) = self.env.until(lambda: self.subscription.images)
        self.until(lambda: image.is_end_of_stream or image.is_closed)
        return self.seen
