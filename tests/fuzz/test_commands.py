"""A short attack with commands; `python -m tests.fuzz` runs the full one."""

import numpy as np
import pytest

from tests.fuzz import commands
from windtunnel.driver.cnc import broadcast
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.harness.fuzz import mutation
from windtunnel.harness.fuzz.commands import REGULAR_IDS_FROM, Hostile

COUNT = 300 if JIT_DISABLED else 12_000


@pytest.mark.parametrize("count", [COUNT // 4, pytest.param(COUNT, marks=pytest.mark.full)])
def test_mutated_commands_harm_no_other_client_and_leave_no_resources(tmp_path, count):
    assert commands.attack(tmp_path, count, 20262) >= count


def test_a_response_without_a_request_is_found():
    buffer = np.zeros((1 << 16) + broadcast.TRAILER_LENGTH, np.uint8)
    listener = commands.Listener(buffer, {77})
    for correlation_id in (77, REGULAR_IDS_FROM + 5, 78):
        content = np.frombuffer(OperationSuccess(correlation_id).encode(), np.uint8).copy()
        broadcast.transmit(buffer, OperationSuccess.TYPE_ID, content, 0, content.size)
    with pytest.raises(AssertionError, match=r"a response without a request: .*78"):
        listener.listen()
    assert listener.received == 3


def test_a_response_that_shows_a_defect_is_found():
    buffer = np.zeros((1 << 16) + broadcast.TRAILER_LENGTH, np.uint8)
    listener = commands.Listener(buffer, {77})
    for text in ("channel 'ValueError: x'", "AssertionError: "):
        content = np.frombuffer(ErrorResponse(77, 0, text).encode(), np.uint8).copy()
        broadcast.transmit(buffer, ErrorResponse.TYPE_ID, content, 0, content.size)
    with pytest.raises(AssertionError, match=r"a defect of the driver: .*AssertionError"):
        listener.listen()
    assert listener.received == 2


def test_the_same_seed_sends_the_same_commands():
    sent = []
    for _ in range(2):
        hostile = Hostile(9, "10.0.0.1")
        sent.append([(kind, content.tobytes()) for kind, content in
                     (hostile.command() for _ in range(200))])  # fmt: skip
    assert sent[0] == sent[1]
    assert len({kind for kind, _ in sent[0]}) >= 18


def differing_bytes(one: int, other: int) -> int:
    return sum(((one ^ other) >> 8 * at) & 0xFF != 0 for at in range(4))


def test_three_mutations_of_a_command_do_not_produce_the_id_of_a_regular_client():
    """With regular ids from 2^40 on, two mutations produced one: 7 is a value that a mutation
    writes, and another one set a bit of another byte. The command then removed a subscription of
    the streams that must stay intact.
    """
    upper = REGULAR_IDS_FROM >> 32
    written = [*mutation.EDGES, *(edge >> 32 for edge in mutation.WIDE_EDGES)]
    assert min(differing_bytes(upper, value & 0xFFFF_FFFF) for value in written) >= 3
    # Two mutations remain after a value has been written, and three if the upper half was 0. A
    # difference that a mutation adds leaves the upper half as it is.
    assert differing_bytes(upper, 0) == 4
    assert max(abs(delta) for delta in mutation.DELTAS) < 1 << 31
