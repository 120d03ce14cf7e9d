"""How long the conductor may sleep because of an image."""

import pytest

from tests.sim.stream_pair import MS
from tests.unit.driver.media_driver.receiving_rig import ReceivingRig, data
from windtunnel.driver.media_driver.conductor.conductor_state import NEVER_NS

LENGTH = 256


@pytest.fixture
def rig(tmp_path):
    rig = ReceivingRig(tmp_path)
    rig.start()
    rig.state.images[0].nak_delay_ns, rig.state.images[0].nak_retry_ns = 2 * MS, 3 * MS
    return rig


def test_a_conductor_sleeps_no_longer_than_until_the_next_nak_is_due(rig):
    conductor = rig.pair.conductor.agent[0]
    assert conductor.nak_due_ns == NEVER_NS
    rig.deliver(data(0, LENGTH - 32), data(2 * LENGTH, LENGTH - 32))
    rig.turn()
    for after_ns, due_in_ns in ((0, 2 * MS), (1 * MS, 1 * MS), (1 * MS, 3 * MS), (2 * MS, 1 * MS)):
        rig.turn(after_ns)
        assert conductor.nak_due_ns - rig.now_ns == due_in_ns


def test_a_conductor_without_a_gap_waits_for_no_nak(rig):
    rig.deliver(data(0, LENGTH - 32), data(2 * LENGTH, LENGTH - 32))
    rig.turn()
    rig.deliver(data(LENGTH, LENGTH - 32))
    rig.turn()
    rig.turn()
    assert rig.positions[0] == 3 * LENGTH
    assert rig.pair.conductor.agent[0].nak_due_ns == NEVER_NS
