"""The fidelity that a test uses on a machine."""

import pytest

from windtunnel.harness.lab.fidelity import NotPossible, NotSupported, choose, obstacle_to


def nothing(fidelity: str) -> str:
    return ""


def no_namespaces(fidelity: str) -> str:
    return "no privileges" if fidelity == "netns" else ""


def test_namespaces_are_preferred_to_a_simulation_and_that_to_containers() -> None:
    assert choose(("sim", "compose", "netns"), None, nothing) == "netns"
    assert choose(("compose", "sim"), None, nothing) == "sim"
    assert choose(("compose",), None, nothing) == "compose"


def test_without_privileges_a_test_is_simulated_or_skipped_with_the_reason() -> None:
    assert choose(("netns", "sim"), None, no_namespaces) == "sim"
    with pytest.raises(NotSupported, match=r"^netns: no privileges$"):
        choose(("netns",), None, no_namespaces)


def test_a_requested_fidelity_is_not_replaced() -> None:
    assert choose(("netns", "sim"), "sim", nothing) == "sim"
    with pytest.raises(NotPossible, match="fidelity netns was requested, but no privileges"):
        choose(("netns", "sim"), "netns", no_namespaces)


def test_a_test_that_does_not_support_the_requested_fidelity_is_skipped() -> None:
    with pytest.raises(NotSupported, match="does not support fidelity compose, but netns, sim"):
        choose(("sim", "netns"), "compose", nothing)


def test_a_simulation_needs_nothing() -> None:
    assert obstacle_to("sim") == ""
