"""`windtunnel replay`: repeats a run with the decisions that its middlebox recorded."""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.options import name_values, out_option
from windtunnel.harness.cli.render.table import echo

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.agreement import Agreement
    from windtunnel.harness.artifact.run.manifest import Manifest
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.orchestrate.fidelity import Fidelity


FIDELITIES = ("netns", "compose", "sim")


@dataclass(frozen=True)
class Changes:
    """The differences between a replay and the original run. None means unchanged."""

    fidelity: str | None
    publisher: str | None
    subscriber: str | None
    without_defect: bool

    def arguments(self) -> list[str]:
        """Return the command-line arguments that request these changes."""
        options = ("fidelity", self.fidelity), ("publisher", self.publisher)
        arguments = [
            word
            for name, value in (*options, ("subscriber", self.subscriber))
            if value is not None
            for word in (f"--{name}", value)
        ]
        return [*arguments, "--without-defect"] if self.without_defect else arguments


@click.command(short_help="Repeat a run with the recorded decisions of its middlebox.")
@click.argument("run_dir", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--fidelity",
    type=click.Choice(FIDELITIES),
    help="Use network namespaces, containers or a simulation.  [default: the original run's]",
)
@click.option("--publisher", metavar="PEER", help="Use another driver on the publisher's host.")
@click.option("--subscriber", metavar="PEER", help="Use another driver on the subscriber's host.")
@click.option(
    "--without-defect",
    is_flag=True,
    help="Do not apply the original run's --sabotage or --mutant.",
)
@click.option(
    "--program",
    "programs",
    multiple=True,
    callback=name_values,
    metavar="ID=COMMAND",
    help="The command of a program that ran in a lab. Can be repeated.",
)
@out_option("Parent folder of the suite folder.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON lines: the run, and the number of repeated decisions.",
)
def replay(
    run_dir: Path,
    fidelity: str | None,
    publisher: str | None,
    subscriber: str | None,
    without_defect: bool,
    programs: dict[str, str],
    out: Path,
    as_json: bool,
) -> int:
    """Repeat the run in RUN_DIR with the decisions of its decision log.

    The replay affects exactly the frames that the fault rules affected in that run, in the same
    way, without evaluating the rules. A frame is identified by link, stream, session, type,
    position and transmission attempt. A frame without a position is identified by its number among
    the frames of its type. The log contains the frames, attempts, actions, delays and flipped bits.
    The scenario contains the forged frames and the events that release held frames.

    Link impairments are not logged, so they are random again.

    Traffic, seed, payload and peers are the original run's, unless options change them. If that run
    names a peer by path, the peer is not started: give the path on the command line if you trust
    it. At the end the command prints how many decisions were repeated, and which frames never
    appeared. A driver that sends NAKs at other times, or omits them, causes other retransmissions.
    RUN_DIR can also be a folder written by `windtunnel swarm --keep`. The exit code is that of the
    verdict.

    If a program controlled the run (a test with a lab, or `windtunnel lab`), the replay does what
    that program did: it starts the same programs, changes the same links, and pauses and kills the
    same processes, at the same times. It waits for programs and positions as long as needed. The
    commands of the programs are not taken from RUN_DIR: give each with --program. They start in the
    current folder.

    \b
      windtunnel replay runs/<suite>/<run>
      windtunnel replay runs/<suite>/<run> --subscriber pyaeron
      windtunnel replay runs/<suite>/<run> --fidelity sim --without-defect
      windtunnel replay runs/<suite>/lab-s0 --program "feed=python feed.py"
    """
    from windtunnel.harness.artifact.regular_file import untrusted_folder
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.cli.failure import one_line

    folder = RunDir(untrusted_folder(run_dir))
    changes = Changes(fidelity, publisher, subscriber, without_defect)
    with one_line():
        manifest = read_manifest(folder)
        if not folder.scenario.exists() and manifest.scenario == "swarm":
            from windtunnel.harness.cli.replay.swarm_trial import replay_trial

            return replay_trial(folder, manifest, bool(changes.arguments()), out, as_json)
        if is_live(folder):
            from windtunnel.harness.cli.replay.recorded_lab import replay_lab

            return replay_lab(
                folder,
                programs,
                (publisher, subscriber),
                fidelity,
                out,
                changes.arguments(),
                as_json,
            )
        if programs:
            raise click.UsageError("--program: no program controlled this run")
        require_replayable(folder)
        return _replay(folder, manifest, changes, out, as_json)


def is_live(folder: "RunDir") -> bool:
    """Return whether a program controlled a run. Raises DocumentError for a damaged case."""
    from windtunnel.harness.artifact.documents import read_document

    return (read_document(folder.case) or {}).get("live") is True


def read_manifest(folder: "RunDir") -> "Manifest":
    """Read and validate a run folder's manifest. Raises Failure if it is missing or invalid."""
    from windtunnel.harness.artifact.run.manifest import Manifest
    from windtunnel.harness.cli.failure import Failure
    from windtunnel.harness.scenario.schema.model import SEED_MAX

    if not folder.path.is_dir():
        raise Failure(f"{folder.path}: no such folder", exit_code.INCONCLUSIVE)
    manifest = Manifest.read(folder.manifest)
    if manifest is None:
        text = f"{folder.path}: not a run folder: it has no {folder.manifest.name}"
        raise Failure(text, exit_code.INCONCLUSIVE)
    for name, value, is_valid, expected in (
        ("fidelity", manifest.fidelity, manifest.fidelity in FIDELITIES, " or ".join(FIDELITIES)),
        ("seed", manifest.seed, 0 <= manifest.seed <= SEED_MAX, f"0 to {SEED_MAX}"),
    ):
        if not is_valid:
            text = f"{folder.manifest}: {name}: expected {expected}, found {value!r}"
            raise Failure(text, exit_code.INCONCLUSIVE)
    return manifest


def peers_of(
    folder: "RunDir", manifest: "Manifest", publisher: str | None, subscriber: str | None
) -> tuple[str, str]:
    """Return the names of the peers (drivers) to start: the given names or, by default, the
    original run's.

    Raises Failure if the original run used a peer that is not built in, because a path in a run
    folder is untrusted.
    """
    from windtunnel.harness.cli.failure import Failure
    from windtunnel.harness.orchestrate.subjects.peers import ALIASES, BUILT_IN_NAMES

    recorded = {each.side: each.peer for each in manifest.subjects.values()}
    found = []
    for side, option in (("publisher", publisher), ("subscriber", subscriber)):
        name = option or recorded.get(side, "ours")
        if option is None and name not in BUILT_IN_NAMES and name not in ALIASES:
            text = f"the {side} is {name!r}, and programs named by a run folder are not started"
            hint = f"if you trust it, add --{side} {shlex.quote(name)}"
            raise Failure(f"{folder.manifest}: {text}: {hint}", exit_code.USAGE)
        found.append(name)
    return found[0], found[1]


def require_known_defects(folder: "RunDir", sabotage: str, mutant: str) -> None:
    """Raise Failure if the run folder names an unknown defect for `--sabotage` or `--mutant`. An
    empty name means that the option was not used.
    """
    from windtunnel.harness.cli.failure import Failure
    from windtunnel.harness.exam import mutant_set
    from windtunnel.harness.exam.mutant import MutantError
    from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES

    try:
        if sabotage and sabotage not in SABOTAGES:
            text = f"sabotage: expected one of {', '.join(SABOTAGES)}, found {sabotage!r}"
            raise Failure(f"{folder.manifest}: {text}", exit_code.INCONCLUSIVE)
        if mutant:
            mutant_set.of_name(mutant).chosen(mutant)
    except MutantError as error:
        raise Failure(f"{folder.manifest}: mutant: {error}", exit_code.INCONCLUSIVE) from error


def require_replayable(folder: "RunDir") -> None:
    """Raise Failure unless the run folder has all files that a replay needs, and they do not
    contradict each other.
    """
    from windtunnel.harness.artifact.middlebox.decision import DecisionLogError, read_replayable
    from windtunnel.harness.artifact.middlebox.ledger import Ledger
    from windtunnel.harness.artifact.regular_file import size_of
    from windtunnel.harness.cli.failure import Failure
    from windtunnel.harness.middlebox.engine.replayed_decisions import (
        ReplayError,
        compile_decisions,
    )
    from windtunnel.harness.scenario.resolved.case import Case

    for path in (folder.scenario, folder.case, folder.payload):
        try:
            size_of(path)
        except FileNotFoundError as error:
            text = f"{path}: file not found: the run cannot be repeated without it"
            raise Failure(text, exit_code.INCONCLUSIVE) from error
    try:
        case = Case.read(folder.case)
    except ValueError as error:
        text = f"{folder.case}: cannot be parsed: {str(error).splitlines()[0]}"
        raise Failure(text, exit_code.INCONCLUSIVE) from error
    if case.applications:
        text = (
            f"{folder.path}: the run had applications, and programs named by a run folder are not "
        )
        text += "started: run the original scenario with `windtunnel run FILE --allow-commands`"
        if case.live:
            text = (
                f"{folder.path}: a program controlled this run, so it is repeated by running the "
            )
            text += f"program again: {folder.repro.name} has its command line"
        raise Failure(text, exit_code.USAGE)
    try:
        decisions = read_replayable(folder.decisions)
        compile_decisions(case, decisions)
    except DecisionLogError as error:
        raise Failure(str(error), exit_code.INCONCLUSIVE) from error
    except ReplayError as error:
        raise Failure(f"{folder.decisions}: {error}", exit_code.INCONCLUSIVE) from error
    ledger = Ledger.read(folder.ledger)
    selected = None if ledger is None else sum(each.selected for each in ledger.rules.values())
    if selected is not None and selected != len(decisions):
        text = f"{folder.decisions}: expected {selected} decisions (as in ledger.json)"
        raise Failure(f"{text}, found {len(decisions)}", exit_code.INCONCLUSIVE)


def _replay(
    folder: "RunDir", manifest: "Manifest", changes: Changes, out: Path, as_json: bool
) -> int:
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.cli.render.display import choose
    from windtunnel.harness.cli.runs.run import prepare_drivers
    from windtunnel.harness.cli.runs.run_output import print_suite, write_report
    from windtunnel.harness.orchestrate.allowed_commands import (
        require_allowed,
        without_own_checks,
    )
    from windtunnel.harness.orchestrate.run.run_spec import Replayed
    from windtunnel.harness.orchestrate.scenario_file import load_runnable
    from windtunnel.harness.orchestrate.suite.runner import run_suite

    fidelity = changes.fidelity or manifest.fidelity
    peers = peers_of(folder, manifest, changes.publisher, changes.subscriber)
    sabotage, mutant = ("", "") if changes.without_defect else (manifest.sabotage, manifest.mutant)
    require_known_defects(folder, sabotage, mutant)
    scenario = load_runnable(folder.scenario)
    require_allowed([(folder.scenario, without_own_checks(scenario))])
    if scenario.checks and not as_json:
        text = f"the own checks in {', '.join(scenario.checks)} are left out: no program that a "
        echo(f"{text}run folder names is executed", err=True)
    command = ("windtunnel", "replay", str(folder.path), *changes.arguments())
    pair = prepare_drivers(*peers, mutant or None, fidelity, out)
    with choose(as_json) as display:
        result = run_suite(
            [folder.scenario],
            fidelity=cast("Fidelity", fidelity),
            seed=manifest.seed,
            seeds=1,
            payload_file=folder.payload,
            out=out,
            on_event=display.on_event,
            sabotage=sabotage or None,
            tested=pair,
            receive=manifest.receive,
            replayed=Replayed(manifest.run_id, folder.decisions, command),
        )
    report = write_report(result.suite_dir)
    print_suite(result, report, as_json)
    for each in result.runs:
        _print_agreement(RunDir(each.run_dir), as_json)
    return result.exit_code


def _print_agreement(folder: "RunDir", as_json: bool) -> None:
    """Print how many of the original run's middlebox decisions the replay repeated."""
    from windtunnel.harness.artifact.run.agreement import Agreement

    found = Agreement.read(folder.replay)
    if as_json:
        click.echo(json.dumps(document(found)))
    elif found is None:
        click.echo("replay: nothing to compare: the run ended too early", err=True)
    else:
        echo(f"replay: {found.text}")
    sys.stdout.flush()


def document(found: "Agreement | None") -> dict[str, object]:
    """Return the comparison of a replay with its original as a JSON document."""
    if found is None:
        return {"kind": "replay", "whole": None}
    facts = {"replays": found.replays, "ordered": found.ordered, "repeated": found.repeated}
    return {
        "kind": "replay",
        "whole": found.is_whole,
        **facts,
        "added": found.added,
        "never_came": found.never_came,
    }
