"""docs/judge.md names existing checks only, and all figures and checks of counters."""

import re
from pathlib import Path

from windtunnel.harness.verdict.automatic import AUTOMATIC
from windtunnel.harness.verdict.checks.envelope.figures import UNITS
from windtunnel.harness.verdict.registry import CHECKS

PAGE = (Path(__file__).resolve().parents[2] / "docs/judge.md").read_text(encoding="utf-8")


def test_each_check_of_the_page_exists():
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE))
    assert len(named) > 20
    assert named <= {*CHECKS, *AUTOMATIC, *UNITS}


def test_each_figure_of_an_envelope_is_on_the_page():
    assert UNITS.keys() <= set(re.findall(r"`(\w+)`", PAGE))


def test_each_check_of_counters_is_on_the_page():
    of_counters = {name for name in CHECKS if name.endswith(("_counted", "_agree", "_agrees"))}
    assert of_counters <= set(re.findall(r"`(\w+)`", PAGE))
