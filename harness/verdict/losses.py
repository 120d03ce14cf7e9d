"""Which frames of the expected log the middlebox kept from arriving in their turn."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.artifact.decision import (
    CORRUPT,
    DISPLACE,
    DROP,
    HOLD,
    INJECT,
    SWAP,
    TRUNCATE,
)
from harness.artifact.frame_class import POSITIONAL
from harness.artifact.records import Records
from harness.dissect.expected_log import ExpectedLog
from harness.scenario.case import Case, TrafficCase

_DISTURBING = (DROP, HOLD, SWAP, DISPLACE, CORRUPT, TRUNCATE, INJECT)
"""What keeps a frame from arriving in its turn; a forged one may take its place."""


@dataclass(frozen=True)
class Losses:
    """The decisions about one traffic's DATA and PAD frames, laid over its expected log."""

    disturbed: NDArray[np.bool_]
    "By frame of the expected log: it did not arrive whole and in its turn at least once."
    dropped_count: int
    "Decisions to drop, each passage of a frame counted."


def link_of(case: Case, traffic: TrafficCase) -> int:
    """The code of the link direction that a traffic's DATA takes."""
    return case.link_between(traffic.from_host, traffic.to_host)


def losses_of(decisions: Records, case: Case, traffic: TrafficCase, log: ExpectedLog) -> Losses:
    """What the middlebox did to a traffic's DATA and PAD frames."""
    link = link_of(case, traffic)
    chosen = decisions[(decisions["link"] == link) & (decisions["stream_id"] == traffic.stream_id)]
    chosen = chosen[np.isin(chosen["frame_type"], POSITIONAL)]
    actions: Any = chosen["action"]
    disturbing = chosen[np.isin(actions, _DISTURBING)]
    index, found = frame_index(log, disturbing["position"])
    disturbed = np.zeros(len(log.frames), dtype=np.bool_)
    disturbed[index[found]] = True
    return Losses(disturbed, int((actions == DROP).sum()))


def frame_index(
    log: ExpectedLog, positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each position the expected frame that begins there, and whether there is one."""
    starts = log.frames["position"]
    index = np.searchsorted(starts, positions)
    found = index < len(starts)
    found[found] = starts[index[found]] == positions[found]
    return index, found
