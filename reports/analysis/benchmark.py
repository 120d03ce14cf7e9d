"""How fast captures are analysed: the local engine, Spark, and tshark, one after the other.

    python -m reports.analysis.benchmark [--frames N] [--frame-length BYTES] [--engines ...]

Each reads the same made capture, and ours a small one before that, so that nothing is compiled
meanwhile. Ratios are those of one run on one machine; what else runs there disturbs all alike.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reports.analysis.analyze import analyze
from reports.analysis.made_traffic import write_capture

ENGINES = ("local", "spark", "tshark")
FRAMES, FRAME_LENGTH = 1_000_000, 1_024
_WARM_UP_FRAMES = 5_000
_PORT = 24_325


def measure(frames: int, frame_length: int, engines: tuple[str, ...]) -> list[dict[str, Any]]:
    """A row for each engine: frames, seconds of wall and processor, rate, memory, or what it lacks.

    Raises OSError if the capture cannot be written, and removes it in any case.
    """
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="windtunnel-bench-") as folder:
        path, small = Path(folder) / "made.pcap", Path(folder) / "small.pcap"
        write_capture(small, _WARM_UP_FRAMES, frame_length)
        count = write_capture(path, frames, frame_length)
        for engine in engines:
            reading = {"local": _local, "spark": _spark, "tshark": _tshark}[engine]
            found = reading(path, small)
            if isinstance(found, str):
                rows.append({"engine": engine, "missing": found})
                continue
            wall_s, cpu_s = found
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


def _local(path: Path, small: Path) -> tuple[float, float] | str:
    analyze([str(small)])
    return _timed(lambda: analyze([str(path)]), resource.RUSAGE_SELF)


def _spark(path: Path, small: Path) -> tuple[float, float] | str:
    from reports.analysis.spark_engine import EngineError, start_session

    quiet = {"spark.log.level": "ERROR", "spark.ui.enabled": "false"}
    try:
        session = start_session("local[*]", quiet)
    except EngineError as error:
        return str(error)
    try:
        analyze([str(small)], spark=session)
        wall_s, _ = _timed(lambda: analyze([str(path)], spark=session), resource.RUSAGE_SELF)
    finally:
        session.stop()
    # Its workers are children of a JVM that goes on: their processor time is not told.
    return wall_s, 0.0


def _tshark(path: Path, small: Path) -> tuple[float, float] | str:
    program = shutil.which("tshark")
    if program is None:
        return "no tshark on this machine"
    command = [program, "-n", "-2", "-r", str(path), "-d", f"udp.port=={_PORT},aeron"]
    for name in ("sequence_analysis", "stream_analysis"):
        command += ["-o", f"aeron.{name}:TRUE"]
    command += ["-Y", "aeron.nak", "-T", "fields", "-e", "frame.number"]
    run: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL}
    run["stderr"] = subprocess.DEVNULL
    return _timed(lambda: subprocess.run(command, **run), resource.RUSAGE_CHILDREN)


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


def main(arguments: list[str] | None = None) -> int:
    """Measure and tell. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--frame-length", type=int, default=FRAME_LENGTH)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    engines = tuple(chosen.engines.split(","))
    if not set(engines) <= set(ENGINES):
        parser.error(f"engines {chosen.engines!r}: expected some of {', '.join(ENGINES)}")
    if chosen.frame_length < 64 or chosen.frame_length & (chosen.frame_length - 1):
        parser.error(f"frame length {chosen.frame_length}: expected a power of two from 64 on")
    rows = measure(chosen.frames, chosen.frame_length, engines)
    cores = os.cpu_count()
    text = json.dumps({"cores": cores, "rows": rows}) if chosen.json else "\n".join(lines(rows))
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
