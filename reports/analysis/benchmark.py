"""Benchmark that compares capture analysis by the local engine, by Spark and by other programs.

The readers run one at a time, each as often as there are rounds; a figure is the median. The
engines read the same synthetic capture, after a small one, so compilation is not measured. It is on
the disk and in the page cache. Other readers get a similar capture, no longer than their rate
requires. Ratios compare frames per second in one run on one machine, where other load affects all
readers alike. Other readers are passed as functions: this module starts no programs.
"""

import gc
import os
import resource
import statistics
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
"""Maximum number of frames for other programs. Their rate does not depend on the capture length."""
PORT = 24_325
"""UDP port by which other programs recognize Aeron in the capture."""
_WARM_UP_FRAMES = 5_000

Reader = Callable[[Path], None]

Times = list[tuple[float, float]]
"""Wall and CPU seconds of each round."""


class ReaderUnavailable(RuntimeError):
    """Raised if a program to compare with is not available. The message gives the reason."""


def measure(
    frames: int,
    frame_length: int,
    engines: tuple[str, ...],
    others: Mapping[str, Reader],
    rounds: int = 1,
) -> list[dict[str, Any]]:
    """Measure how fast the analysis engines and other programs read a capture. Returns a row for
    each, with its figures or why it is unavailable.

    The figures are frames, bytes, wall and CPU time, rates and memory. The capture is temporary.
    Raises OSError if it cannot be written.
    """
    ours: dict[str, Callable[[Path, Path, int], Times]] = {"local": _local, "spark": _spark}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="windtunnel-bench-") as folder:
        path, small = Path(folder) / "synthetic.pcap", Path(folder) / "small.pcap"
        write_capture(small, _WARM_UP_FRAMES, frame_length)
        count = write_capture(path, frames, frame_length)
        _write_to_disk(path)
        for engine in engines:
            rows.append(_row(engine, count, path, partial(ours[engine], path, small, rounds)))
        if others and frames > OTHERS_FRAMES_MAX:
            count = write_capture(path, OTHERS_FRAMES_MAX, frame_length)
        for engine, reader in others.items():
            rows.append(_row(engine, count, path, partial(_other, reader, path, rounds)))
    return rows


def _write_to_disk(path: Path) -> None:
    """Write a new file to the disk, so that the system does not do this during a measurement."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _row(engine: str, count: int, path: Path, reading: Callable[[], Times]) -> dict[str, Any]:
    try:
        times = reading()
        wall_s, cpu_s = (statistics.median(each) for each in zip(*times, strict=True))
    except ReaderUnavailable as error:
        return {"engine": engine, "missing": str(error)}
    return {
        "engine": engine,
        "frames": count,
        "bytes": path.stat().st_size,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "frames_per_s": count / wall_s,
        "frames_per_cpu_s": count / cpu_s if cpu_s else None,
        "rounds": len(times),
        "memory_mib": _memory_kib() / 1024 if engine == "local" else None,
    }


def _timed(work: Callable[[], object], usage_of: int, rounds: int) -> Times:
    """Call a function in each round, and return the wall and CPU seconds it took."""
    return [_once(work, usage_of) for _ in range(rounds)]


def _once(work: Callable[[], object], usage_of: int) -> tuple[float, float]:
    before, start = resource.getrusage(usage_of), time.perf_counter()
    work()
    wall_s, after = time.perf_counter() - start, resource.getrusage(usage_of)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s


def _memory_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _local(path: Path, small: Path, rounds: int) -> Times:
    analyze([str(small)])
    gc.freeze()  # as `windtunnel analyze` does
    return _timed(lambda: analyze([str(path)]), resource.RUSAGE_SELF, rounds)


def _spark(path: Path, small: Path, rounds: int) -> Times:
    from windtunnel.reports.analysis.engines.spark.spark_engine import EngineError, start_session

    quiet = {"spark.log.level": "ERROR", "spark.ui.enabled": "false"}
    try:
        session = start_session("local[*]", quiet)
    except EngineError as error:
        raise ReaderUnavailable(str(error)) from error
    try:
        analyze([str(small)], spark=session)
        times = _timed(lambda: analyze([str(path)], spark=session), resource.RUSAGE_SELF, rounds)
    finally:
        session.stop()
    # Spark's workers are children of a JVM that keeps running, so their CPU time is not available.
    return [(wall_s, 0.0) for wall_s, _ in times]


def _other(reader: Reader, path: Path, rounds: int) -> Times:
    return _timed(lambda: reader(path), resource.RUSAGE_CHILDREN, rounds)


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """Format benchmark results as lines, each with the reader's speed relative to tshark."""
    tshark = next((row for row in rows if row["engine"] == "tshark" and "wall_s" in row), None)
    found = []
    for row in rows:
        if "missing" in row:
            found.append(f"{row['engine']:<7} not measured: {row['missing']}")
            continue
        text = f"{row['engine']:<7} {row['frames_per_s']:>12,.0f} frames/s"
        if row["frames_per_cpu_s"]:
            text += f", {row['frames_per_cpu_s']:,.0f} frames/CPU s"
        if row["memory_mib"]:
            text += f", {row['memory_mib']:,.0f} MiB"
        if tshark is not None and row is not tshark:
            text += f", {row['frames_per_s'] / tshark['frames_per_s']:.1f} times as fast as tshark"
        found.append(text)
    return found
