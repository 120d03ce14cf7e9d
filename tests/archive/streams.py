"""Streams that are recorded, and readers of their replays.

Messages have 1000 bytes, so a frame has 1032 and occupies 1056: 62 of them and 64 bytes of padding
fill a term of 64 KiB. The content of a message follows from its number.
"""

import itertools

import numpy as np

from tests.archive.archives import until
from windtunnel.driver.archive.client import session_id_of
from windtunnel.driver.archive.protocol.codes import BooleanType, RecordingSignal, SourceLocation
from windtunnel.driver.archive.protocol.requests import (
    ExtendRecordingRequest2,
    RecordingPositionRequest,
    ReplayRequest,
    StartRecordingRequest2,
    StopRecordingSubscriptionRequest,
)
from windtunnel.driver.client import FragmentAssembler

LENGTH, FRAME = 1_000, 1_056
FRAMES_PER_TERM = 62
IPC = "aeron:ipc?term-length=64k"
_STREAMS = itertools.count(1_001)


def new_stream_id():
    """Return a stream id that no other test uses."""
    return next(_STREAMS)


def message(number, length=LENGTH):
    """Return the bytes of a message."""
    return np.random.default_rng(number).bytes(length)


class Recorded:
    """A published stream and its recording in an archive."""

    def __init__(
        self,
        session,
        channel=IPC,
        *,
        stream_id=None,
        location=SourceLocation.LOCAL,
        auto_stop=False,
    ):
        self.session, self.channel, self.number = session, channel, 0
        self.stream_id = stream_id or new_stream_id()
        self.sent = []
        self.request = session.send(
            StartRecordingRequest2, stream_id=self.stream_id, source_location=location,
            auto_stop=BooleanType(auto_stop), channel=channel,
        )  # fmt: skip
        self.subscription_id = session.response(self.request).relevant_id
        self.publication = session.aeron.add_exclusive_publication(channel, self.stream_id)
        self.started = session.signal(RecordingSignal.START, self.request)
        self.recording_id = self.started.recording_id
        until(lambda: self.publication.is_connected, "the recorded stream's reader")

    def send(self, count, length=LENGTH):
        """Publish messages, and wait until they are recorded."""
        for _ in range(count):
            content = message(self.number, length)
            until(lambda content=content: self.publication.offer(content) > 0, "publishing")
            self.sent.append(content)
            self.number += 1
        self.settle()
        return self

    def settle(self):
        """Wait until everything that was published is recorded."""
        reached = self.publication.position
        until(
            lambda: (
                self.session.ok(RecordingPositionRequest, recording_id=self.recording_id) == reached
            ),
            f"recording up to {reached}",
        )

    @property
    def position(self):
        return self.publication.position

    def stop(self):
        """Stop recording. Returns the STOP signal."""
        self.session.ok(StopRecordingSubscriptionRequest, subscription_id=self.subscription_id)
        stopped = self.session.signal(RecordingSignal.STOP, self.request)
        self.stop_position = stopped.position
        self.publication.close()
        return stopped


class Reader:
    """A subscription that keeps complete messages."""

    def __init__(self, aeron, channel, stream_id):
        self._begin(aeron.add_subscription(channel, stream_id))

    @classmethod
    def of(cls, subscription):
        """Return the reader of an existing subscription."""
        made = cls.__new__(cls)
        made._begin(subscription)
        return made

    def _begin(self, subscription):
        self.subscription = subscription
        self.messages, self.image = [], None
        self._assembler = FragmentAssembler(lambda payload, _: self.messages.append(bytes(payload)))

    def poll(self):
        """Read the messages that have arrived. Returns True once the stream has ended."""
        if self.image is None and self.subscription.images:
            self.image = self.subscription.images[0]
        self.subscription.poll(self._assembler, 64)
        return self.image is not None and (self.image.is_end_of_stream or self.image.is_closed)

    def until_count(self, count):
        """Read until `count` messages have arrived."""
        until(lambda: self.poll() or len(self.messages) >= count, f"{count} messages")
        return self.messages

    def until_end(self):
        """Read until the stream has ended."""
        until(self.poll, "the end of the stream")
        return self.messages

    def close(self):
        self.subscription.close()


class Replay:
    """A replay over IPC and its reader. Later messages have `request` as their correlation id."""

    def __init__(self, session, recording_id, **fields):
        self.session, self.stream_id = session, new_stream_id()
        self.request = session.send(
            ReplayRequest,
            **{
                "recording_id": recording_id, "position": -1, "length": -1,
                "replay_stream_id": self.stream_id, "replay_channel": "aeron:ipc",
            } | fields,
        )  # fmt: skip

    def read(self):
        """Return the reader of a replay that the archive has accepted."""
        self.session_id = self.session.response(self.request).relevant_id
        channel = f"aeron:ipc?session-id={session_id_of(self.session_id)}"
        return Reader(self.session.aeron, channel, self.stream_id)


def replayed(session, recording_id, **fields):
    """Return all messages of a replay that ends by itself."""
    reader = Replay(session, recording_id, **fields).read()
    messages = reader.until_end()
    reader.close()
    return messages


def positioned(position, initial_term_id=7, *, term_length=65_536, mtu=1_408):
    """Return the channel of a publication that begins at a position."""
    term_id = initial_term_id + position // term_length
    return (
        f"aeron:ipc?term-length={term_length}|mtu={mtu}|init-term-id={initial_term_id}"
        f"|term-id={term_id}|term-offset={position % term_length}"
    )


class Extended(Recorded):
    """A recording that another publication extends from `position` on."""

    def __init__(self, recorded, *, position=None, auto_stop=False, **geometry):
        session = recorded.session
        self.session, self.stream_id = session, recorded.stream_id
        self.recording_id, self.number, self.sent = (
            recorded.recording_id, recorded.number, list(recorded.sent),
        )  # fmt: skip
        self.request = session.send(
            ExtendRecordingRequest2, recording_id=self.recording_id, stream_id=self.stream_id,
            source_location=SourceLocation.LOCAL, auto_stop=BooleanType(auto_stop), channel=IPC,
        )  # fmt: skip
        self.subscription_id = session.response(self.request).relevant_id
        self._initial_term_id = recorded.publication.initial_term_id
        if position is None:
            position = recorded.stop_position
        self.publish(position, **geometry)

    def publish(self, position, *, initial_term_id=None, **geometry):
        """Publish from `position` with the recording's parameters, some of which may be
        overridden.
        """
        if initial_term_id is None:
            initial_term_id = self._initial_term_id
        channel = positioned(position, initial_term_id, **geometry)
        self.publication = self.session.aeron.add_exclusive_publication(channel, self.stream_id)
