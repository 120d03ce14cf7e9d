"""The load generators over streams without a driver: their messages, faults and ends."""

import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.driver.client.own_stream import TERM_LENGTH
from tests.unit.harness.workload.bench.stepped_stream import (
    FRAME,
    LENGTH,
    SteppedStream,
    echo,
    message,
)
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State, latencies_file
from windtunnel.harness.workload.bench import bench_echo
from windtunnel.harness.workload.bench.bench_echo import run_ping, run_pong
from windtunnel.harness.workload.bench.bench_options import Idle, Options, parse
from windtunnel.harness.workload.bench.bench_stream import Load, run_sink, run_source

BATCH = 2048
SOURCE = 1 << 40


@pytest.fixture
def board(tmp_path):
    return Board.create(tmp_path / "load.board")


@pytest.fixture
def stop(board):
    return lambda: setattr(board, "order", Command.STOP)


@pytest.fixture
def new_stream(stop, tmp_path):
    """Create a stream that stops the load after its last step."""
    return partial(SteppedStream, tmp_path, stop)


@pytest.fixture
def stream(new_stream):
    return new_stream()


def load_of(board, role="source", length=LENGTH, limit_s=60.0, **more):
    options = Options(
        role, Path("/shm/aeron"), board.path, "there", "back", 7, length, Idle.SPIN, limit_s, **more
    )
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


def test_a_source_continues_after_back_pressure(board, stream):
    stream.stream.limit_to(5 * FRAME)
    stream.steps = [
        lambda: None,
        lambda: stream.stream.limit_to(100 * FRAME),
        lambda: stream.stream.limit_to(1000 * FRAME),
    ]
    run_source(load_of(board), client(stream.writing()))
    assert stream.numbers() == list(range(1000))
    assert (board.message_count, board.fault) == (1000, Fault.NONE)


def test_a_source_numbers_one_batch_after_another(board, stream):
    # Two batches of 2,048 messages take four terms.
    limits = iter(range(512, 2 * BATCH + 512, 512))
    found = []

    def move():
        found.extend(stream.numbers())
        # There is no driver that zeroes terms that have been read.
        stream.stream.mapped.log[: 3 * TERM_LENGTH] = 0
        stream.stream.limit_to(next(limits) * FRAME)

    stream.stream.limit_to(0)
    stream.steps = [move] * 8
    run_source(load_of(board), client(stream.writing()))
    assert found + stream.numbers() == list(range(2 * BATCH))


@pytest.mark.parametrize("code", [result.CLOSED, result.NOT_CONNECTED])
def test_a_refused_offer_of_a_source_is_a_fault(board, stream, code):
    own = stream.stream
    own.limit_to(5 * FRAME)
    refuse = own.publication.close if code == result.CLOSED else lambda: own.connect(False)
    stream.steps = [lambda: None, refuse]
    run_source(load_of(board), client(stream.writing()))
    assert board.fault is Fault.OFFER_REFUSED
    assert board.fault_text == f"the offer of message 5 failed with code {code}"


def test_a_sink_counts_what_comes_in_order(board, stream):
    own = stream.stream
    stream.steps = [
        lambda: own.write(message(0), message(1)),
        lambda: own.pad(64),
        lambda: own.write(message(2)),
    ]
    run_sink(load_of(board, "sink"), client(image=stream.reading()))
    assert (board.message_count, board.fault, board.state) == (3, Fault.NONE, State.CONNECTED)
    assert own.counted_position() == own.publication.position


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (message(2), "lost or reordered: expected message 1, found 2"),
        (message(1, 40), "expected a message of 32 bytes, found 40"),
        (message(1)[:-1] + b"?", "message 1 has other bytes than were sent"),
    ],
    ids=["sequence", "length", "content"],
)
def test_a_sink_ends_at_the_first_wrong_message(board, stream, second, why):
    stream.steps = [lambda: stream.stream.write(message(0), second, message(3))]
    run_sink(load_of(board, "sink"), client(image=stream.reading()))
    assert board.fault_text == why
    assert board.message_count == 1
    assert board.order is Command.GO_ON


def test_a_sink_detects_that_its_stream_was_closed(board, stream):
    own = stream.stream
    stream.steps = [lambda: own.write(message(0)), own.image.on_unavailable]
    run_sink(load_of(board, "sink"), client(image=stream.reading()))
    assert board.fault_text == "the stream disconnected after message 1"


def test_a_source_publishes_on_each_of_its_streams(board, new_stream):
    streams = [new_stream(f"stream-{index}") for index in range(3)]
    opened = []
    for each in streams:
        each.stream.limit_to(700 * FRAME)
        each.steps = [lambda: None] * 2

    def add(*to):
        opened.append(to)
        return streams[len(opened) - 1].writing()

    aeron = SimpleNamespace(is_closed=False, add_exclusive_publication=add)
    run_source(load_of(board, streams=3), aeron)
    assert opened == [("there", 7), ("there", 8), ("there", 9)]
    assert [each.numbers() for each in streams] == 3 * [list(range(700))]
    assert board.message_count == 3 * 700


def test_a_stream_without_space_does_not_block_the_others(board, new_stream):
    full, free = new_stream("full"), new_stream("free")
    full.stream.limit_to(0)
    free.stream.limit_to(700 * FRAME)
    free.steps = [lambda: None]
    full.steps = [lambda: None] * 2
    made = iter([full.writing(), free.writing()])
    aeron = SimpleNamespace(is_closed=False, add_exclusive_publication=lambda *to: next(made))
    load = load_of(board, streams=2, limit_s=5.0)
    # In one loop, 2**62 turns without space would exceed the time limit of the test.
    load.turns = 1 << 62
    run_source(load, aeron)
    assert free.numbers() == list(range(700))


def test_sources_that_share_a_stream_have_their_own_numbers(board, new_stream):
    shared = new_stream(log_type=descriptor.CONCURRENT_PUBLICATION)
    shared.stream.limit_to(2 * FRAME)
    shared.steps, opened = [lambda: None], []
    aeron = SimpleNamespace(
        is_closed=False, add_publication=lambda *to: opened.append(to) or shared.writing()
    )
    run_source(load_of(board, sources=3, source=2), aeron)
    assert opened == [("there", 7)]
    assert shared.numbers() == [2 * SOURCE, 2 * SOURCE + 1]


def test_a_sink_counts_the_messages_of_all_streams_and_sources(board, new_stream):
    first, second = (new_stream(name) for name in ("first", "second"))
    first.steps = [lambda: first.stream.write(message(0), message(SOURCE), message(1))]
    second.steps = [lambda: second.stream.write(message(0))]
    subscriptions = iter(SimpleNamespace(images=(each.reading(),)) for each in (first, second))
    aeron = SimpleNamespace(is_closed=False, add_subscription=lambda *to: next(subscriptions))
    run_sink(load_of(board, "sink", streams=2, sources=2), aeron)
    assert (board.message_count, board.fault) == (4, Fault.NONE)


class Echoes:
    """A ping or pong between two streams, which writes to `there` and reads `back`."""

    def __init__(self, new_stream):
        self.there, self.back = (new_stream(name) for name in ("there", "back"))

    def client(self):
        # The stream that is read steps: the loop runs when both streams are open.
        return client(self.there.stream.publication, self.back.reading())

    def offer(self, *numbers, length=LENGTH):
        """Write messages to the stream that is read, each before another call of the loop."""
        self.back.steps += [
            partial(self.back.stream.write, echo(number, length)) for number in numbers
        ]


@pytest.fixture
def echoes(new_stream):
    return Echoes(new_stream)


def test_a_ping_measures_the_time_of_every_echo(board, echoes):
    echoes.offer(0, 1, 2)
    aeron = echoes.client()
    run_ping(load_of(board, "ping"), aeron)
    # The last message had no echo.
    assert echoes.there.numbers() == [0, 1, 2, 3]
    assert (board.message_count, board.fault) == (3, Fault.NONE)
    latencies = np.fromfile(latencies_file(board.path), np.int64)[:4]
    assert (latencies[:3] > 0).all()
    assert latencies[3] == 0
    assert aeron.opened == [("read", "back", 8), ("write", "there", 7)]


def test_at_a_fixed_rate_a_late_echo_makes_the_messages_after_it_late(board, echoes):
    # All echoes are there already, but each message is due 1 ns after the previous one, and takes
    # longer. So each is later than the one before.
    echoes.back.steps = [lambda: [echoes.back.stream.write(echo(number)) for number in range(100)]]
    run_ping(load_of(board, "ping", rate=1e9), echoes.client())
    latencies = np.fromfile(latencies_file(board.path), np.int64)[:100]
    assert board.message_count == 100
    assert (np.diff(latencies[1:]) > 0).all()


def test_at_a_fixed_rate_messages_are_due_at_this_rate_after_the_first_echo(board, echoes):
    echoes.back.steps = [
        lambda: None,
        lambda: time.sleep(0.05),
        lambda: echoes.back.stream.write(echo(0)),
        lambda: echoes.back.stream.write(echo(1)),
    ]
    run_ping(load_of(board, "ping", rate=1e-3), echoes.client())
    # The echo of the first message took 50 ms. The next message is due 1,000 s after it.
    assert np.fromfile(latencies_file(board.path), np.int64)[0] > 50_000_000
    assert echoes.there.numbers() == [0]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"numbers": (5,)}, "lost or reordered: expected message 1, found 5"),
        ({"numbers": (1,), "length": 40}, "expected a message of 32 bytes, found 40"),
    ],
    ids=["number", "length"],
)
def test_a_ping_refuses_the_echo_of_another_message(board, echoes, wrong, why):
    echoes.offer(0)
    echoes.offer(*wrong["numbers"], length=wrong.get("length", LENGTH))
    run_ping(load_of(board, "ping"), echoes.client())
    assert board.fault_text == why
    assert board.message_count == 1


@pytest.mark.parametrize("run", [run_ping, run_pong])
def test_a_damaged_message_is_a_fault(board, echoes, run):
    damaged = echo(1)[:-1] + b"?"
    echoes.offer(0)
    echoes.back.steps += [partial(echoes.back.stream.write, damaged)]
    run(load_of(board, "ping"), echoes.client())
    assert board.fault_text == "message 1 has other bytes than were sent"
    assert board.message_count == 1


def test_a_ping_without_an_echo_is_a_fault(board, echoes, monkeypatch):
    monkeypatch.setattr(bench_echo, "ECHO_TIMEOUT_S", -1)
    echoes.offer(0)
    echoes.back.steps += [lambda: None] * 3
    run_ping(load_of(board, "ping"), echoes.client())
    assert board.fault_text == "message 1 did not return within -1 s"


def test_a_pong_returns_messages_and_no_padding(board, echoes):
    own = echoes.back.stream
    echoes.there.stream.limit_to(0)
    echoes.back.steps = [
        lambda: own.write(echo(0)),
        lambda: echoes.there.stream.limit_to(1 << 20),
        lambda: own.pad(64),
        lambda: own.write(echo(1)),
    ]
    aeron = echoes.client()
    run_pong(load_of(board, "pong"), aeron)
    assert echoes.there.numbers() == [0, 1]
    assert (board.message_count, board.fault) == (2, Fault.NONE)
    assert aeron.opened == [("read", "there", 7), ("write", "back", 8)]


def test_a_frame_that_is_being_written_is_not_read(board, echoes):
    own = echoes.back.stream
    claims = []
    echoes.back.steps = [
        lambda: own.write(echo(0)),
        lambda: claims.append(own.publication.try_claim(LENGTH)),
        lambda: None,
    ]
    run_ping(load_of(board, "ping"), echoes.client())
    assert (board.message_count, board.fault) == (1, Fault.NONE)
    assert own.counted_position() == FRAME
    assert not isinstance(claims[0], int)


def test_a_pong_keeps_a_message_until_its_echo_was_accepted(board, echoes):
    echoes.there.stream.limit_to(0)
    echoes.offer(0)
    run_pong(load_of(board, "pong"), echoes.client())
    # The driver may overwrite bytes before the position.
    assert echoes.back.stream.counted_position() == 0
    assert board.message_count == 0


def test_a_load_ends_when_its_client_was_closed(board, stream):
    run_source(load_of(board), client(stream.writing(), is_closed=True))
    assert board.fault is Fault.CLIENT_CLOSED


def test_a_load_without_a_stop_request_ends_itself(board, stream):
    run_source(load_of(board, limit_s=-1.0), client(stream.writing()))
    assert board.fault is Fault.TOO_LONG


def test_a_load_does_not_end_before_it_may(board, monkeypatch):
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
    assert (made.message_length, made.limit_s, made.strategy) == (32, 2.0, Idle.SPIN)
