"""A verdict in one line, for people and for machines; colour is added only for a terminal."""

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
ABSENT = "?"
WIDTH = max(len(name) for name in COLOURS)


def outcome_mark(outcome: str) -> str:
    """The outcome in its colour, padded so that lines align; click strips colour in a pipe."""
    return click.style(f"{outcome:<{WIDTH}}", fg=COLOURS.get(outcome, "red"), bold=True)


def run_line(
    outcome: str, scenario: str, seed: int | None, reason: str, duration_s: float | None
) -> str:
    """One run in one line: verdict, name, seed, how long, why."""
    lasted = "" if duration_s is None else f"  {duration_s:.1f} s"
    why = f"  {' '.join(reason.split())}" if reason else ""
    told = f"{scenario}  seed {ABSENT if seed is None else seed}{lasted}{why}"
    return f"{outcome_mark(outcome)}  {printable(told)}"


def run_document(outcome: str, scenario: str, seed: int, reason: str) -> dict[str, Any]:
    """The same for machines."""
    return {"kind": "run", "scenario": scenario, "seed": seed, "outcome": outcome, "reason": reason}


def finding_line(outcome: str, name: str, text: str) -> str:
    """One gate or check, indented below its run."""
    return f"    {outcome_mark(outcome)}  {printable(f'{name:<28}  {text}')}"
