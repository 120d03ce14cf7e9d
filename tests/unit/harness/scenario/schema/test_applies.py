"""The subjects to which a check applies: names, versions, and unknown versions."""

import pytest

from tests.unit.harness.orchestrate.labs.test_space import MAIN
from windtunnel.harness.scenario.loader import ScenarioError, load_scenario
from windtunnel.harness.scenario.schema.applies import applies_to, check_applies


@pytest.mark.parametrize(
    ("entries", "name", "version", "bound"),
    [
        (["ours"], "ours", "", True),
        (["ours"], "aeron-c", "1.53.0", False),
        (["aeron-c>=1.50"], "aeron-c", "1.50.0", True),
        (["aeron-c>=1.50"], "aeron-c", "1.50", True),
        (["aeron-c>=1.50.1"], "aeron-c", "1.50", False),
        (["aeron-c>=1.50"], "aeron-c", "1.49.9", False),
        (["aeron-c>=1.50"], "aeron-c", "1.153.0-SNAPSHOT", True),
        (["aeron-c<1.9"], "aeron-c", "1.50", False),
        (["aeron-java>=1.50,<1.53"], "aeron-java", "1.52.9", True),
        (["aeron-java>=1.50,<1.53"], "aeron-java", "1.53", False),
        (["aeron-c<1.40", "aeron-c>=1.50"], "aeron-c", "1.45", False),
        (["aeron-c<1.40", "aeron-c>=1.50"], "aeron-c", "1.30", True),
        (["aeron-c>=1.50"], "aeron-c", "", None),
        (["aeron-c>=1.50", "aeron-c"], "aeron-c", "", True),
        (["aeron-c>=1.50"], "ours", "", False),
    ],
)
def test_a_check_applies_by_name_and_range_of_versions(entries, name, version, bound):
    check_applies(entries)
    assert applies_to(entries, name, version) is bound


@pytest.mark.parametrize(
    "entries",
    [
        [],
        "ours",
        None,
        [7],
        [""],
        ["Ours"],
        ["aeron-c>1.50"],
        ["aeron-c>="],
        ["a-c>=1.5,"],
        ["x=1"],
    ],
)
def test_an_invalid_list_of_subjects_is_refused(entries):
    with pytest.raises(ValueError, match="expected a"):
        check_applies(entries)


def test_a_scenario_with_an_invalid_subject_is_refused_with_its_place(tmp_path):
    text = MAIN.read_text().replace("loss/reliable-2pct", "main")
    file = tmp_path / "main.yaml"
    file.write_text(text.replace("  - delivered_once\n", "  - delivered_once: {applies: [c>1]}\n"))
    with pytest.raises(ScenarioError, match=r"main.yaml:\d+:\d+: expect\[0\].*found 'c>1'"):
        load_scenario(file)
