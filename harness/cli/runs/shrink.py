"""`windtunnel shrink`: from a run that failed to the smallest scenario that still does."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.runs.replay import FIDELITIES
from windtunnel.harness.cli.render.table import echo

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.orchestrate.run.run_spec import Fidelity, RunSpec
    from windtunnel.harness.orchestrate.subjects.subject import Pair
    from windtunnel.harness.replay.shrink_run import Shrunk, Wish


@click.command(short_help="Find the smallest scenario that still fails as a run did.")
@click.argument("run_dir", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--check",
    metavar="NAME",
    help="The check that must stay violated.  [default: the first that the run violated]",
)
@click.option(
    "--fidelity",
    type=click.Choice(FIDELITIES),
    help="Where to try.  [default: sim; where the run was made if it does not fail there]",
)
@click.option(
    "--mutant",
    metavar="NAME",
    help="Plant this defect in the driver: see `exam --list`.  [default: the run's own]",
)
@click.option("--publisher", metavar="PEER", help="Another driver on the publisher's host.")
@click.option("--subscriber", metavar="PEER", help="Another driver on the subscriber's host.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1, max=99),
    default=3,
    show_default=True,
    help="Runs of each try outside of sim, where runs differ; most of them decide.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Where the folder of the tries is made.",
)
@click.option("--json", "as_json", is_flag=True, help="What came of it as JSON on stdout.")
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
    """Find the smallest scenario that still fails as the run in RUN_DIR did.

    The run is made again with its recorded decisions, then without one stream after the other,
    with half of the traffic, without all decisions of a rule, and without ever more of what is
    left, by delta debugging: as long as the same check is violated. What remains is written as
    rules of position, which are tried by themselves, and then with simpler acts.

    In sim equal cases have equal events, so one run of each try is enough. Elsewhere each try is
    run several times.

    Leaves OUT/shrink-.../shrunk.yaml, and beside it the run that it makes fail. Ctrl-C ends the
    search; the smallest that was found until then is written. A program that the run names by its
    path is not started: give it again on the command line if you trust it. Exit codes: 0 found,
    2 the run does not fail or does not fail again.

    \b
      windtunnel shrink runs/<suite>/<run>
      windtunnel shrink runs/<suite>/<run> --check naks_only_for_gaps --fidelity netns
    """
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.orchestrate.cancel import Cancelled

    with one_line():
        wishes = Wishes(run_dir, check, mutant, (publisher, subscriber), repeats, out)
        try:
            return _shrink(wishes, fidelity, as_json)
        except Cancelled as cancelled:
            click.echo("windtunnel: interrupted before the run had failed again", err=True)
            return cancelled.exit_code


def _shrink(wishes: "Wishes", fidelity: str | None, as_json: bool) -> int:
    from windtunnel.harness.replay.shrink_run import NotFoundAgain, shrink_run
    from windtunnel.harness.replay.trial import TrialError

    places = [fidelity] if fidelity else list(dict.fromkeys(("sim", wishes.manifest.fidelity)))
    for place in places:
        try:
            shrunk, asked = shrink_run(wishes.at(place), _say)
        except (NotFoundAgain, TrialError) as error:
            if place == places[-1]:
                raise Failure(str(error), exit_code.INCONCLUSIVE) from error
            _say(str(error))
        else:
            _tell(shrunk, as_json)
            return exit_code.OK if asked is None else asked
    raise AssertionError("there is at least one place")


class Wishes:
    """What is to be shrunk, for any fidelity."""

    def __init__(
        self,
        run_dir: Path,
        check: str | None,
        mutant: str | None,
        given: tuple[str | None, str | None],
        repeats: int,
        out: Path,
    ) -> None:
        """Raises Failure, in words for the user, for a folder that cannot be shrunk."""
        from windtunnel.harness.artifact.regular_file import untrusted_folder
        from windtunnel.harness.artifact.run_dir import RunDir
        from windtunnel.harness.cli.runs.replay import manifest_of, peers_of, require_known_defects, require_repeatable

        self._folder = RunDir(untrusted_folder(run_dir))
        self.manifest = manifest_of(self._folder)
        if self.manifest.scenario == "swarm" and not self._folder.scenario.exists():
            text = "a trial of the swarm has no scenario to make smaller: its seed chooses all"
            hint = "try `windtunnel swarm --seed N --seeds 1 --frames FEWER`"
            raise Failure(f"{run_dir}: {text}; {hint}", exit_code.INCONCLUSIVE)
        require_repeatable(self._folder)
        if self.manifest.replays:
            text = f"this run repeats the decisions of {self.manifest.replays}: shrink that one"
            raise Failure(f"{run_dir}: {text}", exit_code.INCONCLUSIVE)
        self._peers = peers_of(self._folder, self.manifest, *given)
        require_known_defects(
            self._folder, self.manifest.sabotage, "" if mutant else self.manifest.mutant
        )
        self._mutant = mutant or self.manifest.mutant
        self._checks = _checks(self._folder, check, is_planted=mutant is not None)
        self._repeats, self._out = repeats, out.resolve()

    def at(self, fidelity: str) -> "Wish":
        """The wish for one place."""
        from windtunnel.harness.cli.runs.run import tested
        from windtunnel.harness.orchestrate.labs import labs
        from windtunnel.harness.replay.shrink_run import Wish

        manifest = self.manifest
        pair = tested(*self._peers, self._mutant or None, fidelity, self._out)
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
        return Wish(
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
        from windtunnel.harness.orchestrate.suite.runner import PAYLOAD_STORE, anywhere, payload_of
        from windtunnel.harness.replay.trial import RUN
        from windtunnel.harness.scenario.loader import load_scenario

        name = f"shrink-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
        home = self._out / name
        home.mkdir(parents=True)
        return RunSpec(
            run_id=f"{name}/{RUN}",
            scenario=anywhere(load_scenario(self._folder.scenario)),
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
    """The checks to look for; none, which stands for any, of a run before a defect was planted."""
    from windtunnel.harness.replay.trial import TrialError, violated_checks

    try:
        violated = tuple(violated_checks(folder))
    except TrialError as error:
        if not is_planted:
            raise Failure(str(error), exit_code.INCONCLUSIVE) from error
        violated = ()
    if check is not None and not is_planted and check not in violated:
        text = f"it violated {', '.join(violated) or 'nothing'}"
        raise Failure(f"{folder.path}: --check {check}: {text}", exit_code.USAGE)
    if check is not None:
        return (check,)
    if not violated and not is_planted:
        text = "this run violated no check: there is nothing to shrink"
        raise Failure(f"{folder.path}: {text}", exit_code.INCONCLUSIVE)
    return () if is_planted else violated


def _say(text: str) -> None:
    echo(text, err=True)


def _tell(shrunk: "Shrunk", as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"kind": "shrink", **asdict(shrunk)}))
        return
    echo(f"{shrunk.check}: {shrunk.finding}")
    echo(
        f"{shrunk.decisions_before} decisions -> {shrunk.ranges} "
        f"range{'' if shrunk.ranges == 1 else 's'}, "
        f"{shrunk.streams_before} streams -> {shrunk.streams_after}, "
        f"{shrunk.bytes_before} bytes -> {shrunk.bytes_after}"
    )
    echo(
        f"{shrunk.runs} runs in {shrunk.fidelity}: the first after {shrunk.first_run_s:g} s, "
        f"then {shrunk.steps_s:g} s"
    )
    if shrunk.is_interrupted:
        echo("interrupted: smaller ones may still fail")
    echo(f"scenario: {shrunk.scenario}")
    if shrunk.is_sure:
        echo(f"again: {' '.join(shrunk.command)}")
    elif shrunk.run:
        echo("its rules alone do not fail, its decisions do:")
        echo(f"again: windtunnel replay {shrunk.run}")
    else:
        echo("its rules were not tried by themselves")
