"""The former key of `impairments`, `weather`, is accepted in scenario files and run folders."""

import json
from pathlib import Path

import pytest

from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.middlebox.ledger import LinkAccount as Account
from windtunnel.harness.scenario.loader import (
    ScenarioError,
    load_scenario,
    load_variants,
    parse_scenario,
)
from windtunnel.harness.scenario.resolved.case import Case, Payload
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import (
    LinkChange,
    LinkChanges,
    LinkCounts,
    LinkRequest,
    LinkRequests,
)
from windtunnel.harness.scenario.resolved.resolution import resolve

NOW, FORMER = "impairments", "weather"
TEXT = """\
schema: windtunnel/1
name: base
about: A service and its client.
seeds: {root: 1}
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: 5ms}}}
applications:
  - {id: service, on: b, command: [serve], env: {impairments: "1", weather: "2"}}
  - {id: client, on: a, command: [ask], expect: {ends_by_itself: true}}
"""
ENV = ', env: {impairments: "1", weather: "2"}'
LINK = "  link: {between: [a, b], impairments: {both: {delay: 5ms}}}\n"
LINKS = "  links:\n    - between: [a, b]\n      impairments: {both: {delay: 5ms}}\n"


@pytest.mark.parametrize("links", [LINK, LINKS], ids=["link", "links"])
def test_a_scenario_may_use_the_former_key(links: str) -> None:
    text = TEXT.replace(LINK, links)
    former = text.replace(f"{NOW}: {{both", f"{FORMER}: {{both")
    assert former != text
    found = parse_scenario(former, "x.yaml")
    assert found == parse_scenario(text, "x.yaml")
    assert found.network.all_links[0].impairments["both"].delay is not None
    # Elsewhere, both are ordinary names.
    assert found.applications[0].env == {"impairments": "1", "weather": "2"}


def test_both_keys_of_a_link_are_refused() -> None:
    text = TEXT.replace("{between: [a, b], ", "{between: [a, b], weather: {}, ")
    with pytest.raises(ScenarioError, match=r"x\.yaml:7:40: key 'impairments' occurs twice"):
        parse_scenario(text, "x.yaml")
    text = TEXT.replace("5ms}}", "5ms}}, weather: {}")
    with pytest.raises(ScenarioError, match=r"'weather' is the former name of 'impairments'"):
        parse_scenario(text, "x.yaml")


def test_it_is_merged_and_set_under_either_name(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(TEXT)
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\nextends: base.yaml\nnetwork: {link: {weather: {both: {loss: 2%}}}}\n"
    )
    (both,) = load_scenario(file).network.all_links[0].impairments.values()
    assert both.delay is not None
    assert both.loss is not None
    name = f"network.link.{FORMER}.both.loss"
    (variant,) = load_variants(file, settings={name: "50%"})
    (changed,) = variant.scenario.network.all_links[0].impairments.values()
    assert (changed.delay, changed.loss != both.loss) == (both.delay, True)


def as_before(file: Path) -> Path:
    """Replace the current key by the former one in a file of a run."""
    text = file.read_text()
    assert f'"{NOW}":' in text
    file.write_text(text.replace(f'"{NOW}":', f'"{FORMER}":'))
    return file


def test_files_of_runs_from_earlier_versions_are_read(tmp_path: Path) -> None:
    payload = Payload(path="payload.bin", sha256="00" * 32, length_bytes=1)
    scenario, addresses = (
        parse_scenario(TEXT.replace(ENV, ""), "x.yaml"),
        {"a": "10.0.0.3", "b": "10.0.0.19"},
    )
    case = resolve(scenario, seed=1, fidelity="netns", addresses=addresses, payload=payload)
    case.write(tmp_path / "case.json")
    assert Case.read(as_before(tmp_path / "case.json")) == case
    impairments = ImpairmentCase(link="a->b", duplicate_ppb=7)
    requests = LinkRequests(requests=(LinkRequest(number=1, impairments=(impairments,)),))
    requests.write(tmp_path / "requests.json")
    assert LinkRequests.read(as_before(tmp_path / "requests.json")) == requests
    change = LinkChange(number=1, at_ns=5, impairments=impairments, counts=LinkCounts(received=3))
    changes = LinkChanges(changes=(change,))
    changes.write(tmp_path / "changes.json")
    assert LinkChanges.read(as_before(tmp_path / "changes.json")) == changes
    ledger = Ledger({"a->b": Account(impairments=ImpairmentAccount(received=9, lost=2))})
    ledger.write(tmp_path / "ledger.json")
    assert json.loads((tmp_path / "ledger.json").read_text())["links"]["a->b"][NOW]["lost"] == 2
    assert Ledger.read(as_before(tmp_path / "ledger.json")) == ledger
