"""Progress events of a suite, passed to the caller one at a time.

    suite -> compile* -> (run -> phase* -> progress* -> verdict)* -> end

The caller displays events, and may ignore any of them. The callback must return quickly, since the
run waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from windtunnel.harness.orchestrate.precompile.progress import CompileProgress

Kind = Literal["compile", "run", "phase", "progress", "note", "verdict"]


@dataclass(frozen=True)
class RunEvent:
    """One progress event of a suite, such as the start of a phase or the verdict of a run."""

    kind: Kind
    """Kind of the event. `compile` reports compiled kernels before the first run, `run` starts a
    run, `phase` starts a phase, `progress` reports delivered bytes, `note` is a remark, and
    `verdict` ends the run."""

    run_index: int
    """Index of this run in the suite, from 0."""

    run_count: int
    scenario: str
    seed: int
    pair: str = ""
    """Drivers on the publisher's and the subscriber's host, such as `ours to pyaeron`."""

    phase: str = ""
    text: str = ""
    """One line of text: a verdict's reason, a note, or the number of compiled kernels."""

    fraction: float | None = None
    """Fraction of this run's bytes that has been delivered, or of the kernels that have been
    compiled, if known."""

    published_bytes: int = 0
    delivered_bytes: int = 0
    total_bytes: int = 0
    drop_count: int | None = None
    """Number of frames that the relay has dropped so far, or None if that is not yet known."""

    retransmit_count: int | None = None
    """Number of retransmits that all drivers have sent so far, or None if that is not yet known."""

    outcome: str = ""
    """Outcome of a verdict: FAIL, KNOWN, HARNESS, INCONCLUSIVE, UNSUPPORTED, PASS or CANCELLED."""

    run_dir: Path | None = None
    """The folder of a run with a verdict."""


OnEvent = Callable[[RunEvent], None]


def compile_event(progress: CompileProgress, run_count: int) -> RunEvent:
    """Return the event of a compilation before the first run of a suite."""
    return RunEvent("compile", 0, run_count, "", 0, fraction=progress.fraction, text=str(progress))


def ignore(event: RunEvent) -> None:
    """Ignore an event. This is the default callback."""
