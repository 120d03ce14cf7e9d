"""Formats verdicts and findings as single lines and as JSON documents."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli.render.table import printable

if TYPE_CHECKING:
    from windtunnel.harness.orchestrate.event import RunEvent

COLOURS = {
    "PASS": "green",
    "FAIL": "red",
    "KNOWN": "cyan",
    "HARNESS": "magenta",
    "INCONCLUSIVE": "yellow",
    "UNSUPPORTED": "blue",
    "CANCELLED": "yellow",
}
NO_SEED = "?"
_DIGITS = 3
"""Decimal places of rates in JSON lines."""
WIDTH = max(len(name) for name in COLOURS)


def outcome_mark(outcome: str) -> str:
    """Return an outcome such as PASS, padded and coloured. click strips colours if stdout is not a
    terminal.
    """
    return click.style(f"{outcome:<{WIDTH}}", fg=COLOURS.get(outcome, "red"), bold=True)


def run_line(
    outcome: str, scenario: str, seed: int | None, reason: str, duration_s: float | None
) -> str:
    """Return the output line of a run: outcome, scenario, seed, duration, reason."""
    duration = "" if duration_s is None else f"  {duration_s:.1f} s"
    suffix = f"  {' '.join(reason.split())}" if reason else ""
    text = f"{scenario}  seed {NO_SEED if seed is None else seed}{duration}{suffix}"
    return f"{outcome_mark(outcome)}  {printable(text)}"


def run_document(event: "RunEvent") -> dict[str, Any]:
    """Return the verdict of a run as a JSON document, with its folder, and with the rows of its
    figures if it was judged.
    """
    return {
        "kind": "run",
        "scenario": event.scenario,
        "seed": event.seed,
        "outcome": event.outcome,
        "reason": event.text,
        "run_dir": None if event.run_dir is None else str(event.run_dir),
        "results": [] if event.run_dir is None else _results(event.run_dir),
    }


def _results(folder: Path) -> list[dict[str, Any]]:
    from windtunnel.harness.artifact.documents import DocumentError
    from windtunnel.harness.artifact.run.verdict import read_verdict
    from windtunnel.harness.artifact.run_dir import RunDir

    try:
        verdict = read_verdict(RunDir(folder).verdict) or {}
    except DocumentError:
        return []
    rows = verdict.get("results", [])
    return [{name: _rounded(value) for name, value in row.items()} for row in rows]


def _rounded(value: Any) -> Any:
    return round(value, _DIGITS) if isinstance(value, float) else value


def finding_line(outcome: str, name: str, text: str) -> str:
    """Return the output line of a gate or check, indented below the line of its run."""
    return f"    {outcome_mark(outcome)}  {printable(f'{name:<28}  {text}')}"
