"""The envelopes of the scenarios: the range of each figure that sound drivers had in many seeds.

    bands.json, written by `windtunnel envelope`
    scenarios: name -> digest of the case, drivers measured
                       streams: `<stream> at <host>` -> figure -> driver -> Distribution

The band of a figure reaches from the lowest to the highest value of the drivers in the run,
extended at both ends by the ratio of the two, and at least by a quarter, or to four times a tail:

    low / r <= value <= high * r     r = max(1.25 or 4, high / low)
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import read_document
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.checks.envelope.figures import TAILS

SCHEMA = "windtunnel-envelopes/1"
FILE = Path(__file__).with_name("bands.json")
RUNS_MIN = 8
"""Minimum number of a driver's runs that have a figure. Otherwise the figure gets no band."""
RATIO_MIN, TAIL_RATIO_MIN = 1.25, 4.0
_ADDRESS = re.compile(r"\b(?:10|172|192)\.\d+\.\d+\.\d+\b")
_OF_THE_RUN = {"about", "seed", "fidelity", "payload", "expect", "wall_ns", "checks"}
"""Parts of a case that do not change what a sound driver does."""


@dataclass(frozen=True)
class Distribution:
    """The values of a figure in the runs of one driver."""

    runs: int
    lowest: float
    median: float
    highest: float


@dataclass(frozen=True)
class Band:
    """The range of a figure outside of which a driver FAILs."""

    lowest: float
    highest: float
    runs: int
    "Number of runs in which the figure was measured."
    ratio_min: float = RATIO_MIN

    @property
    def ratio(self) -> float:
        """The ratio by which the band reaches beyond the measured values."""
        return max(self.ratio_min, self.highest / self.lowest)

    def contains(self, value: float) -> bool:
        return self.lowest / self.ratio <= value <= self.highest * self.ratio


@dataclass(frozen=True)
class Envelope:
    """The bands of a scenario's figures, by stream and host."""

    digest: str
    first_seed: int
    seeds: int
    drivers: tuple[str, ...]
    "The drivers that were measured."
    streams: Mapping[str, Mapping[str, Mapping[str, Distribution]]]

    def bands(self, stream: str, drivers: Collection[str]) -> dict[str, Band]:
        """Return the bands of a stream's figures at one host, for the drivers in a run. `stream` is
        a key of `stream_key`.
        """
        bands = {}
        for name, by_driver in self.streams.get(stream, {}).items():
            measured = [each for driver, each in by_driver.items() if driver in drivers]
            if len(measured) == len(drivers) and all(each.runs >= RUNS_MIN for each in measured):
                bands[name] = _band(measured, TAIL_RATIO_MIN if name in TAILS else RATIO_MIN)
        return bands


def _band(measured: Sequence[Distribution], ratio_min: float) -> Band:
    return Band(
        min(each.lowest for each in measured),
        max(each.highest for each in measured),
        sum(each.runs for each in measured),
        ratio_min,
    )


def stream_key(traffic: str, host: str) -> str:
    return f"{traffic} at {host}"


def is_steady(case: Case) -> bool:
    """Return whether a case has an envelope: only the traffic and the links determine its figures,
    and not when a host is paused or killed, or when a link changes.
    """
    return not case.events and not case.changes_links


def case_digest(case: Case) -> str:
    """Return a digest of what a case plans. It depends neither on the seed nor on addresses, nor on
    keys that the case does not use.
    """
    document = case.model_dump(mode="json", exclude=_OF_THE_RUN, exclude_defaults=True)
    text = _ADDRESS.sub("*", json.dumps(document, sort_keys=True))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def envelopes(file: Path = FILE) -> Mapping[str, Envelope]:
    """Read the envelopes by the names of their scenarios. Without a file there are none.

    Raises DocumentError if the file is damaged.
    """
    document: Mapping[str, Any] = read_document(file, SCHEMA) or {"scenarios": {}}
    return {name: _envelope(each) for name, each in document["scenarios"].items()}


def _envelope(document: Mapping[str, Any]) -> Envelope:
    streams = {
        stream: {
            figure: {driver: Distribution(*values) for driver, values in drivers.items()}
            for figure, drivers in figures.items()
        }
        for stream, figures in document["streams"].items()
    }
    return Envelope(
        document["digest"],
        document["first_seed"],
        document["seeds"],
        tuple(document["drivers"]),
        streams,
    )
