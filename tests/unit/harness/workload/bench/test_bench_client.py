"""The load that measures a client's calls: bursts, refused offers, and faults."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.harness.workload.bench.test_bench_loads import load_of
from windtunnel.harness.artifact.run.bench_board import Board, Command, Fault, State
from windtunnel.harness.workload.bench import bench_client
from windtunnel.harness.workload.bench.bench_client import (
    BURST_MESSAGES,
    OFFERS,
    messages_from,
    run_offer,
    run_poll,
)
from windtunnel.harness.workload.bench.bench_options import parse

BURSTS = 3


@pytest.fixture
def board(tmp_path):
    return Board.create(tmp_path / "load.board")


def idle_load(board, **changed):
    """A load whose idle calls are not limited."""
    load = load_of(board, "poll")
    load.options = replace(load.options, **changed)
    return load


class FakeClient:
    """A client whose messages pass through a list. `change(number, message)` returns what is
    delivered instead of a message.
    """

    is_closed = False

    def __init__(self, board, change=lambda number, message: [message], accepted=1, refused=-2):
        self.board, self.change, self.accepted, self.refused = board, change, accepted, refused
        self.sent, self.waiting, self.offers, self.channels = [], [], 0, []
        self.publication = SimpleNamespace(is_connected=True, offer=self.offer)
        self.subscription = SimpleNamespace(is_connected=True, poll=self.poll)

    def add_publication(self, *to):
        self.channels.append(to)
        return self.publication

    def add_subscription(self, *to):
        self.channels.append(to)
        return self.subscription

    def offer(self, message):
        self.offers += 1
        if self.offers % 7 == 0:
            return self.refused
        number = len(self.sent)
        self.sent.append(message)
        self.waiting += self.change(number, message)
        if len(self.sent) == BURSTS * BURST_MESSAGES:
            self.board.order = Command.STOP
        return self.accepted

    def poll(self, handler):
        count = min(10, len(self.waiting))
        for message in self.waiting[:count]:
            handler(memoryview(message), None)
        del self.waiting[:count]
        return count


def clock_of(*steps):
    """Return a clock that advances by these steps, repeated endlessly."""
    now = 0

    def read():
        nonlocal now
        now += steps[read.index % len(steps)]
        read.index += 1
        return now

    read.index = 0
    return read


@pytest.mark.parametrize(
    ("name", "accepted", "refused"), [("windtunnel", 64, -2), ("pyaeron", True, 0)]
)
def test_every_burst_is_offered_and_read(board, monkeypatch, name, accepted, refused):
    # Per burst: 1000 ns before the offers, 5 for the offers, 10 after them, 70 for the polls.
    monkeypatch.setattr(bench_client.time, "perf_counter_ns", clock_of(1_000, 5, 10, 70))
    monkeypatch.setattr(bench_client.time, "thread_time_ns", clock_of(900, 4, 10, 60))
    for run, busy_ns in ((run_offer, (5, 4)), (run_poll, (70, 60))):
        board.order, board.message_count = Command.GO_ON, 0
        client = FakeClient(board, accepted=accepted, refused=refused)
        load, before_ns = idle_load(board, client=name), board.busy_ns
        run(load, client)
        assert (board.fault, board.state) == (Fault.NONE, State.CONNECTED)
        assert board.message_count == BURSTS * BURST_MESSAGES
        spent_ns = tuple(np.subtract(board.busy_ns, before_ns))
        assert spent_ns == (BURSTS * busy_ns[0], BURSTS * busy_ns[1])
        assert client.sent == messages_from(0, 32, BURSTS * BURST_MESSAGES)
        assert client.channels == [("there", 7), ("there", 7)]


CHANGES = {
    "lost": (lambda message: [], "lost or reordered: expected message 600, found 601"),
    "doubled": (
        lambda message: [message] * 2, "lost or reordered: expected message 601, found 600",
    ),
    "shorter": (lambda message: [message[:-1]], "expected a message of 32 bytes, found 31"),
    "changed": (
        lambda message: [message[:-1] + b"?"], "message 600 has other bytes than were sent"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_wrong_message_is_a_fault(board, monkeypatch, name):
    change, text = CHANGES[name]
    client = FakeClient(
        board, lambda number, message: change(message) if number == 600 else [message]
    )
    monkeypatch.setattr(bench_client, "BURST_TIMEOUT_S", 0.2)
    run_poll(idle_load(board), client)
    assert (board.message_count, board.fault_text) == (BURST_MESSAGES, text)


@pytest.mark.parametrize("name", OFFERS)
def test_offers_end_when_the_load_ends(name):
    offered = []
    publication = SimpleNamespace(offer=lambda message: offered.append(message) or 0 * -1)
    if name == "windtunnel":
        publication.offer = lambda message: offered.append(message) or -4
    answers = [True, True, False]
    OFFERS[name](publication, [b"1", b"2"], lambda: answers.pop(0))
    assert offered == [b"1"] * 3
    assert answers == []


def test_messages_differ_in_all_bytes_from_the_next_ones():
    first, second = messages_from(255, 32, 2)
    assert first[:8] == (255).to_bytes(8, "little")
    assert second[:8] == (256).to_bytes(8, "little")
    assert all(one != other for one, other in zip(first[8:], second[8:], strict=True))
    assert messages_from(0, 32) == [*messages_from(0, 32, 300), *messages_from(300, 32, 200)]


def test_all_loads_but_those_of_archives_have_another_client(tmp_path):
    given = [
        "--aeron-dir", str(tmp_path), "--board", str(tmp_path), "--channel", "c",
        "--stream-id", "1", "--message-length", "32", "--client", "pyaeron",
    ]  # fmt: skip
    assert parse(["poll", *given]).client == "pyaeron"
    assert parse(["poll", *given[:-2]]).client == "windtunnel"
    assert parse(["source", *given]).client == "pyaeron"
    of_archives = ["--control-channel", "c", "--message-count", "1"]
    assert parse(["archive", *given[:-2], *of_archives]).client == "windtunnel"
    with pytest.raises(SystemExit):
        parse(["archive", *given, *of_archives])
