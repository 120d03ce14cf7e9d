"""The file of known failures: its entries, and the places of errors in it."""

import datetime

import pytest

from windtunnel.harness.scenario.known import KnownFailure, load_known
from windtunnel.harness.scenario.loader import ScenarioError

CHECKS = ("naks_paced", "delivered_once")
GOOD = """\
schema: windtunnel-known/1
known:
  - scenario: loss/reliable-2pct
    check: naks_paced
    subject: aeron-c>=1.50
    owner: Jane Doe
    issue: https://example.org/issues/17
    expires: 2027-03-31
  - {scenario: reorder/x, check: delivered_once, subject: ours, owner: J, issue: "http://a.b/1",
     expires: 2027-01-01}
"""


@pytest.fixture
def load(tmp_path):
    def load(text):
        file = tmp_path / "known.yaml"
        file.write_text(text)
        return load_known(file, CHECKS)

    return load


def test_entries_are_read_in_their_order(load):
    first, second = load(GOOD)
    assert first == KnownFailure(
        scenario="loss/reliable-2pct",
        check="naks_paced",
        subject="aeron-c>=1.50",
        owner="Jane Doe",
        issue="https://example.org/issues/17",
        expires=datetime.date(2027, 3, 31),
    )
    assert second.subject == "ours"
    assert load("schema: windtunnel-known/1\nknown: []\n") == ()


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("naks_paced", "naks_pacedd", ":4:5: known[0].check: expected a check's name"),
        ("aeron-c>=1.50", "aeron-c=1", ":5:5: known[0].subject: expected a driver such as"),
        ("expires: 2027-03-31", "expires: soon", ":8:5: known[0].expires:"),
        ("https://example.org/issues/17", "our wiki", ":7:5: known[0].issue:"),
        ("    owner: Jane Doe\n", "", ":3:5: known[0].owner: this key is missing"),
        ("owner: Jane", "owners: Jane", ":6:5: known[0].owners: unknown key: did you mean owner?"),
        ("known/1", "known/2", ":1:1: schema:"),
        ("known:", "unknown:", ":2:1: unknown: unknown key"),
    ],
)
def test_an_error_is_named_with_its_place(load, old, new, fault):
    with pytest.raises(ScenarioError) as raised:
        load(GOOD.replace(old, new, 1))
    assert any(fault in each for each in raised.value.errors), raised.value.errors


def test_all_errors_are_reported_together_and_each_entry_once(load):
    with pytest.raises(ScenarioError) as raised:
        load(GOOD.replace("naks_paced", "a").replace("delivered_once", "b"))
    assert len(raised.value.errors) == 2
    twice = GOOD + GOOD.split("known:\n", 1)[1]
    with pytest.raises(ScenarioError, match="same scenario, check and subject"):
        load(twice)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ScenarioError, match=r"none.yaml: cannot be read"):
        load_known(tmp_path / "none.yaml", CHECKS)
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match=r"bytes.yaml: expected UTF-8 text, found byte 0xff at"):
        load_known(tmp_path / "bytes.yaml", CHECKS)


def test_a_file_of_another_kind_has_one_error(load):
    with pytest.raises(ScenarioError) as raised:
        load("schema: windtunnel/1\nname: mine\nabout: a scenario\n")
    (error,) = raised.value.errors
    assert error.endswith(":1:1: schema: expected 'windtunnel-known/1', found 'windtunnel/1'")
