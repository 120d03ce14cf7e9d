"""What all tests share: the parts that they are run in, and property tests with time enough."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "windtunnel",
    deadline=None,
    database=None,
    # Some have to compile a kernel first.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("windtunnel")

HERE = Path(__file__).parent
SHARING = ("property", "scenarios", "sim", "tidy", "unit")
"""Folders of tests that may run beside each other, but for those with these marks."""
ALONE = ("browser", "docker", "netns", "peer", "uml")


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "only tests that may share the machine with others, or only those that want it"
    parser.addoption("--part", choices=("sharing", "alone"), help=help_text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = config.getoption("part")
    if part is None:
        return
    kept, left = [], []
    for item in items:
        shares = item.path.relative_to(HERE).parts[0] in SHARING
        shares = shares and not any(item.get_closest_marker(mark) for mark in ALONE)
        (kept if shares == (part == "sharing") else left).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)
