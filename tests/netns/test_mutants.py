"""A handful of mutants, each a different room's, over a real link: none may go unnoticed."""

import threading

import pytest

from harness.exam.examine import SOUND, Sitting, examine
from harness.exam.mutant import by_name
from harness.orchestrate import privileges

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
    # A process for each run, and kernels that the edits change are compiled.
    pytest.mark.timeout(900),
]
QUICK = {
    "naks-sent-counted-twice": "naks_and_retransmits_agree",
    "insert-loses-flags": "positions_covered",
    "fragments-assembled-backwards": "delivered_once",
}
"""Mutants that let streams come to their end, and the check that must say no."""


def test_each_is_killed_by_the_check_that_should_say_no(tmp_path):
    mutants = [by_name(name) for name in QUICK]
    exam, asked = examine(Sitting(mutants, "netns", tmp_path / "exam", keeps_all=True))
    assert asked is None
    assert [run.outcome for run in exam.sound] == ["PASS"] * 2, exam.sound
    assert {row.name: row.state for row in exam.mutants} == dict.fromkeys(QUICK, "killed")
    for row in exam.mutants:
        assert QUICK[row.name] in row.killer.checks, row
    assert exam.is_passed
    assert (tmp_path / "exam" / SOUND).is_dir()
    assert threading.active_count() == 1
