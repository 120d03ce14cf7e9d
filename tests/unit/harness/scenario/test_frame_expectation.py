"""The arguments of `expect_frames`, and how they fit the scenario."""

import pytest

from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.scenario_file import load_runnable
from windtunnel.harness.scenario.frame_expectation import (
    COUNT_MAX,
    REQUIRED,
    FrameExpectation,
    parse_expectation,
)
from windtunnel.harness.scenario.loader import ScenarioError

SCENARIO = """
schema: windtunnel/1
name: timed
about: A NAK is sent in time.
seeds: {root: 1}
fidelity: [sim]
network:
  hosts: [a, b, c]
  links: [{between: [a, b]}, {between: [a, c]}]
traffic:
  - id: feed
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 64KiB, message: 1000B}
faults:
  - {id: drop-first, where: {link: a->b}, what: {type: DATA}, attempt: 1, act: {drop: 2%}}
expect:
  - delivered_once
"""
GOOD = {"after": "drop-first", "then": "NAK", "from": "b", "to": "a", "within": "60ms"}


def load(tmp_path, *several):
    file = tmp_path / "timed.yaml"
    entries = [", ".join(f"{key}: {value}" for key, value in each.items()) for each in several]
    lines = "".join(f"  - expect_frames: {{{each}}}\n" for each in entries)
    file.write_text(SCENARIO.lstrip() + lines)
    return load_runnable(file)


def test_arguments_are_read():
    assert parse_expectation(GOOD) == FrameExpectation("drop-first", "NAK", "b", "a", 60_000_000, 1)
    assert parse_expectation({**GOOD, "count": 0}).count == 0
    assert parse_expectation(GOOD).about == "NAK b->a after drop-first"


def test_a_scenario_may_have_several(tmp_path):
    again = {"then": "DATA", "from": "a", "to": "b"}
    found = load(tmp_path, GOOD, {**GOOD, **again}, {**GOOD, "applies": "[ours]"})
    assert [each.name for each in found.expect] == ["delivered_once", *["expect_frames"] * 3]


@pytest.mark.parametrize("name", REQUIRED)
def test_all_but_the_count_are_required(tmp_path, name):
    arguments = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(ScenarioError, match=f"{name} is missing"):
        load(tmp_path, arguments)


@pytest.mark.parametrize(
    ("changed", "where", "text"),
    [
        (
            {"after": "drop-last"},
            "after",
            "the id of a fault rule, found 'drop-last': did you mean",
        ),
        ({"then": "FOO"}, "then", "expected one of NAK, DATA, SM, SETUP, ERR"),
        ({"then": "[NAK]"}, "then", "expected a name"),
        ({"from": "d"}, "from", "expected a host, found 'd': the hosts are a, b, c"),
        ({"to": "d"}, "to", "expected a host"),
        ({"to": "c"}, "after", "for the link between b and c, found one for a->b"),
        ({"from": "c"}, "after", "for the link between a and c, found one for a->b"),
        ({"within": "60"}, "within", "expected a duration with a unit"),
        ({"within": "0ms"}, "within", "expected a duration above 0"),
        ({"count": "-1"}, "count", "expected a number of frames from 0 to 1000000, found -1"),
        ({"count": str(COUNT_MAX + 1)}, "count", "expected a number of frames"),
        ({"count": "some"}, "count", "expected a number of frames"),
        ({"withing": "1ms"}, "withing", "an argument of this check, found 'withing': did you mean"),
    ],
)
def test_wrong_arguments_are_located(tmp_path, changed, where, text):
    with pytest.raises(ScenarioError) as raised:
        load(tmp_path, {**GOOD, **changed})
    (error,) = raised.value.errors
    assert f"expect[1].expect_frames.{where}: " in error
    assert text in error
    assert "timed.yaml:22:" in error


def test_they_are_explained(tmp_path, capsys):
    load(tmp_path, GOOD, {**GOOD, "then": "SM"})
    file = tmp_path / "timed.yaml"
    file.write_text(file.read_text() + "checks: [own.py]\n")
    assert main(["explain", str(file)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "checks    delivered_once, expect_frames (NAK b->a after drop-first), expect_frames "
        "(SM b->a after drop-first), those in own.py (only with `run --allow-commands`)"
    )


def test_the_same_expectation_occurs_once(tmp_path):
    with pytest.raises(ScenarioError, match=r"expect\[2\]: .* occurs twice"):
        load(tmp_path, GOOD, GOOD)


def test_without_arguments_all_are_missing(tmp_path):
    file = tmp_path / "timed.yaml"
    file.write_text(SCENARIO.lstrip() + "  - expect_frames\n")
    with pytest.raises(ScenarioError, match="after is missing"):
        load_runnable(file)
