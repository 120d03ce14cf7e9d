"""Periods between changes of links, and the file that records the changes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.harness.middlebox.synthetic_case import case
from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.resolved.link_change import (
    LinkChange,
    LinkChanges,
    LinkCounts,
    periods,
    read_changes,
)

LOSS = LossCase(model="iid", shares_ppb=(10_000_000,))


def change(at_ns: int, link: str = "a->b", **counts: int) -> LinkChange:
    impairments = ImpairmentCase(link=link, loss=LOSS)
    return LinkChange(number=1, at_ns=at_ns, impairments=impairments, counts=LinkCounts(**counts))


def test_a_link_without_changes_has_one_period() -> None:
    total = ImpairmentAccount(received=9, lost=1, sent=8)
    (only,) = periods(case(), [change(1, "b->a", received=3)], "a->b", total)
    assert only.account == total
    assert only.impairment == ImpairmentCase(link="a->b")


def test_each_period_has_the_counts_between_two_changes() -> None:
    made = [change(1, received=3, sent=3), change(2, received=10, lost=4, sent=6)]
    total = ImpairmentAccount(received=15, lost=5, sent=10, no_room=1)
    found = list(periods(case(), made, "a->b", total))
    assert [each.impairment.loss for each in found] == [None, LOSS, LOSS]
    assert [each.account.received for each in found] == [3, 7, 5]
    assert [each.account.lost for each in found] == [0, 4, 1]
    assert [each.account.sent for each in found] == [3, 3, 4]
    assert [each.account.no_room for each in found] == [0, 0, 1]


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = (change(5, received=1), change(6, received=2))
    path = tmp_path / "link-changes.json"
    assert read_changes(path, case()) is None
    LinkChanges(changes=made).write(path)
    assert read_changes(path, case()) == made


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"number": 0}, "greater than or equal to 1"),
        ({"at_ns": "now"}, "valid integer"),
        ({"impairments": {"link": "a->z"}}, "expected one of a->b, b->a"),
        ({"impairments": {"link": "a->b", "delay_ns": -1}}, "delay_ns"),
        ({"counts": {"received": -1}}, "greater than or equal to 0"),
        ({"more": 1}, "extra inputs"),
    ],
)
def test_invalid_records_are_refused(tmp_path: Path, changed: dict[str, Any], text: str) -> None:
    path = tmp_path / "link-changes.json"
    LinkChanges(changes=(change(5),)).write(path)
    document = json.loads(path.read_text())
    document["changes"][0] |= changed
    path.write_text(json.dumps(document))
    with pytest.raises(DocumentError, match=text):
        read_changes(path, case())


def test_changes_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    path = tmp_path / "link-changes.json"
    LinkChanges(changes=(change(5), change(4))).write(path)
    with pytest.raises(DocumentError, match="in the order of their times"):
        read_changes(path, case())
