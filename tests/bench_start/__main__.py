"""Measures what a newcomer waits for, and compares it with the floors of the project.

    python -m tests.bench_start [--rounds 3]

Each figure is the median of the rounds. Downloads are not counted: the environment of this checkout
is used. Commands run as in an ordinary shell, so Python stores its bytecode. Exits with 1 if a
figure is above its floor. Meaningful on a quiet machine only.
"""

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from windtunnel.driver.kernels.sources import CACHE_VARIABLE

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = REPOSITORY / ".venv" / "bin"
SCENARIO = "loss/reliable-2pct"
TIMEOUT_S = 900.0
MIB = 1 << 20
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

Row = tuple[str, str, float, Callable[[Path], float]]


def _environment(cache: Path) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if name != _NO_BYTECODE}
    return {**inherited, CACHE_VARIABLE: str(cache)}


def _took_s(argv: Sequence[str], cache: Path) -> float:
    """Return the wall time of a command in seconds. Raises CalledProcessError."""
    started_s = time.monotonic()
    subprocess.run(
        [str(BIN / argv[0]), *argv[1:]], cwd=cache.parent, env=_environment(cache), check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT_S,
    )  # fmt: skip
    return time.monotonic() - started_s


def _first_pass_s(fidelity: str) -> Callable[[Path], float]:
    """Return a measurement of a run that begins with an empty kernel cache."""

    def measure(folder: Path) -> float:
        return _took_s(("windtunnel", "run", SCENARIO, "--fidelity", fidelity), folder / fidelity)

    return measure


def _kernels_mib(folder: Path) -> float:
    """Return the size of the kernels that the run in network namespaces has compiled."""
    return sum(path.stat().st_size for path in (folder / "netns").rglob("*.image")) / MIB


def _compiled(folder: Path) -> float:
    """Return how many kernels a second run compiles."""
    before = set((folder / "netns").rglob("*.image"))
    _took_s(("windtunnel", "run", SCENARIO, "--fidelity", "netns"), folder / "netns")
    return len(set((folder / "netns").rglob("*.image")) - before)


def _driver(folder: Path, read: Callable[[int, Path], float] | None = None) -> float:
    """Return the time until a driver is ready in seconds, or what `read` returns for its PID and
    directory.
    """
    with tempfile.TemporaryDirectory(prefix="windtunnel-bench-start-") as name:
        started_s = time.monotonic()
        argv = [str(BIN / "windtunnel-driver"), "--dir", f"{name}/driver"]
        environment = _environment(folder / "netns")
        with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            line = driver.stdout.readline()
            ready_s = time.monotonic() - started_s
            assert line.startswith("driver ready"), line
            figure = ready_s if read is None else read(driver.pid, Path(name, "driver"))
            driver.terminate()
    return figure


def _stat_s(folder: Path) -> float:
    """Return the wall time of `stat --once`, for a running driver, in seconds."""
    cache = folder / "netns"
    argv = ("windtunnel", "stat", "--once")
    return _driver(folder, lambda _, directory: _took_s((*argv, "--dir", str(directory)), cache))


def _resident_mib(pid: int, _: Path) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


ROWS: tuple[Row, ...] = (
    ("netns: empty cache to the first PASS", "s", 120.0, _first_pass_s("netns")),
    ("sim: empty cache to the first PASS", "s", 120.0, _first_pass_s("sim")),
    ("kernels on disk for netns", "MiB", 40.0, _kernels_mib),
    ("kernels compiled by the next run", "", 0.0, _compiled),
    ("windtunnel-driver: the same, nothing compiled", "s", math.inf, _driver),
    ("windtunnel-driver: start to ready", "s", 0.3, _driver),
    ("windtunnel-driver: resident memory", "MiB", 120.0, lambda each: _driver(each, _resident_mib)),
    ("windtunnel stat --once", "s", 0.4, _stat_s),
    ("windtunnel list", "s", 0.4, lambda each: _took_s(("windtunnel", "list"), each / "netns")),
)


def main() -> int:
    """Measure all rows, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench_start")
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    figures: dict[str, list[float]] = {name: [] for name, *_ in ROWS}
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="windtunnel-bench-start-") as folder:
            for name, unit, _, measure in ROWS:
                figures[name].append(measure(Path(folder)))
                print(f"round {number + 1}: {name}: {figures[name][-1]:.2f} {unit}", flush=True)
    missed = 0
    print(f"\n{'figure':48} {'median':>9} {'floor':>7}")
    for name, unit, floor, _ in ROWS:
        median = statistics.median(figures[name])
        missed += median > floor
        note = "  ABOVE THE FLOOR" if median > floor else ""
        limit = "-" if math.isinf(floor) else f"{floor:.1f}"
        print(f"{name:48} {median:9.2f} {limit:>7} {unit}{note}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
