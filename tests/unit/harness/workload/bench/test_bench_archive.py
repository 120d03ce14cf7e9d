"""The load of an archive over synthetic streams: its requests, its faults, and its end."""

import struct
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.driver.client.own_stream import SESSION_ID
from tests.unit.harness.workload.bench.stepped_stream import (
    FRAME,
    LENGTH,
    SteppedStream,
    message,
)
from windtunnel.driver.archive.client import ArchiveError
from windtunnel.driver.archive.client.recording_counters import TYPE_ID
from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State
from windtunnel.harness.workload.bench import bench_archive
from windtunnel.harness.workload.bench.bench_options import Idle, Options, parse
from windtunnel.harness.workload.bench.bench_stream import Load

COUNT = 3


def limit_to(count):
    """Limit a publication to a number of messages."""
    return lambda stream: stream.limit_to(count * FRAME)


def write(*numbers):
    """Write messages with these numbers."""
    return lambda stream: stream.write(*map(message, numbers))


whole = write(*range(COUNT))


def close(stream):
    stream.publication.close()


def leave(stream):
    stream.image.on_unavailable()


class FakeArchive:
    """An archive of one recording, whose last `short` bytes are missing."""

    def __init__(self, board, folder, recorded=(), replayed=(), short=0, refusals=()):
        """`recorded` and `replayed` act on the streams before the calls of a load's loops."""
        self.board, self.short, self.refusals = board, short, list(refusals)
        self.recording = SteppedStream(folder, lambda: None, "recording")
        self.replaying = SteppedStream(folder, lambda: None, "replaying")
        for stream, steps in ((self.recording, recorded), (self.replaying, replayed)):
            stream.steps = [partial(each, stream.stream) for each in steps]
        self.publication, self.image = self.recording.writing(), self.replaying.reading()
        self.asked, self.times = [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def add_recorded_exclusive_publication(self, channel, stream_id):
        self.asked.append(("record", channel, stream_id))
        return self.publication

    def stop_recording_publication(self, publication):
        self.end = publication.position
        self.asked.append(("stop", self.end))

    def stop_position(self, recording_id):
        return self.end - self.short

    def replay(self, recording_id, channel, stream_id):
        self.asked.append(("replay", recording_id, channel, stream_id))
        return SimpleNamespace(images=(self.image,), close=lambda: self.asked.append(("close",)))

    def purge_recording(self, recording_id):
        self.asked.append(("purge", recording_id))
        if self.refusals:
            raise ArchiveError("no", self.refusals.pop(0))
        # The only requested turn is over: end the load.
        self.board.order = Command.LEAVE


@pytest.fixture
def board(tmp_path):
    return Board.create(tmp_path / "load.board")


@pytest.fixture
def run(board, monkeypatch, tmp_path):
    """Run the load with an archive. Commands arrive as soon as the load waits for them."""

    def made(replayed=(whole,), **options):
        archive = FakeArchive(board, tmp_path, replayed=replayed, **options)
        monkeypatch.setattr(bench_archive.AeronArchive, "connect", lambda *_: archive)
        monkeypatch.setattr(bench_archive.time, "sleep", lambda _: None)
        key = struct.pack("<qii", 5, SESSION_ID, 0) + struct.pack("<q", 1)
        counter = SimpleNamespace(counter_id=9, type_id=TYPE_ID, key=key.ljust(112, b"\0"))

        class Counters(list):
            def value(self, counter_id):
                assert counter_id == 9
                return archive.publication.position

        options = Options(
            "archive", Path("/shm/aeron"), board.path, "there", "", 7, LENGTH, Idle.SPIN,
            60.0, "control", COUNT,
        )  # fmt: skip
        load = Load(options, board)
        board.order = Command.RECORD
        seen = []

        def is_well(aeron):
            seen.append(board.state)
            if board.state is State.RECORDED:
                board.order = Command.REPLAY
            return Load.is_well(load, aeron)

        load.is_well = is_well
        bench_archive.run_archive(
            load, SimpleNamespace(is_closed=False, counters=Counters([counter]))
        )
        return archive

    return made


def test_records_replays_and_purges(run, board):
    archive = run(recorded=[limit_to(2), limit_to(2), limit_to(100)])
    assert archive.recording.numbers() == list(range(COUNT))
    assert archive.asked == [
        ("record", "there", 7),
        ("stop", COUNT * FRAME),
        ("replay", 5, "aeron:ipc", 8),
        ("close",),
        ("purge", 5),
    ]
    assert (board.fault, board.state, board.message_count) == (Fault.NONE, State.REPLAYED, COUNT)
    assert board.duration_ns > 0
    assert archive.publication.is_closed


def test_waits_for_a_replay_that_the_archive_has_not_ended(run, board):
    archive = run(refusals=[ErrorCode.ACTIVE_RECORDING] * 2)
    assert archive.asked[-3:] == [("purge", 5)] * 3
    assert board.state is State.REPLAYED


def test_any_other_refusal_ends_it(run):
    with pytest.raises(ArchiveError):
        run(refusals=[ErrorCode.GENERIC])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"short": FRAME}, "expected the recording to end at position 192, found 128"),
        ({"replayed": [write(0, 2)]}, "lost or reordered: expected message 1, found 2"),
        ({"replayed": [write(0, 1), leave]}, "the stream disconnected after message 2"),
        (
            {"recorded": [limit_to(1), close]},
            f"the offer of message 1 failed with code {result.CLOSED}",
        ),
    ],
    ids=["too short", "one is missing", "ends early", "refused"],
)
def test_a_wrong_response_is_a_fault(run, board, options, why):
    run(**options)
    assert board.fault_text == why
    assert board.state is not State.REPLAYED


def test_padding_in_place_of_messages_is_a_fault(run, board):
    run(replayed=[write(0), lambda stream: stream.pad(FRAME - 32), lambda stream: stream.pad(32)])
    assert board.fault_text == "expected 3 replayed messages, as recorded, found 1"


def test_options_of_an_archive_name_its_channel_and_how_many_messages(tmp_path):
    given = [
        *("archive", "--aeron-dir", "/shm/a", "--board", str(tmp_path), "--channel", "c"),
        *("--stream-id", "3", "--message-length", "32", "--control-channel", "here"),
    ]
    with pytest.raises(SystemExit):
        parse(given)
    made = parse([*given, "--message-count", "9"])
    assert (made.role, made.control_channel, made.message_count) == ("archive", "here", 9)
