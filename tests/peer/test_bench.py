"""The benchmark with real Aeron: short measurements, of which only the validity is asserted."""

import math

import pytest

from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.rounds import run_rounds
from windtunnel.harness.bench.subject import c_version

CALLS = ("python-offer", "python-poll")

pytestmark = [
    pytest.mark.full,
    pytest.mark.peer,
    pytest.mark.skipif(c_version() is None, reason="pyaeron is not installed"),
]


@pytest.mark.timeout(500)
def test_the_real_client_works_with_both_drivers():
    settings = BenchSettings(
        rounds=1, seconds=1.0, warm_up_s=0.1, client="pyaeron",
        cases=("udp-32", "udp-1344-streams", "udp-1344-mdc", "ipc-32-sources", "rtt-udp"),
    )  # fmt: skip
    readings = run_rounds(settings, lambda *_: None, lambda _: None)
    assert [(each.driver, each.case) for each in readings] == [
        (driver, case) for driver in ("ours", "c") for case in settings.cases
    ]
    for reading in readings:
        assert "compiled" in reading.void or not reading.void, reading
        assert "compiled" in reading.void or len(reading.values) > 0


@pytest.mark.timeout(500)
def test_both_drivers_carry_every_message_in_order():
    settings = BenchSettings(
        rounds=1, seconds=2.0, warm_up_s=0.1, cases=("startup", "udp-32", "rtt-ipc", *CALLS)
    )
    readings = run_rounds(settings, lambda *_: None, lambda _: None)
    assert [(each.driver, each.case) for each in readings] == [
        (driver, case) for driver in ("ours", "c") for case in settings.cases
    ]
    for reading in readings:
        # Other tests may compile kernels at the same time, which only invalidates a measurement.
        assert "compiled" in reading.void or not reading.void, reading
        assert all(math.isfinite(value) and value >= 0 for value in reading.values.values())
