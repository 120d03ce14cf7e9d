"""Command-line program that attacks a driver, an archive or the tools, replays an attack or
measures its cost.

    python -m windtunnel.harness.fuzz attack --against driver|archive|tools --memory DIR --for-s S
                                             --seed N --out DIR [--driver D] [--mode M] [--json]
                                             [--datagrams N] [--requests N] [--files N]
    python -m windtunnel.harness.fuzz replay --memory DIR --finding FILE --out DIR [--json]
    python -m windtunnel.harness.fuzz budgets --memory DIR --seed N [--driver D] [--json]

Exit codes: 0 no violation, 1 a violation or an exceeded budget, 2 the finding cannot be read, 3 the
driver could not be started, 130 interrupted.
"""

import argparse
import itertools
import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType

from windtunnel.harness.artifact.documents import DocumentError
from windtunnel.harness.bench.host import DriverHost
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.subject import SUBJECTS
from windtunnel.harness.fuzz import finding as findings
from windtunnel.harness.fuzz.archive import command as archive_command
from windtunnel.harness.fuzz.archive.archive_attack import EPOCH_REQUESTS
from windtunnel.harness.fuzz.budgets import LIMITS, Figures, measure
from windtunnel.harness.fuzz.driver_attack import (
    EPOCH_DATAGRAMS,
    OURS_ALONE,
    SETTINGS,
    DriverAttack,
)
from windtunnel.harness.fuzz.finding import Finding, Violation
from windtunnel.harness.fuzz.output import Output
from windtunnel.harness.fuzz.tools import command as tools_command
from windtunnel.harness.fuzz.tools.tools_attack import EPOCH_FILES
from windtunnel.harness.orchestrate.lab import LabError

VIOLATED, UNREADABLE, HARNESS, INTERRUPTED = 1, 2, 3, 130
SUBJECT_NAMES = {"ours": "ours", "pyaeron": "c"}
"""Driver name on the command line -> driver name in the benchmark."""
MODES = ("SHARED", "DEDICATED")
COMMANDS: dict[str, ModuleType] = {"archive": archive_command, "tools": tools_command}
"""Attacked program -> module with its functions `attack` and `replay`. The driver is attacked
here.
"""


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Returns the exit code."""
    given = _parser().parse_args(arguments)
    # Context managers stop the driver and the flood. Without a handler, SIGTERM would bypass them.
    signal.signal(signal.SIGTERM, _stop)
    command = {"attack": _attack, "replay": _replay, "budgets": _budgets}[given.command]
    try:
        return command(given)
    except KeyboardInterrupt:
        return INTERRUPTED
    except DocumentError as error:
        print(f"windtunnel: {error}", file=sys.stderr)
        return UNREADABLE
    except LabError as error:
        print(f"windtunnel: {error}", file=sys.stderr)
        return HARNESS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.fuzz")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("attack", "replay", "budgets"):
        command = commands.add_parser(name)
        command.add_argument("--memory", type=Path, required=True)
        command.add_argument("--out", type=Path, default=Path("runs/fuzz"))
        command.add_argument("--json", dest="as_json", action="store_true")
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--driver", choices=[*SUBJECT_NAMES, "all"], default="ours")
        command.add_argument("--mode", choices=MODES, default="SHARED")
        command.add_argument("--for-s", type=float, default=60.0)
        command.add_argument("--against", choices=["driver", *COMMANDS], default="driver")
        command.add_argument("--requests", type=int, default=EPOCH_REQUESTS)
        command.add_argument("--files", type=int, default=EPOCH_FILES)
        command.add_argument("--datagrams", type=int, default=EPOCH_DATAGRAMS)
        command.add_argument("--finding", type=Path)
    return parser


def _host(driver: str, mode: str, memory: Path) -> DriverHost:
    settings = BenchSettings(threading_mode=mode, both_set=SETTINGS, ours_set=OURS_ALONE)
    return DriverHost(SUBJECTS[SUBJECT_NAMES[driver]], settings, memory / driver)


def _attack(given: argparse.Namespace) -> int:
    output, began_s = Output(given.as_json), time.monotonic()
    if given.against == "driver":
        count = _attack_driver(given, output)
    else:
        count = COMMANDS[given.against].attack(given, output)
    if count == 0:
        since_s = time.monotonic() - began_s
        output.message(f"found no violation within {since_s:.0f} s, seed {given.seed}")
    return VIOLATED if count else 0


def _attack_driver(given: argparse.Namespace, output: Output) -> int:
    """Attack a driver until its first violation. Returns the number of violations."""
    began_s = time.monotonic()
    with _host(given.driver, given.mode, given.memory) as host:
        attack, number = DriverAttack(host, given.seed), 0
        try:
            while number == 0 or time.monotonic() - began_s < given.for_s:
                attack.epoch(number, given.datagrams)
                number += 1
                _tell(output, attack, time.monotonic() - began_s)
        except Violation as violation:
            found = Finding(
                "driver", given.driver, given.mode, given.seed, number, str(violation),
                findings.packed(attack.inputs),
            )  # fmt: skip
            _tell(output, attack, time.monotonic() - began_s)
            output.found(found, found.write(given.out))
            return 1
        finally:
            attack.close()
    return 0


def _replay(given: argparse.Namespace) -> int:
    output, found = Output(given.as_json), findings.read(given.finding)
    try:
        if found.against == "driver":
            count = _replay_driver(given, found)
        else:
            count = COMMANDS[found.against].replay(given, found)
    except Violation as violation:
        output.report({"violation": str(violation)}, f"violated again: {violation}")
        return VIOLATED
    output.report({"violation": None}, f"repeated {count} inputs, found no violation")
    return 0


def _replay_driver(given: argparse.Namespace, found: Finding) -> int:
    """Repeat an attack on a driver. Returns the number of inputs."""
    inputs = found.input_list()
    if found.driver not in SUBJECT_NAMES or found.mode not in MODES:
        raise DocumentError(
            f"{given.finding}: expected a driver from {', '.join(SUBJECT_NAMES)} and a mode from "
            f"{', '.join(MODES)}, found {found.driver!r} and {found.mode!r}"
        )
    with _host(found.driver, found.mode, given.memory) as host:
        attack = DriverAttack(host, found.seed)
        try:
            attack.replay(found.epoch, inputs)
        finally:
            attack.close()
    return len(inputs)


def _budgets(given: argparse.Namespace) -> int:
    drivers = list(SUBJECT_NAMES) if given.driver == "all" else [given.driver]
    if find_spec("pyaeron") is None and given.driver == "all":
        drivers.remove("pyaeron")
    output, found = Output(given.as_json), list[Figures]()
    has_violation = False
    for driver, mode in itertools.product(drivers, MODES):
        try:
            found.append(measure(SUBJECT_NAMES[driver], mode, given.memory, given.seed))
        except Violation as violation:
            # The figures of the other driver and mode are still of interest.
            output.report(
                {"violation": str(violation), "driver": driver, "mode": mode},
                f"violated: driver {driver} in {mode} mode: {violation}",
            )
            has_violation |= driver == "ours"
            continue
        if given.as_json:
            print(json.dumps(asdict(found[-1])), flush=True)
    if found and not given.as_json:
        _print_table(found)
    has_exceeded = any(each.driver == "ours" and each.exceeded() for each in found)
    return VIOLATED if has_violation or has_exceeded else 0


def _print_table(found: list[Figures]) -> None:
    heads = [f"{each.driver} {each.mode}" for each in found]
    print(f"{'':24}{'budget':>10}" + "".join(f"{head:>16}" for head in heads))
    for name in asdict(found[0]):
        if name not in ("driver", "mode"):
            limit = f"{LIMITS[name]:g}" if name in LIMITS else ""
            values = "".join(f"{asdict(each)[name]:>16.2f}" for each in found)
            print(f"{name:24}{limit:>10}{values}")
    for each in found:
        for name in each.exceeded():
            print(f"driver {each.driver} in {each.mode} mode exceeds its budget for {name}")


def _tell(output: Output, attack: DriverAttack, since_s: float) -> None:
    counts = attack.counts
    output.report(
        asdict(counts) | {"seconds": round(since_s, 1), "seed": attack.seed},
        f"{since_s:6.0f} s  {counts.datagrams} datagrams, {counts.commands} commands, "
        f"{counts.writes} writes into logs, {counts.epochs} epochs",
    )


if __name__ == "__main__":
    sys.exit(main())
