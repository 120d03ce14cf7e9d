"""How fast captures are analysed: the local engine, Spark, and other readers, one after the other.

Ours read the same made capture, and a small one before that, so that nothing is compiled meanwhile;
other readers one of the same kind, which is no longer than they need to tell their rate. Ratios are
of frames a second in one run on one machine; what else runs there disturbs all alike. Other readers
are given as functions: this room starts no programs.
"""

import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.synthetic_traffic import write_capture

ENGINES = ("local", "spark")
OTHERS_FRAMES_MAX = 1_000_000
"""That a reader without an end to its patience is given: its rate does not depend on it."""
PORT = 24_325
"""What tells another reader that the made capture is Aeron's."""
_WARM_UP_FRAMES = 5_000

Reader = Callable[[Path], None]


class MissingReader(RuntimeError):
    """A reader is not there; the text says why."""


def measure(
    frames: int, frame_length: int, engines: tuple[str, ...], others: Mapping[str, Reader]
) -> list[dict[str, Any]]:
    """A row for each reader: frames, seconds of wall and processor, rate, memory, or what it lacks.

    Raises OSError if the capture cannot be written, and removes it in any case.
    """
    ours: dict[str, Callable[[Path, Path], tuple[float, float]]] = {
        "local": _local,
        "spark": _spark,
    }
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="windtunnel-bench-") as folder:
        path, small = Path(folder) / "made.pcap", Path(folder) / "small.pcap"
        write_capture(small, _WARM_UP_FRAMES, frame_length)
        count = write_capture(path, frames, frame_length)
        for engine in engines:
            rows.append(_row(engine, count, path, partial(ours[engine], path, small)))
        if others and frames > OTHERS_FRAMES_MAX:
            count = write_capture(path, OTHERS_FRAMES_MAX, frame_length)
        for engine, reader in others.items():
            rows.append(_row(engine, count, path, partial(_other, reader, path)))
    return rows


def _row(
    engine: str, count: int, path: Path, reading: Callable[[], tuple[float, float]]
) -> dict[str, Any]:
    try:
        wall_s, cpu_s = reading()
    except MissingReader as error:
        return {"engine": engine, "missing": str(error)}
    return {
        "engine": engine,
        "frames": count,
        "bytes": path.stat().st_size,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "frames_per_s": count / wall_s,
        "frames_per_cpu_s": count / cpu_s if cpu_s else None,
        "memory_mib": _memory_kib() / 1024 if engine == "local" else None,
    }


def _timed(work: Callable[[], object], who: int) -> tuple[float, float]:
    """Wall and processor seconds of some work, by this process or its children."""
    before, start = resource.getrusage(who), time.perf_counter()
    work()
    wall_s, after = time.perf_counter() - start, resource.getrusage(who)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s


def _memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _local(path: Path, small: Path) -> tuple[float, float]:
    analyze([str(small)])
    return _timed(lambda: analyze([str(path)]), resource.RUSAGE_SELF)


def _spark(path: Path, small: Path) -> tuple[float, float]:
    from windtunnel.reports.analysis.engines.spark.spark_engine import EngineError, start_session

    quiet = {"spark.log.level": "ERROR", "spark.ui.enabled": "false"}
    try:
        session = start_session("local[*]", quiet)
    except EngineError as error:
        raise MissingReader(str(error)) from error
    try:
        analyze([str(small)], spark=session)
        wall_s, _ = _timed(lambda: analyze([str(path)], spark=session), resource.RUSAGE_SELF)
    finally:
        session.stop()
    # Its workers are children of a JVM that goes on: their processor time is not told.
    return wall_s, 0.0


def _other(reader: Reader, path: Path) -> tuple[float, float]:
    return _timed(lambda: reader(path), resource.RUSAGE_CHILDREN)


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as text, each with how many times as fast as tshark it was."""
    slowest = next((row for row in rows if row["engine"] == "tshark" and "wall_s" in row), None)
    told = []
    for row in rows:
        if "missing" in row:
            told.append(f"{row['engine']:<7} left out: {row['missing']}")
            continue
        text = f"{row['engine']:<7} {row['frames_per_s']:>12,.0f} frames/s"
        if row["frames_per_cpu_s"]:
            text += f", {row['frames_per_cpu_s']:,.0f} a processor second"
        if row["memory_mib"]:
            text += f", {row['memory_mib']:,.0f} MiB"
        if slowest is not None and row is not slowest:
            text += f", {row['frames_per_s'] / slowest['frames_per_s']:.1f} times tshark"
        told.append(text)
    return told
