"""What all tests share: the parts that they are run in, their limits, property tests' patience."""

import faulthandler
import os
from collections.abc import Generator
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
SHARING = ("package", "property", "scenarios", "sim", "tidy", "unit")
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


LATE_S = 60
"""What a phase of a test may last beyond the test's limit, before the whole run ends."""
_TOLD_TO = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    # Nothing is captured yet.
    config.stash[_TOLD_TO] = os.dup(2)


def _watched(item: pytest.Item) -> Generator[None, object, object]:
    """End the run where pytest-timeout cannot end the test, and tell where every thread was.

    It raises in the main thread once: not within machine code, and no second time, for the
    teardown of a test that was late.
    """
    marker = item.get_closest_marker("timeout")
    limit_s = float(marker.args[0] if marker else item.config.getini("timeout") or 0)
    if limit_s:
        told_to = item.config.stash[_TOLD_TO]
        faulthandler.dump_traceback_later(limit_s + LATE_S, exit=True, file=told_to)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


pytest_runtest_setup = pytest.hookimpl(wrapper=True, tryfirst=True)(_watched)
pytest_runtest_call = pytest.hookimpl(wrapper=True, tryfirst=True)(_watched)
pytest_runtest_teardown = pytest.hookimpl(wrapper=True, tryfirst=True)(_watched)
