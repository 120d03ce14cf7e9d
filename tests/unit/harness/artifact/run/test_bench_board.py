"""The board of a load: each side reads the other's values."""

import pytest

from windtunnel.harness.artifact.run.bench_board import (
    BOARD,
    Board,
    Command,
    Fault,
    State,
    latencies_file,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sink.board"


def test_a_new_board_is_blank(path):
    board = Board.create(path)
    assert path.stat().st_size == BOARD.itemsize
    assert (board.state, board.order, board.message_count) == (State.STARTING, Command.GO_ON, 0)
    assert board.fault is Fault.NONE
    assert board.fault_text == ""
    assert not board.is_stopped


def test_both_sides_see_what_the_other_wrote(path):
    bench, load = Board.create(path), Board(path)
    load.message_count, load.state = 1 << 40, State.CONNECTED
    bench.order = Command.STOP
    assert (bench.message_count, bench.state) == (1 << 40, State.CONNECTED)
    assert load.is_stopped
    assert load.order is Command.STOP


def test_the_first_fault_is_kept(path):
    bench, load = Board.create(path), Board(path)
    load.set_fault(Fault.SEQUENCE, expected=7, found=9)
    load.set_fault(Fault.LENGTH, expected=1, found=2)
    assert bench.fault is Fault.SEQUENCE
    assert bench.fault_text == "lost or reordered: expected message 7, found 9"


@pytest.mark.parametrize("fault", [each for each in Fault if each is not Fault.NONE])
def test_every_fault_has_a_text(path, fault):
    board = Board.create(path)
    board.set_fault(fault, expected=1, found=2)
    assert board.fault_text
    assert "{" not in board.fault_text


def test_round_trip_times_are_stored_next_to_the_board(path):
    assert latencies_file(path).parent == path.parent
    assert latencies_file(path) != path
