"""Tables read from a run folder: counters, ledger, decisions and log buffers.

    hosts/<host>/counters.bin + .json   counters    every change of every counter
    ledger.json                         ledger      what entered and what left the middlebox
    decisions.bin                       decisions   the action applied to each frame
    hosts/<host>/logs/*.logbuffer       frames of the log buffers, term by term

A missing file yields no rows. A malformed file raises RunTableError.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.artifact.host.counter_sample import read_counters, read_samples
from windtunnel.harness.artifact.host.log_index import SUFFIX
from windtunnel.harness.artifact.middlebox.decision import ACTIONS, LINKS, read_decisions
from windtunnel.harness.artifact.middlebox.frame_class import NAMES
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.driver_files.log_buffer import (
    TERM_COUNT,
    LogBufferError,
    TermWalk,
    read_log_buffer,
)

ROWS_PER_BATCH = 1 << 16

COUNTERS = pa.schema(
    [
        ("run", pa.string()),
        ("host", pa.string()),
        ("time_ns", pa.int64()),
        ("counter_id", pa.int32()),
        ("type_id", pa.int32()),
        ("registration_id", pa.int64()),
        ("label", pa.string()),
        ("value", pa.int64()),
    ]
)
LEDGER = pa.schema(
    [
        ("run", pa.string()),
        ("link", pa.string()),
        ("frame_type", pa.string()),
        *(
            (name, pa.int64())
            for name in (
                "received", "sent", "dropped", "duplicated", "held", "swapped", "forged",
                "damaged_from", "damaged_into", "other_streams", "unaccounted",
            )
        ),
    ]
)  # fmt: skip
_DECISION_NUMBERS = (
    "time_ns", "rule", "session_id", "stream_id", "term_id", "term_offset", "frame_length",
    "position", "attempt", "delay_ns", "detail",
)  # fmt: skip
DECISIONS = pa.schema(
    [
        ("run", pa.string()),
        ("link", pa.string()),
        ("action", pa.string()),
        ("frame_type", pa.string()),
        ("is_timing_sensitive", pa.bool_()),
        *((name, pa.int64()) for name in _DECISION_NUMBERS),
    ]
)
"""Columns of the table `decisions`. `rule`: an index into the faults of the run's case. `position`:
-1 for a frame that has no position.
"""
LOG_FRAMES = pa.schema(
    [
        ("file", pa.string()),
        ("position", pa.int64()),
        ("frame_type", pa.string()),
        ("flags", pa.int32()),
        ("frame_length", pa.int32()),
        ("session_id", pa.int32()),
        ("stream_id", pa.int32()),
        ("term_id", pa.int32()),
        ("term_offset", pa.int32()),
        ("reserved_value", pa.int64()),
    ]
)


class RunTableError(ValueError):
    """Raised for an unreadable file or an invalid option. The message names it and the problem."""


def counters(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield a run folder's table COUNTERS in batches, host by host. Raises RunTableError if the
    file is invalid.
    """
    run = RunDir(path)
    for host in _hosts(run):
        samples = read_samples(run.host(host).counter_samples)
        try:
            facts = read_counters(run.host(host).counters) or []
        except DocumentError as error:
            raise RunTableError(f"{path}: {error}") from error
        labels = {(each.counter_id, each.registration_id): each.label for each in facts}
        for part in _parts(samples):
            keys = zip(part["counter_id"].tolist(), part["registration_id"].tolist(), strict=True)
            names = ("time_ns", "counter_id", "type_id", "registration_id", "value")
            columns = {name: _column(part, name, COUNTERS) for name in names}
            columns["run"] = _repeated(path.name, len(part))
            columns["host"] = _repeated(host, len(part))
            columns["label"] = pa.array([labels.get(key) for key in keys], pa.string())
            yield pa.RecordBatch.from_arrays(
                [columns[name] for name in COUNTERS.names], schema=COUNTERS
            )


def ledger(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield a run folder's table LEDGER in batches. Raises RunTableError if the file is invalid."""
    try:
        found = Ledger.read(RunDir(path).ledger)
    except DocumentError as error:
        raise RunTableError(f"{path}: {error}") from error
    if found is None:
        return
    rows = [
        {
            "run": path.name,
            "link": link,
            "frame_type": name,
            **{each: getattr(account, each) for each in LEDGER.names[3:]},
        }
        for link, of_link in sorted(found.links.items())
        for name, account in sorted(of_link.frames.items())
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=LEDGER)


def decisions(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield a run folder's table DECISIONS in batches. Raises RunTableError if the file is
    invalid.
    """
    for part in _parts(read_decisions(RunDir(path).decisions)):
        columns = {name: _column(part, name, DECISIONS) for name in _DECISION_NUMBERS}
        columns["run"] = _repeated(path.name, len(part))
        columns["link"] = _named(part["link"], dict(enumerate(LINKS)), path)
        columns["action"] = _named(part["action"], ACTIONS, path)
        columns["frame_type"] = _named(part["frame_type"], NAMES, path)
        columns["is_timing_sensitive"] = pa.array(part["timing_sensitive"] != 0)
        yield pa.RecordBatch.from_arrays(
            [columns[name] for name in DECISIONS.names], schema=DECISIONS
        )


def log_frames(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield a log buffer's table LOG_FRAMES in batches, oldest term first. Raises RunTableError if
    the file cannot be read or is invalid.
    """
    try:
        with path.open("rb") as file:

            def read_at(offset: int, length: int) -> bytes:
                file.seek(offset)
                return file.read(length)

            log = read_log_buffer(read_at, path.stat().st_size)
            rows: list[dict[str, Any]] = []
            newest = log.active_term_index
            for age in range(TERM_COUNT - 1, -1, -1):
                for frame in TermWalk(log, (newest - age) % TERM_COUNT):
                    rows.append(
                        {
                            "file": str(path),
                            "position": log.position(frame.term_id, frame.term_offset),
                            "frame_type": NAMES.get(frame.type, str(frame.type)),
                            **{name: getattr(frame, name) for name in LOG_FRAMES.names[3:]},
                        }
                    )
                    if len(rows) >= ROWS_PER_BATCH:
                        yield pa.RecordBatch.from_pylist(rows, schema=LOG_FRAMES)
                        rows = []
    except (LogBufferError, OSError) as error:
        raise RunTableError(f"{path}: {error}") from error
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=LOG_FRAMES)


def log_files(path: Path) -> list[Path]:
    """Return the log buffer files below a folder. If the path is a file, return only that file."""
    if path.is_file():
        return [path]
    return sorted(path.rglob(f"*{SUFFIX}"))


READERS: dict[str, tuple[pa.Schema, Callable[[Path], Iterator[pa.RecordBatch]]]] = {
    "counters": (COUNTERS, counters),
    "ledger": (LEDGER, ledger),
    "decisions": (DECISIONS, decisions),
    "logbuffer": (LOG_FRAMES, log_frames),
}
"""The schema and reader of each data source, by its name without the prefix `aeron.`."""


def _hosts(run: RunDir) -> list[str]:
    return sorted(each.name for each in run.hosts.iterdir()) if run.hosts.is_dir() else []


def _parts(records: Any) -> Iterator[Any]:
    if records is None:
        return
    for start in range(0, len(records), ROWS_PER_BATCH):
        yield records[start : start + ROWS_PER_BATCH]


def _column(records: Any, name: str, schema: pa.Schema) -> pa.Array:
    return pa.array(np.ascontiguousarray(records[name])).cast(schema.field(name).type)


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)


def _named(codes: Any, names: dict[int, str], path: Path) -> pa.Array:
    unknown = sorted(set(codes.tolist()) - set(names))
    if unknown:
        raise RunTableError(f"{path}: decisions.bin has the unknown code {unknown[0]}")
    return pa.array([names[code] for code in codes.tolist()], pa.string())
