"""Chooses the scenarios in which a generated mutant runs: those that execute what it changes.

    driver without a defect, in each candidate --> executions of each mutant's statement
                                                            |
              the usual scenarios, one with several receivers, then those with the most executions,
              then coverage scenarios

A mutant that no candidate executes has no scenario. It cannot have an effect there, so its runs
would show nothing.
"""

from collections.abc import Mapping

USUAL = ("exam/loss", "exam/unreliable", "exam/disorder", "exam/no-faults")
"""Scenarios that come first, because they fail for most defects of what they execute."""
COVERAGE = (
    *("coverage/dying-clients", "coverage/freed-streams", "coverage/local-streams"),
    *("coverage/parameters", "coverage/remote-streams", "coverage/scripted-peers"),
)
"""Scenarios that observe what others only execute. They execute a statement less often than others,
and so have places of their own.
"""
GROUPS = ("exam/tagged-cut-off", "many/mdc-min-one-lossy", "many/partition-and-heal")
"""Scenarios with several receivers, most of whose statements others execute for one receiver."""
USUAL_MAX, GROUPS_MAX = 3, 1
"""Maximum number of the usual ones, and of these, for one mutant."""
REMAINS = "coverage/freed-streams"
"""The only scenario that observes what remains of closed streams. It comes before the others."""
CANDIDATES = (
    *USUAL,
    *("exam/all-gaps", "exam/bursts", "exam/damaged", "exam/evidence", "exam/feedback-late"),
    *("exam/feedback-loss", "exam/forged", "exam/forged-nak", "exam/forged-status"),
    *("exam/overtaken", "exam/setup-loss", "exam/shut-window", "exam/slow-reader"),
    *("exam/small-buffer", "exam/stale-copies", "exam/tagged-cut-off", "exam/tight"),
    *("exam/unreliable-late", "host/kill-driver", "host/kill-publisher", "host/pause-receiver"),
    *("host/pause-sender", "host/slow-consumer", "many/mdc-min-one-lossy"),
    *("many/multicast-one-lossy", "many/partition-and-heal", "many/two-paths-one-worse"),
    *("path/source-port-change", "recovery/group"),
    *COVERAGE,
)
"""Scenarios that are simulated in seconds, and together execute most of the driver."""
SCENARIOS_MAX = 11
"""Maximum number of scenarios of one mutant, more than there are of coverage. One that survives
takes all of them.
"""


def executing(number: int, executions: Mapping[str, Mapping[int, int]]) -> tuple[str, ...]:
    """Return the scenarios for a mutant with a number, at most SCENARIOS_MAX, the most likely to
    kill it first.

    `executions` has the counts of each candidate's run, by mutant number.
    """
    counts = {name: counted.get(number, 0) for name, counted in executions.items()}
    found = [name for name, count in counts.items() if count]
    found.sort(key=lambda name: -counts[name])
    usual = [name for name in USUAL if name in found][:USUAL_MAX]
    groups = [name for name in found if name in GROUPS][:GROUPS_MAX]
    others = [name for name in found if name not in (*USUAL, *groups, *COVERAGE)]
    coverage = sorted(
        (name for name in found if name in COVERAGE), key=lambda name: name != REMAINS
    )
    return (*(*usual, *groups, *others)[: SCENARIOS_MAX - len(coverage)], *coverage)
