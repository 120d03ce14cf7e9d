"""`windtunnel replay`: repeats a run with the decisions that its middlebox recorded."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from windtunnel.harness.cli.options import name_values, out_option
from windtunnel.harness.cli.render.table import echo
from windtunnel.harness.cli.replay.recorded_run import (
    FIDELITIES,
    is_live,
    peers_of,
    read_manifest,
    require_known_defects,
    require_replayable,
)

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.agreement import Agreement
    from windtunnel.harness.artifact.run.manifest import Manifest
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.orchestrate.fidelity import Fidelity


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
