import pytest

from windtunnel.harness.verdict.core.finding import (
    EvidenceMissing,
    Finding,
    Missing,
    finding_of,
    inconclusive,
    or_missing,
    passed,
    present,
)
from windtunnel.harness.verdict.core.outcome import Outcome

ABSENT = Missing("captures/a.pcap", "is missing")
DAMAGED = Missing("ledger.json", "cannot be parsed: empty", damaged=True)


def test_evidence_that_is_present_is_returned():
    assert present(1) == 1
    assert present((1, 2)) == (1, 2)
    assert present("a", None) == ("a", None)


def test_the_first_missing_part_is_raised():
    with pytest.raises(EvidenceMissing, match=r"ledger\.json: cannot be parsed: empty") as raised:
        present(1, DAMAGED, ABSENT)
    assert raised.value.damaged


def check(part: object, *, about: str) -> Finding:
    present(part)
    return passed("sound", "all is well", about)


def test_a_check_without_its_evidence_is_inconclusive_and_with_a_damaged_file_harness():
    found = [finding_of("sound", "b", check, each, about="b") for each in (1, ABSENT, DAMAGED)]
    assert [each.outcome for each in found] == [Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.HARNESS]
    assert found[1] == inconclusive("sound", ABSENT, "b")


def test_a_reader_returns_why_its_own_evidence_is_missing():
    assert or_missing(present)(1) == 1
    assert or_missing(present)(ABSENT) is ABSENT
