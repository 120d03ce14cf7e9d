"""`windtunnel run`: make runs, show them, judge them, write the report."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from windtunnel.harness.cli import exit_code, scenarios
from windtunnel.harness.cli.runs.ci_files import ci_options, write_ci_files
from windtunnel.harness.cli.render.table import echo, printable
from windtunnel.harness.cli.render.verdict_text import outcome_mark

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.suite import ScenarioResult
    from windtunnel.harness.orchestrate.run.run_spec import Fidelity
    from windtunnel.harness.orchestrate.suite.runner import SuiteResult
    from windtunnel.harness.orchestrate.subjects.subject import Pair
    from windtunnel.harness.scenario.known import KnownFailure
    from windtunnel.harness.scenario.resolved.link_case import Backend


@click.command(short_help="Make runs, judge them, and write an HTML report.")
@click.argument("scenario", nargs=-1, shell_complete=scenarios.complete)
@click.option(
    "--fidelity",
    type=click.Choice(["netns", "compose", "sim"]),
    help="Namespaces, containers or simulation.  [default: compose if a Docker engine answers]",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed of the first run.  [default: the scenario's own]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="How many runs of each scenario, with consecutive seeds.  [default: the scenario's own]",
)
@click.option(
    "--payload",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File whose bytes are sent.  [default: an archive of Python's standard library]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    help="Where the suite folder is made.  [default: runs]",
)
@click.option(
    "--sabotage",
    metavar="NAME",
    help="Make the subject misbehave on purpose, to see that the judge notices.",
)
@click.option(
    "--mutant",
    metavar="NAME",
    help="Run a driver with this planted defect, to see that the judge notices: see `exam --list`.",
)
@click.option(
    "--backend",
    type=click.Choice(["relay", "netem"]),
    help="Who delivers the weather of scenarios that have any.  [default: the scenario's own]",
)
@click.option(
    "--kernel",
    type=click.Choice(["host", "uml"]),
    default="host",
    help="This machine's kernel, or User Mode Linux, which has netem.  [default: host]",
)
@click.option(
    "--publisher",
    metavar="PEER",
    default="ours",
    help="Driver on the publisher's host: ours, pyaeron, java or aeronmd:/path.  [default: ours]",
)
@click.option(
    "--subscriber",
    metavar="PEER",
    default="ours",
    help="Driver on the subscriber's host, likewise.  [default: ours]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    default=1,
    help="How many runs are made at once.  [default: 1]",
)
@click.option(
    "--known",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Known failures (YAML): told, but without effect on the exit code.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="JSON lines on stdout: one a run, one at the end."
)
@ci_options
def run(
    scenario: tuple[str, ...],
    fidelity: str | None,
    seed: int | None,
    seeds: int | None,
    payload: Path | None,
    out: Path,
    sabotage: str | None,
    mutant: str | None,
    backend: "Backend | None",
    kernel: str,
    publisher: str,
    subscriber: str,
    jobs: int,
    known: Path | None,
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
) -> int:
    """Make runs of SCENARIO..., judge them, and write an HTML report.

    A SCENARIO is a name from `windtunnel list` or a YAML file; without any, the three main ones
    are run. Prints one line a run with its verdict and the reason. The exit code is the worst
    verdict's.

    \b
      windtunnel run loss/reliable-2pct --seed 7
      windtunnel run reorder/reliable-swap-and-hold --seeds 10 --fidelity netns
      windtunnel run my-scenario.yaml --payload capture.tar --json | jq .outcome
      windtunnel run --publisher aeronmd:build/aeronmd --subscriber pyaeron
    """
    files = scenarios.find_all(scenario)

    from windtunnel.harness.cli import failure, in_kernel
    from windtunnel.harness.cli.render.display import choose
    from windtunnel.harness.cli.machine import default_fidelity
    from windtunnel.harness.orchestrate.suite.runner import run_suite

    _check_defects(sabotage, mutant, kernel)
    if kernel == "uml":
        return in_kernel.run(files, click.get_current_context().params)
    chosen = fidelity or default_fidelity()
    with failure.one_line():
        entries = _known(known)
        pair = tested(publisher, subscriber, mutant, chosen, out)
        with choose(as_json) as display:
            result = run_suite(
                files,
                fidelity=cast("Fidelity", chosen),
                seed=seed,
                seeds=seeds,
                payload_file=payload,
                out=out,
                on_event=display.on_event,
                sabotage=sabotage,
                backend=backend,
                tested=pair,
                jobs=jobs,
                known=entries,
            )
        report = write_report(result.suite_dir)
        _write_ci_files(result.suite_dir, junit, markdown)
    tell_runs(result, report, as_json)
    return result.exit_code


def _check_defects(sabotage: str | None, mutant: str | None, kernel: str) -> None:
    """Refuse a sabotage that nobody knows, and a mutant where none can be planted."""
    from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES

    if sabotage is not None and sabotage not in SABOTAGES:
        raise click.UsageError(f"--sabotage is one of {', '.join(SABOTAGES)}")
    if mutant is not None and kernel != "host":
        raise click.UsageError("--mutant needs --kernel host")


def _known(file: Path | None) -> "tuple[KnownFailure, ...]":
    """The failures that are known until a day; none without a file."""
    from windtunnel.harness.scenario.known import load_known
    from windtunnel.harness.verdict.registry import CHECKS
    from windtunnel.harness.verdict.checks.subject import NAME as SUBJECT_LIVED

    return load_known(file, {*CHECKS, SUBJECT_LIVED}) if file is not None else ()


def tested(publisher: str, subscriber: str, mutant: str | None, fidelity: str, out: Path) -> "Pair":
    """The drivers under test, and the right to make a lab for them."""
    from windtunnel.harness.orchestrate.subjects import peers
    from windtunnel.harness.orchestrate.labs import privileges

    if fidelity == "netns":
        privileges.acquire()
    pair = peers.pair(publisher, subscriber, fidelity, out.resolve() / peers.STORE)
    return pair if mutant is None else _planted(mutant, pair, fidelity, out)


def _planted(name: str, tested: "Pair", fidelity: str, out: Path) -> "Pair":
    """The pair with a defect planted in our driver, made and compiled."""
    from windtunnel.harness.exam import mutant, mutated_driver

    if fidelity == "compose":
        raise click.UsageError(
            "--mutant needs --fidelity netns or sim: an image holds one driver only"
        )
    try:
        chosen = None if name == mutant.NONE else mutant.by_name(name)
        environment = mutated_driver.prepare(
            chosen, fidelity, lambda text: click.echo(text, err=True)
        )
        return mutated_driver.plant(tested, chosen, environment)
    except mutant.MutantError as error:
        raise click.UsageError(str(error)) from error


def write_report(suite_dir: Path) -> Path | None:
    """The suite's report; None, and a line on stderr, when it cannot be written."""
    from windtunnel.reports.page import write_suite_report

    try:
        return write_suite_report(suite_dir)
    except OSError as error:
        click.echo(f"windtunnel: the report could not be written: {error}", err=True)
        return None


def _write_ci_files(suite_dir: Path, junit: Path | None, markdown: Path | None) -> None:
    from windtunnel.harness.artifact.run_dir import SuiteDir
    from windtunnel.harness.artifact.run.suite import Suite
    from windtunnel.reports.outcomes import of_suite

    suite = Suite.read(SuiteDir(suite_dir).document)
    if suite is not None and (junit or markdown):
        write_ci_files(of_suite(suite_dir, suite), junit, markdown)


def suite_lines(scenarios: Sequence["ScenarioResult"], remarks: Sequence[str]) -> list[str]:
    """What is to be said of scenarios that were run more than once, and of known failures."""
    lines = []
    for each in scenarios:
        if each.runs > 1 or each.limit is not None or each.known:
            told = f"{each.scenario}  {each.text}"
            lines.append(f"{outcome_mark(each.outcome)}  {printable(told)}")
    return [*lines, *(click.style(f"NOTE: {printable(remark)}", bold=True) for remark in remarks)]


def commands_again(result: "SuiteResult") -> list[str]:
    """The one line that makes each run that failed again, as its folder has it."""
    from windtunnel.harness.artifact.run_dir import RunDir

    lines = []
    for each in result.runs:
        if each.outcome == "FAIL":
            with suppress(OSError, IndexError):
                lines.append(RunDir(each.run_dir).repro.read_text().splitlines()[0])
    return lines


def tell_runs(result: "SuiteResult", report: Path | None, as_json: bool) -> None:
    """What is to be said when all runs are made."""
    if as_json:
        document = {
            "kind": "suite",
            "exit_code": result.exit_code,
            "suite_dir": str(result.suite_dir),
            "report": None if report is None else str(report),
            "runs": [str(each.run_dir) for each in result.runs],
            "scenarios": [asdict(each) for each in result.scenarios],
            "remarks": result.remarks,
            "again": commands_again(result),
        }
        click.echo(json.dumps(document))
    else:
        for line in suite_lines(result.scenarios, result.remarks):
            click.echo(line)
        for again in commands_again(result):
            echo(f"again: {again}")
        if report is not None:
            echo(f"report: {report}")
    if result.exit_code == exit_code.INTERRUPTED:
        click.echo(f"windtunnel: interrupted; what there is lies in {result.suite_dir}", err=True)
