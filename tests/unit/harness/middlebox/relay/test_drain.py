"""The relay waits as long as the scenario can delay frames, but not forever."""

import numpy as np
import pytest

from tests.unit.harness.middlebox.synthetic_case import case, fault
from windtunnel.harness.middlebox import __main__ as process
from windtunnel.harness.middlebox.relay import relay as loop
from windtunnel.harness.middlebox.relay.drain import DRAIN_NS_MAX, DRAIN_NS_MIN, drain_ns
from windtunnel.harness.orchestrate.run.run_processes import STOP_TIMEOUT_S
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase

S = 1_000_000_000
PACKET = 1500


def limit_of(*faults, backend="relay", **impairments):
    made = case(*faults)
    if impairments:
        made = made.model_copy(
            update={
                "impairments": (ImpairmentCase(link="a->b", **impairments),),
                "backend": backend,
            }
        )
    return drain_ns(made, PACKET)


@pytest.mark.parametrize(
    ("hold_s", "impairments", "stay_s"),
    [
        (10, {}, 10),
        (0, {"delay_ns": 10 * S, "jitter_ns": 3 * S, "distribution": "normal"}, 22),
        (10, {"delay_ns": 10 * S}, 20),
        (10, {"delay_ns": 10 * S, "jitter_ns": 3 * S}, 32),
        (0, {"rate_bits_per_s": 1_000_000, "queue_packets": 2000}, 24),
        (5, {"delay_ns": S, "rate_bits_per_s": 1_000_000, "queue_packets": 2000}, 30),
    ],
)
def test_waits_longer_than_any_configured_delay(hold_s, impairments, stay_s):
    holds = [fault("hold", hold_ns=hold_s * S)] if hold_s else []
    assert stay_s * S < limit_of(*holds, **impairments) <= max((stay_s + 5) * S, DRAIN_NS_MIN)


def test_a_case_without_delays_has_the_minimum():
    assert limit_of() == limit_of(fault("hold", hold_ns=S)) == DRAIN_NS_MIN


def test_impairments_of_netem_are_not_waited_for():
    assert limit_of(backend="netem", delay_ns=30 * S) == DRAIN_NS_MIN


def test_the_drain_limit_is_below_the_stop_timeout():
    endless = limit_of(rate_bits_per_s=1000, queue_packets=10_000)
    assert endless == DRAIN_NS_MAX < STOP_TIMEOUT_S * S


def test_the_relay_waits_as_long_as_the_case_requires(monkeypatch):
    """An iteration of the relay takes half a second here; it is empty after a number of
    iterations."""

    class Clock:
        now_ns = 0
        turns_left = 0

        def run(self, *_):
            self.now_ns += S // 2
            self.turns_left -= 1
            return loop.TIME_OVER if self.turns_left else loop.DRAINED

        def time_ns(self):
            return self.now_ns

        def drain(self, *_):
            pass

        def update(self, *_):
            return []

        def drain_ns(self, packet_length_max):
            return packet_length_max * S

        is_requested = True

    clock = Clock()
    monkeypatch.setattr(process, "run", clock.run)
    monkeypatch.setattr(process, "time", clock)
    clock.turns_left = 43
    nothing = np.zeros(0)
    assert process._turn_until_stopped(nothing, nothing, clock, clock, clock, 22) == ""
    clock.turns_left = 50
    assert "drain timeout expired" in process._turn_until_stopped(
        nothing, nothing, clock, clock, clock, 22
    )
