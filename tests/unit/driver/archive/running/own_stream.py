"""Somebody who publishes what an archive records, and reads what it replays."""

from driver.archive.protocol.codes import BooleanType, SourceLocation
from driver.archive.protocol.requests import (
    ReplayRequest,
    StartRecordingRequest2,
    StopRecordingSubscriptionRequest,
)
from driver.client.assembler import FragmentAssembler
from tests.unit.driver.archive.running.own_archive import STREAM

IPC = "aeron:ipc?term-length=64k"
PAYLOAD = 1000
FRAME = 1056
"""What a message of 1000 bytes takes."""
REPLAY_STREAM = 5


def message(number):
    return number.to_bytes(4, "little") + bytes([number % 251]) * (PAYLOAD - 4)


def start(talker, channel=IPC, stream=STREAM, *, auto_stop=False, location=SourceLocation.LOCAL):
    """Start to record; returns the answer."""
    return talker.ask(
        StartRecordingRequest2, stream_id=stream, source_location=location,
        auto_stop=BooleanType(auto_stop), channel=channel,
    )  # fmt: skip


def publish(own, publication, count, first=0):
    """Offer messages; returns where the stream is then."""
    for number in range(first, first + count):
        own.until(lambda number=number: publication.offer(message(number)) > 0)
    return publication.position


def recorded(own, talker, recording_id, position, archive_id=77):
    """Wait until a recording is that far."""
    key, tail = recording_id.to_bytes(8, "little"), f"archiveId={archive_id}"

    def is_there():
        return any(
            each.type_id == 100 and each.key[:8] == key and each.value >= position
            for each in talker.client.counters
            if each.label.endswith(tail)
        )

    own.until(is_there)


def stopped_recording(
    own, talker, count=10, *, channel=IPC, stream=STREAM, keep=False, archive_id=77
):  # fmt: skip
    """Record messages from the first to the last; returns (id, position, publication)."""
    subscription_id = start(talker, channel, stream).relevant_id
    before = len(talker.signals())
    publication = talker.client.add_exclusive_publication(channel, stream)
    own.until(lambda: len(talker.signals()) > before)
    recording_id = talker.signals()[-1][1]
    end = publish(own, publication, count)
    recorded(own, talker, recording_id, end, archive_id)
    talker.ask(StopRecordingSubscriptionRequest, subscription_id=subscription_id)
    own.until(lambda: ("STOP", recording_id, end) in talker.signals())
    if not keep:
        publication.close()
    return recording_id, end, publication


def ask_replay(talker, recording_id, kind=ReplayRequest, **changed):
    """Ask for a replay; returns the answer."""
    return talker.ask(kind, **replay_values(recording_id, **changed))


def replay_values(recording_id, **changed):
    return {
        "recording_id": recording_id, "position": -1, "length": -1,
        "replay_stream_id": REPLAY_STREAM, "file_io_max_length": -1, "replay_token": -1,
        "replay_channel": IPC,
    } | changed  # fmt: skip


class Reader:
    """Reads a replay."""

    def __init__(self, own, talker, channel=IPC, stream=REPLAY_STREAM):
        self.own = own
        self.seen, self.positions = [], []
        self.subscription = talker.client.add_subscription(channel, stream)
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

        return self.own.until(polled)

    def until_end(self):
        """Read the whole replay; returns its messages."""
        (image,) = self.own.until(lambda: self.subscription.images)
        self.until(lambda: image.is_end_of_stream or image.is_closed)
        return self.seen
