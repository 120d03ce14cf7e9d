"""The bound of a stream's log holds for every plan, and is tight."""

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.artifact.run.plan import plan
from windtunnel.harness.dissect.driver_files.expected_log import expected_log
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.validation.stream_extent import extent_of
from windtunnel.harness.scenario.validation.traffic_validation import longest_message


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("term_length", [1 << 16, 1 << 20])
@pytest.mark.parametrize("mtu", [64, 1408, 8192])
@pytest.mark.parametrize(
    ("total", "shortest", "longest"),
    [(1, 1, 1), (40_000, 1, 1), (1 << 20, 1, 8192), (1 << 21, 8192, 8192), (100_000, 33, 64)],
)
def test_no_log_is_longer(
    seed: int, term_length: int, mtu: int, total: int, shortest: int, longest: int
) -> None:
    text = GOOD.replace("term-length=64k", f"term-length={term_length}|mtu={mtu}")
    content = f"bytes: {total}B, message: {{from: {shortest}B, to: {longest}B}}"
    text = text.replace("bytes: 1MiB, message: {from: 1B, to: max}", content)
    text = text.partition("faults:")[0] + "expect: [delivered_once]\n"
    scenario = parse_scenario(text, "made.yaml")
    extent = extent_of(scenario, scenario.traffic[0])
    lengths = plan(seed, "one", total, longest=longest, shortest=shortest).lengths
    end = expected_log(lengths, mtu, term_length).end_position
    assert extent is not None
    assert end <= extent.end_max <= 2 * end + 2 * longest_message(term_length) + (1 << 16)
