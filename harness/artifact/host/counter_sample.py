"""Counter values over time, and the descriptions of the counters.

A sample is written when a value differs from the previous one. One pass of the sampler reads all
counters in order of their ids. All its samples have the same timestamp `time_ns`, taken before the
first read.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from windtunnel.harness.artifact.document_values import refuse
from windtunnel.harness.artifact.documents import StoredDocument
from windtunnel.harness.artifact.records import Records, read_records

KEY_LENGTH = 112
"""Number of bytes in a counter's key."""
_HEX = re.compile(r"([0-9a-fA-F]{2})*")

COUNTER_SAMPLE = np.dtype(
    [
        ("time_ns", "<i8"),
        ("counter_id", "<i4"),
        ("type_id", "<i4"),
        ("registration_id", "<i8"),
        ("value", "<i8"),
    ]
)


@dataclass(frozen=True)
class CounterFacts:
    """Description of one counter in a run. If a counter id was freed and allocated again, each of
    the counters has its own description.
    """

    counter_id: int
    type_id: int
    registration_id: int
    owner_id: int
    reference_id: int
    label: str
    key_hex: str
    "All 112 bytes of the key as hexadecimal digits."
    final_value: int
    "The last value that was sampled."

    def __post_init__(self) -> None:
        if len(self.key_hex) > 2 * KEY_LENGTH or not _HEX.fullmatch(self.key_hex):
            expected = f"at most {KEY_LENGTH} bytes as hexadecimal digits"
            raise refuse("key_hex", expected, self.key_hex)


@dataclass(frozen=True)
class _Counters(StoredDocument):
    SCHEMA: ClassVar[str] = "windtunnel-counters/1"

    counters: list[CounterFacts]


def read_samples(path: Path) -> Records | None:
    """Read all counter samples in a file. Returns None if the file is missing."""
    return read_records(path, COUNTER_SAMPLE)


def write_counters(path: Path, counters: list[CounterFacts]) -> None:
    """Write each counter's description and last value."""
    _Counters(counters).write(path)


def read_counters(path: Path) -> list[CounterFacts] | None:
    """Read all counters' descriptions and last values. Returns None if the file is missing."""
    found = _Counters.read(path)
    return None if found is None else found.counters
