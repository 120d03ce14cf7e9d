"""Each scenario that can be simulated has an envelope, of the scenario as it is now."""

import pytest

from windtunnel.harness.orchestrate.fidelity import SIM
from windtunnel.harness.orchestrate.scenario_file import supporting
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.verdict.checks.envelope.bands import (
    FILE,
    RUNS_MIN,
    case_digest,
    envelopes,
    is_steady,
)
from windtunnel.harness.verdict.checks.envelope.figures import TAILS, UNITS

REMEASURE = "measure it again: windtunnel envelope {} (see CONTRIBUTING.md)"


def case_of(file, seed):
    scenario = load_scenario(file)
    addresses = {each: f"10.64.0.{3 + 8 * at}" for at, each in enumerate(scenario.network.joined)}
    payload = Payload(path="payload.bin", sha256="0" * 64, length_bytes=1 << 20)
    return resolve(scenario, seed=seed, fidelity="sim", addresses=addresses, payload=payload)


@pytest.mark.parametrize(
    "file", supporting(SIM), ids=lambda file: f"{file.parent.name}/{file.stem}"
)
def test_the_envelope_of_a_scenario_is_up_to_date(file):
    case = case_of(file, seed=1)
    assert case_digest(case_of(file, seed=987_654)) == case_digest(case)
    found = envelopes(FILE).get(case.name)
    if not is_steady(case):
        assert found is None
        return
    assert found is not None, REMEASURE.format(case.name)
    assert found.digest == case_digest(case), REMEASURE.format(case.name)


def test_each_distribution_is_ordered_and_has_a_known_figure():
    for envelope in envelopes(FILE).values():
        for figures in envelope.streams.values():
            assert figures.keys() <= UNITS.keys()
            for drivers in figures.values():
                assert drivers.keys() <= set(envelope.drivers)
                for each in drivers.values():
                    assert 0 < each.lowest <= each.median <= each.highest
                    assert 1 <= each.runs <= envelope.seeds


def test_most_figures_of_the_built_in_driver_have_a_narrow_band():
    bands = [
        (name, band)
        for envelope in envelopes(FILE).values()
        for stream in envelope.streams
        for name, band in envelope.bands(stream, {"ours"}).items()
        if name not in TAILS
    ]
    assert len(bands) > 150
    assert all(band.runs >= RUNS_MIN for _, band in bands)
    narrow = [band for _, band in bands if band.ratio < 1.5]
    assert len(narrow) > 0.7 * len(bands)
