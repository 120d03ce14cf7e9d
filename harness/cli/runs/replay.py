"""`windtunnel replay`: make a run again with the very decisions that its middlebox took."""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.render.table import echo

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.agreement import Agreement
    from windtunnel.harness.artifact.run.manifest import Manifest
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.orchestrate.run.run_spec import Fidelity


FIDELITIES = ("netns", "compose", "sim")


@dataclass(frozen=True)
class Changes:
    """What is to be different from the run that is replayed; None where nothing is."""

    fidelity: str | None
    publisher: str | None
    subscriber: str | None
    is_sound: bool

    def arguments(self) -> list[str]:
        """The same as the command line has it."""
        given = ("fidelity", self.fidelity), ("publisher", self.publisher)
        words = [
            word
            for name, value in (*given, ("subscriber", self.subscriber))
            if value is not None
            for word in (f"--{name}", value)
        ]
        return [*words, "--sound"] if self.is_sound else words


@click.command(short_help="Make a run again with the very decisions of its middlebox.")
@click.argument("run_dir", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--fidelity",
    type=click.Choice(FIDELITIES),
    help="Where to replay it.  [default: where the run was made]",
)
@click.option("--publisher", metavar="PEER", help="Another driver on the publisher's host.")
@click.option("--subscriber", metavar="PEER", help="Another driver on the subscriber's host.")
@click.option(
    "--sound", is_flag=True, help="Without the sabotage or the mutant that the run was made with."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Where the suite folder is made.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="JSON lines on stdout: the run, and the agreement."
)
def replay(
    run_dir: Path,
    fidelity: str | None,
    publisher: str | None,
    subscriber: str | None,
    sound: bool,
    out: Path,
    as_json: bool,
) -> int:
    """Make the run in RUN_DIR again with the decisions of its decision log.

    Each frame that the middlebox struck then suffers the same now, and no other frame does,
    whatever the rules would choose. A frame is known by its link, stream, session and type, by its
    position and how often that has passed, or else by its number among its like. The log has
    which frames, in which attempt, what was done, for how long, and which bits were flipped; the
    scenario has the frames that were forged, and the event for which a frame was held.

    The weather of a link is in no log: it is made anew.

    Traffic, seed, payload and peers are the run's, unless told otherwise. A program that the run
    names by its path is not started: give it again on the command line if you trust it. Ends with
    how many decisions were repeated and which frames never came: a driver that asks later, or does
    not ask again, sends other frames. RUN_DIR may be what `windtunnel swarm --keep` left. The exit
    code is that of the verdict.

    \b
      windtunnel replay runs/<suite>/<run>
      windtunnel replay runs/<suite>/<run> --subscriber pyaeron
      windtunnel replay runs/<suite>/<run> --fidelity sim --sound
    """
    from windtunnel.harness.artifact.regular_file import untrusted_folder
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.cli.failure import one_line

    folder = RunDir(untrusted_folder(run_dir))
    changes = Changes(fidelity, publisher, subscriber, sound)
    with one_line():
        manifest = manifest_of(folder)
        if not folder.scenario.exists() and manifest.scenario == "swarm":
            from windtunnel.harness.cli.runs.replay_trial import replay_trial

            return replay_trial(folder, manifest, bool(changes.arguments()), out, as_json)
        require_repeatable(folder)
        return _replay(folder, manifest, changes, out, as_json)


def manifest_of(folder: "RunDir") -> "Manifest":
    """What was run in a folder; a Failure where there is no run, or none that can have been."""
    from windtunnel.harness.artifact.run.manifest import Manifest
    from windtunnel.harness.cli.failure import Failure
    from windtunnel.harness.scenario.schema.model import SEED_MAX

    if not folder.path.is_dir():
        raise Failure(f"{folder.path}: there is no such folder", exit_code.INCONCLUSIVE)
    manifest = Manifest.read(folder.manifest)
    if manifest is None:
        text = f"{folder.path}: no run folder: it has no {folder.manifest.name}"
        raise Failure(text, exit_code.INCONCLUSIVE)
    for name, value, is_possible, expected in (
        ("fidelity", manifest.fidelity, manifest.fidelity in FIDELITIES, ", ".join(FIDELITIES)),
        ("seed", manifest.seed, 0 <= manifest.seed <= SEED_MAX, f"0 to {SEED_MAX}"),
    ):
        if not is_possible:
            text = f"{folder.manifest}: {name}: expected one of {expected}, found {value!r}"
            raise Failure(text, exit_code.INCONCLUSIVE)
    return manifest


def peers_of(
    folder: "RunDir", manifest: "Manifest", publisher: str | None, subscriber: str | None
) -> tuple[str, str]:
    """The names of the peers to start: those given, else those of the run.

    Raises Failure if the run's is no built-in peer: what a run folder names is never started.
    """
    from windtunnel.harness.cli.failure import Failure
    from windtunnel.harness.orchestrate.subjects.peers import ALIASES, BUILT_IN_NAMES

    recorded = {each.side: each.peer for each in manifest.subjects.values()}
    found = []
    for side, given in (("publisher", publisher), ("subscriber", subscriber)):
        name = given or recorded.get(side, "ours")
        if given is None and name not in BUILT_IN_NAMES and name not in ALIASES:
            text = f"the run names the peer {name!r}, and programs that a run folder names are"
            hint = f"if you trust it, add --{side} {shlex.quote(name)}"
            raise Failure(f"{folder.manifest}: {text} not started: {hint}", exit_code.USAGE)
        found.append(name)
    return found[0], found[1]


def require_known_defects(folder: "RunDir", sabotage: str, mutant: str) -> None:
    """Raise Failure if a run names a sabotage or a mutant that does not exist; empty is none."""
    from windtunnel.harness.cli.failure import Failure
    from windtunnel.harness.exam.mutant import NONE, MutantError, by_name
    from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES

    try:
        if sabotage and sabotage not in SABOTAGES:
            text = f"sabotage: expected one of {', '.join(SABOTAGES)}, found {sabotage!r}"
            raise Failure(f"{folder.manifest}: {text}", exit_code.INCONCLUSIVE)
        if mutant not in ("", NONE):
            by_name(mutant)
    except MutantError as error:
        raise Failure(f"{folder.manifest}: mutant: {error}", exit_code.INCONCLUSIVE) from error


def require_repeatable(folder: "RunDir") -> None:
    """A Failure that says what is wrong, unless all that a replay needs is there and agrees."""
    from windtunnel.harness.artifact.middlebox.decision import DecisionLogError, read_repeatable
    from windtunnel.harness.artifact.middlebox.ledger import Ledger
    from windtunnel.harness.artifact.regular_file import size_of
    from windtunnel.harness.cli.failure import Failure
    from windtunnel.harness.middlebox.engine.replayed_decisions import FateError, compile_fates
    from windtunnel.harness.scenario.resolved.case import Case

    for path in (folder.scenario, folder.case, folder.payload):
        try:
            size_of(path)
        except FileNotFoundError as error:
            text = f"{path}: this file of the run is missing, without which it cannot be made again"
            raise Failure(text, exit_code.INCONCLUSIVE) from error
    try:
        case = Case.read(folder.case)
    except ValueError as error:
        text = f"{folder.case}: cannot be understood: {str(error).splitlines()[0]}"
        raise Failure(text, exit_code.INCONCLUSIVE) from error
    try:
        decisions = read_repeatable(folder.decisions)
        compile_fates(case, decisions)
    except DecisionLogError as error:
        raise Failure(str(error), exit_code.INCONCLUSIVE) from error
    except FateError as error:
        raise Failure(f"{folder.decisions}: {error}", exit_code.INCONCLUSIVE) from error
    ledger = Ledger.read(folder.ledger)
    struck = None if ledger is None else sum(each.struck for each in ledger.rules.values())
    if struck is not None and struck != len(decisions):
        text = f"{folder.decisions}: the ledger tells of {struck} decisions"
        raise Failure(f"{text}, the log has {len(decisions)}", exit_code.INCONCLUSIVE)


def _replay(
    folder: "RunDir", manifest: "Manifest", changes: Changes, out: Path, as_json: bool
) -> int:
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.cli.render.display import choose
    from windtunnel.harness.cli.runs.run import tell_runs, tested, write_report
    from windtunnel.harness.orchestrate.run.run_spec import Replayed
    from windtunnel.harness.orchestrate.suite.runner import run_suite

    fidelity = changes.fidelity or manifest.fidelity
    peers = peers_of(folder, manifest, changes.publisher, changes.subscriber)
    sabotage, mutant = ("", "") if changes.is_sound else (manifest.sabotage, manifest.mutant)
    require_known_defects(folder, sabotage, mutant)
    command = ("windtunnel", "replay", str(folder.path), *changes.arguments())
    pair = tested(*peers, mutant or None, fidelity, out)
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
            replayed=Replayed(manifest.run_id, folder.decisions, command),
        )
    report = write_report(result.suite_dir)
    tell_runs(result, report, as_json)
    for each in result.runs:
        _tell(RunDir(each.run_dir), as_json)
    return result.exit_code


def _tell(made: "RunDir", as_json: bool) -> None:
    """How far the decisions were repeated."""
    from windtunnel.harness.artifact.run.agreement import Agreement

    found = Agreement.read(made.replay)
    if as_json:
        click.echo(json.dumps(document(found)))
    elif found is None:
        click.echo("replay: the run ended before anything could be compared", err=True)
    else:
        echo(f"replay: {found.text}")
    sys.stdout.flush()


def document(found: "Agreement | None") -> dict[str, object]:
    """An agreement as a line of JSON; `whole` is null where none could be made."""
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
