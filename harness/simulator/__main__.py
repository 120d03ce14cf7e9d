"""Command line of the simulator process.

    python -m windtunnel.harness.simulator run --case FILE --out DIR --memory DIR [--sabotage NAME]
                                            [--real HOST ...]
    python -m windtunnel.harness.simulator swarm --seed ROOT --seeds N --memory DIR [--jobs J] ...
    python -m windtunnel.harness.simulator serve --fd N --memory DIR
    python -m windtunnel.harness.simulator warm-up

`run` runs one case and writes its run folder. It prints `ready` when all subscribers have
subscribed, `simulated <published> <delivered> <total>` as progress, and `events <digest>` at the
end. Exit codes: 0 if all streams completed, 1 if the driver or a workload failed, 2 for an invalid
command line, 127 if the case requires something that the simulator does not support.

`swarm` runs trials and prints those that failed. Exit codes: 0 if no trial failed, 1 for a
violation, 2 for an invalid command line, 3 for a simulator defect or a run folder that cannot be
written, 127 if the real C driver's library cannot be used.

`serve` runs cases as `run` does, one after the other, for the process at the other end of a socket.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windtunnel.driver.kernels.cache_error import advice
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.resolved.case import Case

VIOLATION = 1
HARNESS = 3
UNSUPPORTED = 127
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.simulator")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run one case and write its run folder")
    run.add_argument("--case", type=Path, required=True, help="the run's case.json")
    run.add_argument("--out", type=Path, required=True, help="path of the run folder")
    run.add_argument("--memory", type=Path, required=True, help="folder for the drivers' files")
    run.add_argument("--sabotage", default="", help="fault to inject into the driver or workload")
    run.add_argument(
        "--real", action="append", default=[], help="name of a host that runs the real C driver"
    )
    _add_swarm(commands)
    serve = commands.add_parser("serve", help="run the cases that the caller sends over a socket")
    serve.add_argument("--fd", type=int, required=True, help="file descriptor of the socket")
    serve.add_argument("--memory", type=Path, required=True, help="folder for the drivers' files")
    commands.add_parser("warm-up", help="compile every simulator kernel into the cache")
    options = parser.parse_args(arguments)
    if options.command == "warm-up":
        return _warm_up()
    if options.command == "serve":
        return _serve(options)
    if options.command == "swarm":
        return _swarm_or_defect(options)
    try:
        return _run(parser, options)
    except KeyboardInterrupt:
        return INTERRUPTED


def _warm_up() -> int:
    """Compile every kernel by running a small trial and writing its run folder."""
    from windtunnel.driver.kernels.warm_up_signals import end_on_signals
    from windtunnel.harness.simulator.swarm.swarm import run_trial

    end_on_signals()
    with tempfile.TemporaryDirectory(prefix="windtunnel-warm-up-") as folder:
        result = run_trial(0, Path(folder), frames=20, keep=Path(folder) / "kept")
    for text in (result.violation, result.defect):
        if text:
            print(text, file=sys.stderr)
    return HARNESS if result.violation or result.defect else 0


def _serve(options: argparse.Namespace) -> int:
    from windtunnel.harness.simulator.service import serve

    serve(options.fd, options.memory)
    return 0


def _add_swarm(commands: Any) -> None:
    swarm = commands.add_parser("swarm", help="run many trials, each derived from its seed")
    swarm.add_argument("--seed", type=int, default=0, help="seed of the first trial")
    swarm.add_argument("--seeds", type=int, default=1, help="number of trials")
    swarm.add_argument(
        "--minutes",
        type=float,
        default=0.0,
        help="stop starting new trials after this many minutes (default: no limit)",
    )
    swarm.add_argument("--jobs", type=int, default=1, help="number of processes")
    swarm.add_argument(
        "--frames", type=int, help="frames per trial (default: derived from the seed)"
    )
    swarm.add_argument("--memory", type=Path, required=True, help="folder for the drivers' files")
    swarm.add_argument("--sabotage", default="", help="fault to inject into each trial")
    swarm.add_argument(
        "--recovery-modes",
        action="store_true",
        help="give some streams Windtunnel's modes of loss recovery, on either or both sides",
    )
    swarm.add_argument(
        "--driver",
        default="ours",
        help="drivers of the hosts: ours, pyaeron, mixed or aeronmd-lib:PATH",
    )
    swarm.add_argument(
        "--compare",
        action="store_true",
        help="also run each trial with Windtunnel's driver, and compare the figures",
    )
    swarm.add_argument("--keep", type=Path, help="path for the first failing trial's run folder")
    swarm.add_argument(
        "--json", dest="as_json", action="store_true", help="print one JSON line per trial"
    )


def _swarm_or_defect(options: argparse.Namespace) -> int:
    """Run trials. The exit code of an error is not that of a violation, which Python's would be."""
    try:
        return _swarm(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        # Python writes what is left in stdout again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        print(f"simulator: {error}{advice(error)}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return HARNESS


def _swarm(options: argparse.Namespace) -> int:
    from windtunnel.harness.simulator.support import Unsupported
    from windtunnel.harness.simulator.swarm.swarm import Swarm, SwarmSpec

    swarm = Swarm(
        SwarmSpec(
            root=options.seed,
            seeds=options.seeds,
            minutes=options.minutes,
            jobs=options.jobs,
            frames=options.frames,
            sabotage=options.sabotage,
            as_json=options.as_json,
            keep=options.keep,
            modes=options.recovery_modes,
            drivers=options.driver,
            compare=options.compare,
        ),
        options.memory,
    )
    try:
        swarm.run()
    except Unsupported as error:
        print(f"simulator: {error}", file=sys.stderr)
        return UNSUPPORTED
    if swarm.violations:
        return VIOLATION
    return HARNESS if swarm.defects or not swarm.is_folder_complete else 0


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    from windtunnel.harness.simulator.run_case import CaseRun, Unsupported

    try:
        case = Case.read(options.case)
    except (OSError, ValueError) as error:
        parser.error(f"--case {options.case}: {error}")
    try:
        out = RunDir(options.out)
        return CaseRun(case, out, options.memory, options.sabotage, options.real).run()
    except Unsupported as error:
        print(f"simulator: {error}", file=sys.stderr)
        return UNSUPPORTED


if __name__ == "__main__":
    sys.exit(main())
