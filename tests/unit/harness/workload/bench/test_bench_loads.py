"""The load generators over synthetic streams: what they send, their faults, their end."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.harness.workload.numbered_frames import frame
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State, latencies_file
from windtunnel.harness.workload.bench import bench_echo
from windtunnel.harness.workload.bench.bench_echo import run_ping, run_pong
from windtunnel.harness.workload.bench.bench_options import Options, parse
from windtunnel.harness.workload.bench.bench_stream import Load, run_sink, run_source

TURNS_MAX = 50


class MadePublication:
    """Returns scripted `answers`: the number of messages of a batch and the code."""

    is_connected = True

    def __init__(self, board, answers):
        self.board, self.answers, self.taken = board, list(answers), []

    def offer_batch(self, messages, lengths, first):
        written, answer = self._next(lengths.size - first)
        rows = messages.reshape(-1, int(lengths[0]))[:written, :8]
        self.taken += np.ascontiguousarray(rows).view(np.int64)[:, 0].tolist()
        return written, answer

    def offer(self, message):
        written, answer = self._next(1)
        if written:
            self.taken.append(int(np.frombuffer(bytes(message)[:8], np.int64)[0]))
        return answer

    def _next(self, wanted):
        if not self.answers:
            self.board.order = Command.STOP
            return 0, result.BACK_PRESSURED
        written, answer = self.answers.pop(0)
        return min(written, wanted), answer


class MadeImage:
    """Delivers blocks; after the last one it stops the load, or is closed."""

    def __init__(self, board, blocks, ends_closed=False):
        self.board, self.blocks, self.is_closed = board, list(blocks), False
        self._ends_closed = ends_closed

    def block_poll(self, handler, limit):
        if self.blocks:
            block = self.blocks.pop(0)
            handler(memoryview(block), 1, 2, 3)
            return len(block)
        if self._ends_closed:
            self.is_closed = True
        else:
            self.board.order = Command.STOP
        return 0


@pytest.fixture
def board(tmp_path):
    return Board.create(tmp_path / "load.board")


def load_of(board, role="source", length=32, limit_s=60.0, **more):
    turns = iter(range(TURNS_MAX))
    options = Options(
        role, Path("/shm/aeron"), board.path, "there", "back", 7, length,
        lambda: next(turns), limit_s, **more,
    )  # fmt: skip
    return Load(options, board)


def client(publication=None, image=None, is_closed=False):
    opened = []
    subscription = SimpleNamespace(images=(image,))
    return SimpleNamespace(
        opened=opened,
        is_closed=is_closed,
        add_exclusive_publication=lambda *to: opened.append(("write", *to)) or publication,
        add_subscription=lambda *to: opened.append(("read", *to)) or subscription,
    )


def test_a_source_goes_on_where_it_was_pushed_back(board):
    answers = [(5, result.BACK_PRESSURED), (0, result.ADMIN_ACTION), (3000, 1), (3000, 1)]
    publication = MadePublication(board, answers)
    run_source(load_of(board), client(publication))
    assert publication.taken == list(range(board.message_count))
    assert board.message_count == 2 * 2048
    assert board.fault is Fault.NONE


@pytest.mark.parametrize("code", [result.CLOSED, result.NOT_CONNECTED, result.ERROR])
def test_a_source_that_is_refused_says_so(board, code):
    run_source(load_of(board), client(MadePublication(board, [(5, code)])))
    assert board.fault is Fault.OFFER_REFUSED
    assert board.fault_text == f"the offer of message 5 failed with code {code}"


def test_a_sink_counts_what_comes_in_order(board):
    blocks = [frame(0, 32) + frame(1, 32), frame(0, 64, 0), frame(2, 32)]
    run_sink(load_of(board, "sink"), client(image=MadeImage(board, blocks)))
    assert (board.message_count, board.fault, board.state) == (3, Fault.NONE, State.CONNECTED)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (frame(2, 32), "lost or reordered: expected message 1, found 2"),
        (frame(1, 40), "expected a message of 32 bytes, found 40"),
    ],
    ids=["sequence", "length"],
)
def test_a_sink_ends_at_the_first_wrong_message(board, second, why):
    image = MadeImage(board, [frame(0, 32), second, frame(3, 32)])
    run_sink(load_of(board, "sink"), client(image=image))
    assert board.fault_text == why
    assert board.message_count == 1
    assert len(image.blocks) == 1


def test_a_sink_notices_that_its_stream_went_away(board):
    image = MadeImage(board, [frame(0, 32)], ends_closed=True)
    run_sink(load_of(board, "sink"), client(image=image))
    assert board.fault_text == "the stream disconnected after message 1"


def test_a_source_publishes_on_each_of_its_streams(board):
    opened, publications = [], [MadePublication(board, [(3000, 1)]) for _ in range(3)]

    def add(*to):
        opened.append(to)
        return publications[len(opened) - 1]

    aeron = SimpleNamespace(is_closed=False, add_exclusive_publication=add)
    run_source(load_of(board, streams=3), aeron)
    assert opened == [("there", 7), ("there", 8), ("there", 9)]
    assert [each.taken for each in publications] == 3 * [list(range(2048))]
    assert board.message_count == 3 * 2048


def test_sources_that_share_a_stream_number_their_messages_apart(board):
    publication, opened = MadePublication(board, [(2, 1)]), []
    aeron = SimpleNamespace(
        is_closed=False, add_publication=lambda *to: opened.append(to) or publication
    )
    run_source(load_of(board, sources=3, source=2), aeron)
    assert opened == [("there", 7)]
    assert publication.taken == [2 << 40, (2 << 40) + 1]


def test_a_sink_counts_the_messages_of_all_streams_and_sources(board):
    first = MadeImage(board, [frame(0, 32) + frame(1 << 40, 32), frame(1, 32)])
    second = MadeImage(board, [frame(0, 32)])
    subscriptions = iter(SimpleNamespace(images=(image,)) for image in (first, second))
    aeron = SimpleNamespace(is_closed=False, add_subscription=lambda *to: next(subscriptions))
    run_sink(load_of(board, "sink", streams=2, sources=2), aeron)
    assert (board.message_count, board.fault) == (4, Fault.NONE)


def test_at_a_fixed_rate_a_late_echo_makes_the_messages_after_it_late(board, monkeypatch):
    ticks = iter(range(0, 10_000_000, 4_000))
    monkeypatch.setattr(bench_echo, "_now_ns", lambda: next(ticks))
    monkeypatch.setattr(bench_echo.time, "monotonic_ns", lambda: 0)
    publication = MadePublication(board, [(1, 64)] * 4)
    image = MadeImage(board, [frame(number, 32) for number in range(4)])
    run_ping(load_of(board, "ping", rate=200_000.0), client(publication, image))
    latencies = np.fromfile(latencies_file(board.path), np.int64)[:4].tolist()
    # A message is due every 5 us. The clock shows 4 us more each time, and is read twice for a
    # message that is late: 8 us, of which 3 us are added to the delay of the next one.
    assert latencies == [7_000, 10_000, 13_000, 16_000]


def test_a_ping_takes_the_time_of_every_echo(board):
    publication = MadePublication(board, [(1, 64)] * 3)
    image = MadeImage(board, [frame(number, 32) for number in range(3)])
    aeron = client(publication, image)
    run_ping(load_of(board, "ping"), aeron)
    assert publication.taken == [0, 1, 2]
    assert board.message_count == 3
    latencies = np.fromfile(latencies_file(board.path), np.int64)[:4]
    assert (latencies[:3] > 0).all()
    assert latencies[3] == 0
    assert aeron.opened == [("read", "back", 8), ("write", "there", 7)]


def test_a_ping_refuses_the_echo_of_another_message(board):
    image = MadeImage(board, [frame(0, 32), frame(5, 32)])
    run_ping(load_of(board, "ping"), client(MadePublication(board, [(1, 64)] * 5), image))
    assert board.fault_text == "lost or reordered: expected message 1, found 5"
    assert board.message_count == 1


def test_a_pong_sends_back_what_came_and_not_the_padding(board):
    publication = MadePublication(board, [(0, result.BACK_PRESSURED), (1, 64), (1, 128)])
    image = MadeImage(board, [frame(4, 32), frame(9, 64, 0), frame(5, 32)])
    aeron = client(publication, image)
    run_pong(load_of(board, "pong"), aeron)
    assert publication.taken == [4, 5]
    assert board.message_count == 2
    assert aeron.opened == [("read", "there", 7), ("write", "back", 8)]


def test_a_pong_keeps_a_message_that_the_driver_wipes_behind_it(board):
    block = bytearray(frame(4, 32))

    class Wiping(MadeImage):
        def block_poll(self, handler, limit):
            length = super().block_poll(handler, limit)
            block[:] = bytes(len(block))
            return length

    publication = MadePublication(board, [(1, 64)])
    run_pong(load_of(board, "pong"), client(publication, Wiping(board, [block])))
    assert publication.taken == [4]


def test_a_load_ends_when_its_client_was_closed(board):
    run_source(load_of(board), client(MadePublication(board, []), is_closed=True))
    assert board.fault is Fault.CLIENT_CLOSED


def test_a_load_that_nobody_ends_ends_itself(board):
    run_source(load_of(board, limit_s=-1.0), client(MadePublication(board, [])))
    assert board.fault is Fault.TOO_LONG


def test_a_load_stays_until_it_may_leave(board, monkeypatch):
    slept = []

    def sleep(_):
        slept.append(board.state)
        board.order = Command.LEAVE

    monkeypatch.setattr("windtunnel.harness.workload.bench.bench_stream.time.sleep", sleep)
    load_of(board).stay(client())
    assert slept == [State.ENDED]


def test_options_name_the_role_and_its_streams(tmp_path):
    given = [
        *("ping", "--aeron-dir", "/shm/a", "--board", str(tmp_path), "--channel", "c"),
        *("--stream-id", "3", "--message-length", "32"),
    ]
    with pytest.raises(SystemExit):
        parse(given)
    made = parse([*given, "--reply-channel", "r", "--idle", "spin", "--limit", "2"])
    assert (made.role, made.channel, made.reply_channel, made.stream_id) == ("ping", "c", "r", 3)
    assert (made.message_length, made.limit_s, made.idle()) == (32, 2.0, None)
