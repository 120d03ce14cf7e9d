"""The simulator as a process.

    python -m windtunnel.harness.simulator run --case FILE --out DIR --memory DIR [--sabotage NAME]
    python -m windtunnel.harness.simulator swarm --seed ROOT --seeds N --memory DIR [--jobs J] ...
    python -m windtunnel.harness.simulator serve --fd N --memory DIR
    python -m windtunnel.harness.simulator warm-up

`run` leaves the run folder of one case; prints `ready` when all have subscribed, `simulated
<published> <delivered> <total>` on the way, and `events <digest>` at the end. Exit codes: 0 the
streams went to their end, 1 the subject failed, 2 a wrong command line, 127 the simulator cannot do
what the case asks for.

`swarm` makes trials and prints the bad ones. Exit codes: 0 none, 1 a violation, 2 a wrong command
line, 3 a defect of the simulator.

`serve` makes one run after the other, as `run` does, for the process that holds the other end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case

VIOLATION = 1
HARNESS = 3
UNSUPPORTED = 127
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.simulator")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="one case into a run folder")
    run.add_argument("--case", type=Path, required=True, help="case.json of the run")
    run.add_argument("--out", type=Path, required=True, help="the run folder")
    run.add_argument("--memory", type=Path, required=True, help="where the drivers' files go")
    run.add_argument("--sabotage", default="", help="what to do wrong")
    _add_swarm(commands)
    serve = commands.add_parser("serve", help="cases that come through a descriptor")
    serve.add_argument("--fd", type=int, required=True, help="of the socket")
    serve.add_argument("--memory", type=Path, required=True, help="where the drivers' files go")
    commands.add_parser("warm-up", help="every kernel of the simulator into the cache")
    given = parser.parse_args(arguments)
    if given.command == "warm-up":
        return _warm_up()
    if given.command == "serve":
        return _serve(given)
    try:
        return _run(parser, given) if given.command == "run" else _swarm(given)
    except KeyboardInterrupt:
        return INTERRUPTED


def _warm_up() -> int:
    """Make one small trial and keep it, which takes every kernel there is."""
    from windtunnel.harness.simulator.swarm.swarm import make_trial

    with tempfile.TemporaryDirectory(prefix="windtunnel-warm-up-") as folder:
        result = make_trial(0, Path(folder), frames=20, keep=Path(folder) / "kept")
    for text in (result.violation, result.defect):
        if text:
            print(text, file=sys.stderr)
    return HARNESS if result.violation or result.defect else 0


def _serve(given: argparse.Namespace) -> int:
    from windtunnel.harness.simulator.service import serve

    serve(given.fd, given.memory)
    return 0


def _add_swarm(commands: Any) -> None:
    swarm = commands.add_parser("swarm", help="many trials, each chosen by its seed")
    swarm.add_argument("--seed", type=int, default=0, help="of the first trial")
    swarm.add_argument("--seeds", type=int, default=1, help="how many trials")
    swarm.add_argument("--minutes", type=float, default=0.0, help="begin none after this time")
    swarm.add_argument("--jobs", type=int, default=1, help="processes")
    swarm.add_argument("--frames", type=int, help="in place of the number that a seed chooses")
    swarm.add_argument("--memory", type=Path, required=True, help="where drivers' files go")
    swarm.add_argument("--sabotage", default="", help="what to do wrong in each trial")
    swarm.add_argument("--keep", type=Path, help="folder for the first violation's files")
    swarm.add_argument("--json", dest="as_json", action="store_true", help="a line a trial")


def _swarm(given: argparse.Namespace) -> int:
    from windtunnel.harness.simulator.swarm.swarm import Swarm, SwarmSpec

    made = Swarm(
        SwarmSpec(
            root=given.seed,
            seeds=given.seeds,
            minutes=given.minutes,
            jobs=given.jobs,
            frames=given.frames,
            sabotage=given.sabotage,
            as_json=given.as_json,
            keep=given.keep,
        ),
        given.memory,
    )
    made.run()
    if made.violations:
        return VIOLATION
    return HARNESS if made.defects else 0


def _run(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    from windtunnel.harness.simulator.run_case import Rehearsal, Unsupported

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
