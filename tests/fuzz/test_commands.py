"""A short storm of commands; `python -m tests.fuzz` runs the full one."""

import numpy as np
import pytest

from tests.fuzz import commands
from windtunnel.driver.cnc import broadcast
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.harness.fuzz.commands import Hostile

COUNT = 300 if JIT_DISABLED else 12_000


def test_spoilt_commands_harm_nobody_else_and_leave_nothing(tmp_path):
    assert commands.storm(tmp_path, COUNT, 20262) >= COUNT


def test_an_answer_to_nobody_is_seen():
    buffer = np.zeros((1 << 16) + broadcast.TRAILER_LENGTH, np.uint8)
    listener = commands.Listener(buffer, {77})
    for correlation_id in (77, commands.HEALTHY_FROM + 5, 78):
        said = np.frombuffer(OperationSuccess(correlation_id).encode(), np.uint8).copy()
        broadcast.transmit(buffer, OperationSuccess.TYPE_ID, said, 0, said.size)
    with pytest.raises(AssertionError, match=r"nobody asked for .*78"):
        listener.listen()
    assert listener.heard == 3


def test_an_answer_that_tells_of_a_defect_is_seen():
    buffer = np.zeros((1 << 16) + broadcast.TRAILER_LENGTH, np.uint8)
    listener = commands.Listener(buffer, {77})
    for text in ("channel 'ValueError: x'", "AssertionError: "):
        said = np.frombuffer(ErrorResponse(77, 0, text).encode(), np.uint8).copy()
        broadcast.transmit(buffer, ErrorResponse.TYPE_ID, said, 0, said.size)
    with pytest.raises(AssertionError, match=r"a defect of the driver: .*AssertionError"):
        listener.listen()
    assert listener.heard == 2


def test_the_same_seed_says_the_same():
    said = []
    for _ in range(2):
        hostile = Hostile(9, "10.0.0.1")
        said.append([(kind, content.tobytes()) for kind, content in
                     (hostile.command() for _ in range(200))])  # fmt: skip
    assert said[0] == said[1]
    assert len({kind for kind, _ in said[0]}) >= 18
