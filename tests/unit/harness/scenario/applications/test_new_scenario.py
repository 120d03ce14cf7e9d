"""The text of a new scenario: it is valid, also with the keys that it has as comments."""

import re
from pathlib import Path

import pytest

from windtunnel.harness.scenario.applications.new_scenario import NEXT, NewProgram, NewScenario
from windtunnel.harness.scenario.loader import ScenarioError, parse_scenario

READER = NewProgram("b", ["python", "reader.py", "--file", "../reader.py"])
FEED = NewProgram("a", ["java", "-jar", "/opt/Price Feed.jar"])
IMPAIRMENTS = {"loss": "2%", "reorder": {"share": "1%", "gap": 5}, "delay": "5ms"}


def made(*programs: NewProgram, **changed: object) -> NewScenario:
    values: dict[str, object] = {"name": "prices", "impairments": IMPAIRMENTS, **changed}
    return NewScenario(programs=programs or (READER, FEED), **values)  # type: ignore[arg-type]


def test_it_starts_the_programs_in_their_order_and_ends_after_a_time(tmp_path: Path) -> None:
    (tmp_path / "reader.py").touch()
    scenario = parse_scenario(made().text(tmp_path), "prices.yaml")
    assert scenario.network.hosts == ("a", "b")
    assert [each.id for each in scenario.applications] == ["reader", "java", "end-after-20s"]
    assert [each.host for each in scenario.applications] == ["b", "a", "a"]
    words = ("python", "${scenario.dir}/reader.py", "--file", "../reader.py")
    assert scenario.applications[0].command == words
    assert scenario.applications[1].command == tuple(FEED.words)
    assert [each.expect.ends_by_itself for each in scenario.applications] == [False, False, True]


def test_it_contains_the_expectations_of_the_programs(tmp_path: Path) -> None:
    text = made(
        until=["b"], ready={"a": 'says "go"'}, never={"b": "late: "}, variables={"ON": "${b}"}
    ).text(tmp_path)
    reader, feed = parse_scenario(text, "prices.yaml").applications
    assert reader.expect.ends_by_itself
    assert not feed.expect.ends_by_itself
    assert (reader.expect.log_never, feed.expect.log_never) == (("late: ",), ())
    assert reader.ready is None
    assert feed.ready is not None
    assert feed.ready.log == 'says "go"'
    assert reader.env == feed.env == {"ON": "${b}"}


@pytest.mark.parametrize("until", [(), ("a",), ("a", "b")])
@pytest.mark.parametrize("never", [{}, {"a": "x"}])
def test_its_comments_are_valid_keys(
    until: tuple[str, ...], never: dict[str, str], tmp_path: Path
) -> None:
    text = made(until=until, never=never).text(tmp_path)
    head, mark, rest = text.partition(NEXT)
    assert mark
    lines = [line.replace("# ", "", 1) for line in rest.splitlines()]
    keys = head.replace("    # ready:", "    ready:").replace("    # expect:", "    expect:")
    keys = re.sub(r"\}   # also: (.*)", r", \1}", keys)
    found = parse_scenario("\n".join([keys, *lines]), "prices.yaml")
    assert len(found.events) == 2
    assert found.applications[0].ready is not None


def test_programs_with_equal_names_are_numbered(tmp_path: Path) -> None:
    programs = [NewProgram(host, ["./B-feed.sh"]) for host in "abb"]
    text = made(*programs, NewProgram("a", ["???"])).text(tmp_path)
    ids = [each.id for each in parse_scenario(text, "prices.yaml").applications]
    assert ids == ["b-feed", "b-feed-2", "b-feed-3", "program", "end-after-20s"]


def test_each_pair_of_hosts_has_a_link(tmp_path: Path) -> None:
    programs = [NewProgram(host, ["./feed"]) for host in "cab"]
    found = parse_scenario(made(*programs).text(tmp_path), "prices.yaml")
    assert [each.between for each in found.network.links] == [("a", "b"), ("a", "c"), ("b", "c")]
    alone = parse_scenario(made(impairments={}).text(tmp_path), "prices.yaml")
    assert alone.network.link is not None
    assert not alone.network.link.impairments


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"impairments": {"loss": "200%"}}, "found '200%'"),
        ({"name": "Prices"}, "found 'Prices'"),
        ({"variables": {"A B": "x"}}, "A B"),
        ({"ready": {"a": "two\nlines"}}, "ready"),
    ],
)
def test_a_value_that_no_scenario_can_have_is_refused(
    changed: dict[str, object], text: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match=text):
        made(**changed).text(tmp_path)


@pytest.mark.parametrize("word", ["true", "no", "null", "7", "1e5", "0x1f"])
def test_words_that_yaml_takes_for_other_values_are_names(word: str, tmp_path: Path) -> None:
    programs = NewProgram(word, [word]), NewProgram("a", [word])
    scenario = parse_scenario(made(*programs, name=word).text(tmp_path), "prices.yaml")
    assert scenario.name == word
    assert set(scenario.network.hosts) == {word, "a"}
    assert [each.id for each in scenario.applications][:2] == [word, f"{word}-2"]
    assert scenario.applications[0].host == word
