"""Two loads and their boards, with synthetic processes: complete and incomplete ends."""

from pathlib import Path

import pytest

from windtunnel.harness.artifact.run.bench_board import Command, Fault, State
from windtunnel.harness.bench import loads
from windtunnel.harness.bench.loads import Loads, MeasurementError
from windtunnel.harness.bench.plan import CASES, Channels

BY_NAME = {case.name: case for case in CASES}


class FakeProcess:
    """A process that lives until it is killed, or has ended with `code`."""

    made: dict[str, "FakeProcess"] = {}  # noqa: RUF012  # emptied by the fixture

    def __init__(self, name, argv, *, env, cwd, log):
        self.name, self.argv, self.code, self.is_killed = name, argv, None, False
        self.made[name] = self

    def poll(self):
        return self.code

    def wait(self, timeout_s):
        return self.code

    def kill(self):
        self.is_killed = True

    def tail(self, lines=5):
        return "its last words"


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Create the loads of a case; all waits time out at once."""
    monkeypatch.setattr(loads, "LocalProcess", FakeProcess)
    monkeypatch.setattr(loads, "DRAIN_LIMIT_S", 0.01)
    monkeypatch.setattr(loads, "FLOW_LIMIT_S", 0.01)
    FakeProcess.made.clear()

    def make(name: str) -> Loads:
        return Loads(
            BY_NAME[name], tmp_path, aeron_dir=Path("/shm/aeron"),
            channels=Channels("there", BY_NAME[name].sinks * ("there",), "back"),
            idle="yield", limit_s=9.0, environment={},
        )  # fmt: skip

    return make


def ended(made: Loads, sent: int, received: int) -> None:
    first, second = made.boards.values()
    first.message_count, second.message_count = sent, received
    first.state = State.ENDED


def test_a_stream_is_counted_where_it_arrives(start):
    with start("udp-32") as made:
        ended(made, 7, 5)
        assert made.count == 5
        assert list(made.boards) == ["source", "sink"]


def test_a_message_for_several_sinks_is_counted_once_it_is_at_each_of_them(start):
    with start("udp-1344-mdc") as made:
        assert list(made.boards) == ["source", "sink-0", "sink-1", "sink-2"]
        source, *sinks = made.boards.values()
        source.message_count, source.state = 9, State.ENDED
        for sink, count in zip(sinks, (9, 7, 9), strict=True):
            sink.message_count = count
        assert made.count == 7
        with pytest.raises(MeasurementError, match="not all of the 9 messages sent arrived"):
            made.finish()
        sinks[1].message_count = 9
        made.finish()


def test_the_messages_of_all_sources_must_arrive(start):
    with start("ipc-32-sources") as made:
        assert list(made.boards) == ["source-0", "source-1", "source-2", "sink"]
        *sources, sink = made.boards.values()
        for source, count in zip(sources, (3, 4, 5), strict=True):
            source.message_count, source.state = count, State.ENDED
        sink.message_count = 11
        with pytest.raises(MeasurementError, match="not all of the 12 messages sent arrived"):
            made.finish()
        assert [each.order for each in sources] == 3 * [Command.STOP]
        sink.message_count = 12
        made.finish()
        argv = FakeProcess.made["source-2"].argv
        assert argv[argv.index("--source") + 1] == "2"
        assert argv[argv.index("--sources") + 1] == "3"


def test_an_echo_is_counted_where_it_comes_back(start):
    with start("rtt-ipc") as made:
        ended(made, 7, 8)
        assert made.count == 7


def test_each_load_gets_its_streams_and_its_board(start):
    with start("udp-32"):
        argv = FakeProcess.made["sink"].argv
    assert argv[2:4] == ["windtunnel.harness.workload.bench.bench_load", "sink"]
    assert argv[argv.index("--board") + 1].endswith("/sink.board")
    assert argv[argv.index("--message-length") + 1] == "32"


def test_every_load_gets_the_leave_command_and_is_killed(start):
    with start("udp-32") as made:
        boards = list(made.boards.values())
    assert [board.order for board in boards] == [Command.LEAVE, Command.LEAVE]
    assert all(process.is_killed for process in FakeProcess.made.values())


def test_loads_are_killed_when_the_measurement_breaks(start):
    with pytest.raises(KeyboardInterrupt), start("udp-32"):
        raise KeyboardInterrupt
    assert all(process.is_killed for process in FakeProcess.made.values())


@pytest.mark.parametrize(("case", "received"), [("udp-32", 7), ("rtt-udp", 7), ("rtt-udp", 8)])
def test_is_finished_when_everything_arrived(start, case, received):
    with start(case) as made:
        ended(made, 7, received)
        made.finish()
        assert next(iter(made.boards.values())).order is Command.STOP


@pytest.mark.parametrize(
    ("case", "received", "why"),
    [
        ("udp-32", 6, "messages sent arrived"),
        ("udp-32", 8, "received 8"),
        ("rtt-udp", 6, "messages sent arrived"),
        ("rtt-udp", 9, "received 9"),
    ],
)
def test_a_message_too_few_or_too_many_is_void(start, case, received, why):
    with start(case) as made:
        ended(made, 7, received)
        with pytest.raises(MeasurementError, match=why):
            made.finish()


@pytest.mark.parametrize("case", ["python-offer", "python-poll"])
def test_a_load_that_reads_its_own_messages_is_counted_and_finished_alone(start, case):
    with start(case) as made:
        (board,) = made.boards.values()
        board.message_count, board.state = 7, State.ENDED
        made.finish()
        assert (made.count, board.order) == (7, Command.STOP)


def test_a_sender_that_goes_on_is_void(start):
    with start("udp-32") as made, pytest.raises(MeasurementError, match="did not stop"):
        made.finish()


def test_streams_without_messages_are_void(start):
    with start("udp-32") as made, pytest.raises(MeasurementError, match="no message has arrived"):
        made.wait_until_flowing()


def test_a_fault_on_a_board_is_void(start):
    with start("udp-32") as made:
        made.boards["sink"].set_fault(Fault.SEQUENCE, expected=3, found=4)
        with pytest.raises(MeasurementError, match="sink: lost or reordered: expected message 3"):
            made.sleep(0)


def test_a_load_that_ended_is_void(start):
    with start("udp-32") as made:
        FakeProcess.made["source"].code = 1
        with pytest.raises(MeasurementError, match="source ended with exit code 1: its last words"):
            made.check()
