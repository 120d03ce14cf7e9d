"""The judge: pure functions from the files of a run folder to a verdict with evidence.

    run folder --Evidence--> gates --> checks --> attribution --> Verdict --> verdict.json

Gates are conditions on the harness itself, checks are conditions on the driver under test. A check
that lacks its evidence never passes; missing evidence is a value (`Missing`), not an exception. No
module here touches a process, a socket or a clock, so a run can be judged again on any machine with
the same result.
"""
