"""Placeholders in commands and variables."""

from windtunnel.harness.scenario.applications.placeholder import fill_in
from windtunnel.harness.scenario.schema.channel import placeholders


def test_names_are_found_in_order():
    assert placeholders("${b}:1|${aeron.dir}|$b|${") == ["b", "aeron.dir"]


def test_only_known_names_are_replaced():
    assert fill_in("${b} ${aeron.dir} $b", {"b": "10.0.0.1"}) == "10.0.0.1 ${aeron.dir} $b"


def test_placeholders_in_a_value_are_not_substituted():
    assert fill_in("${a}", {"a": "${b}", "b": "x"}) == "${b}"
