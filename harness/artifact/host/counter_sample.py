"""Counter values over time, and what each counter was.

A sample is written when a value differs from the one before. One pass of the sampler reads all
counters in the order of their ids and stamps them with one `time_ns`, taken before the first read.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.documents import DocumentError, read_document, write_document
from windtunnel.harness.artifact.records import Records, read_records

SCHEMA = "windtunnel-counters/1"

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
    """One counter that a run saw; an id that was freed and taken again is two of them."""

    counter_id: int
    type_id: int
    registration_id: int
    owner_id: int
    reference_id: int
    label: str
    key_hex: str
    "All 112 bytes of the key, as hexadecimal digits."
    final_value: int
    "The last value seen."


def read_samples(path: Path) -> Records | None:
    """All samples, or None when the file is missing."""
    return read_records(path, COUNTER_SAMPLE)


def write_counters(path: Path, counters: list[CounterFacts]) -> None:
    """Write what each counter was, and its last value."""
    write_document(path, {"schema": SCHEMA, "counters": [asdict(each) for each in counters]})


def read_counters(path: Path) -> list[CounterFacts] | None:
    """What each counter was, or None when the file is missing."""
    document = read_document(path, SCHEMA)
    if document is None:
        return None
    try:
        return [CounterFacts(**each) for each in document["counters"]]
    except (KeyError, TypeError) as error:
        raise DocumentError(f"{path.name}: {error}") from error
