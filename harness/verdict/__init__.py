"""Judging a run: pure functions from what a run folder holds to a verdict with evidence.

    run folder --Evidence--> gates --> checks --> attribution --> Verdict --> verdict.json

Gates are conditions of the harness itself, checks are conditions of the subject. A check that could
not look is never a pass, and absence of evidence is a value, not an exception. Nothing here touches
a process, a socket or a clock, so a run can be judged again on any machine with the same result.
"""
