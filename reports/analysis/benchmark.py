"""How fast captures are analysed: the local engine, Spark, and other readers, one after the other.

Each reads the same made capture, and ours a small one before that, so that nothing is compiled
meanwhile. Ratios are those of one run on one machine; what else runs there disturbs all alike.
Other readers are given as functions: this room starts no programs.
"""

import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reports.analysis.analyze import analyze
from reports.analysis.made_traffic import write_capture

ENGINES = ("local", "spark")
FRAMES, FRAME_LENGTH = 1_000_000, 1_024
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
    readings = {name: ours[name] for name in engines}
    readings |= {name: _other(reader) for name, reader in others.items()}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="windtunnel-bench-") as folder:
        path, small = Path(folder) / "made.pcap", Path(folder) / "small.pcap"
        write_capture(small, _WARM_UP_FRAMES, frame_length)
        count = write_capture(path, frames, frame_length)
        for engine, reading in readings.items():
            try:
                wall_s, cpu_s = reading(path, small)
            except MissingReader as error:
                rows.append({"engine": engine, "missing": str(error)})
                continue
            rows.append(
                {
                    "engine": engine,
                    "frames": count,
                    "bytes": path.stat().st_size,
                    "wall_s": wall_s,
                    "cpu_s": cpu_s,
                    "frames_per_s": count / wall_s,
                    "frames_per_cpu_s": count / cpu_s if cpu_s else None,
                    "memory_mib": _memory_kib() / 1024 if engine == "local" else None,
                }
            )
    return rows


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
    from reports.analysis.spark_engine import EngineError, start_session

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


def _other(reader: Reader) -> Callable[[Path, Path], tuple[float, float]]:
    return lambda path, _: _timed(lambda: reader(path), resource.RUSAGE_CHILDREN)


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
            text += f", {slowest['wall_s'] / row['wall_s']:.1f} times tshark"
        told.append(text)
    return told
