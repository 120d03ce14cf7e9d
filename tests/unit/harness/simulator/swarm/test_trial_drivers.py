"""The hosts of a trial that have the real C driver."""

from dataclasses import replace
from pathlib import Path

import pytest

from windtunnel.harness.simulator.swarm.choice import choose
from windtunnel.harness.simulator.swarm.trial_drivers import (
    AERON_BATCHES,
    library_of,
    real_hosts,
)


@pytest.mark.parametrize(
    ("drivers", "hosts"),
    [("ours", ()), ("pyaeron", ("a", "b")), ("aeronmd-lib:/x/lib.so", ("a", "b"))],
)
def test_both_hosts_have_the_same_driver(drivers, hosts):
    assert {real_hosts(drivers, seed) for seed in range(20)} == {hosts}


def test_a_seed_chooses_the_host_of_a_mixed_trial():
    found = [real_hosts("mixed", seed) for seed in range(20)]
    assert set(found) == {("a",), ("b",)}
    assert found == [real_hosts("mixed", seed) for seed in range(20)]


def test_only_an_own_build_has_a_path():
    assert library_of("aeronmd-lib:/x/lib.so") == Path("/x/lib.so")
    assert library_of("pyaeron") is library_of("mixed") is None


def test_the_drivers_change_nothing_else():
    real, own = choose(7, drivers="pyaeron"), choose(7)
    assert real.case == own.case
    assert real.text == f"a has a real driver b has a real driver {own.text}"


def test_a_compared_trial_has_the_batches_of_the_c_driver_and_is_otherwise_the_same():
    compared, own = choose(7, is_compared=True), choose(7)
    assert compared == replace(own, settings=AERON_BATCHES)
    assert own.settings == choose(7, drivers="mixed").settings == {}
