"""Known failures: which violations do not count, which entries have expired or are fixed."""

import datetime

import pytest

from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.verdict.core.known import KnownFailureList, RunOutcome

DAY = datetime.date(2027, 1, 1)
OURS = SubjectFacts("publisher", "ours", "1.53.0")


def entry(check: str = "naks_paced", subject: str = "ours", expires: str = "2027-01-02"):
    return KnownFailure(
        scenario="loss/x",
        check=check,
        subject=subject,
        owner="Jane",
        issue="https://example.org/1",
        expires=datetime.date.fromisoformat(expires),
    )


def run(*violated: str, scenario="loss/x", subject=OURS, is_conclusive=True) -> RunOutcome:
    return RunOutcome(scenario, (subject,), violated, is_conclusive)


def test_a_run_whose_violations_are_all_known_is_known():
    book = KnownFailureList([entry(), entry("eos_reaches_end")], DAY)
    known, text = book.match(run("naks_paced", "eos_reaches_end"))
    assert known
    assert "naks_paced (Jane, https://example.org/1, until 2027-01-02)" in text
    assert book.no_longer_failing() == book.expired() == []


@pytest.mark.parametrize(
    "other",
    [
        run("naks_paced", scenario="loss/y"),
        run("naks_paced", subject=SubjectFacts("publisher", "aeron-c", "1.53")),
        run("eos_reaches_end"),
        run(),
    ],
)
def test_another_scenario_subject_or_check_is_not_known(other):
    assert KnownFailureList([entry()], DAY).match(other) == (False, "")


def test_a_version_that_is_not_reported_is_not_known():
    book = KnownFailureList([entry(subject="ours>=1.50")], DAY)
    assert book.match(run("naks_paced"))[0]
    assert not book.match(run("naks_paced", subject=SubjectFacts("publisher", "ours", "")))[0]


def test_one_violation_that_is_not_known_is_enough_to_fail():
    known, text = KnownFailureList([entry()], DAY).match(run("naks_paced", "delivered_once"))
    assert not known
    assert text.startswith("not known: delivered_once; known: naks_paced")


@pytest.mark.parametrize(("expires", "known"), [("2027-01-02", True), ("2027-01-01", False)])
def test_an_entry_does_not_count_from_its_expiry_on(expires, known):
    book = KnownFailureList([entry(expires=expires)], DAY)
    found, text = book.match(run("naks_paced"))
    assert found is known
    assert ("known failure has expired" in text) is not known
    assert len(book.expired()) == (0 if known else 1)


def test_an_entry_that_nothing_violated_is_reported():
    book = KnownFailureList([entry(), entry("eos_reaches_end"), entry(subject="aeron-c")], DAY)
    book.match(run())
    book.match(run("naks_paced"))
    (line,) = book.no_longer_failing()
    assert line.startswith("loss/x: eos_reaches_end passed for ours, but is listed as a known")
    assert line.endswith("remove the entry")


def test_a_run_that_is_inconclusive_fixes_no_entry():
    book = KnownFailureList([entry()], DAY)
    book.match(run(is_conclusive=False))
    assert book.no_longer_failing() == []
