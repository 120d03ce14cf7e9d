"""`windtunnel run`: executes scenarios, judges the runs, and writes the report."""

import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from windtunnel.harness.cli import exit_code, failure, in_kernel, scenarios
from windtunnel.harness.cli.options import SEED, InputFile, name_values
from windtunnel.harness.cli.render.table import echo, printable
from windtunnel.harness.cli.render.verdict_text import outcome_mark, run_line
from windtunnel.harness.cli.runs.ci_files import ci_options, write_ci_files

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.suite import ScenarioResult
    from windtunnel.harness.orchestrate.fidelity import Fidelity
    from windtunnel.harness.orchestrate.subjects.subject import Pair
    from windtunnel.harness.orchestrate.suite.runner import SuiteResult
    from windtunnel.harness.scenario.known import KnownFailure
    from windtunnel.harness.scenario.resolved.link_case import Backend
    from windtunnel.harness.scenario.schema.model import Scenario


@click.command(short_help="Run scenarios, judge the runs, and write an HTML report.")
@click.argument("scenario", nargs=-1, shell_complete=scenarios.complete)
@click.option(
    "--fidelity",
    type=click.Choice(["netns", "compose", "sim"]),
    help="Use network namespaces, containers or a simulation.  "
    "[default: compose if a Docker engine responds, else netns, if all scenarios support it]",
)
@click.option(
    "--seed",
    type=SEED,
    help="Seed of the first run.  [default: from the scenario]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Number of runs of each scenario, with consecutive seeds.  [default: from the scenario]",
)
@click.option(
    "--payload",
    type=InputFile("a file to send"),
    metavar="FILE",
    help="File to send.  [default: an archive of Python's standard library]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    help="Parent folder of the suite folder.  [default: runs]",
)
@click.option(
    "--sabotage",
    metavar="NAME",
    help="Make Windtunnel's driver misbehave in this way, to verify that the judge detects it.",
)
@click.option(
    "--mutant",
    metavar="NAME",
    help="Plant this defect in Windtunnel's driver, to verify that the judge detects it. "
    "`windtunnel exam --list` lists all defects.",
)
@click.option(
    "--backend",
    type=click.Choice(["relay", "netem"]),
    help="Backend that applies link impairments.  [default: from the scenario]",
)
@click.option(
    "--receive",
    multiple=True,
    callback=name_values,
    metavar="NAME=VALUE",
    help="Set this channel parameter of all subscriptions. Can be repeated.  [default: from the "
    "scenario]",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=name_values,
    metavar="NAME=VALUE",
    help="Set this value of all scenarios: an impairment of all links such as loss=5%, or a path "
    "such as applications.feed.env.RATE=100. Can be repeated.",
)
@click.option(
    "--kernel",
    type=click.Choice(["host", "uml"]),
    default="host",
    help="Kernel to use: this machine's, or User Mode Linux, which has netem.  [default: host]",
)
@click.option(
    "--publisher",
    metavar="PEER",
    default="ours",
    help="Driver on the publisher's host: ours, pyaeron, java, aeronmd:/path or image:NAME.  "
    "[default: ours]",
)
@click.option(
    "--subscriber",
    metavar="PEER",
    default="ours",
    help="Driver on the subscriber's host, with the same choices.  [default: ours]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    default=1,
    help="Number of parallel runs.  [default: 1]",
)
@click.option(
    "--known",
    type=InputFile("a YAML file with known failures"),
    metavar="FILE",
    help="YAML file that lists known failures. They are reported but do not affect the exit code.",
)
@click.option(
    "--allow-commands",
    is_flag=True,
    help="Start the programs that the scenarios name as their applications, and execute their own "
    "checks. Read a scenario of others first.",
)
@click.option("--compress", is_flag=True, help="Use gzip to compress the captures of passing runs.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON lines: one per run, with its folder and figures, and one at the end.",
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
    receive: dict[str, str],
    settings: dict[str, str],
    kernel: str,
    publisher: str,
    subscriber: str,
    jobs: int,
    known: Path | None,
    allow_commands: bool,
    compress: bool,
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
) -> int:
    """Run each SCENARIO, judge the runs, and write an HTML report.

    A SCENARIO is a name from `windtunnel list`, a YAML file, or a folder; the default is the three
    main scenarios. A folder is one of the list, such as loss, or your own: each file *.yaml in it
    and in its subfolders must be a scenario; hidden folders and run folders are passed over. Prints
    one line per run, with the verdict and its reason. The exit code is that of the worst verdict.

    \b
      windtunnel run loss/reliable-2pct --seed 7 --seeds 10 --receive nak-delay=1ms
      windtunnel run my-scenarios/ --fidelity sim --jobs 2
      windtunnel run my-scenario.yaml --payload capture.tar --json | jq .outcome
      windtunnel run --publisher aeronmd:build/aeronmd --subscriber pyaeron
    """
    from windtunnel.harness.cli.machine import default_fidelity
    from windtunnel.harness.cli.render.display import choose
    from windtunnel.harness.orchestrate.suite.runner import run_suite

    files = scenarios.find_all(scenario)
    _check_defects(sabotage, mutant, kernel)
    loaded = _load(files, receive, settings, allow_commands)
    if kernel == "uml":
        return in_kernel.run(files, click.get_current_context().params)
    chosen_fidelity = fidelity or default_fidelity([each.fidelity for each in loaded])
    with failure.one_line():
        pair = prepare_drivers(publisher, subscriber, mutant, chosen_fidelity, out)
        with choose(as_json) as display:
            result = run_suite(
                files,
                fidelity=cast("Fidelity", chosen_fidelity),
                seed=seed,
                seeds=seeds,
                payload_file=payload,
                out=out,
                on_event=display.on_event,
                sabotage=sabotage,
                backend=backend,
                receive=receive,
                tested=pair,
                jobs=jobs,
                known=_load_known(known),
                compress=compress,
                allow_commands=allow_commands,
                settings=settings,
            )
        report = _write_files(result.suite_dir, junit, markdown)
    print_suite(result, report, as_json)
    return result.exit_code


def _load(
    files: list[Path], receive: dict[str, str], settings: dict[str, str], allow_commands: bool
) -> "list[Scenario]":
    """Load all scenarios. Raises Failure with the problems of all files."""
    from windtunnel.harness.orchestrate.scenario_file import require_runnable

    with failure.one_line():
        return require_runnable(files, receive, settings, allow_commands=allow_commands)


def _check_defects(sabotage: str | None, mutant: str | None, kernel: str) -> None:
    """Raise UsageError if `--sabotage` names an unknown defect, or if `--mutant` is used with a
    kernel (`--kernel`) that does not support it.
    """
    from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES

    if sabotage is not None and sabotage not in SABOTAGES:
        raise click.UsageError(
            f"--sabotage: expected one of {', '.join(SABOTAGES)}, found {sabotage!r}"
        )
    if mutant is not None and kernel != "host":
        raise click.UsageError("--mutant needs --kernel host")


def _load_known(file: Path | None) -> "tuple[KnownFailure, ...]":
    """Load the known-failures file. Returns an empty tuple if no file was given."""
    from windtunnel.harness.scenario.known import load_known
    from windtunnel.harness.verdict.automatic import AUTOMATIC
    from windtunnel.harness.verdict.registry import CHECKS

    return load_known(file, {*CHECKS, *AUTOMATIC}) if file is not None else ()


def prepare_drivers(
    publisher: str, subscriber: str, mutant: str | None, fidelity: str, out: Path
) -> "Pair":
    """Return the drivers under test, after acquiring the privileges that the fidelity level (netns,
    compose or sim) needs.
    """
    from windtunnel.harness.orchestrate.labs import privileges
    from windtunnel.harness.orchestrate.subjects import peers

    if fidelity == "netns":
        privileges.acquire()
    pair = peers.pair(publisher, subscriber, fidelity, out.resolve() / peers.STORE)
    return pair if mutant is None else _with_mutant(mutant, pair, fidelity)


def _with_mutant(name: str, pair: "Pair", fidelity: str) -> "Pair":
    """Return the driver pair with a defect planted in Windtunnel's driver, compiled and ready to
    start.
    """
    from windtunnel.harness.exam import mutant_set, mutated_driver
    from windtunnel.harness.exam.mutant import MutantError

    if fidelity == "compose":
        raise click.UsageError(
            "--mutant needs --fidelity netns or sim: the container image has only the unmodified "
            "driver"
        )
    try:
        planted = mutant_set.of_name(name)
        chosen = planted.chosen(name)
        environment = mutated_driver.prepare(
            chosen,
            fidelity,
            lambda text: click.echo(text, err=True),
            mutants=planted.mutants,
            variant=planted.name,
        )
        return mutated_driver.with_mutant(pair, chosen, environment)
    except MutantError as error:
        raise click.UsageError(str(error)) from error


def write_report(suite_dir: Path) -> Path | None:
    """Write the suite's report and return its path. If this fails, print an error on stderr and
    return None.
    """
    from windtunnel.reports.page import write_suite_report

    try:
        return write_suite_report(suite_dir)
    except OSError as error:
        click.echo(f"windtunnel: the report could not be written: {error}", err=True)
        return None


def _write_files(suite_dir: Path, junit: Path | None, markdown: Path | None) -> Path | None:
    """Write the report and the files for CI. Returns the report's path, as `write_report` does."""
    from windtunnel.harness.artifact.run.suite import Suite
    from windtunnel.harness.artifact.run_dir import SuiteDir
    from windtunnel.reports.outcomes import of_suite

    report = write_report(suite_dir)
    suite = Suite.read(SuiteDir(suite_dir).document)
    if suite is not None and (junit or markdown):
        write_ci_files(of_suite(suite_dir, suite), junit, markdown)
    return report


def suite_lines(scenarios: Sequence["ScenarioResult"], remarks: Sequence[str]) -> list[str]:
    """Return the summary lines of a suite: one for each scenario that has several runs or known
    failures, and one for each remark.
    """
    lines = []
    for each in scenarios:
        if each.runs > 1 or each.limit is not None or each.known:
            text = f"{each.scenario}  {each.text}"
            lines.append(f"{outcome_mark(each.outcome)}  {printable(text)}")
    return [*lines, *(click.style(f"NOTE: {printable(remark)}", bold=True) for remark in remarks)]


def repeat_commands(result: "SuiteResult") -> list[str]:
    """Return the stored commands that repeat the failed runs."""
    from windtunnel.harness.artifact.run_dir import RunDir

    lines = []
    for each in result.runs:
        if each.outcome == "FAIL":
            with suppress(OSError, IndexError):
                lines.append(RunDir(each.run_dir).repro.read_text().splitlines()[0])
    return lines


def _result_texts(run_dir: Path, is_named: bool) -> list[str]:
    """Return the lines with a run's figures and what its applications saw, if it was judged."""
    from windtunnel.harness.artifact.documents import DocumentError
    from windtunnel.harness.artifact.run.verdict import (
        observations_of,
        read_verdict,
        result_rows_of,
    )
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.cli.render.results_table import observation_lines, result_lines

    try:
        verdict = read_verdict(RunDir(run_dir).verdict) or {}
    except DocumentError as error:
        echo(f"windtunnel: {failure.document_text(error)}", err=True)
        return []
    lines = [*result_lines(result_rows_of(verdict)), *observation_lines(observations_of(verdict))]
    return [f"  {run_dir.name}", *lines] if lines and is_named else lines


def _scrolled_verdicts(result: "SuiteResult", line_count: int) -> list[str]:
    """Return the verdict lines again if the lines after them have scrolled them off the terminal,
    unless there are more runs than half of the terminal's lines.
    """
    height = shutil.get_terminal_size().lines
    is_short = line_count + len(result.runs) < height or len(result.runs) > height // 2
    if is_short or not _is_terminal():
        return []
    runs = result.runs
    return [run_line(each.outcome, each.scenario, each.seed, each.reason, None) for each in runs]


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def print_suite(result: "SuiteResult", report: Path | None, as_json: bool) -> None:
    """Print the summary of a suite after all its runs."""
    if as_json:
        document = {
            "kind": "suite",
            "exit_code": result.exit_code,
            "suite_dir": str(result.suite_dir),
            "report": None if report is None else str(report),
            "runs": [str(each.run_dir) for each in result.runs],
            "scenarios": [asdict(each) for each in result.scenarios],
            "remarks": result.remarks,
            "again": repeat_commands(result),
        }
        click.echo(json.dumps(document))
    else:
        lines = [
            line
            for each in result.runs
            for line in _result_texts(each.run_dir, len(result.runs) > 1)
        ]
        for line in lines:
            echo(line)
        for line in suite_lines(result.scenarios, result.remarks):
            click.echo(line)
        for command in repeat_commands(result):
            echo(f"reproduce: {command}")
        if report is not None:
            echo(f"report: {report}")
        for line in _scrolled_verdicts(result, len(lines) + 2):
            click.echo(line)
    if result.exit_code == exit_code.INTERRUPTED:
        text = f"interrupted; partial results are in {result.suite_dir}"
        click.echo(f"windtunnel: {text}", err=True)
