"""Runs the attack on the tools for the command line, and replays its findings."""

import argparse
import time
from dataclasses import asdict

from windtunnel.harness.fuzz.finding import Finding
from windtunnel.harness.fuzz.output import Output
from windtunnel.harness.fuzz.tools.tools_attack import ToolsAttack
from windtunnel.harness.fuzz.tools.trial import unpacked

REPORT_INTERVAL_S = 10.0


def attack(given: argparse.Namespace, output: Output) -> int:
    """Attack the tools, and write a file for each violation. Returns the number of violations."""
    made, number, began_s = ToolsAttack(given.memory, given.seed), 0, time.monotonic()
    told_s, written = began_s, 0

    def on_progress() -> None:
        nonlocal told_s, written
        for found in made.findings[written:]:
            written += 1
            output.found(found, found.write(given.out, f"-{written}-{_name(found)}"))
        if time.monotonic() - told_s > REPORT_INTERVAL_S:
            _tell(output, made, time.monotonic() - began_s)
            told_s = time.monotonic()

    while not made.is_over and (number == 0 or time.monotonic() - began_s < given.for_s):
        made.epoch(number, given.files, on_progress)
        number += 1
        _tell(output, made, time.monotonic() - began_s)
    return len(made.findings)


def _name(found: Finding) -> str:
    """Return the command of a finding as part of a file name."""
    name = bytes.fromhex(str(found.inputs[0][2])).decode()
    return "".join(each if each.isalnum() else "-" for each in name.lower())


def _tell(output: Output, made: ToolsAttack, since_s: float) -> None:
    counts = made.counts
    output.report(
        asdict(counts) | {"seconds": round(since_s, 1), "seed": made.seed},
        f"{since_s:6.0f} s  {counts.files} damaged files, {counts.files / since_s:.0f}/s, "
        f"{counts.violations} violations, {counts.epochs} epochs",
    )


def replay(given: argparse.Namespace, found: Finding) -> int:
    """Repeat the trial of a finding. Returns the number of commands that were run. Raises Violation
    if the outcome is wrong again, or DocumentError if the finding is invalid.
    """
    ToolsAttack(given.memory, found.seed).replay(unpacked(found.input_list()))
    return 1
