"""The same random commands to the C driver and ours have the same effects.

Clients add and remove publications, subscriptions, destinations and counters with random channels,
publish, consume and reject. After each operation, both drivers must come to the same responses,
counters, files and log metadata, however long each of them takes. What differs on purpose, or
because of a known defect of the C driver, is left out where it is drawn or compared, with a reason.
"""

import time
from random import Random

import pytest

from tests.peer.random_commands.operations import Operations
from tests.peer.random_commands.processes import DriverProcess
from tests.peer.random_commands.state import differences, state

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

OPERATIONS = 40
AGREEMENT_TIMEOUT_S = 60
POLL_S = 0.03
LAST = 15
"""Operations that are shown if the drivers differ."""


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("seed", range(1, 31))
def test_random_commands(tmp_path, seed):
    random = Random(seed)
    settings = {
        name: "true" if name == "AERON_SPIES_SIMULATE_CONNECTION" else "false"
        for name in (
            *("AERON_SPIES_SIMULATE_CONNECTION", "AERON_RELIABLE_STREAM"),
            *("AERON_TETHER_SUBSCRIPTIONS", "AERON_REJOIN_STREAM"),
        )
        if random.random() < 0.25
    }
    drivers: list[DriverProcess] = []
    try:
        for kind in ("real", "ours"):
            drivers.append(DriverProcess(kind, tmp_path, settings))
            drivers[-1].connect()
        operations = Operations(random, drivers)
        for _ in range(OPERATIONS):
            operations.next()
            agree(drivers, operations)
    finally:
        codes = [driver.close() for driver in drivers]
    assert codes == [0, 0]


def agree(drivers, operations):
    """Wait until the drivers have responded, have the same state and the same responses, and
    nothing is ending.
    """
    end_s = time.monotonic() + AGREEMENT_TIMEOUT_S
    while True:
        time.sleep(POLL_S)  # for the effects of the last operation
        for driver in drivers:
            assert driver.process.poll() is None, f"{driver.kind} ended: {operations.done[-LAST:]}"
            driver.keep_alive(operations.clients)
        states = [state(driver) for driver in drivers]
        ending = [operations.is_ending(index) for index in range(len(drivers))]
        found = differences(drivers, states)
        if operations.is_answered and not found and not any(ending):
            return
        if time.monotonic() > end_s:
            done = "\n".join(operations.done[-LAST:])
            pytest.fail(f"the drivers differ after:\n{done}\n" + "\n".join(found))
