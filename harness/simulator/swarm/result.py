"""The result of one swarm trial."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """The result of one swarm trial: its seed, and any violation, known stall or simulator
    error.
    """

    seed: int
    choice: str
    violation: str
    """Description of the violation, or empty."""
    stalls: tuple[str, ...]
    """Descriptions of the streams that ended in a known protocol stall."""
    digest: str
    frames: int
    defect: str
    """Description of an error in the simulator itself, or empty."""
    figures: dict[str, int] = field(default_factory=dict)
    """The figures of a trial that ended, by name."""
    ours: dict[str, int] = field(default_factory=dict)
    """In a comparison: the figures with Windtunnel's driver."""
