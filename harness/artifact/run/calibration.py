"""A calibration: what was asked of a backend, what it delivered, and how sure that is.

calibration.json    a row a quantity of an impairment: asked, delivered, interval, floor
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document

SCHEMA = "windtunnel-calibration/1"


@dataclass
class Measure:
    """One quantity of one impairment."""

    impairment: str
    quantity: str
    unit: str
    asked: float | None
    """None where nothing was asked for: it is only reported."""
    delivered: float
    low: float
    high: float
    """The 99.9 % interval around what was delivered."""
    samples: int
    floor: str = ""
    """What it must keep, in words; empty where there is nothing."""
    holds: bool = True


@dataclass
class Calibration:
    """All that one calibration measured."""

    backend: str
    kernel: str
    packets_per_s: int
    seed: int
    started_ns: int
    measures: list[Measure] = field(default_factory=list)
    voids: list[str] = field(default_factory=list)
    """Impairments that could not be measured, and why."""

    def write(self, path: Path) -> None:
        write_document(path, {"schema": SCHEMA, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> "Calibration | None":
        """The calibration, or None when there is none; DocumentError if it is damaged."""
        document = read_document(path, SCHEMA)
        if document is None:
            return None
        try:
            plain = {key: value for key, value in document.items() if key != "schema"}
            measures = [Measure(**each) for each in plain.pop("measures")]
            return cls(measures=measures, **plain)
        except (KeyError, TypeError, AttributeError) as error:
            raise DocumentError(f"{path.name}: {error}") from error
