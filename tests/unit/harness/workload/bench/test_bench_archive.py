"""The load of an archive over synthetic streams: its requests, its faults, its end."""

import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.harness.workload.numbered_frames import frame
from windtunnel.driver.archive.client import ArchiveError
from windtunnel.driver.archive.client.recording_counters import TYPE_ID
from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State
from windtunnel.harness.workload.bench import bench_archive
from windtunnel.harness.workload.bench.bench_options import Options, parse
from windtunnel.harness.workload.bench.bench_stream import Load

LENGTH, FRAME, COUNT = 32, 64, 3
SESSION = 77


class MadePublication:
    """Takes as many messages at a time as `takes` says, then the rest."""

    def __init__(self, takes):
        self.session_id, self.is_connected, self.position = SESSION, True, 0
        self.takes, self.asked, self.is_closed = list(takes), [], False

    def offer_batch(self, messages, lengths, first):
        self.asked.append((first, lengths.size - first))
        written, answer = self.takes.pop(0) if self.takes else (lengths.size, 1)
        written = min(written, lengths.size - first)
        self.position += written * FRAME
        return written, answer

    def close(self):
        self.is_closed = True


class MadeImage:
    """Delivers blocks of one frame; it is closed after the last one."""

    def __init__(self, numbers):
        self.blocks, self.position, self.is_closed = [frame(n, LENGTH) for n in numbers], 0, False

    def block_poll(self, handler, limit):
        if not self.blocks:
            self.is_closed = True
            return 0
        handler(memoryview(self.blocks.pop(0)), 1, 2, 3)
        self.position += FRAME
        return FRAME


class MadeArchive:
    """An archive of one recording; `short` is how much of its end is missing."""

    def __init__(self, board, takes=(), replays=range(COUNT), short=0, refusals=()):
        self.board, self.short, self.refusals = board, short, list(refusals)
        self.publication, self.image = MadePublication(takes), MadeImage(replays)
        self.asked, self.times = [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def add_recorded_exclusive_publication(self, channel, stream_id):
        self.asked.append(("record", channel, stream_id))
        return self.publication

    def stop_recording_publication(self, publication):
        self.asked.append(("stop", publication.position))

    def stop_position(self, recording_id):
        return self.publication.position - self.short

    def replay(self, recording_id, channel, stream_id):
        self.asked.append(("replay", recording_id, channel, stream_id))
        return SimpleNamespace(images=(self.image,), close=lambda: self.asked.append(("close",)))

    def purge_recording(self, recording_id):
        self.asked.append(("purge", recording_id))
        if self.refusals:
            raise ArchiveError("no", self.refusals.pop(0))
        # The one turn that is asked for is over: leave.
        self.board.order = Command.LEAVE


@pytest.fixture
def board(tmp_path):
    return Board.create(tmp_path / "load.board")


@pytest.fixture
def run(board, monkeypatch):
    """Run the load with an archive; commands come as soon as they are waited for."""

    def made(**told):
        archive = MadeArchive(board, **told)
        monkeypatch.setattr(bench_archive.AeronArchive, "connect", lambda *_: archive)
        monkeypatch.setattr(bench_archive.time, "sleep", lambda _: None)
        key = struct.pack("<qii", 5, SESSION, 0) + struct.pack("<q", 1)
        counter = SimpleNamespace(counter_id=9, type_id=TYPE_ID, key=key.ljust(112, b"\0"))

        class Counters(list):
            def value(self, counter_id):
                assert counter_id == 9
                return archive.publication.position

        options = Options(
            "archive", Path("/shm/aeron"), board.path, "there", "", 7, LENGTH, lambda: None,
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


def test_records_replays_and_makes_room(run, board):
    archive = run(takes=[(2, result.BACK_PRESSURED), (0, result.ADMIN_ACTION)])
    assert archive.publication.asked == [(0, 3), (2, 1), (2, 1)]
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
    ("told", "why"),
    [
        ({"short": FRAME}, "expected the recording to end at position 192, found 128"),
        ({"replays": (0, 2)}, "lost or reordered: expected message 1, found 2"),
        ({"replays": (0, 1)}, "the stream disconnected after message 2"),
        (
            {"takes": [(1, result.CLOSED)]},
            f"the offer of message 1 failed with code {result.CLOSED}",
        ),
    ],
    ids=["too short", "one is missing", "ends early", "refused"],
)
def test_a_wrong_answer_is_a_fault(run, board, told, why):
    run(**told)
    assert board.fault_text == why
    assert board.state is not State.REPLAYED


def test_padding_in_place_of_messages_is_a_fault(run, board, monkeypatch):
    padding = [frame(0, LENGTH), frame(0, LENGTH, 0), frame(0, LENGTH, 0)]
    monkeypatch.setattr(MadeImage, "__init__", lambda image, _: image.__dict__.update(
        blocks=padding, position=0, is_closed=False
    ))  # fmt: skip
    run()
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
