"""The simulator as a process.

    python -m harness.simulator run --case case.json --out DIR --memory DIR [--sabotage NAME]

`run` leaves the run folder of one case; prints `ready` when all have subscribed, `simulated
<published> <delivered> <total>` on the way, and `events <digest>` at the end. Exit codes: 0 the
streams went to their end, 1 the subject failed, 2 a wrong command line, 127 the simulator cannot do
what the case asks for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.artifact.run_dir import RunDir
from harness.scenario.case import Case

UNSUPPORTED = 127


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m harness.simulator")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="one case into a run folder")
    run.add_argument("--case", type=Path, required=True, help="case.json of the run")
    run.add_argument("--out", type=Path, required=True, help="the run folder")
    run.add_argument("--memory", type=Path, required=True, help="where the drivers' files go")
    run.add_argument("--sabotage", default="", help="what to do wrong")
    given = parser.parse_args(arguments)
    return _run(parser, given)


def _run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    from harness.simulator.run_case import Rehearsal, Unsupported

    try:
        case = Case.read(given.case)
    except (OSError, ValueError) as error:
        parser.error(f"--case {given.case}: {error}")
    try:
        return Rehearsal(case, RunDir(given.out), given.memory, given.sabotage).run()
    except Unsupported as error:
        print(f"simulator: {error}", file=sys.stderr)
        return UNSUPPORTED


if __name__ == "__main__":
    sys.exit(main())
