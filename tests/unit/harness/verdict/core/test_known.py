"""The book of known failures: whose violations count no more, until when, and which are cured."""

import datetime

import pytest

from windtunnel.harness.artifact.run.manifest import SubjectFacts
from windtunnel.harness.scenario.known import KnownFailure
from windtunnel.harness.verdict.core.known import Judged, KnownBook

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


def run(*violated: str, scenario="loss/x", subject=OURS, is_conclusive=True) -> Judged:
    return Judged(scenario, (subject,), violated, is_conclusive)


def test_a_run_whose_violations_are_all_known_is_known():
    book = KnownBook([entry(), entry("eos_reaches_end")], DAY)
    known, said = book.look_up(run("naks_paced", "eos_reaches_end"))
    assert known
    assert "naks_paced: Jane, https://example.org/1, until 2027-01-02" in said
    assert book.cured() == book.expired() == []


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
    assert KnownBook([entry()], DAY).look_up(other) == (False, "")


def test_a_version_that_is_not_told_is_not_known():
    book = KnownBook([entry(subject="ours>=1.50")], DAY)
    assert book.look_up(run("naks_paced"))[0]
    assert not book.look_up(run("naks_paced", subject=SubjectFacts("publisher", "ours", "")))[0]


def test_one_violation_that_is_not_known_is_enough_to_fail():
    known, said = KnownBook([entry()], DAY).look_up(run("naks_paced", "delivered_once"))
    assert not known
    assert said.startswith("not known: delivered_once; known: naks_paced")


@pytest.mark.parametrize(("expires", "known"), [("2027-01-02", True), ("2027-01-01", False)])
def test_from_its_day_on_an_entry_counts_no_more(expires, known):
    book = KnownBook([entry(expires=expires)], DAY)
    found, said = book.look_up(run("naks_paced"))
    assert found is known
    assert ("known no more" in said) is not known
    assert len(book.expired()) == (0 if known else 1)


def test_an_entry_that_nothing_violated_is_told():
    book = KnownBook([entry(), entry("eos_reaches_end"), entry(subject="aeron-c")], DAY)
    book.look_up(run())
    book.look_up(run("naks_paced"))
    (line,) = book.cured()
    assert line.startswith("loss/x eos_reaches_end of ours passed, though it is known to fail")
    assert line.endswith("take it out of the file")


def test_a_run_that_shows_nothing_cures_nothing():
    book = KnownBook([entry()], DAY)
    book.look_up(run(is_conclusive=False))
    assert book.cured() == []
