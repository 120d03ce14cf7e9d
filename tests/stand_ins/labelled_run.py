"""The expected outcome of each frame of a run, from the middlebox's own decisions.

    capture of the sender --> transmissions of each position: 1st, 2nd, ...
    decisions.bin         --> the action applied to each of them
                          --> how often it arrived, and in what way

Reads the run folder by the records of `harness.artifact` and by position alone; shares nothing with
the analysis that it labels.
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from windtunnel.harness.artifact.middlebox.decision import ACTIONS, LINKS, read_decisions
from windtunnel.harness.artifact.middlebox.frame_class import POSITIONAL
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case


class Label(NamedTuple):
    """The action applied to a transmission of a frame."""

    arrives: bool
    copies: int
    is_delayed: bool
    "Held, swapped or displaced."


UNTOUCHED = Label(True, 0, False)


def labels(run: RunDir, link: str = LINKS[0]) -> dict[tuple[int, int, int], Label]:
    """Actions by stream id, position and number of the transmission, if one was applied."""
    decisions, case = read_decisions(run.decisions), Case.read(run.case)
    assert decisions is not None
    chosen = decisions[decisions["link"] == LINKS.index(link)]
    found: dict[tuple[int, int, int], Label] = {}
    copies: dict[tuple[int, int, int], int] = defaultdict(int)
    for each in chosen[np.isin(chosen["frame_type"], POSITIONAL)]:
        key = int(each["stream_id"]), int(each["position"]), int(each["attempt"])
        action = ACTIONS[int(each["action"])]
        assert action in ("drop", "duplicate", "hold", "swap", "displace"), action
        if action == "duplicate":
            copies[key] += case.faults[int(each["rule"])].copies
        found[key] = Label(action != "drop", copies[key], action in ("hold", "swap", "displace"))
    return found
