"""Formats verdicts and findings as single lines and as JSON documents."""

from typing import Any

import click

from windtunnel.harness.cli.render.table import printable

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


def run_document(outcome: str, scenario: str, seed: int, reason: str) -> dict[str, Any]:
    """Return the outcome of a run as a JSON document."""
    return {"kind": "run", "scenario": scenario, "seed": seed, "outcome": outcome, "reason": reason}


def finding_line(outcome: str, name: str, text: str) -> str:
    """Return the output line of a gate or check, indented below the line of its run."""
    return f"    {outcome_mark(outcome)}  {printable(f'{name:<28}  {text}')}"
