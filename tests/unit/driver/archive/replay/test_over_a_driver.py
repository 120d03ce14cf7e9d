"""Replays through a driver and client: of a golden, a new, and a growing recording."""

import pytest

from tests.golden import archive_files
from tests.golden.reader import message
from tests.unit.driver.archive.storage import own_recording as own
from tests.unit.driver.client.invoked_client import world
from windtunnel.driver.archive.replay.recording_reader import (
    RecordingReader,
    publication_parameters,
)
from windtunnel.driver.archive.replay.replay_session import ReplaySession
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.client.image.assembler import FragmentAssembler

IPC = "aeron:ipc?"
UDP = "aeron:udp?endpoint=10.0.0.1:20121|"
STREAM_ID = 5


class Replay:
    """A replay of a recording, and its subscriber."""

    def __init__(
        self, made, folder, descriptor, media, *, position, end, limit, is_final=lambda: False
    ):
        self.made, self.seen, self.positions = made, [], []
        self._assembler = FragmentAssembler(self._on_message)
        archive, reader = made.connect(), made.connect()
        channel = media + publication_parameters(descriptor, position)
        self.subscription = reader.add_subscription(media.rstrip("?|"), STREAM_ID)
        publication = archive.add_exclusive_publication(channel, STREAM_ID)
        made.until(lambda: self.subscription.images and publication.is_connected)
        self.join_position = self.subscription.images[0].join_position
        recording = RecordingReader(folder, descriptor, position)
        self.session = ReplaySession(recording, publication, end, limit, is_final)

    def _on_message(self, payload, header):
        self.seen.append(bytes(payload))
        self.positions.append(header.position)

    def step(self):
        self.session.do_work()
        self.subscription.poll(self._assembler, 50)

    def run_until(self, condition):
        def stepped():
            self.step()
            return condition()

        self.made.until(stepped, turns=20_000)


@pytest.mark.parametrize("media", [IPC, UDP])
@pytest.mark.parametrize(("recording_id", "count", "length_max"), [(0, 250, 2000), (1, 300, 3000)])
def test_recordings_of_the_real_archive_are_replayed_as_published(
    tmp_path, monkeypatch, media, recording_id, count, length_max
):
    folder = tmp_path / "archive"
    folder.mkdir()
    archive_files.unpack(folder)
    with Catalog(folder) as catalog:
        found = catalog.descriptor(recording_id)
    stop = found.stop_position
    with world(tmp_path, monkeypatch) as made:
        replay = Replay(made, folder, found, media, position=0, end=stop, limit=lambda: stop)
        replay.run_until(lambda: replay.session.is_done and len(replay.seen) >= count)
        assert replay.session.failure == ""
        assert replay.seen == [message(each, length_max).tobytes() for each in range(count)]
        assert replay.positions[-1] == stop


def test_a_replay_from_a_later_position_keeps_the_positions_of_the_stream(tmp_path, monkeypatch):
    folder = tmp_path / "archive"
    folder.mkdir()
    archive_files.unpack(folder)
    with Catalog(folder) as catalog:
        found = catalog.descriptor(2)
    start, stop = found.start_position, found.stop_position
    with world(tmp_path, monkeypatch) as made:
        replay = Replay(made, folder, found, IPC, position=start, end=stop, limit=lambda: stop)
        replay.run_until(lambda: replay.session.is_done and replay.positions[-1:] == [stop])
        assert replay.join_position == start == 262_144
        whole = [message(each, 4000).tobytes() for each in range(400)]
        assert replay.seen[-100:] == whole[-100:]


def test_a_growing_recording_is_followed_to_its_end(tmp_path, monkeypatch):
    frames = own.stream([1000] * 50)
    own.write(tmp_path, 0, frames)
    ends = [at + len(content) for at, content in frames]
    reached = [0]
    with world(tmp_path, monkeypatch) as made:
        replay = Replay(
            made, tmp_path, own.descriptor(), IPC, position=0, end=ends[-1],
            limit=lambda: reached[0],
        )  # fmt: skip
        for count, end in enumerate(ends, 1):
            reached[0] = end
            replay.run_until(lambda count=count: len(replay.seen) == count)
            for _ in range(3):
                replay.step()
            assert replay.session.position == end
        replay.run_until(lambda: replay.session.is_done)
        assert replay.seen == [own.payload(index, 1000) for index in range(50)]


def test_padding_longer_than_a_message_is_skipped(tmp_path, monkeypatch):
    pad = own.frame(160, bytes(own.TERM - 160 - 32), is_pad=True)
    frames = [(0, own.frame(0, own.payload(1, 100))), (160, pad)]
    frames.append((own.TERM, own.frame(own.TERM, own.payload(2, 100))))
    end = own.write(tmp_path, 0, frames)
    with world(tmp_path, monkeypatch) as made:
        replay = Replay(
            made, tmp_path, own.descriptor(), IPC, position=0, end=end, limit=lambda: end
        )
        replay.run_until(lambda: replay.session.is_done and len(replay.seen) == 2)
        assert replay.seen == [own.payload(1, 100), own.payload(2, 100)]
        assert replay.positions == [160, end]


def test_a_damaged_recording_ends_its_replay_with_an_error(tmp_path, monkeypatch):
    frames = own.stream([1000] * 50)
    end = own.write(tmp_path, 0, frames)
    with open(tmp_path / "0-0.rec", "r+b") as file:
        file.seek(frames[20][0] + 16)
        file.write(b"\xff")
    with world(tmp_path, monkeypatch) as made:
        replay = Replay(
            made, tmp_path, own.descriptor(), IPC, position=0, end=end, limit=lambda: end
        )
        replay.run_until(lambda: replay.session.is_done)
        assert f"invalid frame at position {frames[20][0]}: stream id" in replay.session.failure
        assert replay.session.position == frames[20][0]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_frame_that_ends_beyond_the_recording_ends_its_replay(tmp_path, monkeypatch, is_damaged):
    frames = own.stream([1000] * 20)
    end = own.write(tmp_path, 0, frames)
    last = frames[19][0]
    if is_damaged:
        with open(tmp_path / "0-0.rec", "r+b") as file:
            file.seek(last)
            file.write((1376).to_bytes(4, "little"))
    with world(tmp_path, monkeypatch) as made:
        replay = Replay(
            made, tmp_path, own.descriptor(), IPC, position=0, end=end, limit=lambda: end,
            is_final=lambda: True,
        )  # fmt: skip
        replay.run_until(lambda: replay.session.is_done)
        why = f"the frame at position {last} ends beyond the end of the data at position {end}"
        expected = (last, why) if is_damaged else (end, "")
        assert (replay.session.position, replay.session.failure) == expected


def test_a_replay_ends_when_its_subscriber_closes(tmp_path, monkeypatch):
    own.write(tmp_path, 0, own.stream([1000] * 50))
    with world(tmp_path, monkeypatch) as made:
        replay = Replay(
            made, tmp_path, own.descriptor(), IPC, position=0, end=1 << 40, limit=lambda: 1056
        )
        replay.run_until(lambda: replay.seen)
        replay.subscription.close()
        made.until(lambda: replay.session.do_work() == 0 and replay.session.is_done)
        assert replay.session.failure == ""
        assert replay.session.position == 1056
