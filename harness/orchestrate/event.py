"""Progress events of a suite, passed to the caller one at a time.

    suite -> (run -> phase* -> progress* -> verdict)* -> end

The caller displays events, and may ignore any of them. The callback must return quickly, since the
run waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["run", "phase", "progress", "note", "verdict"]


@dataclass(frozen=True)
class RunEvent:
    """One progress event of a suite, such as the start of a phase or the verdict of a run."""

    kind: Kind
    """Kind of the event. `run` starts a run, `phase` starts a phase, `progress` reports delivered
    bytes, `note` is a remark, and `verdict` ends the run."""

    run_index: int
    """Index of this run in the suite, from 0."""

    run_count: int
    scenario: str
    seed: int
    pair: str = ""
    """Drivers on the publisher's and the subscriber's host, such as `ours to pyaeron`."""

    phase: str = ""
    text: str = ""
    """One line of text. For a verdict, this is its reason."""

    fraction: float | None = None
    """Fraction of this run's bytes that has been delivered, if known."""

    published_bytes: int = 0
    delivered_bytes: int = 0
    total_bytes: int = 0
    drop_count: int | None = None
    """Number of frames that the relay has dropped so far, or None if that is not yet known."""

    retransmit_count: int | None = None
    """Number of retransmits that all drivers have sent so far, or None if that is not yet known."""

    outcome: str = ""
    """Outcome of a verdict: FAIL, KNOWN, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS or CANCELLED."""


OnEvent = Callable[[RunEvent], None]


def ignore(event: RunEvent) -> None:
    """Ignore an event. This is the default callback."""
