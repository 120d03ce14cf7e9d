"""Runs the attack on an archive for the command line, and replays its findings."""

import argparse
import time
from dataclasses import asdict

from windtunnel.harness.fuzz.archive.archive_attack import ArchiveAttack
from windtunnel.harness.fuzz.finding import Finding, Violation, packed
from windtunnel.harness.fuzz.output import Output


def attack(given: argparse.Namespace, output: Output) -> int:
    """Attack archives until the first violation. Returns the number of violations."""
    made, number, began_s = ArchiveAttack(given.memory, given.seed), 0, time.monotonic()
    try:
        while number == 0 or time.monotonic() - began_s < given.for_s:
            made.epoch(number, given.requests)
            number += 1
            _tell(output, made, time.monotonic() - began_s)
    except Violation as violation:
        found = Finding(
            "archive", "ours", "", given.seed, number, str(violation), packed(made.inputs)
        )
        _tell(output, made, time.monotonic() - began_s)
        output.found(found, found.write(given.out))
        return 1
    return 0


def _tell(output: Output, made: ArchiveAttack, since_s: float) -> None:
    counts = made.counts
    output.report(
        asdict(counts) | {"seconds": round(since_s, 1), "seed": made.seed},
        f"{since_s:6.0f} s  {counts.requests} requests, {counts.kills} kills, {counts.damages} "
        f"damaged catalogs, {counts.refusals} refusals, {counts.replays} replays, slowest answer "
        f"{counts.slowest_s:.2f} s, {counts.epochs} epochs",
    )


def replay(given: argparse.Namespace, found: Finding) -> int:
    """Repeat the inputs of a finding. Returns their number. Raises Violation if a check fails
    again, or DocumentError if the finding is invalid.
    """
    inputs = found.input_list()
    ArchiveAttack(given.memory, found.seed).replay(inputs)
    return len(inputs)
