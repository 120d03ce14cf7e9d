"""`extends`: a scenario file that is completed with another one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from windtunnel.harness.scenario.extends import DEPTH_MAX, read_document
from windtunnel.harness.scenario.loader import (
    ScenarioError,
    load_scenario,
    load_variants,
    parse_scenario,
)
from windtunnel.harness.scenario.yaml_document import YamlDocument

BASE = """\
schema: windtunnel/1
name: base
about: A service and its client.
seeds: {root: 1}
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: 5ms}}}
applications:
  - {id: service, on: b, command: [serve], env: {RATE: "1", PORT: "5"}}
  - {id: client, on: a, command: [ask], expect: {ends_by_itself: true}}
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    file = tmp_path / "base.yaml"
    file.write_text(BASE)
    return file


def mine(base: Path, text: str, name: str = "mine.yaml") -> Path:
    file = base.parent / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"name: mine\n{text}")
    return file


def errors(file: Path) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    return list(caught.value.errors)


def test_tables_are_merged_key_by_key(base: Path) -> None:
    text = "extends: base.yaml\nnetwork: {link: {impairments: {both: {loss: 2%}}}}\n"
    scenario = load_scenario(mine(base, text))
    impairments = scenario.network.all_links[0].impairments["both"]
    assert scenario.name == "mine"
    assert scenario.about == "A service and its client."
    assert impairments.delay is not None
    assert impairments.loss is not None


def test_lists_of_tables_are_merged_by_id(base: Path) -> None:
    text = """\
extends: base.yaml
applications:
  - {id: extra, on: a, command: [other], expect: {ends_by_itself: true}}
  - {id: service, env: {RATE: "100"}, driver: embedded}
"""
    found = load_scenario(mine(base, text)).applications
    assert [each.id for each in found] == ["service", "client", "extra"]
    assert found[0].command == ("serve",)
    assert found[0].env == {"RATE": "100", "PORT": "5"}
    assert found[0].driver == "embedded"


def test_other_lists_are_replaced(base: Path) -> None:
    text = "extends: base.yaml\napplications: [{id: client, command: [ask, twice]}]\n"
    assert load_scenario(mine(base, text)).applications[1].command == ("ask", "twice")


def test_files_may_extend_each_other_and_included_scenarios(base: Path) -> None:
    mine(base, "extends: below/two.yaml\nabout: Three.\n", "three.yaml")
    mine(base, "extends: one.yaml\n", "below/two.yaml")
    mine(base, "extends: loss/reliable-2pct\nseeds: {count: 3}\n", "below/one.yaml")
    scenario = load_scenario(base.parent / "three.yaml")
    assert (scenario.about, scenario.seeds.count) == ("Three.", 3)
    assert len(scenario.traffic) == 2


def test_text_without_a_file_extends_included_scenarios_only() -> None:
    text = "name: mine\nextends: {}\n"
    assert parse_scenario(text.format("loss/reliable-2pct"), "text").traffic
    with pytest.raises(ScenarioError, match="since this is text"):
        parse_scenario(text.format("base.yaml"), "text")


def test_errors_name_the_file_in_which_a_value_is_written(base: Path) -> None:
    text = "extends: base.yaml\napplications:\n  - {id: client, on: c}\n  - {id: x, off: 1}\n"
    file = mine(base, text)
    base.write_text(BASE.replace("5ms", "5"))
    first, *others = errors(file)
    assert first.startswith(f"{base}:7:")
    assert "network.link.impairments.both.delay" in first
    assert any(each.startswith(f"{file}:5:13: applications[2].off: unknown key") for each in others)
    base.write_text(BASE)
    file.write_text(file.read_text().replace("  - {id: x, off: 1}\n", ""))
    (only,) = errors(file)
    assert only.startswith(f"{file}:4:18: applications[1].on: ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("../base.yaml", "expected a file in the folder of this one or below it"),
        ("/etc/passwd", "expected a file in the folder of this one or below it"),
        ("x//y.yaml", "expected a file in the folder"),
        ("./base.yaml", "expected a file in the folder"),
        ("[base.yaml]", "expected a file in the folder"),
        ("absent.yaml", "No such file"),
        ("no/such-scenario", "No such file"),
        ("link.yaml", "found a symbolic link"),
        ("folder/base.yaml", "symbolic link"),
        ("below.yaml", "found a directory"),
        ("list.yaml", "expected a table"),
        ("mine.yaml", f"expected at most {DEPTH_MAX} files that extend each other"),
    ],
)
def test_only_files_beside_it_are_read(base: Path, value: str, text: str) -> None:
    folder = base.parent
    (folder / "link.yaml").symlink_to(base)
    (folder / "folder").symlink_to(folder)
    (folder / "below.yaml").mkdir()
    (folder / "list.yaml").write_text("[1]")
    (only,) = errors(mine(base, f"extends: {value}\n"))
    assert text in only
    assert str(folder) in only


def test_a_name_is_not_inherited(base: Path) -> None:
    file = base.parent / "mine.yaml"
    file.write_text("extends: base.yaml\n")
    assert "name: this key is missing" in errors(file)[0]


def merged_by_hand(base: Any, own: Any) -> Any:
    """Merge two documents as `extends` is defined."""
    if isinstance(base, dict) and isinstance(own, dict):
        shared = {key: merged_by_hand(base[key], own[key]) for key in base.keys() & own.keys()}
        return {**base, **own, **shared}
    return own


def test_merging_agrees_with_its_definition(base: Path) -> None:
    text = "extends: base.yaml\nnetwork: {hosts: [x], link: {impairments: {a->b: {loss: 1%}}}}\n"
    file = mine(base, text)
    own = yaml.safe_load(file.read_text())
    del own["extends"]
    base_value = YamlDocument(BASE, "base").value
    del base_value["name"]
    assert read_document(file).value == merged_by_hand(base_value, own)


def test_the_name_of_a_file_cannot_add_keys_to_the_scenario_of_a_run(base):
    file = mine(base, "extends: base.yaml\n", "mine\nobserve_all: true\n#\udcfe.yaml")
    (variant,) = load_variants(file)
    assert variant.text.startswith("# Made from mine\\nobserve_all: true\\n#\\udcfe.yaml.\n")
    assert not parse_scenario(variant.text, "made.yaml").observe_all
