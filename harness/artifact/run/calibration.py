"""Calibration results: the specified and the measured effects of the relay's or netem's
impairments, with confidence intervals.

calibration.json    one row per quantity of an impairment: asked, delivered, interval, floor
"""

from dataclasses import dataclass, field
from typing import ClassVar

from windtunnel.harness.artifact.documents import StoredDocument


@dataclass
class Measure:
    """One measured quantity of one impairment."""

    impairment: str
    quantity: str
    unit: str
    asked: float | None
    """The specified value, or None for a quantity that is only reported."""
    delivered: float
    low: float
    high: float
    """`low` and `high` are the 99.9 % interval of the delivered value."""
    samples: int
    floor: str = ""
    """A description of the required accuracy, or an empty string if there is no requirement."""
    holds: bool = True


@dataclass
class Calibration(StoredDocument):
    """The results of one calibration."""

    SCHEMA: ClassVar[str] = "windtunnel-calibration/1"

    backend: str
    kernel: str
    packets_per_s: int
    seed: int
    started_ns: int
    measures: list[Measure] = field(default_factory=list)
    voids: list[str] = field(default_factory=list)
    """Impairments that could not be measured, and why."""
