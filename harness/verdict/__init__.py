"""The judge: pure functions that turn the files of a run folder into a verdict with evidence.

    run folder --Evidence--> gates --> checks --> attribution --> Verdict --> verdict.json

Gates are conditions on the harness itself, checks are conditions on the driver under test. A check
whose evidence is missing never passes. Missing evidence is a value (`Missing`), not an exception.
No module here touches a process, a socket or a clock, so a run can be judged again on any machine
with the same result.
"""
