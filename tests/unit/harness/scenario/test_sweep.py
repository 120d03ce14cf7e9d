"""`sweep` and `--set`: the variants of a scenario."""

from pathlib import Path
from typing import Any

import pytest

from windtunnel.harness.scenario import sweep
from windtunnel.harness.scenario.loader import ScenarioError, load_scenario, load_variants

TEXT = """\
schema: windtunnel/1
name: mine
about: A service and its client.
seeds: {root: 1}
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: 5ms}}}
applications:
  - {id: service, on: b, command: [serve], env: {RATE: "1"}}
  - {id: client, on: a, command: [ask], expect: {ends_by_itself: true}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


def loaded(file: Path, text: str = "", settings: Any = None, whole: str = TEXT) -> Any:
    file.write_text(whole + text)
    return load_variants(file, settings=settings or {})


def impairments(each: Any, direction: str = "both", link: int = 0) -> Any:
    return each.scenario.network.all_links[link].impairments[direction]


def test_all_combinations_are_variants(file: Path) -> None:
    found = loaded(file, "sweep: {loss: [0.1%, 5%], applications.service.env.RATE: ['7', 10, x]}\n")
    assert [each.scenario.name for each in found] == [
        f"mine/loss-{loss}-rate-{rate}" for loss in ("0-1pct", "5pct") for rate in ("7", "10", "x")
    ]
    assert [each.scenario.applications[0].env["RATE"] for each in found] == ["7", "10", "x"] * 2
    assert [impairments(each).loss for each in found[::3]] == [1_000_000, 50_000_000]
    assert impairments(found[-1]).delay is not None
    assert found[1].settings == {"loss": "0.1%", "applications.service.env.RATE": "10"}
    assert {each.sweep for each in found} == {"mine"}
    assert load_scenario(file) == found[0].scenario


def test_each_variant_is_a_scenario_of_its_own(file: Path) -> None:
    _, second = loaded(file, "sweep: {loss: [1%, 2%]}\n")
    file.write_text(second.text)
    (again,) = load_variants(file)
    assert again.scenario == second.scenario
    assert (again.sweep, again.settings) == ("", {})


def test_a_value_can_be_chosen_or_set(file: Path) -> None:
    sweep = "sweep: {loss: [1%, 2%], delay: [1ms, 2ms]}\n"
    found = loaded(file, sweep, {"loss": "5%", "seeds.count": "3"})
    assert [each.scenario.name for each in found] == [
        f"mine/loss-5pct-delay-{delay}" for delay in ("1ms", "2ms")
    ]
    assert [each.scenario.seeds.count for each in found] == [3, 3]
    assert found[0].settings == {"seeds.count": "3", "loss": "5%", "delay": "1ms"}


def test_a_value_can_be_set_without_a_sweep(file: Path) -> None:
    (only,) = loaded(file, settings={"loss": "5%", "drivers.a.AERON_MTU_LENGTH": "4k"})
    assert only.scenario.name == "mine"
    assert only.scenario.drivers == {"a": {"AERON_MTU_LENGTH": "4k"}}
    assert (only.sweep, only.settings["loss"]) == ("", "5%")
    (plain,) = loaded(file)
    assert (plain.settings, plain.text) == ({}, "")


def test_an_impairment_applies_to_all_directions_of_all_links(file: Path) -> None:
    one = TEXT.replace("impairments: {both: {delay: 5ms}}", "impairments: {a->b: {delay: 5ms}}")
    (found,) = loaded(file, settings={"loss": "5%"}, whole=one)
    assert impairments(found, "a->b").loss == impairments(found, "b->a").loss
    assert impairments(found, "b->a").delay is None
    links = "links: [{between: [a, b]}, {between: [b, c]}]\n"
    several = TEXT.replace("[a, b]\n  link:", "[a, b, c]\n  link:")
    start, end = several.index("link: {"), several.index("applications")
    (found,) = loaded(file, settings={"loss": "5%"}, whole=several[:start] + links + several[end:])
    assert impairments(found, link=0).loss == impairments(found, link=1).loss


def test_long_and_equal_names_are_numbered(file: Path) -> None:
    long = ", ".join(each * 95 for each in "xy")
    found = loaded(file, f"sweep: {{applications.service.env.RATE: [{long}]}}\n")
    assert [each.scenario.name for each in found] == ["mine/1", "mine/2"]
    found = loaded(file, "sweep: {applications.service.env.RATE: [a b, a-b, '%', '-']}\n")
    names = [each.scenario.name for each in found]
    assert names == ["mine/rate-a-b", "mine/2", "mine/rate-pct", "mine/rate"]


@pytest.mark.parametrize(
    ("sweep", "text"),
    [
        ("3", "11:1: sweep: expected a table with 1 to 4 names"),
        ("{}", "11:1: sweep: expected a table"),
        ("{loss: 5%}", "11:9: sweep.loss: expected a list of 1 to 100 values"),
        ("{loss: [[5%]]}", "11:9: sweep.loss: expected a list"),
        ("{loss: [5%, 5%]}", "11:9: sweep.loss: a value occurs twice"),
        ("{loss: [5%, 500%]}", "11:20: network.link.impairments.both.loss"),
        ("{loose: [5%]}", "11:17: loose: unknown key"),
        ("{name: [x]}", "11:16: expected an impairment"),
        ("{applications.feed.env.X: ['1']}", "11:35: cannot set applications.feed.env.X: "),
        ("{seeds.root.x: [1]}", "11:24: cannot set seeds.root.x: seeds.root is not a table"),
        ("{a..b: [1]}", "11:16: expected an impairment"),
    ],
)
def test_wrong_sweeps_are_named_with_their_place(file: Path, sweep: str, text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        loaded(file, f"sweep: {sweep}\n")
    assert caught.value.errors[0].startswith(f"{file}:{text}"), caught.value.errors


def test_a_sweep_is_limited(file: Path) -> None:
    values = list(range(20))
    with pytest.raises(ScenarioError, match="expected at most 256 combinations of values, found"):
        loaded(file, f"sweep: {{seeds.root: {values}, budget.x: {values}}}\n")


def test_a_long_file_has_few_variants(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PARTS_MAX", 150)
    assert len(loaded(file, "sweep: {loss: [1%, 2%]}\n")) == 2
    text = "expected at most 150 values in all variants together, found"
    with pytest.raises(ScenarioError, match=text):
        loaded(file, "sweep: {loss: [1%, 2%, 3%, 4%]}\n")


def test_a_wrong_value_of_the_command_line_is_named(file: Path) -> None:
    for name, value, text in (
        ("loss", "500%", "--set loss:1:1: network.link.impairments.both.loss"),
        ("loss", "[", "--set loss:"),
        ("x y", "1", "--set x y:1:1: expected an impairment"),
    ):
        with pytest.raises(ScenarioError) as caught:
            loaded(file, settings={name: value})
        assert caught.value.errors[0].startswith(text), caught.value.errors
    # A file without an error is not named.
    without = TEXT.replace(", impairments: {both: {delay: 5ms}}", "")
    with pytest.raises(ScenarioError) as caught:
        loaded(file, settings={"loss": "5"}, whole=without)
    assert caught.value.errors[0].startswith("--set loss:1:1: network.link.impairments.both.loss:")
