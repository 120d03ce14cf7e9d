"""What a suite tells its caller while it works: one small value at a time.

    suite -> (run -> phase* -> progress* -> verdict)* -> end

The caller draws or prints; it may ignore any event, and must return quickly, since the run waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["run", "phase", "progress", "note", "verdict"]


@dataclass(frozen=True)
class RunEvent:
    """Something that a person might want to see."""

    kind: Kind
    """`run` starts a run, `phase` a phase of it, `progress` moves the bar, `note` is a remark,
    `verdict` ends the run."""

    run_index: int
    """Of this run in the suite, from 0."""

    run_count: int
    scenario: str
    seed: int
    pair: str = ""
    """Who sends to whom, such as `ours to pyaeron`."""

    phase: str = ""
    text: str = ""
    """One line for a person; for a verdict, its reason."""

    fraction: float | None = None
    """Share of this run's bytes that were delivered, where it is known."""

    published_bytes: int = 0
    delivered_bytes: int = 0
    total_bytes: int = 0
    drop_count: int = 0
    """Frames that the relay has dropped so far."""

    nak_count: int = 0
    """NAKs that all drivers have sent so far."""

    outcome: str = ""
    """For a verdict: FAIL, KNOWN, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS or CANCELLED."""


OnEvent = Callable[[RunEvent], None]


def ignore(event: RunEvent) -> None:
    """Take no notice."""
