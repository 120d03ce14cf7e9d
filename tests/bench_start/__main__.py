"""Measures the waiting times of a new user, and compares them with the project's floors.

    python -m tests.bench_start [--rounds 3] [--tests]

Each figure is the median of the rounds; with --tests, `make test` is measured once, too. Downloads
are not counted: the environment of this checkout is used. Commands run as in an ordinary shell, so
Python stores its bytecode. Without a container engine, the rows of containers are left out. Exits
with 1 if a figure is above its floor. Meaningful on a quiet machine only.
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

from tests.bench_start.containers import ComposeRun
from tests.package import wheel_pair
from windtunnel.driver.kernels.sources import CACHE_VARIABLE

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = REPOSITORY / ".venv" / "bin"
SCENARIO = "loss/reliable-2pct"
TIMEOUT_S = 900.0
MIB = 1 << 20
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_OF_MAKE = ("ARGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")

Row = tuple[str, str, float, Callable[[Path], float]]


def _environment(cache: Path) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if name != _NO_BYTECODE}
    return {**inherited, CACHE_VARIABLE: str(cache)}


def _took_s(argv: Sequence[str], cache: Path, programs: Path = BIN) -> float:
    """Return the wall time of a command in seconds. Raises CalledProcessError."""
    started_s = time.monotonic()
    subprocess.run(
        [str(programs / argv[0]), *argv[1:]], cwd=cache.parent, env=_environment(cache), check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=TIMEOUT_S,
    )  # fmt: skip
    return time.monotonic() - started_s


def _first_pass_s(fidelity: str) -> Callable[[Path], float]:
    """Return a measurement of a run that begins with an empty kernel cache."""

    def measure(folder: Path) -> float:
        return _took_s(("windtunnel", "run", SCENARIO, "--fidelity", fidelity), folder / fidelity)

    return measure


def _with_wheels_s(folder: Path) -> float:
    """Return the duration of a run in an environment that has the kernel wheel."""
    cache = folder / "wheels" / "kernels"
    cache.parent.mkdir()
    argv = ("windtunnel", "run", SCENARIO, "--fidelity", "sim")
    return _took_s(argv, cache, wheel_pair.install(folder / "environment"))


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


def _tests_s(cache: str) -> Callable[[Path], float]:
    """Return a measurement of `make test` with a cache of this name in the folder."""

    def measure(folder: Path) -> float:
        started_s = time.monotonic()
        # Without the variables of the command line, because `make bench-start` has its own ARGS.
        environment = _environment(folder / cache)
        environment = {name: text for name, text in environment.items() if name not in _OF_MAKE}
        make = subprocess.run(
            ["make", "test"], cwd=REPOSITORY, env=environment, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=4 * TIMEOUT_S,
        )  # fmt: skip
        took_s = time.monotonic() - started_s
        assert make.returncode == 0, make.stdout[-4000:]
        return took_s

    return measure


ROWS: tuple[Row, ...] = (
    ("netns: empty cache to the first PASS", "s", 120.0, _first_pass_s("netns")),
    ("sim: empty cache to the first PASS", "s", 120.0, _first_pass_s("sim")),
    ("sim: with the kernel wheel", "s", 25.0, _with_wheels_s),
    ("kernels on disk for netns", "MiB", 40.0, _kernels_mib),
    ("kernels compiled by the next run", "", 0.0, _compiled),
    ("windtunnel-driver: the same, nothing compiled", "s", math.inf, _driver),
    ("windtunnel-driver: start to ready", "s", 0.3, _driver),
    ("windtunnel-driver: resident memory", "MiB", 120.0, lambda each: _driver(each, _resident_mib)),
    ("windtunnel stat --once", "s", 0.4, _stat_s),
    ("windtunnel list", "s", 0.4, lambda each: _took_s(("windtunnel", "list"), each / "netns")),
)
CONTAINERS: tuple[Row, ...] = (
    ("docker compose up, three scenarios", "s", 75.0, lambda each: ComposeRun(each).took_s()),
    ("kernels compiled in its containers", "", 0.0, lambda each: ComposeRun(each).compiled()),
)
TESTS: tuple[Row, ...] = (
    ("make test, empty cache", "s", 900.0, _tests_s("tests")),
    ("make test, warm cache", "s", 600.0, _tests_s("tests")),
)


def _has_engine() -> bool:
    try:
        return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def _measured(rows: Sequence[Row], rounds: int) -> list[tuple[Row, float]]:
    """Return the rows and their medians."""
    figures: list[list[float]] = [[] for _ in rows]
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="windtunnel-bench-start-") as folder:
            for (name, unit, _, measure), found in zip(rows, figures, strict=True):
                found.append(measure(Path(folder)))
                print(f"round {number + 1}: {name}: {found[-1]:.2f} {unit}", flush=True)
    return [(row, statistics.median(each)) for row, each in zip(rows, figures, strict=True)]


def main() -> int:
    """Measure all rows, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench_start")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tests", action="store_true", help="also measure `make test`, once")
    options = parser.parse_args()
    wheel_pair.build()
    rows = ROWS
    if _has_engine():
        rows += CONTAINERS
    else:
        print("no container engine: `docker compose up` is not measured", flush=True)
    table = _measured(rows, options.rounds)
    if options.tests:
        table += _measured(TESTS, 1)
    missed = 0
    print(f"\n{'figure':48} {'median':>9} {'floor':>7}")
    for (name, unit, floor, _), median in table:
        missed += median > floor
        note = "  ABOVE THE FLOOR" if median > floor else ""
        limit = "-" if math.isinf(floor) else f"{floor:.1f}"
        print(f"{name:48} {median:9.2f} {limit:>7} {unit}{note}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
