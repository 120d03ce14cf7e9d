"""`windtunnel shrink`: reduces a failed run to the smallest scenario that fails in the same way."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.options import out_option
from windtunnel.harness.cli.render.table import echo
from windtunnel.harness.cli.replay.recorded_run import FIDELITIES

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.orchestrate.fidelity import Fidelity
    from windtunnel.harness.orchestrate.run.run_spec import RunSpec
    from windtunnel.harness.orchestrate.subjects.subject import Pair
    from windtunnel.harness.replay.shrink_run import ShrinkSpec, Shrunk


@click.command(short_help="Find the smallest scenario that fails like a run.")
@click.argument("run_dir", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--check",
    metavar="NAME",
    help="Name of the check that must stay violated.  [default: the first that the run violated]",
)
@click.option(
    "--fidelity",
    type=click.Choice(FIDELITIES),
    help="Use network namespaces, containers or a simulation.  [default: sim, or the run's "
    "fidelity if it does not fail in sim]",
)
@click.option(
    "--mutant",
    metavar="NAME",
    help="Plant this defect in the driver. `windtunnel exam --list` lists all defects.  [default: "
    "the run's]",
)
@click.option("--publisher", metavar="PEER", help="Use another driver on the publisher's host.")
@click.option("--subscriber", metavar="PEER", help="Use another driver on the subscriber's host.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1, max=99),
    default=3,
    show_default=True,
    help="Number of runs per smaller scenario, except in sim. The majority decides.",
)
@out_option("Parent folder of the result folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def shrink(
    run_dir: Path,
    check: str | None,
    fidelity: str | None,
    mutant: str | None,
    publisher: str | None,
    subscriber: str | None,
    repeats: int,
    out: Path,
    as_json: bool,
) -> int:
    """Find the smallest scenario that fails in the same way as the run in RUN_DIR.

    First the run is repeated with its recorded decisions. Then streams, half of the traffic, and
    all decisions of a rule are removed one after another, and the remaining decisions are reduced
    by delta debugging, as long as the same check is violated. The result is written as rules that
    match positions. These rules are verified in a separate run, and then simplified.

    In sim, equal scenarios give equal results, so each smaller scenario is run only once. With
    other fidelity levels it is run several times.

    Writes OUT/shrink-.../shrunk.yaml, and next to it the run that fails with it. Ctrl-C ends the
    search and writes the smallest scenario found so far. If the run names a peer by path, the peer
    is not started: give the path on the command line if you trust it.

    Exit codes: 0 found; 2 the run does not fail, or its failure cannot be reproduced.

    \b
      windtunnel shrink runs/<suite>/<run>
      windtunnel shrink runs/<suite>/<run> --check naks_only_for_gaps --fidelity netns
    """
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.orchestrate.cancel import Cancelled

    with one_line():
        request = ShrinkRequest(run_dir, check, mutant, (publisher, subscriber), repeats, out)
        try:
            return _shrink(request, fidelity, as_json)
        except Cancelled as cancelled:
            click.echo("windtunnel: interrupted before the failure was reproduced", err=True)
            return cancelled.exit_code


def _shrink(request: "ShrinkRequest", fidelity: str | None, as_json: bool) -> int:
    from windtunnel.harness.replay.shrink_run import NotReproduced, shrink_run
    from windtunnel.harness.replay.trial import TrialError

    candidates = [fidelity] if fidelity else list(dict.fromkeys(("sim", request.manifest.fidelity)))
    for candidate in candidates:
        try:
            shrunk, signal_code = shrink_run(request.at(candidate), _note)
        except (NotReproduced, TrialError) as error:
            if candidate == candidates[-1]:
                raise Failure(str(error), exit_code.INCONCLUSIVE) from error
            _note(str(error))
        else:
            _print_result(shrunk, as_json)
            return exit_code.OK if signal_code is None else signal_code
    raise AssertionError("internal error: shrink has no fidelity to try")


class ShrinkRequest:
    """A request to shrink a failed run. It is valid for every fidelity level (netns, compose or
    sim).
    """

    def __init__(
        self,
        run_dir: Path,
        check: str | None,
        mutant: str | None,
        peers: tuple[str | None, str | None],
        repeats: int,
        out: Path,
    ) -> None:
        """Read the run folder. Raises Failure if the run cannot be shrunk."""
        from windtunnel.harness.artifact.regular_file import untrusted_folder
        from windtunnel.harness.artifact.run_dir import RunDir
        from windtunnel.harness.cli.replay.recorded_run import (
            peers_of,
            read_manifest,
            require_known_defects,
            require_replayable,
        )
        from windtunnel.harness.orchestrate.allowed_commands import (
            require_allowed,
            without_own_checks,
        )
        from windtunnel.harness.orchestrate.scenario_file import load_runnable

        self._folder = RunDir(untrusted_folder(run_dir))
        self.manifest = read_manifest(self._folder)
        if self.manifest.scenario == "swarm" and not self._folder.scenario.exists():
            text = "a swarm trial has no scenario to shrink: its seed determines everything"
            hint = "try `windtunnel swarm --seed N --seeds 1 --frames FEWER`"
            raise Failure(f"{run_dir}: {text}; {hint}", exit_code.INCONCLUSIVE)
        require_replayable(self._folder)
        self._scenario = without_own_checks(load_runnable(self._folder.scenario))
        require_allowed([(self._folder.scenario, self._scenario)])
        if self.manifest.replays:
            text = f"this run is a replay of {self.manifest.replays}: shrink that run instead"
            raise Failure(f"{run_dir}: {text}", exit_code.INCONCLUSIVE)
        if self.manifest.receive:
            text = "expected a run without --receive: put its parameters into the scenario instead"
            raise Failure(f"{run_dir}: {text}", exit_code.INCONCLUSIVE)
        self._peers = peers_of(self._folder, self.manifest, *peers)
        require_known_defects(
            self._folder, self.manifest.sabotage, "" if mutant else self.manifest.mutant
        )
        self._mutant = mutant or self.manifest.mutant
        self._checks = _checks(self._folder, check, is_planted=mutant is not None)
        self._repeats, self._out = repeats, out.resolve()

    def at(self, fidelity: str) -> "ShrinkSpec":
        """Prepare the drivers for a fidelity level (netns, compose or sim), and return the
        specification for shrinking the run at that level.
        """
        from windtunnel.harness.cli.runs.run import prepare_drivers
        from windtunnel.harness.orchestrate.labs import labs
        from windtunnel.harness.replay.shrink_run import ShrinkSpec

        manifest = self.manifest
        pair = prepare_drivers(*self._peers, self._mutant or None, fidelity, self._out)
        if pair.missing:
            raise Failure(pair.missing, exit_code.INCONCLUSIVE)
        labs.require(fidelity)
        options = [
            word
            for name, value in (
                ("publisher", pair.publisher.name),
                ("subscriber", pair.subscriber.name),
                ("sabotage", manifest.sabotage),
                ("mutant", self._mutant),
            )
            if value not in ("", "ours")
            for word in (f"--{name}", value)
        ]
        return ShrinkSpec(
            folder=self._folder,
            manifest=manifest,
            checks=self._checks,
            order=self._order(fidelity, pair),
            repeats=self._repeats,
            options=tuple(options),
        )

    def _order(self, fidelity: str, pair: "Pair") -> "RunSpec":
        from windtunnel.harness.artifact.run_dir import RunDir
        from windtunnel.harness.orchestrate.run.run_spec import RunSpec
        from windtunnel.harness.orchestrate.suite.runner import (
            PAYLOAD_STORE,
            payload_of,
            with_all_fidelities,
        )
        from windtunnel.harness.replay.trial import RUN

        name = f"shrink-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
        home = self._out / name
        home.mkdir(parents=True)
        return RunSpec(
            run_id=f"{name}/{RUN}",
            scenario=with_all_fidelities(self._scenario),
            scenario_file=self._folder.scenario.absolute(),
            seed=self.manifest.seed,
            payload=payload_of(self._out / PAYLOAD_STORE, self._folder.payload),
            folder=RunDir(home / RUN),
            fidelity=cast("Fidelity", fidelity),
            command=tuple(self.manifest.command),
            tested=pair,
            sabotage=self.manifest.sabotage,
            runs=self._out,
        )


def _checks(folder: "RunDir", check: str | None, *, is_planted: bool) -> tuple[str, ...]:
    """Return the checks of which a smaller scenario must violate at least one. An empty result
    (only with --mutant) means that any violated check is sufficient.
    """
    from windtunnel.harness.replay.trial import TrialError, violated_checks
    from windtunnel.harness.scenario.frame_expectation import NAME as EXPECT_FRAMES

    try:
        violated = tuple(violated_checks(folder))
    except TrialError as error:
        if not is_planted:
            raise Failure(str(error), exit_code.INCONCLUSIVE) from error
        violated = ()
    if check is not None and not is_planted and check not in violated:
        text = f"expected a check that the run violated ({', '.join(violated) or 'none'})"
        raise Failure(f"{folder.path}: --check {check}: {text}", exit_code.USAGE)
    if check is not None:
        return (check,)
    if not violated and not is_planted:
        text = "the run violated no check: there is nothing to shrink (own checks and "
        text += f"{EXPECT_FRAMES} do not count, because smaller scenarios are tried without them)"
        raise Failure(f"{folder.path}: {text}", exit_code.INCONCLUSIVE)
    return () if is_planted else violated


def _note(text: str) -> None:
    echo(text, err=True)


def _print_result(shrunk: "Shrunk", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"kind": "shrink", **asdict(shrunk)}))
        return
    echo(f"{shrunk.check}: {shrunk.finding}")
    echo(
        f"{shrunk.decisions_before} decisions -> {shrunk.ranges} "
        f"{noun_for(shrunk.ranges, 'range')}, {shrunk.streams_before} "
        f"{noun_for(shrunk.streams_before, 'stream')} -> {shrunk.streams_after}, "
        f"{shrunk.bytes_before} bytes -> {shrunk.bytes_after}"
    )
    echo(
        f"{shrunk.runs} {noun_for(shrunk.runs, 'run')} in {shrunk.fidelity}: "
        f"the first took {shrunk.first_run_s:g} s, the others {shrunk.steps_s:g} s in total"
    )
    if shrunk.is_interrupted:
        echo("interrupted: a smaller scenario may exist")
    echo(f"scenario: {shrunk.scenario}")
    if shrunk.is_sure:
        echo(f"reproduce: {' '.join(shrunk.command)}")
    elif shrunk.run:
        echo(
            "the scenario's rules do not reproduce the failure, but a replay of the decisions that "
            "the run recorded does:"
        )
        echo(f"reproduce: windtunnel replay {shrunk.run}")
    else:
        echo(
            "not confirmed: the shrink ended before a run showed that the scenario's rules "
            "reproduce the failure"
        )
