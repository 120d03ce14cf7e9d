"""The load generators for pyaeron's client, with a synthetic client: messages and faults."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.harness.workload.bench.stepped_stream import echo, message
from tests.unit.harness.workload.bench.test_bench_loads import load_of
from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State, latencies_file
from windtunnel.harness.workload.bench import bench_pyaeron
from windtunnel.harness.workload.bench.bench_pyaeron import (
    MESSAGES_PER_TURN,
    run_ping,
    run_pong,
    run_sink,
    run_source,
)

SOURCE = 1 << 40


@pytest.fixture
def board(tmp_path):
    return Board.create(tmp_path / "load.board")


class FakeStream:
    """A publication or a subscription of pyaeron's. It refuses each third offer, and stops the load
    after a number of offers, or when everything was polled.
    """

    def __init__(self, board, arriving=(), most=1000):
        self.board, self.arriving, self.most = board, list(arriving), most
        self.is_connected, self.offers, self.sent, self.answer = True, 0, [], lambda sent: None

    def offer(self, data):
        self.offers += 1
        if self.offers >= self.most:
            self.board.order = Command.STOP
        if self.offers % 3 == 0:
            return 0
        self.sent.append(data)
        self.answer(data)
        return True

    def poll(self, handler, limit):
        count = min(limit, 2, len(self.arriving))
        for each in self.arriving[:count]:
            handler(memoryview(each), None)
        del self.arriving[:count]
        if count == 0:
            self.board.order = Command.STOP
        return count


def client(publication=None, subscription=None):
    opened = []

    def add(kind, made):
        return lambda *to: opened.append((kind, *to)) or (made() if callable(made) else made)

    return SimpleNamespace(
        is_closed=False,
        opened=opened,
        add_publication=add("shared", publication),
        add_exclusive_publication=add("exclusive", publication),
        add_subscription=add("read", subscription),
    )


def test_a_source_sends_numbered_messages_in_order(board):
    publication = FakeStream(board, most=3 * MESSAGES_PER_TURN)
    aeron = client(publication)
    run_source(load_of(board), aeron)
    assert aeron.opened == [("exclusive", "there", 7)]
    assert publication.sent == [message(number) for number in range(len(publication.sent))]
    assert board.message_count == len(publication.sent) > 100


def test_several_sources_share_the_streams(board):
    publications = [FakeStream(board, most=20) for _ in range(2)]
    made = iter(publications)
    aeron = client(lambda: next(made))
    run_source(load_of(board, sources=3, source=2, streams=2), aeron)
    assert aeron.opened == [("shared", "there", 7), ("shared", "there", 8)]
    for each in publications:
        first = each.sent[0]
        assert first == (2 * SOURCE).to_bytes(8, "little") + message(0)[8:]


def test_a_sink_counts_what_comes_in_order(board):
    arriving = [message(0), message(SOURCE), message(1), message(SOURCE + 1), message(2)]
    subscription = FakeStream(board, arriving)
    run_sink(load_of(board, "sink", sources=2), client(subscription=subscription))
    assert (board.message_count, board.fault, board.state) == (5, Fault.NONE, State.CONNECTED)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (message(2), "lost or reordered: expected message 1, found 2"),
        (message(5 * SOURCE), f"lost or reordered: expected message 1, found {5 * SOURCE}"),
        (message(1, 40), "expected a message of 32 bytes, found 40"),
        (message(1)[:-1] + b"?", "message 1 has other bytes than were sent"),
    ],
    ids=["sequence", "source", "length", "content"],
)
def test_a_sink_ends_at_the_first_wrong_message(board, second, why):
    subscription = FakeStream(board, [message(0), second, message(7)])
    run_sink(load_of(board, "sink"), client(subscription=subscription))
    assert board.fault_text == why
    assert board.message_count == 1


@pytest.mark.parametrize("run", [run_source, run_sink])
def test_a_closed_stream_is_a_fault(board, run):
    stream = FakeStream(board, [message(0), message(1)])
    stream.answer = lambda _: setattr(stream, "is_connected", False)
    poll = stream.poll

    def polled(handler, limit):
        stream.is_connected = False
        return poll(handler, limit)

    stream.poll = polled
    run(load_of(board), client(stream, stream))
    assert board.fault is Fault.STREAM_LOST


def test_a_ping_measures_the_time_of_every_echo(board):
    publication, subscription = FakeStream(board, most=9), FakeStream(board)
    publication.answer = subscription.arriving.append
    aeron = client(publication, subscription)
    # The load ends when the last message was offered, before its echo is polled.
    run_ping(load_of(board, "ping"), aeron)
    assert aeron.opened == [("read", "back", 8), ("exclusive", "there", 7)]
    assert publication.sent == [echo(number) for number in range(len(publication.sent))]
    latencies = np.fromfile(latencies_file(board.path), np.int64)
    count = board.message_count
    assert count >= 5
    assert (latencies[:count] > 0).all()
    assert not latencies[count : count + 10].any()


def test_a_ping_without_an_echo_is_a_fault(board, monkeypatch):
    monkeypatch.setattr(bench_pyaeron, "ECHO_TIMEOUT_S", -1)
    publication, subscription = FakeStream(board), FakeStream(board)
    subscription.poll = lambda handler, limit: 0
    run_ping(load_of(board, "ping"), client(publication, subscription))
    assert board.fault_text == "message 0 did not return within -1 s"


def test_a_ping_refuses_the_echo_of_another_message(board):
    publication, subscription = FakeStream(board), FakeStream(board)
    publication.answer = lambda _: subscription.arriving.append(echo(5))
    run_ping(load_of(board, "ping"), client(publication, subscription))
    assert board.fault_text == "lost or reordered: expected message 0, found 5"


def test_a_pong_returns_messages(board):
    publication = FakeStream(board)
    subscription = FakeStream(board, [echo(number) for number in range(3)])
    poll = subscription.poll
    # It stops when all echoes have left.
    subscription.poll = lambda handler, limit: poll(handler, 1) if subscription.arriving else 0
    publication.answer = lambda _: (
        len(publication.sent) == 3 and setattr(board, "order", Command.STOP)
    )
    run_pong(load_of(board, "pong"), client(publication, subscription))
    assert publication.sent == [echo(number) for number in range(3)]
    assert (board.message_count, board.fault) == (3, Fault.NONE)
