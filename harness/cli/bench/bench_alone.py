"""The `windtunnel bench` cases that are selected alone.

analyze    capture analysis by Windtunnel's engines and by tshark
lab        relay datagrams per second; runs per minute of each fidelity that uses real sockets
recovery   streams on paths with losses, with ours and the real C driver; see `bench_recovery`
"""

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure, one_line

if TYPE_CHECKING:
    from windtunnel.harness.orchestrate.fidelity import Fidelity

ALONE = ANALYSIS, LAB, RECOVERY = ("analyze", "lab", "recovery")
TSHARK_LIMIT_S = 600.0
FLOOR_MISSED = 1
FLOORS = {"relay": 50_000.0, "netns": 20.0, "compose": 6.0}
"""Minimum value of each figure on an idle machine with two cores."""
UNITS = {"relay": "datagrams/s of 1 kB", "netns": "runs/min", "compose": "runs/min"}
SEEDS: "dict[Fidelity, int]" = {"netns": 4, "compose": 2}


@dataclass(frozen=True)
class LabFigure:
    """One figure that the benchmark case `lab` measured."""

    name: str
    value: float | None
    """The measured value, or None if it could not be measured."""
    remark: str = ""
    is_void: bool = False

    @property
    def is_missed(self) -> bool:
        return self.value is not None and self.value < FLOORS[self.name]


def analysis(frames: int, frame_length: int, rounds: int, json_file: Path | None) -> int:
    """Measure how fast Windtunnel's engines and tshark analyse generated captures."""
    try:
        from windtunnel.reports.analysis import benchmark
    except ImportError as error:
        text = f"{error}: the analysis needs Arrow: install windtunnel[spark]"
        raise Failure(text, exit_code.HARNESS) from error
    try:
        rows = benchmark.measure(
            frames, frame_length, benchmark.ENGINES, {"tshark": _read_by_tshark}, rounds
        )
    except OSError as error:
        raise Failure(str(error), exit_code.HARNESS) from error
    _print("windtunnel-bench-analysis/1", rows, benchmark.lines(rows), json_file)
    return exit_code.OK


def _read_by_tshark(capture: Path) -> None:
    """Run tshark with all Aeron analysis options on a capture. It prints one line per NAK."""
    from windtunnel.harness.orchestrate.processes import process
    from windtunnel.reports.analysis.benchmark import PORT, ReaderUnavailable

    program = shutil.which("tshark")
    if program is None:
        raise ReaderUnavailable("tshark is not on PATH")
    command = [program, "-n", "-2", "-r", str(capture), "-d", f"udp.port=={PORT},aeron"]
    for name in ("sequence_analysis", "stream_analysis"):
        command += ["-o", f"aeron.{name}:TRUE"]
    command += ["-Y", "aeron.nak", "-T", "fields", "-e", "frame.number"]
    process.run(command, timeout_s=TSHARK_LIMIT_S)


def lab(seconds: float, enforce: bool, json_file: Path | None) -> int:
    """Measure the relay's throughput, and the runs per minute in each kind of lab (namespaces,
    containers) that this machine can create.
    """
    from windtunnel.harness.bench import machine
    from windtunnel.harness.orchestrate.cancel import Cancellation, Cancelled

    seen = machine.read_machine()
    try:
        with one_line(), Cancellation():
            figures = [_relay(seconds), *(_runs(name) for name in SEEDS)]
    except Cancelled as cancelled:
        raise Failure(str(cancelled), cancelled.exit_code) from cancelled
    lines = [*map(_line, figures), f"machine  {seen.line}"]
    lines += [f"WARNING  {seen.warning}"] if seen.warning else []
    rows = [{**asdict(each), "floor": FLOORS[each.name]} for each in figures]
    _print("windtunnel-bench-lab/1", rows, lines, json_file)
    if enforce and any(each.is_missed for each in figures):
        return FLOOR_MISSED
    return exit_code.INCONCLUSIVE if any(each.is_void for each in figures) else exit_code.OK


def _relay(seconds: float) -> LabFigure:
    from windtunnel.harness.calibration.rounds import Void
    from windtunnel.harness.calibration.throughput import relay_steps
    from windtunnel.harness.orchestrate.fidelity import NETNS
    from windtunnel.harness.orchestrate.lab import LabError
    from windtunnel.harness.orchestrate.labs import labs
    from windtunnel.harness.orchestrate.processes.watch import RunFailed

    try:
        labs.require(NETNS)
        steps = relay_steps(seconds, note)
    except LabError as error:
        return LabFigure("relay", None, f"left out: {error}")
    except (Void, RunFailed) as error:
        return LabFigure("relay", None, str(error), is_void=True)
    held = [each for each in steps if not each.trouble]
    trouble = f"then {steps[-1].trouble}" if steps[-1].trouble else "all rates were sustained"
    return LabFigure("relay", held[-1].sent_per_s if held else 0.0, trouble)


def _runs(fidelity: "Fidelity") -> LabFigure:
    from windtunnel.harness.bench.runs import measure_runs
    from windtunnel.harness.orchestrate.lab import LabError

    with tempfile.TemporaryDirectory(prefix="windtunnel-bench-") as folder:
        note(f"{fidelity}: runs")
        try:
            result = measure_runs(fidelity, SEEDS[fidelity], Path(folder))
        except LabError as error:
            return LabFigure(fidelity, None, f"left out: {error}")
    if result.void:
        return LabFigure(fidelity, None, result.void, is_void=True)
    return LabFigure(fidelity, result.per_minute, f"{result.runs} runs in {result.took_s:.1f} s")


def _line(figure: LabFigure) -> str:
    if figure.value is None:
        return f"{figure.name:<8} {'VOID: ' if figure.is_void else ''}{figure.remark}"
    missed = " MISSED" if figure.is_missed else ""
    floor = f"at least {FLOORS[figure.name]:,.0f}{missed}"
    return f"{figure.name:<8} {figure.value:>9,.0f} {UNITS[figure.name]} ({floor}); {figure.remark}"


def require_folder(report: Path | None) -> None:
    """Raise UsageError if a page was requested in a folder that does not exist."""
    if report is not None and not report.absolute().parent.is_dir():
        raise click.UsageError(f"--report: expected a file in an existing folder, found {report}")


def note(text: str) -> None:
    """Print a benchmark's progress message on stderr."""
    click.echo(f"windtunnel bench: {text}", err=True)


def _print(
    schema: str, rows: list[dict[str, Any]], lines: list[str], json_file: Path | None
) -> None:
    """Print benchmark results as text, or as JSON with `--json -`. With `--json FILE`, also write
    the JSON document to the file.
    """
    document = {"schema": schema, "rows": rows}
    write_json(document, json_file)
    is_stdout = str(json_file) == "-"
    click.echo(json.dumps(document, indent=1) if is_stdout else "\n".join(lines))


def write_json(document: dict[str, Any], json_file: Path | None) -> None:
    """Write a document to a file. Does nothing if the file is None or `-` (stdout)."""
    from windtunnel.harness.artifact.regular_file import naming

    if json_file is None or str(json_file) == "-":
        return
    with naming(json_file):
        json_file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
