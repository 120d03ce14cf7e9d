"""Trials with the real C driver lack feedback with a wrong stream id, and are otherwise equal."""

from windtunnel.harness.scenario.resolved.fault_case import FaultCase, ForgedCase
from windtunnel.harness.simulator.swarm.choice import choose
from windtunnel.harness.simulator.swarm.known_defects import without_known_defects
from windtunnel.harness.simulator.swarm.trial_drivers import PYAERON


def fault(**fields):
    return FaultCase(id="f", links=("a->b",), share_ppb=1, **fields)


def test_feedback_with_a_damaged_stream_id_is_left_out():
    mixed = fault(action="corrupt", field="stream-id", bits=1, frame_types=("DATA", "SM", "NAK"))
    assert without_known_defects(mixed) == mixed.model_copy(update={"frame_types": ("DATA",)})
    only = fault(action="corrupt", field="stream-id", bits=1, frame_types=("SM",))
    assert without_known_defects(only) is None
    session = fault(action="corrupt", field="session-id", bits=1, frame_types=("SM",))
    assert without_known_defects(session) == session


def test_forged_feedback_of_another_stream_is_left_out():
    other = ForgedCase(type="NAK", is_same_stream=False, length=1_408)
    allowed = (
        ForgedCase(type="NAK", is_same_session=False, length=1_408),
        ForgedCase(type="DATA", is_same_stream=False, payload_length=100),
    )
    mixed = fault(action="inject", frame_types=("SM",), forged=(other, *allowed))
    assert without_known_defects(mixed) == mixed.model_copy(update={"forged": allowed})
    only = fault(action="inject", frame_types=("SM",), forged=(other,))
    assert without_known_defects(only) is None


def test_everything_else_of_a_trial_is_as_with_other_drivers():
    changed = 0
    for seed in range(300):
        ours, real = choose(seed), choose(seed, drivers=PYAERON)
        changed += ours.case.faults != real.case.faults
        assert real.case.model_copy(update={"faults": ours.case.faults}) == ours.case
        assert (real.delay_ns, real.bursts, real.readers) == (
            ours.delay_ns, ours.bursts, ours.readers,
        )  # fmt: skip
    assert 0 < changed < 60
